"""Tables downloaded from the pages of Weights & Biases.

A chart: `Step`, and for each run `<run> - <metric>` with its `__MIN` and `__MAX`, which are left
out (they repeat the value unless points were merged, and then that is noted). A list of runs: a row
for each, where nothing tells settings from results, so numbers are cells and words are settings.
"""

from __future__ import annotations

import re
from pathlib import Path

from kleash.compare.read import Imported, Source, Where
from kleash.compare.read.csv_rows import table
from kleash.compare.read.gather import Axis, Points, head
from kleash.compare.read.tables import Layout, read_table
from kleash.errors import DataError

AXES: dict[str, Axis] = {
    "step": "step", "epoch": "epoch", "relative time (process)": "time",
    "relative time (wall)": "time", "wall time": "time",
}  # fmt: skip
COLUMN = re.compile(r"(?P<run>.+?) - (?P<metric>.+?)(?P<end>__MIN|__MAX)?$")
LISTED = {"Name", "State"}


def fits(path: Path) -> bool:
    """A CSV whose header is one of the two."""
    if path.suffix != ".csv" or not path.is_file():
        return False
    header = head(path, 65_536).split(b"\n", 1)[0].decode("utf-8", "replace")
    names = {name.strip().strip('"') for name in header.split(",")}
    charted = "__MIN" in header and " - " in header
    return charted or (names >= LISTED and bool(names & {"Runtime", "Created", "User", "Notes"}))


def read(path: Path) -> Source:
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
    rows = (row for part in parts for row in zip(part.lines.tolist(), part.rows(), strict=True))
    for line, row in rows:
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
