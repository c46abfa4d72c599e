"""Lines that recite a row of a table: "- A, epoch 1: 57.0, 56.1, 55.1".

The table has these numbers too, in that order and under that epoch.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence

from kleash.imports import Table
from kleash.imports.markdown.text import bare, plain
from kleash.written.made.parts import parts_of
from kleash.written.marks import Mark
from kleash.written.page import Page

LEAST = 3  # numbers of a row
_NUMBER = r"[+-]?\d+\.\d+\s?%?"
_RUN = re.compile(rf"{_NUMBER}(?:\s?[,、/，]\s?{_NUMBER}){{{LEAST - 1},}}")
_PLACE = re.compile(r"(?<![a-z])(epoch|step)\s?(\d+)(?![\d.])|第\s?(\d+)\s?(轮|步)", re.I)
_AXES = {"轮": "epoch", "步": "step"}


def false_recitals(page: Page, tables: Sequence[Table], wrong: Collection[int]) -> Iterator[Mark]:
    """Lines that give the numbers of a row in another order, or under another epoch.

    Of two lines of which one is known to be wrong the other is left alone.
    """
    inside = {line for table in tables for line in (*table.lines, (table.where.line or 0))}
    rows = [
        (table, bare(cells[0]), _values(cells)) for table in tables for cells in table.rows if cells
    ]
    for nth, (start, end) in enumerate(page.lines, 1):
        line = bare(plain(page.text[start:end]))
        runs = [] if nth in inside else list(_RUN.finditer(line))
        if len(runs) != 1:
            continue
        told = [one.strip(" +%") for one in re.findall(_NUMBER, runs[0].group())]
        before = line[: runs[0].start()]
        named = [row for row in rows if _names(before, row[1])]
        if len({label for _, label, _ in named}) != 1 or len(set(told)) < LEAST:
            continue
        marks = list(_recited(nth, runs[0].group(), told, before, named, rows))
        if not {mark.facts.get("other") for mark in marks} & set(wrong):
            yield from marks


Row = tuple[Table, str, list[str]]


def _recited(
    line: int, text: str, told: list[str], before: str, named: Sequence[Row], rows: Sequence[Row]
) -> Iterator[Mark]:
    """What is wrong with a line that has the numbers of a row which it names."""
    having = [table for table, _, values in named if _within(told, values)]
    if not having:
        mixed = [
            (table, label)
            for table, label, values in named
            if sorted(told) in (sorted(values[: len(told)]), sorted(values[-len(told) :]))
        ]
        ordered = told in (sorted(told, key=float), sorted(told, key=float, reverse=True))
        if not mixed or ordered or any(_within(told, values) for *_, values in rows):
            return
        table, label = mixed[0]
        other = next(
            n for n, cells in zip(table.lines, table.rows, strict=True) if bare(cells[0]) == label
        )
        # Which of the two is right nothing tells.
        for one, two in ((line, other), (other, line)):
            yield Mark(one, text, "unsupported", "check.swapped", {"other": two}, "recital")
        return
    said, known = _places(before), [_places(" ".join(table.headings)) for table in having]
    others = [_places(" ".join(table.headings)) for table, _, _ in named]
    if len(said) != 1 or any(len(one) != 1 or one == said for one in known) or said not in others:
        return
    axis, at = min(said)
    facts = {"said": f"{axis} {at}", "at": sorted({f"{a} {n}" for one in known for a, n in one})}
    yield Mark(line, f"{axis} {at}", "wrong", "check.elsewhere", facts, "recital")


def _values(cells: Sequence[str]) -> list[str]:
    found = [parts_of(cell).get("") for cell in cells[1:]]
    return [f"{one.value:.{max(0, one.decimals)}f}" for one in found if one is not None]


def _within(told: Sequence[str], values: Sequence[str]) -> bool:
    count = len(told)
    return any(list(values[at : at + count]) == told for at in range(len(values) - count + 1))


def _names(text: str, label: str) -> bool:
    """Whether a text names a row, by its whole label."""
    return len(label) > 1 and bool(
        re.search(rf"(?<![\w.]){re.escape(label)}(?![\w.]*\w)", text, re.I)
    )


def _places(text: str) -> frozenset[tuple[str, int]]:
    """The epochs and steps that a text names."""
    return frozenset(
        (m[1].casefold(), int(m[2])) if m[1] else (_AXES[m[4]], int(m[3]))
        for m in _PLACE.finditer(text)
    )
