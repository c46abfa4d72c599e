"""How often an arm is said to be ahead, counted in the table that is meant.

"KL=0.005 最高 5 次", "B is best at 3 of the 4 shot counts", "A 高于 B 的有 7 个".
Where two are equal, both or neither may have been counted.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from kleash.written.book import Book
from kleash.written.claimed.mentions import KINDS, QUANTITIES, concepts
from kleash.written.claimed.reach import NUMBER, numeral, stretches, within
from kleash.written.claimed.readings import Clause, Line, Shelf, at_hand, clauses, outside, single
from kleash.written.marks import Mark
from kleash.written.printed import squeezed
from kleash.written.prose import Sentence, places

LEAST = 3  # lines in which an arm is ahead or not
_B, _E = r"(?<![a-z])", r"(?![a-z])"
_UNIT = r"(?:次|个|项|步|点|轮|类|列|行|组|处)"
_TOP = r"最[高好佳优大强]|领先|胜出|居首|第一|占优"
_TOPS = r"(?:best|highest|ahead|first|on top|the (?:best|highest|winner|leader))"
_CHINESE = (
    re.compile(
        rf"(?:{_TOP}|(?P<low>最[低小差]))(?:的(?:有|次数[为是:]?))?\s?(?P<count>{NUMBER})\s?{_UNIT}"
    ),
    re.compile(
        rf"[有在]\s?(?P<count>{NUMBER})\s?{_UNIT}(?![^,;。:]{{0,8}}[中里]的?\s?{NUMBER})[^,;。:\d有]{{0,10}}?"
        rf"(?:取得|是|为|上|里|中|都)*[^,;。:\d]{{0,6}}?(?:{_TOP}|(?P<low>最[低小差]))"
    ),
    re.compile(rf"(?:更?(?:高|好|优)|(?P<low>更?(?:低|差)))的[^,;。:\d]{{0,6}}?有?\s?(?P<count>{NUMBER})\s?{_UNIT}"),
)  # fmt: skip
_PAIR = re.compile(
    rf"(?:高于|优于|好于|超过|领先于?|(?P<low>低于|差于|落后于?|不及))(?P<other>[^,;。:]{{1,24}}?)"
    rf"的[^,;。:\d]{{0,6}}?(?:有|为|是)?\s?(?P<count>{NUMBER})\s?{_UNIT}"
)
_EVERY = re.compile(
    rf"(?:每一?(?:个|列|行|项|类|轮|步|档)|所有|全部|各个?)[^,;。:最]{{0,12}}?[都均](?:取得|是|为)?"
    rf"(?:{_TOP}|(?P<low>最[低小差]))(?![^,;。:]{{0,3}}于)"
)
_EACH = re.compile(  # "四个 epoch 都是 A 第一"
    rf"(?:(?P<count>{NUMBER})\s?(?:{_UNIT}|档|种|条)|每一?[个列行项类轮步档]|所有|各个?)[^,;。:\d都均]{{0,12}}?"
    rf"[都均](?:是|为|由)\s?(?P<who>[^,;。:、最第]{{1,16}}?)(?:的[^,;。:]{{0,6}}?)?"
    rf"(?:{_TOP}|(?P<low>最[低小差]))(?![^,;。:]{{0,3}}于)"
)
_ENGLISH = re.compile(
    rf"{_B}(?:(?:is|was|are|comes out|ranks|scores) (?:the )?"
    rf"(?:{_TOPS}|(?P<low>lowest|worst|last))(?: [a-z]{{1,12}})??|leads|wins) "
    rf"(?:at|on|in|for) (?:(?:all|every one) (?:of )?(?:the )?(?P<all>{NUMBER})|"
    rf"(?P<every>every|each)|(?P<count>{NUMBER}) (?:out )?of (?:the |all )?(?P<whole>{NUMBER})){_E}"
)
_BEATS = re.compile(
    rf"{_B}(?:beats|is (?:above|ahead of|higher than|better than)|exceeds|outperforms|"
    rf"(?P<low>is (?:below|behind|lower than|worse than)|trails)) "
    rf"(?P<other>[^,;:]{{1,24}}?) (?:at|on|in|for) (?P<count>{NUMBER}) (?:out )?of "
    rf"(?:the |all )?(?P<whole>{NUMBER}){_E}"
)
_AHEAD = re.compile(r"领先|占优|(?<![a-z])(?:ahead|leads|wins)(?![a-z])")
_WHOLE = re.compile(rf"(?P<whole>{NUMBER})\s?个?[^,;。:\d]{{0,10}}?(?:中|里|上)")
_LIMITED = re.compile(
    rf"并非|不是|没有|未|除|几乎|若|如果|至少|至多|最多|只看|连续|首次|[前后]\s?{NUMBER}|最[初后]|之[前后]|起|"
    rf"{_B}(?:not|except|almost|if|at least|at most|would|but for|first|final|after|before|until|"
    rf"from|other|remaining|early|late){_E}|n't"
)
_SIZES = re.compile(
    r"leader|winner|best.*|最[高佳好优].*|领先.*|胜者|#.*|n|total|合计|总[数计]|.*(?:任务|样本|题|条|问题|总)数量?|数量|(?:number|count|size|tasks|questions).*"
)
_LESS = frozenset(
    ("loss", "time", "step time", "gpu", "cost", "rank", "kl", "spread", "range", "memory")
)


@dataclass(frozen=True)
class Told:
    """How often something is ahead, of how many, over whom if one is named."""

    match: re.Match[str]
    count: int | None
    whole: int | None
    way: int
    other: tuple[int, int] | None = None


@dataclass(frozen=True)
class Tally:
    """How often something is said to be so, how often it is, and how often with equals."""

    said: int
    least: int
    most: int
    near: bool
    """Whether the table is the last one above."""

    @property
    def fits(self) -> bool:
        return self.least <= self.said <= self.most


def false_wins(book: Book, every: Sequence[Shelf], spoken: Sequence[Sentence]) -> Iterator[Mark]:
    """Counts of lines in which an arm is ahead that no table that is meant has."""
    for sentence in spoken:
        parts = clauses(sentence)
        for nth, clause in enumerate(parts):
            for told in _told(clause, parts[:nth]):
                if _is_limited(clause, told):
                    continue
                right = list(_counted(book, every, clause, parts[:nth], told))
                right = [one for one in right if one.near] or right
                if right and not any(one.fits for one in right):
                    yield _mark(sentence, told, right[0].most)


def _is_limited(clause: Clause, told: Told) -> bool:
    """Whether words beside a count say that it is of some only; "is first" is what it says."""
    text = outside(clause.text)
    start, end = (at - clause.start for at in told.match.span())
    return bool(_LIMITED.search(text[:start])) or bool(_LIMITED.search(text[end:]))


def _mark(sentence: Sentence, told: Told, right: int) -> Mark:
    match = told.match
    group = next((one for one in ("count", "all") if match.groupdict().get(one)), 0)
    start, end = match.span(group)
    line, text = sentence.line(start), sentence.text[start:end].strip()
    facts: dict[str, object] = {"value": f"{right}", "lines": [line]}
    if group == "count":
        return Mark(line, text, "wrong", "check.not-same", facts, f"said {text}")
    return Mark(line, text, "wrong", "check.not-all", {}, "every")


def _told(clause: Clause, before: Sequence[Clause]) -> Iterator[Told]:
    """The counts of a clause; of how many they are may have been told before."""
    sentence = clause.sentence
    plain = sentence.plain[: clause.start] + outside(clause.text)
    earlier = [_WHOLE.search(one.text) for one in (*before[-2:], clause)]
    wholes = [numeral(one["whole"]) for one in earlier if one]
    taken = list[tuple[int, int]]()
    for pattern in (_PAIR, _BEATS, _ENGLISH, _EACH, *_CHINESE, _EVERY):
        for match in pattern.finditer(plain, clause.start):
            if any(first < match.end() and match.start() < last for first, last in taken):
                continue
            taken.append(match.span())
            groups = match.groupdict()
            count = groups.get("count") or groups.get("all")
            every = count if re.search("[都均]", match[0]) else None
            whole = groups.get("whole") or groups.get("all") or every
            yield Told(
                match,
                numeral(count) if count else None,
                numeral(whole) if whole else wholes[-1] if wholes else None,
                -1 if groups.get("low") else 1,
                match.span("other") if groups.get("other") else None,
            )


def _counted(
    book: Book, every: Sequence[Shelf], clause: Clause, before: Sequence[Clause], told: Told
) -> Iterator[Tally]:
    """What tables that may be meant have."""
    sentence = clause.sentence
    above = at_hand(book, sentence, told.match.start())
    need = concepts(outside(clause.text)) & QUANTITIES - {"step", "turns"}
    if any(line.is_ranks for shelf in every if shelf.sheet in above for line in shelf.lines()):
        return  # places, not values
    for shelf in every:
        near = shelf.sheet in above
        if _is_of_another_size(shelf, sentence):
            continue
        label = None if told.whole is None and not near else _label(shelf, clause, before, told)
        if label is None:
            continue
        lines = _lines(shelf, sentence, label[0], clause.end)
        lines = [one for one in lines if need <= one.words | shelf.about]
        if len(lines) < LEAST or (told.whole or len(lines)) != len(lines):
            continue
        if any((one.words | shelf.about) & _LESS - need for one in lines):
            continue  # less may be what is best
        gaps = [gap for one in lines if (gap := _gap(shelf, one, *label, told.way)) is not None]
        if len(gaps) == len(lines):
            said = len(lines) if told.count is None else told.count
            yield Tally(said, sum(gap > 0 for gap in gaps), sum(gap >= 0 for gap in gaps), near)


def _is_of_another_size(shelf: Shelf, sentence: Sentence) -> bool:
    """Whether a sentence speaks of so many samples, and a table is headed by another number."""
    said = {place.at for place in sentence.places if place.axis == "sample"}
    heads = squeezed(" ".join(shelf.sheet.table.headings[-1:]))
    sizes = {place.at for place in places(heads) if place.axis == "sample"}
    return bool(said and sizes) and not said & sizes


def _label(
    shelf: Shelf, clause: Clause, before: Sequence[Clause], told: Told
) -> tuple[int, int | None] | None:
    """The label that is ahead, named in the clause or before it, and the one behind it."""
    if shelf.own_steps or shelf.side.is_metrics:
        return None
    sentence = clause.sentence
    who = told.match.span("who") if told.match.groupdict().get("who") else None
    start, end = who or (clause.start, told.match.start())
    named = single(shelf.side.named(sentence, start, end, arms=True))
    if not named and not who and not sentence.plain[clause.start : told.match.start()].strip():
        for part in before[-1:]:
            named = single(shelf.side.named(sentence, part.start, part.end, arms=True))
    if not named or len(named) > 1:
        return None
    if told.other is None:
        rivals = [
            label
            for part in before if _AHEAD.search(told.match[0])
            for _, label in single(shelf.side.named(sentence, part.start, part.end, arms=True))
            if label != named[0][1]
        ]  # fmt: skip
        return None if rivals else (named[0][1], None)
    others = single(shelf.side.named(sentence, *told.other, arms=True))
    if len(others) != 1 or others[0][1] == named[0][1]:
        return None
    return named[0][1], others[0][1]


def _lines(shelf: Shelf, sentence: Sentence, label: int, end: int) -> list[Line]:
    """The lines of one quantity: printed as most are, no means or gaps, of the steps named."""
    spans, steps = stretches(sentence, 0, end), shelf.steps
    lines = [one for one in shelf.lines() if label in one.cells and not one.cells[label].part]
    kinds = [(one.cells[label].figure.decimals, one.cells[label].figure.unit) for one in lines]
    most = max(kinds, key=kinds.count, default=None)
    return [
        one
        for one, kind in zip(lines, kinds, strict=True)
        if kind == most
        and not one.words & (KINDS - {"validation", "test", "train"})
        and (one.at not in steps or within(spans, steps[one.at]))
    ]


def _gap(shelf: Shelf, line: Line, label: int, other: int | None, way: int) -> float | None:
    """How far a label is ahead in a line of the one that is named, or of all others."""
    texts = shelf.side.texts
    scope = [other] if other is not None else [
        one
        for one in shelf.scope(line, label)
        if one != label
        and not _SIZES.fullmatch(texts[one].strip("* ").casefold())
        and not shelf.side.labels[one] & {"gap", "change", "gain", "drop", "mean"}
    ]  # fmt: skip
    values = [line.value(one) for one in scope if one in line.cells]
    if not values or len(values) < len(scope):
        return None
    return min(way * (line.value(label) - value) for value in values)
