"""Two numbers of a row that are each between the other's neighbours, and not between their own.

KL goes 0.071, 0.272, 0.143 while entropy goes 0.296, 0.103, 0.243: exchanged, both go on as they
did. Chance brackets two numbers so only where the columns have the same size, and there it is not
looked at.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations

from kleash.documents.marks import Mark
from kleash.written.printed import Cell, Sheet

LEAST = 5  # steps of a course


def exchanged_in_course(sheets: Sequence[Sheet]) -> Iterator[Mark]:
    """Pairs of cells of a row of which each goes on with the other's column."""
    for sheet in sheets:
        cells = [cell for cell in sheet.cells if not cell.part]
        at = {(cell.row, cell.column): cell for cell in cells}
        turned = {(cell.column, cell.row): cell for cell in cells}
        for every, counts in ((at, sheet.counts), (turned, sheet.across)):
            order = sorted(counts, key=lambda line: counts[line])
            lines = sorted({line for _, line in every})
            for one, other in combinations(lines, 2) if len(order) >= LEAST else ():
                yield from _exchanged(every, order, one, other)


def _exchanged(
    every: Mapping[tuple[int, int], Cell], order: Sequence[int], one: int, other: int
) -> Iterator[Mark]:
    found = []
    for before, here, after in zip(order, order[1:], order[2:], strict=False):
        spots = [(place, line) for place in (before, here, after) for line in (one, other)]
        if not all(spot in every for spot in spots):
            return
        ours, theirs = (every[here, line] for line in (one, other))
        ends = [
            (every[before, line].figure.value, every[after, line].figure.value)
            for line in (one, other)
        ]
        alike = ours.figure.decimals == theirs.figure.decimals
        home = _is_between(theirs, ends[0]) and _is_between(ours, ends[1])
        if alike and home and _is_far(ours, ends[0]) and _is_far(theirs, ends[1]):
            found.append((ours, theirs))
    if len(found) == 1:
        ours, theirs = found[0]
        text = f"{ours.number.text}, {theirs.number.text}"
        yield Mark(ours.line, text, "wrong", "check.exchanged", {}, "course")


def _is_between(cell: Cell, ends: tuple[float, float]) -> bool:
    return min(ends) <= cell.figure.value <= max(ends)


def _is_far(cell: Cell, ends: tuple[float, float]) -> bool:
    """Whether a number is further from its neighbours than they are from each other."""
    low, high = min(ends), max(ends)
    off = max(low - cell.figure.value, cell.figure.value - high)
    return off > max(high - low, 2 * cell.figure.half)
