"""Numbers that others of their sentence give: "from 0.300 to 0.112, down 62.7 %".

Here are gaps whose two numbers stand right beside them. Such a gap can be of no other two, so what
tables have elsewhere does not acquit it; where it may be of several, one of them has to give it.
Parts of a whole, formulas, products and gaps of names have modules of their own and come together
in `misreckoned`.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, permutations

from kleash.written.fitting import is_typo
from kleash.written.gaps import is_gap, is_part, is_relative, way_of
from kleash.written.made.rounded import for_hidden, is_of_printed
from kleash.written.marks import Mark
from kleash.written.printed import Sheet
from kleash.written.prose import Said, Sentence, is_rough, other_end
from kleash.written.ties import JOINED, TO, with_gap, without_brackets
from kleash.written.told.assigned import of_names
from kleash.written.told.couples import false_couples
from kleash.written.told.given import Given, Two, of_two, part_of
from kleash.written.told.over import gaps_to_names
from kleash.written.told.portions import portions
from kleash.written.told.products import false_products
from kleash.written.told.written_out import false_formulas, right_formulas
from kleash.written.whose import said_mark

BEFOREHAND = -0.5  # for hidden digits in a sentence: few have them at hand (logarithm of odds)
DIGITS = 2  # of numbers that a gap is taken of
FEW = 4  # numbers of a sentence of which any two are tried
_COMPARER = re.compile(
    r"比(?!例|较|率|重|值)|相较于?|较之|(?<![a-z])(?:than|versus|vs|against|compared)(?![a-z])"
)
_APART = re.compile(
    rf"{_COMPARER.pattern}|各|都|最|分别|因为|由于|"
    r"(?<![a-z])(?:each|both|respectively|its|own|but|because|due)(?![a-z])"
)
_BEHIND = re.compile(r"[^;。>\d]{0,24}")
_BEHIND_COUNTS = re.compile(
    r"\s?[a-z\u4e00-\u9fff]{0,8}\s?(?:\([^\d,;。()]{0,6}|,\s?(?:多出?了?|少了?|增加了?|减少了?|相?差了?))\s?"
)
_BEHIND_OTHER = re.compile(r"[\s)%,]*[^;。>\d,]{0,16}")
_SO = re.compile(
    r"[^\d;。,]{0,12},\s?(?:也就是|即|意味着|so |that is|i\.e\.|meaning )[^\d;。,]{0,16}$"
)
_OPENS = re.compile(
    r"[^,;。\d()]{0,12}\(\s?(?:from|从|由)?\s?|[^;。\d()]{0,24}(?<![a-z])from\s|[^;。\d()]{0,8}[从由]\s?"
)
_OVER = re.compile(r"\s?[a-z%]{0,6}\s?[/÷]\s?")
_CLOSES = re.compile(r"\s?[a-z%\u4e00-\u9fff]{0,6}\s?\)")
_IS = re.compile(r"(?<=,)\s?(?:约?是|为)(?!否)")
_SUBJECT = re.compile(r"\s?%?[^;。\d()]{0,16}")
_BRACKETED = re.compile(r"\s?[%a-z\u4e00-\u9fff]{0,4}\s?\)\s?的\s?")
_ARE = re.compile(r"[^;。.\d()]{0,24}(?<![a-z])(?:is|are|was|were)\s")
_TIMES_THE = re.compile(r"\s?(?:(?:times|x|×)\s)?(?:the|its)\s")
_BOTH = re.compile(r"两者(?:之间)?(?:相)?(?:只|仅)?差(?:了|距)?\s?$")
_SPREAD = re.compile(
    r"(?:极差|跨度|落差)(?:为|是|仅|只有)?\s?$|(?<![a-z])(?:a|the) (?:range|spread|span) of\s?$"
)
_GAP = re.compile(r"[增降涨跌升]幅|差[异值距]?|变化|提升|下降|回落|change|drop|gain|gap|difference")
_RATE = re.compile(r"[增降涨跌升]幅\s?[约达为]?\s?$")
_AT = re.compile(r"\s?(?:步|轮)?(?:的|时|为)?\s?")
_COUNTED = re.compile(r"\s?(?:个|条)?\s?(?:样本|samples|步|steps?|epochs?|轮|shots?|seeds?|种子)")
_BRACKET = re.compile(r"\s?%?\s?\(\s?(?:from |从|由)?\s?[+-]?")
_TO_END = re.compile(r"\s?%?\s?(?:→|->|to|[降升涨跌]?[到至])\s?[+-]?")


@dataclass(frozen=True)
class Reckoned:
    """A number of a sentence that others of it give, and all that these may give."""

    sentence: Sentence
    said: Said
    given: Sequence[Given]

    def mark(self) -> Mark:
        """The mark of one that does not come out."""
        said, sentence = self.said, self.sentence
        changes = [one for one in self.given if one.code == "check.not-relative"]
        led = changes and _RATE.search(sentence.plain, 0, said.start)
        value = abs(said.figure.value)
        right = min(changes if led else self.given, key=lambda one: abs(abs(one.value) - value))
        text = f"{right.value:.{said.figure.decimals}f}" + "%" * (said.kind == "share")
        facts: dict[str, object] = {"value": text, "lines": [sentence.line(said.start)]}
        return said_mark(sentence, said, "wrong", right.code, facts)


def misreckoned(
    spoken: Sequence[Sentence], sheets: Sequence[Sheet], hidden: float
) -> Iterator[Mark]:
    """Numbers that others of their sentence do not give.

    What comes out only before rounding is wrong where people work with printed numbers; `hidden` is
    how much tables speak for hidden digits.
    """
    rough = list[Reckoned]()
    told = BEFOREHAND
    printed = {
        (cell.figure.decimals, round(cell.figure.value, cell.figure.decimals))
        for sheet in sheets
        for cell in sheet.cells
    }
    steps = {
        at for sheet in sheets if sheet.axis in ("step", "epoch") for at in sheet.counts.values()
    }
    for sentence in spoken:
        yield from false_products(sentence)
        yield from false_formulas(sentence)
        every = [
            one
            for one in (*_reckoned(sentence), *_assigned(sentence, sheets))
            if not _is_of_steps(sentence, one.said, one.given, steps)
        ]
        own = {one.said for one in every}
        loose = [
            *false_couples(sentence, printed),
            *gaps_to_names(sentence, sheets),
            *_slips(sentence),
        ]
        for said, given in loose:
            if said not in own and not _is_of_steps(sentence, said, given, steps):
                own.add(said)
                yield Reckoned(sentence, said, given).mark()
        for one in every:
            exact = [each for each in one.given if each.is_exact(one.said)]
            fits = [each for each in one.given if each.fits(one.said)]
            if exact:
                told += for_hidden(min(each.odd(one.said) for each in exact), odd=False)
            elif fits:
                rough.append(one)
                told += for_hidden(max(each.chance(one.said) for each in fits), odd=True)
            else:
                yield one.mark()
    if is_of_printed({"sentences": told, "tables": hidden}, "sentences"):
        yield from (one.mark() for one in rough)


def _is_of_steps(
    sentence: Sentence, said: Said, given: Sequence[Given], steps: Collection[float]
) -> bool:
    """Whether a gap would be that of two steps: "150→175 涨 55" is of what stands there."""
    if not given or _COUNTED.match(sentence.plain, said.end):
        return False
    return all(
        len(one.of) > 1 and {each.figure.value for each in one.of} <= {*steps} for one in given
    )


def borne_out(spoken: Sequence[Sentence]) -> set[tuple[int, str]]:
    """Numbers that come out of others of their sentence, and these, by line and digits."""
    found = set[tuple[int, str]]()
    for sentence in spoken:
        found |= right_formulas(sentence)
        for one in _reckoned(sentence):
            for each in one.given:
                if each.is_exact(one.said):
                    numbers = (one.said, *each.of)
                    found |= {(sentence.line(x.start), x.text.lstrip("+-±")) for x in numbers}
    return found


def _reckoned(sentence: Sentence) -> Iterator[Reckoned]:
    """Every number of a sentence of which it gives the two that it is of."""
    shares = {share: part_of(part, whole) for share, part, whole in portions(sentence)}
    for said in sentence.numbers:
        if said in shares:
            yield Reckoned(sentence, said, [shares[said]])
        elif _is_told_apart(sentence, said):
            given = [one for two in _twos(sentence, said) for one in of_two(sentence, said, two)]
            if given:
                yield Reckoned(sentence, said, given)


def _assigned(sentence: Sentence, sheets: Sequence[Sheet]) -> Iterator[Reckoned]:
    """Gaps of two names that have their numbers in the sentence."""
    for said, (one, other) in of_names(sentence, sheets):
        yield Reckoned(sentence, said, [*of_two(sentence, said, (one, other, False))])


def _slips(sentence: Sentence) -> Iterator[tuple[Said, list[Given]]]:
    """Gaps that are a digit off the one that some two numbers before them give."""
    for said in sentence.numbers:
        before = [
            one for one in sentence.numbers
            if one.end <= said.start and one.figure.digits >= DIGITS and not is_gap(sentence, one)
        ]  # fmt: skip
        alike = {(one.figure.decimals, one.kind in ("share", "points")) for one in before}
        if not 2 <= len(before) <= FEW or len(alike) > 1 or not _may_be_of(sentence, before, said):
            continue
        twos = [(one, other, False) for one, other in combinations(before, 2)]
        given = [one for two in twos for one in of_two(sentence, said, two)]
        parts = [part_of(one, other) for one, other in permutations(before, 2)]
        value, decimals = abs(said.figure.value), said.figure.decimals
        near = [one for one in given if is_typo(value, abs(one.value), decimals)]
        long = said.figure.digits > DIGITS or len(before) == 2
        if long and len(near) == 1 and not any(one.fits(said) for one in (*given, *parts)):
            yield said, near


def _may_be_of(sentence: Sentence, before: Sequence[Said], said: Said) -> bool:
    """Whether a gap may be of numbers before it: no other name begins in between."""
    told = _is_told_apart(sentence, said) and not is_part(sentence, said)
    if said.kind == "times":
        return told and sentence.plain[: said.start].rstrip().endswith("的")
    between = sentence.plain[before[-1].end : said.start]
    listed = not re.search(r"[^\W\d_]", between.replace("and", ""))  # "4.25, 1.95 and 3.30"
    return told and not listed and not _named(sentence, before[-1], said)


def _is_told_apart(sentence: Sentence, said: Said) -> bool:
    """Whether a number is said to be how far two others are apart, to the digit."""
    enough = said.figure.digits >= DIGITS and (said.kind != "points" or said.figure.decimals)
    exact = not is_rough(sentence, said) and other_end(sentence, said) is None
    led = said.kind == "share" and (way_of(sentence, said) or is_relative(sentence, said))
    apart = enough and (is_gap(sentence, said) or led)
    return bool(exact and (apart or _times_of(sentence, said)))


# --- of which two


def _twos(sentence: Sentence, said: Said) -> Iterator[Two]:
    """The two numbers that a gap is of, or all that it may be of; and whether one came of one."""
    ends = _in_bracket(sentence, said)
    if ends is not None:
        yield (*ends, True)
        return
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


def _in_bracket(sentence: Sentence, said: Said) -> tuple[Said, Said] | None:
    """The ends of a change in brackets right behind it: "falls by 35.2 % (0.041 → 0.027)"."""
    at = sentence.numbers.index(said)
    if len(sentence.numbers) < at + 3:
        return None
    one, other = sentence.numbers[at + 1 : at + 3]
    opens = _BRACKET.fullmatch(sentence.plain, said.end, one.start)
    closes = _TO_END.match(sentence.plain, one.end)
    return (one, other) if opens and closes and closes.end() == other.start else None


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
    """The last two numbers before "两者差 26.9 点", or the ends of those before "极差"."""
    before = [one for one in sentence.numbers if one.end <= said.start]
    if len(before) < 2:
        return None
    last, between = before[-1], sentence.plain[before[-1].end : said.start]
    alike = [
        one for one in before
        if _are_alike(sentence, one, last) and one.figure.decimals == last.figure.decimals
    ]  # fmt: skip
    if before[-2] not in alike or last not in alike:
        return None
    if _BOTH.search(between):
        return before[-2], last
    ends = sorted(alike, key=lambda one: one.figure.value)
    return (ends[0], ends[-1]) if _SPREAD.search(between) else None


def _beside(sentence: Sentence, said: Said) -> list[Said]:
    """The numbers that are joined right before a gap, or in brackets behind it."""
    plain, at = sentence.plain, sentence.numbers.index(said)
    before = _joined(sentence, sentence.numbers[:at])
    plainly = said.kind in ("", "unit", "points")
    coarse = plainly and any(one.figure.decimals < said.figure.decimals for one in before)
    # "300 → 600, 1.81 less" is of two places
    if before and not coarse and not _COUNTED.match(plain, before[-1].end):
        gap = without_brackets(plain[before[-1].end : said.start]).rstrip("+-± ")
        counts = not any(one.figure.decimals for one in before)
        fits = (_BEHIND_COUNTS if counts else _BEHIND).fullmatch(gap)
        if fits and not _APART.search(gap) and not _named(sentence, before[-1], said):
            return before
    after = sentence.numbers[at + 1 : at + 3]
    over = (
        said.kind == "times"
        and len(after) > 1
        and _OVER.fullmatch(plain, after[0].end, after[1].start)
    )
    after = after if over else _joined(sentence, after)
    if after and not _COUNTED.match(plain, after[-1].end):
        opens = _OPENS.fullmatch(plain, said.end, after[0].start)
        closed = _CLOSES.match(plain, after[-1].end) or "(" not in plain[said.end : after[0].start]
        places = said.kind != "times" and after[0].figure.decimals < said.figure.decimals
        if opens and closed and not places and not _named(sentence, said, after[0]):
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
