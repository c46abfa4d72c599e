"""How much is enough: differences that can be seen, items, seeds and evaluations needed.

All for two-sided tests at alpha .05 and power .8; always "if the spread stays as it is". Fractions,
not points: a gap of one percentage point is 0.01.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache

import numpy as np
from numpy.typing import ArrayLike

from kleash.stats.intervals import Floats, checked, checked_table, differing_bound
from kleash.stats.special import chdtri, ndtr, ndtri, stdtrit

DRAWS = 9  # of what items may be seen to add, for a mean over it
ALPHA, POWER = 0.05, 0.8
LIKE_PAIRS = 0.25  # correlation of the squares of two gaps to one baseline, which correlate by half


@cache
def quadrature() -> tuple[Floats, Floats]:
    """Nodes and weights for integrals over [-1, 1]; the first call finds them, in 10 ms."""
    nodes, weights = np.polynomial.legendre.leggauss(200)
    return nodes, weights


def z_total() -> float:
    """z(1 - alpha/2) + z(power): 2.80."""
    return float(ndtri(1 - ALPHA / 2) + ndtri(POWER))


def z_equivalence() -> float:
    """z(1 - alpha) + z((1 + power)/2): 2.93."""
    return float(ndtri(1 - ALPHA) + ndtri((1 + POWER) / 2))


def pair_sd(discordance: float, size: float) -> float:
    """The SD of paired differences about 0: √D·g, g the root mean square of those not 0."""
    if not 0 <= discordance <= 1:
        raise ValueError(f"a share of pairs that differ is from 0 to 1: {discordance=}")
    return math.sqrt(discordance) * size


def smallest_margin(sd: float, n: int) -> float:
    """The margin within which two equal arms are called equivalent."""
    return z_equivalence() * sd / math.sqrt(n)


def items_needed(sd: float, gap: float) -> int:
    """How many items show a gap of that size."""
    if gap == 0:
        raise ValueError("no number of items shows a gap of 0: name the gap that would matter")
    return whole((z_total() * sd / gap) ** 2)


def items_for_equivalence(sd: float, margin: float, *, gap: float = 0.0) -> int:
    """How many items show equivalence within the margin, if the truth is `gap`."""
    if abs(gap) >= margin:
        raise ValueError(f"a gap of {gap} is not inside the margin {margin}: nothing shows it is")
    return whole((z_equivalence() * sd / (margin - abs(gap))) ** 2)


def whole(count: float) -> int:
    """The next whole number; 1e-9 forgives rounding."""
    return max(1, math.ceil(count - 1e-9))


def spread_bound(gaps: ArrayLike, *, level: float = 0.8, span: float = 1.0) -> float:
    """An upper bound on the SD of paired differences, to plan with.

    The largest of three: the share that differs at its Clopper-Pearson bound, with differences of
    the size seen (of the span, if none was); the t bound of their mean square; and the χ² bound of
    differences that are normal and never 0.
    """
    data = checked(gaps)
    n, k = len(data), int((data != 0).sum())
    square = float((data**2).sum()) / k if k else span**2
    by_share = differing_bound(k, n, level=level) * square
    if n == 1:
        return math.sqrt(by_share)
    squares = data**2
    reach = float(stdtrit(n - 1, level)) * float(squares.std(ddof=1)) / math.sqrt(n)
    normal = float(squares.sum()) / float(chdtri(n - 1, level))
    return math.sqrt(max(by_share, float(squares.mean()) + reach, normal))


# --- seeds


def t_power(shift: float, df: float) -> float:
    """The power of a two-sided t test whose statistic is centred at `shift`.

    E Φ(±shift - t·s) over s = √(χ²/df), by quadrature: scipy's noncentral t gives NaN at few
    degrees of freedom and large shifts, which is where two seeds are.
    """
    edge = float(stdtrit(df, 1 - ALPHA / 2))
    s, weights = spread_draws(df)
    return float(weights @ (ndtr(shift - edge * s) + ndtr(-shift - edge * s)))


@lru_cache(maxsize=256)  # a study asks for the same few numbers of seeds for every arm
def spread_draws(df: float) -> tuple[Floats, Floats]:
    """Values of s = √(χ²/df) and their weights, which sum to 1: for means over a seen spread."""
    # Ten SDs of s to each side; the density is s^(df - 1)·exp(-df·s²/2), but for a factor.
    reach = 10 / math.sqrt(2 * df)
    low, high = max(0.0, 1 - reach), 1 + reach
    nodes, areas = quadrature()
    s = low + (high - low) * (nodes + 1) / 2
    logs = (df - 1) * np.log(s) - df * (s**2 - 1) / 2
    weights = areas * np.exp(logs - logs.max())
    return s, weights / weights.sum()


def smallest_detectable_by_seeds(seeds: int) -> float:
    """The gap of two arms with `seeds` runs each, of different seeds, in between-seed SDs."""
    if seeds < 2:
        raise ValueError("one run per arm detects no gap, however large: run two seeds or more")
    df, low, high = 2 * seeds - 2, 0.0, 1.0
    while t_power(high, df) < POWER:
        low, high = high, 2 * high
    while high - low > 1e-9 * high:
        guess = (low + high) / 2
        low, high = (guess, high) if t_power(guess, df) < POWER else (low, guess)
    return high * math.sqrt(2 / seeds)


def seeds_needed(gap: float, sd: float) -> int:
    """How many seeds that both arms share show the gap; `sd` is that of the paired gaps."""
    if gap == 0:
        raise ValueError("no number of seeds shows a gap of 0: name the gap that would matter")

    def shown(seeds: int) -> bool:
        return sd == 0 or t_power(abs(gap) * math.sqrt(seeds) / sd, seeds - 1) >= POWER

    # By the normal distribution, which asks for a few less than t does.
    return fewest(shown, near_to(z_total() * sd / abs(gap)))


def seeds_for_equivalence(margin: float, sd: float, *, gap: float = 0.0) -> int:
    """How many shared seeds show equivalence within the margin, if the truth is `gap`."""
    if abs(gap) >= margin:
        raise ValueError(f"a gap of {gap} is not inside the margin {margin}: nothing shows it is")

    def shown(seeds: int) -> bool:
        reach = float(stdtrit(seeds - 1, 1 - ALPHA) + stdtrit(seeds - 1, (1 + POWER) / 2))
        return reach * sd / math.sqrt(seeds) <= margin - abs(gap)

    return fewest(shown, near_to(z_equivalence() * sd / (margin - abs(gap))))


def near_to(errors: float) -> int:
    """About how many seeds make a standard error so much smaller than the SD of one."""
    return whole(min(errors, 1e6) ** 2) + 2


def fewest(shown: Callable[[int], bool], near: int) -> int:
    """The fewest seeds, from 2 on, at which it is shown: in strides from `near`, then halving."""
    low, high, stride = 1, max(2, near), 1
    if shown(high):
        while high > 2 and shown(max(2, high - stride)):
            high, stride = max(2, high - stride), 2 * stride
        low = max(1, high - stride)
    else:
        low, high = high, high + stride
        while not shown(high):
            stride *= 2
            low, high = high, high + stride
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if shown(middle) else (middle, high)
    return high


def points_for_ratio(ratio: float) -> int:
    """Evaluations in each curve that show a ratio of detrended SDs: (z/ln ratio)² + 2."""
    if ratio <= 0 or ratio == 1:
        raise ValueError(f"no curve is long enough to show a ratio of {ratio}")
    return whole((z_total() / math.log(ratio)) ** 2 + 2)


# --- seeds and items crossed


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
