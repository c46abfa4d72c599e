"""What a document says so far, arm by arm, until it becomes records.

A number printed twice is kept once. Where two places give one arm different numbers for the same
point, both histories stay.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np

from kleash.compare.read import (
    Cell,
    Imported,
    Number,
    Series,
    Setting,
    Source,
    Where,
    names,
)
from kleash.compare.read.markdown.derived import bounds
from kleash.compare.read.markdown.labels import Arms
from kleash.compare.read.markdown.numbers import Place, Reading
from kleash.compare.read.markdown.senses import Sense

Course = Literal["step", "epoch"]
SEED = "\0seed "  # between an arm and its seed; no text holds NUL


@dataclass
class History:
    """One telling of a metric of an arm: points by step, in the order in which they are told."""

    metric: str
    axis: Course
    points: dict[float, Number] = field(default_factory=dict)


def agree(ours: Number, theirs: Number) -> bool:
    """Whether two printed numbers may be the same number, printed to the same or other decimals."""
    one, other = bounds(ours), bounds(theirs)
    if one is None or other is None:
        return False
    # Printed to the same decimals, ranges that only touch are two numbers.
    slack = 1e-9 * max(map(abs, (*one, *other))) if one[0] == one[1] or other[0] == other[1] else 0
    slack = slack or -1e-9 * max(map(abs, (*one, *other)))
    return one[0] <= other[1] + slack and other[0] <= one[1] + slack


def identity(metric: str) -> str:
    """What a metric is counted as: its known name, or its spelling."""
    known = names.metric(metric)
    return known.name if known else names.spelling(metric)


def _elsewhere(cell: Cell, place: Place, statistic: str) -> bool:
    """Whether a best is told again at another step or epoch."""
    steps = ((cell.step, place.step), (cell.epoch, place.epoch))
    return bool(statistic) and any(None not in pair and pair[0] != pair[1] for pair in steps)


@dataclass(frozen=True)
class Command:
    """A command of a document: whose it is, which cells it names, and whether it measures."""

    text: str
    arm: str
    place: Place
    values: frozenset[int]
    every: bool
    evaluates: bool

    def fills(self, cell: Cell) -> bool:
        """Whether it names the cell: every place it gives is the cell's, and it gives one."""
        if self.evaluates and cell.shots is None and cell.items is None:
            return False
        ours = (self.place.epoch, self.place.step, self.place.shots, self.place.items)
        theirs = (cell.epoch, cell.step, cell.shots, cell.items)
        named = [(a, b) for a, b in zip(ours, theirs, strict=True) if a is not None]
        if named:
            return all(a == b for a, b in named)
        at = cell.epoch if cell.epoch is not None else cell.step
        alone = at in self.values and (cell.items is None or cell.items in self.values)
        return alone or (self.every and self.evaluates)


@dataclass(frozen=True)
class Printed:
    """One cell of a table that was understood: where it stands, what it is and holds."""

    table: int
    """The line of the table's header."""
    line: int
    column: int
    row: int
    nth: int
    """Its row, and its column behind those that name rows, each from 0."""
    sense: Sense
    read: Reading
    where: Where

    @property
    def value(self) -> Number | None:
        """The number to take differences of: for "45 (2.202)" under a best step, the value."""
        if self.sense.statistic == "best step" and self.read.inner is not None:
            return self.read.inner
        return self.read.number


@dataclass
class Draft:
    """A document on its way to records."""

    source: Source
    arms: Arms
    outcome: str = ""
    runs: dict[str, Imported] = field(default_factory=dict)
    histories: dict[tuple[str, str, Course], list[History]] = field(default_factory=dict)
    cells: dict[tuple[str, str, Place, str], list[Cell]] = field(default_factory=dict)
    shared: list[tuple[str, Any, Where]] = field(default_factory=list)
    boxes: list[tuple[str, str, Number, Place]] = field(default_factory=list)
    commands: list[Command] = field(default_factory=list)
    printed: list[Printed] = field(default_factory=list)

    def where(self, line: int, spot: str = "") -> Where:
        """A place in this document."""
        return Where(self.source.path, line, spot[:120])

    def run(self, arm: str) -> Imported:
        """The run of an arm."""
        if arm not in self.runs:
            # An arm that a document does not name is the document itself.
            whose, _, seed = arm.partition(SEED)
            name = whose or self.source.path.replace("\\", "/").rsplit("/", 1)[-1]
            name = f"{name}-s{seed}" if seed else name
            run = Imported(name, whose, "markdown", self.where(1))
            run.seed = int(seed) if seed else None
            self.runs[arm] = run
        return self.runs[arm]

    def add_points(
        self, arm: str, metric: str, axis: Course, points: Sequence[tuple[float, Number]]
    ) -> None:
        """Points that one block tells of one metric. Missing ones become missing cells."""
        told: dict[float, Number] = {}
        for at, number in points:
            if number.value is None or at in told:
                place = Place(epoch=int(at)) if axis == "epoch" else Place(step=int(at))
                self.add_cell(arm, metric, number, place)
            else:
                told[at] = number
        if not told:
            return
        self.run(arm)
        histories = self.histories.setdefault((arm, identity(metric), axis), [])
        for history in histories:
            both = told.keys() & history.points.keys()
            if all(agree(told[at], history.points[at]) for at in both):
                history.points.update({at: told[at] for at in told if at not in both})
                return
        if histories:
            first = next(iter(told.values())).where.line
            self.source.notes.append(
                f"line {first}: {self.run(arm).name} has another history of {metric}; both are kept"
            )
        histories.append(History(metric, axis, told))

    def add_cell(
        self, arm: str, metric: str, number: Number, place: Place, statistic: str = ""
    ) -> None:
        """A measurement. A value fills the gap of an equal missing cell; differing values stay."""
        # A best is one, whether or not it is said at which step.
        at = Place() if statistic in ("best", "min", "max") else place._replace(span=None)
        key = (arm, identity(metric), at, statistic)
        held = self.cells.setdefault(key, [])
        cell = Cell(
            metric, number, place.epoch, place.step, place.shots, place.items, statistic=statistic
        )
        self.run(arm)
        if number.state == "missing":
            if not held:
                held.append(cell)
            return
        if held and held[0].number.state == "missing":
            held[0] = cell
            return
        for other in held:
            if _elsewhere(other, place, statistic):
                continue  # the same best at another step: one of the two is wrong
            ranges = (other.number.low, other.number.high) == (number.low, number.high)
            if agree(other.number, number) or (number.value is None and ranges):
                return
        held.append(cell)

    def set(self, arm: str, key: str, value: Any, where: Where) -> None:
        """A setting of an arm. A second, different value is kept beside the first."""
        config = self.run(arm).config
        held = config.get(key)
        if held is None:
            config[key] = Setting(value, where)
        elif not any(names.same(one.value, value) for one in (held, *held.others)):
            config[key] = replace(held, others=(*held.others, Setting(value, where)))

    def name_by(self, run: Imported, key: str, value: Any) -> None:
        """The setting that names an arm, before all others: those with another value are wrong."""
        held = run.config.pop(key, None)
        others = () if held is None else (held, *held.others)
        kept = tuple(one for one in others if not names.same(one.value, value))
        where = held.where if held is not None and len(kept) < len(others) else run.where
        run.config = {key: Setting(value, where, kept), **run.config}

    def numbers(self, arm: str, metric: str, place: Place, statistic: str = "") -> list[Number]:
        """The numbers of an arm at an epoch and a count of items, over all shots."""
        found = []
        for (whose, what, at, kind), cells in self.cells.items():
            fits = (whose, what, kind) == (arm, identity(metric), statistic)
            if fits and at.epoch == place.epoch and at.items == place.items:
                found += [cell.number for cell in cells[:1]]
        return found

    def settle(self) -> None:
        """What needs the whole document: boxes without a cell, commands."""
        for arm, metric, gone, place in self.boxes:
            told = any(
                whose == arm and at.epoch == place.epoch and at.step == place.step
                for whose, _, at, _ in self.cells
            )
            if not told:
                self.add_cell(arm, metric, gone, place)
        for (arm, *_), cells in self.cells.items():
            ours = [command for command in self.commands if command.arm == arm]
            for at, cell in enumerate(cells):
                fit = [one for one in ours if cell.number.state == "missing" and one.fills(cell)]
                if fit:
                    exact = sorted(fit, key=lambda one: one.every)
                    cells[at] = replace(cell, command=exact[0].text)

    def finish(self) -> Source:
        """The records."""
        if not self.runs and (self.shared or self.source.tables):
            for arm in self.arms.all() or [""]:
                self.run(arm)
        for (arm, _, _), told in self.histories.items():
            self.runs[arm].series += map(_series, told)
        for (arm, *_), cells in self.cells.items():
            self.runs[arm].cells += cells
        order = {arm: at for at, arm in enumerate(self.arms.all())}
        ranked = sorted(self.runs.items(), key=lambda pair: order.get(pair[1].arm, len(order)))
        for arm, run in ranked:
            run.where = replace(run.where, line=min(_lines(run), default=1))
            pair = self.arms.keys.get(run.arm)
            if pair:
                written = pair.written.split("=")[0]
                known = names.key(written) is not None
                self.name_by(run, written if known else pair.key, pair.value)
            for key, value, where in self.shared:
                self.set(arm, key, value, where)
        self.source.runs = [run for _, run in ranked]
        return self.source


def _lines(run: Imported) -> Iterable[int]:
    """The lines that speak of one run."""
    places = [
        *(cell.number.where for cell in run.cells),
        *(series.where for series in run.series),
        *(setting.where for setting in run.config.values()),
    ]
    return [place.line for place in places if place.line]


def _series(history: History) -> Series:
    """A history as arrays. Its decimals are the fewest that any of its points was printed with."""
    numbers = list(history.points.values())
    guessed = np.array([number.state == "estimated" for number in numbers])
    decimals = [number.decimals for number in numbers if number.decimals is not None]
    return Series(
        metric=history.metric,
        axis=history.axis,
        steps=np.array(list(history.points), dtype=np.float64),
        values=np.array([number.value for number in numbers], dtype=np.float64),
        where=numbers[0].where,
        decimals=min(decimals, default=None),
        lines=np.array([number.where.line or 0 for number in numbers], dtype=np.int64),
        estimated=guessed if guessed.any() else None,
    )
