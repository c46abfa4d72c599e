"""Early, middle and late: the gap of two curves in each third, and how each swings and climbs.

A gap over all steps may be one of the beginning only. About these two curves, whatever is found.
"""

from __future__ import annotations

from dataclasses import replace

from kleash import stats
from kleash.compare.evidence import FEWEST_STEPS, LOG, Gap, common, curves_of_pair, upwards
from kleash.compare.judging import Pair, judge
from kleash.compare.records import Amount, Because, Judged, Question
from kleash.stats import Phase

FEWEST_POINTS = 9  # three in each third, so that each has a slope and a spread
QUESTIONS: dict[str, Question] = {
    "early": "phase_early",
    "middle": "phase_middle",
    "late": "phase_late",
}


def phases(pair: Pair) -> list[Judged]:
    """A record for each third of the steps that both curves have; below 8 steps no verdict."""
    curves = curves_of_pair(pair.ours, pair.theirs, pair.metric)
    if curves is None or not FEWEST_POINTS <= len(steps := common(*curves)) <= LOG:
        return []
    ours, theirs = (upwards(curve, steps, 1) for curve in curves)
    found = []
    for phase in stats.phases(steps, ours, theirs):
        inside = (steps >= phase.first) & (steps <= phase.last)
        seen = stats.curve_gap(ours[inside], theirs[inside])
        assert seen.width is not None  # no blocks
        few = phase.n < FEWEST_STEPS
        gap = Gap(
            estimate=seen.interval.estimate,
            width=seen.width,
            n=phase.n,
            counted="steps",
            too_few=few,
            integrity=["two_histories"] if any(curve.others for curve in curves) else [],
            baseline_mean=float(theirs[inside].mean()),
        )
        judged = judge(pair, gap, QUESTIONS[phase.name])
        because = _told(phase, pair, curves[0].axis)
        if few:
            because.append(Because("too_few_steps"))
        found.append(replace(judged, because=tuple(because)))
    return found


def _told(phase: Phase, pair: Pair, axis: str) -> list[Because]:
    unit = pair.known.unit
    assert None not in phase.spread and None not in phase.slope  # thirds of nine steps or more
    spreads, slopes = (
        {
            side: Amount(value or 0.0, unit, gap=True)
            for side, value in zip(("ours", "theirs"), values, strict=True)
        }
        for values in (phase.spread, phase.slope)
    )
    place = {"axis": axis, "first": phase.first, "last": phase.last, "n": phase.n}
    return [
        Because("phase_steps", place),
        Because("phase_spread", spreads),
        Because("phase_slope", slopes | {"axis": axis}),
    ]
