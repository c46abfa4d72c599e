"""A report as its bytes: lines, the places of cells in them, and edits that touch nothing else.

Text is only ever put back in the encoding it came in, and only if that gives back the same bytes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path

from kleash.errors import DataError

# What a text may be encoded in, in the order in which `imports.markdown` reads it.
MARKS = {b"\xff\xfe": "utf-16-le", b"\xfe\xff": "utf-16-be"}
ENCODINGS = (("utf-8", "strict"), ("gb18030", "strict"), ("utf-8", "surrogateescape"))
_ROW = re.compile(r"(?:\s{0,3}(?:>\s?){1,5})?\s*\|?(.*?)(?:(?<!\\)\|)?\s*\Z", re.S)
_BORDER = re.compile(r"(?<!\\)\|")
Span = tuple[int, int]


@dataclass(frozen=True)
class Page:
    """The text of a report, and how it was encoded."""

    path: Path
    text: str
    encoding: str
    errors: str = "strict"

    def bytes(self, text: str | None = None) -> bytes:
        """A text in the report's own encoding; its own where none is given."""
        return (self.text if text is None else text).encode(self.encoding, self.errors)

    @property
    def language(self) -> str:
        """The language of a report: Chinese, if one letter in ten is."""
        letters = sum(map(str.isalpha, self.text))
        chinese = sum("\u4e00" <= letter <= "\u9fff" for letter in self.text)
        return "zh" if 10 * chinese > letters else "en"

    @cached_property
    def lines(self) -> list[Span]:
        """Where every line begins and ends, without what ends it."""
        found, at = list[Span](), 0
        for line in self.text.splitlines(keepends=True):
            bare = line.splitlines()[0]
            found.append((at, at + len(bare)))
            at += len(line)
        return found

    def line(self, nth: int) -> str:
        """The text of a line, counted from 1; nothing beyond the last."""
        return self.text[slice(*self.lines[nth - 1])] if 0 < nth <= len(self.lines) else ""

    def cells(self, line: int) -> list[Span]:
        """The places of a table row's cells, without the blanks around them; lines count from 1."""
        start, end = self.lines[line - 1]
        row = self.text[start:end]
        body = _ROW.match(row)
        begin, last = body.span(1) if body else (0, len(row))
        borders = (match.start() for match in _BORDER.finditer(row, begin, last))
        found = []
        for left, right in pairwise([begin - 1, *borders, last]):
            inner = row[left + 1 : right]
            first = start + right - len(inner.lstrip())
            found.append((first, first + len(inner.strip())))
        return found


def read_page(path: Path) -> Page:
    """A report's text, so that it can be written back byte for byte."""
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror}") from None
    marked = MARKS.get(raw[:2])
    for encoding, errors in [(marked, "strict")] if marked else ENCODINGS:
        try:
            page = Page(path, raw.decode(encoding, errors), encoding, errors)
        except UnicodeDecodeError:
            continue
        if page.bytes() == raw:
            return page
    raise DataError(f"{path}: its encoding cannot be kept; save it as UTF-8")


def edited(page: Page, edits: Mapping[Span, str]) -> str:
    """The text with some spans replaced, each where it stood."""
    made, at = list[str](), 0
    for (start, end), new in sorted(edits.items()):
        if start < at:
            raise ValueError(f"two edits overlap at {start}")
        made += [page.text[at:start], new]
        at = end
    return "".join([*made, page.text[at:]])


def percent(text: str) -> str:
    """The percent sign of a number, with the blank before it; '' where it has none."""
    found = re.search(r"[ \u00a0\u202f]?[%％]", text)
    return found.group() if found else ""
