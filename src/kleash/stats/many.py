"""Tests of many at once: sign flips of one pair, Holm for many p.

Scores of several shots are averaged per item before they come
here: n items stay n, however often each was asked.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from kleash.stats.intervals import Floats, checked, gaps
from kleash.stats.special import ndtr

EXACT_UP_TO = 30  # differing pairs; 2**15 sums for each half
FLIPPED_UP_TO = 2_000  # differing sizes; beyond, the sum of flips is normal to any digit shown


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
    """The sign-flip test: exact up to 30 differing pairs, by random flips beyond.

    With more than 2,000 different sizes of gap the flips' normal limit is used.
    """
    gap = gaps(ours, theirs)
    differing: Floats = abs(gap[gap != 0])
    k = len(differing)
    # The allowance counts equal sums as equal whatever order they were added in.
    bound = abs(float(gap.sum())) - 1e-9 * float(differing.sum())
    if k <= EXACT_UP_TO:
        p = as_far_exactly(differing, bound)
        return FlipTest(p, k, len(gap), exact=True)
    values, counts = np.unique(differing, return_counts=True)
    if len(values) > FLIPPED_UP_TO:
        p = float(2 * ndtr(-bound / math.sqrt(float((differing**2).sum()))))
    else:
        sums = (2 * rng.binomial(counts, 0.5, size=(draws, len(counts))) - counts) @ values
        # The arrangement seen is one of those possible, so p is never 0.
        p = (1 + int((np.abs(sums) >= bound).sum())) / (1 + draws)
    return FlipTest(p, k, len(gap), exact=False)


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
