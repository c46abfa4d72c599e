"""What projects that train demonstration selectors leave behind (`docs/imports.md` names them).

Training metrics as a JSON list of epochs, and accuracy by shots. Beams and RL data are known too,
and refused: they are data, not results.
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
    whole_json,
    whole_object,
)
from kleash.errors import DataError

CURVES = {"grpo_loss", "ppo_loss", "kl_loss", "kl", "val_loss", "mean_ratio", "std_advantage"}
KEY = re.compile(r"(?P<time>.*?)-?test_data_num=(?P<items>\d{1,9})-(?P<retriever>.+)")
SHOTS = re.compile(r"shot_num=(\d{1,4})")


def fits(path: Path) -> bool:
    """One of these files, by its first bytes."""
    return path.suffix == ".json" and kind_of(head(path, 16_384)) is not None


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
    kind = kind_of(head(path, 16_384))
    if kind == "curves":
        _curves(points, whole_json(path), path)
    elif kind == "accuracy":
        run.cells = list(_accuracy(whole_object(path), path))
    else:
        raise DataError(f"{path} holds data to train with and no results")
    run.series = points.series("epoch", spot="entry")
    source.runs.append(run)
    return source


def _curves(points: Points, rows: Any, path: Path) -> None:
    for place, row in enumerate(rows if isinstance(rows, list) else [rows], 1):
        epoch = number(row.get("epoch")) if isinstance(row, dict) else None
        if epoch is None:
            raise DataError(f"{path}: entry {place} has no epoch")
        points.add_row(row, epoch, place, skip=("epoch",))


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
