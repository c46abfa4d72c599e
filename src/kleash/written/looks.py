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
from kleash.imports.markdown.text import bare
from kleash.written.made.boards import SUMMARY, Board, board_of
from kleash.written.made.parts import Part

FEWEST = 2  # other numbers of a column that tell how its numbers look
SIZES = 3  # the same for how large they are
MOST = 0.6  # of these, that look alike
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
    if _are_ragged(ours, theirs, own, beside):
        return False
    sized = not SUMMARY.search(bare(board.labels[at]))  # a total is larger than its parts
    return (
        _is_strange(ours, own, sized=sized)
        and _is_strange(theirs, beside, sized=sized)
        and _is_at_home(ours, beside, sized=sized)
        and _is_at_home(theirs, own, sized=sized)
    )


def _others(board: Board, at: int, column: int) -> list[Part]:
    found = (board.at.get((row, (column, ""))) for row in board.used if row != at)
    return [part for part in found if part is not None]


def _are_ragged(ours: Part, theirs: Part, own: Sequence[Part], beside: Sequence[Part]) -> bool:
    """Whether zeros at the end are left out, so that decimals tell nothing of numbers alike."""
    sizes = sorted(abs(one.value) for one in (ours, theirs))
    ragged = any(len({one.decimals for one in each}) > 1 for each in (own, beside))
    return ours.unit == theirs.unit and ragged and sizes[1] < APART * sizes[0]


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


def _is_strange(part: Part, others: Sequence[Part], *, sized: bool) -> bool:
    usual, ends = _usual(others), _ends(others)
    if usual is not None and usual != (part.unit, part.decimals):
        return True
    size = abs(part.value)
    return sized and ends is not None and not ends[0] / APART <= size <= ends[1] * APART


def _is_at_home(part: Part, others: Sequence[Part], *, sized: bool) -> bool:
    usual, ends = _usual(others), _ends(others)
    if usual != (part.unit, part.decimals):
        return False
    return not sized or ends is None or ends[0] / NEAR <= abs(part.value) <= ends[1] * NEAR
