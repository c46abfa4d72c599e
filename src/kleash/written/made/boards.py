"""Tables as boards of parts, looked at by columns or by rows, with the names of both.

A line is one part of the cells of a column (or of a row); its positions are the rows (or columns).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

from kleash.documents.page import Page
from kleash.imports import Table
from kleash.imports.markdown.text import bare
from kleash.written.grids import winners
from kleash.written.made.parts import Part, parts_of

KEYS = 3  # columns that may be needed to tell rows apart
LARGEST = 60
TELLING = 3  # digits of a number that may be known again
OFTEN = 3  # times that other tables have a number from which something starts
AROUND = 8  # lines above and below a table that may tell what it is worked out with
Line = tuple[int, str]
"""A column (or a row) and which part of its cells."""
SUMMARY = re.compile(
    r"平均|均值|合计|总计|总和|总|标准差|方差|极差|范围|最佳|最高|最低|最大|最小|最优|差|中位|变化|提升|名次|"
    r"(?<![a-z])(?:mean|avg|average|total|sum|all|overall|std|sd|s\.d|stdev|range|spread|best|max|min|"
    r"highest|lowest|median|pooled|gain|diff|difference|delta|change|rank|ratio)(?![a-z])|Δ|→|−|[-/]\s?\w+$",
    re.I,
)
_NUMBER = re.compile(r"(?<![\d.])\d+(?:,\d{3})*(?:\.\d+)?(?:e-?\d+)?", re.I)


@dataclass(frozen=True)
class Board:
    """A table seen from one side: lines with titles, positions with labels, parts at both."""

    nth: int
    titles: tuple[str, ...]
    labels: tuple[str, ...]
    at: Mapping[tuple[int, Line], Part]
    places: Mapping[tuple[int, Line], tuple[int, int]]
    """Where a part stands: the line of the page, and the column of the table."""
    headings: tuple[str, ...] = ()
    turned: bool = False
    first: bool = field(default=False)
    """Whether line 0 is the column of the labels themselves."""
    said: frozenset[float] = frozenset()
    """Numbers that the text around it has: a price, where something starts."""
    often: frozenset[float] = frozenset()
    """Numbers that other tables have again and again: where all start."""

    @cached_property
    def lines(self) -> list[Line]:
        """Every line that holds a part, from the first to the last."""
        return sorted(self.by_line)

    @cached_property
    def by_line(self) -> dict[Line, list[Part]]:
        """The parts of every line."""
        found: dict[Line, list[Part]] = {}
        for (_, line), part in self.at.items():
            found.setdefault(line, []).append(part)
        return found

    @cached_property
    def used(self) -> list[int]:
        """The positions that hold any part."""
        return sorted({at for at, _ in self.at})

    @cached_property
    def axis(self) -> dict[int, float]:
        """The number in the label of every position that is counted: a step, an epoch, a seed."""
        return counted(self.labels)

    @cached_property
    def title_axis(self) -> dict[int, float]:
        """The same of the titles."""
        return counted(self.titles)

    @cached_property
    def plain(self) -> list[int]:
        """The positions that are no totals, means and the like of the others."""
        return [at for at, label in enumerate(self.labels) if not SUMMARY.search(bare(label))]


def counted(labels: Iterable[str]) -> dict[int, float]:
    """What labels count that rise or fall throughout and differ in one number only."""
    groups: dict[str, dict[int, float]] = {}
    for at, label in enumerate(labels):
        text = bare(label).casefold()
        numbers = _NUMBER.findall(text)
        if len(numbers) == 1:
            word = re.sub(r"[\s()#*:_-]", "", _NUMBER.sub("", text))
            groups.setdefault(word, {})[at] = float(numbers[0].replace(",", ""))
    best = max(groups.values(), key=len, default={})
    values = list(best.values())
    return (
        best
        if len(values) > 1 and values in (sorted(set(values)), sorted(set(values))[::-1])
        else {}
    )


def boards(tables: Iterable[Table], page: Page | None = None) -> list[Board]:
    """Every table, seen by its columns."""
    every = [
        replace(board_of(nth, table), said=_said(table, page))
        for nth, table in enumerate(tables)
        if max(len(table.rows), len(table.header)) <= LARGEST
    ]
    counts = [Counter(p.value for p in one.at.values() if p.digits >= TELLING) for one in every]
    total = sum(counts, Counter[float]())
    return [
        replace(one, often=frozenset(v for v, n in total.items() if n - own[v] >= OFTEN))
        for one, own in zip(every, counts, strict=True)
    ]


def _said(table: Table, page: Page | None) -> frozenset[float]:
    """The numbers of the text above and below a table, up to other tables and headings."""
    if page is None or not table.lines:
        return frozenset()
    first, last = (table.where.line or table.lines[0]) - 1, table.lines[-1] + 1
    found = set[str]()
    for way in (range(first, max(0, first - AROUND), -1), range(last, last + AROUND)):
        for nth in way:
            text = page.line(nth)
            if text.lstrip().startswith("|") and nth < first - 1:
                break
            found.update(_NUMBER.findall(text) if not text.lstrip().startswith("|") else ())
            if text.startswith("#"):
                break
    return frozenset(float(one.replace(",", "")) for one in found if len(one.strip("0.")) > 1)


def board_of(nth: int, table: Table) -> Board:
    """A table, seen by its columns."""
    keys, named = _keys(table), winners(table)
    at: dict[tuple[int, Line], Part] = {}
    places: dict[tuple[int, Line], tuple[int, int]] = {}
    for row, (cells, line) in enumerate(zip(table.rows, table.lines, strict=True)):
        for column in range(len(cells)):
            if 0 < column < keys or column in named:
                continue
            for kind, part in parts_of(cells[column]).items():
                at[row, (column, kind)] = part
                places[row, (column, kind)] = line, column
    first = all((row, (0, "")) in at for row in range(len(table.rows)))
    if not first:
        at = {key: part for key, part in at.items() if key[1][0] > 0}
    labels = tuple(_label(table, row, keys) for row in range(len(table.rows)))
    titles = tuple(table.header)
    return Board(nth, titles, labels, at, places, tuple(table.headings), first=first)


def _keys(table: Table) -> int:
    """How many columns it takes to tell the rows apart; blanks stand for what is above them."""
    for keys in range(1, min(KEYS, len(table.header) - 1) + 1):
        labels = [_label(table, row, keys) for row in range(len(table.rows))]
        if len(set(labels)) == len(labels):
            return keys
    return 1


def _label(table: Table, row: int, keys: int) -> str:
    found = []
    for column in range(keys):
        above = [cells[column] for cells in table.rows[: row + 1] if cells[column].strip()]
        found.append(table.rows[row][column] if keys == 1 or not above else above[-1])
    return " | ".join(found)


def turned(board: Board) -> Board:
    """The same table seen by its rows."""
    at = {(line[0], (row, line[1])): part for (row, line), part in board.at.items() if line[0]}
    places = {(line[0], (row, line[1])): place for (row, line), place in board.places.items()}
    return Board(
        board.nth, board.labels, board.titles, at, places, board.headings,
        turned=not board.turned, said=board.said, often=board.often,
    )  # fmt: skip
