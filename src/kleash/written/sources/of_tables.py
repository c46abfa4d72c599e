"""What a number may be of tables: a cell, what two cells give, or what a line gives."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import combinations
from statistics import stdev
from typing import NamedTuple

from kleash.written.printed import Cell, Figure
from kleash.written.sources.named import AVOIDED, NAMED
from kleash.written.sources.views import SMALL, Reader, Run, Two, View, key_of

Pattern = tuple[str, ...]
_MEANS = re.compile(r"平均|均值|mean|avg|average")


class Origin(NamedTuple):
    """Something that a number may be: how it is named, its value, and what rounding allows."""

    pattern: Pattern
    value: float
    room: float
    cells: tuple[Cell, ...] = ()


def of_tables(reader: Reader, view: View) -> Iterator[Origin]:
    """All that a number may be of tables."""
    ask = view.ask
    yield from _cells(reader, view)
    told = ask.mean or ask.total or ask.is_spread or ask.deviates
    for run in reader.runs if ask.is_worked_out or told or ask.is_rate else ():
        if ask.is_worked_out or ask.is_rate:
            yield from _two(view, run)
        yield from _of_many(view, run)
    if ask.is_worked_out and (ask.mean or ask.total):
        yield from _between_lines(reader, view)


def scale_of(said: Figure, values: Sequence[float], unit: str) -> float:
    """100 where percentages are said of fractions."""
    small = max(map(abs, values)) <= SMALL
    return 100.0 if said.unit == "%" and unit != "%" and small else 1.0


# --- one cell


def _cells(reader: Reader, view: View) -> Iterator[Origin]:
    ask, figure = view.ask, view.ask.said.figure
    wanted = {"high"} if ask.most else set()
    wanted |= {"low"} if ask.least else set()
    for sheet in reader.book.sheets:
        nth, around = sheet.nth, view.around[sheet.nth]
        for cell in sheet.cells:
            value, decimals, unit = _printed(figure, cell.figure)
            if decimals < figure.decimals:
                continue
            end = (
                ""
                if not wanted
                else "yes"
                if wanted & reader.ends.get(key_of(cell), set())
                else "no"
            )
            beside = "".join(
                side[0]
                for side, at in (("row", cell.row), ("column", cell.column))
                if (nth, side, at) in view.beside
            )
            mean = ask.mean
            if mean:
                names = " ".join((*sheet.rows[cell.row], *sheet.columns[cell.column]))
                mean += "+" if _MEANS.search(names) else "-"
            pattern = (
                "cell", ask.kind, *around, view.rows[nth][cell.row], view.columns[nth][cell.column],
                view.row_words[nth][cell.row], view.column_words[nth][cell.column], end,
                f"{min(2, decimals - figure.decimals)}{unit}", beside, cell.part, mean,
            )  # fmt: skip
            yield Origin(pattern, value, 0.0, (cell,))


def _printed(said: Figure, cell: Figure) -> tuple[float, int, str]:
    """A cell in the scale of a sentence, its decimals there, and how their units go together."""
    if said.unit == cell.unit or (said.unit != "%" and cell.unit != "%"):
        return cell.value, cell.decimals, "="
    if said.unit != "%":
        return cell.value, cell.decimals, "only in the table"
    if abs(cell.value) <= SMALL and cell.decimals - 2 >= said.decimals:
        return 100 * cell.value, cell.decimals - 2, "a fraction"
    return cell.value, cell.decimals, "only in the sentence"


# --- two cells of a line


def _two(view: View, run: Run) -> Iterator[Origin]:
    ask, named, kind = view.ask, view.along(run), view.ask.said.kind
    gaps = ask.is_worked_out and kind != "times"
    ratios, rates = kind in ("share", "times"), ask.is_rate and kind in ("", "unit")
    if not (gaps or ratios or rates):
        return
    line = (ask.kind, *view.around[run.sheet.nth], view.line(run), view.words(run))
    ended, side = ask.most or ask.least or ask.is_spread, "across" if run.across else "down"
    for two in run.twos:
        if not (two.alike or rates):
            continue
        one, other = named[two.places[0]], named[two.places[1]]
        both = one + other if one <= other else other + one
        base = (*line, both, two.ends if ended else "-", two.first, side)
        if gaps and two.alike:
            yield from _gap(view, base, two)
        if (ratios and two.alike) or rates:
            yield from _ratios(view, base, two)


def _gap(view: View, base: Pattern, two: Two) -> Iterator[Origin]:
    figure = view.ask.said.figure
    scale = 100.0 if figure.unit == "%" and two.fractions else 1.0
    fewest = two.fewest - (2 if scale > 1 else 0)
    if fewest >= figure.decimals:
        same = "same" if fewest == figure.decimals else "more"
        relative = "relative" if view.ask.is_relative else ""
        yield Origin(("gap", *base, same, relative), scale * two.gap, scale * two.room, two.cells)


def _ratios(view: View, base: Pattern, two: Two) -> Iterator[Origin]:
    ask, kind = view.ask, view.ask.said.kind
    relative, part = ("relative" if ask.is_relative else "", "part" if ask.is_part else "")
    direction = ask.direction
    for ratio, room in two.ratios:
        way, turned = turn_of(direction, ratio)
        if kind == "times":
            yield Origin(("ratio", *base, turned, way), ratio, room, two.cells)
        elif kind != "share":
            yield Origin(("rate", *base, "", way), ratio, room, two.cells)
        else:
            yield Origin(
                ("change", *base, turned, relative), 100 * (ratio - 1), 100 * room, two.cells
            )
            yield Origin(("share", *base, way, part), 100 * ratio, 100 * room, two.cells)


def turn_of(direction: int, ratio: float) -> tuple[str, str]:
    """Whether a ratio is more than one, and whether that is what the words say."""
    way = "up" if abs(ratio) > 1 else "down"
    if not direction:
        return way, ""
    return way, "as said" if (direction > 0) == (way == "up") else "turned"


# --- many cells of a line


def _of_many(view: View, run: Run) -> Iterator[Origin]:
    ask, figure = view.ask, view.ask.said.figure
    side = "across" if run.across else "down"
    for how, cells in _parts(view, run):
        values = [cell.figure.value for cell in cells]
        scale = scale_of(figure, values, cells[0].figure.unit)
        fewest = min(cell.figure.decimals for cell in cells) - (2 if scale > 1 else 0)
        room, count = scale * sum(cell.figure.half for cell in cells), len(cells)
        base = (ask.kind, *view.around[run.sheet.nth], view.line(run), view.words(run), side, how)
        if fewest + 1 >= figure.decimals:
            mean = scale * sum(values) / count
            yield Origin(("mean", *base, ask.mean), mean, room / count, cells)
        if fewest >= figure.decimals:
            yield Origin(("sum", *base, ask.total), scale * sum(values), room, cells)
            if how == "all" and ask.is_spread:
                span = scale * (max(values) - min(values))
                yield Origin(("range", *base, ""), span, 2 * room / count, cells)
        if ask.deviates and count > 2 and fewest + 2 >= figure.decimals:
            yield Origin(("deviation", *base, ""), scale * stdev(values), room / count, cells)
        if ask.said.kind == "share" and how == "all" and sum(values) > 0:
            yield from _parts_of_all(view, run, base, cells)


def _parts_of_all(view: View, run: Run, base: Pattern, cells: tuple[Cell, ...]) -> Iterator[Origin]:
    """What each cell is of the sum of all, and those that are named together."""
    named, part = view.along(run), "part" if view.ask.is_part else ""
    total = sum(cell.figure.value for cell in cells)
    room = 100 * sum(cell.figure.half for cell in cells) / total
    for cell in cells:
        pattern = ("part", *base, named[run.place(cell)], part)
        yield Origin(pattern, 100 * cell.figure.value / total, room, (cell,))
    own = tuple(cell for cell in cells if named[run.place(cell)] in NAMED)
    if 1 < len(own) < len(cells):
        value = 100 * sum(cell.figure.value for cell in own) / total
        yield Origin(("part", *base, "several", part), value, room, own)


def _parts(view: View, run: Run) -> Iterator[tuple[str, tuple[Cell, ...]]]:
    """All of a line, and the parts of it that words may mean."""
    ask, cells = view.ask, run.plain
    if len(cells) > 2 or (len(cells) == 2 and ask.mean):
        yield "all", cells
    if not (ask.mean or ask.total or ask.said.kind == "share"):
        return
    named = view.along(run)
    found = [("named", tuple(cell for cell in cells if named[run.place(cell)] in NAMED))]
    found += [("first", cells[: ask.first])] if ask.first else []
    found += [("last", cells[-ask.last :])] if ask.last else []
    if ask.halves and not ask.first and not ask.last and len(cells) % 2 == 0:
        found += [("first", cells[: len(cells) // 2]), ("last", cells[len(cells) // 2 :])]
    found.append(("span", _within(view, run, cells)))
    yield from ((how, some) for how, some in found if 1 < len(some) < len(cells))


def _within(view: View, run: Run, cells: tuple[Cell, ...]) -> tuple[Cell, ...]:
    """The cells between two steps that a clause names."""
    counts = run.sheet.across if run.across else run.sheet.counts
    if view.ask.span is None or not counts:
        return ()
    low, high = view.ask.span
    return tuple(cell for cell in cells if low <= counts.get(run.place(cell), -1.0) <= high)


# --- two lines


def _between_lines(reader: Reader, view: View) -> Iterator[Origin]:
    """How far the means, or the sums, of two lines of a table are apart."""
    ask, figure = view.ask, view.ask.said.figure
    for one, other in combinations(reader.runs, 2):
        same = one.sheet is other.sheet and one.across == other.across
        if not same or one.cells[0].part != other.cells[0].part:
            continue
        both = "".join(sorted(view.line(one) + view.line(other)))
        if AVOIDED & set(both):
            continue
        theirs = {other.place(cell): cell for cell in other.plain}
        twos = [(cell, theirs[one.place(cell)]) for cell in one.plain if one.place(cell) in theirs]
        twos = [two for two in twos if two[0].figure.unit == two[1].figure.unit]
        inside = _within(view, one, tuple(cell for cell, _ in twos))
        parts = [("all", twos), ("span", [two for two in twos if two[0] in inside])]
        for how, some in parts:
            if len(some) < 2 or (how == "span" and len(some) == len(twos)):
                continue
            gaps = [a.figure.value - b.figure.value for a, b in some]
            scale = scale_of(figure, gaps, some[0][0].figure.unit)
            fewest = min(a.figure.decimals for a, _ in some) - (2 if scale > 1 else 0)
            room = scale * sum(a.figure.half + b.figure.half for a, b in some)
            base = (ask.kind, *view.around[one.sheet.nth], both, how)
            if fewest + 1 >= figure.decimals:
                mean = scale * sum(gaps) / len(gaps)
                yield Origin(("gap of means", *base, ask.mean), mean, room / len(gaps))
            if fewest >= figure.decimals:
                yield Origin(("gap of sums", *base, ask.total), scale * sum(gaps), room)
