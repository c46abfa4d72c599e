"""JSON lines, and JSON lists, of objects with numbers: logs and scores that follow no tool.

Nested objects are flattened with dots. A single object of numbers is one measurement; one whose
values are lists of numbers holds series without steps, counted from 0; one that holds a list of
rows with steps is these.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import Any

import numpy as np

from kleash.compare.read import Imported, Source, Where, in_names, names
from kleash.compare.read.gather import (
    DEPTH,
    Points,
    first_object,
    head,
    json_lines,
    number,
    numbers,
    score,
    whole_json,
)
from kleash.compare.read.tables import Form, Rows, Value, layout, name_of, read_table
from kleash.errors import DataError

LOOKED_AT = 100  # rows, before it is said what the rows are
ROWS = 1024  # taken at a time
PLAIN = {float, int, bool, str, type(None)}
EXACT = 2.0**53  # from here on a float is not every whole number
Flat = tuple[int, dict[str, Any]]


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
        value = _records_in(value)
        rows = _list(path, value)
    # The first line may be about the run: what the rows are shows in several of them.
    first = list(islice(rows, LOOKED_AT))
    if not first:
        raise DataError(f"{path} holds no rows")
    plan = layout(list(dict.fromkeys(name for _, row in first for name in row)))
    plan.single = path.suffix == ".json" and isinstance(value, dict)
    read_table(path, "jsonl", _parts(chain(first, rows)), plan, source)
    if not any(run.series or run.scores or run.cells for run in source.runs):
        raise DataError(f"{path} holds no numbers")
    return source


def _records_in(value: Any) -> Any:
    """The list of rows with steps that an object holds beside what it says of the run, if any."""
    if not isinstance(value, dict):
        return value
    if rows := _by_arm(value):
        return rows
    lists = [part for part in value.values() if isinstance(part, list) and len(part) > 1]
    rows = lists[0] if len(lists) == 1 and all(isinstance(row, dict) for row in lists[0]) else []
    return rows if rows and layout([str(name) for name in rows[0]]).step else value


def _by_arm(value: dict[str, Any]) -> list[dict[str, Any]]:
    """Rows of an object whose keys are arms, or of those that it holds under metrics: {"kl0": {…}}.

    Numbers below an arm are steps: `{"accuracy": {"kl010": {"10": {"shot1": 55.6}}}}`.
    """
    rows: list[dict[str, Any]] = []
    inside = [(name, part) for name, part in value.items() if isinstance(part, dict)]
    for metric, arms in [("", value), *inside]:
        told = {name: held for name, held in arms.items() if isinstance(held, dict)}
        if sum(in_names.coefficient(name)[0] is not None for name in told) < 2:
            continue
        beside = {k: v for k, v in value.items() if metric and type(v) in PLAIN}
        for name, held in told.items():
            steps = [k for k, part in held.items() if k.isdecimal() and isinstance(part, dict)]
            for step in steps if steps and len(steps) == len(held) else [""]:
                row = {"run": name} | beside | ({"step": int(step)} if step else {})
                own = held[step] if step else held
                rows.append(row | ({metric: own} if metric else own))
        if not metric:
            break
    return rows


def _lines(path: Path, notes: list[str]) -> Iterator[Flat]:
    for line, value in json_lines(path, notes):
        if not isinstance(value, dict):
            raise DataError(f"{path} line {line} is not an object")
        yield line, _flat(value, "")


def _list(path: Path, value: Any) -> Iterator[Flat]:
    for place, row in enumerate(value if isinstance(value, list) else [value], 1):
        if not isinstance(row, dict):
            raise DataError(f"{path}: entry {place} is not an object")
        yield place, _flat(row, "")


def _flat(value: dict[str, Any], prefix: str) -> dict[str, Any]:
    """The numbers and words of an object, and shares of what it counts; lists are passed over."""
    shares = _shares(value)
    if PLAIN.issuperset(map(type, value.values())) and not prefix and not shares:
        return value
    if prefix.count(".") > DEPTH:
        raise DataError(f"objects are nested more than {DEPTH} deep")
    made: dict[str, Any] = {prefix + name: share for name, share in shares.items()}
    for name, held in value.items():
        if type(held) in PLAIN:
            made[prefix + name] = held
        elif isinstance(held, dict):
            made |= _flat(held, f"{prefix}{name}.")
    return made


def _shares(value: dict[str, Any]) -> dict[str, float]:
    """Of what an object counts as right of how many the shares: of all of it, or of its sets.

    `{"correct": 53, "n": 100}`, `{"gsm8k_correct": 806, "gsm8k_total": 1319}`.
    """
    found: dict[str, float] = {}
    if not any("correct" in name or name == "hits" for name in value):
        return found  # of most rows at once: logs have many
    for name in value:
        of_set, _, word = name.rpartition("_")
        right, of_set = (word, of_set) if word in names.COLUMNS["right"] else (name, "")
        if right not in names.COLUMNS["right"] or type(value[name]) is not int:
            continue
        counts = [
            f"{of_set}_{size}" if of_set else size for size in ("total", *names.COLUMNS["size"])
        ]
        held = [value[count] for count in counts if type(value.get(count)) is int]
        if len(held) == 1 and 0 <= value[name] <= held[0] and held[0]:
            found[f"{of_set}.accuracy" if of_set else "accuracy"] = value[name] / held[0]
    known = [metric.name for name in value if (metric := names.metric(name))]
    return {} if "accuracy" in known else found


def _parts(rows: Iterator[Flat]) -> Iterator[Rows]:
    """Rows by their columns, a thousand at a time; few rows may have a column."""
    while some := list(islice(rows, ROWS)):
        lines, flat = zip(*some, strict=True)
        every = np.arange(len(flat))
        columns: dict[str, tuple[Any, Sequence[Any]]] = {}
        if len({tuple(row) for row in flat}) == 1:
            held = zip(*map(dict.values, flat), strict=True)
            columns = {name: (every, one) for name, one in zip(flat[0], held, strict=True)}
        else:
            rare: dict[str, dict[int, Any]] = {}
            order = [""]
            for at, row in enumerate(flat):
                before = ""
                for name, entry in row.items():
                    if name not in rare:  # in its place: the first word of a row may name its run
                        order.insert(order.index(before) + 1, name)
                        rare[name] = {}
                    rare[name][at] = entry
                    before = name
            for name in order[1:]:
                columns[name] = np.array(list(rare[name]), dtype=np.intp), [*rare[name].values()]
        yield Rows(np.array(lines, dtype=np.int64), columns, FORM)


def _value(held: Any) -> Value:
    """A number, right and wrong as 1 and 0, words, or nothing."""
    taken = score(held)
    if taken is not None:
        return taken, None
    return held if isinstance(held, str) else None


def _text(held: Any) -> str:
    """An item's name: whole numbers have all their digits, and decimals must have kept theirs."""
    if isinstance(held, float) and abs(held) >= EXACT:
        raise DataError(f"an item called {held!r} has lost digits: write such names as text")
    return "" if held is None else str(held)


FORM = Form("jsonl", _value, partial(numbers, value=score), _text)


def _is_series(value: Any) -> bool:
    return isinstance(value, list) and len(value) > 1 and all(number(v) is not None for v in value)


def _columns(path: Path, value: dict[str, Any]) -> Imported:
    """`{"loss": [0.3, 0.2]}`: one series for each list of numbers, over a list of steps if any."""
    run = Imported(name_of(path), "", "jsonl", Where(str(path)))
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
    return run
