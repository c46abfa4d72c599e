"""Markdown as blocks with line numbers, and its text without marks.

Only what reports use: headings, pipe tables, list items, fenced code, paragraphs. A line that is
bold or ends in a colon heads what follows it, as a heading does. HTML is taken for text.
"""

from __future__ import annotations

import html
import re
import unicodedata
from dataclasses import dataclass, field
from functools import lru_cache

from kleash.compare.read.markdown.page import QUOTED, WIDEST, Page

LONGEST = 2_000  # characters of a line or cell that are looked at

_TAG = re.compile(r"</?[A-Za-z][^<>]{0,200}>|<!--.{0,500}?-->")
_LINK = re.compile(r"!?\[([^\[\]]{0,300})\]\([^()\s]{0,500}\)")
_STRUCK = re.compile(r"~~[^~]{1,200}~~")
_ITEM = re.compile(r"(\s{0,40})(?:[-*+•]|\d{1,3}[.)、])\s+(.*)")
_BOX = re.compile(r"\[([ xX✓✔])\]\s*(.*)")
_HEADING = re.compile(r"(#{1,6})\s+(.*?)\s*#*")
_UNDER = re.compile(r"(?:={3,}|-{3,})\s*")
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
    """Fenced code: its lines with their numbers."""

    lines: tuple[tuple[int, str], ...] = ()


@dataclass(frozen=True)
class Paragraph(Block):
    """A line of prose."""

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
class Outline:
    """The blocks of a page in order, all its headings, and notes on what is torn."""

    page: Page
    blocks: list[Block] = field(default_factory=list)
    titles: list[Heading] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    headings: tuple[Heading, ...] = ()
    lead: str = ""
    parents: list[tuple[int, str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        nth, last = 1, len(self.page.lines)
        while nth <= last:
            nth = self._read(nth) + 1

    def line(self, nth: int) -> str:
        """A line without marks of quotes, as much of it as is looked at."""
        return QUOTED.sub("", self.page.line(nth)[: 50 * LONGEST].removeprefix("\ufeff"), count=1)

    def _read(self, nth: int) -> int:
        """Read the block that begins at a line; the line at which it ends."""
        line = self.line(nth)
        heading = _HEADING.fullmatch(line[:LONGEST].strip()) if line.startswith("#") else None
        if heading:
            self._head(nth, len(heading[1]), heading[2])
        elif nth in self.page.fences:
            return self._code(nth)
        elif self.page.rows.get(nth) == nth:
            return self._table(nth)
        elif not line.strip() or _RULE.fullmatch(line[:LONGEST]):
            # A blank line ends neither a list nor what a lead stands over; a rule ends both.
            if line.strip():
                self.lead, self.parents = "", []
        elif item := _ITEM.fullmatch(line[:LONGEST]):
            self._item(nth, len(item[1].expandtabs(4)), item[2])
        elif line.lstrip().startswith("|"):
            told = "a row outside any table (no row of dashes above it), left out"
            self.notes.append(f"line {nth}: {told}")
        elif _UNDER.fullmatch(self.page.line(nth + 1)[:LONGEST]) and not _is_lead(line):
            self._head(nth, 1 if self.page.line(nth + 1).startswith("=") else 2, line)
            return nth + 1
        else:
            self._prose(nth, line)
        return nth

    def _head(self, nth: int, level: int, text: str) -> None:
        above = (one for one in self.headings if one.level < level)
        self.headings = (*above, Heading(level, plain(text), nth))
        self.titles.append(self.headings[-1])
        self.lead, self.parents = "", []

    def _prose(self, nth: int, line: str) -> None:
        text = line.strip()[:LONGEST]
        indented = line.startswith((" ", "\t")) and self.parents
        if not indented:
            self.parents = []
        self.blocks.append(Paragraph(nth, self.headings, self.lead, text))
        if _is_lead(text) and not indented:
            self.lead = plain(text)

    def _item(self, nth: int, indent: int, text: str) -> None:
        while self.parents and self.parents[-1][0] >= indent:
            self.parents.pop()
        box = _BOX.fullmatch(text)
        body, mark = (box[2], box[1].strip().casefold()) if box else (text, None)
        parents = tuple(parent for _, parent in self.parents[-8:])
        self.blocks.append(Item(nth, self.headings, self.lead, body, parents, mark))
        self.parents.append((indent, plain(body)))

    def _code(self, nth: int) -> int:
        end, last = self.page.fences[nth], len(self.page.lines)
        if end > last:
            self.notes.append(f"line {nth}: code that is never closed, read to the end")
        lines = tuple((at, self.page.line(at)[:LONGEST]) for at in range(nth + 1, end))
        self.blocks.append(Code(nth, self.headings, self.lead, lines))
        return end

    def _table(self, nth: int) -> int:
        last = nth + 2
        while self.page.rows.get(last) == nth:
            last += 1
        head, *rows = (self._cells(at) for at in (nth, *range(nth + 2, last)))
        for at, cells in enumerate(rows, nth + 2):
            if len(cells) != len(head):
                self.notes.append(f"line {at}: {len(cells)} cells under {len(head)} columns")
        header = tuple(head[:WIDEST])
        wide = tuple(tuple((row + [""] * len(header))[: len(header)]) for row in rows)
        lines = tuple(range(nth + 2, last))
        self.blocks.append(Grid(nth, self.headings, self.lead, header, wide, lines))
        return last - 1

    def _cells(self, nth: int) -> list[str]:
        return [plain(cell.replace("\\|", "|")) for cell in self.page.row(nth)]


def _is_lead(line: str) -> bool:
    text = line.strip()
    return text.startswith("**") or text.endswith((":", "："))
