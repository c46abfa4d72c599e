"""Gaps from a number that was just given to that of a name: "0.732, which is 0.033 over A".

The number stands in a table; what the name has beside it there is what the gap is to.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from kleash.written.fitting import NAMING, is_typo, prints
from kleash.written.gaps import is_gap
from kleash.written.printed import Figure, Sheet
from kleash.written.prose import Said, Sentence, is_rough
from kleash.written.told.given import Given
from kleash.written.told.things import Mention, column_keys, mentions, row_keys

_BEHIND = re.compile(
    r"\s?(?:(?:%|points?|pts?|pp|个百分点|tokens?|s|h)\s?)?"
    r"(?:over|above|below|under|ahead of|behind|(?:more|less|fewer|higher|lower|better|worse|"
    r"longer|shorter) than)\s(?:the\s|that of\s)?(?:the\s)?"
)
_TO = re.compile(
    r"(?<![a-z])(?:over|above|below|than|behind|ahead of)\s(?:the\s|that of\s)?$|[比较]\s?$"
)
_THAN = re.compile(r"(?:比|较|相比|相较于?)\s?$")
_MORE = re.compile(
    r"\s?(?:的|组|版|还|又|平均|均|要|则|也){0,3}\s?(?:高|低|多|少|快|慢|长|短|好|差|大|小)(?:出|了)?\s?"
)


@dataclass(frozen=True)
class Over:
    """A gap, the number that it is from, and the name that it is to."""

    said: Said
    start: Said
    name: Mention


def gaps_to_names(
    sentence: Sentence, sheets: Sequence[Sheet]
) -> Iterator[tuple[Said, list[Given]]]:
    """Gaps to a name with what they should be, where no table bears them out."""
    for one in _overs(sentence, sheets):
        figure = one.start.figure
        given = [
            Given("check.not-difference", scale * abs(figure.value - other.value), 0.0)
            for other in _beside(sheets, figure, one.name)
            for scale in _scales(one.said, other)
        ]
        room = 2 * one.start.figure.half
        fits = any(each.off(_unsigned(one.said)) <= room + one.said.figure.half for each in given)
        values = {round(each.value, one.said.figure.decimals) for each in given}
        if given and not fits and (len(values) == 1 or _is_slip(one.said, values)):
            yield one.said, given


def _overs(sentence: Sentence, sheets: Sequence[Sheet]) -> Iterator[Over]:
    every = mentions(sentence, sheets)
    for said in sentence.numbers:
        before = [one for one in sentence.numbers if one.end <= said.start]
        whole = [one for one in before if _is_whole(sentence, one)]
        if said.figure.digits < NAMING - 1 or said.kind in ("share", "times") or not whole:
            continue
        if not said.figure.decimals or is_rough(sentence, said):
            continue
        name = _behind(sentence, said, every) or _before(sentence, said, every)
        apart = re.search("[;。]", sentence.plain[whole[-1].end : said.start])
        own = [one for one in every if whole[-1].end <= one.start and one.end <= said.start]
        chained = all(_is_to(sentence, one) or one is name for one in own)
        alike = whole[-1].figure.decimals == said.figure.decimals
        if name is not None and not apart and chained and alike:
            yield Over(said, whole[-1], name)


def _is_whole(sentence: Sentence, one: Said) -> bool:
    """Whether a number is one that a table may have, and no gap."""
    if one.figure.digits < NAMING or is_gap(sentence, one) or one.kind == "times":
        return False
    return not _BEHIND.match(sentence.plain, one.end)


def _is_to(sentence: Sentence, name: Mention) -> bool:
    """Whether a name is one that a gap is to."""
    return bool(_TO.search(sentence.plain, 0, name.start))


def _behind(sentence: Sentence, said: Said, every: Sequence[Mention]) -> Mention | None:
    found = _BEHIND.match(sentence.plain, said.end)
    return next((one for one in every if found and one.start == found.end()), None)


def _before(sentence: Sentence, said: Said, every: Sequence[Mention]) -> Mention | None:
    for one in every:
        led = _THAN.search(sentence.plain, 0, one.start)
        if one.end <= said.start and led:
            text = sentence.plain[one.end : said.start].rstrip("+-± ")
            if _MORE.fullmatch(text):
                return one
    return None


def _beside(sheets: Sequence[Sheet], figure: Figure, name: Mention) -> Iterator[Figure]:
    """What a name has beside a number, in every table that has both."""
    for sheet in sheets:
        rows = {nth for nth in range(len(sheet.rows)) if name.keys & row_keys(sheet, nth)}
        columns = {nth for nth in range(len(sheet.columns)) if name.keys & column_keys(sheet, nth)}
        ours = [cell for cell in sheet.cells if not cell.part and prints(figure, cell.figure)]
        for one in ours:
            for cell in sheet.cells:
                along = cell.column == one.column and cell.row in rows
                across = cell.row == one.row and cell.column in columns
                if (along or across) and cell.part == one.part and cell is not one:
                    yield cell.figure


def _scales(said: Said, other: Figure) -> tuple[float, ...]:
    small = said.kind == "points" and other.unit != "%" and abs(other.value) <= 1
    return (1.0, 100.0) if small else (1.0,)


def _unsigned(said: Said) -> Said:
    return Said(said.start, said.end, said.text, said.figure)


def _is_slip(said: Said, values: set[float]) -> bool:
    """Whether a gap is one of several but for a digit."""
    near = [one for one in values if is_typo(abs(said.figure.value), one, said.figure.decimals)]
    return len(near) == 1
