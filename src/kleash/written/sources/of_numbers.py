"""What a number may be of others of its sentence, of them and a cell, or of one so many times."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import combinations

from kleash.written.fitting import prints
from kleash.written.gaps import is_gap
from kleash.written.printed import Cell
from kleash.written.prose import Said
from kleash.written.sources.named import AVOIDED
from kleash.written.sources.of_tables import Origin, Pattern, scale_of, turn_of
from kleash.written.sources.views import Reader, View

FAR, NEAR = 5, 3  # numbers to each side
EARLIER = 3  # numbers of the sentence before
_WHOLE = re.compile(r"(?<![\d.])(\d{1,2})(?![\d.%])")
Placed = tuple[int, Said]
"""A number and how many numbers it stands behind another, or before it."""


def of_numbers(reader: Reader, view: View) -> Iterator[Origin]:
    """All that a number may be of others of its sentence."""
    ask = view.ask
    others = _others(view)
    if ask.is_worked_out:
        for one, other in combinations(others, 2):
            yield from _two(view, one, other)
    if ask.said.kind in ("share", "times") or ask.way == "g":
        beside = [one for one in others if -2 <= one[0] <= 1 and one[1].figure.digits > 1]
        plain = [one for one in beside if one[1].kind not in ("points", "times")]
        yield from _with_cells(reader, view, plain)
    yield from _multiples(view, others)


def _others(view: View) -> list[Placed]:
    sentence, said = view.ask.sentence, view.ask.said
    at = sentence.numbers.index(said)
    found = [
        (nth - at, one)
        for nth, one in enumerate(sentence.numbers)
        if one is not said and abs(nth - at) <= FAR
    ]
    if sentence.before is not None and not at:
        earlier = list(reversed(sentence.before.numbers[-EARLIER:]))
        found += [(-FAR - 1 - nth, one) for nth, one in enumerate(earlier)]
    return found


def _two(view: View, left: Placed, right: Placed) -> Iterator[Origin]:
    ask, figure = view.ask, view.ask.said.figure
    (i, one), (j, other) = left, right
    x, y = one.figure.value, other.figure.value
    units = one.figure.unit == other.figure.unit or (not one.figure.unit and other.figure.unit)
    lengths = one.figure.decimals == other.figure.decimals
    if not units or not lengths or {one.kind, other.kind} & {"times", "points"}:
        return
    room = one.figure.half + other.figure.half if one.figure.decimals else 0.0
    base = (ask.kind, "{},{}".format(*sorted((i, j))), *_between(view, left, right))
    relative = "relative" if ask.is_relative else ""
    if ask.said.kind != "times":
        scale = scale_of(figure, (x, y), one.figure.unit)
        if one.figure.decimals - (2 if scale > 1 else 0) >= figure.decimals:
            yield Origin(("own gap", *base, relative, ""), scale * (x - y), scale * room)
    if ask.said.kind not in ("share", "times"):
        return
    for top, bottom in ((x, y), (y, x)):
        if not bottom:
            continue
        ratio = top / bottom
        off = abs(room / bottom) * (1 + abs(ratio)) / 2
        way, turned = turn_of(ask.direction, ratio)
        if ask.said.kind == "times":
            yield Origin(("own ratio", *base, turned, way), ratio, off)
        else:
            part = "part" if ask.is_part else ""
            yield Origin(("own change", *base, turned, relative), 100 * (ratio - 1), 100 * off)
            yield Origin(("own share", *base, way, part), 100 * ratio, 100 * off)


def _between(view: View, left: Placed, right: Placed) -> tuple[str, str]:
    """Whether a sentence is parted between numbers, and whether one of them is a gap."""
    sentence, said = view.ask.sentence, view.ask.said
    inside = [one for at, one in (left, right) if at >= -FAR]
    own = [said, *(inside if len(inside) > 1 else ())]
    first, last = min(one.start for one in own), max(one.end for one in own)
    apart = re.search("[;。]", sentence.plain[first:last])
    gap = any(is_gap(sentence, one) for _, one in (left, right))
    return "apart" if apart else "", "of a gap" if gap else ""


def _with_cells(reader: Reader, view: View, beside: Sequence[Placed]) -> Iterator[Origin]:
    """A number beside it held against a cell."""
    for sheet in reader.book.sheets:
        rows, columns = view.rows[sheet.nth], view.columns[sheet.nth]
        for cell in sheet.cells:
            names = (rows[cell.row], columns[cell.column])
            if AVOIDED & set(names) or not cell.figure.value:
                continue
            for at, one in beside:
                if cell.figure.unit == one.figure.unit and not prints(one.figure, cell.figure):
                    yield from _against(
                        view, (view.ask.kind, str(at), *view.around[sheet.nth], *names), one, cell
                    )


def _against(view: View, base: Pattern, one: Said, cell: Cell) -> Iterator[Origin]:
    ask, kind = view.ask, view.ask.said.kind
    value, theirs = one.figure.value, cell.figure
    room, cells = one.figure.half + theirs.half, (cell,)
    gap = is_gap(ask.sentence, one)
    base = (*base, "of a gap" if gap else "")
    part, relative = "part" if ask.is_part else "", "relative" if ask.is_relative else ""
    off = room / abs(theirs.value)
    if kind == "share":
        yield Origin(("its share", *base, part), 100 * abs(value / theirs.value), 100 * off, cells)
        if not gap:
            change = 100 * (value / theirs.value - 1)
            yield Origin(("its change", *base, relative), change, 100 * off, cells)
    elif kind == "times":
        yield Origin(("its ratio", *base, part), abs(value / theirs.value), off, cells)
    elif not gap and min(theirs.decimals, one.figure.decimals) >= ask.said.figure.decimals:
        yield Origin(("its gap", *base, relative), value - theirs.value, room, cells)


def _multiples(view: View, others: Sequence[Placed]) -> Iterator[Origin]:
    """Another number so many times: "6.57 hours on 4 cards are 26.3"."""
    ask = view.ask
    if not ask.said.figure.decimals or ask.said.kind not in ("", "unit"):
        return
    counts = {int(match[1]) for match in _WHOLE.finditer(ask.sentence.plain)} - {0, 1}
    for at, one in others:
        if abs(at) <= NEAR and one.figure.decimals:
            for count in sorted(counts):
                value, half = one.figure.value, one.figure.half
                yield Origin(("multiple", ask.kind, str(at)), count * value, count * half)
