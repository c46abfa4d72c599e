"""What hours buy: further seeds of which arms, and what would then be decided. Nothing runs here.

What is promised is what `kleash compare` will do with the runs: seeds and items crossed, Holm over
the arms and the trend. Fewer than four seeds decide nothing about a setting and are not proposed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import numpy as np

from kleash import stats
from kleash.compare.arms import Arm
from kleash.compare.comparison import Comparison, Judged, Wish, compare
from kleash.compare.durations import devices_of, tells_device_hours, training_hours
from kleash.compare.items import run_means, scored, shared_run_means
from kleash.compare.read import Source
from kleash.errors import ConfigError, DataError
from kleash.runs.run import read_lines
from kleash.stats import Crossed, GapSpread

FEWEST_SEEDS = 4
MOST_SEEDS = 40
MOST_ARMS = 7  # of a study that was not run yet
POWER = 0.8
LEAST = 1e-9  # of a spread: below it values were copied
IN_SDS = GapSpread(1.0, 0.0, 0.0)
NO_ANSWER = ("invalid", "diverged", "identical")  # verdicts that further seeds would not change


@dataclass(frozen=True)
class Cost:
    """Hours of one device: of a run with all that it measures, and of the start of a seed."""

    run: float
    start: float = 0.0
    of_machine: bool = False
    """Whether these are hours of a machine that tells nobody how many devices it has."""

    def of_study(self, arms: int, seeds: int) -> float:
        """Hours of so many seeds of so many arms."""
        return seeds * (self.start + arms * self.run)


@dataclass(frozen=True)
class Spread:
    """How far gaps spread, from scores of `items`, means of runs that share `seeds`, or `apart`."""

    way: Literal["items", "seeds", "apart", "unknown"]
    gap: GapSpread = IN_SDS
    """In SDs between seeds where nothing tells how large those are."""
    arms: int = 1
    seeds: int = 0
    items: int = 1

    @property
    def cautious(self) -> GapSpread:
        """At its upper 80 % bound."""
        return self.gap.times(stats.cautious_factor(self.seeds, self.arms))


@dataclass(frozen=True)
class Design:
    """So many arms (the baseline among them) and seeds, what further ones cost, and what is seen.

    `gap` is the smallest that is seen with power 0.8, `margin` the narrowest within which equal
    arms are called equivalent with it.
    """

    arms: int
    seeds: int
    hours: float
    gap: float
    margin: float


def design(spread: GapSpread, items: int, arms: int, seeds: int, hours: float) -> Design:
    """Arms and seeds with all that they decide."""
    crossed = Crossed(spread, seeds, items, comparisons(arms - 1))
    return Design(arms, seeds, hours, crossed.smallest_gap(POWER), crossed.smallest_margin(POWER))


def comparisons(others: int) -> int:
    """How many p-values `compare` adjusts together: an arm's each, and the trend's."""
    return others + 1 if others > 1 else others


@dataclass
class Plan:
    """What hours buy. Without runs (`arms` is empty) gaps are in SDs between seeds."""

    hours: float
    cost: Cost
    spread: Spread
    metric: str = ""
    unit: str = ""
    margin: float | None = None
    arms: list[str] = field(default_factory=list)
    baseline: str = ""
    seeds: int = 0
    decided: list[Judged] = field(default_factory=list)
    open: list[Judged] = field(default_factory=list)
    now: Design | None = None
    """None below four seeds, where nothing about a setting is decided."""
    designs: list[Design] = field(default_factory=list)
    """Ways to spend the hours: of runs that are there, the one that sees the smallest gap first."""
    cautious: Design | None = None
    """The first with the spread at its upper bound: few seeds show it badly."""
    chances: dict[str, float] = field(default_factory=dict)
    """By open arm: how often the first way would decide it, if its gap is what was seen."""

    @property
    def in_sds(self) -> bool:
        """Whether gaps are in SDs between seeds."""
        return self.spread.way == "unknown"

    def to_decide(self, arms: int) -> float:
        """Hours that bring so many arms to the fewest seeds that decide anything."""
        return self.cost.of_study(arms, max(0, FEWEST_SEEDS - self.seeds))


def before_runs(hours: float, run_hours: float) -> Plan:
    """What a study that was not run yet would decide, by its number of arms."""
    found = Plan(hours, Cost(run_hours), Spread("unknown"))
    for arms in range(2, MOST_ARMS + 1):
        found.designs += _designs(found, arms)
    return found


def after_runs(
    sources: Sequence[Source],
    wish: Wish,
    hours: float | None = None,
    run_hours: float | None = None,
) -> Plan:
    """What further hours buy, from runs that are there; by default as many as these took."""
    compared = compare(sources, wish)
    arms: list[Arm] = compared.gathered
    levels = [each for each in compared.verdicts if each.question == "level"]
    cost = Cost(run_hours) if run_hours else cost_of(arms, sources)
    spread = _spread(arms, compared, levels[0].metric)
    if spread.way != "unknown" and spread.gap.of_seed(spread.items) < LEAST:
        raise DataError("the gaps are the same under every seed: measured again, or never trained")
    seeds = min((each.n or 1) if each.counted == "seeds" else 1 for each in levels)
    found = Plan(
        hours=cost.of_study(len(arms), seeds) if hours is None else hours,
        cost=cost,
        spread=spread,
        metric=levels[0].metric,
        unit=levels[0].unit,
        margin=next((each.margin for each in levels if each.margin), None),
        arms=[arm.name for arm in arms],
        baseline=compared.baseline,
        seeds=seeds,
    )
    answered = [each for each in levels if each.verdict not in NO_ANSWER]
    found.decided = [each for each in answered if _is_settled(each)]
    found.open = [each for each in answered if not _is_settled(each)]
    if seeds >= FEWEST_SEEDS and spread.way != "unknown":
        found.now = design(spread.gap, spread.items, len(arms), seeds, 0.0)
    for count in dict.fromkeys((len(arms), 1 + len(found.open) if found.open else len(arms))):
        found.designs += _designs(found, count)
    found.designs.sort(key=lambda each: (round(each.gap, 6), each.hours))
    if found.designs and spread.way != "unknown":
        _weigh(found, found.designs[0])
    return found


def _designs(plan: Plan, arms: int) -> list[Design]:
    """The design that the hours allow with so many arms, if they allow one."""
    each = plan.cost.of_study(arms, 1)
    more = min(MOST_SEEDS - plan.seeds, int(plan.hours / each + 1e-9))
    if more < 1 or plan.seeds + more < FEWEST_SEEDS:
        return []
    spread = plan.spread
    return [design(spread.gap, spread.items, arms, plan.seeds + more, more * each)]


def _weigh(plan: Plan, then: Design) -> None:
    """How a design looks with a wider spread, and for each arm that is open."""
    spread = plan.spread
    plan.cautious = design(spread.cautious, spread.items, then.arms, then.seeds, then.hours)
    crossed = Crossed(spread.gap, then.seeds, spread.items, comparisons(then.arms - 1))
    margin = plan.margin or 0.0
    for each in plan.open:
        if each.estimate is not None:
            far = 2 * abs(each.estimate) >= margin
            chance = crossed.power(each.estimate) if far else crossed.equivalence(margin)
            plan.chances[each.arms[0]] = chance


def _is_settled(judged: Judged) -> bool:
    """Whether a setting was decided about: what one training of it did is no setting's doing."""
    enough = judged.counted == "seeds" and (judged.n or 0) >= FEWEST_SEEDS
    return enough and judged.verdict != "undecided"


def cost_of(arms: Sequence[Arm], sources: Sequence[Source] = ()) -> Cost:
    """What jobs of studies took; else the middle of what logs tell, times their devices."""
    jobs: dict[str, float] = {}
    for source in sources:
        spent = Path(source.path) / "spent.jsonl"
        for line in read_lines(spent) if spent.is_file() else ():
            jobs[line["job"]] = jobs.get(line["job"], 0.0) + line["seconds"] / 3600
    own = {f"{arm.name}-s{run.seed}" for arm in arms for run in arm.replicates}
    if runs := [jobs[job] for job in jobs.keys() & own]:
        starts = [hours for job, hours in jobs.items() if job.startswith("base-s")]
        return Cost(float(np.mean(runs)), float(np.mean(starts)) if starts else 0.0)
    logged = [(span, devices_of(arm)) for arm in arms if (span := training_hours(arm))]
    if not logged:
        raise ConfigError("what does a run cost? the runs do not tell: give --run-hours")
    hours = [sum(span) / 2 * (devices or 1) for span, devices in logged]
    known = any(devices for _, devices in logged) or any(map(tells_device_hours, arms))
    return Cost(float(np.median(hours)), of_machine=not known)


def _spread(arms: Sequence[Arm], found: Comparison, metric: str) -> Spread:
    """The best that runs allow: items under shared seeds, means of shared seeds, runs of an arm."""
    baseline = next(arm for arm in arms if arm.name == found.baseline)
    others = [arm for arm in arms if arm is not baseline]
    tables = [scores.scores_ASN for arm in others if (scores := scored((arm, baseline), metric))]
    gaps = [table[0] - table[1] for table in tables]
    whole = [gap[:, np.isfinite(gap).all(axis=0)] for gap in gaps]
    whole = [gap for gap in whole if min(gap.shape) > 1]
    if whole:
        items, seeds = min(gap.shape[1] for gap in whole), min(map(len, whole))
        return Spread("items", stats.gap_spread(whole), len(whole), seeds, items)
    base = {run.seed: run for run, _ in run_means(baseline, metric) if run.seed is not None}
    paired = []
    for arm in others:
        runs = [(run, base[run.seed]) for run, _ in run_means(arm, metric) if run.seed in base]
        if len(runs) > 1:
            means = np.array([shared_run_means(both, metric) for both in runs])
            paired.append(means[:, 0] - means[:, 1])
    if paired:
        spread = math.sqrt(float(np.mean([gap.var(ddof=1) for gap in paired])))
        return Spread("seeds", GapSpread(spread, 0.0, 0.0), len(paired), min(map(len, paired)))
    within = [[mean for _, mean in run_means(arm, metric)] for arm in arms]
    within = [means for means in within if len(means) > 1]
    if not within:
        return Spread("unknown")
    # A gap of two runs that share nothing has both their spreads.
    spread = math.sqrt(2 * float(np.mean([np.var(means, ddof=1) for means in within])))
    return Spread("apart", GapSpread(spread, 0.0, 0.0), 1, min(map(len, within)))
