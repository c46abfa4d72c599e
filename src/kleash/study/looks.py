"""Seeds added at declared looks until the verdict is there or the budget is spent.

Each look has its share of alpha, so looking several times keeps the rate of false verdicts.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from kleash import stats
from kleash.compare.items import table_of
from kleash.stats import Floats
from kleash.study.plan import StudyFile, against, arms_of
from kleash.study.plan.folder import Overview, placed
from kleash.study.results import seed_means, seed_scores
from kleash.study.running import Asked, Ran, run_study


def run_until_decided(asked: Asked, hear: Any) -> tuple[Ran, StudyFile]:
    """The study with as many seeds as it takes; and its file with those seeds."""
    looks = asked.file.budget.looks
    for count in looks:
        seeds = enough_seeds(asked.file.seeds, count)
        now = replace(asked, file=asked.file.but(seeds=seeds))
        ran = run_study(now, hear)
        if ran.stopped or ran.failures or decided(now, ran.overview, looks):
            break
    return ran, now.file


def enough_seeds(given: tuple[int, ...], count: int) -> tuple[int, ...]:
    """The first so many seeds: those that were given, then the smallest that were not."""
    more = (seed for seed in range(count + len(given)) if seed not in given)
    return (*given, *more)[:count]


def decided(asked: Asked, found: Overview, looks: tuple[int, ...]) -> bool:
    """Whether every arm is told from its baseline, or shown to lie within the margin of it."""
    file = asked.file
    margin = file.compare.margin
    for arm, base in against(file, arms_of(file, placed(asked.folder))).items():
        ours, theirs = seed_means(found, file, arm), seed_means(found, file, base)
        both = sorted(ours.keys() & theirs.keys())
        if len(both) not in looks:
            return False
        pair = [ours[s] for s in both], [theirs[s] for s in both]
        items = item_gaps(seed_scores(found, file, arm), seed_scores(found, file, base), both)
        gap = stats.look(*pair, items=items, looks=looks)
        near = stats.look(*pair, items=items, looks=looks, level=0.9)
        if gap is None or near is None:
            return False
        apart = gap.interval.low > 0 or gap.interval.high < 0
        within = -margin < near.interval.low and near.interval.high < margin
        if not (apart or within):
            return False
    return True


def item_gaps(
    ours: dict[int, dict[str, float]], theirs: dict[int, dict[str, float]], seeds: list[int]
) -> Floats | None:
    """Gaps [seed, item] of the items that both arms have; None where a seed has none."""
    rows = []
    for seed in seeds:
        mine, other = ours.get(seed, {}), theirs.get(seed, {})
        rows.append({item: mine[item] - other[item] for item in mine.keys() & other.keys()})
    return table_of(rows)[1] if all(rows) else None
