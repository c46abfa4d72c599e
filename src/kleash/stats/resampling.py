"""Drawing again: weights of a bootstrap, moving blocks, and the interval that draws give."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from kleash.stats.intervals import Floats, Interval

CACHED = 2**17  # indices counted at a time
HELD = 2**22  # weights held at a time


def resample(n: int, draws: int, rng: np.random.Generator) -> Floats:
    """How often each of n falls in a draw of n with replacement, as weights that sum to 1.

    Drawn by indices and counted, as many draws at a time as stay in the cache: five times faster
    than by multinomial counts, which go through all n for every draw.
    """
    weights: Floats = np.empty((draws, n))
    some = max(1, CACHED // n)
    for first in range(0, draws, some):
        part = weights[first : first + some]
        drawn = rng.integers(0, n, size=part.shape) + n * np.arange(len(part))[:, None]
        np.divide(np.bincount(drawn.ravel(), minlength=part.size).reshape(part.shape), n, out=part)
    return weights


def drawn_means(values_NK: Floats, draws: int, rng: np.random.Generator) -> Floats:
    """The means of each column over draws of n rows with replacement, [draws, K].

    The weights of all draws at once would take draws × n numbers; these take a few mebibytes.
    """
    n = len(values_NK)
    some = max(1, HELD // n)
    parts = [
        resample(n, min(some, draws - first), rng) @ values_NK for first in range(0, draws, some)
    ]
    return np.concatenate(parts)


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


def widening(share: float) -> float:
    """By how much an interval must grow because its error is itself from few stretches of a curve.

    Kiefer and Vogelsang 2005, table 1, Bartlett kernel, over 1.96; `share` is the bandwidth by T.
    """
    return 1 + 1.515 * share + 0.212 * share**2 - 0.272 * share**3


def block_interval(estimate: float, drawn: Floats, *, level: float, n: int) -> Interval:
    """The range of values drawn by moving blocks, about their own mean and widened for few blocks.

    Blocks leave out the ends more often than the middle, so drawn values are centred elsewhere.
    """
    found = percentile_interval(estimate, drawn - drawn.mean(), level=level, n=n)
    factor = widening(block_length(n) / n)
    return replace(found, low=estimate + factor * found.low, high=estimate + factor * found.high)
