"""Tables: every cell becomes a measurement, a point of a series, a setting, or a derived number.

What is derived (means, differences, changes in brackets) is kept apart from what was measured, with
the numbers that it should follow from. Nobody writes whether "差异" is ours minus theirs or the
other way round, or whether "-1.8%" is a share: a column is read as most of its numbers follow.
Long, because what is a mean or a difference of others is no measurement.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from kleash.compare.read import Derived, Number, Table, names
from kleash.compare.read.markdown import labels
from kleash.compare.read.markdown.derived import allowed, best, follows
from kleash.compare.read.markdown.draft import SEED, Course, Draft, Printed
from kleash.compare.read.markdown.numbers import VALUE, Place, Reading, number, percent, reading
from kleash.compare.read.markdown.senses import Sense, Shape, head_of, shape, without_index
from kleash.compare.read.markdown.text import Grid, bare

_AS_LEFT = {"同左", "同前", "相同", "same", "the same", "ditto", "as left", "←"}
_AS_ABOVE = {"同上", "as above", "same as above", "〃", '"', "↑"}
WIDE = 0.2


@dataclass
class Reader:
    """A table while it is read."""

    grid: Grid
    draft: Draft
    form: Shape
    spots: list[list[Printed]] = field(default_factory=list)
    points: dict[tuple[str, str, Course], list[tuple[float, Number]]] = field(
        default_factory=lambda: defaultdict(list)
    )

    def derive(self, found: Sequence[Derived]) -> None:
        """Keep derived numbers."""
        self.draft.source.derived += found


@dataclass(frozen=True)
class Lookup:
    """A difference of means whose numbers stand in other tables: looked up when all are read."""

    number: Number
    arm: str
    against: str
    metric: str
    place: Place


def metric_of(draft: Draft, sense: Sense, number: Number) -> str:
    """The metric of a cell; percentages by shots or items are accuracies where nothing is said."""
    known = names.metric(sense.metric)
    if known is not None and known.name == "performance" and draft.outcome:
        # 性能 and "score" are what the document measures success by.
        return draft.outcome
    counted = sense.place.shots is not None or sense.place.items is not None
    if sense.metric:
        return sense.metric
    return "accuracy" if counted and number.unit in ("%", "") else draft.outcome or "value"


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
            nth = column + 1 + left_out
            spots.append(Printed(above, line, nth, at, column, whole, read, where))
        draft.printed += spots
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


def _tell(reader: Reader, spot: Printed) -> None:
    """Hand one cell on to where it belongs. Differences come later, when all cells are read."""
    sense, read = spot.sense, spot.read
    line = reader.grid.lines[spot.row]
    if sense.setting and sense.role == "value":
        _set(reader.draft, sense, read, line)
    elif read.number is None or sense.role in ("remark", "winner"):
        if sense.role not in ("difference", "label"):
            reader.draft.liken(read.words)
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


def _siblings(reader: Reader, spot: Printed) -> list[Number]:
    """The numbers that a mean is of: the other shots of its row, or the steps above it."""
    rows, columns = reader.form.rows, reader.form.columns
    if columns[spot.nth].statistic == "mean":
        row = reader.spots[spot.row]
        near = [each for each in row if columns[each.nth].place and each.nth != spot.nth]
        near = near or _all_beside(reader, spot)
    elif rows[spot.row].statistic == "mean":
        near = [line[spot.nth] for line in reader.spots if rows[line[0].row].place]
        near += [each[spot.nth] for each in reader.spots if _is_run(rows[each[0].row])]
        near = near or _all_above(reader, spot)
    else:
        near = []
    return [each.value for each in near if each.value is not None]


def _all_beside(reader: Reader, spot: Printed) -> list[Printed]:
    """All measurements of a row, if in most rows the column of means is the mean of them."""
    columns = reader.form.columns

    def near(row: Sequence[Printed]) -> list[Printed]:
        return [
            each
            for each in row
            if columns[each.nth].role == "value"
            and not (columns[each.nth].statistic or columns[each.nth].setting)
            and each.read.number is not None
        ]

    fits = 0
    for row in reader.spots:
        whole, parts = row[spot.nth].read.number, [each.value for each in near(row)]
        known = [one for one in parts if one is not None and one.value is not None]
        if whole is not None and whole.value is not None and len(known) > 1:
            fits += follows(Derived("mean", whole, tuple(known))) is True
    rows = len(reader.spots)
    return near(reader.spots[spot.row]) if rows > 2 and 3 * fits >= 2 * rows else []


def _all_above(reader: Reader, spot: Printed) -> list[Printed]:
    """All measurements of a column, if for most columns the row of means is the mean of them."""
    rows, columns = reader.form.rows, reader.form.columns

    def near(column: int) -> list[Printed]:
        plain = [line for line in reader.spots if not rows[line[0].row].statistic]
        return [line[column] for line in plain if line[column].read.number is not None]

    fits = misses = 0
    for each in reader.spots[spot.row]:
        known = [s.value for s in near(each.nth) if s.value is not None and s.value.value]
        whole = each.read.number
        if columns[each.nth].role == "value" and whole is not None and len(known) > 1:
            holds = follows(Derived("mean", whole, tuple(known))) is True
            fits, misses = fits + holds, misses + (not holds)
    return near(spot.nth) if fits and misses <= 1 and len(near(spot.nth)) > 2 else []


def _is_run(sense: Sense) -> bool:
    return bool(sense.arm or sense.seed is not None) and not sense.place


def _is_mean(reader: Reader, spot: Printed) -> bool:
    """Whether a cell is the mean of others in its table; it is then derived, not measured."""
    numbers = _siblings(reader, spot) if spot.sense.statistic == "mean" else []
    if len(numbers) < 2 or spot.read.number is None:
        return False
    metric = metric_of(reader.draft, spot.sense, spot.read.number)
    arms = (spot.sense.arm,) if spot.sense.arm else ()
    reader.derive([Derived("mean", spot.read.number, tuple(numbers), (), metric, arms)])
    return True


# --- what a table works out from its own numbers


def _made(
    reader: Reader,
    spot: Printed,
    of: Sequence[Number | None],
    minus: Sequence[Number | None],
    kind: str,
) -> Derived | None:
    """A difference, with the sign its arrow gives it where none is printed."""
    ours = tuple(number for number in of if number is not None)
    theirs = tuple(number for number in minus if number is not None)
    one = _signed(spot)
    if one is None or not ours or not theirs:
        return None
    metric = metric_of(reader.draft, spot.sense, ours[0])
    if not one.unit and ours[0].unit == theirs[0].unit == "%":
        one = percent(Reading("", one)).number or one
    if kind == "difference" and one.unit == "%" and "%" not in (ours[0].unit, theirs[0].unit):
        kind = "relative"
    unsigned = "+" not in one.text and "-" not in one.text and spot.read.number is None
    arms = tuple(filter(None, (spot.sense.arm,)))
    if kind == "relative":
        made = Derived("relative", one, ours, theirs, metric, arms, unsigned)
        range_ = allowed(made)
        # Of numbers near 0 any share follows: that speaks for no reading.
        return None if range_ is not None and range_[1] - range_[0] > WIDE else made
    return Derived("difference", one, ours, theirs, metric, arms, unsigned)


def _signed(spot: Printed) -> Number | None:
    one = spot.read.number
    if one is None:
        # "KL version is 5 steps faster": the only number among the words.
        found = list(VALUE.finditer(bare(spot.read.words)))
        only = number(found[0], spot.where) if len(found) == 1 else None
        return only if only is not None and only.unit in ("步", "step", "steps") else None
    falls = any(arrow in spot.read.words for arrow in "⬇↓▼")
    if one.value is not None and one.value > 0 and falls and "+" not in one.text:
        return replace(one, value=-one.value)
    return one


def differences(reader: Reader) -> list[Lookup]:
    """Columns and rows of differences, each in the order that most of its numbers follow."""
    lookups: list[Lookup] = []
    for column, sense in enumerate(reader.form.columns):
        spots = [row[column] for row in reader.spots]
        if sense.role == "difference":
            if any(row.arm for row in reader.form.rows):
                lookups += _down(reader, sense, spots)
            else:
                _across(reader, sense, spots)
        elif sense.role == "winner":
            _winners(reader, spots)
    for at, sense in enumerate(reader.form.rows):
        if sense.role == "difference":
            _between_rows(reader, reader.spots[at])
    return lookups


def _numbers_by_arm(reader: Reader, row: Sequence[Printed]) -> dict[str, Printed]:
    """The cells of a row that belong to arms by their column."""
    columns = reader.form.columns
    return {
        str(columns[spot.nth].arm): spot
        for spot in row
        if columns[spot.nth].arm and columns[spot.nth].role == "value" and spot.value
    }


def _across(reader: Reader, sense: Sense, spots: Sequence[Printed]) -> None:
    """A column of differences between columns that are arms."""
    against = reader.draft.arms.find(sense.against) if sense.against else None
    every = [_numbers_by_arm(reader, reader.spots[spot.row]) for spot in spots]
    order = list(dict.fromkeys(arm for row in every for arm in row))
    readings = _orders(reader, order, against)

    def derive(pair: tuple[str, str, str]) -> list[Derived | None]:
        ours, theirs, kind = pair
        made = []
        for spot, row in zip(spots, every, strict=True):
            if ours in row and theirs in row:
                made.append(_made(reader, spot, [row[ours].value], [row[theirs].value], kind))
                made.append(_change(reader, spot, row[ours].value, row[theirs].value))
        return [replace(one, arms=(ours, theirs)) for one in made if one is not None]

    reader.derive(best(readings, derive))


def _orders(
    reader: Reader, order: Sequence[str], against: str | None
) -> list[tuple[str, str, str]]:
    """Which arm minus which, in which kind, the likelier first: later minus earlier."""
    if against is None:
        pairs = [(order[1], order[0]), (order[0], order[1])] if len(order) == 2 else []
    else:
        # With "vs 0.15" and "vs 0.12" beside each other the subject is the arm in neither.
        columns = reader.form.columns
        named = {reader.draft.arms.find(c.against) for c in columns if c.against}
        others = [arm for arm in order if arm not in named] or [a for a in order if a != against]
        pairs = [(arm, against) for arm in reversed(others)]
    return [(a, b, kind) for kind in ("difference", "relative") for a, b in pairs]


def _change(
    reader: Reader, spot: Printed, ours: Number | None, theirs: Number | None
) -> Derived | None:
    """The percentage in the brackets of "-0.079 (-3.6%)"."""
    change = spot.read.change
    if change is None or ours is None or theirs is None:
        return None
    metric = metric_of(reader.draft, spot.sense, ours)
    return Derived("relative", change, (ours,), (theirs,), metric, (), spot.read.unsigned)


def _row_numbers(reader: Reader, row: Sequence[Printed]) -> list[Number]:
    """What a row of an arm is compared by: its mean, else all its measurements of one metric."""
    columns = reader.form.columns
    values = [s for s in row if columns[s.nth].role == "value" and s.value is not None]
    values = [s for s in values if not s.sense.setting]
    means = [s for s in values if columns[s.nth].statistic == "mean"]
    chosen = means[:1] or [s for s in values if columns[s.nth].place.shots is not None]
    if not chosen and len(values) == 1:
        chosen = values
    return [s.value for s in chosen if s.value is not None]


def _down(reader: Reader, sense: Sense, spots: Sequence[Printed]) -> list[Lookup]:
    """A column of differences between rows that are arms."""
    arms = reader.draft.arms
    against = arms.find(sense.against) if sense.against else None
    for spot in spots:
        if against is None and spot.read.number is None and labels.is_baseline(spot.read.words):
            against = reader.form.rows[spot.row].arm
    rows = reader.form.rows
    bases = {s.row: s for s in spots if against and rows[s.row].arm == against}
    numbers = {row: _row_numbers(reader, reader.spots[row]) for row in bases}
    first = next(iter(bases), None)
    if first is None or not numbers[first]:
        return [
            Lookup(
                spot.read.number,
                str(reader.form.rows[spot.row].arm),
                against or "",
                metric_of(reader.draft, spot.sense, spot.read.number),
                spot.read.place.over(spot.sense.place),
            )
            for spot in spots
            if spot.read.number is not None and reader.form.rows[spot.row].arm and against
        ]

    def base_of(spot: Printed) -> int | None:
        """The row of the base: of several, the one of the same epoch or step."""
        same = [row for row in bases if rows[row].place == rows[spot.row].place]
        return first if len(bases) == 1 else same[0] if len(same) == 1 else None

    def derive(kind: str) -> list[Derived | None]:
        return [
            _made(reader, spot, _row_numbers(reader, reader.spots[spot.row]), numbers[base], kind)
            for spot in spots
            if spot.row not in bases and (base := base_of(spot)) is not None
        ]

    reader.derive(best(("difference", "relative"), derive))
    return []


def _between_rows(reader: Reader, spots: Sequence[Printed]) -> None:
    """A row of differences under two rows that are arms."""
    rows = [row for row in reader.spots if reader.form.rows[row[0].row].arm]
    if len(rows) != 2:
        return
    for spot in spots:
        first, second = rows[0][spot.nth].value, rows[1][spot.nth].value
        made = best(
            ((second, first), (first, second)),
            lambda pair, spot=spot: [_made(reader, spot, [pair[0]], [pair[1]], "difference")],  # type: ignore[misc]
        )
        reader.derive([replace(one, unsigned=spot.read.number is None) for one in made])


def _winners(reader: Reader, spots: Sequence[Printed]) -> None:
    """ "A (+3.6 %)" in a column of winners: A against the other arm of its row."""
    for spot in spots:
        row = _numbers_by_arm(reader, reader.spots[spot.row])
        winner = reader.draft.arms.find(bare(spot.read.words).split("(")[0])
        others = [arm for arm in row if arm != winner]
        if winner not in row or len(others) != 1:
            continue
        ours, theirs = row[winner].value, row[others[0]].value
        found = _change(reader, spot, ours, theirs)
        steps = _made(reader, spot, [ours], [theirs], "difference") if found is None else None
        reader.derive([each for each in (found, steps) if each is not None])


def brackets(reader: Reader) -> None:
    """Changes in brackets beside measurements: against the first arm, or the row above."""
    roles = reader.form.columns
    for column, sense in enumerate(roles):
        spots = [row[column] for row in reader.spots]
        changed = [s for s in spots if s.read.change and sense.role == "value" and s.value]
        if not changed:
            continue
        first = next((at for at, c in enumerate(roles) if c.arm and c.role == "value"), column)

        def derive(reading: tuple[str, str], spots: Any = changed, first: int = first) -> Any:
            beside, kind = reading
            return [
                _bracket(reader, spot, first if beside == "first" else -1, kind) for spot in spots
            ]

        ways = ("first", "above") if first != column else ("above",)
        kinds = ("relative", "difference")
        reader.derive(best([(way, kind) for way in ways for kind in kinds], derive))


def _bracket(reader: Reader, spot: Printed, first: int, kind: str) -> Derived | None:
    if first < 0 and spot.row == 0:
        return None
    other = reader.spots[spot.row][first] if first >= 0 else reader.spots[spot.row - 1][spot.nth]
    made = _change(reader, spot, spot.value, other.value)
    return made if made is None or kind == "relative" else replace(made, kind="difference")


def statistics(reader: Reader) -> None:
    """Rows such as 变化 under 初始 and 最终: the change from first to last."""
    rows = {sense.statistic: at for at, sense in enumerate(reader.form.rows)}
    if not {"change", "first", "last"} <= rows.keys():
        return

    def derive(kind: str) -> list[Derived | None]:
        made = []
        for spot in reader.spots[rows["change"]]:
            if spot.sense.role == "value":
                last = reader.spots[rows["last"]][spot.nth].value
                first = reader.spots[rows["first"]][spot.nth].value
                made.append(_made(reader, spot, [last], [first], kind))
        return made

    reader.derive(best(("difference", "relative"), derive))
