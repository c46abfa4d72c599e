"""Tables that hold each of some things against each: what A has with B, B has with A.

Agreements, overlaps and distances are the same from both sides, and differences the same but for
their sign. Where all but a few numbers of such a table are, the others are wrong.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kleash.documents.marks import Mark, number_mark
from kleash.imports.markdown.text import bare
from kleash.written.fitting import prints
from kleash.written.printed import Cell, Sheet

LEAST = 3  # things that are held against each other


def is_square(sheet: Sheet) -> bool:
    """Whether the rows of a table are called as its columns are."""
    names = [bare(row[0]).strip("* ") for row in sheet.table.rows]
    titles = [bare(title).strip("* ") for title in sheet.table.header[1:]]
    return len(names) >= LEAST and names == titles


def not_mirrored(sheets: Sequence[Sheet]) -> Iterator[Mark]:
    """Numbers that stand otherwise on the other side of the diagonal."""
    for sheet in sheets:
        if not is_square(sheet):
            continue
        at = {(cell.row, cell.column - 1): cell for cell in sheet.cells if not cell.part}
        both = [(one, at[b, a]) for (a, b), one in at.items() if a < b and (b, a) in at]
        odd = [pair for pair in both if not prints(pair[0].figure, pair[1].figure)]
        same = [pair[0] for pair in both if pair not in odd]
        # A table of wins has no two alike; chance may make some of few alike.
        if not odd or len({cell.figure.value for cell in same}) < max(2, len(odd)):
            continue
        for one, other in _told(odd):
            facts: dict[str, object] = {"lines": other.line, "value": other.number.text}
            yield number_mark(one.number, "wrong", "check.told-otherwise", facts)


def _told(odd: Sequence[tuple[Cell, Cell]]) -> Iterator[tuple[Cell, Cell]]:
    """Numbers that differ with what they should be; of one row or column alone those of it."""
    for side in ("row", "column"):
        for nth in {getattr(cell, side) for pair in odd for cell in pair}:
            own = [[cell for cell in pair if getattr(cell, side) == nth] for pair in odd]
            if len(odd) > 1 and all(len(cells) == 1 for cells in own):
                for pair, cells in zip(odd, own, strict=True):
                    yield cells[0], next(cell for cell in pair if cell is not cells[0])
                return
    for one, other in odd:
        yield one, other
        yield other, one
