"""Drawing again: weights of a bootstrap, and the interval that draws give."""

from __future__ import annotations

import numpy as np

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


def percentile_interval(estimate: float, drawn: Floats, *, level: float, n: int) -> Interval:
    """The range that holds `level` of the drawn values."""
    tail = (1 - level) / 2
    low, high = np.quantile(drawn, [tail, 1 - tail])
    return Interval(estimate, float(low), float(high), level, n)
