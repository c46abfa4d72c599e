"""Marks that other evidence takes back: a rule that misread a table, or a sentence that adds up.

It only ever acquits. What makes a number wrong is for the rules that mark it.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Sequence
from itertools import combinations

from kleash.written.marks import Mark
from kleash.written.printed import Sheet
from kleash.written.prose import Said, Sentence

# Rules that guess from where a number stands what it may be.
GUESSING = ("check.elsewhere", "check.exchanged")
MANY, PART = 3, 4  # rows of a table, and one in so many, that one rule does not find wrong
# Rules that guess what a number of a sentence is of.
OF_SENTENCES = ("check.slip", "check.anothers", "check.not-same", "check.stranger")
EXACT = 1e-9
_PLAIN = re.compile(r"[+-]?[\d,]+(?:\.\d+)?\s?%?")


def acquitted(
    marks: Sequence[Mark],
    sheets: Sequence[Sheet],
    spoken: Sequence[Sentence],
    confirmed: Collection[int],
    recited: Collection[tuple[int, str]] = (),
) -> list[Mark]:
    """The marks that stand; `confirmed` are rows whose numbers logs bear out.

    `recited` are numbers of lines that give a row of a table as it is.
    """
    misread = _misread(marks, sheets)
    return [
        mark
        for mark in marks
        if (mark.line, mark.code) not in misread
        and not (mark.code == "check.exchanged" and mark.line in confirmed)
        and not (mark.code in OF_SENTENCES and (mark.line, mark.text.strip(" +%*")) in recited)
        and not _adds_up(mark, spoken)
    ]


def _misread(marks: Iterable[Mark], sheets: Sequence[Sheet]) -> set[tuple[int, str]]:
    """Rows and rules, where a rule that guesses finds so much of a table wrong."""
    tables = {line: nth for nth, sheet in enumerate(sheets) for line in sheet.table.lines}
    found: dict[tuple[int, str], set[int]] = defaultdict(set)
    for mark in marks:
        if mark.code in GUESSING and mark.line in tables:
            found[tables[mark.line], mark.code].add(mark.line)
    rows = Counter(tables.values())
    return {
        (line, code)
        for (table, code), lines in found.items()
        if len(lines) >= MANY and PART * len(lines) >= rows[table]
        for line in lines
    }


def _adds_up(mark: Mark, spoken: Sequence[Sentence]) -> bool:
    """Whether a number is what two others of its sentence give, or gives one with another."""
    if mark.code not in OF_SENTENCES or not _PLAIN.fullmatch(mark.text):
        return False
    digits = re.sub(r"[^\d.]", "", mark.text)
    for sentence in spoken:
        if mark.line not in sentence.lines:
            continue
        own = [one for one in sentence.numbers if re.sub(r"[^\d.]", "", one.text) == digits]
        others = [one for one in sentence.numbers if one not in own]
        for one in own:
            for left, right in combinations(others, 2):
                trios = ((one, left, right), (left, one, right), (right, one, left))
                if any(_gives(*trio) for trio in trios):
                    return True
    return False


def _gives(made: Said, left: Said, right: Said) -> bool:
    """Whether a number is the gap of two others, or their relative gap in percent."""
    one, first, second = made.figure, left.figure, right.figure
    if one.digits < 2 or not (first.decimals or second.decimals):
        return False
    gap = abs(first.value - second.value)
    slack = EXACT + (one.half if one.decimals < first.decimals else 0.0)
    if (left.kind, right.kind) == ("share", "share") or made.kind != "share":
        return first.decimals == second.decimals and abs(abs(one.value) - gap) <= slack
    bases = [abs(each.value) for each in (first, second) if each.value]
    return any(abs(abs(one.value) - 100 * gap / base) <= one.half + EXACT for base in bases)
