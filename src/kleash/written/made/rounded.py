"""A relation between printed numbers, and whether rounding explains one that holds only nearly."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import exp, factorial

RARE = 0.03
UNLIKELY = 0.02  # that rounding alone made the last digit another
Node = tuple[int, str, float]
"""A printed number: its line, its place in the line, its value."""


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
    whole: tuple[object, ...] = ()
    """What was worked out in the same way: a table, and how."""


def as_printed(every: list[Relation]) -> list[Relation]:
    """What comes out only before rounding is wrong in a document that works with printed numbers.

    Of differences that were worked out first and rounded then, a quarter do not come out of the
    printed numbers to the digit. Where that would be expected of far more than there are, the few
    are slips. Differences of numbers that were worked out themselves tell nothing about that.
    """
    results = {one.nodes[0] for one in every}
    plain = {
        one for one in every if one.holds and not any(node in results for node in one.nodes[1:])
    }
    certain = {one for one in plain if one.inexact and one.chance <= UNLIKELY}
    slips = set(certain)
    for like in {(one.unit, one.decimals, one.whole) for one in plain}:
        same = {o for o in plain - certain if (o.unit, o.decimals, o.whole) == like}
        odd = {one for one in same if one.inexact}
        if _at_most(len(odd), sum(one.chance for one in same)) <= RARE:
            slips |= odd - _rounded(same, odd)
    return [replace(one, holds=False) if one in slips else one for one in every]


def _rounded(plain: set[Relation], odd: set[Relation]) -> set[Relation]:
    """The odd ones of tables that have as many as rounding makes: these work with hidden digits."""
    groups: list[list[Relation]] = []
    for one in sorted(plain, key=lambda each: each.nodes[0]):
        if not groups or one.nodes[0][0] > groups[-1][-1].nodes[0][0] + 1:
            groups.append([])
        groups[-1].append(one)
    found: set[Relation] = set()
    for group in groups:
        own = odd.intersection(group)
        usual = _at_most(len(own), sum(one.chance for one in group)) > RARE
        found |= own if len(own) > 1 and usual else set()
    return found


def _at_most(count: int, expected: float) -> float:
    """The probability of so few where so many are expected (Poisson)."""
    return exp(-expected) * sum(expected**n / factorial(n) for n in range(count + 1))
