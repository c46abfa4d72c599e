"""Sentences whose own numbers say the opposite: "falls from 4.90 to 4.91", "0.81, below 0.67".

No table is asked. Numbers are held together only if they are printed alike and of about one size.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise

from kleash.written.claimed.readings import Clause, clauses
from kleash.written.gaps import is_gap
from kleash.written.marks import Mark
from kleash.written.prose import Said, Sentence

NEAR = 24  # letters between a word and what it is said of
SIZE = 3.0  # times: numbers that are further apart are of two quantities
_B, _E = r"(?<![a-z])", r"(?![a-z])"
_UP = (
    rf"上升|升(?!幅)|上涨|涨(?!幅)|增加|增长|增大|提高|提升|走高|反弹|回升|变[大高长]|"
    rf"{_B}(?:ris(?:es?|ing)|rose|gr(?:ows?|ew|owing)|increas\w+|climb\w*|went up|goes up)"
)
_DOWN = (
    rf"下降|降(?!幅)|下跌|跌(?!幅)|掉|减少|减小|降低|走低|回落|缩短|缩小|变[小低短]|"
    rf"{_B}(?:fall(?:s|ing)?|fell|drop(?:s|ped|ping)?|declin\w+|"
    rf"decreas\w+|shr[aiu]nk\w*|went down|goes down)"
)
TURN = re.compile(rf"(?P<up>{_UP})|(?P<down>{_DOWN})")
_OPENED = re.compile(rf"(?:{_UP}|{_DOWN})[了得]?\s?\(\s?$")
_ARROW = re.compile(r"\s?(?:→|->)\s?")
FROM = re.compile(rf"[从由]|{_B}from{_E}")
TO = re.compile(rf"[到至为]|{_B}to{_E}|→|->")
_ABOVE = (
    rf"高于|大于|多于|超过|长于|{_B}(?:above|more than|higher than|greater than|"
    rf"larger than|longer than|exceeds?|exceeding|slower than)"
)
_BELOW = (
    rf"低于|小于|少于|不及|短于|不到|{_B}(?:below|less than|lower than|smaller than|"
    rf"fewer than|shorter than|under|faster than)"
)
_THAN = re.compile(rf"(?P<above>{_ABOVE})|(?P<below>{_BELOW})")
_VERSUS = re.compile(rf"\s?(?:%|s|h)?\s?(?:vs\.?|对|比|{_B}against|{_B}versus)\s?")
DENIED = re.compile(
    rf"不|没|未|非|先|{_B}(?:not|no|never|neither|nor|without|if|would|until){_E}|n't"
)
_GIVEN = re.compile(r"[^,;。]*?\(\s?$|[^,;。(]{0,24}$")
FEW = 3  # numbers that show a course
_MORE = re.compile(
    r"越[大多高长](?:,|\s)*(?P<what>[^,;。:(]{0,12}?)越(?:(?P<up>[高大多长])|(?P<down>[低小少短]))"
)
_WITH = re.compile(  # a setting that grows
    rf"随着?[^,;。:]{{1,14}}?(?:增大|增加|变大|升高|上升|提高)而?|"
    rf"{_B}(?:with|as) (?:the |a |an )?[^,;:.]{{0,16}}?(?:coefficient|beta|β|coef\w*|penalty)"
    rf"(?: (?:rises|grows|increases|goes up|gets larger)| is raised)?"
)
_WIDER = re.compile("(?P<up>扩大)|(?P<down>收窄)")

_RETURNS = re.compile(
    rf"(?:收益|增益|边际)[^,;。]{{0,4}}?(?:(?P<down>递减)|(?P<up>递增))|"
    rf"{_B}(?:(?P<less>diminishing|decreasing)|(?P<more>growing|increasing)) returns{_E}"
)
_BOTH = re.compile(rf"[都均]|{_B}(?:both|all|each){_E}")
_WENT = re.compile(
    rf"(?P<up>上升|升高|增加|增长|提高|上涨|{_B}(?:ris(?:e|es|ing)|rose|grew|grow|increas\w+))|"
    rf"(?P<down>下降|降低|减少|下跌|{_B}(?:fall|falls|fell|dropp?e?d?|declin\w+|decreas\w+))|"
    rf"(?P<flat>保持不变|没有变化|持平|{_B}(?:unchanged|flat|stayed the same){_E})"
)


def contradictory(every: Sequence[Sentence]) -> Iterator[Mark]:
    """Words that the numbers beside them turn round."""
    for sentence in every:
        for word, low, high in (
            *_turns(sentence),
            *_thans(sentence),
            *_courses(sentence),
            *_with_settings(sentence),
            *_returns(sentence),
            *_signed(sentence),
        ):
            facts: dict[str, object] = {"one": low, "other": high}
            line = sentence.line(word.start())
            text = sentence.text[word.start() : word.end()]
            yield Mark(line, text, "wrong", "check.turned", facts, "turned")


def _alike(one: Said, other: Said) -> bool:
    """Whether two numbers may be of one quantity: printed alike, and of about one size."""
    kinds = {each.kind if each.kind != "unit" else "" for each in (one, other)}
    if len(kinds) > 1 or one.figure.decimals != other.figure.decimals or not one.figure.decimals:
        return False
    sizes = sorted(abs(each.figure.value) for each in (one, other))
    return one.figure.value != other.figure.value and sizes[1] <= SIZE * sizes[0]


Found = tuple[re.Match[str], str, str]


def _turns(sentence: Sentence) -> Iterator[Found]:
    """ "rises from 0.52 to 0.48", "rises (0.52 → 0.48)"."""
    plain = sentence.plain
    for clause in clauses(sentence):
        numbers = [one for one in sentence.numbers if clause.start <= one.start < clause.end]
        for nth, one in enumerate(numbers):
            other = next((each for each in numbers[nth + 1 :] if _alike(one, each)), None)
            if other is None or one.sign or other.sign:
                continue
            before = plain[max(clause.start, one.start - NEAR) : one.start]
            between = plain[one.end : other.start]
            told = FROM.search(before) and TO.search(between)
            if not told and not (_OPENED.search(before) and _ARROW.fullmatch(between)):
                continue
            first = max(clause.start, one.start - NEAR)
            words = list(TURN.finditer(plain, first, other.start))
            if len({word.lastgroup for word in words}) != 1 or DENIED.search(
                plain, first, one.start
            ):
                continue
            if (words[0].lastgroup == "up") != (other.figure.value > one.figure.value):
                yield words[0], one.text, other.text


def _thans(sentence: Sentence) -> Iterator[Found]:
    """ "0.81, still below 0.67", "above B (0.52 against 0.61)"."""
    plain = sentence.plain
    for word in _THAN.finditer(plain):
        behind = [one for one in sentence.numbers if one.start >= word.end()]
        if not behind or not _GIVEN.fullmatch(plain, word.end(), behind[0].start):
            continue
        pair = _pair(sentence, behind) or _around(sentence, word, behind[0])
        clause = next(c for c in clauses(sentence) if c.start <= word.start() < c.end)
        if pair is None or DENIED.search(plain, clause.start, word.start()):
            continue
        one, other = pair
        if (word.lastgroup == "above") != (one.figure.value > other.figure.value):
            yield word, one.text, other.text


def _pair(sentence: Sentence, behind: Sequence[Said]) -> tuple[Said, Said] | None:
    """Two numbers behind a word, in the order of what is compared."""
    for one, other in pairwise(behind[:2]):
        if _VERSUS.fullmatch(sentence.plain, one.end, other.start) and _alike(one, other):
            return one, other
    return None


def _around(sentence: Sentence, word: re.Match[str], other: Said) -> tuple[Said, Said] | None:
    """The nearest number before a word that may be of the same quantity, and the one behind it."""
    if _VERSUS.match(sentence.plain, other.end) or is_gap(sentence, other):
        return None
    before = [one for one in sentence.numbers if one.end <= word.start()]
    for one in reversed(before):
        if _alike(one, other) and not is_gap(sentence, one):
            return one, other
    return None


def _courses(sentence: Sentence) -> Iterator[Found]:
    """ "the larger A, the lower B (0.1 → 0.2 → 0.3)"."""
    for word in _MORE.finditer(sentence.plain):
        behind = [one for one in sentence.numbers if one.start >= word.end()]
        course = list[Said](behind[:1])
        for one, other in pairwise(behind):
            if not re.fullmatch(r"\s?%?\s?(?:→|->|>)\s?", sentence.plain[one.end : other.start]):
                break
            course.append(other)
        close = Clause(sentence, word.end(), behind[0].start).text if behind else ""
        if len(course) < 3 or len(close) > NEAR or re.search(r"[;。]", close):
            continue
        steps = [b.figure.value - a.figure.value for a, b in pairwise(course)]
        way = 1 if word["up"] else -1
        if all(way * step < 0 for step in steps):
            yield word, course[0].text, course[-1].text


def _with_settings(sentence: Sentence) -> Iterator[Found]:
    """ "falls with the coefficient: 0.1, 0.2, 0.3", "grows as β rises, from 0.7 to 0.5"."""
    plain = sentence.plain
    for setting in _WITH.finditer(plain):
        near = max(0, setting.start() - NEAR), setting.end() + NEAR
        words = [
            word for pattern in (TURN, _WIDER) for word in pattern.finditer(plain, *near)
            if word.end() <= setting.start() or word.start() >= setting.end()
        ]  # fmt: skip
        end = max(word.end() for word in (setting, *words))
        behind = [one for one in sentence.numbers if one.start >= end]
        if len({word.lastgroup for word in words}) != 1 or len(behind) < 2:
            continue
        if re.search("[;。]", plain[end : behind[0].start]) or DENIED.search(plain[:end]):
            continue
        told = next(run for run in runs(sentence) if behind[0] in run)
        pair = FROM.search(plain[end : behind[0].start]) and TO.search(
            plain[behind[0].end : behind[1].start]
        )
        course = told if len(told) >= FEW else behind[:2] if pair and _alike(*behind[:2]) else []
        steps = [b.figure.value - a.figure.value for a, b in pairwise(course)]
        way = 1 if words[0].lastgroup == "up" else -1
        if steps and all(way * step < 0 for step in steps):
            yield words[0], course[0].text, course[-1].text


def runs(sentence: Sentence) -> Iterator[list[Said]]:
    """Numbers of one kind one behind the other: "53.59%、54.17%、53.53%"."""
    run = list[Said]()
    for one in sentence.numbers:
        between = sentence.plain[run[-1].end : one.start] if run else ""
        joined = run and re.fullmatch(r"\s?%?\s?(?:、|,|→|->|/)\s?", between)
        if joined and (run[-1].figure.decimals, run[-1].kind) == (one.figure.decimals, one.kind):
            run.append(one)
            continue
        yield run
        run = [one]
    yield run


def _returns(sentence: Sentence) -> Iterator[Found]:
    """ "adds 1.87, then 0.93: growing returns"."""
    for word in _RETURNS.finditer(sentence.plain):
        before = [one for one in sentence.numbers if one.end <= word.start()]
        gaps = [one for one in before if is_gap(sentence, one) and one.sign != "-"]
        if len(gaps) != 2 or not _alike(*gaps) or DENIED.search(sentence.plain[: word.start()]):
            continue
        if (word.lastgroup in ("up", "more")) != (gaps[1].figure.value > gaps[0].figure.value):
            yield word, gaps[0].text, gaps[1].text


def _signed(sentence: Sentence) -> Iterator[Found]:
    """ "A +26.6 %, B +20.4 %: both fell"."""
    for clause in clauses(sentence):
        both = _BOTH.search(sentence.plain, clause.start, clause.end)
        words = list(_WENT.finditer(sentence.plain, clause.start, clause.end))
        told = [one for one in sentence.numbers if one.end <= clause.start and one.kind == "share"]
        signs = {one.sign for one in told}
        own = any(clause.start <= one.start < clause.end for one in sentence.numbers)
        if both is None or len(words) != 1 or len(told) < 2 or len(signs) != 1 or own:
            continue
        denied = DENIED.search(sentence.plain, clause.start, words[0].start())
        way = {"+": "up", "-": "down"}.get(signs.pop(), "")
        if way and words[0].lastgroup != way and not denied:
            yield words[0], told[0].text, told[-1].text
