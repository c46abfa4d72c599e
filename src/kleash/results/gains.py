"""What GRPO gained: each arm over the start it grew from, paired by seed and item.

Shapes: S seeds, K numbers of shots, N items.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kleash import stats
from kleash.plan import base_checkpoint
from kleash.plan.folder import Seen
from kleash.results import Results
from kleash.results.presets import runs_of
from kleash.stats import Interval

ELSEWHERE = {"from", "selector"}
"""Keys of an arm that make it grow from another start."""


@dataclass(frozen=True)
class Gain:
    """Of an arm's chosen checkpoint over its start, on items like these; None if not measured."""

    arm: str
    by_shots: dict[int, Interval | None]
    mean: Interval | None
    """Over the numbers of shots, item by item."""
    seeds: int
    """How many are measured, of the arm and of its start."""


def gains(found: Results) -> list[Gain]:
    """A line for each arm that grew from the study's start, where that was measured."""
    start = base_checkpoint(found.file, found.file.seeds[0])
    seen = runs_of(found, "base")
    starts = {seed: one for seed in seen if (one := tested(found, seen[seed], start))}
    grown = [arm for arm in found.arms if not ELSEWHERE & arm.keys.keys()] if starts else []
    made = [gain(found, starts, arm.name) for arm in grown]
    return [each for each in made if each.seeds]


def gain(found: Results, starts: Mapping[int, Mapping[int, Scores]], arm: str) -> Gain:
    """One arm."""
    shots, rows = found.file.measure.shots, []
    items = next(iter(starts.values()))[shots[0]].items
    for seed, seen in found.overview.of_arm(arm, starts).items():
        ours, theirs = tested(found, seen, seen.chosen), starts[seed]
        if ours:
            rows.append([ours[n].over(items) - theirs[n].over(items) for n in shots])
    if not rows:
        return Gain(arm, dict.fromkeys(shots), None, 0)
    gaps_SKN = np.array(rows)
    by_shots = {n: over(gaps_SKN[:, nth]) for nth, n in enumerate(shots)}
    return Gain(arm, by_shots, over(gaps_SKN.mean(axis=1)), len(rows))


class Scores(NamedTuple):
    """A whole column of a test; NaN where an item broke."""

    items: list[str]
    values_N: NDArray[np.float64]

    def over(self, items: Sequence[str]) -> NDArray[np.float64]:
        """In the order of those items; NaN for those it has not."""
        if self.items == items:
            return self.values_N
        known = dict(zip(self.items, self.values_N.tolist(), strict=True))
        return np.array([known.get(item, math.nan) for item in items])


def tested(found: Results, seen: Seen, checkpoint: str) -> dict[int, Scores]:
    """By shots, a checkpoint's scores on the whole test; nothing before all of it is measured."""
    most, made = found.file.measure.items[-1], {}
    for shots in found.file.measure.shots:
        column = seen.scored.get((checkpoint, "test", shots))
        if column is None or len(column.items) < most:
            return {}
        made[shots] = Scores(column.items[:most], np.array(column.scores[:most], np.float64))
    return made


def over(gaps_SN: NDArray[np.float64]) -> Interval | None:
    """The mean on items like these; of one seed over its items. None if a seed has none of it."""
    if np.isnan(gaps_SN).all(axis=1).any():
        return None
    if len(gaps_SN) > 1:
        return stats.crossed_interval(gaps_SN)
    values = gaps_SN[~np.isnan(gaps_SN)]
    return stats.mean_interval(values) if len(values) > 1 else None
