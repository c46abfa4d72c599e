"""Two numbers of a row that were exchanged, by their looks: each is at home in the other's column.

A loss of 41.82 among losses of 2 and a recall of 2.2834 among recalls of 45.47 need no witness.
What a number looks like are its unit, its decimals and its size, as they are printed: what its
title makes of it is not asked.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import combinations

from kleash.imports import Table
from kleash.written.made.boards import Board, board_of
from kleash.written.made.parts import Part
from kleash.written.printed import is_total

FEWEST = 2  # other numbers of a column that tell how its numbers look
SIZES = 3  # the same for how large they are
MOST = 0.6  # of these, that look alike
EVEN = 0.8  # the same for decimals that tell something
CLEAR = 2  # rows in which one column is far larger, for each in which the other is
FAR = 4.0  # times: a number that is far larger
APART = 3.0  # times the largest, or of the smallest: no number of that column
NEAR = 2.0  # the same within which a number may be one of it


def exchanged_by_looks(table: Table) -> dict[int, str]:
    """By line, two numbers that would be at home if they changed places."""
    board, found = board_of(0, table), dict[int, str]()
    for at in board.used:
        lines = [line for line in board.lines if line[0] and not line[1] and (at, line) in board.at]
        for one, other in combinations(lines, 2):
            if _exchanged(board, at, one[0], other[0]):
                texts = [board.at[at, line].text for line in (one, other)]
                found[table.lines[at]] = ", ".join(texts)
    return found


def _exchanged(board: Board, at: int, one: int, other: int) -> bool:
    ours, theirs = board.at[at, (one, "")], board.at[at, (other, "")]
    own, beside = _others(board, at, one), _others(board, at, other)
    if ours.value == theirs.value or _are_ragged(ours, theirs, own, beside):
        return False
    sized = not is_total(board.labels[at])  # which is larger than its parts
    if sized and _is_other_way_round(board, at, one, other):
        return True
    return (
        _is_strange(ours, own, sized=sized)
        and _is_strange(theirs, beside, sized=sized)
        and _is_at_home(ours, beside, sized=sized)
        and _is_at_home(theirs, own, sized=sized)
    )


def _is_other_way_round(board: Board, at: int, one: int, other: int) -> bool:
    """Whether of two columns that are printed alike one is far larger, and here the other is.

    Half of the rows may be so: what is far larger in most is known all the same.
    """
    rows = {
        row: (board.at[row, (one, "")], board.at[row, (other, "")])
        for row in board.used
        if {(row, (one, "")), (row, (other, ""))} <= board.at.keys()
    }
    parts = [part for two in rows.values() for part in two]
    if len({(part.unit, part.decimals) for part in parts}) > 1 or any(p.signed for p in parts):
        return False
    sizes = {row: (abs(ours.value), abs(theirs.value)) for row, (ours, theirs) in rows.items()}
    ways = {row: _way(*two) for row, two in sizes.items()}
    usual = [sizes[row] for row, way in ways.items() if way == -ways[at]]
    odd = sum(way == ways[at] for way in ways.values())
    if not ways[at] or len(usual) < CLEAR * odd or len(usual) < MOST * len(ways):
        return False
    ours, theirs = sizes[at]
    return all(
        min(two[nth] for two in usual) / NEAR <= value <= max(two[nth] for two in usual) * NEAR
        for nth, value in ((0, theirs), (1, ours))
    )


def _way(ours: float, theirs: float) -> int:
    """Which of two numbers is far larger."""
    return (ours > FAR * theirs) - (theirs > FAR * ours)


def _others(board: Board, at: int, column: int) -> list[Part]:
    found = (board.at.get((row, (column, ""))) for row in board.used if row != at)
    return [part for part in found if part is not None]


def _are_ragged(ours: Part, theirs: Part, own: Sequence[Part], beside: Sequence[Part]) -> bool:
    """Whether zeros at the end are left out, so that decimals tell nothing of numbers alike."""
    sizes = sorted(abs(one.value) for one in (ours, theirs))
    most = [
        max(Counter(one.decimals for one in each).values()) / len(each) if each else 0.0
        for each in (own, beside)
    ]
    even = min(most) >= EVEN and max(most) == 1
    return ours.unit == theirs.unit and not even and sizes[1] < APART * sizes[0]


def _usual(others: Sequence[Part]) -> tuple[str, int] | None:
    """The unit and the decimals of most of a column."""
    if len(others) < FEWEST:
        return None
    found, count = Counter((one.unit, one.decimals) for one in others).most_common(1)[0]
    return found if count >= MOST * len(others) else None


def _ends(others: Sequence[Part]) -> tuple[float, float] | None:
    """The smallest and the largest of a column, but for one at each end that may be wrong too."""
    usual = _usual(others)
    sizes = sorted(abs(one.value) for one in others if (one.unit, one.decimals) == usual)
    if len(sizes) < SIZES:
        return None
    inner = sizes[1:-1] if len(sizes) > SIZES + 1 else sizes
    return inner[0], inner[-1]


def _signs(others: Sequence[Part]) -> bool | None:
    """Whether the numbers of a column all have a sign; None if some do."""
    every = {one.signed for one in others}
    return every.pop() if len(every) == 1 and len(others) >= FEWEST else None


def _is_strange(part: Part, others: Sequence[Part], *, sized: bool) -> bool:
    usual, ends = _usual(others), _ends(others)
    if usual is not None and usual != (part.unit, part.decimals):
        return True
    if _signs(others) == (not part.signed):
        return True
    size = abs(part.value)
    return sized and ends is not None and not ends[0] / APART <= size <= ends[1] * APART


def _is_at_home(part: Part, others: Sequence[Part], *, sized: bool) -> bool:
    usual, ends = _usual(others), _ends(others)
    if usual is None or usual[0] != part.unit or _signs(others) == (not part.signed):
        return False
    if part.value == 0:  # which may be printed in any way, and be of any size
        return True
    if usual[1] != part.decimals:
        return False
    return not sized or ends is None or ends[0] / NEAR <= abs(part.value) <= ends[1] * NEAR
