"""Numbers of tables that a log has: found by their labels, their neighbours and themselves.

People and trainers name things differently: "A (no KL)" is `alf_nokl`, "success" is
`val-core/alfworld/success_rate`. A line whose numbers are nearly all those of one reading of the
logs is that, and the few that are not are slips, unless another reading that is as likely has them.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from kleash.imports.markdown.draft import Draft
from kleash.written.book import Book
from kleash.written.curves import Thread, threads_of
from kleash.written.grids import grids
from kleash.written.logs import Held, Logs
from kleash.written.marks import Mark, State, number_mark
from kleash.written.page import Page
from kleash.written.printed import Cell, Sheet, axis_word, sheets
from kleash.written.relations import Node, node
from kleash.written.sought.lines import Labelled, Line, Token, labelled, lines_of
from kleash.written.sought.measures import Measures, Place, measures
from kleash.written.sought.naming import Items, Namer, items, places_in
from kleash.written.sought.readings import Reading, Search

SURE = 9.0  # how much must speak for a reading that has slips
NAMED = 2.0  # the same for one that labels name completely, or that has none
LEARNT = 12.0  # the same for one that tells whose a label is
RIVAL = 6.0  # by how much less may speak for a reading that acquits a number
CERTAIN = 20.0  # the same for one of which a slip may be any number
PLACED = -4.0  # the same for one whose runs and steps labels name
LEAST = 3  # numbers that must fit of such a one
SHARE = 0.4  # of the numbers of a line that may be slips
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


@dataclass(frozen=True)
class Sought:
    """The lines of tables, and by its number the readings of each, best first."""

    lines: Sequence[Line]
    found: Mapping[int, list[Reading]]
    known: Measures
    namer: Namer

    def kept(self) -> dict[Spot, Kept]:
        """What curves have for the numbers of tables."""
        return _settled(self.lines, self.found, self.known)


def sought_in(
    every: Sequence[Sheet], threads: Sequence[Thread], page: Page | None = None
) -> Sought | None:
    """The readings of all lines of tables."""
    tables = [labelled(sheet, page) for sheet in every]
    known = measures(threads, list(dict.fromkeys(_asked(tables))))
    if known is None:
        return None
    namer = Namer(known.groups)
    search = Search(known, namer)
    lines = [line for table in tables for line in lines_of(table)]
    found = {nth: search.readings(line) for nth, line in enumerate(lines)}
    namer.learn(_votes(lines, found, known))
    for nth, one in found.items():
        search.learn(lines[nth], [r for r in one[:1] if r.score >= SURE and accepted(r)])
    for nth in sorted(found, key=lambda nth: lines[nth].whole):  # steps after the bests there
        if not any(accepted(one) and not one.slips for one in found[nth][:1]):
            found[nth] = search.readings(lines[nth])
            best = [r for r in found[nth][:1] if r.score >= SURE and accepted(r)]
            search.learn(lines[nth], best)
    return Sought(lines, found, known, namer)


def _asked(tables: Iterable[Labelled]) -> Iterable[Place]:
    """The places that labels name."""
    for table in tables:
        for text in (*table.columns, *(one for row in table.rows for one in row), table.heads):
            yield from places_in(text)
        for at in table.counters:
            for row in table.sheet.table.rows:
                yield from places_in(f"{table.columns[at]} {row[at]}")


def _votes(
    lines: Sequence[Line], found: Mapping[int, list[Reading]], known: Measures
) -> dict[str, set[Items]]:
    """Labels of lines that are surely of one group."""
    votes: dict[str, set[Items]] = defaultdict(set)
    for nth, readings in found.items():
        best = readings[0] if readings else None
        if best is None or best.score < LEARNT:
            continue
        near = [one for one in readings if one.score > best.score - RIVAL]
        groups = {known.units[unit].group for one in near for unit in {*one.units.tolist()} - {-1}}
        if len(groups) == 1:
            votes[groups.pop()].add(items(lines[nth].shared))
    return votes


def _settled(
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
            elif token.figure is None:
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
    return wrong | right


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
    if _is_of_runs(line, at, one, known):
        return False
    figure = line.tokens[at].figure
    others = [
        t.figure.value for t, fit in zip(line.tokens, one.fits, strict=True) if fit and t.figure
    ]
    token = line.tokens[at]
    beside = [
        other.figure.value
        for (row, column), tokens in line.table.tokens.items()
        for other in tokens
        if other.figure and (row == token.row) != (column == token.column)
    ]
    metric, place = int(one.metrics[at]), int(one.places[at])
    value = one.scale * float(known.values[int(one.units[at]), metric, place])
    if axis_word(line.table.columns[token.column]) and not value.is_integer():
        return False  # a step is a whole number
    if figure is None or figure.value in beside:
        return figure is not None
    every = one.scale * known.values[:, metric, place]
    every = every[np.isfinite(every)]
    if one.score >= CERTAIN and one.slips * 4 <= len(others) and _alike(figure.value, value):
        return True
    room = max(float(np.ptp(every)), *(abs(value - other) for other in others), 0.1 * abs(value))
    return abs(figure.value - value) <= 1.5 * room


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
    return Kept(token, value, right, thread.file, runs, group.group, one, line.down, copied, thread)


def held_for(draft: Draft, logs: Logs) -> dict[tuple[int, int], Held]:
    """What logs have for cells, those that are still open too."""
    found = {}
    sought = sought_in(sheets(grids(draft)), threads_of(logs))
    for (line, column, nth), one in sought.kept().items() if sought else ():
        if not nth and one.right:
            found[line, column] = Held(
                one.value / (100 if one.reading.scale == 100 else 1), one.runs, one.file
            )
    return found


def traced(sought: Sought) -> dict[Node, Mark]:
    """The marks of all numbers of tables that a log has, by the number."""
    found = {}
    for one in sought.kept().values():
        number = one.token.number
        if number is not None and one.token.figure is not None:
            figure = one.token.figure
            shown = f"{one.value:.{max(0, figure.decimals)}f}" + figure.unit
            facts: dict[str, object] = {
                "value": shown, "true": one.value, "file": one.file, "runs": one.runs,
                "arm": one.arm,
            }  # fmt: skip
            state: State = "right" if one.right else "wrong"
            code = "check.log" if one.right else "check.not-log"
            found[node(number)] = number_mark(number, state, code, facts)
    return found


def corrected(book: Book, seen: Mapping[Node, Mark]) -> Book:
    """The tables with what the log has: sentences are held against that."""
    if not seen:
        return book
    made = []
    for sheet in book.sheets:
        cells = [_right(cell, seen.get(node(cell.number))) for cell in sheet.cells]
        made.append(replace(sheet, cells=cells))
    return Book(made, book.heads)


def _right(cell: Cell, mark: Mark | None) -> Cell:
    if mark is None:
        return cell
    wrong = mark.state == "wrong"  # 73.85 may be printed as 73.8 or 73.9
    value = float(str(mark.facts["value"]).strip("%")) if wrong else cell.figure.value
    return replace(cell, figure=replace(cell.figure, value=value, true=mark.facts["true"]))
