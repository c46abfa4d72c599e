"""Arms in an order, "A > B > C" or "the order is A, B, C", which no line that is meant has.

Without a sign both ways will do, for less may be better. Equal numbers are in any order.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from kleash.written.book import Book
from kleash.written.claimed.mentions import QUANTITIES
from kleash.written.claimed.readings import (
    Asked,
    Clause,
    Line,
    Shelf,
    asked,
    clauses,
    complete,
    single,
)
from kleash.written.marks import Mark
from kleash.written.prose import Sentence

LEAST = 3  # names in an order
_B, _E = r"(?<![a-z])", r"(?![a-z])"
_ITEM = r"[^<>≈≥≤,;。:()→]{1,24}?"
_SIGNED = re.compile(
    rf"(?:^|[,;。:(]|[是为]|(?<=[a-z]) )\s?({_ITEM}(?:\s?>\s?{_ITEM}){{2,}})\s?(?=[,;。)]|\.?$)"
)
_LISTED = re.compile(
    rf"(?:(?P<down>从[高大]到[低小])[^,;。:]{{0,6}}?[是为:]|(?:排序|次序|顺序)[^,;。:]{{0,4}}?[是为:]|"
    rf"{_B}(?:order|ranking) (?:is|was|reads))\s?"
    rf"(?P<list>{_ITEM}(?:\s?[,、]\s?(?:and )?{_ITEM}){{2,}})\s?(?=[;。)(]|\.?$)"
)
_LIMITED = re.compile(rf"不|没|未|若|如果|{_B}(?:not|no longer|if|would){_E}|n't")


@dataclass(frozen=True)
class Chain:
    """Names in an order, where they stand, and whether the first is known to have most."""

    sentence: Sentence
    start: int
    end: int
    items: tuple[str, ...]
    signed: bool


def false_chains(book: Book, every: Sequence[Shelf], spoken: Sequence[Sentence]) -> Iterator[Mark]:
    """Orders that no line that may be meant has."""
    for sentence in spoken:
        for chain in _chains(sentence):
            if _is_false(book, every, chain):
                text, line = sentence.text[chain.start : chain.end], sentence.line(chain.start)
                yield Mark(line, text, "wrong", "check.not-order", {}, "order")


def _chains(sentence: Sentence) -> Iterator[Chain]:
    plain = sentence.plain
    for match in _SIGNED.finditer(plain):
        whole, *items = re.split(r"\s?>\s?", match[1])
        first = re.split(r"[是为按]|满足|(?<![a-z])(?:is|was)(?![a-z])", whole)[-1]
        start = match.start(1) + len(whole) - len(first)
        yield Chain(sentence, start, match.end(1), (first, *items), signed=True)
    for match in _LISTED.finditer(plain):
        items = [one for one in re.split(r"\s?[,、]\s?(?:and )?", match["list"]) if one.strip()]
        signed = bool(match["down"])
        yield Chain(sentence, match.start("list"), match.end("list"), tuple(items), signed)


def _labels(shelf: Shelf, items: Sequence[str]) -> list[int]:
    """The label that each name of an order means in a table; nothing if one is not known."""
    found = list[int]()
    for item in items:
        own = set[int]()
        for text in (item.strip(), f"β={item.strip()}"):
            sentence = Sentence(text, [1] * (len(text) + 1))
            names = single(shelf.side.named(sentence, 0, len(text), arms=True))
            own = own or {label for _, label in names}
        if len(own) != 1:
            return []
        found += own
    return found if len(set(found)) == len(found) else []


def _is_false(book: Book, every: Sequence[Shelf], chain: Chain) -> bool:
    sentence = chain.sentence
    parts = clauses(sentence)
    nth = max((n for n, one in enumerate(parts) if one.start <= chain.start), default=0)
    if _LIMITED.search(sentence.plain[parts[nth].start : chain.start]):
        return False
    told = [
        (shelf, labels)
        for shelf in every
        if not shelf.own_steps and not shelf.side.is_metrics
        if (labels := _labels(shelf, chain.items))
    ]
    said = asked(parts[nth], parts[max(0, nth - 1) : nth], ((chain.start, chain.end),))
    own = book.section(sentence.line(chain.start))
    near = [(shelf, labels) for shelf, labels in told if shelf.sheet in own]
    anywhere = [] if said.need & QUANTITIES else _all(told)
    readings = (
        _at(near, parts[nth], said), _at(told, parts[nth], said), _meant(near, sentence, said),
        anywhere,
    )  # fmt: skip
    for lines in readings:
        verdicts = [_has(line, labels, chain) for line, labels in lines if _full(line, labels)]
        if verdicts:
            return not any(verdicts)
    return False


Told = Sequence[tuple[Shelf, list[int]]]
Lines = list[tuple[Line, list[int]]]


def _at(told: Told, clause: Clause, said: Asked) -> Lines:
    """The lines of the step that a clause names, in tables of what it speaks of."""
    ends = [
        place.at
        for place in clause.sentence.places
        if clause.start <= place.start < clause.end and place.axis not in ("", "shot", "sample")
    ]
    return [
        (shelf.line(nth), labels)
        for shelf, labels in told
        if len(ends) == 1 and shelf.steps and said.need & QUANTITIES <= shelf.about | {"step"}
        for nth, at in shelf.steps.items()
        if at == min(max(ends[0], min(shelf.steps.values())), max(shelf.steps.values()))
    ]


def _meant(told: Told, sentence: Sentence, said: Asked) -> Lines:
    """The lines of the quantity, or the kind of its values, that is named."""
    if not said.need:
        return []
    return [(line, labels) for shelf, labels in told for line in complete(shelf, sentence, said)]


def _all(told: Told) -> Lines:
    return [(line, labels) for shelf, labels in told for line in shelf.lines()]


def _full(line: Line, labels: Sequence[int]) -> bool:
    return len(labels) >= LEAST and all(label in line.cells for label in labels)


def _has(line: Line, labels: Sequence[int], chain: Chain) -> bool:
    """Whether a line has its numbers in an order."""
    gaps = [line.value(one) - line.value(other) for one, other in pairwise(labels)]
    down = all(gap >= 0 for gap in gaps)
    return down or (not chain.signed and all(gap <= 0 for gap in gaps))
