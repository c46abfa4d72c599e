"""Names with their number right behind them: "the lowest is A (54.1)".

A number in brackets right behind a name is that name's. Whether it is the lowest is for
`claimed.utmost`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from kleash.documents.marks import Mark
from kleash.written.book import Book
from kleash.written.fitting import NAMING, prints
from kleash.written.gaps import is_gap
from kleash.written.printed import Cell
from kleash.written.prose import Name, Said, Sentence

_OPEN = re.compile(r"\s?(?:\(|:|\s(?:with|at)\s)\s?")
_CLOSED = re.compile(r"\s?(?:%|[a-z]{1,6})?\s?(?:\)|[.,;。]|$)")


def ranked(book: Book, every: Sequence[Sentence]) -> Iterator[Mark]:
    """What is said to be a row's or column's, and is not."""
    for sentence in every:
        for said in sentence.numbers:
            names = _right_before(sentence, said)
            if names and said.figure.decimals and said.figure.digits >= NAMING:
                mark = _not_theirs(book, sentence, said, names)
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
