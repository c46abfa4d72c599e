"""Tables, and runs of like lines, as matrices: lines of numbers over positions, either way round.

Kept apart from the numbers: what names a row, columns that say who is best, and steps that a cell
names beside its value. Left out: what a quantity means, and whose it is.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import groupby

import numpy as np
from numpy.typing import NDArray

from kleash.compare.read.markdown.page import LARGEST, Addresses, Numbered, column_at, place

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
_REMARK = re.compile(r"[*_`⭐]|[（(][^()（）\d]*[)）]|\s*最\S*$")
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
        return [one for turned in (False, True) if (one := Board(self, turned)).titles]


class Board:
    """Lines over positions: the columns of a table over its rows or, turned, its rows over them.

    The second numbers of a column's cells are a line of their own.
    """

    def __init__(self, table: Table, turned: bool) -> None:  # noqa: FBT001 - the two ways
        self.table, self.turned = table, turned
        lines = sorted({(r if turned else c, k) for r, c, k in table.at})
        self.nths = [nth for nth, _ in lines]
        """Which column, or row, each line is."""
        self.parts = [part for _, part in lines]
        """Which number of its cells each line is of, from 0."""
        self.first = 0 if turned else 1
        """The first line that may be made of others: the first column names the rows."""
        self.shift = 1 if turned and table.head else 0
        names, labels = (table.rows, table.titles) if turned else (table.titles, table.rows)
        self.titles, self.positions = [bare(names[nth]) for nth in self.nths], labels[self.shift :]
        self.cells = [
            [
                table.at.get((n, p, k) if turned else (p, n, k))
                for p in range(self.shift, len(labels))
            ]
            for n, k in lines
        ]
        shape = len(lines), len(self.positions)
        self.value, self.half = (
            np.array([[getattr(c, of, np.nan) for c in row] for row in self.cells]).reshape(shape)
            for of in ("value", "half")
        )
        numbers = [[c for c in row if c] for row in self.cells]
        self.is_share = [any(c.is_share for c in row) for row in numbers]
        self.is_signed = [any(c.is_signed for c in row) for row in numbers]
        self.is_whole = [all(c.decimals <= 0 for c in row) for row in numbers]

    @cached_property
    def by_label(self) -> dict[str, list[int]]:
        """The positions that stand under each label."""
        found = defaultdict[str, list[int]](list)
        for at, title in enumerate(self.positions):
            found[label(title)].append(at)
        return {name: own for name, own in found.items() if name}

    def place(self, line: int, position: int) -> tuple[int, int]:
        """The line of the page and the column at which a cell stands."""
        row, column = self.nths[line], position + self.shift
        if not self.turned:
            row, column = column, row
        return self.table.lines[row], column


def tables_of(addresses: Addresses) -> list[Table]:
    """The tables of a page, then its lists."""
    groups = defaultdict[int, list[int]](list)
    for line, head in addresses.rows.items():
        if line != head:
            groups[head].append(line)
    short = [(head, lines) for head, lines in sorted(groups.items()) if len(lines) <= LONGEST]
    return [*(_table(addresses, head, lines) for head, lines in short), *_lists(addresses)]


def _table(addresses: Addresses, head: int, lines: list[int]) -> Table:
    titles, *texts = map(addresses.page.row, (head, *lines))
    winners, labels = _winners(titles, texts), _labels(titles, texts)
    at, steps = Cells(), dict[tuple[int, int], Numbered]()
    for r, line in enumerate(lines):
        columns = defaultdict[int, list[Numbered]](list)
        for one in addresses.on(line):
            columns[column_at(place(one.address)[0])].append(one)
        for c, own in columns.items():
            if c < len(titles):
                beside = _steps_in(texts[r][c], own)
                steps.update(((r, c), one) for one in beside)
                rest = [one for one in own if one not in beside]
                at.update(
                    ((r, c, k), one) for k, one in enumerate(rest) if c not in winners | labels
                )
    rows = [" ".join(row[c] for c in (0, *sorted(labels)) if c < len(row)) for row in texts]
    return Table(titles, rows, lines, texts, at, head, _heading(addresses, head), steps, winners)


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


def _lists(addresses: Addresses) -> Iterator[Table]:
    """Runs of lines that differ in their numbers only: "Step 10: 1.888 (+18.2%)"."""

    def shape(line: int) -> str:
        if line in addresses.rows or len(addresses.on(line)) < 2:
            return ""
        plain = _REMARK.sub("", addresses.page.line(line))
        plain = re.sub(r"[+-]?\d[\d.,]*\s?%?", "0", plain).strip()
        return re.split(r"[(（]0", plain)[0].strip()

    for own, run in groupby(range(1, addresses.count + 1), shape):
        lines = list(run)
        if own and len(own) <= 40 and len(lines) >= LIKE_LINES:
            numbers = [addresses.on(line) for line in lines]
            at = {(r, c, 0): one for r, row in enumerate(numbers) for c, one in enumerate(row)}
            titles, texts = [""] * max(map(len, numbers)), [[addresses.page.line(x)] for x in lines]
            yield Table(titles, [row[0].text for row in numbers], lines, texts, at)
