"""Numbers that a document derived from others of its own, worked out again within rounding.

Every printed number stands for all the numbers that would print like it, so a derived number
follows if one of those it stands for can be got from some that the others stand for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from kleash.compare.read import Derived, Number

T = TypeVar("T")
STEPS = ("step", "steps", "步", "epoch", "epochs", "轮")  # are counted, not rounded
SLACK = 1e-9  # relative: what floating-point sums may be off by


def bounds(number: Number) -> tuple[float, float] | None:
    """The least and the greatest number that would be printed so; None if there is no value."""
    if number.value is None:
        return None
    counted = number.unit in STEPS and not number.decimals
    half = 0.0 if number.decimals is None or counted else 0.5 * 10.0**-number.decimals
    return number.value - half, number.value + half


def allowed(derived: Derived) -> tuple[float, float] | None:
    """The values that a derived number may have; None if a number it needs is missing."""
    ours, theirs = _mean(derived.of), _mean(derived.minus)
    if ours is None or (theirs is None and derived.kind in ("difference", "relative")):
        return None
    if theirs is None or derived.kind == "mean":
        return ours
    low, high = ours[0] - theirs[1], ours[1] - theirs[0]
    if derived.kind == "difference":
        return low, high
    if theirs[0] <= 0 <= theirs[1]:
        return None
    corners = [(a - b) / b for a in ours for b in theirs]
    return min(corners), max(corners)


def follows(derived: Derived) -> bool | None:
    """Whether a derived number follows from those it names; None where that cannot be told."""
    printed, range_ = bounds(derived.number), allowed(derived)
    if printed is None or range_ is None:
        return None
    slack = SLACK * max(1e-6, *map(abs, (*printed, *range_)))
    signs = (1, -1) if derived.unsigned else (1,)
    return any(
        min(sign * end for end in printed) <= range_[1] + slack
        and max(sign * end for end in printed) >= range_[0] - slack
        for sign in signs
    )


def best(readings: Iterable[T], derive: Callable[[T], Sequence[Derived | None]]) -> list[Derived]:
    """Of several readings of a column the one that most of its numbers follow; the first of equals.

    Nobody writes whether "差异" is ours minus theirs or the other way round: the numbers say it.
    """
    found: list[tuple[int, list[Derived]]] = []
    for one in readings:
        made = [derived for derived in derive(one) if derived is not None]
        found.append((sum(follows(derived) is True for derived in made), made))
    return max(found, key=lambda pair: pair[0], default=(0, []))[1]


def _mean(numbers: Sequence[Number]) -> tuple[float, float] | None:
    ends = [bounds(number) for number in numbers]
    whole = [end for end in ends if end is not None]
    if not whole or len(whole) < len(ends):
        return None
    return sum(low for low, _ in whole) / len(whole), sum(high for _, high in whole) / len(whole)
