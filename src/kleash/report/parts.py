"""What a report is made of: sections of paragraphs, lists, tables, figures; numbers with a place.

Nothing here knows a language or a format: sections make these, `markdown` and `page` write them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from kleash.charts import Cell, Chart, Linked

__all__ = [
    "Card",
    "Cards",
    "Cell",
    "Code",
    "Document",
    "Figure",
    "Gallery",
    "Line",
    "Lines",
    "Linked",
    "Paragraph",
    "Part",
    "Pictured",
    "Quoted",
    "Section",
    "Stated",
    "Table",
    "cells",
    "text_of",
]


Line = Cell | tuple[Cell, ...]


@dataclass(frozen=True)
class Paragraph:
    """Running text."""

    line: Line


@dataclass(frozen=True)
class Stated:
    """The answer: the decision, and why."""

    decision: str
    why: str


@dataclass(frozen=True)
class Card:
    """One question under the answer, its lines, and what to run."""

    heading: str
    lines: Sequence[str]
    code: str = ""


@dataclass(frozen=True)
class Cards:
    """Questions side by side."""

    cards: Sequence[Card]


@dataclass(frozen=True)
class Lines:
    """A list."""

    lines: Sequence[Line]
    numbered: bool = False


@dataclass(frozen=True)
class Table:
    """Rows under a head; the first `left` columns hold words, the others numbers."""

    caption: str
    head: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    left: int = 1
    folded: bool = False
    """Shown when asked for: long, and said in short elsewhere."""
    below: Line = ""
    """What stands under it: that rows were left out, and where all are."""


@dataclass(frozen=True)
class Figure:
    """A chart with the name of its file and what is seen; its own table says the same in words."""

    name: str
    chart: Chart
    said: Line


@dataclass(frozen=True)
class Code:
    """Something to be run or copied, as it is."""

    text: str


@dataclass(frozen=True)
class Quoted:
    """Another's text, kept as it was written."""

    text: str


@dataclass(frozen=True)
class Pictured:
    """One entry of a gallery: a small picture as a data URI, and what is said about it."""

    picture: str
    label: str
    lines: Sequence[Line]


@dataclass(frozen=True)
class Gallery:
    """Pictures with words beside them."""

    entries: Sequence[Pictured]


Part = Paragraph | Stated | Cards | Lines | Table | Figure | Code | Quoted | Gallery


@dataclass
class Section:
    """A heading with what stands below it; its key is its address in the page."""

    key: str
    heading: str
    parts: list[Part] = field(default_factory=list)
    folded: bool = False
    """Shown when asked for."""


@dataclass
class Document:
    """A whole report."""

    title: str
    language: str
    sections: list[Section]
    contents: str
    """The name of the table of contents."""
    as_table: str
    """The name of the table below a figure."""
    facts: str = ""
    """What was trained and measured, in a line."""
    whole: bool = True
    """Every number links to its line, and charts have their rows in Markdown, too."""


def cells(line: Line) -> tuple[Cell, ...]:
    """A line as the cells it is made of; blanks between them are theirs."""
    return line if isinstance(line, tuple) else (line,)


def text_of(cell: Cell) -> str:
    """A cell's text."""
    return cell if isinstance(cell, str) else cell.text
