"""The best step of each arm: what it is worth once the choosing is paid for, and its ties.

Never best with best. With scores of single items at every step the value is read on items that had
no say in choosing (out of bag); from a curve alone the luck of choosing is taken off.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kleash import stats
from kleash.compare.arms import Arm, Curve, Replicate
from kleash.compare.evidence import LOG, common, curves_of_pair, upwards
from kleash.compare.items import curve_of, stepwise
from kleash.compare.judging import Pair
from kleash.compare.noise import floor_of, told
from kleash.compare.records import Amount, Because, Judged
from kleash.imports.names import Metric
from kleash.seeds import generator
from kleash.stats import Floats, NoiseFloor

FEWEST_POINTS = 4
DRAWN_POINTS = 500_000


@dataclass(frozen=True)
class Chosen:
    """The best of some evaluations, with better upwards."""

    at: int
    """Which of them, counted from 0."""
    raw: float
    corrected: float
    ties: tuple[int, ...]
    how: Because
    """By items, or by which noise floor."""


def behind(arm: Arm, curve: Curve, metric: str) -> Replicate:
    """The training that a curve is of."""
    return next(each for each in arm.replicates if curve_of(each, metric) is curve)


def choose(
    replicate: Replicate, known: Metric, steps: Floats, values: Floats, floor: NoiseFloor
) -> Chosen:
    """The best of the evaluations at these steps, whose values are turned upwards."""
    metric = known.name
    table = stepwise((replicate,), metric)
    rng = generator("compare", "best", metric)
    if table is not None and np.isin(steps, table.steps).all():
        columns = np.searchsorted(table.steps, steps)
        found = stats.out_of_bag_best((known.direction or 1) * table.tables[0][:, columns], rng)
        how = Because("out_of_bag", {"n": found.n})
        return Chosen(found.step, found.raw, found.corrected, found.ties, how)
    draws = max(200, min(5_000, DRAWN_POINTS // len(values)))
    best = stats.best_of_curve(values, floor.sd, rng, steps=steps, draws=draws)
    return Chosen(best.step, best.raw, best.corrected, best.ties, told(floor, known.unit))


def best_step(pair: Pair) -> Judged | None:
    """Each arm's best step with its ties and its optimism; the gap is of corrected bests."""
    curves = curves_of_pair(pair.ours, pair.theirs, pair.metric)
    if curves is None or not FEWEST_POINTS <= len(steps := common(*curves)) <= LOG:
        return None
    sign, unit = pair.known.direction or 1, pair.known.unit
    bests, because = [], []
    for arm, curve in zip((pair.ours, pair.theirs), curves, strict=True):
        values = upwards(curve, steps, sign)
        run = behind(arm, curve, pair.metric)
        floor = floor_of(run, pair.metric, values, pair.noise)
        if floor is None:
            return None
        best = choose(run, pair.known, steps, values, floor)
        bests.append(best)
        facts = {
            "arm": arm.name,
            "axis": curve.axis,
            "step": float(steps[best.at]),
            "raw": Amount(sign * best.raw, unit),
            "corrected": Amount(sign * best.corrected, unit),
            "ties": stretches(steps, best.ties),
        }
        because.append(Because("best_of_arm", facts))
    raw = bests[0].raw - bests[1].raw
    noise = max(best.raw - best.corrected for best in bests)
    code = "inside_selection_noise" if abs(raw) <= noise else "never_best_with_best"
    gap = {"gap": Amount(sign * raw, unit, gap=True), "noise": Amount(noise, unit, gap=True)}
    because = [Because(code, gap), *because, *(best.how for best in bests)]
    return Judged(
        question="best_step",
        metric=pair.metric,
        unit=unit,
        arms=pair.names,
        verdict="undecided",
        level="L1",
        estimate=sign * (bests[0].corrected - bests[1].corrected),
        n=len(steps),
        counted="steps",
        also_changed=pair.also_changed(),
        because=tuple(because),
    )


def stretches(steps: Floats, chosen: tuple[int, ...]) -> list[str]:
    """Evaluations that follow each other as ranges: 10, 35–45."""
    found: list[list[int]] = []
    for at in chosen:
        if found and at == found[-1][-1] + 1:
            found[-1].append(at)
        else:
            found.append([at])
    return [
        f"{steps[each[0]]:g}" if len(each) == 1 else f"{steps[each[0]]:g}–{steps[each[-1]]:g}"
        for each in found
    ]
