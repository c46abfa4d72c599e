"""A number and a step in one bracket, or one behind the other: "1.663 (step 110)".

Where every table and list that has the number has it at a step, and none at this one, the step is
wrong, whoever's it is. One place of the number that has no step leaves it open.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from kleash.imports.markdown.labels import is_best_step
from kleash.imports.markdown.text import bare
from kleash.written.fitting import NAMING, prints
from kleash.written.marks import Mark
from kleash.written.page import Page
from kleash.written.peaks import whole
from kleash.written.printed import Cell, Figure, Sheet, squeezed
from kleash.written.prose import At, Said, Sentence, places
from kleash.written.told.bests import step_in

Point = tuple[Figure, frozenset[float]]
"""A number of a table or list, and the steps at which it stands; none if nothing tells."""
_FIRST = re.compile(r"\s?%?\s?[(,]\s?(?:at\s|在\s?)?")
_CLOSE = re.compile(r"\s?\)")
_BEST = re.compile(r"最[佳好优高低大小]|峰值|(?<![a-z])(?:best|peak|max|min|highest|lowest)")
_LISTED = re.compile(r"([+\-−]?)(\d+(?:\.(\d+))?)\s?(%?)")


def false_pinned_steps(
    sheets: Sequence[Sheet], page: Page, spoken: Sequence[Sentence]
) -> Iterator[Mark]:
    """Steps that stand beside a number which all tables and lists have at others."""
    rows = {line for sheet in sheets for line in sheet.table.lines}
    listed = list(_in_lists(page))
    for sentence in spoken:
        if rows & set(sentence.lines):
            continue
        for place in sentence.places:
            said = _beside(sentence, place) if place.is_of_training else None
            if said is None:
                continue
            known = [*_in_tables(sheets, place.axis, said), *_of(listed, said)]
            steps = frozenset[float]().union(*(at for _, at in known))
            if known and all(at for _, at in known) and place.at not in steps:
                text, line = sentence.text[place.start : place.end], sentence.line(place.start)
                facts = {"said": whole(place.at), "at": [whole(at) for at in sorted(steps)]}
                yield Mark(line, text, "wrong", "check.elsewhere", facts, "pinned")


def _beside(sentence: Sentence, place: At) -> Said | None:
    """The number right before a step with which a bracket ends."""
    if not _CLOSE.match(sentence.plain, place.end):
        return None
    for said in sentence.numbers:
        between = sentence.plain[said.end : place.start]
        tells = said.figure.digits >= NAMING + (not said.sign) and said.figure.decimals
        if said.end <= place.start and _FIRST.fullmatch(between) and tells:
            return said
    return None


def _in_tables(sheets: Sequence[Sheet], axis: str, said: Said) -> Iterator[Point]:
    for sheet in sheets:
        for cell in sheet.cells:
            if prints(said.figure, cell.figure):
                yield cell.figure, frozenset(_steps(sheet, axis, cell))


def _steps(sheet: Sheet, axis: str, cell: Cell) -> Iterator[float]:
    """The step of a row or column, of its title, or that a best has beside it."""
    if sheet.axis == axis and cell.row in sheet.counts:
        yield sheet.counts[cell.row]
    if sheet.across_axis == axis and cell.column in sheet.across:
        yield sheet.across[cell.column]
    header, texts = sheet.table.header, sheet.table.rows[cell.row]
    near = " | ".join((texts[0], header[cell.column], texts[cell.column]))
    yield from (one.at for one in places(squeezed(bare(near))) if one.axis == axis)
    if _BEST.search(squeezed(header[cell.column])):
        told = [nth for nth, title in enumerate(header) if nth and is_best_step(title)]
        yield from (at for nth in told for at in step_in(texts, nth))
    if _BEST.search(squeezed(texts[0])):
        rows = [row for row in sheet.table.rows if is_best_step(row[0])]
        yield from (at for row in rows for at in step_in(row, cell.column))


def _in_lists(page: Page) -> Iterator[Point]:
    """Every number of a line of a code block that begins with its step."""
    fenced = False
    for start, end in page.lines:
        line = squeezed(page.text[start:end])
        if page.text[start:end].strip().startswith(("```", "~~~")):
            fenced = not fenced
        found = [one for one in places(line) if one.is_of_training]
        for match in _LISTED.finditer(line, found[0].end) if fenced and len(found) == 1 else ():
            figure = Figure(float(match[2]), len(match[3] or ""), match[4])
            yield figure, frozenset((found[0].at,))


def _of(listed: Sequence[Point], said: Said) -> Iterator[Point]:
    return (point for point in listed if prints(said.figure, point[0]))
