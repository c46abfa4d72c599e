"""What GRPO gained: each arm over the start it grew from, paired by seed and item.

Shapes: S seeds, N items.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

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
    starts = {seed: seen for seed, seen in runs_of(found, "base").items() if seen.scored}
    grown = [arm for arm in found.arms if not ELSEWHERE & arm.keys.keys()] if starts else []
    made = [gain(found, starts, arm.name) for arm in grown]
    return [each for each in made if any(each.by_shots.values())]


def gain(found: Results, starts: Mapping[int, Seen], arm: str) -> Gain:
    """One arm."""
    file, ours = found.file, found.overview.of_arm(arm, starts)
    shots, most = file.measure.shots, file.measure.items[-1]
    start = base_checkpoint(file, file.seeds[0])
    columns = {
        (seed, n): (
            tested(ours[seed], ours[seed].chosen, n, most),
            tested(starts[seed], start, n, most),
        )
        for seed in ours
        for n in shots
    }
    names = list(next((theirs for _, theirs in columns.values() if theirs), {}))
    whole = [seed for seed in ours if all(all(columns[seed, n]) for n in shots)]
    gaps = {
        n: np.array([apart(*columns[seed, n], names) for seed in whole]).reshape(-1, len(names))
        for n in shots
    }
    by_shots = {n: over(each) for n, each in gaps.items()}
    return Gain(arm, by_shots, over(np.mean(list(gaps.values()), axis=0)), len(whole))


def tested(seen: Seen, checkpoint: str, shots: int, most: int) -> dict[str, float | None]:
    """By item, a checkpoint's scores on the whole test, None where it broke; or nothing yet."""
    column = seen.scored.get((checkpoint, "test", shots))
    if column is None or len(column.items) < most:
        return {}
    return dict(zip(column.items[:most], column.scores[:most], strict=True))


def apart(
    ours: Mapping[str, float | None], theirs: Mapping[str, float | None], items: Sequence[str]
) -> NDArray[np.float64]:
    """By item, how much more the one scores; NaN where one of them did not."""
    one, other = ([each.get(item) for item in items] for each in (ours, theirs))
    found: NDArray[np.float64] = np.array(one, np.float64) - np.array(other, np.float64)
    return found


def over(gaps_SN: NDArray[np.float64]) -> Interval | None:
    """The mean on items like these; of one seed over its items. None if a seed has none of it."""
    if not gaps_SN.size or np.isnan(gaps_SN).all(axis=1).any():
        return None
    if len(gaps_SN) > 1:
        return stats.crossed_seeds(gaps_SN).interval
    values = gaps_SN[~np.isnan(gaps_SN)]
    return stats.mean_interval(values.tolist()) if len(values) > 1 else None
