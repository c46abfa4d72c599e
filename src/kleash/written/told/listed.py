"""Steps that a sentence gives for several things alike: "A step 72, B step 96 and C step 80".

Where all but one of three or more are where their courses are best, or lowest, that one is wrong.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

from kleash.written.claimed.reach import Stretch, stretches
from kleash.written.marks import Mark
from kleash.written.printed import Sheet
from kleash.written.prose import At, Sentence
from kleash.written.told.bests import lines_of_bests
from kleash.written.told.subjects import Records, clause
from kleash.written.told.things import Mention, mentions
from kleash.written.told.tracks import Course, families

LEAST = 3  # things that are told alike
NEAR = 14  # letters between a name and its step
_ROW = re.compile(
    r"(?:(?<![a-z])(?:steps|epochs|updates)|步|轮次?|step|epoch)\s?(?:是|为|:|分别[为是]?|依次[为是]?)?\s?"
    r"(?P<all>\d+(?:\s?(?:, and|,|、|/|and|和)\s?\d+){2,})(?!\d|\.\d|\s?%)"
)
_APART = re.compile(r"[;。]")
_LIES = re.compile(
    r"最[低高佳好优小大]点?|峰值|见底|触底|见顶|"
    r"(?<![a-z])(?:peaks?|minim\w+|maxim\w+|best|lowest|highest|bottoms?)(?![a-z])"
)
_EARLIER = re.compile(
    r"[早晚]\s?\d+\s?个?\s?(?:步|轮|epoch|step)|"
    r"(?<![a-z])(?:steps?|epochs?) (?:earlier|later|sooner)"
)
Listed = Sequence[tuple[Mention, At]]
Ways = Sequence[tuple[Course, frozenset[float]]]
"""Courses of one quantity, each with the steps at which it is best."""


def false_lists(records: Records, spoken: Sequence[Sentence]) -> Iterator[Mark]:
    """The one step of a list that is not where its course is best, as all others are."""
    every = list(_ways(records.courses))
    for sentence in spoken:
        for listed in _lists(sentence, records.sheets):
            odd = [off for ways in every if (off := _off(listed, ways)) is not None]
            one_each = all(len(off) == 1 for off in odd)
            if not odd or not one_each or _told(records, listed):
                continue
            where = {nth: right for off in odd for nth, right in off}
            if len(where) == 1:
                nth, right = where.popitem()
                yield _mark(sentence, listed[nth][1], right)


def false_steps_in_a_row(records: Records, spoken: Sequence[Sentence]) -> Iterator[Mark]:
    """The one step of a list without names that a line of best steps has otherwise.

    "Peaks come at steps 100, 140, 180 and 140", where the table has 100, 140, 160 and 140.
    """
    lines = list(lines_of_bests(records.sheets))
    for sentence in spoken:
        for match in _ROW.finditer(sentence.plain):
            told = [float(one) for one in re.findall(r"\d+", match["all"])]
            if len({b - a for a, b in pairwise(told)}) == 1 and not _LIES.search(sentence.plain):
                continue  # "epochs 1, 2, 3" are all there are
            spans = [
                line[at : at + len(told)]
                for line in lines
                for at in range(len(line) - len(told) + 1)
            ]
            off = [[n for n, two in enumerate(zip(told, one, strict=True)) if len({*two}) > 1]
                   for one in spans]  # fmt: skip
            near = [(one, odd[0]) for one, odd in zip(spans, off, strict=True) if len(odd) == 1]
            if near and all(off):
                (span, at), *_ = near
                facts: dict[str, object] = {"value": f"{span[at]:g}"}
                text, line = f"{told[at]:g}", sentence.line(match.start())
                yield Mark(line, text, "wrong", "check.slip", facts, f"row {text}")


def false_rooms(records: Records, spoken: Sequence[Sentence]) -> Iterator[Mark]:
    """Two steps between which the bests of all are said to lie, where a table has them otherwise.

    "The minimum lies between epochs 3 and 4", of a line that has 2, 3, 3 and 4.
    """
    lines = [line for line in lines_of_bests(records.sheets) if len(line) >= LEAST]
    for sentence in spoken:
        for span in stretches(sentence, 0, len(sentence.plain)):
            first, last = clause(sentence, span.start, span.end)
            lies = _LIES.search(sentence.plain, first, last)
            if not lies or any(_lies(line, span) for line in lines) or not lines:
                continue
            near = [one for one in lines if min(one) == span.first or max(one) == span.last]
            named = [one for one in mentions(sentence, records.sheets) if first <= one.start < last]
            if near and not any(_is_one(one) for one in named):
                facts = {"value": f"{min(near[0]):g}-{max(near[0]):g}"}
                text, at = sentence.text[span.start : span.end], sentence.line(span.start)
                yield Mark(at, text, "wrong", "check.slip", facts, f"room {text}")


def _lies(line: Sequence[float], span: Stretch) -> bool:
    return all(map(span.has, line))


def _is_one(mention: Mention) -> bool:
    """Whether a name is that of one arm: then the line of all is not meant."""
    return any(key.startswith("#") for key in mention.keys)


def false_pairs(records: Records, spoken: Sequence[Sentence]) -> Iterator[Mark]:
    """One of two steps that are said to come earlier and later, where tables have another best.

    "A at step 72, B at step 80, 8 steps later", where the best of B is at 88.
    """
    for sentence in spoken:
        if not _EARLIER.search(sentence.plain) or families(sentence.plain):
            continue  # of a quantity the best may be elsewhere
        for listed in _lists(sentence, records.sheets, 2):
            bests = [one for one in records.bests if not one.is_change]
            known = [{best.at for best in bests if best.keys & one.keys} for one, _ in listed]
            if len(listed) != 2 or any(len(steps) != 1 for steps in known):
                continue
            off = [nth for nth, (_, place) in enumerate(listed) if place.at not in known[nth]]
            if len(off) == 1:
                yield _mark(sentence, listed[off[0]][1], min(known[off[0]]))


def _mark(sentence: Sentence, place: At, right: float) -> Mark:
    text = sentence.plain[place.start : place.end]
    facts: dict[str, object] = {"value": f"{right:g}"}
    return Mark(sentence.line(place.start), text, "wrong", "check.slip", facts, f"listed {text}")


def _lists(sentence: Sentence, sheets: Sequence[Sheet], least: int = LEAST) -> Iterator[Listed]:
    """Steps each of which has its own name right before it."""
    named, found, start = mentions(sentence, sheets), list[tuple[Mention, At]](), 0
    for place in sorted(sentence.places, key=lambda one: one.start):
        own = [one for one in named if start <= one.start and one.end <= place.start]
        near = len({one.keys for one in own}) == 1 and place.start - own[-1].end <= NEAR
        broken = bool(_APART.search(sentence.plain[start : place.start])) and bool(found)
        alike = not found or found[-1][1].axis == place.axis
        if not place.is_of_training or not near or broken or not alike:
            if len(found) >= least:
                yield found
            found = [(own[-1], place)] if near and place.is_of_training else []
        else:
            found.append((own[-1], place))
        start = place.end
    if len(found) >= least:
        yield found


def _ways(courses: Sequence[Course]) -> Iterator[Ways]:
    """The courses of each quantity of each table with where they are highest, and lowest."""
    tables: dict[tuple[tuple[int, ...], str], list[Course]] = defaultdict(list)
    for one in courses:
        quantity = one.quantity or one.label.rpartition("·")[0]
        tables[() if one.arm else tuple(sorted(one.lines)), quantity].append(one)
    for same in tables.values():
        for best in (max, min):
            yield [(one, _bests(one, best(f.value for f in one.points.values()))) for one in same]


def _bests(course: Course, best: float) -> frozenset[float]:
    return frozenset(at for at, figure in course.points.items() if figure.value == best)


def _off(listed: Listed, ways: Ways) -> list[tuple[int, float]] | None:
    """Which steps of a list are not their courses' bests, at most one; None if it is of others."""
    steps = [_own(mention, place.axis, ways) for mention, place in listed]
    if not all(steps) or len({min(one) for one in steps}) == 1:
        return None
    told = enumerate(zip(listed, steps, strict=True))
    off = [(nth, min(at)) for nth, ((_, place), at) in told if place.at not in at]
    return off if len(off) <= 1 else None


def _own(mention: Mention, axis: str, ways: Ways) -> frozenset[float]:
    """Where the one course that a name fits best is best."""
    shared = [
        (len(mention.keys & course.keys) + (mention.text == course.label), at)
        for course, at in ways
        if mention.keys & course.keys and course.axis == axis
    ]
    most = max((count for count, _ in shared), default=0)
    own = [at for count, at in shared if count == most]
    return own[0] if len(own) == 1 else frozenset()


def _told(records: Records, listed: Listed) -> bool:
    """Whether tables call each of these steps the best."""
    known: Mapping[int, set[float]] = {
        nth: {best.at for best in records.bests if best.keys & mention.keys}
        for nth, (mention, _) in enumerate(listed)
    }
    return all(place.at in known[nth] for nth, (_, place) in enumerate(listed))
