"""Settings compared where they went equally far, or were updated equally often.

A coefficient means little across learning rates: at the same one a faster policy is further away.
So arms that differ in nothing but the coefficient form a *family*, whose runs trace a score over
realised KL; families are paired by seed at KLs that both reached, and at equal numbers of updates.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from kleash import stats
from kleash.plan import Arm, StudyFile
from kleash.plan.folder import Overview
from kleash.recipe import Recipe
from kleash.results import Results, realised_kl, seed_means
from kleash.stats import Interval

COEFFICIENT = "leash.coefficient"
POINTS = 3  # KLs at which two families are compared
Curve = list[tuple[float, float]]
"""Realised KL and score of each coefficient, nearest first."""


@dataclass(frozen=True)
class Matched:
    """The gap between two settings at one realised KL, or after one number of updates."""

    ours: str
    theirs: str
    on: str
    """`kl`: nats per episode; `updates`: gradient steps in all."""
    at: float
    gap: Interval
    """Ours minus theirs, paired by seed: test scores at equal KL, validation at equal updates."""


def families(arms: Sequence[Arm]) -> dict[str, list[Arm]]:
    """Arms that differ only in the coefficient, by what else they name."""
    found: dict[str, list[Arm]] = {}
    for arm in arms:
        rest = {key: value for key, value in arm.keys.items() if key != COEFFICIENT}
        name = ",".join(f"{key.rsplit('.', 1)[-1]}={value}" for key, value in rest.items())
        found.setdefault(name, []).append(arm)
    return found


def at_equal_kl(found: Results) -> list[Matched]:
    """Every family against the first that shares a range of KL with it, at KLs within that range.

    A seed counts at a KL that both its curves reach; nothing is drawn beyond what was reached.
    """
    several = {name: arms for name, arms in families(found.arms).items() if len(arms) > 1}
    if len(several) < 2:
        return []
    curves = {name: traced(found, arms) for name, arms in several.items()}
    names = list(curves)
    rows: list[Matched] = []
    for place, name in enumerate(names):
        tried = (pair_at_equal_kl(curves, name, other) for other in names[:place])
        rows += next((found for found in tried if found), [])
    return rows


def pair_at_equal_kl(
    curves: Mapping[str, Mapping[int, Curve]], ours: str, theirs: str
) -> list[Matched]:
    """One family against another, over the seeds of both; nothing if they share no range of KL."""
    seeds = sorted(curves[ours].keys() & curves[theirs].keys())
    pairs = [(curves[ours][seed], curves[theirs][seed]) for seed in seeds]
    rows = []
    for at in shared_kls(pairs):
        scores = [[score_at(curve, at) for curve in side] for side in zip(*pairs, strict=True)]
        rows.append(Matched(ours, theirs, "kl", at, stats.paired_seeds(*scores).interval))
    return rows


def traced(found: Results, arms: Sequence[Arm]) -> dict[int, Curve]:
    """By seed, the score of a family over its realised KL."""
    curves: dict[int, Curve] = {}
    for arm in arms:
        scores = seed_means(found.overview, found.file, arm.name)
        for seed, score in scores.items():
            seen = found.overview.seen[arm.name, seed]
            kl = realised_kl(seen, found.runs, seen.chosen)
            if kl is not None and kl > 0:
                curves.setdefault(seed, []).append((kl, score))
    return {seed: sorted(curve) for seed, curve in curves.items() if len(curve) > 1}


def shared_kls(pairs: Sequence[tuple[Curve, Curve]]) -> list[float]:
    """KLs evenly apart in the logarithm within the range that every curve of every seed covers."""
    if len(pairs) < 2:
        return []
    low = max(curve[0][0] for pair in pairs for curve in pair)
    high = min(curve[-1][0] for pair in pairs for curve in pair)
    return np.geomspace(low, high, POINTS).tolist() if low < high else []


def score_at(curve: Curve, kl: float) -> float:
    """The score at a KL, on a straight line between the logarithms of its neighbours."""
    x, y = np.array(curve).T
    return float(np.interp(math.log(kl), np.log(x), y))


def at_equal_updates(found: Results) -> list[Matched]:
    """Arms with the same coefficient after the same number of updates, by validation.

    Against the first arm with that coefficient, if an epoch is another number of updates to it, at
    the most that both have an epoch's end for: with three per batch, after a third of the epochs.
    """
    first: dict[Any, Arm] = {}
    rows = []
    for arm in found.arms:
        other = first.setdefault(arm.keys.get(COEFFICIENT), arm)
        recipes = [found.overview.told[each.name].recipe for each in (other, arm)]
        if pace(recipes[0]) == pace(recipes[1]):
            continue
        ours, theirs = (by_updates(found.overview, found.file, each) for each in (arm, other))
        seeds = sorted(ours.keys() & theirs.keys())
        if len(seeds) < 2:
            continue
        both = set.intersection(*(set(ours[s]) & set(theirs[s]) for s in seeds))
        if both:
            at = max(both)
            ends = [[side[seed][at] for seed in seeds] for side in (ours, theirs)]
            gap = stats.paired_seeds(*ends).interval
            rows.append(Matched(arm.name, other.name, "updates", at, gap))
    return rows


def pace(recipe: Recipe) -> tuple[int, int, int]:
    """What the number of updates in an epoch depends on."""
    return recipe.length() // max(recipe.epochs, 1), recipe.batch, recipe.updates


def by_updates(found: Overview, file: StudyFile, arm: Arm) -> dict[int, Mapping[int, float]]:
    """By seed, the validation score by the number of updates made so far."""
    recipe = found.told[arm.name].recipe
    curves: dict[int, Mapping[int, float]] = {}
    for (name, seed), seen in found.seen.items():
        if name != arm.name or seen.run is None:
            continue
        used = seen.run.meta["counts"]["used"]
        if getattr(recipe, "source", "") == "offline":  # a view leaves fewer groups to train on
            used = int(seen.run.meta.get("view", {}).get("kept_groups", used))
        each = recipe.batches(used) * recipe.updates
        curves[seed] = {
            line["epoch"] * each: line[file.logged]
            for line in seen.run.metrics()
            if line["kind"] == "epoch" and line["phase"] == "grpo"
        }
    return curves
