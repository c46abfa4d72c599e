"""Runs as replicates of a setting: one mean for each run, or every item under every seed.

Where each item was scored under each seed, what is found is for items like these; where only means
are left, for the items that they are means of.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np

from kleash import stats
from kleash.compare.arms import Arm, Curve, Place, Replicate
from kleash.compare.evidence import Gap, at_steps, means_of, steps_of_all
from kleash.compare.items import (
    MOST_SCORES,
    by_item,
    by_spot,
    clusters_of,
    same_shots,
    span_of,
    table_of,
    what_counts,
)
from kleash.compare.records import Amount, Because, Window
from kleash.imports import Number, Scores, names
from kleash.seeds import generator
from kleash.stats import Floats, SeedGap

FEW_BREAK_OFF = 5  # one in so many trainings


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
    return _tables([[side[seed] for seed in seeds] for side in runs], metric)


def _tables(runs: Sequence[Sequence[Replicate]], metric: str) -> Scored | None:
    """Runs of each arm, in the order in which they are paired."""
    if (
        len(runs[0]) < 2
        or (groups := _at_the_end([r for side in runs for r in side], metric)) is None
    ):
        return None
    rows = [_means(run, metric, group) for run, group in groups]
    items, table = table_of(rows)
    tables = table.reshape(len(runs), len(runs[0]), -1)
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


def _at_the_end(
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


def _means(run: Replicate, metric: str, scores: Sequence[Scores]) -> dict[str, float]:
    """By item; kept, because a run is in many pairs."""
    key = metric, tuple(sorted(id(each) for each in scores))
    if key not in run.items:
        run.items[key] = by_item(scores)[0]
    return run.items[key]


def of_seeds(ours: Arm, theirs: Arm, metric: str) -> Gap | None:
    """Over seeds: paired where both arms have the seed, else Welch; with items where they are."""
    left, right = ({run.seed: run for run, _ in run_means(arm, metric)} for arm in (ours, theirs))
    both = sorted(seed for seed in left.keys() & right.keys() if seed is not None)
    if len(both) < 2:
        return _apart(ours, theirs, metric)
    gap = _paired(ours, theirs, metric, [(left[seed], right[seed]) for seed in both])
    for arm, side, other in ((ours, left, theirs), (theirs, right, ours)):
        if alone := [seed for seed in side if seed is not None and seed not in both]:
            facts = {"arm": arm.name, "seeds": alone, "other": other.name}
            gap.because.append(Because("seeds_of_one_arm", facts))
    return gap


def _paired(
    ours: Arm, theirs: Arm, metric: str, pairs: Sequence[tuple[Replicate, Replicate]]
) -> Gap:
    """Runs that share their seeds, item by item where all have these."""
    found = scored((ours, theirs), metric)
    if found is not None and found.scores_ASN.shape[1] == len(pairs):
        one, other = found.scores_ASN
        gap = stats.crossed_seeds(one - other, found.clusters, span=found.span)
        return gap_of(gap, np.nanmean(found.scores_ASN, axis=(1, 2)), metric, found)
    means = np.array([shared_run_means(pair, metric) for pair in pairs])
    made = gap_of(stats.paired_seeds(*means.T), means.mean(axis=0), metric)
    return _placed(made, [shared_end(pair, metric) for pair in pairs])


def _apart(ours: Arm, theirs: Arm, metric: str) -> Gap | None:
    """Runs that share no seeds."""
    loose = [run_means(arm, metric) for arm in (ours, theirs)]
    if min(map(len, loose)) < 2:
        return None
    runs = [run for side in loose for run, _ in side]
    every = shared_run_means(runs, metric)
    means = every[: len(loose[0])], every[len(loose[0]) :]
    tables = _apart_by_items([[run for run, _ in side] for side in loose], metric)
    rng = generator("compare", "seeds")
    span = None if tables is None else span_of(np.concatenate(tables))
    found = stats.unpaired_seeds(means[0], means[1], rng, items=tables, span=span)
    gap = gap_of(found.welch, [float(np.mean(side)) for side in means], metric, paired=False)
    gap = _placed(gap, [shared_end(runs, metric)])
    gap.items = None if tables is None else tables[0].shape[1]
    return gap


def _apart_by_items(
    runs: Sequence[Sequence[Replicate]], metric: str
) -> tuple[Floats, Floats] | None:
    """Scores [run, item] of both arms over the items that all runs have."""
    groups = _at_the_end([run for side in runs for run in side], metric)
    if groups is None:
        return None
    _, table = table_of([_means(run, metric, group) for run, group in groups])
    whole = table[:, np.isfinite(table).all(axis=0)]
    return (whole[: len(runs[0])], whole[len(runs[0]) :]) if whole.shape[1] > 1 else None


def _placed(gap: Gap, ends: Sequence[Window | None]) -> Gap:
    """A gap of curves with where on them it is; runs that broke off end sooner than others."""
    known = sorted({end for end in ends if end is not None}, key=lambda end: end.last)
    gap.of_curves = bool(known)
    if len(known) == 1 and None not in ends:
        gap.over = known[0]
    elif len(known) > 1:
        first, last = known[0], known[-1]
        facts = {"axis": last.axis, "first": first.last, "last": last.last}
        gap.because.append(Because("ends_differ", facts))
    return gap


def gap_of(
    gap: SeedGap,
    means: Sequence[float] | Floats,
    metric: str,
    found: Scored | None = None,
    *,
    paired: bool = True,
) -> Gap:
    """What is told about a gap over seeds; `means` are those of the two arms."""
    seeds = gap.interval.n
    ours, theirs = (Amount(float(mean), _unit(metric)) for mean in means)
    told = {"n": seeds, "paired": paired, "ours": ours, "theirs": theirs}
    made = Gap(
        estimate=gap.interval.estimate,
        width=gap.width,
        n=seeds,
        counted="seeds",
        spread=gap.sd,
        seeds=seeds,
        because=[
            Because("seed_means", told),
            for_items(gap, _unit(metric)),
        ],
        baseline_mean=theirs.value,
    )
    if found is not None:
        one, other = found.scores_ASN
        made.items = found.items
        made.k = int((np.abs(one - other) > 1e-12).any(axis=0).sum())  # of NaN none is
        made.span = found.span
        if found.items < found.most:
            counts = {"n": found.items, "of": found.most}
            made.because.append(Because("common_items", counts))
    return made


def for_items(gap: SeedGap, unit: str) -> Because:
    """For which items it holds: for those like these, or for these alone."""
    if len(gap.errors) < 2:
        return Because("on_these_items")
    inside = gap.on_these_items
    whole = sum(error**2 for error, _ in gap.errors)
    facts = {
        "share": f"{gap.items_error**2 / whole if whole else 0.0:.0%}",
        "low": Amount(inside.low, unit, gap=True),
        "high": Amount(inside.high, unit, gap=True),
    }
    return Because("on_items_like_these", facts)


def _unit(metric: str) -> str:
    known = names.metric(metric)
    return known.unit if known else ""


# --- one mean for each run


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
        found = [_last_cell({place: each[place] for place in places}) for each in cells if places]
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


def _run_mean(replicate: Replicate, metric: str) -> float | None:
    """Over a training's items at the end, else over its last cells or the end of its curve."""
    spots = by_spot(replicate, metric)
    if spots:
        means = _means(replicate, metric, spots[max(spots, key=what_counts)])
        return float(np.add.reduce(list(means.values()))) / len(means) if means else None
    if cells := means_of(replicate, metric):
        value = _last_cell(cells)
        if value is not None:
            return value
    curve = replicate.curve(metric)
    return float(stats.end_of(curve.values).mean()) if curve is not None and len(curve) else None


def _last_cell(cells: dict[Place, dict[int | None, Number]]) -> float | None:
    place = max(cells, key=lambda p: (p[2] or 0, p[0] or 0, p[1] or 0))
    values = [number.value for number in cells[place].values() if number.value is not None]
    return float(np.mean(values)) if values else None
