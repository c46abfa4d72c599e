"""The curves of logs: every metric of every run.

Runs are of one group if their names differ in nothing but the seed.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from kleash.compare.arms import SEED, Replicate
from kleash.imports import names
from kleash.imports.rows import UNTELLING
from kleash.written.logs import Logs, file_of


@dataclass(frozen=True)
class Thread:
    """A curve of a run, or the mean of several."""

    group: str
    seed: int | None
    metric: str
    axis: str
    points: Mapping[float, float]
    file: str
    line: int | None = None
    half: float = 0.0
    """Half a unit of its last digit, where it was printed."""


def threads_of(logs: Logs) -> list[Thread]:
    """Every curve of every run."""
    found = []
    files = Counter(run.runs[0].where.file for arm in logs.arms for run in arm.replicates)
    for arm in logs.arms:
        for run in arm.replicates:
            alone = files[run.runs[0].where.file] == 1
            name, seed = _named(run, arm.name) if alone else (arm.name, run.seed)
            for (metric, axis), curve in run.curves.items():
                known = np.isfinite(curve.values)
                values = zip(curve.steps[known].tolist(), curve.values[known].tolist(), strict=True)
                points = dict(values)
                if points:
                    found.append(Thread(name, seed, metric, axis, points, *file_of(run, metric)))
    return found


def _named(run: Replicate, arm: str) -> tuple[str, int | None]:
    """The name of a run without its seed, and its seed: files have folders as names."""
    path = Path(run.runs[0].where.file)
    own = names.spelling(path.stem) == names.spelling(arm)
    name = path.parent.name if _general(path) else arm if own else run.name
    seed = SEED.search(name)
    return SEED.sub("", name) or name, int(seed[1]) if seed else run.seed


def _general(path: Path) -> bool:
    """Whether a file is called as many are, so that its folder is its name."""
    known = re.fullmatch(r"(?:metrics|train|log|history|results|progress|output)\d*", path.stem)
    return bool(known or UNTELLING.fullmatch(path.stem))
