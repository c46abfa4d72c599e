"""JSON lines, and JSON lists, of objects with numbers: logs and scores that follow no tool.

Nested objects are flattened with dots. A single object of numbers is one measurement; one whose
values are lists of numbers holds series without steps, counted from 0.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, islice
from pathlib import Path
from typing import Any

from kleash.errors import DataError
from kleash.imports import Imported, Source, Where
from kleash.imports.gather import (
    DEPTH,
    Points,
    first_object,
    head,
    json_lines,
    label,
    number,
    whole_json,
)
from kleash.imports.rows import Row, Value, layout, read_rows

LOOKED_AT = 100  # rows, before it is said what the rows are


def fits(path: Path) -> bool:
    """Lines that are objects with a number, or a list or object of such."""
    if not path.is_file() or path.suffix not in (".jsonl", ".ndjson", ".json"):
        return False
    if path.suffix == ".json":
        return head(path, 512).lstrip()[:1] in (b"[", b"{")
    first = first_object(path)
    return first is not None and bool(_flat(first, ""))


def read(path: Path) -> Source:
    """The runs that the rows are about."""
    source = Source(str(path), "jsonl")
    value = None
    if path.suffix != ".json":
        rows = _lines(path, source.notes)
    else:
        value = whole_json(path)
        if isinstance(value, dict) and any(_is_series(part) for part in value.values()):
            source.runs.append(_columns(path, value))
            return source
        rows = _list(path, value)
    # The first line may be about the run: what the rows are shows in several of them.
    first = list(islice(rows, LOOKED_AT))
    if not first:
        raise DataError(f"{path} holds no rows")
    plan = layout(list(dict.fromkeys(name for _, row in first for name in row)))
    plan.single = path.suffix == ".json" and isinstance(value, dict)
    read_rows(path, "jsonl", chain(first, rows), plan, source)
    if not any(run.series or run.scores or run.cells for run in source.runs):
        raise DataError(f"{path} holds no numbers")
    return source


def _lines(path: Path, notes: list[str]) -> Iterator[Row]:
    for line, value in json_lines(path, notes):
        if not isinstance(value, dict):
            raise DataError(f"{path} line {line} is not an object")
        yield line, _flat(value, "")


def _list(path: Path, value: Any) -> Iterator[Row]:
    for place, row in enumerate(value if isinstance(value, list) else [value], 1):
        if not isinstance(row, dict):
            raise DataError(f"{path}: entry {place} is not an object")
        yield place, _flat(row, "")


def _flat(value: dict[str, Any], prefix: str) -> dict[str, Value]:
    """The numbers and words of an object; right and wrong are 1 and 0; lists are passed over."""
    if prefix.count(".") > DEPTH:
        raise DataError(f"objects are nested more than {DEPTH} deep")
    made: dict[str, Value] = {}
    for name, held in value.items():
        taken = float(held) if isinstance(held, bool) else number(held)
        if taken is not None:
            made[prefix + name] = (taken, None)
        elif isinstance(held, str):
            made[prefix + name] = held
        elif held is None:
            made[prefix + name] = None
        elif isinstance(held, dict):
            made |= _flat(held, f"{prefix}{name}.")
    return made


def _is_series(value: Any) -> bool:
    return isinstance(value, list) and len(value) > 1 and all(number(v) is not None for v in value)


def _columns(path: Path, value: dict[str, Any]) -> Imported:
    """`{"loss": [0.3, 0.2]}`: one series for each list of numbers, over a list of steps if any."""
    run = Imported(path.stem, "", "jsonl", Where(str(path)))
    plan = layout([name for name, part in value.items() if _is_series(part)])
    steps = value[plan.step] if plan.step else None
    points = Points(path)
    for name, part in value.items():
        if not _is_series(part) or name == plan.step:
            continue
        if steps is not None and len(steps) != len(part):
            raise DataError(f"{path}: {name!r} has {len(part)} values for {len(steps)} steps")
        for place, held in enumerate(part):
            step, taken = number(steps[place]) if steps else float(place), number(held)
            assert step is not None and taken is not None
            points.add(name, step, taken, place + 1)
    run.series = points.series(plan.axis, spot="place in its list")
    return label(run)
