"""Changes that a sentence puts between two steps: "step 100 → 110 (-0.132)".

Where no course changes so between these, and one does between two others that follow each other,
the steps are wrong. What the greatest change is, `strides` knows.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise

from kleash.written.claimed.reach import Stretch, stretches
from kleash.written.fitting import prints
from kleash.written.marks import Mark
from kleash.written.printed import Figure
from kleash.written.prose import Said, Sentence
from kleash.written.told.subjects import Records
from kleash.written.told.tracks import Course

DIGITS = 2  # of a change that is known by them
_OPEN = re.compile(r"\s?\(\s?[+-]?\s?")
_NEXT = re.compile(r"\s?%?\s?[,/]\s?[+-]?\s?")


def false_changes(records: Records, spoken: Sequence[Sentence]) -> Iterator[Mark]:
    """Steps between which nothing changes as it is said to, where something else does."""
    rows = {line for sheet in records.sheets for line in sheet.table.lines}
    for sentence in spoken:
        if rows & set(sentence.lines):
            continue
        for span in stretches(sentence, 0, len(sentence.plain)):
            told = list(_inside(sentence, span))
            courses = [one for one in records.courses if one.axis == span.axis]
            if not told or any(_changes(one, span, said) for one in courses for said in told):
                continue
            where = {pair for one in courses for said in told for pair in _steps(one, said)}
            if len(where) == 1:
                first, last = where.pop()
                facts = {"said": f"{span.first:g} → {span.last:g}", "at": [f"{first:g} → {last:g}"]}
                text, line = sentence.text[span.start : span.end], sentence.line(span.start)
                yield Mark(line, text, "wrong", "check.elsewhere", facts, "span")


def _inside(sentence: Sentence, span: Stretch) -> Iterator[Said]:
    """The changes in the bracket right behind two steps."""
    end, between = span.end, _OPEN
    for said in sentence.numbers:
        if said.start >= end and between.fullmatch(sentence.plain, end, said.start):
            if said.sign in ("+", "-") and said.figure.digits >= DIGITS:
                yield said
            end, between = said.end, _NEXT


def _changes(course: Course, span: Stretch, said: Said) -> bool:
    """Whether a course changes so between two steps, or has the change itself at the second."""
    if span.last in course.points and prints(said.figure, course.points[span.last]):
        return True
    ends = [course.points.get(at) for at in (span.first, span.last)]
    return None not in ends and _is(ends[0], ends[1], said)  # type: ignore[arg-type]


def _steps(course: Course, said: Said) -> Iterator[tuple[float, float]]:
    """The steps that follow each other between which a course changes so."""
    for first, last in pairwise(sorted(course.points)):
        if _is(course.points[first], course.points[last], said):
            yield first, last


def _is(one: Figure, other: Figure, said: Said) -> bool:
    """Whether a change is that from one number to another, in its own unit or in percent."""
    gap = other.value - one.value
    share = said.kind == "share" and one.unit != "%"
    if share and not one.value:
        return False
    change = 100 * gap / one.value if share else gap
    room = said.figure.half + (
        0 if share else one.half if one.decimals > said.figure.decimals else 0
    )
    return abs(change - said.figure.value) <= room * (1 + 1e-6) + 1e-9
