"""The numbers of tables that logs have on file, or have otherwise.

A number that its line's records have is right. One that they do not have is wrong, unless another
line of the table has it, or its whole row or column is of something else.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from kleash.documents.marks import Mark, State, number_mark
from kleash.documents.page import Page
from kleash.imports import Number
from kleash.written.filed.aligned import SURE, Aligner, Reading
from kleash.written.filed.columns import COURSES, columns_of
from kleash.written.filed.records import of_runs, records
from kleash.written.filed.steps import Stated, false_bests, false_labels
from kleash.written.logs import Held, Logs
from kleash.written.printed import Figure, Sheet
from kleash.written.sought.lines import Labelled, Line, Token, labelled, lines_of
from kleash.written.sought.naming import windows_in

NOT_LOG = "check.not-log"
WINDOWS = 40  # stretches of steps over which means are taken
DIGITS = 3  # of a number that another run may have by chance but for the last
SIZE = 5  # times that a number may be of what is filed, and be a slip
RIVAL = 6.0  # by how much less may speak for a reading that acquits a number
ODD = 4  # numbers of a column for each that is in another unit
PRINTED = 2e-3  # how far, of itself, a number may be from what was printed in its place
_ARROW = re.compile(r"→|->|⇒|/")
Spot = tuple[int, int, int]
Found = tuple[Reading, Token, int]
"""A reading, a number that it speaks of, and its entry."""


@dataclass(frozen=True)
class Filed:
    """A number of a table that logs have on file, or have otherwise; none if it is a label."""

    number: Number | None
    mark: Mark
    line: int
    column: int
    nth: int


def on_file(logs: Logs, sheets: Sequence[Sheet]) -> Aligner:
    """All that logs have on file, to be searched; tables say over which steps means are taken."""
    found = records(logs.roots)
    found += of_runs(logs, {one.file for one in found})
    labels = (label for one in sheets for label in (*one.table.header, *_firsts(one)))
    windows = dict.fromkeys(window for label in labels for window in windows_in(label))
    return Aligner(columns_of(found, [*windows][:WINDOWS]))


def _firsts(sheet: Sheet) -> list[str]:
    return [row[0] for row in sheet.table.rows]


def filed(sheets: Sequence[Sheet], aligner: Aligner, page: Page | None) -> list[Filed]:
    """All numbers of tables that logs have on file."""
    made = []
    for sheet in sheets:
        table = labelled(sheet, page)
        every = list(_read(table, aligner))
        right, wrong = _in_table(table, every)
        states: tuple[tuple[State, list[Found]], ...] = (("right", right), ("wrong", wrong))
        for state, one in ((state, one) for state, some in states for one in some):
            number, figure = one[1].number, one[1].figure
            if number is not None and figure is not None:
                made.append(_filed(table, one[1], _mark(one, number, figure, state)))
        for stated, step, file in false_bests(table, every):
            facts: dict[str, object] = {"value": step, "true": float(step), "file": file}
            made.append(_step_filed(table, stated, facts | {"runs": 1, "arm": ""}))
        for token, step, file in false_labels(every):
            label = table.sheet.table.rows[token.row][0]
            facts = {"value": step, "file": file, "runs": 1, "arm": ""}
            mark = Mark(sheet.table.lines[token.row], label, "wrong", NOT_LOG, facts)
            made.append(Filed(None, mark, mark.line, 0, 0))
    return made


def _step_filed(table: Labelled, one: Stated, facts: dict[str, object]) -> Filed:
    line = table.sheet.table.lines[one.row]
    if one.number is None:
        return Filed(None, Mark(line, one.text, "wrong", NOT_LOG, facts), line, one.column, 0)
    mark = number_mark(one.number, "wrong", NOT_LOG, facts)
    return Filed(one.number, mark, line, one.column, 0)


def _filed(table: Labelled, token: Token, mark: Mark) -> Filed:
    line = table.sheet.table.lines[token.row]
    return Filed(token.number, mark, line, token.column, token.nth)


def opened(
    sheets: Sequence[Sheet], aligner: Aligner, page: Page | None
) -> dict[tuple[int, int], Held]:
    """By line and column, what logs have for cells that are open, where nothing is in doubt."""
    made: dict[tuple[int, int], Held] = {}
    for sheet in sheets:
        found: dict[tuple[int, int], set[Held]] = {}
        for line, readings in _read(labelled(sheet, page), aligner):
            near = [one for one in readings if one.score > readings[0].score - RIVAL]
            if near[0].against or near[0].slips or near[0].score < SURE:
                continue
            for at in (n for n, token in enumerate(line.tokens) if token.figure is None):
                spot = sheet.table.lines[line.tokens[at].row], line.tokens[at].column
                told = [_for_open(line, one, at) for one in near if one.entries[at] >= 0]
                if told:  # what both its row and its column say
                    here = {one for one in told if one is not None} if None not in told else set()
                    found[spot] = found[spot] & here if spot in found else here
        made |= {spot: one for spot, told in found.items() if len(told) == 1 for one in told}
    return made


def _for_open(line: Line, one: Reading, at: int) -> Held | None:
    """What a reading has for a cell that is open; none where its place is not told by labels."""
    entry = one.entries[at]
    unsaid = {one.column.axes[axis] for _, axis, _ in one.rest}
    own_steps = line.down and bool(line.table.counters) and bool(unsaid & {*COURSES})
    if one.entries.count(entry) > 1 or own_steps:
        return None
    value = one.scale * float(one.column.values[entry])
    return Held(value, 1, one.column.files[entry], printed=True)


def _read(table: Labelled, aligner: Aligner) -> Iterator[tuple[Line, list[Reading]]]:
    """The lines of a table with their readings, once it is known what most of them are."""
    lines = [_with_odd_units(one) for one in lines_of(table) if not one.block]
    aligner.known = set()
    best = (next(iter(aligner.readings(line)), None) for line in lines)
    sure = [one for one in best if one and one.accepted and one.score >= SURE]
    aligner.known = {rest for one in sure for rest in one.rest}
    for line in lines:
        readings = [one for one in aligner.readings(line) if one.accepted]
        if readings:
            yield line, readings


def _in_table(
    table: Labelled, every: Sequence[tuple[Line, list[Reading]]]
) -> tuple[list[Found], list[Found]]:
    """What is right in a table, and what is wrong."""
    right, wrong, other = dict[Spot, Found](), dict[Spot, Found](), dict[Spot, Found]()
    for line, readings in every:
        near = [one for one in readings if one.score > readings[0].score - RIVAL]
        near.sort(key=lambda one: len(one.against))
        for at, token in enumerate(line.tokens):
            spot = (token.row, token.column, token.nth)
            fit = next((one for one in near if one.fits[at]), None)
            if fit is not None:
                _surest(other if fit.against else right, spot, (fit, token, fit.entries[at]))
            elif near[0].fits[at] is False and not near[0].against and _is_alone(table, token):
                found = (near[0], token, near[0].entries[at])
                if not _is_times(found) and _is_sure(table, found):
                    _surest(wrong, spot, found)
    wrong = {spot: one for spot, one in wrong.items() if spot not in right}
    wrong = _without_strangers(wrong, other | right)
    return [one for spot, one in (other | right).items() if spot not in wrong], [*wrong.values()]


def _with_odd_units(line: Line) -> Line:
    """A column with those few of its numbers that are in another unit: they may be out of place."""
    if not line.down:
        return line
    rows = {one.row for one in line.tokens}
    first = line.tokens[0]
    others = [
        one for (row, column), tokens in line.table.tokens.items()
        if column == first.column and row not in rows
        for one in tokens if one.nth == first.nth
    ]  # fmt: skip
    own = {line.table.rows[row][0] for row in rows}
    others = [one for one in others if len(own) > 1 or line.table.rows[one.row][0] in own]
    few = 0 < ODD * len(others) <= len(line.tokens)
    return replace(line, tokens=(*line.tokens, *others)) if few else line


def _without_strangers(wrong: dict[Spot, Found], right: dict[Spot, Found]) -> dict[Spot, Found]:
    """Without rows and columns that are mostly wrong: they are of something else.

    Not so those whose numbers another row or column has: these were copied or exchanged.
    """
    printed = {spot: one[1].figure.value for spot, one in (right | wrong).items() if one[1].figure}
    kept = dict(wrong)
    for axis in (0, 1):
        bands = defaultdict[int, list[Spot]](list)
        for spot in kept:
            bands[spot[axis]].append(spot)
        good = Counter(spot[axis] for spot in right if spot not in kept)
        for band, bad in bands.items():
            places = {(spot[1 - axis], spot[2], printed[spot]) for spot in bad}
            copies = Counter(
                spot[axis] for spot, value in printed.items()
                if spot[axis] != band and (spot[1 - axis], spot[2], value) in places
            )  # fmt: skip
            copied = 2 * max(copies.values(), default=0) > len(bad)
            lone = len(bad) == 1 and _is_alike(wrong[bad[0]])
            if len(bad) > good[band] and not (copied or lone or _each_others(wrong, bad)):
                kept = {spot: one for spot, one in kept.items() if spot[axis] != band}
    return kept


def _is_alike(one: Found) -> bool:
    """Whether a number is of the size of what is filed."""
    reading, token, entry = one
    value = abs(reading.scale * float(reading.column.values[entry]))
    return token.figure is not None and 0.1 * value <= abs(token.figure.value) <= 10 * value


def _each_others(wrong: Mapping[Spot, Found], bad: Sequence[Spot]) -> bool:
    """Whether numbers are what should stand in each other's place."""
    have = sorted(figure.value for spot in bad if (figure := wrong[spot][1].figure))
    due = sorted(
        one.scale * float(one.column.values[at]) for one, _, at in (wrong[spot] for spot in bad)
    )
    return len(bad) > 1 and np.allclose(have, due, rtol=PRINTED)


def _is_alone(table: Labelled, token: Token) -> bool:
    """Whether a cell has one number, or several of a kind: "0.53 → 0.56", not "0.53 (step 4)"."""
    text = table.sheet.table.rows[token.row][token.column]
    return len(table.tokens[token.row, token.column]) == 1 or bool(_ARROW.search(text))


def _is_sure(table: Labelled, one: Found) -> bool:
    """Whether logs can only have a number otherwise.

    Labels that lead to one record for several numbers do not tell them apart; of a column without
    a title a last digit may be that of another run; what is far from it is another.
    """
    reading, token, entry = one
    value, figure = reading.scale * float(reading.column.values[entry]), token.figure
    if figure is None or reading.entries.count(entry) > 1:
        return False
    one_off = figure.digits <= DIGITS and abs(figure.value - value) < 3 * figure.half
    far = abs(figure.value) > SIZE * abs(value) or SIZE * abs(figure.value) < abs(value)
    titled = table.sheet.table.header[token.column].strip()
    return not far and not (one_off and not titled)


def _is_times(one: Found) -> bool:
    """Whether a number is a few times what is filed: hours of four GPUs."""
    reading, token, entry = one
    value, figure = reading.scale * float(reading.column.values[entry]), token.figure
    times = round(figure.value / value) if figure and value else 0
    return figure is not None and times > 1 and abs(figure.value - times * value) <= figure.half


def _surest(found: dict[Spot, Found], spot: Spot, one: Found) -> None:
    if spot not in found or found[spot][0].score < one[0].score:
        found[spot] = one


def _mark(one: Found, number: Number, figure: Figure, state: State) -> Mark:
    reading, _, entry = one
    value = reading.scale * float(reading.column.values[entry])
    facts: dict[str, object] = {
        "value": f"{value:.{max(0, figure.decimals)}f}{figure.unit}", "true": value,
        "file": reading.column.files[entry], "runs": 1, "arm": "",
    }  # fmt: skip
    return number_mark(number, state, "check.log" if state == "right" else NOT_LOG, facts)
