"""Log folders of tinker-cookbook: `metrics.jsonl`, `config.json`, and scores of its evaluations.

An item is the place of its problem in the evaluation's data, which has one order; trajectories of
one group are tries. Rollouts of training are not read: their problems are others at every step.
"""

from __future__ import annotations

from pathlib import Path

from kleash.compare.read import Imported, Scores, Source, Where
from kleash.compare.read.gather import Items, Points, json_lines, number, settings, whole_object
from kleash.compare.read.prime_rl import add_rows
from kleash.errors import DataError

SUMMARIES = "_rollout_summaries.jsonl"


def fits(path: Path) -> bool:
    """A folder with its two files, and what no other tool writes beside them."""
    own = (path / "metrics.jsonl").is_file() and (path / "config.json").is_file()
    return own and ((path / "code.diff").is_file() or (path / "checkpoints.jsonl").is_file())


def read(path: Path) -> Source:
    """The run in the folder."""
    source = Source(str(path), "tinker-cookbook")
    run = Imported(path.resolve().name, "", "tinker-cookbook", Where(str(path)))
    config = path / "config.json"
    run.config = settings(whole_object(config), Where(str(config)))
    points = Points(path)
    add_rows(points, path / "metrics.jsonl", source.notes)
    run.series = points.series()
    # In folders of iterations; before 0.2 beside the metrics, with the iteration in their names.
    found = [*path.glob(f"iteration_*/eval_*{SUMMARIES}"), *path.glob(f"eval_*{SUMMARIES}")]
    for file in sorted(found):
        run.scores += _scores(file, source.notes)
    source.runs.append(run)
    return source


def _scores(path: Path, notes: list[str]) -> list[Scores]:
    """The total reward of every trajectory of an evaluation."""
    items = Items()
    step, split = None, ""
    for line, row in json_lines(path, notes):
        group = row.get("group_idx") if isinstance(row, dict) else None
        if type(group) is not int:
            raise DataError(f"{path} line {line} has no group_idx")
        step, split = number(row.get("iteration")), str(row.get("split") or "")
        items.add(str(group), line, {"eval/total_reward": number(row.get("total_reward"))})
    return items.scores(path, step=step, split=split)
