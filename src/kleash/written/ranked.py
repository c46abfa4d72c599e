"""Names with their number right behind them: "the lowest is A (54.1)".

A number in brackets right behind a name is that name's. If the clause calls it highest or lowest,
it must be so in its line.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from kleash.written.book import Book
from kleash.written.fitting import NAMING, prints
from kleash.written.gaps import is_gap
from kleash.written.marks import Mark
from kleash.written.printed import Cell
from kleash.written.prose import Name, Said, Sentence

LEAST = 3  # numbers of a line that has a highest
_HIGH = re.compile(r"最[高大多长]|(?<![a-z])(?:highest|largest|greatest|longest|most)(?![a-z])")
_LOW = re.compile(r"最[低小少短]|(?<![a-z])(?:lowest|smallest|shortest|least|fewest)(?![a-z])")
_END = re.compile(
    r"最[好差优坏快慢紧松省费强弱]|(?<![a-z])(?:best|worst|fastest|slowest|cheapest|strongest)(?![a-z])"
)
_AMONG = re.compile(
    r"第二|次[高低优之]|其次|之一|除|其余|其他|其中|不是|并非|并不|不一定|未必|排第|第[二三四五]|以外|之外|里|"
    r"(?<![a-z])(?:second|third|next|runner|except|among|other|not|one of|of the|but|within|"
    r"only|trained|so far)(?![a-z])|"
    r"(?<![a-z])(?:best|worst|highest|lowest|largest|smallest)(?: [a-z]+)? of (?!the )|"
    r"(?<![a-z])(?:most|least) (?:distant|similar|sensitive|stable|unstable|common|frequent)"
)
_OPEN = re.compile(r"\s?(?:\(|:|\s(?:with|at)\s)\s?")
_CLOSED = re.compile(r"\s?(?:%|[a-z]{1,6})?\s?(?:\)|[.,;。]|$)")
_CLAUSE = re.compile(r"[,;。](?!\d{3})")


def ranked(book: Book, every: Sequence[Sentence]) -> Iterator[Mark]:
    """What is said to be a row's or column's, or its line's highest or lowest, and is not."""
    for sentence in every:
        for said in sentence.numbers:
            names = _right_before(sentence, said)
            if names and said.figure.decimals and said.figure.digits >= NAMING:
                mark = _not_theirs(book, sentence, said, names)
                mark = mark or _not_extreme(book, sentence, said, names)
                if mark is not None:
                    yield mark


def _right_before(sentence: Sentence, said: Said) -> list[Name]:
    """The names that a number stands right behind, in brackets."""
    if said.kind in ("points", "times") or (is_gap(sentence, said) and not said.sign):
        return []
    if not _CLOSED.match(sentence.plain, said.end):
        return []
    return [
        one
        for one in sentence.names
        if one.end <= said.start
        and _OPEN.fullmatch(sentence.plain[one.end : said.start].rstrip("+-"))
    ]


def _own(book: Book, name: Name) -> list[Cell]:
    """The cells of a row or column, or of the whole table where that is named."""
    cells = book.sheets[name.sheet].cells
    if name.row is None and name.column is None:
        return list(cells)
    return [
        cell
        for cell in cells
        if (name.row is not None and cell.row == name.row)
        or (name.column is not None and cell.column == name.column)
    ]


def _not_theirs(book: Book, sentence: Sentence, said: Said, names: Sequence[Name]) -> Mark | None:
    """The mark of a number that only other rows, or columns, of the tables with a name have."""
    theirs = {name: _own(book, name) for name in names}
    own = [cell for cells in theirs.values() for cell in cells if prints(said.figure, cell.figure)]
    others = [
        cell
        for sheet in {name.sheet for name, cells in theirs.items() if _are_measured(said, cells)}
        for cell in book.sheets[sheet].cells
        if prints(said.figure, cell.figure)
    ]
    if own or not others:
        return None
    facts: dict[str, object] = {"lines": sorted({cell.line for cell in others})[:4]}
    line = sentence.line(said.start)
    return Mark(line, said.text, "wrong", "check.anothers", facts, f"said {said.text}")


def _are_measured(said: Said, cells: Sequence[Cell]) -> bool:
    """Whether cells have numbers as long as one that is said: a column of shots has not."""
    return any(cell.figure.decimals >= said.figure.decimals for cell in cells)


def _not_extreme(book: Book, sentence: Sentence, said: Said, names: Sequence[Name]) -> Mark | None:
    """The mark of a number that is called the highest or lowest and is not that of its line."""
    clause = _clause(sentence, said)
    high, low, end = (bool(word.search(clause)) for word in (_HIGH, _LOW, _END))
    if high + low + end != 1 or _AMONG.search(clause):
        return None
    better: Cell | None = None
    for name in names:
        for cell in _own(book, name):
            if cell.part or not prints(said.figure, cell.figure):
                continue
            lines = [_line(book, cell, along=along) for along in (True, False)]
            lines = [[one for one in line if not _is_itself(book, one)] for line in lines]
            if any(
                len(line) < LEAST or _is_end(cell, line, high or end, low or end) for line in lines
            ):
                return None
            line = lines[name.row is None]
            better = max(line, key=lambda one: (1 if high or end else -1) * one.figure.value)
    if better is None:
        return None
    facts: dict[str, object] = {"value": better.number.text.strip("* "), "other": better.line}
    line_ = sentence.line(said.start)
    return Mark(line_, said.text, "wrong", "check.star", facts, f"said {said.text}")


def _is_itself(book: Book, cell: Cell) -> bool:
    """Whether a cell compares something with itself: the diagonal of a table of pairs."""
    sheet = book.sheets[cell.table]
    return bool(set(sheet.rows[cell.row]) & set(sheet.columns[cell.column]))


def _is_end(cell: Cell, line: Sequence[Cell], high: bool, low: bool) -> bool:  # noqa: FBT001
    """Whether a cell is the highest or lowest of a line, by its size or by its sign and size."""
    values = [one.figure.value for one in line]
    tops = {max(values), max(values, key=abs)} if high else set()
    return cell.figure.value in tops | ({min(values), min(values, key=abs)} if low else set())


def _line(book: Book, cell: Cell, *, along: bool) -> list[Cell]:
    """The column of a row's cell, or the row of a column's."""
    side = "column" if along else "row"
    cells = book.sheets[cell.table].cells
    return [one for one in cells if not one.part and getattr(one, side) == getattr(cell, side)]


def _clause(sentence: Sentence, said: Said) -> str:
    plain = sentence.plain
    first = max((m.end() for m in _CLAUSE.finditer(plain, 0, said.start)), default=0)
    after = _CLAUSE.search(plain, said.end)
    return plain[first : after.start() if after else len(plain)]
