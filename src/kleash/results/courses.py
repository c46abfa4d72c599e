"""How arms got there, over seeds: peak, epochs to a common threshold, swings, early, middle, late.

Each is one number per seed, paired and then by t, from the means that validation logs: about the
settings on these validation items. The threshold is the highest that every run reaches, so that all
arrive; that of `compare` lies half way, where it is less a matter of luck.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from kleash import stats
from kleash.results import Results
from kleash.stats import Interval

FEWEST_EPOCHS = 4
FEWEST_SEEDS = 2
LEAST = 1e-12  # of an SD: below it nothing swings
Dimension = Literal["peak", "threshold", "swings", "early", "middle", "late"]
DIMENSIONS = get_args(Dimension)
Unit = Literal["score", "epoch", "ratio"]
Curves = NDArray[np.float64]
"""[seed, epoch]: the validation score of every seed that both arms have."""


@dataclass(frozen=True)
class Course:
    """One dimension of an arm against its baseline arm, over seeds."""

    arm: str
    against: str
    dimension: Dimension
    unit: Unit
    ours: float
    theirs: float
    gap: Interval
    """Ours less theirs, paired by seed; of swings their ratio."""
    at: float | None = None
    """The threshold that both reach in every seed."""

    @property
    def ahead(self) -> str:
        """The arm that is ahead where the interval says so; else ''. Fewer epochs, fewer swings."""
        even, sign = (1.0, -1) if self.unit == "ratio" else (0.0, -1 if self.unit == "epoch" else 1)
        if self.gap.low <= even <= self.gap.high:
            return ""
        return self.arm if sign * (self.gap.estimate - even) > 0 else self.against


def courses(found: Results) -> list[Course]:
    """Every dimension of every arm that has a baseline arm; none of short runs or of one seed."""
    return [course for pair in pairs(found) for course in dimensions(*pair)]


Two = tuple[str, str, Curves, Curves]
"""An arm and its baseline arm, and the curves of each."""


def pairs(found: Results) -> Iterator[Two]:
    """Arms with their baseline arms, where courses can be compared."""
    curves = {row.name: curves_of(found, row.name, found.file.logged) for row in found.rows}
    for row in found.rows:
        ours, theirs = curves[row.name], curves.get(row.against, {})
        seeds = sorted(ours.keys() & theirs.keys())
        length = min((len(side[s]) for s in seeds for side in (ours, theirs)), default=0)
        if len(seeds) >= FEWEST_SEEDS and length >= FEWEST_EPOCHS:
            pair = [np.array([side[s][:length] for s in seeds]) for side in (ours, theirs)]
            yield row.name, row.against, pair[0], pair[1]


def swinging(ours: Curves, theirs: Curves) -> bool:
    """Whether every curve swings, so that there is a ratio."""
    bends = np.diff(np.concatenate([ours, theirs]), 2)
    return bool(np.sqrt((bends**2).sum(axis=1).min() / (6 * bends.shape[1])) >= LEAST)


def curves_of(found: Results, arm: str, metric: str) -> dict[int, list[float]]:
    """By seed, an arm's validation score after each epoch of GRPO."""
    curves: dict[int, list[float]] = {}
    for seed, seen in found.overview.of_arm(arm, found.file.seeds).items():
        if seen.run is not None and seen.run.has("metrics.jsonl"):
            curves[seed] = [
                value
                for series in found.read(seen.run).series
                if series.metric == metric and series.axis == "epoch"
                for value in series.values.tolist()
            ]
    return curves


def dimensions(arm: str, against: str, ours: Curves, theirs: Curves) -> Iterator[Course]:
    """Everything that is asked of two courses; of `swinging` ones there is one more."""
    names = (arm, against)
    yield paired(names, "peak", "score", ours.max(axis=1), theirs.max(axis=1))
    level = float(min(ours.max(axis=1).min(), theirs.max(axis=1).min()))
    first = [1.0 + (side >= level).argmax(axis=1) for side in (ours, theirs)]
    yield paired(names, "threshold", "epoch", first[0], first[1], level)
    if swinging(ours, theirs):
        yield swings(names, ours, theirs)
    thirds = [np.array_split(side, 3, axis=1) for side in (ours, theirs)]
    parts: tuple[Dimension, ...] = ("early", "middle", "late")
    for name, mine, other in zip(parts, *thirds, strict=True):
        yield paired(names, name, "score", mine.mean(axis=1), other.mean(axis=1))


def paired(  # every fact of a comparison
    names: tuple[str, str],
    dimension: Dimension,
    unit: Unit,
    ours: Curves,
    theirs: Curves,
    at: float | None = None,
) -> Course:
    """One number per seed of each arm."""
    gap = stats.paired_seeds(ours, theirs).interval
    means = float(ours.mean()), float(theirs.mean())
    return Course(*names, dimension, unit, *means, gap, at)


def swings(names: tuple[str, str], ours: Curves, theirs: Curves) -> Course:
    """SDs of second differences as a ratio."""
    sides = [[stats.second_difference_sd(curve) for curve in side] for side in (ours, theirs)]
    logs = stats.paired_seeds(*(np.log(side) for side in sides)).interval
    middle, low, high = (math.exp(each) for each in (logs.estimate, logs.low, logs.high))
    ratio = Interval(middle, low, high, logs.level, logs.n)
    mine, other = (float(np.exp(np.mean(np.log(side)))) for side in sides)
    return Course(*names, "swings", "ratio", mine, other, ratio)
