"""Curves of some arms from the epochs that their runs have logged so far."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from kleash.catalogue import Language, say
from kleash.charts import Chart, Line, lines
from kleash.dashboard.shelf import Shelf
from kleash.results import KL

ACCURACY, REWARD = "validation/accuracy", "validation/reward"  # of the two families
MOST_LINES = 8  # on one chart; shapes and dashes repeat after that
MOST_CHARTS = 4  # of one quantity
EPOCH = b'"kind": "epoch"'  # as every run spells it

Points = dict[str, dict[int, float]]
"""By metric and epoch."""


def epochs(shelf: Shelf, run: Path) -> Points:
    """What a run logged at the end of its epochs; of a long line or a torn one nothing."""
    path = run / "metrics.jsonl"
    if not path.is_file():
        return {}
    return shelf.facts.get(path, shelf.stamp(path), lambda: read_epochs(path))


def read_epochs(path: Path) -> Points:
    """The quantities that are drawn; a step's line is not parsed."""
    found: Points = {ACCURACY: {}, REWARD: {}, KL: {}}
    with path.open("rb") as handle:
        for line in handle:
            if EPOCH not in line or len(line) > 1 << 20:
                continue
            try:
                record: Any = json.loads(line)
            except (ValueError, RecursionError):
                continue
            if not isinstance(record, dict) or record.get("phase") != "grpo":
                continue
            for metric, points in found.items():
                value, epoch = record.get(metric), record.get("epoch")
                if isinstance(value, int | float) and type(epoch) is int and math.isfinite(value):
                    points[epoch] = float(value)
    return found


def over_seeds(name: str, runs: Sequence[Points], metric: str, times: float) -> Line | None:
    """The mean over seeds by epoch, and the band from the lowest to the highest."""
    by_epoch: dict[int, list[float]] = {}
    for run in runs:
        for epoch, value in run.get(metric, {}).items():
            by_epoch.setdefault(epoch, []).append(times * value)
    if not by_epoch:
        return None
    order = sorted(by_epoch)
    values = [by_epoch[epoch] for epoch in order]
    low, high = [min(v) for v in values], [max(v) for v in values]
    return Line(name, order, [sum(v) / len(v) for v in values], low, high)


def drawn(named: Sequence[tuple[str, Sequence[Points]]], language: Language) -> list[Chart]:
    """Accuracy or reward, and KL, by epoch, a line for each name."""

    def words(code: str) -> str:
        return say(f"dash.{code}", {}, language)

    charts = []
    for metric, title, axis, times in (
        (ACCURACY, "accuracy_of", "accuracy_axis", 100.0),
        (REWARD, "reward_of", "reward_axis", 1.0),
        (KL, "kl_of", "kl", 1.0),
    ):
        series = [
            line
            for name, runs in named
            if (line := over_seeds(name, runs, metric, times)) is not None
        ]
        head = [words(code) for code in ("arm", "epoch", axis, "low", "high")]
        for at, some in enumerate(parted(series), 1):
            several = f" ({at})" if len(series) > MOST_LINES else ""
            charts.append(lines(words(title) + several, (words("epoch"), words(axis)), some, head))
    return charts


def parted(series: Sequence[Line]) -> list[Sequence[Line]]:
    """Lines for as many charts as it takes, so that no two on one look alike."""
    count = min(MOST_CHARTS, -(-len(series) // MOST_LINES))
    each = min(MOST_LINES, -(-len(series) // max(1, count)))
    return [series[at * each : (at + 1) * each] for at in range(count)]
