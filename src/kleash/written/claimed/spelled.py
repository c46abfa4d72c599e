"""Courses that a sentence spells out, and words of it that say otherwise.

"Hardly changes (0.010 → 0.034 → 0.096)", "moves earlier, from 195 to 355", "rises up to 0.008 and
falls after it, so it is monotone". No table is asked: the sentence has both.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise

from kleash.written.claimed.contrasts import DENIED, TURN, runs
from kleash.written.claimed.courses import is_limited
from kleash.written.claimed.mentions import QUANTITIES, concepts
from kleash.written.claimed.readings import Clause, clauses, outside
from kleash.written.gaps import is_gap
from kleash.written.marks import Mark
from kleash.written.printed import AXIS
from kleash.written.prose import Said, Sentence

FEW = 3  # numbers that show a course
WIDE = 1.5  # times: what changes by more is not called the same
_B, _E = r"(?<![a-z])", r"(?![a-z])"
STEADY = re.compile(
    rf"单调(?!性)|{_B}monoton(?:e|ic|ically){_E}|一路(?=[上下走涨跌升降增减])|"
    rf"逐[点段步次个轮](?=[^,;。(]{{0,2}}[上下涨跌升降增减])|{_B}at (?:every|each) step{_E}"
)
FLAT = re.compile(
    rf"(?:基本|几乎|大致|大体|始终|一直)?(?:保持)?(?:不变|持平)|没有?(?:什么|明显)?变化|变化(?:不大|很小|甚微)|"
    rf"{_B}(?:unchanged|"
    rf"(?:stays?|stayed|remains?|remained|is|was) (?:\w+ )?(?:flat|constant|the same)|"
    rf"(?:barely|hardly|scarcely) (?:changes?d?|moves?d?)|(?:does|did) not (?:change|move)){_E}"
)
_ARROW = re.compile(r"\s?%?\s?(?:\([^()]*\))?\s?(?:→|->)\s?")
_TO = r"(?:→|->|[到至]|(?:[^,;。\d]{1,6})[到至]|to)"
_STEP = rf"(?:(?:第|{AXIS})\s?)?"
_SHIFT = re.compile(
    rf"(?:[从由]|{_B}from)\s?{_STEP}(?P<one>\d+)\s?(?:{AXIS})?[^,;。\d]{{0,6}}?\s?{_TO}\s?{_STEP}(?P<other>\d+)"
    rf"(?![\d.]|,\d|\s?[%倍])"
)
_WHEN = re.compile(
    rf"(?P<late>推迟|延后|推后|变晚|更晚|越来越晚|{_B}later{_E})|"
    rf"(?P<early>提前|提早|变早|更早|越来越早|{_B}(?:earlier|sooner){_E})"
)
_NTH = r"(?<![没无第])(?<!没有)(?<!第 )(?:\d+|[一二两三四五六七八九十]+)\s?(?:个|次|处)"
_UPS = r"(?:ris|rose|gr[oe]w|climb|increas)\w*"
_DOWNS = r"(?:fall|fell|drop|declin|decreas)\w*"
_BROKEN = re.compile(  # told behind a word: it is not so throughout
    rf"{_NTH}\s?(?:下降|回落|上升|变小)|(?:下降|回落)\s?{_NTH}|"
    rf"{_B}(?:but|except|apart from) (?:at )?step|{_B}(?:a|one) (?:dip|drop) (?:of|at)"
)
_BENT = re.compile(  # told before it: the course goes both ways
    rf"{_BROKEN.pattern}|{_NTH}[^,;。]{{0,8}}?(?:比|较|低于|高于)[^,;。]{{0,3}}?[前上]一|"
    rf"先[升涨增高降跌减低][^,;。]{{0,3}}[后再][升涨增高降跌减低]|"
    rf"{_B}(?:two|three|four) (?:dips|drops)|"
    rf"{_B}{_UPS}[^,;]{{0,40}}? and (?:then )?{_DOWNS}|"
    rf"{_B}{_DOWNS}[^,;]{{0,40}}? and (?:then )?{_UPS}"
)
_LETTER = re.compile(r"(?<![A-Za-z])[A-Z](?![A-Za-z])")  # an arm: "B"
Found = tuple[re.Match[str], str, str]


def misspelled(every: Sequence[Sentence]) -> Iterator[Mark]:
    """Words for a course that the sentence itself tells otherwise."""
    for sentence in every:
        for word, one, other in (
            *_flat(sentence),
            *_opposite(sentence),
            *_uneven(sentence),
            *_bent(sentence),
            *_shifted(sentence),
        ):
            start, end = word.span()
            facts: dict[str, object] = {"one": one, "other": other}
            text = sentence.text[start:end].strip()
            yield Mark(sentence.line(start), text, "wrong", "check.turned", facts, "turned")


def _spelled(sentence: Sentence) -> Iterator[tuple[Clause, list[Said]]]:
    """Numbers with arrows between them, and the clause that they stand in."""
    for clause in clauses(sentence):
        run = list[Said]()
        for one in sentence.numbers:
            if not clause.start <= one.start < clause.end or not _is_measured(one):
                continue
            if run and not _ARROW.fullmatch(sentence.plain, run[-1].end, one.start):
                yield clause, run
                run = []
            run.append(one)
        yield clause, run


def _is_measured(one: Said) -> bool:
    """Whether a number is no count of shots or samples, along which something goes."""
    return bool(one.figure.decimals or "," in one.text)


def _before(clause: Clause, words: re.Pattern[str], end: int) -> list[re.Match[str]]:
    """The words of a clause before a place, if nothing before them takes them back."""
    plain = clause.sentence.plain
    found = list(words.finditer(plain, clause.start, end))
    return [] if found and DENIED.search(plain, clause.start, found[0].start()) else found


def _flat(sentence: Sentence) -> Iterator[Found]:
    """ "hardly changes (0.010 → 0.034 → 0.096)"."""
    for clause, run in _spelled(sentence):
        words = _before(clause, FLAT, run[0].start) if len(run) > 1 else []
        sizes = sorted(one.figure.value for one in run)
        if len(words) == 1 and 0 < WIDE * sizes[0] < sizes[-1]:
            yield words[0], run[0].text, run[-1].text


def _opposite(sentence: Sentence) -> Iterator[Found]:
    """ "rises step by step (0.096 → 0.072 → 0.010)"."""
    for clause, run in _spelled(sentence):
        words = _before(clause, TURN, run[0].start) if len(run) >= FEW else []
        if len({word.lastgroup for word in words}) == 1:
            gap = run[-1].figure.value - run[0].figure.value
            if gap and (gap > 0) != (words[-1].lastgroup == "up"):
                yield words[-1], run[0].text, run[-1].text


def _uneven(sentence: Sentence) -> Iterator[Found]:
    """ "rises monotonically" beside numbers that rise and fall."""
    for clause in clauses(sentence):
        for word in _before(clause, STEADY, clause.end):
            for run in runs(sentence):
                steps = [b.figure.value - a.figure.value for a, b in pairwise(run)]
                if len(run) < FEW or is_gap(sentence, run[0]):
                    continue  # "by 0.65, 1.10 and 0.80"
                if min(steps) < 0 < max(steps):
                    yield word, run[0].text, run[-1].text


def _bent(sentence: Sentence) -> Iterator[Found]:
    """ "rises up to 0.008 and falls after it, so it is monotone"; "单调上升, 有 2 次回落"."""
    parts = clauses(sentence)
    for nth, clause in enumerate(parts):
        for word in _before(clause, STEADY, clause.end):
            own = Clause(sentence, word.end(), clause.end)
            for part in (own, *parts[nth + 1 :]):
                broken = _BROKEN.search(sentence.plain, part.start, part.end)
                if broken and (part is own or _is_of(part, clause)):
                    yield word, broken[0].strip(), ""
            for part in () if is_limited(clause) else parts[:nth]:
                told = _BENT.search(outside(part.text))
                if told and _is_of(clause, part):
                    yield word, told[0].strip(), ""


def _is_of(clause: Clause, other: Clause) -> bool:
    """Whether a clause goes on with what another one speaks of, and names nothing else."""
    own, told = (
        (
            {(n.sheet, n.row, n.column) for n in one.sentence.names if _has(one, n.start)},
            concepts(outside(one.text)) & QUANTITIES - {"step"},
            set(_LETTER.findall(one.sentence.text[one.start : one.end])),
        )
        for one in (clause, other)
    )
    return all(mine <= theirs for mine, theirs in zip(own, told, strict=True))


def _has(clause: Clause, at: int) -> bool:
    return clause.start <= at < clause.end


def _shifted(sentence: Sentence) -> Iterator[Found]:
    """ "moves earlier with every increase, from 195 to 355"."""
    parts = clauses(sentence)
    for nth, clause in enumerate(parts):
        for told in _SHIFT.finditer(sentence.plain, clause.start, clause.end):
            start = clause.start
            if nth and not sentence.plain[start : told.start()].strip():
                start = parts[nth - 1].start  # "…, from 195 to 355" goes on
            words = list(_WHEN.finditer(sentence.plain, start, clause.end))
            if len(words) != 1 or DENIED.search(sentence.plain, start, words[0].start()):
                continue
            gap = int(told["other"]) - int(told["one"])
            if gap and (gap > 0) != (words[0].lastgroup == "late"):
                yield words[0], told["one"], told["other"]
