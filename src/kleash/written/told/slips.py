"""Numbers of sentences that are a digit off the one number that all the names around them lead to.

A number of three digits that is nearly, and not quite, what a table has for the arm, the quantity
and the step that a clause names is that number with a slip. One that any table prints, or that
other numbers of its sentence give, is none.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from itertools import combinations

from kleash.written.fitting import NAMING, pair, prints
from kleash.written.gaps import is_gap
from kleash.written.marks import Mark, printed_as
from kleash.written.printed import Cell, Figure, Sheet, squeezed
from kleash.written.prose import END, Said, Sentence, is_rough, other_end
from kleash.written.told.subjects import Records, clause, each, subject_of
from kleash.written.told.things import Mention, column_keys, row_keys
from kleash.written.told.titles import places_in
from kleash.written.told.tracks import families
from kleash.written.whose import said_mark

OFF = 1.6  # units of the last digit within which a number was meant to be another
AROUND, FEW = 25, 3  # last digits to each side, and how many numbers of tables may be there
SELDOM = 0.1  # how likely a number that is of something else is a digit off
_LIST = re.compile(
    r"\s?%?\s?[a-z]{0,3}\s?(?:[,、/<>]|→|->|(?<![a-z])(?:and|to|vs\.?|against)(?![a-z])|和|与|对|[降升掉涨跌减增]?[到至])+\s?(?:and\s)?"
)
_AVERAGED = re.compile(r"averag|(?<![a-z])mean(?![a-z])|平均|均值")


def slips(
    records: Records, every: Sequence[Sentence], fine: Collection[tuple[int, str]] = ()
) -> Iterator[Mark]:
    """Numbers that are a digit off what their names lead to, or what stands beside them.

    `fine` are numbers that tables account for, by line and digits.
    """
    cells = [(sheet, cell) for sheet in records.sheets for cell in sheet.cells]
    for sentence in every:
        for said in sentence.numbers:
            if not is_quote(sentence, said):
                continue
            near = [one for one in cells if _is_near(said.figure, one[1].figure)]
            end = other_end(sentence, said)
            if end is not None:  # they are often rounded outward
                exact = end == said.figure.decimals
                near = [one for one in near if exact and _is_as_long(said.figure, one[1].figure)]
            if not near or any(prints(said.figure, cell.figure) for _, cell in cells):
                continue
            if _AVERAGED.search(sentence.plain):  # a mean is one of means
                near = [one for one in near if _AVERAGED.search(_titles(*one))]
            found = _meant(records, sentence, said, near) or _in_line(sentence, said, cells, near)
            if not found and (sentence.line(said.start), said.text.lstrip("+-±")) not in fine:
                found = _named(sentence, said, cells, near)
            if not found and not _AVERAGED.search(sentence.plain):
                found = _nearly_the_only(said, cells, near)
            if len(found) == 1 and not _follows(sentence, said):
                value = printed_as(next(iter(found)), "", said.figure.decimals)
                value += "%" * (said.kind == "share")
                yield said_mark(sentence, said, "wrong", "check.slip", {"value": value})


def _named(
    sentence: Sentence,
    said: Said,
    cells: Sequence[tuple[Sheet, Cell]],
    near: Sequence[tuple[Sheet, Cell]],
) -> set[float]:
    """The one number of rows and columns that a sentence names, if it is a digit off by no chance.

    So few numbers in so wide a range are seldom as near to one that is of something else.
    """
    rows = {(one.sheet, one.row) for one in sentence.names if one.row is not None}
    columns = {(one.sheet, one.column) for one in sentence.names if one.column is not None}
    own = {
        cell: abs(cell.figure.value)
        for _, cell in cells
        if ((cell.table, cell.row) in rows or (cell.table, cell.column) in columns)
        and (cell.figure.decimals, cell.figure.unit) == (said.figure.decimals, said.figure.unit)
    }
    values = {*own.values()}
    width = (max(values) - min(values)) / (2 * said.figure.half) if values else 0.0
    rare = bool(said.figure.decimals) and 2 * len(values) <= SELDOM * width
    return {own[cell] for _, cell in near if cell in own} if rare else set()


def _nearly_the_only(
    said: Said, cells: Sequence[tuple[Sheet, Cell]], near: Sequence[tuple[Sheet, Cell]]
) -> set[float]:
    """The one number of all tables that is a digit off, where so few would be by chance."""
    alike = {
        abs(cell.figure.value)
        for _, cell in cells
        if (cell.figure.decimals, cell.figure.unit) == (said.figure.decimals, said.figure.unit)
    }
    own = {abs(cell.figure.value) for _, cell in near if abs(cell.figure.value) in alike}
    around = [one for one in alike if abs(one - said.figure.value) <= AROUND * 2 * said.figure.half]
    sure = said.figure.digits > NAMING and len(own) == 1 and len(around) <= FEW
    return own if sure else set()


def _is_as_long(one: Figure, other: Figure) -> bool:
    return one.decimals == other.decimals


def _titles(sheet: Sheet, cell: Cell) -> str:
    """All that stands over a cell and beside it."""
    heads = " ".join(sheet.table.headings[-1:])
    return squeezed(f"{sheet.table.rows[cell.row][0]} {sheet.table.header[cell.column]} {heads}")


def is_quote(sentence: Sentence, said: Said) -> bool:
    """Whether a number is given as one that was measured, to the digit."""
    if said.figure.digits < NAMING or said.kind in ("points", "times"):
        return False
    return not is_rough(sentence, said) and not is_gap(sentence, said)


def _follows(sentence: Sentence, said: Said) -> bool:
    """Whether other numbers of a sentence give a number."""
    others = [one.figure for one in sentence.numbers if one is not said][:8]
    return any(one.exact for two in combinations(others, 2) for one in pair(said, *two, ()))


def _meant(
    records: Records, sentence: Sentence, said: Said, near: Sequence[tuple[Sheet, Cell]]
) -> set[float]:
    """The numbers of tables that a number is a digit off, of those that its names lead to."""
    subject = subject_of(sentence, records.sheets, said.start, said.end)
    first, last = clause(sentence, said.start, said.end)
    told = [one for one in sentence.places if first <= one.start < last]
    spots = [(one.axis, one.at) for one in told if one.axis not in ("", END)]
    known = bool(families(subject.text))
    return {
        _scaled(said.figure, cell.figure)
        for arms in each(subject)
        if len(arms) + len(spots) + known > 1 and said.figure.decimals
        for sheet, cell in near
        if _leads(records, sheet, cell, arms, subject.text, spots)
    }


def _in_line(
    sentence: Sentence,
    said: Said,
    cells: Sequence[tuple[Sheet, Cell]],
    near: Sequence[tuple[Sheet, Cell]],
) -> set[float]:
    """The numbers that a number is a digit off, in lines of which numbers beside it are.

    "269, 230, 202" is a row that has 269, 231 and 202.
    """
    beside = [one for one in _listed(sentence, said) if one.figure.digits >= NAMING - 1]
    lines = []
    for one in beside:
        own = [cell for _, cell in cells if prints(one.figure, cell.figure)]
        lines.append(
            {(c.table, "row", c.row) for c in own} | {(c.table, "", c.column) for c in own}
        )
    if not lines or (len(lines) < 2 and not said.figure.decimals):
        return set()
    common = set.intersection(*lines)
    return {
        _scaled(said.figure, cell.figure)
        for _, cell in near
        if {(cell.table, "row", cell.row), (cell.table, "", cell.column)} & common
    }


def _listed(sentence: Sentence, said: Said) -> list[Said]:
    """The numbers that stand in one list with a number, or at the other end of a change."""
    nth = sentence.numbers.index(said)
    found = []
    for step in (-1, 1):
        at = nth
        while 0 <= at + step < len(sentence.numbers):
            one, other = sorted((at, at + step))
            left, right = sentence.numbers[one], sentence.numbers[other]
            alike = left.figure.decimals == right.figure.decimals or right.figure.decimals != 0
            if not alike or not _LIST.fullmatch(sentence.plain[left.end : right.start]):
                break
            at += step
            found.append(sentence.numbers[at])
    return found


def _scaled(said: Figure, cell: Figure) -> float:
    """A number of a table in the scale in which a sentence gives it."""
    scales = (1.0, 100.0, 0.01)
    return min(
        (scale * cell.value for scale in scales), key=lambda one: abs(abs(one) - abs(said.value))
    )


def _is_near(said: Figure, cell: Figure) -> bool:
    share, other = said.unit == "%", cell.unit == "%"
    for scale in {1.0, 1.0 if share == other else 100.0 if share else 0.01}:
        decimals = cell.decimals - (2 if scale == 100 else -2 if scale < 1 else 0)
        off = abs(abs(said.value) - abs(scale * cell.value))
        if decimals >= said.decimals and off <= OFF * 2 * said.half:
            return True
    return False


def _leads(
    records: Records,
    sheet: Sheet,
    cell: Cell,
    arms: Sequence[Mention],
    text: str,
    told: Sequence[tuple[str, float]],
) -> bool:
    """Whether all names of a clause are those of a cell: of its row, column or table."""
    keys = row_keys(sheet, cell.row) | column_keys(sheet, cell.column)
    about = records.above[sheet.nth]
    named = " ".join((*sheet.rows[cell.row], *sheet.columns[cell.column]))
    for arm in arms:
        letters = re.sub(r"[\s=:_·-]+", "", arm.text)
        if not arm.keys & keys and not (
            len(letters) > 1 and letters in re.sub(r"[\s=:_·-]+", "", about)
        ):
            return False
    wanted = families(text)
    own = families(named) | families(about)
    if wanted and own and not wanted & own:
        return False
    at = {
        (sheet.axis, sheet.counts.get(cell.row)),
        (sheet.across_axis, sheet.across.get(cell.column)),
    }
    row = sheet.table.rows[cell.row]
    inside = places_in(f"{row[0]} | {sheet.table.header[cell.column]} | {about}")
    return all(one in at | inside for one in told)
