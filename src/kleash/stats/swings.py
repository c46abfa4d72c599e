"""How much a validation curve swings, against the noise of evaluating it.

Two numbers lead: the second-difference SD, which no locally straight trend can move, and the
largest drawdown. The rest is shown beside them. T is evaluations.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from kleash.stats.curves import (
    FEWEST_STEPS,
    Caution,
    CurveGap,
    curve,
    end_of,
    line,
    neighbours_correlation,
)
from kleash.stats.intervals import (
    Floats,
    Interval,
    checked,
    checked_table,
    gaps,
)
from kleash.stats.special import fdtr, fdtrc, fdtri

FEWEST_REPEATS = 5
SWAPPED_UP_TO = 14  # steps; 2**14 ways to swap them
STEADY_MARGIN = 1.25  # the ratio of SDs that would matter
TAIL_SHARE = 4  # the worst quarter of steps


@dataclass(frozen=True)
class Stability:
    """The stability of one curve, in its own unit unless a row says otherwise."""

    mean: float
    area: float
    """Under the curve, divided by its length."""
    slope: float
    """Per step, by least squares."""
    sd: float
    detrended_sd: float
    successive_sd: float
    """√(ΣΔ² / 2(T - 1)), von Neumann's."""
    second_difference_sd: float
    """√(Σ(Δ²)² / 6(T - 2))."""
    total_variation: float
    excess_variation: float
    """Total variation less the distance from first to last."""
    max_drawdown: float
    relative_drawdown: float
    """The largest, as a fraction of the best before it."""
    ulcer_index: float
    """The root mean square of relative drawdowns."""
    drop_tail: float
    """The mean fall over the worst quarter of steps (CVaR); rises count as 0."""
    largest_step: float
    """max |Δ| as a fraction of the value before it."""
    autocorrelation: float
    """Of residuals and the ones after them."""
    n: int


def stability(steps: ArrayLike, values: ArrayLike) -> Stability:
    """Every row of the table for one curve; values must be above 0 for the relative ones."""
    at, y = curve(steps, values)
    n = len(y)
    if n < 4:
        raise ValueError(f"{n} evaluations say nothing about swings: give 4 or more")
    trend = line(at, y)
    moves = np.diff(y)
    best = np.maximum.accumulate(y)
    relative = (best - y) / best if best[0] > 0 else np.full(n, np.nan)
    falls = np.sort(np.maximum(-moves, 0))[::-1]
    variation = float(np.abs(moves).sum())
    return Stability(
        mean=float(y.mean()),
        area=float(np.diff(at) @ (y[1:] + y[:-1])) / (2 * float(at[-1] - at[0])),
        slope=trend.slope,
        sd=float(y.std(ddof=1)),
        detrended_sd=trend.sd,
        successive_sd=math.sqrt(float(moves @ moves) / (2 * (n - 1))),
        second_difference_sd=second_difference_sd(y),
        total_variation=variation,
        excess_variation=variation - abs(float(y[-1] - y[0])),
        max_drawdown=max_drawdown(y),
        relative_drawdown=float(relative.max()),
        ulcer_index=math.sqrt(float((relative**2).mean())),
        drop_tail=float(falls[: max(1, round(len(falls) / TAIL_SHARE))].mean()),
        largest_step=float(np.max(np.abs(moves) / np.abs(y[:-1]))) if y[:-1].all() else math.nan,
        autocorrelation=neighbours_correlation(trend.residuals),
        n=n,
    )


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


# --- the noise of evaluating


@dataclass(frozen=True)
class NoiseFloor:
    """The SD of evaluating one checkpoint again, and how it is known."""

    sd: float
    way: Literal["repeats", "generations", "items", "second_differences", "declared"]
    df: float | None
    """Degrees of freedom behind it; None where it is not an estimate from a few values."""
    upper_bound: bool
    """From second differences: real swings are in it, so the excess over it is too small."""


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
        return NoiseFloor(float(data.std(ddof=1)), "repeats", len(data) - 1, upper_bound=False)
    if generations_NK is not None:
        table = checked_table(generations_NK, columns=2)
        variance = float(table.var(axis=1, ddof=1).sum()) / len(table) ** 2
        return NoiseFloor(math.sqrt(variance), "generations", None, upper_bound=False)
    if items is not None:
        scores = checked(items)
        error = float(scores.std()) / math.sqrt(len(scores))
        return NoiseFloor(error, "items", None, upper_bound=False)
    if curve is not None:
        sd = second_difference_sd(curve)
        df = second_difference_df(len(checked(curve)))
        return NoiseFloor(sd, "second_differences", df, upper_bound=True)
    if declared is not None:
        return NoiseFloor(declared, "declared", None, upper_bound=False)
    raise ValueError("no way to the noise floor: evaluate one checkpoint five times, or declare it")


# --- two curves


def end_gap(ours: ArrayLike, theirs: ArrayLike, *, level: float = 0.95) -> CurveGap:
    """The gap at the end of two curves over the same steps, with the noise of evaluating.

    That noise is the SD of the gap's second differences: whatever bends is in it, so it is an
    upper bound. Below 8 steps it is not known well enough.
    """
    gap = gaps(ours, theirs)
    n = len(gap)
    if n < 3:
        raise ValueError("two steps have no bend: give three or more that both curves have")
    last = end_of(gap)
    mean, df = float(last.mean()), second_difference_df(n)
    error = second_difference_sd(gap) / math.sqrt(len(last))
    warnings: tuple[Caution, ...] = ("noise_from_bends",)
    if n < FEWEST_STEPS:
        warnings = ("too_few_steps", *warnings)
    return CurveGap.of_error(mean, error, df, n, "second_differences", warnings, level=level)


@dataclass(frozen=True)
class SpreadRatio:
    """How much more one curve swings than another: a ratio of SDs."""

    ratio: Interval
    p: float
    log_ratio: Interval
    """What a verdict takes, with `log_margin`: below 0 is steadier."""
    log_ratio_90: Interval
    log_margin: float
    df: float


def spread_ratio(
    steps: ArrayLike,
    ours: ArrayLike,
    theirs: ArrayLike,
    *,
    of: Literal["detrended", "second_difference"] = "second_difference",
    level: float = 0.95,
) -> SpreadRatio:
    """The F interval of the ratio of SDs, ours to theirs, on the same steps.

    Assumes that no shock hits both curves and that residuals are independent and normal.
    """
    at, left = curve(steps, ours)
    right = left - gaps(left, theirs)
    n = len(left)
    if n < 4:
        raise ValueError(f"{n} evaluations say nothing about swings: give 4 or more")
    if of == "detrended":
        ours_sd, theirs_sd, df = line(at, left).sd, line(at, right).sd, float(n - 2)
    else:
        ours_sd, theirs_sd = second_difference_sd(left), second_difference_sd(right)
        df = second_difference_df(n)
    if min(ours_sd, theirs_sd) < 1e-12:
        raise ValueError(
            "a curve without any swing has no ratio: were its values rounded or copied?"
        )
    estimate = ours_sd / theirs_sd
    wide, narrow = (f_interval(estimate, df, at_level, n) for at_level in (level, 0.9))
    square = estimate**2
    p = min(1.0, 2 * float(min(fdtr(df, df, square), fdtrc(df, df, square))))
    return SpreadRatio(
        wide, p, logged(wide), logged(narrow), log_margin=math.log(STEADY_MARGIN), df=df
    )


def f_interval(ratio: float, df: float, level: float, n: int) -> Interval:
    """The interval of a ratio of two SDs with `df` each."""
    edge = math.sqrt(float(fdtri(df, df, (1 + level) / 2)))
    return Interval(ratio, ratio / edge, ratio * edge, level, n)


def logged(ratio: Interval) -> Interval:
    """The natural logarithm of a ratio and its ends."""
    return Interval(
        math.log(ratio.estimate), math.log(ratio.low), math.log(ratio.high), ratio.level, ratio.n
    )


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
    gap = gaps(ours, theirs)
    left = checked(ours)
    right = left - gap
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
