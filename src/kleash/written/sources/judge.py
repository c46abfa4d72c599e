"""Numbers of sentences against all that they may be: right, or a slip of what they should be.

A number is right as likely as what it may be gives it. It is a slip as likely as what it may be is
a digit off, stands beside it in its line, or is anything: how much likelier that is are the odds.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import log

from kleash.written.book import Book
from kleash.written.fitting import is_typo
from kleash.written.page import Page
from kleash.written.prose import Said, Sentence, is_rough
from kleash.written.sources.asks import Ask
from kleash.written.sources.of_numbers import of_numbers
from kleash.written.sources.of_tables import Origin, of_tables
from kleash.written.sources.views import Reader
from kleash.written.sources.weights import DIGITS, elsewhere, weight

ROUNDED = 0.3  # how often a number was worked out before others were rounded
LAST = 0.12  # of slips: the last digit, up or down
TYPED = 0.25  # another digit, or two exchanged
BESIDE = 0.15  # the number of another cell of its line
ANY = 0.1  # anything
SELDOM = 1e-4  # what is so unlikely was not meant
NEARLY = 1 + 1e-6
NEXT = 3  # halves of its last digit that a number is off at most if that digit is one off


@dataclass(frozen=True)
class Verdict:
    """How likely a number is, right and as a slip, and what it most likely should be."""

    sentence: Sentence
    said: Said
    right: float
    slip: float
    value: float
    share: float
    """How likely it should be that."""

    @property
    def odds(self) -> float:
        """How much likelier it is a slip: a logarithm."""
        return log(self.slip / self.right)


def verdicts(book: Book, page: Page, spoken: Sequence[Sentence]) -> Iterator[Verdict]:
    """A verdict on every number of a sentence that may be one of a table, or worked out."""
    reader = Reader(book, page)
    for sentence in spoken if book.sheets else ():
        for said in sentence.numbers:
            if is_judged(sentence, said):
                ask = Ask.of(sentence, said)
                yield _verdict(ask, origins(reader, ask))


def is_judged(sentence: Sentence, said: Said) -> bool:
    """Whether a number has digits enough, and is meant to be exact."""
    digits, told = said.figure.digits, said.kind in ("share", "points", "times")
    enough = digits > 1 and (said.figure.decimals > 0 or told or digits > 2)
    return enough and said.sign != "±" and not is_rough(sentence, said)


def origins(reader: Reader, ask: Ask) -> list[Origin]:
    """All that a number may be."""
    view = reader.view(ask)
    return [*of_tables(reader, view), *of_numbers(reader, view)]


def fitting(said: Said, one: Origin) -> float:
    """How likely what a number may be gives it."""
    off, half = abs(abs(one.value) - abs(said.figure.value)), said.figure.half
    if off <= half * NEARLY:
        return 1.0
    return ROUNDED / max(1.0, one.room / half) if off <= one.room + half * NEARLY else 0.0


def nowhere(said: Said) -> float:
    """How likely a number is if any of its digits may be."""
    return 10.0 ** -min(DIGITS, said.figure.digits)


def _verdict(ask: Ask, every: Sequence[Origin]) -> Verdict:
    said, unit = ask.said, 2 * ask.said.figure.half
    ours, half = abs(said.figure.value), said.figure.half
    lost = weight(elsewhere(ask.kind, said.figure.digits))
    weights = [weight(one.pattern) for one in every]
    total = lost + sum(weights)
    right, slip = lost * nowhere(said), ANY * total * nowhere(said)
    values: dict[int, float] = defaultdict(float)
    for one, heavy in zip(every, weights, strict=True):
        theirs = abs(one.value)
        off = abs(theirs - ours)
        if off <= one.room + half * NEARLY:  # what most of the thousands are not
            right += heavy * fitting(said, one)
        if off > half * NEARLY:
            values[round(theirs / unit)] += heavy
            likely = heavy > SELDOM * total
            if likely or off <= NEXT * half * NEARLY:
                slip += heavy * _slipped(said, one, off, likely=likely)
    slip += BESIDE * _beside(said, every, weights)
    value, most = max(values.items(), key=lambda each: each[1], default=(0, 0.0))
    return Verdict(ask.sentence, said, right / total, slip / total, value * unit, most / total)


def _slipped(said: Said, one: Origin, off: float, *, likely: bool) -> float:
    """How likely a slip makes a number of what it should be."""
    if off <= NEXT * said.figure.half * NEARLY:
        return LAST
    figure = said.figure
    typed = likely and is_typo(abs(figure.value), abs(one.value), figure.decimals)
    return TYPED / (9 * min(DIGITS, figure.digits)) if typed else 0.0


def _beside(said: Said, every: Sequence[Origin], weights: Sequence[float]) -> float:
    """The weight of cells in whose lines a number stands elsewhere, each by its part of a line."""
    lines: dict[tuple[int, str, int], list[float]] = defaultdict(lambda: [0.0, 0.0, 0.0])
    for one, heavy in zip(every, weights, strict=True):
        if one.pattern[0] == "cell":
            cell, same = one.cells[0], fitting(said, one) == 1
            for at in ((cell.table, "row", cell.row), (cell.table, "column", cell.column)):
                lines[at][0] += 0.0 if same else heavy
                lines[at][1] += same
                lines[at][2] += 1
    return sum(heavy * same / count for heavy, same, count in lines.values())
