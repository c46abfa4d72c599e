"""Curves over steps: their gap, how much they swing, a collapse, and how soon they get somewhere.

Steps of one run are not replicates of anything: what is found here is about these two curves, but
for `speed_over_seeds`. Higher is better. T is evaluations, N items, S seeds. It is long because a
curve is asked five things: level, end, swings, collapse, speed.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from kleash.stats.intervals import (
    Errors,
    Floats,
    Interval,
    Width,
    checked,
    checked_table,
    drawn_means,
    gaps,
    percentile_interval,
)
from kleash.stats.seeds import SeedGap, paired_seeds, seed_gap
from kleash.stats.special import fdtri

SHORT_CURVE = 20
FEWEST_STEPS = 8
END = 10  # the end of a curve is one in so many of its points
SMOOTHED_BEST = 5
ALIKE = 0.4  # a correlation of neighbours beyond which no interval here is wide enough
FEWEST_REPEATS = 5
SWAPPED_UP_TO = 14  # steps; 2**14 ways to swap them
STEADY_MARGIN = 1.25  # the ratio of SDs that would matter
ITEM_DRAWS = 200  # for an SD

Caution = Literal[
    "steps_are_not_replicates", "too_few_steps", "neighbours_alike", "noise_from_bends"
]


def curve(steps: ArrayLike, values: ArrayLike) -> tuple[Floats, Floats]:
    """Steps that rise and a value for each."""
    at, y = checked(steps), checked(values)
    if at.shape != y.shape:
        raise ValueError(f"need a step for each value: {at.shape} {y.shape}")
    if (np.diff(at) <= 0).any():
        raise ValueError("steps must rise: sort them, and keep one value for each")
    return at, y


@dataclass(frozen=True)
class Line:
    """A straight line through a curve by least squares, and what it leaves."""

    slope: float
    """Per step."""
    fitted: Floats
    residuals: Floats
    sd: float
    """Σr²/(T - 2), the square root of it: the detrended SD."""


def line(steps: ArrayLike, values: ArrayLike) -> Line:
    """The trend of a curve; its residuals are what swings about it."""
    at, y = curve(steps, values)
    if len(y) < 3:
        raise ValueError(f"a line through {len(y)} points leaves nothing over: give 3 or more")
    x = at - at.mean()
    slope = float(x @ y) / float(x @ x)
    fitted = y.mean() + slope * x
    residuals = y - fitted
    sd = math.sqrt(float(residuals @ residuals) / (len(y) - 2))
    return Line(slope, fitted, residuals, sd)


# --- the gap of two curves


@dataclass(frozen=True)
class CurveGap:
    """The mean gap of two curves over the same steps, or at their end."""

    width: Width
    """Its middle is the gap."""
    n: int
    warnings: tuple[Caution, ...]
    """`neighbours_alike`: so much so that the interval is too narrow."""
    lag: int = 0
    """Of Newey and West."""


def curve_gap(ours: ArrayLike, theirs: ArrayLike) -> CurveGap:
    """Newey-West's interval for the mean gap, by t.

    Below 20 steps there is too little to learn the dependence from: plain t, with a warning.
    """
    gap = gaps(ours, theirs)
    n = len(gap)
    if n < 2:
        raise ValueError("one step has no spread: give two or more that both curves have")
    mean = float(gap.mean())
    if n < SHORT_CURVE:
        error = float(gap.std(ddof=1)) / math.sqrt(n)
        warnings: tuple[Caution, ...] = ("steps_are_not_replicates",)
        if n < FEWEST_STEPS:
            warnings = ("too_few_steps", *warnings)
        return CurveGap(Width(mean, ((error, n - 1),)), n, warnings)
    lag = newey_west_lag(n)
    error = newey_west_error(gap, lag) * widening((lag + 1) / n)
    alike = neighbours_correlation(gap) > ALIKE
    warnings = ("neighbours_alike",) if alike else ()
    return CurveGap(Width(mean, ((error, n - 1),)), n, warnings, lag)


def neighbours_correlation(values: Floats) -> float:
    """The correlation of each value with the next; 0 where there is nothing to correlate."""
    if min(values[1:].std(), values[:-1].std()) < 1e-12:
        return 0.0
    return float(np.corrcoef(values[1:], values[:-1])[0, 1])


def newey_west_lag(n: int) -> int:
    """floor(4·(T/100) ** (2/9)), as Newey and West 1994."""
    return math.floor(4 * math.pow(n / 100, 2 / 9))


def newey_west_error(values: ArrayLike, lag: int) -> float:
    """The standard error of a mean whose terms depend on those up to `lag` before them.

    Bartlett weights 1 - j/(lag + 1) (Newey and West 1987), and T/(T - 1) for the mean taken out.
    """
    data = checked(values)
    n = len(data)
    rest = data - data.mean()
    total = float(rest @ rest)
    for j in range(1, min(lag, n - 1) + 1):
        total += 2 * (1 - j / (lag + 1)) * float(rest[j:] @ rest[:-j])
    return math.sqrt(max(0.0, total) / (n * (n - 1)))


def widening(share: float) -> float:
    """By how much an interval must grow because its error is itself from few stretches of a curve.

    Kiefer and Vogelsang 2005, table 1, Bartlett kernel, over 1.96; `share` is the bandwidth by T.
    """
    return 1 + 1.515 * share + 0.212 * share**2 - 0.272 * share**3


def end_of(steps: Floats) -> Floats:
    """The last tenth of the steps, one at least: where a training ended."""
    return steps[-max(1, len(steps) // END) :]


def end_gap(ours: ArrayLike, theirs: ArrayLike) -> CurveGap:
    """The gap at the end of two curves over the same steps, with the noise of evaluating.

    That noise is the SD of the gap's second differences: whatever bends is in it, so it is an
    upper bound. Below 8 steps it is not known well enough.
    """
    gap = gaps(ours, theirs)
    n = len(gap)
    if n < 3:
        raise ValueError("two steps have no bend: give three or more that both curves have")
    last = end_of(gap)
    error = second_difference_sd(gap) / math.sqrt(len(last))
    few: tuple[Caution, ...] = ("too_few_steps",) if n < FEWEST_STEPS else ()
    width = Width(float(last.mean()), ((error, second_difference_df(n)),))
    return CurveGap(width, n, (*few, "noise_from_bends"))


# --- how much a curve swings


def second_difference_sd(values: ArrayLike) -> float:
    """The SD of independent noise about any locally straight trend; 3 evaluations or more."""
    y = checked(values)
    bends = np.diff(y, 2)
    if not len(bends):
        raise ValueError(f"{len(y)} evaluations have no second difference: give 3 or more")
    return math.sqrt(float(bends @ bends) / (6 * len(bends)))


def second_difference_df(n: int) -> float:
    """The degrees of freedom that `second_difference_sd` is worth: (tr A)²/tr A², A = D'D.

    D takes second differences; D·D' has 6 on its diagonal and -4 and 1 beside it.
    """
    bends = n - 2
    squares = 36 * bends + 2 * 16 * (bends - 1) + 2 * max(0, bends - 2)
    return (6 * bends) ** 2 / squares


def max_drawdown(values: ArrayLike) -> float:
    """The deepest fall below the best before it."""
    y = np.asarray(values, dtype=np.float64)
    return float((np.maximum.accumulate(y) - y).max())


def spread_ratio(ours: ArrayLike, theirs: ArrayLike, *, level: float = 0.95) -> Interval:
    """The F interval of the ratio of second-difference SDs, ours to theirs, on the same steps.

    Assumes that no shock hits both curves and that residuals are independent and normal.
    """
    left = checked(ours)
    right = left - gaps(left, theirs)
    n = len(left)
    if n < 4:
        raise ValueError(f"{n} evaluations say nothing about swings: give 4 or more")
    ours_sd, theirs_sd = second_difference_sd(left), second_difference_sd(right)
    if min(ours_sd, theirs_sd) < 1e-12:
        raise ValueError(
            "a curve without any swing has no ratio: were its values rounded or copied?"
        )
    df, ratio = second_difference_df(n), ours_sd / theirs_sd
    edge = math.sqrt(float(fdtri(df, df, (1 + level) / 2)))
    return Interval(ratio, ratio / edge, ratio * edge, level, n)


def logged(ratio: Interval) -> Interval:
    """The natural logarithm of a ratio and its ends: what a verdict takes."""
    middle, low, high = (math.log(each) for each in (ratio.estimate, ratio.low, ratio.high))
    return Interval(middle, low, high, ratio.level, ratio.n)


def swapped_steps(
    ours: ArrayLike,
    theirs: ArrayLike,
    of: Callable[[Floats], float],
    rng: np.random.Generator,
    *,
    draws: int = 10_000,
) -> float:
    """Two-sided p of "it does not matter which curve a step's value came from", for any summary.

    All ways to swap steps up to 14 of them, random ones beyond.
    """
    left = checked(ours)
    right = left - gaps(ours, theirs)
    n = len(left)
    exact = n <= SWAPPED_UP_TO
    if exact:
        swaps = np.array(list(itertools.product([False, True], repeat=n)))
    else:
        swaps = rng.random((draws, n)) < 0.5
    seen = abs(of(left) - of(right))
    drawn = np.array(
        [abs(of(np.where(s, right, left)) - of(np.where(s, left, right))) for s in swaps]
    )
    as_far = int((drawn >= seen - 1e-9 * max(1.0, seen)).sum())
    return as_far / len(swaps) if exact else (1 + as_far) / (1 + draws)


# --- the noise of evaluating, and a collapse


@dataclass(frozen=True)
class NoiseFloor:
    """The SD of evaluating one checkpoint again, and how it is known.

    From second differences it is an upper bound: real swings are in it.
    """

    sd: float
    way: Literal["repeats", "generations", "items", "second_differences", "declared"]


def noise_floor(
    *,
    repeats: ArrayLike | None = None,
    generations_NK: ArrayLike | None = None,
    items: ArrayLike | None = None,
    curve: ArrayLike | None = None,
    declared: float | None = None,
) -> NoiseFloor:
    """The first of these that is given, in this order; `repeats` only from five on.

    `repeats` are evaluations of one checkpoint; `generations_NK` several answers per item, of which
    a curve uses one each; `items` single scores of one checkpoint (then the floor is that of new
    items, what a bootstrap over them gives); `curve` its values; `declared` a number argued for.
    """
    if repeats is not None and len(data := checked(repeats)) >= FEWEST_REPEATS:
        return NoiseFloor(float(data.std(ddof=1)), "repeats")
    if generations_NK is not None:
        table = checked_table(generations_NK, columns=2)
        variance = float(table.var(axis=1, ddof=1).sum()) / len(table) ** 2
        return NoiseFloor(math.sqrt(variance), "generations")
    if items is not None:
        scores = checked(items)
        return NoiseFloor(float(scores.std()) / math.sqrt(len(scores)), "items")
    if curve is not None:
        return NoiseFloor(second_difference_sd(curve), "second_differences")
    if declared is not None:
        return NoiseFloor(declared, "declared")
    raise ValueError("no way to the noise floor: evaluate one checkpoint five times, or declare it")


@dataclass(frozen=True)
class Collapse:
    """Where a curve fell far below its best and stayed there for two evaluations, if it did."""

    step: float | None
    """The second of the two evaluations."""
    best: float
    """The best the curve had been by then (by its end, if nothing fell)."""
    drop: float | None
    """How far below, on average of the two."""
    deepest: float | None
    """How far below two in a row lay in the end, at the most."""
    n: int


def collapse(steps: ArrayLike, values: ArrayLike, noise_floor: float) -> Collapse:
    """Three standard errors below the running best, twice in a row.

    The running best is the best mean of five evaluations in a row (of all, while there are fewer):
    a single highest point is luck, and every long curve lies three errors below it in places. From
    100 evaluations on it is ten in a row, from 200 on twenty, and so on, for the same reason.
    """
    at, y = curve(steps, values)
    if noise_floor <= 0:
        raise ValueError(f"a noise floor of {noise_floor} calls any drop a collapse: set it > 0")
    sums, seen = np.cumsum(np.append(0.0, y)).tolist(), y.tolist()  # one number is quicker so
    best, size, below = seen[0], 1, 0
    for now in range(1, len(y)):
        limit = best - 3 * noise_floor * math.sqrt(1 + 1 / size)
        below = below + 1 if seen[now] < limit else 0
        if below == 2:
            drops = best - (y[now - 1 : -1] + y[now:]) / 2
            return Collapse(float(at[now]), best, float(drops[0]), float(drops.max()), len(y))
        wide = min(now + 1, SMOOTHED_BEST * 2 ** max(0, ((now + 1) // 50).bit_length() - 1))
        if wide > size:
            size = wide
            best = float(
                np.lib.stride_tricks.sliding_window_view(y[: now + 1], wide).mean(axis=1).max()
            )
        best = max(best, (sums[now + 1] - sums[now + 1 - wide]) / wide)
    return Collapse(None, best, None, None, len(y))


# --- how soon a threshold is reached: fixed beforehand, the same for both


@dataclass(frozen=True)
class Speed:
    """How soon two curves reach a threshold; who has not arrived by the last step counts there."""

    threshold: float
    ours: float
    theirs: float
    gap: Interval | None = None
    """`ours - theirs` over items drawn again; None without items."""


def speed(steps: ArrayLike, ours: ArrayLike, theirs: ArrayLike, threshold: float) -> Speed:
    """From two curves over the same steps alone."""
    at = checked(steps)
    times = _arrivals(at, np.array([checked(ours), checked(theirs)]), threshold)
    return Speed(threshold, float(times[0]), float(times[1]))


def speed_by_items(
    steps: ArrayLike,
    ours_NT: ArrayLike,
    theirs_NT: ArrayLike,
    threshold: float,
    rng: np.random.Generator,
    *,
    draws: int = 2_000,
) -> Speed:
    """From scores of the same items, drawn again; the gap's estimate is the mean over draws."""
    left, right = checked_table(ours_NT, rows=2), checked_table(theirs_NT, rows=2)
    if len(left) != len(right):
        raise ValueError(f"need the same items on both sides: {left.shape} {right.shape}")
    at = checked(steps)
    seen = speed(at, left.mean(axis=0), right.mean(axis=0), threshold)
    curves = drawn_means(np.hstack([left, right]), draws, rng)
    times = [_arrivals(at, drawn, threshold) for drawn in np.split(curves, 2, axis=1)]
    apart = times[0] - times[1]
    gap = percentile_interval(float(apart.mean()), apart, n=len(left))
    return Speed(threshold, seen.ours, seen.theirs, gap)


@dataclass(frozen=True)
class SeedSpeed:
    """How soon runs of two arms reach a threshold, paired by seed: means over seeds."""

    ours: float
    theirs: float
    late: int
    """Runs that did not arrive."""
    gap: SeedGap
    """Ours less theirs; with the scores of items, for items like these."""


def speed_over_seeds(
    steps: ArrayLike,
    curves: tuple[Floats, Floats],
    threshold: float,
    rng: np.random.Generator,
    *,
    items: tuple[Floats, Floats] | None = None,
) -> SeedSpeed:
    """From curves [seed, evaluation] of both arms at the same steps, t over seeds.

    An arrival is known to one evaluation only, so gaps spread by no less than two such roundings.
    `items` are the scores behind the curves, [seed, item, evaluation]: drawn again under all seeds
    at once, they show how far items move the gap.
    """
    at = checked(steps)
    times = [_arrivals(at, each, threshold) for each in curves]
    alone = paired_seeds(times[0], times[1])
    seeds = len(times[0])
    rounding = float(np.diff(at).max()) / math.sqrt(6 * seeds)
    errors: Errors = ((max(alone.errors[0][0], rounding), alone.df),)
    if items is not None:
        sides = [_drawn_arrivals(at, each, threshold, rng) for each in items]
        errors = (*errors, (float((sides[0] - sides[1]).std(ddof=1)), items[0].shape[1] - 1.0))
    gap = seed_gap(alone.interval.estimate, errors, alone.sd, level=0.95, n=seeds)
    late = sum(int((each < threshold - 1e-12).all(axis=1).sum()) for each in curves)
    return SeedSpeed(float(times[0].mean()), float(times[1].mean()), late, gap)


def _drawn_arrivals(
    at: Floats, items_SNT: Floats, threshold: float, rng: np.random.Generator
) -> Floats:
    """Mean arrivals over seeds, items drawn again."""
    seeds, items, evaluations = items_SNT.shape
    flat = np.moveaxis(items_SNT, 1, 0).reshape(items, -1)
    curves = drawn_means(flat, ITEM_DRAWS, rng).reshape(-1, evaluations)
    means: Floats = _arrivals(at, curves, threshold).reshape(-1, seeds).mean(axis=1)
    return means


def _arrivals(at: Floats, curves_BT: Floats, threshold: float) -> Floats:
    """Each curve's first step at the threshold or above, or the last step."""
    there = curves_BT >= threshold - 1e-12
    times: Floats = np.where(there.any(axis=1), at[there.argmax(axis=1)], at[-1])
    return times
