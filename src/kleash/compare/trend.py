"""What the coefficient did: a trend over arms that differ in nothing else.

Linear in the logarithm of the coefficient; 0, which has none, is left out. Rows are seeds (then it
is about settings), else items (about checkpoints); of means alone only the slope is told.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from kleash import stats
from kleash.compare.arms import Arm
from kleash.compare.confounds import changed, confounds, factor
from kleash.compare.gaps import gap_of_pair
from kleash.compare.items import (
    aligned,
    latest,
    run_means,
    scored,
    shared_run_means,
    span_of,
)
from kleash.compare.read.names import Metric
from kleash.compare.records import Amount, Because, Judged
from kleash.compare.verdicts import Pair, settled
from kleash.stats import Floats, Level

FEWEST_ARMS = 3
MOST_ARMS = 200  # of more, looking for those that differ in nothing else takes too long


def trend(arms: Sequence[Arm], baseline: Arm, known: Metric) -> Judged | None:
    """The slope over coefficients above 0; None where too few arms differ in nothing else."""
    line = ordered(arms, baseline)
    if len(line) < FEWEST_ARMS or sum((arm.coefficient or 0) > 0 for arm in line) < 2:
        return None
    blank = Judged(
        "trend", known.name, known.unit, tuple(arm.name for arm in line), "undecided", "L1"
    )
    at = np.array([arm.coefficient for arm in line], dtype=float)
    sure = all(Pair(arms, arm, line[0], known.name).configured for arm in line[1:])
    (rows, scores), of_seeds = _by_seeds(line, known.name), True
    if rows is None:
        groups = latest(line, known.name)
        table = aligned(groups) if groups else None
        rows, of_seeds = None if table is None else table.T, False
    if rows is None:
        return _of_means(blank, at, line, known, sure=sure)
    if len(rows) < 2 or not np.ptp(rows, axis=1).any():
        return None
    held = rows if scores is None else scores
    span = None if of_seeds and scores is None else span_of(held[np.isfinite(held)])
    found = stats.trend(at, held, span=span)
    few = of_seeds and len(rows) < stats.FEWEST_SEEDS
    level: Level = "L3" if sure and not few else "L1"
    why = [_over(line, rows.mean(axis=0), known, sure=sure)]
    why += [Because("too_few_seeds")] if few else []
    why += [] if sure else [Because("config_unknown")]
    if not of_seeds:
        why.append(Because("one_run_per_arm"))
    elif scores is None:
        why.append(Because("on_these_items"))
    low, high = found.width.at(0.95)
    judged = replace(
        blank,
        level=level if of_seeds else "L2",
        estimate=found.slope,
        n=len(rows),
        counted="seeds" if of_seeds else "items",
        width=replace(found.width, turned=known.direction < 0) if low < high else None,
        because=tuple(why),
    )
    return settled(judged)


def ordered(arms: Sequence[Arm], baseline: Arm) -> list[Arm]:
    """Arms in the order of their coefficients, equal to the baseline (or the first) in the rest."""
    leashed = [arm for arm in arms if arm.coefficient is not None]
    if not FEWEST_ARMS <= len(leashed) <= MOST_ARMS:
        return []
    anchor = baseline if baseline.coefficient is not None else leashed[0]
    alike = [arm for arm in leashed if arm is anchor or _only_coefficient(arm, anchor)]
    line = sorted(alike, key=lambda arm: arm.coefficient or 0.0)
    coefficients = [arm.coefficient for arm in line]
    # One coefficient under two names differs in something that no config tells.
    return [arm for arm in line if coefficients.count(arm.coefficient) == 1]


def _only_coefficient(ours: Arm, theirs: Arm) -> bool:
    """Whether two arms with configs differ in the coefficient and in nothing else."""
    if not (ours.settings and theirs.settings) or factor(ours, theirs) != ("leash.coefficient",):
        return False
    return not changed(confounds(ours, theirs), lengths=True)


def _by_seeds(line: Sequence[Arm], metric: str) -> tuple[Floats | None, Floats | None]:
    """Run means [seed, arm]; and where they were kept, the scores of items [seed, arm, item]."""
    runs = [{run.seed: run for run, _ in run_means(arm, metric)} for arm in line]
    seeds = sorted(seed for seed in set(runs[0]).intersection(*runs[1:]) if seed is not None)
    if len(seeds) < 2:
        return None, None
    found = scored(line, metric)
    if found is not None and found.scores_ASN.shape[1] == len(seeds):
        items = np.moveaxis(found.scores_ASN, 0, 1)
        return np.nanmean(items, axis=2), items
    means = [shared_run_means([each[seed] for each in runs], metric) for seed in seeds]
    return np.array(means), None


def _over(line: Sequence[Arm], means: Floats, known: Metric, *, sure: bool) -> Because:
    pairs = {
        f"{arm.coefficient:g}": Amount(float(mean), known.unit)
        for arm, mean in zip(line, means, strict=True)
    }
    return Because(
        "trend_over" if sure else "trend_over_named", {"arms": len(line), "levels": pairs}
    )


def _of_means(
    blank: Judged, at: Floats, line: Sequence[Arm], known: Metric, *, sure: bool
) -> Judged | None:
    """The slope of means alone, by their gaps to the first arm: no replicate, no interval."""
    first = line[0]
    gaps = [gap_of_pair(arm, first, known.name) for arm in line[1:]]
    if not gaps or any(gap is None for gap in gaps):
        return None
    found = [gap for gap in gaps if gap is not None]
    base = found[0].baseline_mean
    means = np.array([base, *(base + gap.estimate for gap in found)])
    if not np.ptp(means):
        return None
    above = at > 0
    slope = float(np.polyfit(np.log2(at[above]), means[above], 1)[0])
    over = _over(line, means, known, sure=sure)
    why = [over, Because("no_replicates"), Because("one_run_per_arm")]
    why += [] if sure else [Because("config_unknown")]
    return replace(blank, estimate=slope, because=tuple(why))
