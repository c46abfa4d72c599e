"""Courses that are said to turn, to go on, or to go along with another, and do not.

"Rises, then falls" needs a point between that is above both ends; "goes on rising to 3.36" no
higher number before it; "while the reward is falling too" no reward that rises at every step from
the one that the sentence names.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise

from kleash.written.book import Book
from kleash.written.claimed.contrasts import TURN
from kleash.written.claimed.courses import courses_of
from kleash.written.claimed.mentions import QUANTITIES, concepts
from kleash.written.claimed.readings import Clause, Shelf, clauses, outside
from kleash.written.claimed.spelled import FLAT
from kleash.written.marks import Mark
from kleash.written.prose import END, Said, Sentence

WIDE = 2.0  # times: what changes by more is not called the same
FEW = 3  # points of a course that can turn
_B, _E = r"(?<![a-z])", r"(?![a-z])"
_RISE, _FALL = (
    r"(?:上?升高?|增[加大长]?|上?涨|[变走]?高)",
    r"(?:下?降低?|减[少小]?|下?跌|[变走]?低|回落)",
)
_RISES = r"(?:ris(?:es?|ing)|rose|grows?|grew|increas\w+|climb\w*|goes up|go up)"
_FALLS = r"(?:falls?|fell|falling|drop\w*|declin\w+|decreas\w+|shrinks?|goes down|go down)"
_THEN = r"(?:,? and then|,? then|,? and later|,? before)"
_SHAPE = re.compile(
    rf"(?P<hill>先{_RISE}[,、]?(?:而?后|再){_FALL}|{_B}(?:first )?{_RISES}{_THEN} {_FALLS}{_E})|"
    rf"(?P<dale>先{_FALL}[,、]?(?:而?后|再){_RISE}|{_B}(?:first )?{_FALLS}{_THEN} {_RISES}{_E})"
)
_GOES_ON = re.compile(
    rf"(?:继续|进一步|接着|仍在?|还在?)(?:(?P<up>{_RISE})|(?P<down>{_FALL}))(?:到|至)\s?|"
    rf"{_B}(?:(?:continues?|continued|goes on|went on) (?:to )?|keeps? |still |further )"
    rf"(?:(?P<rises>{_RISES})|(?P<falls>{_FALLS}))(?: further)? to "
)
_ALONG = re.compile(
    rf"(?:仍然?|还|也|同样|依然|同时|却)在?(?:继续)?(?:(?P<up>上升|升高|增加|上涨|走高)|(?P<down>下降|降低|减少|下跌|走低))|"
    rf"{_B}(?:is|are|was|were) (?:still |also |now )?"
    rf"(?:(?P<rises>rising|growing|increasing|climbing)|"
    rf"(?P<falls>falling|dropping|declining|decreasing|shrinking)){_E}"
)
_ENDS = re.compile(
    rf"(?:了|着|的|中|趋势|"
    rf"{_B}(?:during|over|throughout|in the course of) (?:the )?training{_E}|[\s。.])*"
)
_HELD = re.compile(  # with what, or against whom
    rf"比|随|于|相对|相比|从|由|因|使|让|导致|防止|避免|越|差|幅|{_B}(?:than|with|as|from|by|when|after|"
    rf"before|until|first|to|more|less|lets?|makes?|keeps?|of)(?![a-z])"
)
_LIMITED = re.compile(
    rf"并非|不是|没有|不再|未|除|几乎|若|如果|可能|是否|部分|个别|有的|"
    rf"{_B}(?:not|no|never|except|almost|if|may|might|some|whether|would|should){_E}|n't"
)


def false_shapes(book: Book, every: Sequence[Shelf], spoken: Sequence[Sentence]) -> Iterator[Mark]:
    """Words for the shape of a course that no course that is meant has."""
    for sentence in spoken:
        parts = clauses(sentence)
        for nth, clause in enumerate(parts):
            if _LIMITED.search(outside(clause.text)):
                continue
            for word in (
                *_not_turned(book, every, clause, parts[:nth]),
                *_gone_back(every, clause),
                *_against(book, every, clause),
                *_plain(book, every, clause, parts[:nth]),
            ):
                start, end = word.span()
                text = sentence.text[start:end].strip()
                yield Mark(sentence.line(start), text, "wrong", "check.not-course", {}, "course")


def _not_turned(
    book: Book, every: Sequence[Shelf], clause: Clause, before: Sequence[Clause]
) -> Iterator[re.Match[str]]:
    """ "rises, then falls", of what only rises."""
    for word in _SHAPE.finditer(clause.sentence.plain, clause.start, clause.end):
        verdicts = [
            sum(_turns(one, word.lastgroup or "") for one in courses) >= least
            for courses, least in courses_of(book, every, clause, before, FEW)
        ]
        if verdicts and not any(verdicts):
            yield word


def _turns(values: Sequence[float], shape: str) -> bool:
    way = 1 if shape == "hill" else -1
    ends = max(way * values[0], way * values[-1])
    return max(way * one for one in values[1:-1]) > ends


def _is_up(word: re.Match[str]) -> bool:
    return bool(word["up"] or word["rises"])


def _gone_back(every: Sequence[Shelf], clause: Clause) -> Iterator[re.Match[str]]:
    """ "peaks at 4.11 … goes on rising to 3.36"."""
    sentence = clause.sentence
    for word in _GOES_ON.finditer(sentence.plain, clause.start, clause.end):
        goal = next((one for one in sentence.numbers if one.start == word.end()), None)
        if goal is None or not goal.figure.decimals:
            continue
        way = 1 if _is_up(word) else -1
        before = [
            one
            for one in sentence.numbers
            if one.end <= word.start()
            and (one.figure.decimals, one.kind) == (goal.figure.decimals, goal.kind)
        ]
        verdicts = [
            all(way * goal.figure.value > way * one.figure.value for one in told)
            for course in _holding(every, goal)
            if (told := [one for one in before if _holds(course, one)])
        ]
        if verdicts and not any(verdicts):
            yield word


def _holding(every: Sequence[Shelf], goal: Said) -> Iterator[list[float]]:
    """The courses of tables up to a number that they have."""
    for shelf in every:
        order = sorted(shelf.steps, key=lambda nth: shelf.steps[nth])
        for label in shelf.side.labels if len(order) >= FEW else ():
            lines = [shelf.line(nth) for nth in order]
            values = [line.value(label) for line in lines if label in line.cells]
            at = [n for n, v in enumerate(values) if abs(v - goal.figure.value) <= goal.figure.half]
            if at:
                yield values[: at[-1]]


def _holds(course: Sequence[float], one: Said) -> bool:
    return any(abs(value - one.figure.value) <= one.figure.half for value in course)


def _against(book: Book, every: Sequence[Shelf], clause: Clause) -> Iterator[re.Match[str]]:
    """ "peaks at step 240 …, while the reward is falling too", of what rises from there on."""
    sentence = clause.sentence
    words = list(_ALONG.finditer(sentence.plain, clause.start, clause.end))
    numbers = any(clause.start <= one.start < clause.end for one in sentence.numbers)
    places = [one for one in sentence.places if one.start < clause.end]
    quantity = concepts(outside(clause.text)) & QUANTITIES - {"step", "turns"}
    if len(words) != 1 or numbers or not quantity or len(places) > 1:
        return
    if any(one.axis == END or one.start >= clause.start for one in places):
        return
    way = 1 if _is_up(words[0]) else -1
    since = places[0].at if places else None
    verdicts = [
        any(not _is_opposite(one, way) for one in courses)
        for courses, _ in courses_of(book, every, clause, (), FEW - 1, since)
    ]
    if verdicts and not any(verdicts):
        yield words[0]


def _plain(
    book: Book, every: Sequence[Shelf], clause: Clause, before: Sequence[Clause]
) -> Iterator[re.Match[str]]:
    """ "the entropy falls", of what rises at every step; "hardly changes", of what does."""
    sentence, text = clause.sentence, outside(clause.text)
    words = [*TURN.finditer(text), *FLAT.finditer(text)]
    starts = [*(one.start for one in sentence.numbers), *(one.start for one in sentence.places)]
    if len(words) != 1 or not _ENDS.fullmatch(text, words[0].end()) or _HELD.search(text):
        return
    if any(clause.start <= at < clause.end for at in starts):
        return
    if not concepts(text) & QUANTITIES - {"step", "turns"}:
        return
    way = {"up": 1, "down": -1}.get(words[0].lastgroup or "", 0)
    verdicts = [
        any(not (_is_opposite(one, way) if way else _is_far(one)) for one in courses)
        for courses, _ in courses_of(book, every, clause, before, FEW)
    ]
    if verdicts and not any(verdicts):
        pattern, start = words[0].re, clause.start + words[0].start()
        yield from pattern.finditer(sentence.plain, start, start + len(words[0][0]))


def _is_far(values: Sequence[float]) -> bool:
    """Whether a course ends far from where it began."""
    low, high = sorted((values[0], values[-1]))
    return 0 < WIDE * low < high


def _is_opposite(values: Sequence[float], way: int) -> bool:
    """Whether every step of a course goes the other way."""
    return all(way * (b - a) < 0 for a, b in pairwise(values))
