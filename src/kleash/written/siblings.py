"""Two tables of one shape whose lines are the same but for one number, or for two swapped ones.

Arms or epochs that came out alike fill whole rows and columns of two tables with the same numbers.
One number of such a line that differs in a digit before the last, or two that stand in each other's
place, are a slip in one of the two tables. Last digits differ without one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from itertools import combinations
from statistics import median

from kleash.documents.marks import Mark
from kleash.findings.record import digits
from kleash.imports import Number
from kleash.imports.markdown.text import bare
from kleash.written.grids import Grid, label, turned

TELLING = 3  # digits of a number that is not the same by chance
ALIKE = 3  # numbers of a line that have to be the same
CLEARER = 2.0  # times: how much further off a number stands than its twin to be the odd one
Line = dict[int, Number]
Cell = tuple[Grid, int, int]


def unlike_twins(every: Sequence[Grid], fine: Collection[tuple[int, str]] = ()) -> list[Mark]:
    """Numbers of a table that its twin has otherwise, though all beside them are the same.

    Not those that what is worked out of them bears out: `fine` has their lines and places.
    """
    counts = Counter(one.text.strip("* ") for grid in every for one in grid.at.values())
    marks: dict[tuple[int, str], Mark] = {}
    for one, other in combinations(every, 2):
        if not _one_shape(one, other):
            continue
        for mine, twin in ((one, other), (turned(one), turned(other))):
            for mark in _odd_lines(mine, twin, counts):
                if "," in mark.text or (mark.line, mark.spot) not in fine:
                    marks.setdefault((mark.line, mark.text), mark)
    return list(marks.values())


def _one_shape(one: Grid, other: Grid) -> bool:
    titles = [[bare(title).casefold() for title in grid.titles] for grid in (one, other)]
    names = [[label(name) for name in grid.names] for grid in (one, other)]
    unique = all(len(set(each)) == len(each) for each in names)
    return titles[0] == titles[1] and names[0] == names[1] and unique


def _odd_lines(one: Grid, other: Grid, counts: Counter[str]) -> Iterator[Mark]:
    for line in range(len(one.names)):
        ours, theirs = _plain(one, line), _plain(other, line)
        both = [at for at in ours if at in theirs and digits(ours[at]) >= TELLING]
        odd = [at for at in both if ours[at].value != theirs[at].value]
        for at in odd:
            slip = _slip(ours[at], theirs[at], len(both) - len(odd), len(both))
            yield from _told(one, other, line, [at], counts) if slip else ()
        for left, right in combinations(odd, 2):
            rest = [at for at in odd if at not in (left, right)]
            whole = len(both) - len(odd) >= 2 and not rest and _crossed(ours, theirs, left, right)
            if whole or _moved(one, other, line, (left, right)):
                yield from _told(one, other, line, [left, right], counts)


def _plain(grid: Grid, line: int) -> Line:
    return {at: number for (at, part), number in grid.line(line).items() if not part}


def _slip(ours: Number, theirs: Number, alike: int, of: int) -> bool:
    """Whether two numbers differ in one digit, not the last; in the first, if few are alike."""
    left, right = (one.text.strip("* %+") for one in (ours, theirs))
    if len(left) != len(right):
        return False
    differs = [at for at, pair in enumerate(zip(left, right, strict=True)) if pair[0] != pair[1]]
    last = len(left) - 1 if alike >= ALIKE and alike == of - 1 else 1
    return len(differs) == 1 and differs[0] < last and _most(alike, of - 1)


def _most(alike: int, of: int) -> bool:
    return alike >= ALIKE - 1 and 3 * alike >= 2 * of


def _crossed(ours: Line, theirs: Line, left: int, right: int) -> bool:
    return ours[left].value == theirs[right].value and ours[right].value == theirs[left].value


def _moved(one: Grid, other: Grid, line: int, slots: tuple[int, int]) -> bool:
    """Whether a number of a column that two tables share stands in another column here."""
    for here, there in (slots, slots[::-1]):
        for mine, twin in ((one, other), (other, one)):
            column, same = mine.column((there, "")), twin.column((there, ""))
            lines = [at for at in column if at in same and at != line]
            alike = [at for at in lines if column[at].value == same[at].value]
            stands = mine.at[line, (here, "")].value == twin.at[line, (there, "")].value
            if stands and _most(len(alike), len(lines)):
                return True
    return False


def _told(
    one: Grid, other: Grid, line: int, odd: Sequence[int], counts: Counter[str]
) -> Iterator[Mark]:
    """The marks of the table that is more likely wrong; of both where nothing tells which it is."""
    alone = len(odd) == 1
    sides = ((one, other), (other, one))
    off = [max(_off(grid, line, at) for at in odd) for grid, _ in sides]
    often = [counts[grid.at[line, (odd[0], "")].text.strip("* ")] for grid, _ in sides]
    known = alone and often[0] != often[1]
    for (mine, twin), ours, theirs in zip(sides, off, reversed(off), strict=True):
        number, right = (grid.at[line, (odd[0], "")] for grid in (mine, twin))
        fewer = often[sides.index((mine, twin))] == min(often)
        if (known and not fewer) or (not known and theirs > CLEARER * ours):
            continue
        text = number.text if alone else ", ".join(mine.at[line, (at, "")].text for at in odd)
        value = right.text if alone else ", ".join(twin.at[line, (at, "")].text for at in odd)
        facts = {"value": value, "lines": [right.where.line or 0]}
        spot = number.where.spot
        yield Mark(number.where.line or 0, text, "unsupported", "check.twin", facts, spot)


def _off(grid: Grid, line: int, at: int) -> float:
    """How far a number stands from where its row and its column have it."""
    every = [number.value or 0.0 for (_, (_, part)), number in grid.at.items() if not part]
    row = [number.value or 0.0 for number in _plain(grid, line).values()]
    column = [number.value or 0.0 for number in grid.column((at, "")).values()]
    expected = median(row) + median(column) - median(every)
    return abs((grid.at[line, (at, "")].value or 0.0) - expected)
