"""Comparatives with whose they are: "KL is higher" under "**A**:" is said of A.

Whose a word is the clause tells, else one before it, else the head of its item, what the item
stands under, or the item before it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from kleash.written.claimed.beside import WORDS
from kleash.written.claimed.outline import Item, above, before
from kleash.written.claimed.readings import Clause, Shelf, clauses, outside, single
from kleash.written.prose import Sentence

_B, _E = r"(?<![a-z])", r"(?![a-z])"
LIMITED = re.compile(  # held against something that is named, denied, or of a part of training
    rf"比|于|不|没|未|非|除|若|如果|早期|前期|中期|后期|有时|部分|阶段|越|使用|例如|之前|最初|起初|"
    rf"{_B}(?:than|not|no|never|if|early|late|later|mid|sometimes|use|with|at|by|to|when|first|"
    rf"before|after){_E}|n't"
)
_HEAD = re.compile(r"[^:]{1,40}:")


@dataclass(frozen=True)
class Stated:
    """A comparative, its clause, and the texts that may say whose it is, the nearest first."""

    clause: Clause
    word: re.Match[str]
    owners: tuple[Clause, ...]

    @property
    def way(self) -> int:
        return 1 if self.word.lastgroup == "up" else -1

    @property
    def span(self) -> tuple[int, int]:
        """Where the word stands in its sentence."""
        start = self.clause.start
        return start + self.word.start(), start + self.word.end()

    @property
    def line(self) -> int:
        return self.clause.sentence.line(self.span[0])

    def whose(self, shelf: Shelf) -> int | None:
        """The one label of a table that the nearest text names which names any."""
        if shelf.own_steps or shelf.side.is_metrics:
            return None
        for one in self.owners:
            names = single(shelf.side.named(one.sentence, one.start, one.end, arms=True))
            labels = {label for _, label in names}
            if labels:
                return labels.pop() if len(labels) == 1 else None
        return None


def stated(items: Mapping[int, Item], spoken: Sequence[Sentence]) -> Iterator[Stated]:
    """Every comparative of a page that tells no number and is held against nothing."""
    first = {sentence.line(0): sentence for sentence in reversed(spoken)}
    for sentence in spoken:
        parts = clauses(sentence)
        for nth, clause in enumerate(parts):
            beyond = (*reversed(parts[:nth]), *_beyond(items, first, sentence))
            for own, owners in (
                (clause, beyond),
                *((one, (clause, *beyond)) for one in _asides(clause)),
            ):
                text = outside(own.text)
                words = list(WORDS.finditer(text))
                if len(words) != 1 or words[0].lastgroup not in ("up", "down"):
                    continue
                if not LIMITED.search(text) and not _has_number(own):
                    yield Stated(own, words[0], (own, *owners))


def _asides(clause: Clause) -> Iterator[Clause]:
    """What brackets of a clause hold: it is said of the same."""
    for match in re.finditer(r"\(([^()]*)\)", clause.text):
        start, end = (clause.start + at for at in match.span(1))
        yield Clause(clause.sentence, start, end)


def _has_number(clause: Clause) -> bool:
    """Whether a clause tells a number or a step, which others judge."""
    sentence = clause.sentence
    starts = [one.start for one in sentence.numbers] + [one.start for one in sentence.places]
    return any(clause.start <= start < clause.end for start in starts)


def _beyond(
    items: Mapping[int, Item], first: Mapping[int, Sentence], sentence: Sentence
) -> Iterator[Clause]:
    """The heads of what a sentence stands under, and the first clause of the item before it."""
    line = sentence.line(0)
    for one in above(items, line):
        yield head(one)
    earlier = before(items, line)
    if earlier is not None and earlier.line in first:
        yield clauses(first[earlier.line])[0]


def head(item: Item) -> Clause:
    """What an item begins with, up to its colon."""
    sentence = Sentence(item.text, [item.line] * (len(item.text) + 1))
    match = _HEAD.match(sentence.plain)
    return Clause(sentence, 0, match.end() if match else len(sentence.plain))
