"""Intervals for means: of values, of paired differences, of clusters of them.

Every interval is a record with its level and its n. Which differences count as one replicate is
for the caller to know; clusters, seeds and steps have files of their own.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kleash.stats.special import betaincinv, stdtr, stdtrit

Floats = NDArray[np.float64]
CACHED = 2**17  # indices counted at a time
HELD = 2**22  # weights held at a time


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
LEAST_P, EXACT, MOST_GUESSES = 1e-300, 1e-12, 40  # of a search for p; most take five or six

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
    (error, df), *rest = sorted(some, key=lambda part: part[1])

    def p_at(log_t: float) -> float:
        return max(float(2 * stdtr(df, -math.exp(log_t))), LEAST_P)

    def over(log_t: float) -> float:
        parts = [-float(stdtrit(free, p_at(log_t) / 2)) * size for size, free in rest]
        return math.log(math.hypot(math.exp(log_t) * error, *parts) / abs(estimate))

    # Fewest degrees have the largest t: were all t as large it would be at the low end.
    whole = math.hypot(*(size for size, _ in some))
    low, high = (math.log(abs(estimate) / size) for size in (whole, error))
    return p_at(crossing(over, low, high))


def crossing(rises: Callable[[float], float], low: float, high: float) -> float:
    """Where a rising function is 0 between two ends: false position, by Illinois' rule."""
    below, above, last = rises(low), rises(high), 0.0
    for _ in range(MOST_GUESSES):
        if not below < 0 < above or high - low < EXACT:
            break
        at = high - above * (high - low) / (above - below)
        found = rises(at)
        if abs(found) < EXACT:
            return at
        again = 0.5 if found * last > 0 else 1.0  # the end that stays pulls half as much
        if found < 0:
            low, below, above = at, found, above * again
        else:
            high, above, below = at, found, below * again
        last = found
    return low if below >= 0 else high


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


def mean_ends(
    rows: ArrayLike, *, level: float = 0.95, bounds: tuple[float, float] | None = None
) -> tuple[Floats, Floats]:
    """Both ends of `mean_interval` of every row, to the last digit, at once."""
    shown = checked_table(rows, columns=2 if bounds is None else 1)
    if bounds is not None:
        with_bounds(shown.ravel(), bounds)  # none leaves them
        shown = np.hstack((shown, np.tile(bounds, (len(shown), 1))))
    m = shown.shape[1]
    centres = np.add.reduce(shown, axis=1) / m
    apart = shown - centres[:, None]
    errors = np.sqrt(np.add.reduce(apart * apart, axis=1) / (m - 1)) / math.sqrt(m)
    widths = np.abs(t_quantile(m - 1, (1 - level) / 2) * errors)
    return centres - widths, centres + widths


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


def clustered_width(gap: Floats, clusters: Sequence[Hashable], *, span: float = 1.0) -> Width:
    """`mean_width` of paired differences whose clusters are the replicates, adjusted likewise."""
    if abs(gap).max() > span:
        raise ValueError(f"a difference of {abs(gap).max()} is beyond the span {span}")
    names: dict[Hashable, int] = {}
    member = np.array([names.setdefault(name, len(names)) for name in clusters], dtype=np.intp)
    if len(member) != len(gap):
        raise ValueError(f"need a cluster for each of {len(gap)} items: got {len(member)}")
    sums = np.bincount(member, weights=gap).astype(np.float64)
    sizes = np.bincount(member).astype(np.float64)
    size = len(gap) / len(sums)
    shown_sums = np.append(sums, [size * span, -size * span])
    shown_sizes = np.append(sizes, [size, size])
    m, c = shown_sizes.sum(), len(shown_sums)
    centre = float(shown_sums.sum() / m)
    # c / (c - 1): with clusters of one this is the usual SD with m - 1.
    squares = float(((shown_sums - centre * shown_sizes) ** 2).sum()) * c / (c - 1)
    return Width(centre, ((math.sqrt(squares) / m, c - 1),))


def differing_bound(k: int, n: int, *, level: float = 0.95) -> float:
    """The upper Clopper-Pearson bound on the share of items that differ, after k of n did.

    With k = 0 it is 1 - .05 ** (1 / n): what "identical on n items" says about the others.
    """
    if not 0 <= k <= n or n < 1:
        raise ValueError(f"k of n items differ, so 0 <= k <= n and n >= 1: {k=} {n=}")
    return 1.0 if k == n else float(betaincinv(k + 1, n - k, level))


# --- drawing again: weights of a bootstrap, and the interval that draws give


def resample(n: int, draws: int, rng: np.random.Generator) -> Floats:
    """How often each of n falls in a draw of n with replacement, as weights that sum to 1.

    Drawn by indices and counted, as many draws at a time as stay in the cache: five times faster
    than by multinomial counts, which go through all n for every draw.
    """
    weights: Floats = np.empty((draws, n))
    some = max(1, CACHED // n)
    for first in range(0, draws, some):
        part = weights[first : first + some]
        drawn = rng.integers(0, n, size=part.shape) + n * np.arange(len(part))[:, None]
        np.divide(np.bincount(drawn.ravel(), minlength=part.size).reshape(part.shape), n, out=part)
    return weights


def drawn_means(values_NK: Floats, draws: int, rng: np.random.Generator) -> Floats:
    """The means of each column over draws of n rows with replacement, [draws, K].

    The weights of all draws at once would take draws × n numbers; these take a few mebibytes.
    """
    n = len(values_NK)
    some = max(1, HELD // n)
    parts = [
        resample(n, min(some, draws - first), rng) @ values_NK for first in range(0, draws, some)
    ]
    return np.concatenate(parts)


def percentile_interval(estimate: float, drawn: Floats, *, n: int) -> Interval:
    """The range that holds 95 % of the drawn values."""
    low, high = np.quantile(drawn, [0.025, 0.975])
    return Interval(estimate, float(low), float(high), 0.95, n)
