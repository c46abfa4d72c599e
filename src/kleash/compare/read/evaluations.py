"""Results of the LM Evaluation Harness and logs of Inspect: means by task, and scores of items.

lm-eval: `results_<time>.json` and the `samples_<task>_<time>.jsonl` beside it make one run; an
item's id is the hash of its document, and a task with several filters has scores under each.
Inspect: `.json` as it is, `.eval` through `inspect_ai`, whose format it is: its maintainers call
the API the stable surface. Letters are read as Inspect reads them: C is 1, P is 0.5, I and N are 0.
A sample that broke has no score.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from kleash.compare.read import Cell, Imported, Number, Reader, Scores, Source, Where
from kleash.compare.read.gather import (
    Items,
    head,
    item_id,
    json_lines,
    number,
    score,
    settings,
    whole_object,
)
from kleash.errors import DataError

TIME = re.compile(r"_(\d{4}-\d{2}-\d{2}T[\d.:-]+)$")
FIXED = {
    "doc_id", "doc", "target", "arguments", "resps", "filtered_resps", "filter", "metrics",
    "doc_hash", "prompt_hash", "target_hash",
}  # fmt: skip
LETTERS = {"C": 1.0, "P": 0.5, "I": 0.0, "N": 0.0}
SETTINGS = ("task_args", "model_args", "model_generate_config", "config", "dataset", "packages")


def _mapping(values: Any, name: str) -> dict[str, Any]:
    held = values.get(name) if isinstance(values, dict) else None
    return held if isinstance(held, dict) else {}


def _cell(metric: str, value: Any, where: Where, count: Any, shots: int | None = None) -> Cell:
    """One metric of one task; `N/A` is missing."""
    taken = number(value)
    found = Number(taken, "missing" if taken is None else "known", where)
    return Cell(metric, found, shots=shots, items=count if type(count) is int else None)


# --- lm-eval


def _is_results(path: Path) -> bool:
    named = path.name.startswith("results") and path.suffix == ".json"
    return named and b'"results"' in head(path)


def _is_samples(path: Path) -> bool:
    return path.name.startswith("samples_") and b'"doc_id"' in head(path, 64)


def _files(path: Path) -> tuple[list[Path], list[Path]]:
    """The files of results and of samples that a path is, or holds."""
    folder = path.is_dir()
    results = sorted(path.glob("results*.json")) if folder else [path]
    samples = sorted(path.glob("samples_*.jsonl")) if folder else [path]
    return list(filter(_is_results, results)), list(filter(_is_samples, samples))


def _read_lm_eval(path: Path) -> Source:
    """Each results file with its samples; samples alone make a run of their own."""
    source = Source(str(path), "lm-eval")
    results, alone = _files(path)
    for file in results:
        run, shots = _results(file)
        at = TIME.search(file.stem)
        for samples in sorted(file.parent.glob(f"samples_*{at[1] if at else ''}.jsonl")):
            run.scores += _samples(samples, shots, source.notes)
            alone = [other for other in alone if other != samples]
        source.runs.append(run)
    for samples in alone:
        run = Imported(samples.stem.removeprefix("samples_"), "", "lm-eval", Where(str(samples)))
        run.scores = list(_samples(samples, {}, source.notes))
        source.runs.append(run)
    return source


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
    for key, prefix in (("versions", "version."), ("task_hashes", "task_hash.")):
        run.config |= settings(_mapping(values, key), Where(str(path), spot=key), prefix)
    for task, metrics in results.items():
        count = _mapping(counts, task).get("effective")
        for metric, value in metrics.items() if isinstance(metrics, dict) else ():
            if "," not in metric or "_stderr" in metric:
                continue
            where = Where(str(path), spot=f"results.{task}.{metric}")
            run.cells.append(_cell(f"{task}/{metric}", value, where, count, given.get(task)))
    return run, given


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


def _metrics(row: dict[str, Any]) -> list[str]:
    """The columns that are metrics: named since 0.4.8, before that all that are not known."""
    named = row.get("metrics")
    if isinstance(named, list):
        return [name for name in named if isinstance(name, str)]
    return [name for name in row if name not in FIXED]


# --- Inspect


def _is_inspect(path: Path) -> bool:
    """A log, by its suffix and its first words."""
    if not path.is_file() or path.suffix == ".eval":
        return path.is_file() and head(path, 2) == b"PK"
    start = head(path)
    return path.suffix == ".json" and all(
        f'"{n}"'.encode() in start for n in ("status", "eval", "task")
    )


def _read_inspect(path: Path) -> Source:
    """The run in one log."""
    values = whole_object(path) if path.suffix == ".json" else _by_inspect(path)
    spec = values.get("eval")
    if not isinstance(spec, dict):
        raise DataError(f"{path} is not a log of Inspect: it holds no `eval`")
    task, model = str(spec.get("task", "")), str(spec.get("model", ""))
    run = Imported(f"{task} {model}".strip(), model, "inspect", Where(str(path)))
    run.finished = values.get("status") == "success"
    for key in SETTINGS:
        if isinstance(spec.get(key), dict):
            given = {name: v for name, v in spec[key].items() if name != "sample_ids"}
            run.config |= settings(given, Where(str(path), spot=f"eval.{key}"), f"{key}.")
    run.config |= settings({"task": task, "model": model}, Where(str(path), spot="eval"))
    run.cells = _cells(values.get("results"), path)
    run.scores = _of_samples(values.get("samples"), path)
    return Source(str(path), "inspect", [run])


def _by_inspect(path: Path) -> dict[str, Any]:
    try:
        read_eval_log = import_module("inspect_ai.log").read_eval_log
    except ImportError:
        raise DataError(
            f"{path} needs `pip install inspect_ai`; or write it out with "
            "`inspect log convert --to json`"
        ) from None
    try:
        # Without what was not given: the JSON that Inspect writes leaves it out too.
        log = read_eval_log(str(path))
        values: dict[str, Any] = log.model_dump(mode="json", exclude_none=True)
    except Exception as error:  # noqa: BLE001, whatever the library says of a file it refuses
        raise DataError(f"{path} cannot be read by inspect_ai: {str(error)[:200]}") from None
    return values


def _cells(results: Any, path: Path) -> list[Cell]:
    made = []
    for result in _objects(results, "scores"):
        name = result.get("name")
        for metric, held in _mapping(result, "metrics").items():
            where = Where(str(path), spot=f"results.{name}.{metric}")
            value = held.get("value") if isinstance(held, dict) else None
            made.append(_cell(f"{name}/{metric}", value, where, result.get("scored_samples")))
    return made


def _objects(holder: Any, name: str) -> list[dict[str, Any]]:
    held = holder.get(name) if isinstance(holder, dict) else None
    return [one for one in held if isinstance(one, dict)] if isinstance(held, list) else []


def _of_samples(samples: Any, path: Path) -> list[Scores]:
    """A score for each sample and epoch, by scorer; NaN where the sample broke."""
    rows, items = _objects({"samples": samples}, "samples"), Items()
    scorers = sorted({name for row in rows for name in _mapping(row, "scores")})
    for place, row in enumerate(rows):
        values = {one: _mapping(_mapping(row, "scores"), one).get("value") for one in scorers}
        given = {n: LETTERS.get(v, v) if isinstance(v, str) else v for n, v in values.items()}
        items.add(str(row.get("id", place)), place + 1, {n: score(v) for n, v in given.items()})
    epochs = [row.get("epoch") for row in rows]
    tries = np.array([e - 1 if type(e) is int else 0 for e in epochs], dtype=np.int64)
    return items.scores(path, "sample", repeats=tries)


LM_EVAL = Reader(lambda path: any(_files(path)), _read_lm_eval)
INSPECT = Reader(_is_inspect, _read_inspect)
