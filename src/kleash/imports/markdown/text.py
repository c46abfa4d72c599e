"""Markdown as blocks with line numbers, and its text without marks.

Only what reports use: headings, pipe tables, list items, fenced code, paragraphs. A line that is
bold or ends in a colon heads what follows it, as a heading does. HTML is taken for text.
"""

from __future__ import annotations

import html
import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache

LONGEST = 2_000  # characters of a line or cell that are looked at
WIDEST = 200  # columns of a table

_TAG = re.compile(r"</?[A-Za-z][^<>]{0,200}>|<!--.{0,500}?-->")
_LINK = re.compile(r"!?\[([^\[\]]{0,300})\]\([^()\s]{0,500}\)")
_STRUCK = re.compile(r"~~[^~]{1,200}~~")
_ITEM = re.compile(r"(\s{0,40})(?:[-*+•]|\d{1,3}[.)、])\s+(.*)")
_BOX = re.compile(r"\[([ xX✓✔])\]\s*(.*)")
_HEADING = re.compile(r"(#{1,6})\s+(.*?)\s*#*")
_FENCE = re.compile(r"\s{0,12}(`{3,}|~{3,})\s*([\w+-]{0,20}).*")
_RULE = re.compile(r"\s{0,3}(?:-{3,}|={3,}|\*{3,}|_{3,})\s*")
_TEX = (
    (re.compile(r"\\(?:text|math)?(?:bf|it|rm|tt|sf)\{([^{}]{0,100})\}"), r"\1"),
    (re.compile(r"\\(?:underline|mathbf|boldsymbol|emph|text)\{([^{}]{0,100})\}"), r"\1"),
    (re.compile(r"_?\{?\s?\\pm\s?([\d.]{1,12})\}?"), r" ± \1"),
    (re.compile(r"\\pm(?![a-z])"), "±"),
    (re.compile(r"\\beta(?![a-z])"), "β"),
    (re.compile(r"\\times(?![a-z])"), "×"),
    (re.compile(r"\\(?:to|rightarrow)(?![a-z])"), "→"),
    (re.compile(r"\\([%$_&#])"), r"\1"),
    (re.compile(r"\$"), ""),
)
_WIDE = str.maketrans({"，": ", ", "；": "; ", "−": "-", "–": "-", "‑": "-", "﹣": "-", "。": "。"})


@dataclass(frozen=True)
class Heading:
    """A heading, its level and its line."""

    level: int
    text: str
    line: int


@dataclass(frozen=True)
class Block:
    """A piece of a document under its headings, outermost first; `lead` is the line above it."""

    line: int
    headings: tuple[Heading, ...]
    lead: str = ""


@dataclass(frozen=True)
class Grid(Block):
    """A table: its header and rows, without marks, every row as wide as the header."""

    header: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()
    lines: tuple[int, ...] = ()


@dataclass(frozen=True)
class Item(Block):
    """An item of a list, with the items it stands under; `box` is the mark in its check-box."""

    text: str = ""
    parents: tuple[str, ...] = ()
    box: str | None = None


@dataclass(frozen=True)
class Code(Block):
    """Fenced code: the language it names, and its lines with their numbers."""

    language: str = ""
    lines: tuple[tuple[int, str], ...] = ()


@dataclass(frozen=True)
class Paragraph(Block):
    """A line of prose, or several that make one sentence."""

    text: str = ""


@lru_cache(maxsize=8192)
def plain(text: str) -> str:
    """Text without marks: emphasis, code, links, tags, and without what was struck out."""
    text = _STRUCK.sub("", html.unescape(text[:LONGEST]))
    text = _LINK.sub(r"\1", _TAG.sub(" ", text))
    text = re.sub(r"(?<!\w)__|__(?!\w)", "", text)
    if "\\" in text or text.count("$") > 1:
        for pattern, kept in _TEX:
            text = pattern.sub(kept, text)
    return re.sub(r"[*`\u200b\u200d\ufe0f\ufeff]", "", text).strip()


def fold(text: str) -> str:
    """Full-width digits, letters and punctuation as the usual ones."""
    return unicodedata.normalize("NFKC", text.translate(_WIDE))


def undecorated(text: str) -> str:
    """Text without emoji, ticks, stars and arrows that point up or down."""
    gone = ("So", "Sk", "Cf", "Cs", "Cn")
    kept = (c for c in text if unicodedata.category(c) not in gone and c not in "↑↓")
    return re.sub(r"\s+", " ", "".join(kept)).strip()


@lru_cache(maxsize=8192)
def bare(text: str) -> str:
    """Folded text without decorations."""
    return undecorated(fold(text))


@dataclass
class _Reader:
    lines: Sequence[str]
    blocks: list[Block] = field(default_factory=list)
    headings: list[Heading] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    lead: str = ""
    stack: list[tuple[int, str]] = field(default_factory=list)
    at: int = 0

    def under(self) -> tuple[tuple[Heading, ...], str]:
        return tuple(self.headings), self.lead

    def head(self, level: int, text: str) -> None:
        while self.headings and self.headings[-1].level >= level:
            self.headings.pop()
        self.headings.append(Heading(level, plain(text), self.at + 1))
        self.lead, self.stack = "", []


def blocks(text: str) -> tuple[list[Block], list[Heading], list[str]]:
    """The blocks of a document in order, all its headings, and notes on what is torn."""
    reader = _Reader([line[: 50 * LONGEST] for line in text.splitlines()])
    titles: list[Heading] = []
    while reader.at < len(reader.lines):
        line = re.sub(r"^\s{0,3}(?:>\s?){1,5}", "", reader.lines[reader.at])
        if heading := _HEADING.fullmatch(line[:LONGEST].strip()) if line.startswith("#") else None:
            reader.head(len(heading[1]), heading[2])
            titles.append(reader.headings[-1])
            reader.at += 1
        elif fence := _FENCE.fullmatch(line[:LONGEST]):
            _code(reader, fence[1], fence[2])
        elif "|" in line and _dashes(reader, reader.at + 1, line):
            _table(reader, line)
        elif not line.strip() or _RULE.fullmatch(line[:LONGEST]):
            # A blank line ends neither a list nor what a lead stands over; a rule ends both.
            if line.strip():
                reader.lead, reader.stack = "", []
            reader.at += 1
        else:
            titles += _line(reader, line)
    return reader.blocks, titles, reader.notes


def _line(reader: _Reader, line: str) -> list[Heading]:
    """A list item, a heading underlined, or a line of prose."""
    follow = reader.lines[reader.at + 1] if reader.at + 1 < len(reader.lines) else ""
    item = _ITEM.fullmatch(line[:LONGEST])
    if item:
        _item(reader, len(item[1].expandtabs(4)), item[2])
    elif line.lstrip().startswith("|"):
        reader.notes.append(
            f"line {reader.at + 1}: a row outside any table (no row of dashes above it), left out"
        )
    elif re.fullmatch(r"(?:={3,}|-{3,})\s*", follow[:LONGEST]) and not _is_lead(line):
        reader.head(1 if follow.startswith("=") else 2, line)
        reader.at += 2
        return [reader.headings[-1]]
    else:
        _prose(reader, line)
    reader.at += 1
    return []


def _is_lead(line: str) -> bool:
    text = line.strip()
    return text.startswith("**") or text.endswith((":", "："))


def _prose(reader: _Reader, line: str) -> None:
    text = line.strip()[:LONGEST]
    headings, lead = reader.under()
    indented = line.startswith((" ", "\t")) and reader.stack
    if not indented:
        reader.stack = []
    last = reader.blocks[-1] if reader.blocks else None
    goes_on = (
        isinstance(last, Paragraph)
        and last.headings == headings
        and reader.at > 0
        and reader.lines[reader.at - 1].strip()
        and not re.search(r"[。.!?！？:：;；*]\s*$", last.text)
        and not text.startswith("**")
        and len(last.text) + len(text) < LONGEST
    )
    if goes_on and isinstance(last, Paragraph):
        joined = f"{last.text} {text}"
        reader.blocks[-1] = Paragraph(last.line, last.headings, last.lead, joined)
        return
    reader.blocks.append(Paragraph(reader.at + 1, headings, lead, text))
    if _is_lead(text) and not indented:
        reader.lead = plain(text)


def _item(reader: _Reader, indent: int, text: str) -> None:
    while reader.stack and reader.stack[-1][0] >= indent:
        reader.stack.pop()
    headings, lead = reader.under()
    parents = tuple(parent for _, parent in reader.stack[-8:])
    box = _BOX.fullmatch(text)
    body = box[2] if box else text
    mark = box[1].strip().casefold() if box else None
    reader.blocks.append(Item(reader.at + 1, headings, lead, body, parents, mark))
    reader.stack.append((indent, plain(body)))


def _code(reader: _Reader, fence: str, language: str) -> None:
    headings, lead = reader.under()
    start, inside = reader.at, list[tuple[int, str]]()
    reader.at += 1
    while reader.at < len(reader.lines):
        line = reader.lines[reader.at]
        reader.at += 1
        if line.strip().startswith(fence) and not line.strip().strip(fence[0]):
            break
        inside.append((reader.at, line[:LONGEST]))
    else:
        reader.notes.append(f"line {start + 1}: code that is never closed, read to the end")
    reader.blocks.append(Code(start + 1, headings, lead, language.casefold(), tuple(inside)))


def split(line: str) -> list[str]:
    r"""The cells of a row; `\|` is a character and not a border."""
    inner = line.strip().removeprefix("|")
    inner = inner[:-1] if inner.endswith("|") and not inner.endswith("\\|") else inner
    cells = re.split(r"(?<!\\)\|", inner)
    return [cell.replace("\\|", "|").strip() for cell in cells]


def _dashes(reader: _Reader, at: int, header: str) -> bool:
    """Whether a line is the row of dashes under a header."""
    if at >= len(reader.lines):
        return False
    line = reader.lines[at]
    if "-" not in line or set(line.strip()) - set("|-: \t"):
        return False
    cells = split(line)
    return all(re.fullmatch(r":?-{1,200}:?", cell) for cell in cells) and len(cells) <= WIDEST


def _table(reader: _Reader, line: str) -> None:
    headings, lead = reader.under()
    start = reader.at
    header = [plain(cell) for cell in split(line)][:WIDEST]
    rows, numbers = list[tuple[str, ...]](), list[int]()
    reader.at += 2
    while reader.at < len(reader.lines):
        body = re.sub(r"^\s{0,3}(?:>\s?){1,5}", "", reader.lines[reader.at])
        if not body.strip() or "|" not in body:
            break
        cells = [plain(cell) for cell in split(body)]
        reader.at += 1
        if len(cells) != len(header):
            had = f"{len(cells)} cells under {len(header)} columns"
            reader.notes.append(f"line {reader.at}: {had}")
        rows.append(tuple((cells + [""] * len(header))[: len(header)]))
        numbers.append(reader.at)
    grid = Grid(start + 1, headings, lead, tuple(header), tuple(rows), tuple(numbers))
    reader.blocks.append(grid)
