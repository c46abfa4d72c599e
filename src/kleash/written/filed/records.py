"""Every record of log files as it is filed: its numbers, and what stands beside them.

`imports` makes runs and curves of logs and must know what a table is. Here a row, a JSON line or an
object is a record: its words, its counts (epoch, shots, seed, samples) and the names of its folder
and file are coordinates, the rest are numbers. What cannot be read is passed over.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from typing import Any

import numpy as np

from kleash.errors import DataError
from kleash.imports import Series, csv_rows
from kleash.imports.gather import json_lines, number, whole_json
from kleash.imports.stretches import Value
from kleash.written.logs import Logs

LARGEST = 8 * 2**20  # bytes of a file that is looked into
MOST = 60_000  # records in all
DEEPEST = 6  # objects within objects
PATH = "path"
# What counts: by the names of columns, and by how names of runs and files have it.
COUNTS = {
    "epoch": r"(?:\w+_)?epoch(?:_(?:id|num|idx))?|ep|轮次?|第几轮",
    "step": r"(?:(?:train|training|trainer)[_/])?(?:global)?_?step|iter(?:ation)?|update|步数?",
    "shots": r"(?:n_?|num_?|k_?)?shots?(?:_num)?|示例数",
    "seed": r"(?:\w+_)?seed|随机种子|种子",
    "size": r"n|n_?(?:samples|items|questions|images|test|eval)|num_?(?:samples|items|questions"
    r"|images|test)|samples|items|questions|images|sample_(?:num|size)|test_data_num|样本数|eval_n",
}
_SETTING = re.compile(r"(?:kl_)?(?:beta|coef\w*)|lr|learning_rate|temperature|tau", re.I)
_WORDS = {
    "epoch": r"epoch|ep|e",
    "step": r"step|checkpoint|ckpt|global_step",
    "shots": r"shots?",
    "seed": r"seed|s",
    "size": r"n|num|samples",
}
_IN_NAME = {
    count: re.compile(rf"(?:^|[-_/ .])(?:{words})[-_=]?(\d+)(?=$|[-_/ ])", re.I)
    for count, words in _WORDS.items()
}
_BY_SHOTS = re.compile(r"(?:^|[-_/ .])(\d+)[-_]?shots?(?=$|[-_/ .])", re.I)
Coordinates = dict[str, str]


@dataclass(frozen=True)
class Record:
    """The numbers of one row or object, and its coordinates."""

    told: Coordinates
    numbers: dict[str, float]
    file: str


def of_runs(logs: Logs, read: Collection[str]) -> list[Record]:
    """The points of curves that lie in files of other kinds, under the names that these have."""
    found: list[Record] = []
    for arm in logs.arms:
        for one in arm.replicates:
            seed = {} if one.seed is None else {"seed": f"{one.seed}"}
            for run in one.runs:
                name, told = spelled(run.name)
                for series in run.series if len(found) < MOST else ():
                    if series.where.file not in read and series.axis != "time":
                        found += _points(series, {PATH: name, **told, **seed})
    return found


def _points(series: Series, told: Coordinates) -> Iterator[Record]:
    guessed = np.zeros(len(series.steps), bool) if series.estimated is None else series.estimated
    known = np.isfinite(series.values) & ~guessed
    pairs = zip(series.steps[known].tolist(), series.values[known].tolist(), strict=True)
    for at, value in pairs:
        yield Record(told | {series.axis: f"{at:g}"}, {series.metric: value}, series.where.file)


def records(paths: Iterable[Path]) -> list[Record]:
    """Every record of the tables and JSON files below some paths."""
    found: list[Record] = []
    for path in paths:
        root = path if path.is_dir() else path.parent
        files = sorted(path.rglob("*")) if path.is_dir() else [path]
        for file in files:
            if len(found) < MOST and file.is_file() and file.stat().st_size <= LARGEST:
                name = str(file.relative_to(root).with_suffix(""))
                found += [_record(row, name, str(file)) for row in _rows(file)]
    return [one for one in found[:MOST] if one.numbers]


def _rows(file: Path) -> list[Mapping[str, Value]]:
    """The rows of a file, flat; none where it is of another kind, or damaged."""
    try:
        if file.suffix.lower() in (".csv", ".tsv"):
            return [row for _, row in csv_rows.table(file, [])[1]]
        if file.suffix in (".jsonl", ".ndjson"):
            return [row for _, value in json_lines(file, []) for row in _flat(value, {})]
        if file.suffix == ".json":
            return list(_flat(whole_json(file), {}))
    except DataError:
        pass  # the reader of runs says what is wrong with it
    return []


def _flat(value: Any, above: Mapping[str, Value], depth: int = 0) -> Iterator[Mapping[str, Value]]:
    """The records of a JSON value: objects in lists are records of their own, with what is above.

    So are objects under the names of another. Lists of numbers that are equally long are columns.
    """
    if isinstance(value, list):
        for one in value:
            yield from _flat(one, above, depth + 1)
        return
    if not isinstance(value, dict) or depth > DEEPEST:
        return
    leaves = dict(_leaves(value))
    own = {**above, **{name: held for name, one in leaves.items() if (held := _value(one))}}
    told = {name: held for name, held in own.items() if isinstance(held, str) or counted(name)}
    columns = {name: one for name, one in leaves.items() if _is_column(one)}
    for name, held in leaves.items():
        if name not in columns and isinstance(held, list):
            yield from _flat(held, told, depth + 1)
        elif isinstance(held, dict):
            for key, row in held.items():
                yield from _flat(row, {**told, name: key}, depth + 1)
    if len({len(column) for column in columns.values()}) == 1:
        for row in zip(*columns.values(), strict=True):
            yield told | {name: (float(x), None) for name, x in zip(columns, row, strict=True)}
    yield own


def _value(held: Any) -> Value:
    """A number or words; None for all else, and for what is only true or false."""
    if isinstance(held, str):
        return held
    found = number(held)
    return None if found is None else (found, None)


def _is_column(held: Any) -> bool:
    return (
        isinstance(held, list) and len(held) > 1 and all(isinstance(x, int | float) for x in held)
    )


def _is_table(held: Mapping[str, Any]) -> bool:
    """Whether an object has a row under each of its names: objects with the same numbers."""
    rows = [{k for k, x in row.items() if number(x) is not None} for row in held.values()
            if isinstance(row, dict)]  # fmt: skip
    return 1 < len(rows) == len(held) and bool(set.intersection(*rows))


def _leaves(value: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """What an object and the objects in it hold, by names with dots; whole if it is a table."""
    for name, held in value.items():
        if isinstance(held, dict) and not _is_table(held) and prefix.count(".") <= DEEPEST:
            yield from _leaves(held, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", held


def counted(column: str) -> str:
    """What a column counts, by its name; '' if it measures something."""
    plain = column.strip().rpartition(".")[2]
    return next((one for one, words in COUNTS.items() if re.fullmatch(words, plain, re.I)), "")


def _record(row: Mapping[str, Value], name: str, file: str) -> Record:
    told, numbers = {}, {}
    told[PATH], counts = spelled(name)
    for column, value in row.items():
        count = counted(column)
        if isinstance(value, str):
            text, inside = spelled(value)
            told[column], counts = text, counts | inside
        elif value is None or not isfinite(value[0]):
            counts |= {count: ""} if count else {}
        elif count and value[0].is_integer():
            counts[count] = f"{value[0]:g}"
        elif _SETTING.fullmatch(column.strip()) and not count:
            told[column] = f"{value[0]:g}"
            numbers[column] = value[0]
        elif not count:
            numbers[column] = value[0]
    return Record(told | counts, numbers, file)


def spelled(name: str) -> tuple[str, Coordinates]:
    """A name without the epoch, seed, shots and size that it spells out, and these."""
    found: Coordinates = {}
    for count, pattern in (*_IN_NAME.items(), ("shots", _BY_SHOTS)):
        match = pattern.search(name)
        if match and count not in found:
            found[count] = f"{float(match[1]):g}"
            name = name[: match.start()] + name[match.end() :]
    return name.strip("-_/ ."), found
