"""Arms called higher by a row of ranges that has them lower: "~247-285" against "~262-297".

A cell that says from where to where has no number that could be held against another; but if both
its ends are below those of the only other arm, it is not the higher. The row is the one that the
clause has word for word, in the tables under its heading.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from kleash.imports.markdown.text import bare
from kleash.written.book import Book
from kleash.written.claimed.mentions import APART, words_of
from kleash.written.claimed.outline import outline
from kleash.written.claimed.readings import Shelf, outside
from kleash.written.claimed.stated import Stated, stated
from kleash.written.marks import Mark
from kleash.written.page import Page
from kleash.written.printed import squeezed
from kleash.written.prose import Sentence

_FIGURE = r"\d[\d,]*(?:\.\d+)?"
_RANGE = re.compile(rf"[~≈约 ]*({_FIGURE})\s?%?\s?(?:-|~|到|至|to)\s?[~≈]?({_FIGURE})(?![\d.])\D*")
SHORT = 2  # letters of a label that a clause may have
Range = tuple[float, float]


def false_ranges(
    book: Book, page: Page, every: Sequence[Shelf], spoken: Sequence[Sentence]
) -> Iterator[Mark]:
    """Words for the higher of two ranges, said of the lower."""
    tables = [_named(shelf) for shelf in every if not shelf.side.is_rows]
    for one in stated(outline(page), spoken):
        near = book.section(one.line)
        verdicts = [
            _holds(one, ranges, label)
            for shelf in tables
            if shelf.sheet in near and (label := one.whose(shelf)) is not None
            for ranges in _rows(shelf, outside(one.clause.text))
            if label in ranges
        ]
        if verdicts and not any(verdicts):
            text = one.clause.sentence.text[slice(*one.span)]
            yield Mark(one.line, text, "wrong", "check.not-trend", {}, "order")


def _named(shelf: Shelf) -> Shelf:
    """A table by its columns, those without a number too."""
    texts = {nth: one for nth, one in enumerate(shelf.sheet.table.header) if nth}
    labels = {nth: words_of(one) for nth, one in texts.items()}
    return replace(shelf, side=replace(shelf.side, labels=labels, texts=texts))


def _rows(shelf: Shelf, text: str) -> Iterator[Mapping[int, Range]]:
    """The ranges of two arms in each row that a clause names word for word."""
    for row in shelf.sheet.table.rows:
        told = re.sub(r"\([^()]*\)", "", squeezed(bare(row[0]))).strip(" :*")
        if len(told) < SHORT or told not in text:
            continue
        found = {}
        for column, title in shelf.side.texts.items():
            match = _RANGE.fullmatch(squeezed(bare(row[column]))) if column < len(row) else None
            if match and not APART.search(title):
                low, high = (float(one.replace(",", "")) for one in match.groups())
                found[column] = (low, high)
        if len(found) == 2 and all(low < high for low, high in found.values()):
            yield found


def _holds(one: Stated, ranges: Mapping[int, Range], label: int) -> bool:
    """Whether an end of a range is on the side that is said of it."""
    theirs = next(each for other, each in ranges.items() if other != label)
    gaps = [a - b for a, b in zip(ranges[label], theirs, strict=True)]
    return any(one.way * gap > 0 for gap in gaps) or not any(gaps)
