"""Whether a number of a sentence can be accounted for: printed in a table, or worked out of one.

What may be meant depends on what the number is called (points are differences, "3.1 times" is a
ratio) and on which rows and columns the sentence names: of two numbers that were taken one has to
be theirs. A number for which nothing of the kind is found stands alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, permutations
from typing import Literal

from kleash.written.book import Book, meant, pairs
from kleash.written.gaps import BEHIND, compares, is_gap
from kleash.written.printed import Cell, Figure, is_total
from kleash.written.prose import Said, Sentence

SLACK = 1e-9
NAMING = 3  # digits of a number that names its cell
SLIP = 5  # units of the last digit within which a number was meant to be another
EXACT = 9  # decimals of what was not rounded
FEW = 6  # pairs of numbers that a gap may be of to say which
WIDE = 0.9  # a chance at which nothing is said by what comes out
Kind = Literal["printed", "difference", "relative", "ratio", "mean", "sum"]
_MEAN = re.compile(r"averag|(?<![a-z])mean(?![a-z])|平均|均值|均为|(?<![a-z])per(?![a-z])|每")
_SUM = re.compile(
    r"total|(?<![a-z])sum|together|whole|overall|altogether|合计|总|共|加起来|累计|(?<![a-z])all(?![a-z])"
)
_COUNT = re.compile(
    r"(?<![\w.,])(\d{1,4})\s?(?:x\s|×)?(?:a100|h100|h200|h800|gpus?|卡|seeds?|个?种子|nodes?|runs?|次)"
)
MANY: dict[Kind, re.Pattern[str]] = {"mean": _MEAN, "sum": _SUM}
_JOINED = re.compile(
    r"\s?(?:%|[a-z]{1,6}|[题个])?\s?(?:-|~|to|vs\.?|versus|against|→|->|到|至|对|和|与|"
    r"[掉降升增减跌涨]至?到?)\s?"
)
_BESIDE, _BRACKET = r"[^;。>]{0,30}", r"[^,;。]*\((?:from|从|由)?\s*"
_THAN_BEFORE = re.compile(r"比[^,。;]{0,16}$|that of\s?$")
_THAN = re.compile(
    r"(?:than|over|vs\.?|versus|against|below|above|behind|from|比|与|和|较|对|相较于?)\s?$"
)


@dataclass(frozen=True)
class Account:
    """How a number comes about; `exact` if it does from the numbers as they are printed."""

    kind: Kind
    cells: tuple[Cell, ...]
    exact: bool
    value: float
    """What comes out, as it would be printed in the sentence."""
    chance: float = 0.0
    """How likely it misses what printed numbers give by a digit, if taken before rounding."""


# --- what fits


def fits(said: Figure, low: float, high: float) -> tuple[bool, bool]:
    """Whether a number may be what lies between two, and whether it is the middle as printed."""
    value, half = abs(said.value), said.half
    low, high = sorted((abs(low), abs(high))) if low * high > 0 else (0.0, max(abs(low), abs(high)))
    slack = SLACK * max(1.0, high)
    near = value - half <= high + slack and value + half >= low - slack
    return near, near and abs(value - (low + high) / 2) <= half + slack


def prints(said: Figure, cell: Figure) -> bool:
    """Whether a number is a figure of a table, to its own decimals or fewer."""
    for scale in _scales(said, cell):
        value, decimals = cell.value * scale, cell.decimals - (2 if scale == 100 else 0)
        gap = abs(abs(said.value) - abs(value))
        room = said.half if decimals > said.decimals or said.loose > 1 else 0.0
        if gap <= room + SLACK * max(1.0, abs(value)):
            return True
    return False


def near(book: Book, sentence: Sentence, said: Said) -> float | None:
    """What a number that nothing accounts for was meant to be, if it is but some digits off."""
    loose = replace(said, figure=replace(said.figure, loose=2 * SLIP))
    every = [one.value for one in accounts(book, sentence, loose) if one.kind != "sum"]
    value = abs(said.figure.value)
    return min(every, key=lambda one: abs(abs(one) - value), default=None)


def _scales(said: Figure, cell: Figure) -> list[float]:
    """1, and what makes a percentage of a fraction or a fraction of a percentage."""
    if said.unit == "%" and cell.unit != "%" and abs(cell.value) <= 1.5:
        return [1.0, 100.0]
    if said.unit != "%" and cell.unit == "%" and abs(said.value) <= 1.5:
        return [1.0, 0.01]
    return [1.0]


# --- accounts


def account(book: Book, sentence: Sentence, said: Said) -> Account | None:
    """The best account of a number: one that comes out exactly before one that only may."""
    every = list(accounts(book, sentence, said))
    best = min(
        every, key=lambda one: (not one.exact, one.kind != "printed", one.chance), default=None
    )
    if best is None or best.kind == "printed" or is_gap(sentence, said):
        return best
    surely = best.exact and best.kind in MANY
    return None if _one_off(book, said.figure, mean=surely) else best


def _one_off(book: Book, figure: Figure, *, mean: bool) -> bool:
    """Whether a table prints a number but for its last digit, if need be as a mean: that is it."""
    unit = 10.0**-figure.decimals
    if figure.digits < NAMING:
        return False
    near = (
        cell
        for cell in book.cells
        if cell.figure.decimals == figure.decimals
        and abs(abs(abs(cell.figure.value) - abs(figure.value)) - unit) < unit / 100
    )
    return any(not mean or _MEAN.search(book.named(cell)) for cell in near)


def accounts(book: Book, sentence: Sentence, said: Said) -> Iterator[Account]:
    """Every account of a number that its sentence allows."""
    gap = is_gap(sentence, said)
    both = own_two(sentence, said) if gap or said.kind == "share" else None
    before = _anchor(book, sentence, said) if gap or said.kind == "share" else []
    for cell in book.cells if said.kind != "times" else ():
        if prints(said.figure, cell.figure) and _may_stand(said, cell, both, before):
            yield Account("printed", (cell,), exact=True, value=cell.figure.value)
    if both is not None:
        ours, theirs = (_logged(book, one.figure) for one in both)
        yield from _pair(said, ours, theirs, ())
        return
    for one, other in before:
        yield from _pair(said, one.figure, other.figure, (one, other))
    if not before:
        yield from _worked_out(book, sentence, said)


def _worked_out(book: Book, sentence: Sentence, said: Said) -> Iterator[Account]:
    """Accounts of a number that no other of its sentence ties down."""
    yield from _beside(sentence, said)
    yield from _times(book, sentence, said)
    if compares(sentence, said):
        for one, other in pairs(book, sentence):
            yield from _pair(said, one.figure, other.figure, (one, other))
    for kind, words in MANY.items():
        if words.search(sentence.plain) and said.kind != "times":
            for line, _ in meant(book, sentence):
                yield from _of_many(kind, book, said, line)


def _logged(book: Book, figure: Figure) -> Figure:
    """A number of a sentence with what it was before rounding, if a log has it."""
    same = (cell.figure for cell in book.cells if cell.figure.value == figure.value)
    found = {one.true for one in same if one.decimals == figure.decimals}
    return replace(figure, true=found.pop()) if len(found) == 1 else figure


def _may_stand(
    said: Said,
    cell: Cell,
    both: tuple[Said, Said] | None,
    before: Sequence[tuple[Cell, Cell]],
) -> bool:
    """Whether a number of few digits that has its own two numbers may still be a cell's."""
    if said.figure.digits >= NAMING or (both is None and not before):
        return True
    return any(cell.table == one.table and cell.row == one.row for one, _ in before)


def own_two(sentence: Sentence, said: Said) -> tuple[Said, Said] | None:
    """The two numbers right beside a gap that it must be of: "from 0.684 to 0.178, by 74 %"."""
    plain = sentence.plain
    others = [one for one in sentence.numbers if one is not said and not is_gap(sentence, one)]
    before = [one for one in others if one.end <= said.start]
    after = [one for one in others if one.start >= said.end]
    for two in (before[-2:], after[:2]):
        if len(two) < 2 or two[0].figure.decimals != two[1].figure.decimals:
            continue
        between = plain[two[0].end : two[1].start]
        gap = plain[two[1].end : said.start] if two[0] in before else plain[said.end : two[0].start]
        near = re.fullmatch(_BESIDE if two[0] in before else _BRACKET, gap)
        joined = _JOINED.fullmatch(between) and near
        units = {one.unit for one in (*two, said)}
        counted = len(units) == 1 and units != {""} and len(others) == 2
        times = said.kind == "times" and two[0] in before and len(before) == 2 and len(others) == 2
        if joined or counted or (times and re.search("的", gap)):
            return two[0], two[1]
    return None


def _anchor(book: Book, sentence: Sentence, said: Said) -> list[tuple[Cell, Cell]]:
    """The pairs of numbers that a gap must be of, since its sentence has just given one of them.

    "66.8 %, 9.7 points more than C": one of the two is 66.8. "by 0.464, or 33.7 %": both are those
    of 0.464. Not where another row or column begins between the two.
    """
    before = [one for one in sentence.numbers if one.end <= said.start]
    if said.kind != "share":
        before = [one for one in before if not is_gap(sentence, one)]
    if not before or before[-1].figure.digits < NAMING - 1:
        return []
    last, between = before[-1], sentence.plain[before[-1].end : said.start]
    names = {
        name.start for name in sentence.names if last.end <= name.start and name.end <= said.start
    }
    starts = [sentence.plain[last.end : start] for start in names]
    if re.search(r"[;。>]", between) or not all(_THAN.search(text) for text in starts):
        return []
    every = list(pairs(book, sentence))
    printed = any(prints(last.figure, cell.figure) for cell in book.cells)
    if is_gap(sentence, last) or (not printed and compares(sentence, last)):
        if said.kind != "share":
            return []
        found = [two for two in every if _makes(last, *two)]
        return found if len(found) < FEW else []
    told = BEHIND.match(sentence.plain, said.end) or _THAN_BEFORE.search(between)
    if last.figure.digits < NAMING or not is_gap(sentence, said) or not told:
        return []
    return [two for two in every if any(prints(last.figure, cell.figure) for cell in two)]


def _makes(said: Said, one: Cell, other: Cell) -> bool:
    return any(True for _ in _pair(said, one.figure, other.figure, ()))


def _pair(said: Said, one: Figure, other: Figure, cells: tuple[Cell, ...]) -> Iterator[Account]:
    """A number as the difference, change or ratio of two others; what a log has is exact."""
    found = _of_figures(said, one, other, cells)
    if one.true is None or other.true is None:
        yield from found
        return
    yield from (each for each in found if each.exact)
    found = _of_figures(said, _unrounded(one), _unrounded(other), cells)
    yield from (each for each in found if each.exact)


def _unrounded(one: Figure) -> Figure:
    return one if one.true is None else replace(one, value=one.true, decimals=EXACT, true=None)


def _of_figures(
    said: Said, one: Figure, other: Figure, cells: tuple[Cell, ...]
) -> Iterator[Account]:
    gap, half = one.value - other.value, one.half + other.half
    small = max(abs(one.value), abs(other.value)) <= 1
    decimals = min(one.decimals, other.decimals)
    fraction = said.kind == "share" and small and one.unit != "%"
    if said.kind != "times" and not fraction and decimals >= said.figure.decimals - 1:
        yield from _kept("difference", said, gap - half, gap + half, cells)
    if said.kind in ("points", "share") and small and decimals >= said.figure.decimals + 1:
        yield from _kept("difference", said, 100 * (gap - half), 100 * (gap + half), cells)
    for ours, theirs in ((one, other), (other, one)):
        if said.kind in ("share", "times") and abs(theirs.value) > theirs.half:
            corners = [
                a / b
                for a in (ours.value - ours.half, ours.value + ours.half)
                for b in (theirs.value - theirs.half, theirs.value + theirs.half)
            ]
            if said.kind == "times":
                yield from _kept("ratio", said, min(corners), max(corners), cells)
                continue
            yield from _kept(
                "relative", said, 100 * min(corners) - 100, 100 * max(corners) - 100, cells
            )
            yield from _kept("ratio", said, 100 * min(corners), 100 * max(corners), cells)


def _kept(
    kind: Kind, said: Said, low: float, high: float, cells: tuple[Cell, ...]
) -> Iterator[Account]:
    near, exact = fits(said.figure, low, high)
    if near:
        unit = 2 * said.figure.half
        middle = (low + high) / 2
        yield Account(kind, cells, exact, middle, min(0.9, 0.8 * (high - low) / 24**0.5 / unit))


def _of_many(kind: Kind, book: Book, said: Said, line: Sequence[Cell]) -> Iterator[Account]:
    """A number as the mean or the sum of a line, of all of it or all but one end."""
    sheet = book.sheets[line[0].table]
    same_row = len({cell.row for cell in line}) == 1
    aliases = sheet.columns if same_row else sheet.rows
    kept = [
        cell
        for cell in line
        if not any(is_total(alias) for alias in aliases[cell.column if same_row else cell.row])
    ]
    for part in dict.fromkeys((tuple(kept), tuple(kept[1:]), tuple(kept[:-1]))):
        if len(part) < 2:
            continue
        figures = [cell.figure for cell in part]
        known = all(one.true is not None for one in figures)
        for each in (figures, [_unrounded(one) for one in figures]) if known else (figures,):
            found = _of_line(kind, said, each, part)
            yield from (one for one in found if one.exact or not known)


def _of_line(
    kind: Kind, said: Said, figures: Sequence[Figure], cells: tuple[Cell, ...]
) -> Iterator[Account]:
    total, half = sum(one.value for one in figures), sum(one.half for one in figures)
    share = said.figure.unit == "%" and total <= 1.5 * len(figures)
    scale = 1.0 / len(figures) if kind == "mean" else 1.0
    for times in (scale, 100 * scale) if share else (scale,):
        yield from _kept(kind, said, (total - half) * times, (total + half) * times, cells)


def _beside(sentence: Sentence, said: Said) -> Iterator[Account]:
    """A number worked out of others of its sentence, or of the one before it."""
    others = [one for one in sentence.numbers if one is not said]
    if sentence.before is not None:
        others += sentence.before.numbers
    for one, other in combinations(others[:12], 2) if compares(sentence, said) else ():
        yield from _pair(said, one.figure, other.figure, ())
        if said.kind == "share" and other.kind == "points" and one.figure.value:
            share = 100 * abs(other.figure.value / one.figure.value)
            yield from _kept("relative", said, share * 0.995, share * 1.005, ())
    whole = [one.figure for one in others if not one.figure.decimals and one.figure.value]
    for part, of in permutations(whole, 2) if said.kind == "share" else ():
        if part.value <= of.value:
            share = 100 * part.value / of.value  # "13 of 18 (72.2 %)"
            yield from _kept("ratio", said, share, share, ())
    if _SUM.search(sentence.plain):
        total, half = (
            sum(one.figure.value for one in others),
            sum(one.figure.half for one in others),
        )
        if len(others) > 1:
            yield from _kept("sum", said, total - half, total + half, ())


def _times(book: Book, sentence: Sentence, said: Said) -> Iterator[Account]:
    """A number as so many times one of a table: 35.3 h on 8 GPUs."""
    counts = {float(match[1]) for match in _COUNT.finditer(sentence.plain)}
    enough = said.figure.digits >= NAMING and said.kind in ("", "unit")
    for cell in book.cells if counts and enough else ():
        for count in counts if cell.figure.digits >= NAMING - 1 else ():
            ends = [count * (cell.figure.value + sign * cell.figure.half) for sign in (-1, 1)]
            yield from _kept("sum", said, min(ends), max(ends), (cell,))


def nearest(said: Said, cells: Iterable[Cell]) -> float | None:
    """The figure of a table that is nearest to a number."""
    return min(
        (cell.figure.value for cell in cells),
        key=lambda one: abs(one - said.figure.value),
        default=None,
    )
