"""How a log goes on and ends: which branch of a resumed run is its own, and whether it diverged.

Readers keep every line; what a run is judged by is its last branch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from kleash.compare.read import Imported, Series, Where, names
from kleash.compare.read.gather import some_points

Mask = NDArray[np.bool_]
COSTS = ("step_time", "throughput", "gpu_hours", "mfu")  # better or worse, but no outcome
LOST = ("loss", "policy_loss", "kl_loss", "kl", "entropy")  # of a policy that is gone


@dataclass(frozen=True)
class Restart:
    """That a log falls back: at which point of which series, and how many points it gave up."""

    series: Series
    point: int
    dropped: int

    @property
    def at(self) -> float:
        """The step before."""
        return float(self.series.steps[self.point - 1])

    @property
    def back(self) -> float:
        """The step it went on from."""
        return float(self.series.steps[self.point])


def last_branch(run: Imported) -> tuple[list[Series], list[Restart]]:
    """A run's curves as they went on: what a restart went back behind is not its course.

    A value written later replaces the one before, and steps beyond a restart are gone, also of
    metrics that were not written since. Where most lines fall back the file is not in the order
    of writing, and only the order of steps counts.
    """
    if all(series.rises for series in run.series):
        return run.series, []
    every = [_in_time(series) for series in run.series]
    falls = [_falls(series) for series in every]
    alive = [_alive(series, fall) for series, fall in zip(every, falls, strict=True)]
    for series, fall in zip(every, falls, strict=True):
        for point in fall:
            # Where it began anew, another counter of steps may just have been set back.
            if series.steps[point] > series.steps[0]:
                _give_up(every, alive, series, int(point))
    kept, restarts = [], []
    for series, fall, live in zip(every, falls, alive, strict=True):
        kept.append(series if live.all() else some_points(series, np.flatnonzero(live)))
        if len(fall):
            restarts.append(Restart(series, int(fall[0]), 0))
    gone = sum(int((~live).sum()) for live in alive)
    return [_by_step(series) for series in kept], [replace(one, dropped=gone) for one in restarts]


def _in_time(series: Series) -> Series:
    """The points in the order in which they were written, where their times tell it."""
    times = series.times
    if series.rises or times is None or not np.isfinite(times).all() or not times.any():
        return series
    order = np.argsort(times, kind="stable")
    return (
        series
        if (np.diff(order) > 0).all()
        else replace(some_points(series, order), parts=series.parts)
    )


def _falls(series: Series) -> NDArray[np.intp]:
    """The points at which a log was taken up again, none where it is in no order."""
    moves = np.diff(series.steps)
    falls = np.flatnonzero(moves < 0) + 1
    resumed = len(falls) == 1 or 2 * len(falls) <= int((moves > 0).sum())
    return falls if resumed and series.axis != "time" else falls[:0]


def _alive(series: Series, falls: NDArray[np.intp]) -> Mask:
    """The points behind which the log did not go back, and of one step the last."""
    if not len(falls):
        return np.ones(len(series.steps), dtype=bool)
    least = np.minimum.accumulate(series.steps[::-1])[::-1]
    return np.append(series.steps[:-1] < least[1:], True)


def _by_step(series: Series) -> Series:
    """Every step once, in their order: the last telling of each."""
    if series.rises or series.axis == "time":
        return series
    _, last = np.unique(series.steps[::-1], return_index=True)
    return some_points(series, len(series.steps) - 1 - last)


def _order(series: Series, at: int) -> tuple[str, int]:
    """Where a point stands: files of one run are called by their time."""
    where = series.place(at)
    return where.file, at if where.line is None else where.line


def _give_up(every: Sequence[Series], alive: Sequence[Mask], fallen: Series, point: int) -> None:
    """Take the dead branch from curves that were not written since the restart."""
    begun, back = _order(fallen, point), fallen.steps[point]
    for series, live in zip(every, alive, strict=True):
        if (
            series.axis == fallen.axis
            and len(series.steps)
            and _order(series, len(series.steps) - 1) < begun
        ):
            live &= series.steps < back


@dataclass(frozen=True)
class Divergence:
    """That a run ended in no numbers: from which step of which metric, and where that stands."""

    metric: str
    axis: str
    step: float
    last: float
    count: int
    where: Where


def divergence(run: Imported) -> Divergence | None:
    """Where a run's outcome or loss stops being a number for good; the first of them.

    Some loggers write NaN where nothing was measured: an end no longer than a gap is none.
    """
    found = []
    for series in last_branch(run)[0]:
        known = names.metric(series.metric)
        if series.finite or known is None or known.name in COSTS:
            continue
        if not known.direction and known.name not in LOST:
            continue
        finite = np.flatnonzero(np.isfinite(series.values))
        if not len(finite) or finite[-1] == len(series.values) - 1:
            continue
        first = int(finite[-1]) + 1
        gaps = np.diff(finite) - 1
        if len(series.values) - first > max(gaps, default=0):
            step, last = float(series.steps[first]), float(series.steps[-1])
            count = len(series.values) - first
            where = series.place(first)
            found.append(Divergence(series.metric, series.axis, step, last, count, where))
    return min(found, key=lambda one: one.step, default=None)
