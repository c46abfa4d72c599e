"""Faster? Steps to a common threshold, never to an arm's own best.

Over seeds where both arms have them; of one run each there is an interval where both have scores of
the same items at the same steps; else only what was seen.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from kleash import stats
from kleash.compare.evidence import (
    Courses,
    common,
    courses_of_pair,
    curves_of_pair,
    left_out,
    upwards,
)
from kleash.compare.items import Stepwise, stepwise
from kleash.compare.judging import Pair, over_seeds, settled
from kleash.compare.records import Amount, Because, Judged
from kleash.compare.seeds import for_items
from kleash.seeds import generator
from kleash.stats import Floats, Width

FEWEST_POINTS = 4
THRESHOLDS = 50
DRAWS = 1_000


def faster(pair: Pair) -> Judged | None:
    """Over seeds, else by items; from curves of one run each nothing is decided."""
    return _over_seeds(pair) or _by_items(pair) or _by_curves(pair)


def _over_seeds(pair: Pair) -> Judged | None:
    """One gap in steps for each seed, then t; for items like these where their scores are there."""
    seen = courses_of_pair(pair.ours, pair.theirs, pair.metric, FEWEST_POINTS)
    if seen is None:
        return None
    sign = pair.known.direction or 1
    curves, items = (sign * seen.ours, sign * seen.theirs), _items_over_seeds(pair, seen)
    threshold = _half_way(curves[0].mean(axis=0), curves[1].mean(axis=0))
    if threshold is None:
        return None
    rng = generator("compare", "faster")
    wide = stats.speed_over_seeds(seen.steps, curves, threshold, rng, items=items)
    facts = {
        "threshold": Amount(sign * threshold, pair.known.unit),
        "ours": wide.ours,
        "theirs": wide.theirs,
        "axis": seen.axis,
        "n": wide.gap.interval.n,
        "late": wide.late,
        "of": 2 * wide.gap.interval.n,
    }
    spacing = float(np.diff(seen.steps).max())
    blank = Judged(
        question="faster",
        metric=pair.metric,
        unit=seen.axis,
        arms=pair.names,
        verdict="undecided",
        level="L1",
        margin=spacing,
        because=(
            Because("threshold_over_seeds", facts),
            for_items(wide.gap, seen.axis),
            *left_out(seen),
        ),
    )
    return over_seeds(pair, blank, wide.gap)


def _items_over_seeds(pair: Pair, seen: Courses) -> tuple[Floats, Floats] | None:
    """The scores behind the curves [seed, item, step], where they are what the curves are of."""
    runs = {each.seed: each for each in pair.theirs.replicates if each.seed is not None}
    both = [
        run for each in pair.ours.replicates if each.seed in runs for run in (each, runs[each.seed])
    ]
    table = stepwise(both, pair.metric) if len(both) == 2 * len(seen.ours) else None
    if table is None or not np.array_equal(table.steps, seen.steps):
        return None
    tables = (pair.known.direction or 1) * np.array(table.tables)
    return tables[0::2], tables[1::2]


def _half_way(ours: Floats, theirs: Floats) -> float | None:
    """Half way from where both began to the lower of the two highest values; None if one falls.

    At the highest value itself, which one arm just reaches, half of its runs would not arrive.
    """
    top = float(min(ours.max(), theirs.max()))
    if not top > max(ours[0], theirs[0]):
        return None  # an arm that never rises arrives nowhere
    return float((ours[0] + theirs[0]) / 2 + top) / 2


def _by_items(pair: Pair) -> Judged | None:
    """The interval of the gap in steps, over items drawn again."""
    table = stepwise((pair.ours.replicates[0], pair.theirs.replicates[0]), pair.metric)
    if table is None or len(table.steps) < FEWEST_POINTS:
        return None
    sign = pair.known.direction or 1
    ours, theirs = (sign * each for each in table.tables)
    threshold = _half_way(ours.mean(axis=0), theirs.mean(axis=0))
    if threshold is None:
        return None
    at = (table.steps, table.steps)
    rng = generator("compare", "faster")
    found = stats.speed_by_items(at, ours, theirs, threshold, rng, draws=DRAWS)
    assert found.gap is not None
    spacing = _spacing(table)
    # An arrival is known to one evaluation only: where no draw moves it, that is left.
    rounding = ((spacing / math.sqrt(6), stats.NORMAL),)
    width = replace(Width.stretched(found.gap), turned=True, least=rounding)
    facts = _facts(pair, found, "step")
    judged = Judged(
        question="faster",
        metric=pair.metric,
        unit="step",
        arms=pair.names,
        verdict="undecided",
        level="L2",
        estimate=found.gap.estimate,
        n=found.gap.n,
        counted="items",
        margin=spacing,
        width=width,
        also_changed=pair.also_changed(),
        because=(Because("threshold_half_way", facts), Because("first_runs_only")),
    )
    return settled(judged)


def _spacing(table: Stepwise) -> float:
    """Steps between evaluations: nothing finer can be seen."""
    return float(np.diff(table.steps).max())


def _facts(pair: Pair, found: stats.Speed, axis: str) -> dict[str, object]:
    sign = pair.known.direction or 1
    threshold = Amount(sign * found.threshold, pair.known.unit)
    return {"threshold": threshold, "ours": found.ours, "theirs": found.theirs, "axis": axis}


def _by_curves(pair: Pair) -> Judged | None:
    """Steps to the highest value that both curves reach.

    Other thresholds are counted, too, so that no single one decides.
    """
    curves = curves_of_pair(pair.ours, pair.theirs, pair.metric)
    if curves is None or len(steps := common(*curves)) < FEWEST_POINTS:
        return None
    sign = pair.known.direction or 1
    ours, theirs = (upwards(curve, steps, sign) for curve in curves)
    found = stats.speed(steps, ours, steps, theirs, float(min(ours.max(), theirs.max())))
    first, later, count = _counted(steps, ours, theirs, found.threshold)
    best = float(steps[ours.argmax()]), float(steps[theirs.argmax()])
    because = [
        Because("threshold_reached", _facts(pair, found, curves[0].axis)),
        Because("thresholds_counted", {"first": first, "later": later, "of": count}),
        Because("not_by_best", {"ours": best[0], "theirs": best[1], "axis": curves[0].axis}),
        Because("no_interval"),
    ]
    return Judged(
        question="faster",
        metric=pair.metric,
        unit=curves[0].axis,
        arms=pair.names,
        verdict="undecided",
        level="L1",
        estimate=found.ours - found.theirs,
        n=len(steps),
        counted="steps",
        also_changed=pair.also_changed(),
        because=tuple(because),
    )


def _counted(steps: Floats, ours: Floats, theirs: Floats, highest: float) -> tuple[int, int, int]:
    """To how many thresholds ours comes first, to how many later, and of how many."""
    levels = np.unique(np.concatenate([ours, theirs]))
    levels = levels[(levels > max(ours[0], theirs[0])) & (levels <= highest)]
    if len(levels) > THRESHOLDS:
        levels = levels[np.linspace(0, len(levels) - 1, THRESHOLDS).round().astype(int)]
    arrivals = [stats.speed(steps, ours, steps, theirs, float(level)) for level in levels]
    first = sum(each.ours < each.theirs for each in arrivals)
    later = sum(each.ours > each.theirs for each in arrivals)
    return first, later, len(arrivals)
