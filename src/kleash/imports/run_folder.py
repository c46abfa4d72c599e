"""Kleash's own runs: metrics by step and by epoch, scores of items, config, times.

Lines about single steps make series over steps, lines about epochs series over epochs; those of the
phases before GRPO carry the phase in their name, since each counts its own steps. A score that
broke is NaN: counted, and in no average.
"""

from __future__ import annotations

import sys
from array import array
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from kleash.errors import DataError
from kleash.imports import Imported, Scores, Source, Where
from kleash.imports.gather import Axis, Points, label, number, repeats, settings, whole_object
from kleash.runs import FACTS, Run, list_runs

OUTCOMES = {"selector": "accuracy", "env": "eval_reward", "trainer": "eval_reward"}
"""What items are scored by: a selector's, an agent's, those of a trainer that is not ours."""
FIXED = {"kind", "phase", "epoch", "step"}


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
    steps, epochs = Points(file), Points(file)
    if file.is_file():
        for line, record in enumerate(run.metrics(), 1):
            kind, phase = record.get("kind", "step"), record.get("phase", "grpo")
            if kind not in ("step", "epoch"):
                continue
            axis: Axis = "step" if kind == "step" else "epoch"
            place = number(record.get(axis))
            if place is None:
                raise DataError(f"{file} line {line} has no {axis}")
            prefix = "" if phase == "grpo" else f"{phase}/"
            (steps if axis == "step" else epochs).add_row(prefix, place, record, line, FIXED)
    return [*steps.series("step"), *epochs.series("epoch")]


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
        self.step: float | None = None
        self.values = {"score": array("d"), "truth_logp": array("d")}

    def add(self, line: int, record: Mapping[str, Any]) -> None:
        self.items.append(sys.intern(str(record.get("item"))))
        self.lines.append(line)
        self.step = number(record.get("step"))
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
                    step=_step(run, checkpoint) if cell.step is None else cell.step,
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
