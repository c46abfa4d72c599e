"""One quantity of one arm over its steps: the mean over its runs, its band, where points stand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from kleash.compare.arms import OUTCOMES, Arm, Curve, Replicate, known_name
from kleash.compare.read import Number, Series, Where
from kleash.report.material import Material
from kleash.stats import Floats
from kleash.stats.special import stdtrit

OWN_OUTCOMES = ("validation/accuracy", "validation/loss")
MOST_COLUMNS = 24  # arms that stand beside each other in a table


def course_name(made: Material, metric: str) -> str:
    """A quantity's name; a study's curve of accuracy is validation's, its test is one point."""
    own = metric == "accuracy" and made.study is not None
    return made.metric("validation/accuracy" if own else metric)


@dataclass(eq=False)
class Course:
    """Values at the steps that all runs of the arm have; the band is a 95 % t interval.

    Nothing writes to it; it is not frozen because a report has many, which are slow to make.
    """

    arm: str
    metric: str
    axis: str
    runs: int
    steps: Floats
    values: Floats
    low: Floats | None
    high: Floats | None
    first: Replicate
    estimated: frozenset[float] = frozenset()
    decimals: int | None = None
    """As printed, of a single run that a document tells of."""

    def text(self, value: float) -> str:
        """A value with six figures, and no fewer decimals than its document prints."""
        short = f"{value + 0.0:.6g}"
        places = 0 if "e" in short else len(short.partition(".")[2])
        return short if places >= (self.decimals or 0) else f"{value:.{self.decimals}f}"

    @cached_property
    def logged(self) -> list[Series]:
        """Everything that the first run logged of the quantity."""
        every = [series for run in self.first.runs for series in run.series]
        return [s for s in every if s.axis == self.axis and known_name(s.metric) == self.metric]

    @cached_property
    def by_step(self) -> dict[float, float]:
        """The values by their steps."""
        return dict(zip(self.steps.tolist(), self.values.tolist(), strict=True))

    def where(self, step: float) -> Where | None:
        """Where the value of the first run at a step stands."""
        for series in self.logged:
            places = (series.steps == step).nonzero()[0]
            if len(places):
                return series.place(int(places[-1]))
        return None

    def guess(self, step: float) -> float | None:
        """What a source only estimates at a step; it is used in nothing."""
        for run in self.first.runs if step in self.estimated else ():
            for series in run.series:
                places = np.flatnonzero(series.steps == step)
                if known_name(series.metric) == self.metric and len(places):
                    return float(series.values[places[-1]])
        return None


def course(arm: Arm, metric: str, axis: str = "") -> Course | None:
    """The quantity of an arm, worked out once; None where no run has it."""
    _work_out([arm], metric, axis)
    found: Course | None = arm.courses[metric, axis]
    return found


def courses(made: Material, metric: str, axis: str = "") -> list[Course]:
    """The quantity of every arm that has it, all over the same axis."""
    _work_out(made.arms, metric, axis)
    found = [each for arm in made.arms if (each := arm.courses[metric, axis]) is not None]
    return [each for each in found if each.axis == found[0].axis]


class _Curves(NamedTuple):
    """The curves of an arm's runs over the same axis, and their values at common steps."""

    arm: Arm
    first: Replicate
    curves: list[Curve]
    steps: Floats
    values: list[Floats]


def _work_out(arms: Sequence[Arm], metric: str, axis: str) -> None:
    """The courses of a quantity that were not worked out yet, arms of the same size at once."""
    alike: dict[tuple[int, int], list[_Curves]] = {}
    for arm in arms:
        if (metric, axis) not in arm.courses:
            arm.courses[metric, axis] = None
            each = _curves(arm, metric, axis)
            if each is not None:
                alike.setdefault((len(each.curves), len(each.steps)), []).append(each)
    for group in alike.values():
        bands = _bands(np.array([each.values for each in group]))
        for at, each in enumerate(group):
            arm, curves, steps = each.arm, each.curves, each.steps
            guessed = frozenset(curves[0].guessed.tolist())
            guessed = guessed.difference(steps.tolist()) if guessed else guessed
            printed = curves[0].decimals if len(curves) == 1 else None
            middle, low, high = (None if side is None else side[at] for side in bands)
            assert middle is not None
            made = (steps, middle, low, high, each.first, guessed, printed)
            arm.courses[metric, axis] = Course(arm.name, metric, curves[0].axis, len(curves), *made)


def _curves(arm: Arm, metric: str, axis: str) -> _Curves | None:
    """None where no run has the quantity, or no step is common to all."""
    found: list[tuple[Replicate, Curve]] = []
    for each in arm.replicates:
        curve = each.curves.get((metric, axis)) if axis else each.curve(metric)
        if curve is not None and len(curve.steps):
            found.append((each, curve))
    if not found:
        return None
    curves = [curve for _, curve in found if curve.axis == found[0][1].axis]
    steps = curves[0].steps
    for curve in curves[1:]:
        # Runs that were logged alike share their steps: most need no look at them.
        if curve.steps is not steps and not np.array_equal(steps, curve.steps):
            steps = np.intersect1d(steps, curve.steps)
    values = [
        c.values if len(c.steps) == len(steps) else c.values[np.searchsorted(c.steps, steps)]
        for c in curves
    ]
    return _Curves(arm, found[0][0], curves, steps, values) if len(steps) else None


def _bands(table_ANS: Floats) -> tuple[Floats, Floats | None, Floats | None]:
    """By arm the mean of its curves and its 95 % t interval, which one curve has not."""
    n = table_ANS.shape[1]
    if n == 1:
        return table_ANS[:, 0], None, None
    middle: Floats = np.add.reduce(table_ANS, axis=1) / n
    apart = table_ANS - middle[:, None]
    spread = np.sqrt(np.add.reduce(apart * apart, axis=1) / (n - 1))
    half = stdtrit(n - 1, 0.975) * spread / np.sqrt(n)
    return middle, middle - half, middle + half


def some_of(found: Sequence[Course], most: int) -> list[Course]:
    """So many at most: in the order of their last values, evenly from end to end."""
    if len(found) <= most:
        return list(found)
    ranked = sorted(found, key=lambda each: float(each.values[-1]))
    places = np.linspace(0, len(ranked) - 1, most).round().astype(int).tolist()
    kept = {ranked[place].arm for place in places}
    return [each for each in found if each.arm in kept]


def beside(made: Material) -> list[Arm]:
    """The arms with a column in tables: all that can be read, else the baselines and some more.

    These are chosen by the outcome, evenly from the highest to the lowest; then those told first.
    """
    metric = outcome(made) if len(made.arms) > MOST_COLUMNS else ""
    ranked = some_of(courses(made, metric), MOST_COLUMNS) if metric else []
    heads = [name for found in made.comparisons for name in found.references]
    every = [*heads, *(each.arm for each in ranked), *(arm.name for arm in made.arms)]
    names = list(dict.fromkeys(every))[: max(MOST_COLUMNS, len(heads))]
    return [arm for arm in made.arms if arm.name in names]


def metrics_of(made: Material, axis: str = "") -> list[str]:
    """Every quantity that some run has a curve of, in the order told."""
    if axis not in made.metrics:
        made.metrics[axis] = list(
            dict.fromkeys(
                metric
                for arm in made.arms
                for replicate in arm.replicates
                for (metric, over), curve in replicate.curves.items()
                if axis in ("", over) and len(curve.steps)
            )
        )
    return made.metrics[axis]


def outcome(made: Material) -> str:
    """What arms are judged by, or the first outcome that has a curve; '' if there is none."""
    have = metrics_of(made)
    for found in made.comparisons:
        judged = found.verdicts[0].metric if found.verdicts else ""
        for name in (judged, f"validation/{judged}"):
            if name in have:
                return name
    return next((name for name in (*OUTCOMES, *OWN_OUTCOMES) if name in have), "")


def statistics_of(arm: Arm, metric: str) -> dict[str, tuple[float | None, Number]]:
    """Statistics of a whole run that a document gives, by name: at which step, and the number."""
    found: dict[str, tuple[float | None, Number]] = {}
    for replicate in arm.replicates:
        for (name, place), cells in replicate.cells.items():
            epoch, step, _, _, statistic = place
            if name == metric and statistic:
                at = epoch if epoch is not None else step
                found.setdefault(statistic, (at, next(iter(cells.values()))))
    return found


def common(found: Sequence[Course], most: int) -> list[float]:
    """Steps that all have, at most so many of them, the first and the last among them."""
    if not found:
        return []
    steps = found[0].steps
    for each in found[1:]:
        if each.steps is not steps and not np.array_equal(steps, each.steps):
            steps = np.intersect1d(steps, each.steps)
    if len(steps) > most:
        steps = steps[np.unique(np.linspace(0, len(steps) - 1, most).round().astype(int))]
    return [float(step) for step in steps]


def at_step(each: Course, step: float) -> float | None:
    """The value at a step, if it is there."""
    return each.by_step.get(step)
