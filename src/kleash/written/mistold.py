"""Numbers of tables that a sentence tells with another digit: one of the two is wrong.

A sentence whose number nothing accounts for may quote a table that has a slip. If one number of a
row or column that it names differs in one digit, both are told.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kleash.written.fitting import is_typo
from kleash.written.marks import Mark, number_mark
from kleash.written.printed import Cell, Sheet
from kleash.written.prose import Said, Sentence
from kleash.written.told.slips import is_quote

UNKNOWN = "number-without-source"
NEAR = 2.0  # times: how far apart two tellings of one number may be


def mistold(
    marks: Sequence[Mark], spoken: Sequence[Sentence], sheets: Sequence[Sheet]
) -> Iterator[Mark]:
    """The cells that sentences with numbers of no source name, and tell otherwise."""
    unknown = {(mark.line, mark.text.strip(" +%*")) for mark in marks if mark.code == UNKNOWN}
    borne = {(mark.line, mark.spot) for mark in marks if mark.state == "right"}
    for sentence in spoken:
        for said in sentence.numbers:
            line = sentence.line(said.start)
            if (line, said.text.strip(" +%*")) not in unknown or not is_quote(sentence, said):
                continue
            found = [cell for cell in _named(sentence, sheets) if _is_nearly(said, cell)]
            if len({cell.figure.value for cell in found}) != 1:
                continue
            for cell in found:
                where = cell.number.where
                if (where.line, where.spot) not in borne:
                    facts: dict[str, object] = {"value": said.text, "lines": [line]}
                    yield number_mark(cell.number, "unsupported", "check.told-otherwise", facts)


def _named(sentence: Sentence, sheets: Sequence[Sheet]) -> Iterator[Cell]:
    """The numbers of rows and columns that a sentence names."""
    rows = {(one.sheet, one.row) for one in sentence.names if one.row is not None}
    columns = {(one.sheet, one.column) for one in sentence.names if one.column is not None}
    for sheet in sheets:
        for cell in sheet.cells:
            if (sheet.nth, cell.row) in rows or (sheet.nth, cell.column) in columns:
                yield cell


def _is_nearly(said: Said, cell: Cell) -> bool:
    less, more = sorted((abs(said.figure.value), abs(cell.figure.value)))
    decimals = said.figure.decimals
    alike = decimals == cell.figure.decimals > 0 and more <= NEAR * less
    return alike and is_typo(less, more, decimals)
