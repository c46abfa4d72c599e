"""Two numbers of a row that were exchanged, by their looks: each is at home in the other's column.

A loss of 41.82 among losses of 2 and a recall of 2.2834 among recalls of 45.47 need no witness.
What a number looks like are its unit, its decimals and its size, as they are printed: what its
title makes of it is not asked.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import inf

from kleash.imports import Table
from kleash.imports.markdown.text import bare
from kleash.written.made.bench import HINTS
from kleash.written.made.boards import LARGEST, Board, board_of
from kleash.written.made.parts import Part
from kleash.written.printed import is_total

_GAP = re.compile(f"{HINTS['difference'].pattern}|{HINTS['spread'].pattern}", re.I)
FEWEST = 2  # other numbers of a column that tell how its numbers look
SIZES = 3  # the same for how large they are
MOST = 0.6  # of these, that look alike
EVEN = 0.8  # the same for decimals that tell something
CLEAR = 2  # rows in which one column is far larger, for each in which the other is
FAR = 4.0  # times: a number that is far larger
APART = 3.0  # times the largest, or of the smallest: no number of that column
NEAR = 2.0  # the same within which a number may be one of it


def exchanged_by_looks(table: Table, like: Sequence[Table] = ()) -> dict[int, str]:
    """By line, two numbers that would be at home if they changed places.

    Where a column has too few to tell how they look, tables `like` it, of the same titles, do.
    """
    if max(len(table.rows), len(table.header)) > LARGEST:
        return {}
    board, found = board_of(0, table), dict[int, str]()
    columns = {line[0]: _column(board, line[0]) for line in board.lines if line[0] and not line[1]}
    few = [column for column, parts in columns.items() if len(parts) <= FEWEST]
    boards = [board_of(0, one) for one in like if few and len(one.rows) <= LARGEST]
    more = {
        column: [part for each in boards for part in _column(each, column).values()]
        for column in few
    }
    looks = {
        (at, column): Look.of(
            [*(part for row, part in parts.items() if row != at), *more.get(column, ())]
        )
        for column, parts in columns.items()
        for at in parts
    }
    for one, other in combinations(columns, 2):
        both = {at: (columns[one][at], columns[other][at]) for at in columns[one]
                if at in columns[other]}  # fmt: skip
        turned = _other_way_round(both)
        # Without a leash KL is large and entropy small: sizes alone tell only what is a gap.
        of_gap = any(_GAP.search(bare(board.titles[column])) for column in (one, other))
        for at, (ours, theirs) in both.items():
            sized = not is_total(board.labels[at])  # which is larger than its parts
            own, beside = looks[at, one], looks[at, other]
            if ours.value == theirs.value or _are_ragged(ours, theirs, own, beside):
                continue
            strange = own.is_strange(ours, sized=sized) and beside.is_strange(theirs, sized=sized)
            home = beside.is_home(ours, sized=sized) and own.is_home(theirs, sized=sized)
            told = own.is_misprinted(ours) or beside.is_misprinted(theirs) or of_gap
            if told and ((strange and home) or (sized and at in turned)):
                found[table.lines[at]] = f"{ours.text}, {theirs.text}"
    return found


def _column(board: Board, column: int) -> dict[int, Part]:
    found = {at: board.at.get((at, (column, ""))) for at in board.used}
    return {at: part for at, part in found.items() if part is not None}


@dataclass(frozen=True)
class Look:
    """How the numbers of a column are printed, and how large they are."""

    usual: tuple[str, int] | None
    """The unit and the decimals of most of them."""
    ends: tuple[float, float] | None
    """The smallest and the largest, but for one at each end that may be wrong too."""
    signed: bool | None
    """Whether all have a sign; None if some do."""
    even: float
    """How many of them have the decimals that most have."""

    @classmethod
    def of(cls, others: Sequence[Part]) -> Look:
        if len(others) < FEWEST:
            return cls(None, None, None, 0.0)
        found, count = Counter((one.unit, one.decimals) for one in others).most_common(1)[0]
        usual = found if count >= MOST * len(others) else None
        sizes = sorted(abs(one.value) for one in others if (one.unit, one.decimals) == usual)
        inner = sizes[1:-1] if len(sizes) > SIZES + 1 else sizes
        signs = {one.signed for one in others}
        even = max(Counter(one.decimals for one in others).values()) / len(others)
        ends = (inner[0], inner[-1]) if len(sizes) >= SIZES else None
        return cls(usual, ends, signs.pop() if len(signs) == 1 else None, even)

    def is_misprinted(self, part: Part) -> bool:
        """Whether a number has another unit, other decimals or a sign that this column has not."""
        alike = self.usual is None or self.usual == (part.unit, part.decimals)
        return not alike or self.signed == (not part.signed)

    def is_strange(self, part: Part, *, sized: bool) -> bool:
        """Whether a number is none of this column."""
        if self.is_misprinted(part):
            return True
        return sized and self.ends is not None and not self._holds(part, APART)

    def is_home(self, part: Part, *, sized: bool) -> bool:
        """Whether a number may be one of this column."""
        if self.usual is None or self.usual[0] != part.unit or self.signed == (not part.signed):
            return False
        if part.value == 0:  # which may be printed in any way, and be of any size
            return True
        return self.usual[1] == part.decimals and (not sized or self._holds(part, NEAR))

    def _holds(self, part: Part, times: float) -> bool:
        low, high = self.ends or (0.0, inf)
        return low / times <= abs(part.value) <= high * times


def _other_way_round(rows: Mapping[int, tuple[Part, Part]]) -> set[int]:
    """Rows in which the other of two columns that are printed alike is far larger than in most.

    A third of the rows may be so: what is far larger in most is known all the same.
    """
    parts = [part for two in rows.values() for part in two]
    if len({(part.unit, part.decimals) for part in parts}) > 1 or any(p.signed for p in parts):
        return set()
    sizes = {at: (abs(ours.value), abs(theirs.value)) for at, (ours, theirs) in rows.items()}
    ways = {at: _way(*two) for at, two in sizes.items()}
    most = 1 if sum(ways.values()) > 0 else -1
    usual = [sizes[at] for at, way in ways.items() if way == most]
    odd = [at for at, way in ways.items() if way == -most]
    if not odd or len(usual) < CLEAR * len(odd) or len(usual) < MOST * len(ways):
        return set()
    sides = list(zip(*usual, strict=True))
    if max(map(min, sides)) <= min(map(max, sides)):
        return set()  # what is large here is small there
    ends = [(min(each) / NEAR, max(each) * NEAR) for each in sides]
    return {
        at for at in odd
        if all(low <= size <= high
               for size, (low, high) in zip(sizes[at][::-1], ends, strict=True))
    }  # fmt: skip


def _way(ours: float, theirs: float) -> int:
    """Which of two numbers is far larger."""
    return (ours > FAR * theirs) - (theirs > FAR * ours)


def _are_ragged(ours: Part, theirs: Part, own: Look, beside: Look) -> bool:
    """Whether zeros at the end are left out, so that decimals tell nothing of numbers alike."""
    sizes = sorted(abs(one.value) for one in (ours, theirs))
    even = min(own.even, beside.even) >= EVEN and max(own.even, beside.even) == 1
    return ours.unit == theirs.unit and not even and sizes[1] < APART * sizes[0]
