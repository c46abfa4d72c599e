"""Kleash's own runs: metrics by step and by epoch, scores of items, config, times.

Lines about single steps make series over steps, lines about epochs series over epochs; those of the
phases before GRPO carry the phase in their name, since each counts its own steps. A score that
broke is NaN: counted, and in no average.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby, islice
from pathlib import Path
from typing import Any

import numpy as np

from kleash.compare.read import Cell, Imported, Scores, Series, Source, Where, selector_files
from kleash.compare.read.gather import (
    Axis,
    Items,
    Numbers,
    Points,
    head,
    number,
    numbers,
    settings,
    whole_object,
)
from kleash.compare.read.run_names import label
from kleash.errors import DataError
from kleash.runs.run import FACTS, Run, list_runs, read_lines

OUTCOMES = {"selector": "accuracy", "env": "eval_reward", "trainer": "eval_reward"}
"""What items are scored by: a selector's, an agent's, those of a trainer that is not ours."""
FIXED = {"kind", "phase", "epoch", "step"}
STRETCH = 4096  # records that are taken at once
NO_TIMES = np.empty(0)
NONE = Numbers(NO_TIMES, np.empty(0, dtype=np.intp))
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
    held = run.held()
    made = Imported(run.name, "", "kleash", Where(str(run.path)), finished="done" in held)
    made.config = settings(seedless(run.config), Where(run.file("config.json")))
    if "metrics.jsonl" in held:
        made.series = _series(run, made.noticed, finished="done" in held)
    made.scores = _scores(run) if scores else []
    made.cells = _cells(run) if "adopted" in held else []
    made.seconds = _seconds(run) if "timings.jsonl" in held else None
    return label(made)


def _cells(run: Run) -> list[Cell]:
    """Accuracies that a run was adopted with: without items, so they are cells and no scores."""
    files = sorted(run.path.glob("adopted/*.json"))
    known = [file for file in files if selector_files.kind_of(head(file, 16_384)) == "accuracy"]
    return [
        cell for file in known for each in selector_files.read(file).runs for cell in each.cells
    ]


def seedless(config: dict[str, Any]) -> dict[str, Any]:
    """The config with its seed taken out of its start: each run has the base of its own seed."""
    start, seed = config.get("from"), config.get("seed")
    if not isinstance(start, str) or seed is None:
        return config
    return config | {"from": start.replace(f"-s{seed}/", "-sSEED/")}


def _series(run: Run, noticed: list[tuple[str, int, Where]], *, finished: bool) -> list[Series]:
    """All metrics; what guards noticed among them goes to a list of its own."""
    file = run.file("metrics.jsonl")
    made: dict[Axis, Points] = {"step": Points(file), "epoch": Points(file)}
    for first, records in _alike(read_lines(file, torn_tail=not finished)):
        kind, phase = records[0].get("kind", "step"), records[0].get("phase", "grpo")
        if kind == "finding":
            for line, record in enumerate(records, first):
                step = number(record.get("step")) or 0
                noticed.append((str(record.get("code")), int(step), Where(file, line)))
        if kind not in ("step", "epoch"):
            continue
        places = numbers([record.get(kind) for record in records])
        if len(places.rows) < len(records):
            lacking = next(at for at, r in enumerate(records) if number(r.get(kind)) is None)
            raise DataError(f"{file} line {first + lacking} has no {kind}")
        lines = np.arange(first, first + len(records))
        prefix = "" if phase == "grpo" else f"{phase}/"
        columns = zip(*map(dict.values, records), strict=True)
        for name, column in zip(records[0], columns, strict=True):
            found = numbers(column) if name not in FIXED else NONE
            if len(found.rows):
                at = places.values[found.rows]
                made[kind].extend(prefix + name, at, found, lines[found.rows], NO_TIMES)
    return [each for axis, points in made.items() for each in points.series(axis)]


def _alike(records: Iterable[Record]) -> Iterator[tuple[int, list[Record]]]:
    """Records that follow each other and are about the same, by the stretch; the first's line."""
    first = 1
    for _, group in groupby(records, key=lambda one: (*one, one.get("kind"), one.get("phase"))):
        while stretch := list(islice(group, STRETCH)):
            yield first, stretch
            first += len(stretch)


def _seconds(run: Run) -> float | None:
    """Time spent, repeated work included; None where no clock was read."""
    spent = [number(record.get("seconds")) for record in run.timings()]
    known = [seconds for seconds in spent if seconds is not None]
    return sum(known) if known else None


def _scores(run: Run) -> list[Scores]:
    cells: dict[tuple[str, int | None, str], Items] = {}
    about: dict[tuple[str, int | None, str], tuple[float | None, str]] = {}
    outcome = next((name for key, name in OUTCOMES.items() if key in run.config), "score")
    for line, record in enumerate(run.scores(), 1):
        shots = record.get("shots") if type(record.get("shots")) is int else None
        key = (str(record.get("checkpoint")), shots, str(record.get("split", "")))
        scores = {outcome: number(record.get("score"))}
        if (logp := number(record.get("truth_logp"))) is not None:
            scores["truth_logp"] = logp
        cells.setdefault(key, Items()).add(str(record.get("item")), line, scores)
        about[key] = number(record.get("step")), str(record.get("weights") or "")
    made = []
    for (checkpoint, shots, split), items in cells.items():
        step, weights = about[checkpoint, shots, split]
        made += items.scores(
            run.path / "scores.jsonl",
            step=_step(run, checkpoint) if step is None else step,
            shots=shots,
            split=split,
            checkpoint=checkpoint,
            weights=weights,
        )
    return made


def _step(run: Run, checkpoint: str) -> float | None:
    """The step a checkpoint was saved at; None for a baseline, or one that is gone."""
    state = run.path / "checkpoints" / checkpoint / "state.json"
    return number(whole_object(state).get("step")) if state.is_file() else None
