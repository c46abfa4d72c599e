"""Which two numbers a gap must be of, by what stands right beside it in its sentence."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from kleash.written.book import Book, pairs
from kleash.written.fitting import NAMING, pair, prints
from kleash.written.gaps import BEHIND, OR, compares, is_gap
from kleash.written.printed import Cell
from kleash.written.prose import Said, Sentence

LIKELY = 0.5  # a chance at which a number may be any gap
FEW = 6  # pairs of numbers that a gap may be of to say which
GIVEN = 3  # numbers of which the last is the gap of the others
JOINED = re.compile(
    r"\s?(?:%|[a-z]{1,6}|[题个])?\s?(?:-|~|to|vs\.?|versus|against|→|->|到|至|对|和|与|"
    r"[掉降升增减跌涨]至?到?|(?:单调|一路|逐步|逐渐)?(?:增[加长大]|减[少小]|下降|上升|提[高升]|降低|"
    r"回[落升]|缩短|延长|扩大|缩小)[到至])\s?"
)
_BESIDE, _BRACKET = r"[^;。>]{0,30}", r"[^,;。]*\((?:from|从|由)?\s*"
_RANGED = re.compile(r"\s?%?\s?[-~]\s?\d")  # "from 208 to 219-223"
_FROM = re.compile(r"从|由|(?<![a-z])from(?![a-z])")
TO = re.compile(r"[到至]|→|->|(?<![a-z])to(?![a-z])")
VERSUS = re.compile(r"(?<![a-z])(?:against|versus|vs)(?![a-z])|对")
_WITHIN = re.compile(r"[^,;。:()]{1,32}")
_RIGHT_BEHIND = re.compile(
    r"[^,;。()\d]{0,12}(?:[,(]\s?[^,;。()\d]{0,8}(?:[\d.]+\s?(?:个百分点|%|points?|pp)[,、]\s?[^,;。()\d]{0,8})?)"
)
_OF_IT = re.compile(r"\(|相对|即|(?<![a-z])(?:or|relative|that is)(?![a-z])")
_SHARED = re.compile(r"[^;。>\d]{0,24}")
_THAN_BEFORE = re.compile(r"比[^,。;]{0,16}$|that of\s?$")
_THAN = re.compile(
    r"(?:than|over|vs\.?|versus|against|below|above|behind|from|比|与|和|较|对|相较于?)\s?$"
)


def own_two(sentence: Sentence, said: Said) -> tuple[Said, Said] | None:
    """The two numbers right beside a gap that it must be of: "from 0.684 to 0.178, by 74 %"."""
    plain = sentence.plain
    others = [one for one in sentence.numbers if one is not said and not is_gap(sentence, one)]
    before = [one for one in others if one.end <= said.start]
    after = [one for one in others if one.start >= said.end]
    for two in (before[-2:], after[:2]):
        if len(two) < 2 or two[0].figure.decimals != two[1].figure.decimals:
            continue
        between = plain[two[0].end : two[1].start]
        gap = plain[two[1].end : said.start] if two[0] in before else plain[said.end : two[0].start]
        near = re.fullmatch(_BESIDE if two[0] in before else _BRACKET, gap)
        joined = JOINED.fullmatch(between) and near
        units = {one.unit for one in (*two, said)}
        counted = len(units) == 1 and units != {""} and len(others) == 2
        times = said.kind == "times" and two[0] in before and len(before) == 2 and len(others) == 2
        first = said.start - len(gap) if two[0] in before else said.end
        others_ = any(first <= one.start < first + len(gap) for one in sentence.names)
        ranged = _RANGED.match(plain, two[1].end)
        if (joined and not ranged) or counted or (times and not others_ and re.search("的", gap)):
            return two[0], two[1]
    return _told_before(sentence, said, before) or with_gap(sentence, said)


def _told_before(
    sentence: Sentence, said: Said, before: Sequence[Said]
) -> tuple[Said, Said] | None:
    """The two ends of a change that a gap stands right behind, whatever stands between them.

    "from 62.35% at 100 samples to 49.60% at 800 (-12.75%)".
    """
    plain = sentence.plain
    alike = [one for one in before if one.figure.decimals and one.kind in ("", "share", "unit")]
    if len(alike) < 2 or alike[-2].figure.decimals != alike[-1].figure.decimals:
        return None
    one, other = alike[-2:]
    between, gap = plain[one.end : other.start], plain[other.end : said.start]
    names = [n for n in sentence.names if other.end <= n.start < said.start]
    if names or not _RIGHT_BEHIND.fullmatch(gap) or not _WITHIN.fullmatch(between):
        return None
    first = max(plain.rfind(mark, 0, one.start) for mark in ",;:。(")
    came = _FROM.search(plain, first + 1, one.start) and TO.search(between)
    return (one, other) if came or VERSUS.search(between) else None


def with_gap(sentence: Sentence, said: Said) -> tuple[Said, Said] | None:
    """The two numbers whose gap a share stands behind: "59.85, from 57.05, +2.80 or 4.9 %"."""
    before = [one for one in sentence.numbers if one.end <= said.start][-GIVEN:]
    if said.kind != "share" or len(before) < GIVEN:
        return None
    last, decimals = before[-1], {one.figure.decimals for one in before}
    unit = 10.0**-last.figure.decimals
    between = without_brackets(sentence.plain[last.end : said.start])
    names = any(last.end <= one.start < said.start for one in sentence.names)
    if names or len(decimals) > 1 or not _SHARED.fullmatch(between):
        return None
    gaps = [one for one in before if is_gap(sentence, one)] or [last]
    one, other = (each for each in before if each is not gaps[-1])
    apart = abs(one.figure.value - other.figure.value)
    made = apart and abs(apart - abs(gaps[-1].figure.value)) < unit / 4
    return (one, other) if made else None


def without_brackets(text: str) -> str:
    """A text without what stands in brackets in it."""
    return re.sub(r"\s?\([^()]*\)", "", text)


def is_change(sentence: Sentence, two: tuple[Said, Said]) -> bool:
    """Whether the second of two numbers is what the first came to."""
    between = sentence.plain[two[0].end : two[1].start]
    return two[0].end <= two[1].start and bool(TO.search(between))


def anchor(book: Book, sentence: Sentence, said: Said) -> list[tuple[Cell, Cell]]:
    """The pairs of numbers that a gap must be of, since its sentence has just given one of them.

    "66.8 %, 9.7 points more than C": one of the two is 66.8. "by 0.464, or 33.7 %": both are those
    of 0.464. Not where another row or column begins between the two.
    """
    before = [one for one in sentence.numbers if one.end <= said.start]
    if said.kind != "share":
        before = [one for one in before if not is_gap(sentence, one)]
    if not before or before[-1].figure.digits < NAMING - 1:
        return []
    last, between = before[-1], sentence.plain[before[-1].end : said.start]
    names = {
        name.start
        for name in sentence.names
        if not any(one.start < name.start < one.end for one in sentence.names)
        if last.end <= name.start
        and name.end <= said.start
        and sentence.plain[last.end : name.start].strip()  # else it is what it is counted in
    }
    starts = [sentence.plain[last.end : start] for start in names]
    if re.search(r"[;。>]", between) or not all(_THAN.search(text) for text in starts):
        return []
    every = list(pairs(book, sentence))
    printed = any(prints(last.figure, cell.figure) for cell in book.cells)
    if is_gap(sentence, last) or (not printed and compares(sentence, last)):
        listed = said.kind == last.kind and not _OF_IT.search(between)  # "0.80 %, 1.29 %"
        if said.kind != "share" or not OR.fullmatch(between) or listed:
            return []
        found = [two for two in every if _makes(last, *two)]
        return found if len(found) < FEW else []
    told = BEHIND.match(sentence.plain, said.end) or _THAN_BEFORE.search(between)
    if last.figure.digits < NAMING or not is_gap(sentence, said) or not told:
        return []
    other = list(_to_name(book, sentence, said, last))
    return other or [two for two in every if any(prints(last.figure, cell.figure) for cell in two)]


def _to_name(book: Book, sentence: Sentence, said: Said, last: Said) -> Iterator[tuple[Cell, Cell]]:
    """The numbers that a gap is between: the one just given, and that of the name behind it.

    "74.8 %, which is 5.4 points above A and 4.0 points above B".
    """
    if not BEHIND.match(sentence.plain, said.end):
        return
    until = min(
        (n.start for n in sentence.numbers if n.start >= said.end), default=len(sentence.text)
    )
    names = [one for one in sentence.names if said.end <= one.start and one.end <= until]
    for sheet in book.sheets:
        rows = {one.row for one in names if one.sheet == sheet.nth} - {None}
        columns = {one.column for one in names if one.sheet == sheet.nth} - {None}
        ours = [cell for cell in sheet.cells if prints(last.figure, cell.figure)]
        for one in ours if bool(rows) != bool(columns) else ():
            for cell in sheet.cells:
                along = cell.column == one.column and cell.row in rows
                across = cell.row == one.row and cell.column in columns
                if (along or across) and cell.part == one.part:
                    yield one, cell


def _makes(said: Said, one: Cell, other: Cell) -> bool:
    if min(one.figure.decimals, other.figure.decimals) < said.figure.decimals:
        return False
    every = pair(said, one.figure, other.figure, ())
    return any(each.kind == "difference" and each.chance < LIKELY for each in every)
