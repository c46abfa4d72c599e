"""Folders of DVCLive: a table of steps for each metric, `metrics.json`, `params.yaml`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from kleash.errors import DataError
from kleash.imports import Cell, Imported, Number, Setting, Source, Where
from kleash.imports.gather import (
    Points,
    content,
    number,
    printed,
    raw_lines,
    settings,
    whole_object,
)
from kleash.imports.plain_yaml import read_yaml
from kleash.imports.run_names import label


def fits(path: Path) -> bool:
    """The folder `dvclive/`, under whatever name."""
    return path.is_dir() and (path / "plots/metrics").is_dir()


def read(path: Path) -> Source:
    """The run in the folder; where that is called `dvclive`, as all are, its parent names it."""
    source = Source(str(path), "dvclive")
    whole = path.resolve()
    name = whole.parent.name if whole.name == "dvclive" else whole.name
    run = Imported(name, "", "dvclive", Where(str(path)))
    points = Points(path)
    root = path / "plots/metrics"
    for file in sorted(root.rglob("*.tsv")):
        _table(points, file, file.relative_to(root).with_suffix("").as_posix(), source.notes)
    run.series = points.series()
    if (path / "params.yaml").is_file():
        run.config = _params(path / "params.yaml")
    if (path / "metrics.json").is_file():
        run.cells = _summary(path / "metrics.json", set(points.columns))
    source.runs.append(label(run))
    return source


def _table(points: Points, path: Path, metric: str, notes: list[str]) -> None:
    points.enter(path)
    header: list[str] = []
    for line, raw in raw_lines(path):
        parts = raw.decode("utf-8", "replace").rstrip("\r\n").split("\t")
        if not header:
            header = parts
            if "step" not in header or len(header) < 2:
                raise DataError(f"{path} has no column `step`: {header[:5]}")
            place = header.index("step")
            value_place = len(header) - 1 if place != len(header) - 1 else 0
            continue
        if not raw.endswith(b"\n"):
            notes.append(f"{path} line {line} was cut off: left out")
            return
        step = printed(parts[place]) if len(parts) == len(header) else None
        value = printed(parts[value_place]) if len(parts) == len(header) else None
        if step is None or value is None:
            raise DataError(f"{path} line {line} is not a step and a number: {raw[:60]!r}")
        points.add(metric, step[0], value[0], line)


def _params(path: Path) -> dict[str, Setting]:
    try:
        values, lines = read_yaml(content(path).decode())
    except ValueError as error:
        raise DataError(f"{path} cannot be read: {error}") from None
    if not isinstance(values, dict):
        return {}
    made = settings(values, Where(str(path)))
    return {
        name: Setting(held.value, Where(str(path), lines.get(name))) for name, held in made.items()
    }


def _summary(path: Path, known: set[str]) -> list[Cell]:
    """What the summary says beyond the last value of a table."""
    values: dict[str, Any] = whole_object(path)
    step = number(values.get("step"))
    cells = []
    for name, held in settings(values, Where(str(path))).items():
        taken = number(held.value)
        plain = name.replace(".", "/")
        if taken is not None and plain not in known and name != "step":
            cells.append(Cell(name, Number(taken, "known", Where(str(path), spot=name)), step=step))
    return cells
