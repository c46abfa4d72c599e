"""How a number is written that goes into a cell: as its neighbours are."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from kleash.documents.logs import SECONDS
from kleash.documents.page import percent
from kleash.imports import Number
from kleash.imports.markdown.differences import metric_of
from kleash.imports.markdown.draft import Draft, Printed, identity
from kleash.imports.markdown.numbers import Place

ALIKE = 3.0  # times that numbers of one column or row may differ to be of one size
ONE = 10.0  # the same where a column has only one


def written_like(value: float, like: Number) -> str:
    """A value written as another number is: decimals, percent sign, sign."""
    share = like.unit == "%"
    decimals = max(0, (4 if like.decimals is None else like.decimals) - (2 if share else 0))
    text = f"{100 * value if share else value:z.{decimals}f}"
    return "+" * ("+" in like.text and float(text) > 0) + text + suffix(like)


def suffix(like: Number) -> str:
    """The percent sign or unit of time behind a number, as it is printed."""
    if like.unit == "%":
        return percent(like.text)
    is_time = like.unit == "s" or like.unit.rstrip("s") in SECONDS
    found = re.search(rf"\s?{re.escape(like.unit)}\s*$", like.text) if is_time else None
    return found.group() if found else ""


def written_as_row(row: Sequence[Number], column: Sequence[Number], value: float) -> bool:
    """Whether a number is written as its row is, which has one style: rows are quantities.

    Then its column has none, or one of numbers of another size.
    """
    styles = [{(one.decimals, one.unit) for one in side} for side in (row, column)]
    if len(row) < 2 or not column or len(styles[0]) > 1:
        return False
    sizes = [[abs(one.value) for one in side if one.value] for side in (row, column)]
    return len(styles[1]) > 1 or (_is_of(sizes[0], value) and not _is_of(sizes[1], value))


def _is_of(sizes: Sequence[float], value: float, room: float = ALIKE) -> bool:
    """Whether a value is of one size with others."""
    return bool(sizes) and min(sizes) / room <= abs(value) <= room * max(sizes)


def finest(numbers: Sequence[Number]) -> Number:
    """The number with most decimals."""
    return max(numbers, key=lambda one: one.decimals or 0)


class Styles:
    """The known numbers of a report's tables, by which others are written."""

    def __init__(self, draft: Draft) -> None:
        self.every = [
            (cell, number, identity(metric_of(draft, cell.sense, number)))
            for cell in draft.printed
            if (number := cell.read.number) is not None and number.value is not None
        ]

    def of(self, cell: Printed, metric: str, place: Place, value: float) -> Number:
        """How numbers like it are written: in its column or row, of its items, of its metric."""
        every = [
            (other, number, what == identity(metric))
            for other, number, what in self.every
            if other.sense.role == "value" and not other.sense.setting
        ]
        table = [one for one in every if one[0].table == cell.table]
        column = [one for one in table if one[0].column == cell.column]
        row = [one for one in table if one[0].line == cell.line]
        items = [one for one in every if place.items and one[0].sense.place.items == place.items]
        own = [number for _, number, _ in row]
        nearest = [own if written_as_row(own, [number for _, number, _ in column], value) else []]
        nearest += [[n for _, n, alike in some if alike] for some in (column, row, items, table)]
        nearest += [own, [number for _, number, alike in every if alike]]
        if found := next(filter(None, nearest), None):
            like = finest(found)
            return replace(like, text=suffix(like))
        share = "%" * (place.shots is not None or place.items is not None)
        return Number(None, "known", cell.where, 4, unit=share, text=share)

    def is_alike(self, cell: Printed, value: float) -> bool:
        """Whether a value may stand where it would: as large as its column's, else its row's.

        Where these are of all sizes, nothing is said.
        """
        own = [(o, abs(n.value)) for o, n, _ in self.every if o.table == cell.table and n.value]
        column = [size for other, size in own if other.column == cell.column]
        row = [size for other, size in own if other.line == cell.line]
        for sizes in (column, row):
            if len(sizes) > 1 and max(sizes) <= ALIKE * min(sizes):
                return _is_of(sizes, value)
        return len(column) != 1 or _is_of(column, value, ONE)

    def of_result(self, kind: str, operands: Sequence[Number], cell: Printed) -> Number:
        """How a result is written: as those of its column, else with the digits of its numbers."""
        role = cell.sense.role
        every = [(o, n) for o, n, _ in self.every if (o.table, o.sense.role) == (cell.table, role)]
        beside = [number for other, number in every if other.column == cell.column]
        beside = beside or [number for _, number in every if role == "difference"]
        first = finest(beside) if beside else next((n for n in operands if n.unit), operands[0])
        decimals = None if beside else finest(operands).decimals
        sign = percent(first.text) or "%" * (first.unit == "%")
        text = sign + "+" * (kind != "mean")
        return replace(first, decimals=decimals or first.decimals, text=text)
