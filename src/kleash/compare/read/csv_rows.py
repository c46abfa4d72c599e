"""CSV and TSV with a header: any table of numbers, and what TensorBoard and W&B let one download.

The delimiter is the one of `, ; tab` that the header has most of. Empty, `?`, `-`, `N/A` and `null`
are missing. Decimals are kept as printed, so that checks can allow for rounding.

A chart of W&B has `Step`, and for each run `<run> - <metric>` with its `__MIN` and `__MAX`, which
are left out: they repeat the value unless points were merged, and then that is noted. Its list of
runs has a row for each, and nothing tells settings from results: numbers are cells, words settings.
"""

from __future__ import annotations

import csv
import re
from array import array
from collections.abc import Iterator, Sequence
from io import StringIO
from itertools import islice, pairwise
from pathlib import Path

import numpy as np

from kleash.compare.read import Imported, Reader, Source, Where
from kleash.compare.read.gather import LINE, Axis, Numbers, Points, head, printed, raw_blocks
from kleash.compare.read.tables import (
    Form,
    Layout,
    Rows,
    Value,
    layout,
    one_by_one,
    read_table,
)
from kleash.errors import DataError

MISSING = {"", "?", "-", "—", "n/a", "na", "null", "none"}
PLAIN = bytes(ord(sign) for sign in "0123456789+-.\n")  # of numbers, a line each
PERCENT = re.compile(r"[-+]?[\d.]+\s*[%％]")
EXPONENT = re.compile(r"[eE][-+]?\d{5}")  # longer than a number's can be: looked at one by one
WIDTH = 10_000  # columns
DIGITS = 15  # a shorter text cannot hold as many as a float has
ROWS, ENTRIES = 4096, 200_000  # taken at a time, whichever is fewer
# Of tables downloaded from W&B:
AXES: dict[str, Axis] = {
    "step": "step", "epoch": "epoch", "relative time (process)": "time",
    "relative time (wall)": "time", "wall time": "time",
}  # fmt: skip
COLUMN = re.compile(r"(?P<run>.+?) - (?P<metric>.+?)(?P<end>__MIN|__MAX)?$")
LISTED = {"Name", "State"}


def fits(path: Path) -> bool:
    """A text file with a header of two or more names and a number below it."""
    if not path.is_file() or path.suffix.lower() not in (".csv", ".tsv", ".tab"):
        return False
    return b"\0" not in head(path)


def read(path: Path) -> Source:
    """The runs that the rows are about."""
    source = Source(str(path), "csv")
    header, parts = table(path, source.notes)
    plan = layout(header)
    if plan.kind == "series" and plan.value and len(header) <= 3:
        # `Wall time,Step,Value`, as TensorBoard writes it: the file's name is the metric's.
        header[header.index(plan.value)] = path.stem
    read_table(path, "csv", parts, plan, source)
    if not any(run.series or run.scores or run.cells for run in source.runs):
        raise DataError(f"{path} holds no rows with numbers under {header[:8]}")
    return source


def table(path: Path, notes: list[str]) -> tuple[list[str], Iterator[Rows]]:
    """The names of the columns, and the rows."""
    records = _records(path, notes)
    first = next(records, None)
    if first is None:
        raise DataError(f"{path} is empty")
    header = [name.strip() for name in first[1]]
    if len(header) < 2 or len(header) > WIDTH:
        raise DataError(f"{path} has {len(header)} columns: not a table that is read here")
    if all(printed(name) for name in header):
        raise DataError(f"{path} has no header: its first line is {header[:5]}")
    names = sorted(filter(None, header))
    for one, other in pairwise(names):
        if one == other:
            raise DataError(f"{path} has two columns named {one!r}")
    return header, _parts(path, header, records)


def _parts(
    path: Path, header: list[str], records: Iterator[tuple[int, list[str]]]
) -> Iterator[Rows]:
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
            every = np.arange(len(rows))
            named = zip(header, zip(*rows, strict=True), strict=True)
            columns = {name: (every, held) for name, held in named if name}
            yield Rows(np.array(lines, dtype=np.int64), columns, FORM)


def numbers(parts: Sequence[str]) -> Numbers:
    """The numbers of a column: at once where all are plain or empty, else one by one."""
    rows, held = np.arange(len(parts)), parts
    if "" in parts:
        rows = np.array([row for row, part in enumerate(parts) if part], dtype=np.intp)
        held = list(filter(None, parts))
    text = "\n".join(held)
    longest = max(held, key=len, default="")
    full = len(longest) >= DIGITS and (printed(longest) or (0, 0))[1] is None
    odd = not text.isascii() or bool(text.encode().translate(None, PLAIN + b"eE" * full))
    odd = odd or (full and bool(EXPONENT.search(text))) or (len(longest) >= DIGITS and not full)
    if odd or text.count("\n") != len(held) - 1:
        return one_by_one(parts, value)
    try:
        values = np.array(list(map(float, held)))
    except ValueError:
        return one_by_one(parts, value)
    if not np.isfinite(values).all():
        return one_by_one(parts, value)
    if full:  # one number with all its digits is enough
        return Numbers(values, rows, coarse=False)
    decimals = len(longest.partition(".")[2])  # seldom fewer than others have
    while re.search(rf"\.\d{{{decimals + 1}}}", text, re.ASCII):
        decimals += 1
    return Numbers(values, rows, decimals, coarse=True)


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


# --- downloaded from W&B


def _is_export(path: Path) -> bool:
    """A CSV whose header is one of the two."""
    if path.suffix != ".csv" or not path.is_file():
        return False
    header = head(path, 65_536).split(b"\n", 1)[0].decode("utf-8", "replace")
    names = {name.strip().strip('"') for name in header.split(",")}
    charted = "__MIN" in header and " - " in header
    return charted or (names >= LISTED and bool(names & {"Runtime", "Created", "User", "Notes"}))


def _read_export(path: Path) -> Source:
    """The runs in the table."""
    source = Source(str(path), "wandb export")
    header, parts = table(path, source.notes)
    if not any(name.endswith("__MIN") for name in header):
        read_table(path, "wandb export", parts, Layout("cells", run="Name"), source)
        source.notes.append(f"{path}: a list of runs does not tell settings from results")
        return source
    axis = AXES.get(header[0].lower())
    if axis is None:
        raise DataError(f"{path}: {header[0]!r} is no axis that is read here")
    points: dict[str, Points] = {}
    merged = 0
    for line, row in (one for p in parts for one in zip(p.lines.tolist(), p.rows(), strict=True)):
        place = row.get(header[0])
        if not isinstance(place, tuple):
            raise DataError(f"{path} line {line} has no {header[0]}")
        for name, value in row.items():
            match = COLUMN.match(name)
            if match is None or not isinstance(value, tuple):
                continue
            if match["end"]:
                merged += row.get(name[: -len(match["end"])]) != value
                continue
            made = points.setdefault(match["run"], Points(path))
            made.add(match["metric"], place[0], value[0], line, decimals=value[1])
    if merged:
        source.notes.append(f"{path}: {merged} values are means of several points")
    for name, found in points.items():
        run = Imported(name, "", "wandb export", Where(str(path)))
        run.series = found.series(axis)
        source.runs.append(run)
    return source


EXPORT = Reader(_is_export, _read_export)
