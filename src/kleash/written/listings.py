"""Tables as they are meant: lists of code blocks that are tables, labels that are not repeated.

Lines such as "beta=0.05  best_epoch=2  avg=56.11" that give numbers under the same keys are rows of
a table, and are held against all others. A label that is left blank is the one above it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from kleash.documents.page import Page
from kleash.imports import Table, Where
from kleash.imports.markdown.draft import Draft
from kleash.imports.markdown.text import bare

LEAST = 2  # lines of a table
FEWEST = 2  # keys of its lines, but for the label
_APART = re.compile(r"\s{2,}|\t+|\s*[|;；]\s*|\s*[,，]\s+")
_KEYED = re.compile(r"([^\s=:：\d][^=:：]{0,23}?)\s*[=:：]\s*(\S.*)")
_COMMANDS = ("python", "bash", "sh", "shell", "console", "yaml", "json", "toml", "ini", "diff")
Row = tuple[int, str, tuple[str, ...], tuple[str, ...]]
"""A line of the page, its label, its keys and what stands under them."""


@dataclass(frozen=True)
class Block:
    """A code block: its headings and its lines, by their numbers."""

    headings: tuple[str, ...]
    lines: list[tuple[int, str]]


def with_listings(draft: Draft, page: Page) -> Draft:
    """A report whose lists of numbers are tables too, and whose rows all have labels."""
    found = [table for block in _blocks(page) for table in _tables(block, draft.source.path)]
    every = [*map(_labelled, draft.source.tables), *found]
    every = sorted(every, key=lambda one: one.where.line or 0)
    return replace(draft, source=replace(draft.source, tables=every))


def _labelled(table: Table) -> Table:
    """A table whose rows repeat the label above them where they have none."""
    blank = [not row[0].strip() for row in table.rows]
    if not any(blank) or all(blank) or blank[0]:
        return table
    rows, label = list[tuple[str, ...]](), ""
    for row in table.rows:
        label = row[0] if row[0].strip() else label
        rows.append((label, *row[1:]))
    return replace(table, rows=tuple(rows))


def _blocks(page: Page) -> Iterator[Block]:
    headings, fence, own = dict[int, str](), "", list[tuple[int, str]]()
    for nth, (start, end) in enumerate(page.lines, 1):
        line = page.text[start:end]
        mark = re.match(r"\s*(```|~~~)\s*(\w*)", line)
        if fence and mark:
            if fence not in _COMMANDS:
                yield Block(tuple(headings[level] for level in sorted(headings)), own)
            fence, own = "", []
        elif mark:
            fence = mark[2].casefold() or "text"
        elif fence:
            own.append((nth, line))
        elif heading := re.match(r"(#{1,6})\s+(.*)", line):
            level = len(heading[1])
            headings = {at: text for at, text in headings.items() if at < level}
            headings[level] = heading[2].strip()


def _tables(block: Block, file: str) -> Iterator[Table]:
    """Runs of lines with the same keys."""
    rows = [_row(nth, line) for nth, line in block.lines]
    for keys, same in groupby(rows, key=lambda row: row[2] if row else ()):
        own = [row for row in same if row]
        labels = {row[1] for row in own}
        if len(own) >= LEAST and len(keys) >= FEWEST and len(labels) == len(own):
            yield _table(block.headings, own, file)


def _table(headings: tuple[str, ...], rows: Sequence[Row], file: str) -> Table:
    first, _, keys, _ = rows[0]
    lines = tuple(row[0] for row in rows)
    cells = tuple((row[1], *row[3]) for row in rows)
    return Table(Where(file, first - 1, ""), headings, ("", *keys), cells, lines)


def _row(nth: int, line: str) -> Row | None:
    """A line of a label and numbers under keys; the first key is the label where there is none."""
    pieces = [bare(one) for one in _APART.split(line.strip(" -*")) if one.strip()]
    if len(pieces) <= FEWEST:
        return None
    label, rest = pieces[0], pieces[1:]
    keyed = [_KEYED.fullmatch(one) for one in rest]
    told = [one for one in keyed if one and re.search(r"\d", one[2])]
    if len(label) > len(line) / 2 or len(told) < len(rest):
        return None
    return nth, label, tuple(one[1].strip() for one in told), tuple(one[2] for one in told)
