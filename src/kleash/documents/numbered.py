"""A report with an address on every number, so that a formula can speak of it.

A cell is the letter of its column and the line of the page: `C37`, and `C37.2` its second number. A
number elsewhere is `n52.3`: the third of line 52. Columns are counted as printed, from A.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from string import ascii_uppercase

from kleash.documents.page import Page, Span

LARGEST, MOST_DECIMALS = 1e15, 15  # what is beyond is an identifier, or a slip of the keyboard
_NUMBER = re.compile(
    r"(?<![A-Za-z0-9_.#^])(?:(?<![\w)%~-])(?P<sign>[+−-]))?"
    r"(?P<digits>\d{1,3}(?:,\d{3})+(?:\.\d+)?(?![\d])|\d+(?:\.\d+)?)(?P<power>e[+-]?\d{1,3})?"
    r"(?![\d_]|\.\d|[A-Za-z]*/[A-Za-z])(?P<share>\s?[%％](?!\s?个?百分点))?"
)
_ITEM = re.compile(r"\s*(?:>\s*)*(?:#+\s*|[-*+]\s+)*(?:\d{1,3}[.)、]\s|\*\*\d{1,2}\.)?")
_RULE = re.compile(r"\s*\|?\s*:?-{2,}[\s|:-]*")
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
    def half(self) -> float:
        """Half a unit of its last digit."""
        return 0.5 * 10.0**-self.decimals


class Addresses:
    """Every number of a page by its address, and the page as one who is asked sees it."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.count = len(page.lines)

    @cached_property
    def rules(self) -> set[int]:
        """The lines under the titles of tables."""
        return {
            nth
            for nth in range(2, self.count + 1)
            if _RULE.fullmatch(self.page.line(nth))
            and "|" in self.page.line(nth)
            and "|" in self.page.line(nth - 1)
        }

    @cached_property
    def rows(self) -> dict[int, int]:
        """The rows of tables, titles too, each with the line of its titles."""
        found = dict[int, int]()
        for rule in sorted(self.rules):
            found[rule - 1] = rule - 1
            nth = rule + 1
            while nth <= self.count and "|" in self.page.line(nth):
                found[nth] = rule - 1
                nth += 1
        return found

    @cached_property
    def numbers(self) -> dict[str, Numbered]:
        """By address."""
        found = [
            one
            for line in range(1, self.count + 1)
            if line not in self.rules
            for one in (self._cells(line) if line in self.rows else self._prose(line))
        ]
        columns = {self._column(one) for one in found if one.is_signed} - {None}
        return {
            one.address: replace(one, is_signed=one.is_signed or self._column(one) in columns)
            for one in found
        }

    def on(self, line: int) -> list[Numbered]:
        """The numbers of a line, in their order."""
        return self._by_line.get(line, [])

    @cached_property
    def _by_line(self) -> dict[int, list[Numbered]]:
        found = dict[int, list[Numbered]]()
        for one in self.numbers.values():
            found.setdefault(one.line, []).append(one)
        return found

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
        lines = range(one[1], other[1] + 1)
        if one[0] == "n":
            same = one[1] == other[1]
            nths = range(one[2], other[2] + 1) if same else (one[2],)
            named = [f"n{line}.{nth}" for line in lines for nth in nths]
            return [address for address in named if address in self.numbers]
        columns = range(column_at(one[0]), column_at(other[0]) + 1)
        ends = {one[1], other[1]}  # titles between are no part of a column
        own = [at for at in lines if self.rows.get(at) in tables - ({at} - ends)]
        return [_cell(at, line, one[2]) for line in own for at in columns]

    def shown(self, line: int) -> str:
        """A line as it is shown to whoever puts its claims into formulas."""
        if line in self.rows:
            spans = self.page.cells(line)
            cells = [f"{column_name(nth)}: {self._text(span)}" for nth, span in enumerate(spans)]
            return f"{line} | {' | '.join(cells)}"
        text, shift = self.page.line(line), 0
        for one, (_, end) in self._found(line):
            tag = f"⟨{one.address}⟩"
            text = text[: end + shift] + tag + text[end + shift :]
            shift += len(tag)
        return f"{line} {text}"

    def _text(self, span: Span) -> str:
        return self.page.text[slice(*span)]

    def _cells(self, line: int) -> Iterator[Numbered]:
        for nth, span in enumerate(self.page.cells(line)):
            text = self._text(span)
            for at, match in enumerate(_NUMBER.finditer(_blanked(text)), 1):
                one = _numbered(_cell(nth, line, at), line, text, match)
                if one.is_plain:
                    yield one

    def _prose(self, line: int) -> Iterator[Numbered]:
        return (one for one, _ in self._found(line))

    def _found(self, line: int) -> Iterator[tuple[Numbered, Span]]:
        text = self.page.line(line)
        item = _ITEM.match(text)
        matches = _NUMBER.finditer(_blanked(text), item.end() if item else 0)
        for at, match in enumerate(matches, 1):
            one = _numbered(f"n{line}.{at}", line, text, match)
            if one.is_plain:
                yield one, match.span()


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
