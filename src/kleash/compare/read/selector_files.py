"""What projects that train demonstration selectors leave behind (`docs/imports.md` names them).

Training metrics as a JSON list of epochs, the table that training prints, accuracy by shots. Beams
and RL data are known too, and refused: they are data, not results.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

from kleash.compare.read import Cell, Imported, Number, Source, Where
from kleash.compare.read.gather import (
    Points,
    head,
    number,
    printed,
    raw_lines,
    whole_json,
    whole_object,
)
from kleash.errors import DataError

CURVES = {"grpo_loss", "ppo_loss", "kl_loss", "kl", "val_loss", "mean_ratio", "std_advantage"}
KEY = re.compile(r"(?P<time>.*?)-?test_data_num=(?P<items>\d{1,9})-(?P<retriever>.+)")
SHOTS = re.compile(r"shot_num=(\d{1,4})")
# Longest first: "KL Loss" is not "KL" with something behind it.
COLUMNS = (
    "Epoch", "Train Loss", "Val Loss", "GRPO Loss", "PPO Loss", "RCE Loss", "KL Loss", "Adv Mean",
    "Adv Std", "Adv Max", "Mean Ratio", "Ratio", "Reward", "Beta", "Loss", "Tau", "LR", "KL",
)  # fmt: skip
NAMES = re.compile("|".join(COLUMNS))
LOGS = {".log", ".out", ".txt"}


def fits(path: Path) -> bool:
    """One of these files, by its first bytes."""
    if not path.is_file():
        return False
    start = head(path, 16_384)
    if path.suffix == ".json":
        return kind_of(start) is not None
    return path.suffix in LOGS and any(
        _header(line) for line in start.decode("utf-8", "replace").splitlines()
    )


def kind_of(start: bytes) -> Literal["curves", "accuracy", "beams", "rl data"] | None:
    """Which of the JSON files one is, by its first bytes."""
    opened = start.lstrip()[:1]
    if opened == b"[" and b'"epoch"' in start:
        return "curves" if sum(f'"{n}"'.encode() in start for n in CURVES) >= 2 else None
    if opened == b"{" and b"test_data_num=" in start and b"shot_num=" in start:
        return "accuracy"
    if opened == b"{" and b'"id_list"' in start:
        return "beams"
    if opened == b"{" and (b'"pointer_candidates"' in start or b'"candidate_pool_ids"' in start):
        return "rl data"
    return None


def read(path: Path) -> Source:
    """The run that a file is about."""
    source = Source(str(path), "selector")
    name = re.sub(r"^training_metrics_|_(?:training_)?metrics$", "", path.stem)
    arm = re.sub(r"_epoch[_-]?\d{1,6}$", "", name)
    run = Imported(name, arm if arm != name else "", "selector", Where(str(path)))
    points = Points(path)
    kind = kind_of(head(path, 16_384)) if path.suffix == ".json" else "printed"
    if kind == "printed":
        _printed_table(points, path, source.notes)
    elif kind == "curves":
        _curves(points, whole_json(path), path)
    elif kind == "accuracy":
        run.cells = list(_accuracy(whole_object(path), path))
    else:
        raise DataError(f"{path} holds data to train with and no results")
    run.series = points.series("epoch", spot="entry" if kind == "curves" else "")
    source.runs.append(run)
    return source


def _curves(points: Points, rows: Any, path: Path) -> None:
    for place, row in enumerate(rows if isinstance(rows, list) else [rows], 1):
        epoch = number(row.get("epoch")) if isinstance(row, dict) else None
        if epoch is None:
            raise DataError(f"{path}: entry {place} has no epoch")
        points.add_row(row, epoch, place, skip=("epoch",))


def _header(line: str) -> list[str]:
    """The columns of a line that heads a table of epochs; nothing for any other line."""
    found = NAMES.findall(line)
    rest = NAMES.sub("", line)
    heads = len(found) >= 3 and found[0] == "Epoch" and not re.search(r"\w|^\s*\|", rest)
    return found if heads else []


def _printed_table(points: Points, path: Path, notes: list[str]) -> None:
    """The rows under each header, as they were printed; a loss may be negative."""
    columns: list[str] = []
    for line, raw in raw_lines(path):
        written = raw.decode("utf-8", "replace")
        if header := _header(written):
            columns = header
            continue
        parts = written.replace("|", " ").split()
        epoch = printed(parts[0].split("/")[0]) if parts and columns else None
        if epoch is None or len(parts) != len(columns):
            # A row that is short of a column could put numbers under the wrong name.
            if epoch is not None and len(parts) > 2:
                notes.append(f"{path} line {line} does not fill its columns: left out")
            continue
        if not raw.endswith(b"\n"):
            notes.append(f"{path} line {line} was cut off: left out")
            return
        for name, part in zip(columns[1:], parts[1:], strict=True):
            if (found := printed(part)) is not None:
                points.add(name, epoch[0], found[0], line, decimals=found[1])


def _accuracy(value: dict[str, Any], path: Path) -> Iterator[Cell]:
    """Accuracy by shots; several times of measuring in one file stay apart by `spot`."""
    epoch = re.search(r"epoch[_-]?(\d{1,6})", path.stem)
    for key, shots in value.items():
        match = KEY.fullmatch(key)
        if match is None or not isinstance(shots, dict):
            raise DataError(f"{path}: {key[:80]!r} is not `<time>-test_data_num=N-<retriever>`")
        for name, held in shots.items():
            place = SHOTS.fullmatch(name)
            if place is None:
                raise DataError(f"{path}: {name[:80]!r} is not `shot_num=N`")
            taken, where = number(held), Where(str(path), spot=f"{key}: {name}")
            yield Cell(
                "accuracy",
                Number(taken, "missing" if taken is None else "known", where),
                epoch=float(epoch[1]) if epoch else None,
                shots=int(place[1]),
                items=int(match["items"]),
            )
