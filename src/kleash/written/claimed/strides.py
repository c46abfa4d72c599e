"""Changes that a sentence calls the greatest or the least: "the largest rise is A: 54.35 → 55.10".

Where both numbers stand in a line of a table, the change is held against those of the other lines
between the same two places, or, where a step is named, against those from each step of its course
to the next. Either may be meant where neither is named.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise

from kleash.imports.markdown.text import bare
from kleash.written.book import Book, Refs, refs
from kleash.written.claimed.reach import stretches
from kleash.written.claimed.readings import Shelf
from kleash.written.claimed.utmost import LEAST, Utmost, is_at_end, is_named, mark_of, utmosts
from kleash.written.fitting import prints
from kleash.written.marks import Mark, printed_as
from kleash.written.printed import Cell, Sheet, is_total
from kleash.written.prose import Said, Sentence

DIGITS = 2  # of numbers of which two stand in one line
SAME = 7  # decimals in which changes are the same
Stride = tuple[Cell, Cell]
"""Where a change began, and where it came to."""
_SUMMED = re.compile(r"平均|均值|(?<![a-z])(?:mean|avg|average)", re.I)


def false_strides(book: Book, every: Sequence[Shelf], spoken: Sequence[Sentence]) -> Iterator[Mark]:
    """Changes that are called the greatest, or the least, and are neither."""
    for one in utmosts(book, spoken):
        if not one.has_arrow:
            yield from _over_steps(every, one)
            continue
        if min(said.figure.digits for said in one.numbers[:2]) < DIGITS:
            continue
        groups = [each for sheet in book.sheets for each in _groups(sheet, one)]
        if not groups or any(_holds(own, others, one) for own, others in groups):
            continue
        other, begun = max(((b, a) for a, b in groups[0][1]), key=lambda each: _size(each[::-1]))
        gap = other.figure.value - begun.figure.value
        yield mark_of(one, other.line, printed_as(gap, "", other.figure.decimals, signed=True))


def _over_steps(every: Sequence[Shelf], one: Utmost) -> Iterator[Mark]:
    """A change from one step to another that is called the greatest, and is another's.

    "From step 100 to 600 the largest gain is A (+0.047)".
    """
    spans = stretches(one.sentence, 0, one.word.start())
    if len(spans) != 1 or not one.is_change:
        return
    found = list[tuple[Cell, float]]()
    for shelf in every:
        ends = [
            next((nth for nth, at in shelf.steps.items() if at == end), None)
            for end in (spans[0].first, spans[0].last)
        ]
        if None in ends:
            continue
        first, last = (shelf.line(nth) for nth in ends if nth is not None)
        gaps = {
            label: round(last.value(label) - first.value(label), SAME)
            for label in shelf.side.labels.keys() & first.cells.keys() & last.cells.keys()
            if not _is_summed(shelf.sheet, last.cells[label], along=shelf.side.is_rows)
        }
        for label, gap in gaps.items():
            own = is_named(shelf, label, one) and abs(abs(gap) - abs(one.numbers[0].figure.value))
            if own is False or own > 10**-SAME or len(gaps) < LEAST:
                continue
            if is_at_end(list(gaps.values()), gap, one.sense):
                return
            best = max(gaps, key=lambda at: abs(gaps[at]))
            found.append((last.cells[best], gaps[best]))
    for cell, gap in found[:1]:
        value = printed_as(gap, "", cell.figure.decimals, signed=True)
        yield mark_of(one, cell.line, value)


def _size(stride: Stride) -> float:
    return abs(stride[1].figure.value - stride[0].figure.value)


def _holds(own: Stride, others: Sequence[Stride], one: Utmost) -> bool:
    """Whether a change is at an end of some; where its size is not told also relative."""
    ways = [[round(b.figure.value - a.figure.value, SAME) for a, b in (*others, own)]]
    told = [abs(said.figure.value) for said in one.numbers[2:]]
    sized = any(abs(each - _size(own)) < 10**-SAME for each in told)
    if not sized and all(a.figure.value for a, _ in (*others, own)):
        ways.append([b.figure.value / a.figure.value - 1 for a, b in (*others, own)])
    return any(is_at_end(values, values[-1], one.sense) for values in ways)


def _groups(sheet: Sheet, one: Utmost) -> Iterator[tuple[Stride, list[Stride]]]:
    """Every change of a table that may be meant, with those that it is held against."""
    named = refs(sheet, one.sentence, one.word.end(), one.numbers[0].start)
    cells = [cell for cell in sheet.cells if not cell.part]
    first, last = (_found(cells, said) for said in one.numbers[:2])
    for own in ((a, b) for a in first for b in last if a is not b):
        for along in (True, False):
            if _line(own[0], along=along) == _line(own[1], along=along):
                for others in _others(sheet, cells, own, named, along=along):
                    if len(others) >= LEAST:
                        yield own, others


def _found(cells: Sequence[Cell], said: Said) -> list[Cell]:
    decimals = said.figure.decimals
    return [
        one for one in cells if one.figure.decimals == decimals and prints(said.figure, one.figure)
    ]


def _line(cell: Cell, *, along: bool) -> int:
    """The row of a cell, where lines are rows, else its column."""
    return cell.row if along else cell.column


def _others(
    sheet: Sheet, cells: Sequence[Cell], own: Stride, named: Refs, *, along: bool
) -> Iterator[list[Stride]]:
    """The changes of other lines between the same places, and of its own from step to step."""
    lines, places = (named.rows, named.columns) if along else (named.columns, named.rows)
    line, end = _line(own[1], along=along), _line(own[1], along=not along)
    if line in lines or end not in places:
        at = {(_line(one, along=along), _line(one, along=not along)): one for one in cells}
        ends = [_line(one, along=not along) for one in own]
        both = [[at.get((nth, end)) for end in ends] for nth in sorted({key[0] for key in at})]
        yield [
            (a, b)
            for a, b in both
            if a is not None and b is not None and not _is_summed(sheet, b, along=along)
        ]
    axis = sheet.across if along else sheet.counts
    if end in places or line not in lines:
        course = [one for one in cells if _line(one, along=along) == line]
        course = [one for one in course if _line(one, along=not along) in axis]
        yield list(pairwise(sorted(course, key=lambda one: axis[_line(one, along=not along)])))


def _is_summed(sheet: Sheet, cell: Cell, *, along: bool) -> bool:
    """Whether a line is made of the others."""
    name = bare(sheet.table.rows[cell.row][0] if along else sheet.table.header[cell.column])
    return is_total(name) or bool(_SUMMED.search(name))
