"""Evaluations of `verifiers`: `results.jsonl` beside `metadata.json`.

Each line is one rollout with its reward and the metrics of the rubric. An item is an example's id
where there is one, else its prompt.
"""

from __future__ import annotations

import sys
from array import array
from pathlib import Path
from typing import Any

import numpy as np

from kleash.errors import DataError
from kleash.imports import Cell, Imported, Number, Scores, Source, Where
from kleash.imports.gather import (
    item_id,
    json_lines,
    number,
    repeats,
    score,
    settings,
    whole_object,
)
from kleash.imports.run_names import label

LINES, FACTS = "results.jsonl", "metadata.json"
FIXED = {"example_id", "id", "task", "answer", "info", "prompt", "completion"}


def fits(path: Path) -> bool:
    """The folder of one evaluation, or its lines."""
    folder = path if path.is_dir() else path.parent
    named = path.is_dir() or path.name in (LINES, FACTS)
    return named and (folder / LINES).is_file() and (folder / FACTS).is_file()


def read(path: Path) -> Source:
    """The run in the folder."""
    folder = path if path.is_dir() else path.parent
    source = Source(str(path), "verifiers")
    facts = whole_object(folder / FACTS)
    name = f"{facts.get('env_id') or facts.get('env') or folder.name} {facts.get('model', '')}"
    run = Imported(name.strip(), str(facts.get("model", "")), "verifiers", Where(str(folder)))
    where = Where(str(folder / FACTS))
    averages = {key: value for key, value in facts.items() if key.startswith("avg_")}
    run.config = settings({k: v for k, v in facts.items() if k not in averages}, where)
    for key, value in _flat(averages):
        run.cells.append(Cell(key, Number(value, "known", Where(where.file, spot=key))))
    run.seconds = number(facts.get("time_ms", facts.get("time")))
    if run.seconds is not None and "time_ms" in facts:
        run.seconds /= 1000
    run.scores = _scores(folder / LINES, source.notes)
    source.runs.append(label(run))
    return source


def _flat(values: dict[str, Any]) -> list[tuple[str, float]]:
    found = []
    for key, value in values.items():
        inner = value if isinstance(value, dict) else {"": value}
        for name, held in inner.items():
            if (taken := number(held)) is not None:
                found.append((f"{key}.{name}".rstrip("."), taken))
    return found


def _scores(path: Path, notes: list[str]) -> list[Scores]:
    items: list[str] = []
    lines = array("q")
    columns: dict[str, array[float]] = {}
    for line, row in json_lines(path, notes):
        if not isinstance(row, dict):
            raise DataError(f"{path} line {line} is not an object")
        known = row.get("example_id", row.get("id"))
        items.append(item_id(repr(row.get("prompt"))) if known is None else sys.intern(str(known)))
        lines.append(line)
        taken = {name: score(value) for name, value in row.items() if name not in FIXED}
        metrics = row.get("metrics")
        if isinstance(metrics, dict):
            taken |= {name: score(value) for name, value in metrics.items()}
        if row.get("error"):
            taken["reward"] = None  # what broke around the policy is no score
        for name, value in taken.items():
            if value is not None:
                columns.setdefault(name, array("d", [np.nan]) * (len(items) - 1))
        for name, column in columns.items():
            value = taken.get(name)
            column.append(np.nan if value is None else value)
    return [
        Scores(
            metric=name,
            items=items,
            values=np.array(column),
            where=Where(str(path), 1),
            repeats=repeats(items),
            lines=np.array(lines),
        )
        for name, column in columns.items()
    ]
