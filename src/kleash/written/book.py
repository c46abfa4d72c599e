"""Every table of a page, and which of its numbers a sentence may speak of.

A sentence speaks of the rows and columns that it names. If it names two rows, what it compares are
these two; if it names one, the other is any. If it names none, it speaks of the tables under its
heading.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations

from kleash.documents.page import Page
from kleash.written.printed import Cell, Sheet
from kleash.written.prose import END, At, Name, Sentence

APART = 3.0  # times: lines that are further apart hold other quantities
Line = tuple[Cell, ...]
_VERSUS = re.compile(
    r"(?<![a-z])(?:than|vs|versus|against|as [a-z]+ (?:\w+ ){0,3}as)(?![a-z])|"
    r"比(?!例)|相较|的[^,。]{0,8}倍"
)
_FROM_TO = re.compile(r"(?:[到至]|→|->|(?<![a-z])(?:to|and)(?![a-z]))\s?$")
_ITS_BEST = re.compile(
    r"(?<![a-z])(?:its|their|the) (?:own )?(?:best|peak|maximum|highest|top|minimum|lowest)|"
    r"[它其己][^,。;]{0,3}(?:最好|最佳|最高|峰值|最优|最低)"
)


@dataclass
class Book:
    """Every table of a page, and the lines of each that numbers may be worked out of."""

    sheets: Sequence[Sheet]
    heads: Sequence[int]
    """The lines of headings."""
    lines: dict[int, list[Line]] = field(default_factory=dict)
    sizes: dict[tuple[object, ...], list[float]] = field(default_factory=dict)
    kinds: dict[int, str] = field(default_factory=dict)
    compared: dict[int, tuple[Sentence, list[tuple[Cell, Cell]]]] = field(default_factory=dict)
    """What `pairs` found in sentences: it is asked again for each number of them."""

    @classmethod
    def of(cls, every: Sequence[Sheet], page: Page) -> Book:
        """The tables of a page."""
        lines = (page.text[start:end] for start, end in page.lines)
        return cls(every, [nth for nth, line in enumerate(lines, 1) if line.startswith("#")])

    def __post_init__(self) -> None:
        for sheet in self.sheets:
            self.lines[sheet.nth] = list(_lines(sheet))

    def comparable(self, one: Cell, other: Cell) -> bool:
        """Whether the lines of two cells may hold the same quantity: of one size, if of several."""
        across = one.row == other.row
        kinds = self.quantities(one.table)
        if kinds != "both":
            if (kinds == "columns") != across:
                return True
        elif not across and self.sheets[one.table].counts:
            return True
        sizes = []
        for cell in (one, other):
            key = (cell.table, across, cell.column if across else cell.row, cell.part)
            if key not in self.sizes:
                self.sizes[key] = sorted(
                    abs(each.figure.value)
                    for each in self.sheets[cell.table].cells
                    if each.part == cell.part and (each.column if across else each.row) == key[2]
                )
            sizes.append(self.sizes[key])
        left, right = sizes
        if len(left) < 2 or len(right) < 2:
            return True
        if left[0] <= right[-1] and right[0] <= left[-1]:
            return True
        middles = sorted(each[len(each) // 2] for each in sizes)
        return middles[1] <= APART * middles[0]

    def quantities(self, table: int) -> str:
        """Whether columns or rows are the quantities of a table: printed alike throughout."""
        if table not in self.kinds:
            self.kinds[table] = self._quantities(table)
        return self.kinds[table]

    def _quantities(self, table: int) -> str:
        cells = [cell for cell in self.sheets[table].cells if not cell.part]
        uniform = {}
        for side in ("row", "column"):
            kinds: dict[int, set[tuple[int, str]]] = {}
            for cell in cells:
                kinds.setdefault(getattr(cell, side), set()).add(
                    (cell.figure.decimals, cell.figure.unit)
                )
            uniform[side] = all(len(each) == 1 for each in kinds.values())
        if uniform["row"] == uniform["column"]:
            return "both"
        return "columns" if uniform["column"] else "rows"

    def named(self, cell: Cell) -> str:
        """All that the row and column of a cell are called."""
        sheet = self.sheets[cell.table]
        return " ".join((*sheet.rows[cell.row], *sheet.columns[cell.column]))

    @property
    def cells(self) -> Iterator[Cell]:
        """Every figure of every table."""
        return (cell for sheet in self.sheets for cell in sheet.cells)

    def section(self, line: int) -> list[Sheet]:
        """The tables under the heading that a line stands under; all, if there are none."""
        at = bisect_left(self.heads, line + 1)
        first = self.heads[at - 1] if at else 0
        last = self.heads[at] if at < len(self.heads) else 10**9
        return [one for one in self.sheets if first <= one.line < last] or list(self.sheets)


def _lines(sheet: Sheet) -> Iterator[Line]:
    """The rows and columns of a table, each as its own numbers."""
    parts, settings = {cell.part for cell in sheet.cells}, _settings(sheet)
    for part in sorted(parts - {"spread", "low", "high"}):
        own = [cell for cell in sheet.cells if cell.part == part and cell.column not in settings]
        for row in sorted({cell.row for cell in own}):
            yield tuple(cell for cell in own if cell.row == row)
        for column in sorted({cell.column for cell in own}):
            yield tuple(cell for cell in own if cell.column == column)


def _settings(sheet: Sheet) -> set[int]:
    """Columns whose numbers stand in the names of their rows: nothing is worked out of them."""
    found = set()
    for column in {cell.column for cell in sheet.cells}:
        cells = [cell for cell in sheet.cells if cell.column == column]
        names = [" ".join(sheet.rows[cell.row]) for cell in cells]
        pairs = zip(cells, names, strict=True)
        if all(re.search(rf"=\s*{cell.figure.value:g}(?![\d.])", name) for cell, name in pairs):
            found.add(column)
    return found


# --- what a sentence speaks of


@dataclass(frozen=True)
class Refs:
    """The rows and columns of a table that a part of a sentence names."""

    rows: frozenset[int] = frozenset()
    columns: frozenset[int] = frozenset()
    whole: bool = False
    """Whether the table itself is named."""

    def __bool__(self) -> bool:
        return bool(self.rows or self.columns or self.whole)


def refs(sheet: Sheet, sentence: Sentence, start: int, end: int) -> Refs:
    """What a part of a sentence names of a table."""
    names = [one for one in sentence.names if one.sheet == sheet.nth]
    inside = [one for one in names if start <= one.start and one.end <= end]
    rows = _together(inside, "row")
    columns = _together(inside, "column")
    for place in sentence.places:
        if start <= place.start and place.end <= end:
            rows |= _counted_at(place, sheet.axis, sheet.counts)
            columns |= _counted_at(place, sheet.across_axis, sheet.across)
    whole = any(one.row is None and one.column is None for one in inside)
    return Refs(frozenset(rows), frozenset(columns), whole)


def _counted_at(place: At, axis: str, counts: Mapping[int, float]) -> set[int]:
    """The rows, or columns, of a step that a sentence names, or calls the first or the last."""
    wanted = place.at
    if place.axis == END and counts:
        wanted = max(counts.values()) if wanted > 0 else min(counts.values())
    elif place.axis != axis:
        return set()
    return {nth for nth, at in counts.items() if at == wanted}


def _together(names: Sequence[Name], side: str) -> set[int]:
    """The columns or rows that names mean together: "β=0.1, 4-shot" is one of a header in two."""
    by_name: dict[tuple[int, int], set[int]] = {}
    for one in names:
        nth = getattr(one, side)
        if nth is not None:
            by_name.setdefault((one.start, one.end), set()).add(nth)
    several = [columns for columns in by_name.values() if len(columns) > 1]
    found: set[int] = set().union(*by_name.values())
    for columns in several:
        found = found & columns or found
    return found


def pairs(book: Book, sentence: Sentence) -> Sequence[tuple[Cell, Cell]]:
    """Every two numbers that a sentence may compare."""
    known = book.compared.get(id(sentence))
    if known is None or known[0] is not sentence:
        known = book.compared[id(sentence)] = sentence, list(_pairs(book, sentence))
    return known[1]


def _pairs(book: Book, sentence: Sentence) -> Iterator[tuple[Cell, Cell]]:
    versus, best = bool(_VERSUS.search(sentence.plain)), _ITS_BEST.search(sentence.plain)
    for line, named in meant(book, sentence):
        # "A is 2.4 times as far as B" compares the columns A and B, not two rows of one of them.
        across = len({cell.row for cell in line}) == 1
        along, beside = (named.columns, named.rows) if across else (named.rows, named.columns)
        if versus and len(beside) > 1 and not along:
            continue
        ends = _ends(line) if best and not across else ()
        own = line[0].row if across else line[0].column
        off = bool(beside) and own not in beside
        inside = [(cell.column if across else cell.row) in along for cell in line]
        one_column = len(named.columns) == 1 and line[0].column in named.columns
        for (one, first), (other, second) in combinations(zip(line, inside, strict=True), 2):
            taken = (not off and first + second >= min(2, len(along))) or (
                one_column
                and (
                    (one in ends and other.row in named.rows)
                    or (other in ends and one.row in named.rows)
                )
            )
            if taken and book.comparable(one, other):
                yield one, other


def between(book: Book, sentence: Sentence) -> set[int]:
    """The tables that have both ends of "from step 25 to step 150": only these are meant."""
    places = sentence.places
    if len(places) != 2 or not _FROM_TO.search(sentence.plain[: places[1].start]):
        return set()
    return {
        sheet.nth
        for sheet in book.sheets
        if all(one.axis == sheet.axis and one.at in sheet.counts.values() for one in places)
    }


def _ends(line: Line) -> tuple[Cell, ...]:
    """The highest and the lowest of a line: "3.9 points below its best"."""
    return max(line, key=lambda cell: cell.figure.value), min(
        line, key=lambda cell: cell.figure.value
    )


def meant(book: Book, sentence: Sentence) -> Iterator[tuple[Line, Refs]]:
    """The rows and columns that a sentence may speak of, with what it names of their table."""
    every = {sheet.nth: refs(sheet, sentence, 0, len(sentence.text)) for sheet in book.sheets}
    section = book.section(sentence.line(0))
    any_named, pinned = any(every.values()), between(book, sentence)
    for sheet in book.sheets:
        named = every[sheet.nth]
        if pinned and sheet.nth not in pinned:
            continue
        if not named and (sheet not in section):
            continue
        if any_named and not named and any(every[one.nth] for one in section):
            continue
        for line in book.lines[sheet.nth]:
            if not (named.rows or named.columns) or any(
                cell.row in named.rows or cell.column in named.columns for cell in line
            ):
                yield line, named
