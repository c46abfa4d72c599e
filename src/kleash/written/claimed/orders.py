"""Two arms of which one is said to be above, below, ahead of or faster than the other.

The clause names both, or goes on from one that does. It is false if the other is ahead in every
line that is meant; where it says "always", or from which step on, if it is so in some.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from kleash.written.claimed.mentions import QUANTITIES, Mention
from kleash.written.claimed.reach import counts, stretches, within
from kleash.written.claimed.readings import (
    Clause,
    Line,
    Shelf,
    Span,
    asked,
    clauses,
    complete,
    outside,
)
from kleash.written.fitting import prints
from kleash.written.marks import Mark
from kleash.written.prose import END, Said, Sentence

NEAR = 10  # letters between a number and the word that it goes with
DIGITS = 2  # of a number that shows which two are meant
_B, _E = r"(?<![a-z])", r"(?![a-z])"
_SENSES: dict[str, str] = {
    "above": rf"高于|大于|多于|长于|超过|{_B}(?:above|higher than|more than|greater than|"
    rf"larger than|longer than|exceeds?){_E}",
    "below": rf"低于|小于|少于|短于|不及|{_B}(?:below|lower than|less than|fewer than|smaller than|"
    rf"shorter than){_E}",
    "ahead": rf"领先|优于|好于|{_B}(?:ahead of|leads?|beats?|better than|outperforms?){_E}",
    "behind": rf"落后于?|差于|劣于|{_B}(?:behind|trails?|worse than){_E}",
    "faster": rf"快于|{_B}faster than{_E}",
    "slower": rf"慢于|{_B}slower than{_E}",
}
_WORDS = re.compile("|".join(f"(?P<{name}>{words})" for name, words in _SENSES.items()))
_THAN = re.compile(
    r"比(?!例)(?P<other>[^,;。:]{1,24}?)(?:的[^,;。:]{0,8}?)?(?:略|稍|更|都|还|要|明显|显著|普遍)*"
    r"(?P<word>[高低多少长短快慢大小])(?![于幅])"
)
_PLAIN = {"高": "above", "多": "above", "长": "above", "大": "above", "低": "below", "少": "below",
          "短": "below", "小": "below", "快": "faster", "慢": "slower"}  # fmt: skip
_UP = ("above", "ahead")
_GOOD = frozenset(("accuracy", "success", "win", "reward"))
_TIME = frozenset(("time", "step time", "gpu"))
_LIMITED = re.compile(
    rf"的[^,]{{0,6}}有\s?\d|\d+ of |\d/\d|\d\s?[个次][^,]{{0,6}}[中里]|"
    rf"不|没|未|非|除|几乎|是否|如果|若|曾|一度|有时|部分|多数|差不多|最|平均|之差|其他|其余|各|任何|自己|"
    rf"{_B}(?:not|no|never|except|almost|nearly|if|whether|would|sometimes|mostly|"
    rf"any|other|its own|half|best|worst|highest|lowest){_E}|n't"
)
_EVERY = re.compile(
    rf"一直|始终|总是|每[次个一]|都|均|{_B}(?:always|every|each|both|throughout|onwards?){_E}"
)
_EMPTY = re.compile(
    rf"(?:\s|[\d.%]|{_B}(?:and|which|is|still|points?|pp|it|by|that){_E}|个?百分点|个点|仍|也|但|且|而|又|到|在|时|已经?|就)*"
)
_AND = re.compile(rf"(?:{_B}and|和|、|,)\s?[\d.]+\s?%?\s?(?:points? |pp )?$")
_ONWARDS = re.compile(rf"\s?(?:[起后]|以后|之后|开始|{_B}(?:onwards?|on){_E})")
_PART = re.compile(
    r"(?:(?P<more>多|增加)|(?P<less>少|减少|节?省))(?:花|用|耗|出|了)*\s?(?P<behind>\d+\.\d+)|"
    rf"(?<![\d.])(?P<before>\d+\.\d+)\s?[a-z%]{{0,7}} "
    rf"(?:(?P<up>more|longer)|(?P<down>less|fewer|shorter)){_E}"
)


Pair = tuple[int, int]


@dataclass(frozen=True)
class Order:
    """A word that puts one before another, where it stands, and the two parts that name them."""

    clause: Clause
    span: Span
    sense: str
    one: Span
    other: Span
    gap: Said | None = None
    """By how much, where it is said."""


def false_orders(all_shelves: Sequence[Shelf], every: Sequence[Sentence]) -> Iterator[Mark]:
    """What is said to be above something that is above it in all that is meant."""
    for sentence in every:
        parts = clauses(sentence)
        for nth, clause in enumerate(parts):
            if _LIMITED.search(outside(clause.text)):
                continue
            for order in _orders(clause, parts[:nth]):
                if _is_false(all_shelves, order, parts[:nth]):
                    start, end = order.span
                    text = sentence.text[start:end]
                    yield Mark(sentence.line(start), text, "wrong", "check.not-trend", {}, "order")


def false_parts(all_shelves: Sequence[Shelf], every: Sequence[Sentence]) -> Iterator[Mark]:
    """Parts of a gap that go the other way: "A 比 B 多 10.2s：参考模型多 17.7s，生成也多 8.6s"."""
    for sentence in every:
        parts = clauses(sentence)
        for nth, clause in enumerate(parts):
            orders = list(_orders(clause, parts[:nth]))
            whole = orders[0] if len(orders) == 1 else None
            for later in parts[nth + 1 :] if whole else ():
                if any(_orders(later, ())) or _LIMITED.search(outside(later.text)):
                    break
                for word in _PART.finditer(sentence.plain, later.start, later.end):
                    if whole and _is_turned(all_shelves, whole, later, word):
                        start, end = word.span()
                        text, line = sentence.text[start:end], sentence.line(start)
                        yield Mark(line, text, "wrong", "check.not-trend", {}, "order")


def _is_turned(every: Sequence[Shelf], whole: Order, clause: Clause, word: re.Match[str]) -> bool:
    """Whether a line that a clause names has the gap that it tells, but the other way."""
    at = word.start("behind" if word["behind"] else "before")
    gap = next((one for one in clause.sentence.numbers if one.start == at), None)
    way = 1 if word["more"] or word["up"] else -1
    verdicts = [
        way * (line.value(pair[0]) - line.value(pair[1])) > 0
        for shelf in every
        if gap is not None and not shelf.own_steps and not shelf.side.is_metrics
        for one, other in _named(shelf, whole, ())
        for pair in _pairs(shelf, one, other)
        for mention in shelf.other.named(clause.sentence, clause.start, clause.end, arms=False)
        for line in shelf.lines()
        if line.at in mention.labels and _is_apart(line, pair, gap)
    ]
    return bool(verdicts) and not any(verdicts)


def _orders(clause: Clause, before: Sequence[Clause]) -> Iterator[Order]:
    plain = clause.sentence.plain
    for word in _WORDS.finditer(plain, clause.start, clause.end):
        own, rest = (clause.start, _subject(clause, word)), (word.end(), clause.end)
        yield Order(
            clause, word.span(), word.lastgroup or "", own, rest, _gap(clause, *word.span())
        )
    for than in _THAN.finditer(plain, clause.start, clause.end):
        own = (clause.start, than.start())
        start, end = than.span("word")
        other, gap = than.span("other"), _gap(clause, start, end)
        yield Order(clause, (start, end), _PLAIN[than["word"]], own, other, gap)


def _subject(clause: Clause, word: re.Match[str]) -> int:
    """Where the part ends that names the one: "A is 0.06 above B and 0.02 above C" goes on."""
    earlier = list(_WORDS.finditer(clause.sentence.plain, clause.start, word.start()))
    if earlier and _AND.search(clause.sentence.plain, earlier[-1].end(), word.start()):
        return earlier[0].start()
    return word.start()


def _gap(clause: Clause, start: int, end: int) -> Said | None:
    """The number right before or behind a word: "2.9 points above", "高 2.9 个百分点"."""
    for one in clause.sentence.numbers:
        before = 0 <= start - one.end <= NEAR and one.start >= clause.start
        behind = 0 <= one.start - end <= 1 and one.end <= clause.end
        if (before or behind) and one.kind != "times" and (one.figure.decimals or behind):
            return one
    return None


def _is_false(every: Sequence[Shelf], order: Order, before: Sequence[Clause]) -> bool:
    verdicts = []
    for shelf in every:
        if shelf.own_steps or shelf.side.is_metrics:
            continue
        for one, other in _named(shelf, order, before):
            pairs = list(_pairs(shelf, one, other))
            lines = list(_lines(shelf, order, (one, other), before))
            by_gap = [
                (line, pair)
                for line in shelf.lines()
                for pair in pairs
                if order.gap is not None and _is_apart(line, pair, order.gap)
            ]
            if order.gap is not None and not order.gap.figure.decimals and not by_gap:
                continue  # a count, which others than these tables may have
            found = [
                verdict
                for line, pair in by_gap or _told(shelf, order, pairs, before) or _all(lines, pairs)
                if (verdict := _verdict(shelf, line, order.sense, pair)) is not None
            ]
            if found:
                always = _EVERY.search(order.clause.text)
                told = [n for _, _, n in counts(order.clause.text)]
                least = min([len(found), *told[-1:]]) if always else 1
                verdicts.append(sum(found) >= least)
    return bool(verdicts) and not any(verdicts)


def _all(lines: Sequence[Line], pairs: Sequence[Pair]) -> list[tuple[Line, Pair]]:
    return [(line, pair) for line in lines for pair in pairs]


def _told(
    shelf: Shelf, order: Order, pairs: Sequence[Pair], before: Sequence[Clause]
) -> list[tuple[Line, Pair]]:
    """The lines in which the one has the last number that the clauses before tell."""
    if not before or order.gap is not None:
        return []
    numbers = [
        one
        for one in order.clause.sentence.numbers
        if one.end <= order.clause.start and one.figure.digits > DIGITS and one.kind != "points"
    ]
    return [
        (line, pair)
        for line in shelf.lines()
        for pair in pairs
        if numbers
        and pair[0] in line.cells
        and prints(numbers[-1].figure, line.cells[pair[0]].figure)
    ]


def _is_apart(line: Line, pair: tuple[int, int], gap: Said) -> bool:
    """Whether two labels of a line are as far apart as is said: then it is what is meant."""
    if gap.figure.digits < DIGITS or not all(label in line.cells for label in pair):
        return False
    one, other = (line.cells[label].figure for label in pair)
    scale = 100 if one.unit != "%" and gap.kind in ("points", "share") and abs(one.value) < 1 else 1
    room = gap.figure.half + scale * (one.half + other.half)
    return abs(scale * abs(one.value - other.value) - gap.figure.value) <= room


def _named(
    shelf: Shelf, order: Order, before: Sequence[Clause]
) -> Iterator[tuple[Mention, Mention]]:
    """The one and the other: both in the clause, or both in the one before it."""
    sentence = order.clause.sentence
    ours = shelf.side.named(sentence, *order.one, arms=True)
    theirs = shelf.side.named(sentence, *order.other, arms=True)
    if not ours and theirs and before and _EMPTY.fullmatch(_without_places(order)):
        for part in reversed(before):
            # "A 比 B 高 3, 比 C 高 5" goes on from A, not from B.
            end = min([one.one[1] for one in _orders(part, ())], default=part.end)
            ours = ours or shelf.side.named(sentence, part.start, end, arms=True)[:1]
    if ours and theirs:
        yield ours[-1], theirs[0]
    elif not ours and not theirs and before:
        earlier = list(_orders(before[-1], before[:-1]))
        if len(earlier) == 1:
            yield from _named(shelf, earlier[0], ())


def _without_places(order: Order) -> str:
    """The part of a clause that would name the one, without the steps that it names."""
    start, end = order.one
    text = order.clause.sentence.plain[start:end]
    for place in order.clause.sentence.places:
        if start <= place.start < end:
            text = text.replace(order.clause.sentence.plain[place.start : place.end], "")
    return text


def _pairs(shelf: Shelf, one: Mention, other: Mention) -> Iterator[tuple[int, int]]:
    """The labels of both that differ in nothing else: "β = 0.1, seed 2" and "β = 0.4, seed 2"."""
    labels = shelf.side.labels
    for ours in one.labels:
        for theirs in other.labels:
            alone = len(one.labels) == len(other.labels) == 1
            alike = labels[ours] - one.words == labels[theirs] - other.words
            if ours != theirs and (alone or alike):
                yield ours, theirs


def _lines(
    shelf: Shelf, order: Order, named: Sequence[Mention], before: Sequence[Clause]
) -> Iterator[Line]:
    """The lines of the quantity that is named, or of the steps from which on it is so."""
    sentence = order.clause.sentence
    skip = (order.span, *((one.start, one.end) for one in named))
    said = asked(order.clause, before, skip)
    start = order.clause.start
    if before and _ONWARDS.search(before[-1].text):
        start = before[-1].start  # "from step 90 on, …"
    places = [
        place
        for place in sentence.places
        if start <= place.start < order.clause.end and place.axis != END
    ]
    spans = stretches(sentence, 0, order.clause.end)
    if not shelf.steps or not (places or spans):
        if not shelf.steps or said.need & QUANTITIES:
            yield from complete(shelf, sentence, said)
        return
    if spans and said.need & QUANTITIES - {"step"} <= shelf.about:
        yield from (shelf.line(n) for n, at in shelf.steps.items() if within(spans, at))
        return
    if len(places) != 1 or not (said.need & QUANTITIES) - {"step"} <= shelf.about:
        return
    onwards = _ONWARDS.match(sentence.plain, places[0].end)
    for nth, at in shelf.steps.items():
        if at == places[0].at or (onwards and at > places[0].at):
            yield shelf.line(nth)


def _verdict(shelf: Shelf, line: Line, sense: str, pair: tuple[int, int]) -> bool | None:
    """Whether one is on the side of the other that is said; None if it cannot be said."""
    if not all(label in line.cells for label in pair):
        return None
    ours, theirs = (line.value(label) for label in pair)
    words = line.words | shelf.about
    if sense in ("ahead", "behind") and not (words & _GOOD and not line.words & QUANTITIES - _GOOD):
        return None
    if sense in ("faster", "slower"):
        if not words & _TIME:
            return None
        sense = "below" if sense == "faster" else "above"
    return ours == theirs or (ours > theirs) == (sense in _UP)
