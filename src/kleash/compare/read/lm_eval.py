"""Results of the LM Evaluation Harness: a matrix of tasks and metrics, and scores of single items.

`results_<time>.json` and the `samples_<task>_<time>.jsonl` beside it make one run. An item's id is
the hash of its document; a task with several filters has scores under each.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from kleash.compare.read import Cell, Imported, Number, Scores, Source, Where
from kleash.compare.read.gather import (
    Items,
    head,
    item_id,
    json_lines,
    moment,
    number,
    score,
    settings,
    whole_object,
)
from kleash.errors import DataError

TIME = re.compile(r"_(\d{4}-\d{2}-\d{2}T[\d.:-]+)$")


def fits(path: Path) -> bool:
    """A file of results or samples, or a folder that holds some."""
    if path.is_dir():
        return any(map(_is_results, path.glob("results*.json"))) or any(
            map(_is_samples, path.glob("samples_*.jsonl"))
        )
    return _is_results(path) or _is_samples(path)


def _is_results(path: Path) -> bool:
    start = head(path)
    return path.name.startswith("results") and path.suffix == ".json" and b'"results"' in start


def _is_samples(path: Path) -> bool:
    return path.name.startswith("samples_") and b'"doc_id"' in head(path, 64)


def read(path: Path) -> Source:
    """Each results file with its samples; samples alone make a run of their own."""
    source = Source(str(path), "lm-eval")
    if path.is_file():
        folder = path.parent
        results = [path] if _is_results(path) else []
        alone = [path] if not results else []
    else:
        folder = path
        results = [file for file in sorted(path.glob("results*.json")) if _is_results(file)]
        alone = [file for file in sorted(path.glob("samples_*.jsonl")) if _is_samples(file)]
    for file in results:
        run, shots = _results(file)
        time = _time(file)
        for samples in sorted(folder.glob(f"samples_*{time}.jsonl")):
            run.scores += _samples(samples, shots, source.notes)
            alone = [other for other in alone if other != samples]
        source.runs.append(run)
    for samples in alone:
        run = Imported(samples.stem.removeprefix("samples_"), "", "lm-eval", Where(str(samples)))
        run.scores = list(_samples(samples, {}, source.notes))
        source.runs.append(run)
    return source


def _time(path: Path) -> str:
    match = TIME.search(path.stem)
    return match[1] if match else ""


def _mapping(values: dict[str, Any], name: str) -> dict[str, Any]:
    held = values.get(name)
    return held if isinstance(held, dict) else {}


def _results(path: Path) -> tuple[Imported, dict[str, int]]:
    values = whole_object(path)
    results = values.get("results")
    if not isinstance(results, dict):
        raise DataError(f"{path} holds no results")
    counts = _mapping(values, "n-samples")
    given = {name: int(n) for name, n in _mapping(values, "n-shot").items() if type(n) is int}
    config = _mapping(values, "config")
    name = str(values.get("model_name") or config.get("model") or path.parent.name)
    run = Imported(name, "", "lm-eval", Where(str(path)), finished=True)
    run.config = settings(config, Where(str(path), spot="config"))
    for key in ("git_hash", "lm_eval_version", "chat_template_sha"):
        if values.get(key) is not None:
            run.config |= settings({key: values[key]}, Where(str(path), spot=key))
    run.config |= settings(
        _mapping(values, "versions"), Where(str(path), spot="versions"), "version."
    )
    run.config |= settings(
        _mapping(values, "task_hashes"), Where(str(path), spot="task_hashes"), "task_hash."
    )
    started = number(values.get("date"))
    run.started = moment(started) if started is not None else None
    for task, metrics in results.items():
        count = _mapping(counts, task).get("effective")
        for metric, value in metrics.items() if isinstance(metrics, dict) else ():
            if "," not in metric or "_stderr" in metric:
                continue
            where = Where(str(path), spot=f"results.{task}.{metric}")
            run.cells.append(_cell(task, metric, value, where, given.get(task), count))
    return run, given


def _cell(task: str, metric: str, value: Any, where: Where, shots: int | None, count: Any) -> Cell:
    """One metric of one task; `N/A` is missing."""
    taken = number(value)
    return Cell(
        metric=f"{task}/{metric}",
        number=Number(taken, "missing" if taken is None else "known", where),
        shots=shots,
        items=count if type(count) is int else None,
    )


def _samples(path: Path, shots: dict[str, int], notes: list[str]) -> Iterator[Scores]:
    """The scores of a task's items, for each metric under each filter."""
    task = TIME.sub("", path.stem).removeprefix("samples_")
    filters: dict[str, Items] = {}
    for line, row in json_lines(path, notes):
        if not isinstance(row, dict):
            raise DataError(f"{path} line {line} is not an object")
        items = filters.setdefault(str(row.get("filter", "none")), Items())
        items.add(_item(row), line, {metric: score(row.get(metric)) for metric in _metrics(row)})
    for kind, items in filters.items():
        for one in items.scores(path, shots=shots.get(task)):
            if np.isnan(one.values).all():
                notes.append(f"{path}: {one.metric} is no number in any line: left out")
            else:
                yield replace(one, metric=f"{task}/{one.metric},{kind}")


def _item(row: dict[str, Any]) -> str:
    known = row.get("doc_hash") or row.get("doc_id")
    return item_id(repr(row.get("doc"))) if known is None else str(known)


FIXED = {
    "doc_id", "doc", "target", "arguments", "resps", "filtered_resps", "filter", "metrics",
    "doc_hash", "prompt_hash", "target_hash",
}  # fmt: skip


def _metrics(row: dict[str, Any]) -> list[str]:
    """The columns that are metrics: named since 0.4.8, before that all that are not known."""
    named = row.get("metrics")
    if isinstance(named, list):
        return [name for name in named if isinstance(name, str)]
    return [name for name in row if name not in FIXED]
