"""Questions about more than one gap: a trend over coefficients, a gap that depends on something.

Rows are replicates: seeds for a claim about settings, items for one about checkpoints. In names, R
is rows, A arms.
"""

from __future__ import annotations

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
    mean_width,
)
from kleash.stats.replicates import crossed_seeds, paired_seeds


@dataclass(frozen=True)
class Trend:
    """How a measure moves with the coefficient."""

    slope: Interval
    """Per doubling of the coefficient, over the arms that have one above 0."""
    p: float
    width: Width
    """Of `slope`, at every level."""
    arms: int
    """How many arms the slope is from."""
    n: int


def trend(
    coefficients: ArrayLike, values: ArrayLike, *, level: float = 0.95, span: float | None = None
) -> Trend:
    """Linear in the logarithm of the coefficient; 0, which has none, is left out.

    One slope for each row (seed or item) of `values` [row, arm], then t over rows: arms share their
    rows. With a third axis, [seed, arm, item], for items like these by `crossed_seeds`. `span`
    is the largest difference of two scores of an item; None where rows are seeds.
    """
    at, table = checked(coefficients), np.asarray(values, dtype=np.float64)
    if table.ndim == 2:
        checked_table(table, rows=2)
    if len(at) != table.shape[1] or (at < 0).any() or len(np.unique(at)) < len(at):
        raise ValueError("need one column of values for each coefficient, all different, none < 0")
    positive = at > 0
    logs = np.log2(at[positive])
    if len(logs) < 2:
        raise ValueError(f"{len(logs)} arm with a coefficient above 0 has no trend: give 2 or more")
    centred = logs - logs.mean()
    leashed = table[:, positive]
    along = centred / (centred @ centred)
    largest = None if span is None else span * float(np.abs(along).sum()) / 2
    slope = over_rows(np.tensordot(leashed, along, axes=(1, 0)), level, largest)
    return Trend(
        slope=slope.interval,
        p=slope.p,
        width=slope.width,
        arms=len(logs),
        n=len(table),
    )


@dataclass(frozen=True)
class Rows:
    """The mean over replicates."""

    interval: Interval
    width: Width

    @property
    def p(self) -> float:
        """Two-sided, of "it is 0"."""
        return self.width.p


def over_rows(values: Floats, level: float, span: float | None) -> Rows:
    """By t, over items adjusted as any gap; with a second axis over seeds and items like these."""
    if values.ndim == 2:
        found = crossed_seeds(values, level=level, span=span)
        return Rows(found.interval, found.width)
    if span is None:
        found = paired_seeds(values, np.zeros(len(values)), level=level)
        return Rows(found.interval, found.width)
    width = mean_width(values, (-span, span))
    mean = float(values.mean())
    return Rows(Interval(mean, *width.at(level), level, len(values)), width)


def interaction(
    first: tuple[ArrayLike, ArrayLike],
    second: tuple[ArrayLike, ArrayLike],
    *,
    span: float | None = 1.0,
    level: float = 0.95,
) -> Rows:
    """The gap in one condition less the gap in another, over the same items or seeds.

    Each condition is (ours, theirs): shot 1 and shot 3, epoch 1 and epoch 3. `span` is the largest
    difference of two scores of an item; None for seeds, whose interval is the plain t.
    """
    contrast = gaps(gaps(*first), gaps(*second))
    return over_rows(contrast, level, None if span is None else 2 * span)
