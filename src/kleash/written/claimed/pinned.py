"""Superlatives that the numbers told with them deny.

"The lowest is A (54.1)" where 54.1 is lowest and B's; "the narrowest (2.86) … the widest (1.49)";
"A -4.0, B -0.7, C +2.3: B fell most". What is not told with a number is for `superlatives`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise

from kleash.written.book import Book
from kleash.written.claimed.exchanged import Told, told_of
from kleash.written.claimed.mentions import QUANTITIES, concepts
from kleash.written.claimed.readings import Clause, Shelf, clauses, outside
from kleash.written.claimed.superlatives import (
    Called,
    called_in,
    is_limited,
    lines_of,
    lines_with,
    subjects_of,
    verdict_of,
)
from kleash.written.fitting import NAMING, is_typo, prints
from kleash.written.marks import Mark
from kleash.written.prose import Sentence

DIGITS = 2  # of a number that shows whose it is
LEAST = 3  # names that are told with their numbers
_ARROW = re.compile(r"→|->")
# Of two words the first has the smaller number; of time and money, if they are told so.
_LESS = (("low", "high"), ("fast", "slow"), ("cheap", "dear"), ("tight", "loose"))


def denied(book: Book, every: Sequence[Shelf], spoken: Sequence[Sentence]) -> Iterator[Mark]:
    """Words for the most and least that the numbers beside them deny."""
    for sentence in spoken:
        parts = clauses(sentence)
        words = [
            (called, parts[:nth])
            for nth, clause in enumerate(parts)
            if not is_limited(parts[: nth + 1])
            for called in called_in(clause)
        ]
        for called, before in words:
            if _is_anothers(every, called, before) or _is_outdone(every, called, before):
                yield _mark(called)
            else:
                yield from _mistyped(book, every, called, before)
        for (one, _), (other, _) in pairwise(words):
            if _are_turned(one, other):
                yield from (_mark(one), _mark(other))


def _mark(called: Called) -> Mark:
    sentence, word = called.clause.sentence, called.word
    text = sentence.text[word.start() : word.end()]
    line = sentence.line(word.start())
    return Mark(line, text, "wrong", "check.not-the-one", {}, "most")


def _mistyped(
    book: Book, every: Sequence[Shelf], called: Called, before: Sequence[Clause]
) -> Iterator[Mark]:
    """A number in brackets that no table has, of what is the most with nearly that number."""
    pin = called.pin
    if pin is None or pin.digits < NAMING or not pin.decimals or called.signed:
        return
    if any(prints(pin, cell.figure) for cell in book.cells):
        return
    own = [
        line.cells[label].figure
        for shelf, label in subjects_of(every, called, before)
        for line in lines_of(shelf, called, before, label)
        if verdict_of(shelf, line, called, label) is True
    ]
    near = {one.value for one in own if is_typo(pin.value, one.value, pin.decimals)}
    near = {one for one in near if abs(one - pin.value) > 3 * pin.half}  # a last digit may differ
    if len(near) == 1 and all(one.decimals == pin.decimals for one in own if one.value in near):
        sentence = called.clause.sentence
        text, value = f"{pin.value:.{pin.decimals}f}", f"{near.pop():.{pin.decimals}f}"
        line = sentence.line(called.word.end())
        yield Mark(line, text, "wrong", "check.slip", {"value": value}, f"said {text}")


def _is_anothers(every: Sequence[Shelf], called: Called, before: Sequence[Clause]) -> bool:
    """Whether the number behind a name is the most of a line, but another's."""
    pin = called.pin
    if pin is None or pin.digits < DIGITS or not pin.decimals:
        return False
    subjects = subjects_of(every, called, before)
    if any(lines_with(shelf, pin, label) for shelf, label in subjects):
        return False
    return any(
        verdict_of(shelf, line, called, other) is True
        for shelf, label in subjects
        for line in shelf.lines()
        if label in line.cells
        for other in shelf.scope(line, label)
        if other != label and prints(pin, line.cells[other].figure)
    )


def _are_turned(one: Called, other: Called) -> bool:
    """Whether what is called the least has the larger of two numbers."""
    if one.pin is None or other.pin is None or one.clause.sentence is not other.clause.sentence:
        return False
    alike = (one.pin.decimals, one.pin.unit) == (other.pin.decimals, other.pin.unit)
    if not alike or one.pin.value == other.pin.value:
        return False
    if _ARROW.search(one.clause.sentence.plain):
        return False  # from where to where, of which neither is the most
    if one.clause != other.clause and concepts(outside(other.clause.text)) & QUANTITIES:
        return False
    throughput = "throughput" in concepts(one.clause.sentence.plain)
    for less, more in _LESS:
        if {one.sense, other.sense} == {less, more} and not (less == "fast" and throughput):
            low, high = (one, other) if one.sense == less else (other, one)
            return low.pin.value > high.pin.value  # type: ignore[union-attr]
    return False


def _is_outdone(every: Sequence[Shelf], called: Called, before: Sequence[Clause]) -> bool:
    """Whether the sentence itself tells a number of another that is more, of all that it lists."""
    if called.sense not in ("high", "low") or not before:
        return False
    quantities = concepts(outside(called.clause.text)) & QUANTITIES
    sentence = called.clause.sentence
    if quantities - concepts(sentence.plain[: called.clause.start]):
        return False
    for shelf, label in subjects_of(every, called, before):
        listed = [one for one in told_of(shelf, sentence) if one.said.end <= called.clause.start]
        run = _run(listed)
        own = [one for one in run if one.label == label]
        if len(run) < LEAST or len(own) != 1:
            continue
        way = 1 if called.sense == "high" else -1
        signs = {one.said.sign for one in run}
        falls = "drop" in concepts(called.clause.text)
        if falls and not {"-"} & signs:
            continue  # how far each fell is told without a sign, or is not what is told
        way = -way if falls and "-" in signs else way
        best = max(way * one.said.figure.value for one in run)
        if way * own[0].said.figure.value < best:
            return True
    return False


def _run(listed: Sequence[Told]) -> list[Told]:
    """The numbers of different names that are printed alike; nothing if a name has two."""
    if not listed:
        return []
    kind = (listed[-1].said.figure.decimals, listed[-1].said.kind)
    run = [one for one in listed if (one.said.figure.decimals, one.said.kind) == kind]
    return run if len({one.label for one in run}) == len(run) else []
