"""How a number is written that goes into a cell: as its neighbours are."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from kleash.documents.page import percent
from kleash.imports import Derived, Number
from kleash.imports.markdown.differences import metric_of
from kleash.imports.markdown.draft import Draft, Printed, identity
from kleash.imports.markdown.numbers import Place

Spot = tuple[int, str]
"""The line of a cell and its place in it."""

ALIKE = 3.0  # times that numbers of one column or row may differ to be of one size
ONE = 10.0  # the same where a column has only one


def written_like(value: float, like: Number) -> str:
    """A value written as another number is: decimals, percent sign, sign."""
    share = like.unit == "%"
    decimals = max(0, (4 if like.decimals is None else like.decimals) - (2 if share else 0))
    shown = 100 * value if share else value
    text = f"{shown:.{decimals}f}"
    if float(text) == 0:
        text = text.removeprefix("-")
    plus = "+" if "+" in like.text and float(text) > 0 else ""
    return f"{plus}{text}" + (percent(like.text) if share else "")


def style_of(draft: Draft, cell: Printed, metric: str, place: Place, value: float) -> Number:
    """How numbers like this one are written: in its column or row, of its items, of its metric."""
    every = [
        (other, other.read.number)
        for other in draft.printed
        if other.read.number is not None
        and other.read.number.value is not None
        and other.sense.role == "value"
        and not other.sense.setting
    ]
    known = [(o, n) for o, n in every if identity(metric_of(draft, o.sense, n)) == identity(metric)]
    own = [n for o, n in every if o.table == cell.table and o.line == cell.line]
    nearest: list[list[Number]] = [
        own if written_as_row(own, [n for o, n in every if _above(o, cell)], value) else [],
        [n for o, n in known if _above(o, cell)],
        [n for o, n in known if o.table == cell.table and o.line == cell.line],
        [n for o, n in known if place.items and o.sense.place.items == place.items],
        [n for o, n in known if o.table == cell.table],
        own,
        [n for _, n in known],
    ]
    for numbers in nearest:
        if numbers:
            best = max(numbers, key=lambda one: one.decimals or 0)
            return replace(best, text=percent(best.text))
    shots = place.shots is not None or place.items is not None
    default = Number(None, "known", cell.where, 4)
    return replace(default, unit="%", text="%") if shots else default


def _above(other: Printed, cell: Printed) -> bool:
    return (other.table, other.column) == (cell.table, cell.column)


def written_as_row(row: Sequence[Number], column: Sequence[Number], value: float) -> bool:
    """Whether a number is written as its row is, which has one style: rows are quantities.

    Then its column has none, or one of numbers of another size.
    """
    if len(row) < 2 or not column or len({(one.decimals, one.unit) for one in row}) > 1:
        return False
    if len({(one.decimals, one.unit) for one in column}) > 1:
        return True
    sizes = [[abs(one.value) for one in side if one.value] for side in (row, column)]
    return _is_of(sizes[0], value) and not _is_of(sizes[1], value)


def _is_of(sizes: Sequence[float], value: float) -> bool:
    """Whether a value is of one size with others."""
    return bool(sizes) and min(sizes) / ALIKE <= abs(value) <= ALIKE * max(sizes)


def is_alike(draft: Draft, cell: Printed, value: float) -> bool:
    """Whether a value may stand where it would: as large as those of its column, else of its row.

    Where these are of all sizes, nothing is said.
    """
    own = [
        (other, abs(number.value))
        for other in draft.printed
        if other.table == cell.table and (number := other.read.number) and number.value
    ]
    column = [size for other, size in own if other.column == cell.column]
    row = [size for other, size in own if other.line == cell.line]
    for sizes in (column, row):
        if len(sizes) > 1 and max(sizes) <= ALIKE * min(sizes):
            return _is_of(sizes, value)
    return len(column) != 1 or column[0] / ONE <= abs(value) <= ONE * column[0]


def result_style(
    draft: Draft, derived: Derived, cell: Printed, texts: Mapping[Spot, str]
) -> Number:
    """How a result is written: as those of its column, else with the digits of its numbers."""
    every = [
        (other.column, other.read.number)
        for other in draft.printed
        if (other.table, other.sense.role) == (cell.table, cell.sense.role)
        and other.read.number is not None
        and other.read.number.value is not None
    ]
    column = [number for nth, number in every if nth == cell.column]
    worked_out = [number for _, number in every] if cell.sense.role == "difference" else []
    beside = column or worked_out
    signed = derived.kind != "mean"
    if beside:
        like = max(beside, key=lambda one: one.decimals or 0)
        return replace(like, text=percent(like.text) + ("+" if signed else ""))
    operands = [*derived.of, *derived.minus]
    first = next((one for one in operands if one.unit), operands[0])
    printed = [one for one in _printed_operands(draft, derived, texts) if one.decimals is not None]
    decimals = max((one.decimals or 0 for one in printed), default=4)
    share = (percent(first.text) or "%") if first.unit == "%" else ""
    text = share + ("+" if signed else "")
    return replace(first, decimals=decimals, text=text)


def _printed_operands(
    draft: Draft, derived: Derived, texts: Mapping[Spot, str]
) -> Iterator[Number]:
    """The numbers that a result is of, with the decimals that they are filled with."""
    places = {one.where for one in (*derived.of, *derived.minus)}
    for cell in draft.printed:
        if cell.where in places and cell.read.number is not None:
            after = texts.get((cell.line, cell.where.spot), "")
            if after:
                sign = percent(after)
                decimals = len(after.removesuffix(sign).partition(".")[2]) + 2 * bool(sign)
                unit = "%" if sign else ""
                yield replace(cell.read.number, decimals=decimals, unit=unit)
            else:
                yield cell.read.number
