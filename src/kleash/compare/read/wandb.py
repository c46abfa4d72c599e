"""Runs of Weights & Biases as its client leaves them on disk, offline and online.

`run-<id>.wandb` holds all: config, history, summary, exit. Media, tables and system statistics are
passed over. Where only the files of an online run are left, its config and summary are read, and
`output.log` for steps that were printed there.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from kleash.compare.read import Cell, Imported, Number, Setting, Source, Where, wire
from kleash.compare.read.gather import (
    head,
    number,
    parsed,
    settings,
    whole_object,
    yaml_settings,
)
from kleash.compare.read.wire import (
    chosen,
    double,
    fields,
    read_log,
    repeated,
    signed,
    text,
    zigzag,
)

MAGIC = b":W&B\xe1\xbe"
HISTORY, SUMMARY, CONFIG, METRIC, RUN, EXIT = 2, 3, 5, 12, 17, 18
OWN = ("_step", "_timestamp", "_runtime", "_wandb")


def fits(path: Path) -> bool:
    """A `.wandb` file, or the folder of one run."""
    if path.is_file():
        return head(path, 6) == MAGIC
    return bool(logs(path)) or any((path / "files" / name).is_file() for name in FILES)


FILES = ("wandb-summary.json", "config.yaml", "wandb-metadata.json")


def read(path: Path) -> Source:
    """The run in the folder, or in its log alone."""
    source = Source(str(path), "wandb")
    found = [path] if path.is_file() else logs(path)
    for log in found:
        source.runs.append(read_log(Log, log, source.notes))
    if not found:
        source.runs.append(read_files(path, source.notes))
    return source


def logs(folder: Path) -> list[Path]:
    return [path for path in sorted(folder.glob("run-*.wandb")) if path.is_file()]


# --- the log -----------------------------------------------------------------------------------


class Log(wire.Log):
    """A log of W&B."""

    form, mark, versions = "wandb", MAGIC, (b"\0",)

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.summary: dict[str, tuple[Any, int]] = {}
        self.axes: list[tuple[str, str]] = []
        """Metrics or patterns, each with the metric it is plotted over."""
        self.along: dict[str, float] = {}
        self.unplaced = 0

    def take(self, record: int, data: bytes) -> None:
        """One record."""
        takes = {HISTORY: self.history, SUMMARY: self.change_summary, CONFIG: self.change_config}
        for kind, _, body in fields(data):
            if not isinstance(body, bytes):
                continue
            if kind in takes:
                takes[kind](record, body)
            elif kind == METRIC:
                found = chosen(body, 1, 2, 4)
                if 4 in found and (1 in found or 2 in found):
                    self.axes.append((text(found.get(1) or found.get(2)), text(found[4])))
            elif kind == RUN:
                self.describe(record, body)
            elif kind == EXIT:
                self.run.finished = signed(chosen(body, 1).get(1, 0)) == 0

    def describe(self, record: int, body: bytes) -> None:
        """The record that names the run."""
        found = chosen(body, 1, 6, 8)
        self.run.name = text(found.get(8)) or text(found.get(1)) or self.run.name
        self.run.arm = text(found.get(6))
        for config in repeated(body, 4):
            self.change_config(record, config)

    def change_config(self, record: int, body: bytes) -> None:
        """Settings given or taken away."""
        where = Where(str(self.path), record, "record")
        for kind, _, part in fields(body):
            if not isinstance(part, bytes):
                continue
            names, value = _item(part)
            name = ".".join(names)
            if not names or names[0] == "_wandb":
                continue
            for known in [key for key in self.run.config if (key + ".").startswith(name + ".")]:
                del self.run.config[known]
            if kind == 1:
                self.run.config |= (
                    settings(value, where, f"{name}.")
                    if isinstance(value, dict) and value
                    else {name: Setting(value, where)}
                )

    def change_summary(self, record: int, body: bytes) -> None:
        """Values of the summary: the last word on each."""
        for kind, _, part in fields(body):
            if isinstance(part, bytes):
                names, value = _item(part)
                if kind == 1:
                    self.summary[".".join(names)] = (value, record)
                else:
                    self.summary.pop(".".join(names), None)

    def history(self, record: int, body: bytes) -> None:
        """One call of `log`."""
        row: dict[str, float] = {}
        for part in repeated(body, 1):
            names, value = _item(part)
            row |= numbers(".".join(names), value)
        step = row.get("_step")
        for part in repeated(body, 2) if step is None else ():
            step = float(signed(chosen(part, 1).get(1, 0)))
        if step is None:
            raise ValueError("a row without its step")
        time = row.get("_timestamp")
        if time is not None and "_runtime" in row:
            self.run.seconds = row["_runtime"]
        self.along |= row
        for name, value in row.items():
            if name in OWN:
                continue
            axis = self.axis(name)
            place = self.along.get(axis) if axis else step
            if place is None:
                self.unplaced += 1
            else:
                self.points.add(name, place, value, record, time=time)

    def axis(self, name: str) -> str | None:
        """The metric that a metric was declared to be plotted over."""
        for pattern, step in reversed(self.axes):
            if step != name and (pattern == name or fnmatch.fnmatchcase(name, pattern)):
                return None if step == "_step" else step
        return None

    def finish(self, notes: list[str]) -> None:
        """What only the summary has."""
        known = set(self.points.columns)
        for name, (value, record) in self.summary.items():
            for inner, found in numbers(name, value).items():
                if inner not in known and not inner.startswith("_"):
                    where = Where(str(self.path), record, "record, summary")
                    self.run.cells.append(Cell(inner, Number(found, "known", where)))
        if self.unplaced:
            told = f"{self.unplaced} points were logged before the metric they are plotted over"
            notes.append(f"{self.path}: {told}: left out")


def _item(data: bytes) -> tuple[list[str], Any]:
    """Names (outer to inner) and value of an item of history, summary or config."""
    names: list[str] = []
    value: Any = None
    for kind, sort, part in fields(data):
        if kind in (1, 2):
            names.append(text(part))
        elif kind == 16 or kind == 8:
            value = parsed(text(part))
        elif kind == 4:
            value = bool(part)
        elif kind == 5:
            value = zigzag(part)
        elif kind == 6 and sort == 1:
            value = double(part)
        elif kind == 7:
            value = text(part)
    return names, value


def numbers(name: str, value: Any) -> dict[str, float]:
    """The numbers in a logged value under their names; media and text hold none."""
    if isinstance(value, dict):
        if "_type" in value:
            return {}
        held: dict[str, float] = {}
        for inner, part in value.items():
            if not isinstance(part, dict):
                held |= numbers(f"{name}.{inner}", part)
        return held
    word = isinstance(value, str) and value not in ("NaN", "Infinity", "-Infinity")
    found = None if word else number(value)
    return {} if found is None else {name: found}


# --- the files of an online run ------------------------------------------------------------------


def read_files(folder: Path, notes: list[str]) -> Imported:
    """What the files beside the log say of a run whose log is gone."""
    files = folder / "files"
    name = folder.name.removeprefix("offline-").removeprefix("run-")
    run = Imported(name=name, arm="", format="wandb", where=Where(str(folder)))
    if (files / "config.yaml").is_file():
        run.config = read_config(files / "config.yaml")
    if (files / "wandb-summary.json").is_file():
        run.cells = list(_summary(files / "wandb-summary.json", run))
    printed_log = files / "output.log"
    if printed_log.is_file():
        from kleash.compare.read import verl

        run.series = verl.read_console(printed_log, notes)
    notes.append(f"{folder}: its log is gone, so there is no history but what was printed")
    return run


def read_config(path: Path) -> dict[str, Setting]:
    """The settings in a `config.yaml`, each under `value`."""
    made = {}
    for name, setting in yaml_settings(path).items():
        outer, inner, rest = name.partition(".value")
        if inner and rest[:1] in ("", ".") and "." not in outer and outer != "_wandb":
            made[outer + rest] = setting
    return made


def _summary(path: Path, run: Imported) -> Iterator[Cell]:
    values = whole_object(path)
    step = number(values.get("_step"))
    run.seconds = number(values.get("_runtime"))
    for name, value in values.items():
        if not name.startswith("_"):
            for inner, found in numbers(name, value).items():
                yield Cell(inner, Number(found, "known", Where(str(path), spot=name)), step=step)
