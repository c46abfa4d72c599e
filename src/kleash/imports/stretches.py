"""Rows of a table by the thousand: columns are taken at once, not number by number.

A stretch holds what is written, a column a list; each format says how its entries become numbers.
Every number keeps its row, and with it its line.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

Value = tuple[float, int | None] | str | None
Rows = NDArray[np.intp]
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Numbers:
    """The numbers of a column, and which rows they are of.

    `coarse`: whether all were printed with few digits, then `decimals` at most; None if not said.
    """

    values: Floats
    rows: Rows
    decimals: int = 0
    coarse: bool | None = None


@dataclass(frozen=True)
class Form:
    """How a format writes: what one entry is, and the numbers in many."""

    name: str
    value: Callable[[Any], Value]
    numbers: Callable[[Sequence[Any]], Numbers]
    text: Callable[[Any], str]
    """An entry as a name: as it is written, empty where there is none."""


def one_by_one(entries: Sequence[Any], value: Callable[[Any], Value]) -> Numbers:
    """The numbers among entries of any kind."""
    rows, values, decimals = array("q"), array("d"), 0
    coarse: bool | None = None
    for row, entry in enumerate(entries):
        found = value(entry)
        if not isinstance(found, tuple):
            continue
        rows.append(row)
        values.append(found[0])
        if found[1] is not None:
            decimals, coarse = max(decimals, found[1]), coarse is not False
        elif math.isfinite(found[0]):
            coarse = False
    return Numbers(np.array(values), np.array(rows, dtype=np.intp), decimals, coarse)


@dataclass(frozen=True)
class Stretch:
    """Some rows of a table: their lines, and their entries by column; None: there is none."""

    lines: NDArray[np.int64]
    columns: Mapping[str, Sequence[Any]]
    form: Form
    naming: Collection[str] = ()
    """Columns that name runs: there "none" and "NA" are names."""

    def __len__(self) -> int:
        """How many rows."""
        return len(self.lines)

    def take(self, rows: Sequence[int] | Rows) -> Stretch:
        """Some of its rows."""
        kept = {name: [held[row] for row in rows] for name, held in self.columns.items()}
        return replace(self, lines=self.lines[rows], columns=kept)

    def alike(self, names: Sequence[str]) -> Iterator[Stretch]:
        """Its parts whose rows say the same under these names, in order of appearance."""
        keys = list(zip(*map(self._meant, names), strict=True))
        if not keys or keys.count(keys[0]) == len(keys):
            yield self
            return
        groups: dict[tuple[Any, ...], list[int]] = {}
        for row, key in enumerate(keys):
            groups.setdefault(key, []).append(row)
        for rows in groups.values():
            yield self.take(rows)

    def value(self, name: str, entry: Any) -> Value:
        """What an entry says under a name."""
        held = self.form.value(entry)
        if held is None and name in self.naming and any(map(str.isalnum, self.form.text(entry))):
            return self.form.text(entry)
        return held

    def _meant(self, name: str) -> Iterator[Any]:
        """What entries say: 1 and 1.0 are the same, and so are two ways of writing nothing."""
        entries = self.columns[name]
        values = {entry: self.value(name, entry) for entry in set(entries)}
        said = {
            entry: held[0] if isinstance(held, tuple) else held for entry, held in values.items()
        }
        return map(said.__getitem__, entries)

    def row(self, at: int) -> dict[str, Value]:
        """One row."""
        return {name: self.value(name, held[at]) for name, held in self.columns.items()}

    def rows(self) -> Iterator[tuple[int, dict[str, Value]]]:
        """All rows, with their lines."""
        return ((int(line), self.row(at)) for at, line in enumerate(self.lines))

    def dense(self, name: str | None) -> tuple[Floats, NDArray[np.bool_]]:
        """A column's number for every row, NaN where there is none, and where there is one."""
        values, known = np.full(len(self), np.nan), np.zeros(len(self), dtype=bool)
        if name is not None and name in self.columns:
            found = self.form.numbers(self.columns[name])
            values[found.rows], known[found.rows] = found.values, True
        return values, known
