"""Run folders of prime-rl: `metrics.jsonl` of the trainer and of the orchestrator, and `configs/`.

The trainer writes into the folder, the orchestrator into one below it (`run_default`); both count
the same steps. A metric that both have is called by its folder the second time.
"""

from __future__ import annotations

import tomllib
from pathlib import Path

from kleash.compare.read import Imported, Source, Where
from kleash.compare.read.gather import Points, content, json_lines, number, settings
from kleash.errors import DataError

CONFIGS = ("rl.toml", "sft.toml", "trainer.toml", "orchestrator.toml")


def fits(path: Path) -> bool:
    """A folder with one of its configs and a log of metrics."""
    configs = (path / "configs" / name for name in CONFIGS)
    return path.is_dir() and any(file.is_file() for file in configs) and bool(_logs(path))


def _logs(folder: Path) -> list[Path]:
    return sorted([*folder.glob("metrics.jsonl"), *folder.glob("*/metrics.jsonl")])


def read(path: Path) -> Source:
    """The run in the folder."""
    source = Source(str(path), "prime-rl")
    run = Imported(path.resolve().name, "", "prime-rl", Where(str(path)))
    points = Points(path)
    for log in sorted(_logs(path), key=lambda file: len(file.parts)):
        add_rows(points, log, source.notes)
    run.series = points.series()
    run.finished = any(path.glob("final_summary.json")) or None
    for name in CONFIGS:
        file = path / "configs" / name
        if file.is_file():
            try:
                values = tomllib.loads(content(file).decode())
            except (ValueError, RecursionError) as error:
                raise DataError(f"{file} is not TOML: {error}") from None
            whole = name in ("rl.toml", "sft.toml")
            run.config = settings(values, Where(str(file)), "" if whole else f"{file.stem}.") | (
                run.config
            )
    source.runs.append(run)
    return source


def add_rows(points: Points, file: Path, notes: list[str]) -> None:
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
