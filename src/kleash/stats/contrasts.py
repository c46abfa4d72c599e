"""Questions about more than one gap: a trend over coefficients, a gap that depends on something.

Rows are replicates: seeds for a claim about settings, items for one about checkpoints. In names, R
is rows, A arms.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from kleash.stats.intervals import (
    Floats,
    Interval,
    checked,
    checked_table,
    gaps,
    mean_interval,
    t_interval,
    t_p,
)


@dataclass(frozen=True)
class Trend:
    """How a measure moves with the coefficient."""

    slope: Interval
    """Per doubling of the coefficient, over the arms that have one above 0."""
    p: float
    zero: Interval | None
    """The arm with coefficient 0 less the mean of the others; None if there is no such arm."""
    zero_p: float | None
    arms: int
    """How many arms the slope is from."""
    n: int


def trend(coefficients: ArrayLike, values_RA: ArrayLike, *, level: float = 0.95) -> Trend:
    """Linear in the logarithm of the coefficient; 0, which has none, is a level of its own.

    One slope for each row (seed or item), then t over rows: arms share their rows.
    """
    at = checked(coefficients)
    values = checked_table(values_RA, rows=2)
    if len(at) != values.shape[1] or (at < 0).any() or len(np.unique(at)) < len(at):
        raise ValueError("need one column of values for each coefficient, all different, none < 0")
    positive = at > 0
    logs = np.log2(at[positive])
    if len(logs) < 2:
        raise ValueError(f"{len(logs)} arm with a coefficient above 0 has no trend: give 2 or more")
    centred = logs - logs.mean()
    slopes = values[:, positive] @ (centred / (centred @ centred))
    slope, p = over_rows(slopes, level)
    zero, zero_p = None, None
    if not positive.all():
        rest = values[:, positive].mean(axis=1)
        zero, zero_p = over_rows(values[:, ~positive][:, 0] - rest, level)
    return Trend(slope, p, zero, zero_p, len(logs), len(values))


def over_rows(values: Floats, level: float) -> tuple[Interval, float]:
    """The mean over replicates by t, and its p."""
    n = len(values)
    mean, error = float(values.mean()), float(values.std(ddof=1)) / math.sqrt(n)
    return t_interval(mean, error, n - 1, level=level, n=n), t_p(mean, error, n - 1)


def interaction(
    first: tuple[ArrayLike, ArrayLike],
    second: tuple[ArrayLike, ArrayLike],
    *,
    span: float | None = 1.0,
    level: float = 0.95,
) -> Interval:
    """The gap in one condition less the gap in another, over the same items or seeds.

    Each condition is (ours, theirs): shot 1 and shot 3, epoch 1 and epoch 3. `span` is the largest
    difference of two scores of an item; None for seeds, whose interval is the plain t.
    """
    contrast = gaps(gaps(*first), gaps(*second))
    bounds = None if span is None else (-2 * span, 2 * span)
    return mean_interval(contrast, level=level, bounds=bounds)
