"""What GRPO gained: each arm over the start it grew from, paired by seed and item.

Shapes: S seeds, K numbers of shots, N items.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from kleash.plan import base_checkpoint
from kleash.plan.folder import Seen
from kleash.results import Results
from kleash.results.paired import Tested, mean_gap, runs_of, tested
from kleash.results.sources import ELSEWHERE
from kleash.stats import Interval


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
    starts = {seed: one for seed in seen if (one := whole_test(found, seen[seed], start))}
    grown = [arm for arm in found.arms if not ELSEWHERE & arm.keys.keys()] if starts else []
    made = [gain(found, starts, arm.name) for arm in grown]
    return [each for each in made if each.seeds]


def gain(found: Results, starts: Mapping[int, Mapping[int, Tested]], arm: str) -> Gain:
    """One arm."""
    shots, rows = found.file.measure.shots, []
    items = next(iter(starts.values()))[shots[0]].items
    for seed, seen in found.overview.of_arm(arm, starts).items():
        ours, theirs = whole_test(found, seen, seen.chosen), starts[seed]
        if ours:
            rows.append([ours[n].over(items) - theirs[n].over(items) for n in shots])
    if not rows:
        return Gain(arm, dict.fromkeys(shots), None, 0)
    gaps_SKN = np.array(rows)
    by_shots = {n: mean_gap(gaps_SKN[:, nth]) for nth, n in enumerate(shots)}
    return Gain(arm, by_shots, mean_gap(gaps_SKN.mean(axis=1)), len(rows))


def whole_test(found: Results, seen: Seen, checkpoint: str) -> dict[int, Tested]:
    """By shots, a checkpoint's scores; nothing before those at every number are measured."""
    made = {n: tested(found, seen, checkpoint, n) for n in found.file.measure.shots}
    whole = {n: each for n, each in made.items() if each is not None}
    return whole if len(whole) == len(made) else {}
