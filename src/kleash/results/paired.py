"""Scores of the test paired by seed and item: how much more one checkpoint has than another.

Shapes: S seeds, N items.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kleash import stats
from kleash.plan.folder import Seen
from kleash.results import Results
from kleash.stats import Interval


class Tested(NamedTuple):
    """A whole column of the test; NaN where an item broke."""

    items: list[str]
    values_N: NDArray[np.float64]

    def over(self, items: Sequence[str]) -> NDArray[np.float64]:
        """In the order of those items; NaN for those it has not."""
        if self.items == items:
            return self.values_N
        known = dict(zip(self.items, self.values_N.tolist(), strict=True))
        return np.array([known.get(item, math.nan) for item in items])

    def known(self) -> list[float]:
        """Without what broke."""
        found: list[float] = self.values_N[~np.isnan(self.values_N)].tolist()
        return found


def tested(found: Results, seen: Seen, checkpoint: str, shots: int) -> Tested | None:
    """A checkpoint's scores at a number of shots; None before the whole test is measured."""
    most = found.file.measure.items[-1]
    column = seen.scored.get((checkpoint, "test", shots))
    if column is None or len(column.items) < most:
        return None
    return Tested(column.items[:most], np.array(column.scores[:most], np.float64))


def runs_of(found: Results, arm: str) -> dict[int, Seen]:
    """The runs of an arm by seed."""
    return {seed: seen for (name, seed), seen in found.overview.seen.items() if name == arm}


def mean_gap(gaps_SN: NDArray[np.float64], level: float = 0.95) -> Interval | None:
    """The mean on items like these; of one seed over its items. None if a seed has none of it."""
    there_SN = ~np.isnan(gaps_SN)
    if not there_SN.any(axis=1).all():
        return None
    # What broke under every seed is no item: its place would count as a degree of freedom.
    gaps_SN = np.compress(there_SN.any(axis=0), gaps_SN, axis=1)
    if len(gaps_SN) > 1:
        return stats.crossed_interval(gaps_SN, level=level)
    return stats.mean_interval(gaps_SN[0], level=level) if gaps_SN.shape[1] > 1 else None
