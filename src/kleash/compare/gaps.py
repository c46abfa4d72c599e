"""The gap of two arms, worked out once, by the strongest data both have.

In order: runs that share seeds (item by item where items were kept), items, printed means of the
same size, curves. Each function returns None where its kind of data is not there. It is long
because the ways to a gap stand side by side, so that nobody takes one elsewhere.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from itertools import chain
from typing import Literal

import numpy as np

from kleash import stats
from kleash.compare.arms import Arm, Curve, Replicate
from kleash.compare.items import (
    Means,
    Scored,
    at_steps,
    at_the_end,
    by_item,
    clusters_of,
    curve_of,
    item_means,
    last_of,
    latest,
    means_of,
    run_means,
    scored,
    shared_end,
    shared_run_means,
    span_of,
    steps_of_all,
    table_of,
)
from kleash.compare.read import names
from kleash.compare.records import Amount, Because, Window
from kleash.stats import NORMAL, Floats, Interval, SeedGap, Width
from kleash.types import BROKEN_SHARE

FEWEST_STEPS = 8
FEWEST_ALIKE = 3  # equal printed means before identical outputs are named


@dataclass
class Gap:
    """A gap with its width, and all that a verdict has to be told about it."""

    estimate: float
    width: Width
    n: int
    counted: Literal["steps", "items", "seeds"]
    k: int | None = None
    """Items that differ, under any seed."""
    spread: float | None = None
    span: float = 1.0
    seeds: int = 1
    item_scores: bool = False
    items: int | None = None
    """Those behind seeds, where each was scored under each."""
    of_curves: bool = False
    over: Window | None = None
    """Of curves: where on them it is, if that is one place in all runs."""
    too_few: bool = False
    """Steps for an interval."""
    integrity: list[str] = field(default_factory=list)
    because: list[Because] = field(default_factory=list)
    baseline_mean: float = 0.0


@lru_cache(maxsize=1024)
def unit_of(metric: str) -> str:
    """The unit of a metric, or none where it is not known."""
    known = names.metric(metric)
    return known.unit if known else ""


def gap_of_pair(ours: Arm, theirs: Arm, metric: str) -> Gap | None:
    """What two arms can be compared on, by the strongest data there are."""
    return (
        of_seeds(ours, theirs, metric)
        or of_items(ours, theirs, metric)
        or of_means(ours, theirs, metric)
        or of_curves(ours, theirs, metric)
    )


# --- runs as replicates


def of_seeds(ours: Arm, theirs: Arm, metric: str) -> Gap | None:
    """Over seeds: paired where both arms have the seed, else Welch; with items where they are."""
    left, right = ({run.seed: run for run, _ in run_means(arm, metric)} for arm in (ours, theirs))
    both = sorted(seed for seed in left.keys() & right.keys() if seed is not None)
    if len(both) < 2:
        return _of_other_seeds(ours, theirs, metric)
    gap = _of_same_seeds(ours, theirs, metric, [(left[seed], right[seed]) for seed in both])
    for arm, side, other in ((ours, left, theirs), (theirs, right, ours)):
        if alone := [seed for seed in side if seed is not None and seed not in both]:
            facts = {"arm": arm.name, "seeds": alone, "other": other.name}
            gap.because.append(Because("seeds_of_one_arm", facts))
    return gap


def _of_same_seeds(
    ours: Arm, theirs: Arm, metric: str, pairs: Sequence[tuple[Replicate, Replicate]]
) -> Gap:
    """Item by item where all runs have these."""
    found = scored((ours, theirs), metric)
    if found is not None and found.scores_ASN.shape[1] == len(pairs):
        one, other = found.scores_ASN
        gap = stats.crossed_seeds(one - other, found.clusters, span=found.span)
        return over_seeds(gap, np.nanmean(found.scores_ASN, axis=(1, 2)), metric, found)
    means = np.array([shared_run_means(pair, metric) for pair in pairs])
    made = over_seeds(stats.paired_seeds(*means.T), means.mean(axis=0), metric)
    return _placed(made, [shared_end(pair, metric) for pair in pairs])


def _of_other_seeds(ours: Arm, theirs: Arm, metric: str) -> Gap | None:
    """Runs that share no seeds."""
    sides = [[run for run, _ in run_means(arm, metric)] for arm in (ours, theirs)]
    if min(map(len, sides)) < 2:
        return None
    runs, first = [*sides[0], *sides[1]], len(sides[0])
    means = shared_run_means(runs, metric)
    tables, span = None, None
    if (groups := at_the_end(runs, metric)) is not None:
        _, table = table_of([item_means(run, metric, group) for run, group in groups])
        whole = table[:, np.isfinite(table).all(axis=0)]
        if whole.shape[1] > 1:
            tables, span = (whole[:first], whole[first:]), span_of(whole)
    found = stats.unpaired_seeds(means[:first], means[first:], items=tables, span=span)
    both = [float(np.mean(means[:first])), float(np.mean(means[first:]))]
    gap = _placed(over_seeds(found, both, metric, paired=False), [shared_end(runs, metric)])
    gap.items = None if tables is None else tables[0].shape[1]
    return gap


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


def over_seeds(
    gap: SeedGap,
    means: Sequence[float] | Floats,
    metric: str,
    found: Scored | None = None,
    *,
    paired: bool = True,
) -> Gap:
    """What is told about a gap over seeds; `means` are those of the two arms."""
    seeds, unit = gap.interval.n, unit_of(metric)
    ours, theirs = (Amount(float(mean), unit) for mean in means)
    facts = {"n": seeds, "paired": paired, "ours": ours, "theirs": theirs}
    made = Gap(
        estimate=gap.interval.estimate,
        width=gap.width,
        n=seeds,
        counted="seeds",
        spread=gap.sd,
        seeds=seeds,
        because=[Because("seed_means", facts), for_items(gap, unit)],
        baseline_mean=theirs.value,
    )
    if found is not None:
        one, other = found.scores_ASN
        made.items, made.span = found.items, found.span
        made.k = int((np.abs(one - other) > 1e-12).any(axis=0).sum())  # of NaN none is
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


# --- items


def of_items(ours: Arm, theirs: Arm, metric: str) -> Gap | None:
    """Scores of the same items under two checkpoints, averaged over shots and tries per item."""
    pair = latest((ours, theirs), metric)
    if pair is None:
        return None
    (left, lost), (right, other_lost) = (by_item(scores) for scores in pair)
    items = sorted(left.keys() & right.keys(), key=lambda item: (left[item], right[item]))
    if not items:
        return None
    one = np.array([left[item] for item in items])
    other = np.array([right[item] for item in items])
    gap = of_rows(one, other, clusters_of(pair[0], items))
    most = max(len(left), len(right))
    if len(items) < most:
        gap.because.append(Because("common_items", {"n": len(items), "of": most}))
    broken = max(lost / max(1, lost + len(left)), other_lost / max(1, other_lost + len(right)))
    gap.integrity = ["broken_items"] if broken > BROKEN_SHARE else []
    return gap


def of_rows(one: Floats, other: Floats, clusters: Sequence[str] | None = None) -> Gap:
    """Scores of the same items, ours and theirs."""
    span = span_of(np.concatenate([one, other]))
    found = stats.gaps(one, other)
    width = stats.mean_width(found, (-span, span))
    if clusters is not None and len(set(clusters)) > 1:
        width = stats.clustered_width(found, clusters, span=span)
    k = int((found != 0).sum())
    return Gap(
        estimate=float(found.mean()),
        width=width,
        n=len(found),
        counted="items",
        k=k,
        spread=stats.spread_bound(found, span=span),
        span=span,
        item_scores=True,
        because=[Because("items_differ", {"k": k, "n": len(found)})],
        baseline_mean=float(other.mean()),
    )


# --- means alone


@dataclass(frozen=True)
class SharedMeans:
    """Printed means of both arms at one place: the mean over shots, and what lies behind it."""

    ours: float
    theirs: float
    shots: int
    """Counts of shots that both have."""
    items: int | None
    cells: int
    """Means that both arms have, at whatever place."""
    alike: int
    """Those that are printed the same."""
    moved: bool = False
    """Whether one arm has one checkpoint only, and it is held against the other's last."""


def shared_means(ours: Arm, theirs: Arm, metric: str) -> SharedMeans | None:
    """What both arms have at the largest n and the last epoch that they share."""
    sides = [means_of(arm.replicates[0], metric) for arm in (ours, theirs)]
    left, right = _at_one_place(*sides)
    pairs: dict[object, list[tuple[float, float]]] = {}
    for place in left.keys() & right.keys():
        for shots in sorted(left[place].keys() & right[place].keys(), key=lambda s: s or 0):
            one, other = left[place][shots].value, right[place][shots].value
            if one is not None and other is not None:
                pairs.setdefault(place, []).append((one, other))
    if not pairs:
        return None
    place = last_of({each for each in left if each in pairs})
    every = [pair for each in pairs.values() for pair in each]
    return SharedMeans(
        ours=float(np.mean([one for one, _ in pairs[place]])),
        theirs=float(np.mean([other for _, other in pairs[place]])),
        shots=len(pairs[place]),
        items=place[2],
        cells=len(every),
        alike=sum(one == other for one, other in every),
        moved=left is not sides[0],
    )


def _at_one_place(left: Means, right: Means) -> tuple[Means, Means]:
    """The same; what was measured at one checkpoint only is held against the other's last.

    Arms that are not trained, or are what others were trained from, have no epochs to share.
    """
    if left.keys() & right.keys():
        return left, right
    times = [{(place[0] or 0, place[1] or 0) for place in side} for side in (left, right)]
    if not all(times) or min(map(len, times)) > 1:
        return left, right

    def at_its_last(side: Means, last: tuple[float, float]) -> Means:
        here = {place: c for place, c in side.items() if (place[0] or 0, place[1] or 0) == last}
        return {(None, None, *place[2:]): cells for place, cells in here.items()}

    return at_its_last(left, max(times[0])), at_its_last(right, max(times[1]))


def of_means(ours: Arm, theirs: Arm, metric: str) -> Gap | None:
    """Cells of a matrix. The scores behind them are lost, so nothing is known about pairs.

    The interval is that of two unrelated samples with the largest spread such means can have.
    """
    seen, unit = shared_means(ours, theirs, metric), unit_of(metric)
    if seen is None or not seen.items or unit != "fraction":
        return None
    if not all(0 <= mean <= 1 for mean in (seen.ours, seen.theirs)):
        return None  # not the fractions that their name promises
    n, mine, base = seen.items, seen.ours, seen.theirs
    identical = seen.alike == seen.cells >= FEWEST_ALIKE
    if identical:
        edge = stats.differing_bound(0, n)
        width = Width.stretched(Interval(0.0, -edge, edge, 0.95, n))
        because = [Because("printed_alike", {"cells": seen.cells, "n": n})]
    else:
        spread = math.sqrt((mine * (1 - mine) + base * (1 - base)) / n)
        width = Width(mine - base, ((spread, NORMAL),), stats.least_error(1.0, 0.0, n - 1.0))
        facts = {"ours": Amount(mine, unit), "theirs": Amount(base, unit)}
        because = [Because("cell_means", facts | {"shots": seen.shots, "n": n})]
        because += [Because("scores_lost", {"n": n}), *_at_best(seen, n, (ours, theirs), metric)]
    because += [Because("one_checkpoint")] if seen.moved else []
    return Gap(
        estimate=width.middle,
        width=width,
        n=n,
        counted="items",
        k=0 if identical else None,
        because=because,
        baseline_mean=base,
    )


def _at_best(seen: SharedMeans, n: int, arms: Sequence[Arm], metric: str) -> list[Because]:
    """How small p could be if the lost scores had gone all one way, from their lattice."""
    printed = [
        (number.value, float(place[2]), 0.5 * 10.0**-number.decimals)
        for arm in arms
        for place, cells in means_of(arm.replicates[0], metric).items()
        for number in cells.values()
        if number.value is not None and place[2] and number.decimals is not None
    ]
    lattice = stats.lattice_of_means(*zip(*printed, strict=True)) if printed else None
    if lattice is None:
        return []
    bound = stats.aggregate_bound(seen.ours, seen.theirs, n, lattice.step / seen.shots)
    return [Because("p_at_best", {"least": bound.p_min, "k": bound.most_differing})]


# --- curves


def curves_of_pair(ours: Arm, theirs: Arm, metric: str) -> tuple[Curve, Curve] | None:
    """The first training of each arm that has the metric, on the same axis; of one seed if any."""
    sides = []
    for arm in (ours, theirs):
        curves = [(each.seed, curve_of(each, metric)) for each in arm.replicates]
        sides.append([(seed, c) for seed, c in curves if c is not None and len(c)])
    first = None
    for seed, one in sides[0]:
        for twin, other in sides[1]:
            if one.axis == other.axis:
                if seed == twin or None in (seed, twin):
                    return one, other
                first = first or (one, other)
    return first


def of_curves(ours: Arm, theirs: Arm, metric: str, *, at_end: bool = False) -> Gap | None:
    """The mean gap of one run each over the steps both have, or the gap at their end.

    Of the end what bends is the noise.
    """
    pair = curves_of_pair(ours, theirs, metric)
    if pair is None or len(steps := steps_of_all(pair)) < (3 if at_end else 2):
        return None
    one, other = (at_steps(curve, steps) for curve in pair)
    found = stats.end_gap(one, other) if at_end else stats.curve_gap(one, other)
    inside = stats.end_of(steps) if at_end else steps
    window = Window(pair[0].axis, float(inside[0]), float(inside[-1]))
    unit = unit_of(metric)
    means = [Amount(float(at_steps(c, inside).mean()), unit) for c in pair]
    facts = asdict(window) | {"n": len(inside), "ours": means[0], "theirs": means[1]}
    because = [Because("curve_means" if len(inside) > 1 else "curve_ends", facts)]
    because += [
        Because(
            "estimates_unused", {"arm": arm.name, "count": curve.estimated, "usable": len(curve)}
        )
        for arm, curve in zip((ours, theirs), pair, strict=True)
        if curve.estimated
    ]
    because += [Because(code) for code in found.warnings if code != "too_few_steps"]
    return Gap(
        estimate=found.width.middle,
        width=found.width,
        n=found.n,
        counted="steps",
        of_curves=True,
        over=window,
        too_few=len(steps) < FEWEST_STEPS,
        integrity=["two_histories"] if any(curve.others for curve in pair) else [],
        because=because,
        baseline_mean=means[1].value,
    )


@dataclass(frozen=True)
class SeedCurves:
    """Curves [seed, step] of two arms over the seeds and steps that all of them have."""

    steps: Floats
    ours: Floats
    theirs: Floats
    axis: str
    left: list[Because]
    """That seeds are left out, because a run of theirs has too few steps."""


def curves_over_seeds(ours: Arm, theirs: Arm, metric: str, fewest: int) -> SeedCurves | None:
    """The curves of all runs that share a seed; None below two seeds or so many steps.

    Where those that broke off leave too few steps to the others, they are left out.
    """
    runs = {each.seed: each for each in theirs.replicates if each.seed is not None}
    pairs = [
        (left, right)
        for each in ours.replicates
        if each.seed in runs
        and (left := curve_of(each, metric)) is not None
        and (right := curve_of(runs[each.seed], metric)) is not None
    ]
    curves = [*chain.from_iterable(pairs)]
    if len(pairs) < 2 or len({curve.axis for curve in curves}) > 1:
        return None
    if any(curve.others or not len(curve) for curve in curves):
        return None
    every, steps = len(pairs), steps_of_all(curves)
    while len(steps) < fewest and len(pairs) > 2:
        shared = [len(steps_of_all(pair)) for pair in pairs]
        pairs.pop(shared.index(min(shared)))
        steps = steps_of_all([*chain.from_iterable(pairs)])
    if len(steps) < fewest:
        return None
    one, other = (np.array([at_steps(c, steps) for c in side]) for side in zip(*pairs, strict=True))
    lost = every - len(pairs)
    told = [Because("seeds_left_out", {"n": lost})] if lost else []
    return SeedCurves(steps, one, other, curves[0].axis, told)


def average_over_seeds(ours: Arm, theirs: Arm, metric: str) -> Gap | None:
    """The mean over the steps that all runs share, over seeds."""
    seen = curves_over_seeds(ours, theirs, metric, fewest=2)
    if seen is None:
        return None
    means = [side.mean(axis=1) for side in (seen.ours, seen.theirs)]
    gap = over_seeds(stats.paired_seeds(*means), [float(side.mean()) for side in means], metric)
    gap.over = Window(seen.axis, float(seen.steps[0]), float(seen.steps[-1]))
    gap.because = [each for each in gap.because if each.code == "seed_means"] + seen.left
    return gap
