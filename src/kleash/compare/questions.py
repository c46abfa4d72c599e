"""The questions beside "worse or about the same": steadier, and at what cost.

Where the data give no interval the answer is undecided, with what
was seen; a word such as "steadier" needs a statistic.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from kleash import stats
from kleash.compare.arms import Arm, Curve
from kleash.compare.evidence import LOG, common, courses_of_pair, curves_of_pair, left_out, upwards
from kleash.compare.judging import Pair, over_seeds, settled
from kleash.compare.records import Amount, Because, Judged
from kleash.seeds import generator
from kleash.stats import Interval, Width

FEWEST_POINTS = 4
LEAST = 1e-12  # of an SD: below it nothing swings
SWAPPED_AT_ONCE = 10  # steps whose every swap is tried; beyond 14 a few hundred random ones
TIMES = ("step_time", "throughput")


def steadier(pair: Pair) -> Judged | None:
    """The ratio of second-difference SDs, ours to theirs, and the largest drawdowns.

    Over seeds where both arms have them; else of the first run of each.
    """
    return _steadier_over_seeds(pair) or _steadier_of_two(pair)


def _steadier_over_seeds(pair: Pair) -> Judged | None:
    """One ratio for each seed, then t over their logarithms; None where a curve never swings."""
    seen = courses_of_pair(pair.ours, pair.theirs, pair.metric, FEWEST_POINTS)
    if seen is None:
        return None
    sides = seen.ours, seen.theirs
    swings = [np.array([stats.second_difference_sd(each) for each in side]) for side in sides]
    if min(side.min() for side in swings) < LEAST:
        return None
    logs = np.log(swings[0]), np.log(swings[1])
    wide = stats.paired_seeds(*logs)
    sign, unit = pair.known.direction or 1, pair.known.unit
    falls = [float(np.mean([stats.max_drawdown(sign * each) for each in side])) for side in sides]
    typical = [float(np.exp(each.mean())) for each in logs]
    blank = Judged(
        question="steadier",
        metric=pair.metric,
        unit="ratio",
        arms=pair.names,
        verdict="undecided",
        level="L1",
        margin=stats.STEADY_MARGIN,
        because=(
            Because("swings_over_seeds", _both(typical, unit) | {"n": wide.interval.n}),
            Because("drawdowns_over_seeds", _both(falls, unit)),
            *left_out(seen),
        ),
    )
    return over_seeds(pair, blank, wide, logs=True)


def _both(values: Sequence[float], unit: str) -> dict[str, object]:
    ours, theirs = (Amount(value, unit, gap=True) for value in values)
    return {"ours": ours, "theirs": theirs}


def _steadier_of_two(pair: Pair) -> Judged | None:
    """The first run of each arm: about these two curves, whatever is found."""
    curves = curves_of_pair(pair.ours, pair.theirs, pair.metric)
    if curves is None or len(steps := common(*curves)) < FEWEST_POINTS:
        return None
    ours, theirs = (upwards(curve, steps, pair.known.direction) for curve in curves)
    if min(stats.second_difference_sd(side) for side in (ours, theirs)) < LEAST:
        return None
    found = stats.spread_ratio(steps, ours, theirs)
    also = pair.also_changed()
    down, other_down = stats.max_drawdown(ours), stats.max_drawdown(theirs)
    unit = pair.known.unit
    swing = _both([stats.second_difference_sd(side) for side in (ours, theirs)], unit)
    falls = _both([down, other_down], unit) | {"p": _drawdown_p(ours, theirs)}
    need = stats.points_for_ratio(1.5)
    because = [
        Because("swings", swing),
        Because("drawdowns" if falls["p"] is not None else "drawdowns_seen", falls),
    ]
    if len(steps) < need:
        because.append(Because("points_for_ratio", {"n": len(steps), "need": need}))
    judged = Judged(
        question="steadier",
        metric=pair.metric,
        unit="ratio",
        arms=pair.names,
        verdict="undecided",
        level="L1",
        estimate=found.ratio.estimate,
        n=len(steps),
        counted="steps",
        margin=stats.STEADY_MARGIN,
        width=replace(Width.stretched(found.log_ratio), turned=True, logs=True),
        also_changed=also,
        because=tuple(because),
    )
    return settled(judged)


def _drawdown_p(ours: stats.Floats, theirs: stats.Floats) -> float | None:
    """p by swapping steps; None where all ways are too many, too few to draw from, or too long."""
    if SWAPPED_AT_ONCE < len(ours) <= 14 or len(ours) > LOG:
        return None
    rng = generator("compare", "drawdown")
    return stats.swapped_steps(ours, theirs, stats.max_drawdown, rng, draws=500)


def efficiency(pair: Pair) -> Judged | None:
    """What a step costs, from times per step; from printed ranges only what they show."""
    for metric in TIMES:
        curves = curves_of_pair(pair.ours, pair.theirs, metric)
        enough = curves is not None and min(map(len, curves)) >= 8
        if curves is not None and enough and min(each.values.min() for each in curves) > 0:
            return _timed(pair, metric, curves)
    for metric in TIMES:
        ranges = [_range(arm, metric) for arm in (pair.ours, pair.theirs)]
        if ranges[0] and ranges[1]:
            facts = {"ours": ranges[0], "theirs": ranges[1]}
            code = "ranges_apart" if _apart(ranges[0], ranges[1]) else "ranges_overlap"
            return Judged(
                question="efficiency",
                metric=metric,
                unit="s" if metric == "step_time" else "tokens/s",
                arms=pair.names,
                verdict="undecided",
                level="L1",
                because=(Because(code, facts), Because("no_interval")),
            )
    return None


def _timed(pair: Pair, metric: str, curves: tuple[Curve, Curve]) -> Judged:
    ours, theirs = curves[0].values, curves[1].values
    warmup = min(5, min(len(ours), len(theirs)) - 2)
    rng = generator("compare", "efficiency")
    found = stats.efficiency(ours, theirs, rng, warmup=warmup, draws=300)
    ratio = found.ratio
    logs = [math.log(x) for x in (ratio.estimate, ratio.low, ratio.high)]
    # Blocks give one interval here; at other levels it is that of a normal error.
    width = Width.stretched(Interval(logs[0], logs[1], logs[2], 0.95, ratio.n))
    known = found.enough and ratio.low < ratio.high
    unit = "s" if metric == "step_time" else "tokens/s"
    medians = {
        "ours": Amount(found.ours.median, unit),
        "theirs": Amount(found.theirs.median, unit),
        "dropped": warmup,
    }
    because = [Because("medians", medians), Because("same_machine")]
    if not found.enough:
        because.append(Because("too_few_timings", {"n": found.ratio.n}))
    judged = Judged(
        question="efficiency",
        metric=metric,
        unit="ratio",
        arms=pair.names,
        verdict="undecided",
        level="L1",
        estimate=ratio.estimate,
        n=ratio.n,
        counted="steps",
        margin=1.05,
        width=replace(width, turned=metric == "step_time", logs=True) if known else None,
        because=tuple(because),
    )
    return settled(judged)


def _range(arm: Arm, metric: str) -> tuple[float, float] | None:
    for replicate in arm.replicates:
        for (name, _), cells in replicate.cells.items():
            for number in cells.values():
                if name == metric and number.low is not None and number.high is not None:
                    return number.low, number.high
    return None


def _apart(ours: tuple[float, float], theirs: tuple[float, float]) -> bool:
    return ours[0] > theirs[1] or theirs[0] > ours[1]
