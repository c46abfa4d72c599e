"""Seeds and items crossed: the parts of a gap's spread, and what so many of each would decide.

Arms share seeds and items. The gap of an arm on one item under one seed is the gap of the settings,
plus what the seed adds on all items, what the item adds under all seeds, and a rest. `paired_seeds`
sees the first and the last of these; what items add moves all seeds alike, so that more seeds do
not show it and only more items make it small. In names, S is seeds and N items.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import chdtri, ndtr, stdtrit

from kleash.stats.intervals import Floats, checked_table
from kleash.stats.power import spread_draws

LIKE_PAIRS = 0.25  # correlation of the squares of two gaps to one baseline, which correlate by half


@dataclass(frozen=True)
class GapSpread:
    """SDs of what a seed, an item, and one of both together add to a gap."""

    seeds: float
    items: float
    rest: float

    def of_seed(self, items: int) -> float:
        """The SD of one seed's mean gap over so many items, the items being fixed."""
        return math.sqrt(self.seeds**2 + self.rest**2 / items)

    def of_items(self, items: int) -> float:
        """How far the gap on so many items lies from the gap on all, whatever the seeds."""
        return self.items / math.sqrt(items)

    def times(self, factor: float) -> GapSpread:
        """All of it, so many times as wide."""
        return GapSpread(factor * self.seeds, factor * self.items, factor * self.rest)


def gap_spread(gaps_ASN: Sequence[ArrayLike]) -> GapSpread:
    """From the gaps of one arm or more, each [seed, item]: two-way analysis of variance, pooled."""
    parts = []
    for each in gaps_ASN:
        gaps = checked_table(each, rows=2, columns=2)
        seeds, items = gaps.shape
        by_seed, by_item = gaps.mean(axis=1), gaps.mean(axis=0)
        left = gaps - by_seed[:, None] - by_item[None, :] + gaps.mean()
        rest = float((left**2).sum()) / ((seeds - 1) * (items - 1))
        of_seeds = float(by_seed.var(ddof=1)) - rest / items
        parts.append((of_seeds, float(by_item.var(ddof=1)) - rest / seeds, rest))
    # Pooled before they are cut at 0: an average of cut ones would be too large.
    pooled = np.maximum(np.mean(parts, axis=0), 0.0)
    return GapSpread(*np.sqrt(pooled).tolist())


def cautious_factor(seeds: int, arms: int = 1, *, level: float = 0.8) -> float:
    """How many times as wide a spread from so many seeds may be: its upper bound at the level.

    Gaps of several arms to one baseline are not independent: they count for less than they are.
    """
    df = (seeds - 1) * arms / (1 + (arms - 1) * LIKE_PAIRS)
    return math.sqrt(df / float(chdtri(df, level)))


@dataclass(frozen=True)
class Crossed:
    """Arms that share so many seeds and items, and a spread: what is decided by `paired_seeds`.

    `comparisons` is how many p-values share alpha by Holm; the power is that of the first step.
    """

    spread: GapSpread
    seeds: int
    items: int
    comparisons: int = 1
    alpha: float = 0.05

    @property
    def error(self) -> float:
        """The standard error that seeds show."""
        return self.spread.of_seed(self.items) / math.sqrt(self.seeds)

    @property
    def whole_error(self) -> float:
        """The standard error of the gap on items like these: with the part that seeds do not show.

        0 for a spread of 0, which no power can be taken of.
        """
        return math.hypot(self.error, self.spread.of_items(self.items))

    def power(self, gap: float) -> float:
        """How often a gap of that size, on items like these, is called what it is."""
        if not self.whole_error:
            raise ValueError("a spread of 0 leaves nothing to plan for: give one above 0")
        edge = float(stdtrit(self.seeds - 1, 1 - self.alpha / self.comparisons / 2))
        s, weights = spread_draws(self.seeds - 1)
        return float(weights @ ndtr((abs(gap) - edge * self.error * s) / self.whole_error))

    def false_alarms(self) -> float:
        """How often one of two equal arms is called better, on items like these: 5 % at best.

        More where items add much to the gap: then it is there, but on these items only.
        """
        alone = replace(self, comparisons=1)
        return 2 * alone.power(0.0)

    def equivalence(self, margin: float) -> float:
        """How often two equal arms are called equivalent within the margin.

        The 90 % interval lies inside; what also shows as a gap counts only where Holm lets it.
        """
        free = self.seeds - 1
        s, weights = spread_draws(free)
        error = self.error * s
        inside = margin - float(stdtrit(free, 1 - self.alpha)) * error
        alone = float(stdtrit(free, 1 - self.alpha / 2)) * error
        among = float(stdtrit(free, 1 - self.alpha / self.comparisons / 2)) * error

        def within(bound: Floats) -> Floats:
            share: Floats = 2 * ndtr(np.maximum(bound, 0) / self.whole_error) - 1
            return share

        seen = within(np.minimum(inside, alone))
        seen += np.maximum(within(inside) - within(among), 0)
        return float(weights @ seen)

    def smallest_gap(self, power: float = 0.8) -> float:
        """The gap that is called what it is with `power`."""
        return smallest(lambda gap: self.power(gap) >= power, self.whole_error)

    def smallest_margin(self, power: float = 0.8) -> float:
        """The margin within which equal arms are called equivalent with `power`."""
        return smallest(lambda margin: self.equivalence(margin) >= power, self.whole_error)


def smallest(shown: Callable[[float], bool], start: float) -> float:
    """The smallest value at which it is shown, to a thousandth; found by doubling, then halving."""
    low, high = 0.0, start
    while not shown(high):
        low, high = high, 2 * high
        if high > 1e6 * start:
            return math.inf
    while high - low > 1e-3 * high:
        middle = (low + high) / 2
        low, high = (low, middle) if shown(middle) else (middle, high)
    return high
