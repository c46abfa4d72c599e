"""Two items of a list that say opposite things of two arms: "A: higher KL" above "B: lower KL".

They are exchanged if every table that has both arms has it the other way round. One of them alone
may be held against something else.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from kleash.written.book import Book, refs
from kleash.written.claimed.beside import WORDS
from kleash.written.claimed.contrasts import DENIED
from kleash.written.claimed.readings import Shelf, clauses
from kleash.written.marks import Mark
from kleash.written.printed import Cell, Sheet
from kleash.written.prose import Sentence

LABEL = 2  # letters before the name that an item begins with
WAYS = {"up": 1, "down": -1}


@dataclass(frozen=True)
class Item:
    """An item that begins with a name, and the clause that says what it has more or less of."""

    sentence: Sentence
    name: tuple[int, int]
    clause: tuple[int, int]
    word: str
    way: int

    def cells(self, sheet: Sheet) -> list[Cell]:
        """What a table has of the quantities of the clause for the name."""
        whose = refs(sheet, self.sentence, *self.name)
        what = refs(sheet, self.sentence, *self.clause)
        return [
            cell
            for cell in sheet.cells
            if not cell.part
            and (
                (cell.row in whose.rows and cell.column in what.columns)
                or (cell.column in whose.columns and cell.row in what.rows)
            )
        ]


def opposed(book: Book, _: Sequence[Shelf], spoken: Sequence[Sentence]) -> Iterator[Mark]:
    """Items that give two arms what every table gives the other."""
    items = [_item(one) for one in spoken]
    for one, other in pairwise(items):
        if one is None or other is None or one.way + other.way:
            continue
        if other.sentence.line(0) - one.sentence.line(0) != 1:
            continue
        pairs = [two for sheet in book.sheets for two in _pairs(one, other, sheet)]
        if pairs and all(one.way * (a.figure.value - b.figure.value) < 0 for a, b in pairs):
            facts = {"one": pairs[0][0].number.text, "other": pairs[0][1].number.text}
            for each in (one, other):
                yield Mark(
                    each.sentence.line(0), each.word, "wrong", "check.turned", facts, "turned"
                )


def _item(sentence: Sentence) -> Item | None:
    """An item that has more or less of one thing, in the first clause behind its name."""
    begun = [one for one in sentence.names if one.start <= LABEL and not one.is_table]
    if sentence.before is not None or not begun:
        return None
    start, end = begun[0].start, max(one.end for one in begun)
    for clause in clauses(sentence, fine=True):
        words = list(WORDS.finditer(sentence.plain, max(end, clause.start), clause.end))
        if not words:
            continue
        way = WAYS.get(words[0].lastgroup or "", 0)
        inside = max(end, clause.start), clause.end
        if len(words) > 1 or not way or DENIED.search(sentence.plain, *inside):
            return None
        return Item(sentence, (start, end), inside, words[0][0], way)
    return None


def _pairs(one: Item, other: Item, sheet: Sheet) -> Iterator[tuple[Cell, Cell]]:
    """The numbers of both in one line of a table."""
    for ours in one.cells(sheet):
        for theirs in other.cells(sheet):
            if (ours.row == theirs.row) != (ours.column == theirs.column):
                yield ours, theirs
