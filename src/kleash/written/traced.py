"""Lines of tables that a log has, known by their numbers: whatever report and log call them.

People and trainers name things differently: "A (no KL)" is `alf_nokl`, "success" is
`val-core/alfworld/success_rate`. A line over steps whose numbers are nearly all those of one curve
is that curve, and the few that are not are slips. So is a line over arms whose names lead to runs,
and whose numbers are nearly all the last, best or mean ones of one metric.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import isfinite
from typing import Any

from kleash.imports import names
from kleash.imports.markdown.draft import Draft
from kleash.imports.markdown.labels import seed_of
from kleash.written.book import Book
from kleash.written.curves import MOST, STATISTICS, WINDOWS, Thread, threads_of
from kleash.written.grids import grids
from kleash.written.logs import Held, Logs, coefficient_in
from kleash.written.marks import Mark, number_mark, printed_as
from kleash.written.printed import Cell, Figure, Sheet, sheets
from kleash.written.relations import Node, node

LEAST = 3  # numbers of a line that must be a curve's
SHARE = 0.6  # of its numbers
TELLING = 2  # digits
MANY = 8  # numbers that are a statistic by no chance, though a third of them be wrong
NAMING = 3  # digits of numbers that tell whose they are
SCALES = (1.0, 100.0)  # a share may be logged as a fraction and printed in percent
Spot = tuple[int, int]
"""A line of the page and a column of its table."""


@dataclass(frozen=True)
class Line:
    """Cells that should be of one quantity: what is known of them, and where on it each stands."""

    cells: Mapping[Spot, Cell]
    at: Mapping[Spot, Any]
    """By cell, open ones too: a step, or a group of runs with a seed."""


@dataclass(frozen=True)
class Guess:
    """What a line may be: a value and a curve for each place."""

    values: Mapping[Any, float]
    threads: Mapping[Any, Thread]


@dataclass(frozen=True)
class Kept:
    """What logs have for a cell, as printed there; several where curves agree with it alike."""

    values: tuple[float, ...]
    thread: Thread
    unit: str


def kept(every: Sequence[Sheet], logs: Logs) -> dict[Spot, Kept]:
    """What logs have for the cells of every line that is known by its numbers."""
    threads = threads_of(logs)
    over_runs = list(_guesses(threads))
    found: dict[Spot, Kept] = {}
    for sheet in every:
        for axis, line in _over_steps(sheet):
            same = [
                Guess(one.points, dict.fromkeys(one.points, one))
                for one in threads
                if (one.axis == "epoch") == (axis == "epoch")
            ]
            _add(found, line, same)
        for line in _over_runs(sheet, threads, over_runs):
            _add(found, line, over_runs, over_runs=True)
    return found


def held_for(draft: Draft, logs: Logs) -> dict[Spot, Held]:
    """What logs have for cells, those that are still open too, where all that fit say the same."""
    found = {}
    for spot, one in kept(sheets(grids(draft)), logs).items():
        if len({f"{value:.9g}" for value in one.values}) == 1:
            value = one.values[0] / (100 if one.unit == "%" else 1)
            found[spot] = Held(value, one.thread.runs, one.thread.file, one.thread.line)
    return found


def traced(book: Book, logs: Logs) -> dict[Node, Mark]:
    """The marks of all numbers of tables that a log has, by the number."""
    known = kept(book.sheets, logs)
    return {
        node(cell.number): _mark(cell, known[cell.line, cell.column])
        for cell in book.cells
        if not cell.part and (cell.line, cell.column) in known
    }


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


def _mark(cell: Cell, one: Kept) -> Mark:
    right = [value for value in one.values if _is(cell.figure, value)]
    value = (right or one.values)[0]
    shown = printed_as(value, "", cell.figure.decimals) + "%" * (cell.figure.unit == "%")
    facts: dict[str, object] = {
        "value": shown, "true": value, "file": one.thread.file, "runs": one.thread.runs,
        "arm": one.thread.group,
    }  # fmt: skip
    code = "check.log" if right else "check.not-log"
    return number_mark(cell.number, "right" if right else "wrong", code, facts)


# --- which guess it is


def _add(
    found: dict[Spot, Kept], line: Line, guesses: Sequence[Guess], *, over_runs: bool = False
) -> None:
    """What the guesses that fit a line best have for its cells."""
    best = _best(line, guesses, over_runs=over_runs)
    unit = next((cell.figure.unit for cell in line.cells.values()), "")
    for spot, at in line.at.items() if best else ():
        told = [(guess, scale) for guess, scale in best if at in guess.values]
        if len(told) == len(best):
            values = tuple(scale * guess.values[at] for guess, scale in told)
            found.setdefault(spot, Kept(values, told[0][0].threads[at], unit))


def _best(
    line: Line, guesses: Sequence[Guess], *, over_runs: bool = False
) -> list[tuple[Guess, float]]:
    """The guesses that most numbers of a line fit, if enough do; with the scale in which."""
    most, best = LEAST, list[tuple[Guess, float]]()
    for guess in guesses:
        known = [
            (cell.figure, guess.values[line.at[spot]])
            for spot, cell in line.cells.items()
            if line.at[spot] in guess.values
        ]
        if len(known) < most:
            continue
        for scale in SCALES:
            fits = sum(_is(figure, scale * value) for figure, value in known)
            if fits >= most and _enough(fits, [figure for figure, _ in known]):
                if over_runs and not _few_slips(known, scale):
                    continue
                best = best if fits == most else []
                most = fits
                best.append((guess, scale))
    return best


def _few_slips(known: Sequence[tuple[Figure, float]], scale: float) -> bool:
    """Whether one number of a line is off at most, beside those that are another place's.

    Few arms have many statistics: the best of most may be their last.
    """
    off = [figure for figure, value in known if not _is(figure, scale * value)]
    strange = [one for one in off if not any(_is(one, scale * value) for _, value in known)]
    return len(strange) < 2 or len(known) >= MANY


def _is(figure: Figure, value: float) -> bool:
    return abs(figure.value - value) <= figure.half * (1 + 1e-6) + 1e-12


def _enough(fits: int, figures: Sequence[Figure]) -> bool:
    """Whether so many numbers are not a curve's by chance."""
    distinct = {one.value for one in figures if one.digits >= TELLING}
    return fits >= max(LEAST, SHARE * len(figures)) and len(distinct) >= LEAST


# --- over steps


def _over_steps(sheet: Sheet) -> Iterator[tuple[str, Line]]:
    """The columns of a table whose rows are steps, and its rows if its columns are."""
    cells = {(cell.row, cell.column): cell for cell in sheet.cells if not cell.part}
    for column in range(1, len(sheet.columns)) if sheet.counts else ():
        yield (
            sheet.axis,
            _line(sheet, cells, {(row, column): at for row, at in sheet.counts.items()}),
        )
    for row in range(len(sheet.rows)) if sheet.across else ():
        yield (
            sheet.across_axis,
            _line(sheet, cells, {(row, at): n for at, n in sheet.across.items()}),
        )


def _line(
    sheet: Sheet, cells: Mapping[tuple[int, int], Cell], at: Mapping[tuple[int, int], Any]
) -> Line:
    lines = sheet.table.lines
    known = {
        (lines[row], column): cells[row, column] for row, column in at if (row, column) in cells
    }
    return Line(known, {(lines[row], column): place for (row, column), place in at.items()})


# --- over runs


def _guesses(threads: Sequence[Thread]) -> Iterator[Guess]:
    """Every statistic of every metric, by group of runs and seed."""
    for metric in sorted({one.metric for one in threads}):
        mine = {(one.group, one.seed): one for one in threads if one.metric == metric}
        own = Counter(one.group for one in mine.values())
        mine |= {(one.group, None): one for one in [*mine.values()] if own[one.group] == 1}
        steps = sorted({at for one in mine.values() for at in one.points})
        kinds = [*STATISTICS, *(f"last {count}" for count in WINDOWS)]
        kinds += [f"at {at!r}" for at in steps] if len(steps) <= MOST else []
        for kind in kinds:
            values = {key: one.statistic(kind) for key, one in mine.items()}
            yield Guess({key: value for key, value in values.items() if isfinite(value)}, mine)


def _over_runs(sheet: Sheet, threads: Sequence[Thread], guesses: Sequence[Guess]) -> Iterator[Line]:
    """Lines whose rows or columns are runs: each cell is a statistic of one metric of its run."""
    groups = sorted({one.group for one in threads})
    cells = {(cell.row, cell.column): cell for cell in sheet.cells if not cell.part}
    for across in (False, True):
        aliases, others = (sheet.columns, sheet.rows) if across else (sheet.rows, sheet.columns)
        owners = {nth: group for nth, one in enumerate(aliases) if (group := _owner(one, groups))}
        if len(owners) < LEAST:
            owners = _by_numbers(cells, guesses, across=across)
        often = Counter(owners.values())
        owners = {nth: group for nth, group in owners.items() if often[group] == 1}
        parts: dict[object, dict[tuple[int, int], Any]] = defaultdict(dict)
        for nth, other in enumerate(others) if len(owners) > 1 else ():
            seed = seed_of(" ".join(other))
            for own, group in owners.items():
                spot = (nth, own) if across else (own, nth)
                if spot[1]:
                    parts[nth if seed is None else "seeds"][spot] = (group, seed)
        yield from (_line(sheet, cells, part) for part in parts.values())


def _by_numbers(
    cells: Mapping[tuple[int, int], Cell], guesses: Sequence[Guess], *, across: bool
) -> dict[int, str]:
    """The groups that rows, or columns, are of by lines in which each is one group's statistic."""
    lines: dict[int, dict[int, Figure]] = defaultdict(dict)
    for (row, column), cell in cells.items():
        if cell.figure.digits >= NAMING:
            own, other = (column, row) if across else (row, column)
            lines[other][own] = cell.figure
    votes: dict[int, Counter[str]] = defaultdict(Counter)
    for line in lines.values():
        for guess in guesses:
            means = {k[0]: v for k, v in guess.values.items() if k[1] is None}
            whole = means or {k[0]: v for k, v in guess.values.items()}
            for scale in SCALES:
                fit = {
                    n: [g for g, v in whole.items() if _is(f, scale * v)] for n, f in line.items()
                }
                sure = {n: found[0] for n, found in fit.items() if len(found) == 1}
                if len(sure) >= max(LEAST, SHARE * len(line)) and len({*sure.values()}) == len(
                    sure
                ):
                    for nth, group in sure.items():
                        votes[nth][group] += 1
    found = {nth: counts.most_common(1)[0][0] for nth, counts in votes.items()}
    often = Counter(found.values())
    return {nth: group for nth, group in found.items() if often[group] == 1}


def _owner(aliases: Sequence[str], groups: Sequence[str]) -> str:
    """The group of runs that a row or column is of, by its name or by its coefficient."""
    for alias in aliases:
        same = [group for group in groups if names.spelling(group) == names.spelling(alias)]
        if same:
            return same[0]
    values = [float(m[1]) for one in aliases if (m := re.search(r"=\s*(\d+(?:\.\d+)?)$", one))]
    fit = [group for group in groups if values and coefficient_in(group) == values[0]]
    return fit[0] if len(fit) == 1 else ""
