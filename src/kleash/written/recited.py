"""Lines that recite a row of a table: "- A, epoch 1: 57.0, 56.1, 55.1".

The table has these numbers too, in that order and under that epoch.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from kleash.documents.marks import Mark
from kleash.documents.page import Page
from kleash.imports import Table
from kleash.imports.markdown.text import bare, plain
from kleash.written.made.parts import parts_of

LEAST = 3  # numbers of a row
_NUMBER = r"[+-]?\d+\.\d+\s?%?"
_RUN = re.compile(rf"{_NUMBER}(?:\s?[,、/，]\s?{_NUMBER}){{{LEAST - 1},}}")
_PLACE = re.compile(r"(?<![a-z])(epoch|step)\s?(\d+)(?![\d.])|第\s?(\d+)\s?(轮|步)", re.I)
_AXES = {"轮": "epoch", "步": "step"}


Row = tuple[Table, str, list[str]]
"""A table, the label of one of its rows, and the numbers of that row."""


@dataclass(frozen=True)
class Recital:
    """A line with a run of numbers, what stands before these, and the rows that it names."""

    line: int
    text: str
    told: list[str]
    before: str
    named: Sequence[Row]
    rows: Sequence[Row]


def false_recitals(page: Page, tables: Sequence[Table], wrong: Collection[int]) -> Iterator[Mark]:
    """Lines that give the numbers of a row in another order, or under another epoch.

    Of two lines of which one is known to be wrong the other is left alone.
    """
    for one in _recitals(page, tables):
        marks = list(_recited(one))
        if not {mark.facts.get("other") for mark in marks} & set(wrong):
            yield from marks


def well_recited(page: Page, tables: Sequence[Table]) -> set[tuple[int, str]]:
    """The lines and numbers that stand in a row which is named, in that order."""
    return {
        (one.line, number)
        for one in _recitals(page, tables)
        if any(_within(one.told, values) for *_, values in one.named) and not list(_recited(one))
        for number in one.told
    }


def _recitals(page: Page, tables: Sequence[Table]) -> Iterator[Recital]:
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
        if len({label for _, label, _ in named}) == 1 and len(set(told)) >= LEAST:
            yield Recital(nth, runs[0].group(), told, before, named, rows)


def _recited(one: Recital) -> Iterator[Mark]:
    """What is wrong with a line that has the numbers of a row which it names."""
    line, text, told, before = one.line, one.text, one.told, one.before
    named, rows = one.named, one.rows
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
        own = next(values for each, name, values in named if (each, name) == mixed[0])
        first = sorted(own[: len(told)]) == sorted(told)
        part = own[: len(told)] if first else own[-len(told) :]
        if sum(_within(part, values) for *_, values in rows) > 1:  # another row bears it out
            yield Mark(line, text, "wrong", "check.swapped", {"other": other}, "recital")
            return
        for here, there in ((line, other), (other, line)):
            yield Mark(here, text, "unsupported", "check.swapped", {"other": there}, "recital")
        return
    said, known = _places(before), [_places(" ".join(table.headings)) for table in having]
    others = [_places(" ".join(table.headings)) for table, _, _ in named]
    if (
        len(said) != 1
        or any(len(each) != 1 or each == said for each in known)
        or said not in others
    ):
        return
    axis, at = min(said)
    facts = {"said": f"{axis} {at}", "at": sorted({f"{a} {n}" for each in known for a, n in each})}
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
