"""Runs on a tracking server: `mlflow://host:port/experiment` and `wandb://entity/project`.

They are fetched by the tools' own clients, which the extras `mlflow` and `wandb` install; keys and
proxies are theirs. A point's line is its place in the history that the server sent.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

from kleash.compare.read import Imported, Source, Where
from kleash.compare.read.gather import Points, number, settings
from kleash.compare.read.mlflow import begun, parameter
from kleash.errors import DataError

ADDRESS = re.compile(r"(mlflow|wandb):/{1,2}([^/]+)/(.+)")
PAGE = 1000  # runs asked for at a time
OWN = ("_step", "_timestamp", "_runtime")


def read(path: Path) -> Source:
    """All runs of an experiment or a project."""
    found = ADDRESS.fullmatch(str(path))
    if found is None:
        raise DataError(f"{path}: write mlflow://host:port/experiment or wandb://entity/project")
    tool, host, project = found.groups()
    place = f"{tool}://{host}/{project}"
    try:
        client = import_module(tool)
    except ImportError:
        raise DataError(f"{place} needs its client: pip install 'kleash[{tool}]'") from None
    runs = _mlflow if tool == "mlflow" else _wandb
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


def _mlflow(client: Any, host: str, project: str, place: str) -> Iterator[Imported]:
    """The active runs of an experiment, which is called by its name or its number."""
    server = client.MlflowClient(tracking_uri=f"http://{host}")
    found = server.get_experiment_by_name(project)
    if found is None and project.isdecimal():
        found = server.get_experiment(project)
    if found is None:
        raise DataError(f"{place}: there is no experiment {project!r}")
    token = None
    while True:
        page = server.search_runs([found.experiment_id], max_results=PAGE, page_token=token)
        for one in page:
            where = Where(place, spot=f"run {one.info.run_id}")
            info = one.info
            name = info.run_name or info.run_id
            run = begun(name, info.status, info.start_time, info.end_time, where)
            values = {name: parameter(value) for name, value in one.data.params.items()}
            run.config = settings(values, where)
            points = Points(place)
            for name in sorted(one.data.metrics):
                for line, point in enumerate(server.get_metric_history(one.info.run_id, name), 1):
                    time = point.timestamp / 1000
                    points.add(name, float(point.step), float(point.value), line, time=time)
            run.series = points.series(spot=where.spot)
            yield run
        token = page.token
        if not token:
            return


def _wandb(client: Any, host: str, project: str, place: str) -> Iterator[Imported]:
    """The runs of a project with their whole history, unsampled."""
    from kleash.compare.read.wandb import numbers

    for one in client.Api().runs(f"{host}/{project}", order="+created_at"):
        where = Where(place, spot=f"run {one.id}")
        run = Imported(one.name or one.id, one.group or "", "wandb", where)
        run.finished, run.started = one.state == "finished", str(one.created_at)
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
