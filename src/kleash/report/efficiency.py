"""What training cost: seconds, throughput and use of the machine as logged; what the leash took."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from kleash.imports import Imported, Where
from kleash.report.courses import course, metrics_of
from kleash.report.material import Material
from kleash.report.parts import Cell, Linked, Part, Table
from kleash.stats import Interval, mean_interval

COSTS = ("step_time", "throughput", "mfu")
SPEEDS = ("speed/", "mfu/", "perf/mfu/")
"""What else is of the clock, by how its name begins."""
SECONDS, PER_STEP = "seconds", "seconds_per_step"


def efficiency(made: Material) -> list[Part]:
    """Costs as they were logged and, of a study, as its clocks say."""
    rows = list(_logged(made))
    parts: list[Part] = []
    if rows:
        head = made.head("arm", "metric", "mean", "n")
        parts.append(Table(made.say("efficiency_of"), head, rows, left=2))
    return [*parts, *_of_study(made)]


def _logged(made: Material) -> Iterator[list[Cell]]:
    """Every arm's costs: numbers that a document gives, or the mean of a curve."""
    own = [name for name in metrics_of(made) if name.startswith(SPEEDS) and name not in COSTS]
    for arm in made.arms:
        for metric in (*COSTS, *own):
            for replicate in arm.replicates:
                for (name, _), cells in replicate.cells.items():
                    number = next(iter(cells.values()))
                    if name == metric and (number.text or number.value is not None):
                        text = number.text or f"{number.value:.6g}"
                        yield _row(made, arm.name, metric, (text, "1"), number.where)
            each = course(arm, metric)
            if each is not None:
                texts = (f"{each.values.mean():.6g}", str(len(each.steps)))
                yield _row(made, arm.name, metric, texts, each.where(float(each.steps[0])))


def _row(
    made: Material, arm: str, metric: str, texts: Sequence[str], where: Where | None
) -> list[Cell]:
    return [made.arm(arm), made.metric(metric), *(Linked(text, where) for text in texts)]


# --- of a study


@dataclass
class Clock:
    """What one quantity was in an arm: its values by seed, and where the first stands."""

    values: dict[int, list[float]] = field(default_factory=dict)
    where: Where | None = None

    def add(self, seed: int, value: float, where: Where) -> None:
        """One more reading."""
        self.values.setdefault(seed, []).append(value)
        self.where = self.where or where

    def means(self) -> dict[int, float]:
        """By seed."""
        return {seed: sum(held) / len(held) for seed, held in self.values.items()}


def _of_study(made: Material) -> list[Part]:
    """What the clocks of every arm say, and beside it how many times its baseline arm's that is."""
    study = made.study
    if study is None:
        return []
    clocks = {row.name: clocks_of(made, row.name) for row in study.rows}
    rows: list[list[Cell]] = []
    for row in study.rows:
        for key, clock in clocks[row.name].items():
            held = [value for values in clock.values.values() for value in values]
            theirs = clocks.get(row.against, {}).get(key)
            texts = [f"{sum(held) / len(held):.3g}", str(len(held)), _times(clock, theirs)]
            rows.append(_row(made, row.name, key, texts, clock.where))
    if not rows:
        return []
    head = made.head("arm", "metric", "mean", "n", "times_baseline")
    return [Table(made.say("clocks_of"), head, rows, left=2)]


def clocks_of(made: Material, arm: str) -> dict[str, Clock]:
    """By quantity, what `timings.jsonl` of an arm's runs has, over all epochs and seeds."""
    assert made.study is not None
    found: dict[str, Clock] = {}
    for seed, seen in made.study.overview.of_arm(arm, made.study.file.seeds).items():
        if seen.run is None or not seen.run.has("timings.jsonl"):
            continue
        steps = _steps_per_epoch(made.runs.get((arm, seed)))
        for number, line in enumerate(seen.run.timings(), 1):
            if line.get("phase") != "grpo":
                continue
            where = Where(seen.run.file("timings.jsonl"), number)
            for key, value in line.items():
                if isinstance(value, float) and math.isfinite(value):
                    each = PER_STEP if key == SECONDS and "step" in line else key
                    found.setdefault(each, Clock()).add(seed, value, where)
            if SECONDS in line and "step" not in line and steps:
                found.setdefault(PER_STEP, Clock()).add(seed, line[SECONDS] / steps, where)
    return found


def _steps_per_epoch(run: Imported | None) -> float:
    """Steps that an epoch of a run has, on average; 0 where it logged none."""
    if run is None:
        return 0.0
    counts = {
        axis: max((len(each.steps) for each in run.series if each.axis == axis), default=0)
        for axis in ("step", "epoch")
    }
    return counts["step"] / counts["epoch"] if counts["epoch"] else 0.0


def _times(ours: Clock, theirs: Clock | None) -> str:
    """The ratio to the baseline arm's, paired by seed, with its interval; '—' below two seeds."""
    left, right = ours.means(), {} if theirs is None else theirs.means()
    both = [seed for seed in left if right.get(seed, 0.0) > 0 and left[seed] > 0]
    if len(both) < 2:
        return "—"
    logs: Interval = mean_interval([math.log(left[seed] / right[seed]) for seed in both])
    middle, low, high = (math.exp(end) for end in (logs.estimate, logs.low, logs.high))
    return f"{middle:.2f} [{low:.2f}, {high:.2f}]"
