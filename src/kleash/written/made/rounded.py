"""A relation between printed numbers, and whether rounding explains one that holds only nearly."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import erfc, log, sqrt
from typing import TypeVar

from kleash.imports import Number

PAIR = 2  # numbers of which one may be so many times the other
TINY = 1e-9
UNLIKELY = 0.02  # that rounding alone made the last digit another
SLIP = 0.02  # of numbers, in a report that has slips
TOLD = 4.0  # as much as other tables may tell (logarithm of odds)
SHARP = 0.3  # units of the last digit within which what comes out is known
TWO = 2.0  # the same for the difference of two numbers that are printed alike
SURE = 3.0  # how much must speak against hidden digits
PLAINLY = {"change": 2.0, "mean": 2.0}  # the same for what people mostly work out by hand
K = TypeVar("K")
Node = tuple[int, str, float]
"""A printed number: its line, its place in the line, its value."""


def node(number: Number) -> Node:
    """A number by its place in the document."""
    return number.where.line or 0, number.where.spot, number.value or 0.0


@dataclass(frozen=True)
class Relation:
    """Numbers that must fit together. `low` and `high` are what the others let the first be."""

    kind: str
    nodes: tuple[Node, ...]
    holds: bool
    text: str = ""
    low: float | None = None
    high: float | None = None
    unit: str = ""
    decimals: int | None = None
    inexact: bool = False
    """Whether it holds only within the rounding of the numbers it is made of."""
    chance: float = 0.0
    """How likely that is where it was worked out before they were rounded."""
    texts: tuple[str, ...] = ()
    """The numbers as they are printed, where that is known."""
    suspect: tuple[Node, float] | None = None
    """Which of the numbers has a slip, by its digits, and what it should be."""
    far: bool = False
    """Whether two that should be the same are so far apart that one was misread."""

    @property
    def is_no_sum(self) -> bool:
        """Whether a total is no more than the greatest of its parts: it is a mean, by weight."""
        total, *parts = (each[2] for each in self.nodes)
        if self.kind != "sum" or len(parts) < 2 or min(parts) < 0:
            return False
        return total <= max(parts) and (len(parts) > 2 or total >= min(parts))

    @property
    def is_times(self) -> bool:
        """Whether a number is so many times another as printed: four GPUs for 9.23 hours."""
        whole, part = self.nodes[0][2], self.nodes[-1][2]
        count = round(whole / part) if part and len(self.nodes) == PAIR else 0
        return count > 1 and abs(whole - count * part) < TINY

    @property
    def is_exact(self) -> bool:
        """Whether the first number is what the others give as they are printed, and no other is."""
        if self.low is None or self.high is None or self.kind == "same":
            return False
        return self._comes_within(SHARP)

    @property
    def is_gap(self) -> bool:
        """Whether the first number is the difference of two others as they are printed."""
        return self.kind == "difference" and self.low is not None and self._comes_within(TWO)

    def _comes_within(self, units: float) -> bool:
        """Whether the middle of what may come out, so wide at most, prints as the number does."""
        low, high, unit = self.low or 0.0, self.high or 0.0, 10.0 ** -(self.decimals or 0)
        near = abs(self.nodes[0][2] - (low + high) / 2) <= 0.5 * unit * (1 + 1e-6)
        return near and high - low <= units * unit * (1 + 1e-6)


def as_printed(every: list[Relation], tables: Mapping[int, int]) -> list[Relation]:
    """What comes out only before rounding is wrong where people work with printed numbers.

    Of differences that were worked out first and rounded then, a quarter do not come out of the
    printed numbers to the digit. Whether a table works so its own numbers tell, and those of the
    other tables, by kind; where it does not, the few odd ones are slips. Differences of numbers
    that were worked out themselves tell nothing about that, nor do numbers in another unit: hours
    are of minutes. `tables` has the table of each line.
    """
    converted = {one.nodes[0] for one in every if one.kind == "multiple" and one.holds}
    made = [one for one in every if one.kind not in ("same", "multiple")]
    results = {one.nodes[0] for one in made if one.kind != "sum" or one.decimals}
    plain = {
        one
        for one in made
        if one.holds
        and one.nodes[0] not in converted
        and not any(node in results for node in one.nodes[1:])
    }
    slips = {one for one in plain if one.inexact and one.chance <= UNLIKELY}
    groups: dict[tuple[str, int], dict[Node, Relation]] = defaultdict(dict)
    for one in made:
        if one not in plain or one in slips:
            continue
        kind = "change" if one.kind in ("difference", "relative") else one.kind
        groups[kind, tables.get(one.nodes[0][0], -1)].setdefault(one.nodes[0], one)
    told = {
        at: sum(for_hidden(one.chance, odd=one.inexact) for one in own.values())
        for at, own in groups.items()
    }
    for (kind, table), own in groups.items():
        others = {
            at: each / (1 if at[0] == kind else 2)
            for at, each in told.items()
            if at != (kind, table)
        }
        sure = PLAINLY.get(kind, SURE)
        if is_of_printed(others | {(kind, table): told[kind, table]}, (kind, table), sure):
            slips |= {one for one in own.values() if one.inexact}
    return [replace(one, holds=False) if one in slips else one for one in every]


def of_hidden_digits(every: Sequence[Relation]) -> float:
    """How much relations speak for hidden digits."""
    made = {
        one.nodes[0]: one
        for one in every
        if one.kind not in ("same", "multiple") and (one.holds or one.inexact)
    }
    return sum(for_hidden(one.chance, odd=one.inexact) for one in made.values())


def without_refuted(every: Sequence[Relation]) -> list[Relation]:
    """Without what is off by rounding only, where a number is the gap of two others to the digit.

    A mean of gaps, worked out as the gap of two means, need not be that of the printed gaps. And a
    part of a sum that comes out is not so many times the whole.
    """
    exact = {one.nodes[0] for one in every if one.holds and one.is_gap}
    parts = {
        (part, one.nodes[0]) for one in every if one.holds and one.kind == "sum"
        for part in one.nodes[1:]
    }  # fmt: skip
    return [
        one for one in every
        if one.holds or not (
            (one.inexact and one.nodes[0] in exact)
            or (one.kind == "multiple" and one.nodes[:2] in parts)
        )
    ]  # fmt: skip


def is_of_printed(told: Mapping[K, float], own: K, sure: float = SURE) -> bool:
    """Whether numbers were worked out of printed ones, by what they and all others tell."""
    others = sum(max(-TOLD, min(TOLD, each)) for at, each in told.items() if at != own)
    return told[own] + max(-TOLD, min(TOLD, others)) < -sure


def off_by_rounding(given: float, within: float, count: int, unit: float) -> float:
    """How likely what was worked out of so many numbers before they were rounded prints otherwise.

    `given` is what the rounded ones give, `within` how far off they may put it, `unit` one of the
    last digit of what is printed.
    """
    cell = round(given / unit) * unit
    spread = max(1e-300, within / sqrt(3 * max(1, count)))
    ends = (cell + unit / 2 - given, given - cell + unit / 2)
    return min(0.9, sum(0.5 * erfc(max(0.0, end) / spread / sqrt(2)) for end in ends))


def for_hidden(chance: float, *, odd: bool) -> float:
    """How much a number speaks for hidden digits, against printed ones with a few slips.

    It is `odd` if it does not come out of the printed ones; `chance` is how often hidden digits
    make one so.
    """
    chance = max(1e-9, chance)
    return log(chance / SLIP) if odd else log((1 - chance) / (1 - SLIP))
