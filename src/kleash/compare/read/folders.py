"""Log folders of prime-rl, tinker-cookbook and NeMo-RL (`logs/exp_001`): JSON lines and configs.

prime-rl's trainer writes into the folder, its orchestrator into one below it (`run_default`); both
count the same steps, and a metric that both have is called by its folder the second time. Scores
are of evaluations: an item is the place of its problem in their data, which has one order. What was
sampled in training is not read: its problems are others at every step.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from kleash.compare.read import (
    Imported,
    Reader,
    Source,
    Where,
    swanlab,
    tensorboard,
    wandb,
)
from kleash.compare.read.gather import (
    Items,
    Points,
    content,
    json_lines,
    number,
    score,
    settings,
    whole_object,
)
from kleash.errors import DataError

LOG = "metrics.jsonl"
CONFIGS = ("rl.toml", "sft.toml", "trainer.toml", "orchestrator.toml")  # of prime-rl
TINKER = "eval_*_rollout_summaries.jsonl"
NEMO = ("val_data_step*.jsonl", "train_data_step*.jsonl")
STEP = re.compile(r"val_data_step(\d{1,12})\.jsonl")


def _is_prime_rl(path: Path) -> bool:
    configs = (path / "configs" / name for name in CONFIGS)
    logs = any(path.glob(LOG)) or any(path.glob(f"*/{LOG}"))
    return path.is_dir() and logs and any(file.is_file() for file in configs)


def _is_tinker(path: Path) -> bool:
    """A folder with its two files, and what no other tool writes beside them."""
    own = all((path / name).is_file() for name in (LOG, "config.json"))
    return own and any((path / name).is_file() for name in ("code.diff", "checkpoints.jsonl"))


def _is_nemo_rl(path: Path) -> bool:
    return path.is_dir() and any(any(path.glob(pattern)) for pattern in NEMO)


def _new_run(path: Path, form: str) -> tuple[Source, Imported]:
    run = Imported(path.resolve().name, "", form, Where(str(path)))
    return Source(str(path), form, [run]), run


def _prime_rl(path: Path) -> Source:
    source, run = _new_run(path, "prime-rl")
    points = Points(path)
    for log in (*path.glob(LOG), *sorted(path.glob(f"*/{LOG}"))):
        _add_rows(points, log, source.notes)
    run.series = points.series()
    run.finished = any(path.glob("final_summary.json")) or None
    for file in (path / "configs" / name for name in CONFIGS):
        if file.is_file():
            try:
                values = tomllib.loads(content(file).decode())
            except (ValueError, RecursionError) as error:
                raise DataError(f"{file} is not TOML: {error}") from None
            prefix = "" if file.name in CONFIGS[:2] else f"{file.stem}."
            run.config = settings(values, Where(str(file)), prefix) | run.config
    return source


def _tinker(path: Path) -> Source:
    source, run = _new_run(path, "tinker-cookbook")
    config, points = path / "config.json", Points(path)
    run.config = settings(whole_object(config), Where(str(config)))
    _add_rows(points, path / LOG, source.notes)
    run.series = points.series()
    # In folders of iterations; before 0.2 beside the metrics, with the iteration in their names.
    for file in sorted([*path.glob(f"iteration_*/{TINKER}"), *path.glob(TINKER)]):
        items, row = _items(file, source.notes, "group_idx", "total_reward", "eval/total_reward")
        split = str(row.get("split") or "")
        run.scores += items.scores(file, step=number(row.get("iteration")), split=split)
    return source


def _nemo_rl(path: Path) -> Source:
    source, run = _new_run(path, "nemo-rl")
    place = path.resolve()
    if place.name.startswith("exp_"):
        alone = len(list(place.parent.glob("exp_*"))) == 1
        run.name = place.parent.name if alone else f"{place.parent.name}/{place.name}"
    for reader, log in list(_loggers(path))[:1]:  # several loggers repeat each other
        held = reader(log)
        source.notes += held.notes
        for one in held.runs:
            run.series += one.series
            run.config |= one.config
            run.seconds = one.seconds or run.seconds
    for file in sorted(path.glob(NEMO[0])):
        at = STEP.fullmatch(file.name)
        items, _ = _items(file, source.notes, "idx", "rewards", "validation/reward")
        run.scores += items.scores(file, step=float(at[1]) if at else None, split="validation")
    return source


def _loggers(path: Path) -> Iterator[tuple[Callable[[Path], Source], Path]]:
    """NeMo-RL's loggers, TensorBoard's first: it has the settings."""
    if (path / "tensorboard").is_dir():
        yield tensorboard.read, path / "tensorboard"
    yield from ((wandb.read, log) for log in sorted(path.glob("wandb/**/run-*.wandb")))
    if swanlab.fits(path / "swanlab"):
        yield swanlab.read, path / "swanlab"


def _add_rows(points: Points, file: Path, notes: list[str]) -> None:
    """The points of a log of objects that each have a `step`, and perhaps a `time`."""
    points.enter(file)
    others = set(points.columns)
    for line, row in json_lines(file, notes):
        step = number(row.get("step")) if isinstance(row, dict) else None
        if step is None:
            raise DataError(f"{file} line {line} has no step")
        time = number(row.get("time"))
        own = {f"{file.parent.name}/{n}" if n in others else n: held for n, held in row.items()}
        points.add_row(own, step, line, skip=("step", "time"), time=time)


def _items(
    path: Path, notes: list[str], item: str, reward: str, metric: str
) -> tuple[Items, dict[str, Any]]:
    """The reward of every answer of an evaluation, and its last row; a list of one is its value."""
    items, row = Items(), dict[str, Any]()
    for line, row in json_lines(path, notes):
        if not isinstance(row, dict) or reward not in row:
            raise DataError(f"{path} line {line} has no {reward}")
        value = row[reward]
        value = value[0] if isinstance(value, list) and len(value) == 1 else value
        items.add(str(row.get(item, line)), line, {metric: score(value)})
    return items, row


PRIME_RL = Reader(_is_prime_rl, _prime_rl)
TINKER_COOKBOOK = Reader(_is_tinker, _tinker)
NEMO_RL = Reader(_is_nemo_rl, _nemo_rl)
