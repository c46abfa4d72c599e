"""Steps that a sentence calls the best: the course that it speaks of must be at an end there.

"PPO-mid peaks at update 360", "use the checkpoint of epoch 3". A value given with the step tells
which course is meant. Where any course that may be meant fits, nothing is said.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise, zip_longest

from kleash.written.book import Book
from kleash.written.fitting import NAMING, prints
from kleash.written.marks import Mark
from kleash.written.printed import Figure, named
from kleash.written.prose import At, Said, Sentence
from kleash.written.steps import RANKING
from kleash.written.told.subjects import (
    Arms,
    Records,
    Subject,
    clause,
    each,
    has,
    subject_of,
    value_beside,
)
from kleash.written.told.things import settings
from kleash.written.told.tracks import Course, families

FAR = 40  # letters between a word and the step behind it
NEAR = 14  # and before it
SCALES = (1.0, 100.0)
LEAST = 4  # points of a course that is known by its name alone
_HIGH = r"peak(?:s|ed)?|highest|maximum|maximal|最高点?|最大|峰值|最高值|到顶|见顶|登顶"
_LOW = r"lowest|minimum|minimal|最低点?|最小"
_BEST = r"best|top|optimum|optimal|最佳|最好|最优"
_TAKEN = (
    r"use|keep|choose|chose|pick|picked|select(?:ed)?|recommend(?:ed)?|stop|取|选用?|推荐|采用|保留|"
    r"早停|停|用(?=\s*(?:step|epoch|第|checkpoint|ckpt))"
)
_WORDS = re.compile(
    rf"(?<![a-z])(?:(?P<high>{_HIGH})|(?P<low>{_LOW})|(?P<best>{_BEST})|(?P<taken>{_TAKEN}))(?![a-z])"
)
_BESTS = re.compile(  # "keep steps 40 and 60; these are the best"
    r"(?<![a-z])(?:these|those|both|they|all) (?:are|were) (?:all |both )?(?:the|their)"
    r"(?: own)? best|"
    r"[都均](?:是|为)(?:各自的?)?最[佳好优]"
)
_TURNS = re.compile(r"peak|到顶|见顶|登顶|达到最")
_APART = re.compile(
    r"(?:from|until|till|after|before|since|than|over|beyond|by|to|every|between|过了|之后|之前|到|至|从|自|比|前|每)\s*"
    r"(?:the\s)?$"
)
_SPAN = re.compile(
    r"\s?(?:→|->|[-~]|[到至、]|to(?![a-z])|and(?![a-z])|,)\s?(?:step|epoch|第)?\s?\d"
)
_SECOND = re.compile(r"(?:step|epoch|第)\s?\d+\s?(?:与|和|及|、|and|to)\s?$")
_DERIVED = re.compile(  # of two courses, or of changes
    r"差|领先|落后|单次|[下上][跌涨]|[增降跌涨]幅|之比|一[跌降升跳涨]|比值|变化|提升|下降最|上升最|"
    r"(?<![a-z])(?:gap|difference|spread|lead|leads|margin|behind|ahead|furthest|jump|drop|rise|fall|gain|change)(?![a-z])"
)
_IN = re.compile(r"(?:[在于]|(?<![a-z])(?:at|in|by))\s?(?:the\s)?$")
_MEAN = re.compile(r"mean|average|avg|平均|均值")
_AROUND = re.compile(r"\s?(?:之?[前后]|以[前后]|起|附近|before|after|on(?:ward)?s?)")
_SHORT = re.compile(
    r"[\s,、;:和与及]*|and|at|is|was|for|in|s|在|为|是|于|应取|取|则|应选|选|只有|都|也|最佳|(?:peaks?|best)|"
    r"的?(?:则|也)?(?:出现|发生|落)?在?|(?:one|that|occurs|comes|falls|of)"
)


def false_peaks(records: Records, book: Book, every: Sequence[Sentence]) -> Iterator[Mark]:
    """Steps that are called the best of a course, and are not."""
    for sentence, after in zip_longest(every, every[1:]):
        goes_on = after is not None and after.before is sentence and _BESTS.match(after.plain)
        bests = bool(goes_on or _BESTS.search(sentence.plain))
        for place, called, behind in _called(sentence):
            kind = "bests" if bests and called in ("taken", "best") else called
            wrong = _not_peak(records, book, sentence, place, kind, behind=behind)
            if wrong is not None:
                yield wrong


def _called(sentence: Sentence) -> Iterator[tuple[At, str, bool]]:
    """The steps that a sentence calls best, by which kind of word, and whether that comes first."""
    plain = sentence.plain
    places = [place for place in sentence.places if place.is_of_training]
    found: dict[At, tuple[str, bool]] = {}
    for match in _WORDS.finditer(plain) if not RANKING.search(plain) else ():
        kind = match.lastgroup or ""
        behind = [place for place in places if match.end() <= place.start <= match.end() + FAR]
        before = [place for place in places if match.start() - NEAR <= place.end <= match.start()]
        place = behind[0] if behind else before[-1] if before and kind != "taken" else None
        if before and not _between(sentence, before[-1].end, match.start()).strip(
            " 步时才就即达到处取得见"
        ):
            place = before[-1] if kind != "taken" else place
        if place is None or _APART.search(plain[: place.start]) or _is_span(sentence, place):
            continue
        first = place in behind and place.start >= match.end()
        turns = _TURNS.search(plain, max(0, match.start() - 2), match.end())
        if not (first or turns or _IN.search(plain[: place.start])):
            continue  # "epoch 3 is the lowest, too" ranks arms
        between = _between(sentence, min(place.end, match.end()), max(place.start, match.start()))
        ends = r"[。.!?](?!\d)|但|而|(?<![a-z])(?:but|while|whereas)(?![a-z])"
        ends += r"|\d" if first and kind == "taken" else ""
        ends += r"|[只仅]在|分别|依次|(?<![a-z])(?:only|respectively)(?![a-z])"
        if re.search(ends if first else r"[。.!?,\d]", between):
            continue
        start, end = clause(sentence, *sorted((match.start(), place.start)))
        called = any(start <= one.start < match.start() for one in sentence.names)
        if not called and not families(plain[start : match.start()]):
            start, _ = clause(sentence, max(0, start - 1), start)  # it goes on with the same
        if not _DERIVED.search(plain, start, max(end, match.end())):
            found.setdefault(place, (kind, first or bool(turns)))
    for one, other in pairwise(places):
        if one in found and other not in found and same_form(sentence, one, other):
            found[other] = found[one]
    yield from ((place, *told) for place, told in found.items())
    yield from ((one, "at", True) for one in places if one not in found and _is_point(plain, one))


def _is_span(sentence: Sentence, place: At) -> bool:
    """Whether a step goes on to another; not to a name: "A at epoch 2, 0.22 at epoch 3"."""
    more = _SPAN.match(sentence.plain, place.end)
    return more is not None and not any(one.start < more.end() <= one.end for one in sentence.names)


def _is_point(plain: str, place: At) -> bool:
    """Whether a step stands for itself, as no end of a span and no limit."""
    apart = _APART.search(plain[: place.start]) or _SPAN.match(plain, place.end)
    second = _SECOND.search(plain[: place.start])
    return not apart and not second and not _AROUND.match(plain, place.end)


def same_form(sentence: Sentence, one: At, other: At) -> bool:
    """Whether only a name stands between two steps: "A at epoch 2, B at epoch 3"."""
    rest = _between(sentence, one.end, other.start)
    named = len(rest) < other.start - one.end
    rest = re.sub(r"\([^()]*\)", " ", rest)
    return named and all(_SHORT.fullmatch(word) for word in re.split(r"[\s,、;]+", rest))


def _between(sentence: Sentence, start: int, end: int) -> str:
    """A part of a sentence without the names in it."""
    spans = [(one.start, one.end) for one in sentence.names]
    spans += [span for span, _ in settings(sentence.plain)]
    named = {at for first, last in spans for at in range(first, last)}
    return "".join(sentence.plain[at] for at in range(start, end) if at not in named)


@dataclass(frozen=True)
class Claim:
    """A step that is called the best of something, and the value that is given with it."""

    place: At
    kind: str
    subject: Subject
    value: Said | None
    line: int
    above: frozenset[int]
    """The lines of the tables above it, under its heading."""


def _not_peak(
    records: Records, book: Book, sentence: Sentence, place: At, kind: str, *, behind: bool
) -> Mark | None:
    subject = subject_of(sentence, records.sheets, place.start, place.end)
    line = sentence.line(place.start)
    above = {at for one in book.section(line) if one.line < line for at in one.table.lines}
    claim = Claim(place, kind, subject, value_beside(sentence, place), line, frozenset(above))
    usual, fits = set[float](), False
    for arms in each(subject):
        known, steps = _judged(records, claim, arms)
        if not steps and behind and not known and not claim.value:
            steps = _told_alone(records, claim, arms)
        ranked = not (behind or claim.value) and any(
            _is_ranked(records, one, place.at) for one in known
        )
        fine = not steps or place.at in steps or ranked
        fits = fits or (fine and bool(known or steps))
        if not fine:
            usual |= steps
        elif not subject.listed:
            return None
    if not usual or (fits and not subject.listed):
        return None
    facts = {"said": whole(place.at), "at": [whole(at) for at in sorted(usual)]}
    text = sentence.text[place.start : place.end]
    return Mark(line, text, "wrong", "check.elsewhere", facts, "peak")


def _judged(records: Records, claim: Claim, arms: Arms) -> tuple[list[Course], set[float]]:
    """The courses that may be an arm's, and the steps at which they are best; none if unsure."""
    known = records.of_tables(claim.subject, arms, claim.place.axis)
    at = claim.place.at
    if arms and at in {one for _, one in _told(records, arms, claim.kind)}:
        return [], set()
    if claim.kind == "bests":
        return [], _told_alone(records, claim, arms)
    value = claim.value.figure if claim.value else None
    if value is not None and value.digits >= NAMING + (claim.kind == "at" and not arms):
        own = [one for one in known if has(one, value)]
        if _may_be(records, claim, arms, own, value):
            return [], set()
        return own, _where(records, claim, arms, own, value)
    means = _means(known, claim)
    if claim.kind == "at" or not (arms or means or claim.kind == "best"):
        return [], set()
    known = means or _at_hand(known, claim)
    known = [one for one in known if at in one.points and len(one.points) >= LEAST]
    curves = records.same(claim.subject, arms, claim.place.axis, known)
    if any(not one.whole for one in known) or any(at in _steps(one, claim.kind) for one in curves):
        return [], set()
    return known, {step for one in known for step in _extremes(one, claim.kind)}


def _means(known: list[Course], claim: Claim) -> list[Course]:
    """The courses of means, where a claim is on "the mean over runs"."""
    text = claim.subject.text
    means = [one for one in known if _MEAN.fullmatch(one.label)]
    return [one for one in means if next(named(text, one.label), None)]


def _at_hand(known: list[Course], claim: Claim) -> list[Course]:
    """Of courses that may be meant those right above, where no quantity is named."""
    if families(claim.subject.text):
        return known
    if claim.kind == "best":
        known = [one for one in known if _is_result(one)]
    return [one for one in known if claim.above & {*one.lines}] or known


def _is_result(course: Course) -> bool:
    """Whether a course may be what somebody calls best: no KL, no length, no time."""
    own = families(course.label) | families(course.about)
    return not own or bool(own & {"reward", "share", "loss"})


def _may_be(
    records: Records, claim: Claim, arms: Arms, own: Sequence[Course], value: Figure
) -> bool:
    """Whether a value may stand at the step that is said, in a table or in a log."""
    at = claim.place.at
    if any(_is_at(one, at, value) for one in own):
        return True
    if (arms or not own) and _logged(records, claim, arms, value):
        return True
    told = any(one == at and prints(value, figure) for figure, one in _told(records, arms))
    return told or (not arms and records.elsewhere(own, value, claim.line))


def _where(
    records: Records, claim: Claim, arms: Arms, own: Sequence[Course], value: Figure
) -> set[float]:
    """The steps at which a value is the best of tables, or else of logs."""
    found = {at for one in own for at in _extremes(one, claim.kind) if _is_at(one, at, value)}
    found |= {at for figure, at in _told(records, arms) if prints(value, figure)}
    return found or set(_best_of_logs(records, claim, arms, value))


def _told_alone(records: Records, claim: Claim, arms: Arms) -> set[float]:
    """The best step of an arm that only a table of bests has.

    The highest or lowest is that of the quantity that is named, else of the tables right above.
    """
    wanted = families(claim.subject.text)
    own = [one for one in records.bests if arms and all(map(one.answers, arms))]
    meant = [
        one
        for one in own
        if one.end == claim.kind
        and (wanted & families(one.about) if wanted else one.line in claim.above)
    ]
    plain = not wanted and claim.kind in ("best", "bests", "high")
    heads = [one for one in meant if next(named(claim.subject.text, one.heading), None)]
    rest = [one for one in own if plain and one.end != "low"]
    told = {one.at for one in heads or meant or rest}
    return told if len(told) == 1 else set()


def _is_at(course: Course, at: float, figure: Figure) -> bool:
    return at in course.points and prints(figure, course.points[at])


def _logged(records: Records, claim: Claim, arms: Arms, value: Figure) -> bool:
    """Whether a log of an arm has a value at a step, its best where it is called so."""
    at = claim.place.at
    for one in records.of_logs(claim.subject, arms, claim.place.axis):
        true = one.points.get(at)
        if true is None or not any(_is(value, scale * true) for scale in SCALES):
            continue
        if claim.kind in ("at", "taken") or at in _steps(one.points, claim.kind):
            return True
    return False


def _best_of_logs(records: Records, claim: Claim, arms: Arms, value: Figure) -> Iterator[float]:
    """The steps at which a log of an arm is best, and has a value there."""
    every = records.of_logs(claim.subject, arms, claim.place.axis)
    for one in every if arms and claim.kind != "at" else ():
        for at in _steps(one.points, claim.kind):
            if any(_is(value, scale * one.points[at]) for scale in SCALES):
                yield at


def _is(figure: Figure, value: float) -> bool:
    return abs(abs(figure.value) - abs(value)) <= figure.half * 1.001


def _told(records: Records, arms: Arms, kind: str = "") -> Iterator[tuple[Figure, float]]:
    """The best steps that tables give for an arm, by every number that stands beside them."""
    other = {"high": "low", "low": "high"}.get(kind)
    for one in records.bests:
        if all(map(one.answers, arms)) and (not other or one.end != other):
            yield one.figure, one.at


def _extremes(course: Course, kind: str) -> set[float]:
    if kind == "at":
        return set(course.points)
    return _steps({at: one.value for at, one in course.points.items()}, kind)


def _steps(points: Mapping[float, float], kind: str) -> set[float]:
    """The steps at which a course is highest or lowest."""
    values = list(points.values())
    ends = [max(values)] if kind == "high" else [min(values)] if kind == "low" else []
    ends = ends or [max(values), min(values)]
    return {at for at, value in points.items() if value in ends}


def _is_ranked(records: Records, course: Course, at: float) -> bool:
    """Whether, at a step, a course is the highest or lowest of its table's."""
    values = [
        one.points[at].value
        for one in records.courses
        if one.about == course.about and one.axis == course.axis and at in one.points
    ]
    return course.points[at].value in (max(values), min(values))


def whole(at: float) -> float:
    return int(at) if float(at).is_integer() else at
