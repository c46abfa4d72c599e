"""The document: sections of paragraphs, lists, tables, figures. Three writers say it.

Nothing here knows a language or a format: sections make these; `terminal`, `markdown` and `page`
write them.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kleash.report.charts import Chart


@dataclass(frozen=True)
class Styled:
    """A cell in bold, or with a small picture of our own where pictures can be shown."""

    text: str
    strong: bool = False
    drawing: str = ""


Cell = str | Styled


@dataclass(frozen=True)
class Paragraph:
    """Running text."""

    line: str


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

    lines: Sequence[str]
    numbered: bool = False
    counts: Sequence[int] = ()
    """How many things each line stands for, where one may fold several."""


@dataclass(frozen=True)
class Table:
    """Rows under a head; the first `left` columns hold words, the others numbers."""

    caption: str
    head: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    left: int = 1
    folded: bool = False
    """Shown when asked for: long, and said in short elsewhere."""
    below: str = ""
    """What stands under it: that rows were left out."""


@dataclass(frozen=True)
class Figure:
    """A chart with the name of its file; its title says what is seen, its table the same."""

    name: str
    chart: Chart


@dataclass(frozen=True)
class Code:
    """Something to be run or copied, as it is."""

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


Part = Paragraph | Stated | Cards | Lines | Table | Figure | Code | Gallery


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
    contents: str = ""
    """The name of the table of contents; of a short page, which has none, nothing."""
    as_table: str = ""
    """The name of the table below a figure."""
    facts: str = ""
    """What was trained and measured, in a line."""


def text_of(cell: Cell) -> str:
    """A cell's text."""
    return cell if isinstance(cell, str) else cell.text


def clean(text: str) -> str:
    """Without control characters, which a name in a file may hold."""
    if text.isprintable():
        return text
    kept = (each if each != "\t" else " " for each in text)
    return "".join(e for e in kept if e == "\n" or unicodedata.category(e) not in ("Cc", "Cf"))
