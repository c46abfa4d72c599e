"""Intervals and what they are of: an estimate lies inside its own, and mostly in its middle.

And no least of a row is more than its greatest.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from kleash.documents.marks import Mark
from kleash.imports import Table
from kleash.imports.markdown.text import bare, plain
from kleash.written.made.parts import Part, parts_of

LEAST = 2  # intervals of a column that have their estimate inside
MIDDLE = 3  # those that have it in their middle, before one that has not is wrong
_BOUND = r"([+-]?\d+(?:\.\d+)?)\s?%?"
_INTERVAL = re.compile(rf"[\[(]\s?{_BOUND}\s?(?:[,;~–—]|to|\.\.)\s?{_BOUND}\s?[\])]")
_ENDS = tuple(
    (re.compile(least), re.compile(greatest))
    for least, greatest in (
        (r"最[低小]值?", r"最[高大]值?"),
        (r"最早\S{0,4}", r"最[晚迟]\S{0,4}"),
        (r"min(?:imum)?|lowest|smallest", r"max(?:imum)?|highest|largest"),
        (r"earliest(?: \w+)?", r"latest(?: \w+)?"),
        (r"lower(?: bound)?|下[限界]", r"upper(?: bound)?|上[限界]"),
    )
)
_EXCLUDES = re.compile(r"exclud|不含|排除|不包含", re.I)
_YES, _NO = re.compile(r"yes|y|是|✓|✔|✅", re.I), re.compile(r"no|n|否|✗|✘|❌", re.I)


@dataclass(frozen=True)
class Interval:
    """A row with an interval and the number that it is of."""

    line: int
    low: float
    high: float
    half: float
    """Half a unit of the last digit of its ends."""
    estimate: Part
    row: Sequence[str]

    @property
    def inside(self) -> bool:
        room = self.half + self.estimate.half
        return self.low - room <= self.estimate.value <= self.high + room

    @property
    def off(self) -> float:
        """By how many units of rounding an estimate is off the middle."""
        gap = abs(self.estimate.value - (self.low + self.high) / 2)
        return gap / (self.half + self.estimate.half)


def false_intervals(tables: Sequence[Table]) -> Iterator[Mark]:
    """Estimates outside their intervals or off their middle, and what is said of 0 in them."""
    for table in tables:
        for column in range(1, len(table.header)):
            tried = [list(_intervals(table, column, left)) for left in range(column, -1, -1)]
            found = max(tried, key=lambda every: sum(one.inside for one in every))
            inside = [one for one in found if one.inside]
            if len(inside) < LEAST or 2 * len(inside) < len(found):
                continue
            for one in found:
                if not one.inside:
                    yield _mark(one, "check.outside", {})
            yield from _off_middle(inside)
            yield from _zero(table, found)


def false_ends(tables: Sequence[Table]) -> Iterator[Mark]:
    """Rows whose least is more than their greatest."""
    for table in tables:
        for least, greatest in _ENDS:
            low, high = (
                [at for at, title in enumerate(table.header) if words.fullmatch(_title(title))]
                for words in (least, greatest)
            )
            if len(low) != 1 or len(high) != 1:
                continue
            for line, row in zip(table.lines, table.rows, strict=True):
                ours, theirs = (
                    parts_of(row[at]).get("") if at < len(row) else None for at in (low[0], high[0])
                )
                if ours and theirs and ours.value > theirs.value:
                    text = f"{ours.text}, {theirs.text}"
                    yield Mark(line, text, "wrong", "check.exchanged", {}, "ends")


def _title(text: str) -> str:
    return bare(plain(text)).casefold().strip(" *")


def _intervals(table: Table, column: int, left: int) -> Iterator[Interval]:
    """The intervals of a column, each with the number before it in its cell, or in another."""
    for line, row in zip(table.lines, table.rows, strict=True):
        text = bare(plain(row[column])).replace("−", "-") if column < len(row) else ""
        match = _INTERVAL.search(text)
        if match is None or text[match.end() :].strip(" *†‡"):
            continue
        before = text[: match.start()].strip()
        estimate = parts_of(before if left == column else row[left]).get("")
        low, high = float(match[1]), float(match[2])
        if estimate is not None and low <= high and estimate.decimals > 0:
            half = 0.5 * 10.0 ** -len(match[1].partition(".")[2])
            yield Interval(line, low, high, half, estimate, row)


def _off_middle(inside: Sequence[Interval]) -> Iterator[Mark]:
    """Estimates that are not the middle of their interval where all others are."""
    odd = [one for one in inside if one.off > 1 + 1e-6]
    if len(odd) == 1 and len(inside) - 1 >= MIDDLE and odd[0].off > LEAST:
        middle = (odd[0].low + odd[0].high) / 2
        shown = f"{middle:{'+' if odd[0].estimate.signed else ''}.{odd[0].estimate.decimals}f}"
        yield _mark(odd[0], "check.off-middle", {"value": shown})


def _zero(table: Table, found: Sequence[Interval]) -> Iterator[Mark]:
    """Cells that say whether an interval leaves out 0, against the interval."""
    columns = [at for at, title in enumerate(table.header) if _EXCLUDES.search(bare(title))]
    for one in found:
        for at in columns:
            said = bare(plain(one.row[at])).strip(" *") if at < len(one.row) else ""
            excludes = one.low > 0 or one.high < 0
            if (_YES if not excludes else _NO).fullmatch(said):
                facts: dict[str, object] = {"low": f"{one.low:g}", "high": f"{one.high:g}"}
                yield Mark(one.line, said, "wrong", "check.zero", facts, f"{at} zero")


def _mark(one: Interval, code: str, facts: dict[str, object]) -> Mark:
    facts = {"low": f"{one.low:g}", "high": f"{one.high:g}", **facts}
    return Mark(one.line, one.estimate.text, "wrong", code, facts, f"interval {one.estimate.text}")
