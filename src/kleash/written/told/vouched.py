"""Numbers of sentences that courses give, of tables or logs, though no table prints them.

"The mean of the last 4 evaluations", "0.066 below its best", "grown to 303 tokens at the worst":
which statistic may be meant is told by the words around the number.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from kleash.written.fitting import NAMING
from kleash.written.gaps import is_gap
from kleash.written.peaks import SCALES
from kleash.written.printed import Figure
from kleash.written.prose import Said, Sentence
from kleash.written.told.subjects import Records, each, subject_of
from kleash.written.told.tracks import families

AXES = ("step", "epoch")
_MEAN = re.compile(r"平均|均值|(?<![a-z])(?:mean|average|avg)(?![a-z])")
_END = re.compile(
    r"最|峰|末|(?<![a-z])(?:best|worst|peak\w*|highest|lowest|most|least|max\w*|min\w*|last|final|end\w*)(?![a-z])"
)
_LAST = re.compile(r"(?:最后|末|后|last|final)\s?(\d{1,3})(?!\d)")
_SUM = re.compile(r"合计|总共|一共|共计?|(?<![a-z])(?:together|in all|total|sum)(?![a-z])")
Points = Mapping[float, float]


def is_vouched(records: Records, sentence: Sentence, said: Said) -> bool:
    """Whether a number is a sum of those before it, or what the course of an arm gives."""
    if _is_sum(sentence, said):
        return True
    if said.figure.digits < NAMING:
        return False
    mean, end = (words.search(sentence.plain) for words in (_MEAN, _END))
    gap = is_gap(sentence, said)
    windows = {int(count) for count in _LAST.findall(sentence.plain)}
    for points in _courses(records, sentence, said) if mean or end or gap else ():
        values = list(points.values())
        last = values[-1]
        made = [max(values), min(values), last] if end and not gap else []
        made += [max(values) - last, min(values) - last, values[0] - last] if gap else []
        counts = [len(values), *(count for count in windows if count <= len(values))]
        made += [sum(values[-count:]) / count for count in counts] if mean and not gap else []
        scales = SCALES if said.kind in ("share", "points") else (1.0,)
        if any(_is(said.figure, scale * value) for value in made for scale in scales):
            return True
    return False


def _courses(records: Records, sentence: Sentence, said: Said) -> Iterator[Points]:
    """The courses of the arms that a number may be of."""
    subject = subject_of(sentence, records.sheets, said.start, said.end)
    for axis in AXES:
        for arms in each(subject) if subject.arms or families(subject.text) else ():
            known = records.of_tables(subject, arms, axis)
            yield from ({at: one.value for at, one in course.points.items()} for course in known)
            yield from records.same(subject, arms, axis, known)


def _is(said: Figure, value: float) -> bool:
    return abs(abs(said.value) - abs(value)) <= said.half * (1 + 1e-6)


def _is_sum(sentence: Sentence, said: Said) -> bool:
    """Whether a number is the sum of those of its sentence right before it."""
    before = [one for one in sentence.numbers if one.end <= said.start]
    start = before[-1].end if before else 0
    if not _SUM.search(sentence.plain, start, said.start):
        return False
    for count in range(2, len(before) + 1):
        part: Sequence[Said] = before[-count:]
        total = sum(one.figure.value for one in part)
        room = sum(one.figure.half for one in part)
        if abs(total - said.figure.value) <= room + said.figure.half:
            return True
    return False
