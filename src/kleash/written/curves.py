"""The curves of logs: every metric of every run.

Runs are of one group if their names differ in nothing but the seed.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

import numpy as np

from kleash.compare.arms import Replicate, known_name
from kleash.compare.joining import SEED
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
    by_run: dict[tuple[str, int | None], list[Replicate]] = {}
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
            found += _of_sets(run, name, seed)
            by_run.setdefault((name, seed), []).append(run)
    for (name, seed), runs in by_run.items():
        found += _by_shots(runs, name, seed)
    return found


def _of_sets(run: Replicate, name: str, seed: int | None) -> Iterator[Thread]:
    """Curves on single sets of data, where the run's own is the mean over them."""
    for series in (series for told in run.runs for series in told.series if run.sets):
        known = np.isfinite(series.values)
        pairs = zip(series.steps[known].tolist(), series.values[known].tolist(), strict=True)
        if known_name(series.metric) in run.sets and (points := dict(pairs)):
            file, line = series.where.file, series.where.line
            yield Thread(name, seed, series.metric, series.axis, points, file, line)


def _by_shots(runs: Sequence[Replicate], name: str, seed: int | None) -> Iterator[Thread]:
    """What was measured with several shots, over epochs: each of them, and their mean.

    A run may have a file for each of its evaluations.
    """
    every: dict[tuple[str, int | None, str], dict[float, dict[int, float]]] = {}
    file, line = "", None
    for (metric, (epoch, step, items, *_)), by_shots in chain(*(run.cells.items() for run in runs)):
        at, axis = (epoch, "epoch") if epoch is not None else (step, "step")
        told = {n: one.value for n, one in by_shots.items() if n is not None}
        known = {n: value for n, value in told.items() if value is not None}
        if at is not None and known:
            every.setdefault((metric, items, axis), {}).setdefault(float(at), known)
            where = next(iter(by_shots.values())).where
            file, line = where.file, where.line
    several = len({items for _, items, _ in every}) > 1
    for (metric, items, axis), at_steps in every.items():
        called = f"{metric} {items} samples" if several and items is not None else metric
        for shots in sorted({n for known in at_steps.values() for n in known}):
            points = {at: known[shots] for at, known in at_steps.items() if shots in known}
            yield Thread(name, seed, f"{called} {shots}-shot", axis, points, file, line)
        points = {at: float(np.mean(list(known.values()))) for at, known in at_steps.items()}
        yield Thread(name, seed, f"{called} mean", axis, points, file, line)


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
