"""Counts with their share, and rows below a course that sum it up: both show their own arithmetic.

"25/180 (13.9 %)" says what it is of; "92 (32.2 %)" is of the sum of its column. A row below the
steps of a table that holds, for most columns, the step of the highest or the last less the first,
does so for all.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence

from kleash.documents.marks import Mark, printed_as
from kleash.documents.page import Page
from kleash.written.printed import Cell, Sheet

LEAST = 3  # numbers of a row that must be a statistic
POINTS = 3  # of a course
_OF = re.compile(
    r"(?<![\d./])(\d{1,3}(?:,\d{3})+|\d+)\s?(?:/|of|out of)\s?(\d{1,3}(?:,\d{3})+|\d+)\s?[(（]\s?"
    r"(\d+(?:\.\d+)?)\s?%\s?[)）]"
)
_SHARE = re.compile(r"\**(\d{1,3}(?:,\d{3})+|\d+)\**\s?[(（]\s?(\d+(?:\.\d+)?)\s?%\s?[)）]\**")
Course = Sequence[tuple[float, float]]
"""Steps and values, in order."""


def false_shares(page: Page, sheets: Sequence[Sheet]) -> Iterator[Mark]:
    """Percentages beside counts that are not their share."""
    for nth, (start, end) in enumerate(page.lines, 1):
        for match in _OF.finditer(page.text[start:end]):
            part, whole = (float(match[n].replace(",", "")) for n in (1, 2))
            if whole > 0 and part <= whole:
                yield from _false(nth, match[0], match[3], part / whole, [nth])
    for sheet in sheets:
        for column in range(1, len(sheet.columns)):
            yield from _of_column(sheet, column)


def _of_column(sheet: Sheet, column: int) -> Iterator[Mark]:
    """The shares of a column that are not of its sum, if most are."""
    found = []
    for line, row in zip(sheet.table.lines, sheet.table.rows, strict=True):
        match = _SHARE.fullmatch(row[column].strip()) if column < len(row) else None
        if match:
            found.append((line, match, float(match[1].replace(",", ""))))
    total = sum(count for *_, count in found)
    marks = [
        mark
        for line, match, count in found
        for mark in _false(line, match[0], match[2], count / total if total else 0.0, [line])
    ]
    if len(found) >= LEAST and 3 * len(marks) <= len(found):
        yield from marks


def _false(line: int, text: str, said: str, share: float, lines: list[int]) -> Iterator[Mark]:
    decimals = len(said.partition(".")[2])
    if abs(float(said) - 100 * share) > 0.5 * 10.0**-decimals * (1 + 1e-6):
        facts = {"value": printed_as(100 * share, "", decimals) + "%", "lines": lines}
        yield Mark(line, text, "wrong", "check.not-share", facts, f"share {text}")


# --- rows that sum up a course


def _ends(course: Course) -> tuple[float, float, float, float]:
    values = [value for _, value in course]
    return values[0], values[-1], max(values), min(values)


def _best(course: Course, sign: int) -> float:
    return max(course, key=lambda point: sign * point[1])[0]


STATISTICS: Mapping[str, Callable[[Course], float]] = {
    "highest at": lambda course: _best(course, 1),
    "lowest at": lambda course: _best(course, -1),
    "last - first": lambda course: _ends(course)[1] - _ends(course)[0],
    "highest - last": lambda course: _ends(course)[2] - _ends(course)[1],
    "last - highest": lambda course: _ends(course)[1] - _ends(course)[2],
    "last - lowest": lambda course: _ends(course)[1] - _ends(course)[3],
    "highest": lambda course: _ends(course)[2],
    "lowest": lambda course: _ends(course)[3],
    "mean": lambda course: sum(value for _, value in course) / len(course),
}


def false_summaries(sheets: Sequence[Sheet]) -> Iterator[Mark]:
    """Numbers of a row, or column, that are not what most others of it are of their course."""
    for sheet in sheets:
        at = {(cell.row, cell.column): cell for cell in sheet.cells if not cell.part}
        turned = {(column, row): cell for (row, column), cell in at.items()}
        for cells, counts in ((at, sheet.counts), (turned, sheet.across)):
            others = sorted({line for line, _ in cells} - counts.keys()) if counts else []
            for line in others:
                yield from _summary(cells, counts, line)


def _summary(
    cells: Mapping[tuple[int, int], Cell], counts: Mapping[int, float], line: int
) -> Iterator[Mark]:
    courses: dict[int, list[tuple[float, Cell]]] = {}
    for nth in sorted({nth for at, nth in cells if at == line}):
        points = [(at, cells[row, nth]) for row, at in counts.items() if (row, nth) in cells]
        if len(points) >= max(POINTS, len(counts)):
            courses[nth] = sorted(points, key=lambda point: point[0])
    best: list[tuple[Cell, float, bool | None]] = []
    for kind, statistic in STATISTICS.items():
        made = []
        for nth, points in courses.items():
            value = statistic([(at, cell.figure.value) for at, cell in points])
            room = 0.0 if kind.endswith(" at") else 2 * points[0][1].figure.half
            room = 0.0 if kind in ("highest", "lowest") else room
            own = cells[line, nth].figure
            fits = abs(own.value - value) <= own.half * (not kind.endswith(" at")) + room + 1e-9
            # Between the points that are shown it may have been higher, or lower.
            beyond = (kind == "highest" and own.value > value) or (
                kind == "lowest" and own.value < value
            )
            made.append((cells[line, nth], value, None if beyond and not fits else fits))
        if sum(fit is True for *_, fit in made) > sum(fit is True for *_, fit in best):
            best = made
    held = [cell.figure.value for cell, _, fit in best if fit]
    if len(held) < LEAST or 5 * len(held) < 3 * len(best):
        return
    # Numbers that are all nearly 0, a learning rate of 5e-6, fit whatever is nearly 0.
    finest = min((points[0][1].figure.half for points in courses.values()), default=0.0)
    if len(set(held)) < 2 or max(held) - min(held) < finest:
        return
    for cell, value, fit in best:
        if fit is False:
            shown = printed_as(value, "", cell.figure.decimals)
            facts = {"value": shown, "lines": sorted({one.line for one in cells.values()})[:4]}
            text, spot = cell.number.text, cell.number.where.spot
            yield Mark(cell.line, text, "wrong", "check.not-summary", facts, spot)
