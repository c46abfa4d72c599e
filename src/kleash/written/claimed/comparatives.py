"""One of two that has more, by the two numbers that the same sentence gives them, and has not.

"A falls by 37.67 %, B by 39.26 %; A falls more." No table is asked: whose a number is, the last
name before it tells, and what it is of, the words between. What is said of anything else than these
two numbers is left alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from kleash.written.book import Book
from kleash.written.claimed.beside import WORDS
from kleash.written.claimed.contrasts import DENIED
from kleash.written.claimed.mentions import QUANTITIES, concepts
from kleash.written.claimed.readings import Clause, Shelf, clauses, outside
from kleash.written.gaps import is_gap
from kleash.written.marks import Mark
from kleash.written.prose import Said, Sentence
from kleash.written.told.things import Mention, mentions

_B, _E = r"(?<![a-z])", r"(?![a-z])"
_STEADY = re.compile(rf"更(?:加)?(?:平?稳定?|平滑)|{_B}(?:steadier|smoother|more stable){_E}")
_SPREAD = frozenset(("spread", "range"))
_SIZE = re.compile(
    r"[降涨升增跌]幅|幅度|变化|[降涨升掉跌]得|(?<![a-z])(?:falls?|drops?|rises?|gains?|changes?|loses?)"
)
_THAN = re.compile(rf"比|于|较[^高低大小多少长短]|{_B}(?:than|vs|if|when|at|in|for){_E}")
_IDLE = re.compile(
    rf"[的了则却也仍还而但且是为得在]|反而|依然|仍然|所以|因此|说明|可见|显然|明显|略微?|稍微?|训练|一方|结果|整体|"
    rf"{_B}(?:the|a|an|is|are|was|has|have|had|so|thus|hence|and|but|while|again|still|even|also|"
    rf"again|of|its|by|far|slightly|clearly|there|run|arm|one|two|falls?|drops?|rises?|gains?|loses?|"
    rf"changes?|it){_E}"
)
_FILLER = re.compile(
    rf"[\s,、:(]|[的为是有约仅只达]|{_B}(?:and|is|was|are|has|had|have|of|at|with|about|only|by|to|the|"
    rf"while|but|whereas){_E}|而|则|但"
)


@dataclass(frozen=True)
class Given:
    """A number with the name that it is of, and what it is called."""

    name: Mention
    said: Said
    called: str


def false_comparatives(
    book: Book, every: Sequence[Shelf], spoken: Sequence[Sentence]
) -> Iterator[Mark]:
    """Names that are said to have more than another, and were given less."""
    for sentence in spoken:
        parts = clauses(sentence, fine=True)
        given = list(_given(book, sentence)) if len(parts) > 1 else []
        for clause in parts if len(given) > 1 else ():
            told = _told(book, clause, given)
            if told is not None:
                word, ours, theirs = told
                text, line = sentence.text[slice(*word)], sentence.line(word[0])
                facts: dict[str, object] = {"one": ours.text, "other": theirs.text}
                yield Mark(line, text, "wrong", "check.turned", facts, "turned")


def _given(book: Book, sentence: Sentence) -> Iterator[Given]:
    """The numbers of a sentence that stand behind a name, with the words between."""
    every, end, called = mentions(sentence, book.sheets), 0, ""
    for said in sentence.numbers:
        names = [one for one in every if one.end <= said.start]
        if names:
            own = _FILLER.sub("", sentence.plain[max(end, names[-1].end) : said.start])
            called = own or (called if names[-1].end > end else "")  # "A's KL is 0.1, B's 0.2"
            yield Given(names[-1], said, called)
        end = said.end


def _told(
    book: Book, clause: Clause, given: Sequence[Given]
) -> tuple[tuple[int, int], Said, Said] | None:
    """A comparative, and the two numbers that turn it round."""
    sentence, text = clause.sentence, outside(clause.text)
    words = [*WORDS.finditer(text), *_STEADY.finditer(text)]
    names = [
        one for one in mentions(sentence, book.sheets) if clause.start <= one.start < clause.end
    ]
    numbers = any(clause.start <= one.start < clause.end for one in sentence.numbers)
    if len(words) != 1 or len(names) != 1 or numbers or _THAN.search(text) or DENIED.search(text):
        return None
    before = [one for one in given if one.said.end <= clause.start]
    pairs = [(own, other) for own in before for other in _others(own, before, names[0])]
    want = concepts(text) & QUANTITIES or (_SPREAD if words[0].re is _STEADY else frozenset())
    pairs = [two for two in pairs if concepts(two[0].called) & want] or pairs
    head = sentence.plain[: clause.start]
    if len(pairs) != 1 or not _is_same_thing(clause, names[0], words[0], head):
        return None
    own, other = (one.said for one in pairs[0])
    told = concepts(pairs[0][0].called) & QUANTITIES or concepts(head)
    if want - told - {"spread", "range"} or (want & _SPREAD and not told & _SPREAD):
        return None
    gaps = {is_gap(sentence, one) and not told & _SPREAD for one in (own, other)}
    way = _way(words[0], told, text, gaps)
    gap = abs(own.figure.value) - abs(other.figure.value)
    if own.sign != other.sign or not way * gap < 0:
        return None
    start = clause.start + words[0].start()
    return (start, start + len(words[0][0])), own, other


def _others(own: Given, every: Sequence[Given], name: Mention) -> list[Given]:
    """The numbers that are called as one of a name is, and are another's."""
    if not own.name.keys & name.keys:
        return []
    return [
        one
        for one in every
        if not one.name.keys & name.keys
        and one.name.sides & own.name.sides
        and one.called == own.called
        and _printed(one.said) == _printed(own.said)
    ]


def _printed(said: Said) -> tuple[str, int]:
    """How a number is printed; the word behind it is no unit of its own."""
    return "" if said.kind == "unit" else said.kind, said.figure.decimals


def _way(word: re.Match[str], told: frozenset[str], text: str, gaps: set[bool]) -> int:
    """1 if a word means the larger of two numbers, -1 if the smaller, 0 if neither.

    Of changes it must say so: "falls more".
    """
    if gaps != {bool(_SIZE.search(text))}:
        return 0
    if word.re is _STEADY:
        return -1 if told & _SPREAD else 0
    return {"up": 1, "down": -1}.get(word.lastgroup or "", 0)


def _is_same_thing(clause: Clause, name: Mention, word: re.Match[str], head: str) -> bool:
    """Whether a clause names nothing that was not told with the numbers."""
    text = list(outside(clause.text))
    for start, end in ((name.start - clause.start, name.end - clause.start), word.span()):
        text[start:end] = " " * (end - start)
    rest = _SIZE.sub(" ", _IDLE.sub(" ", "".join(text)))
    others = re.findall(r"[a-z]+|[\u4e00-\u9fff]+", rest)
    return all(one in head or concepts(one) & QUANTITIES for one in others)
