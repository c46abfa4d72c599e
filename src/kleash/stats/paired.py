"""Two arms on the same items: sign flips, McNemar, clusters, several generations per item.

Tests and intervals for one pair of arms. Scores of several shots are averaged per item before they
come here: n items stay n, however often each was asked.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from kleash.stats.intervals import (
    Floats,
    Width,
    gaps,
)
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


def by_cluster(gap: Floats, clusters: Sequence[Hashable]) -> tuple[Floats, Floats]:
    """The sum of each cluster's differences, and how many they are."""
    names: dict[Hashable, int] = {}
    member = np.array([names.setdefault(name, len(names)) for name in clusters], dtype=np.intp)
    if len(member) != len(gap):
        raise ValueError(f"need a cluster for each of {len(gap)} items: got {len(member)}")
    sums = np.bincount(member, weights=gap).astype(np.float64)
    return sums, np.bincount(member).astype(np.float64)


def clustered_width(gap: Floats, clusters: Sequence[Hashable], *, span: float = 1.0) -> Width:
    """What `clustered_difference` says of the mean, at every level."""
    if abs(gap).max() > span:
        raise ValueError(f"a difference of {abs(gap).max()} is beyond the span {span}")
    sums, sizes = by_cluster(gap, clusters)
    size = len(gap) / len(sums)
    shown_sums = np.append(sums, [size * span, -size * span])
    shown_sizes = np.append(sizes, [size, size])
    m, c = shown_sizes.sum(), len(shown_sums)
    centre = float(shown_sums.sum() / m)
    # c / (c - 1): with clusters of one this is the usual SD with m - 1.
    squares = float(((shown_sums - centre * shown_sizes) ** 2).sum()) * c / (c - 1)
    return Width(centre, ((math.sqrt(squares) / m, c - 1),))
