"""Two items of a list that tell each other's numbers: "mean gap 0.0010; final gap -0.0012".

Each names one row of a table of its section, the table has each number in the row that the other
names, and neither in its own. One such item may speak of something else; two are exchanged.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from kleash.written.book import Book, refs
from kleash.written.fitting import prints
from kleash.written.marks import Mark
from kleash.written.printed import Cell, Sheet
from kleash.written.prose import Said, Sentence

FEW = 2  # digits of a number that may be known by its place
Told = tuple[Sentence, Said]


def exchanged_items(book: Book, spoken: Sequence[Sentence]) -> Iterator[Mark]:
    """The numbers of two items, one below the other, that are each other's."""
    for one, other in pairwise(spoken):
        two = [(each, said) for each in (one, other) for said in _own(each)]
        if len(two) != 2 or two[1][0].line(0) - two[0][0].line(0) != 1:
            continue
        for sheet in book.section(one.line(0)):
            if sheet.line < one.line(0) and _are_exchanged(sheet, two[0], two[1]):
                for (sentence, said), (_, right) in (two, two[::-1]):
                    line = sentence.line(said.start)
                    facts = {"value": right.text, "lines": [line]}
                    spot = f"said {said.text}"
                    yield Mark(line, said.text, "wrong", "check.slip", facts, spot)
                break


def _own(sentence: Sentence) -> list[Said]:
    """The numbers of a sentence with decimals and digits enough."""
    return [one for one in sentence.numbers if one.figure.decimals and one.figure.digits >= FEW]


def _are_exchanged(sheet: Sheet, ours: Told, theirs: Told) -> bool:
    """Whether a table has each of two numbers where the other sentence says, in one column."""
    rows = [refs(sheet, one, 0, len(one.text)).rows for one, _ in (ours, theirs)]
    if not all(rows) or rows[0] & rows[1] or ours[1].figure.value == theirs[1].figure.value:
        return False
    cells = [[cell for cell in sheet.cells if cell.row in each and not cell.part] for each in rows]
    if any(
        prints(told[1].figure, cell.figure)
        for told, own in zip((ours, theirs), cells, strict=True)
        for cell in own
    ):
        return False
    return bool(_columns(ours[1], cells[1]) & _columns(theirs[1], cells[0]))


def _columns(said: Said, cells: Sequence[Cell]) -> set[int]:
    return {cell.column for cell in cells if prints(said.figure, cell.figure)}
