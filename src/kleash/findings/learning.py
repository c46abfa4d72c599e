"""Whether anything was learnt: the loss of a uniform choice, signal, learning rate, warm-up."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence

import numpy as np

from kleash.findings.record import (
    Found,
    Point,
    canonical,
    known_values,
    number_of,
    points,
    runs,
    setting_place,
    shown,
)
from kleash.imports import Imported, Source, Where

LEARNT = 0.05  # the share of the uniform loss below which nothing much was learnt
MOVED = 0.02
SIGNAL = 0.1
SHOTS = range(1, 5)
POOLS = (8, 16, 32, 64, 128, 256)  # sizes that pools usually have, where none is named
_POOL = re.compile(
    r"(?<![a-z0-9])(?:k|pool|top|candidates?|候选池?)[_=: -]?(\d{1,4})(?![0-9a-z])", re.I
)


def _ends(run: Imported, metric: str) -> tuple[Point, Point] | None:
    """The first and last known value of a metric."""
    found = [p for p in points(run, metric) if p.known]
    curve = [p for p in found if p.at.startswith(("epoch", "step"))]
    curve.sort(key=lambda p: p.epoch if p.epoch is not None else p.step or 0.0)
    if len(curve) > 1:
        return curve[0], curve[-1]
    ends = {p.at: p for p in found}
    return (ends["first"], ends["last"]) if {"first", "last"} <= ends.keys() else None


def uniform_loss(pool: int, shots: int) -> float:
    """−log of a uniform choice of `shots` from `pool`, in order and without repetition."""
    return sum(math.log(pool - drawn) for drawn in range(shots))


def near_uniform(sources: Sequence[Source]) -> Iterator[Found]:
    """A loss just below that of a uniform choice means that almost nothing was learnt."""
    named = _pools(sources)
    pools = named or (POOLS if _choose(sources) else ())
    for source in sources:
        close: dict[tuple[int, int], list[tuple[Imported, Point]]] = defaultdict(list)
        for run in source.runs:
            ends = _ends(run, "val_loss")
            for pool in pools if ends else ():
                for shots in SHOTS:
                    uniform = uniform_loss(pool, shots) if pool > shots else 0.0
                    if ends and _is_near(uniform, ends[0].value, ends[1].value):
                        close[pool, shots].append((run, ends[1]))
        for (pool, shots), found in close.items():
            facts = {
                "arm": ", ".join(run.arm for run, _ in found),
                "metric": found[0][1].written,
                "value": found[0][1].value,
                "uniform": round(uniform_loss(pool, shots), 4),
                "shots": shots,
                "pool": pool,
            }
            where = tuple(point.number.where for _, point in found)
            yield Found("near-uniform", "warning" if named else "note", where, facts)


def _is_near(uniform: float, first: float, last: float) -> bool:
    """Whether a loss began about where a uniform choice is, and ended just below it."""
    return abs(first - uniform) <= 2 * LEARNT * uniform and 0 < uniform - last <= LEARNT * uniform


def _choose(sources: Sequence[Source]) -> bool:
    """Whether it is demonstrations that are chosen: a loss alone fits some pool too easily."""
    return any(cell.shots is not None for run in runs(sources) for cell in run.cells)


def _pools(sources: Sequence[Source]) -> list[int]:
    """Sizes of pools that configs name: `pool=64`, or `k64` in the name of a data file."""
    told = {(key, str(s.value)) for run in runs(sources) for key, s in run.config.items()}
    texts = (text for key, value in told for text in (f"{key}={value}", value))
    found = {int(size) for text in texts for size in _POOL.findall(text.replace("_", " "))}
    return sorted(size for size in found if size > 1)


def barely_moved(sources: Sequence[Source]) -> Iterator[Found]:
    """A validation loss that a whole training leaves where it was."""
    for run in runs(sources):
        ends = _ends(run, "val_loss")
        if ends is None or ends[0].value == 0:
            continue
        change = (ends[1].value - ends[0].value) / abs(ends[0].value)
        if abs(change) < MOVED:
            facts = {
                "arm": run.arm,
                "metric": ends[0].written,
                "first": ends[0].value,
                "last": ends[1].value,
                "change": shown(change),
            }
            where = tuple(end.number.where for end in ends)
            yield Found("barely-moved", "warning", where, facts)


def little_signal(sources: Sequence[Source]) -> Iterator[Found]:
    """Advantages without spread: nearly all groups had equal rewards."""
    for run in runs(sources):
        if any(value >= SIGNAL for value in known_values(run, "std_advantage")):
            continue
        found = [p for p in points(run, "std_advantage") if p.known]
        if not found:
            continue
        most = max(found, key=lambda point: point.value)
        if most.value < SIGNAL:
            facts = {"arm": run.arm, "spread": most.value, "at": most.at}
            where = tuple(point.number.where for point in found[:8])
            yield Found("little-signal", "warning", where, facts)


def lr_below_print(sources: Sequence[Source]) -> Iterator[Found]:
    """A learning rate of 1e-6 printed to three decimals is 0.000."""
    for run in runs(sources):
        for series in run.series:
            coarse = series.decimals is not None and canonical(series.metric) == "learning_rate"
            if coarse and len(series.values) and not np.any(series.values):
                printed, configured = f"{0:.{series.decimals}f}", number_of(run, "lr")
                facts = {"arm": run.arm, "printed": printed, "configured": configured}
                yield Found("lr-below-print", "warning", (series.where,), facts)


def inside_warmup(sources: Sequence[Source]) -> Iterator[Found]:
    """Evaluations that all lie before the warm-up ends say nothing of the schedule."""
    for run in runs(sources):
        last, warmup = _last_evaluation(run), _warmup(run)
        if last is not None and warmup is not None and last[1] <= warmup:
            facts = {"arm": run.arm, "metric": last[0], "last": last[1], "warmup": warmup}
            places = (
                (last[2], setting_place(run, "warmup")) if number_of(run, "warmup") else last[2:]
            )
            yield Found("inside-warmup", "warning", places, facts)


def _warmup(run: Imported) -> float | None:
    steps = number_of(run, "warmup")
    ratio, whole = number_of(run, "warmup_ratio"), number_of(run, "steps")
    if steps is None and ratio is not None and whole is not None:
        return ratio * whole
    return steps if steps else None


def _last_evaluation(run: Imported) -> tuple[str, float, Where] | None:
    """The metric, step and place of the last evaluation of a run."""
    outcomes = ("accuracy", "eval_reward", "performance", "val_loss")
    found = [
        (series.metric, float(series.steps.max()), series.where)
        for series in run.series
        if series.axis == "step" and len(series.steps) and canonical(series.metric) in outcomes
    ]
    return max(found, key=lambda one: one[1], default=None)


RULES = (near_uniform, barely_moved, little_signal, lr_below_print, inside_warmup)
