"""Gaps in percent that are ten times too large or too small: a decimal point out of its place.

Only where no two numbers that may be meant are so far apart, and some are ten times as far, or a
tenth: those of the tables it stands under, or that it names. So about 3 % needs no digits to tell.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import combinations

from kleash.written.book import Book, refs
from kleash.written.fitting import prints
from kleash.written.gaps import OR, is_gap, is_part
from kleash.written.marks import Mark
from kleash.written.printed import Cell, Figure, Sheet
from kleash.written.prose import Said, Sentence, is_limit, other_end

TEN = 10.0
FEW = 2  # digits of a share that stands alone: more are of what is told elsewhere
SAME = 1e-9


def false_points(book: Book, spoken: Sequence[Sentence]) -> Iterator[Mark]:
    """Gaps in percent with their decimal point elsewhere than the tables have it."""
    for sentence in spoken:
        if any(sentence.line(0) in sheet.table.lines for sheet in book.sheets):
            continue
        for said in sentence.numbers:
            gap = _gap_before(sentence, said)
            if said.kind != "share" or not said.figure.value or is_part(sentence, said):
                continue
            if other_end(sentence, said) is not None or is_limit(sentence, said):
                continue
            if _is_told(book, said) or not (gap or _is_alone(sentence, said)):
                continue
            right = _moved(list(_gaps(book, sentence, gap)), said)
            if right is not None:
                line = sentence.line(said.start)
                facts = {"value": f"{right:g}%", "lines": [line]}
                spot = f"said {said.text}"
                yield Mark(line, f"{said.text}%", "wrong", "check.not-relative", facts, spot)


def _gap_before(sentence: Sentence, said: Said) -> Said | None:
    """The gap right before a share, which is the same in percent: "0.006 (0.08 %)"."""
    before = [one for one in sentence.numbers if one.end <= said.start]
    led = before and OR.fullmatch(sentence.plain, before[-1].end, said.start)
    return before[-1] if led and not before[-1].kind and is_gap(sentence, before[-1]) else None


def _is_alone(sentence: Sentence, said: Said) -> bool:
    """Whether a gap of few digits is the only number of its sentence."""
    alone = len(sentence.numbers) == 1 and said.figure.digits <= FEW
    return alone and is_gap(sentence, said)


def _is_told(book: Book, said: Said) -> bool:
    """Whether a table has a number as it is."""
    return any(
        cell.figure.decimals == said.figure.decimals and prints(said.figure, cell.figure)
        for cell in book.cells
        if cell.figure.unit == "%"
    )


def _gaps(book: Book, sentence: Sentence, gap: Said | None) -> Iterator[tuple[float, float]]:
    """How far any two numbers are apart that may be meant, in percent, and how rounding leaves it.

    Of two numbers whose gap stands before it only those count that are so far apart.
    """
    for sheet in _sheets(book, sentence):
        for line in book.lines[sheet.nth]:
            for one, other in combinations(line, 2):
                if one.figure.unit == other.figure.unit and (
                    gap is None or _are_apart(one, other, gap.figure)
                ):
                    yield from _shares(one, other, gap.figure.half if gap else 0.0)


def _sheets(book: Book, sentence: Sentence) -> list[Sheet]:
    """The tables of a section, or else those that the sentence names."""
    at = bisect_left(book.heads, sentence.line(0) + 1)
    own = [one for one in book.sheets if bisect_left(book.heads, one.line + 1) == at]
    return own or [one for one in book.sheets if refs(one, sentence, 0, len(sentence.text))]


def _are_apart(one: Cell, other: Cell, gap: Figure) -> bool:
    apart = abs(abs(one.figure.value) - abs(other.figure.value))
    return abs(apart - abs(gap.value)) <= gap.half + one.figure.half + other.figure.half + SAME


def _shares(one: Cell, other: Cell, more: float) -> Iterator[tuple[float, float]]:
    gap = abs(one.figure.value - other.figure.value)
    for base in (one.figure, other.figure):
        if abs(base.value) > base.half:
            room = 100 * (one.figure.half + other.figure.half + more) / abs(base.value)
            yield 100 * gap / abs(base.value), room


def _moved(gaps: Sequence[tuple[float, float]], said: Said) -> float | None:
    """What a share is with its point where some gap has it; None if one is as it is told."""
    value, half = abs(said.figure.value), said.figure.half
    if any(abs(gap - value) <= half + room + SAME for gap, room in gaps):
        return None
    for scale in (TEN, 1 / TEN):
        if any(abs(gap - scale * value) <= scale * half + room + SAME for gap, room in gaps):
            return scale * value
    return None
