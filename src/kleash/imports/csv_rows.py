"""CSV and TSV with a header: any table of numbers, and what TensorBoard and W&B let one download.

The delimiter is the one of `, ; tab` that the header has most of. Empty, `?`, `-`, `N/A` and `null`
are missing. Decimals are kept as printed, so that checks can allow for rounding.
"""

from __future__ import annotations

import csv
import re
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import replace
from io import StringIO
from itertools import islice
from pathlib import Path

import numpy as np

from kleash.errors import DataError
from kleash.imports import Source
from kleash.imports.gather import LINE, head, printed, raw_blocks
from kleash.imports.layouts import layout
from kleash.imports.rows import read_tables
from kleash.imports.stretches import Form, Numbers, Stretch, Value, one_by_one

MISSING = {"", "?", "-", "—", "n/a", "na", "null", "none"}
PLAIN = bytes(ord(sign) for sign in "0123456789+-.eE\n")  # of numbers, a line each
EXPONENT = re.compile(r"[eE][-+]?\d{5}")  # longer than a number's can be: looked at one by one
PERCENT = re.compile(r"[-+]?[\d.]+\s*[%％]")
WIDTH = 10_000  # columns
DIGITS = 15  # a shorter text cannot hold as many as a float has
ROWS, ENTRIES = 4096, 200_000  # taken at a time, whichever is fewer


def fits(path: Path) -> bool:
    """A text file with a header of two or more names and a number below it."""
    if not path.is_file() or path.suffix.lower() not in (".csv", ".tsv", ".tab"):
        return False
    return b"\0" not in head(path)


def read(path: Path) -> Source:
    """The runs that the rows are about."""
    source = Source(str(path), "csv")
    header, stretches = _stretches(path, source.notes)
    plan = layout(header)
    if plan.kind == "series" and plan.value and len(header) <= 3:
        # `Wall time,Step,Value`, as TensorBoard writes it: the file's name is the metric's.
        header[header.index(plan.value)] = path.stem
    read_tables(path, "csv", stretches, plan, source)
    if not any(run.series or run.scores or run.cells for run in source.runs):
        raise DataError(f"{path} holds no rows with numbers under {header[:8]}")
    return source


def table(
    path: Path, notes: list[str], naming: Sequence[str] = ()
) -> tuple[list[str], Iterator[tuple[int, dict[str, Value]]]]:
    """The names of the columns, and the rows with their lines; `naming` are columns of names."""
    header, stretches = _stretches(path, notes)
    return header, (row for part in stretches for row in replace(part, naming=naming).rows())


def _stretches(path: Path, notes: list[str]) -> tuple[list[str], Iterator[Stretch]]:
    """The names of the columns, and the rows by the stretch."""
    records = _records(path, notes)
    first = next(records, None)
    if first is None:
        raise DataError(f"{path} is empty")
    header = [name.strip() for name in first[1]]
    if len(header) < 2 or len(header) > WIDTH:
        raise DataError(f"{path} has {len(header)} columns: not a table that is read here")
    if all(printed(name) for name in header):
        raise DataError(f"{path} has no header: its first line is {header[:5]}")
    twice = (
        {name for name in header if name and header.count(name) > 1}
        if len(header) < 1000
        else set()
    )
    if twice:
        raise DataError(f"{path} has two columns named {sorted(twice)[0]!r}")
    return header, _columns(path, header, records)


def _columns(
    path: Path, header: list[str], records: Iterator[tuple[int, list[str]]]
) -> Iterator[Stretch]:
    while some := list(islice(records, max(1, min(ROWS, ENTRIES // len(header))))):
        rows: list[list[str]] = []
        lines = array("q")
        for line, parts in some:
            if not parts or (not parts[0].strip() and not any(part.strip() for part in parts)):
                continue
            if len(parts) != len(header):
                raise DataError(
                    f"{path} line {line} has {len(parts)} columns, the header {len(header)}: "
                    "numbers could stand under the wrong name"
                )
            rows.append(parts)
            lines.append(line)
        if rows:
            named = zip(header, zip(*rows, strict=True), strict=True)
            columns: dict[str, Sequence[str]] = {name: held for name, held in named if name}
            yield Stretch(np.array(lines, dtype=np.int64), columns, FORM)


def numbers(parts: Sequence[str]) -> Numbers:
    """The numbers of a column: at once where all are plain or empty, else one by one."""
    held: Sequence[str] = parts
    rows = np.arange(len(parts))
    if "" in parts:
        rows = np.array([row for row, part in enumerate(parts) if part], dtype=np.intp)
        held = list(filter(None, parts))
    text = "\n".join(held)
    odd = not text.isascii() or text.encode().translate(None, PLAIN) or EXPONENT.search(text)
    if odd or text.count("\n") != len(held) - 1:
        return one_by_one(parts, value)
    try:
        values = np.array(list(map(float, held)))
    except ValueError:
        return one_by_one(parts, value)
    if not np.isfinite(values).all():
        return one_by_one(parts, value)
    longest = max(held, key=len)
    if len(longest) >= DIGITS:
        if _decimals(longest) is None:  # one number with all its digits is enough
            return Numbers(values, rows, coarse=False)
        return one_by_one(parts, value)
    whole, _, rest = longest.partition(".")
    decimals = len(rest)  # no fewer, and seldom more
    powers = [part for part in held if "e" in part or "E" in part] if "e" in text.lower() else []
    if powers:
        decimals = max(_decimals(part) or 0 for part in powers)
        text = "\n".join(part for part in held if "e" not in part and "E" not in part)
    # Where no number has fewer digits before its point, the longest has the most behind it.
    if powers or len(whole) > 1 or text.startswith(".") or "\n." in text:
        while re.search(rf"\.\d{{{decimals + 1}}}", text, re.ASCII):
            decimals += 1
    return Numbers(values, rows, decimals, coarse=True)


def _decimals(part: str) -> int | None:
    found = printed(part)
    return None if found is None else found[1]


def value(part: str) -> Value:
    """A field: a number with its decimals, nothing, or text."""
    part = part.strip()
    if part.lower() in MISSING:
        return None
    found = printed(part)
    if found is None and PERCENT.fullmatch(part):
        inner = printed(part.rstrip("%％ "))
        if inner is not None:
            decimals = None if inner[1] is None else inner[1] + 2
            return inner[0] / 100, decimals
    return part if found is None else found


def _records(path: Path, notes: list[str]) -> Iterator[tuple[int, list[str]]]:
    """Line number and fields of every record; a record in quotes may have several lines."""
    start = head(path, 65_536)
    first = start.removeprefix(b"\xef\xbb\xbf").split(b"\n", 1)[0]
    delimiter = max(",;\t", key=lambda sign: first.count(sign.encode()))

    def lines() -> Iterator[str]:
        for first, block in raw_blocks(path):
            try:
                text = block.decode("utf-8-sig" if first == 1 else "utf-8")
            except UnicodeDecodeError as error:
                line = first + block.count(b"\n", 0, error.start)
                raise DataError(f"{path} line {line} is not UTF-8 text") from None
            yield from StringIO(text, newline="\n")
            if not text.endswith("\n"):
                last = first + block.count(b"\n")
                notes.append(f"{path} line {last} has no end: its last number may be cut off")

    csv.field_size_limit(LINE)
    reader = csv.reader(lines(), delimiter=delimiter)
    begun = 1
    try:
        for parts in reader:
            yield begun, parts
            begun = reader.line_num + 1
    except csv.Error as error:
        raise DataError(f"{path} line {begun}: {error}") from None


FORM = Form("csv", value, numbers, str.strip)
