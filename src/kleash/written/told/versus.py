"""Two numbers of a row that a sentence holds against each other: "number of drops 1 vs 4".

Both stand in the row that is named. Where one does and the other does not, the other is wrong.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from kleash.imports.markdown.text import bare
from kleash.written.marks import Mark
from kleash.written.printed import Sheet, squeezed
from kleash.written.prose import Sentence
from kleash.written.told.things import NOISE

LONG = 3  # letters of a name that is no word of a phrase
_FIGURE = r"[+-]?\s?\d[\d,]*(?:\.\d+)?\s?(?:%|[a-z]{1,3}(?![a-z])|步|次|个|题|条)?"
_TWO = re.compile(
    rf"\s?(?:为|是|:|\(|is|are|of)?\s?(?P<one>{_FIGURE})\s?(?:vs\.?|versus|对比?|against)\s?(?P<other>{_FIGURE})"
    r"(?!\d|\.\d|\s?(?:vs|/|→))"
)
_NUMBER = re.compile(r"(?<![\d.])\d[\d,]*(?:\.\d+)?(?!\d|\.\d)")


def false_versus(sheets: Sequence[Sheet], spoken: Sequence[Sentence]) -> Iterator[Mark]:
    """Numbers beside the name of a row that has the number they are held against, and not them."""
    rows = {line for sheet in sheets for line in sheet.table.lines}
    for sentence in spoken:
        if rows & set(sentence.lines):
            continue
        named = [
            one for one in sentence.names if one.row is not None and one.end - one.start >= LONG
        ]
        named = [one for one in named if not NOISE.fullmatch(sentence.plain[one.start : one.end])]
        for end in sorted({one.end for one in named}):
            match = _TWO.match(sentence.plain, end)
            own = [one for one in named if one.end == end]
            if match is None or not own:
                continue
            odd = {_odd(sheets[one.sheet], one.row or 0, match) for one in own}
            if len(odd) == 1 and (group := odd.pop()):
                text, line = match[group].strip(), sentence.line(match.start(group))
                facts = {"value": _rest(sheets[own[0].sheet], own[0].row or 0, match, group)}
                yield Mark(line, text, "wrong", "check.slip", facts, f"versus {text}")


def _numbers(sheet: Sheet, row: int) -> list[list[float]]:
    """The numbers of each cell of a row."""
    cells = [squeezed(bare(text)) for text in sheet.table.rows[row][1:]]
    return [[_value(one) for one in _NUMBER.findall(text)] for text in cells]


def _value(text: str) -> float:
    found = _NUMBER.search(text)
    return float(found[0].replace(",", "")) if found else float("nan")


def _odd(sheet: Sheet, row: int, match: re.Match[str]) -> str:
    """Which of two numbers a row lacks, if it has the other; "" if it lacks none, or both."""
    have = {value for cell in _numbers(sheet, row) for value in cell}
    lacks = [group for group in ("one", "other") if _value(match[group]) not in have]
    return lacks[0] if len(lacks) == 1 else ""


def _rest(sheet: Sheet, row: int, match: re.Match[str], odd: str) -> str:
    """What the other cells of the row have instead."""
    kept = _value(match["other" if odd == "one" else "one"])
    rest = [cell[0] for cell in _numbers(sheet, row) if cell and kept not in cell]
    return f"{rest[0]:g}" if rest else ""
