"""Counts in sentences: with their share of a whole, and of how often a course is past a limit.

"12 个验证点中 A 高的有 8 个（66.7%）" says what it is of. Several counts with shares of one whole
tell it: 183 (76.2%) and 14 (5.8%) are of 240. "不低于 2.0 的次数：A 4/12" can be counted.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from kleash.written.marks import Mark, printed_as
from kleash.written.peaks import SCALES
from kleash.written.prose import At, Name, Sentence
from kleash.written.told.crossings import ABOVE, BELOW, Limit
from kleash.written.told.subjects import Arms, Records, Subject, each, subject_of

MOST = 100_000  # of what a whole has
AGREEING = 2  # counts that tell their whole
_INTEGER = r"\d{1,3}(?:,\d{3})+|\d+"
_SHARED = re.compile(
    rf"(?<![\d./])(?<!\d,)(?P<count>{_INTEGER})(?:\s?/\s?(?P<over>{_INTEGER}))?"
    r"(?P<unit>\s?[^\W\d]{0,10})\s?[(,]\s?(?:占|即|=|or)?\s?(?P<share>\d+(?:\.\d+)?)\s?%(?!\w)"
)
_WHOLE = re.compile(
    rf"(?<![\d.])(?<!\d,)(?P<before>{_INTEGER})\s?[^\d,;。()]{{0,12}}?[中里内]|"
    rf"(?<![a-z])(?:out )?of (?:the |its |all |these )?(?P<behind>{_INTEGER})(?![\d.%])"
)
_OF = re.compile(rf"({_INTEGER}) (?:out )?of (?:the |its |all |these )?$")
_ALONE = re.compile(rf"(?<![\d.])(?<!\d,)({_INTEGER})(?!\.?\d|,\d{{3}})")
_TIMES = re.compile(
    rf"(?:(?P<below>不高于|不超过|{BELOW})|(?P<above>不低于|不少于|{ABOVE}))\s?(?P<limit>\d+(?:\.\d+)?)\s?(?P<unit>%?)"
    r"\s?的?(?:次数|步数|个数|评测数|验证点数|epoch 数|轮数)[:*\s]*"
)
_COUNT = re.compile(
    rf"(?<![\d.])(?P<count>{_INTEGER})(?:\s?/\s?(?P<over>{_INTEGER}))?(?![\d.%])\s?(?:次|步|个)?"
)


@dataclass(frozen=True)
class Shared:
    """A count with its share in percent."""

    start: int
    text: str
    count: int
    share: float
    half: float
    whole: int | None

    def of(self, whole: int) -> bool:
        """Whether it is its share of a whole."""
        if not 0 < whole >= self.count:
            return False
        return abs(100 * self.count / whole - self.share) <= self.half * (1 + 1e-6)


def false_tallies(records: Records, every: Sequence[Sentence]) -> Iterator[Mark]:
    """Counts that are not their share, or not what there is to count."""
    for sentence in every:
        yield from _false_shares(sentence)
        yield from _false_counts(records, sentence)


# --- shares


def _false_shares(sentence: Sentence) -> Iterator[Mark]:
    plain = sentence.plain
    taken: list[At | Name] = [*sentence.names, *sentence.places]
    shared = [
        _shared(plain, match)
        for match in _SHARED.finditer(plain)
        if not any(one.start <= match.start("count") < one.end for one in taken)
    ]
    texts = [sentence.plain, sentence.before.plain if sentence.before else ""]
    numbers = {_whole(one) for text in texts for one in _ALONE.findall(text)}
    common = _common(shared)
    for one in shared:
        wholes = {one.whole} if one.whole else _named(sentence, one)
        if common and not any(one.of(whole) for whole in wholes):
            wholes = {common}
        if wholes and not any(one.of(whole) for whole in numbers | wholes):
            share = 100 * one.count / max(wholes)
            value = printed_as(share, "", len(one.text.partition(".")[2])) + "%"
            line = sentence.line(one.start)
            facts = {"value": value, "lines": [line]}
            yield Mark(line, f"{one.text}%", "wrong", "check.not-share", facts, f"said {one.text}")


def _shared(plain: str, match: re.Match[str]) -> Shared:
    """A count with its share; "205 of 400 steps (51%)" has its whole between them."""
    decimals = len(match["share"].partition(".")[2])
    half = 0.5 * 10.0**-decimals
    count, over = match["count"], match["over"]
    of = _OF.search(plain[: match.start()])
    if of:
        count, over = of[1], count
    whole = _whole(over) if over else None
    return Shared(
        match.start("share"), match["share"], _whole(count), float(match["share"]), half, whole
    )


def _whole(text: str) -> int:
    return int(text.replace(",", ""))


def _named(sentence: Sentence, one: Shared) -> set[int]:
    """The wholes that a sentence names before a count, or right behind it."""
    found: set[int] = set()
    for match in _WHOLE.finditer(sentence.plain, 0, one.start):
        if not re.search(r"[;。]", sentence.plain[match.end() : one.start]):
            found.add(_whole(match["before"] or match["behind"]))
    return {whole for whole in found if whole >= one.count}


def _common(shared: Sequence[Shared]) -> int | None:
    """The one whole that most counts of a sentence are shares of, if that is no chance."""
    exact = [one for one in shared if one.count and one.share > one.half]
    best: tuple[int, int] | None = None
    for first in exact:
        low, high = (100 * first.count / (first.share + sign * first.half) for sign in (1, -1))
        for whole in range(max(1, int(low)), min(MOST, int(high) + 1) + 1):
            fits = sum(one.of(whole) for one in exact)
            if fits >= AGREEING and 2 * fits > len(exact) and fits > (best or (0, 0))[0]:
                best = (fits, whole)
    return best[1] if best else None


# --- how often past a limit


def _false_counts(records: Records, sentence: Sentence) -> Iterator[Mark]:
    plain = sentence.plain
    taken: list[At | Name] = [*sentence.names, *sentence.places]
    for match in _TIMES.finditer(plain):
        if re.search(r"首次|第一次|最早", plain[: match.start()]):
            continue
        limit = Limit(float(match["limit"]), -1 if match["below"] else 1, match["unit"] == "%")
        for told in _COUNT.finditer(plain, match.end()):
            if any(told.start() < one.end and one.start < told.end() for one in taken):
                continue
            subject = subject_of(sentence, records.sheets, told.start(), told.end())
            over = _whole(told["over"]) if told["over"] else None
            right = {
                count
                for arms in (each(subject) if len(subject.arms) == 1 else ())
                for count in _counts(records, subject, arms, limit, over)
            }
            if right and _whole(told["count"]) not in right:
                line = sentence.line(told.start())
                facts = {"value": f"{max(right)}", "lines": [line]}
                text = told["count"]
                yield Mark(line, text, "wrong", "check.not-same", facts, f"said {text}")


def _counts(
    records: Records, subject: Subject, arms: Arms, limit: Limit, over: int | None
) -> Iterator[int]:
    """How often courses of an arm are past a limit; with the limit itself, and without."""
    points: list[Mapping[float, float]] = [
        {at: one.value for at, one in course.points.items()}
        for axis in ("step", "epoch")
        for course in records.of_tables(subject, arms, axis)
        if course.whole
    ]
    points += [one.points for one in records.of_logs(subject, arms, "step")]
    for one in points:
        if over is not None and len(one) != over:
            continue
        for scale in SCALES if limit.share else (1.0,):
            far = [limit.sign * (scale * value - limit.value) for value in one.values()]
            if max(far) >= 0 > min(far):
                yield sum(by >= 0 for by in far)
                yield sum(by > 0 for by in far)
