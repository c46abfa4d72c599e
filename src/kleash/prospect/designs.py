"""Arms × seeds × items for a number of hours, and what each such design would decide.

What is promised is what `kleash compare` will do: seeds and items crossed, Holm over the arms and
the trend. Fewer than four seeds decide nothing about settings and are not proposed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from kleash.prospect.costs import Cost
from kleash.stats import Crossed, GapSpread

FEWEST_SEEDS = 4
MOST_SEEDS = 40
MOST_ARMS = 6  # with a leash, beside the one without
SIZES = (50, 100, 200, 400, 800, 1600, 3200, 6400, 12800)


@dataclass(frozen=True)
class Design:
    """So many arms (the baseline among them), seeds and items; what it costs and what it decides.

    `gap` is the smallest that is seen with the power asked for, `margin` the narrowest within which
    equal arms are called equivalent with it. `seen` and `equal` are the powers at the margin that
    matters.
    """

    arms: int
    seeds: int
    items: int
    hours: float
    gap: float
    margin: float
    seen: float
    equal: float


@dataclass(frozen=True)
class Goal:
    """What is to be decided: at which margin, with which power."""

    margin: float
    power: float = 0.8


def comparisons(others: int, *, leashes: bool = True) -> int:
    """How many p-values `compare` adjusts together: an arm's each, and the trend's."""
    return others + 1 if leashes and others > 1 else others


def made(
    spread: GapSpread, counts: tuple[int, int, int], hours: float, goal: Goal, family: int
) -> Design:
    """A design of (arms, seeds, items) with all that it decides."""
    arms, seeds, items = counts
    crossed = Crossed(spread, seeds, items, family)
    return Design(
        arms=arms,
        seeds=seeds,
        items=items,
        hours=hours,
        gap=crossed.smallest_gap(goal.power),
        margin=crossed.smallest_margin(goal.power),
        seen=crossed.power(goal.margin),
        equal=crossed.equivalence(goal.margin),
    )


def designs(
    hours: float, cost: Cost, spread: GapSpread, goal: Goal, sizes: Sequence[int]
) -> list[Design]:
    """The best design for each number of arms, fewest arms first; none where hours do not do."""
    found = []
    for others in range(1, MOST_ARMS + 1):
        fit = list(_of_arms(others, hours, cost, spread, goal, sizes))
        if fit:
            found.append(best(fit))
    return found


def _of_arms(
    others: int, hours: float, cost: Cost, spread: GapSpread, goal: Goal, sizes: Sequence[int]
) -> Iterator[Design]:
    for items in sizes:
        each = cost.of_study(others + 1, 1, items)
        seeds = min(MOST_SEEDS, int(hours / each + 1e-9)) if each > 0 else MOST_SEEDS
        if seeds >= FEWEST_SEEDS:
            counts = (others + 1, seeds, items)
            yield made(spread, counts, seeds * each, goal, comparisons(others))


def best(found: Sequence[Design]) -> Design:
    """The one that sees the smallest gap; of equals the cheapest."""
    return min(found, key=lambda each: (round(each.gap, 6), each.hours))


def chosen(found: Sequence[Design], goal: Goal, arms: int | None) -> Design | None:
    """As many arms as asked for; else the most that decide at the margin, else the fewest."""
    if arms is not None:
        return next((each for each in found if each.arms == arms), None)
    deciding = [each for each in found if each.gap <= goal.margin]
    return next(reversed(deciding or found[:1]), None)


def grown(
    now: tuple[int, int, int], hours: float, cost: Cost, sizes: Sequence[int], arms: int
) -> Iterator[tuple[int, int, float]]:
    """Seeds and items that further hours buy for so many of the arms, and what they cost.

    New seeds are measured on as many items as there will be, and old runs on the further ones.
    """
    _, seeds, items = now
    for size in sorted({items, *(each for each in sizes if each > items)}):
        again = arms * seeds * (size - items) * (cost.item or 0.0) / 3600
        each = cost.of_study(arms, 1, size)
        if again > hours or each <= 0:
            continue
        if size > items and cost.item:
            yield seeds, size, again
        more = min(MOST_SEEDS - seeds, int((hours - again) / each + 1e-9))
        if more > 0:
            yield seeds + more, size, again + more * each
