"""What a report is made of: sections of paragraphs, lists, tables, figures; numbers with a place.

Nothing here knows a language or a format: sections make these, `markdown` and `page` write them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from kleash.charts import Chart
from kleash.imports import Where


@dataclass(frozen=True)
class Linked:
    """A text, and the file and line it came from."""

    text: str
    where: Where | None = None
    strong: bool = False
    drawing: str = ""
    """A small picture of our own that stands for the text where pictures can be shown."""


Cell = str | Linked
Line = Cell | tuple[Cell, ...]


@dataclass(frozen=True)
class Paragraph:
    """Running text."""

    line: Line


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


@dataclass(frozen=True)
class Figure:
    """A chart with the name of its file; its own table says the same in words."""

    name: str
    chart: Chart


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
    lines: Sequence[str]


@dataclass(frozen=True)
class Gallery:
    """Pictures with words beside them."""

    entries: Sequence[Pictured]


Part = Paragraph | Lines | Table | Figure | Code | Quoted | Gallery


@dataclass
class Section:
    """A heading with what stands below it; its key is its address in the page."""

    key: str
    heading: str
    parts: list[Part] = field(default_factory=list)


@dataclass
class Document:
    """A whole report."""

    title: str
    language: str
    sections: list[Section]


def cells(line: Line) -> tuple[Cell, ...]:
    """A line as the cells it is made of."""
    return line if isinstance(line, tuple) else (line,)


def text_of(cell: Cell) -> str:
    """A cell's text."""
    return cell if isinstance(cell, str) else cell.text
