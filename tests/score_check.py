"""How many errors planted by hand `kleash check` finds, and how many right figures it marks.

    python tests/score_check.py tests/planted_by_hand/*/
    python tests/score_check.py tests/planted_by_hand/unseen*.tar.xz

A folder has `report.md`, which is right, `planted.md` with errors, `plants.json`, which lists them,
and `logs`. An archive has such folders in sets, a folder each. Found is an error if `check` marks
its line, or a line that it contradicts, where the right report is not marked. With logs, and alone:
then only errors that the report itself contradicts are counted.
"""

from __future__ import annotations

import json
import re
import sys
import tarfile
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from typer.testing import CliRunner

from kleash.cli import app

Mark = dict[str, Any]


def marks(report: Path, logs: Path | None) -> list[Mark]:
    """What is wrong or not supported."""
    asked = ["check", str(report), "--json", *(("--against", str(logs)) if logs else ())]
    told = CliRunner().invoke(app, asked)
    assert told.exit_code in (0, 1), told.output
    every: list[Mark] = json.loads(told.output)["marks"]
    return [mark for mark in every if mark["state"] in ("wrong", "unsupported")]


def spot(mark: Mark) -> tuple[object, ...]:
    """By what a mark is known."""
    return mark["line"], mark["code"], mark["text"]


def is_figure(mark: Mark) -> bool:
    """Whether a number is marked, and not a word alone."""
    figure = re.search(r"\d", mark["text"]) and mark["code"] != "check.word"
    return mark["state"] == "wrong" or bool(figure)


def score(folder: Path, logs: Path | None) -> tuple[int, int, int]:
    """Errors that are found, of how many, and right figures that are marked."""
    plants = json.loads((folder / "plants.json").read_text(encoding="utf-8"))
    right, planted = (marks(folder / name, logs) for name in ("report.md", "planted.md"))
    had = {spot(mark) for mark in right}
    at = {mark["line"] for mark in planted if spot(mark) not in had}
    taken = {line for plant in plants for line in plant["lines"]}
    counted = [plant for plant in plants if logs or not plant["needs_log"]]
    found = [at & {*one["lines"], *(set(one["contradicts"]) - taken)} for one in counted]
    return sum(map(bool, found)), len(counted), sum(map(is_figure, right))


def folders(given: list[str], room: Path) -> Iterator[Path]:
    """The reports that are given, those in archives too."""
    for name in given:
        path = Path(name)
        if path.is_dir():
            yield path
            continue
        with tarfile.open(path) as archive:
            archive.extractall(room, filter="data")
        yield from sorted(one.parent for one in room.glob("*/*/plants.json"))


def main() -> None:
    """A row for each report, and their sum."""
    total = [0] * 6
    tell("report", "found with logs", "of", "right figures marked", "found alone", "of", "marked")
    tell(*["---"] * 7)
    with tempfile.TemporaryDirectory() as room:
        for folder in folders(sys.argv[1:], Path(room)):
            logs = folder / "logs"
            row = [*(score(folder, logs) if logs.is_dir() else (0, 0, 0)), *score(folder, None)]
            total = [a + b for a, b in zip(total, row, strict=True)]
            tell(f"{folder.parent.name}/{folder.name}", *row)
    tell("all", *total)


def tell(*cells: object) -> None:
    """A row of a table."""
    sys.stdout.write(f"| {' | '.join(map(str, cells))} |\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
