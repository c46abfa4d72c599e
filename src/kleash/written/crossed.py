"""Titles of two columns, or rows, in each other's place: the numbers below are the other's."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

from kleash.imports.markdown.text import bare
from kleash.written.marks import Mark, number_mark
from kleash.written.printed import Cell, Figure, Sheet
from kleash.written.prose import Sentence
from kleash.written.scripts import arms_said
from kleash.written.sought.lines import Line
from kleash.written.sought.naming import items, metrics_in, statistics_in
from kleash.written.sought.readings import Reading
from kleash.written.sought.settled import SURE, accepted
from kleash.written.told.things import column_keys, keys_of, mentions, row_keys
from kleash.written.traced import Sought

SLIPS = 3  # numbers that fit for each that does not
COUNTED = 4  # titles that count
_COUNT = re.compile(r"([A-Za-z\u4e00-\u9fff]+)\s?(\d+)")
NEAR = 6  # letters between a name and its number
LEAST = 3  # numbers of a line that is surely another's


@dataclass(frozen=True)
class Titled:
    """A line of a table: what its title says it is, and what its numbers are."""

    line: Line
    said: tuple[frozenset[str], frozenset[str], frozenset[str]]
    """Runs, metrics and statistics that its title may mean."""
    is_: tuple[str, str, str]


def crossed_titles(sought: Sought) -> Iterator[Mark]:
    """Pairs of lines of one table each of which has the numbers that the other's title promises."""
    tables: dict[tuple[int, bool], list[Titled]] = defaultdict(list)
    for nth, line in enumerate(sought.lines):
        best = next((one for one in sought.found[nth] if accepted(one)), None)
        if best and best.score >= SURE and not line.block and _is_whole(line, best):
            tables[line.table.sheet.nth, line.down].append(_titled(sought, line, best))
    for lines in tables.values():
        for one, other in combinations(lines, 2):
            if any(_crossed(one, other, axis) for axis in range(3)):
                yield from _marks(one.line, other.line)


def exchanged_titles(sheets: Sequence[Sheet], spoken: Sequence[Sentence]) -> Iterator[Mark]:
    """Pairs of columns whose numbers stand under each other's title where they are told again."""
    again = _told_again(sheets, spoken)
    for sheet in sheets:
        yield from _out_of_count(sheet)
        columns = sorted({cell.column for cell in sheet.cells})
        keys = {at: column_keys(sheet, at) for at in columns}
        for one, other in combinations(columns, 2):
            ours, theirs = keys[one] - keys[other], keys[other] - keys[one]
            if not ours or not theirs or {one, other} & sheet.across.keys():
                continue  # numbers of steps and shots are near each other
            votes = [
                _vote(sheet, one, ours, theirs, again),
                _vote(sheet, other, theirs, ours, again),
            ]
            crossed = [vote[1] for vote in votes]
            some = min(crossed) and sum(crossed) >= LEAST
            if some and not any(vote[0] for vote in votes):
                yield _titles(sheet, (one, other))


def _out_of_count(sheet: Sheet) -> Iterator[Mark]:
    """Titles that count, all in order but two: "shot 1, 2, 4, 3"."""
    matches = [_COUNT.fullmatch(bare(title)) for title in sheet.table.header]
    found = [(at, match[1], int(match[2])) for at, match in enumerate(matches) if match]
    numbers = [number for *_, number in found]
    told = enumerate(zip(numbers, sorted(numbers), strict=True))
    odd = [at for at, (one, other) in told if one != other]
    one_word = len({word for _, word, _ in found}) == 1 and len(set(numbers)) == len(numbers)
    if len(found) >= COUNTED and one_word and len(odd) == 2:
        yield _titles(sheet, (found[odd[0]][0], found[odd[1]][0]))


def exchanged_cells(sheets: Sequence[Sheet]) -> Iterator[Mark]:
    """Two numbers of a row that another table has for the same row in each other's place."""
    again = _told_again(sheets, ())
    for sheet in sheets:
        pairs: dict[tuple[int, int], list[tuple[Cell, Cell]]] = defaultdict(list)
        for one, other in _beside(sheet):
            if _exchanged(sheet, one, other, again):
                pairs[one.column, other.column].append((one, other))
        for columns, found in pairs.items():
            if len(found) > 1:
                yield _titles(sheet, columns)
            else:
                yield from (_swapped_cell(cell) for cell in found[0])


def _beside(sheet: Sheet) -> Iterator[tuple[Cell, Cell]]:
    """All pairs of numbers in one row that have enough digits to be known by, not both round."""
    rows: dict[int, list[Cell]] = defaultdict(list)
    for cell in sheet.cells:
        if not cell.part and cell.figure.digits >= LEAST:
            rows[cell.row].append(cell)
    for cells in rows.values():
        ordered = sorted(cells, key=lambda cell: cell.column)
        yield from (two for two in combinations(ordered, 2) if not all(map(_is_round, two)))


def _is_round(cell: Cell) -> bool:
    """Whether a number has few digits before its last zeros: 62.0 is one of many."""
    digits = f"{abs(round(cell.figure.value * 10.0**cell.figure.decimals))}"
    return len(digits.rstrip("0")) < LEAST


def _exchanged(sheet: Sheet, one: Cell, other: Cell, again: Again) -> bool:
    """Whether each number stands elsewhere under the other's title, and never under its own."""
    row = row_keys(sheet, one.row)
    ours, theirs = column_keys(sheet, one.column), column_keys(sheet, other.column)
    both = ((one, theirs, ours), (other, ours, theirs))
    tables = [_under(sheet, cell, row, right - wrong, again) for cell, right, wrong in both]
    own = [_under(sheet, cell, row, wrong - right, again) for cell, right, wrong in both]
    return one.figure.value != other.figure.value and not any(own) and bool(tables[0] & tables[1])


def _under(
    sheet: Sheet, cell: Cell, row: frozenset[str], column: frozenset[str], again: Again
) -> set[int]:
    """The other tables that have a number for the same row, under some title."""
    places = [each for each in again[_printed(cell.figure)] if each[0] != sheet.nth]
    return {nth for nth, keys in places if keys & row and keys & column}


def _swapped_cell(cell: Cell) -> Mark:
    return number_mark(cell.number, "wrong", "check.crosswise", {})


Again = dict[tuple[float, int], list[tuple[int, frozenset[str]]]]
"""By a number as printed, the tables that have it (-1 for sentences) and under which names."""


def _told_again(sheets: Sequence[Sheet], spoken: Sequence[Sentence]) -> Again:
    found: Again = defaultdict(list)
    for sheet in sheets:
        arms = arms_said(" ".join(sheet.table.headings[-1:]))
        above = {f"#{arm}" for arm in arms} if len(arms) == 1 else set()
        owners = keys_of(sheet.owners) | above
        for cell in sheet.cells:
            keys = row_keys(sheet, cell.row) | column_keys(sheet, cell.column) | owners
            found[_printed(cell.figure)].append((sheet.nth, keys))
    for sentence in spoken:
        named = mentions(sentence, sheets)
        for said in sentence.numbers:
            before = [one for one in named if one.end <= said.start]
            if before and said.start - before[-1].end <= NEAR:
                found[_printed(said.figure)].append((-1, before[-1].keys))
    return found


def _printed(figure: Figure) -> tuple[float, int]:
    return round(abs(figure.value), 9), figure.decimals


def _vote(
    sheet: Sheet, column: int, ours: frozenset[str], theirs: frozenset[str], again: Again
) -> tuple[int, int]:
    """How many numbers of a column stand elsewhere under its own title, and under another."""
    own, crossed = 0, 0
    for cell in sheet.cells:
        if cell.column != column or cell.part or cell.figure.digits < LEAST:
            continue
        places = [keys for nth, keys in again[_printed(cell.figure)] if nth != sheet.nth]
        mine = any(keys & ours for keys in places)
        own += mine
        crossed += not mine and any(keys & theirs for keys in places)
    return own, crossed


def _is_whole(line: Line, best: Reading) -> bool:
    """Whether a line is a whole column or row of numbers that one reading has, but for slips."""
    table, one = line.table, line.tokens[0]
    every = {
        spot
        for spot, tokens in table.tokens.items()
        if tokens and spot[1 if line.down else 0] == (one.column if line.down else one.row)
    }
    first = every <= {(token.row, token.column) for token in line.tokens} and not one.nth
    fits = sum(fit is True for fit in best.fits)
    return first and fits >= max(LEAST, SLIPS * best.slips)


def _titled(sought: Sought, line: Line, best: Reading) -> Titled:
    known, title = sought.known, line.shared
    group = sought.namer.group(title)
    metrics = _named(title, [known.metrics[nth] for nth in metrics_in(title, known.metrics)])
    groups = {known.units[nth].group for nth in best.units.tolist() if nth >= 0}
    of_metrics = {known.metrics[nth] for nth in best.metrics.tolist() if nth >= 0}
    kinds = {known.places[nth][0] for nth in best.places.tolist() if nth >= 0}
    said = (frozenset({group} - {""}), metrics, frozenset(statistics_in(title)))
    return Titled(line, said, (_only(groups), _only(of_metrics), _only(kinds)))


def _named(title: str, metrics: Sequence[str]) -> frozenset[str]:
    """The metrics that a title names: "val loss" is `val_loss` rather than `loss`."""
    have = items(title)
    own = {metric: items(metric) for metric in metrics}
    whole = {metric for metric, words in own.items() if words <= have}
    most = {one for one in whole if not any(own[one] < own[other] for other in whole)}
    return frozenset(most or metrics)


def _only(names: set[str]) -> str:
    return next(iter(names)) if len(names) == 1 else ""


def _crossed(one: Titled, other: Titled, axis: int) -> bool:
    """Whether each is what the other's title says, and not what its own does."""
    ours, theirs = one.is_[axis], other.is_[axis]
    return (
        bool(ours and theirs)
        and ours in other.said[axis] - one.said[axis]
        and theirs in one.said[axis] - other.said[axis]
        and all(one.is_[at] == other.is_[at] for at in range(3) if at != axis)
    )


def _marks(one: Line, other: Line) -> Iterator[Mark]:
    titles = [bare(line.shared) for line in (one, other)]
    if one.down:
        lines = [_head(one.table.sheet)]
    else:
        lines = [line.table.sheet.table.lines[line.tokens[0].row] for line in (one, other)]
    for at in lines:
        yield Mark(at, " / ".join(titles), "wrong", "check.crossed-titles", {}, "titles")


def _titles(sheet: Sheet, columns: tuple[int, int]) -> Mark:
    text = " / ".join(bare(sheet.table.header[at]) for at in columns)
    return Mark(_head(sheet), text, "wrong", "check.crossed-titles", {}, "titles")


def _head(sheet: Sheet) -> int:
    """The line of a table's titles."""
    return sheet.table.where.line or sheet.line - 2
