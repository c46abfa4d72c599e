"""Which of two arms has more, where a table gives both as ranges: "~193-205 s | ~205-220 s".

A range lies above another if both its ends do. An item that names no arm goes on with the one of
the item before it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from kleash.imports import Table
from kleash.imports.markdown.draft import Draft
from kleash.imports.markdown.text import bare
from kleash.written.claimed.beside import WORDS
from kleash.written.claimed.contrasts import DENIED
from kleash.written.claimed.readings import clauses
from kleash.written.marks import Mark
from kleash.written.printed import squeezed
from kleash.written.prose import Sentence

NEAR = 6  # lines below a table
_RANGE = re.compile(
    r"~?\s?(\d[\d,]*(?:\.\d+)?)\s?[-~到至]\s?~?\s?(\d[\d,]*(?:\.\d+)?)\s?(\D{0,12})"
)
_SLOWER = re.compile(r"更慢|略慢|较慢|(?<![a-z])slower(?![a-z])")
_FASTER = re.compile(r"更快|略快|较快|(?<![a-z])faster(?![a-z])")
_TIME = re.compile(r"时间|耗时|用时|(?<![a-z])(?:time|seconds|hours)(?![a-z])")
_SIDES = {"up": 1, "down": -1}


@dataclass(frozen=True)
class Ranges:
    """A row of a table with its ranges by arm, as they are printed."""

    line: int
    called: str
    ends: Mapping[str, tuple[float, float]]
    texts: Mapping[str, str]

    def way(self, arm: str) -> int:
        """1 if an arm lies above the other, -1 if below, 0 if neither."""
        ours, theirs = self.ends[arm], next(self.ends[one] for one in self.ends if one != arm)
        if ours == theirs:
            return 0
        above = ours[0] >= theirs[0] and ours[1] >= theirs[1]
        return 1 if above else -1 if ours[0] <= theirs[0] and ours[1] <= theirs[1] else 0


def false_ranges(draft: Draft, spoken: Sequence[Sentence]) -> Iterator[Mark]:
    """Sentences below a table of ranges that say which arm has more, and it has less."""
    rows = [(table, row) for table in draft.source.tables for row in _ranges(draft, table)]
    if not rows:
        return
    arm, told = "", 0
    for sentence in spoken:
        line = sentence.line(0)
        named = draft.arms.within(sentence.text)
        if named or line - told > 1:
            arm = named[0] if len(named) == 1 else ""
        told = line
        for table, row in rows:
            under = 0 < line - table.lines[-1] <= NEAR
            if arm not in row.ends or not under or row.called not in sentence.plain:
                continue
            word, way = _said(sentence, row)
            if way and way == -row.way(arm):
                other = next(one for one in row.ends if one != arm)
                facts = {"one": row.texts[arm], "other": row.texts[other]}
                yield Mark(line, word, "wrong", "check.turned", facts, "turned")


def _ranges(draft: Draft, table: Table) -> Iterator[Ranges]:
    """Rows of which two arms have ranges in one unit."""
    arms = {
        nth: draft.arms.find(bare(title)) or "" for nth, title in enumerate(table.header) if nth
    }
    for line, row in zip(table.lines, table.rows, strict=True):
        found = {
            arms[nth]: match
            for nth, cell in enumerate(row)
            if arms.get(nth) and (match := _RANGE.fullmatch(bare(cell).strip("* ")))
        }
        ends = {arm: (_value(one[1]), _value(one[2])) for arm, one in found.items()}
        alike = len({one[3].strip() for one in found.values()}) == 1
        if len(found) == 2 and alike and all(low <= high for low, high in ends.values()):
            called = squeezed(bare(row[0])).strip("* :")
            yield Ranges(line, called, ends, {arm: one[0] for arm, one in found.items()})


def _value(text: str) -> float:
    return float(text.replace(",", ""))


def _said(sentence: Sentence, row: Ranges) -> tuple[str, int]:
    """The word that says which has more of a row, and its way; 0 if none or several do."""
    at = sentence.plain.index(row.called)
    clause = next(one for one in reversed(clauses(sentence)) if one.start <= at)
    words = [(m[0], _SIDES.get(m.lastgroup or "", 0)) for m in WORDS.finditer(clause.text)]
    for pattern, way in ((_SLOWER, 1), (_FASTER, -1)):
        words += [
            (m[0], way if _TIME.search(row.called) else -way) for m in pattern.finditer(clause.text)
        ]
    if len(words) != 1 or DENIED.search(clause.text):
        return "", 0
    return words[0]
