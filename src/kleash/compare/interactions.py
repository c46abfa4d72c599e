"""Does the gap depend on shots: the gap at the first shot count less that at another.

Seeds are the replicates where four or more have both conditions, else items; of printed means only
the number is told.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from kleash import stats
from kleash.compare.arms import Arm, Place, Replicate
from kleash.compare.evidence import means_of
from kleash.compare.items import (
    aligned,
    by_item,
    by_spot,
    span_of,
    table_of,
    what_counts,
)
from kleash.compare.judging import Pair, settled
from kleash.compare.records import Because, Judged
from kleash.imports import Scores
from kleash.stats import Floats, Interval, Level, Width

FEWEST_SEEDS = 4
MOST_LEVELS = 4  # of more conditions only the first and the last are set against each other

Conditions = dict[float, list[Scores]]
"""Scores by shots."""


@dataclass(frozen=True)
class Contrast:
    """The gap in one condition less the gap in another."""

    first: float
    other: float
    estimate: float
    interval: Interval | None = None
    width: Width | None = None
    level: Level = "L1"


def interactions(pair: Pair) -> Iterator[Judged]:
    """Contrasts over shots; an agent is rewarded and shown nothing."""
    if pair.known.unit != "reward":
        for found in _of_scores(pair) or _of_cells(pair):
            yield _judged(pair, found)


def _judged(pair: Pair, found: Contrast) -> Judged:
    facts = {"first": found.first, "other": found.other}
    because = [Because("shots_interaction", facts)]
    if found.interval is None:
        because.append(Because("no_replicates"))
    inside, turned = found.interval, pair.known.direction < 0
    judged = Judged(
        question="shots_interaction",
        metric=pair.metric,
        unit=pair.known.unit,
        arms=pair.names,
        verdict="undecided",
        level=found.level,
        estimate=found.estimate,
        n=inside.n if inside else None,
        counted="" if inside is None else "seeds" if found.level == "L3" else "items",
        width=None if found.width is None else replace(found.width, turned=turned),
        also_changed=pair.also_changed(lengths=True),
        because=tuple(because),
    )
    return settled(judged)


def _against_first(levels: Sequence[float]) -> list[tuple[float, float]]:
    """The first with each other, or of many only with the last."""
    if len(levels) < 2:
        return []
    ordered = sorted(levels)
    others = ordered[1:] if len(ordered) <= MOST_LEVELS else ordered[-1:]
    return [(ordered[0], other) for other in others]


# --- scores of single items


def _of_scores(pair: Pair) -> list[Contrast]:
    runs = [pair.ours.replicates[0], pair.theirs.replicates[0]]
    sides = [_conditions(run, pair.metric) for run in runs]
    found = []
    for first, other in _against_first(list(sides[0].keys() & sides[1].keys())):
        groups = [side[level] for level in (first, other) for side in sides]
        table = aligned(groups)
        if table is None or not (table[0::2] - table[1::2]).any():
            continue
        seeds = _seeds(pair, first, other)
        found.append(seeds or _over_items(table, first, other))
    return found


def _over_items(table: Floats, first: float, other: float) -> Contrast:
    conditions = (table[0], table[1]), (table[2], table[3])
    gap = stats.interaction(*conditions, span=span_of(table))
    return Contrast(first, other, gap.interval.estimate, gap.interval, gap.width, "L2")


def _conditions(replicate: Replicate, metric: str) -> Conditions:
    """A run's scores at its last step by shots."""
    spots = by_spot(replicate, metric)
    found: Conditions = {}
    for each in spots[max(spots, key=what_counts)] if spots else ():
        if each.shots is not None:
            found.setdefault(each.shots, []).append(each)
    return found


def _seeds(pair: Pair, first: float, other: float) -> Contrast | None:
    """Over seeds that both arms have, where four or more measured both conditions."""
    if not pair.configured or pair.also_changed(lengths=True):
        return None
    theirs = {run.seed: run for run in pair.theirs.replicates if run.seed is not None}
    rows, span = [], 0.0
    for run in pair.ours.replicates:
        if run.seed not in theirs:
            continue
        sides = [_conditions(each, pair.metric) for each in (run, theirs[run.seed])]
        if all(level in side for side in sides for level in (first, other)):
            cells = [by_item(side[level])[0] for level in (first, other) for side in sides]
            rows.append(_of_items(cells))
            scores = [score for cell in cells for score in cell.values()]
            span = max(span, 2 * span_of(np.array(scores or [0.0])))
    if len(rows) < FEWEST_SEEDS or not all(rows):
        return None  # or all items of a cell broke
    found = stats.crossed_seeds(table_of(rows)[1], span=span)
    return Contrast(first, other, found.interval.estimate, found.interval, found.width, "L3")


def _of_items(cells: Sequence[dict[str, float]]) -> dict[str, float]:
    """Ours less theirs in the first condition, less the same in the other, of every item."""
    one, two, three, four = cells
    whole = one.keys() & two.keys() & three.keys() & four.keys()
    return {item: one[item] - two[item] - three[item] + four[item] for item in whole}


# --- printed means


def _of_cells(pair: Pair) -> list[Contrast]:
    gaps = _gaps_by_shots(pair)
    if not any(gaps.values()):
        return []
    return [
        Contrast(first, other, gaps[first] - gaps[other])
        for first, other in _against_first(list(gaps))
    ]


def _gaps_by_shots(pair: Pair) -> dict[float, float]:
    """Gaps at the largest n and last epoch at which both arms have two shot counts or more."""
    found: dict[float, float] = {}
    places = _places(pair.ours, pair.theirs, pair.metric)
    for place in sorted(places, key=lambda p: (p[2] or 0, p[0] or 0, p[1] or 0)):
        gaps = {float(shots): gap for shots, gap in places[place].items() if shots is not None}
        found = gaps if len(gaps) > 1 else found
    return found


def _places(ours: Arm, theirs: Arm, metric: str) -> dict[Place, dict[int | None, float]]:
    """The gap of printed means wherever both arms have one, by place and shots."""
    left, right = (means_of(arm.replicates[0], metric) for arm in (ours, theirs))
    found: dict[Place, dict[int | None, float]] = {}
    for place in left.keys() & right.keys():
        for shots in left[place].keys() & right[place].keys():
            one, other = left[place][shots].value, right[place][shots].value
            if one is not None and other is not None:
                found.setdefault(place, {})[shots] = one - other
    return found
