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
from kleash.written.claimed.readings import Clause, Line, Shelf, clauses, outside
from kleash.written.claimed.rivals import Pair, is_full, pairs
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
_ALONE = re.compile(  # of one that is ahead of the only other
    rf"(?P<up>[更略稍][高大多长好优]|领先|占优|胜出|获胜|"
    rf"{_B}(?:higher|larger|better|ahead|in front|leads|wins){_E})|"
    rf"(?P<down>[更略稍][低小少短差]|落后|{_B}(?:lower|smaller|worse|behind|trails|loses){_E})"
)
_ITEMS = (  # of a table of statistics: mean, first, last, least
    rf"(?:各|每一?|所有|全部)(?:项|行|列|方面|维度|指标|统计量)[^,]{{0,6}}?[都均全]|全面|"
    rf"{_B}(?:across the board|in every (?:respect|way)|on every (?:count|measure)){_E}"
)
_EVERY = re.compile(
    rf"全部|每[一]?[个次轮步行列档点][^,]{{0,8}}?都?|所有[^,]{{0,8}}?[上里中]都|"
    rf"[\d两二三四五六七八九十]+\s?[个次轮步行列档组种项类][^,]{{0,14}}?[上里中]?[都均]|始终|一直|从头到尾|"
    rf"{_ITEMS}|"
    rf"{_B}(?:at|in|on|for) (?:every|all|each){_E}|{_B}all {NUMBER}{_E}|"
    rf"{_B}(?:always|throughout|every time){_E}"
)
_AT_ALL = re.compile(
    rf"(?:在?(?:全部|所有|这)?{NUMBER}\s?[个次轮步行列档组种项类][^,]{{0,10}}?|在?(?:每一?[个次轮步档类]|所有|全部)[^,]{{0,8}}?)"
    rf"(?:[上里中下内]|时)?|{_B}(?:at|in|on|for) (?:every|all|each){_E}.{{1,24}}"
)
_EACH = re.compile(rf"[都均]|全部|{_B}(?:is|are|has|was|leads|wins){_E}")
_NEVER = re.compile(rf"都没有?|都未|从未|从来没有?|一次也没有?|没有一[个次行]|{_B}never{_E}")
_LIMITED = re.compile(
    rf"除|几乎|非|是否|如果|若|多数|大多|例外|之外|以外|不|各自|自己|[前后]\s?{NUMBER}|最[初后]|"
    rf"{_B}(?:not|except|almost|nearly|if|whether|would|most|but|its own|both){_E}|n't"
)
_LOSS = frozenset(("loss", "time", "step time", "gpu", "cost", "rank", "kl"))
_MERIT = re.compile(
    rf"领先|占优|赢|胜|[更略稍][好优差]|好于|优于|落后|输|差于|"
    rf"{_B}(?:beats?|ahead|in front|leads|wins|better|behind|trails|loses|worse)"
)
_PLAIN = frozenset(("mean", "validation", "test", "train"))
_SUMMARIES = frozenset(("change", "gap", "drop", "gain", "spread", "range", "step", "rank"))
_ARMS = re.compile(
    rf"\s?(?:模型|版本|实验|方法|系数|设置|{_B}(?:models?|arms?|runs?|methods?|settings?){_E})"
)
_ONWARDS = re.compile(rf"\s?(?:[起后]|以后|之后|开始|{_B}(?:onwards?|on){_E})")


def false_sweeps(book: Book, every: Sequence[Shelf], spoken: Sequence[Sentence]) -> Iterator[Mark]:
    """What is said of every line of the table at hand, where some line denies it."""
    for sentence in spoken:
        parts = clauses(sentence)
        for nth, clause in enumerate(parts):
            text = outside(clause.text)
            never = _NEVER.search(text)
            words = list(_WORDS.finditer(text)) or list(_ALONE.finditer(text))
            if not (never or _sweeps(clause, parts[:nth])) or len(words) != 1:
                continue
            if _LIMITED.search(text):
                continue
            if _is_false(book, every, clause, parts[:nth], words[0]):
                start, end = (clause.start + at for at in words[0].span())
                line, shown = sentence.line(start), sentence.text[start:end]
                yield Mark(line, shown, "wrong", "check.not-all", {}, "every")


def _sweeps(clause: Clause, before: Sequence[Clause]) -> bool:
    """Whether a clause speaks of all, as the one before it may say: "五个点上, A 都高于 B"."""
    if _EVERY.search(outside(clause.text)):
        return True
    return any(_AT_ALL.fullmatch(one.text.strip()) for one in before[-1:]) and bool(
        _EACH.search(clause.text)
    )


def _is_false(
    book: Book, every: Sequence[Shelf], clause: Clause, before: Sequence[Clause],
    word: re.Match[str],
) -> bool:  # fmt: skip
    """Whether in each table at hand that has both names, some line denies what is said of all."""
    at, end = clause.start + word.start(), clause.start + word.end()
    line = clause.sentence.line(at)
    section = book.section(line)
    above = [one for one in section if one.line < line][-1:]
    near = len(book.sheets) == 1 or len(section) < len(book.sheets)
    spans = (clause.start, at), (end, clause.end) if word.re is _WORDS else (end, end)
    never = bool(_NEVER.search(outside(clause.text)))
    verdicts = []
    for shelf in every if not (never and word.re is _ALONE) else ():
        if shelf.sheet not in above:
            continue
        for pair in pairs(shelf, clause, *spans, before):
            gaps = _gaps(shelf, clause, pair, word)
            told = counts(clause.text[: word.start()])
            told = told or [one for part in before[-1:] for one in _of_lines(part.text)]
            least = min([len(gaps), *(n for _, _, n in told[-1:])])
            # Of one that is named alone, the table must be known by its heading or its lines.
            lines = told[-1][-1] if told else len(gaps) if near else None
            if len(gaps) >= LEAST and (word.re is _WORDS or lines == len(gaps)):
                kept = sum(gap > 0 for gap in gaps)
                verdicts.append(kept > 0 if never else kept < least)
    return bool(verdicts) and all(verdicts)


def _of_lines(text: str) -> list[tuple[int, int, int]]:
    """How many lines a clause speaks of: "both models" are none."""
    return [one for one in counts(text) if not _ARMS.match(text, one[1])]


def _gaps(shelf: Shelf, clause: Clause, pair: Pair, word: re.Match[str]) -> list[float]:
    """How far the one is above the other, line by line; nothing where less may be better."""
    way = 1 if word.lastgroup == "up" else -1
    lines = [one for one in _lines(shelf, clause, pair[0]) if is_full(one, pair)]
    own = shelf.side.labels[pair[0]] | shelf.about
    if _MERIT.search(word[0]) and any((one.words | own) & _LOSS for one in lines):
        return []
    return [way * (one.value(pair[0]) - one.value(pair[1])) for one in lines]


def _lines(shelf: Shelf, clause: Clause, label: int) -> list[Line]:
    """The lines that a clause may mean: printed as most are, of its quantity, from its step on."""
    sentence = clause.sentence
    need = concepts(outside(clause.text)) & QUANTITIES - {"step", "turns"}
    need -= shelf.side.labels[label]
    spans = stretches(sentence, 0, clause.end)
    lines = [one for one in shelf.lines() if label in one.cells and not one.cells[label].part]
    each = re.search(_ITEMS, outside(clause.text)) and _are_statistics(shelf)
    apart = _SUMMARIES if each else KINDS - _PLAIN
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
        and not one.words & apart
        and not (from_on and shelf.steps.get(one.at, -1.0) < from_on[0])
        and (one.at not in shelf.steps or within(spans, shelf.steps[one.at]))
    ]


def _are_statistics(shelf: Shelf) -> bool:
    """Whether the lines are the mean, first, last, least … of one thing."""
    labels = [words for words in shelf.other.labels.values() if words]
    kinds = [words for words in labels if words & KINDS and not words & QUANTITIES - _SUMMARIES]
    return len(kinds) > 1 and 2 * len(kinds) >= len(labels)
