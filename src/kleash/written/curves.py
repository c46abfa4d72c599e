"""The curves of logs: every metric of every run, the means over seeds, and numbers for a whole one.

Runs are of one group if their names differ in nothing but the seed.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import nan
from pathlib import Path

import numpy as np

from kleash.compare.arms import SEED, Replicate
from kleash.imports import names
from kleash.written.logs import Logs, file_of

STATISTICS = ("last", "max", "min", "first", "mean", "max at", "min at")
MOST = 60  # points of a curve that are looked at one by one
WINDOWS = (10, 20, 50, 100)  # last steps that people take the mean of


@dataclass(frozen=True)
class Thread:
    """A curve of a run, or the mean of those of several seeds."""

    group: str
    seed: int | None
    metric: str
    axis: str
    points: Mapping[float, float]
    file: str
    line: int | None = None
    runs: int = 1

    def statistic(self, kind: str) -> float:
        """One number for the whole curve."""
        steps = sorted(self.points)
        values = [self.points[at] for at in steps]
        if kind.endswith(" at"):
            top = max(values) if kind == "max at" else min(values)
            return steps[values.index(top)]
        if kind.startswith("at "):
            return self.points.get(float(kind.split()[1]), nan)
        if kind.startswith("last "):
            values = [self.points[at] for at in steps if at > steps[-1] - float(kind.split()[1])]
            return sum(values) / len(values)
        made = {"last": values[-1], "first": values[0], "max": max(values), "min": min(values)}
        return made.get(kind, sum(values) / len(values))


def threads_of(logs: Logs) -> list[Thread]:
    """Every curve of every run, then the means over seeds."""
    found = []
    for arm in logs.arms:
        for run in arm.replicates:
            name, seed = _named(run, arm.name)
            for (metric, axis), curve in run.curves.items():
                known = np.isfinite(curve.values)
                values = zip(curve.steps[known].tolist(), curve.values[known].tolist(), strict=True)
                points = dict(values)
                if points:
                    found.append(Thread(name, seed, metric, axis, points, *file_of(run, metric)))
    by_group: dict[tuple[str, str, str], list[Thread]] = defaultdict(list)
    for one in found:
        by_group[one.group, one.metric, one.axis].append(one)
    means = [_mean(several) for several in by_group.values() if len(several) > 1]
    return [*found, *(one for one in means if one.points)]


def _mean(several: Sequence[Thread]) -> Thread:
    """The mean of several curves, at the steps that all of them have."""
    first = several[0]
    steps = set.intersection(*(set(one.points) for one in several))
    points = {at: sum(one.points[at] for one in several) / len(several) for at in sorted(steps)}
    return Thread(
        first.group, None, first.metric, first.axis, points, first.file, first.line, len(several)
    )


def _named(run: Replicate, arm: str) -> tuple[str, int | None]:
    """The name of a run without its seed, and its seed: files have folders as names."""
    path = Path(run.runs[0].where.file)
    own = names.spelling(path.stem) == names.spelling(arm)
    name = path.parent.name if _general(path) else arm if own else run.name
    seed = SEED.search(name)
    return SEED.sub("", name) or name, int(seed[1]) if seed else run.seed


def _general(path: Path) -> bool:
    """Whether a file is called as many are, so that its folder is its name."""
    return bool(
        re.fullmatch(r"(?:metrics|train|log|history|results|progress|output)\d*", path.stem)
    )
