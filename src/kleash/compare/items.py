"""What trainings have in common: scores of the same items as arrays, curves at the same steps.

Tries and shots of an item are averaged before anything else: they are not further items. Items that
broke anywhere are in no array. Of a training as a whole there is one number (`run_means`).
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np

from kleash import stats
from kleash.compare.arms import Arm, Curve, Place, Replicate, known_name
from kleash.compare.read import Number, Scores
from kleash.compare.records import Window
from kleash.stats import Floats

FEW_BREAK_OFF = 5  # one in so many trainings
Means = dict[Place, dict[int | None, Number]]
MOST_SCORES = 2_000_000  # of one table over items and steps, so that it fits in memory

TEST = "test"
Spot = tuple[float, str]
"""A step (-1 where none is told) and a split."""


def by_spot(replicate: Replicate, metric: str) -> dict[Spot, list[Scores]]:
    """The scores of a metric, by step and split."""
    found: dict[Spot, list[Scores]] = {}
    for scores in replicate.scores:
        if known_name(scores.metric) == metric:
            step = -1.0 if scores.step is None else scores.step
            found.setdefault((step, scores.split), []).append(scores)
    return found


def by_item(scores: Sequence[Scores]) -> tuple[dict[str, float], int]:
    """Each item's mean over shots and tries, and how many items broke somewhere."""
    sums: dict[str, list[float]] = {}
    broken: set[str] = set()
    for each in scores:
        for item, value in zip(each.items, each.values.tolist(), strict=True):
            if math.isfinite(value):
                sums.setdefault(item, []).append(value)
            else:
                broken.add(item)
    means = {item: sum(v) / len(v) for item, v in sums.items() if item not in broken}
    return means, len(broken)


def latest(arms: Sequence[Arm], metric: str) -> list[list[Scores]] | None:
    """Scores of all arms at the last step that they share, with the shots that they share.

    Where each arm tested one checkpoint only, it is that one, chosen by whoever tested it.
    """
    spots = [by_spot(arm.replicates[0], metric) for arm in arms]
    tested = [[spot for spot in each if spot[1] == TEST] for each in spots]
    if all(len(each) == 1 for each in tested):
        return same_shots([each[at] for each, (at,) in zip(spots, tested, strict=True)])
    shared = set(spots[0]).intersection(*spots[1:])
    if not shared:
        return None
    return same_shots([each[max(shared, key=what_counts)] for each in spots])


def what_counts(spot: Spot) -> tuple[int, float]:
    """Orders spots: the test before validation, training last; then the later step."""
    step, split = spot
    return {TEST: 2, "train": 0}.get(split, 1), step


def same_shots(groups: Sequence[Sequence[Scores]]) -> list[list[Scores]] | None:
    """Each group with those of its shots that all of them have; None where there are none."""
    sets = [{each.shots for each in group} for group in groups]
    shots = sets[0].intersection(*sets[1:])
    kept = [[each for each in group if each.shots in shots] for group in groups]
    return kept if shots else None


def aligned(groups: Sequence[Sequence[Scores]]) -> Floats | None:
    """A row for each group over the items that are whole in all of them; None if there are none."""
    if sum(len(each.items) for group in groups for each in group) > MOST_SCORES:
        return None
    tables = [by_item(group)[0] for group in groups]
    items = sorted(set(tables[0]).intersection(*tables[1:]))
    if not items:
        return None
    scores = np.array([[table[item] for item in items] for table in tables])
    # Sorted by what they hold: what is drawn at random does not hang on the names of items.
    return scores[:, np.lexsort(scores[::-1])]


def table_of(rows: Sequence[Mapping[str, float]]) -> tuple[list[str], Floats]:
    """All items of some rows, and the rows over them; NaN where a row has none of it."""
    items = sorted(set().union(*rows))
    if all(len(row) == len(items) for row in rows):
        return items, np.array([[row[item] for item in items] for row in rows])
    return items, np.array([[row.get(item, math.nan) for item in items] for row in rows])


def span_of(values: Floats) -> float:
    """The largest difference two scores of an item can have: 1 for scores from 0 to 1."""
    low, high = float(values.min()), float(values.max())
    return 1.0 if low >= 0 and high <= 1 else max(high - low, 1e-9)


@dataclass(frozen=True)
class Stepwise:
    """Scores of the same items at the same steps: a table [item, step] for each training."""

    steps: Floats
    tables: tuple[Floats, ...]


def stepwise(replicates: Sequence[Replicate], metric: str) -> Stepwise | None:
    """What all trainings measured on the same items at the same two or more steps."""
    spots = [by_spot(each, metric) for each in replicates]
    shared = set(spots[0]).intersection(*spots[1:])
    splits = {split: sorted(s for s, other in shared if other == split) for _, split in shared}
    split = max(splits, key=lambda each: len(splits[each]), default="")
    steps = [step for step in splits.get(split, []) if step >= 0]
    if len(steps) < 2:
        return None
    groups = same_shots([each[step, split] for each in spots for step in steps])
    rows = aligned(groups) if groups else None
    if rows is None or rows.shape[1] < 2:
        return None
    tables = np.split(rows, len(replicates))
    return Stepwise(np.array(steps), tuple(np.ascontiguousarray(each.T) for each in tables))


def curve_of(replicate: Replicate, metric: str) -> Curve | None:
    """The metric's logged curve, or where nobody logged one the means of its items over steps."""
    logged = replicate.curve(metric)
    if logged is not None and len(logged):
        return logged
    if metric not in replicate.measured:
        found = stepwise((replicate,), metric)
        made = Curve(metric, "step")
        if found is not None:
            made.take(found.steps, found.tables[0].mean(axis=0))
        replicate.measured[metric] = made
    return replicate.measured[metric] if len(replicate.measured[metric]) else logged


def clusters_of(scores: Sequence[Scores], items: Sequence[str]) -> list[str] | None:
    """The cluster of each item, where all are told."""
    of: dict[str, str] = {}
    for each in scores:
        if each.clusters is not None:
            of.update(zip(each.items, each.clusters, strict=True))
    return [of[item] for item in items] if all(item in of for item in items) else None


# --- every item under every seed


@dataclass(frozen=True)
class Scored:
    """Scores of some arms [arm, run, item]; NaN where an item was not scored in all arms."""

    scores_ASN: Floats
    most: int
    """Items of the run that has most."""
    span: float
    clusters: Sequence[Hashable] | None = None

    @property
    def items(self) -> int:
        """Those of the run that has fewest of them."""
        return int(np.isfinite(self.scores_ASN[0]).sum(axis=1).min())


def scored(arms: Sequence[Arm], metric: str) -> Scored | None:
    """Every item under every seed that the arms share, at the end of each run.

    None where a run did not keep them, no seed is shared by two runs, or some run shares no item.
    """
    runs = [{run.seed: run for run in arm.replicates if run.seed is not None} for arm in arms]
    seeds = sorted(set(runs[0]).intersection(*runs[1:]))
    if len(seeds) < 2:
        return None
    groups = at_the_end([side[seed] for side in runs for seed in seeds], metric)
    if groups is None:
        return None
    rows = [item_means(run, metric, group) for run, group in groups]
    items, table = table_of(rows)
    tables = table.reshape(len(arms), len(seeds), -1)
    tables = np.where(np.isfinite(tables).all(axis=0), tables, np.nan)
    used = np.isfinite(tables[0])
    if not used.any(axis=1).all():
        return None
    kept = used.any(axis=0)
    names_of = [item for item, there in zip(items, kept, strict=True) if there]
    whole = [scores for _, group in groups for scores in group]
    told = any(scores.clusters is not None for scores in whole)
    clusters = clusters_of(whole, names_of) if told else None
    held = tables[:, :, kept]
    return Scored(held, max(map(len, rows)), span_of(held[np.isfinite(held)]), clusters)


def at_the_end(
    runs: Sequence[Replicate], metric: str
) -> list[tuple[Replicate, list[Scores]]] | None:
    """Each run's scores where it counts, with the shots that all of them have."""
    spots = [by_spot(run, metric) for run in runs]
    if not all(spots):
        return None
    groups = same_shots([each[max(each, key=what_counts)] for each in spots])
    if groups is None or sum(len(s.items) for group in groups for s in group) > MOST_SCORES:
        return None
    return list(zip(runs, groups, strict=True))


def item_means(run: Replicate, metric: str, scores: Sequence[Scores]) -> dict[str, float]:
    """By item; kept, because a run is in many pairs."""
    key = metric, tuple(sorted(id(each) for each in scores))
    if key not in run.items:
        run.items[key] = by_item(scores)[0]
    return run.items[key]


# --- one number for a training: over its items at the end, its last cells, its curve's end


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
