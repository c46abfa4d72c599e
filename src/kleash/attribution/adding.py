"""Which runs to add so that factors that are aliased come apart: the fewest, one change each.

A run to add is one that was made, with one factor at a value that another run had. Of all these the
one is taken that leaves the fewest factors aliased, then the next, until none is.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from kleash import stats
from kleash.attribution.factors import Factor, Row, factor, partition, told

MOST = 6  # runs that are proposed


@dataclass(frozen=True)
class Addition:
    """A run to make: as `like`, but for one setting. `command` is '' where it is not our run."""

    like: str
    key: str
    written: str
    value: Any
    command: str
    parts: tuple[str, ...]
    """The factors that are no longer aliased once it is there, with those before it."""


def additions(rows: Sequence[Row], factors: Sequence[Factor], refused: int) -> list[Addition]:
    """One run after the other, until no factor is aliased or no single change helps."""
    # Settings that change together come apart only if each is a factor of its own.
    keys = [key for each in factors for key in each.keys]
    table = [[told(row, key) for key in keys] for row in rows]
    made: list[Addition] = []
    names = list(rows)
    left = _aliased(table, keys) if refused else set()
    while left and len(made) < MOST:
        best = _best(table, keys, left)
        if best is None:
            break
        at, column, value, after = best
        table.append([*table[at][:column], value, *table[at][column + 1 :]])
        names.append(names[at])
        made.append(_told(names[at], keys[column], value, tuple(sorted(left - after))))
        left = after
    return made


def _aliased(table: Sequence[Sequence[Any]], keys: Sequence[str]) -> set[str]:
    columns = {}
    for key, values in zip(keys, zip(*table, strict=True), strict=True):
        columns[key] = factor(key, values).columns
    return {key for key in keys if not stats.estimable(columns, len(table), key)}


def _best(
    table: Sequence[Sequence[Any]], keys: Sequence[str], left: set[str]
) -> tuple[int, int, Any, set[str]] | None:
    """The row, the column and its value after which the fewest are aliased; the first of equals."""
    found: tuple[int, int, Any, set[str]] | None = None
    first = {repr(row): at for at, row in reversed(list(enumerate(table)))}
    different = [(at, table[at]) for at in sorted(first.values())]  # repeats part nothing more
    for column, key in enumerate(keys):
        if key not in left:
            continue
        values = [row[column] for row in table]
        groups = partition(values)
        every = [values[groups.index(group)] for group in dict.fromkeys(groups) if group >= 0]
        for at, row in different:
            for value in every:
                if groups[at] == groups[values.index(value)]:
                    continue
                after = _aliased([*table, [*row[:column], value, *row[column + 1 :]]], keys)
                if len(after) < len(left if found is None else found[3]):
                    found = (at, column, value, after)
    return found


def _told(row: Row, key: str, value: Any, parts: tuple[str, ...]) -> Addition:
    written = row.written.get(key, key)
    command = ""
    if row.format == "kleash":
        change = shlex.quote(f"{written}={value}")
        out = shlex.quote(f"{row.path.rstrip('/')}-{key.rsplit('.', 1)[-1]}-{value}")
        command = f"kleash train {shlex.quote(row.path)} {change} --new --out {out}"
    return Addition(row.name, key, written, value, command, parts)
