"""Numbers of a course that stand far off their neighbours and would not, but for one digit.

"75.2, 16.1, 75.6" is 76.1, if no step of this table ever makes such a leap. A leap of a digit may
happen: so it is a doubt, no more.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from kleash.documents.marks import Mark, number_mark
from kleash.written.printed import Cell, Sheet

POINTS = 5  # of a course that shows how it goes
DIGITS = 3  # of a number that can be told from others
OWN = 4.0  # times the greatest leap that its course makes elsewhere
ALL = 8.0  # times that of half the points of its table
NEAR = 2.0  # the same, within which the right number is
Kind = tuple[str, int, str]
"""How numbers are printed: their unit and decimals; and of what they are, if rows tell so."""


def off_course(sheets: Sequence[Sheet]) -> Iterator[Mark]:
    """Every such number of every table that counts its rows or columns."""
    for sheet in sheets:
        for axis, down in ((sheet.counts, True), (sheet.across, False)):
            courses = _courses(sheet, axis, down=down)
            usual = {kind: _usual(every) for kind, every in courses.items()}
            for kind, every in courses.items():
                for cells in every:
                    yield from _of_course(cells, usual[kind])


def _courses(
    sheet: Sheet, axis: Mapping[int, float], *, down: bool
) -> dict[Kind, list[list[Cell]]]:
    """The courses of a table by how their numbers are printed, each in the order of its axis."""
    found: dict[int, list[tuple[float, Cell]]] = defaultdict(list)
    for cell in sheet.cells:
        at, line = (cell.row, cell.column) if down else (cell.column, cell.row)
        if not cell.part and at in axis:
            found[line].append((axis[at], cell))
    kinds: dict[Kind, list[list[Cell]]] = defaultdict(list)
    for points in found.values():
        cells = [cell for _, cell in sorted(points, key=lambda one: one[0])]
        named = _quantity(sheet, cells[0].row) if not down else ""
        own = {(cell.figure.unit, cell.figure.decimals, named) for cell in cells}
        if len(cells) >= POINTS and len(own) == 1:
            kinds[own.pop()].append(cells)
    return kinds


def _quantity(sheet: Sheet, row: int) -> str:
    """What several rows are called alike: entropy of A, of B; each with its own leaps."""
    names = [texts[0] for texts in sheet.table.rows]
    return names[row] if names.count(names[row]) > 1 else ""


def _values(cells: Sequence[Cell]) -> NDArray[np.float64]:
    return np.array([cell.figure.value for cell in cells])


def _leaps(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """How far each inner point is from the middle of its neighbours."""
    return np.abs(values[1:-1] - (values[:-2] + values[2:]) / 2)


def _usual(every: Sequence[Sequence[Cell]]) -> float:
    """The leap that half the points of these courses do not reach."""
    return float(np.median(np.concatenate([_leaps(_values(cells)) for cells in every])))


def _of_course(cells: Sequence[Cell], usual: float) -> Iterator[Mark]:
    values = _values(cells)
    for at in range(1, len(cells) - 1):
        middle = (values[at - 1] + values[at + 1]) / 2
        elsewhere = float(_leaps(np.delete(values, at)).max())
        figure = cells[at].figure
        room = max(usual, elsewhere / 2, 2 * figure.half)
        gap = abs(values[at] - middle)
        if figure.digits < DIGITS or gap <= max(ALL * usual, OWN * elsewhere, ALL * figure.half):
            continue
        if any(abs(one - middle) <= NEAR * room for one in _one_digit_off(cells[at])):
            beside = {"before": cells[at - 1].number.text, "after": cells[at + 1].number.text}
            yield number_mark(cells[at].number, "unsupported", "check.off-course", dict(beside))


def _one_digit_off(cell: Cell) -> Iterator[float]:
    """All numbers that a number would be with another digit."""
    text = f"{cell.figure.value:.{cell.figure.decimals}f}"
    for at, old in enumerate(text):
        for new in "0123456789" if old.isdigit() else "":
            if new != old:
                yield float(text[:at] + new + text[at + 1 :])
