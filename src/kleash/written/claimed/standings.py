"""Tables of places (1st, 2nd, 3rd), held against the table whose values they are of.

A line of places is 1 to k. Where another table has the same arms on the same lines, its values
give the places: which way is better is what most lines follow.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from kleash.written.book import Book
from kleash.written.claimed.readings import Line, Shelf
from kleash.written.marks import Mark
from kleash.written.printed import Cell
from kleash.written.prose import Sentence

FEWEST = 3  # arms that have places, and lines of places
LEAST = 3  # lines that follow the values: of two, gains may do so by chance


def false_standings(
    book: Book, every: Sequence[Shelf], spoken: Sequence[Sentence]
) -> Iterator[Mark]:
    """Places that are not those of the values, where those of the other lines are."""
    for shelf in every:
        lines = list(_placed(shelf))
        if len(lines) < FEWEST:
            continue
        found = [
            _judged(lines, other, way)
            for other in every
            if other.sheet is not shelf.sheet
            for way in (1, -1)
        ]
        right, wrong = max(found, key=lambda one: one[0], default=(0, []))
        if right >= max(LEAST, len(wrong) + 1) and len(wrong) <= 2:
            for cell, place in wrong:
                text = cell.number.text.strip("* ") or f"{cell.figure.value:g}"
                yield Mark(
                    cell.line, text, "wrong", "check.not-standing", {"value": place}, "standing"
                )


def _placed(shelf: Shelf) -> Iterator[Line]:
    """Lines that hold places: whole numbers from 1 to as many as there are, two equal at most."""
    for at in shelf.other.labels:
        line = shelf.line(at)
        values = [cell.figure.value for cell in line.cells.values()]
        count = len(values)
        whole = all(value == int(value) and 1 <= value <= count for value in values)
        decimals = any(cell.figure.decimals or cell.figure.unit for cell in line.cells.values())
        if count >= FEWEST and whole and not decimals and len(set(values)) >= count - 1:
            yield line


def _judged(lines: Sequence[Line], other: Shelf, way: int) -> tuple[int, list[tuple[Cell, int]]]:
    """How many lines have the places of another table's values; where the others err."""
    right, wrong = 0, list[tuple[Cell, int]]()
    for line in lines:
        places = _places(line, other, way)
        if places is None:
            continue
        off = [
            (cell, places[label])
            for label, cell in line.cells.items()
            if cell.figure.value != places[label]
        ]
        if off:
            wrong.append(off[0])
        else:
            right += 1
    return right, wrong


def _places(line: Line, other: Shelf, way: int) -> Mapping[int, int] | None:
    """The places of a line's labels by another table's values; None where it has them not."""
    same = [at for at, words in other.other.labels.items() if line.words and line.words <= words]
    if len(same) != 1:
        return None
    theirs = other.line(same[0])
    found = {}
    for label in line.cells:
        words = line.side.labels[label]
        alike = [one for one in theirs.cells if other.side.labels[one] == words]
        if len(alike) != 1:
            return None
        found[label] = way * theirs.value(alike[0])
    if len(set(found.values())) < len(found):
        return None
    order = sorted(found, key=lambda label: -found[label])
    return {label: place for place, label in enumerate(order, 1)}
