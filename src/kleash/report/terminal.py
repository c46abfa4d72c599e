"""A document as plain text for a terminal of so many columns; Chinese characters take two."""

from __future__ import annotations

import re
from collections.abc import Sequence

from kleash.report.parts import (
    Cards,
    Code,
    Document,
    Figure,
    Gallery,
    Lines,
    Paragraph,
    Part,
    Section,
    Stated,
    Table,
    clean,
    text_of,
)
from kleash.report.words import cut, pad, width

MARKS = ("✗ ", "! ", "· ")
"""What some lines begin with themselves."""
NARROWEST = 10  # columns of a cell that is cut into lines
BETWEEN = "  "
TIED = "\u00a0"
INTERVAL = re.compile(r"\[[^\]]*\]")


def terminal_of(document: Document, columns: int = 100) -> str:
    """The whole report, but for what is folded."""
    lines = cut(clean(document.title), columns)
    lines += cut(clean(document.facts), columns) if document.facts else []
    for section in document.sections:
        if not section.folded:
            lines += ["", *([clean(section.heading)] if section.heading else [])]
            lines += [row for rows in rows_of(section, columns) for row in rows]
    return "\n".join(line.rstrip() for line in lines).rstrip()


def rows_of(section: Section, columns: int) -> list[list[str]]:
    """The rows of each line or block of a section."""
    return [rows for part in section.parts for rows in _rows(part, columns)]


def _rows(part: Part, columns: int) -> list[list[str]]:
    match part:
        case Paragraph(line):
            return [_marked("", line, columns)]
        case Stated(decision, why):
            return [_marked("", line, columns) for line in (decision, why) if line]
        case Cards(cards):
            said = [(f"{e.heading} {' '.join(e.lines)}", e.code) for e in cards]
            return [
                _marked("- ", text, columns) + ([f"    {code}"] if code else [])
                for text, code in said
            ]
        case Lines(lines, numbered):
            marks = [f"{n}. " if numbered else _mark(line) for n, line in enumerate(lines, 1)]
            return [_marked(m, line, columns) for m, line in zip(marks, lines, strict=True)]
        case Table():
            return [["", *table(part, columns)]]
        case Figure(_, chart):
            return [_marked("- ", chart.title, columns)]
        case Code(text):
            return [[f"    {clean(line)}" for line in text.splitlines()]]
        case Gallery(entries):
            return [_marked("- ", "; ".join((e.label, *e.lines)), columns) for e in entries]


def _mark(line: str) -> str:
    return "  " if line.startswith(MARKS) else "- "


def _marked(mark: str, text: str, columns: int) -> list[str]:
    first, *rest = cut(clean(text), columns - width(mark))
    return [mark + first, *(" " * width(mark) + each for each in rest)]


def table(part: Table, columns: int) -> list[str]:
    """A table: the widest columns are cut into lines until all fit."""
    rows = [list(map(_whole, part.head)), *([_whole(text_of(c)) for c in row] for row in part.rows)]
    filled = [at for at, texts in enumerate(zip(*rows, strict=True)) if any(texts)]
    rows = [[row[at] for at in filled] for row in rows]
    sizes = [max(map(width, texts)) for texts in zip(*rows, strict=True)]
    while sum(sizes) + len(BETWEEN) * (len(sizes) - 1) > columns and max(sizes) > NARROWEST:
        sizes[sizes.index(max(sizes))] -= 1
    right = [at >= part.left for at in filled]
    head, *body = (_row(row, sizes, right) for row in rows)
    rule = BETWEEN.join("─" * size for size in sizes)
    title = cut(clean(part.caption), columns) if part.caption else []
    below = cut(clean(part.below), columns) if part.below else []
    return [*title, *head, rule, *(line for lines in body for line in lines), *below]


def _whole(text: str) -> str:
    """A text whose intervals are not cut."""
    return INTERVAL.sub(lambda found: found[0].replace(" ", TIED), clean(text))


def _row(cells: Sequence[str], sizes: Sequence[int], right: Sequence[bool]) -> list[str]:
    """The lines of one row."""
    sized = zip(cells, sizes, strict=True)
    made = [[line.replace(TIED, " ") for line in cut(cell, size)] for cell, size in sized]
    high = max(map(len, made), default=0)
    return [
        BETWEEN.join(
            pad(lines[at] if at < len(lines) else "", size, right=side)
            for lines, size, side in zip(made, sizes, right, strict=True)
        )
        for at in range(high)
    ]
