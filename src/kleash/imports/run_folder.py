"""Kleash's own runs: metrics by step and by epoch, scores of items, config, times.

Lines about single steps make series over steps, lines about epochs series over epochs; those of the
phases before GRPO carry the phase in their name, since each counts its own steps. A score that
broke is NaN: counted, and in no average.
"""

from __future__ import annotations

import sys
from array import array
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from itertools import chain, groupby, islice
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kleash.errors import DataError
from kleash.imports import Cell, Imported, Scores, Series, Source, Where, selector_files
from kleash.imports.gather import (
    METRICS,
    Axis,
    head,
    number,
    repeats,
    settings,
    shared,
    whole_object,
)
from kleash.imports.run_names import label
from kleash.runs import FACTS, Run, list_runs, read_lines

OUTCOMES = {"selector": "accuracy", "env": "eval_reward", "trainer": "eval_reward"}
"""What items are scored by: a selector's, an agent's, those of a trainer that is not ours."""
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
    held = run.held()
    made = Imported(
        name=run.name,
        arm="",
        format="kleash",
        where=Where(str(run.path)),
        finished="done" in held,
        started=str(run.meta["started"]) if "started" in run.meta else None,
    )
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
    made: dict[Axis, dict[str, list[_Part]]] = {"step": {}, "epoch": {}}
    for first, records in _alike(read_lines(file, torn_tail=not finished)):
        kind, phase = records[0].get("kind", "step"), records[0].get("phase", "grpo")
        if kind == "finding":
            for line, record in enumerate(records, first):
                step = number(record.get("step")) or 0
                noticed.append((str(record.get("code")), int(step), Where(file, line)))
        if kind not in ("step", "epoch"):
            continue
        axis: Axis = "step" if kind == "step" else "epoch"
        places = [record.get(axis) for record in records]
        if not NUMBERS.issuperset(map(type, places)):
            places = list(map(number, places))
        if None in places:
            raise DataError(f"{file} line {first + places.index(None)} has no {axis}")
        prefix = "" if phase == "grpo" else f"{phase}/"
        for name, part in _parts(file, places, first, records):
            made[axis].setdefault(prefix + name, []).append(part)
        if len(made[axis]) > METRICS:
            raise DataError(f"{file}: more than {METRICS:,} names of metrics in one run")
    return [each for axis, named in made.items() for each in _joined(file, axis, named)]


class _Part(NamedTuple):
    """Points of one metric: steps and lines are shared by all metrics of the same records."""

    steps: NDArray[np.float64]
    lines: NDArray[np.int64]
    values: NDArray[np.float64]
    finite: bool
    """Whether all values of its records are numbers."""


class _Steps(NamedTuple):
    """What metrics with the same records share; but for the file, runs logged alike, too."""

    steps: NDArray[np.float64]
    lines: NDArray[np.int64]
    rises: bool
    last: float


@lru_cache(maxsize=16)
def _steps(steps: bytes, lines: bytes) -> _Steps:
    made = shared(np.frombuffer(steps)), shared(np.frombuffer(lines, np.int64))
    first = Series("", "step", made[0], made[0], Where(""))
    return _Steps(*made, first.rises, first.last)


def _joined(file: str, axis: Axis, named: Mapping[str, list[_Part]]) -> Iterator[Series]:
    """The parts of every metric as one; metrics with the same parts share steps and lines."""
    known: dict[object, tuple[_Steps, Where]] = {}
    for metric, parts in named.items():
        steps, lines, values, finite = parts[0]
        key: object = id(steps)
        if len(parts) > 1:
            key = tuple(id(part.steps) for part in parts)
            values = np.concatenate([part.values for part in parts])
            finite = all(part.finite for part in parts)
        if key not in known:
            if len(parts) > 1:
                steps = np.concatenate([part.steps for part in parts])
                lines = np.concatenate([part.lines for part in parts])
            every = _steps(steps.tobytes(), lines.tobytes())
            known[key] = every, Where(file, int(lines[0]))
        (steps, lines, rises, last), where = known[key]
        made = Series(metric, axis, steps, values, where, lines=lines)
        finite = finite or bool(np.isfinite(values).all())
        yield made.known(rises=rises, last=last, finite=finite)


def _alike(records: Iterable[Record]) -> Iterator[tuple[int, list[Record]]]:
    """Records that follow each other and are about the same, by the stretch; the first's line."""
    first = 1
    for names, group in groupby(records, key=tuple):
        told = [name for name in ("kind", "phase") if name in names]
        while stretch := list(islice(group, STRETCH)):
            kinds = [[record[name] for record in stretch] for name in told]
            several = any(each.count(each[0]) < len(each) for each in kinds)
            parts = groupby(stretch, key=itemgetter(*told)) if several else [(None, stretch)]
            for part in (list(part) for _, part in parts):
                yield first, part
                first += len(part)


def _parts(
    file: str, places: list[Any], first: int, records: list[Record]
) -> Iterator[tuple[str, _Part]]:
    """The numbers of records with the same keys: by the column, where there is nothing else."""
    told = dict(zip(records[0], zip(*map(dict.values, records), strict=True), strict=True))
    names, count = [name for name in told if name not in FIXED], len(records)
    if not names:
        return
    every = list(chain.from_iterable(told[name] for name in names))
    plain = NUMBERS.issuperset(map(type, every))
    if not plain:
        every = list(map(number, every))  # None where there is no number
    try:
        columns = np.array(every, dtype=np.float64).reshape(len(names), count)
        steps = np.array(places, dtype=np.float64)
    except OverflowError:
        raise DataError(f"{file} line {first} or later: a number is too large") from None
    lines = np.arange(first, first + count, dtype=np.int64)
    finite = bool(np.isfinite(columns).all())
    if plain:
        for at, name in enumerate(names):
            yield name, _Part(steps, lines, columns[at], finite)
        return
    known = {
        at: [nth for nth in range(count) if every[at * count + nth] is not None]
        for at in range(len(names))
    }
    for at in sorted((at for at in known if known[at]), key=lambda at: known[at][0]):
        rows = known[at]
        part = _Part(steps, lines, columns[at], finite)
        if len(rows) < count:
            part = _Part(steps[rows], lines[rows], columns[at][rows], finite)
        yield names[at], part


def _seconds(run: Run) -> float | None:
    """Time spent, repeated work included; None where no clock was read."""
    spent = [number(record.get("seconds")) for record in run.timings()]
    known = [seconds for seconds in spent if seconds is not None]
    return sum(known) if known else None


class _Cell:
    """The scores of one checkpoint at one number of shots on one split, growing."""

    def __init__(self) -> None:
        self.items: list[str] = []
        self.lines = array("q")
        self.step: float | None = None
        self.weights = ""
        self.values = {"score": array("d"), "truth_logp": array("d")}

    def add(self, line: int, record: Mapping[str, Any]) -> None:
        self.items.append(sys.intern(str(record.get("item"))))
        self.lines.append(line)
        self.step = number(record.get("step"))
        self.weights = str(record.get("weights") or "")
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
                    weights=cell.weights,
                )
            )
    return made


def _step(run: Run, checkpoint: str) -> float | None:
    """The step a checkpoint was saved at; None for a baseline, or one that is gone."""
    state = run.path / "checkpoints" / checkpoint / "state.json"
    return number(whole_object(state).get("step")) if state.is_file() else None
