"""Of two arms one is called higher or lower, and the other is not named: "B's KL loss is lower".

It is false if it is so in no line of the quantity. A table whose heading the clause has word for
word is the one that is meant: "KL loss" is not the KL.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from kleash.imports.markdown.text import bare
from kleash.written.book import Book
from kleash.written.claimed.beside import WORDS
from kleash.written.claimed.mentions import QUANTITIES
from kleash.written.claimed.readings import (
    Clause,
    Shelf,
    asked,
    clauses,
    complete,
    outside,
    single,
)
from kleash.written.marks import Mark
from kleash.written.printed import squeezed
from kleash.written.prose import Sentence

# Lines that stand for a run as a whole, where there are any.
_WHOLE = frozenset(("mean", "final"))
SHORT = 4  # letters of a heading that a clause may have word for word
_B, _E = r"(?<![a-z])", r"(?![a-z])"
_LIMITED = re.compile(
    rf"比|于|不|没|未|非|除|若|如果|可能|预期|应该?|早期|前期|中期|后期|有时|部分|阶段|越|使用|例如|"
    rf"{_B}(?:than|not|no|never|if|may|might|should|would|early|late|later|mid|sometimes|expect\w*|"
    rf"use|with|at|by|to){_E}|n't"
)


def false_halves(book: Book, every: Sequence[Shelf], spoken: Sequence[Sentence]) -> Iterator[Mark]:
    """Arms called higher than the only other one that are lower in all that is meant."""
    for sentence in spoken:
        for clause in clauses(sentence):
            text = outside(clause.text)
            words = list(WORDS.finditer(text))
            if len(words) != 1 or words[0].lastgroup not in ("up", "down"):
                continue
            if _LIMITED.search(text) or _has_number(clause):
                continue
            if _is_false(_meant(every, text), clause, words[0]):
                start, end = (clause.start + at for at in words[0].span())
                line, shown = sentence.line(start), sentence.text[start:end]
                yield Mark(line, shown, "wrong", "check.not-trend", {}, "order")


def _has_number(clause: Clause) -> bool:
    """Whether a clause tells a number or a step, which others judge."""
    sentence = clause.sentence
    starts = [one.start for one in sentence.numbers] + [one.start for one in sentence.places]
    return any(clause.start <= start < clause.end for start in starts)


def _meant(every: Sequence[Shelf], text: str) -> list[Shelf]:
    """The tables whose heading a clause has word for word; all, if it has none."""
    own = [shelf for shelf in every if any(one in text for one in topics_of(shelf))]
    return own or list(every)


def topics_of(shelf: Shelf) -> list[str]:
    """What the heading of a table says that it is about, in each of its forms."""
    found = []
    for heading in shelf.sheet.table.headings[-1:]:
        plain = re.sub(r"^[\s#\d.)、]+", "", squeezed(bare(heading)))
        found += [one.strip() for one in re.split(r"[()]", plain) if len(one.strip()) >= SHORT]
    return found


def _is_false(every: Sequence[Shelf], clause: Clause, word: re.Match[str]) -> bool:
    sentence, verdicts = clause.sentence, []
    for shelf in every:
        if shelf.own_steps or shelf.side.is_metrics:
            continue
        names = single(shelf.side.named(sentence, clause.start, clause.end, arms=True))
        labels = {label for _, label in names}
        if len(labels) != 1:
            continue
        label = labels.pop()
        start = clause.start + word.start()
        skip = ((start, clause.start + word.end()), *((one.start, one.end) for one, _ in names))
        said = asked(clause, (), skip)
        lines = list(complete(shelf, sentence, said)) if said.need & QUANTITIES else []
        for line in [one for one in lines if one.words & _WHOLE] or lines:
            scope = shelf.scope(line, label) if label in line.cells else []
            if len(scope) == 2:
                ours, theirs = line.value(label), sum(line.value(n) for n in scope if n != label)
                verdicts.append(ours == theirs or (ours > theirs) == (word.lastgroup == "up"))
    return bool(verdicts) and not any(verdicts)
