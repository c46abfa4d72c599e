"""Log folders of NeMo-RL (`logs/exp_001`): curves from its loggers, scores from its validations.

An item is the place of its prompt in the validation data. What was sampled in training is not read:
its prompts are others at every step. Settings are those that the logger kept.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

from kleash.compare.read import Imported, Scores, Source, Where, swanlab, tensorboard, wandb
from kleash.compare.read.gather import Items, json_lines, score
from kleash.errors import DataError

STEP = re.compile(r"val_data_step(\d{1,12})\.jsonl")


def fits(path: Path) -> bool:
    """A folder with what was sampled at some step."""
    files = ("train_data_step*.jsonl", "val_data_step*.jsonl")
    return path.is_dir() and any(any(path.glob(pattern)) for pattern in files)


def read(path: Path) -> Source:
    """The run in the folder."""
    source = Source(str(path), "nemo-rl")
    place = path.resolve()
    alone = len(list(place.parent.glob("exp_*"))) == 1
    name = place.parent.name if alone else f"{place.parent.name}/{place.name}"
    run = Imported(
        name if place.name.startswith("exp_") else place.name, "", "nemo-rl", Where(str(path))
    )
    logs = [reader(at) for at, reader in _loggers(path)]
    if logs:  # several loggers repeat each other
        source.notes += logs[0].notes
        for told in logs[0].runs:
            run.series += told.series
            run.config |= told.config
            run.started, run.seconds = told.started or run.started, told.seconds or run.seconds
    for file in sorted(path.glob("val_data_step*.jsonl")):
        run.scores += _scores(file, source.notes)
    source.runs.append(run)
    return source


def _loggers(path: Path) -> Iterator[tuple[Path, Callable[[Path], Source]]]:
    """The logs of its loggers with their readers, TensorBoard's first: it has the settings."""
    if (path / "tensorboard").is_dir():
        yield path / "tensorboard", tensorboard.read
    for log in sorted(path.glob("wandb/**/run-*.wandb")):
        yield log, wandb.read
    if swanlab.fits(path / "swanlab"):
        yield path / "swanlab", swanlab.read


def _scores(path: Path, notes: list[str]) -> list[Scores]:
    """The reward of every answer of a validation; values stand in lists of one."""
    items = Items()
    at = STEP.fullmatch(path.name)
    for line, row in json_lines(path, notes):
        if not isinstance(row, dict) or "rewards" not in row:
            raise DataError(f"{path} line {line} has no rewards")
        reward = row["rewards"]
        reward = reward[0] if isinstance(reward, list) and len(reward) == 1 else reward
        items.add(str(row.get("idx", line)), line, {"validation/reward": score(reward)})
    return items.scores(path, step=float(at[1]) if at else None, split="validation")
