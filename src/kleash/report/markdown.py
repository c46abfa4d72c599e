"""A document as Markdown, with tables that line up in a terminal, too."""

from __future__ import annotations

import re
from functools import lru_cache

from kleash.report.parts import (
    Cards,
    Cell,
    Code,
    Document,
    Figure,
    Gallery,
    Lines,
    Paragraph,
    Part,
    Stated,
    Table,
    clean,
)
from kleash.report.words import pad, width

BLANKS = re.compile(r"\s+")


def markdown_of(document: Document) -> str:
    """The whole report."""
    lines = [f"# {escaped(document.title)}"]
    lines += ["", escaped(document.facts)] if document.facts else []
    for section in document.sections:
        lines += ["", f"## {escaped(section.heading)}"]
        for part in section.parts:
            lines += ["", *_part(part)]
    return "\n".join(lines).rstrip() + "\n"


def _part(part: Part) -> list[str]:
    match part:
        case Paragraph(line):
            return [escaped(line)]
        case Stated(decision, why):
            return [escaped(decision), *(["", escaped(why)] if why else [])]
        case Cards(cards):
            said = [f"**{escaped(e.heading)}** {escaped(' '.join(e.lines))}" for e in cards]
            codes = [f" `{each.code}`" if each.code else "" for each in cards]
            return [f"- {text}{code}" for text, code in zip(said, codes, strict=True)]
        case Lines(lines, numbered):
            marks = [f"{n}." if numbered else "-" for n in range(1, len(lines) + 1)]
            return [f"{mark} {escaped(line)}" for mark, line in zip(marks, lines, strict=True)]
        case Table():
            return _table(part)
        case Figure(_, chart):
            return [f"*{escaped(chart.title)}*"]
        case Code(text):
            fence = "`" * max(3, 1 + max(map(len, re.findall("`+", text)), default=0))
            return [fence, *text.splitlines(), fence]
        case Gallery(entries):
            said = ["; ".join(map(escaped, each.lines)) for each in entries]
            return [f"- **{escaped(e.label)}**: {t}" for e, t in zip(entries, said, strict=True)]


def _table(table: Table) -> list[str]:
    rows = [list(map(escaped, table.head)), *(list(map(_cell, row)) for row in table.rows)]
    columns: list[list[str]] = []
    for at, texts in enumerate(zip(*rows, strict=True)):
        size, right = max(3, *map(width, texts)), at >= table.left
        dashes = "-" * (size - 1) + ":" if right else "-" * size
        head, *cells = (pad(text, size, right=right) for text in texts)
        if any(texts):  # a column of pictures has no words
            columns.append([head, dashes, *cells])
    lines = ["| " + " | ".join(row) + " |" for row in zip(*columns, strict=True)]
    lines += ["", escaped(table.below)] if table.below else []
    if table.folded:
        start = f"<details><summary>{escaped(table.caption)}</summary>"
        return [start, "", *lines, "", "</details>"]
    return [f"*{escaped(table.caption)}*", "", *lines] if table.caption else lines


def _cell(cell: Cell) -> str:
    if isinstance(cell, str):
        return escaped(cell)
    text = escaped(cell.text)
    return f"**{text}**" if cell.strong else text


@lru_cache(maxsize=65_536)
def escaped(text: str) -> str:
    """On one line, and nothing in it taken for markup or HTML; blanks at its ends stay."""
    text = BLANKS.sub(" ", clean(text))
    for mark in ("\\", "`", "*", "|", "<"):
        text = text.replace(mark, "&lt;" if mark == "<" else f"\\{mark}")
    return text.replace("](", "]\\(").replace("][", "]\\[")
