"""Drawing again: weights of a bootstrap, moving blocks, and the interval that draws give."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from kleash.stats.intervals import Floats, Interval


def resample(n: int, draws: int, rng: np.random.Generator) -> Floats:
    """How often each of n falls in a draw of n with replacement, as weights that sum to 1."""
    weights: Floats = rng.multinomial(n, np.full(n, 1 / n), size=draws) / n
    return weights


def block_length(n: int) -> int:
    """The usual order of a block, n ** (1/3), rounded up."""
    return math.ceil(math.pow(n, 1 / 3) - 1e-9)


def moving_blocks(
    n: int, draws: int, rng: np.random.Generator, *, length: int | None = None
) -> NDArray[np.intp]:
    """Indices [draws, n] of series made of overlapping blocks, so that neighbours stay so."""
    length = min(n, length or block_length(n))
    starts = rng.integers(0, n - length + 1, size=(draws, math.ceil(n / length)))
    indices = starts[:, :, None] + np.arange(length)
    return indices.reshape(draws, -1)[:, :n].astype(np.intp)


def percentile_interval(estimate: float, drawn: Floats, *, level: float, n: int) -> Interval:
    """The range that holds `level` of the drawn values."""
    tail = (1 - level) / 2
    low, high = np.quantile(drawn, [tail, 1 - tail])
    return Interval(estimate, float(low), float(high), level, n)
