"""Output folders of TRL and Hugging Face trainers: `trainer_state.json` and completions.

The longest history is taken: each checkpoint repeats that of the one before it. Values are means
over `logging_steps`. `training_args.bin` is a pickle and is never opened.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from kleash.compare.read import Cell, Imported, Number, Scores, Series, Setting, Source, Where
from kleash.compare.read.gather import Items, Points, head, item_id, number, score, whole_object
from kleash.errors import DataError

STATE = "trainer_state.json"
SETTINGS = (
    "max_steps", "num_train_epochs", "train_batch_size", "logging_steps", "eval_steps",
    "save_steps",
)  # fmt: skip
RESULTS = ("all_results.json", "train_results.json", "eval_results.json")
MAGIC = b"PAR1"


def fits(path: Path) -> bool:
    """`trainer_state.json`, a folder with one or with checkpoints, or completions."""
    if path.is_file():
        return path.name == STATE or bool(_completions(path))
    return bool(_states(path)) or any(path.glob("completions_*.parquet"))


def read(path: Path) -> Source:
    """The run in an output folder."""
    source = Source(str(path), "trl")
    states = [path] if path.name == STATE else _states(path) if path.is_dir() else []
    folder = path if path.is_dir() else path.parent
    # A checkpoint alone is named with the run it belongs to.
    parts = folder.resolve().parts
    name = "/".join(parts[-2 if parts[-1].startswith("checkpoint-") else -1 :])
    run = Imported(name, "", "trl", Where(str(path)))
    if states:
        _history(run, max(states, key=_reached))
    if path.is_dir():
        run.cells += _results(path)
    files = _completions(path)
    run.scores = [one for file in files for one in _scores(file, parquet(file), source.notes)]
    for pattern in ("runs/**/*tfevents*", "wandb/*/run-*.wandb") if path.is_dir() else ():
        beside = sorted(path.glob(pattern))
        if beside:
            source.notes.append(f"{path} also holds {beside[0]}: the same run, not read twice")
    source.runs.append(run)
    return source


def _states(folder: Path) -> list[Path]:
    """The folder's own state and that of its last checkpoint, as far as there are any."""
    saved = sorted(folder.glob(f"checkpoint-*/{STATE}"), key=lambda path: _number(path.parent.name))
    return [path for path in (folder / STATE, *saved[-1:]) if path.is_file()]


def _number(name: str) -> int:
    digits = name.rpartition("-")[2]
    return int(digits) if digits.isascii() and digits.isdigit() and len(digits) < 16 else -1


def _reached(state: Path) -> tuple[float, int]:
    """How far a history goes; of equals the longer, which has the final summary."""
    values = whole_object(state)
    history = values.get("log_history")
    length = len(history) if isinstance(history, list) else 0
    return number(values.get("global_step")) or 0.0, length


def _history(run: Imported, path: Path) -> None:
    values = whole_object(path)
    history = values.get("log_history")
    if not isinstance(history, list):
        raise DataError(f"{path} holds no log_history: it is not a trainer's state")
    points = Points(path)
    for place, row in enumerate(history, 1):
        if not isinstance(row, dict):
            raise DataError(f"{path}: entry {place} of log_history is not an object")
        step = number(row.get("step"))
        if step is None:
            raise DataError(f"{path}: entry {place} of log_history has no step")
        points.add_row(row, step, place, skip=("step",))
    run.series = [_rounded(series) for series in points.series(spot="entry of log_history")]
    run.config = {
        name: Setting(values[name], Where(str(path), spot=name))
        for name in SETTINGS
        if values.get(name) is not None
    }
    planned, reached = number(values.get("max_steps")), number(values.get("global_step"))
    run.finished = None if not planned or reached is None else reached >= planned
    runtime = next((s for s in run.series if s.metric == "train_runtime"), None)
    whole = number(values.get("train_runtime"))  # where somebody wrote it beside the history
    run.seconds = whole if runtime is None else float(runtime.values[-1])


def _rounded(series: Series) -> Series:
    """Older trainers round the loss to 4 decimals: say so where every one of several fits."""
    few = len(series.values) >= 3 and series.metric in ("loss", "eval_loss")
    if few and all(value == round(value, 4) for value in series.values.tolist()):
        return replace(series, decimals=4)
    return series


def _results(folder: Path) -> Iterator[Cell]:
    """`all_results.json`, or what stands in its place."""
    for name in RESULTS:
        path = folder / name
        if path.is_file():
            for metric, value in whole_object(path).items():
                if (taken := number(value)) is not None:
                    yield Cell(metric, Number(taken, "known", Where(str(path), spot=metric)))
            return


# --- completions -------------------------------------------------------------------------------


def _completions(path: Path) -> list[Path]:
    if path.is_file():
        return [path] if path.match("completions_*.parquet") else []
    return sorted([*path.glob("completions_*.parquet"), *path.glob("completions/*.parquet")])


def _scores(path: Path, table: dict[str, list[Any]], notes: list[str]) -> list[Scores]:
    """Every column of rewards, a score for each completion; an item is a prompt."""
    prompts = table.pop("prompt", None)
    if prompts is None:
        notes.append(f"{path} has no column `prompt`: left out")
        return []
    steps = table.pop("step", None) or [None]
    match = re.search(r"_(\d{1,12})$", path.stem)
    step = number(steps[0]) if steps[0] is not None else float(match[1]) if match else None
    columns = {}
    for name, column in table.items():
        values = np.array([math.nan if (s := score(v)) is None else s for v in column])
        if name not in ("completion", "advantage") and not np.isnan(values).all():
            columns[name] = values
    items = Items()
    texts = (prompt if isinstance(prompt, str) else repr(prompt) for prompt in prompts)
    items.extend(map(item_id, texts), np.arange(1, len(prompts) + 1), columns)
    return items.scores(path, "row", step=step, split="train")


def parquet(path: Path) -> dict[str, list[Any]]:
    """The columns of a Parquet file."""
    if head(path, 4) != MAGIC:
        raise DataError(f"{path} is not Parquet")
    import polars  # 0.2 s, which few sources need

    try:
        return polars.read_parquet(path).to_dict(as_series=False)
    except (polars.exceptions.PolarsError, OSError, ValueError) as error:
        raise DataError(f"{path} cannot be read: {' '.join(str(error).split())[:200]}") from None
