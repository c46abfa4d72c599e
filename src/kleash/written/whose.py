"""Whose a number of a sentence is: the row, column or step that it is given to must have it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise

from kleash.written.book import Book, Refs, refs
from kleash.written.fitting import NAMING, prints
from kleash.written.gaps import is_gap
from kleash.written.marks import Mark, State, printed_as
from kleash.written.printed import Cell, Sheet
from kleash.written.prose import Said, Sentence

_SPLIT = re.compile(r"[;。>]|(?<=[a-z\d\),])\s(?:and|but|while|whereas)\s")
_AVERAGED = re.compile(
    r"(?<![a-z])(?:averaged over the (?:last|first|final)|"
    r"unweighted|mean of the [a-z]+ \w+)(?![a-z])"
)  # no cell has that
_EACH = re.compile(r"分别|依次|(?<![a-z])respectively(?![a-z])")  # `told.parallel` knows whose
_COMMA = re.compile(r"[,、](?!\d{3})")
_COURSE = re.compile(r"\s?(?:→|->)|(?:→|->)\s?$")
_BESIDE = re.compile(
    r"\s?%?\s?(?:(?:vs\.?|versus|against|and|对|比|和|与|到|至|/|[-~])\s?\d|(?:for|with|under)(?![a-z]))"
)
_BEFORE = re.compile(r"\d\s?%?\s?(?:vs\.?|versus|against|and|对|比|和|与|到|至|/|[-~])\s?$")
_LATER = re.compile(r"后|之前|(?<![a-z])(?:after|afterwards|then|later|before)(?![a-z])")
_OTHER = re.compile(
    r"(?<![a-z])(?:than|against|vs|versus|instead of|from|over|compared)(?![a-z])|"
    r"比|对(?!应)|相较|从|除"
)


def said_mark(
    sentence: Sentence, said: Said, state: State, code: str, facts: dict[str, object]
) -> Mark:
    """The mark of a number of a sentence."""
    text = said.text + ("%" if said.kind == "share" else "")
    line = sentence.line(said.start)
    return Mark(line, text, state, code, facts, f"said {said.text}")


def whose(book: Book, sentence: Sentence) -> Iterator[Mark]:
    """Numbers that a sentence gives to a row, column or step that has another."""
    plain = sentence.plain
    for nth, said in enumerate(sentence.numbers if not _AVERAGED.search(plain) else ()):
        if said.figure.digits < NAMING or is_gap(sentence, said) or not said.figure.decimals:
            continue
        if _COURSE.search(plain[: said.start]) or _COURSE.match(plain[said.end :]):
            continue
        if _BESIDE.match(plain, said.end) or _BEFORE.search(plain[: said.start]):
            continue  # "(1.320 vs 1.345)", "0.463 for B", "18.39-18.80"
        start = _behind(sentence, sentence.numbers[nth - 1]) if nth else 0
        start = max(start, plain.rfind(")", start, said.start) + 1)
        cut = [match.end() for match in _SPLIT.finditer(plain, start, said.start)]
        start = cut[-1] if cut else start
        if _OTHER.search(plain[start : said.start]) or _EACH.search(plain[start : said.start]):
            continue
        told = [place.end for place in sentence.places if start <= place.start < said.start]
        if told and _LATER.search(plain, told[-1], said.start):
            continue  # "falls after step 70 to 1.750"
        spans = list(_clauses(sentence, start, said.start))
        # "0.502 (step 200)", "(0.502, step 200)"
        close, following = plain.find(")", said.end), plain.find("(", said.end)
        opens = re.match(r"\s?\(", plain[said.end :])
        if close > 0 and (opens or following < 0 or following > close):
            last = sentence.numbers[nth + 1].start if nth + 1 < len(sentence.numbers) else close
            inside = said.end, min(close, last)
            spans += [] if _OTHER.search(plain[slice(*inside)]) else [inside]
        wrong = _elsewhere(book, sentence, said, spans)
        counted = (said.end, _behind(sentence, said))  # its unit may be the column that has it
        if wrong is not None and _elsewhere(book, sentence, said, [*spans, counted]) is not None:
            yield wrong


def _behind(sentence: Sentence, said: Said) -> int:
    """The end of a number with the column that it is counted in: "237.8 GPU-hours"."""
    return max(
        (
            one.end
            for one in sentence.names
            if said.end <= one.start and not sentence.plain[said.end : one.start].strip()
        ),
        default=said.end,
    )


def _clauses(sentence: Sentence, start: int, end: int) -> Iterator[tuple[int, int]]:
    """The parts before a number that may name what it is of, from the last back.

    A part that names another row where a row is named already is about something else.
    """
    seen: set[str] = set()
    edges = [start, *(match.end() for match in _COMMA.finditer(sentence.plain, start, end)), end]
    for first, last in reversed(list(pairwise(edges))):
        inside = [one for one in sentence.names if first <= one.start and one.end <= last]
        kinds = {"row" if one.row is not None else "column" for one in inside}
        inside_ = [place for place in sentence.places if first <= place.start < last]
        kinds |= {"place" if place.is_of_training else place.axis for place in inside_}
        if kinds & seen:
            return
        seen |= kinds
        yield first, last


def _elsewhere(
    book: Book, sentence: Sentence, said: Said, spans: Sequence[tuple[int, int]]
) -> Mark | None:
    """The mark of a number that stands in a table that has its names, but not at them."""
    if _is_off(book, sentence, spans):
        return None
    right, misplaced = list[Cell](), list[Cell]()
    named = [(sheet, _refs(sheet, sentence, spans)) for sheet in book.sheets]
    # A table that has all that is named, say an arm and an epoch, is meant before others.
    most = max((bool(one.rows) + bool(one.columns) for _, one in named), default=0)
    for sheet, one in named:
        every = [cell for cell in sheet.cells if prints(said.figure, cell.figure)]
        if every and not one:
            return None
        if not every or bool(one.rows) + bool(one.columns) < most:
            continue
        meant = [cell for cell in sheet.cells if _is_at(cell, one)]
        if any(cell in meant for cell in every) or _is_both(sheet, sentence, said):
            return None
        if not meant:
            continue  # labels, which have no numbers
        if all(cell.figure.decimals < said.figure.decimals for cell in meant):
            return None  # a rank or a count is named, and a measured number given
        misplaced += every
        right += meant
    if not misplaced:
        return None
    if len(right) == 1:
        figure = right[0].figure
        facts: dict[str, object] = {
            "value": printed_as(figure.value, "", figure.decimals),
            "lines": [right[0].line],
        }
        return said_mark(sentence, said, "wrong", "check.not-same", facts)
    facts = {"lines": sorted({cell.line for cell in misplaced})[:4]}
    return said_mark(sentence, said, "wrong", "check.anothers", facts)


def _is_off(book: Book, sentence: Sentence, spans: Sequence[tuple[int, int]]) -> bool:
    """Whether a number is given for a step that no table has."""
    told = [
        place.at
        for place in sentence.places
        if place.is_of_training and any(first <= place.start < last for first, last in spans)
    ]
    counted = {
        at for sheet in book.sheets for at in (*sheet.counts.values(), *sheet.across.values())
    }
    return bool(told) and not counted.issuperset(told)


def _is_both(sheet: Sheet, sentence: Sentence, said: Said) -> bool:
    """Whether a word before a number is a row of a table and a column of it: "mean"."""
    own = [one for one in sentence.names if one.sheet == sheet.nth and one.end <= said.start]
    rows, columns = (
        {(one.start, one.end) for one in own if getattr(one, side) is not None}
        for side in ("row", "column")
    )
    return bool(rows & columns)


def _refs(sheet: Sheet, sentence: Sentence, spans: Sequence[tuple[int, int]]) -> Refs:
    """What several parts of a sentence name of a table together."""
    every = [refs(sheet, sentence, start, end) for start, end in spans]
    rows, columns = (
        frozenset[int]().union(*(getattr(one, side) for one in every))
        for side in ("rows", "columns")
    )
    return Refs(rows, columns, any(one.whole for one in every))


def _is_at(cell: Cell, named: Refs) -> bool:
    inside = not named.rows or cell.row in named.rows
    return inside and (not named.columns or cell.column in named.columns)
