"""Kleash's own runs: metrics by step and by epoch, scores of items, config, times.

Lines about single steps make series over steps, lines about epochs series over epochs; those of the
phases before GRPO carry the phase in their name, since each counts its own steps. A score that
broke is NaN: counted, and in no average.
"""

from __future__ import annotations

import sys
from array import array
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from kleash.errors import DataError
from kleash.imports import Imported, Scores, Source, Where
from kleash.imports.gather import Axis, Points, label, number, repeats, settings, whole_object
from kleash.imports.stretches import Numbers
from kleash.runs import FACTS, Run, list_runs

OUTCOMES = {"selector": "accuracy", "env": "eval_reward"}
"""What items are scored by: a selector's, and an agent's."""
FIXED = {"kind", "phase", "epoch", "step"}
NUMBERS = {float, int}
STRETCH = 4096  # records that are taken at once
Record = dict[str, Any]


def fits(path: Path) -> bool:
    """A run, or a folder (of a study) whose folders are runs."""
    return path.is_dir() and (_is_run(path) or any(map(_is_run, path.glob("*"))))


def _is_run(path: Path) -> bool:
    return all((path / name).is_file() for name in FACTS)


def read(path: Path) -> Source:
    """The run, or all runs in the folder."""
    source = Source(str(path), "kleash")
    try:
        runs = [Run.open(path)] if _is_run(path) else list_runs(path)
        source.runs = [read_run(run) for run in runs]
    except RecursionError:
        raise DataError(f"{path}: JSON that is nested too deeply") from None
    return source


def read_run(run: Run, *, scores: bool = True) -> Imported:
    """One run as it was opened, with its scores or for those who have them already."""
    if not isinstance(run.config, dict):
        raise DataError(f"{run.path / 'config.json'} holds no object")
    made = Imported(
        name=run.name,
        arm="",
        format="kleash",
        where=Where(str(run.path)),
        finished=run.finished,
        started=str(run.meta["started"]) if "started" in run.meta else None,
    )
    made.config = settings(seedless(run.config), Where(str(run.path / "config.json")))
    made.series = _series(run)
    made.scores = _scores(run) if scores else []
    made.seconds = _seconds(run)
    return label(made)


def seedless(config: dict[str, Any]) -> dict[str, Any]:
    """The config with its seed taken out of its start: each run has the base of its own seed."""
    start, seed = config.get("from"), config.get("seed")
    if not isinstance(start, str) or seed is None:
        return config
    return config | {"from": start.replace(f"-s{seed}/", "-sSEED/")}


def _series(run: Run) -> list[Any]:
    file = run.path / "metrics.jsonl"
    made: dict[Axis, Points] = {"step": Points(file), "epoch": Points(file)}
    if file.is_file():
        for first, records in _alike(run.metrics()):
            kind, phase = records[0].get("kind", "step"), records[0].get("phase", "grpo")
            if kind not in ("step", "epoch"):
                continue
            axis: Axis = "step" if kind == "step" else "epoch"
            places = [record.get(axis) for record in records]
            if not NUMBERS.issuperset(map(type, places)):
                places = list(map(number, places))
            if None in places:
                raise DataError(f"{file} line {first + places.index(None)} has no {axis}")
            prefix = "" if phase == "grpo" else f"{phase}/"
            _add_records(made[axis], prefix, places, first, records)
    return [series for axis, points in made.items() for series in points.series(axis)]


def _alike(records: Iterable[Record]) -> Iterator[tuple[int, list[Record]]]:
    """Records that follow each other and are about the same, by the stretch; the first's line."""
    first, stretch, last = 1, list[Record](), ()
    for line, record in enumerate(records, 1):
        about = (record.get("kind"), record.get("phase"), *record)
        if about != last or len(stretch) == STRETCH:
            if stretch:
                yield first, stretch
            first, stretch, last = line, [], about
        stretch.append(record)
    if stretch:
        yield first, stretch


def _add_records(
    points: Points, prefix: str, places: list[Any], first: int, records: list[Record]
) -> None:
    """All numbers of records with the same keys: by the column, where there is nothing else."""
    names = [name for name in records[0] if name not in FIXED]
    table = [[record[name] for name in names] for record in records]
    if not NUMBERS.issuperset(map(type, chain.from_iterable(table))):
        for line, (place, row) in enumerate(zip(places, table, strict=True), first):
            for name, value in zip(names, row, strict=True):
                if (taken := number(value)) is not None:
                    points.add(prefix + name, place, taken, line)
        return
    try:
        columns, steps = np.array(table, dtype=np.float64).T, np.array(places, dtype=np.float64)
    except OverflowError:
        raise DataError(f"{points.file} line {first} or later: a number is too large") from None
    rows, no_times = np.arange(len(records)), np.empty(0)
    lines = first + rows.astype(np.int64)
    for name, values in zip(names, columns, strict=True):
        coarse = False if np.isfinite(values).any() else None
        points.extend(prefix + name, steps, Numbers(values, rows, 0, coarse), lines, no_times)


def _seconds(run: Run) -> float | None:
    """Time spent, repeated work included; None where no clock was read."""
    if not (run.path / "timings.jsonl").is_file():
        return None
    spent = [number(record.get("seconds")) for record in run.timings()]
    known = [seconds for seconds in spent if seconds is not None]
    return sum(known) if known else None


class _Cell:
    """The scores of one checkpoint at one number of shots on one split, growing."""

    def __init__(self) -> None:
        self.items: list[str] = []
        self.lines = array("q")
        self.values = {"score": array("d"), "truth_logp": array("d")}

    def add(self, line: int, record: Mapping[str, Any]) -> None:
        self.items.append(sys.intern(str(record.get("item"))))
        self.lines.append(line)
        for name, column in self.values.items():
            taken = number(record.get(name))
            column.append(np.nan if taken is None else taken)


def _scores(run: Run) -> list[Scores]:
    cells: dict[tuple[str, int | None, str], _Cell] = {}
    outcome = next((name for key, name in OUTCOMES.items() if key in run.config), "score")
    for line, record in enumerate(run.scores(), 1):
        shots = record.get("shots") if type(record.get("shots")) is int else None
        key = (str(record.get("checkpoint")), shots, str(record.get("split", "")))
        cells.setdefault(key, _Cell()).add(line, record)
    made = []
    for (checkpoint, shots, split), cell in cells.items():
        for name, column in cell.values.items():
            values = np.array(column)
            if name != "score" and np.isnan(values).all():
                continue
            made.append(
                Scores(
                    metric=outcome if name == "score" else name,
                    items=cell.items,
                    values=values,
                    where=Where(str(run.path / "scores.jsonl"), cell.lines[0]),
                    step=_step(run, checkpoint),
                    shots=shots,
                    split=split,
                    checkpoint=checkpoint,
                    repeats=repeats(cell.items),
                    lines=np.array(cell.lines),
                )
            )
    return made


def _step(run: Run, checkpoint: str) -> float | None:
    """The step a checkpoint was saved at; None for a baseline, or one that is gone."""
    state = run.path / "checkpoints" / checkpoint / "state.json"
    return number(whole_object(state).get("step")) if state.is_file() else None
