"""All that a column may be made of: what its title says, two others, one of them, or many."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, permutations
from typing import Literal, cast

from kleash.findings.record import digits
from kleash.imports import Number
from kleash.written.formulas import formula
from kleash.written.grids import Grid, Slot
from kleash.written.printed import is_total

WIDEST = 14  # slots between which pairs are tried
TELLING = 3  # digits of numbers that name themselves
Kind = Literal["mean", "sum", "difference", "relative", "product", "share", "spread", "multiple"]


@dataclass(frozen=True)
class Guess:
    """How a slot may be made: of which slots, less which; `base` is a line, -1 the one before."""

    kind: Kind
    of: tuple[Slot, ...]
    minus: tuple[Slot, ...] = ()
    base: int | None = None
    said: bool = False
    """Whether the title says so itself."""

    def operands(self, grid: Grid, line: int) -> tuple[tuple[Number, ...], tuple[Number, ...]]:
        """The numbers that it takes in one line; empty where one of them is missing."""
        there = line if self.base is None else line - 1 if self.base < 0 else self.base
        of = [grid.at.get((line, slot)) or grid.fixed.get((line, slot)) for slot in self.of]
        minus = [grid.at.get((there, slot)) for slot in self.minus]
        if self.said and self.kind == "product":  # a coefficient has no hidden digits
            of = [_exact(one) for one in of]
        if None in (*of, *minus) or (self.base is not None and there == line):
            return (), ()
        return cast("tuple[Number, ...]", tuple(of)), cast("tuple[Number, ...]", tuple(minus))


def _exact(one: Number | None) -> Number | None:
    few = one is not None and digits(one) < TELLING
    return replace(one, decimals=None) if one is not None and few else one


def beside(grid: Grid, slot: Slot) -> list[Slot]:
    """The numbers of the same cells, and those of the others that a slot is held against."""
    plain = [one for one in grid.slots() if not one[1] and one[0] != slot[0]]
    return [(slot[0], ""), *plain[:WIDEST]]


def guesses(grid: Grid, slot: Slot) -> Iterator[Guess]:
    """All that a slot may be made of."""
    own, *plain = beside(grid, slot)
    said = formula(grid.titles, slot[0]) if not slot[1] else None
    if said is not None:
        yield Guess(said[0], _plain(said[1]), _plain(said[2]), said=True)
    if slot[1] != "spread":
        yield from _of_two([own, *plain] if slot[1] else plain)
        lacking = [line for line in range(len(grid.names)) if (line, slot) not in grid.at]
        named = any(within(grid.names[line], grid.titles[slot[0]]) for line in lacking[:3])
        for base in dict.fromkeys((0, *lacking[:3], *(() if named else (-1,)))):
            for ours in [own] if slot[1] else plain:
                yield Guess("difference", (ours,), (ours,), base)
                yield Guess("relative", (ours,), (ours,), base)
    before = tuple(one for one in plain if one[0] < slot[0])
    if len(before) > 1 and is_total(grid.titles[slot[0]]):
        yield Guess("sum", before, said=True)
    yield from _of_many(plain, ("spread",) if slot[1] == "spread" else ("mean", "sum", "spread"))


def _plain(places_: Sequence[int]) -> tuple[Slot, ...]:
    return tuple((at, "") for at in places_)


def _of_two(slots: Sequence[Slot]) -> Iterator[Guess]:
    for ours, theirs in permutations(slots, 2):
        yield Guess("difference", (ours,), (theirs,))
        yield Guess("relative", (ours,), (theirs,))
        yield Guess("share", (ours,), (theirs,))
    for ours, theirs in combinations(slots, 2):
        yield Guess("product", (ours, theirs))


def _of_many(slots: Sequence[Slot], kinds: tuple[Kind, ...]) -> Iterator[Guess]:
    """Slots that stand side by side."""
    for first, last in combinations(range(len(slots) + 1), 2):
        part = tuple(slots[first:last])
        if len(part) > 1 and part[-1][0] - part[0][0] == len(part) - 1:
            yield from (Guess(kind, part) for kind in kinds if len(part) > 2 or kind != "spread")


def within(title: str, text: str) -> bool:
    plain, whole = (re.sub(r"[\s*_`$\\]", "", each).casefold() for each in (title, text))
    return bool(plain) and plain in whole
