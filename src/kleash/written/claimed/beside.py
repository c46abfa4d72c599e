"""A word of direction beside the numbers that decide it: "slightly higher (2.12 vs 2.20)".

Of two numbers in brackets the first is that of what is spoken of. What "rises to" a number was
lower before, in all courses that hold it; what is "higher by 0.08" is not lower by as much.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise

from kleash.written.book import Book
from kleash.written.claimed.exchanged import VERSUS
from kleash.written.claimed.mentions import QUANTITIES, concepts
from kleash.written.claimed.readings import Clause, Shelf, clauses, single
from kleash.written.fitting import NAMING, prints
from kleash.written.marks import Mark
from kleash.written.printed import Figure
from kleash.written.prose import Said, Sentence

SIZE = 3.0  # times: numbers that are further apart are of two quantities
NEAR = 12  # letters between a word and its numbers
DIGITS = 2  # of a gap that shows which two are meant
_B, _E = r"(?<![a-z])", r"(?![a-z])"
WORDS = re.compile(
    rf"(?P<up>[更略稍较偏][高大多长]|{_B}(?:(?:slightly|a bit|somewhat|a little) )?"
    rf"(?:higher|larger|greater|longer|more|bigger){_E})|"
    rf"(?P<down>[更略稍较偏][低小少短]|{_B}(?:(?:slightly|a bit|somewhat|a little) )?"
    rf"(?:lower|smaller|less|shorter|fewer){_E})|"
    rf"(?P<good>[更略稍][好优强]|{_B}(?:better|stronger){_E})|"
    rf"(?P<bad>[更略稍][差弱坏]|{_B}(?:worse|weaker){_E})"
)
_LESS_IS_BETTER = frozenset(
    (
        "loss",
        "kl",
        "time",
        "step time",
        "gpu",
        "cost",
        "memory",
        "spread",
        "range",
        "rank",
        "length",
    )
)
_DENIED = re.compile(
    rf"不|没|未|非|谁|哪|是否|{_B}(?:not|no|never|neither|nor|if|would|whether|which){_E}|n't"
)
_OPEN = re.compile(r"[^,;。(\d]{0,10}\(\s?~?")
_TURNED = re.compile(
    rf"(?P<up>[升涨增](?:高|加|长)?[至到]|{_B}(?:ris(?:es|ing)|rose|climb(?:s|ed|ing)|"
    rf"gr(?:ows|ew)|increas(?:es|ed)) to{_E})|"
    rf"(?P<down>(?:下?降|下?跌|回?落|掉|减少?)(?:低)?[至到]|{_B}(?:fall(?:s|ing)|fell|"
    rf"drop(?:s|ped)|declin(?:es|ed)|decreas(?:es|ed)|shrinks) to{_E})"
)
_ARROW = re.compile(r"\s?(?:%|\([^()]*\))?\s?(?:→|->)\s?")
_BY = re.compile(r"[更略稍]?(?:(?P<up>高)|(?P<down>低))(?:了|出)?\s?(?:约)?\s?")


def beside(book: Book, every: Sequence[Shelf], spoken: Sequence[Sentence]) -> Iterator[Mark]:
    """Words of direction that the numbers beside them turn round."""
    courses = [*_told_courses(spoken), *_table_courses(every)]
    for sentence in spoken:
        found = (*_pairs(sentence), *_reached(sentence, courses), *_by(every, sentence))
        for start, end, one, other in found:
            text, line = sentence.text[start:end], sentence.line(start)
            facts: dict[str, object] = {"one": one, "other": other}
            yield Mark(line, text, "wrong", "check.turned", facts, "turned")


Found = tuple[int, int, str, str]


def _clause(sentence: Sentence, at: int) -> Clause:
    return next(one for one in reversed(clauses(sentence)) if one.start <= at)


# --- "slightly higher (2.12 vs 2.20)"


def _pairs(sentence: Sentence) -> Iterator[Found]:
    plain = sentence.plain
    for one, other in pairwise(sentence.numbers):
        if not VERSUS.fullmatch(plain, one.end, other.start) or not _alike(one, other):
            continue
        clause = _clause(sentence, one.start)
        words = list(WORDS.finditer(plain, clause.start, one.start))
        if len(words) != 1 or not _OPEN.fullmatch(plain, words[0].end(), one.start):
            continue
        way = _way(words[0].lastgroup or "", plain[clause.start : one.start])
        if not way or _DENIED.search(plain, clause.start, words[0].start()):
            continue
        if (way > 0) != (one.figure.value > other.figure.value):
            yield *words[0].span(), one.text, other.text


def _way(group: str, text: str) -> int:
    """1 if a word means the larger number, -1 if the smaller, 0 if that depends."""
    if group in ("up", "down"):
        return 1 if group == "up" else -1
    if concepts(text) & _LESS_IS_BETTER:
        return 0
    return 1 if group == "good" else -1


def _alike(one: Said, other: Said) -> bool:
    """Whether two numbers may be of one quantity: of one kind, and of about one size."""
    kinds = {each.kind if each.kind != "unit" else "" for each in (one, other)}
    sizes = sorted(abs(each.figure.value) for each in (one, other))
    return len(kinds) == 1 and sizes[0] != sizes[1] and sizes[1] <= SIZE * sizes[0]


# --- "rises to 0.175"

Course = tuple[list[Figure], frozenset[str]]


def _told_courses(spoken: Sequence[Sentence]) -> Iterator[Course]:
    """Numbers of sentences with arrows between them."""
    for sentence in spoken:
        run = list[Said]()
        for one in (*sentence.numbers, None):
            joined = run and one and _ARROW.fullmatch(sentence.plain, run[-1].end, one.start)
            if one is not None and (joined or not run):
                run.append(one)
                continue
            if len(run) > 1:
                clause = sentence.plain[: run[0].start]
                yield [each.figure for each in run], concepts(clause) & QUANTITIES
            run = [one] if one is not None else []


def _table_courses(every: Sequence[Shelf]) -> Iterator[Course]:
    """Lines of tables over steps."""
    for shelf in every:
        steps = sorted(shelf.steps, key=lambda nth: shelf.steps[nth])
        for label, words in shelf.side.labels.items() if len(steps) > 1 else ():
            lines = [shelf.line(nth) for nth in steps]
            cells = [line.cells[label].figure for line in lines if label in line.cells]
            yield cells, (words | shelf.about) & QUANTITIES


def _reached(sentence: Sentence, courses: Sequence[Course]) -> Iterator[Found]:
    plain = sentence.plain
    for word in _TURNED.finditer(plain):
        said = next((one for one in sentence.numbers if one.start >= word.end()), None)
        clause = _clause(sentence, word.start())
        if said is None or plain[word.end() : said.start].strip(" 约~了") or said.sign:
            continue
        before = [one for one in sentence.numbers if clause.start <= one.start < word.start()]
        if before or said.figure.digits < NAMING or not said.figure.decimals:
            continue
        if _DENIED.search(plain, clause.start, word.start()):
            continue
        own = concepts(clause.text) & QUANTITIES
        verdicts = [
            verdict
            for course, words in courses
            if not own or not words or own & words
            for verdict in _went(course, said.figure, up=word.lastgroup == "up")
        ]
        if verdicts and not any(one is None for one in verdicts):
            yield *word.span(), f"{verdicts[0]:g}", said.text


def _went(course: Sequence[Figure], end: Figure, *, up: bool) -> Iterator[float | None]:
    """What came before a number of a course, if all that did lies on the wrong side; else None."""
    for nth, one in enumerate(course):
        if not prints(end, one):
            continue
        earlier = [each.value for each in course[:nth]]
        if not earlier or any((each < one.value) == up for each in earlier):
            yield None
        else:
            yield earlier[-1]


# --- "higher by 0.079"


def _by(every: Sequence[Shelf], sentence: Sentence) -> Iterator[Found]:
    plain = sentence.plain
    parts = clauses(sentence)
    for word in _BY.finditer(plain):
        gap = next((one for one in sentence.numbers if one.start == word.end()), None)
        if gap is None or gap.figure.digits < DIGITS or gap.kind == "times" or gap.sign:
            continue
        nth = next(n for n, one in reversed([*enumerate(parts)]) if one.start <= word.start())
        start = parts[max(0, nth - 1)].start
        if _DENIED.search(plain, start, word.start()) or re.search(
            "比|于|较", plain[start : word.start()]
        ):
            continue
        verdicts = [
            v for shelf in every for v in _apart(shelf, sentence, (start, word.start()), gap)
        ]
        signs = {verdict > 0 for verdict in verdicts}
        if len(signs) == 1 and signs != {word.lastgroup == "up"}:
            yield *word.span(), gap.text, ""


def _apart(shelf: Shelf, sentence: Sentence, span: tuple[int, int], gap: Said) -> Iterator[float]:
    """By how much the arm that is named is above the only other one, where that is the gap."""
    if shelf.own_steps or shelf.side.is_metrics:
        return
    names = {label for _, label in single(shelf.side.named(sentence, *span, arms=True))}
    for line in shelf.lines() if len(names) == 1 else ():
        label = next(iter(names))
        scope = shelf.scope(line, label) if label in line.cells else []
        for other in scope if len(scope) == 2 else ():
            apart = line.value(label) - line.value(other)
            if other != label and abs(abs(apart) - gap.figure.value) <= 1e-9:
                yield apart
