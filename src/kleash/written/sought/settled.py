"""What logs have for each number of a table: the reading that has it, else the surest that has not.

A number that no likely reading has is a slip of the surest, unless it may be something else: a rank
or a ratio beside measured numbers, or one of a row or a column that is of other runs.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from kleash.written.curves import Thread
from kleash.written.printed import Figure, axis_word
from kleash.written.sought.lines import Line, Token
from kleash.written.sought.measures import Measures
from kleash.written.sought.readings import Reading

SURE = 9.0  # how much must speak for a reading that has slips
NAMED = 2.0  # the same for one that labels name completely, or that has none
LEARNT = 12.0  # the same for one that tells whose a label is
RIVAL = 6.0  # by how much less may speak for a reading that acquits a number
CERTAIN = 20.0  # the same for one of which a slip may be any number
PLACED = -4.0  # the same for one whose runs and steps labels name
LEAST = 3  # numbers that must fit of such a one
MOSTLY = 3  # numbers of a whole table that fit for each that does not
SHARE = 0.4  # of the numbers of a line that may be slips
AT = {
    "max": ("max at", "latest max at", "max epoch at"),
    "min": ("min at", "min epoch at"),
}  # where a best is
_SUM = re.compile(r"合计|总|累计|(?<![a-z])(?:sum|total)(?![a-z])", re.I)
_LIST = re.compile(r"\s*[\d.]+%?(?:\s*[,、/]\s*[\d.]+%?)+\s*")
Spot = tuple[int, int, int]
"""A line of the page, a column of its table, and which number of the cell."""


@dataclass(frozen=True)
class Kept:
    """What logs have for a number, as printed there, and where it lies."""

    token: Token
    value: float
    right: bool
    file: str
    runs: int
    arm: str
    reading: Reading
    down: bool
    """Whether the numbers of its column tell, not those of its row."""
    copied: bool
    """Whether logs have it for another place of its line."""
    thread: Thread
    at: tuple[int, int, int]
    """Its unit, metric and place."""


def settled(
    lines: Sequence[Line], found: Mapping[int, list[Reading]], known: Measures
) -> dict[Spot, Kept]:
    """For each number the reading that has it, else the surest that has not."""
    right: dict[Spot, Kept] = {}
    wrong: dict[Spot, Kept] = {}
    for nth, line in enumerate(lines):
        readings = found[nth]
        best = next((one for one in readings if accepted(one)), None)
        if best is None:
            continue
        near = [one for one in readings if one.score > best.score - RIVAL]
        for at, token in enumerate(line.tokens):
            spot = (line.table.sheet.table.lines[token.row], token.column, token.nth)
            fit = next((one for one in near if one.fits[at]), None)
            if fit is not None:
                _surest(right, spot, _kept(line, at, fit, known, right=True))
            elif token.figure is None and not line.block:
                _open(right, spot, (line, at), near, known)
            elif best.fits[at] is False and _possible(line, at, best, known):
                _surest(wrong, spot, _kept(line, at, best, known, right=False))
    wrong = {
        spot: one
        for spot, one in wrong.items()
        if spot not in right or _stands(one.reading, right[spot].reading)
    }
    right = {spot: one for spot, one in right.items() if spot not in wrong}
    for tokens in _by_table(lines):
        wrong = _without_strangers(tokens, wrong, right)
        wrong = _steps_of_bests(tokens, right, known) | wrong
    return wrong | right


def _steps_of_bests(
    tokens: Mapping[Spot, Token], right: Mapping[Spot, Kept], known: Measures
) -> dict[Spot, Kept]:
    """Steps that stand in one cell with a best of a curve, and at which it is not so."""
    off, fine = dict[Spot, Kept](), 0
    for spot, token in tokens.items():
        best = right.get((*spot[:2], 0))
        figure = token.figure
        if spot[2] != 1 or best is None or figure is None or figure.decimals > 0:
            continue
        unit, metric, place = best.at
        steps = [known.at[word, 0.0, 0.0] for word in AT.get(known.places[place][0], ())]
        values = known.values[unit, metric, steps].tolist()
        if figure.value in values:
            fine += 1
        elif values and spot not in right and figure.value in best.thread.points:
            off[spot] = replace(best, token=token, value=values[0], right=False)
    return off if len(off) <= fine else {}


def _is_summed(line: Line, at: int, one: Reading, known: Measures) -> bool:
    """Whether labels call a number a sum where a reading has something else of several runs."""
    token = line.tokens[at]
    labels = f"{line.table.row(token)} {line.table.column(token)}"
    return bool(known.units[int(one.units[at])].over) and _SUM.search(labels) is not None


def _is_inside(line: Line, at: int, one: Reading) -> bool:
    """Whether a reading of a whole table has most of it, also in the row and column of a number."""
    if not line.block:
        return True
    fits = [token for token, fit in zip(line.tokens, one.fits, strict=True) if fit]
    own = line.tokens[at]
    in_row = any(token.row == own.row for token in fits)
    in_column = any(token.column == own.column for token in fits)
    return in_row and in_column and one.slips * MOSTLY <= len(fits)


def _of_another(token: Token, at: int, one: Reading, known: Measures) -> bool:
    """Whether a number is what a reading has for another token of the line."""
    there = (one.units >= 0) & (one.metrics >= 0) & (one.places >= 0)
    there[at] = False
    every = one.scale * known.values[one.units[there], one.metrics[there], one.places[there]]
    figure = token.figure
    return figure is not None and bool((np.abs(every - figure.value) <= 1.01 * figure.half).any())


def _open(
    right: dict[Spot, Kept],
    spot: Spot,
    cell: tuple[Line, int],
    near: Sequence[Reading],
    known: Measures,
) -> None:
    """What readings have for a cell that is still open, where all of them say the same."""
    line, at = cell
    places = [(one.units[at], one.metrics[at], one.places[at]) for one in near]
    if any(-1 in place or not np.isfinite(known.values[place]) for place in places):
        return
    made = [_kept(line, at, one, known, right=True) for one in near]
    if len({f"{one.value:.9g}" for one in made}) == 1:
        _surest(right, spot, made[0])


def _stands(wrong: Reading, right: Reading) -> bool:
    """Whether a number is wrong though another line has a reading that it fits."""
    if right.against and wrong.complete:
        return True
    return right.score < min(wrong.score - RIVAL, LEARNT)


def _surest(found: dict[Spot, Kept], spot: Spot, one: Kept) -> None:
    if spot not in found or found[spot].reading.score < one.reading.score:
        found[spot] = one


def _is_of_runs(line: Line, at: int, one: Reading, known: Measures) -> bool:
    """Whether a cell lists a number for each run where a reading has one for all of them."""
    token, unit = line.tokens[at], known.units[int(one.units[at])]
    text = line.table.sheet.table.rows[token.row][token.column]
    count = len(line.table.tokens.get((token.row, token.column), ()))
    listed = _LIST.fullmatch(text) is not None
    return listed and bool(unit.over) and count == len(known.seeds[unit.group])


def _possible(line: Line, at: int, one: Reading, known: Measures) -> bool:
    """Whether a number may be a slip of what a reading has: no rank, ratio or count of its kind."""
    token = line.tokens[at]
    figure = token.figure
    if figure is None or _is_of_runs(line, at, one, known) or not _is_inside(line, at, one):
        return False
    others = [
        t.figure.value for t, fit in zip(line.tokens, one.fits, strict=True) if fit and t.figure
    ]
    beside = [
        other.figure
        for (row, column), tokens in line.table.tokens.items()
        for other in tokens
        if other.figure and (row == token.row) != (column == token.column)
    ]
    metric, place = int(one.metrics[at]), int(one.places[at])
    value = one.scale * float(known.values[int(one.units[at]), metric, place])
    fraction = axis_word(line.table.columns[token.column]) and not value.is_integer()
    if fraction or _is_summed(line, at, one, known) or _is_of_printed(figure, one, at, known):
        return False  # a step is a whole number
    near = (min(figure.half, other.half) >= abs(other.value - value) for other in beside)
    if figure.digits >= LEAST and any(near):
        return True  # what should be here stands beside it
    if not _alike(figure.value, value):
        return False
    if any(other.value == figure.value for other in beside):
        return True
    every = one.scale * known.values[:, metric, place]
    every = every[np.isfinite(every)]
    if one.score >= CERTAIN and one.slips * 4 <= len(others):
        return True
    if one.complete and one.slips == 1 and len(others) >= LEAST:
        return True
    room = max(float(np.ptp(every)), *(abs(value - other) for other in others), 0.1 * abs(value))
    return abs(figure.value - value) <= 1.5 * room


def _is_of_printed(figure: Figure, one: Reading, at: int, known: Measures) -> bool:
    """Whether a number is the mean of a curve's points as they would be printed."""
    unit, place = known.units[int(one.units[at])], known.places[int(one.places[at])]
    thread = known.threads.get((unit.group, known.metrics[int(one.metrics[at])]))
    if place[0] != "mean" or unit.over or thread is None or figure.decimals < 0:
        return False
    points = np.round([one.scale * value for value in thread.points.values()], figure.decimals)
    return bool(abs(points.mean() - figure.value) <= figure.half * (1 + 1e-6))


def _alike(one: float, other: float) -> bool:
    """Whether two numbers are of one order of magnitude."""
    return 0.1 * abs(other) <= abs(one) <= 10 * abs(other)


def _by_table(lines: Sequence[Line]) -> list[dict[Spot, Token]]:
    """The numbers of every table."""
    found: dict[int, dict[Spot, Token]] = defaultdict(dict)
    for line in lines:
        for one in line.tokens:
            spot = (line.table.sheet.table.lines[one.row], one.column, one.nth)
            found[line.table.sheet.nth][spot] = one
    return list(found.values())


def _without_strangers(
    tokens: Mapping[Spot, Token], wrong: dict[Spot, Kept], right: Mapping[Spot, Kept]
) -> dict[Spot, Kept]:
    """Without rows and columns that are mostly wrong, or never right: they are of something else.

    Not so those whose numbers another row or column has: these were copied or swapped.
    """
    known = {(spot[1], spot[2]) for spot in tokens if spot in right}
    strangers = {
        spot for spot in tokens
        if spot in wrong and not wrong[spot].down and spot[1:] not in known
    }  # fmt: skip
    for axis in (0, 1):
        bands: dict[int, list[Spot]] = defaultdict(list)
        for spot in tokens:
            bands[spot[axis]].append(spot)
        for band in bands.values():
            bad = [spot for spot in band if spot in wrong]
            good = sum(spot in right for spot in band)
            kept = [wrong[spot] for spot in bad]
            copied = sum(one.copied for one in kept)
            if len(bad) <= max(1, good) or 2 * copied > len(bad) or _swapped(kept):
                continue
            if not _elsewhere(bad, bands.values(), tokens, axis):
                strangers.update(bad)
    return {spot: one for spot, one in wrong.items() if spot not in strangers}


def _swapped(bad: Sequence[Kept]) -> bool:
    """Whether numbers are each other's."""
    printed = sorted((f.value, f.half) for one in bad if (f := one.token.figure))
    right = sorted(one.value for one in bad)
    return all(
        abs(value - other) <= 1.01 * half
        for (value, half), other in zip(printed, right, strict=True)
    )


def _elsewhere(
    bad: Sequence[Spot], bands: Iterable[list[Spot]], tokens: Mapping[Spot, Token], axis: int
) -> bool:
    """Whether another row or column has most of some numbers, at the same places."""
    values = {(spot[1 - axis], spot[2]): _value(tokens[spot]) for spot in bad}
    own = bad[0][axis]
    for band in bands:
        if band[0][axis] != own:
            theirs = {(spot[1 - axis], spot[2]): _value(tokens[spot]) for spot in band}
            if 2 * sum(theirs.get(at) == value for at, value in values.items()) > len(bad):
                return True
    return False


def _value(token: Token) -> float | None:
    return token.figure.value if token.figure else None


def accepted(one: Reading) -> bool:
    """Whether enough speaks for a reading."""
    fits = sum(fit is True for fit in one.fits)
    if one.beside and one.complete and fits > one.slips:
        return True
    if one.slips > SHARE * (fits + one.slips):
        return False
    if one.placed and fits >= LEAST and len({*one.places.tolist()}) > LEAST:
        return one.score >= PLACED
    return one.score >= (NAMED if one.complete or not one.slips else SURE)


def _kept(line: Line, at: int, one: Reading, known: Measures, *, right: bool) -> Kept:
    token = line.tokens[at]
    copied = not right and _of_another(token, at, one, known)
    unit, metric, place = (int(axis[at]) for axis in (one.units, one.metrics, one.places))
    value = one.scale * float(known.values[unit, metric, place])
    group = known.units[unit]
    thread = known.threads[group.group, known.metrics[metric]]
    runs = len(known.seeds[group.group]) if group.over else 1
    return Kept(
        token, value, right, thread.file, runs, group.group, one, line.down, copied, thread,
        at=(unit, metric, place),
    )  # fmt: skip
