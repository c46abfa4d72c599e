"""What two numbers of a sentence give: a gap, a change in percent, a ratio, a part of a whole."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import erfc, sqrt

from kleash.written.gaps import direction, is_relative, way_of
from kleash.written.made.rounded import UNLIKELY, off_by_rounding
from kleash.written.printed import Figure
from kleash.written.prose import Said, Sentence
from kleash.written.ties import VERSUS

_ADDED = re.compile(r"(?:[多快高大长贵慢增升涨]|增[加长]|提[高升]|上升)[了出]?\s?(?:约|近)?\s?$")
_FASTER = re.compile(
    r"\s?(?:times\s)?(?:more|faster|higher|longer|larger|greater|slower|bigger)(?![a-z])"
)
SMALL = 1.5  # a fraction is not more
TWO = 2
NEARLY = 1 + 1e-6
Two = tuple[Said, Said, bool]
"""Two numbers, and whether the second is what the first came to."""


@dataclass(frozen=True)
class Given:
    """What comes out, how far off rounding may put it, and the code for a number that is not so."""

    code: str
    value: float
    room: float
    of: tuple[Said, ...] = ()
    """The numbers that it comes out of."""

    def off(self, said: Said) -> float:
        """How far a number is from it."""
        value = said.figure.value if said.sign else abs(said.figure.value)
        return abs(value - self.value)

    def is_exact(self, said: Said) -> bool:
        """Whether a number is what comes out of the two as they are printed."""
        return self.off(said) <= said.figure.half * NEARLY

    def fits(self, said: Said) -> bool:
        """Whether a number comes out, or may have before the two were rounded."""
        near = self.off(said) <= self.room + said.figure.half * NEARLY
        return self.is_exact(said) or (near and self.chance(said) > UNLIKELY)

    def chance(self, said: Said) -> float:
        """How likely hidden digits give a number that is so far off."""
        spread = max(1e-300, self.room / sqrt(3 * TWO))
        near, far = (
            erfc(max(0.0, self.off(said) + way * said.figure.half) / spread / sqrt(2))
            for way in (-1, 1)
        )
        return 0.5 * (near - far)

    def odd(self, said: Said) -> float:
        """How likely hidden digits would not give a number that comes out."""
        return off_by_rounding(self.value, self.room, TWO, 2 * said.figure.half)


def of_two(sentence: Sentence, said: Said, two: Two) -> Iterator[Given]:
    """All that a gap of two numbers may be, by how it is called."""
    one, other, of = two[0].figure, two[1].figure, (two[0], two[1])
    if said.kind == "times":
        for top, bottom in ((one, other), (other, one)):
            if bottom.value > bottom.half:
                ratio, room = _over(top, bottom)
                yield Given("check.not-share", ratio, room, of)
                if _is_more(sentence, said):
                    yield Given("check.not-share", ratio - 1, room, of)
        return
    gap, room = _gap(sentence, said, two), one.half + other.half
    shares, relative = other.unit == "%", is_relative(sentence, said)
    small = max(abs(one.value), abs(other.value)) <= SMALL and not shares
    if said.kind != "share" or (shares and not relative):
        yield Given("check.not-difference", gap, room, of)
    if said.kind == "share":
        for base in _bases(sentence, said, two):
            if abs(base.value) > base.half:
                yield replace(change(gap, room, base), of=of)
    if said.kind in ("share", "points") and not relative and small:
        yield Given("check.not-difference", 100 * gap, 100 * room, of)


def _is_more(sentence: Sentence, said: Said) -> bool:
    """Whether so many times may be what is added: "1.5 times faster"."""
    before, behind = sentence.plain[: said.start], sentence.plain[said.end :]
    return bool(_ADDED.search(before) or _FASTER.match(behind))


def change(gap: float, room: float, base: Figure) -> Given:
    """A gap in percent of where it began."""
    share = 100 * gap / abs(base.value)
    return Given("check.not-relative", share, 100 * room / abs(base.value))


def part_of(part: Said, whole: Said) -> Given:
    """What a part is of a whole, in percent."""
    ratio, room = _over(part.figure, whole.figure)
    counts = not part.figure.decimals and not whole.figure.decimals
    return Given("check.not-share", 100 * ratio, 0.0 if counts else 100 * room, (part, whole))


def _over(top: Figure, bottom: Figure) -> tuple[float, float]:
    """The ratio of two numbers, and how far off rounding may put it."""
    ratio = top.value / bottom.value
    return ratio, (top.half + abs(ratio) * bottom.half) / abs(bottom.value)


def _gap(sentence: Sentence, said: Said, two: Two) -> float:
    """How far two numbers are apart, with a sign where the words give it one."""
    first, second, came = two
    gap = second.figure.value - first.figure.value
    if said.sign:
        return gap if came else abs(gap) * (-1 if said.sign == "-" else 1)
    way = direction(sentence, said) if said.kind != "share" else 0
    if way and not came and VERSUS.search(sentence.plain, first.end, second.start):
        return -way * gap  # the first is what is more, or less
    return abs(gap)


def _bases(sentence: Sentence, said: Said, two: Two) -> list[Figure]:
    """What a change is a share of: where it began, or what it is more or less than."""
    first, second, came = two
    if came:
        return [first.figure]
    low, high = sorted((first.figure, second.figure), key=lambda one: abs(one.value))
    way = way_of(sentence, said)
    return [low] if way > 0 else [high] if way < 0 else [low, high]
