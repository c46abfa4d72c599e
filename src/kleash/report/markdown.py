"""A report as Markdown: tables that line up, numbers as links to the line they came from."""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

from kleash.catalogue import pad, width
from kleash.report.links import Links
from kleash.report.parts import (
    Cards,
    Cell,
    Code,
    Document,
    Figure,
    Gallery,
    Line,
    Lines,
    Paragraph,
    Part,
    Quoted,
    Stated,
    Table,
    cells,
)

BLANKS = re.compile(r"\s+")
PLAIN = re.compile(r"(?:[\w.,;:%()/+=\[−—–↑↓-]| (?! )|\](?![\[(]))*", re.ASCII).fullmatch
"""What most cells hold, and what stays as it is."""


def markdown(document: Document, links: Links) -> str:
    """The whole report; places of numbers stand at its end."""
    book = _References(links if document.whole else None)
    lines = [
        f"# {escaped(document.title)}",
        *(["", escaped(document.facts)] * bool(document.facts)),
    ]
    for section in document.sections:
        lines += ["", f"## {escaped(section.heading)}"]
        for part in section.parts:
            lines += ["", *_part(part, book, document.as_table)]
    return "\n".join([*lines, "", *book.lines()]).rstrip() + "\n"


class _References:
    """Places of numbers, each with a number of its own."""

    def __init__(self, links: Links | None) -> None:
        self.links = links
        self.numbers: dict[str, int] = {}

    def of(self, cell: Cell) -> str:
        if isinstance(cell, str):
            return escaped(cell)
        text = escaped(cell.text)
        if cell.strong:
            text = f"**{text}**"
        where = cell.place
        address = "" if where is None or self.links is None else self.links.address(where)
        if not address:
            return text
        number = self.numbers.get(address)
        if number is None:
            number = self.numbers[address] = len(self.numbers) + 1
        return f"[{text}][{number}]"

    def line(self, line: Line) -> str:
        return "".join(self.of(cell) for cell in cells(line))

    def lines(self) -> list[str]:
        return [f"[{number}]: {address}" for address, number in self.numbers.items()]


def _part(part: Part, book: _References, as_table: str) -> list[str]:
    match part:
        case Paragraph(line):
            return [book.line(line)]
        case Stated() | Cards():
            return _answer(part)
        case Lines(lines, numbered):
            marks = [f"{n}." if numbered else "-" for n in range(1, len(lines) + 1)]
            return [f"{mark} {book.line(line)}" for mark, line in zip(marks, lines, strict=True)]
        case Table():
            return _told(part, book)
        case Figure():
            return _figure(part, book, as_table)
        case Code(text):
            fence = "`" * max(3, 1 + _longest_ticks(text))
            return [fence, *text.splitlines(), fence]
        case Quoted(text):
            return [f"> {line}".rstrip() for line in escaped_lines(text)]
        case Gallery(entries):
            return [
                f"- **{escaped(each.label)}**: " + "; ".join(map(book.line, each.lines))
                for each in entries
            ]


def _answer(part: Stated | Cards) -> list[str]:
    """The decision and why; or its cards, a line each."""
    if isinstance(part, Stated):
        return [escaped(part.decision), *(["", escaped(part.why)] if part.why else [])]
    return [
        f"- **{escaped(each.heading)}** {escaped(' '.join(each.lines))}"
        + (f" `{each.code}`" if each.code else "")
        for each in part.cards
    ]


def _figure(part: Figure, book: _References, as_table: str) -> list[str]:
    """What is seen; where numbers are links, the rows behind it, too."""
    said = [f"*{book.line(part.said)}*"]
    if book.links is None:
        return said
    table = Table(as_table, part.chart.head, part.chart.shown, folded=True)
    return [*said, "", *_told(table, book)]


def _told(table: Table, book: _References) -> list[str]:
    rows = [list(map(escaped, table.head)), *([book.of(c) for c in row] for row in table.rows)]
    pictures = [at for at, column in enumerate(zip(*rows, strict=True)) if not any(column)]
    rows = [[cell for at, cell in enumerate(row) if at not in pictures] for row in rows]
    lines = _table(rows, table.left)
    lines += ["", book.line(table.below)] if table.below else []
    if not table.folded:
        return [f"*{escaped(table.caption)}*", "", *lines]
    start = f"<details><summary>{escaped(table.caption)}</summary>"
    return [start, "", *lines, "", "</details>"]


def _table(rows: list[list[str]], left: int) -> list[str]:
    columns: list[list[str]] = []
    for at, column in enumerate(zip(*rows, strict=True)):
        plain = "".join(column).isascii()
        size = max(3, *map(len if plain else _width, column))
        dashes = "-" * size if at < left else "-" * (size - 1) + ":"
        if not plain:
            texts = [_padded(text, size, right=at >= left) for text in column]
        elif at < left:
            texts = [text.ljust(size) for text in column]
        else:
            texts = [text.rjust(size) for text in column]
        columns.append([texts[0], dashes, *texts[1:]])
    return ["| " + " | ".join(row) + " |" for row in zip(*columns, strict=True)]


def _width(text: str) -> int:
    return len(text) if text.isascii() else width(text)


def _padded(text: str, columns: int, *, right: bool) -> str:
    if text.isascii():
        return text.rjust(columns) if right else text.ljust(columns)
    return pad(text, columns, right=right)


@lru_cache(maxsize=65_536)
def escaped(text: str) -> str:
    """On one line, and nothing in it taken for markup or HTML; blanks at its ends stay."""
    if PLAIN(text):
        return text
    text = BLANKS.sub(" ", clean(text))
    for mark in ("\\", "`", "*", "|", "<"):
        text = text.replace(mark, "&lt;" if mark == "<" else f"\\{mark}")
    return text.replace("](", "]\\(").replace("][", "]\\[")


def escaped_lines(text: str) -> list[str]:
    """A text of several lines, HTML in it made harmless; its own Markdown is kept."""
    return [clean(line).replace("<", "&lt;") for line in text.splitlines()]


def clean(text: str) -> str:
    """Without control characters, which a name in a file may hold."""
    if text.isprintable():
        return text
    kept = (each if each != "\t" else " " for each in text)
    return "".join(e for e in kept if e == "\n" or unicodedata.category(e) not in ("Cc", "Cf"))


def _longest_ticks(text: str) -> int:
    longest = run = 0
    for each in text:
        run = run + 1 if each == "`" else 0
        longest = max(longest, run)
    return longest
