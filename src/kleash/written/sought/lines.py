"""Lines of tables that may be one quantity each, with all that the labels say of their cells.

Every number of a cell counts: of "0.634 @ 348" the second numbers of a column are a line too. A
table may have several columns of labels, and one that counts, such as the best epoch, is a label
of the other columns.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from kleash.documents.page import Page
from kleash.imports import Number, Where
from kleash.imports.markdown.text import bare
from kleash.written.printed import Cell, Figure, Sheet
from kleash.written.sought.naming import counts_in, is_epoch

_NUMBER = re.compile(
    r"(?<![\w.])(?:(?<![\d)%])[+-])?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?(?:e[+-]?\d+)?(?![\d.]*\d)\s?%?",
    re.I,
)
_COUNTING = re.compile(
    r"step|epoch|seed|样本|samples?|shots?|步|轮|种子|(?<![a-z])n(?![a-z])|items|题数|group|组",
    re.I,
)
_OVER = re.compile(
    r"均值|平均|mean|avg|average|±|标准差|std|total|总|极差|range|最[大小高低佳]|best|max|min", re.I
)
_SETTING = re.compile(
    r"coef|系数|beta|β|(?<![a-z])(?:lr|kl|target)(?![a-z])|学习率|目标|arm|臂|组", re.I
)
ABOVE = 3  # lines above a table in which its caption may stand


@dataclass(frozen=True)
class Token:
    """A number of a cell, or a cell that is still open; `nth` counts the numbers of one cell."""

    row: int
    column: int
    nth: int
    figure: Figure | None
    number: Number | None


@dataclass
class Labelled:
    """A table with its labels: those of rows in several columns, and what stands above it."""

    sheet: Sheet
    heads: str
    columns: list[str]
    rows: list[list[str]]
    """By row its labels, one for each column of labels; what is left blank is as above."""
    counters: list[int]
    """Columns that count something for the others, such as the epoch that was best."""
    tokens: dict[tuple[int, int], list[Token]] = field(default_factory=dict)

    def row(self, token: Token) -> str:
        return " ; ".join(self.rows[token.row])

    def column(self, token: Token) -> str:
        return self.columns[token.column]

    def sources(self, token: Token) -> list[str]:
        """Each label that may tell at which step a number was measured."""
        texts = self.sheet.table.rows[token.row]
        found = [*self.rows[token.row], self.column(token)]
        counted = [
            f"{self.columns[at]} {texts[at]}" if at != token.column else "" for at in self.counters
        ]
        return [*found, *counted]


@dataclass(frozen=True)
class Line:
    """Tokens along a column or a row, or all of a table."""

    table: Labelled
    tokens: tuple[Token, ...]
    down: bool
    block: bool = False

    @property
    def shared(self) -> str:
        """The labels that all its numbers have in common."""
        if self.block:
            return ""
        one = self.tokens[0]
        return self.table.column(one) if self.down else self.table.row(one)

    @property
    def whole(self) -> bool:
        """Whether it has whole numbers only."""
        return all(one.figure.decimals <= 0 for one in self.tokens if one.figure)


def labelled(sheet: Sheet, page: Page | None) -> Labelled:
    """A table with its labels and all numbers of its cells."""
    table = sheet.table
    width = len(table.header)
    own = [0, *(at for at in range(1, width) if _is_label(sheet, at))]
    columns = [" ".join(filter(None, (title.replace("\0", " "),))) for title in _titles(sheet)]
    last = max((at for at in range(width) if at not in own), default=width)
    named = [at for at in own if at < last]  # what comes after the numbers is said of them
    rows = _filled([[_label(columns[at], row[at]) for at in named] for row in table.rows])
    counts = re.compile(r"step|epoch|步|轮", re.I)
    counters = [at for at in range(1, width) if at not in own and counts.search(columns[at])]
    heads = " ; ".join([*table.headings[-2:], _caption(sheet, page)])
    made = Labelled(sheet, heads, columns, rows, counters)
    known: dict[tuple[int, int], list[Cell]] = {}
    for cell in sheet.cells:
        known.setdefault((cell.row, cell.column), []).append(cell)
    for nth, row in enumerate(table.rows):
        for at in range(1, width):
            if at not in own:
                made.tokens[nth, at] = _tokens(sheet, (nth, at), row[at], known.get((nth, at), []))
    return made


def _titles(sheet: Sheet) -> list[str]:
    below = sheet.table.rows[0] if sheet.table.rows else ()
    header = list(sheet.table.header)
    in_two = len(below) > 2 and not below[0].strip() and any(not one.strip() for one in header[1:])
    if not in_two or re.search(r"\d\.\d", " ".join(below)):
        return header
    above, made = "", list[str]()
    for title, under in zip(header, below, strict=True):
        above = title.strip() or above
        made.append(f"{above} {under}")
    return made


def _is_label(sheet: Sheet, at: int) -> bool:
    """Whether a column has words rather than numbers, or counts in what its rows differ."""
    texts = [bare(row[at]).strip() for row in sheet.table.rows]
    texts = [one for one in texts if one not in ("", "-", "—", "?", "n/a")]
    if not texts:
        return False
    numeric = [bool(re.match(r"[+-]?\d", one)) for one in texts]
    if sum(numeric) * 2 < len(texts):
        return True
    whole = all(re.fullmatch(r"[\d,]+k?", one) for one in texts)
    setting = all(re.fullmatch(r"[\d.]+(?:e-\d+)?|\D+", one) for one in texts)
    repeated = len(set(texts)) * 2 <= len(texts)
    title = bare(sheet.table.header[at])
    best = re.search(r"best|最佳|最好|peak|峰|最[高低大小]|first|首次|达到|@|at step", title, re.I)
    if at > 2 or best or not repeated or re.search(r"\d", title):
        return False
    return bool((whole and _COUNTING.search(title)) or (setting and _SETTING.search(title)))


def _label(title: str, text: str) -> str:
    """A label; a bare number with what it counts: "Epoch 3"."""
    plain = bare(text).strip()
    return f"{title} {plain}" if re.fullmatch(r"[\d.,e-]+k?%?", plain) else plain


def _filled(rows: list[list[str]]) -> list[list[str]]:
    for above, row in pairwise(rows):
        if len(row) > 1 and not row[0] and any(row[1:]):
            row[0] = above[0]
    return rows


def _caption(sheet: Sheet, page: Page | None) -> str:
    """What stands right above a table, if it is text."""
    if page is None or not sheet.table.lines:
        return ""
    first, found = sheet.table.lines[0], list[str]()
    for nth in range(first - 1, max(0, first - 2 - ABOVE - 1), -1):
        start, end = page.lines[nth - 1]
        text = page.text[start:end].strip()
        if text.startswith("|") and not found:
            continue
        if text.startswith(("|", "#")) or len(found) > 1:
            break
        if text:
            found.append(text)
    return " ; ".join(found)


def _tokens(sheet: Sheet, spot: tuple[int, int], text: str, cells: Sequence[Cell]) -> list[Token]:
    plain = bare(text)
    found = []
    for nth, match in enumerate(_NUMBER.finditer(plain)):
        figure = _figure(match.group())
        number = next((c.number for c in cells if _same(c.figure, figure)), None)
        found.append(Token(*spot, nth, figure, number or _number(sheet, spot, match.group(), nth)))
    blank = plain.strip(" -—?*") in ("", "tbd", "n/a", "待填", "待测")
    return found or ([Token(*spot, 0, None, None)] if blank else [])


def _figure(text: str) -> Figure:
    plain = text.replace(",", "").strip(" %+")
    mantissa, _, power = plain.casefold().partition("e")
    decimals = len(mantissa.partition(".")[2]) - int(power or 0)
    return Figure(float(plain), decimals, "%" if "%" in text else "")


def _same(one: Figure, other: Figure) -> bool:
    return abs(one.value - other.value) < 1e-9 and one.decimals == other.decimals


def _number(sheet: Sheet, spot: tuple[int, int], text: str, nth: int) -> Number:
    """A number that nobody else read, at a place of its own."""
    row, column = spot
    table = sheet.table
    name = f"{table.header[column]} / {table.rows[row][0]}"[:120]
    figure = _figure(text)
    where = Where(table.where.file, table.lines[row], f"{name} #{nth + 1}")
    return Number(figure.value, "known", where, max(0, figure.decimals), text=text.strip())


def lines_of(table: Labelled) -> Iterator[Line]:
    """Columns, parts of columns with one label in common, rows, and all that is in one unit."""
    by_column: dict[tuple[int, int], list[Token]] = {}
    by_row: dict[tuple[int, int], list[Token]] = {}
    for tokens in table.tokens.values():
        for one in tokens:
            by_column.setdefault((one.column, one.nth), []).append(one)
            by_row.setdefault((one.row, one.nth), []).append(one)
    for tokens in (part for every in by_column.values() for part in _of_one_unit(every)):
        yield Line(table, tuple(tokens), down=True)
        for at in range(len(table.rows[0])) if len(table.rows[0]) > 1 else ():
            parts: dict[str, list[Token]] = {}
            for one in tokens:
                parts.setdefault(table.rows[one.row][at], []).append(one)
            if 1 < len(parts) < len(tokens):
                yield from (Line(table, tuple(p), down=True) for p in parts.values() if len(p) > 1)
    for tokens in (part for every in by_row.values() for part in _of_one_unit(every)):
        if len(tokens) > 1:
            yield Line(table, tuple(tokens), down=False)
    if min(len(by_column), len(by_row)) > 1:
        yield from _blocks(table)


def _blocks(table: Labelled) -> Iterator[Line]:
    """All first numbers of a table's cells that are in one unit, all second ones, and so on."""
    every = [one for tokens in table.tokens.values() for one in tokens]
    for nth in sorted({one.nth for one in every}):
        for part in _of_one_unit([one for one in every if one.nth == nth]):
            yield Line(table, tuple(part), down=True, block=True)


def _of_one_unit(tokens: Sequence[Token]) -> Iterator[list[Token]]:
    """Numbers in percent and others apart; open cells may be either."""
    for unit in dict.fromkeys(one.figure.unit for one in tokens if one.figure):
        yield [one for one in tokens if one.figure is None or one.figure.unit == unit]


def counted(texts: Sequence[str]) -> tuple[list[float | None], bool]:
    """The one whole number of each label, and whether they count epochs."""
    numbers = [[] if _OVER.search(text) else counts_in(text) for text in texts]
    epochs = any(is_epoch(text) for text in texts)
    return [one[0] if len(set(one)) == 1 else None for one in numbers], epochs
