"""One number for a training: over its items at the end, its last cells, or the end of its curve."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

import numpy as np

from kleash import stats
from kleash.compare.arms import Arm, Curve, Place, Replicate
from kleash.compare.items import by_spot, item_means, what_counts
from kleash.compare.read import Number
from kleash.compare.records import Window
from kleash.stats import Floats

FEW_BREAK_OFF = 5  # one in so many trainings
Means = dict[Place, dict[int | None, Number]]


def steps_of_all(curves: Sequence[Curve]) -> Floats:
    """The steps at which all of them have a known value; mostly they have the same in one array."""
    return reduce(np.intersect1d, {id(curve.steps): curve.steps for curve in curves}.values())


def at_steps(curve: Curve, steps: Floats) -> Floats:
    """A curve's values at these steps, all of which it has."""
    values: Floats = curve.values[np.searchsorted(curve.steps, steps)]
    return values


def means_of(replicate: Replicate, metric: str) -> Means:
    """The measured cells of a metric, by place; statistics of whole runs are not among them."""
    return {
        place: cells
        for (name, place), cells in replicate.cells.items()
        if name == metric and not place[4]
    }


def last_of(places: set[Place]) -> Place:
    """The one with most items, then the last epoch, then the last step."""
    return max(places, key=lambda place: (place[2] or 0, place[0] or 0, place[1] or 0))


def run_means(arm: Arm, metric: str) -> list[tuple[Replicate, float]]:
    """The mean of each training that has one."""
    found = []
    for replicate in arm.replicates:
        if metric not in replicate.means:
            replicate.means[metric] = _run_mean(replicate, metric)
        mean = replicate.means[metric]
        if mean is not None:
            found.append((replicate, mean))
    return found


def _run_mean(replicate: Replicate, metric: str) -> float | None:
    spots = by_spot(replicate, metric)
    if spots:
        means = item_means(replicate, metric, spots[max(spots, key=what_counts)])
        return float(np.add.reduce(list(means.values()))) / len(means) if means else None
    cells = means_of(replicate, metric)
    if cells and (value := _last_cell(cells, set(cells))) is not None:
        return value
    curve = replicate.curve(metric)
    return float(stats.end_of(curve.values).mean()) if curve is not None and len(curve) else None


def _last_cell(cells: Means, places: set[Place]) -> float | None:
    known = [each.value for each in cells[last_of(places)].values() if each.value is not None]
    return float(np.mean(known)) if known else None


def shared_run_means(runs: Sequence[Replicate], metric: str) -> list[float]:
    """The mean of each training at the end of the steps, or at the last cell, that all have.

    A run that went on longer is not held against one that ended sooner. Where nothing is shared
    each has its own mean; each of them must have one.
    """
    own = [mean for run in runs if (mean := run.means[metric]) is not None]
    if any(by_spot(run, metric) for run in runs):
        return own
    cells = [means_of(run, metric) for run in runs]
    if any(cells):
        places = set(cells[0]).intersection(*cells[1:])
        found = [_last_cell(each, places) for each in cells if places]
        known = [value for value in found if value is not None]
        return known if len(known) == len(runs) else own
    curves, steps = shared_steps(runs, metric)
    inside = stats.end_of(steps)
    return [float(at_steps(curve, inside).mean()) for curve in curves] if len(steps) else own


def shared_steps(runs: Sequence[Replicate], metric: str) -> tuple[list[Curve], Floats]:
    """The curves of trainings of which nothing better is told, and the steps all of them have."""
    if any(by_spot(run, metric) or means_of(run, metric) for run in runs):
        return [], np.array([])
    curves = [curve for run in runs if (curve := run.curve(metric)) is not None]
    if len({curve.axis for curve in curves}) != 1:
        return curves, np.array([])
    return curves, steps_of_all(curves)


def shared_end(runs: Sequence[Replicate], metric: str) -> Window | None:
    """Where on their curves trainings are compared; None where it is not on curves."""
    curves, steps = shared_steps(runs, metric)
    if not len(steps):
        return None
    inside = stats.end_of(steps)
    return Window(curves[0].axis, float(inside[0]), float(inside[-1]))


def broken_off(runs: Sequence[Replicate], metric: str) -> set[int]:
    """Which of many trainings ended before the others, so that all would be judged there.

    One in five at most, else none: then where they end differs by design.
    """
    curves, _ = shared_steps(runs, metric)
    if len(curves) < len(runs) or not runs:
        return set()
    lasts = [float(curve.steps[-1]) for curve in curves]
    ended = [any(run.finished for run in replicate.runs) for replicate in runs]
    early = {at for at, last in enumerate(lasts) if last < np.median(lasts) and not ended[at]}
    return early if len(early) * FEW_BREAK_OFF <= len(runs) else set()
