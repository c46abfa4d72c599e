"""What scores can be: their lattice, what means alone allow, and samples inside samples.

A score takes few values, so a mean over n items lies on a lattice. That says which numbers cannot
be means, and how strong the evidence behind two means could be at best.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kleash.stats.intervals import Floats, checked
from kleash.stats.special import chdtrc

FINEST = 100  # the smallest step looked for is 1/100
NEAR = 1e-9


@dataclass(frozen=True)
class Lattice:
    """The step that all scores are multiples of, and how it was learnt."""

    step: float
    chance: float
    """How likely values off any lattice would look as if they lay on this one."""
    n: int


def lattice_of_means(
    means: ArrayLike, sizes: ArrayLike, halves: ArrayLike, *, chance: float = 0.05
) -> Lattice | None:
    """The coarsest lattice on which printed means over n items can lie; None if chance would do.

    `halves` is how far each printed mean may be from the true one: .0005 for 57.0 %. Means printed
    so coarsely that any lattice fits say nothing, and count for nothing.
    """
    means, sizes, halves = checked(means), checked(sizes), checked(halves)
    if not means.shape == sizes.shape == halves.shape:
        raise ValueError("need a size and a rounding for each mean")
    for parts in range(1, FINEST + 1):
        if fits(means * sizes, halves * sizes, 1 / parts).all():
            widths = np.minimum(1.0, 2 * halves * sizes * parts)
            luck = min(1.0, parts * float(widths.prod()))
            if luck > chance:
                return None
            return Lattice(1 / parts, luck, len(means))
    return None


def fits(sums: Floats, halves: Floats, step: float) -> NDArray[np.bool_]:
    """Whether a multiple of the step lies within `halves` of each sum."""
    nearest = (sums / step).round() * step
    near: NDArray[np.bool_] = np.abs(sums - nearest) <= halves + NEAR * np.maximum(1, np.abs(sums))
    return near


@dataclass(frozen=True)
class AggregateBound:
    """What two means over n items can show at best when the scores behind them are lost."""

    most_differing: int
    """k_max: as many same-way differences of the smallest size as the gap holds."""
    p_min: float
    """2 ** (1 - k_max), the p of the sign-flip test if all differences go one way and are the
    smallest. Differences that go both ways can have a smaller p, but only above .18: where this
    says that .05 is out of reach, it is."""
    n: int


def aggregate_bound(ours: float, theirs: float, n: int, smallest_gap: float) -> AggregateBound:
    """The bound from n, both means and the lattice."""
    if n < 1 or smallest_gap <= 0:
        raise ValueError(f"need items, and a smallest gap above 0: {n=} {smallest_gap=}")
    total = abs(ours - theirs) * n
    most = min(n, math.floor((total + NEAR * max(1.0, total)) / smallest_gap))
    return AggregateBound(most, min(1.0, 2.0 ** (1 - most)), n)


# --- samples inside samples


@dataclass(frozen=True)
class Block:
    """The items that a larger sample has and the next smaller one has not."""

    n: int
    mean: float


@dataclass(frozen=True)
class OrderEffect:
    """Whether the first items of a set are like the later ones."""

    blocks: tuple[Block, ...]
    chi2: float
    df: int
    p: float


def block_means(sizes: Sequence[int], means: ArrayLike) -> tuple[Block, ...]:
    """The means of the blocks between nested samples: b_j = (n_j·a_j - n_i·a_i)/(n_j - n_i)."""
    data = checked(means)
    if len(sizes) != len(data) or list(sizes) != sorted(set(sizes)) or sizes[0] < 1:
        raise ValueError(f"need rising sizes, one for each mean: {list(sizes)} for {len(data)}")
    counts = np.diff(np.array(sizes), prepend=0)
    sums = np.diff(np.array(sizes) * data, prepend=0.0)
    return tuple(Block(int(n), float(total / n)) for n, total in zip(counts, sums, strict=True))


def order_effect(sizes: Sequence[int], means: ArrayLike) -> OrderEffect:
    """χ² = Σ n_j(b_j - ā)²/σ² over the blocks of nested samples.

    σ is the largest SD that scores from 0 to 1 with this mean can have, √(ā(1 - ā)): it errs
    towards no effect.
    """
    blocks = block_means(sizes, means)
    if len(blocks) < 2:
        raise ValueError("one sample has no order: give two or more, one inside the other")
    centre = float(checked(means)[-1])
    if not 0 < centre < 1:
        raise ValueError(f"scores without spread have no order effect: their mean is {centre}")
    chi2 = sum(block.n * (block.mean - centre) ** 2 for block in blocks) / (centre * (1 - centre))
    df = len(blocks) - 1
    return OrderEffect(blocks, chi2, df, float(chdtrc(df, chi2)))


def may_be_nested(sizes: Sequence[int], means: ArrayLike, *, half: float = 0.0) -> bool:
    """Whether each sample of scores from 0 to 1 can lie inside the next: False disproves it.

    `half` is how far rounding moved each mean.
    """
    blocks = block_means(sizes, means)
    room = half * (np.array(sizes) + np.array([0, *sizes[:-1]])) + NEAR
    counts = np.array([block.n for block in blocks])
    sums = counts * np.array([block.mean for block in blocks])
    return bool(((sums >= -room) & (sums <= counts + room)).all())
