"""A report as it is printed: its text with tables and cells in their places, and every number.

A cell has the letter of its column and the line of the page for an address: `C37`, and `C37.2` is
its second number. A number elsewhere is `n52.3`: the third of line 52. Columns are counted as
printed, from A. Text is put back only in the encoding it came in, and where that gives the same
bytes. Left out: what anything means.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from string import ascii_uppercase
from typing import Literal

from kleash.errors import DataError

MARKS = {b"\xff\xfe": "utf-16-le", b"\xfe\xff": "utf-16-be"}
ENCODINGS = (("utf-8", "strict"), ("gb18030", "strict"), ("utf-8", "surrogateescape"))
WIDEST = 200  # columns of a table
QUOTED = re.compile(r"^\s{0,3}(?:>\s?){1,5}")
_FENCE = re.compile(r"\s{0,12}(`{3,}|~{3,}).*")
_DASHES = re.compile(r"\s*:?-+:?\s*")
_ROW = re.compile(rf"(?:{QUOTED.pattern})?\s*\|?(.*?)(?:(?<!\\)\|)?\s*\Z", re.S)
_BORDER = re.compile(r"(?<!\\)\|")
Span = tuple[int, int]


@dataclass(frozen=True)
class Page:
    """The text of a report, and how it was encoded."""

    path: Path
    text: str
    encoding: str = "utf-8"
    errors: str = "strict"

    @classmethod
    def of(cls, path: Path, raw: bytes) -> Page:
        """The text of bytes: UTF-8 or 16, else GB 18030, else what of UTF-8 can be read."""
        marked = MARKS.get(raw[:2])
        for encoding, errors in [(marked, "strict"), (marked, "replace")] if marked else ENCODINGS:
            try:
                page = cls(path, raw.decode(encoding, errors), encoding, errors)
            except UnicodeDecodeError:
                continue
            if page.bytes() == raw:
                break
        return page

    def bytes(self, text: str | None = None) -> bytes:
        """A text in the report's own encoding; its own where none is given."""
        return (self.text if text is None else text).encode(self.encoding, self.errors)

    @property
    def language(self) -> Literal["zh", "en", ""]:
        """The language of a report, by its letters."""
        chinese = len(re.findall(r"[\u4e00-\u9fff]", self.text))
        latin = len(re.findall(r"[A-Za-z]+", self.text))
        return "" if not chinese and not latin else "zh" if chinese > latin / 5 else "en"

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

    @cached_property
    def fences(self) -> dict[int, int]:
        """Where code begins, and the line that ends it: one beyond the last where none does."""
        found, begun, fence = dict[int, int](), 0, ""
        for nth in range(1, len(self.lines) + 1):
            line = self.line(nth)
            if not fence:
                match = _FENCE.fullmatch(line)
                begun, fence = nth, match[1] if match else ""
            elif line.strip().startswith(fence) and not line.strip().strip(fence[0]):
                found[begun], fence = nth, ""
        return found | ({begun: len(self.lines) + 1} if fence else {})

    @cached_property
    def rows(self) -> dict[int, int]:
        """The rows of tables, titles too, each with the line of its titles."""
        found, nth, last = dict[int, int](), 1, len(self.lines)
        while nth < last:
            if nth in self.fences:
                nth = self.fences[nth]
            elif "|" in self.line(nth) and self._is_rule(nth + 1):
                head, found[nth] = nth, nth
                nth += 2
                while "|" in self.line(nth):
                    found[nth] = head
                    nth += 1
                continue
            nth += 1
        return found

    def _is_rule(self, nth: int) -> bool:
        line = QUOTED.sub("", self.line(nth), count=1).strip()
        cells = line.strip("|").split("|")
        return "|" in line and len(cells) <= WIDEST and all(map(_DASHES.fullmatch, cells))

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

    def row(self, line: int) -> list[str]:
        """The texts of the cells of a row."""
        return [self.text[slice(*span)] for span in self.cells(line)]


def read_page(path: Path) -> Page:
    """A report's text, so that it can be written back byte for byte."""
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror}") from None
    page = Page.of(path, raw)
    if page.bytes() != raw:
        raise DataError(f"{path}: its encoding cannot be kept; save it as UTF-8")
    return page


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


LARGEST, MOST_DECIMALS = 1e15, 15  # what is beyond is an identifier, or a slip of the keyboard
_NUMBER = re.compile(
    r"(?<![A-Za-z0-9_.#^])(?:(?<![\w)%~-])(?P<sign>[+−-]))?"
    r"(?P<digits>\d{1,3}(?:,\d{3})+(?:\.\d+)?(?![\d])|\d+(?:\.\d+)?)(?P<power>e[+-]?\d{1,3})?"
    r"(?![\d_]|\.\d|[A-Za-z]*/[A-Za-z])(?P<share>\s?[%％](?!\s?个?百分点))?"
)
_ITEM = re.compile(r"\s*(?:>\s*)*(?:#+\s*|[-*+]\s+)*(?:\d{1,3}[.)、]\s|\*\*\d{1,2}\.)?")
_NAME = re.compile(  # a path, a file, "Qwen3-8B"
    r"`[^`]*(?:/|\.[a-z]{2,5})[^`]*`|(?<![\w/])(?:/[\w.-]+){2,}/?|(?<!\w)[A-Za-z][\w.]*-\d+[A-Za-z]?"
)
_ROUGH = re.compile(
    r"(?:约|大约|近|将近|(?:about|roughly|nearly|almost|around)\s)\s?\**$|[~≈]\s?\**$"
)


@dataclass(frozen=True)
class Numbered:
    """A number of a report: where it stands, as what, and how exactly it was printed."""

    address: str
    line: int
    text: str
    value: float
    decimals: int
    is_rough: bool = False
    is_signed: bool = False
    """Whether a sign would be printed if it had one: it has one, or others of its column have."""

    @property
    def is_plain(self) -> bool:
        """Whether it is of a size that anything was measured in."""
        return abs(self.value) < LARGEST and abs(self.decimals) <= MOST_DECIMALS

    @property
    def is_share(self) -> bool:
        """Whether it is printed as a percentage."""
        return self.text.endswith(("%", "％"))

    @property
    def printed(self) -> tuple[int, bool]:
        """How it is printed: with how many decimals, and whether as a percentage."""
        return self.decimals, self.is_share

    @property
    def half(self) -> float:
        """Half a unit of its last digit."""
        return 0.5 * 10.0**-self.decimals


class Addresses:
    """Every number of a page by its address, and the page as one who is asked sees it."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.count = len(page.lines)

    @cached_property
    def rows(self) -> dict[int, int]:
        """The rows of tables, titles too, each with the line of its titles."""
        return self.page.rows

    @cached_property
    def rules(self) -> set[int]:
        """The lines under the titles of tables."""
        return {head + 1 for head in self.rows.values()}

    @cached_property
    def numbers(self) -> dict[str, Numbered]:
        """By address."""
        every = (line for line in range(1, self.count + 1) if line not in self.rules)
        found = [one for line in every for one, _ in self._found(line)]
        columns = {self._column(one) for one in found if one.is_signed} - {None}
        return {
            one.address: replace(one, is_signed=one.is_signed or self._column(one) in columns)
            for one in found
        }

    @cached_property
    def values(self) -> dict[str, float]:
        """The numbers alone, by address."""
        return {address: one.value for address, one in self.numbers.items()}

    @cached_property
    def measured(self) -> dict[str, float]:
        """The same without estimates, which are no evidence."""
        return {at: value for at, value in self.values.items() if not self.numbers[at].is_rough}

    def on(self, line: int) -> list[Numbered]:
        """The numbers of a line, in their order."""
        return self._by_line.get(line, [])

    @cached_property
    def _by_line(self) -> dict[int, list[Numbered]]:
        found = defaultdict[int, list[Numbered]](list)
        for one in self.numbers.values():
            found[one.line].append(one)
        return dict(found)

    def _column(self, one: Numbered) -> tuple[int, str] | None:
        """The column of a table that a number is of, by the line of its titles."""
        letters, line, _ = place(one.address)
        return (self.rows[line], letters) if line in self.rows else None

    def between(self, first: str, last: str) -> list[str]:
        """The addresses from one to another: down a column, along a row, a block, or of lines.

        Cells that hold no number are among them, so that two ranges of a table stay side by side.
        """
        one, other = place(first), place(last)
        tables = {self.rows.get(one[1]), self.rows.get(other[1])} - {None}
        lines = range(one[1], min(other[1], self.count) + 1)
        if one[0] == "n":
            same = one[1] == other[1]
            most = max((len(self.on(line)) for line in lines), default=0)
            nths = range(one[2], min(other[2], most) + 1) if same else (one[2],)
            named = [f"n{line}.{nth}" for line in lines for nth in nths]
            return [address for address in named if address in self.numbers]
        columns = range(column_at(one[0]), column_at(other[0]) + 1)
        ends = {one[1], other[1]}  # titles between are no part of a column
        own = [at for at in lines if self.rows.get(at) in tables - ({at} - ends)]
        return [_cell(at, line, one[2]) for line in own for at in columns]

    def shown(self, line: int) -> str:
        """A line as it is shown to whoever puts its claims into formulas."""
        if line in self.rows:
            cells = enumerate(self.page.row(line))
            return f"{line} | {' | '.join(f'{column_name(nth)}: {text}' for nth, text in cells)}"
        text = self.page.line(line)
        for one, end in reversed(list(self._found(line))):
            text = f"{text[:end]}⟨{one.address}⟩{text[end:]}"
        return f"{line} {text}"

    def _found(self, line: int) -> Iterator[tuple[Numbered, int]]:
        """The numbers of a line, and where in it or in its cell each ends."""
        is_row = line in self.rows
        for nth, text in enumerate(self.page.row(line) if is_row else [self.page.line(line)]):
            item = None if is_row else _ITEM.match(text)
            matches = _NUMBER.finditer(_blanked(text), item.end() if item else 0)
            for at, match in enumerate(matches, 1):
                address = _cell(nth, line, at) if is_row else f"n{line}.{at}"
                one = _numbered(address, line, text, match)
                if one.is_plain:
                    yield one, match.end()


def _blanked(text: str) -> str:
    """A text without the numbers of paths and names."""
    return _NAME.sub(lambda match: " " * len(match[0]), text)


def _numbered(address: str, line: int, text: str, match: re.Match[str]) -> Numbered:
    digits, power = match["digits"].replace(",", ""), match["power"] or ""
    sign = "-" if match["sign"] in ("-", "−") else ""
    decimals = len(digits.partition(".")[2]) - int(power[1:] or 0)
    rough = bool(_ROUGH.search(text[: match.start()]))
    value = float(sign + digits + power)
    return Numbered(address, line, match[0].strip(), value, decimals, rough, bool(match["sign"]))


def column_name(nth: int) -> str:
    """A, B, …, Z, AA, AB, … of columns counted from 0."""
    head, last = divmod(nth, len(ascii_uppercase))
    return (column_name(head - 1) if head else "") + ascii_uppercase[last]


def column_at(name: str) -> int:
    """Which column has a name."""
    nth = 0
    for letter in name:
        nth = nth * len(ascii_uppercase) + ascii_uppercase.index(letter) + 1
    return nth - 1


def _cell(column: int, line: int, at: int) -> str:
    return f"{column_name(column)}{line}" + (f".{at}" if at > 1 else "")


def place(address: str) -> tuple[str, int, int]:
    """The column, or `n`, the line and which number of its cell or line an address names."""
    letters = address.rstrip("0123456789.")
    line, _, at = address[len(letters) :].partition(".")
    return letters, int(line), int(at or 1)
