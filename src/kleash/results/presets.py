"""The selector's presets beside each other: how large, how slow, and how good at each shot number.

Only of a study whose arms differ in their preset. A gap is paired: the same items, and the same
seeds where there are several.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from kleash import stats
from kleash.compare.items import table_of
from kleash.plan.folder import Seen
from kleash.results import ArmRow, Results
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
    both = [seed for seed in ours if seed in theirs]
    shots = found.file.measure.shots
    most = found.file.measure.items[-1]
    return PresetRow(
        arm=row.name,
        preset=preset_of(found, row),
        against=row.against,
        parameters=sizes[0] if sizes else None,
        seconds=clocked(ours.values(), "seconds"),
        cpu_seconds=clocked(ours.values(), "cpu_seconds"),
        scores={n: over([tested(seen, n, most) for seen in ours.values()]) for n in shots},
        gaps={
            n: gap_over([apart(tested(ours[s], n, most), tested(theirs[s], n, most)) for s in both])
            for n in shots
        },
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


def runs_of(found: Results, arm: str) -> dict[int, Seen]:
    """The runs of an arm by seed."""
    return {seed: seen for (name, seed), seen in found.overview.seen.items() if name == arm}


def tested(seen: Seen, shots: int, most: int) -> dict[str, float]:
    """By item, the scores of the chosen checkpoint on the test, without those that broke."""
    column = seen.scored.get((seen.chosen, "test", shots))
    if column is None or len(column.items) < most:
        return {}
    pairs = zip(column.items[:most], column.scores[:most], strict=True)
    return {item: score for item, score in pairs if score is not None}


def apart(ours: dict[str, float], theirs: dict[str, float]) -> dict[str, float]:
    """By item, how much more the one scores than the other, where both did."""
    return {item: ours[item] - theirs[item] for item in ours if item in theirs}


def over(runs: Sequence[dict[str, float]]) -> Interval | None:
    """The mean over seeds of each run's mean; of one run over items. None if a run is missing."""
    if not runs or not all(runs):
        return None
    if len(runs) == 1:
        values = list(runs[0].values())
        return stats.mean_interval(values) if len(values) > 1 else None
    return stats.mean_interval([sum(run.values()) / len(run) for run in runs])


def gap_over(gaps: Sequence[dict[str, float]]) -> Interval | None:
    """The mean gap on items like these, from that of every item under every seed."""
    if len(gaps) < 2 or not all(gaps):
        return over(gaps)
    return stats.crossed_seeds(table_of(gaps)[1]).interval


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
