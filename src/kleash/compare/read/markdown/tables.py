"""Tables: every cell becomes a measurement, a point of a series, a setting, or a derived number.

What is derived (means, differences, changes in brackets) is kept apart from what was measured, with
the numbers that it should follow from. Nobody writes whether "差异" is ours minus theirs or the
other way round, or whether "-1.8%" is a share: a column is read as most of its numbers follow.
Long, because what is a mean or a difference of others is no measurement.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Literal

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
Relation = Literal["difference", "relative"]
KINDS: tuple[Relation, ...] = ("difference", "relative")


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
    return work_out(reader)


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
    elif read.number is not None and sense.role == "value" and not _is_mean(reader, spot):
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


def _parts_of_mean(reader: Reader, spot: Printed) -> list[Number]:
    """The numbers that a mean is of: the other shots of its row, or the steps above it.

    Else all measurements beside or above it, where most of its column or row is the mean of them.
    """
    rows, columns = reader.form.rows, reader.form.columns
    if columns[spot.nth].statistic == "mean":
        near = [
            one for one in reader.spots[spot.row] if columns[one.nth].place and one.nth != spot.nth
        ]
        if not near:
            every = [_come_out(row[spot.nth], _numbers_beside(reader, row)) for row in reader.spots]
            if len(every) > 2 and 3 * every.count(True) >= 2 * len(every):
                near = _numbers_beside(reader, reader.spots[spot.row])
    elif rows[spot.row].statistic == "mean":
        cells = [(rows[row[0].row], row[spot.nth]) for row in reader.spots]
        near = [one for at, one in cells if at.place]
        near += [o for at, o in cells if (at.arm or at.seed is not None) and not at.place]
        if not near:
            above = {one.nth: _numbers_above(reader, one) for one in reader.spots[spot.row]}
            values = [one for one in reader.spots[spot.row] if columns[one.nth].role == "value"]
            every = [_come_out(one, above[one.nth]) for one in values]
            if True in every and every.count(False) < 2 and len(above[spot.nth]) > 2:
                near = above[spot.nth]
    else:
        near = []
    return [one.value for one in near if one.value is not None]


def _numbers_beside(reader: Reader, row: Sequence[Printed]) -> list[Printed]:
    """The numbers of a row that are no statistics."""
    own = ((one, reader.form.columns[one.nth]) for one in row if one.read.number is not None)
    return [o for o, at in own if at.role == "value" and not (at.statistic or at.setting)]


def _numbers_above(reader: Reader, spot: Printed) -> list[Printed]:
    """The numbers of a column that are no statistics."""
    plain = (row[spot.nth] for row in reader.spots if not reader.form.rows[row[0].row].statistic)
    return [one for one in plain if one.read.number is not None]


def _come_out(whole: Printed, parts: Sequence[Printed]) -> bool | None:
    """Whether a number is the mean of others; None where that cannot be told."""
    known = [n for one in parts if (n := one.value) is not None and n.value is not None]
    if whole.read.number is None or whole.read.number.value is None or len(known) < 2:
        return None
    return follows(Derived("mean", whole.read.number, tuple(known)))


def _is_mean(reader: Reader, spot: Printed) -> bool:
    """Whether a cell is the mean of others in its table; it is then derived, not measured."""
    numbers = _parts_of_mean(reader, spot) if spot.sense.statistic == "mean" else []
    if len(numbers) < 2 or spot.read.number is None:
        return False
    metric = metric_of(reader.draft, spot.sense, spot.read.number)
    arms = (spot.sense.arm,) if spot.sense.arm else ()
    made = Derived("mean", spot.read.number, tuple(numbers), (), metric, arms)
    reader.draft.source.derived.append(made)
    return True


# --- what a table works out from its own numbers


Way = Callable[[Printed], Iterable[Derived | None]]
"""What a cell would follow from, in one reading of its column or row."""


def work_out(reader: Reader) -> list[Lookup]:
    """Changes, differences and winners, each column in the way that most of its numbers follow."""
    columns, rows, lookups = reader.form.columns, reader.form.rows, list[Lookup]()
    every = [[row[at] for row in reader.spots] for at in range(len(columns))]
    first = next((at for at, one in enumerate(columns) if one.arm and one.role == "value"), None)
    for at, spots in enumerate(every):
        changed = [one for one in spots if one.read.change and one.value]
        if columns[at].role == "value" and changed:
            _settle(reader, changed, _brackets(reader, None if first == at else first))
    at_row = {one.statistic: at for at, one in enumerate(rows)}
    if {"change", "first", "last"} <= at_row.keys():
        last, begin = (reader.spots[at_row[one]] for one in ("last", "first"))
        ends = [([last[one.nth].value], [begin[one.nth].value]) for one in last]
        own = [one for one in reader.spots[at_row["change"]] if one.sense.role == "value"]
        ways = [
            lambda one, kind=kind: [_difference(reader, one, kind, *ends[one.nth])]
            for kind in KINDS
        ]
        _settle(reader, own, ways)
    for at, sense in enumerate(columns):
        if sense.role == "winner":
            _settle(reader, every[at], [lambda one: _won(reader, one)])
        elif sense.role == "difference" and not any(row.arm for row in rows):
            _settle(reader, every[at], _across(reader, sense, every[at]))
        elif sense.role == "difference":
            lookups += _down(reader, sense, every[at])
    arms = [reader.spots[at] for at, row in enumerate(rows) if row.arm]
    for row, sense in zip(reader.spots, rows, strict=True):
        for one in row if sense.role == "difference" and len(arms) == 2 else ():
            ours, theirs = ([arm[one.nth].value] for arm in arms)
            made = [
                [_difference(reader, one, "difference", *pair)]
                for pair in ((theirs, ours), (ours, theirs))
            ]
            reader.draft.source.derived += best(made, lambda each: each)
    return lookups


def _settle(reader: Reader, spots: Sequence[Printed], ways: Iterable[Way]) -> None:
    reader.draft.source.derived += best(ways, lambda way: [one for s in spots for one in way(s)])


def _row_of_arms(reader: Reader, spot: Printed) -> dict[str, Number]:
    """The numbers of a cell's row that belong to arms by their column."""
    columns = reader.form.columns
    row = ((columns[one.nth], one.value) for one in reader.spots[spot.row])
    return {str(at.arm): n for at, n in row if at.arm and at.role == "value" and n is not None}


def _across(reader: Reader, sense: Sense, spots: Sequence[Printed]) -> Iterator[Way]:
    """A column of differences between columns that are arms, the likelier ways first."""
    find = reader.draft.arms.find
    every = {spot.row: _row_of_arms(reader, spot) for spot in spots}
    order = list(dict.fromkeys(arm for row in every.values() for arm in row))
    against = find(sense.against) if sense.against else None
    if against is None:
        pairs = [(order[1], order[0]), (order[0], order[1])] if len(order) == 2 else []
    else:
        # With "vs 0.15" and "vs 0.12" beside each other the subject is the arm in neither.
        named = {find(one.against) for one in reader.form.columns if one.against}
        others = [arm for arm in order if arm not in named] or [a for a in order if a != against]
        pairs = [(arm, against) for arm in reversed(others)]
    for kind in KINDS:
        for pair in pairs:

            def way(spot: Printed, pair: Any = pair, kind: Relation = kind) -> list[Derived]:
                sides = [[own] for arm in pair if (own := every[spot.row].get(arm))]
                if len(sides) < 2:
                    return []
                made = (_difference(reader, spot, kind, *sides), _change(reader, spot, *sides))
                return [replace(one, arms=pair) for one in made if one is not None]

            yield way


def _down(reader: Reader, sense: Sense, spots: Sequence[Printed]) -> Iterator[Lookup]:
    """A column of differences between rows that are arms; of arms in other tables, later."""
    arms, rows = reader.draft.arms, reader.form.rows
    against = arms.find(sense.against) if sense.against else None
    for spot in spots:
        if against is None and spot.read.number is None and labels.is_baseline(spot.read.words):
            against = rows[spot.row].arm
    numbers = {spot.row: _row_numbers(reader, reader.spots[spot.row]) for spot in spots}
    bases = [row for row in numbers if against and rows[row].arm == against]
    if bases and numbers[bases[0]]:

        def way(spot: Printed, kind: Relation) -> list[Derived | None]:
            # Of several rows of the base the one of the same epoch or step.
            same = [row for row in bases if rows[row].place == rows[spot.row].place]
            base = bases if len(bases) == 1 else same
            if spot.row in bases or len(base) != 1:
                return []
            return [_difference(reader, spot, kind, numbers[spot.row], numbers[base[0]])]

        _settle(reader, spots, [partial(way, kind=kind) for kind in KINDS])
        return
    for spot in spots:
        one, arm = spot.read.number, rows[spot.row].arm
        if one is not None and arm and against:
            metric = metric_of(reader.draft, spot.sense, one)
            yield Lookup(one, arm, against, metric, spot.read.place.over(spot.sense.place))


def _row_numbers(reader: Reader, row: Sequence[Printed]) -> list[Number]:
    """What a row of an arm is compared by: its mean, else all its measurements of one metric."""
    columns = reader.form.columns
    own = ((columns[one.nth], one) for one in row if not one.sense.setting)
    values = [(at, one.value) for at, one in own if at.role == "value" and one.value is not None]
    means = [number for at, number in values if at.statistic == "mean"]
    shots = [number for at, number in values if at.place.shots is not None]
    return means[:1] or shots or ([values[0][1]] if len(values) == 1 else [])


def _won(reader: Reader, spot: Printed) -> list[Derived | None]:
    """ "A (+3.6 %)" in a column of winners: A against the other arm of its row."""
    row = _row_of_arms(reader, spot)
    winner = reader.draft.arms.find(bare(spot.read.words).split("(")[0])
    others = [arm for arm in row if arm != winner]
    if winner not in row or len(others) != 1:
        return []
    ours, theirs = [row[winner]], [row[others[0]]]
    found = _change(reader, spot, ours, theirs)
    return [found or _difference(reader, spot, "difference", ours, theirs)]


def _brackets(reader: Reader, first: int | None) -> Iterator[Way]:
    """Changes in brackets beside measurements: against the first arm, or the row above."""
    for beside in (True, False) if first is not None else (False,):
        for kind in reversed(KINDS):

            def way(spot: Printed, kind: Relation = kind, beside: bool = beside) -> Any:  # noqa: FBT001
                if not beside and spot.row == 0:
                    return []
                row = reader.spots[spot.row if beside else spot.row - 1]
                other = row[first if beside and first is not None else spot.nth]
                made = _change(reader, spot, [spot.value], [other.value])
                return [replace(made, kind=kind) if made else None]

            yield way


Numbers = Sequence[Number | None]


def _difference(
    reader: Reader, spot: Printed, kind: Relation, of: Numbers, minus: Numbers
) -> Derived | None:
    """A difference, with the sign its arrow gives it where none is printed."""
    ours, theirs = (tuple(one for one in side if one is not None) for side in (of, minus))
    one = _signed(spot)
    if one is None or not ours or not theirs:
        return None
    metric = metric_of(reader.draft, spot.sense, ours[0])
    if not one.unit and ours[0].unit == theirs[0].unit == "%":
        one = percent(Reading("", one)).number or one
    if one.unit == "%" and "%" not in (ours[0].unit, theirs[0].unit):
        kind = "relative"
    unsigned = "+" not in one.text and "-" not in one.text and spot.read.number is None
    arms = tuple(filter(None, (spot.sense.arm,)))
    made = Derived(kind, one, ours, theirs, metric, arms, unsigned)
    ends = allowed(made) if kind == "relative" else None
    # Of numbers near 0 any share follows: that speaks for no reading.
    return None if ends is not None and ends[1] - ends[0] > WIDE else made


def _change(reader: Reader, spot: Printed, of: Numbers, minus: Numbers) -> Derived | None:
    """The percentage in the brackets of "-0.079 (-3.6%)"."""
    (ours,), (theirs,), change = of, minus, spot.read.change
    if change is None or ours is None or theirs is None:
        return None
    metric = metric_of(reader.draft, spot.sense, ours)
    return Derived("relative", change, (ours,), (theirs,), metric, (), spot.read.unsigned)


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
