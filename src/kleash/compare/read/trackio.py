"""Projects of trackio: one SQLite file each, a row for each call of `log`.

Metrics and configs are read; traces, tables, media and system statistics are not.
"""

from __future__ import annotations

import sqlite3
from datetime import datetime
from pathlib import Path
from typing import Any

from kleash.compare.read import Imported, Source, Where
from kleash.compare.read.database import has_tables, opened
from kleash.compare.read.gather import Points, number, parsed, settings
from kleash.errors import DataError


def fits(path: Path) -> bool:
    """`<project>.db`."""
    return has_tables(path, "metrics", "configs") and not has_tables(path, "experiments")


def read(path: Path) -> Source:
    """Every run of the project."""
    source = Source(str(path), "trackio")
    with opened(path, source.notes) as database:
        source.runs = _runs(database, path)
    return source


def _runs(database: sqlite3.Connection, path: Path) -> list[Imported]:
    columns = {row[1] for row in database.execute("PRAGMA table_info(metrics)")}
    # Before 0.30 or so a run was known by its name alone.
    key = "run_id" if "run_id" in columns else "run_name"
    runs: dict[str, Imported] = {}
    points: dict[str, Points] = {}
    spans: dict[str, tuple[float, float]] = {}
    for row, identity, name, time, step, content in database.execute(
        f"SELECT rowid, {key}, run_name, timestamp, step, metrics FROM metrics ORDER BY rowid"
    ):
        if identity not in runs:
            where = Where(str(path), spot=f"run {identity}")
            runs[identity] = Imported(str(name), "", "trackio", where, started=str(time))
            points[identity] = Points(path)
        seconds = _seconds(time)
        if seconds is not None:
            first, _ = spans.get(identity, (seconds, seconds))
            spans[identity] = (first, seconds)
        for metric, value in _numbers(_object(content, path, row)):
            points[identity].add(metric, step, value, row, time=seconds)
    for row, identity, content in database.execute(
        f"SELECT rowid, {key}, config FROM configs ORDER BY rowid"
    ):
        if identity in runs:
            values = _object(content, path, row)
            runs[identity].arm = str(values.get("_Group") or "")
            given = {name: value for name, value in values.items() if not name.startswith("_")}
            runs[identity].config = settings(given, Where(str(path), row, "row of configs"))
    for identity, run in runs.items():
        run.series = points[identity].series(spot="row of metrics")
        if identity in spans:
            run.seconds = spans[identity][1] - spans[identity][0]
    return list(runs.values())


def _object(content: Any, path: Path, row: int) -> dict[str, Any]:
    """The object in a column: text, or text kept as bytes."""
    try:
        value = parsed(content)
    except (ValueError, TypeError) as error:
        raise DataError(f"{path} row {row} is not JSON: {error}") from None
    if not isinstance(value, dict):
        raise DataError(f"{path} row {row} holds no JSON object")
    return value


def _numbers(values: dict[str, Any], prefix: str = "", depth: int = 0) -> list[tuple[str, float]]:
    found = []
    for name, value in values.items():
        if isinstance(value, dict) and "_type" not in value and depth < 8:
            found += _numbers(value, f"{prefix}{name}.", depth + 1)
        elif (taken := number(value)) is not None:
            found.append((prefix + name, taken))
    return found


def _seconds(time: Any) -> float | None:
    try:
        return datetime.fromisoformat(str(time)).timestamp()
    except (ValueError, OverflowError):
        return None
