"""Gaps of two names whose numbers a sentence has given: "A and B 26 and 74, B has 48 more than A".

No table is needed: each name has its number in the same sentence.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from kleash.written.gaps import is_gap
from kleash.written.printed import Sheet
from kleash.written.prose import Said, Sentence
from kleash.written.told.parallel import in_turn
from kleash.written.told.things import Mention, mentions

_THAN = re.compile(
    r"(?:比|较)\s?$|(?<![a-z])(?:than|above|below|over|ahead of|behind)\s(?:the\s)?$"
)
_CLAUSE = re.compile(r"[,;。、]")


def of_names(
    sentence: Sentence, sheets: Sequence[Sheet]
) -> Iterator[tuple[Said, tuple[Said, Said]]]:
    """Gaps with the two numbers that the names around them were given."""
    runs = [[(one, said) for one, said in run if one] for run in in_turn(sentence, sheets)]
    every = mentions(sentence, sheets)
    for run in runs:
        last = max(said.end for _, said in run)
        for gap in sentence.numbers:
            if gap.start < last or not is_gap(sentence, gap) or gap.kind in ("share", "times"):
                continue
            two = _two(sentence, gap, [one for one in every if one.start >= last])
            ours, theirs = (_number(one, run) for one in two) if two else (None, None)
            if ours and theirs and ours is not theirs:
                yield gap, (ours, theirs)


def _two(sentence: Sentence, gap: Said, every: Sequence[Mention]) -> tuple[Mention, Mention] | None:
    """Who is compared with whom: the name behind "than", and the last one before that is not."""
    first = max((m.end() for m in _CLAUSE.finditer(sentence.plain, 0, gap.start)), default=0)
    thans = [one for one in every if _THAN.search(sentence.plain, 0, one.start)]
    near = [one for one in thans if first <= one.start and one.end <= gap.start]
    whose = [one for one in every if one not in thans and one.end <= gap.start]
    return (whose[-1], near[-1]) if near and whose and whose[-1].keys != near[-1].keys else None


def _number(name: Mention, run: Sequence[tuple[Mention, Said]]) -> Said | None:
    own = [said for one, said in run if one.keys & name.keys]
    return own[0] if len(own) == 1 else None
