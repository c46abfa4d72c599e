"""One quantity of one arm over its steps: the mean over its runs, its band, where points stand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from weakref import WeakKeyDictionary

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
    first: Replicate
    low: Floats | None = None
    high: Floats | None = None
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


COURSES: WeakKeyDictionary[Arm, dict[tuple[str, str], Course | None]] = WeakKeyDictionary()


def course(arm: Arm, metric: str, axis: str = "") -> Course | None:
    """The quantity of an arm, worked out once; None where no run has it, or no common step."""
    known = COURSES.setdefault(arm, {})
    if (metric, axis) not in known:
        known[metric, axis] = _course(arm, metric, axis)
    return known[metric, axis]


def courses(made: Material, metric: str, axis: str = "") -> list[Course]:
    """The quantity of every arm that has it, all over the same axis."""
    found = [each for arm in made.arms if (each := course(arm, metric, axis)) is not None]
    return [each for each in found if each.axis == found[0].axis]


def _course(arm: Arm, metric: str, axis: str) -> Course | None:
    found: list[tuple[Replicate, Curve]] = []
    for each in arm.replicates:
        curve = each.curves.get((metric, axis)) if axis else each.curve(metric)
        if curve is not None and len(curve.steps):
            found.append((each, curve))
    curves = [curve for _, curve in found if curve.axis == found[0][1].axis]
    steps = shared(curves)
    if not len(steps):
        return None
    values = np.array([curve.values[np.searchsorted(curve.steps, steps)] for curve in curves])
    made = Course(arm.name, metric, curves[0].axis, len(curves), steps, values[0], found[0][0])
    made.estimated = frozenset(curves[0].guessed.tolist()).difference(steps.tolist())
    if len(curves) == 1:
        made.decimals = curves[0].decimals
        return made
    made.values = np.add.reduce(values, axis=0) / len(curves)
    apart = values - made.values
    spread = np.sqrt(np.add.reduce(apart * apart, axis=0) / (len(curves) - 1))
    half = stdtrit(len(curves) - 1, 0.975) * spread / np.sqrt(len(curves))
    made.low, made.high = made.values - half, made.values + half
    return made


def shared(found: Sequence[Curve | Course]) -> Floats:
    """The steps that all have; runs that were logged alike have the same ones."""
    steps = found[0].steps if found else np.empty(0)
    for each in found[1:]:
        if each.steps is not steps and not np.array_equal(steps, each.steps):
            steps = np.intersect1d(steps, each.steps)
    return steps


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
    return list(
        dict.fromkeys(
            metric
            for arm in made.arms
            for replicate in arm.replicates
            for (metric, over), curve in replicate.curves.items()
            if axis in ("", over) and len(curve.steps)
        )
    )


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
    steps = shared(found)
    if len(steps) > most:
        steps = steps[np.unique(np.linspace(0, len(steps) - 1, most).round().astype(int))]
    return [float(step) for step in steps]


def at_step(each: Course, step: float) -> float | None:
    """The value at a step, if it is there."""
    return each.by_step.get(step)
