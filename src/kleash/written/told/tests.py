"""Tests that a report gives and its tables show: over the seeds of a column, or of two."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import combinations
from math import sqrt
from statistics import fmean, stdev, variance

from kleash.imports.markdown.text import bare
from kleash.stats.special import stdtr
from kleash.written.book import Book
from kleash.written.made.boards import SUMMARY
from kleash.written.marks import Mark
from kleash.written.prose import Sentence

SEEDS = (3, 20)  # rows that may be seeds
ENDLESS = 1e9  # degrees of freedom: no t has a smaller p
ROUGHLY = 0.4  # of the least p: half of it is one-sided, and t is rounded
_T = re.compile(r"(?<![a-z])t\s?=\s?(-?\d+\.\d+)")
_P = re.compile(r"(?<![a-z])p(?:[ -]?value)?\s?([<=≈])\s?(0?\.\d+)")
_CALLED = re.compile(r"p(?:[ -]?values?|\s?值)?(?:\s?[(（].*[)）])?", re.I)
_FREEDOM = re.compile(r"(?:df|自由度|degrees of freedom)\D{0,6}(\d+(?:\.\d+)?)")


def is_shown(book: Book, sentence: Sentence, text: str) -> bool:
    """Whether a p-value is that of the t beside it, and a table gives both over its rows."""
    given, p = _T.search(sentence.plain), _P.search(text.casefold())
    if given is None or p is None or p[1] != "=":
        return False
    return any(
        _prints(given[1], abs(t)) and _prints(p[2], 2 * float(stdtr(df, -abs(t))))
        for t, df in _tests(book)
    )


def false_values(every: Sequence[Sentence]) -> Iterator[Mark]:
    """p-values below what the t beside them can have, however many runs there were."""
    for sentence in every:
        given = _T.findall(sentence.plain)
        if len(given) != 1:
            continue
        t, freedom = abs(float(given[0])), _FREEDOM.search(sentence.plain)
        least = 2 * float(stdtr(float(freedom[1]) if freedom else ENDLESS, -t))
        for one in _P.finditer(sentence.plain):
            if float(one[2]) < ROUGHLY * least:
                facts = {"word": one.group(), "test": f"t = {given[0]}"}
                line = sentence.line(one.start())
                yield Mark(line, one.group(), "wrong", "check.against-test", facts, "test")


def unborne(book: Book, every: Sequence[Sentence]) -> Iterator[Mark]:
    """p-values below a limit, where a report has tables of p-values, or t, and none of them is."""
    known = [*_in_tables(book), *(p for one in every for p in _told(one))]
    for sentence in every if known else ():
        for one in () if _T.search(sentence.plain) else _P.finditer(sentence.plain):
            if one[1] == "<" and min(known) >= float(one[2]):
                facts = {"text": sentence.text}
                line = sentence.line(one.start())
                yield Mark(line, one.group(), "unsupported", "check.test", facts, "test")


def _in_tables(book: Book) -> Iterator[float]:
    """The p-values of columns and rows that are called so."""
    for sheet in book.sheets:
        for cell in sheet.cells:
            titles = (sheet.table.header[cell.column], sheet.table.rows[cell.row][0])
            if any(_CALLED.fullmatch(bare(title).strip()) for title in titles):
                yield abs(cell.figure.value)


def _told(sentence: Sentence) -> Iterator[float]:
    """The p-values of the t of a sentence that has their freedom."""
    for freedom in _FREEDOM.findall(sentence.plain)[:1]:
        for t in _T.findall(sentence.plain):
            yield 2 * float(stdtr(float(freedom), -abs(float(t))))


def _prints(text: str, value: float) -> bool:
    """Whether a value may be printed so, taken before or after the rounding of a table."""
    half = 0.5 * 10.0 ** -len(text.partition(".")[2])
    return abs(abs(float(text)) - value) <= max(2 * half, 0.02 * value)


def _tests(book: Book) -> Iterator[tuple[float, float]]:
    """The t and its freedom of every column against 0, and of every two: paired, and Welch's."""
    for sheet in book.sheets:
        rows = {r for r, names in enumerate(sheet.table.rows) if not SUMMARY.search(names[0])}
        columns: dict[int, dict[int, float]] = {}
        for cell in sheet.cells:
            if cell.row in rows and not cell.part:
                columns.setdefault(cell.column, {})[cell.row] = cell.figure.value
        whole = [list(c.values()) for c in columns.values() if SEEDS[0] <= len(c) <= SEEDS[1]]
        for values in whole:
            yield from _against_zero(values)
        for ours, theirs in combinations(whole, 2):
            if len(ours) == len(theirs):
                yield from _against_zero([a - b for a, b in zip(ours, theirs, strict=True)])
            yield from _welch(ours, theirs)


def _against_zero(values: Sequence[float]) -> Iterator[tuple[float, float]]:
    spread = stdev(values)
    if spread:
        yield fmean(values) / spread * sqrt(len(values)), len(values) - 1


def _welch(ours: Sequence[float], theirs: Sequence[float]) -> Iterator[tuple[float, float]]:
    a, b = variance(ours) / len(ours), variance(theirs) / len(theirs)
    if a and b:
        df = (a + b) ** 2 / (a**2 / (len(ours) - 1) + b**2 / (len(theirs) - 1))
        yield (fmean(ours) - fmean(theirs)) / sqrt(a + b), df
