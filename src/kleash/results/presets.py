"""The selector's presets beside each other: how large, how slow, and how good at each shot number.

Only of a study whose arms differ in their preset. A gap is paired: the same items, and the same
seeds where there are several.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from kleash import stats
from kleash.plan.folder import Seen
from kleash.results import ArmRow, Results
from kleash.results.paired import mean_gap, runs_of, tested
from kleash.stats import Interval


@dataclass(frozen=True)
class PresetRow:
    """An arm over its seeds; a number that is not there yet is None."""

    arm: str
    preset: str
    against: str
    parameters: int | None
    seconds: float | None
    """An epoch of GRPO, mean over epochs and seeds; answering is in it."""
    cpu_seconds: float | None
    """The same of the processor alone: what others do on the machine is not in it."""
    scores: dict[int, Interval | None]
    """By shots, over seeds; over items where there is one seed."""
    gaps: dict[int, Interval | None]
    """To the arm it is compared with, on items like these."""


def preset_rows(found: Results) -> list[PresetRow]:
    """A row for each arm, if they differ in their preset; else nothing."""
    presets = {preset_of(found, row) for row in found.rows}
    return [preset_row(found, row) for row in found.rows] if len(presets) > 1 else []


def preset_row(found: Results, row: ArmRow) -> PresetRow:
    """One arm."""
    ours, theirs = runs_of(found, row.name), runs_of(found, row.against)
    sizes = [size for seen in ours.values() if (size := parameters(seen)) is not None]
    shots = found.file.measure.shots
    return PresetRow(
        arm=row.name,
        preset=preset_of(found, row),
        against=row.against,
        parameters=sizes[0] if sizes else None,
        seconds=clocked(ours.values(), "seconds"),
        cpu_seconds=clocked(ours.values(), "cpu_seconds"),
        scores={n: score(found, ours.values(), n) for n in shots},
        gaps={n: gap(found, ours, theirs, n) for n in shots},
    )


def clocked(runs: Iterable[Seen], clock: str) -> float | None:
    """What an epoch of GRPO took by a clock, on average; None where it was not read."""
    read = [
        float(line[clock])
        for seen in runs
        for line in (() if seen.run is None else seen.run.timings())
        if line.get("phase") == "grpo" and "epoch" in line and clock in line
    ]
    return sum(read) / len(read) if read else None


def preset_of(found: Results, row: ArmRow) -> str:
    """An arm's own, or that of all; an agent has none."""
    return str(row.keys.get("selector") or found.file.base.get("selector", ""))


def score(found: Results, runs: Iterable[Seen], shots: int) -> Interval | None:
    """The mean over seeds of each run's mean; of one run over items. None if a run is missing."""
    whole = [tested(found, seen, seen.chosen, shots) for seen in runs]
    known = [[] if each is None else each.known() for each in whole]
    if not known or not all(known):
        return None
    values = [sum(run) / len(run) for run in known] if len(known) > 1 else known[0]
    return stats.mean_interval(values) if len(values) > 1 else None


def gap(
    found: Results, ours: Mapping[int, Seen], theirs: Mapping[int, Seen], shots: int
) -> Interval | None:
    """How much more an arm scores than another, by the seeds of both; None if a run is missing."""
    items: list[str] = []
    rows = []
    for seed in (seed for seed in ours if seed in theirs):
        one, other = (tested(found, run[seed], run[seed].chosen, shots) for run in (ours, theirs))
        if one is None or other is None:
            return None
        items = items or one.items
        rows.append(one.over(items) - other.over(items))
    return mean_gap(np.array(rows)) if rows else None


def parameters(seen: Seen) -> int | None:
    """How many values the chosen checkpoint holds, by the head of its file."""
    if seen.run is None or not seen.chosen:
        return None
    return values_in(seen.run.path / "checkpoints" / seen.chosen / "weights.safetensors")


def values_in(file: Path) -> int | None:
    """How many values a safetensors file holds; the numbers themselves are not read."""
    if not file.is_file():
        return None
    with file.open("rb") as opened:
        head = json.loads(opened.read(int.from_bytes(opened.read(8), "little")))
    sizes = [math.prod(each["shape"]) for key, each in head.items() if key != "__metadata__"]
    return int(sum(sizes))
