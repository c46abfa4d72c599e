"""Tables of any origin: rows of named values become series, scores of items, or cells.

What a table is follows from the names of its columns alone: a step makes series; an item beside a
score makes scores; a metric beside a value is a table on its side; anything else is one measurement
per row. Which it was taken for is noted, so that a wrong guess is seen. Columns are taken at once,
not number by number; every number keeps its row, and with it its line. The file is long because the
parts that columns may play and the runs that follow from them are one set of rules.
"""

from __future__ import annotations

import math
import re
from array import array
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kleash.compare.read import Cell, Imported, Number, Setting, Source, Where, names
from kleash.compare.read.gather import Axis, Items, Numbers, Points
from kleash.compare.read.names import COLUMNS
from kleash.compare.read.run_names import SEED

Value = tuple[float, int | None] | str | None
Row = Mapping[str, Value]
Floats = NDArray[np.float64]

TABLES = ("csv", "jsonl")  # formats whose rows may be anything: curves, results, settings
UNNAMED = "score"  # what a column that names nothing but its shots holds
AT_EPOCH = re.compile(r"(?:^|[_-])(?:epoch|ep|e)[_-]?(\d{1,4})(?=[_-]|$)", re.I)
OF_SIZE = re.compile(r"[_-]n_?\d{1,7}(?=[_-]|$)", re.I)
UNTELLING = re.compile(  # names of files
    r"(?:metrics|logs?|history|progress|scalars|(?:train|training|eval|evaluation|test)"
    r"(?:_?(?:metrics|results?|logs?|epoch_?\d+|step_?\d+|n_?\d+))*)",
    re.I,
)
BY_SHOTS = re.compile(
    r"(?:(?P<metric>.+?)[._/ ])?(?:shots?[_-]?(?P<of>\d{1,3})|(?P<by>\d{1,3})[_-]?shots?)", re.I
)
SHOTS_FIRST = re.compile(r"shots?[._/](?P<of>\d{1,3})[._/](?P<metric>.+)", re.I)
AT_PLACE = re.compile(  # a column for each step: "step 100", "reward@step200", "第100步"
    r"(?:(?P<metric>.+?)[ _/@-]+)?(?:(?:global[ _-]?)?(?P<axis>step|iter|epoch)[ _-]?"
    r"(?P<at>\d{1,9})|第?(?P<nth>\d{1,9}) ?(?P<zh>[步轮]))",
    re.I,
)
KINDS = {
    "long": "one value per row",
    "items": "one item per row",
    "series": "one {} per row",
    "counted": "one step per row, counted from 0",
    "cells": "one measurement per row",
    "matrix": "one {} and number of shots per row",
}


# --- rows


@dataclass(frozen=True)
class Form:
    """How a format writes: what one entry is, the numbers in many, and an entry as a name."""

    name: str
    value: Callable[[Any], Value]
    numbers: Callable[[Sequence[Any]], Numbers]
    text: Callable[[Any], str]


def one_by_one(entries: Sequence[Any], value: Callable[[Any], Value]) -> Numbers:
    """The numbers among entries of any kind."""
    rows, values, decimals = array("q"), array("d"), 0
    coarse: bool | None = None
    for row, entry in enumerate(entries):
        found = value(entry)
        if not isinstance(found, tuple):
            continue
        rows.append(row)
        values.append(found[0])
        if found[1] is not None:
            decimals, coarse = max(decimals, found[1]), coarse is not False
        elif math.isfinite(found[0]):
            coarse = False
    return Numbers(np.array(values), np.array(rows, dtype=np.intp), decimals, coarse)


@dataclass(frozen=True)
class Rows:
    """Some rows of a table: their lines, and of every column the rows that have it with entries."""

    lines: NDArray[np.int64]
    columns: Mapping[str, tuple[NDArray[np.intp], Sequence[Any]]]
    form: Form
    naming: Collection[str] = ()
    """Columns that name runs: there "none" and "NA" are names."""

    def __len__(self) -> int:
        """How many rows."""
        return len(self.lines)

    def take(self, rows: Sequence[int] | NDArray[np.intp]) -> Rows:
        """Some of its rows."""
        place = np.full(len(self), -1)
        place[rows] = np.arange(len(rows))
        columns = {}
        for name, (where, entries) in self.columns.items():
            new = place[where]
            held = np.flatnonzero(new >= 0)
            if len(held):
                columns[name] = new[held], [entries[at] for at in held.tolist()]
        return replace(self, lines=self.lines[rows], columns=columns)

    def alike(self, about: Sequence[str]) -> Iterator[Rows]:
        """Its parts whose rows say the same under these names, in order of appearance."""
        groups: dict[tuple[Any, ...], list[int]] = {}
        keys = list(zip(*map(self._meant, about), strict=True))
        if not keys or keys.count(keys[0]) == len(keys):
            yield self
            return
        for row, key in enumerate(keys):
            groups.setdefault(key, []).append(row)
        for rows in groups.values():
            yield self.take(rows)

    def value(self, name: str, entry: Any) -> Value:
        """What an entry says under a name."""
        held = self.form.value(entry)
        if held is None and name in self.naming and any(map(str.isalnum, self.form.text(entry))):
            return self.form.text(entry)
        return held

    def _meant(self, name: str) -> list[Any]:
        """What every row says: 1 and 1.0 are the same, and so are two ways of writing nothing."""
        rows, entries = self.columns[name]
        values = {entry: self.value(name, entry) for entry in set(entries)}
        meant: list[Any] = [None] * len(self)
        for row, entry in zip(rows.tolist(), entries, strict=True):
            held = values[entry]
            meant[row] = held[0] if isinstance(held, tuple) else held
        return meant

    def rows(self) -> list[dict[str, Value]]:
        """What each row says."""
        made: list[dict[str, Value]] = [{} for _ in self.lines]
        for name, (rows, entries) in self.columns.items():
            for row, entry in zip(rows.tolist(), entries, strict=True):
                made[row][name] = self.value(name, entry)
        return made

    def first(self, about: Iterable[str]) -> dict[str, Value]:
        """What its first row says under these names."""
        found = {}
        for name in about:
            if name in self.columns and self.columns[name][0][0] == 0:
                found[name] = self.value(name, self.columns[name][1][0])
        return found

    def numbers(self, name: str) -> Numbers:
        """The numbers of a column, with their rows."""
        rows, entries = self.columns[name]
        found = self.form.numbers(entries)
        return replace(found, rows=rows[found.rows])

    def dense(self, name: str | None) -> tuple[Floats, NDArray[np.bool_]]:
        """A column's number for every row, NaN where there is none, and where there is one."""
        values, known = np.full(len(self), np.nan), np.zeros(len(self), dtype=bool)
        if name is not None and name in self.columns:
            found = self.numbers(name)
            values[found.rows], known[found.rows] = found.values, True
        return values, known

    def texts(self, name: str) -> list[str]:
        """A column as names, "" where there is none."""
        made = [""] * len(self)
        for row, entry in zip(*self.columns.get(name, ((), ())), strict=True):
            made[row] = self.form.text(entry)
        return made


# --- which column plays which part


def _named(columns: Iterable[str], *parts: str) -> str | None:
    """The first of the names of a part that a column has, whatever its case."""
    lower = {column.strip().lower(): column for column in reversed(list(columns))}
    every = (name for part in parts for name in COLUMNS[part])
    return next((lower[name] for name in every if name in lower), None)


def by_shots(column: str) -> tuple[str, int] | None:
    """The metric of a column that says of how many shots it is, and these."""
    if first := SHOTS_FIRST.fullmatch(column):
        return first["metric"], int(first["of"])
    by = BY_SHOTS.fullmatch(column)
    return (by["metric"] or UNNAMED, int(by["of"] or by["by"])) if by else None


def _is_leash(column: str) -> bool:
    known = names.key(column)
    return known is not None and known.name == "leash.coefficient"


@dataclass
class Layout:
    """Which column plays which part."""

    kind: str
    step: str | None = None
    run: str | None = None
    seed: str | None = None
    item: str | None = None
    metric: str | None = None
    value: str | None = None
    time: str | None = None
    shots: str | None = None
    size: str | None = None
    leash: str | None = None
    """The KL coefficient. Where it differs within a file, each has its run."""
    split: str | None = None
    telling: tuple[str, ...] = ()
    """What may tell runs apart; those that do, once some rows were seen (`look_at`)."""
    leashes: bool = False
    """Whether rows of one step have several coefficients."""
    sort: str | None = None
    """What sort of record a row of a series is: steps and the means of epochs may be in one."""
    scores: tuple[str, ...] = ()
    among: str | None = None
    """What names items, where no column has a score's name."""
    single: bool = False  # the table is one row by nature
    wide: bool = False
    """Whether items have a column of scores for each run."""
    places: Mapping[str, tuple[str, float]] = field(default_factory=dict)
    """Columns of a step each: the metric, if they tell it, and the step."""
    by_epoch: bool = False

    @property
    def axis(self) -> Axis:
        """What the steps count."""
        if self.step is None:
            return "epoch" if self.by_epoch else "step"
        return "epoch" if self.step.strip().lower() in COLUMNS["epoch"] else "step"

    @property
    def naming(self) -> tuple[str, ...]:
        """What names runs."""
        return (*self.telling, *((self.run,) if self.run else ()))

    def is_part(self, column: str) -> bool:
        """Whether a column says what a row is about, so that it is no metric."""
        return column in self.telling or column in (
            self.step, self.run, self.seed, self.item, self.metric, self.time, self.shots,
            self.size, self.split, self.leash if self.leashes or self.kind == "matrix" else None,
        )  # fmt: skip

    def look_at(self, part: Rows) -> None:
        """Settle what only rows tell: what tells runs apart, and whether they are items."""
        if self.telling or self.leash or self.among or self.kind == "matrix":
            self._tell_apart(part.rows())
        # Numbers alone, without a word to tell rows apart, are a series that was not numbered.
        words = any(isinstance(value, str) for value in part.first(part.columns).values())
        about = self.run or self.seed or words or self.single or self.leashes or self.places
        if self.kind == "cells" and not about:
            self.kind = "counted"

    def _tell_apart(self, rows: Sequence[Row]) -> None:
        """Keep of what may tell runs apart that in which some rows differ."""
        self.telling = tuple(
            one
            for one in self.telling
            if len({held for row in rows if isinstance(held := row.get(one), str)}) > 1
        )
        said = {(self._place(row), row.get(self.leash)) for row in rows if self.leash}
        leashes = {leash for _, leash in said}
        self.leashes = len({place for place, _ in said}) < len(said) and all(map(_is_set, leashes))
        if len(leashes) > 1 and not self.leashes:
            self.leash = None  # one that is steered: a curve
        if self.kind == "matrix" or (self.kind == "cells" and self.leashes):
            self.telling += self._setting(rows)
        if self.among and not self.run and not self.seed:
            self._widen(rows)
        if self.among and self.kind != "items":
            self._by_item(rows)

    def _widen(self, rows: Sequence[Row]) -> None:
        """Take a table for one of items if all its numbers lie between 0 and 1, a run a column."""
        held = {name: [row.get(name) for row in rows] for name in rows[0] if name != self.among}
        scores = [
            name
            for name, column in held.items()
            if all(isinstance(one, tuple) and 0 <= one[0] <= 1 for one in column)
        ]
        numbers = [n for n, column in held.items() if any(isinstance(o, tuple) for o in column)]
        if len(scores) > 1 and scores == numbers:
            self.kind, self.item, self.scores, self.wide = "items", self.among, tuple(scores), True

    def _by_item(self, rows: Sequence[Row]) -> None:
        """Take a table for one of items if a run has several rows at one place, each of another."""
        item = self.among or ""
        held = [row.get(item) for row in rows]
        if not self.run and item.strip().lower() == "id" and any(isinstance(o, str) for o in held):
            return  # the names of runs
        places = [(self._place(row), row.get(self.leash or "")) for row in rows]
        said = {(place, one) for place, one in zip(places, held, strict=True) if one is not None}
        if len({place for place, _ in said}) == len(said):
            return
        beside = [name for name in rows[0] if name != item and not self.is_part(name)]
        known = [name for name in beside if names.metric(name)]
        self.kind, self.item, self.scores = "items", item, tuple(known or beside)

    def _place(self, row: Row) -> tuple[Value, ...]:
        """What a row is about but for its coefficient."""
        about = (self.step, self.run, self.seed, self.shots, self.size, self.split, *self.telling)
        return tuple(row.get(one) for one in about if one)

    def _setting(self, rows: Sequence[Row]) -> tuple[str, ...]:
        """The count or word that tells rows of one place apart: "train_samples"."""
        places = [(self._place(row), row.get(self.leash or "")) for row in rows]
        if len(set(places)) == len(places):
            return ()
        for column in rows[0]:
            held = [row.get(column) for row in rows]
            counts = all(not isinstance(one, tuple) or one[0].is_integer() for one in held)
            counts = counts and not names.metric(column)
            if self.is_part(column) or not (names.key(column) if self.kind == "cells" else counts):
                continue
            if len(set(zip(places, held, strict=True))) == len(places):
                return (column,)
        return ()


def _is_set(value: Value) -> bool:
    """Whether a coefficient may have been chosen: 0.05, not 0.0937."""
    return not isinstance(value, tuple) or f"{value[0]:.2g}" == f"{value[0]:.6g}"


def layout(columns: list[str]) -> Layout:
    """What a table with these columns is."""
    found = Layout("cells")
    for part in ("run", "seed", "item", "metric", "value", "time", "shots", "split"):
        setattr(found, part, _named(columns, part))
    found.step = _named(columns, "step", "epoch")
    found.leash = next((one for one in columns if _is_leash(one)), None)
    lower = {column: column.strip().lower() for column in columns}
    found.telling = tuple(c for name in COLUMNS["telling"] for c in columns if lower[c] == name)
    found.scores = tuple(c for c in columns if lower[c] in COLUMNS["score"])
    if not found.step and not found.item and (item := _named(columns, "counted")):
        found.scores = found.scores or tuple(c for c in columns if by_shots(c))
        found.item = item if found.scores else None
    if found.metric and found.value:
        found.kind = "long"
    elif found.item and found.scores:
        found.kind = "items"
    elif found.step and (found.shots or any(map(by_shots, columns))):
        found.kind = "matrix"
        found.size = _named(columns, "size")
    elif found.step:
        found.kind = "series"
        found.sort = _named(columns, "sort")
    found.shots = found.shots if found.kind in ("matrix", "cells") else None
    if found.kind != "items":
        found.among = found.item if found.kind in ("cells", "series") else None
        found.item = None
    if found.kind == "cells":
        _by_place(found, columns)
    if found.kind != "long" and not found.places:
        found.metric = None
    return found


def _by_place(found: Layout, columns: Sequence[str]) -> None:
    """Two columns or more that are named by a step are points of a curve in each row."""
    named = {one: match for one in columns if (match := AT_PLACE.fullmatch(one.strip()))}
    if len(named) > 1:
        found.places = {
            one: (m["metric"] or "", float(m["at"] or m["nth"])) for one, m in named.items()
        }
        found.by_epoch = all(m["axis"] == "epoch" or m["zh"] == "轮" for m in named.values())


# --- runs


def read_table(path: Path, form: str, parts: Iterable[Rows], plan: Layout, source: Source) -> None:
    """Put the runs that the rows are about into the source."""
    runs = _Runs(path, form, plan)
    for part in parts:
        part = replace(part, naming=plan.naming)
        if not runs.runs and len(part):
            plan.look_at(part)
        runs.take(part)
    source.runs += runs.finish()
    source.notes.append(f"{path} was read as a table with {KINDS[plan.kind].format(plan.step)}")
    if runs.unnamed:
        source.notes.append(f"{path}: {runs.unnamed} rows name no item: left out")
    if runs.empty:
        source.notes.append(f"{path}: {runs.empty} rows have no step: left out")


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
        self.items: dict[tuple[str, float | None], Items] = {}
        self.sorts: dict[tuple[str, str], str] = {}
        self.name = name_of(path)
        self.folder = path.absolute().parent.name
        if not plan.step:
            self.name = OF_SIZE.sub("", AT_EPOCH.sub("", self.name)) or self.name
        self.empty = self.unnamed = self.count = 0

    def take(self, part: Rows) -> None:
        """Some rows."""
        plan = self.plan
        if plan.kind in ("cells", "matrix"):
            take = self.cells if plan.kind == "cells" else self.matrix
            for line, row in zip(part.lines.tolist(), part.rows(), strict=True):
                take(self.owner(line, row), line, row)
            return
        columns = [plan.run, plan.seed, plan.leash, *plan.telling]
        columns += [plan.step] if plan.kind == "items" else [plan.sort, plan.split]
        columns += [plan.metric] if plan.kind == "long" else []
        about = [name for name in columns if name and name in part.columns]
        for rows in part.alike(about):
            row = rows.first(about)
            key = self.owner(int(rows.lines[0]), row)
            if plan.kind == "items":
                self.scores(key, row.get(plan.step or ""), rows)
            else:
                self.series(key, rows, row, part.lines)
        self.count += len(part)

    def metric(self, key: str, name: str, row: Row) -> str:
        """What a number is called: what several sorts of records have, by its sort but the first.

        The mean of an epoch is not the value of its last step, nor one benchmark another.
        """
        for column in (self.plan.sort, self.plan.split):
            sort = row.get(column) if column else None
            if isinstance(sort, str) and self.sorts.setdefault((key, name), sort) != sort:
                name = f"{sort} {name}"
        return name

    def series(self, key: str, part: Rows, row: Row, lines: NDArray[np.int64]) -> None:
        """Rows of the series of one run, of one sort, among the rows of these lines."""
        plan = self.plan
        steps, known = part.dense(plan.step)
        if plan.step is None:  # counted, or values that have no step
            known[:] = True
            steps = np.zeros(len(part))
            if plan.kind == "counted":
                steps += self.count + np.searchsorted(lines, part.lines)
        if not known.all():
            self.empty += int((~known).sum())
            part, steps = part.take(np.flatnonzero(known)), steps[known]
        times, timed = part.dense(plan.time)
        one = {plan.value: shown(row.get(plan.metric or ""))} if plan.kind == "long" else None
        for name in part.columns:
            if plan.is_part(name) or (one is not None and name not in one):
                continue
            found = part.numbers(name)
            if len(found.rows):
                clock = times[found.rows][timed[found.rows]]
                called = self.metric(key, name if one is None else one[name], row)
                at = part.lines[found.rows]
                self.points[key].extend(called, steps[found.rows], found, at, clock)

    def owner(self, line: int, row: Row) -> str:
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
            run = self.runs[name] = Imported(name, "", self.form, Where(str(self.path), line))
            if isinstance(seed, tuple) and seed[0].is_integer():
                run.seed = int(seed[0])
            if isinstance(leash, tuple) and plan.leash:
                run.config[plan.leash] = Setting(leash[0], Where(str(self.path), line, plan.leash))
            self.points[name] = Points(self.path)
        return name

    def scores(self, key: str, place: Value, part: Rows) -> None:
        """The scores of items of one run at one step."""
        step = place[0] if isinstance(place, tuple) else None
        items = part.texts(self.plan.item or "")
        self.unnamed += len(part) - sum(map(bool, items))
        if not all(items):
            part = part.take([row for row, name in enumerate(items) if name])
            items = list(filter(None, items))
        if items:
            columns = {name: part.dense(name)[0] for name in self.plan.scores}
            self.items.setdefault((key, step), Items()).extend(items, part.lines, columns)

    def matrix(self, key: str, line: int, row: Row) -> None:
        """A row of what was measured at a step, or an epoch; without shots it is of a series."""
        plan = self.plan
        at, size = (_whole(row.get(name or "")) for name in (plan.step, plan.size))
        epoch, step = (at, None) if plan.axis == "epoch" else (None, at)
        split = shown(row.get(plan.split)) if plan.split else ""
        for name, value in row.items():
            if not isinstance(value, tuple) or plan.is_part(name):
                continue
            metric, shots = self.shots(name, row)
            if at is not None and shots is None and size is None and not split:
                self.points[key].add(metric, float(at), value[0], line, decimals=value[1])
                continue
            number = Number(value[0], "known", Where(str(self.path), line, name), value[1])
            self.runs[key].cells.append(Cell(metric, number, epoch, step, shots, size, split))

    def shots(self, name: str, row: Row) -> tuple[str, int | None]:
        """The metric of a column, and of how many shots it is."""
        return by_shots(name) or (name, _whole(row.get(self.plan.shots or "")))

    def cells(self, key: str, line: int, row: Row) -> None:
        """A row that is one measurement: numbers are cells, words are settings."""
        plan, run = self.plan, self.runs[key]
        size = next((_whole(row[name]) for name in COLUMNS["size"] if name in row), None)
        texts = [shown(row.get(one)) for one in (plan.run or "", *plan.telling) if one]
        epochs = (_epoch(one) for one in (*texts, self.path.stem))
        epoch = next((at for at in epochs if at is not None), None)
        split = shown(row.get(plan.split)) if plan.split else ""
        of_row = self.of_row(row) if plan.places else ""
        for name, value in row.items():
            if plan.is_part(name):
                continue
            where = Where(str(self.path), line, name)
            best = next((s for s, n in COLUMNS["of_row"].items() if name.strip().lower() in n), "")
            if name in plan.places:
                metric, at = plan.places[name]
                if isinstance(value, tuple):
                    self.points[key].add(metric or of_row, at, value[0], line, decimals=value[1])
            elif isinstance(value, tuple):
                number = Number(value[0], "known", where, value[1])
                metric, shots = self.shots(name, row)
                cell = Cell(metric, number, epoch, None, shots, size, split)
                run.cells.append(Cell(of_row, number, statistic=best) if of_row and best else cell)
            elif value is None:
                run.cells.append(Cell(name, Number(None, "missing", where)))
            else:
                run.config[name] = Setting(value, where)

    def of_row(self, row: Row) -> str:
        """What a row measured whose columns are steps: as it says, else as its file is called."""
        said = row.get(self.plan.metric or "")
        mentioned = names.mention(self.path.stem.replace("_", " "))
        return said if isinstance(said, str) else mentioned or UNNAMED

    def finish(self) -> list[Imported]:
        """The runs, once all rows are taken."""
        cells = (cell for run in self.runs.values() for cell in run.cells)
        measured = {cell.metric for cell in cells if cell.number.state == "known"}
        for key, run in self.runs.items():
            run.series = self.points[key].series(self.plan.axis)
            # An empty field in a column of words is no measurement that is missing.
            run.cells = [cell for cell in run.cells if cell.metric in measured]
        for (key, step), items in self.items.items():
            for each in items.scores(self.path, step=step):
                run, (metric, shots), said = self.runs[key], self.shots(each.metric, {}), ""
                if self.plan.wide:
                    said, metric, shots = each.metric, UNNAMED, self.shots(self.path.stem, {})[1]
                    called = AT_EPOCH.sub("", said) or said
                    made = Imported(called, "", self.form, Where(str(self.path)))
                    run = self.runs.setdefault(called, made)
                at = _epoch(said or self.path.stem) if step is None else step
                run.scores.append(replace(each, metric=metric, shots=shots, step=at))
        if self.plan.wide:
            self.runs.pop(self.name, None)
        return list(self.runs.values())


def _epoch(name: str) -> float | None:
    found = AT_EPOCH.search(name)
    return float(found[1]) if found else None


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
