"""Experiment trackers: MLflow's database and folders, trackio's projects, and runs on a server.

`mlflow://host:port/experiment` and `wandb://entity/project` are fetched by the tools' own clients,
which the extras `mlflow` and `wandb` install; a point's line is its place in the history that came.
Databases are opened so that nothing in them can change. SQLite keeps no checksums, but its indexes
repeat what its tables say: comparing the two finds most damage. Artifacts, models, traces, media,
system statistics and deleted runs are left out.
"""

from __future__ import annotations

import math
import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import datetime
from importlib import import_module
from pathlib import Path
from typing import Any
from urllib.parse import quote

from kleash.compare.read import Imported, Reader, Setting, Source, Where
from kleash.compare.read.gather import (
    Points,
    content,
    head,
    literal,
    number,
    parsed,
    printed,
    raw_lines,
    read_yaml,
    settings,
)
from kleash.errors import DataError

MAGIC = b"SQLite format 3\0"
CHECKED = 256 * 2**20  # bytes of a database whose tables and indexes are compared
LARGEST = 1.7976931348623157e308  # what MLflow's database holds instead of infinity
STATES = {"FINISHED": True, "3": True, "RUNNING": False, "1": False}
LINE = re.compile(r"(-?\d{1,18}) (\S{1,40})(?: (-?\d{1,18}))?(?: \S+ \S+)?\n")
ADDRESS = re.compile(r"(mlflow|wandb):/{1,2}([^/]+)/(.+)")
PAGE = 1000  # runs asked for at a time
OWN = ("_step", "_timestamp", "_runtime")


# --- SQLite


def _tables(path: Path) -> set[str]:
    """The tables of a database; none where a file is no database, or cannot be read."""
    if not path.is_file() or head(path, 16) != MAGIC:
        return set()
    try:
        with closing(_connect(path)) as database:
            rows = database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
            return {str(name) for (name,) in rows}
    except (sqlite3.Error, ValueError):
        return set()


@contextmanager
def opened(path: Path, notes: list[str]) -> Iterator[sqlite3.Connection]:
    """A connection that only reads; whatever SQLite finds wrong is one line."""
    try:
        with closing(_connect(path)) as database:
            if path.stat().st_size <= CHECKED:
                found = database.execute("PRAGMA integrity_check(1)").fetchone()[0]
                if found != "ok":
                    raise DataError(f"{path} is damaged: {str(found).splitlines()[0][:200]}")
            else:
                notes.append(f"{path} is too large for its tables and indexes to be compared")
            yield database
    # A column may hold any type, whatever its table says: then it is not the tool's own file.
    except (sqlite3.Error, TypeError, ValueError, OverflowError) as error:
        raise DataError(f"{path} cannot be read as its tool would: {error}") from None


def _connect(path: Path) -> sqlite3.Connection:
    name = f"file:{quote(str(path.resolve()))}?mode=ro"
    # Without a write-ahead log nothing can be pending, and no lock file need be made beside it.
    if not path.with_name(path.name + "-wal").exists():
        name += "&immutable=1"
    return sqlite3.connect(name, uri=True)


# --- MLflow


def _is_mlflow(path: Path) -> bool:
    """`mlflow.db`, `mlruns/`, an experiment in it, or a run in that."""
    if path.is_file():
        return {"experiments", "runs", "metrics", "params", "tags"} <= _tables(path)
    return any(_run_folders(path))


def _read_mlflow(path: Path) -> Source:
    source = Source(str(path), "mlflow")
    if path.is_file():
        with opened(path, source.notes) as database:
            source.runs = _from_database(database, path)
    else:
        source.runs = [_from_folder(folder, source.notes) for folder in _run_folders(path)]
        source.runs = [run for run in source.runs if run.where.spot != "deleted"]
    return source


def _from_database(database: sqlite3.Connection, path: Path) -> list[Imported]:
    runs: dict[str, Imported] = {}
    for identity, name, *times in database.execute(
        "SELECT run_uuid, name, status, start_time, end_time FROM runs "
        "WHERE lifecycle_stage = 'active' ORDER BY start_time, run_uuid"
    ):
        where = Where(str(path), spot=f"run {identity}")
        runs[identity] = _new_run(name or identity, where, *times)
    for row, key, value, identity in database.execute(
        "SELECT rowid, key, value, run_uuid FROM params ORDER BY rowid"
    ):
        if identity in runs:
            where = Where(str(path), row, "row of params")
            runs[identity].config[key] = Setting(_parameter(value), where)
    points = {identity: Points(path) for identity in runs}
    for row, key, value, time, identity, step, is_nan in database.execute(
        "SELECT rowid, key, value, timestamp, run_uuid, step, is_nan FROM metrics ORDER BY rowid"
    ):
        if identity not in points:
            continue
        if not isinstance(value, float | int):
            raise DataError(f"a metric that is no number: {value!r}")
        # There is a flag for NaN (beside 0) and no infinity.
        stored = math.copysign(math.inf, value) if abs(value) == LARGEST else float(value)
        stored = math.nan if is_nan else stored
        points[identity].add(key, step, stored, row, time=time / 1000)
    for identity, run in runs.items():
        run.series = points[identity].series(spot="row of metrics")
    return list(runs.values())


def _new_run(name: str, where: Where, status: Any, start: Any, end: Any) -> Imported:
    """A run before anything is read of it; times are milliseconds."""
    run = Imported(name, "", "mlflow", where, finished=STATES.get(str(status), False))
    if isinstance(start, int):
        run.seconds = (end - start) / 1000 if isinstance(end, int) else None
    return run


def _parameter(written: Any) -> Any:
    """A parameter: MLflow keeps all of them as text."""
    return None if written == "None" else literal(str(written)) if written else written


def _run_folders(path: Path) -> Iterator[Path]:
    """The runs in a run's, an experiment's or a store's folder."""
    for pattern in ("meta.yaml", "*/meta.yaml", "*/*/meta.yaml") if path.is_dir() else ():
        every = (meta.parent for meta in sorted(path.glob(pattern)))
        found = [folder for folder in every if (folder / "metrics").is_dir()]
        yield from found
        if pattern == "meta.yaml" and found:
            return


def _from_folder(folder: Path, notes: list[str]) -> Imported:
    facts = read_yaml(folder / "meta.yaml")[0]
    if not isinstance(facts, dict):
        raise DataError(f"{folder / 'meta.yaml'} holds no mapping")
    where = Where(str(folder), spot=str(facts.get("lifecycle_stage", "")))
    times = map(facts.get, ("status", "start_time", "end_time"))
    run = _new_run(str(facts.get("run_name") or folder.name), where, *times)
    for name, file in _files(folder / "params"):
        try:
            text = content(file).decode().removesuffix("\n")
        except ValueError:
            raise DataError(f"{file} is not UTF-8 text") from None
        run.config[name] = Setting(_parameter(text), Where(str(file), 1))
    points = Points(folder)
    for name, file in _files(folder / "metrics"):
        _add_metric(points, file, name, notes)
    run.series = points.series()
    return run


def _files(folder: Path) -> list[tuple[str, Path]]:
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return [(path.relative_to(folder).as_posix(), path) for path in files]


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


# --- trackio: one file each project, a row for each call of `log`


def _is_trackio(path: Path) -> bool:
    found = _tables(path)
    return {"metrics", "configs"} <= found and "experiments" not in found


def _read_trackio(path: Path) -> Source:
    source = Source(str(path), "trackio")
    with opened(path, source.notes) as database:
        source.runs = _of_project(database, path)
    return source


def _of_project(database: sqlite3.Connection, path: Path) -> list[Imported]:
    columns = {row[1] for row in database.execute("PRAGMA table_info(metrics)")}
    # Before 0.30 or so a run was known by its name alone.
    key = "run_id" if "run_id" in columns else "run_name"
    runs: dict[str, Imported] = {}
    points: dict[str, Points] = {}
    begun: dict[str, float] = {}
    for row, identity, name, time, step, told in database.execute(
        f"SELECT rowid, {key}, run_name, timestamp, step, metrics FROM metrics ORDER BY rowid"
    ):
        if identity not in runs:
            where = Where(str(path), spot=f"run {identity}")
            runs[identity] = Imported(str(name), "", "trackio", where)
            points[identity] = Points(path)
        if (seconds := _seconds(time)) is not None:
            runs[identity].seconds = seconds - begun.setdefault(identity, seconds)
        for metric, value in _numbers(_object(told, path, row)):
            points[identity].add(metric, step, value, row, time=seconds)
    for row, identity, told in database.execute(
        f"SELECT rowid, {key}, config FROM configs ORDER BY rowid"
    ):
        if identity in runs:
            values = _object(told, path, row)
            runs[identity].arm = str(values.get("_Group") or "")
            given = {name: value for name, value in values.items() if not name.startswith("_")}
            runs[identity].config = settings(given, Where(str(path), row, "row of configs"))
    for identity, run in runs.items():
        run.series = points[identity].series(spot="row of metrics")
    return list(runs.values())


def _seconds(time: Any) -> float | None:
    try:
        return datetime.fromisoformat(str(time)).timestamp()
    except (ValueError, OverflowError):
        return None


def _object(told: Any, path: Path, row: int) -> dict[str, Any]:
    """The object in a column: text, or text kept as bytes."""
    try:
        value = parsed(told)
    except (ValueError, TypeError) as error:
        raise DataError(f"{path} row {row} is not JSON: {error}") from None
    if not isinstance(value, dict):
        raise DataError(f"{path} row {row} holds no JSON object")
    return value


def _numbers(values: dict[str, Any], prefix: str = "", depth: int = 0) -> Iterator[tuple[str, Any]]:
    for name, value in values.items():
        if isinstance(value, dict) and "_type" not in value and depth < 8:
            yield from _numbers(value, f"{prefix}{name}.", depth + 1)
        elif (taken := number(value)) is not None:
            yield prefix + name, taken


# --- servers


def read(path: Path) -> Source:
    """All runs of an experiment or a project on a server."""
    found = ADDRESS.fullmatch(str(path))
    if found is None:
        raise DataError(f"{path}: write mlflow://host:port/experiment or wandb://entity/project")
    tool, host, project = found.groups()
    place = f"{tool}://{host}/{project}"
    try:
        client = import_module(tool)
    except ImportError:
        raise DataError(f"{place} needs its client: pip install 'kleash[{tool}]'") from None
    runs = _of_mlflow if tool == "mlflow" else _of_wandb
    try:
        source = Source(place, tool, list(runs(client, host, project, place)))
    except DataError:
        raise
    except Exception as error:  # noqa: BLE001  # whatever the client says of its server
        said = " ".join(str(error).split())[:300]
        raise DataError(f"{place} cannot be read by {tool}: {said}") from None
    if not source.runs:
        raise DataError(f"{place} holds no runs")
    return source


def _of_mlflow(client: Any, host: str, project: str, place: str) -> Iterator[Imported]:
    """The active runs of an experiment, which is called by its name or its number."""
    server = client.MlflowClient(tracking_uri=f"http://{host}")
    found = server.get_experiment_by_name(project)
    if found is None and project.isdecimal():
        found = server.get_experiment(project)
    if found is None:
        raise DataError(f"{place}: there is no experiment {project!r}")
    page = server.search_runs([found.experiment_id], max_results=PAGE)
    every = list(page)
    while page.token:
        page = server.search_runs([found.experiment_id], max_results=PAGE, page_token=page.token)
        every += page
    for one in every:
        info, where = one.info, Where(place, spot=f"run {one.info.run_id}")
        name = info.run_name or info.run_id
        run = _new_run(name, where, info.status, info.start_time, info.end_time)
        values = {name: _parameter(value) for name, value in one.data.params.items()}
        run.config = settings(values, where)
        points = Points(place)
        for name in sorted(one.data.metrics):
            for line, point in enumerate(server.get_metric_history(info.run_id, name), 1):
                time = point.timestamp / 1000
                points.add(name, float(point.step), float(point.value), line, time=time)
        run.series = points.series(spot=where.spot)
        yield run


def _of_wandb(client: Any, host: str, project: str, place: str) -> Iterator[Imported]:
    """The runs of a project with their whole history, unsampled."""
    from kleash.compare.read.wandb import numbers

    for one in client.Api().runs(f"{host}/{project}", order="+created_at"):
        where = Where(place, spot=f"run {one.id}")
        run = Imported(one.name or one.id, one.group or "", "wandb", where)
        run.finished = one.state == "finished"
        run.config = settings({n: v for n, v in one.config.items() if n != "_wandb"}, where)
        points = Points(place)
        for line, row in enumerate(one.scan_history(), 1):
            step = number(row.get("_step"))
            run.seconds = number(row.get("_runtime")) or run.seconds
            for name, value in row.items():
                for inner, taken in numbers(name, value).items() if name not in OWN else ():
                    if step is not None:
                        points.add(inner, step, taken, line, time=number(row.get("_timestamp")))
        run.series = points.series(spot=where.spot)
        yield run


MLFLOW = Reader(_is_mlflow, _read_mlflow)
TRACKIO = Reader(_is_trackio, _read_trackio)
