"""Gaps whose two numbers stand right beside them: "from 0.300 to 0.112, down 62.7 %".

Such a gap can be of no other two, so what tables have elsewhere does not acquit it. Where it may
be of several of its sentence, one of them has to give it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from kleash.written.gaps import direction, is_gap, is_relative, way_of
from kleash.written.marks import Mark
from kleash.written.printed import Figure
from kleash.written.prose import Said, Sentence, is_rough, other_end
from kleash.written.ties import JOINED, TO, VERSUS, with_gap, without_brackets
from kleash.written.told.products import false_products
from kleash.written.whose import said_mark

SMALL = 1.5  # a fraction is not more
DIGITS = 2  # of numbers that a gap is taken of
_COMPARER = re.compile(
    r"比(?!例|较|率|重|值)|相较于?|较之|(?<![a-z])(?:than|versus|vs|against|compared)(?![a-z])"
)
_APART = re.compile(
    rf"{_COMPARER.pattern}|各|都|最|分别|(?<![a-z])(?:each|both|respectively|its|own|but)(?![a-z])"
)
_BEHIND = re.compile(r"[^;。>\d]{0,24}")
_BEHIND_COUNTS = re.compile(
    r"\s?[a-z\u4e00-\u9fff]{0,8}\s?(?:\([^\d,;。()]{0,6}|,\s?(?:多出?了?|少了?|增加了?|减少了?|相?差了?))\s?"
)
_BEHIND_OTHER = re.compile(r"[\s)%,]*[^;。>\d,]{0,16}")
_PART_OF = re.compile(r"[^,;。\d]{0,8},\s?占[^,;。\d]{0,12}[\d.,]+[^,;。\d]{0,8}的\s?[\d.]+\s?%")
_COUNTS_OF = re.compile(
    r"(?<![\d.,])(?P<part>\d+) of (?:the |all )?(?P<whole>\d+)(?![\d.,]*\d)[^\d;.()]{0,32}[,(] ?"
    r"(?P<share>\d+\.\d+) ?%|"
    r"(?<![a-z])of (?:the |all )?(?P<all>\d+)(?![\d.,]*\d)[^\d;.()]{0,40}, (?P<some>\d+)"
    r"(?![\d.,]*\d)[^\d;.,()]{0,32}\((?P<percent>\d+\.\d+) ?%\)"
)
_OF_WHOLE = re.compile(
    r"[^,;。\d]{0,12}[,(]\s?(?:or |that is |i\.e\. )?[\d.]+\s?% of (?:the |all )?[\d.,]+"
)
_SO = re.compile(
    r"[^\d;。,]{0,12},\s?(?:也就是|即|意味着|so |that is|i\.e\.|meaning )[^\d;。,]{0,16}$"
)
_OPENS = re.compile(r"[^,;。\d()]{0,12}\(\s?(?:from|从|由)?\s?")
_CLOSES = re.compile(r"\s?[a-z%\u4e00-\u9fff]{0,6}\s?\)")
_IS = re.compile(r"(?<=,)\s?(?:约?是|为)(?!否)")
_SUBJECT = re.compile(r"\s?%?[^;。\d()]{0,16}")
_BRACKETED = re.compile(r"\s?[%a-z\u4e00-\u9fff]{0,4}\s?\)\s?的\s?")
_ARE = re.compile(r"[^;。.\d()]{0,24}(?<![a-z])(?:is|are|was|were)\s")
_TIMES_THE = re.compile(r"\s?(?:(?:times|x|×)\s)?(?:the|its)\s")
_BOTH = re.compile(r"两者(?:之间)?(?:相)?(?:只|仅)?差(?:了|距)?\s?$")
_GAP = re.compile(r"[增降涨跌升]幅|差[异值距]?|变化|提升|下降|回落|change|drop|gain|gap|difference")
_RATE = re.compile(r"[增降涨跌升]幅\s?[约达为]?\s?$")
_AT = re.compile(r"\s?(?:步|轮)?(?:的|时|为)?\s?")
_COUNTED = re.compile(r"\s?(?:个|条)?\s?(?:样本|samples|步|steps?|epochs?|轮|shots?|seeds?|种子)")


@dataclass(frozen=True)
class Given:
    """What two numbers give: the code for one that is not so, and the least and the greatest."""

    code: str
    low: float
    high: float

    @property
    def middle(self) -> float:
        return (self.low + self.high) / 2

    def fits(self, said: Said) -> bool:
        """Whether a number is that, as it is rounded."""
        half, value = said.figure.half * (1 + 1e-6), said.figure.value
        value = value if said.sign else abs(value)
        return self.low - half <= value <= self.high + half


def misreckoned(spoken: Sequence[Sentence]) -> Iterator[Mark]:
    """Gaps that the two numbers beside them do not give, and shares of a whole beside them."""
    for sentence in spoken:
        yield from _false_parts(sentence)
        yield from _false_counts(sentence)
        yield from false_products(sentence)
        for said in sentence.numbers:
            if not _is_told_apart(sentence, said):
                continue
            given = [one for two in _twos(sentence, said) for one in _given(sentence, said, two)]
            if given and not any(one.fits(said) for one in given):
                changes = [one for one in given if one.code == "check.not-relative"]
                own = changes if changes and _RATE.search(sentence.plain, 0, said.start) else given
                nearest = min(own, key=lambda one: abs(abs(one.middle) - abs(said.figure.value)))
                yield _mark(sentence, said, nearest)


def _false_parts(sentence: Sentence) -> Iterator[Mark]:
    """ "18.94 h, 75.4 % of the 25.13 h", where it is another part of the whole."""
    for part, one, other in zip(*(sentence.numbers[at:] for at in range(3)), strict=False):
        share, whole = (one, other) if one.kind == "share" else (other, one)
        text = sentence.plain[part.end : max(one.end, other.end)]
        told = _PART_OF.fullmatch(text) if share is other else _OF_WHOLE.fullmatch(text)
        small = 0 < part.figure.value < whole.figure.value and part.unit == whole.unit
        if not told or not small or share.kind != "share" or is_rough(sentence, share):
            continue
        low, high = (
            100
            * (part.figure.value + way * part.figure.half)
            / (whole.figure.value - way * whole.figure.half)
            for way in (-1, 1)
        )
        given = Given("check.not-share", low, high)
        if not given.fits(share):
            yield _mark(sentence, share, given)


def _false_counts(sentence: Sentence) -> Iterator[Mark]:
    """ "47 of 135 episodes, 34.8 %", where it is another share."""
    for match in _COUNTS_OF.finditer(sentence.plain):
        part, whole = match["part"] or match["some"], match["whole"] or match["all"]
        text = match["share"] or match["percent"]
        decimals, share = len(text.partition(".")[2]), 100 * int(part) / max(1, int(whole))
        off = abs(float(text) - share) > 0.5 * 10.0**-decimals * (1 + 1e-6)
        if off and int(part) <= int(whole):
            line = sentence.line(match.start())
            facts: dict[str, object] = {"value": f"{share:.{decimals}f}%", "lines": [line]}
            yield Mark(line, f"{text}%", "wrong", "check.not-share", facts, f"share {text}")


def _mark(sentence: Sentence, said: Said, given: Given) -> Mark:
    value = f"{given.middle:.{said.figure.decimals}f}" + "%" * (said.kind == "share")
    facts: dict[str, object] = {"value": value, "lines": [sentence.line(said.start)]}
    return said_mark(sentence, said, "wrong", given.code, facts)


def _is_told_apart(sentence: Sentence, said: Said) -> bool:
    """Whether a number is said to be how far two others are apart, to the digit."""
    enough = said.figure.digits >= DIGITS and (said.kind != "points" or said.figure.decimals)
    exact = not is_rough(sentence, said) and other_end(sentence, said) is None
    led = said.kind == "share" and (way_of(sentence, said) or is_relative(sentence, said))
    apart = enough and (is_gap(sentence, said) or led)
    return bool(exact and (apart or _times_of(sentence, said)))


# --- of which two


def _twos(sentence: Sentence, said: Said) -> Iterator[tuple[Said, Said, bool]]:
    """The two numbers that a gap is of, or all that it may be of; and whether one came of one."""
    pair = _times_of(sentence, said) or _of_both(sentence, said)
    if pair is not None:
        yield (*pair, False)
        return
    beside = _beside(sentence, said)
    for one in beside[:-1]:
        yield one, beside[-1], bool(TO.search(sentence.plain, one.end, beside[-1].start))
    if beside:
        return
    shared = with_gap(sentence, said)
    if shared is not None:
        yield (*shared, False)
        return
    drawn = _drawn(sentence, said)
    if drawn is not None:
        yield (*drawn, False)
        return
    for one, other in _compared(sentence, said):
        yield one, other, False


def _times_of(sentence: Sentence, said: Said) -> tuple[Said, Said] | None:
    """The two of "1.4349，是 K5（0.0467）的 30.7 倍", or of "839 uses are 2.96 times the 283"."""
    plain, at = sentence.plain, sentence.numbers.index(said)
    if said.kind != "times" or not at:
        return None
    other = sentence.numbers[at - 1]
    behind = sentence.numbers[at + 1] if at + 1 < len(sentence.numbers) else None
    if behind is not None and _TIMES_THE.fullmatch(plain, said.end, behind.start):
        return (other, behind) if _ARE.fullmatch(plain, other.end, said.start) else None
    words = [match.start() for match in _IS.finditer(plain, 0, other.start)]
    before = [one for one in sentence.numbers if words and one.end <= words[-1]]
    if not before or not _BRACKETED.fullmatch(plain, other.end, said.start):
        return None
    near = _SUBJECT.fullmatch(plain, before[-1].end, words[-1])
    return (before[-1], other) if near and plain[: other.start].rstrip().endswith("(") else None


def _of_both(sentence: Sentence, said: Said) -> tuple[Said, Said] | None:
    """The last two numbers before "两者差 26.9 点"."""
    before = [one for one in sentence.numbers if one.end <= said.start]
    if len(before) < 2 or not _BOTH.search(sentence.plain, before[-1].end, said.start):
        return None
    one, other = before[-2:]
    alike = _are_alike(sentence, one, other) and one.figure.decimals == other.figure.decimals
    return (one, other) if alike else None


def _beside(sentence: Sentence, said: Said) -> list[Said]:
    """The numbers that are joined right before a gap, or in brackets behind it."""
    plain, at = sentence.plain, sentence.numbers.index(said)
    before = _joined(sentence, sentence.numbers[:at])
    if before and not _COUNTED.match(plain, before[-1].end):
        gap = without_brackets(plain[before[-1].end : said.start])
        counts = not any(one.figure.decimals for one in before)
        fits = (_BEHIND_COUNTS if counts else _BEHIND).fullmatch(gap)
        if fits and not _APART.search(gap) and not _named(sentence, before[-1], said):
            return before
    after = _joined(sentence, sentence.numbers[at + 1 : at + 3])
    if after and not _COUNTED.match(plain, after[-1].end):
        opens = _OPENS.fullmatch(plain, said.end, after[0].start)
        if opens and _CLOSES.match(plain, after[-1].end) and not _named(sentence, said, after[0]):
            return after
    return []


def _joined(sentence: Sentence, numbers: Sequence[Said]) -> list[Said]:
    """The last numbers of some that are joined: "53.78 → 53.65 → 52.81"."""
    found = list(numbers[-1:])
    for one in reversed(numbers[:-1]):
        text = without_brackets(_without_places(sentence, one, found[0]))
        between = JOINED.fullmatch(text.removeprefix(",") if TO.search(text) else text)
        if not between or not _are_alike(sentence, one, found[0]):
            break
        found.insert(0, one)
    return found if len(found) > 1 else []


def _without_places(sentence: Sentence, one: Said, other: Said) -> str:
    """What stands between two numbers, without the steps at which they are."""
    text, at = "", one.end
    for place in sentence.places:
        if at <= place.start and place.end <= other.start:
            text, at = text + sentence.plain[at : place.start], place.end
            at += len(_AT.match(sentence.plain[at : other.start])[0])  # type: ignore[index]
    return text + sentence.plain[at : other.start]


def _drawn(sentence: Sentence, said: Said) -> tuple[Said, Said] | None:
    """The only two numbers before a share that is drawn from them: "0.07 of 0.66, so 89 % less"."""
    before = [one for one in sentence.numbers if one.end <= said.start]
    if said.kind != "share" or len(before) != 2 or not _are_alike(sentence, *before):
        return None
    one, other = before
    gap = sentence.plain[other.end : said.start]
    drawn = _SO.match(gap) and not _APART.search(gap) and not _named(sentence, other, said)
    return (one, other) if drawn and one.figure.decimals == other.figure.decimals else None


def _compared(sentence: Sentence, said: Said) -> Iterator[tuple[Said, Said]]:
    """The number right before a gap with those before it that it may be compared with.

    "50.83 %, which is 0.73 more" has one; "50.83 %, 比 A 的最佳（50.10%）高 0.73" has both.
    """
    plain = sentence.plain
    before = [one for one in sentence.numbers if one.end <= said.start]
    if len(before) < 2 or not before[-1].figure.decimals or is_gap(sentence, before[-1]):
        return
    other, gap = before[-1], plain[before[-1].end : said.start]
    words = [match.start() for match in _COMPARER.finditer(plain, 0, other.start)]
    near = _BEHIND_OTHER.fullmatch(gap) and not _APART.search(gap)
    last = before[-2].end if is_gap(sentence, before[-2]) else before[-2].start
    if not near or _named(sentence, other, said) or not words or words[-1] < last:
        return
    for one in before[:-1]:
        alike = _are_alike(sentence, one, other) and one.figure.decimals == other.figure.decimals
        if one.end <= words[-1] and alike:
            yield one, other


def _named(sentence: Sentence, one: Said, other: Said) -> bool:
    """Whether a row or column is named between two numbers, outside brackets."""
    for name in sentence.names:
        before = sentence.plain[one.end : name.start]
        inside = before.count("(") > before.count(")")
        gap = _GAP.fullmatch(sentence.plain[name.start : name.end])  # a title, and no arm
        if one.end <= name.start and name.end <= other.start and not inside and not gap:
            return True
    return False


def _are_alike(sentence: Sentence, one: Said, other: Said) -> bool:
    """Whether two numbers may be of one thing, and are no gaps themselves."""
    units = {each.figure.unit for each in (one, other)}
    joined = units == {"", "%"} and other.figure.unit == "%"  # "57.20 to 58.15 %"
    kinds = {each.kind for each in (one, other)}
    enough = min(one.figure.digits, other.figure.digits) >= DIGITS
    plain = not kinds & {"points", "times"} and not any(is_gap(sentence, x) for x in (one, other))
    return enough and plain and (len(units) == 1 or joined)


# --- what they give


def _given(sentence: Sentence, said: Said, two: tuple[Said, Said, bool]) -> Iterator[Given]:
    """All that a gap of two numbers may be, by how it is called."""
    one, other = two[0].figure, two[1].figure
    gap, room = _gap(sentence, said, two), one.half + other.half
    shares = other.unit == "%"
    small = max(abs(one.value), abs(other.value)) <= SMALL and not shares
    if said.kind == "times":
        for top, bottom in ((one, other), (other, one)):
            if bottom.value > bottom.half:
                low = (top.value - top.half) / (bottom.value + bottom.half)
                high = (top.value + top.half) / (bottom.value - bottom.half)
                yield Given("check.not-share", low, high)
                yield Given("check.not-share", low - 1, high - 1)  # "1.5 times faster"
        return
    relative = is_relative(sentence, said)
    if said.kind != "share" or (shares and not relative):
        yield Given("check.not-difference", gap - room, gap + room)
    if said.kind == "share":
        for base in _bases(sentence, said, two):
            if abs(base.value) > base.half:
                share, slack = 100 * gap / abs(base.value), 100 * room / abs(base.value)
                yield Given("check.not-relative", share - slack, share + slack)
    if said.kind in ("share", "points") and not relative and small:
        yield Given("check.not-difference", 100 * (gap - room), 100 * (gap + room))


def _gap(sentence: Sentence, said: Said, two: tuple[Said, Said, bool]) -> float:
    """How far two numbers are apart, with a sign where the words give it one."""
    first, second, came = two
    gap = second.figure.value - first.figure.value
    if said.sign:
        return gap if came else abs(gap) * (-1 if said.sign == "-" else 1)
    way = direction(sentence, said) if said.kind != "share" else 0
    if way and not came and VERSUS.search(sentence.plain, first.end, second.start):
        return -way * gap  # the first is what is more, or less
    return abs(gap)


def _bases(sentence: Sentence, said: Said, two: tuple[Said, Said, bool]) -> list[Figure]:
    """What a change is a share of: where it began, or what it is more or less than."""
    first, second, came = two
    if came:
        return [first.figure]
    low, high = sorted((first.figure, second.figure), key=lambda one: abs(one.value))
    way = way_of(sentence, said)
    return [low] if way > 0 else [high] if way < 0 else [low, high]
