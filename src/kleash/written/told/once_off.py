"""A quantity that is told many times alike, and once a digit off.

No table is asked: where the words before a number are those before another that many places have,
and no other place has it, it is that number with a slip.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from kleash.written.fitting import is_typo
from kleash.written.marks import Mark
from kleash.written.printed import Sheet
from kleash.written.prose import Said, Sentence, other_end

OFTEN = 3  # places that tell a quantity alike
SHARED = 2  # pairs of signs, or words, before a number that one of these has too
NEAR = 24  # letters before a number in which they are looked for
_WORD = re.compile(r"[a-z]{3,}|[\u4e00-\u9fff]")
_IDLE = frozenset(("the", "and", "for", "with", "only", "are", "was", "that", "this", "from"))


@dataclass(frozen=True)
class Telling:
    """A number of a sentence, and the words before it."""

    sentence: Sentence
    said: Said
    words: frozenset[str]


def told_once_off(sheets: Sequence[Sheet], spoken: Sequence[Sentence]) -> Iterator[Mark]:
    """Numbers that are a digit off one that the same words have in many other places."""
    every = [
        Telling(sentence, said, _words(sentence, said))
        for sentence in spoken
        for said in sentence.numbers
        if said.figure.decimals and said.figure.digits > 1
    ]
    told = Counter((one.said.kind, abs(one.said.figure.value)) for one in every)
    printed = {round(abs(cell.figure.value), 9) for sheet in sheets for cell in sheet.cells}
    for one in every:
        value = abs(one.said.figure.value)
        if told[one.said.kind, value] > 1 or round(value, 9) in printed:
            continue
        others = [other for other in every if _is_slip(one, other)]
        values = {abs(other.said.figure.value) for other in others}
        near = [other for other in others if len(one.words & other.words) >= SHARED]
        if len(values) == 1 and len(others) >= OFTEN and near and _is_alone(one):
            lines = sorted({other.sentence.line(other.said.start) for other in others})
            line = one.sentence.line(one.said.start)
            facts = {"value": near[0].said.text, "lines": lines}
            spot = f"said {one.said.text}"
            yield Mark(line, one.said.text, "unsupported", "check.told-otherwise", facts, spot)


def _words(sentence: Sentence, said: Said) -> frozenset[str]:
    """The words before a number, back to the number before it; of Chinese pairs of signs."""
    before = [one.end for one in sentence.numbers if one.end <= said.start]
    start = max([*before, said.start - NEAR, 0])
    found = [m for m in _WORD.finditer(sentence.plain, start, said.start) if m[0] not in _IDLE]
    words = {m[0] for m in found if m[0].isascii()}
    pairs = pairwise(found)
    return frozenset(words | {a[0] + b[0] for a, b in pairs if a.end() == b.start()})


def _is_slip(one: Telling, other: Telling) -> bool:
    """Whether a number is another but for a digit."""
    ours, theirs = one.said.figure, other.said.figure
    alike = one.said.kind == other.said.kind and ours.decimals == theirs.decimals
    return (
        alike
        and ours.value != theirs.value
        and is_typo(abs(ours.value), abs(theirs.value), ours.decimals)
    )


def _is_alone(one: Telling) -> bool:
    """Whether a sentence has no other number of its kind, and no range."""
    same = [each for each in one.sentence.numbers if each.kind == one.said.kind]
    return len(same) == 1 and other_end(one.sentence, one.said) is None
