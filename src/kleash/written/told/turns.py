"""Greatest changes that a table gives with their step: "largest drop: -8.0% (step 40)".

Where a course of what is named changes so at that step, but more at another, it is not the
greatest. What stands in no course is left alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

from kleash.imports.markdown.text import bare
from kleash.written.marks import Mark
from kleash.written.printed import Cell, Sheet, squeezed
from kleash.written.prose import END, places
from kleash.written.told.things import column_keys, row_keys
from kleash.written.told.tracks import Course

LEAST = 3  # changes of a course of which one is the greatest
_MOST = (
    r"最大的?(?:单[次步]|一次)?|"
    r"(?<![a-z])(?:largest|biggest|greatest|max(?:imum)?|worst)\s(?:single\s|one-step\s)?"
)
_TITLE = re.compile(
    rf"(?:{_MOST})(?:(?P<fall>[下单]?[降跌]幅?|下降|下跌|跌落|回落|drop|fall|decline|decrease)|"
    r"(?P<rise>[上单]?[升涨]幅?|上升|上涨|提升|增幅|rise|gain|jump|increase)|"
    r"(?P<swing>波动|变化|变动|swing|change|move))(?![a-z])"
)


def false_turns(sheets: Sequence[Sheet], courses: Sequence[Course]) -> Iterator[Mark]:
    """Changes that a table calls the greatest of a course that has a greater one."""
    for sheet in sheets:
        for cell in sheet.cells:
            texts = sheet.table.rows[cell.row]
            titles = squeezed(f"{bare(texts[0])} | {bare(sheet.table.header[cell.column])}")
            title = _TITLE.search(titles)
            at = [one for one in places(squeezed(texts[cell.column])) if one.axis != END]
            if title is None or len(at) != 1 or cell.part:
                continue
            keys = row_keys(sheet, cell.row) | column_keys(sheet, cell.column)
            own = [one for one in courses if keys & one.keys and cell.line not in one.lines]
            own = [one for one in own if one.axis == at[0].axis and at[0].at in one.points]
            greater = _greater(own, cell, at[0].at, title.lastgroup or "")
            if greater is not None:
                yield _mark(cell, *greater)


def _greater(own: Sequence[Course], cell: Cell, at: float, kind: str) -> tuple[int, float] | None:
    """The line and size of a greater change, where every course that has the one has such."""
    found = list[tuple[int, float]]()
    for course in own:
        changes = _changes(course, in_percent=cell.figure.unit == "%")
        half = cell.figure.half * (1 + 1e-6) + 1e-9
        if len(changes) < LEAST or abs(changes.get(at, 1e9) - cell.figure.value) > half:
            continue
        size = {step: _size(change, kind) for step, change in changes.items()}
        best = max(size, key=lambda step: size[step])
        if size[best] <= size[at] + 2 * cell.figure.half:
            return None
        line = dict(zip(course.points, course.lines, strict=True))[best]
        found.append((line, changes[best]))
    return found[0] if found else None


def _size(change: float, kind: str) -> float:
    return -change if kind == "fall" else change if kind == "rise" else abs(change)


def _changes(course: Course, *, in_percent: bool) -> Mapping[float, float]:
    """By step how much a course changed since the step before."""
    points = sorted(course.points.items())
    relative = in_percent and any(figure.unit != "%" for _, figure in points)
    found = {}
    for (_, one), (at, other) in pairwise(points):
        if not relative or one.value:
            gap = other.value - one.value
            found[at] = 100 * gap / one.value if relative else gap
    return found


def _mark(cell: Cell, line: int, change: float) -> Mark:
    value = f"{change:+.{cell.figure.decimals}f}{cell.figure.unit}"
    facts: dict[str, object] = {"value": value, "other": line}
    return Mark(
        cell.line, cell.number.text, "wrong", "check.not-most", facts, cell.number.where.spot
    )
