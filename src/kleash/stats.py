"""Statistics for comparing runs: arrays and a generator in, a record out.

What may be concluded from a record (levels of claim, verdicts, margins) is not decided here. In
names, N is items and K the steps among which a best one is chosen.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import stdtrit

Floats = NDArray[np.float64]

EXACT_UP_TO = 30  # differing pairs; 2**15 sums for each half
FEWEST_EVALUATIONS = 25
NARROWEST_WINDOW = 5


@dataclass(frozen=True)
class Interval:
    """An estimate from n values, and the range that covers the truth in `level` of studies."""

    estimate: float
    low: float
    high: float
    level: float
    n: int


def mean_interval(
    values: ArrayLike, *, level: float = 0.95, bounds: tuple[float, float] | None = None
) -> Interval:
    """The t interval of a mean; with `bounds`, adjusted for values that cannot leave them.

    Adjusted means one pseudo-value at each bound (after Agresti and Coull). Without it, values of
    which few differ give intervals far too narrow; the estimate stays the mean of the values.
    """
    data = checked(values)
    shown = data
    if bounds is not None:
        if data.min() < bounds[0] or data.max() > bounds[1]:
            raise ValueError(f"values from {data.min()} to {data.max()} leave the bounds {bounds}")
        shown = np.append(data, bounds)
    m = len(shown)
    if m < 2:
        raise ValueError("one value has no spread: give two or more, or the bounds of the values")
    reach = float(stdtrit(m - 1, (1 + level) / 2)) * float(shown.std(ddof=1)) / math.sqrt(m)
    centre = float(shown.mean())
    return Interval(float(data.mean()), centre - reach, centre + reach, level, len(data))


def paired_difference(
    ours: ArrayLike, theirs: ArrayLike, *, level: float = 0.95, span: float = 1.0
) -> Interval:
    """Mean of `ours - theirs` over the same items: the adjusted t interval, also if all agree.

    `span` is the largest difference a pair can have: 1 for scores from 0 to 1.
    """
    return mean_interval(gaps(ours, theirs), level=level, bounds=(-span, span))


def gaps(ours: ArrayLike, theirs: ArrayLike) -> Floats:
    """`ours - theirs`, one for each item."""
    left, right = checked(ours), checked(theirs)
    if left.shape != right.shape:
        raise ValueError(f"need the same items on both sides: {left.shape} {right.shape}")
    return left - right


def checked(values: ArrayLike) -> Floats:
    """The values as a flat array with something, and only finite numbers, in it."""
    data = np.asarray(values, dtype=np.float64)
    if data.ndim != 1 or data.size == 0:
        raise ValueError(f"need a flat list of one value or more: got shape {data.shape}")
    if not np.isfinite(data).all():
        raise ValueError(f"{(~np.isfinite(data)).sum()} of {data.size} values are not finite")
    return data


@dataclass(frozen=True)
class FlipTest:
    """Two-sided p of "which side won an item is a toss-up", from k differing pairs of n."""

    p: float
    k: int
    n: int
    exact: bool


def sign_flip(
    ours: ArrayLike, theirs: ArrayLike, rng: np.random.Generator, *, draws: int = 10_000
) -> FlipTest:
    """The sign-flip test: exact up to 30 differing pairs, by random flips beyond."""
    # Scores such as .9 - .6 and .3 are one lattice step, but not one float.
    gap: Floats = gaps(ours, theirs).round(12)
    differing: Floats = abs(gap[gap != 0])
    k = len(differing)
    # The allowance counts equal sums as equal whatever order they were added in.
    bound = abs(float(gap.sum())) - 1e-9 * float(differing.sum())
    if k <= EXACT_UP_TO:
        p = as_far_exactly(differing, bound)
    else:
        values, counts = np.unique(differing, return_counts=True)
        sums = np.array([(2 * rng.binomial(counts, 0.5) - counts) @ values for _ in range(draws)])
        # The arrangement seen is one of those possible, so p is never 0.
        p = (1 + int((np.abs(sums) >= bound).sum())) / (1 + draws)
    return FlipTest(p, k, len(gap), exact=k <= EXACT_UP_TO)


def as_far_exactly(sizes: Floats, bound: float) -> float:
    """The share of all 2**k choices of sign whose sum is at least `bound` away from 0.

    Sums of one half are met with sorted sums of the other. It gives what a dynamic programme over
    the scores' lattice gives, and needs no lattice (averages over shots, probabilities).
    """
    if bound <= 0:
        return 1.0
    half = len(sizes) // 2
    left, right = signed_sums(sizes[:half]), np.sort(signed_sums(sizes[half:]))
    above = len(right) * len(left) - np.searchsorted(right, bound - left).sum()
    return float(2 * above / 2.0 ** len(sizes))


def signed_sums(sizes: Floats) -> Floats:
    """The sums for every choice of signs."""
    sums = np.zeros(1)
    for size in sizes:
        sums = np.concatenate([sums - size, sums + size])
    return sums


@dataclass(frozen=True)
class Best:
    """The best of K steps on n items, and what it is worth once the choosing is paid for."""

    step: int
    """Which of the steps, counted from 0; among equals the earliest."""
    raw: float
    """Its mean on the items that chose it: too high."""
    corrected: float
    """The mean of chosen steps on items that had no say in choosing them."""
    again: float
    """The share of draws in which the same step was best."""
    n: int


def out_of_bag_best(scores_NK: ArrayLike, rng: np.random.Generator, *, draws: int = 1000) -> Best:
    """The best step without its luck: chosen on resampled items, read on those left out (BBC)."""
    scores = np.asarray(scores_NK, dtype=np.float64)
    if scores.ndim != 2 or scores.shape[0] < 2 or scores.shape[1] < 1:
        raise ValueError(f"need a table of 2 or more items by steps: got shape {scores.shape}")
    checked(scores.ravel())
    n = len(scores)
    means = scores.mean(axis=0)
    best = int(means.argmax())
    drawn_BN = rng.multinomial(n, np.full(n, 1 / n), size=draws).astype(np.float64)
    left_out_BN = (drawn_BN == 0).astype(np.float64)
    # With few items a draw may hold them all; it has nothing to be read on.
    usable = left_out_BN.any(axis=1)
    chosen_B = (drawn_BN @ scores).argmax(axis=1)[usable]
    sums_BK = (left_out_BN @ scores)[usable]
    read_B = sums_BK[np.arange(len(chosen_B)), chosen_B] / left_out_BN.sum(axis=1)[usable]
    if not len(read_B):
        raise ValueError(f"{draws} draws of {n} items left none out: draw more often")
    return Best(
        step=best,
        raw=float(means[best]),
        corrected=float(read_B.mean()),
        again=float((chosen_B == best).mean()),
        n=n,
    )


@dataclass(frozen=True)
class StopDecision:
    """Whether training could have stopped, when, and which evaluation's checkpoint to keep."""

    verdict: Literal["stop", "go on", "too few"]
    stop_after: int | None
    """How many evaluations had been seen when the rule stopped."""
    checkpoint: int | None
    """The evaluation, counted from 0, at the centre of the best window."""
    window: int
    patience: int
    n: int


def early_stop(
    values: Sequence[float] | Floats,
    noise_floor: float,
    margin: float,
    *,
    planned: int | None = None,
) -> StopDecision:
    """Stop once the mean of the last w evaluations has not improved for 2w of them.

    `noise_floor` is the SD of evaluating one checkpoint again, `margin` the improvement worth
    having; give `planned` evaluations while training, so that w stays the same as values arrive.
    """
    if noise_floor < 0 or margin <= 0:
        raise ValueError(
            f"the margin must be above 0 and the noise not below: {margin=} {noise_floor=}"
        )
    curve = checked(values)
    n = len(curve)
    if n < FEWEST_EVALUATIONS:
        return StopDecision("too few", None, None, window=0, patience=0, n=n)
    # So wide that twice a window's standard error is within the margin; 1e-9 forgives rounding.
    wanted = math.ceil((2 * noise_floor / margin) ** 2 - 1e-9)
    window = min(max(NARROWEST_WINDOW, wanted), max(n, planned or n) // 5)
    patience = 2 * window
    means = np.lib.stride_tricks.sliding_window_view(curve, window).mean(axis=1)
    step = 0.5 * noise_floor / math.sqrt(window)

    best, best_after, stopped = float(means[0]), window, None
    for seen, mean in enumerate(means[1:], start=window + 1):
        if mean > best + step:
            best, best_after = float(mean), seen
        # The first window ends after w evaluations, so this is never before 3w of them.
        elif seen - best_after >= patience and seen >= FEWEST_EVALUATIONS:
            stopped = seen
            break
    return StopDecision(
        verdict="go on" if stopped is None else "stop",
        stop_after=stopped,
        checkpoint=best_after - window + (window - 1) // 2,
        window=window,
        patience=patience,
        n=n,
    )
