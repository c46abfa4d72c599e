"""Two names whose numbers were exchanged: "A 1.81, B 1.93", where a line of a table has B's 1.81.

A name and a number belong together if no other stands between them. Only where one line of a table
has both the other way round, and none has either as it is said, were they exchanged.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from kleash.written.book import Book
from kleash.written.claimed.mentions import Mention
from kleash.written.claimed.readings import Line, Shelf, single
from kleash.written.fitting import NAMING, prints
from kleash.written.gaps import is_gap
from kleash.written.marks import Mark
from kleash.written.prose import Said, Sentence

_B, _E = r"(?<![a-z])", r"(?![a-z])"
_BEFORE = re.compile(
    r"[^,;。(]{0,16}(?:\(\s?)?|[^;。(]{0,10}\(\s?|\s?:\s?|, (?:with|at) [^,;(]{0,28}"
)
_BEHIND = re.compile(
    rf"\s?%?\s?(?:points? |steps? )?(?:{_B}(?:for|of|with|at|in){_E}\s?(?:the )?|\()\s?"
)
VERSUS = re.compile(rf"\s?(?:%|s|h)?\s?(?:vs\.?|对|比|{_B}against|{_B}versus)\s?(?:约|估计|~)?\s?")
_THAN = re.compile(
    rf"(?:比|相较|相对|于|接近|输给|超过|不及|赶上|追上|不如|"
    rf"{_B}(?:than|vs\.?|against|versus|over|to|below|above|behind|near|beats?|reach\w*|pass(?:es|ed)?|"
    r"overtakes?|overtook|exceed(?:s|ed)?)(?: the)?)了?\s?$"
)
_LOST = re.compile(  # "A loses to B (2.20 vs 2.12)" may begin with the winner's
    rf"(?:输给|不及|不如|落后于?|{_B}(?:loses?|lost) to{_E})[^,;。()]{{0,16}}$"
)


@dataclass(frozen=True)
class Told:
    """A label, and the number that a sentence gives it."""

    label: int
    said: Said


def exchanged(book: Book, every: Sequence[Shelf], spoken: Sequence[Sentence]) -> Iterator[Mark]:
    """Numbers that a sentence gives to two names, each of which is the other's."""
    for sentence in spoken:
        found = dict[Said, Mark]()
        for one, other in _exchanges(every, sentence):
            for said, value in ((one, other), (other, one)):
                text, line = said.text, sentence.line(said.start)
                facts: dict[str, object] = {"value": value.text}
                found[said] = Mark(line, text, "wrong", "check.crosswise", facts, f"said {text}")
        yield from found.values()


def _exchanges(every: Sequence[Shelf], sentence: Sentence) -> Iterator[tuple[Said, Said]]:
    yield from _turned_pairs(every, sentence)
    told = [(shelf, list(told_of(shelf, sentence))) for shelf in every]
    pairs = {
        (one.said, other.said): None
        for _, each in told
        for one, other in pairwise(each)
        if one.label != other.label and _alike(one.said, other.said)
    }
    for left, right in pairs:
        turned = straight = False
        for shelf, each in told:
            owners = {one.said: one.label for one in each}
            if left not in owners or right not in owners:
                continue
            a, b = owners[left], owners[right]
            for line in shelf.lines():
                turned |= _has(line, a, right) and _has(line, b, left)
                straight |= _has(line, a, left) or _has(line, b, right)
        if turned and not straight:
            yield left, right


def _has(line: Line, label: int, said: Said) -> bool:
    cell = line.cells.get(label)
    return cell is not None and prints(said.figure, cell.figure)


def _alike(one: Said, other: Said) -> bool:
    """Whether two numbers are printed alike, and with so many digits that they name their cells."""
    kinds = {each.kind if each.kind != "unit" else "" for each in (one, other)}
    return (
        len(kinds) == 1
        and one.figure.decimals == other.figure.decimals
        and one.figure.value != other.figure.value
        and min(one.figure.digits, other.figure.digits) >= NAMING
    )


def told_of(shelf: Shelf, sentence: Sentence) -> Iterator[Told]:
    """The labels of a table with the numbers that stand beside them."""
    if shelf.own_steps or shelf.side.is_metrics:
        return
    names = single(shelf.side.named(sentence, 0, len(sentence.plain), arms=True))
    if len({label for _, label in names}) < 2:
        return
    inside = [one for one in sentence.numbers if not _is_name(one, names)]
    for nth, said in enumerate(inside):
        first = inside[nth - 1].end if nth else 0
        last = inside[nth + 1].start if nth + 1 < len(inside) else len(sentence.plain)
        label = _behind(sentence, said, names, last)
        if label is None:
            label = _before(sentence, said, names, first)
        if label is not None and not is_gap(sentence, said):
            yield Told(label, said)


def _is_name(said: Said, names: Sequence[tuple[Mention, int]]) -> bool:
    return any(one.start <= said.start < one.end for one, _ in names)


def _before(
    sentence: Sentence, said: Said, names: Sequence[tuple[Mention, int]], first: int
) -> int | None:
    """The name right before a number, behind the number before it."""
    own = [(one, label) for one, label in names if first <= one.start and one.end <= said.start]
    if own and _BEFORE.fullmatch(sentence.plain, own[-1][0].end, said.start):
        return own[-1][1]
    return None


def _behind(
    sentence: Sentence, said: Said, names: Sequence[tuple[Mention, int]], last: int
) -> int | None:
    """The name behind a number: "64.8 for A"."""
    own = [(one, label) for one, label in names if said.end <= one.start and one.end <= last]
    if own and _BEHIND.fullmatch(sentence.plain, said.end, own[0][0].start):
        return own[0][1]
    return None


# --- "A nearly reaches B (2.12 vs 2.20)"


def _turned_pairs(every: Sequence[Shelf], sentence: Sentence) -> Iterator[tuple[Said, Said]]:
    """Two numbers in brackets of which the first is not that of what the clause is about."""
    plain = sentence.plain
    for one, other in pairwise(sentence.numbers):
        opened = re.search(r"\(\s?~?$", plain[: one.start])
        if (
            not opened
            or _LOST.search(plain, 0, opened.start())
            or not VERSUS.fullmatch(plain, one.end, other.start)
            or not _alike(one, other)
        ):
            continue
        verdicts = [v for shelf in every for v in _as_said(shelf, sentence, one, other)]
        if verdicts and not any(verdicts):
            yield one, other


def _as_said(shelf: Shelf, sentence: Sentence, one: Said, other: Said) -> Iterator[bool]:
    """For each line that has both numbers, whether the first is that of the sentence's subject."""
    if shelf.own_steps or shelf.side.is_metrics:
        return
    names = single(shelf.side.named(sentence, 0, one.start, arms=True))
    theirs = [label for name, label in names if _THAN.search(sentence.plain[: name.start])]
    ours = [label for _, label in names if label not in theirs]
    if len(set(ours)) > 1 or len(set(theirs)) > 1:
        return
    for line in shelf.lines():
        straight, turned = (
            _owned(line, ours, left) and _owned(line, theirs, right)
            for left, right in ((one, other), (other, one))
        )
        if names and straight != turned:
            yield straight


def _owned(line: Line, labels: Sequence[int], said: Said) -> bool:
    """Whether a number is that of a label in a line; of any, if none is named."""
    return any(_has(line, label, said) for label in labels or line.cells)
