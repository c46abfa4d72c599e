"""What a sentence says of one of its numbers: a gap, a mean, a part, the most, of how many."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property

from kleash.written.gaps import compares, direction, is_gap, is_relative
from kleash.written.prose import Said, Sentence

_CLAUSE = re.compile(r"[,;。:、()](?!\d{3})")
_MOST = re.compile(
    r"最[高大多长好佳优快强贵久]|峰值|顶点|(?<![a-z])(?:highest|largest|best|peak\w*|max\w*|most|"
    r"longest|top|greatest|dearest)(?![a-z])"
)
_LEAST = re.compile(
    r"最[低小少短差慢弱便]|谷底|(?<![a-z])(?:lowest|smallest|worst|min\w*|least|fewest|shortest|"
    r"cheapest)(?![a-z])"
)
_MEAN = re.compile(r"平均|均值|averag|(?<![a-z])mean")
_TOTAL = re.compile(r"合计|总计|一共|共|总|total|together|altogether|whole")
_PART = re.compile(r"占|的\s?$|(?<![a-z])of (?:all|the|its)")
_SPREAD = re.compile(r"极差|跨度|落差|之差|相差|差距|spread|range|span|gap")
_PER = re.compile(r"每|/|(?<![a-z])(?:per|each|a) ")
_DEVIATES = re.compile(r"标准差|std|deviation|±|波动")
_NUMERALS = {"两": 2, "二": 2, "三": 3, "四": 4, "五": 5, "六": 6, "七": 7, "八": 8}
_NUMERALS |= {"two": 2, "three": 3, "four": 4, "five": 5, "six": 6}
_COUNT = rf"(\d+|{'|'.join(_NUMERALS)})"
_FIRST = re.compile(rf"(?:前|首|(?<![a-z])first )\s?{_COUNT}")
_LAST = re.compile(rf"(?:后|末|最后|(?<![a-z])(?:last|final) )\s?{_COUNT}")
_SPAN = re.compile(r"(\d+)\s?(?:-|~|到|至|to)\s?(?:step |第)?(\d+)")
_HALVES = re.compile("前半|后半|(?<![a-z])half")


@dataclass(frozen=True)
class Ask:
    """A number of a sentence and what the words around it say of it."""

    sentence: Sentence
    said: Said
    clause: tuple[int, int]

    @classmethod
    def of(cls, sentence: Sentence, said: Said) -> Ask:
        """A number with its clause; one that has no word but its number goes on with the last."""
        plain = sentence.plain
        ends = [match.end() for match in _CLAUSE.finditer(plain, 0, said.start)]
        first = ends[-1] if ends else 0
        if not re.search(r"[^\W\d_]", plain[first : said.start]):
            first = max((end for end in ends if end < first), default=0)
        after = _CLAUSE.search(plain, said.end)
        return cls(sentence, said, (first, after.start() if after else len(plain)))

    @cached_property
    def text(self) -> str:
        """The words of its clause."""
        return self.sentence.plain[slice(*self.clause)]

    @cached_property
    def way(self) -> str:
        """Whether it is a gap ("g"), is beside words that compare ("c"), or neither ("q")."""
        if is_gap(self.sentence, self.said):
            return "g"
        return "c" if compares(self.sentence, self.said) else "q"

    @cached_property
    def kind(self) -> str:
        return f"{self.way}{self.said.kind or '-'}"

    @cached_property
    def is_worked_out(self) -> bool:
        """Whether it may be worked out of two others."""
        return self.way != "q" or self.said.kind in ("share", "times", "points")

    @cached_property
    def mean(self) -> str:
        return self._word(_MEAN)

    @cached_property
    def total(self) -> str:
        return self._word(_TOTAL)

    def _word(self, word: re.Pattern[str]) -> str:
        """Whether its clause ("y"), or only its sentence ("s"), has a word."""
        return "y" if word.search(self.text) else "s" if word.search(self.sentence.plain) else ""

    @cached_property
    def is_part(self) -> bool:
        return bool(_PART.search(self.sentence.plain[: self.said.start]))

    @cached_property
    def is_spread(self) -> bool:
        return bool(_SPREAD.search(self.sentence.plain))

    @cached_property
    def is_rate(self) -> bool:
        return bool(_PER.search(self.text))

    @cached_property
    def deviates(self) -> bool:
        return bool(_DEVIATES.search(self.text))

    @cached_property
    def is_relative(self) -> bool:
        return is_relative(self.sentence, self.said)

    @cached_property
    def direction(self) -> int:
        return direction(self.sentence, self.said)

    @cached_property
    def most(self) -> bool:
        return bool(_MOST.search(self.text))

    @cached_property
    def least(self) -> bool:
        return bool(_LEAST.search(self.text))

    @cached_property
    def halves(self) -> bool:
        return bool(_HALVES.search(self.text))

    @cached_property
    def first(self) -> int:
        """Of how many first ones it is; 0 if of none."""
        return _counted(_FIRST.search(self.text))

    @cached_property
    def last(self) -> int:
        return _counted(_LAST.search(self.text))

    @cached_property
    def span(self) -> tuple[float, float] | None:
        """The steps from which and to which it is."""
        match = _SPAN.search(self.text)
        return (float(match[1]), float(match[2])) if match else None


def _counted(match: re.Match[str] | None) -> int:
    if match is None:
        return 0
    return int(match[1]) if match[1].isdigit() else _NUMERALS[match[1]]
