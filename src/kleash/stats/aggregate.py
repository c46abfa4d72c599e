"""One number for many tasks: interquartile mean, stratified bootstrap, chance of improvement.

After Agarwal and others, *Deep RL at the edge of the statistical precipice* (2108.13264). Runs are
replicates and tasks are fixed. In names, S is seeds and T tasks.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from kleash.stats.intervals import Floats, Interval, checked, checked_table
from kleash.stats.resampling import percentile_interval


def iqm(values: ArrayLike) -> float:
    """The mean of the middle half: a quarter, rounded down, is left out at each end."""
    data = np.sort(np.asarray(values, dtype=np.float64).ravel())
    cut = len(checked(data)) // 4
    return float(data[cut : len(data) - cut].mean())


def stratified_bootstrap(
    scores_ST: ArrayLike,
    rng: np.random.Generator,
    *,
    of: Callable[[Floats], float] = iqm,
    level: float = 0.95,
    draws: int = 2_000,
) -> Interval:
    """The interval of a summary of all runs and tasks, runs drawn again within each task."""
    scores = checked_table(scores_ST, rows=2)
    seeds, tasks = scores.shape
    column = np.arange(tasks)
    drawn = np.array(
        [of(scores[rng.integers(0, seeds, size=(seeds, tasks)), column]) for _ in range(draws)]
    )
    return percentile_interval(of(scores), drawn, level=level, n=seeds)


def probability_of_improvement(
    ours_ST: ArrayLike,
    theirs_ST: ArrayLike,
    rng: np.random.Generator,
    *,
    level: float = 0.95,
    draws: int = 2_000,
) -> Interval:
    """How likely a run of ours beats one of theirs on a task, averaged over tasks; ties half."""
    left, right = checked_table(ours_ST, rows=2), checked_table(theirs_ST, rows=2)
    if left.shape[1] != right.shape[1]:
        raise ValueError(f"need the same tasks on both sides: {left.shape} {right.shape}")
    # Which runs beat which does not change when runs are drawn again, only how often each is drawn.
    wins = (left[:, None] > right).astype(np.float64) + 0.5 * (left[:, None] == right)
    drawn = np.zeros(draws)
    for task in range(left.shape[1]):
        ours = rng.multinomial(len(left), np.full(len(left), 1 / len(left)), size=draws)
        theirs = rng.multinomial(len(right), np.full(len(right), 1 / len(right)), size=draws)
        drawn += np.einsum("ba,ac,bc->b", ours / len(left), wins[:, :, task], theirs / len(right))
    drawn /= left.shape[1]
    seeds = min(len(left), len(right))
    return percentile_interval(float(wins.mean()), drawn, level=level, n=seeds)
