"""What each key of a grid did by itself, and what two of them did together.

In a full grid every value of a key meets every value of the others. So a key's effect is the mean
gap between its values with all else equal, and an interaction is how much one key's gap depends on
another. Both are taken within a seed and an item, then over seeds and items like these. p-values
are adjusted for all of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import combinations, product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kleash import stats
from kleash.compare.items import table_of
from kleash.results import Results, seed_scores
from kleash.stats import Interval

FEWEST_SEEDS = 2
Scores = NDArray[np.float64]
"""[seed, first key, second key, ..., item]; NaN where an item broke in a run of the seed."""


@dataclass(frozen=True)
class Effect:
    """A gap that belongs to one key, or to two that act on each other."""

    keys: tuple[str, ...]
    values: tuple[tuple[Any, Any], ...]
    """For each key, the value and the one it is compared with, which is the grid's first."""
    gap: Interval
    p: float
    adjusted_p: float = 1.0

    @property
    def name(self) -> str:
        """`entropy_bonus`, or `entropy_bonus × schedule`."""
        return " × ".join(self.keys)

    @property
    def levels(self) -> str:
        """`0.01 less 0`, for each key."""
        return ", ".join(f"{ours} less {theirs}" for ours, theirs in self.values)


def factor_effects(found: Results) -> list[Effect]:
    """Every effect of one key and of two, in the grid's order; none where seeds or cells lack."""
    grid = {key: values for key, values in found.file.grid.items() if len(values) > 1}
    if len(grid) < 2:
        return []
    scores = grid_scores(found)
    if scores is None or len(scores) < FEWEST_SEEDS:
        return []
    made = [*mains(grid, scores), *pairs(grid, scores)]
    adjusted = stats.holm([each.p for each in made])
    return [replace(each, adjusted_p=float(p)) for each, p in zip(made, adjusted, strict=True)]


def grid_scores(found: Results) -> Scores | None:
    """The test score of every seed that has all cells of the grid; None where no seed has."""
    by_keys = {spelt(arm.keys): arm.name for arm in found.arms}
    names = []
    for values in product(*found.file.grid.values()):
        keys = dict(zip(found.file.grid, values, strict=True))
        names.append(by_keys[spelt(keys)])
    rows = [seed_scores(found.overview, found.file, name) for name in names]
    seeds = [seed for seed in found.file.seeds if all(seed in each for each in rows)]
    if not seeds:
        return None
    _, table = table_of([each[seed] for seed in seeds for each in rows])
    scores = table.reshape(len(seeds), len(rows), -1)
    scores = np.where(np.isfinite(scores).all(axis=1, keepdims=True), scores, np.nan)
    if not np.isfinite(scores).any(axis=(1, 2)).all():
        return None
    sizes = [len(values) for values in found.file.grid.values() if len(values) > 1]
    return scores.reshape(len(seeds), *sizes, -1)


def spelt(keys: Mapping[str, Any]) -> str:
    """Keys and values in one order."""
    return repr(sorted(keys.items(), key=str))


def mains(grid: dict[str, tuple[Any, ...]], scores: Scores) -> Iterator[Effect]:
    """Each further value of a key against its first, averaged over all other keys."""
    for axis, (key, values) in enumerate(grid.items(), 1):
        for at in range(1, len(values)):
            gap = at_value(scores, axis, at) - at_value(scores, axis, 0)
            yield over_seeds((key,), ((values[at], values[0]),), gap)


def at_value(scores: Scores, axis: int, at: int) -> Scores:
    """The part of the grid where one key has one value."""
    found: Scores = np.moveaxis(scores, axis, 0)[at]
    return found


def pairs(grid: dict[str, tuple[Any, ...]], scores: Scores) -> Iterator[Effect]:
    """How much the gap of one key changes between two values of another."""
    for (one, (first, ours)), (other, (second, theirs)) in combinations(
        enumerate(grid.items(), 1), 2
    ):
        for at, also in product(range(1, len(ours)), range(1, len(theirs))):
            # The second axis is taken first: it lies behind the first, which so keeps its place.
            there, here = (
                at_value(side, one, at) - at_value(side, one, 0)
                for side in (at_value(scores, other, also), at_value(scores, other, 0))
            )
            values = ((ours[at], ours[0]), (theirs[also], theirs[0]))
            yield over_seeds((first, second), values, there - here)


def over_seeds(keys: tuple[str, ...], values: tuple[tuple[Any, Any], ...], gap: Scores) -> Effect:
    """The mean over the rest of the grid in each seed and item, then over both."""
    test = stats.crossed_seeds(gap.reshape(len(gap), -1, gap.shape[-1]).mean(axis=1))
    return Effect(keys, values, test.interval, float(test.p))
