"""Intervals for means: of values, of paired differences, of samples that are still arriving.

Every interval is a record with its level and its n. Which differences count as one replicate is
for the caller to know; clusters, seeds and steps have files of their own.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kleash.stats.special import betaincinv, stdtr, stdtrit

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Interval:
    """An estimate from n values, and the range that covers the truth in `level` of studies."""

    estimate: float
    low: float
    high: float
    level: float
    n: int


def checked(values: ArrayLike) -> Floats:
    """The values as a flat array with something, and only finite numbers, in it."""
    data = np.asarray(values, dtype=np.float64)
    if data.ndim != 1 or data.size == 0:
        raise ValueError(f"need a flat list of one value or more: got shape {data.shape}")
    return finite(data)


def checked_table(values: ArrayLike, *, rows: int = 1, columns: int = 1) -> Floats:
    """The values as a table of at least so many rows and columns, all finite."""
    data = np.asarray(values, dtype=np.float64)
    if data.ndim != 2 or data.shape[0] < rows or data.shape[1] < columns:
        raise ValueError(
            f"need a table of {rows} or more rows by {columns} or more columns:"
            f" got shape {data.shape}"
        )
    return finite(data)


def finite(data: Floats) -> Floats:
    """The data, refused if a value is NaN or infinite."""
    if not np.logical_and.reduce(np.isfinite(data), axis=None):  # as `all`, without its detours
        raise ValueError(f"{(~np.isfinite(data)).sum()} of {data.size} values are not finite")
    return data


def gaps(ours: ArrayLike, theirs: ArrayLike) -> Floats:
    """`ours - theirs`, one for each item; what differs by rounding alone is 0."""
    left, right = checked(ours), checked(theirs)
    if left.shape != right.shape:
        raise ValueError(f"need the same items on both sides: {left.shape} {right.shape}")
    # Scores such as .9 - .6 and .3 are one lattice step, but not one float.
    rounded: Floats = (left - right).round(12)
    return rounded


@lru_cache(maxsize=4096)
def t_quantile(df: float, p: float) -> float:
    """The quantile of the t distribution."""
    return float(stdtrit(df, p))


def t_interval(estimate: float, error: float, df: float, *, level: float, n: int) -> Interval:
    """The estimate and `error`, its standard error, as an interval by t with `df`."""
    reach = t_quantile(df, (1 + level) / 2) * error
    return Interval(estimate, estimate - reach, estimate + reach, level, n)


def t_p(estimate: float, error: float, df: float) -> float:
    """Two-sided p of "the truth is 0" by t with `df`; 1 where there is neither gap nor error."""
    if error == 0:
        return 1.0 if estimate == 0 else 0.0
    return float(2 * stdtr(df, -abs(estimate) / error))


NORMAL = 1e9  # degrees of freedom of an error that is known

Errors = tuple[tuple[float, float], ...]
"""Standard errors of the independent parts of an estimate, each with its degrees of freedom."""


def reach(errors: Errors, level: float) -> float:
    """Half the width of an interval whose error has parts that are known unequally well.

    √Σ(t·error)², each part by its own t: covers `level` or more (Banerjee 1961), while one t with
    Satterthwaite's degrees of freedom covers less where a part has few.
    """
    tail = (1 - level) / 2
    return math.sqrt(sum((t_quantile(df, tail) * error) ** 2 for error, df in errors))


@dataclass(frozen=True)
class Width:
    """A gap's interval at every level, so that intervals and p of one gap cannot contradict."""

    middle: float
    errors: Errors
    least: Errors = ()
    """Parts of an error that the interval is never narrower than."""
    upper: Errors = ()
    """Of an interval that reaches further up than down, or less: its errors upwards."""
    turned: bool = False
    """Whether less is better."""
    logs: bool = False
    """Whether it is of the logarithm of a ratio."""

    @staticmethod
    def stretched(found: Interval) -> Width:
        """From an interval at one level: each of its sides as that of a normal error."""
        width = -t_quantile(NORMAL, (1 - found.level) / 2)
        down, up = found.estimate - found.low, found.high - found.estimate
        below, above = (max(0.0, side) / width for side in (down, up))
        return Width(found.estimate, ((below, NORMAL),), upper=((above, NORMAL),))

    def at(self, level: float) -> tuple[float, float]:
        """Both ends, in the unit of the middle."""
        least = reach(self.least, level)
        low, high = (max(reach(each, level), least) for each in (self.errors, self._above))
        return self.middle - low, self.middle + high

    def better_up(self, level: float, n: int) -> Interval:
        """The interval with better upwards."""
        low, high = self.at(level)
        if self.turned:
            return Interval(-self.middle, -high, -low, level, n)
        return Interval(self.middle, low, high, level, n)

    def shown(self, level: float) -> tuple[float, float]:
        """Both ends as they are read: of logarithms the ratios."""
        low, high = self.at(level)
        return (math.exp(low), math.exp(high)) if self.logs else (low, high)

    @property
    def p(self) -> float:
        """One less the level at which the interval meets 0."""
        facing = self.errors if self.middle > 0 else self._above
        least = parts_p(self.middle, self.least) if self.least else 0.0
        return max(parts_p(self.middle, facing), least)

    @property
    def _above(self) -> Errors:
        return self.upper or self.errors


def parts_interval(estimate: float, errors: Errors, *, level: float, n: int) -> Interval:
    """The interval of an estimate whose error has parts; of one part that is `t_interval`."""
    half = reach(errors, level)
    return Interval(estimate, estimate - half, estimate + half, level, n)


def parts_p(estimate: float, errors: Errors) -> float:
    """Two-sided p of "the truth is 0": one less the level at which the interval meets 0."""
    some = [(error, df) for error, df in errors if error]
    if len(some) < 2 or not estimate:
        return t_p(estimate, *(some or errors)[0])
    low, high = -690.0, 0.0  # of the logarithm of p
    for _ in range(60):
        middle = (low + high) / 2
        tail = math.exp(middle) / 2
        half = sum((float(stdtrit(df, tail)) * error) ** 2 for error, df in some)
        low, high = (middle, high) if half > estimate**2 else (low, middle)
    return math.exp(high)


def mean_interval(
    values: ArrayLike, *, level: float = 0.95, bounds: tuple[float, float] | None = None
) -> Interval:
    """The t interval of a mean; with `bounds`, adjusted for values that cannot leave them.

    Adjusted means one pseudo-value at each bound (after Agresti and Coull). Without it, values of
    which few differ give intervals far too narrow; the estimate stays the mean of the values.
    """
    data = checked(values)
    low, high = mean_width(data, bounds).at(level)
    return Interval(float(np.add.reduce(data)) / len(data), low, high, level, len(data))


def mean_width(data: Floats, bounds: tuple[float, float] | None = None) -> Width:
    """The same at every level. With `bounds` its middle is drawn to theirs."""
    shown = data if bounds is None else with_bounds(data, bounds)
    m = len(shown)
    if m < 2:
        raise ValueError("one value has no spread: give two or more, or the bounds of the values")
    # The sums of `mean` and `std`, without what these look at first: a report has 10,000 means.
    centre = float(np.add.reduce(shown)) / m
    apart = shown - centre
    error = math.sqrt(float(np.add.reduce(apart * apart)) / (m - 1)) / math.sqrt(m)
    return Width(centre, ((error, m - 1),))


def with_bounds(data: Floats, bounds: tuple[float, float]) -> Floats:
    """The data and one pseudo-value at each bound, which no value may leave."""
    room = 1e-9 * (bounds[1] - bounds[0])  # for sums added up in another order
    if data.min() < bounds[0] - room or data.max() > bounds[1] + room:
        raise ValueError(f"values from {data.min()} to {data.max()} leave the bounds {bounds}")
    return np.concatenate((data, bounds))


def paired_difference(
    ours: ArrayLike, theirs: ArrayLike, *, level: float = 0.95, span: float = 1.0
) -> Interval:
    """Mean of `ours - theirs` over the same items: the adjusted t interval, also if all agree.

    `span` is the largest difference a pair can have: 1 for scores from 0 to 1.
    """
    return mean_interval(gaps(ours, theirs), level=level, bounds=(-span, span))


def differing_bound(k: int, n: int, *, level: float = 0.95) -> float:
    """The upper Clopper-Pearson bound on the share of items that differ, after k of n did.

    With k = 0 it is 1 - .05 ** (1 / n): what "identical on n items" says about the others.
    """
    if not 0 <= k <= n or n < 1:
        raise ValueError(f"k of n items differ, so 0 <= k <= n and n >= 1: {k=} {n=}")
    return 1.0 if k == n else float(betaincinv(k + 1, n - k, level))


@dataclass(frozen=True)
class Equivalence:
    """Whether two arms are the same within a margin that was fixed before looking (TOST)."""

    equivalent: bool
    p: float
    """The larger of the two one-sided p, from the adjusted t."""
    interval: Interval
    """At 1 - 2·alpha: it lies inside the margin exactly when p < alpha."""
    margin: float
    k: int
    n: int


def equivalence(
    ours: ArrayLike, theirs: ArrayLike, margin: float, *, span: float = 1.0, alpha: float = 0.05
) -> Equivalence:
    """Two one-sided tests on the adjusted interval."""
    if margin <= 0:
        raise ValueError(f"a margin of {margin} leaves nothing to be equivalent within: set it > 0")
    gap = gaps(ours, theirs)
    interval = mean_interval(gap, level=1 - 2 * alpha, bounds=(-span, span))
    shown = with_bounds(gap, (-span, span))
    error = float(shown.std(ddof=1)) / math.sqrt(len(shown))
    nearest = margin - abs(float(shown.mean()))
    p = float(stdtr(len(shown) - 1, -nearest / error))
    return Equivalence(p < alpha, p, interval, margin, int((gap != 0).sum()), len(gap))


def confidence_sequence(
    values: ArrayLike, planned: int, *, level: float = 0.95, span: float | None = None
) -> Interval:
    """An interval for a mean that may be looked at after every item, at most `planned` of them.

    Asymptotic confidence sequence of Waudby-Smith and others (2103.06476, eq. 10), tightest at
    `planned`. With `span` the two pseudo-differences of `paired_difference` are added.
    """
    data = checked(values)
    shown = data if span is None else with_bounds(data, (-span, span))
    n = len(shown)
    if n < 2:
        raise ValueError("one value has no spread: give two or more, or the span of the values")
    if planned < len(data):
        raise ValueError(f"{len(data)} items were seen but {planned} planned: plan before looking")
    reach = float(shown.std(ddof=1)) * sequence_reach(n, planned, level=level)
    centre = float(shown.mean())
    return Interval(float(data.mean()), centre - reach, centre + reach, level, len(data))


def sequence_reach(n: int, planned: int, *, level: float = 0.95) -> float:
    """Half the width of the confidence sequence after n items, in SDs of one."""
    alpha = 1 - level
    rho = (-2 * math.log(alpha) + math.log(-2 * math.log(alpha) + 1)) / planned
    spread = n * rho + 1
    return math.sqrt(2 * spread / (n * n * rho) * math.log(math.sqrt(spread) / alpha))


def finite_population(interval: Interval, population: int) -> Interval:
    """The interval for the mean over `population` fixed items of which n were scored.

    Only for claims about these very items: the variance is multiplied by 1 - n / population.
    """
    if population < interval.n:
        raise ValueError(f"{interval.n} items cannot come from a population of {population}")
    factor = math.sqrt(1 - interval.n / population)
    middle = (interval.low + interval.high) / 2
    # The adjusted interval's centre is pulled towards 0 by its pseudo-values; that pull, too, is
    # about items not seen, and fades as they are seen.
    centre = interval.estimate + factor * (middle - interval.estimate)
    reach = factor * (interval.high - interval.low) / 2
    return replace(interval, low=centre - reach, high=centre + reach)
