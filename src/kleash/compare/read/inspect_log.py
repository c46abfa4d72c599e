"""Logs of Inspect: `.json` as they are, `.eval` through `inspect_ai`, whose format it is.

Its maintainers call the API the stable surface, so the zip is not opened here. Letters are read as
Inspect reads them: C is 1, P is 0.5, I and N are 0. A sample that broke has no score.
"""

from __future__ import annotations

import math
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from kleash.compare.read import Cell, Imported, Number, Scores, Source, Where
from kleash.compare.read.gather import Items, head, number, score, settings, whole_object
from kleash.errors import DataError

LETTERS = {"C": 1.0, "P": 0.5, "I": 0.0, "N": 0.0}


def fits(path: Path) -> bool:
    """A log, by its suffix and its first words."""
    if not path.is_file():
        return False
    if path.suffix == ".eval":
        return head(path, 2) == b"PK"
    start = head(path)
    return (
        path.suffix == ".json"
        and b'"status"' in start
        and b'"eval"' in start
        and b'"task"' in start
    )


def read(path: Path) -> Source:
    """The run in one log."""
    values = whole_object(path) if path.suffix == ".json" else _by_inspect(path)
    spec = values.get("eval")
    if not isinstance(spec, dict):
        raise DataError(f"{path} is not a log of Inspect: it holds no `eval`")
    task, model = str(spec.get("task", "")), str(spec.get("model", ""))
    run = Imported(
        name=f"{task} {model}".strip(),
        arm=model,
        format="inspect",
        where=Where(str(path)),
        finished=values.get("status") == "success",
        started=str(spec["created"]) if "created" in spec else None,
    )
    for key in (
        "task_args",
        "model_args",
        "model_generate_config",
        "config",
        "dataset",
        "packages",
    ):
        if isinstance(spec.get(key), dict):
            given = {name: v for name, v in spec[key].items() if name != "sample_ids"}
            run.config |= settings(given, Where(str(path), spot=f"eval.{key}"), f"{key}.")
    run.config |= settings({"task": task, "model": model}, Where(str(path), spot="eval"))
    run.cells = _cells(values.get("results"), path)
    run.scores = _scores(values.get("samples"), path)
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
        count = result.get("scored_samples")
        metrics = result.get("metrics")
        for name, metric in metrics.items() if isinstance(metrics, dict) else ():
            value = number(metric.get("value")) if isinstance(metric, dict) else None
            where = Where(str(path), spot=f"results.{result.get('name')}.{name}")
            state = "missing" if value is None else "known"
            made.append(
                Cell(
                    f"{result.get('name')}/{name}",
                    Number(value, state, where),  # type: ignore[arg-type]
                    items=count if type(count) is int else None,
                )
            )
    return made


def _objects(holder: Any, name: str) -> list[dict[str, Any]]:
    held = holder.get(name) if isinstance(holder, dict) else None
    return [one for one in held if isinstance(one, dict)] if isinstance(held, list) else []


def _scores(samples: Any, path: Path) -> list[Scores]:
    """A score for each sample and epoch, by scorer; NaN where the sample broke."""
    rows, items = _objects({"samples": samples}, "samples"), Items()
    scorers = sorted({name for row in rows for name in _mapping(row.get("scores"))})
    for place, row in enumerate(rows):
        given = _mapping(row.get("scores"))
        items.add(
            str(row.get("id", place)), place + 1, {one: _value(given.get(one)) for one in scorers}
        )
    epochs = [row.get("epoch") for row in rows]
    tries = np.array([e - 1 if type(e) is int else 0 for e in epochs], dtype=np.int64)
    return items.scores(path, "sample", repeats=tries)


def _mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _value(given: Any) -> float:
    value = _mapping(given).get("value")
    if isinstance(value, str) and value in LETTERS:
        return LETTERS[value]
    taken = score(value)
    return math.nan if taken is None else taken
