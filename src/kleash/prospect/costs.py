"""What runs and evaluations cost, in hours of one device: given, or read off logs and studies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from kleash.compare.arms import Arm
from kleash.compare.durations import devices_of, tells_device_hours, training_hours
from kleash.plan import StudyFile, arms_of, most_ranks
from kleash.plan.folder import placed
from kleash.runs import read_lines


@dataclass(frozen=True)
class Cost:
    """Hours of a run, of the shared start of a seed, and seconds of an item of one checkpoint.

    None is not known: a run must be, the others count as nothing and that is said.
    """

    run: float | None = None
    base: float | None = None
    item: float | None = None
    of_machine: bool = False
    """Whether a run's hours are those of a machine that tells nobody how many devices it has."""

    def over(self, other: Cost) -> Cost:
        """What is known here, and else what is known there."""
        whose = other if self.run is None else self
        base = other.base if self.base is None else self.base
        item = other.item if self.item is None else self.item
        return Cost(whose.run, base, item, whose.of_machine)

    def of_runs(self, runs: int, items: int) -> float:
        """Hours of so many runs, each measured on so many items."""
        return runs * ((self.run or 0.0) + items * (self.item or 0.0) / 3600)

    def of_study(self, arms: int, seeds: int, items: int) -> float:
        """Hours of a whole study."""
        return seeds * (self.base or 0.0) + self.of_runs(arms * seeds, items)


def cost_of_logs(arms: Sequence[Arm]) -> Cost:
    """The middle of what trainings took, times the devices they took it on."""
    told = [(span, devices_of(arm)) for arm in arms if (span := training_hours(arm)) is not None]
    if not told:
        return Cost()
    hours = [sum(span) / 2 * (devices or 1) for span, devices in told]
    known = any(devices for _, devices in told) or any(map(tells_device_hours, arms))
    return Cost(float(np.median(hours)), of_machine=not known)


def cost_of_study(folder: Path, file: StudyFile, arms: Sequence[Arm]) -> Cost:
    """From what a study's jobs took: training by its own clock, the rest is measuring.

    Where several ranks train a run, their devices are all taken until it is measured.
    """
    spent = folder / "spent.jsonl"
    jobs: dict[str, float] = {}
    for line in read_lines(spent) if spent.is_file() else ():
        jobs[line["job"]] = jobs.get(line["job"], 0.0) + line["seconds"]
    bases = [seconds for job, seconds in jobs.items() if job.startswith("base-s")]
    trained, measured = [], []
    planned = arms_of(file, placed(folder))
    names, ranks = {arm.name for arm in planned}, most_ranks(file, planned)
    for arm in arms:
        for each in arm.replicates:
            seconds = ranks * sum(run.seconds or 0.0 for run in each.runs)
            whole = jobs.get(f"{arm.name}-s{each.seed}")
            if not seconds or arm.name not in names:
                continue
            trained.append(seconds)
            if whole is not None and whole > seconds:
                measured.append((whole - seconds) / file.measure.items[-1])
    return Cost(
        run=float(np.mean(trained)) / 3600 if trained else None,
        base=float(np.mean(bases)) / 3600 if bases else None,
        item=float(np.mean(measured)) if measured else None,
    )
