"""Tables of stages: what a row "steps 10-40" gives is the mean, the highest, ... of those steps.

The course stands in another table. A column of such a table is one statistic of one course; if most
of its rows bear that out to the digit, the others are wrong.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from statistics import fmean, stdev

from kleash.imports.markdown.text import bare
from kleash.written.marks import Mark, printed_as
from kleash.written.printed import Cell, Sheet, squeezed
from kleash.written.told.tracks import Course

LEAST = 2  # rows that bear a column out
DIGITS = 2  # of numbers that do
POINTS = 2  # of a course in each stage
_SPAN = re.compile(r"(?<![\d.])(\d+)\s?(?:-|–|—|~|→|to|到|至)\s?(\d+)(?![\d.]|\s?%)")
_TOLD = re.compile(
    r"极差|标准差|均值|平均|最[高低大小]|变化|差|mean|std|range|max|min(?!u)|change|best"
)
_STATISTICS: dict[str, Callable[[Sequence[float]], float]] = {
    "mean": fmean,
    "highest": max,
    "lowest": min,
    "range": lambda values: max(values) - min(values),
    "deviation": lambda values: stdev(values) if len(values) > 1 else 0.0,
    "last": lambda values: values[-1],
    "change": lambda values: values[-1] - values[0],
}
_ROOMS = {"mean": 1, "range": 2, "deviation": 2, "change": 2}  # roundings that may put them off
Stages = Mapping[int, tuple[float, float]]


def false_stages(sheets: Sequence[Sheet], courses: Sequence[Course]) -> Iterator[Mark]:
    """Numbers of stages that are not what most others of their column are of a course."""
    for sheet in sheets:
        stages = _stages(sheet)
        columns = {cell.column for cell in sheet.cells if not cell.part and cell.row in stages}
        for column in sorted(columns) if len(stages) > LEAST else ():
            own = [
                cell for cell in sheet.cells
                if (cell.column, cell.part) == (column, "") and cell.row in stages
            ]  # fmt: skip
            yield from _off(own, stages, [one for one in courses if not _is_here(one, sheet)])


def _stages(sheet: Sheet) -> dict[int, tuple[float, float]]:
    """By row, the first and the last step of the stage that its labels name."""
    found = {}
    for nth, row in enumerate(sheet.table.rows):
        spans = [match for text in row[:2] if (match := _SPAN.search(bare(text)))]
        told = _TOLD.search(squeezed(" ".join(map(bare, row[:2]))))  # a statistic of its own
        if spans and int(spans[0][1]) < int(spans[0][2]) and not told:
            found[nth] = (float(spans[0][1]), float(spans[0][2]))
    return found


def _is_here(course: Course, sheet: Sheet) -> bool:
    return bool(set(course.lines) & set(sheet.table.lines))


def _off(own: Sequence[Cell], stages: Stages, courses: Sequence[Course]) -> Iterator[Mark]:
    """The numbers of a column that are off by the course and statistic that fit most of it."""
    best: list[tuple[Cell, float, bool]] = []
    lines: tuple[int, ...] = ()
    for course in courses:
        inside = {cell: _inside(course, stages[cell.row]) for cell in own}
        if any(len(values) < POINTS for values in inside.values()):
            continue
        half = max(figure.half for figure in course.points.values())
        for kind, statistic in _STATISTICS.items():
            room = _ROOMS.get(kind, 0) * half
            made = [(cell, statistic(values)) for cell, values in inside.items()]
            told = [(cell, value, _fits(cell, value, room)) for cell, value in made]
            if sum(fits for *_, fits in told) > sum(fits for *_, fits in best):
                best, lines = told, course.lines
    right = [cell for cell, _, fits in best if fits and cell.figure.digits > DIGITS]
    if len({cell.figure.value for cell in right}) < LEAST or 2 * len(right) <= len(best):
        return
    for cell, value, fits in best:
        if not fits:
            facts: dict[str, object] = {
                "value": printed_as(value, "", cell.figure.decimals),
                "lines": sorted({line for line in lines if line})[:4],
            }
            text, spot = cell.number.text, cell.number.where.spot
            yield Mark(cell.line, text, "wrong", "check.not-summary", facts, spot)


def _inside(course: Course, stage: tuple[float, float]) -> list[float]:
    first, last = stage
    return [one.value for at, one in sorted(course.points.items()) if first <= at <= last]


def _fits(cell: Cell, value: float, room: float) -> bool:
    return abs(cell.figure.value - value) <= (cell.figure.half + room) * (1 + 1e-6)
