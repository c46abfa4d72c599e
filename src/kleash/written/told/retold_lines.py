"""Whole lines of tables that are told again: in a sentence, or as a list of steps in a code block.

"Shot 2: 62.0 / 59.2 / 57.0 / 56.7" is the column that it names, from its first row to its last.
Where it is none, but agrees with one under the same heading in half of its places, both tellings
of the others are doubted.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from kleash.imports.markdown.text import bare
from kleash.written.book import Book
from kleash.written.marks import Mark, number_mark
from kleash.written.printed import Cell, Sheet, is_total
from kleash.written.prose import Said, Sentence
from kleash.written.told.subjects import Records
from kleash.written.told.tracks import Course

LEAST = 4  # numbers of a line that is known by its places
FEW = 4  # numbers of a list of steps for each that its table has otherwise
NEAR = 24  # letters between a name and the first number
_JOINED = re.compile(r"\s?%?\s?(?:[,、/]|→|->)\s?")
_SUMMED = re.compile(r"平均|均值|(?<![a-z])(?:mean|avg|average)", re.I)
_APART = re.compile(r"[;。]")


def false_retellings(book: Book, records: Records, spoken: Sequence[Sentence]) -> Iterator[Mark]:
    """Numbers of lines told twice that are not the same."""
    rows = {line for sheet in book.sheets for line in sheet.table.lines}
    for sentence in spoken:
        for run in _runs(sentence) if not rows & set(sentence.lines) else ():
            yield from _of_run(book, sentence, run)
    yield from _of_lists(book, records)


def _runs(sentence: Sentence) -> Iterator[list[Said]]:
    """Numbers printed alike that follow each other with nothing but a stroke between."""
    run = list[Said]()
    for said in sentence.numbers:
        last = run[-1] if run else None
        goes_on = last is not None and _JOINED.fullmatch(sentence.plain, last.end, said.start)
        alike = last is not None and last.figure.decimals == said.figure.decimals > 0
        if goes_on and alike and not said.sign:
            run.append(said)
            continue
        if len(run) >= LEAST:
            yield run
        run = [] if said.sign else [said]
    if len(run) >= LEAST:
        yield run


def _of_run(book: Book, sentence: Sentence, run: Sequence[Said]) -> Iterator[Mark]:
    lines = list(_named(book, sentence, run[0].start))
    fits = [(line, [_same(*two) for two in zip(run, line, strict=True)])
            for line in lines if len(line) == len(run)]  # fmt: skip
    if any(all(one) for _, one in fits):
        return
    near = {sheet.nth for sheet in book.section(sentence.line(run[0].start))}
    half = [(line, one) for line, one in fits if 2 * sum(one) >= len(run) and line[0].table in near]
    most = [one for one in half if sum(one[1]) == max(sum(each) for _, each in half)]
    if len(most) != 1:
        return
    for said, cell, fine in zip(run, *most[0], strict=True):
        if not fine:
            yield from _both(sentence.line(said.start), said.text, cell)


def _both(line: int, text: str, cell: Cell) -> Iterator[Mark]:
    """The two tellings of one number, neither of which is known to be wrong."""
    own, shown = cell.number.text.strip("* "), f"retold {text}"
    facts: dict[str, object] = {"value": own, "lines": [cell.line]}
    yield Mark(line, text, "unsupported", "check.twin", facts, shown)
    yield number_mark(cell.number, "unsupported", "check.twin", {"value": text, "lines": [line]})


def _same(said: Said, cell: Cell) -> bool:
    return (said.figure.value, said.figure.decimals) == (cell.figure.value, cell.figure.decimals)


def _named(book: Book, sentence: Sentence, end: int) -> Iterator[list[Cell]]:
    """The lines of all tables that stand right before a number, without what is made of them."""
    names = [one for one in sentence.names if one.end <= end <= one.end + NEAR]
    names = [one for one in names if not _APART.search(sentence.plain, one.end, end)]
    last = max((one.end for one in names), default=0)
    for name in names:
        sheet = book.sheets[name.sheet]
        if name.end == last and name.column is not None:
            own = [one for one in sheet.cells if one.column == name.column]
            yield [one for one in own if not one.part and not _is_summed(sheet, one, is_row=True)]
        elif name.end == last and name.row is not None:
            own = [one for one in sheet.cells if one.row == name.row]
            yield [one for one in own if not one.part and not _is_summed(sheet, one, is_row=False)]


def _is_summed(sheet: Sheet, cell: Cell, *, is_row: bool) -> bool:
    """Whether the other line of a cell is made of those beside it."""
    name = bare(sheet.table.rows[cell.row][0] if is_row else sheet.table.header[cell.column])
    return is_total(name) or bool(_SUMMED.search(name))


def _of_lists(book: Book, records: Records) -> Iterator[Mark]:
    """Lists of steps that a column of a table has but for a few numbers."""
    cells = {line: sheet for sheet in book.sheets for line in sheet.table.lines}
    # A list that gives a step twice has a line more than points: which is meant nobody can tell.
    every = [one for one in records.courses if len(one.lines) == len(one.points)]
    tables = [one for one in every if one.lines[0] in cells]
    for one in every:
        if one.lines[0] in cells:
            continue
        odd = [(other, off) for other in tables if (off := _off(one, other)) is not None]
        if not odd or any(not off for _, off in odd):
            continue
        other, off = min(odd, key=lambda each: len(each[1]))
        for at in off:
            line = dict(zip(one.points, one.lines, strict=True))[at]
            there = dict(zip(other.points, other.lines, strict=True))[at]
            yield from _both(line, f"{one.points[at].value:.{one.points[at].decimals}f}",
                             _cell(cells[there], there, other, at))  # fmt: skip


def _off(one: Course, other: Course) -> list[float] | None:
    """The steps at which a list has another number than a table; None if it is of another."""
    common = [at for at in one.points if at in other.points]
    same = [at for at in common if one.points[at] == other.points[at]]
    off = [at for at in common if at not in same]
    if one.axis != other.axis or len(common) < len(one.points) or len(same) < LEAST:
        return None
    return off if FEW * len(off) <= len(same) else None


def _cell(sheet: Sheet, line: int, course: Course, at: float) -> Cell:
    """The cell that a course has at a step."""
    figure = course.points[at]
    return next(one for one in sheet.cells if one.line == line and one.figure == figure)
