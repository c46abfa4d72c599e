"""The best of many noisy points, numbers compared at different steps, bests that curves deny."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from itertools import combinations

import numpy as np

from kleash.findings.record import Found, Severity, canonical, digits, number_of, runs, shown
from kleash.imports import Cell, Imported, Number, Series, Source, Where, names
from kleash.stats import expected_maximum, second_difference_sd, tie_distance

FEWEST = 3
GRID = 4  # points that show at which steps a curve was measured
DIGITS = 3  # of a value that names its point
MANY = 100
EXTREMES = ("best", "max", "min")


def judged(metric: str) -> int:
    """Whether higher (1) or lower (-1) is better, or neither or unknown (0)."""
    known = names.metric(metric)
    return 0 if known is None else known.direction


def curve_of(run: Imported, metric: str) -> Series | None:
    """The curve of a metric over steps or epochs, if it has any."""
    fit = [one for one in run.series if canonical(one.metric) == canonical(metric)]
    return max(fit, key=lambda series: len(series.steps), default=None)


def measured(series: Series) -> tuple[np.ndarray, np.ndarray]:
    """Steps and values of a curve that were measured, not guessed."""
    fine = np.isfinite(series.values)
    if series.estimated is not None:
        fine &= ~series.estimated
    return series.steps[fine], series.values[fine]


def noise(series: Series | None) -> float | None:
    """The noise of single points of a curve, about any locally straight trend."""
    if series is None or len(measured(series)[1]) < FEWEST:
        return None
    return second_difference_sd(measured(series)[1])


def _at(cell: Cell) -> str:
    if cell.epoch is not None:
        return f"epoch {cell.epoch:g}"
    return "" if cell.step is None else f"step {cell.step:g}"


def _count(run: Imported, cell: Cell, series: Series | None) -> int:
    if series is not None and len(series.steps) >= FEWEST:
        return len(series.steps)
    return int(number_of(run, "epochs") or 0) if cell.epoch is not None else 0


def best_of_several(sources: Sequence[Source]) -> Iterator[Found]:
    """The best of K noisy points is better than the policy was."""
    for run in runs(sources):
        seen = set()
        for cell in run.cells:
            value = cell.number.value
            if cell.statistic not in EXTREMES or not judged(cell.metric) or value is None:
                continue
            series = curve_of(run, cell.metric)
            count = _count(run, cell, series)
            if count < FEWEST or (canonical(cell.metric), cell.statistic) in seen:
                continue
            seen.add((canonical(cell.metric), cell.statistic))
            sd = noise(series)
            facts = {
                "arm": run.arm,
                "metric": cell.metric,
                "best": value,
                "at": _at(cell),
                "points": count,
                "optimism": None if sd is None else shown(expected_maximum(count) * sd),
                "ties": [] if sd is None or series is None else _ties(series, cell, sd),
            }
            yield Found("best-of-several", "warning", (cell.number.where,), facts)


def _ties(series: Series, cell: Cell, sd: float) -> list[float]:
    steps, values = measured(series)
    value = cell.number.value or 0.0
    behind = (value - values) * (1 if judged(cell.metric) > 0 else -1)
    return [float(step) for step in steps[behind < tie_distance(len(values)) * sd]]


def best_against_best(sources: Sequence[Source]) -> Iterator[Found]:
    """Two bests at different steps, subtracted from each other."""
    for source in sources:
        bests = [
            (run, cell)
            for run in source.runs[:MANY]
            for cell in run.cells
            if cell.statistic in EXTREMES and judged(cell.metric)
            if cell.number.value is not None and _at(cell)
        ]
        seen = set()
        for (run, ours), (other, theirs) in combinations(bests, 2):
            same = canonical(ours.metric) == canonical(theirs.metric)
            if run.arm == other.arm or not same or _at(ours) == _at(theirs):
                continue
            gap = (ours.number.value or 0.0) - (theirs.number.value or 0.0)
            pair = (run.arm, other.arm, canonical(ours.metric), ours.statistic)
            if pair in seen or not _subtracted(source, ours, theirs):
                continue
            seen.add(pair)
            luck = [_luck(one, cell) for one, cell in ((run, ours), (other, theirs))]
            known = [each for each in luck if each is not None]
            spread = math.hypot(*known) if len(known) == 2 else (known[0] if known else None)
            severity: Severity = "warning" if spread is None or abs(gap) <= spread else "note"
            facts = {
                "arms": [run.arm, other.arm],
                "metric": ours.metric,
                "steps": [_at(ours), _at(theirs)],
                "gap": shown(gap),
                "noise": None if spread is None else shown(spread),
            }
            where = (ours.number.where, theirs.number.where)
            yield Found("best-against-best", severity, where, facts)


def _luck(run: Imported, cell: Cell) -> float | None:
    series = curve_of(run, cell.metric)
    sd = noise(series)
    return None if sd is None or series is None else expected_maximum(len(series.steps)) * sd


def _subtracted(source: Source, ours: Cell, theirs: Cell) -> bool:
    """Whether the source took the difference of two cells."""
    pair = {ours.number.value, theirs.number.value}
    return any(
        derived.kind in ("difference", "relative")
        and {one.value for one in (*derived.of, *derived.minus)} == pair
        for derived in source.derived
    )


def unequal_steps(sources: Sequence[Source]) -> Iterator[Found]:
    """A metric that stands for two arms, but at no step for both."""
    for source in sources:
        by_metric: dict[str, list[tuple[Imported, Series]]] = defaultdict(list)
        for run in source.runs[:MANY]:
            for series in run.series:
                if 1 <= len(series.steps) <= 2:
                    by_metric[canonical(series.metric)].append((run, series))
        for found in by_metric.values():
            for (run, ours), (other, theirs) in combinations(found, 2):
                apart = not set(ours.steps.tolist()) & set(theirs.steps.tolist())
                beside = ours.where.line is not None and ours.where.line == theirs.where.line
                if apart and beside and ours.axis == theirs.axis and run.arm != other.arm:
                    facts = {
                        "arms": [run.arm, other.arm],
                        "metric": ours.metric,
                        "steps": [float(ours.steps[0]), float(theirs.steps[0])],
                    }
                    yield Found("unequal-steps", "warning", (ours.where, theirs.where), facts)


# --- at which step


def _whole(step: float) -> float:
    """A step as it is written: 40, not 40.0."""
    return int(step) if float(step).is_integer() else step


def _curves(source: Source) -> list[tuple[Imported, Series]]:
    """What documents have over steps."""
    return [
        (run, series)
        for run in source.runs[:MANY]
        for series in run.series
        if run.format == "markdown" and series.axis == "step" and len(measured(series)[1]) > 1
    ]


def best_step_false(sources: Sequence[Source]) -> Iterator[Found]:
    """A best that is said to be at one step, and stands at another, or is none."""
    for source in sources:
        for run in source.runs[:MANY]:
            for cell in run.cells:
                series = curve_of(run, cell.metric)
                series = series or _like(run, cell.metric)
                if cell.statistic not in EXTREMES or series is None or cell.number.value is None:
                    continue
                found = _not_best(run, series, cell.metric, cell.number, cell.step, cell.statistic)
                if found is not None:
                    yield found


def _like(run: Imported, metric: str) -> Series | None:
    """The only curve of results of a run, where a best is named by another word for it."""
    fit = [s for s in run.series if judged(s.metric) == 1 and judged(metric) == 1]
    return fit[0] if len(fit) == 1 and len(measured(fit[0])[1]) >= GRID else None


def _not_best(
    run: Imported, series: Series, metric: str, best: Number, step: float | None, kind: str
) -> Found | None:
    steps, values = measured(series)
    sign = {"max": 1, "min": -1}.get(kind, judged(metric))
    whole = series.estimated is None or not series.estimated.any()
    if series.axis != "step" or not len(values) or not sign or digits(best) < DIGITS:
        return None
    half = 0.5 * 10.0 ** -(best.decimals or 0) * (1 + 1e-9)
    at = steps[np.abs(values - (best.value or 0.0)) <= half]
    top = float(steps[np.argmax(sign * values)])
    beyond = (
        whole and len(values) >= GRID and (sign * values).max() > sign * (best.value or 0.0) + half
    )
    elsewhere = step is not None and len(at) > 0 and step not in at
    if not (beyond and len(at)) and not elsewhere:
        return None
    facts = {
        "arm": run.arm,
        "metric": metric,
        "said": best.value,
        "step": None if step is None else _whole(step),
        "value": float(values[np.argmax(sign * values)]),
        "at": _whole(top if beyond else float(at[0])),
    }
    return Found("best-step-false", "error", (best.where, series.where), facts)


def stray_steps(sources: Sequence[Source]) -> Iterator[Found]:
    """A step off the grid of all others, with the value of a step that is on it."""
    for source in sources:
        for run, series in _curves(source):
            steps, values = measured(series)
            every = _grid(steps)
            # The first may be any: 10, 40, 80, 120.
            off = [at for at, step in enumerate(steps) if at and every and step % every]
            for at in off:
                twins = [n for n in range(len(steps)) if n != at and values[n] == values[at]]
                number = Number(float(values[at]), "known", series.place(at), series.decimals)
                if twins and len(off) * 3 <= len(steps) and digits(number) >= DIGITS:
                    facts = {
                        "arm": run.arm,
                        "metric": series.metric,
                        "at": _whole(float(steps[at])),
                        "value": float(values[at]),
                        "other": _whole(float(steps[twins[0]])),
                    }
                    where = (_place(series, steps[at]), _place(series, steps[twins[0]]))
                    yield Found("stray-step", "error", where, facts)


def _place(series: Series, step: float) -> Where:
    return series.place(int(np.flatnonzero(series.steps == step)[0]))


def _grid(steps: np.ndarray) -> float:
    """How far apart a curve was measured, if nearly all of its steps are multiples of that."""
    gaps = Counter(np.diff(np.unique(steps)).tolist())
    if len(steps) < GRID or not gaps:
        return 0.0
    every = float(gaps.most_common(1)[0][0])
    return every if every > 1 and np.mean(steps % every == 0) >= 2 / 3 else 0.0


RULES = (best_of_several, best_against_best, unequal_steps, best_step_false, stray_steps)
