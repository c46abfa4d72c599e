"""Tables: every cell becomes a measurement, a point of a series, a setting, or a derived number.

What is derived (means, differences, changes in brackets) is kept apart from what was measured, with
the numbers that it should follow from.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kleash.imports import Derived, Number, Table, names
from kleash.imports.markdown import labels
from kleash.imports.markdown.derived import follows
from kleash.imports.markdown.differences import (
    Lookup,
    Reader,
    Spot,
    brackets,
    differences,
    metric_of,
    statistics,
)
from kleash.imports.markdown.draft import SEED, Draft, Printed
from kleash.imports.markdown.numbers import Place, Reading, percent, reading
from kleash.imports.markdown.prose import likens
from kleash.imports.markdown.senses import Sense, head_of, shape, without_index
from kleash.imports.markdown.text import Grid, bare

_AS_LEFT = {"同左", "同前", "相同", "same", "the same", "ditto", "as left", "←"}
_AS_ABOVE = {"同上", "as above", "same as above", "〃", '"', "↑"}


def read_table(grid: Grid, draft: Draft, *, title: int) -> list[Lookup]:
    """All that one table says. What it derives from other tables is handed back."""
    where = draft.where(grid.line)
    headings = tuple(heading.text for heading in grid.headings)
    draft.source.tables.append(Table(where, headings, grid.header, grid.rows, grid.lines))
    above, columns = grid.line, len(grid.header)
    grid = without_index(grid)
    left_out = columns - len(grid.header)
    empty = not grid.rows or len(grid.header) < 2
    form = None if empty else shape(grid, head_of(grid, draft.arms, title=title), draft.arms)
    if form is None:
        why = "it has no cells" if empty else "its rows are not arms, steps, metrics or settings"
        draft.source.notes.append(f"line {grid.line}: nothing of this table is used: {why}")
        return []
    reader = Reader(grid, draft, form)
    for at, (row, line, sense) in enumerate(zip(grid.rows, grid.lines, form.rows, strict=True)):
        spots = []
        for column, (cell, across) in enumerate(zip(row[1:], form.columns, strict=True)):
            where = draft.where(line, f"{grid.header[column + 1]} / {row[0]}")
            whole = across.over(sense).over(form.head)
            read = reading(_meant(grid, at, column + 1) if whole.setting else cell, where)
            if any(map(labels.in_percent, (grid.header[column + 1], row[0]))):
                read = percent(read)
            spots.append(Spot(at, column, whole, read, where))
            nth, header = column + 1 + left_out, grid.header[column + 1]
            draft.printed.append(Printed(line, nth, whole, read, where, header, above))
        reader.spots.append(spots)
    for spots in reader.spots:
        for spot in spots:
            _tell(reader, spot)
    for (arm, metric, axis), points in reader.points.items():
        draft.add_points(arm, metric, axis, points)
    brackets(reader)
    statistics(reader)
    return differences(reader)


def _meant(grid: Grid, row: int, column: int) -> str:
    """A cell, or the one to its left or above it that it says it is the same as."""
    text = grid.rows[row][column]
    word = bare(text).casefold().strip("()")
    if word in _AS_LEFT and column > 1:
        return _meant(grid, row, column - 1)
    if word in _AS_ABOVE and row > 0:
        return _meant(grid, row - 1, column)
    return text


def _tell(reader: Reader, spot: Spot) -> None:
    """Hand one cell on to where it belongs. Differences come later, when all cells are read."""
    sense, read = spot.sense, spot.read
    line = reader.grid.lines[spot.row]
    if sense.setting and sense.role == "value":
        _set(reader.draft, sense, read, line)
    elif read.number is None or sense.role in ("remark", "winner"):
        if sense.role not in ("difference", "label"):
            likens(reader.draft, read.words)
    elif sense.role == "value" and not _is_mean(reader, spot):
        _measure(reader, sense, read)


def setting_value(read: Reading) -> Any:
    """A setting as a number or truth value where it is one, else as it was written."""
    one = read.number
    if one is not None and one.value is not None and one.unit in ("", "步", "step", "epoch", "轮"):
        plain = not any(letter in one.text for letter in "kKMB万亿")
        if plain and one.state == "known":
            return int(one.value) if one.value.is_integer() and not one.decimals else one.value
    if one is not None and one.state == "missing":
        return None
    words = bare(read.words)
    truth = names.truth(read.words)
    return truth if truth is not None and words.casefold() in ("true", "false", "") else words


def run_key(sense: Sense) -> str:
    """Whose a cell is: an arm, or one seed of it."""
    return (sense.arm or "") if sense.seed is None else f"{sense.arm or ''}{SEED}{sense.seed}"


def _set(draft: Draft, sense: Sense, read: Reading, line: int) -> None:
    value, where = setting_value(read), draft.where(line, sense.setting)
    if value is None:
        return
    if sense.arm is None:
        draft.shared.append((sense.setting, value, where))
    else:
        draft.set(run_key(sense), sense.setting, value, where)


def _measure(reader: Reader, sense: Sense, read: Reading) -> None:
    """A number that was measured: a point of a course, or a cell."""
    one, draft = read.number, reader.draft
    if one is None:
        return
    arm, metric = run_key(sense), metric_of(draft, sense, one)
    place = read.place.over(sense.place)
    if sense.statistic == "best step":
        draft.add_cell(arm, metric, one, Place(), "best step")
        if read.inner is not None and one.value is not None:
            draft.add_cell(arm, metric, read.inner, Place(step=int(one.value)), "best")
    elif sense.statistic:
        draft.add_cell(arm, metric, one, place, sense.statistic)
    elif place.shots is not None or place.items is not None or one.low is not None:
        draft.add_cell(arm, metric, one, place)
    elif place.step is not None:
        reader.points[arm, metric, "step"].append((place.step, one))
    elif place.epoch is not None:
        reader.points[arm, metric, "epoch"].append((place.epoch, one))
    else:
        draft.add_cell(arm, metric, one, place)


def _siblings(reader: Reader, spot: Spot) -> list[Number]:
    """The numbers that a mean is of: the other shots of its row, or the steps above it."""
    rows, columns = reader.form.rows, reader.form.columns
    if columns[spot.column].statistic == "mean":
        row = reader.spots[spot.row]
        near = [each for each in row if columns[each.column].place and each.column != spot.column]
        near = near or _all_beside(reader, spot)
    elif rows[spot.row].statistic == "mean":
        near = [line[spot.column] for line in reader.spots if rows[line[0].row].place]
        near += [each[spot.column] for each in reader.spots if _is_run(rows[each[0].row])]
        near = near or _all_above(reader, spot)
    else:
        near = []
    return [each.value for each in near if each.value is not None]


def _all_beside(reader: Reader, spot: Spot) -> list[Spot]:
    """All measurements of a row, if in most rows the column of means is the mean of them."""
    columns = reader.form.columns

    def near(row: Sequence[Spot]) -> list[Spot]:
        return [
            each
            for each in row
            if columns[each.column].role == "value"
            and not (columns[each.column].statistic or columns[each.column].setting)
            and each.read.number is not None
        ]

    fits = 0
    for row in reader.spots:
        whole, parts = row[spot.column].read.number, [each.value for each in near(row)]
        known = [one for one in parts if one is not None and one.value is not None]
        if whole is not None and whole.value is not None and len(known) > 1:
            fits += follows(Derived("mean", whole, tuple(known))) is True
    rows = len(reader.spots)
    return near(reader.spots[spot.row]) if rows > 2 and 3 * fits >= 2 * rows else []


def _all_above(reader: Reader, spot: Spot) -> list[Spot]:
    """All measurements of a column, if for most columns the row of means is the mean of them."""
    rows, columns = reader.form.rows, reader.form.columns

    def near(column: int) -> list[Spot]:
        plain = [line for line in reader.spots if not rows[line[0].row].statistic]
        return [line[column] for line in plain if line[column].read.number is not None]

    fits = misses = 0
    for each in reader.spots[spot.row]:
        known = [s.value for s in near(each.column) if s.value is not None and s.value.value]
        whole = each.read.number
        if columns[each.column].role == "value" and whole is not None and len(known) > 1:
            holds = follows(Derived("mean", whole, tuple(known))) is True
            fits, misses = fits + holds, misses + (not holds)
    return near(spot.column) if fits and misses <= 1 and len(near(spot.column)) > 2 else []


def _is_run(sense: Sense) -> bool:
    return bool(sense.arm or sense.seed is not None) and not sense.place


def _is_mean(reader: Reader, spot: Spot) -> bool:
    """Whether a cell is the mean of others in its table; it is then derived, not measured."""
    numbers = _siblings(reader, spot) if spot.sense.statistic == "mean" else []
    if len(numbers) < 2 or spot.read.number is None:
        return False
    metric = metric_of(reader.draft, spot.sense, spot.read.number)
    arms = (spot.sense.arm,) if spot.sense.arm else ()
    reader.derive([Derived("mean", spot.read.number, tuple(numbers), (), metric, arms)])
    return True
