"""Labels of rows that were copied and not changed: 100, 200, 400, 400.

Where rows are counted and only two have one label, one of them goes on: as in a table of the same
form, or by the step that all others are apart.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise

from kleash.documents.marks import Mark
from kleash.imports import Table
from kleash.imports.markdown.text import bare

LEAST = 3  # rows
_COUNT = re.compile(r"\D{0,8}(\d+)\D{0,4}")


def repeated_labels(tables: Sequence[Table]) -> Iterator[Mark]:
    """Rows with the label of the row before, where another is due."""
    counted = [(table, _labels(table)) for table in tables]
    known = [(table.header, labels) for table, labels in counted if _rises(labels)]
    for table, labels in counted:
        twice = [at for at, (one, other) in enumerate(pairwise(labels), 1) if one == other]
        if len(labels) < LEAST or len(twice) != 1 or len(set(labels)) != len(labels) - 1:
            continue
        at = twice[0]
        usual = [one for header, one in known if header == table.header and len(one) == len(labels)]
        due = {one[at] for one in usual if _differ(one, labels) == [at]}
        if not due and at == len(labels) - 1:
            due = set(_next(labels[:at]))
        for value in sorted(due):
            facts = {"value": f"{value}", "other": table.lines[at - 1]}
            text = bare(table.rows[at][0])
            yield Mark(table.lines[at], text, "wrong", "check.label-twice", facts, "label")


def _labels(table: Table) -> list[int]:
    """What the rows of a table count; nothing if any of them counts nothing, or is two things."""
    found = [_COUNT.fullmatch(bare(row[0])) for row in table.rows if row]
    second = {bare(row[1]) for row in table.rows if len(row) > 1}
    words = {text for text in second if re.search(r"[A-Za-z\u4e00-\u9fff]", text)}
    names = {re.sub(r"\d+", "", bare(row[0])).strip() for row in table.rows if row}
    whole = all(found) and len(names) == 1 and len(words) < 2 and len(table.header) > 1
    return [int(match[1]) for match in found if match] if whole else []


def _rises(labels: Sequence[int]) -> bool:
    return len(labels) >= LEAST and all(one < other for one, other in pairwise(labels))


def _differ(one: Sequence[int], other: Sequence[int]) -> list[int]:
    return [at for at, pair in enumerate(zip(one, other, strict=True)) if pair[0] != pair[1]]


def _next(labels: Sequence[int]) -> Iterator[int]:
    """What comes after numbers that rise by one step, or by one factor."""
    steps = {other - one for one, other in pairwise(labels)}
    if len(labels) > 1 and len(steps) == 1 and min(steps) > 0:
        yield labels[-1] + min(steps)
    factors = {other / one for one, other in pairwise(labels) if one}
    if len(labels) > 2 and len(factors) == 1 and min(factors) > 1:
        yield round(labels[-1] * min(factors))
