"""Columns of yes and no beside an interval or a p-value: "Excludes 0: yes" with [-0.08, 4.22].

What the question asks its title tells; that it is asked of these numbers the other rows show.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from kleash.imports.markdown.text import bare
from kleash.written.book import Book
from kleash.written.claimed.readings import Shelf
from kleash.written.marks import Mark
from kleash.written.printed import squeezed
from kleash.written.prose import Sentence

LEAST = 2  # rows that answer rightly
LEVEL = 0.05
_ZERO = r"\s?(?:0(?![.\d])|zero|零)"
_ASKED = (
    (re.compile(rf"(?:exclud(?:es|ing)?|clear of|不含|不包含|排除|不跨){_ZERO}"), True),
    (re.compile(rf"(?:includ(?:es|ing)?|contains?|covers|含|包含|跨){_ZERO}"), False),
    (re.compile(r"(?<![a-z])significant|显著"), True),
)
_YES = re.compile(r"(?:yes|y|true|是|✓|✔|√|✅|显著)")
_NO = re.compile(r"(?:no|n|false|否|✗|✘|❌|不显著|n\.?s\.?)")
_NUMBER = r"([+-]?\d+(?:\.\d+)?)%?"
_INTERVAL = re.compile(rf"[\[(（]\s?{_NUMBER}\s?(?:,|，|~|～|–|to|至)\s?{_NUMBER}\s?[\])）]")
_P = re.compile(r"(?:adjusted |holm |校正后)?p(?:[ -]?(?:value|值))?")
_P_VALUE = re.compile(r"([<=>]?)\s?(0?\.\d+|1(?:\.0+)?)")


def false_answers(book: Book, every: Sequence[Shelf], spoken: Sequence[Sentence]) -> Iterator[Mark]:
    """A yes or no that the numbers of its row deny, where those of the others bear theirs out."""
    for sheet in book.sheets:
        table = sheet.table
        for column, title in enumerate(table.header):
            asked = next((yes for word, yes in _ASKED if word.search(squeezed(title))), None)
            if asked is None:
                continue
            wrong, right = [], 0
            for row, line in zip(table.rows, table.lines, strict=True):
                said = _answer(row[column]) if column < len(row) else None
                known = _outside([*table.header], [*row], column)
                if said is None or known is None:
                    continue
                outside, text = known
                if (said == asked) == outside:
                    right += 1
                else:
                    wrong.append((line, row[column].strip("* "), text))
            if len(wrong) == 1 and right >= LEAST:
                ((line, said_text, text),) = wrong
                facts: dict[str, object] = {"value": text}
                yield Mark(line, said_text, "wrong", "check.not-winner", facts, "answer")


def _answer(cell: str) -> bool | None:
    plain = cell.strip("* ").casefold()  # a tick is no text, and would be gone
    return True if _YES.fullmatch(plain) else False if _NO.fullmatch(plain) else None


def _outside(header: list[str], row: list[str], column: int) -> tuple[bool, str] | None:
    """Whether 0 lies outside the interval of a row, or its p-value is small; and what says so."""
    others = [
        (squeezed(title), squeezed(bare(cell)).replace("−", "-"))
        for at, (title, cell) in enumerate(zip(header, row, strict=False))
        if at != column
    ]
    found = [(match, cell) for _, cell in others for match in _INTERVAL.finditer(cell)]
    if len(found) == 1:
        low, high = float(found[0][0][1]), float(found[0][0][2])
        return None if 0 in (low, high) or low > high else (low * high > 0, found[0][0].group())
    tests = [cell for title, cell in others if _P.fullmatch(title)]
    match = _P_VALUE.fullmatch(tests[0]) if len(tests) == 1 and not found else None
    if match is None or match[1] == ">" or float(match[2]) == LEVEL:
        return None
    return float(match[2]) < LEVEL, f"p {match.group()}"
