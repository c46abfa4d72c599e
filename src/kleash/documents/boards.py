"""Tables, and runs of like lines, as matrices: lines of numbers over positions, either way round.

Kept apart from the numbers: what names a row, columns that say who is best, and steps that a cell
names beside its value. Left out: what a quantity means, and whose it is.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from kleash.documents.numbered import LARGEST, Addresses, Numbered, column_at, place

Array = NDArray[np.float64]
Cells = dict[tuple[int, int, int], Numbered]
LONGEST = 60  # rows of a table that is looked at: longer ones are logs
LIKE_LINES = 4  # that make a list
_MARKUP = re.compile(r"[*_`$⭐★🏆✅❌⬆⬇️↑↓📈📉🥇~\\]|\{\}")
_FIGURE = re.compile(r"(?<![\d.A-Za-z_])\d+(?:\.\d+)?(?:e-?\d+)?(?![\d.]*\d)")
_FILLER = re.compile(r"(?:step|epoch|步|轮|第|β|beta|coef|kl|=|:|\s|-shot|shot)+")
_AXIS = re.compile(
    r"steps?|epochs?|iter\w*|seeds?|种子|轮次?|步数?|shots?|样本数?|samples?|n|items?|#|编号|序号|阶段|区间|"
    r"arm|臂|运行|run|setting|配置",
    re.I,
)
_BEST = re.compile(
    r"最[佳优好高低快稳短长小大]|胜|领先|优|best|winner|leader|better|highest|lowest", re.I
)
_NAMES = re.compile(r"[/、,，]|（.*?）|\(.*?\)")
_BEFORE_A_STEP = re.compile(r"(?:[A-Za-z]{2,}|@|[\u4e00-\u9fff])[\s.:#=]*$")


def bare(text: str) -> str:
    """A text without marks of emphasis."""
    return _MARKUP.sub("", text).strip()


def numbers_in(text: str) -> list[float]:
    """The numbers of a label."""
    every = map(float, _FIGURE.findall(bare(text).replace(",", "")))
    return [one for one in every if one < LARGEST]


def label(text: str) -> str:
    """A label as it is compared: its one number with little beside it, else its letters."""
    folded = re.sub(r"[（(].*?[)）]", "", bare(text)).casefold()
    plain = _FILLER.sub("", folded) or bare(text).casefold()
    if re.fullmatch(r"\d+(?:\.\d+)?(?:e-?\d+)?", plain):
        return f"{float(plain):g}"
    return re.sub(r"[\s:：]", "", plain)


def names_of(cell: str) -> set[str]:
    """The names in a cell that says who is best."""
    parts = (one.strip() for one in _NAMES.split(bare(cell).casefold()))
    return {one for one in parts if one}


@dataclass(eq=False)
class Board:
    """Lines over positions: the columns of a table over its rows or, turned, its rows over them."""

    table: Table
    turned: bool
    titles: list[str]
    """Of its lines; the second numbers of a column's cells are a line of their own."""
    numbers_of: list[int]
    """Which column, or row, each line is."""
    parts: list[int]
    """Which number of its cells each line is of, from 0."""
    positions: list[str]
    cells: list[list[Numbered | None]]
    keys: list[str]
    """By line, the address of the one number in its title; else ''."""
    value: Array = field(init=False)
    half: Array = field(init=False)

    def __post_init__(self) -> None:
        def matrix(of: str) -> Array:
            rows = [[np.nan if c is None else getattr(c, of) for c in row] for row in self.cells]
            return np.array(rows, float).reshape(len(rows), len(self.positions))

        self.value, self.half = matrix("value"), matrix("half")
        self.is_share = [_any(line, lambda c: c.is_share) for line in self.cells]
        self.is_signed = [_any(line, lambda c: c.is_signed) for line in self.cells]
        self.is_whole = [not _any(line, lambda c: c.decimals > 0) for line in self.cells]

    @cached_property
    def named(self) -> list[list[float]]:
        """By line, the numbers in its title."""
        return [numbers_in(title) for title in self.titles]

    @cached_property
    def by_label(self) -> dict[str, list[int]]:
        """The positions that stand under each label."""
        found = dict[str, list[int]]()
        for at, title in enumerate(self.positions):
            found.setdefault(label(title), []).append(at)
        return {name: own for name, own in found.items() if name}

    def place(self, line: int, position: int) -> tuple[int, int]:
        """The line of the page and the column at which a cell stands."""
        nth = self.numbers_of[line]
        if self.turned:
            return self.table.lines[nth], position + (1 if self.table.head else 0)
        return self.table.lines[position], nth

    @property
    def first(self) -> int:
        """The first line that may be made of others: the first column names the rows."""
        return 0 if self.turned else 1


def _any(line: Sequence[Numbered | None], holds: object) -> bool:
    return any(c is not None and holds(c) for c in line)  # type: ignore[operator]


@dataclass(eq=False)
class Table:
    """A table, or a list of like lines, with its numbers by row, column and place in the cell."""

    titles: list[str]
    rows: list[str]
    lines: list[int]
    texts: list[list[str]]
    at: Cells
    head: int = 0
    """The line of the titles; 0 for a list."""
    heading: str = ""
    steps: dict[tuple[int, int], Numbered] = field(default_factory=dict)
    """Steps that cells name beside their value: "2.287 (step 40)"."""
    winners: set[int] = field(default_factory=set)
    """Columns that say which of the others is best."""

    @cached_property
    def boards(self) -> list[Board]:
        """Both ways of looking at it."""
        return [b for b in (self._board(turned=False), self._board(turned=True)) if len(b.titles)]

    def _board(self, *, turned: bool) -> Board:
        lines = sorted({(r if turned else c, k) for r, c, k in self.at})
        first = 1 if turned and self.head else 0
        places = range(first, len(self.titles)) if turned else range(len(self.rows))
        cells = [
            [self.at.get((n, p, k) if turned else (p, n, k)) for p in places] for n, k in lines
        ]
        names = self.rows if turned else self.titles
        titles = [bare(names[n]) for n, _ in lines]
        positions = [(self.titles if turned else self.rows)[p] for p in places]
        keys = [self._key(n, turned=turned) if k == 0 else "" for n, k in lines]
        of, parts = [n for n, _ in lines], [k for _, k in lines]
        return Board(self, turned, titles, of, parts, positions, cells, keys)

    def _key(self, nth: int, *, turned: bool) -> str:
        if turned:
            one = self.at.get((nth, 0, 0))
            return "" if one is None or (nth, 0, 1) in self.at else one.address
        return self.title_keys.get(nth, "")

    title_keys: dict[int, str] = field(default_factory=dict)
    """By column, the address of the one number in its title."""


def tables_of(addresses: Addresses) -> list[Table]:
    """The tables of a page, then its lists."""
    by_line = defaultdict[int, list[Numbered]](list)
    for one in addresses.numbers.values():
        by_line[one.line].append(one)
    groups = defaultdict[int, list[int]](list)
    for line, head in addresses.rows.items():
        if line != head:
            groups[head].append(line)
    found = [
        _table(addresses, head, lines, by_line)
        for head, lines in sorted(groups.items())
        if len(lines) <= LONGEST
    ]
    return [*found, *_lists(addresses, by_line)]


def _table(
    addresses: Addresses, head: int, lines: list[int], by_line: Mapping[int, list[Numbered]]
) -> Table:
    page = addresses.page

    def cells(line: int) -> list[str]:
        return [page.text[slice(*span)] for span in page.cells(line)]

    titles, texts = cells(head), [cells(line) for line in lines]
    winners = _winners(titles, texts)
    labels = _labels(titles, texts)
    at, steps = Cells(), dict[tuple[int, int], Numbered]()
    for r, line in enumerate(lines):
        for c, own in _by_column(by_line[line]).items():
            if c >= len(titles):
                continue
            beside = _steps_in(texts[r][c], own)
            steps.update(((r, c), one) for one in beside)
            rest = [one for one in own if one not in beside]
            if c not in winners and c not in labels:
                at.update({(r, c, k): one for k, one in enumerate(rest)})
    rows = [" ".join(row[c] for c in (0, *sorted(labels)) if c < len(row)) for row in texts]
    keys = {c: own[0].address for c, own in _by_column(by_line[head]).items() if len(own) == 1}
    heading = _heading(addresses, head)
    return Table(titles, rows, lines, texts, at, head, heading, steps, winners, keys)


def _by_column(numbers: Sequence[Numbered]) -> dict[int, list[Numbered]]:
    found = dict[int, list[Numbered]]()
    for one in numbers:
        found.setdefault(column_at(place(one.address)[0]), []).append(one)
    return found


def _heading(addresses: Addresses, line: int) -> str:
    """The heading, or the bold line, right above a table."""
    for nth in range(line - 1, max(0, line - 6), -1):
        text = addresses.page.line(nth).strip()
        if nth in addresses.rows:
            return ""
        if text.startswith("#") or re.fullmatch(r"\*\*.+\*\*[:：]?", text):
            return bare(text)
    return ""


def _labels(titles: Sequence[str], texts: Sequence[Sequence[str]]) -> set[int]:
    """Columns right behind the first that name rows too: by words, or by counts of an axis."""
    found = set[int]()
    for c in range(1, len(titles)):
        cells = [bare(row[c]) for row in texts if c < len(row)]
        said = sum(bool(one) and not re.match(r"[~≈<>]?[+-−]?\d|[-—–/?]+$", one) for one in cells)
        worded = len(cells) > 1 and 2 * said > len(cells) and not any("(" in x for x in cells)
        if not worded and not _AXIS.fullmatch(bare(titles[c])):
            break
        found.add(c)
    return found if len(found) < len(titles) - 1 else set()


def _steps_in(text: str, own: Sequence[Numbered]) -> list[Numbered]:
    """The numbers of a cell that say at which step another one was."""
    found, at = [], 0
    for one in own:
        start = text.find(one.text, at)
        if start < 0:
            return []
        at = start + len(one.text)
        named = start and _BEFORE_A_STEP.search(bare(text[:start]))
        if one.decimals <= 0 and named and not one.is_signed:
            found.append(one)
    return found


def _winners(titles: Sequence[str], texts: Sequence[Sequence[str]]) -> set[int]:
    found = set[int]()
    for c in range(1, len(titles)):
        others = " ".join(bare(t).casefold() for at, t in enumerate(titles) if at != c)
        names = {name for row in texts if c < len(row) for name in names_of(row[c])}
        known = sum(name in others for name in names)
        if names and _BEST.search(titles[c]) and known >= 0.7 * len(names):
            found.add(c)
    return found


def _lists(addresses: Addresses, by_line: Mapping[int, list[Numbered]]) -> Iterator[Table]:
    """Runs of lines that differ in their numbers only: "Step 10: 1.888 (+18.2%)"."""
    run, shape = list[int](), ""
    for line in range(1, addresses.count + 2):
        now = "" if line in addresses.rows else _shape(addresses.page.line(line))
        if len(by_line.get(line, ())) < 2 or len(now) > 40:
            now = ""
        if now != shape:
            if len(run) >= LIKE_LINES:
                yield _list(addresses, run, by_line)
            run, shape = [], now
        if now:
            run.append(line)


def _shape(text: str) -> str:
    """A line without its numbers and remarks."""
    plain = re.sub(r"[*_`⭐]|[（(][^()（）\d]*[)）]|\s*最\S*$", "", text)
    return re.split(r"[(（]0", re.sub(r"[+-]?\d[\d.,]*\s?%?", "0", plain).strip())[0].strip()


def _list(addresses: Addresses, run: list[int], by_line: Mapping[int, list[Numbered]]) -> Table:
    width = max(len(by_line[line]) for line in run)
    at = {(r, c, 0): one for r, line in enumerate(run) for c, one in enumerate(by_line[line])}
    rows = [by_line[line][0].text for line in run]
    texts = [[addresses.page.line(line)] for line in run]
    return Table([""] * width, rows, list(run), texts, at)
