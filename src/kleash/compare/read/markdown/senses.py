"""What the rows and columns of a table stand for, and what the headings above it add.

A cell means what its column says, then its row, then the headings, innermost first. So a row may
be an arm and a column a step, or the other way round, and a heading may give the epoch.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from kleash.compare.read import Where, in_names, names
from kleash.compare.read.markdown import labels
from kleash.compare.read.markdown.labels import Arms, Axis
from kleash.compare.read.markdown.numbers import HERE, Place, places, reading
from kleash.compare.read.markdown.text import Block, Grid, bare

Role = Literal["value", "difference", "remark", "winner", "label"]
NOWHERE = Where("")
PLACED: tuple[Axis, ...] = ("step", "epoch", "shots", "items")


@dataclass(frozen=True)
class Sense:
    """What a row, a column or a heading stands for, as far as it says."""

    role: Role = "value"
    arm: str | None = None
    metric: str = ""
    statistic: str = ""
    setting: str = ""
    place: Place = HERE
    against: str = ""
    seed: int | None = None

    def over(self, other: Sense) -> Sense:
        """This sense, and the other's where this says nothing."""
        said = {name: own for name, own in vars(self).items() if own != getattr(Sense, name)}
        return replace(other, **said | {"place": self.place.over(other.place)})


@dataclass(frozen=True)
class Shape:
    """A table understood: a sense for every row and for every column but the first."""

    head: Sense
    columns: tuple[Sense, ...]
    rows: tuple[Sense, ...]


def head_of(block: Block, arms: Arms, *, title: int) -> Sense:
    """What the headings above a block say, the innermost first; a title names no single arm."""
    texts = [(heading.text, heading.line != title) for heading in reversed(block.headings)]
    if block.lead.rstrip().endswith((":", "：")):
        texts.insert(0, (block.lead, True))
    found = Sense()
    for text, inner in texts:
        arm = None
        if inner or labels.pairs(text) or len(arms.names) < 2:
            arm = labels.heading_arm(arms, text)
        metric, seed = names.mention(text), labels.seed_of(text)
        named = arm is not None and names.spelling(text) == names.spelling(arm)
        if names.spelling(metric) == "kl" and (named or not inner):
            metric = ""  # "KL 对比", "无 KL:" name what was changed, not what was measured
        found = found.over(Sense(arm=arm, metric=metric, place=places(text)[0], seed=seed))
    return found


def _is_number(text: str) -> bool:
    number = reading(text, NOWHERE).number
    return number is not None and number.state != "missing"


def _fills(text: str) -> bool:
    """Whether a cell could be a measurement: a number, or one that is missing."""
    return reading(text, NOWHERE).number is not None


def _is_setting(label: str) -> bool:
    return names.key(label) is not None and names.metric(label) is None


def _is_metric(label: str) -> bool:
    kind, rest = labels.statistic(label)
    return names.metric(label) is not None or (
        bool(kind) and (not rest or bool(names.mention(rest)))
    )


def _is_coefficient(header: str) -> bool:
    known = names.key(header)
    treats = known is not None and known.kind in ("treatment", "must match")
    return treats or names.spelling(header) in ("kl", "β")


def _mostly(items: Sequence[str], fits: Callable[[str], bool]) -> bool:
    return bool(items) and 2 * sum(map(fits, items)) >= len(items)


def axis_of(grid: Grid, arms: Arms) -> Axis | None:
    """What the rows of a table are; None if neither header nor labels say."""
    first = grid.header[0]
    rows = [row[0] for row in grid.rows[:200] if row[0]]
    axis = labels.axis_of(first)
    if axis in (None, "arm") and _mostly(rows, _is_setting):
        return "setting"
    if axis is not None:
        return axis
    if _is_coefficient(first) and _mostly(
        rows, lambda label: labels.beside(first, label) is not None
    ):
        return "arm"
    for name in PLACED:
        if _mostly(rows, lambda label, name=name: _is_only(label, name)):  # type: ignore[misc]
            return name
    if _mostly(rows, _is_metric):
        return "metric"
    if _mostly(rows, lambda label: labels.pair_label(label) is not None or _leashed(label)):
        return "arm"
    headed = any(names.metric(header) or places(header)[0] for header in grid.header[1:])
    return "arm" if headed or _mostly(rows, lambda label: arms.find(label) is not None) else None


def _leashed(label: str) -> bool:
    return in_names.leash(label) is not None


def _is_only(label: str, name: str) -> bool:
    place, rest = places(label)
    return getattr(place, name) is not None and not re.sub(r"[()（）,，]", "", rest)


def lies_down(grid: Grid) -> bool:
    """Whether the first header names what the other headers are: `| Step | 5 | 10 | 15 |`."""
    first, *others = grid.header
    placed = labels.axis_of(first) in PLACED or (_is_coefficient(first) and not _is_metric(first))
    numbers = [header for header in others if _is_number(header)]
    rest = [header for header in others if not _is_number(header)]
    if not placed or len(numbers) < 2 or not all(map(_is_beside, rest)):
        return False
    # Where the first column counts steps itself, the numbers above are arms.
    rows = grid.rows[:200]
    return not rows or not all(_is_number(row[0]) for row in rows)


def _is_beside(header: str) -> bool:
    """Whether a column stands beside measurements: a mean, a difference, a remark."""
    beside = labels.kind_of(header) in ("remark", "winner") or labels.is_difference(header)
    return beside or bool(labels.statistic(header)[0])


def with_one_header(grid: Grid) -> Grid:
    """A table whose header goes on in its first row, as one with whole headers."""
    if len(grid.rows) < 2 or len(grid.header) < 3 or all(grid.header[1:]):
        return grid
    first = grid.rows[0]
    if not all(first[1:]) or any(map(_measures, first[1:])) or not grid.header[1]:
        return grid
    above, whole = "", list[str]()
    for over, under in zip(grid.header[1:], first[1:], strict=True):
        above = over or above
        whole.append(f"{above} {under}")
    header = (first[0] or grid.header[0], *whole)
    return replace(grid, header=header, rows=grid.rows[1:], lines=grid.lines[1:])


def _measures(text: str) -> bool:
    number = reading(text, NOWHERE).number
    return number is not None and number.unit not in ("step", "epoch")


def without_index(grid: Grid) -> Grid:
    """A table with one header, without a first column that only counts its rows."""
    grid = with_one_header(grid)
    if len(grid.header) < 3 or not labels.is_index(grid.header[0]):
        return grid
    return replace(grid, header=grid.header[1:], rows=tuple(row[1:] for row in grid.rows))


def shape(grid: Grid, head: Sense, arms: Arms) -> Shape | None:
    """What every row and column of a table stands for; None if that cannot be told."""
    first = grid.header[0]
    if lies_down(grid):
        columns = tuple(
            row_sense(text, _lying(first), first, arms)
            if _is_number(text)
            else column_sense(text, "arm", arms, filled=True, across=False)
            for text in grid.header[1:]
        )
        axis: Axis | None = "metric" if _mostly([r[0] for r in grid.rows], _is_metric) else "arm"
    else:
        axis = axis_of(grid, arms)
        columns = _columns(grid, axis, head, arms) if axis else ()
    if axis is None:
        return None
    rows = [row_sense(row[0], axis, first, arms) for row in grid.rows]
    for at in _labels(grid, axis, head) if not lies_down(grid) else ():
        columns = (*columns[: at - 1], Sense("label"), *columns[at:])
        kind, header = _lying(grid.header[at]), grid.header[at]
        for row, cells in enumerate(grid.rows):
            if rows[row].role == "value" and (
                _fills(cells[at]) or (kind in ("arm", "metric") and cells[at])
            ):
                rows[row] = rows[row].over(row_sense(cells[at], kind, header, arms))
    return Shape(head, columns, tuple(rows))


def _labels(grid: Grid, axis: Axis, head: Sense) -> list[int]:
    """Further columns that say what their rows are: an epoch, a seed, or a coefficient."""
    if axis in ("metric", "setting"):
        return []
    found = []
    for at, header in enumerate(grid.header[1:], 1):
        known = names.key(header)
        treats = known is not None and known.name == "leash.coefficient" and axis != "arm"
        named = labels.axis_of(header) == "arm" and axis != "arm"
        told = labels.axis_of(header) == "metric"
        placed = labels.axis_of(header) in (*PLACED, "seed")
        told = told and _mostly([row[at] for row in grid.rows], _is_metric)
        if placed or told or ((treats or named) and head.arm is None):
            found.append(at)
    return found


def _lying(first: str) -> Axis:
    return labels.axis_of(first) or "arm"


def row_sense(label: str, axis: Axis, first: str, arms: Arms) -> Sense:
    """What a row stands for, by its label and what its column is headed."""
    text = bare(label)
    if labels.is_best_step(text) and axis != "setting":
        metric = names.mention(labels.statistic(text)[1])
        return Sense(statistic="best step", metric=metric)
    if axis in (*PLACED, "seed"):
        return _placed_row(text, axis)
    if axis == "setting":
        return Sense(setting=label)
    if axis == "arm":
        return _arm_row(label, first, arms)
    if _is_setting(text):
        return Sense(setting=label)
    return _metric_row(text)


def _placed_row(text: str, axis: Axis) -> Sense:
    number = reading(text, NOWHERE).number
    place = places(text)[0]
    if number is not None and number.value is not None and number.value.is_integer():
        if axis == "seed":
            return Sense(seed=int(number.value))
        at: dict[str, Any] = {axis: int(number.value)}
        place = place._replace(**at)
    if axis == "seed" and labels.seed_of(text) is not None:
        return Sense(seed=labels.seed_of(text))
    if place:
        return Sense(place=place)
    kind, rest = labels.statistic(text)
    role: Role = "difference" if labels.is_difference(text) else "value" if kind else "remark"
    return Sense(role, statistic=kind, metric=names.mention(rest))


def _arm_row(label: str, first: str, arms: Arms) -> Sense:
    text = bare(label)
    if labels.is_difference(text) and arms.find(text) is None:
        return Sense("difference", against=labels.versus(text))
    kind, rest = labels.statistic(text)
    if kind and not rest:
        return Sense(statistic=kind, arm="")
    place, rest = places(text)
    name, seed = labels.without_seed(rest)
    coefficient = _is_coefficient(first) and labels.axis_of(first) != "arm"
    pair = labels.beside(first, name) if coefficient else None
    if not name:
        return Sense(place=place, seed=seed)
    whole = name if place or seed is not None else label
    return Sense(arm=arms.add(whole, pair), place=place, seed=seed)


def _metric_row(text: str) -> Sense:
    place, rest = places(text)
    kind, metric = labels.statistic(rest)
    if labels.is_difference(text) and not kind:
        return Sense("difference", place=place)
    return Sense(metric=metric, statistic=kind, place=place)


def _columns(grid: Grid, axis: Axis, head: Sense, arms: Arms) -> tuple[Sense, ...]:
    cells = [[row[at] for row in grid.rows] for at in range(1, len(grid.header))]
    named = any(names.metric(header) for header in grid.header[1:])
    compared = any(labels.is_difference(header) for header in grid.header[1:])
    # Unknown headers over steps are arms, unless the table belongs to one or they look like code.
    coded = any(re.search(r"[a-z][_/][a-z]", header) for header in grid.header[1:])
    arms_across = axis in ("metric", "setting") or (
        axis in (*PLACED, "seed") and not named and (compared or (head.arm is None and not coded))
    )
    return tuple(
        column_sense(header, axis, arms, filled=any(map(_fills, column)), across=arms_across)
        for header, column in zip(grid.header[1:], cells, strict=True)
    )


def column_sense(header: str, axis: Axis, arms: Arms, *, filled: bool, across: bool) -> Sense:
    """What a column stands for, by its header; `across` where unknown headers are arms."""
    text = bare(header)
    role = labels.kind_of(text)
    if role == "remark" or role == "winner":
        return Sense(role)
    if labels.is_difference(text):
        kind = "mean" if re.search(r"平均|mean|avg|average", text, re.I) else ""
        against = labels.versus(text)
        return Sense("difference", place=places(text)[0], statistic=kind, against=against)
    if role == "value":
        return Sense()
    seed = labels.seed_of(text)
    if seed is not None:  # "Best, seed 1" is the best of that run
        best_step = labels.is_best_step(text) or text[:4].casefold() == "step"
        kind = "best step" if best_step else labels.statistic(text)[0]
        return Sense(statistic=kind, seed=seed)
    place, rest = places(text)
    if not rest:
        return Sense(place=place)
    pair = labels.pair_label(rest)
    written, name = labels.arm_and_metric(rest, arms)
    if name and pair is None:
        return Sense(arm=arms.add(written), metric=name, place=place)
    if pair or (across and axis in ("metric", "setting") and (filled or axis == "setting")):
        return Sense(arm=arms.add(rest if place else header, pair), place=place)
    return _measured(rest if place else header, place, arms, filled=filled, across=across)


def _measured(rest: str, place: Place, arms: Arms, *, filled: bool, across: bool) -> Sense:
    """A column that is not an arm by its place: a metric, a statistic, a setting, or an arm."""
    if labels.is_best_step(rest):
        metric = names.mention(labels.statistic(rest)[1])
        return Sense(statistic="best step", metric=metric, place=place)
    kind, metric = labels.statistic(rest)
    if names.metric(rest) is not None or kind:
        return Sense(statistic=kind, metric=metric, place=place)
    if across and labels.key_of(rest) in arms.names:
        return Sense(arm=arms.find(rest), place=place)
    if _is_setting(rest):
        return Sense(setting=rest)
    arm = arms.find(rest)
    if arm or (across and filled):
        return Sense(arm=arm or arms.add(rest), place=place)
    return Sense("value" if filled else "remark", metric=rest, place=place)
