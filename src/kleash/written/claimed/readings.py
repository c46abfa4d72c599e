"""The lines of a table that a clause may speak of, and what stands in them for each label.

A clause that says of an arm that its KL is highest speaks of the column "KL" of the tables with
arms as rows, of the row "KL" of those with arms as columns, and of no table about something else:
every quantity that it names must be named by the line, or by what the table is about.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from kleash.imports.markdown.text import bare
from kleash.written.book import Book
from kleash.written.claimed.mentions import (
    APART,
    KINDS,
    QUANTITIES,
    Mention,
    Side,
    concepts,
    context,
    has_topic,
    kinds,
    sides,
)
from kleash.written.claimed.reach import NUMBER
from kleash.written.grids import Part
from kleash.written.page import Page
from kleash.written.printed import Cell, Sheet, squeezed
from kleash.written.prose import END, Sentence

_SEPARATOR = re.compile(r"[,;。:!?]|(?<=[a-z\d)])\.(?=\s|$)|\s-\s")
_COUNTED = re.compile(  # what there are so many of, which is no topic: "5 个 KL_BETA", "all shots"
    rf"(?:{NUMBER}\s?[个种组档条类]|每[个种组档]?|各个?|所有|(?<![a-z])(?:all|every|each|both)"
    rf"(?: of)?(?: the)?(?: {NUMBER})?)\s?((?:[a-z]+(?:[ _][a-z]+)?|[\u4e00-\u9fff]{{2,5}}))"
)
Span = tuple[int, int]
WEAK = KINDS - {"drop", "gain", "change", "gap"}
_ARROW = re.compile(r"→|->|[到至]|(?<![a-z])to(?![a-z])")
_BEST_STEP = re.compile(
    r"(?:最[佳好高优]|(?<![a-z])(?:best|peak))\s?(?:step|epoch|checkpoint|步|轮)"
)
STEPWISE = ("step", "epoch", "update", "iteration", "round", "checkpoint")


@dataclass(frozen=True)
class Line:
    """The cells of a row or column by the label of the other side, and what it is called."""

    side: Side
    cells: Mapping[int, Cell]
    words: frozenset[str]
    at: int = -1

    def value(self, label: int) -> float:
        """The number of a label."""
        return self.cells[label].figure.value

    @property
    def is_ranks(self) -> bool:
        """Whether its numbers are places: 1, 2, 3 and so on."""
        values = sorted(cell.figure.value for cell in self.cells.values())
        return len(values) > 2 and values == [float(n) for n in range(1, len(values) + 1)]


@dataclass(frozen=True)
class Shelf:
    """A table from one of its sides: whose labels are compared along which lines."""

    side: Side
    other: Side
    about: frozenset[str]

    @property
    def sheet(self) -> Sheet:
        return self.side.sheet

    @property
    def steps(self) -> Mapping[int, float]:
        """The steps of the other side, if it counts them."""
        return _steps(self.sheet, is_rows=not self.side.is_rows)

    @property
    def own_steps(self) -> Mapping[int, float]:
        """The steps of the side itself."""
        return _steps(self.sheet, is_rows=self.side.is_rows)

    def line(self, at: int, part: Part = "") -> Line:
        """The line of one label of the other side: its numbers, or one part of them."""
        cells = {}
        for cell in self.sheet.cells:
            ours, theirs = (cell.row, cell.column) if self.side.is_rows else (cell.column, cell.row)
            if theirs == at and cell.part == part and ours in self.side.labels:
                cells[ours] = cell
        words = self.other.labels.get(at, frozenset())
        if {"best", "final"} <= words and _ARROW.search(self.other.texts.get(at, "")):
            words |= {"drop"}  # "best → final"
        if part == "spread":
            words |= {"spread"}
        elif any(cell.part == "spread" for cell in self.sheet.cells):
            words -= {"spread"}
        return Line(self.side, cells, words, at)

    def lines(self) -> Iterator[Line]:
        """Every line, and what stands behind ± or in brackets as lines of their own."""
        parts = sorted({cell.part for cell in self.sheet.cells} - {"low", "high"})
        yield from (self.line(at, part) for at in self.other.labels for part in parts)

    def scope(self, line: Line, label: int) -> list[int]:
        """The labels that one may be compared with: of the same kind, no sums or differences."""
        texts, words = self.side.texts, self.side.labels
        own, apart = kinds(words[label]), bool(APART.search(texts[label]))
        unit = line.cells[label].figure.unit
        return [
            one
            for one, cell in line.cells.items()
            if kinds(words[one]) == own
            and bool(APART.search(texts[one])) == apart
            and cell.figure.unit == unit
        ]


def _steps(sheet: Sheet, *, is_rows: bool) -> Mapping[int, float]:
    """The steps that rows, or columns, count; bare numbers that rise are those of a "best step"."""
    axis, counts = (
        (sheet.axis, sheet.counts) if is_rows else (sheet.across_axis, sheet.across)
    )  # fmt: skip
    if axis in STEPWISE:
        return counts
    titles = {} if is_rows or counts or sheet.counts else dict(enumerate(sheet.table.header))
    numbers = {nth: int(bare(one)) for nth, one in titles.items() if bare(one).isdecimal()}
    values = list(numbers.values())
    best = any(_BEST_STEP.search(squeezed(bare(one))) for one in titles.values())
    rising = len(values) > 2 and values == sorted(set(values))
    return {nth: float(at) for nth, at in numbers.items()} if best and rising else {}


def shelves(book: Book, page: Page) -> list[Shelf]:
    """Every table from both sides."""
    found = []
    for sheet in book.sheets:
        rows, columns = sides(sheet)
        about = context(sheet, page)
        found += [Shelf(rows, columns, about), Shelf(columns, rows, about)]
    return found


def at_hand(book: Book, sentence: Sentence, at: int) -> list[Sheet]:
    """The table that a part of a sentence is said of: the last one above, under its heading.

    Of tables whose headings a sentence names ("for 0.14, …") it is the last of these, unless the
    last one above has a row or column of that name.
    """
    line = sentence.line(at)
    above = [one for one in book.section(line) if one.line < line][-1:]
    near = {one.nth for one in above}
    inside = {one.start for one in sentence.names if one.sheet in near and not one.is_table}
    named = {one.sheet for one in sentence.names if one.is_table and one.start not in inside}
    return [one for one in book.sheets if one.nth in named and one.line < line][-1:] or above


@dataclass(frozen=True)
class Clause:
    """A part of a sentence between commas; what brackets hold belongs to what they stand behind."""

    sentence: Sentence
    start: int
    end: int

    @property
    def text(self) -> str:
        return self.sentence.plain[self.start : self.end]

    def says(self, words: re.Pattern[str]) -> bool:
        return bool(words.search(self.sentence.plain, self.start, self.end))


def clauses(sentence: Sentence, *, fine: bool = False) -> list[Clause]:
    """The clauses of a sentence; `fine` parts it at a Chinese comma before a digit too.

    "0.10 为 0.61，0.20 为 0.58" is a list, which most claims speak of as a whole.
    """
    every = _cuts(sentence.text, sentence.plain, fine=fine)
    return [Clause(sentence, start, end) for start, end in every]


@lru_cache(maxsize=8192)
def _cuts(text: str, plain: str, *, fine: bool) -> list[Span]:
    """Where clauses begin and end; every claim looks at the same sentences."""
    depth, start = 0, 0
    found = list[Span]()
    ends = {match.start(): match.end() for match in _SEPARATOR.finditer(plain)}
    for at, letter in enumerate(plain):
        depth = max(0, depth + (letter in "([") - (letter in ")]"))
        if at not in ends or depth:
            continue
        wide = fine and text[at] in "，："
        if wide or not re.match(r"[,.:]\d", plain[at : at + 2]):
            found.append((start, at))
            start = ends[at]
    found.append((start, len(plain)))
    return [(start, end) for start, end in found if plain[start:end].strip()]


def outside(text: str) -> str:
    """A text with what its brackets hold blanked out."""
    return re.sub(r"\([^()]*\)", lambda match: " " * len(match[0]), text)


@dataclass(frozen=True)
class Asked:
    """What a clause, or those before it, says of the quantity, and where, but for other words."""

    need: frozenset[str]
    spans: tuple[Span, ...]
    skip: tuple[Span, ...] = ()


def asked(clause: Clause, before: Sequence[Clause], skip: tuple[Span, ...]) -> Asked:
    """The quantities that a clause speaks of; where it names none, those of the clause before."""
    own = _said(clause, skip)
    if own & (QUANTITIES | {"drop", "gain", "change", "gap"}) or not before:
        return Asked(own, ((clause.start, clause.end),), skip)
    earlier = before[-1]
    return Asked(
        own | _said(earlier, skip),
        ((earlier.start, earlier.end), (clause.start, clause.end)),
        skip,
    )


def _said(clause: Clause, skip: Sequence[Span]) -> frozenset[str]:
    """The concepts of a clause outside brackets and some words."""
    shifted = [(first - clause.start, last - clause.start) for first, last in skip]
    return concepts(outside(clause.text), shifted)


def _without(clause: Clause, skip: Sequence[Span]) -> str:
    """The text of a clause without what brackets hold and without some words."""
    text = outside(clause.text)
    for start, end in skip:
        if end <= clause.start or start >= clause.end:
            continue
        first, last = max(0, start - clause.start), min(end, clause.end) - clause.start
        text = text[:first] + " " * (last - first) + text[last:]
    return text


def complete(shelf: Shelf, sentence: Sentence, said: Asked) -> Iterator[Line]:
    """The lines of a table that have all that a clause says of the quantity, and its steps."""
    named = _named(shelf, sentence, said)
    common = frozenset.intersection(*shelf.other.labels.values()) if shelf.other.labels else set()
    about = shelf.about | common
    own = frozenset.intersection(*shelf.side.labels.values()) if shelf.side.labels else set()
    parts = [_without(Clause(sentence, *span), said.skip) for span in said.spans]
    counted = [one[1] for part in parts for one in _COUNTED.finditer(part)]
    parts = [_COUNTED.sub(" ", part) for part in parts]
    topic = any(has_topic(about - own - shelf.side.head, part) for part in parts)
    topic = topic or (not shelf.side.is_rows and _is_corner(shelf.sheet, counted))
    steps = _at_steps(shelf, sentence, said)
    last = {max(shelf.steps, key=shelf.steps.__getitem__)} if shelf.steps else set[int]()
    for line in shelf.lines():
        if named and line.at not in named:
            continue
        if steps and line.at in shelf.steps and line.at not in steps:
            continue
        has = line.words | about | ({"final"} if line.at in last else set())
        spoken = said.need & QUANTITIES
        if (line.is_ranks or "rank" in has) and "rank" not in said.need:
            continue
        told = named or topic or (len(line.words) > 1 and line.words <= said.need)
        if said.need <= has and (spoken or (told and not line.words & QUANTITIES)):
            yield line


def _is_corner(sheet: Sheet, counted: Sequence[str]) -> bool:
    """Whether what a clause counts, "all five weights", is what the rows of a table are."""
    corner = squeezed(bare(sheet.table.header[0])).strip() if sheet.table.header else ""
    return len(corner) > 1 and any(one.strip().startswith(corner) for one in counted)


def _named(shelf: Shelf, sentence: Sentence, said: Asked) -> set[int]:
    """The lines that a clause names; by "best" or "final" alone only those called nothing else."""
    found = set[int]()
    for start, end in said.spans:
        for mention in shelf.other.named(sentence, start, end, arms=False):
            if any(first < mention.end and mention.start < last for first, last in said.skip):
                continue
            weak = mention.words <= WEAK
            labels = shelf.other.labels
            found |= {at for at in mention.labels if not weak or labels[at] <= mention.words}
    return found


def _at_steps(shelf: Shelf, sentence: Sentence, said: Asked) -> set[int]:
    found = set[int]()
    for place in sentence.places:
        inside = any(start <= place.start < end for start, end in said.spans)
        if inside and shelf.steps:
            wanted_ = place.at
            if place.axis == END:
                ends = shelf.steps.values()
                wanted_ = max(ends) if place.at > 0 else min(ends)
            found |= {nth for nth, at in shelf.steps.items() if at == wanted_}
    return found


def single(mentions: Sequence[Mention]) -> list[tuple[Mention, int]]:
    """The mentions that mean one label."""
    return [(one, next(iter(one.labels))) for one in mentions if len(one.labels) == 1]
