"""What hours buy: which arms, seeds and items to run, and what would then be decided.

Before any run a proposal, from costs and spreads that are given or read off a trial; after runs,
what further hours would change, from the spreads that were measured. Nothing runs here.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from kleash.compare import Comparison, Judged, Wish, compare
from kleash.compare.arms import Arm, gather
from kleash.errors import ConfigError, DataError
from kleash.imports import Source, names
from kleash.plan import StudyFile, arms_of, most_ranks
from kleash.prospect.costs import Cost, cost_of_logs, cost_of_study
from kleash.prospect.designs import (
    FEWEST_SEEDS,
    SIZES,
    Design,
    Goal,
    best,
    chosen,
    comparisons,
    designs,
    grown,
    made,
)
from kleash.prospect.places import calibrated, placed_arms, reached
from kleash.prospect.spreads import UNKNOWN, Spread, spread_of
from kleash.stats import GapSpread

__all__ = ["Asked", "Cost", "Design", "Option", "Proposal", "Prospect", "after", "before"]
NOT_TOLD = Cost()
IN_SDS = GapSpread(1.0, 0.0, 0.0)
NO_ANSWER = ("invalid", "diverged", "identical")  # verdicts that further seeds would not change
LEAST = 1e-9  # of a spread: below it values were copied
USUAL_ARMS = 4  # where no spread is known that could say how many


@dataclass(frozen=True)
class Asked:
    """What is asked for; None leaves it to the runs, or to the study's own file."""

    hours: float
    cost: Cost = NOT_TOLD
    spread: GapSpread | None = None
    margin: float | None = None
    power: float = 0.8
    arms: int | None = None
    most_items: int | None = None
    on: str = ""
    baseline: str = ""
    units: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name, value in (("hours", self.hours), ("margin", self.margin)):
            if value is not None and not 0 < value < math.inf:
                raise ConfigError(f"--{name} {value:g}: give a number above 0")
        if not 0.5 <= self.power <= 0.99:
            raise ConfigError(f"--power {self.power:g}: give one from 0.5 to 0.99")
        if self.arms is not None and not 2 <= self.arms <= 7:
            raise ConfigError(f"--arms {self.arms}: from 2 (one without a leash) to 7")
        if self.most_items is not None and self.most_items < 2:
            raise ConfigError(f"--most-items {self.most_items}: give 2 or more")
        self._check_amounts()

    def _check_amounts(self) -> None:
        """Costs and spreads are amounts; a run costs something, and something has to spread."""
        cost, spread = self.cost, self.spread or IN_SDS
        amounts = {
            "run-hours": cost.run,
            "base-hours": cost.base,
            "item-seconds": cost.item,
            "seed-sd": spread.seeds,
            "item-sd": spread.items,
        }
        for name, value in amounts.items():
            if value is not None and not 0 <= value < math.inf:
                raise ConfigError(f"--{name} {value:g}: give a number, 0 or above")
        if cost.run == 0:
            raise ConfigError("--run-hours 0: give a number above 0")
        if not spread.seeds and not spread.items:
            raise ConfigError("--seed-sd 0: without any spread there is nothing to plan for")


@dataclass(frozen=True)
class Rest:
    """What a plan rests on."""

    metric: str
    unit: str
    goal: Goal
    cost: Cost
    spread: Spread
    in_sds: bool
    """Gaps are in SDs between seeds, because nothing tells how large those are."""
    ranks: int = 1
    """Devices that train a run at the same time."""


@dataclass(frozen=True)
class Proposal:
    """A study that was not run yet; `design` is None where the hours do not do for any."""

    rest: Rest
    hours: float
    design: Design | None
    others: tuple[Design, ...]
    cautious: Design | None
    coefficients: tuple[float, ...] = ()
    """Of the arms with a leash; none where a calibration has to place them."""
    expected_kl: tuple[float, ...] = ()
    first: float = 0.0
    """Hours of the calibration."""
    least: float = 0.0
    """Hours of the smallest study that could decide anything about a setting."""


def before(
    asked: Asked, file: StudyFile, sources: Sequence[Source] = (), folder: Path | None = None
) -> Proposal:
    """What to run with the hours there are, in a study like `file`."""
    arms = gather(sources) if sources else []
    metric, margin = _judged_by(asked, file)
    goal = Goal(margin, asked.power)
    cost = asked.cost.over(cost_of_logs(arms))
    if cost.run is None:
        raise ConfigError("what does a run cost? give --run-hours, or --from a run that tells")
    spread = _given(asked) or (_seen(arms, metric.name) if arms else UNKNOWN)
    in_sds = not spread.between_seeds
    ranks = most_ranks(file, arms_of(file))
    rest = Rest(metric.name, metric.unit, goal, cost, spread, in_sds, ranks)
    known = reached(arms) | (calibrated(folder) if folder else {})
    first = 0.0 if placed_arms(known, 2) else calibration_hours(file, cost)
    left = max(0.0, asked.hours - first)
    sizes = _sizes(asked.most_items or file.measure.items[-1], whole=in_sds)
    found = designs(left, cost, IN_SDS if in_sds else spread.gap, _goal(rest), sizes)
    wanted = min(USUAL_ARMS, len(found) + 1) if in_sds and asked.arms is None else asked.arms
    design = chosen(found, _goal(rest), wanted)
    least = first + cost.of_study(2, FEWEST_SEEDS, sizes[0])
    if design is None:
        return Proposal(rest, asked.hours, None, tuple(found), None, first=first, least=least)
    arms_at = placed_arms(known, design.arms - 1) or ([], [])
    return Proposal(
        rest=rest,
        hours=asked.hours,
        design=replace(design, hours=design.hours + first),
        others=tuple(replace(each, hours=each.hours + first) for each in found),
        cautious=_again(design, rest, comparisons(design.arms - 1)),
        coefficients=tuple(arms_at[0]),
        expected_kl=tuple(arms_at[1]),
        first=first,
        least=least,
    )


def _judged_by(asked: Asked, file: StudyFile) -> tuple[names.Metric, float]:
    """The metric, the study's unless another is asked for, and the gap in it that matters."""
    name = asked.on or file.compare.metric
    known = names.metric(name)
    if known is None:
        raise ConfigError(f"no metric {name!r} is known")
    own = names.metric(file.compare.metric)
    if asked.margin is None and known != own:
        raise ConfigError(
            f"the study's margin is one of {file.compare.metric}: give --margin for {known.name}"
        )
    return known, asked.margin or file.compare.margin


def _goal(rest: Rest) -> Goal:
    return replace(rest.goal, margin=1.0) if rest.in_sds else rest.goal


def _given(asked: Asked) -> Spread | None:
    return None if asked.spread is None else Spread("given", asked.spread)


def _sizes(most: int, *, whole: bool) -> tuple[int, ...]:
    return (most,) if whole else (*(size for size in SIZES if size < most), most)


def _again(design: Design, rest: Rest, family: int) -> Design | None:
    """The same design with the spread at its upper bound; None where it is as it was given."""
    if rest.in_sds or rest.spread.cautious == rest.spread.gap:
        return None
    counts = (design.arms, design.seeds, design.items)
    return made(rest.spread.cautious, counts, design.hours, rest.goal, family)


def _seen(arms: Sequence[Arm], metric: str) -> Spread:
    base = min(arms, key=lambda arm: arm.coefficient or 0.0)
    return spread_of(arms, base, metric)


def calibration_hours(file: StudyFile, cost: Cost) -> float:
    """What placing the arms costs first: short runs on tuning seeds."""
    short = file.calibrate.epochs / max(1, int(file.grpo.get("epochs", 1)))
    runs = len(file.calibrate.trials) * min(1.0, short) * (cost.run or 0.0)
    return len(file.calibrate.seeds) * ((cost.base or 0.0) + runs)


# --- after runs


@dataclass(frozen=True)
class Option:
    """One way to spend the hours: which arms get it, and what is decided then."""

    kind: str
    """`seeds`, `items`, `both`, or `open`: seeds of those arms alone that are still open."""
    arms: tuple[str, ...]
    seeds: int
    """Further seeds of each."""
    items: int
    """Further items for every run."""
    then: Design


@dataclass
class Prospect:
    """What further hours would buy."""

    rest: Rest
    hours: float
    arms: list[str]
    baseline: str
    seeds: int
    items: int
    now: Design | None
    """None below four seeds, where nothing about a setting is decided."""
    decided: list[Judged] = field(default_factory=list)
    open: list[Judged] = field(default_factory=list)
    options: list[Option] = field(default_factory=list)
    """The one that sees the smallest gap first."""
    cautious: Design | None = None
    chances: dict[str, float] = field(default_factory=dict)
    """By open arm: how often the first option would decide it, if its gap is what was seen."""

    def hours_to_decide(self, arms: int) -> float:
        """Hours that bring so many arms to the fewest seeds that decide anything."""
        return self.rest.cost.of_study(arms, max(0, FEWEST_SEEDS - self.seeds), self.items)


def after(
    asked: Asked,
    sources: Sequence[Source],
    folder: Path | None = None,
    file: StudyFile | None = None,
) -> Prospect:
    """What the next hours buy, from runs that are there."""
    if file is not None:
        asked = replace(asked, on=asked.on or file.compare.metric)
        asked = replace(asked, margin=asked.margin or file.compare.margin)
    found = compare(sources, Wish(asked.on, asked.baseline, asked.margin, units=asked.units))
    arms: list[Arm] = found.gathered
    baseline = next(arm for arm in arms if arm.name == found.baseline)
    levels = [each for each in found.verdicts if each.question == "level"]
    cost = asked.cost.over(_measured_cost(arms, folder, file))
    if cost.run is None:
        raise ConfigError("what does a run cost? the runs do not tell: give --run-hours")
    spread = _given(asked) or spread_of(arms, baseline, levels[0].metric)
    margin = next((each.margin for each in levels if each.margin), asked.margin)
    if margin is None:
        raise DataError(
            "no margin follows from these runs: give the gap that would matter, --margin"
        )
    goal = Goal(margin, asked.power)
    if spread.between_seeds and spread.gap.of_seed(max(1, spread.items)) < LEAST:
        raise DataError("the gaps are the same under every seed: measured again, or never trained")
    in_sds, ranks = not spread.between_seeds, 1 if file is None else most_ranks(file, arms_of(file))
    rest = Rest(levels[0].metric, levels[0].unit, goal, cost, spread, in_sds, ranks)
    seeds, items = _have(levels, spread, asked)
    made_of = Prospect(
        rest, asked.hours, [arm.name for arm in arms], baseline.name, seeds, items, None
    )
    answered = [each for each in levels if each.verdict not in NO_ANSWER]
    made_of.decided = [each for each in answered if _is_settled(each)]
    made_of.open = [each for each in answered if not _is_settled(each)]
    _fill(made_of, asked, _family(arms, found))
    return made_of


def _is_settled(judged: Judged) -> bool:
    """Whether a setting was decided about: what one training of it did is no setting's doing."""
    enough = judged.counted == "seeds" and (judged.n or 0) >= FEWEST_SEEDS
    return enough and judged.verdict != "undecided"


def _measured_cost(arms: Sequence[Arm], folder: Path | None, file: StudyFile | None) -> Cost:
    logs = cost_of_logs(arms)
    if folder is None or file is None:
        return logs
    return cost_of_study(folder, file, arms).over(logs)


def _have(levels: Sequence[Judged], spread: Spread, asked: Asked) -> tuple[int, int]:
    """Seeds and items that arms share now."""
    seeds = [each.n or 1 if each.counted == "seeds" else 1 for each in levels]
    return min(seeds), spread.items or asked.most_items or 1


def _family(arms: Sequence[Arm], found: Comparison) -> int:
    leashes = sum((arm.coefficient or 0) > 0 for arm in arms) > 1
    return comparisons(len(arms) - 1, leashes=leashes and len(found.factor) == 1)


def _fill(found: Prospect, asked: Asked, family: int) -> None:
    """The options, best first."""
    rest, count = found.rest, len(found.arms)
    spread = IN_SDS if rest.in_sds else rest.spread.gap
    counts = (count, found.seeds, found.items)
    if found.seeds >= FEWEST_SEEDS and not rest.in_sds:
        found.now = made(spread, counts, 0.0, rest.goal, family)
    most = asked.most_items or found.items
    sizes = [size for size in (*SIZES, most) if found.items < size <= most]
    still = [each.arms[0] for each in found.open]
    groups = {"all": found.arms}
    if 0 < len(still) < count - 1:
        groups["open"] = [found.baseline, *still]
    for group, names_of in groups.items():
        fits = []
        for seeds, items, hours in grown(counts, asked.hours, rest.cost, sizes, len(names_of)):
            if seeds >= FEWEST_SEEDS:
                then = made(spread, (len(names_of), seeds, items), hours, _goal(rest), family)
                fits.append(then)
        for then in _kept(fits, found):
            more, further = then.seeds - found.seeds, then.items - found.items
            kind = "both" if more and further else "seeds" if more else "items"
            kind = "open" if group == "open" else kind
            found.options.append(Option(kind, tuple(names_of), more, further, then))
    found.options.sort(key=lambda each: (round(each.then.gap, 6), each.then.hours))
    if found.options and not rest.in_sds:
        _weigh(found, family)


def _kept(fits: Sequence[Design], found: Prospect) -> list[Design]:
    """Seeds alone, items alone, and the best of both."""
    if not fits:
        return []
    alone = [each for each in fits if found.items == each.items or found.seeds == each.seeds]
    items = [each for each in alone if each.seeds == found.seeds]
    seeds = [each for each in alone if each.items == found.items]
    kept = [*seeds[:1], *items[-1:], best(fits)]
    return list(dict.fromkeys(kept))


def _weigh(found: Prospect, family: int) -> None:
    """How the first option looks with a wider spread, and for each arm that is open."""
    from kleash.stats import Crossed

    then = found.options[0].then
    found.cautious = _again(then, found.rest, family)
    crossed = Crossed(found.rest.spread.gap, then.seeds, then.items, family)
    margin = found.rest.goal.margin
    for each in found.open:
        if each.estimate is not None:
            size = abs(each.estimate)
            found.chances[each.arms[0]] = (
                crossed.power(size) if 2 * size >= margin else crossed.equivalence(margin)
            )
