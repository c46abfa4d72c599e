"""What two runs can be compared on: items, curves or means alone, the strongest first.

Each function returns the pieces of a verdict or None where its kind of data is not there. Runs as
replicates of a setting, which come before all of these, are in `seeds`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from functools import reduce
from itertools import chain
from typing import Literal

import numpy as np

from kleash import stats
from kleash.compare.arms import Arm, Curve, Place, Replicate
from kleash.compare.items import by_item, clusters_of, curve_of, latest, span_of
from kleash.compare.records import Amount, Because, Window
from kleash.imports import Number
from kleash.stats import NORMAL, CurveGap, Floats, Interval, Width
from kleash.types import BROKEN_SHARE

FEWEST_STEPS = 8
FEWEST_ALIKE = 3  # equal printed means before identical outputs are named
LOG = 2_000  # points beyond which a curve is a log of training, which has no best step


@dataclass
class Gap:
    """A gap with its width, and all that a verdict has to be told about it."""

    estimate: float
    width: Width
    n: int
    counted: Literal["steps", "items", "seeds"]
    k: int | None = None
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


def common(ours: Curve, theirs: Curve) -> stats.Floats:
    """The steps at which both curves have a known value."""
    return np.intersect1d(ours.steps, theirs.steps)


def steps_of_all(curves: Sequence[Curve]) -> stats.Floats:
    """The steps at which all of them have a known value; mostly they have the same in one array."""
    return reduce(np.intersect1d, {id(curve.steps): curve.steps for curve in curves}.values())


def at_steps(curve: Curve, steps: stats.Floats) -> stats.Floats:
    """A curve's values at these steps, all of which it has."""
    values: stats.Floats = curve.values[np.searchsorted(curve.steps, steps)]
    return values


def upwards(curve: Curve, steps: stats.Floats, direction: int) -> stats.Floats:
    """The curve at these steps, turned so that higher is better."""
    return at_steps(curve, steps) * (direction or 1)


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


@dataclass(frozen=True)
class Courses:
    """Curves [seed, step] of two arms over the seeds and steps that all of them have."""

    steps: Floats
    ours: Floats
    theirs: Floats
    axis: str
    left: int = 0
    """Seeds that are left out, because a run of theirs has too few steps."""


def courses_of_pair(ours: Arm, theirs: Arm, metric: str, fewest: int) -> Courses | None:
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
    curves = [curve for pair in pairs for curve in pair]
    if len(pairs) < 2 or len({curve.axis for curve in curves}) > 1:
        return None
    if any(curve.others or not len(curve) for curve in curves):
        return None
    every = len(pairs)
    steps = steps_of_all([*chain.from_iterable(pairs)])
    while len(steps) < fewest and len(pairs) > 2:
        shared = [len(common(*pair)) for pair in pairs]
        pairs.pop(shared.index(min(shared)))
        steps = steps_of_all([*chain.from_iterable(pairs)])
    if len(steps) < fewest:
        return None
    sides = [
        np.array([at_steps(curve, steps) for curve in side]) for side in zip(*pairs, strict=True)
    ]
    return Courses(steps, sides[0], sides[1], curves[0].axis, every - len(pairs))


def left_out(seen: Courses) -> list[Because]:
    """That seeds are, if any."""
    return [Because("seeds_left_out", {"n": seen.left})] if seen.left else []


def of_ends(ours: Arm, theirs: Arm, metric: str, unit: str) -> Gap | None:
    """The gap of two curves at the end of the steps both have; what bends is its noise."""
    return _of_two(ours, theirs, metric, unit, stats.end_gap, stats.end_of, fewest=3)


def of_averages(ours: Arm, theirs: Arm, metric: str, unit: str) -> Gap | None:
    """The mean gap of two curves over the steps both have."""
    return _of_two(ours, theirs, metric, unit, stats.curve_gap, lambda steps: steps, fewest=2)


def _of_two(
    ours: Arm,
    theirs: Arm,
    metric: str,
    unit: str,
    gap: Callable[..., CurveGap],
    where: Callable[[Floats], Floats],
    *,
    fewest: int,
) -> Gap | None:
    """Two curves of one run each, over `where` of the steps they share."""
    pair = curves_of_pair(ours, theirs, metric)
    if pair is None or len(steps := common(*pair)) < fewest:
        return None
    one, other = (at_steps(curve, steps) for curve in pair)
    found = gap(one, other)
    assert found.width is not None  # no blocks
    inside = where(steps)
    window = Window(pair[0].axis, float(inside[0]), float(inside[-1]))
    ours_mean, theirs_mean = (Amount(float(at_steps(c, inside).mean()), unit) for c in pair)
    facts = asdict(window) | {"n": len(inside), "ours": ours_mean, "theirs": theirs_mean}
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
        estimate=found.interval.estimate,
        width=found.width,
        n=found.interval.n,
        counted="steps",
        of_curves=True,
        over=window,
        too_few=len(steps) < FEWEST_STEPS,
        integrity=["two_histories"] if any(curve.others for curve in pair) else [],
        because=because,
        baseline_mean=theirs_mean.value,
    )


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


def means_of(replicate: Replicate, metric: str) -> dict[Place, dict[int | None, Number]]:
    """The measured cells of a metric, by place; statistics of whole runs are not among them."""
    return {
        place: cells
        for (name, place), cells in replicate.cells.items()
        if name == metric and not place[4]
    }


@dataclass(frozen=True)
class SharedMeans:
    """Printed means of both arms at one place: the mean over shots, and what lies behind it."""

    ours: float
    theirs: float
    shots: tuple[tuple[float, float], ...]
    """Ours and theirs for each count of shots that both have."""
    items: int | None
    epoch: float | None
    cells: int
    """Means that both arms have, at whatever place."""
    alike: int
    """Those that are printed the same."""
    moved: bool = False
    """Whether one arm has one checkpoint only, and it is held against the other's last."""


def shared_means(ours: Arm, theirs: Arm, metric: str) -> SharedMeans | None:
    """What both arms have at the largest n and the last epoch that they share."""
    told = [means_of(arm.replicates[0], metric) for arm in (ours, theirs)]
    left, right = _at_one_place(*told)
    pairs: dict[Place, list[tuple[float, float]]] = {}
    for place in left.keys() & right.keys():
        for shots in sorted(left[place].keys() & right[place].keys(), key=lambda s: s or 0):
            one, other = left[place][shots].value, right[place][shots].value
            if one is not None and other is not None:
                pairs.setdefault(place, []).append((one, other))
    if not pairs:
        return None
    place = max(pairs, key=lambda p: (p[2] or 0, p[0] or 0, p[1] or 0))
    every = [pair for each in pairs.values() for pair in each]
    return SharedMeans(
        ours=float(np.mean([one for one, _ in pairs[place]])),
        theirs=float(np.mean([other for _, other in pairs[place]])),
        shots=tuple(pairs[place]),
        items=place[2],
        epoch=place[0],
        cells=len(every),
        alike=sum(one == other for one, other in every),
        moved=left is not told[0],
    )


Means = dict[Place, dict[int | None, Number]]


def _at_one_place(left: Means, right: Means) -> tuple[Means, Means]:
    """The same; what was measured at one checkpoint only is held against the other's last.

    Arms that are not trained, or are what others were trained from, have no epochs to share.
    """
    if left.keys() & right.keys():
        return left, right
    times = [{(place[0] or 0, place[1] or 0) for place in side} for side in (left, right)]
    if not all(times) or min(map(len, times)) > 1:
        return left, right
    kept: list[Means] = []
    for side, moments in zip((left, right), times, strict=True):
        last = max(moments)
        kept.append(
            {
                (None, None, *place[2:]): cells
                for place, cells in side.items()
                if (place[0] or 0, place[1] or 0) == last
            }
        )
    return kept[0], kept[1]


def of_means(ours: Arm, theirs: Arm, metric: str, unit: str) -> Gap | None:
    """Cells of a matrix. The scores behind them are lost, so nothing is known about pairs.

    The interval is that of two unrelated samples with the largest spread such means can have.
    """
    seen = shared_means(ours, theirs, metric)
    if seen is None or not seen.items or unit != "fraction":
        return None
    if not all(0 <= mean <= 1 for mean in (seen.ours, seen.theirs)):
        return None  # not the fractions that their name promises
    n, mine, base = seen.items, seen.ours, seen.theirs
    facts = {
        "ours": Amount(mine, unit),
        "theirs": Amount(base, unit),
        "shots": len(seen.shots),
        "n": n,
    }
    because = [Because("cell_means", facts)]
    spread = math.sqrt((mine * (1 - mine) + base * (1 - base)) / n)
    identical = seen.alike == seen.cells >= FEWEST_ALIKE
    width = Width(mine - base, ((spread, NORMAL),), stats.least_error(1.0, 0.0, n - 1.0))
    if identical:
        edge = stats.differing_bound(0, n)
        width = Width.stretched(Interval(0.0, -edge, edge, 0.95, n))
        because = [Because("printed_alike", {"cells": seen.cells, "n": n})]
    else:
        because.append(Because("scores_lost", {"n": n}))
        because += _at_best(seen, n, _printed(ours, metric) + _printed(theirs, metric))
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


def _printed(arm: Arm, metric: str) -> list[tuple[float, float, float]]:
    """Every printed mean of an arm with its n and how far rounding may have moved it."""
    return [
        (number.value, float(place[2]), 0.5 * 10.0**-number.decimals)
        for place, cells in means_of(arm.replicates[0], metric).items()
        for number in cells.values()
        if number.value is not None and place[2] and number.decimals is not None
    ]


def _at_best(seen: SharedMeans, n: int, printed: list[tuple[float, float, float]]) -> list[Because]:
    """How small p could be if the lost scores had gone all one way, from their lattice."""
    lattice = stats.lattice_of_means(*zip(*printed, strict=True)) if printed else None
    if lattice is None:
        return []
    step = lattice.smallest_gap / len(seen.shots)
    bound = stats.aggregate_bound(seen.ours, seen.theirs, n, step)
    return [Because("p_at_best", {"least": bound.p_min, "k": bound.most_differing})]
