"""Steps at which a course is said to pass a limit for the first time: "首次达到 1.9：A 第 40 步".

The first step at which the course that is meant has the limit or is past it must be that step.
Where any course that may be meant fits, nothing is said.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from kleash.written.marks import Mark
from kleash.written.peaks import SCALES, same_form, whole
from kleash.written.printed import squeezed
from kleash.written.prose import At, Sentence
from kleash.written.told.subjects import Arms, Records, Subject, each, subject_of
from kleash.written.told.things import row_keys
from kleash.written.told.tracks import families

FAR = 40  # letters between a limit and the step at which it is passed
NEAR = 12
ABOVE = (
    r"达到|超过|越过|突破|高于|升到|升破|过|到|(?<![a-z])(?:reach(?:es|ed)?|exceed(?:s|ed)?|"
    r"pass(?:es|ed)?|cross(?:es|ed)?|above|over|at least|past|hits?)(?![a-z])|>=?|≥"
)
BELOW = r"低于|跌破|降到|降至|降破|落到|小于|(?<![a-z])(?:below|under|less than)(?![a-z])|<=?|≤"
_LIMIT = re.compile(
    r"(?:首次|第一次|首个|最早|才|(?<![a-z])(?:first|earliest)(?![a-z]))[^,;。\d]{0,24}?"
    rf"(?:(?P<below>{BELOW})|(?P<above>{ABOVE}))[^\d,;。]{{0,8}}?"
    r"(?P<limit>\d[\d,]*(?:\.\d+)?)(?!\d)\s?(?P<unit>%?)(?!\s?(?:步|steps?|epochs?|轮|次))"
)
_BETWEEN = re.compile(
    r"(?:隔了?|相隔|间隔|相差|[早晚快慢]了?|提前)\s?(?P<count>\d+)\s?步|"
    r"(?<![\d.])(?P<number>\d+) steps (?:later|earlier|apart|sooner)(?![a-z])"
)
_FIRST = re.compile(r"首次|第一|首个|最早|达到|(?<![a-z])(?:first|earliest|steps? to)(?![a-z])")
_NOT = re.compile(r"没有|从未|未|不|(?<![a-z])(?:never|not|no)(?![a-z])")


@dataclass(frozen=True)
class Limit:
    """A limit, and on which side of it a course is said to come."""

    value: float
    sign: int
    share: bool


def false_crossings(records: Records, every: Sequence[Sentence]) -> Iterator[Mark]:
    """Steps at which a limit is not passed for the first time."""
    for sentence in every:
        for place, limit in _told(sentence):
            usual = _usual(records, sentence, place, limit)
            if usual:
                facts = {"said": whole(place.at), "at": [whole(at) for at in sorted(usual)]}
                text, line = sentence.text[place.start : place.end], sentence.line(place.start)
                yield Mark(line, text, "wrong", "check.elsewhere", facts, "crossing")


def false_spans(every: Sequence[Sentence]) -> Iterator[Mark]:
    """Numbers of steps between two that a sentence names, and that are not so far apart."""
    for sentence in every:
        for match in _BETWEEN.finditer(sentence.plain):
            places = [one for one in sentence.places if one.is_of_training]
            before = [one for one in places if one.end <= match.start()]
            text = match["count"] or match["number"]
            since = max(sentence.plain.rfind(mark, 0, match.start()) for mark in ";。")
            own = [one for one in before if one.start > since]
            if len(own) != 2 or own[0].axis != own[1].axis:
                continue
            earlier = sentence.before.places if sentence.before else []
            steps = [one.at for one in (*earlier, *places)]
            if not any(abs(a - b) == float(text) for a, b in combinations(steps, 2)):
                line = sentence.line(match.start())
                facts = {"value": f"{abs(own[1].at - own[0].at):g}", "lines": [line]}
                yield Mark(line, text, "wrong", "check.not-difference", facts, f"said {text}")


def _told(sentence: Sentence) -> Iterator[tuple[At, Limit]]:
    """The steps that a sentence gives, with the limit that is passed at each."""
    plain = sentence.plain
    places = [place for place in sentence.places if place.is_of_training]
    for match in _LIMIT.finditer(plain):
        value = float(match["limit"].replace(",", ""))
        limit = Limit(value, -1 if match["below"] else 1, match["unit"] == "%")
        before = [one for one in places if 0 <= match.start() - one.end <= NEAR]
        after = [one for one in places if 0 <= one.start - match.end() <= FAR]
        near = before[-1:] or after[:1]
        if not near or _NOT.search(plain, match.start(), max(near[0].start, match.end())):
            continue
        if re.search(r"[,;。]", plain[near[0].end : match.start()]) or re.search(
            r"[;。]", plain[match.end() : near[0].start]
        ):
            continue
        yield near[0], limit
        last = near[0]
        for other in [one for one in places if one.start >= match.end() and one != near[0]]:
            if not same_form(sentence, last, other):
                break
            yield other, limit
            last = other


def _usual(records: Records, sentence: Sentence, place: At, limit: Limit) -> set[float]:
    """The steps at which the courses that are meant pass a limit, if it is none of these."""
    subject = subject_of(sentence, records.sheets, place.start, place.end)
    found = set[float]()
    for arms in each(subject) if subject.arms or families(subject.text) else ():
        steps = _steps(records, subject, arms, place, limit)
        if not steps or place.at in steps:
            if not subject.listed:
                return set()
        else:
            found |= steps
    return found


def _steps(records: Records, subject: Subject, arms: Arms, place: At, limit: Limit) -> set[float]:
    """The steps at which any course of an arm passes a limit; none where it may be another's."""
    every = records.of_tables(subject, arms, place.axis)
    known = [one for one in every if one.whole and place.at in one.points]
    tables = [{at: figure.value for at, figure in one.points.items()} for one in known]
    logged = records.same(subject, arms, place.axis, known)
    found = {at for points in tables for at in _first(points, limit)}
    others = {at for points in logged for at in _first(points, limit)}
    told = set(_listed(records, arms, limit)) if arms else set()
    if place.at in others | told:
        return {place.at}
    if told:
        return told
    return found or (others if families(subject.text) else set())


def _listed(records: Records, arms: Arms, limit: Limit) -> Iterator[float]:
    """The steps that tables give for an arm under a title with that limit: "first step ≥ 0.5"."""
    for sheet in records.sheets:
        for cell in sheet.cells:
            title = squeezed(sheet.table.header[cell.column])
            figures = {float(one) for one in re.findall(r"\d+(?:\.\d+)?", title)}
            own = row_keys(sheet, cell.row)
            titled = _FIRST.search(title) and limit.value in figures
            if titled and not cell.figure.decimals and all(arm.keys & own for arm in arms):
                yield cell.figure.value


def _first(points: Mapping[float, float], limit: Limit) -> Iterator[float]:
    """The first steps at which a course is past a limit, or has it."""
    for scale in SCALES if limit.share else (1.0,):
        far = [limit.sign * (scale * value - limit.value) for value in points.values()]
        if max(far) >= 0 and min(far) < 0:
            yield next(at for at, by in zip(points, far, strict=True) if by >= 0)
            yield from [at for at, by in zip(points, far, strict=True) if by > 0][:1]
