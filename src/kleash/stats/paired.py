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
    Interval,
    Width,
    checked,
    checked_table,
    gaps,
    paired_difference,
)
from kleash.stats.special import bdtr, ndtr

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


@dataclass(frozen=True)
class McNemar:
    """Exact two-sided p from the items only one side got right, of n."""

    p: float
    only_ours: int
    only_theirs: int
    n: int


def mcnemar(ours: ArrayLike, theirs: ArrayLike) -> McNemar:
    """The exact McNemar test for scores that are 0 or 1."""
    gap = gaps(ours, theirs)
    scores = np.concatenate([checked(ours), checked(theirs)])
    if not np.isin(scores, (0, 1)).all():
        raise ValueError("McNemar's test is for scores of 0 and 1: use sign_flip for graded ones")
    wins, losses = int((gap > 0).sum()), int((gap < 0).sum())
    p = min(1.0, 2 * float(bdtr(min(wins, losses), wins + losses, 0.5))) if wins + losses else 1.0
    return McNemar(p, wins, losses, len(gap))


@dataclass(frozen=True)
class ClusteredDifference:
    """A gap over items that come in clusters, which are the replicates."""

    interval: Interval
    estimate: float
    error: float
    """Σ_c(Σ_{i∈c}(d_i - d̄))² / n², the square root of it."""
    flips: FlipTest
    """Whole clusters flipped: its k and n count clusters."""
    clusters: int
    n: int


def clustered_difference(
    ours: ArrayLike,
    theirs: ArrayLike,
    clusters: Sequence[Hashable],
    rng: np.random.Generator,
    *,
    level: float = 0.95,
    span: float = 1.0,
) -> ClusteredDifference:
    """Mean of `ours - theirs` where items share an image, a passage or a conversation.

    The interval is `paired_difference`'s with whole clusters in the place of items: its two
    pseudo-clusters have the mean size and differ by the span. Clusters of one give the same.
    """
    gap = gaps(ours, theirs)
    n, mean = len(gap), float(gap.mean())
    sums, sizes = by_cluster(gap, clusters)
    error = math.sqrt(float(((sums - mean * sizes) ** 2).sum())) / n
    flips = sign_flip(sums, np.zeros(len(sums)), rng)
    width = clustered_width(gap, clusters, span=span)
    interval = Interval(mean, *width.at(level), level, n)
    return ClusteredDifference(interval, mean, error, flips, len(sums), n)


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


@dataclass(frozen=True)
class RepeatedDifference:
    """A gap where each item was answered several times, with the two parts of its variance.

    Var = (ω² + σ²/K) / n: more generations shrink the second part only.
    """

    interval: Interval
    error: float
    items_part: float
    """ω / √n, the standard error left with endless generations."""
    generations_part: float
    """√(σ²/K / n), what comes from answering only so many times."""
    n: int


def repeated_difference(
    ours_NK: ArrayLike, theirs_NK: ArrayLike, *, level: float = 0.95, span: float = 1.0
) -> RepeatedDifference:
    """Averages each item's generations first, then pairs; both sides need two or more of them."""
    left, right = checked_table(ours_NK, rows=2, columns=2), checked_table(theirs_NK, columns=2)
    if len(left) != len(right):
        raise ValueError(f"need the same items on both sides: {left.shape} {right.shape}")
    n = len(left)
    interval = paired_difference(left.mean(axis=1), right.mean(axis=1), level=level, span=span)
    total = float((left.mean(axis=1) - right.mean(axis=1)).var(ddof=1))
    within = float(
        (
            left.var(axis=1, ddof=1) / left.shape[1] + right.var(axis=1, ddof=1) / right.shape[1]
        ).mean()
    )
    return RepeatedDifference(
        interval=interval,
        error=math.sqrt(total / n),
        items_part=math.sqrt(max(0.0, total - within) / n),
        generations_part=math.sqrt(within / n),
        n=n,
    )
