"""What arms are judged by and against which baseline; and what of their logs is not used.

The user says, else the data: the first known outcome that two arms share, the least leash.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from kleash.compare.arms import OUTCOMES, Arm, known_name
from kleash.compare.gaps import gap_of_pair, shared_means
from kleash.compare.read import Imported, Source, names
from kleash.compare.read.run_names import shortly
from kleash.compare.read.tables import TABLES
from kleash.compare.read.units import as_fractions, units_of, without_strays
from kleash.compare.records import Because
from kleash.errors import ConfigError, DataError

CALLED_BASELINE = ("baseline", "基线", "基准", "对照", "control")
NAMED = 6  # names in a sentence
OFFERED = 8  # names in a message
_EDGE = r"(?<![a-z])(?:{})(?![a-z])"
OUTCOME_LIKE = re.compile(
    _EDGE.format("val|eval|validation|test|acc|accuracy|rewards?|scores?|success|pass|win"), re.I
)
NO_OUTCOME = re.compile(  # of what is measured beside outcomes
    _EDGE.format(
        "std|var|min|max|se|sd|median|runtime|second|steps?|epoch|loss|len|length|lengths|ratio|"
        "time|timing|num|count|n|items|samples|zero|kl|entropy|tokens?|clip\\w*|penalty|coeff?|broken|"
        "dead|spread|norm|lr|turns|aux"
    ),
    re.I,
)


@dataclass(frozen=True)
class Wish:
    """What the user asked for besides the sources; None and '' leave it to the data."""

    on: str = ""
    baseline: str = ""
    margin: float | None = None
    noise: float | None = None
    """The SD of evaluating one checkpoint again; used where the records do not tell it."""
    shortly: bool = False
    """Whether long names of arms are told without what all of them share."""
    units: tuple[str, ...] = ()
    """METRIC=percent or METRIC=fraction, where the values leave it open."""


# --- the metric as the user names it, and its unit


def in_one_unit(
    sources: Sequence[Source], on: str, units: Sequence[str]
) -> tuple[Sequence[Source], str, list[Because]]:
    """The sources with the metric that is asked for, its name, and what is said of its unit.

    Percentages become fractions, one unit for a metric in all sources. A question that only the
    user can answer is an error where the metric may be judged by.
    """
    sources, on = _with_own_metric(sources, on)
    found = as_fractions(sources, units_of(units))
    known = names.metric(on)
    wanted = (known.name,) if known else OUTCOMES
    for quantity in wanted:
        if quantity in found.questions:
            raise DataError(found.questions[quantity])
    said = [
        Because("read_as_percent", {"metric": metric, "most": f"{most:g}"})
        for metric, (quantity, most) in found.percents.items()
        if quantity in wanted
    ]
    for run, series in found.strays:
        gone = without_strays(run, series)
        at, value = gone[0]
        facts = {"arm": run.name, "metric": series.metric, "axis": series.axis, "step": at}
        said.append(Because("no_share", facts | {"value": value, "count": len(gone)}))
    return sources, on, said


def _with_own_metric(sources: Sequence[Source], on: str) -> tuple[Sequence[Source], str]:
    """What `+NAME` or `-NAME` asks for under a name of its own, and that name."""
    if on[:1] not in ("+", "-"):
        return sources, on
    name = on[1:].strip()
    if names.metric(name) is not None:
        return sources, name  # its better end is known
    every = dict.fromkeys(one for source in sources for run in source.runs for one in _metrics(run))
    wanted = {one for one in every if names.spelling(one) == names.spelling(name)}
    if not wanted:
        others = [one for one in every if names.metric(one) is None]
        more = f": there are {', '.join(others[:OFFERED])}" if others else ""
        raise ConfigError(f"no run measured {name!r}{more}")
    own = names.asked(name, 1 if on[0] == "+" else -1)

    def under(each: Any) -> Any:
        return replace(each, metric=own) if each.metric in wanted else each

    def renamed(run: Imported) -> Imported:
        series, cells = [*map(under, run.series)], [*map(under, run.cells)]
        return replace(run, series=series, cells=cells, scores=[*map(under, run.scores)])

    return [replace(each, runs=[*map(renamed, each.runs)]) for each in sources], own


def _metrics(run: Imported) -> list[str]:
    return [each.metric for part in (run.series, run.cells, run.scores) for each in part]


def known_metric(wanted: str) -> names.Metric:
    """The metric that is asked for; an error that says what can be where no table has it."""
    known = names.metric(wanted)
    if known is None:
        raise ConfigError(
            f"no metric {wanted!r} is known: try {', '.join(OUTCOMES)}; or say which end is better:"
            f" +{wanted} or -{wanted}"
        )
    return known


# --- what was measured


def measured(arm: Arm) -> set[str]:
    """The quantities of which an arm has a value."""
    found: set[str] = set()
    for each in arm.replicates:
        found |= {metric for (metric, _), curve in each.curves.items() if len(curve)}
        found |= {metric for metric, _ in each.cells}
        found |= {known_name(scores.metric) for scores in each.scores}
    return found


def _unknown(arms: Sequence[Arm]) -> list[str]:
    """What two arms or more measured and no table knows."""
    counts = Counter(name for arm in arms for name in measured(arm))
    others = [one for one, n in counts.items() if n > 1 and not names.metric(one)]
    return sorted(one for one in others if not names.key(one))[:NAMED]


def _unused(arms: Sequence[Arm], metric: str) -> list[str]:
    """What looks like an outcome and was not taken for one, or is told beside the one taken."""
    found: set[str] = set()
    for each in (each for arm in arms for each in arm.replicates):
        for one in (*(name for name, _ in each.curves), *(name for name, _ in each.cells)):
            looks = OUTCOME_LIKE.search(one) and not NO_OUTCOME.search(one)
            if looks and not names.metric(one) and not names.key(one):
                found.add(one)
        found |= {one for one in each.unused if known_name(one) == metric}
    return sorted(found)


# --- arms, baseline and metric


def choose(
    arms: list[Arm], wish: Wish, sources: Sequence[Source]
) -> tuple[list[Arm], Arm, str, list[Because]]:
    """The arms, the one to compare with and the metric; and what was decided on the way.

    Where the baseline that comes to mind shares no outcome, another that does is taken, unless it
    was asked for.
    """
    baseline = _baseline(arms, wish.baseline)
    metric = _metric(arms, baseline, wish.on)
    if not wish.baseline and not _meets(arms, baseline, metric):
        for name in [metric] if wish.on else OUTCOMES:
            having = [arm for arm in arms if name in measured(arm)]
            other = _baseline(having, "") if len(having) > 1 else baseline
            if other is not baseline and _meets(having, other, name):
                baseline, metric = other, name
                break
    aside = [arm for arm in arms if _is_aside(arm, metric) and arm is not baseline]
    kept = [arm for arm in arms if arm not in aside]
    kept, aside = (kept, aside) if len(kept) > 1 else (arms, [])
    said = _remarks(arms, metric)
    if any(source.tables for source in sources) and "kl" in measured(baseline):
        said.append(Because("kl_to_reference"))
    if aside:
        said.append(Because("no_arms", {"arms": _some([arm.name for arm in aside])}))
    if wish.shortly:
        short, shared = shortly([arm.name for arm in kept])
        for arm, name in zip(kept, short, strict=True):
            arm.name = name
        said += [Because("called_shortly", {"names": shared})] if shared else []
    return kept, baseline, metric, said


def _remarks(arms: Sequence[Arm], metric: str) -> list[Because]:
    """What was put together under the metric, and what was left unused."""
    sets = {each.sets[metric] for arm in arms for each in arm.replicates if metric in each.sets}
    said = [Because("mean_over_sets", {"sets": ", ".join(each)}) for each in sorted(sets)]
    if not any(metric in measured(arm) for arm in arms) and (others := _unknown(arms)):
        said.append(Because("no_known_end", {"metrics": others}))
    if idle := _unused(arms, metric):
        said.append(Because("not_used", {"names": _some(idle)}))
    return said


def _some(found: Sequence[str]) -> str:
    return ", ".join(found[:NAMED]) + ("…" if len(found) > NAMED else "")


def _meets(arms: Sequence[Arm], baseline: Arm, metric: str) -> bool:
    """Whether some arm was measured as the baseline was."""
    if metric not in measured(baseline):
        return False
    others = [arm for arm in arms if arm is not baseline and metric in measured(arm)]
    return any(gap_of_pair(arm, baseline, metric) for arm in others) or any(
        shared_means(arm, baseline, metric) for arm in others
    )


def _is_aside(arm: Arm, metric: str) -> bool:
    """Whether an arm is none: logs of something else, such as costs or the data."""
    logs = all(run.format in TABLES for each in arm.replicates for run in each.runs)
    return logs and arm.coefficient is None and metric not in measured(arm)


def _baseline(arms: Sequence[Arm], wanted: str) -> Arm:
    """The arm asked for, called so, or named by a study; else the least leashed, or the first."""
    if wanted:
        for arm in arms:
            spelt = {names.spelling(name) for name in (arm.name, *arm.names)}
            number = "" if arm.coefficient is None else f"{arm.coefficient:g}"
            if names.spelling(wanted) in spelt or wanted == number:
                return arm
        every = ", ".join(arm.name for arm in arms)
        raise ConfigError(f"no arm {wanted!r} to be the baseline: the arms are {every}")
    arms = [arm for arm in arms if not arm.lost] or arms
    against = {arm.against for arm in arms}
    for arm in arms:
        called = any(names.spelling(name) in CALLED_BASELINE for name in arm.names)
        if called or against & set(arm.names):
            return arm
    leashed = [arm for arm in arms if arm.coefficient is not None]
    return min(leashed, key=lambda arm: arm.coefficient or 0.0, default=arms[0])


def _metric(arms: Sequence[Arm], baseline: Arm, wanted: str) -> str:
    """What arms are judged by: as asked, else the first outcome that the baseline shares."""
    if wanted:
        known = known_metric(wanted)
        if not known.direction:
            trap = f": {known.trap}" if known.trap else ""
            raise ConfigError(f"{known.name} has no better end, so no arm is better on it{trap}")
        return known.name
    every = [measured(arm) for arm in arms]
    for name in OUTCOMES:
        if name in measured(baseline) and sum(name in each for each in every) > 1:
            return name
    return next((name for name in OUTCOMES if any(name in each for each in every)), OUTCOMES[0])
