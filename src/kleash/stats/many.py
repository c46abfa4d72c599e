"""More than two arms: Holm, and the arms that may be the best.

Everything here pays for looking at many pairs at once. In names, M is arms and N items.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from kleash.stats.intervals import Floats, checked, checked_table
from kleash.stats.resampling import drawn_means


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
