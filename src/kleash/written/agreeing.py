"""Columns and rows of a report that are curves of a log, known by their numbers.

People and trainers name things differently: "A (no KL)" is `alf_nokl`, "success" is
`val-core/alfworld/success_rate`. Where numbers of a column are those of a curve at the same steps,
as printed, and of no other, the column is that curve, whatever either is called.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from kleash.compare.arms import Arm, Replicate
from kleash.imports.markdown.draft import Draft, Printed
from kleash.written.logs import Held, Logs, file_of

FEWEST = 3  # different numbers that agree; two may agree by chance
SHARE = 0.6  # of a column's numbers that agree: the others are slips
SCALES = (1.0, 100.0, 0.01)  # a share may be logged, or printed, in percent
Spot = tuple[int, str]
At = tuple[str, float | str]
"""An axis and a place on it: ("step", 40), or ("arm", its name in the logs) at the end of a run."""


@dataclass(frozen=True)
class Logged:
    """A curve at the steps that a report has numbers for, or where arms ended."""

    values: dict[At, float]
    runs: int
    file: str
    line: int | None


def agreed(draft: Draft, logs: Logs) -> dict[Spot, Held]:
    """What logs have for the cells of each column, or row, that is a curve of theirs."""
    families = list(_families(draft, logs))
    wanted = {at for family in families for at in family}
    curves = [*_curves(logs.arms, wanted), *_ends(logs.arms)] if families else []
    found: dict[Spot, Held] = {}
    for family in families:
        best = _best(family, curves)
        for at, cell in family.items():
            told = [(scale * one.values[at], one) for one, scale in best if at in one.values]
            printed = {f"{value:.9g}" for value, _ in told}
            if len(printed) == 1 and len(told) == len(best):
                value, one = told[0]
                found.setdefault(_spot(cell), Held(value, one.runs, one.file, one.line))
    return found


def _spot(cell: Printed) -> Spot:
    return cell.line, cell.where.spot


def _families(draft: Draft, logs: Logs) -> Iterator[dict[At, Printed]]:
    """The cells of each column that stand at steps, epochs or arms, then those of each row."""
    for way in ("column", "line"):
        groups: dict[tuple[int, int], dict[At, Printed]] = defaultdict(dict)
        for cell in draft.printed:
            at = _at(cell, logs)
            if at is not None:
                groups[cell.table, getattr(cell, way)].setdefault(at, cell)
        yield from (group for group in groups.values() if len(group) > FEWEST)


def _at(cell: Printed, logs: Logs) -> At | None:
    """Where on a curve, or of which arm, a cell stands, if it holds a value that is logged."""
    sense, place = cell.sense, cell.read.place.over(cell.sense.place)
    if sense.role != "value" or sense.setting or sense.statistic:
        return None
    if place.shots is not None or place.items is not None:
        return None
    if place.step is not None:
        return "step", float(place.step)
    if place.epoch is not None:
        return "epoch", float(place.epoch)
    arm = logs.match.get(sense.arm or "")
    return None if arm is None else ("arm", arm.name)


def _curves(arms: Sequence[Arm], wanted: set[At]) -> Iterator[Logged]:
    """Every curve of every arm, and of each of its runs where there are several."""
    for arm in arms:
        runs = [[one] for one in arm.replicates]
        for group in [arm.replicates, *(runs if len(runs) > 1 else [])]:
            for key in dict.fromkeys(key for one in group for key in one.curves):
                made = _curve(group, key, wanted)
                if len(made.values) >= FEWEST:
                    yield made


def _ends(arms: Sequence[Arm]) -> Iterator[Logged]:
    """Where all arms ended in a quantity, and their means over it: of all seeds, and of each."""
    seeds: list[int | None] = [None]
    seeds += sorted({one.seed for arm in arms for one in arm.replicates if one.seed is not None})
    metrics = dict.fromkeys(
        name for arm in arms for one in arm.replicates for name, _ in one.curves
    )
    for metric in metrics:
        for seed in seeds:
            runs = {
                arm.name: [one for one in arm.replicates if seed is None or one.seed == seed]
                for arm in arms
            }
            for end in (True, False):
                made = {name: _ended(each, metric, end=end) for name, each in runs.items()}
                values: dict[At, float] = {
                    ("arm", name): at for name, at in made.items() if at is not None
                }
                first = next((each for each in runs.values() if each), None)
                if len(values) >= FEWEST and first is not None:
                    yield Logged(values, len(first), *file_of(first[0], metric))


def _ended(runs: Sequence[Replicate], metric: str, *, end: bool) -> float | None:
    """The last value, or the mean, of a quantity in each run, over runs."""
    curves = [one.curve(metric) for one in runs]
    found = [
        float(curve.values[-1] if end else curve.values.mean())
        for curve in curves
        if curve is not None and len(curve)
    ]
    whole = bool(found) and len(found) == len(runs) and bool(np.isfinite(found).all())
    return float(np.mean(found)) if whole else None


def _curve(runs: Sequence[Replicate], key: tuple[str, str], wanted: set[At]) -> Logged:
    """The mean over runs, at the wanted steps that all of them have."""
    metric, axis = key
    places = np.array(sorted(float(step) for name, step in wanted if name == axis))
    points: dict[float, list[float]] = defaultdict(list)
    held = [one for one in runs if key in one.curves]
    for one in held:
        curve = one.curves[key]
        kept = np.isin(curve.steps, places) & np.isfinite(curve.values)
        here = dict(zip(curve.steps[kept].tolist(), curve.values[kept].tolist(), strict=True))
        for step, value in here.items():
            points[step].append(value)
    whole: dict[At, float] = {
        (axis, step): float(np.mean(values))
        for step, values in points.items()
        if len(values) == len(held)
    }
    return Logged(whole, len(held), *file_of(held[0], metric))


def _best(family: dict[At, Printed], curves: Sequence[Logged]) -> list[tuple[Logged, float]]:
    """The curves that agree with most of a column's numbers, if enough of them do."""
    most = FEWEST
    best: list[tuple[Logged, float]] = []
    for curve in curves:
        for scale in SCALES:
            agree, others = _agreement(family, curve, scale)
            if agree < most or agree < SHARE * (agree + others):
                continue
            best = best if agree == most else []
            most = agree
            best.append((curve, scale))
    return best


def _agreement(family: dict[At, Printed], curve: Logged, scale: float) -> tuple[int, int]:
    """How many different numbers are the curve's as they would be printed, and how many are not."""
    same: set[float] = set()
    others = 0
    for at, cell in family.items():
        number = cell.read.number
        if number is None or number.value is None or at not in curve.values:
            continue
        half = 0.5 * 10.0 ** -(number.decimals or 0)
        value = scale * curve.values[at]
        if abs(number.value - value) <= half + 1e-9 * max(1e-6, abs(value)):
            same.add(number.value)
        else:
            others += 1
    return len(same), others
