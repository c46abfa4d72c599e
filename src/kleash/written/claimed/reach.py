"""How far a claim reaches: of how many it is said, and over which steps.

"All five rise", "三个验证点都低于": so many must do it, whichever they are. "Step 80-96" holds a
claim to the steps between.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from kleash.written.printed import AXIS, axis_word
from kleash.written.prose import Sentence

_B, _E = r"(?<![a-z])", r"(?![a-z])"
_CHINESE = {"两": 2, **{letter: n for n, letter in enumerate("一二三四五六七八九十", 1)}}
_WORDS = (
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
)
_ENGLISH = {word: n for n, word in enumerate(_WORDS, 2)}
_TENS = r"[二两三四五六七八九]?十[一二三四五六七八九]?|[两二三四五六七八九]"
NUMBER = rf"(?:\d+|{_TENS}|{_B}(?:{'|'.join(_WORDS)}){_E})"
_COUNT = re.compile(
    rf"(?<![\d.第每×/])(?<!\d,)(?P<chinese>\d+|{_TENS})\s?(?:个(?!百分|点(?![上里中都]))|组|种|条|列|次|项|类|档|行|者|套|处)|"
    rf"{_B}(?:all|the|these|those|every one of the|each of the)(?: of)?(?: the)? "
    rf"(?P<english>\d+|{'|'.join(_ENGLISH)}){_E}(?!\s?%|\.\d)(?! (?:points?|pts|largest|smallest))|"
    rf"(?P<both>{_B}both{_E})"
)
_TO = r"(?:-|到|至|to|through|→|->)"
_SPAN = re.compile(
    rf"{_B}(?P<axis>{AXIS})s?\s?(?P<first>\d+)\s?{_TO}\s?(?:(?:{AXIS})\s?)?(?P<last>\d+)(?!\d|\.\d|\s?%)|"
    rf"第\s?(?P<start>\d+)\s?(?:{AXIS})?\s?{_TO}\s?(?:第\s?)?(?P<end>\d+)\s?(?:个\s?)?(?P<unit>{AXIS})"
)


@dataclass(frozen=True)
class Stretch:
    """Steps from one to another that a sentence names, and where."""

    start: int
    end: int
    axis: str
    first: float
    last: float

    def has(self, at: float) -> bool:
        return self.first <= at <= self.last


def numeral(text: str) -> int:
    """The number of a word or of digits: 五 and five are 5."""
    if text.isdigit():
        return int(text)
    if text in _ENGLISH:
        return _ENGLISH[text]
    tens, ten, ones = text.partition("十")
    if not ten:
        return _CHINESE[tens]
    return 10 * (_CHINESE[tens] if tens else 1) + (_CHINESE[ones] if ones else 0)


def counts(text: str) -> list[tuple[int, int, int]]:
    """How many a squeezed text speaks of, each time with its place: "五个 β", "all four"."""
    found = []
    for match in _COUNT.finditer(text):
        told = match["chinese"] or match["english"]
        found.append((match.start(), match.end(), numeral(told) if told else 2))
    return found


def stretches(sentence: Sentence, start: int, end: int) -> list[Stretch]:
    """The stretches of steps that a part of a sentence names."""
    found = []
    for match in _SPAN.finditer(sentence.plain, start, end):
        first, last = (
            float(match[a] or match[b]) for a, b in (("first", "start"), ("last", "end"))
        )
        if first < last:
            axis = axis_word(match["axis"] or match["unit"])
            found.append(Stretch(match.start(), match.end(), axis, first, last))
    return found


def within(every: Sequence[Stretch], at: float) -> bool:
    """Whether a step lies in one of some stretches; any does where there are none."""
    return not every or any(one.has(at) for one in every)
