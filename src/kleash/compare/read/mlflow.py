"""Runs of MLflow, from its database or its folder of files.

Metrics, parameters, times and state are read. Artifacts, models, traces and data sets are not.
Deleted runs are left out, as MLflow does.
"""

from __future__ import annotations

import math
import re
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from kleash.compare.read import Imported, Setting, Source, Where
from kleash.compare.read.database import has_tables, opened
from kleash.compare.read.gather import (
    Points,
    content,
    literal,
    moment,
    printed,
    raw_lines,
    read_yaml,
)
from kleash.errors import DataError

LARGEST = 1.7976931348623157e308  # what MLflow's database holds instead of infinity
STATES = {"FINISHED": True, "3": True, "RUNNING": False, "1": False}


def fits(path: Path) -> bool:
    """`mlflow.db`, `mlruns/`, an experiment in it, or a run in that."""
    if path.is_file():
        return has_tables(path, "experiments", "runs", "metrics", "params", "tags")
    return any(_run_folders(path))


def read(path: Path) -> Source:
    """Every run of every experiment."""
    source = Source(str(path), "mlflow")
    if path.is_file():
        with opened(path, source.notes) as database:
            source.runs = _from_database(database, path)
    else:
        source.runs = [_from_folder(folder, source.notes) for folder in _run_folders(path)]
        source.runs = [run for run in source.runs if run.where.spot != "deleted"]
    return source


# --- database ----------------------------------------------------------------------------------


def _from_database(database: sqlite3.Connection, path: Path) -> list[Imported]:
    runs: dict[str, Imported] = {}
    for identity, name, status, start, end in database.execute(
        "SELECT run_uuid, name, status, start_time, end_time FROM runs "
        "WHERE lifecycle_stage = 'active' ORDER BY start_time, run_uuid"
    ):
        where = Where(str(path), spot=f"run {identity}")
        runs[identity] = begun(name or identity, status, start, end, where)
    for row, key, value, identity in database.execute(
        "SELECT rowid, key, value, run_uuid FROM params ORDER BY rowid"
    ):
        if identity in runs:
            where = Where(str(path), row, "row of params")
            runs[identity].config[key] = Setting(parameter(value), where)
    points = {identity: Points(path) for identity in runs}
    for row, key, value, time, identity, step, is_nan in database.execute(
        "SELECT rowid, key, value, timestamp, run_uuid, step, is_nan FROM metrics ORDER BY rowid"
    ):
        if identity in points:
            points[identity].add(key, step, _stored(value, is_nan), row, time=time / 1000)
    for identity, run in runs.items():
        run.series = points[identity].series(spot="row of metrics")
    return list(runs.values())


def _stored(value: Any, is_nan: Any) -> float:
    """A value as it was logged: the database has a flag for NaN (beside 0) and no infinity."""
    if not isinstance(value, float | int):
        raise DataError(f"a metric that is no number: {value!r}")
    if is_nan:
        return math.nan
    return math.copysign(math.inf, value) if abs(value) == LARGEST else float(value)


def begun(name: str, status: Any, start: Any, end: Any, where: Where) -> Imported:
    """A run before anything is read of it; times are milliseconds."""
    run = Imported(name, "", "mlflow", where, finished=STATES.get(str(status), False))
    if isinstance(start, int):
        run.started = moment(start / 1000)
        run.seconds = (end - start) / 1000 if isinstance(end, int) else None
    return run


def parameter(written: Any) -> Any:
    """A parameter: MLflow keeps all of them as text."""
    return None if written == "None" else literal(str(written)) if written else written


# --- files -------------------------------------------------------------------------------------


def _run_folders(path: Path) -> Iterator[Path]:
    """The runs in a run's, an experiment's or a store's folder."""
    if (path / "meta.yaml").is_file() and (path / "metrics").is_dir():
        yield path
    elif path.is_dir():
        for pattern in ("*/meta.yaml", "*/*/meta.yaml"):
            for meta in sorted(path.glob(pattern)):
                if (meta.parent / "metrics").is_dir():
                    yield meta.parent


LINE = re.compile(r"(-?\d{1,18}) (\S{1,40})(?: (-?\d{1,18}))?(?: \S+ \S+)?\n")


def _from_folder(folder: Path, notes: list[str]) -> Imported:
    facts = read_yaml(folder / "meta.yaml")[0]
    if not isinstance(facts, dict):
        raise DataError(f"{folder / 'meta.yaml'} holds no mapping")
    run = begun(
        str(facts.get("run_name") or folder.name),
        facts.get("status"),
        facts.get("start_time"),
        facts.get("end_time"),
        Where(str(folder), spot=str(facts.get("lifecycle_stage", ""))),
    )
    for file in _files(folder / "params"):
        name = file.relative_to(folder / "params").as_posix()
        run.config[name] = Setting(parameter(_text(file)), Where(str(file), 1))
    points = Points(folder)
    for file in _files(folder / "metrics"):
        _add_metric(points, file, file.relative_to(folder / "metrics").as_posix(), notes)
    run.series = points.series()
    return run


def _files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())


def _text(path: Path) -> str:
    try:
        return content(path).decode().removesuffix("\n")
    except ValueError:
        raise DataError(f"{path} is not UTF-8 text") from None


def _add_metric(points: Points, path: Path, name: str, notes: list[str]) -> None:
    """The lines `milliseconds value step` of one metric."""
    points.enter(path)
    for line_number, line in raw_lines(path):
        if not line.endswith(b"\n"):
            notes.append(f"{path} line {line_number} was cut off: left out")
            return
        match = LINE.fullmatch(line.decode("utf-8", "replace"))
        found = printed(match[2]) if match else None
        if match is None or found is None:
            raise DataError(f"{path} line {line_number} is not `time value step`: {line[:60]!r}")
        points.add(name, float(match[3] or 0), found[0], line_number, time=int(match[1]) / 1000)
