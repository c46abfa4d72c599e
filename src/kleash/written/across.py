"""What two lines say of each other: one is so many times the other, or a table of their gaps.

Hours are seconds per step times the steps, tokens per second fall as the seconds rise: nobody has
to know the factor, for most of the numbers give the same. And a table of differences is made of the
table of values that has its rows, its columns and one row more.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import combinations
from math import comb, prod
from statistics import median

from kleash.findings.record import digits
from kleash.imports import Number
from kleash.imports.markdown.derived import SLACK, bounds
from kleash.imports.markdown.text import bare
from kleash.written.grids import Grid, Slot, label, turned
from kleash.written.made.boards import SUMMARY
from kleash.written.patterns import Made, mistyped
from kleash.written.printed import JOINED, differ_in_number, squeezed, titles

_TIME = re.compile(r"秒|耗时|时间|\(s\)|s/step|(?<![a-z])(?:secs?|seconds|time)(?![a-z])", re.I)
_BILL = re.compile(
    r"卡时|机时|小时|费用|加速|吞吐|hours|cost|price|speed-?up|throughput|tokens/s|\$|(?<![a-z])h(?![a-z])",
    re.I,
)
_OF_WHICH = re.compile(r"\s*(?:其中|其他|其余|of which|others?(?![a-z])|rest(?![a-z])|[└├↳])", re.I)
CHANCE = 0.002  # of taking two lines for each other's multiple that are none
LEAST = 3  # numbers that have to fit
ALIKE = (0.8, 1.25)  # times the other
FEW = 9  # numbers that another may have been meant to be
BASES = 6  # rows that differences may be taken from
GAPS = 4  # differences that have to
Pair = tuple[Number, Number]
Range = tuple[float, float]


def across(every: Sequence[Grid]) -> Iterator[Made]:
    """Every number that another line, or another table, works out."""
    for grid in every:
        for view in (grid, turned(grid)):
            plain = [slot for slot in view.slots() if not slot[1] and _one_quantity(view, slot)]
            for ours, theirs in combinations(plain, 2):
                yield from _multiple(view, ours, theirs, len(plain))
                turned_ = _multiple(view, theirs, ours, len(plain))
                yield from (one for one in turned_ if not one.holds)
            yield from _parts(view)
    for values, gaps in ((one, two) for one in every for two in every if one is not two):
        yield from _gaps(values, gaps)


# --- so many times the other


def _multiple(grid: Grid, ours: Slot, theirs: Slot, width: int) -> Iterator[Made]:
    left, right = grid.column(ours), grid.column(theirs)
    lines = [at for at in left if at in right and not SUMMARY.search(bare(grid.names[at]))]
    pairs = [(left[at], right[at]) for at in lines]
    values = [{one.value for one in side} for side in zip(*pairs, strict=True)] if pairs else []
    varied = bool(values) and min(map(len, values)) >= LEAST
    said = [
        bool(word.search(grid.titles[at[0]])) for word in (_TIME, _BILL) for at in (ours, theirs)
    ]
    paid = (said[0] and said[3]) or (said[1] and said[2])  # hours and what they cost
    fewest = 2 if paid else 3  # digits: counts of two are each other's multiples by chance
    if not varied or any(
        (one.value or 0.0) <= 0 or digits(one) < fewest for two in pairs for one in two
    ):
        return
    settings = differ_in_number(grid.titles[ours[0]], grid.titles[theirs[0]])
    if not paid and (settings or _are_alike(pairs)):  # the KL at β=0.01 and at β=0.04
        return
    width = 1 if paid else width
    for inverse in (False, True):
        found = _fitted(pairs, width, inverse=inverse)
        if found is not None:
            for (base, number), (low, high) in zip(pairs, found, strict=True):
                made = Made("multiple", number, (base,), (), low, high, _in(number, low, high))
                if made.holds or _is_slip(made) or _is_swapped(number, pairs, found):
                    yield made
            return


def _are_alike(pairs: Sequence[Pair]) -> bool:
    """Whether two lines are of one quantity: these are nearly each other's multiples anyway."""
    ratio = median((two.value or 0.0) / (one.value or 1.0) for one, two in pairs)
    units = {number.unit for two in pairs for number in two}
    return len(units) == 1 and ALIKE[0] < ratio < ALIKE[1]


def _one_quantity(grid: Grid, slot: Slot) -> bool:
    """Whether all numbers of a line are printed alike, so that they may be of one thing."""
    return len({(one.decimals, one.unit) for one in grid.column(slot).values()}) == 1


def _fitted(pairs: Sequence[Pair], width: int, *, inverse: bool) -> list[Range] | None:
    """What each right number should be, if most are the left ones by one factor; else nothing.

    Two numbers that were exchanged count as fitting if they do in each other's place.
    """
    best, most = None, 0
    ends = [(_ends(base), _ends(number)) for base, number in pairs]
    for swap in (None, *combinations(range(len(pairs)), 2)):
        moved = list(ends)
        if swap is not None:
            one, two = swap
            moved[one], moved[two] = (ends[one][0], ends[two][1]), (ends[two][0], ends[one][1])
        factor = _factor(moved, inverse=inverse)
        ranges = [_times(base, factor, inverse=inverse) for base, _ in moved]
        fits = [_meet(number, each) for (_, number), each in zip(moved, ranges, strict=True)]
        explained = swap is None or all(fits[at] for at in swap)
        if sum(fits) < max(LEAST, most + 2 * bool(swap)) or not explained:
            most = max(most, sum(fits)) if swap is None else most
            continue
        most = max(most, sum(fits)) if swap is None else most
        tries = 2 * width * width * (comb(len(pairs), 2) if swap else 1)
        odds = tries * comb(len(pairs), sum(fits)) * _chance(_numbers(pairs, swap), ranges, fits)
        if odds < CHANCE and 3 * sum(fits) >= 2 * len(pairs):
            best = ranges
    return best


def _numbers(pairs: Sequence[Pair], swap: tuple[int, int] | None) -> list[Number]:
    """The right numbers, two of them in each other's place."""
    numbers = [number for _, number in pairs]
    if swap is not None:
        one, two = swap
        numbers[one], numbers[two] = numbers[two], numbers[one]
    return numbers


def _factor(ends: Sequence[tuple[Range, Range]], *, inverse: bool) -> Range:
    """The factors that most numbers allow."""
    spans = [(a * c, b * d) if inverse else (c / b, d / a) for (a, b), (c, d) in ends]
    starts = {low: [one for one in spans if one[0] <= low <= one[1]] for low, _ in spans}
    inside = max(starts.values(), key=len)
    return max(low for low, _ in inside), min(high for _, high in inside)


def _times(base: Range, factor: Range, *, inverse: bool) -> Range:
    low, high = base
    return (factor[0] / high, factor[1] / low) if inverse else (factor[0] * low, factor[1] * high)


def _chance(numbers: Sequence[Number], ranges: Sequence[Range], fits: Sequence[bool]) -> float:
    """How likely numbers would fit that have nothing to do with each other: the first always."""
    values = [number.value or 0.0 for number, fit in zip(numbers, fits, strict=True) if fit]
    room = max(values) - min(values)
    odds = []
    for number, (low, high), fit in zip(numbers, ranges, fits, strict=True):
        first, last = _ends(number)
        width = high - low + last - first
        odds += [width / (room + width)] if fit else []
    return prod(sorted(odds)[1:])


def _is_swapped(number: Number, pairs: Sequence[Pair], ranges: Sequence[Range]) -> bool:
    """Whether a number fits where another stands that fits here."""
    own = next(each for (_, one), each in zip(pairs, ranges, strict=True) if one is number)
    return any(
        _in(number, *there) and _in(other, *own) and not _in(other, *there)
        for (_, other), there in zip(pairs, ranges, strict=True)
    )


def _is_slip(made: Made) -> bool:
    """Whether a number is one digit, or two in the wrong order, from one that would fit."""
    unit = 10.0 ** -(made.number.decimals or 0)
    first, last = round(made.low / unit), round(made.high / unit)
    near = (at * unit for at in range(first, min(last, first + FEW) + 1))
    return any(mistyped(replace(made, low=value, high=value)) for value in near)


def _ends(number: Number) -> Range:
    value = number.value or 0.0
    return bounds(number) or (value, value)


def _in(number: Number, low: float, high: float) -> bool:
    return _meet(_ends(number), (low, high))


def _meet(printed: Range, made: Range) -> bool:
    (first, last), (low, high) = printed, made
    slack = SLACK * max(1e-6, abs(high))
    return first <= high + slack and last >= low - slack


# --- a whole and its parts


def _parts(grid: Grid) -> Iterator[Made]:
    """A line that those below it, which say that they are its parts, add up to."""
    plain = [slot for slot in grid.slots() if not slot[1]]
    for nth, whole in enumerate(plain):
        parts = []
        for slot in plain[nth + 1 :]:
            if not _OF_WHICH.match(bare(grid.titles[slot[0]])):
                break
            parts.append(slot)
        if len(parts) < 2 or _OF_WHICH.match(bare(grid.titles[whole[0]])):
            continue
        made = []
        for line, number in grid.column(whole).items():
            of = tuple(one for slot in parts if (one := grid.at.get((line, slot))))
            low, high = (sum(_ends(one)[end] for one in of) for end in (0, 1))
            if len(of) == len(parts):
                made.append(Made("sum", number, of, (), low, high, _in(number, low, high)))
        if sum(one.holds for one in made) >= 2:
            yield from made


# --- a table of differences


def _gaps(values: Grid, gaps: Grid) -> Iterator[Made]:
    """The numbers of a table that are those of another less one of its rows."""
    rows = {label(name): at for at, name in enumerate(values.names)}
    own = {label(name): at for at, name in enumerate(gaps.names)}
    columns, there = _columns(values), _columns(gaps)
    same = {slot: columns[title] for title, slot in there.items() if title in columns}
    bases = [at for name, at in rows.items() if name not in own]
    best: list[Made] = []
    for base in bases if len(same) > 1 and len(bases) <= BASES else ():
        made = [
            one
            for name, at in own.items()
            for slot, their in same.items()
            if name in rows
            if (one := _gap(gaps, (at, slot), values, (rows[name], their), (base, their)))
        ]
        if sum(one.holds for one in made) > sum(one.holds for one in best):
            best = made
    held = [one for one in best if one.holds]
    values_ = [one.number.value or 0.0 for one in best] or [0.0]
    room = max(values_) - min(values_)
    widths = [one.high - one.low for one in held]
    chance = prod(min(1.0, 2 * width / (room + width)) for width in widths if room + width)
    odds = len(bases) * comb(len(best), len(held)) * chance
    if len(held) >= GAPS and 3 * len(held) >= len(best) and odds < CHANCE:
        yield from best


def _columns(grid: Grid) -> dict[str, Slot]:
    """The columns of a table by the last part of their titles."""
    named = [squeezed(bare(title.split(JOINED)[-1])).strip(" :*↑↓") for title in titles(grid)]
    return {name: (at, "") for at, name in enumerate(named) if at and named.count(name) == 1}


At = tuple[int, Slot]


def _gap(gaps: Grid, at: At, values: Grid, ours: At, theirs: At) -> Made | None:
    number, one, two = gaps.at.get(at), values.at.get(ours), values.at.get(theirs)
    if number is None or one is None or two is None:
        return None
    (a, b), (c, d) = _ends(one), _ends(two)
    scale = 100.0 if one.unit == two.unit == "%" != number.unit else 1.0
    low, high = scale * (a - d), scale * (b - c)
    holds = _in(number, low, high)
    return Made("difference", number, (one,), (two,), low, high, holds, ready=True)
