"""What is said to hold in every row or column of the table at hand, and does not in some.

"B is above A in all 12 rows", "C never beats A", "every run of A beats every run of B". The table
is the last one above the sentence, under the same heading.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from kleash.written.book import Book
from kleash.written.claimed.mentions import KINDS, QUANTITIES, concepts
from kleash.written.claimed.reach import NUMBER, counts, stretches, within
from kleash.written.claimed.readings import Clause, Line, Shelf, clauses, outside, single
from kleash.written.marks import Mark
from kleash.written.prose import Sentence

LEAST = 2  # lines of which something holds in all
_B, _E = r"(?<![a-z])", r"(?![a-z])"
_WORDS = re.compile(
    rf"(?P<up>高于|大于|多于|超过|高过|胜过|领先于?|赢过|好于|优于|"
    rf"{_B}(?:above|higher than|more than|larger than|beats?|ahead of|leads|"
    rf"exceeds?|better than){_E})|"
    rf"(?P<down>低于|小于|少于|低过|落后于?|输给|不及|差于|"
    rf"{_B}(?:below|lower than|less than|smaller than|behind|trails|loses to|worse than){_E})"
)
_EVERY = re.compile(
    rf"全部|每[一]?[个次轮步行列档点][^,]{{0,8}}?都?|所有[^,]{{0,8}}?[上里中]都|"
    rf"[\d两二三四五六七八九十]+\s?[个次轮步行列档组种项类][^,]{{0,14}}?[上里中]?[都均]|始终|一直|从头到尾|"
    rf"{_B}(?:at|in|on|for) (?:every|all|each){_E}|{_B}all {NUMBER}{_E}|"
    rf"{_B}(?:always|throughout|every time){_E}"
)
_NEVER = re.compile(rf"都没有?|都未|从未|从来没有?|一次也没有?|没有一[个次行]|{_B}never{_E}")
_LIMITED = re.compile(
    rf"除|几乎|非|是否|如果|若|多数|大多|例外|之外|以外|不|各自|自己|"
    rf"{_B}(?:not|except|almost|nearly|if|whether|would|most|but|its own|both){_E}|n't"
)
_LOSS = frozenset(("loss", "time", "step time", "gpu", "cost", "rank", "kl"))
_MERIT = re.compile(
    rf"领先|赢|胜|好于|优于|落后|输|差于|{_B}(?:beats?|ahead|leads|better|behind|trails|loses|worse)"
)
_ONWARDS = re.compile(rf"\s?(?:[起后]|以后|之后|开始|{_B}(?:onwards?|on){_E})")


def false_sweeps(book: Book, every: Sequence[Shelf], spoken: Sequence[Sentence]) -> Iterator[Mark]:
    """What is said of every line of the table at hand, where some line denies it."""
    for sentence in spoken:
        for clause in clauses(sentence):
            text = outside(clause.text)
            sweep, never = _EVERY.search(text), _NEVER.search(text)
            words = list(_WORDS.finditer(text))
            if not (sweep or never) or len(words) != 1 or _LIMITED.search(text):
                continue
            word = words[0]
            if _is_false(book, every, clause, word, never=never is not None):
                start, end = (clause.start + at for at in word.span())
                line, shown = sentence.line(start), sentence.text[start:end]
                yield Mark(line, shown, "wrong", "check.not-all", {}, "every")


def _is_false(
    book: Book, every: Sequence[Shelf], clause: Clause, word: re.Match[str], *, never: bool
) -> bool:
    """Whether in each table at hand that has both names, some line denies what is said of all."""
    sentence, at = clause.sentence, clause.start + word.start()
    line = sentence.line(at)
    above = [one for one in book.section(line) if one.line < line][-1:]
    verdicts = []
    for shelf in every:
        if shelf.sheet not in above or shelf.own_steps or shelf.side.is_metrics:
            continue
        ours = {n for _, n in single(shelf.side.named(sentence, clause.start, at, arms=True))}
        end = clause.start + word.end()
        theirs = {n for _, n in single(shelf.side.named(sentence, end, clause.end, arms=True))}
        if len(ours) != 1 or len(theirs) != 1 or ours == theirs:
            continue
        own, other = ours.pop(), theirs.pop()
        lines = [one for one in _lines(shelf, clause, own) if other in one.cells]
        way = 1 if word.lastgroup == "up" else -1
        if _MERIT.search(word[0]) and any((one.words | shelf.about) & _LOSS for one in lines):
            continue
        gaps = [way * (one.value(own) - one.value(other)) for one in lines]
        least = min([len(gaps), *(n for _, _, n in counts(clause.text[: word.start()])[-1:])])
        if len(gaps) >= LEAST:
            kept = sum(gap > 0 for gap in gaps)
            verdicts.append(kept > 0 if never else kept < least)
    return bool(verdicts) and all(verdicts)


def _lines(shelf: Shelf, clause: Clause, label: int) -> list[Line]:
    """The lines that a clause may mean: printed as most are, of its quantity, from its step on."""
    sentence = clause.sentence
    need = concepts(outside(clause.text)) & QUANTITIES - {"step", "turns"}
    spans = stretches(sentence, 0, clause.end)
    lines = [one for one in shelf.lines() if label in one.cells and not one.cells[label].part]
    kinds = [(one.cells[label].figure.decimals, one.cells[label].figure.unit) for one in lines]
    most = max(kinds, key=kinds.count, default=None)
    places = [
        one
        for one in sentence.places
        if one.start < clause.end
        and one.is_of_training
        and not any(span.start <= one.start < span.end for span in spans)
    ]
    from_on = [one.at for one in places if _ONWARDS.match(sentence.plain, one.end)]
    if (
        (places and len(from_on) != len(places))
        or len(from_on) > 1
        or (from_on and not shelf.steps)
    ):
        return []
    return [
        one
        for one, kind in zip(lines, kinds, strict=True)
        if kind == most
        and need <= one.words | shelf.about
        and not one.words & (KINDS - {"mean", "validation", "test", "train"})
        and not (from_on and shelf.steps.get(one.at, -1.0) < from_on[0])
        and (one.at not in shelf.steps or within(spans, shelf.steps[one.at]))
    ]
