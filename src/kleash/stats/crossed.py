"""Seeds and items crossed: the parts of a gap's spread, and what so many of each would decide.

Arms share seeds and items. The gap of an arm on one item under one seed is the gap of the settings,
plus what the seed adds on all items, what the item adds under all seeds, and a rest. How mean gaps
differ between seeds shows the first and the last of these; what items add moves all seeds alike, so
that only items show it and only more items make it small. In names, S is seeds and N items.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from kleash.stats.intervals import Floats, checked_table
from kleash.stats.power import spread_draws
from kleash.stats.special import chdtri, ndtr, ndtri, stdtrit

DRAWS = 9  # of what items may be seen to add, for a mean over it
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


# --- what items add to a gap over seeds


def item_error(gaps_SN: Floats, clusters: Sequence[Hashable] | None = None) -> tuple[float, float]:
    """How far the items that seeds share move the mean of their gaps, and its degrees of freedom.

    Two seeds' mean gaps vary together by what their common items add: its square is the mean
    covariance of two seeds over items, (MS_items - MS_rest)/(S·N) if none is missing, cut at 0.
    Items of one cluster are added up first. Seeds that share no items get 0: their t has it all.
    """
    shares = _shares(gaps_SN, clusters)
    square, free = _between(shares), _free(shares)
    return math.sqrt(max(0.0, square) * (free + 1) / free), free


def item_error_apart(ours_SN: Floats, theirs_SN: Floats) -> tuple[float, float]:
    """The same for arms that share items and no seeds: within each arm, less between them."""
    ours, theirs = _shares(ours_SN), _shares(theirs_SN)
    square = _between(ours) + _between(theirs) - 2 * float(ours.mean(axis=0) @ theirs.mean(axis=0))
    free = min(_free(ours), _free(theirs))
    return math.sqrt(max(0.0, square) * (free + 1) / free), free


def row_means(table_SN: Floats) -> Floats:
    """Each seed's mean over its items; NaN is not measured."""
    if np.logical_and.reduce(np.isfinite(table_SN), axis=None):  # as `nanmean`, without its detours
        means: Floats = np.add.reduce(table_SN, axis=1) / table_SN.shape[1]
        return means
    return np.asarray(np.nanmean(table_SN, axis=1), dtype=np.float64)


def _shares(table_SN: Floats, clusters: Sequence[Hashable] | None = None) -> Floats:
    """What each item (or cluster) adds to its seed's mean, about that mean; NaN adds nothing."""
    there = np.isfinite(table_SN)
    if clusters is None and table_SN.ndim == 2 and np.logical_and.reduce(there, axis=None):
        n = table_SN.shape[1]
        about: Floats = (table_SN - np.add.reduce(table_SN, axis=1, keepdims=True) / n) / n
        return about
    counts = there.sum(axis=1, keepdims=True)
    if table_SN.ndim != 2 or not counts.all():
        raise ValueError(f"need a table of seeds with an item each or more: {table_SN.shape}")
    held = np.where(there, table_SN, 0.0)
    shares: Floats = np.where(there, held - held.sum(axis=1, keepdims=True) / counts, 0.0) / counts
    if clusters is not None:
        of = {name: at for at, name in enumerate(dict.fromkeys(clusters))}
        at = np.array([of[name] for name in clusters])
        shares = np.array([np.bincount(at, weights=row) for row in shares])
    return shares


def _between(shares_SN: Floats) -> float:
    """The mean product of two different rows."""
    seeds, total = len(shares_SN), shares_SN.sum(axis=0)
    return float(total @ total - (shares_SN**2).sum()) / (seeds * (seeds - 1))


def _free(shares_SN: Floats) -> float:
    return float(max(1, shares_SN.shape[1] - 1))


# --- what so many seeds and items would decide


@dataclass(frozen=True)
class Crossed:
    """Arms that share so many seeds and items, and a spread: what `crossed_seeds` decides.

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

    @cached_property
    def _seen(self) -> tuple[Floats, Floats, Floats]:
        """Squared errors that may be seen, of seeds and of items [item draw, seed draw]; weights.

        Items' is a difference of mean squares, nearly normal: as many equally likely values of it.
        """
        s, weights = spread_draws(self.seeds - 1)
        count, free = self.seeds * self.items, max(1, self.items - 1)
        rest = self.spread.rest**2 / count
        truth = self.spread.of_items(self.items) ** 2
        sd = math.sqrt(2 / free * ((truth + rest) ** 2 + rest**2 / (self.seeds - 1)))
        seen = np.maximum(0.0, truth + sd * ndtri((np.arange(DRAWS) + 0.5) / DRAWS))
        return (self.error * s) ** 2, seen[:, None], weights / DRAWS

    def _reach(self, alpha: float) -> Floats:
        """Half the widths that intervals at 1 - alpha may have."""
        seeds, items, _ = self._seen
        by_seeds = float(stdtrit(self.seeds - 1, alpha / 2)) ** 2
        by_items = float(stdtrit(max(1, self.items - 1), alpha / 2)) ** 2
        half: Floats = np.sqrt(by_seeds * seeds + by_items * items)
        return half

    def power(self, gap: float) -> float:
        """How often a gap of that size, on items like these, is called what it is."""
        if not self.whole_error:
            raise ValueError("a spread of 0 leaves nothing to plan for: give one above 0")
        over = abs(gap) - self._reach(self.alpha / self.comparisons)
        return float((ndtr(over / self.whole_error) @ self._seen[2]).sum())

    def equivalence(self, margin: float) -> float:
        """How often two equal arms are called equivalent within the margin.

        The 90 % interval lies inside, and nothing shows as a gap among all comparisons.
        """
        inside = margin - self._reach(2 * self.alpha)
        among = self._reach(self.alpha / self.comparisons)

        def within(bound: Floats) -> Floats:
            share: Floats = 2 * ndtr(np.maximum(bound, 0) / self.whole_error) - 1
            return share

        seen = within(np.minimum(inside, among))
        return float((seen @ self._seen[2]).sum())

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
