"""More than two arms: sign-flip max-T over all pairs, Holm, and the arms that may be the best.

Everything here pays for looking at many pairs at once. In names, M is arms and N items.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kleash.stats.intervals import Floats, Interval, checked, checked_table, t_interval
from kleash.stats.resampling import drawn_means

AT_ONCE = 2_000_000  # flipped statistics held in memory


def holm(p_values: ArrayLike) -> Floats:
    """The p-values, adjusted so that any below alpha may be called so (Holm 1979)."""
    p = checked(p_values)
    if p.min() < 0 or p.max() > 1:
        raise ValueError(f"p-values lie between 0 and 1: got {p.min()} to {p.max()}")
    order = np.argsort(p, kind="stable")
    steps = np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1))
    adjusted = np.empty_like(p)
    adjusted[order] = np.minimum(1.0, steps)
    return adjusted


@dataclass(frozen=True)
class PairGap:
    """The gap of two of M arms, its p alone, and its p when every pair is looked at."""

    ours: int
    theirs: int
    interval: Interval
    """All pairs' intervals cover together in `level` of studies."""
    p: float
    adjusted_p: float
    k: int
    n: int


def max_t(
    scores_MN: ArrayLike,
    rng: np.random.Generator,
    *,
    baseline: int | None = None,
    draws: int = 10_000,
    level: float = 0.95,
    span: float = 1.0,
) -> tuple[PairGap, ...]:
    """All pairs of arms (or all against `baseline`) by sign flips of whole items.

    The statistic of a pair is Σd/√Σd²; flipping an item flips it for every pair, so the largest
    keeps the pairs' dependence. Adjusted p by steps down (Westfall and Young 1993, algorithm 2.8).
    """
    scores = checked_table(scores_MN, rows=2)
    m, n = scores.shape
    first, second = pairs(m, baseline)
    # Differences stay; sums of flipped scores become as small as they can be.
    centred = scores - scores.mean(axis=0)
    gap_PN = (scores[first] - scores[second]).round(12)
    scale = np.sqrt((gap_PN**2).sum(axis=1))
    scale[scale == 0] = 1.0
    seen = np.abs(gap_PN.sum(axis=1)) / scale

    order = np.argsort(seen, kind="stable")
    alone, together, largest = np.zeros(len(seen)), np.zeros(len(seen)), []
    for flipped_BM in flipped_sums(centred, draws, rng, at_once=AT_ONCE // len(seen)):
        drawn = np.abs(flipped_BM[:, first] - flipped_BM[:, second]) / scale
        alone += (drawn >= seen - 1e-9).sum(axis=0)
        climbing = np.maximum.accumulate(drawn[:, order], axis=1)
        together[order] += (climbing >= seen[order] - 1e-9).sum(axis=0)
        largest.append(climbing[:, -1])

    falling = order[::-1]
    adjusted = np.empty(len(seen))
    adjusted[falling] = np.maximum.accumulate((1 + together[falling]) / (1 + draws))
    critical = float(np.quantile(np.concatenate(largest), level, method="higher"))
    return tuple(
        PairGap(
            ours=int(first[pair]),
            theirs=int(second[pair]),
            interval=joint_interval(gap_PN[pair], critical, level=level, span=span),
            p=float((1 + alone[pair]) / (1 + draws)),
            adjusted_p=float(adjusted[pair]),
            k=int((gap_PN[pair] != 0).sum()),
            n=n,
        )
        for pair in range(len(seen))
    )


def pairs(m: int, baseline: int | None) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Every pair of m arms, or every other arm against the baseline."""
    if baseline is None:
        first, second = np.triu_indices(m, 1)
        return first, second
    if not 0 <= baseline < m:
        raise ValueError(f"the baseline is one of {m} arms, counted from 0: got {baseline}")
    others = np.delete(np.arange(m), baseline)
    return others, np.full(m - 1, baseline)


def flipped_sums(
    scores_MN: Floats, draws: int, rng: np.random.Generator, *, at_once: int
) -> Iterator[Floats]:
    """Each arm's sum with items' signs flipped at random, in blocks [some draws, arms]."""
    at_once = max(1, at_once)
    for start in range(0, draws, at_once):
        size = (min(at_once, draws - start), scores_MN.shape[1])
        signs = 2.0 * rng.integers(0, 2, size=size, dtype=np.int8) - 1
        yield signs @ scores_MN.T


def joint_interval(gap: Floats, critical: float, *, level: float, span: float) -> Interval:
    """The adjusted interval of one pair, as wide as the largest of all pairs asks for."""
    shown = np.append(gap, (-span, span))
    m = len(shown)
    # Σd/√Σd² = c is the same as a t of c·√((m - 1)/(m - c²)); and never less than for one pair.
    wide = critical * math.sqrt((m - 1) / max(1e-9, m - critical**2))
    error = float(shown.std(ddof=1)) / math.sqrt(m)
    single = t_interval(float(shown.mean()), error, m - 1, level=level, n=len(gap))
    reach = max(wide * error, (single.high - single.low) / 2)
    centre = float(shown.mean())
    return replace(single, estimate=float(gap.mean()), low=centre - reach, high=centre + reach)


@dataclass(frozen=True)
class Contenders:
    """The arms that may be the best: the best is among them in `level` of studies."""

    arms: tuple[int, ...]
    p: tuple[float, ...]
    """For every arm, the level below which it would leave the set."""
    level: float
    n: int


def contenders(
    scores_MN: ArrayLike, rng: np.random.Generator, *, level: float = 0.95, draws: int = 2_000
) -> Contenders:
    """The model confidence set (Hansen, Lunde and Nason 2011, T_max), items resampled singly."""
    scores = checked_table(scores_MN, columns=2)
    m, n = scores.shape
    means_M = scores.mean(axis=1)
    drawn_BM = drawn_means(scores.T, draws, rng) - means_M
    left = list(range(m))
    p_values, reached = [1.0] * m, 0.0
    while len(left) > 1:
        behind = means_M[left].mean() - means_M[left]
        noise_BM = drawn_BM[:, left].mean(axis=1, keepdims=True) - drawn_BM[:, left]
        error = np.sqrt((noise_BM**2).mean(axis=0))
        error[error < 1e-12] = np.inf
        worst = int((behind / error).argmax())
        share = float(((noise_BM / error).max(axis=1) >= (behind / error)[worst] - 1e-12).mean())
        reached = max(reached, share)
        p_values[left.pop(worst)] = reached
    arms = tuple(arm for arm in range(m) if p_values[arm] > 1 - level)
    return Contenders(arms, tuple(p_values), level, n)
