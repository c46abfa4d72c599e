"""Faster? Steps or seconds to a common threshold, and the cost of a step.

A threshold is fixed beforehand and the same for both arms; "its own best reached sooner" is not
faster. In names, N is items and K evaluations.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from kleash.stats.curves import curve
from kleash.stats.intervals import Errors, Floats, Interval, checked, checked_table
from kleash.stats.replicates import SeedGap, paired_seeds, seed_gap
from kleash.stats.resampling import block_interval, drawn_means, moving_blocks, percentile_interval

FEWEST_TIMINGS = 20
ITEM_DRAWS = 200  # for an SD
DRAWN_FROM = 2_000  # steps of a run
ENOUGH = 100  # values of a draw that are paired with each of the other side


@dataclass(frozen=True)
class Speed:
    """How soon two curves reach a threshold, in the unit of the positions given."""

    threshold: float
    horizon: float
    """The last position both curves have; who has not arrived by then is counted there."""
    ours: float
    theirs: float
    reached: tuple[bool, bool]
    gap: Interval | None
    """`ours - theirs`, restricted to the horizon, over items drawn again; None without items."""


def arrival(at: ArrayLike, values: ArrayLike, threshold: float) -> float | None:
    """The first position whose value is the threshold or better; None if there is none."""
    positions, y = curve(at, values)
    there = np.flatnonzero(y >= threshold)
    return float(positions[there[0]]) if len(there) else None


def speed(
    ours_at: ArrayLike,
    ours: ArrayLike,
    theirs_at: ArrayLike,
    theirs: ArrayLike,
    threshold: float,
) -> Speed:
    """From two curves alone. Positions are steps or seconds: the answer is in the same unit."""
    (left_at, left), (right_at, right) = curve(ours_at, ours), curve(theirs_at, theirs)
    horizon = float(min(left_at[-1], right_at[-1]))
    times, reached = [], []
    for at, y in ((left_at, left), (right_at, right)):
        time = arrival(at, y, threshold)
        reached.append(time is not None and time <= horizon)
        times.append(time if time is not None and time <= horizon else horizon)
    return Speed(threshold, horizon, times[0], times[1], (reached[0], reached[1]), None)


def speed_by_items(
    at: tuple[ArrayLike, ArrayLike],
    ours_NK: ArrayLike,
    theirs_NK: ArrayLike,
    threshold: float,
    rng: np.random.Generator,
    *,
    level: float = 0.95,
    draws: int = 2_000,
) -> Speed:
    """From scores of the same items, drawn again; `at` holds our positions and theirs.

    The gap's estimate is the restricted mean, the mean over draws of min(arrival, horizon).
    """
    left, right = checked_table(ours_NK, rows=2), checked_table(theirs_NK, rows=2)
    if len(left) != len(right):
        raise ValueError(f"need the same items on both sides: {left.shape} {right.shape}")
    seen = speed(at[0], left.mean(axis=0), at[1], right.mean(axis=0), threshold)
    curves = drawn_means(np.hstack([left, right]), draws, rng)
    both = np.split(curves, [left.shape[1]], axis=1)
    times = [
        restricted(checked(position), drawn_BK, threshold, seen.horizon)
        for position, drawn_BK in zip(at, both, strict=True)
    ]
    drawn = times[0] - times[1]
    gap = percentile_interval(float(drawn.mean()), drawn, level=level, n=len(left))
    return Speed(threshold, seen.horizon, seen.ours, seen.theirs, seen.reached, gap)


@dataclass(frozen=True)
class SeedSpeed:
    """How soon runs of two arms reach a threshold, paired by seed."""

    threshold: float
    ours: float
    theirs: float
    """Mean arrivals; who has not arrived by the last position is counted there."""
    late: int
    """Runs that did not arrive."""
    gap: SeedGap
    """Ours less theirs; with the scores of items, for items like these."""


def speed_over_seeds(
    at: ArrayLike,
    curves: tuple[Floats, Floats],
    threshold: float,
    rng: np.random.Generator,
    *,
    items: tuple[Floats, Floats] | None = None,
    level: float = 0.95,
) -> SeedSpeed:
    """From curves [seed, evaluation] of both arms at the same positions, t over seeds.

    An arrival is known to one evaluation only, so gaps spread by no less than two such roundings.
    `items` are the scores behind the curves, [seed, item, evaluation]: drawn again under all seeds
    at once, they show how far items move the gap.
    """
    positions = checked(at)
    last = float(positions[-1])
    times = [restricted(positions, each, threshold, last) for each in curves]
    alone = paired_seeds(times[0], times[1], level=level)
    seeds = len(times[0])
    rounding = float(np.diff(positions).max()) / math.sqrt(6 * seeds)
    errors: Errors = ((max(alone.errors[0][0], rounding), alone.df),)
    if items is not None:
        sides = [_drawn_arrivals(positions, each, threshold, rng) for each in items]
        errors = (*errors, (float((sides[0] - sides[1]).std(ddof=1)), items[0].shape[1] - 1.0))
    gap = seed_gap(alone.interval.estimate, errors, alone.sd, level=level, n=seeds)
    late = sum(int((each < threshold - 1e-12).all(axis=1).sum()) for each in curves)
    return SeedSpeed(threshold, float(times[0].mean()), float(times[1].mean()), late, gap)


def _drawn_arrivals(
    at: Floats, items_SNK: Floats, threshold: float, rng: np.random.Generator
) -> Floats:
    """Mean arrivals over seeds, items drawn again."""
    seeds, items, evaluations = items_SNK.shape
    flat = np.moveaxis(items_SNK, 1, 0).reshape(items, -1)
    curves = drawn_means(flat, ITEM_DRAWS, rng).reshape(-1, evaluations)
    times = restricted(at, curves, threshold, float(at[-1]))
    means: Floats = times.reshape(-1, seeds).mean(axis=1)
    return means


def restricted(at: Floats, curves_BK: Floats, threshold: float, horizon: float) -> Floats:
    """Every drawn curve's arrival, or the horizon if that comes first."""
    there = curves_BK >= threshold - 1e-12
    first = np.where(there.any(axis=1), at[there.argmax(axis=1)], np.inf)
    times: Floats = np.minimum(first, horizon)
    return times


@dataclass(frozen=True)
class Timing:
    """The cost of a step: median and quartiles, after the warm-up was dropped."""

    median: float
    lower: float
    upper: float
    dropped: int
    n: int


@dataclass(frozen=True)
class Efficiency:
    """What a step costs in two runs. Only means something on the same hardware."""

    ours: Timing
    theirs: Timing
    ratio: Interval
    """Of the medians, ours to theirs, by moving blocks."""
    shift: Interval
    """Hodges and Lehmann's: the median of all differences ours less theirs, by moving blocks."""
    enough: bool
    """Whether both have 20 steps or more after the warm-up."""


def efficiency(
    ours: ArrayLike,
    theirs: ArrayLike,
    rng: np.random.Generator,
    *,
    warmup: int = 5,
    level: float = 0.95,
    draws: int = 1_000,
) -> Efficiency:
    """Compare two runs' times (or throughputs) per step; neighbours in time are drawn together."""
    sides = []
    for side in (ours, theirs):
        data = checked(side)[warmup:]
        if len(data) < 2:
            raise ValueError(f"after {warmup} warm-up steps {len(data)} are left: log more steps")
        if data.min() <= 0:
            raise ValueError(f"a step that took {data.min()} was not timed: drop it first")
        sides.append(data)
    left, right = sides
    n = min(len(left), len(right))
    ratio = float(np.median(left) / np.median(right))
    ratios, shifts = drawn_again(left, right, draws, rng)
    return Efficiency(
        ours=timing(left, warmup),
        theirs=timing(right, warmup),
        ratio=block_interval(ratio, ratios, level=level, n=n),
        shift=block_interval(hodges_lehmann(left, right), shifts, level=level, n=n),
        enough=n >= FEWEST_TIMINGS,
    )


def timing(data: Floats, dropped: int) -> Timing:
    """Median and quartiles."""
    lower, median, upper = np.quantile(data, [0.25, 0.5, 0.75])
    return Timing(float(median), float(lower), float(upper), dropped, len(data))


def drawn_again(
    left: Floats, right: Floats, draws: int, rng: np.random.Generator
) -> tuple[Floats, Floats]:
    """Ratios of medians, and shifts, of series made of moving blocks.

    Long series are thinned to evenly spaced steps first, which makes the intervals wider.
    """
    left, right = left[:: -(-len(left) // DRAWN_FROM)], right[:: -(-len(right) // DRAWN_FROM)]
    ours_BT = left[moving_blocks(len(left), draws, rng)]
    theirs_BT = right[moving_blocks(len(right), draws, rng)]
    ratios = np.median(ours_BT, axis=1) / np.median(theirs_BT, axis=1)
    sides = zip(thinned(ours_BT), thinned(theirs_BT), strict=True)
    shifts = np.array([np.median(np.subtract.outer(ours, theirs)) for ours, theirs in sides])
    return ratios, shifts


def thinned(drawn_BT: Floats) -> Floats:
    """Each draw, or if it is long the middles of as many equal shares of it as are enough."""
    if drawn_BT.shape[1] <= ENOUGH:
        return drawn_BT
    shares: Floats = np.quantile(drawn_BT, (np.arange(ENOUGH) + 0.5) / ENOUGH, axis=1).T
    return shares


def hodges_lehmann(ours: ArrayLike, theirs: ArrayLike) -> float:
    """The median of all differences `ours - theirs`, without listing them.

    The middle is closed in on by counting pairs below a guess; both middle ones if they are even.
    """
    left, right = np.sort(checked(ours)), np.sort(checked(theirs))
    total = len(left) * len(right)
    middle = [ranked_difference(left, right, rank) for rank in ((total - 1) // 2, total // 2)]
    return (middle[0] + middle[1]) / 2


def ranked_difference(left: Floats, right: Floats, rank: int) -> float:
    """The difference with `rank` others below it, to the last digits of a float."""
    low, high = float(left[0] - right[-1]), float(left[-1] - right[0])
    while True:
        guess = (low + high) / 2
        if not low < guess < high:
            return high
        # left - right <= guess  ⇔  right >= left - guess
        below = len(left) * len(right) - int(np.searchsorted(right, left - guess).sum())
        if below > rank:
            high = guess
        else:
            low = guess
