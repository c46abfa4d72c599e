"""Tables of any origin: rows of named values become series, scores of items, or cells.

What a table is follows from the names of its columns alone: a step makes series; an item beside a
score makes scores; a metric beside a value is a table on its side; anything else is one measurement
per row. Which it was taken for is noted, so that a wrong guess is seen.
"""

from __future__ import annotations

import re
import sys
from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from kleash.imports import Cell, Imported, Number, Scores, Setting, Source, Where
from kleash.imports.gather import Points, repeats
from kleash.imports.layouts import OF_ROW, SIZES, UNNAMED, Layout, by_shots
from kleash.imports.names import mention
from kleash.imports.run_names import SEED, label
from kleash.imports.stretches import Stretch, Value

Row = tuple[int, Mapping[str, Value]]

AT_EPOCH = re.compile(r"(?:^|[_-])(?:epoch|ep|e)[_-]?(\d{1,4})(?=[_-]|$)", re.I)
OF_SIZE = re.compile(r"[_-]n_?\d{1,7}(?=[_-]|$)", re.I)
UNTELLING = re.compile(  # names of files
    r"(?:metrics|logs?|history|progress|scalars|(?:train|training|eval|evaluation|test)"
    r"(?:_?(?:metrics|results?|logs?|epoch_?\d+|step_?\d+|n_?\d+))*)",
    re.I,
)


def read_rows(path: Path, form: str, rows: Iterator[Row], plan: Layout, source: Source) -> None:
    """Put the runs that the rows are about into the source."""
    read_tables(path, form, ([row] for row in rows), plan, source)


def read_tables(
    path: Path,
    form: str,
    parts: Iterator[Stretch | Sequence[Row]],
    plan: Layout,
    source: Source,
) -> None:
    """The same, of rows by the stretch, or one by one where they have little in common."""
    runs = _Runs(path, form, plan)
    for part in parts:
        if isinstance(part, Stretch):
            part = replace(part, naming=plan.naming)
        if not runs.runs and len(part):
            first = part.row(0) if isinstance(part, Stretch) else part[0][1]
            if plan.telling or plan.leash or plan.among or plan.kind == "matrix":
                rows = part.rows() if isinstance(part, Stretch) else part
                plan.told_apart([row for _, row in rows])
            # Numbers alone, without a word to tell rows apart, are a series that was not numbered.
            if plan.kind == "cells" and plan.countable(first):
                plan.kind = "counted"
        if isinstance(part, Stretch) and plan.by_column:
            runs.take_stretch(part)
            continue
        for line, row in part.rows() if isinstance(part, Stretch) else part:
            runs.take(line, row)
    source.runs += runs.finish()
    shown = {
        "long": "one value per row",
        "items": "one item per row",
        "series": f"one {plan.step} per row",
        "counted": "one step per row, counted from 0",
        "cells": "one measurement per row",
        "matrix": f"one {plan.step} and number of shots per row",
    }
    source.notes.append(f"{path} was read as a table with {shown[plan.kind]}")
    if runs.unnamed:
        source.notes.append(f"{path}: {runs.unnamed} rows name no item: left out")
    if runs.empty:
        source.notes.append(f"{path}: {runs.empty} rows have no step: left out")


class _Table:
    """Scores of items, growing: columns of equal length."""

    def __init__(self) -> None:
        self.items: list[str] = []
        self.lines = array("q")
        self.columns: dict[str, array[float]] = {}


def name_of(path: Path) -> str:
    """The name of the run in a file: the file's, or its folder's where it says nothing of whose."""
    folder = path.absolute().parent.name
    return folder if UNTELLING.fullmatch(path.stem) and folder else path.stem


class _Runs:
    """The runs of a table, in the order in which they appear."""

    def __init__(self, path: Path, form: str, plan: Layout) -> None:
        self.path, self.form, self.plan = path, form, plan
        self.runs: dict[str, Imported] = {}
        self.points: dict[str, Points] = {}
        self.tables: dict[tuple[str, float | None], _Table] = {}
        self.sorts: dict[tuple[str, str], str] = {}
        self.name = name_of(path)
        self.folder = path.absolute().parent.name
        if not plan.step:
            self.name = OF_SIZE.sub("", AT_EPOCH.sub("", self.name)) or self.name
        self.empty = 0
        self.unnamed = 0
        self.count = 0

    def take(self, line: int, row: Mapping[str, Value]) -> None:
        """One row."""
        key = self.owner(line, row)
        if self.plan.kind == "items":
            self.item(key, line, row)
        elif self.plan.kind == "cells":
            self.cells(key, line, row)
        elif self.plan.kind == "matrix":
            self.matrix(key, line, row)
        else:
            self.point(key, line, row)

    def take_stretch(self, stretch: Stretch) -> None:
        """Many rows, each of a step or an item."""
        plan = self.plan
        columns = [plan.run, plan.seed, plan.leash, *plan.telling]
        columns += [plan.step] if plan.kind == "items" else [plan.sort, plan.split]
        about = [name for name in columns if name and name in stretch.columns]
        for part in stretch.alike(about):
            told = {name: part.value(name, part.columns[name][0]) for name in about}
            key = self.owner(int(part.lines[0]), told)
            if plan.kind == "items":
                self.items(key, told.get(plan.step or ""), part)
            else:
                self.stretch(key, part, told)

    def metric(self, key: str, name: str, row: Mapping[str, Value]) -> str:
        """What a number is called: what several sorts of records have, by its sort but the first.

        The mean of an epoch is not the value of its last step, nor one benchmark another.
        """
        for column in (self.plan.sort, self.plan.split):
            sort = row.get(column) if column else None
            if isinstance(sort, str) and self.sorts.setdefault((key, name), sort) != sort:
                name = f"{sort} {name}"
        return name

    def stretch(self, key: str, part: Stretch, row: Mapping[str, Value]) -> None:
        """Rows of the series of one run, of one sort."""
        if self.plan.kind == "counted":
            steps = np.arange(self.count, self.count + len(part), dtype=np.float64)
            self.count += len(part)
        else:
            steps, known = part.dense(self.plan.step)
            self.empty += int((~known).sum())
            if not known.all():
                part, steps = part.take(np.flatnonzero(known)), steps[known]
        times, timed = part.dense(self.plan.time)
        for name, entries in part.columns.items():
            if self.plan.is_part(name):
                continue
            found = part.form.numbers(entries)
            if len(found.rows):
                clock = times[found.rows][timed[found.rows]]
                lines = part.lines[found.rows]
                called = self.metric(key, name, row)
                self.points[key].extend(called, steps[found.rows], found, lines, clock)

    def owner(self, line: int, row: Mapping[str, Value]) -> str:
        """The name of the run a row is about."""
        plan = self.plan
        kinds = {one: row.get(one) for one in plan.telling}
        words = [row.get(plan.run or ""), *(one for one in kinds.values() if isinstance(one, str))]
        parts = [shown(one) for one in words if one]
        leash = row.get(plan.leash) if plan.leash else None
        seed = row.get(plan.seed) if plan.seed else None
        if not parts and plan.kind == "cells" and not (plan.single or plan.split or leash or seed):
            first = next((value for value in row.values() if isinstance(value, str)), None)
            parts = [first or f"{self.name}:{line}"]
        if not plan.step:
            parts = [AT_EPOCH.sub("", part) or part for part in parts]
        parts = parts or [SEED.sub("", self.name) or self.folder if seed else self.name]
        parts += [f"{one}={shown(n)}" for one, n in kinds.items() if isinstance(n, tuple)]
        if (plan.leashes or plan.kind == "matrix") and not plan.run and isinstance(leash, tuple):
            parts.append(f"kl{shown(leash)}")
        if isinstance(seed, tuple):
            parts[-1] = parts[-1].removesuffix(f"-s{shown(seed)}")
            parts.append(f"s{shown(seed)}")
        name = "-".join(parts)
        if name not in self.runs:
            run = Imported(name, "", self.form, Where(str(self.path), line))
            if isinstance(seed, tuple) and seed[0].is_integer():
                run.seed = int(seed[0])
            if isinstance(leash, tuple) and plan.leash:
                run.config[plan.leash] = Setting(leash[0], Where(str(self.path), line, plan.leash))
            self.runs[name] = run
            self.points[name] = Points(self.path)
        return name

    def point(self, key: str, line: int, row: Mapping[str, Value]) -> None:
        """A row of a series, or one value of one."""
        plan = self.plan
        place = row.get(plan.step) if plan.step else (float(self.count), None)
        self.count += plan.kind == "counted"
        if not isinstance(place, tuple):
            self.empty += 1
            return
        moment = row.get(plan.time) if plan.time else None
        time = moment[0] if isinstance(moment, tuple) else None
        if plan.kind == "long":
            assert plan.metric is not None and plan.value is not None
            named = {shown(row.get(plan.metric)): row.get(plan.value)}
        else:
            named = {name: value for name, value in row.items() if not plan.is_part(name)}
        for name, value in named.items():
            if isinstance(value, tuple):
                called = self.metric(key, name, row)
                self.points[key].add(called, place[0], value[0], line, time=time, decimals=value[1])

    def item(self, key: str, line: int, row: Mapping[str, Value]) -> None:
        """The scores of one item."""
        place = row.get(self.plan.step) if self.plan.step else None
        step = place[0] if isinstance(place, tuple) else None
        name = shown(row.get(self.plan.item or ""))
        if not name:
            self.unnamed += 1
            return
        table = self.tables.setdefault((key, step), _Table())
        table.items.append(sys.intern(name))
        table.lines.append(line)
        for name in self.plan.scores:
            value = row.get(name)
            column = table.columns.setdefault(name, array("d"))
            column.append(value[0] if isinstance(value, tuple) else np.nan)

    def items(self, key: str, place: Value, part: Stretch) -> None:
        """The scores of items of one run at one step."""
        step = place[0] if isinstance(place, tuple) else None
        names = [part.form.text(one) for one in part.columns.get(self.plan.item or "", ())]
        if not all(names) or not names:
            self.unnamed += len(part) - sum(map(bool, names))
            part = part.take([row for row, name in enumerate(names) if name])
            names = list(filter(None, names))
        if not names:
            return
        table = self.tables.setdefault((key, step), _Table())
        table.items += map(sys.intern, names)
        table.lines.frombytes(part.lines.tobytes())
        for name in self.plan.scores:
            column = table.columns.setdefault(name, array("d"))
            column.frombytes(part.dense(name)[0].tobytes())

    def matrix(self, key: str, line: int, row: Mapping[str, Value]) -> None:
        """A row of what was measured at a step, or an epoch; without shots it is of a series."""
        plan = self.plan
        at, size = (_whole(row.get(name or "")) for name in (plan.step, plan.size))
        epoch, step = (at, None) if plan.axis == "epoch" else (None, at)
        split = self.split(row)
        for name, value in row.items():
            if not isinstance(value, tuple) or plan.is_part(name):
                continue
            metric, shots = self.shots(name, row)
            if at is not None and shots is None and size is None and not split:
                self.points[key].add(metric, float(at), value[0], line, decimals=value[1])
                continue
            number = Number(value[0], "known", Where(str(self.path), line, name), value[1])
            self.runs[key].cells.append(Cell(metric, number, epoch, step, shots, size, split))

    def shots(self, name: str, row: Mapping[str, Value]) -> tuple[str, int | None]:
        """The metric of a column, and of how many shots it is."""
        return by_shots(name) or (name, _whole(row.get(self.plan.shots or "")))

    def split(self, row: Mapping[str, Value]) -> str:
        """The part of the data that a row is of."""
        return shown(row.get(self.plan.split)) if self.plan.split else ""

    def epoch(self, row: Mapping[str, Value]) -> float | None:
        """The epoch that the name of a run or of its file gives."""
        texts = [shown(row.get(one)) for one in (self.plan.run or "", *self.plan.telling) if one]
        return next(
            (at for one in (*texts, self.path.stem) if (at := _epoch(one)) is not None), None
        )

    def column(self, name: str) -> Imported:
        """The run of a column."""
        called = AT_EPOCH.sub("", name) or name
        made = Imported(called, "", self.form, Where(str(self.path)))
        return self.runs.setdefault(called, made)

    def cells(self, key: str, line: int, row: Mapping[str, Value]) -> None:
        """A row that is one measurement: numbers are cells, words are settings."""
        size = next((_whole(row[name]) for name in SIZES if name in row), None)
        epoch, split = self.epoch(row), self.split(row)
        of_row = self.of_row(row) if self.plan.places else ""
        for name, value in row.items():
            if self.plan.is_part(name):
                continue
            where = Where(str(self.path), line, name)
            statistic = OF_ROW.get(name.strip().lower(), "") if of_row else ""
            if name in self.plan.places:
                metric, at = self.plan.places[name]
                if isinstance(value, tuple):
                    points = self.points[key]
                    points.add(metric or of_row, at, value[0], line, decimals=value[1])
            elif statistic and isinstance(value, tuple):
                number = Number(value[0], "known", where, value[1])
                self.runs[key].cells.append(Cell(of_row, number, statistic=statistic))
            elif isinstance(value, tuple):
                metric, shots = self.shots(name, row)
                number = Number(value[0], "known", where, value[1])
                self.runs[key].cells.append(Cell(metric, number, epoch, None, shots, size, split))
            elif value is None:
                self.runs[key].cells.append(Cell(name, Number(None, "missing", where)))
            else:
                self.runs[key].config[name] = Setting(value, where)

    def of_row(self, row: Mapping[str, Value]) -> str:
        """What a row measured whose columns are steps: as it says, else as its file is called."""
        told = row.get(self.plan.metric or "")
        return (
            told if isinstance(told, str) else mention(self.path.stem.replace("_", " ")) or UNNAMED
        )

    def finish(self) -> list[Imported]:
        """The runs, once all rows are taken."""
        measured = {
            cell.metric
            for run in self.runs.values()
            for cell in run.cells
            if cell.number.state == "known"
        }
        for key, run in self.runs.items():
            run.series = self.points[key].series(self.plan.axis)
            # An empty field in a column of words is no measurement that is missing.
            run.cells = [cell for cell in run.cells if cell.metric in measured]
        for (key, step), table in self.tables.items():
            tries = repeats(table.items)
            for name, column in table.columns.items():
                run, metric, shots = self.runs[key], *self.shots(name, {})
                if self.plan.wide:
                    run, metric, shots = (
                        self.column(name),
                        UNNAMED,
                        self.shots(self.path.stem, {})[1],
                    )
                told = name if self.plan.wide else self.path.stem
                run.scores.append(
                    Scores(
                        metric=metric,
                        items=table.items,
                        values=np.array(column),
                        where=Where(str(self.path), table.lines[0]),
                        step=_epoch(told) if step is None else step,
                        shots=shots,
                        repeats=tries,
                        lines=np.array(table.lines),
                    )
                )
        if self.plan.wide:
            self.runs.pop(self.name, None)
        return [label(run) for run in self.runs.values()]


def _epoch(name: str) -> float | None:
    told = AT_EPOCH.search(name)
    return float(told[1]) if told else None


def _whole(value: Value) -> int | None:
    """A value that counts something."""
    return int(value[0]) if isinstance(value, tuple) and value[0].is_integer() else None


def shown(value: Value) -> str:
    """A value as a name."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    return str(int(value[0])) if value[0].is_integer() else repr(value[0])
