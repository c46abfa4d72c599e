"""The best step: its worth once the choosing is paid for, its ties, and when to stop looking.

The highest of K noisy points is too high. Never compare best with best: compare the same step, a
fixed window, or corrected bests. In names, N is items and K the steps among which one is chosen.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kleash.stats.curves import line
from kleash.stats.intervals import HELD, Floats, checked, checked_table, resample
from kleash.stats.special import ndtr

FEWEST_EVALUATIONS = 25
NARROWEST_WINDOW = 5


@cache
def normal_quadrature() -> tuple[Floats, Floats]:
    """Nodes and weights for means over a standard normal; the first call finds them."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(100)
    return nodes, weights / weights.sum()


@dataclass(frozen=True)
class Best:
    """The best of K steps, and what it is worth once the choosing is paid for."""

    step: int
    """Which of the steps, counted from 0; among equals the earliest."""
    raw: float
    """Its mean on the items that chose it, or on the curve: too high."""
    corrected: float
    """On items that had no say in choosing, or without the luck that such a curve has."""
    again: float
    """The share of draws in which the same step was best."""
    ties: tuple[int, ...]
    """The steps not distinguishable from it, itself among them."""
    n: int
    """Items, or of a curve its steps."""


def out_of_bag_best(scores_NK: ArrayLike, rng: np.random.Generator, *, draws: int = 1000) -> Best:
    """The best step without its luck: chosen on resampled items, read on those left out (BBC)."""
    scores = checked_table(scores_NK, rows=2)
    n = len(scores)
    means = scores.mean(axis=0)
    best = int(means.argmax())
    some = max(1, HELD // n)
    parts = [
        _chosen_and_read(scores, min(some, draws - first), rng)
        for first in range(0, max(1, draws), some)
    ]
    chosen_B, read_B = map(np.concatenate, zip(*parts, strict=True))
    if not len(read_B):
        raise ValueError(f"{draws} draws of {n} items left none out: draw more often")
    return Best(
        step=best,
        raw=float(means[best]),
        corrected=float(read_B.mean()),
        again=float((chosen_B == best).mean()),
        ties=tied_by_items(scores),
        n=n,
    )


def _chosen_and_read(
    scores_NK: Floats, draws: int, rng: np.random.Generator
) -> tuple[NDArray[np.intp], Floats]:
    """For each draw the step that it chooses, and that step's mean on the items left out."""
    # Whole counts, so that steps that tie do so to the bit, and the earliest is chosen.
    drawn_BN = np.rint(len(scores_NK) * resample(len(scores_NK), draws, rng))
    left_out_BN = (drawn_BN == 0).astype(np.float64)
    # With few items a draw may hold them all; it has nothing to be read on.
    usable = left_out_BN.any(axis=1)
    chosen_B = (drawn_BN @ scores_NK).argmax(axis=1)[usable]
    sums_BK = (left_out_BN @ scores_NK)[usable]
    read_B = sums_BK[np.arange(len(chosen_B)), chosen_B] / left_out_BN.sum(axis=1)[usable]
    return chosen_B, read_B


def tie_distance(k: int) -> float:
    """How far below the highest of k noisy points the truly best may lie, in their SDs.

    One-sided Dunnett with k - 1 comparisons and known SD, times √2: the c that solves
    ∫ φ(x)·Φ(x + c)^(k - 1) dx = .95. 3.37 for 9 points.
    """
    if k < 1:
        raise ValueError(f"there is no best of {k} steps")
    if k == 1:
        return 0.0
    nodes, weights = normal_quadrature()
    low, high = 0.0, 20.0
    while high - low > 1e-12:
        guess = (low + high) / 2
        covered = float(weights @ ndtr(nodes + guess) ** (k - 1))
        low, high = (guess, high) if covered < 0.95 else (low, guess)
    return high


def tied_steps(values: ArrayLike, noise_floor: float) -> tuple[int, ...]:
    """The steps less than `tie_distance` noise floors below the highest, counted from 0.

    The truly best step is among them in 95 % of curves.
    """
    y = checked(values)
    behind = y.max() - y
    near = behind < tie_distance(len(y)) * noise_floor
    return tuple(np.flatnonzero(near | (behind == 0)).tolist())


def tied_by_items(scores_NK: ArrayLike) -> tuple[int, ...]:
    """The steps not distinguishable from the best on the items, each by its paired difference."""
    scores = checked_table(scores_NK, rows=2)
    n, k = scores.shape
    means = scores.mean(axis=0)
    best = int(means.argmax())
    behind = scores[:, [best]] - scores
    error = behind.std(axis=0, ddof=1) / math.sqrt(n)
    reach = tie_distance(k) / math.sqrt(2) * error
    gap = behind.mean(axis=0)
    return tuple(np.flatnonzero((gap < reach) | (gap <= 1e-12)).tolist())


def best_of_curve(
    values: ArrayLike,
    noise_floor: float,
    rng: np.random.Generator,
    *,
    steps: ArrayLike | None = None,
    draws: int = 20_000,
) -> Best:
    """The best of aggregates: curves drawn again around the empirical-Bayes curve.

    μ = trend + λ·residual, λ = max(0, s² - σ_f²)/s²; the optimism is what the highest point of a
    draw shows beyond its own μ, on average.
    """
    y = checked(values)
    if noise_floor <= 0:
        raise ValueError(f"a noise floor of {noise_floor} makes every point true: set it > 0")
    centre, _ = shrunk_curve(np.arange(len(y)) if steps is None else steps, y, noise_floor)
    drawn_BK = centre + noise_floor * rng.normal(size=(draws, len(y)))
    chosen_B = drawn_BK.argmax(axis=1)
    optimism = float((drawn_BK.max(axis=1) - centre[chosen_B]).mean())
    best = int(y.argmax())
    return Best(
        step=best,
        raw=float(y[best]),
        corrected=float(y[best]) - optimism,
        again=float((chosen_B == best).mean()),
        ties=tied_steps(y, noise_floor),
        n=len(y),
    )


def shrunk_curve(steps: ArrayLike, values: ArrayLike, noise_floor: float) -> tuple[Floats, float]:
    """The empirical-Bayes curve about a straight trend, and the λ that shrank its residuals."""
    found = line(steps, values)
    kept = 0.0 if found.sd == 0 else max(0.0, found.sd**2 - noise_floor**2) / found.sd**2
    return found.fitted + kept * found.residuals, kept


# --- early stopping


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
