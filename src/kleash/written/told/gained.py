"""Marks that a change of a course takes back: what stands beside a step need not stand there.

"A falls most at step 100 (-0.114)" is of the fall to that step, "150→175 涨 55" of the rise between
two. Only acquits: whether a change is right is for the rules that mark it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

from kleash.written.fitting import prints
from kleash.written.marks import Mark
from kleash.written.printed import Figure
from kleash.written.prose import At, Said, Sentence
from kleash.written.told.tracks import Course

OF_STEPS = ("check.elsewhere", "number-without-source")
MOST = "check.not-most"
_ARROW = re.compile(r"\s?(?:→|->|到|至)\s?")
_OPENS = re.compile(r"\s?\(\s?[+-]?")
Gains = Mapping[float, Figure]
"""What a course gained since the point before, by step."""


def without_gains(
    marks: Sequence[Mark], courses: Sequence[Course], spoken: Sequence[Sentence]
) -> list[Mark]:
    """Without guesses at numbers that are changes of a course, told with their steps."""
    gains = [(course.axis, _gains(course)) for course in courses]
    told, most = set[tuple[int, str]](), set[int]()
    for sentence in spoken:
        for place in sentence.places:
            said, line = _in_bracket(sentence, place), sentence.line(place.start)
            own = [each for axis, each in gains if axis == place.axis and place.at in each]
            own = [each for each in own if said and prints(said.figure, each[place.at])]
            if said and own:
                told |= {(line, sentence.text[place.start : place.end]), (line, said.text)}
            if any(_is_at_end(each, place.at) for each in own):
                most.add(line)
        for said in _between_steps(sentence, courses):
            told.add((sentence.line(said.start), said.text))
    return [
        mark
        for mark in marks
        if not (mark.code in OF_STEPS and (mark.line, mark.text) in told)
        and not (mark.code == MOST and mark.line in most)
    ]


def _gains(course: Course) -> Gains:
    points = sorted(course.points.items())
    return {at: _gain(before, now) for (_, before), (at, now) in pairwise(points)}


def _gain(before: Figure, now: Figure) -> Figure:
    return Figure(now.value - before.value, max(before.decimals, now.decimals), now.unit)


def _is_at_end(gains: Gains, at: float) -> bool:
    """Whether a course gained, or lost, nowhere more."""
    values = [each.value for each in gains.values()]
    return gains[at].value in (min(values), max(values))


def _in_bracket(sentence: Sentence, place: At) -> Said | None:
    """The number with which a bracket right behind a step opens."""
    for said in sentence.numbers:
        if said.start >= place.end:
            return said if _OPENS.fullmatch(sentence.plain, place.end, said.start) else None
    return None


def _between_steps(sentence: Sentence, courses: Sequence[Course]) -> Iterator[Said]:
    """Numbers behind two steps that are what a course gained between them."""
    numbers = sentence.numbers
    for one, (other, said) in zip(numbers[:-2], pairwise(numbers[1:]), strict=True):
        arrow = _ARROW.fullmatch(sentence.plain, one.end, other.start)
        for course in courses if arrow else ():
            before, now = (course.points.get(each.figure.value) for each in (one, other))
            if before and now and prints(said.figure, _gain(before, now)):
                yield said
