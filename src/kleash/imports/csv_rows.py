"""CSV and TSV with a header: any table of numbers, and what TensorBoard and W&B let one download.

The delimiter is the one of `, ; tab` that the header has most of. Empty, `?`, `-`, `N/A` and `null`
are missing. Decimals are kept as printed, so that checks can allow for rounding.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from pathlib import Path

from kleash.errors import DataError
from kleash.imports import Source
from kleash.imports.gather import LINE, head, printed, raw_lines
from kleash.imports.rows import Value, layout, read_rows

MISSING = {"", "?", "-", "—", "n/a", "na", "null", "none"}
PERCENT = re.compile(r"[-+]?[\d.]+\s*[%％]")
WIDTH = 10_000  # columns


def fits(path: Path) -> bool:
    """A text file with a header of two or more names and a number below it."""
    if not path.is_file() or path.suffix.lower() not in (".csv", ".tsv", ".tab"):
        return False
    return b"\0" not in head(path)


def read(path: Path) -> Source:
    """The runs that the rows are about."""
    source = Source(str(path), "csv")
    header, rows = table(path, source.notes)
    plan = layout(header)
    if plan.kind == "series" and plan.value and len(header) <= 3:
        # `Wall time,Step,Value`, as TensorBoard writes it: the file's name is the metric's.
        rows = ((line, _renamed(row, plan.value or "", path.stem)) for line, row in rows)
    read_rows(path, "csv", rows, plan, source)
    if not any(run.series or run.scores or run.cells for run in source.runs):
        raise DataError(f"{path} holds no rows with numbers under {header[:8]}")
    return source


def _renamed(row: dict[str, Value], old: str, name: str) -> dict[str, Value]:
    return {name if key == old else key: value for key, value in row.items()}


def table(path: Path, notes: list[str]) -> tuple[list[str], Iterator[tuple[int, dict[str, Value]]]]:
    """The names of the columns, and the rows with their lines."""
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
    return header, _values(path, header, records, notes)


def _values(
    path: Path, header: list[str], records: Iterator[tuple[int, list[str]]], notes: list[str]
) -> Iterator[tuple[int, dict[str, Value]]]:
    for line, parts in records:
        if not any(part.strip() for part in parts):
            continue
        if len(parts) != len(header):
            raise DataError(
                f"{path} line {line} has {len(parts)} columns, the header {len(header)}: "
                "numbers could stand under the wrong name"
            )
        named = zip(header, parts, strict=True)
        yield line, {name: value(part) for name, part in named if name}


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
    current = [0]

    def lines() -> Iterator[str]:
        for line, raw in raw_lines(path):
            current[0] = line
            if not raw.endswith(b"\n"):
                notes.append(f"{path} line {line} has no end: its last number may be cut off")
            try:
                yield raw.decode("utf-8-sig" if line == 1 else "utf-8")
            except UnicodeDecodeError:
                raise DataError(f"{path} line {line} is not UTF-8 text") from None

    csv.field_size_limit(LINE)
    reader = csv.reader(lines(), delimiter=delimiter)
    begun = 1
    try:
        for parts in reader:
            yield begun, parts
            begun = current[0] + 1
    except csv.Error as error:
        raise DataError(f"{path} line {begun}: {error}") from None
