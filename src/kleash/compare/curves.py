"""What curves are asked: faster? steadier? which step? did it collapse?

Over seeds where both arms have them: then an answer is about the setting. Of one run each it is
about these two curves, and a word such as "steadier" still needs a statistic. It is long because
each question has an answer over seeds and one for two curves.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from kleash import stats
from kleash.algo.collapse import DRAWDOWN
from kleash.compare.arms import Arm, Curve, Replicate
from kleash.compare.gaps import (
    SeedCurves,
    curves_of_pair,
    curves_over_seeds,
    for_items,
)
from kleash.compare.items import at_steps, by_item, by_spot, curve_of, steps_of_all, stepwise
from kleash.compare.read import Scores
from kleash.compare.read.names import Metric
from kleash.compare.records import Amount, Because, Judged
from kleash.compare.verdicts import Pair, judge_seeds, settled
from kleash.seeds import generator
from kleash.stats import Floats, NoiseFloor, Width

FEWEST_POINTS = 4
FEWEST_OF_A_COURSE = 8  # evaluations of which a fall can be seen
LOG = 2_000  # points beyond which a curve is a log of training, which has no best step
LEAST = 1e-12  # of an SD: below it nothing swings, or values were rounded or copied
FEWEST_REPEATS = 5
DRAWS = 1_000
DRAWN_POINTS = 200_000
THRESHOLDS = 50
SWAPPED_AT_ONCE = 10  # steps whose every swap is tried; beyond 14 a few hundred random ones


def _both(pair: Pair, fewest: int) -> tuple[str, Floats, Floats, Floats] | None:
    """Axis, steps, and one run each over the steps both have, better upwards; None of too few."""
    curves = curves_of_pair(pair.ours, pair.theirs, pair.metric)
    if curves is None or len(steps := steps_of_all(curves)) < fewest:
        return None
    ours, theirs = (at_steps(curve, steps) * pair.sign for curve in curves)
    return curves[0].axis, steps, ours, theirs


def _amounts(values: Sequence[float], unit: str) -> dict[str, Any]:
    """Two gaps as facts, ours first."""
    ours, theirs = (Amount(float(value), unit, gap=True) for value in values)
    return {"ours": ours, "theirs": theirs}


# --- faster


def faster(pair: Pair) -> Judged | None:
    """Steps to a common threshold, never to an arm's own best.

    Over seeds, else by items; from curves of one run each nothing is decided.
    """
    return _faster_over_seeds(pair) or _faster_by_items(pair) or _faster_of_two(pair)


def _faster_over_seeds(pair: Pair) -> Judged | None:
    """One gap in steps for each seed, then t; for items like these where their scores are there."""
    seen = curves_over_seeds(pair.ours, pair.theirs, pair.metric, FEWEST_POINTS)
    if seen is None:
        return None
    curves = pair.sign * seen.ours, pair.sign * seen.theirs
    threshold = _half_way(curves[0].mean(axis=0), curves[1].mean(axis=0))
    if threshold is None:
        return None
    rng, items = generator("compare", "faster"), _items_over_seeds(pair, seen)
    found = stats.speed_over_seeds(seen.steps, curves, threshold, rng, items=items)
    facts = {
        "threshold": Amount(pair.sign * threshold, pair.known.unit),
        "ours": found.ours,
        "theirs": found.theirs,
        "axis": seen.axis,
        "n": len(seen.ours),
        "late": found.late,
        "of": 2 * len(seen.ours),
    }
    because = Because("threshold_over_seeds", facts), for_items(found.gap, seen.axis), *seen.left
    spacing = float(np.diff(seen.steps).max())
    blank = pair.judged("faster", seen.axis, margin=spacing, because=because)
    return judge_seeds(pair, blank, found.gap)


def _items_over_seeds(pair: Pair, seen: SeedCurves) -> tuple[Floats, Floats] | None:
    """The scores behind the curves [seed, item, step], where they are what the curves are of."""
    runs = {each.seed: each for each in pair.theirs.replicates if each.seed is not None}
    both = [
        run for each in pair.ours.replicates if each.seed in runs for run in (each, runs[each.seed])
    ]
    table = stepwise(both, pair.metric) if len(both) == 2 * len(seen.ours) else None
    if table is None or not np.array_equal(table.steps, seen.steps):
        return None
    tables = pair.sign * np.array(table.tables)
    return tables[0::2], tables[1::2]


def _half_way(ours: Floats, theirs: Floats) -> float | None:
    """Half way from where both began to the lower of the two highest values; None if one falls.

    At the highest value itself, which one arm just reaches, half of its runs would not arrive.
    """
    top = float(min(ours.max(), theirs.max()))
    if not top > max(ours[0], theirs[0]):
        return None  # an arm that never rises arrives nowhere
    return float((ours[0] + theirs[0]) / 2 + top) / 2


def _faster_by_items(pair: Pair) -> Judged | None:
    """The interval of the gap in steps, over items drawn again."""
    table = stepwise((pair.ours.replicates[0], pair.theirs.replicates[0]), pair.metric)
    if table is None or len(table.steps) < FEWEST_POINTS:
        return None
    ours, theirs = (pair.sign * each for each in table.tables)
    threshold = _half_way(ours.mean(axis=0), theirs.mean(axis=0))
    if threshold is None:
        return None
    rng = generator("compare", "faster")
    found = stats.speed_by_items(table.steps, ours, theirs, threshold, rng, draws=DRAWS)
    assert found.gap is not None
    spacing = float(np.diff(table.steps).max())
    # An arrival is known to one evaluation only: where no draw moves it, that is left.
    rounding = ((spacing / math.sqrt(6), stats.NORMAL),)
    facts = _arrivals(pair, found, "step")
    judged = pair.judged(
        "faster",
        "step",
        level="L2",
        estimate=found.gap.estimate,
        n=found.gap.n,
        counted="items",
        margin=spacing,
        width=replace(Width.stretched(found.gap), turned=True, least=rounding),
        also_changed=pair.also_changed(),
        because=(Because("threshold_half_way", facts), Because("first_runs_only")),
    )
    return settled(judged)


def _arrivals(pair: Pair, found: stats.Speed, axis: str) -> dict[str, object]:
    threshold = Amount(pair.sign * found.threshold, pair.known.unit)
    return {"threshold": threshold, "ours": found.ours, "theirs": found.theirs, "axis": axis}


def _faster_of_two(pair: Pair) -> Judged | None:
    """Steps to the highest value that both curves reach.

    Other thresholds are counted, too, so that no single one decides.
    """
    seen = _both(pair, FEWEST_POINTS)
    if seen is None:
        return None
    axis, steps, ours, theirs = seen
    found = stats.speed(steps, ours, theirs, float(min(ours.max(), theirs.max())))
    levels = np.unique(np.concatenate([ours, theirs]))
    levels = levels[(levels > max(ours[0], theirs[0])) & (levels <= found.threshold)]
    if len(levels) > THRESHOLDS:
        levels = levels[np.linspace(0, len(levels) - 1, THRESHOLDS).round().astype(int)]
    others = [stats.speed(steps, ours, theirs, float(level)) for level in levels]
    counts = {
        "first": sum(each.ours < each.theirs for each in others),
        "later": sum(each.ours > each.theirs for each in others),
        "of": len(others),
    }
    best = {"ours": float(steps[ours.argmax()]), "theirs": float(steps[theirs.argmax()])}
    because = (
        Because("threshold_reached", _arrivals(pair, found, axis)),
        Because("thresholds_counted", counts),
        Because("not_by_best", best | {"axis": axis}),
        Because("no_interval"),
    )
    return pair.judged(
        "faster",
        axis,
        estimate=found.ours - found.theirs,
        n=len(steps),
        counted="steps",
        also_changed=pair.also_changed(),
        because=because,
    )


# --- steadier


def steadier(pair: Pair) -> Judged | None:
    """The ratio of second-difference SDs, ours to theirs, and the largest drawdowns."""
    return _steadier_over_seeds(pair) or _steadier_of_two(pair)


def _steadier_over_seeds(pair: Pair) -> Judged | None:
    """One ratio for each seed, then t over their logarithms; None where a curve never swings."""
    seen = curves_over_seeds(pair.ours, pair.theirs, pair.metric, FEWEST_POINTS)
    if seen is None:
        return None
    sides = seen.ours, seen.theirs
    swings = [np.array([stats.second_difference_sd(each) for each in side]) for side in sides]
    if min(side.min() for side in swings) < LEAST:
        return None
    logs = [np.log(side) for side in swings]
    falls = [
        float(np.mean([stats.max_drawdown(pair.sign * each) for each in side])) for side in sides
    ]
    unit, seeds = pair.known.unit, {"n": len(seen.ours)}
    typical = _amounts([np.exp(each.mean()) for each in logs], unit)
    because = (
        Because("swings_over_seeds", typical | seeds),
        Because("drawdowns_over_seeds", _amounts(falls, unit)),
        *seen.left,
    )
    blank = pair.judged("steadier", "ratio", margin=stats.STEADY_MARGIN, because=because)
    return judge_seeds(pair, blank, stats.paired_seeds(*logs), logs=True)


def _steadier_of_two(pair: Pair) -> Judged | None:
    """The first run of each arm: about these two curves, whatever is found."""
    seen = _both(pair, FEWEST_POINTS)
    if seen is None:
        return None
    _, steps, *sides = seen
    swings = [stats.second_difference_sd(side) for side in sides]
    if min(swings) < LEAST:
        return None
    found, unit, p = stats.spread_ratio(*sides), pair.known.unit, _drawdown_p(*sides)
    falls = _amounts([stats.max_drawdown(side) for side in sides], unit) | {"p": p}
    because = [
        Because("swings", _amounts(swings, unit)),
        Because("drawdowns_seen" if p is None else "drawdowns", falls),
    ]
    if len(steps) < (need := stats.points_for_ratio(1.5)):
        because.append(Because("points_for_ratio", {"n": len(steps), "need": need}))
    judged = pair.judged(
        "steadier",
        "ratio",
        estimate=found.estimate,
        n=len(steps),
        counted="steps",
        margin=stats.STEADY_MARGIN,
        width=replace(Width.stretched(stats.logged(found)), turned=True, logs=True),
        also_changed=pair.also_changed(),
        because=tuple(because),
    )
    return settled(judged)


def _drawdown_p(ours: Floats, theirs: Floats) -> float | None:
    """p by swapping steps; None where all ways are too many, too few to draw from, or too long."""
    if SWAPPED_AT_ONCE < len(ours) <= stats.SWAPPED_UP_TO or len(ours) > LOG:
        return None
    rng = generator("compare", "drawdown")
    return stats.swapped_steps(ours, theirs, stats.max_drawdown, rng, draws=500)


# --- the best step


def best_step(pair: Pair) -> Judged | None:
    """Each arm's best step with its ties and its optimism; the gap is of corrected bests.

    Never best with best. With scores of single items at every step the value is read on items that
    had no say in choosing; from a curve alone the luck of choosing is taken off.
    """
    seen = _both(pair, FEWEST_POINTS)
    if seen is None or len(seen[1]) > LOG:
        return None
    axis, steps, *sides = seen
    unit, bests, because, ways = pair.known.unit, [], [], []
    curves = curves_of_pair(pair.ours, pair.theirs, pair.metric) or ()
    for arm, curve, values in zip((pair.ours, pair.theirs), curves, sides, strict=True):
        run = next(each for each in arm.replicates if curve_of(each, pair.metric) is curve)
        floor = floor_of(run, pair.metric, values, pair.noise)
        if floor is None:
            return None
        best, way = _best_of(run, pair.known, steps, values, floor)
        facts = {
            "arm": arm.name,
            "axis": axis,
            "step": float(steps[best.step]),
            "raw": Amount(pair.sign * best.raw, unit),
            "corrected": Amount(pair.sign * best.corrected, unit),
            "ties": stretches(steps, best.ties),
        }
        bests.append(best)
        because.append(Because("best_of_arm", facts))
        ways.append(way)
    raw = bests[0].raw - bests[1].raw
    luck = max(best.raw - best.corrected for best in bests)
    code = "inside_selection_noise" if abs(raw) <= luck else "never_best_with_best"
    gap = {"gap": Amount(pair.sign * raw, unit, gap=True), "noise": Amount(luck, unit, gap=True)}
    return pair.judged(
        "best_step",
        estimate=pair.sign * (bests[0].corrected - bests[1].corrected),
        n=len(steps),
        counted="steps",
        also_changed=pair.also_changed(),
        because=(Because(code, gap), *because, *ways),
    )


def _best_of(
    replicate: Replicate, known: Metric, steps: Floats, values: Floats, floor: NoiseFloor
) -> tuple[stats.Best, Because]:
    """The best of the evaluations at these steps, better upwards, and how it was corrected."""
    table = stepwise((replicate,), known.name)
    rng = generator("compare", "best", known.name)
    if table is not None and np.isin(steps, table.steps).all():
        columns = np.searchsorted(table.steps, steps)
        found = stats.out_of_bag_best((known.direction or 1) * table.tables[0][:, columns], rng)
        return found, Because("out_of_bag", {"n": found.n})
    draws = max(200, min(5_000, DRAWN_POINTS // len(values)))
    best = stats.best_of_curve(values, floor.sd, rng, steps=steps, draws=draws)
    return best, reason(floor, known.unit)


def stretches(steps: Floats, chosen: tuple[int, ...]) -> list[str]:
    """Evaluations that follow each other as ranges: 10, 35–45."""
    found: list[list[int]] = []
    for at in chosen:
        if found and at == found[-1][-1] + 1:
            found[-1].append(at)
        else:
            found.append([at])
    return ["–".join(f"{steps[at]:g}" for at in dict.fromkeys((e[0], e[-1]))) for e in found]


# --- a collapse


def collapse_of(arm: Arm, known: Metric, noise: float | None) -> Judged | None:
    """Of the training that lost most of its best, and of how many it is true."""
    if arm.lost:
        return None
    judged = []
    for replicate in arm.replicates:
        curve = curve_of(replicate, known.name)
        if curve is None or not FEWEST_OF_A_COURSE <= len(curve) <= LOG or curve.others:
            continue
        floor = floor_of(replicate, known.name, curve.values * (known.direction or 1), noise)
        if floor is not None:
            judged.append(_collapse(arm, curve, floor, known))
    fallen = [each for each in judged if each.estimate is not None]
    if len(judged) < 2 or not fallen:
        return judged[0] if judged else None
    worst = max(fallen, key=lambda each: abs(each.estimate or 0.0) / (each.margin or 1.0))
    deep = sum(each.verdict == "worse" for each in fallen)
    counts = {"fell": len(fallen), "deep": deep, "of": len(judged)}
    return replace(worst, because=(*worst.because, Because("runs_that_fell", counts)))


def _collapse(arm: Arm, curve: Curve, floor: NoiseFloor, known: Metric) -> Judged:
    """Two evaluations in a row far below the running best; by a quarter of it, it is a collapse."""
    sign, unit = known.direction or 1, known.unit
    found, how = stats.collapse(curve.steps, curve.values * sign, floor.sd), reason(floor, unit)
    judged = Judged(
        question="collapse",
        metric=known.name,
        unit=unit,
        arms=(arm.name,),
        verdict="undecided",
        level="L1",
        n=len(curve),
        counted="steps",
    )
    facts: dict[str, object] = {"best": Amount(sign * found.best, unit)}
    if found.step is None or found.drop is None or found.deepest is None:
        return replace(judged, because=(Because("no_collapse", facts), how))
    falls = {"drop": found.drop, "deepest": found.deepest}
    facts |= {name: Amount(fall, unit, gap=True) for name, fall in falls.items()}
    margin = DRAWDOWN * abs(found.best)
    return replace(
        judged,
        verdict="worse" if found.deepest >= margin else "worse_within_margin",
        margin=margin,
        estimate=-sign * found.deepest,
        because=(Because("collapsed", facts | {"axis": curve.axis, "step": found.step}), how),
    )


# --- the noise of evaluating one checkpoint again, by the best way that a run's records allow


def floor_of(
    replicate: Replicate, metric: str, values: Floats, declared: float | None = None
) -> NoiseFloor | None:
    """The noise floor of a run's curve: in order from five evaluations of one checkpoint or more,
    scores of single items, the curve's own second differences, a number that was declared.
    """
    ways = _ways(replicate, metric, values, declared)
    return next((floor for floor in ways if floor.sd >= LEAST), None)


def reason(floor: NoiseFloor, unit: str) -> Because:
    """What the floor is and how it is known."""
    return Because(f"noise_{floor.way}", {"floor": Amount(floor.sd, unit, gap=True)})


def _ways(
    replicate: Replicate, metric: str, values: Floats, declared: float | None
) -> Iterator[NoiseFloor]:
    """Every way there is, the best first."""
    spots = by_spot(replicate, metric)
    if spots:
        last = spots[max(spots)]
        if (repeats := _repeated(list(spots.values()))) is not None:
            yield stats.noise_floor(repeats=repeats)
        if (tries := _tries(last)) is not None:
            yield stats.noise_floor(generations_NK=tries)
        if items := list(by_item(last)[0].values()):
            yield stats.noise_floor(items=items)
    if len(values) > 2:
        yield stats.noise_floor(curve=values)
    if declared is not None:
        yield stats.noise_floor(declared=declared)


def _repeated(spots: Sequence[Sequence[Scores]]) -> Floats | None:
    """The means of evaluations of one checkpoint with the same shots, of the one measured most."""
    found: list[list[float]] = []
    for group in spots:
        by: dict[tuple[int | None, str], list[Scores]] = {}
        for each in group:
            by.setdefault((each.shots, each.checkpoint), []).append(each)
        for same in by.values():
            if len(same) >= FEWEST_REPEATS:
                means = [list(by_item([each])[0].values()) for each in same]
                found.append([float(np.mean(each)) for each in means if each])
    longest = max(found, key=len, default=[])
    return np.array(longest) if len(longest) >= FEWEST_REPEATS else None


def _tries(scores: Sequence[Scores]) -> Floats | None:
    """Several answers per item, as many for each: a table [item, try]."""
    for each in scores:
        tries: dict[str, list[float]] = {}
        for item, value in zip(each.items, each.values.tolist(), strict=True):
            tries.setdefault(item, []).append(value)
        sizes = {len(values) for values in tries.values()}
        if len(sizes) == 1 and max(sizes) > 1:
            table = np.array(list(tries.values()))
            whole: Floats = table[np.isfinite(table).all(axis=1)]
            return whole if len(whole) else None
    return None
