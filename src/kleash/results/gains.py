"""What GRPO gained: each arm over the start it grew from, paired by seed and item.

Over all shots it is the verdict on the gain, with its interval; at each number of shots an interval
that holds together with all others of the table (Bonferroni).

Shapes: S seeds, K numbers of shots, N items.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from kleash.compare.judging import ALPHA
from kleash.plan import base_checkpoint
from kleash.plan.folder import Seen
from kleash.results import Results, verdict_on
from kleash.results.paired import Tested, mean_gap, runs_of, tested
from kleash.results.sources import ELSEWHERE
from kleash.stats import Interval


@dataclass(frozen=True)
class Gain:
    """Of an arm's chosen checkpoint over its start, on items like these; None if not measured."""

    arm: str
    by_shots: dict[int, Interval | None]
    mean: Interval | None
    """Over the numbers of shots, item by item: as the verdict has it."""
    seeds: int
    """How many are measured, of the arm and of its start."""


def gains(found: Results) -> list[Gain]:
    """A line for each arm that grew from the study's start, where that was measured."""
    start = base_checkpoint(found.file, found.file.seeds[0])
    seen = runs_of(found, "base")
    starts = {seed: one for seed in seen if (one := whole_test(found, seen[seed], start))}
    grown = [arm for arm in found.arms if not ELSEWHERE & arm.keys.keys()] if starts else []
    level = 1 - ALPHA / max(1, len(grown) * len(found.file.measure.shots))
    made = [gain(found, starts, arm.name, level) for arm in grown]
    return [each for each in made if each.seeds]


def gain(
    found: Results, starts: Mapping[int, Mapping[int, Tested]], arm: str, level: float
) -> Gain:
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
    by_shots = {n: mean_gap(gaps_SKN[:, nth], level) for nth, n in enumerate(shots)}
    said, mean = verdict_on(found.comparison, arm, "gain"), None
    if said and said.estimate is not None and said.low is not None and said.high is not None:
        mean = Interval(said.estimate, said.low, said.high, 1 - ALPHA, len(rows))
    return Gain(arm, by_shots if len(shots) > 1 else {shots[0]: mean}, mean, len(rows))


def whole_test(found: Results, seen: Seen, checkpoint: str) -> dict[int, Tested]:
    """By shots, a checkpoint's scores; nothing before those at every number are measured."""
    made = {n: tested(found, seen, checkpoint, n) for n in found.file.measure.shots}
    whole = {n: each for n, each in made.items() if each is not None}
    return whole if len(whole) == len(made) else {}
