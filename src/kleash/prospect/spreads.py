"""How far gaps spread: between seeds, between items, and what is left, as runs have shown it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from kleash import stats
from kleash.compare.arms import Arm
from kleash.compare.items import aligned, latest
from kleash.compare.seeds import run_means, scored, shared_run_means
from kleash.stats import Floats, GapSpread

Way = Literal["given", "items", "seeds", "apart", "one seed", "unknown"]


@dataclass(frozen=True)
class Spread:
    """A gap's spread and how it is known.

    `items`: from scores of items under shared seeds. `seeds`: from means of runs that share seeds.
    `apart`: from runs that share none. `one seed`: of items alone. `unknown`: nothing tells.
    """

    way: Way
    gap: GapSpread
    arms: int = 1
    seeds: int = 0
    items: int = 0

    @property
    def between_seeds(self) -> bool:
        """Whether it is known how far seeds move a gap; without it nothing can be promised."""
        return self.way in ("given", "items", "seeds", "apart")

    @property
    def cautious(self) -> GapSpread:
        """At its upper 80 % bound; as it was given, where it was."""
        if self.way == "given" or self.seeds < 2:
            return self.gap
        return self.gap.times(stats.cautious_factor(self.seeds, self.arms))


UNKNOWN = Spread("unknown", GapSpread(0.0, 0.0, 0.0))


def spread_of(arms: Sequence[Arm], baseline: Arm, metric: str) -> Spread:
    """The best that the runs allow, in the order of the ways."""
    others = [arm for arm in arms if arm is not baseline]
    tables = [table for arm in others if (table := gaps_of(arm, baseline, metric)) is not None]
    several = [table for table in tables if len(table) > 1]
    if several:
        seeds, items = min(map(len, several)), min(table.shape[1] for table in several)
        return Spread("items", stats.gap_spread(several), len(several), seeds, items)
    found = _of_means(others, baseline, metric)
    if found is not None:
        return found
    if tables:
        spread = math.sqrt(float(np.mean([table.var(ddof=1) for table in tables])))
        return Spread("one seed", GapSpread(0.0, spread, 0.0), len(tables), 1, tables[0].shape[1])
    return UNKNOWN


def gaps_of(ours: Arm, theirs: Arm, metric: str) -> Floats | None:
    """Gaps [seed, item] over the seeds and items that `compare` takes, items scored in all."""
    found = scored((ours, theirs), metric)
    if found is None and len(ours.replicates) == len(theirs.replicates) == 1:
        groups = latest((ours, theirs), metric)
        rows = aligned(groups) if groups else None
        return None if rows is None or rows.shape[1] < 2 else rows[:1] - rows[1:]
    if found is None:
        return None
    gaps: Floats = found.scores_ASN[0] - found.scores_ASN[1]
    whole: Floats = gaps[:, np.isfinite(gaps).all(axis=0)]
    return whole if whole.shape[1] > 1 else None


def _of_means(others: Sequence[Arm], baseline: Arm, metric: str) -> Spread | None:
    """From run means: of shared seeds, else of runs within arms."""
    base = {run.seed: run for run, _ in run_means(baseline, metric) if run.seed is not None}
    paired = []
    for arm in others:
        both = [
            shared_run_means((run, base[run.seed]), metric)
            for run, _ in run_means(arm, metric)
            if run.seed in base
        ]
        if len(both) > 1:
            paired.append(np.diff(np.array(both), axis=1)[:, 0])
    if paired:
        square = float(np.mean([gaps.var(ddof=1) for gaps in paired]))
        spread = GapSpread(math.sqrt(square), 0.0, 0.0)
        return Spread("seeds", spread, len(paired), min(map(len, paired)))
    within = [[mean for _, mean in run_means(arm, metric)] for arm in (*others, baseline)]
    within = [means for means in within if len(means) > 1]
    if not within:
        return None
    square = float(np.mean([np.var(means, ddof=1) for means in within]))
    # A gap of two runs that share nothing has both their spreads.
    return Spread("apart", GapSpread(math.sqrt(2 * square), 0.0, 0.0), 1, min(map(len, within)))
