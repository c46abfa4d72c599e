"""Courses that are called monotone where only a heading or a list says whose they are.

"Rises all the way", under the heading "Run A" with its steps below, is said of the courses of that
section; under "**A**:" it is said of A. It is false if each that may be meant turns.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence

from kleash.written.book import Book
from kleash.written.claimed.courses import (
    LEAST,
    is_limited,
    is_steady,
    strict_word,
    way_of,
)
from kleash.written.claimed.mentions import QUANTITIES, concepts
from kleash.written.claimed.outline import Item, above, outline
from kleash.written.claimed.reach import Stretch, stretches, within
from kleash.written.claimed.readings import Clause, Shelf, clauses, outside, single
from kleash.written.claimed.stated import head
from kleash.written.marks import Mark
from kleash.written.page import Page
from kleash.written.prose import STILL, Sentence
from kleash.written.told.things import mentions
from kleash.written.told.tracks import Course

_MONOTONE = re.compile("单调|monotonic")


def false_unnamed(
    book: Book,
    page: Page,
    every: Sequence[Shelf],
    spoken: Sequence[Sentence],
    courses: Sequence[Course],
) -> Iterator[Mark]:
    """Words such as "monotone" that no course of the section bears out."""
    items = outline(page)
    for sentence in spoken:
        for clause in clauses(sentence):
            word = strict_word(clause)
            way = way_of(clause)
            if word is None or way is None or is_limited(clause, never=True):
                continue
            if not way and not _MONOTONE.match(word[0]):
                continue  # "point by point" of anything
            named = _is_named(book, clause)
            meant = [] if named else _meant(book, page, every, items, courses, clause)
            if meant and not any(is_steady(one, way) for one in meant):
                start, end = (clause.start + at for at in word.span())
                text = sentence.text[start:end].strip()
                yield Mark(sentence.line(start), text, "wrong", "check.not-monotone", {}, "course")


def _is_named(book: Book, clause: Clause) -> bool:
    """Whether a sentence says, up to the end of a clause, of what it speaks, or in numbers."""
    text = clause.text
    for one in stretches(clause.sentence, clause.start, clause.end):
        text = text.replace(clause.sentence.plain[one.start : one.end], " ")
    if re.search(r"\d", text):
        return True
    if concepts(outside(clause.text)) & QUANTITIES - {"step", "turns"}:
        return True
    return any(one.start < clause.end for one in mentions(clause.sentence, book.sheets))


def _meant(
    book: Book,
    page: Page,
    every: Sequence[Shelf],
    items: Mapping[int, Item],
    courses: Sequence[Course],
    clause: Clause,
) -> list[list[float]]:
    """The courses of the arm that stands above a list, else those of the section."""
    line = clause.sentence.line(clause.start)
    spans = stretches(clause.sentence, 0, clause.end)
    for one in above(items, line):
        found = list(_of(every, head(one), spans))
        if found:
            return found
    at = bisect_right(book.heads, line)
    first = book.heads[at - 1] if at else 0
    last = book.heads[at] if at < len(book.heads) else len(page.lines) + 1
    own = [
        [figure.value for at, figure in sorted(one.points.items()) if within(spans, at)]
        for one in courses
        if one.axis not in STILL and all(first < nth < last for nth in one.lines)
    ]
    own = [one for one in own if len(one) >= LEAST]
    title = page.line(first).strip("# ") if first else ""
    return own or list(_of(every, Clause(Sentence(title, [first]), 0, len(title)), spans))


def _of(every: Sequence[Shelf], told: Clause, spans: Sequence[Stretch]) -> Iterator[list[float]]:
    """The courses of the one arm that a text names, in each table of steps."""
    for shelf in every:
        steps = [nth for nth, at in shelf.steps.items() if within(spans, at)]
        steps = sorted(steps, key=shelf.steps.__getitem__)
        if len(steps) < LEAST or shelf.side.is_metrics:
            continue
        names = single(shelf.side.named(told.sentence, told.start, told.end, arms=True))
        labels = {label for _, label in names}
        lines = [shelf.line(nth) for nth in steps] if len(labels) == 1 else []
        for label in labels if lines else ():
            values = [one.value(label) for one in lines if label in one.cells]
            if len(values) >= LEAST:
                yield values
