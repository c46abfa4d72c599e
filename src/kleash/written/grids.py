"""Tables as grids of numbers, whether or not it was understood what their rows and columns are.

A cell may hold up to three numbers: its own, one in brackets, and one behind ±. A number has the
same place here as in what was understood, so that both speak of the same one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal

from kleash.imports import Derived, Number, Table, Where, names
from kleash.imports.markdown import labels
from kleash.imports.markdown.draft import Draft, Printed
from kleash.imports.markdown.numbers import Reading, percent, reading
from kleash.imports.markdown.text import bare

LARGEST = 60  # rows or columns of a table in which patterns are looked for
MOST = 100  # tables of a report that are held against each other
CALLED = ("leash.reference", "start", "model", "answerer", "data", "dataset")  # settings by a name
Part = Literal["", "bracket", "spread", "low", "high"]
Slot = tuple[int, Part]
"""A column (or a row) and which number of its cells."""
_LETTERED = re.compile(r"[a-z]\d+[a-z](?![a-z])")  # "K5e" is not "K5"
_SPREAD = re.compile(r"(?:±|\+/-)\s?\d+(?:\.(\d+))?")


_BEST = re.compile(r"最[佳优好高低]|胜|领先|best|winner|leader|better", re.I)
_EACH = re.compile(r"\s*[/、,，&]\s*")  # "5e-6 / 1e-5": both are best
_SETTING = re.compile(r"(?<![\d.])(?:\d+\.\d+(?:e-?\d+)?|\d+e-?\d+)(?![\d.])")
_MONEY = re.compile(r"(?<![\w$])[$¥￥€£]\s?(?=\d)(?!.*\$)")  # "$1.36", not "$0.05$"
_TIMES = re.compile(r"(?<=\d)\s?(?:×|倍)(?=\s*\**\s*$)")
_WITH_INTERVAL = re.compile(
    r"([+-]?[\d.]+\s?%?)\**\s*[\[(]\s*(?:95\s?%\s?(?:CI)?[:,]?\s*)?([+-]?[\d.]+\s?%?)\s*(?:[,;~]|to|-)\s*"
    r"([+-]?[\d.]+\s?%?)\s*[\])]"
)


@dataclass(frozen=True)
class Grid:
    """The numbers of a table by line and slot; `titles` are those of slots, `names` of lines."""

    titles: tuple[str, ...]
    names: tuple[str, ...]
    at: Mapping[tuple[int, Slot], Number]
    table: Table
    turned: bool = False
    """Whether its lines are the columns of the table, and its slots the rows."""
    fixed: Mapping[tuple[int, Slot], Number] = field(default_factory=dict)
    """Settings among its columns: nothing is looked for in them, but titles may work with them."""

    def slots(self) -> list[Slot]:
        """Every slot that holds a number anywhere."""
        return list(self._slots)

    def line(self, line: int) -> dict[Slot, Number]:
        """The numbers of one line."""
        return {slot: number for (at, slot), number in self.at.items() if at == line}

    def column(self, slot: Slot) -> dict[int, Number]:
        """The numbers of one slot, line by line."""
        return dict(self._columns.get(slot, {}))

    @cached_property
    def _slots(self) -> list[Slot]:
        return sorted(self._columns)

    @cached_property
    def _columns(self) -> dict[Slot, dict[int, Number]]:
        found: dict[Slot, dict[int, Number]] = {}
        for (line, slot), number in self.at.items():
            found.setdefault(slot, {})[line] = number
        return found


def grids(draft: Draft) -> list[Grid]:
    """Every table of a report that is small enough to be written by hand."""
    readings = {(one.line, one.column): (one.read, one.where) for one in draft.printed}
    settings = {(one.line, one.column) for one in draft.printed if _is_setting(one)}
    found = []
    for table in draft.source.tables[:MOST]:
        if len(table.rows) > LARGEST or len(table.header) > LARGEST:
            continue
        at: dict[tuple[int, Slot], Number] = {}
        fixed: dict[tuple[int, Slot], Number] = {}
        for line, (row, text) in enumerate(zip(table.rows, table.lines, strict=True)):
            for column in range(1, len(row)):
                known = readings.get((text, column))
                read, where = known or _read(table, row, text, column)
                spelt = _MONEY.sub("", _TIMES.sub("x", row[column]))
                if read.number is None and spelt != row[column]:
                    read, where = _read(
                        table, (*row[:column], spelt, *row[column + 1 :]), text, column
                    )
                kept = fixed if (text, column) in settings else at
                for part, number in _numbers(read, where, row[column]):
                    kept[line, (column, part)] = number
        rows = tuple(row[0] for row in table.rows)
        named = winners(table)
        at = {spot: number for spot, number in at.items() if spot[1][0] not in named}
        found.append(Grid(tuple(table.header), rows, at, table, fixed=fixed))
    return found


def winners(table: Table) -> set[int]:
    """Columns that say which arm is best, by numbers that other titles have: no measured ones."""
    found = set()
    for column, title in enumerate(table.header):
        cells = (bare(row[column]) for row in table.rows if column < len(row))
        texts = {one.strip("* ") for cell in cells for one in _EACH.split(cell)}
        others = " ".join(one for at, one in enumerate(table.header) if at != column)
        numbers = set(_SETTING.findall(others))
        if column and _BEST.search(title) and texts and texts <= numbers:
            found.add(column)
    return found


def without_winners(draft: Draft) -> list[Derived]:
    """What a report was read to work out, without columns of winners."""
    tables = draft.source.tables
    named = {(line, one.header[at]) for one in tables for at in winners(one) for line in one.lines}
    every = ((each, each.number.where) for each in draft.source.derived)
    return [each for each, at in every if (at.line, at.spot.partition(" / ")[0]) not in named]


def _is_setting(cell: Printed) -> bool:
    """Whether a cell holds a setting: no number that was measured of a model, a start, a set."""
    known, number = names.key(cell.sense.setting), cell.read.number
    called = known is not None and known.name in CALLED
    return bool(cell.sense.setting) and not (called and number is not None and number.decimals)


def turned(grid: Grid) -> Grid:
    """The same table with its columns as lines; only the numbers themselves, not their brackets."""
    at, fixed = _turned(grid.at), _turned(grid.fixed)
    return Grid(grid.names, grid.titles, at, grid.table, turned=True, fixed=fixed)


def _turned(at: Mapping[tuple[int, Slot], Number]) -> dict[tuple[int, Slot], Number]:
    return {(slot[0], (line, "")): number for (line, slot), number in at.items() if not slot[1]}


def _read(table: Table, row: tuple[str, ...], line: int, column: int) -> tuple[Reading, Where]:
    where = Where(table.where.file, line, f"{table.header[column]} / {row[0]}"[:120])
    read = reading(row[column], where)
    if any(map(labels.in_percent, (table.header[column], row[0]))):
        read = percent(read)
    return read, where


def _numbers(read: Reading, where: Where, text: str) -> Iterator[tuple[Part, Number]]:
    one = read.number
    if one is not None and one.value is not None and one.state == "known" and not one.about:
        yield "", one
        if one.spread is not None:
            behind = _SPREAD.search(text)
            decimals = len(behind[1] or "") + 2 * (one.unit == "%") if behind else one.decimals
            place = replace(where, spot=f"{where.spot} ±")
            said = behind.group().lstrip("±+/- ") if behind else ""
            yield "spread", Number(one.spread, "known", place, decimals, unit=one.unit, text=said)
    else:
        yield from _interval(text, where)
    for inner in (read.change, read.inner):
        if inner is not None and inner.value is not None and not read.unsigned:
            yield "bracket", inner


def _interval(text: str, where: Where) -> Iterator[tuple[Part, Number]]:
    """A number with its interval: "0.412 [0.388, 0.436]"."""
    match = _WITH_INTERVAL.fullmatch(bare(text).strip("* "))
    parts: tuple[Part, ...] = ("", "low", "high")
    for nth, part in enumerate(parts) if match else ():
        one = (
            reading(match[nth + 1], replace(where, spot=f"{where.spot} {part}")).number
            if match
            else None
        )
        if one is not None and one.value is not None:
            yield part, one


def label(text: str) -> str:
    """A label for comparing: its one number where it has one, else its letters."""
    plain = bare(text).casefold()
    numbers = re.findall(r"\d+(?:\.\d+)?", plain)
    one = len(numbers) == 1 and not _LETTERED.search(plain)
    return f"{float(numbers[0]):g}" if one else re.sub(r"[\s*_`$\\]", "", plain)
