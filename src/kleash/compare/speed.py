"""Faster? Steps to a common threshold, never to an arm's own best.

Where both arms have scores of the same items at the same steps there is an interval; else only what
was seen.
"""

from __future__ import annotations

import numpy as np

from kleash import stats
from kleash.compare.evidence import common, curves_of_pair, upwards
from kleash.compare.items import Stepwise, stepwise
from kleash.compare.judging import Pair
from kleash.compare.records import Amount, Because, Judged
from kleash.seeds import generator
from kleash.stats import Floats

FEWEST_POINTS = 4
THRESHOLDS = 50
DRAWS = 1_000


def faster(pair: Pair) -> Judged | None:
    """By items where their scores are there; from curves alone nothing is decided."""
    return _by_items(pair) or _by_curves(pair)


def _by_items(pair: Pair) -> Judged | None:
    """The interval of the gap in steps, over items drawn again.

    The threshold lies half way from where both began to the lower of the two highest values: at
    that value itself, which one arm just reaches, half of its draws would not arrive.
    """
    table = stepwise((pair.ours.replicates[0], pair.theirs.replicates[0]), pair.metric)
    if table is None or len(table.steps) < FEWEST_POINTS:
        return None
    sign = pair.known.direction or 1
    ours, theirs = (sign * each for each in table.tables)
    means = ours.mean(axis=0), theirs.mean(axis=0)
    start, top = float((means[0][0] + means[1][0]) / 2), float(min(m.max() for m in means))
    if not top > max(means[0][0], means[1][0]):
        return None  # an arm that never rises arrives nowhere
    threshold = (start + top) / 2
    at = (table.steps, table.steps)
    rng = generator("compare", "faster")
    found = stats.speed_by_items(at, ours, theirs, threshold, rng, draws=DRAWS)
    assert found.gap is not None
    word = stats.verdict(
        _turned(found.gap), _turned(found.gap), _spacing(table), stats.Evidence("L2", found.gap.n)
    ).word
    facts = _facts(pair, found, "step")
    return Judged(
        question="faster",
        metric=pair.metric,
        unit="step",
        arms=pair.names,
        verdict=word,
        level="L2",
        estimate=found.gap.estimate,
        low=found.gap.low,
        high=found.gap.high,
        n=found.gap.n,
        counted="items",
        margin=_spacing(table),
        also_changed=pair.also_changed(),
        because=(Because("threshold_half_way", facts), Because("first_runs_only")),
    )


def _turned(gap: stats.Interval) -> stats.Interval:
    """Fewer steps are better."""
    return stats.Interval(-gap.estimate, -gap.high, -gap.low, gap.level, gap.n)


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
