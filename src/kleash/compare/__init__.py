"""Compare arms: what may be said, why, and what to run next. Codes and facts, no sentences.

`compare` puts the parts together: arms from sources, what else changed between them, a verdict for
each question and pair, every run's summary, what the findings and the matrix say. It trains
nothing, reads nothing but sources, and uses no estimated value.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, starmap
from typing import Any

from kleash.compare.arms import OUTCOMES, Arm, gather, known_name
from kleash.compare.best import best_step
from kleash.compare.coefficients import trends
from kleash.compare.confounds import factor
from kleash.compare.diverged import divergences, not_compared
from kleash.compare.elsewhere import elsewhere, unshared
from kleash.compare.endings import endings
from kleash.compare.evidence import Gap, of_averages, of_items, of_means, shared_means
from kleash.compare.interactions import interactions
from kleash.compare.judging import Pair, judge
from kleash.compare.many import (
    adjust,
    contenders,
    other_pairs,
    together,
)
from kleash.compare.measured import measured, unknown, unused
from kleash.compare.next_steps import next_steps
from kleash.compare.phases import phases
from kleash.compare.questions import efficiency, steadier
from kleash.compare.recommend import held, parted, recommended
from kleash.compare.records import (
    Amount,
    Because,
    Comparison,
    Confound,
    Judged,
    Step,
    Summary,
    Window,
)
from kleash.compare.seeds import of_seeds
from kleash.compare.speed import faster
from kleash.compare.wished import known_metric, wished
from kleash.errors import ConfigError, DataError
from kleash.findings import find
from kleash.imports import Source, names
from kleash.imports.run_names import shortly
from kleash.imports.tables import TABLES
from kleash.matrix import Matrix, may_lack

__all__ = [
    "Amount",
    "Arm",
    "Because",
    "Comparison",
    "Confound",
    "Judged",
    "Step",
    "Summary",
    "Window",
    "Wish",
    "compare",
]
CALLED_BASELINE = ("baseline", "基线", "基准", "对照", "control")
MOST_PAIRS = 20  # arms beside the baseline; of more, only the main question is answered
VOIDING = {"stale-weights": "stale_weights", "off-lattice": "off_lattice"}
SHOWN = 6  # names of logs that are no arms


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


def compare(sources: Sequence[Source], wish: Wish | None = None) -> Comparison:
    """Everything that follows from the sources about their arms."""
    sources, wish, units = _as_asked(sources, wish or Wish())
    sources, aside = parted(sources)
    arms, others = gather(sources), gather(aside)
    if not arms or len(arms) + len(others) < 2:
        raise DataError(_too_few(arms))
    arms, baseline, metric, why = _asked(arms, wish)
    found = Comparison(
        arms=[_told(arm) for arm in (*arms, *others)],
        baseline=baseline.name,
        findings=list(find(sources)),
        sources=sources,
        notes=[note for source in sources for note in source.notes],
        gathered=arms,
    )

    def paired(ours: Arm, theirs: Arm) -> Pair:
        flags = _flags(found, metric, (ours, theirs))
        return Pair(arms, ours, theirs, metric, wish.margin, flags, wish.noise)

    groups = _groups(arms, baseline, wish)
    pairs = [paired(arm, theirs) for theirs, own in groups.items() for arm in own]
    found.factor = tuple(dict.fromkeys(key for p in pairs for key in factor(p.ours, p.theirs)))
    found.confounds = _once([each for pair in pairs for each in pair.confounds])
    whole = len(pairs) <= MOST_PAIRS
    judged = [each for pair in pairs for each in _answers(pair, whole=whole)]
    levels = [each for each in judged if each.question == "level"]
    joint = together(arms, metric, levels) if len(groups) == 1 else None
    sound = [arm for arm in arms if not arm.lost]
    beside = [(name, paired(*pair)) for name, *pair in held(sound, others, metric)]
    judged += [judge(p, gap, n) for n, p in beside if (gap := _gap(p.ours, p.theirs, metric))]
    judged += _courses(arms, groups, paired(baseline, baseline), levels, whole=whole)
    found.verdicts = _noting(adjust(judged), [*units, *why])
    levels = [each for each in found.verdicts if each.question == "level"]
    if whole:
        compared = {frozenset(pair.names) for pair in pairs}
        every = starmap(paired, combinations(sound, 2))
        rest = [pair for pair in every if frozenset(pair.names) not in compared]
        found.verdicts += other_pairs(rest, levels, joint)
    if joint is not None:
        found.verdicts.append(contenders(arms, paired(baseline, baseline).known, joint, levels))
    found.verdicts += [*divergences(arms), *_policies(sources, arms, baseline)]
    found.verdicts.append(recommended(found, beyond_margin=wish.margin is not None))
    cells = found.matrix if may_lack(sources) else Matrix(0, 0, 0, ())
    found.next = next_steps(arms, baseline, found.verdicts, found.confounds, cells)
    return found


def _too_few(arms: Sequence[Arm]) -> str:
    """Why there is nothing to compare, and what to do."""
    if not arms:
        return "no run was found: give the logs or folders of two arms or more"
    runs = len(arms[0].replicates)
    count = "1 run" if runs == 1 else f"{runs} runs that differ in nothing but their seed"
    return (
        f"only one arm was found, {arms[0].name} ({count}): give another to compare it with, "
        "or say which is which: --name A=PATH --name B=PATH"
    )


def _as_asked(
    sources: Sequence[Source], wish: Wish
) -> tuple[Sequence[Source], Wish, list[Because]]:
    """What the user asks for, else a study's file; and the sources with its metric."""
    if wish.margin is not None and not wish.margin > 0:
        raise ConfigError(f"a margin of {wish.margin:g} leaves no room: give one above 0")
    margins = [wish.margin, *(source.margin for source in sources)]
    margin = next((each for each in margins if each is not None), None)
    on = wish.on or next((source.on for source in sources if source.on), "")
    sources, on, units = wished(sources, on, wish.units, OUTCOMES)
    return sources, replace(wish, on=on, margin=margin), units


def _groups(arms: Sequence[Arm], baseline: Arm, wish: Wish) -> dict[Arm, list[Arm]]:
    """By the arm they are compared with: as their study says, else the baseline.

    Where their study names one that has not begun, they are among `pairs` alone.
    """
    called = {name: arm for arm in arms for name in (*arm.names, arm.name)}
    own = {} if wish.baseline else {arm: arm.against for arm in arms if arm.against}
    groups: dict[Arm, list[Arm]] = {baseline: []}
    groups |= {called[name]: [] for name in own.values() if name in called}
    for arm in arms:
        theirs = called.get(own[arm]) if arm in own else baseline
        if arm not in groups and theirs is not None:
            groups[theirs].append(arm)
    return groups


def _courses(
    arms: Sequence[Arm],
    groups: Mapping[Arm, list[Arm]],
    blank: Pair,
    levels: Sequence[Judged],
    *,
    whole: bool,
) -> list[Judged]:
    """What is asked of all arms of a group at once, and of the end of each training."""
    void = {each.arms[0] for each in levels if each.verdict in ("invalid", "diverged")}
    judged: list[Judged] = []
    for theirs, own in groups.items():
        fit = [arm for arm in arms if arm is theirs or arm in own]
        judged += trends([arm for arm in fit if arm.name not in void], theirs, blank.known)
    if whole:
        ends = [endings(arm, blank.known, blank.margin, blank.noise) for arm in arms]
        judged += [each for told in ends for each in told]
    return judged


def _noting(verdicts: list[Judged], why: Sequence[Because]) -> list[Judged]:
    """The verdicts, the first with what was decided before anything was compared."""
    return [
        each if at else replace(each, because=(*each.because, *why))
        for at, each in enumerate(verdicts)
    ]


def _told(arm: Arm) -> dict[str, Any]:
    return {
        "name": arm.name,
        "also": [name for name in arm.names if name != arm.name],
        "coefficient": arm.coefficient,
        "role": arm.role,
        "runs": len(arm.replicates),
        "seeds": [each.seed for each in arm.replicates if each.seed is not None],
    }


def _asked(arms: list[Arm], wish: Wish) -> tuple[list[Arm], Arm, str, list[Because]]:
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
    sets = {each.sets[metric] for arm in arms for each in arm.replicates if metric in each.sets}
    why = [Because("mean_over_sets", {"sets": ", ".join(each)}) for each in sorted(sets)]
    if not any(metric in measured(arm) for arm in arms) and (others := unknown(arms)):
        why.append(Because("no_known_end", {"metrics": others}))
    if idle := unused(arms, metric):
        shown = ", ".join(idle[:SHOWN]) + ("…" if len(idle) > SHOWN else "")
        why.append(Because("not_used", {"names": shown}))
    aside = [arm for arm in arms if _is_aside(arm, metric)]
    kept = [arm for arm in arms if arm not in aside or arm is baseline]
    if len(kept) < 2:
        kept = arms
    if others := [arm.name for arm in arms if arm not in kept]:
        told = ", ".join(others[:SHOWN]) + ("…" if len(others) > SHOWN else "")
        why.append(Because("no_arms", {"arms": told}))
    if wish.shortly:
        short, shared = shortly([arm.name for arm in kept])
        for arm, name in zip(kept, short, strict=True):
            arm.name = name
        why += [Because("called_shortly", {"names": shared})] if shared else []
    return kept, baseline, metric, why


def _meets(arms: Sequence[Arm], baseline: Arm, metric: str) -> bool:
    """Whether some arm was measured as the baseline was."""
    if metric not in measured(baseline):
        return False
    others = [arm for arm in arms if arm is not baseline and metric in measured(arm)]
    return any(_gap(arm, baseline, metric) for arm in others) or any(
        shared_means(arm, baseline, metric) for arm in others
    )


def _is_aside(arm: Arm, metric: str) -> bool:
    """Whether an arm is none: logs of something else, such as costs or the data."""
    runs = [run for each in arm.replicates for run in each.runs]
    logs = all(run.format in TABLES for run in runs)
    return logs and arm.coefficient is None and metric not in measured(arm)


def _baseline(arms: Sequence[Arm], wanted: str) -> Arm:
    """The arm asked for, called so, or named by a study; else the least leashed, or the first."""
    if wanted:
        for arm in arms:
            spelt = {names.spelling(name) for name in (arm.name, *arm.names)}
            number = "" if arm.coefficient is None else f"{arm.coefficient:g}"
            if names.spelling(wanted) in spelt or wanted == number:
                return arm
        told = ", ".join(arm.name for arm in arms)
        raise ConfigError(f"no arm {wanted!r} to be the baseline: the arms are {told}")
    arms = [arm for arm in arms if not arm.lost] or arms
    wished = {arm.against for arm in arms}
    for arm in arms:
        if wished & set(arm.names) or any(
            names.spelling(name) in CALLED_BASELINE for name in arm.names
        ):
            return arm
    leashed = [arm for arm in arms if arm.coefficient is not None]
    return min(leashed, key=lambda arm: arm.coefficient or 0.0, default=arms[0])


def _metric(arms: Sequence[Arm], baseline: Arm, wanted: str) -> str:
    """What arms are judged by: as asked, else the first outcome that the baseline shares."""
    if wanted:
        known = known_metric(wanted, OUTCOMES)
        if not known.direction:
            raise ConfigError(
                f"{known.name} has no better end, so no arm is better on it: {known.trap}"
                if known.trap
                else f"{known.name} has no better end, so no arm is better on it"
            )
        return known.name
    every = [measured(arm) for arm in arms]
    for name in OUTCOMES:
        if name in measured(baseline) and sum(name in each for each in every) > 1:
            return name
    return next((name for name in OUTCOMES if any(name in each for each in every)), OUTCOMES[0])


def _flags(found: Comparison, metric: str, pair: tuple[Arm, Arm]) -> tuple[str, ...]:
    """Findings that void a verdict: old weights, or a value that no mean over its items can be."""
    labels = {name for arm in pair for name in (arm.name, *arm.names)}
    flags = [
        VOIDING[each.code]
        for each in found.findings
        if each.code in VOIDING
        and each.facts.get("arm") in labels
        and known_name(str(each.facts.get("metric", metric))) == metric
    ]
    return tuple(dict.fromkeys(flags))


def _gap(ours: Arm, theirs: Arm, metric: str) -> Gap | None:
    """What two arms can be compared on, by the strongest data there are."""
    known = names.metric(metric)
    unit = known.unit if known else ""
    return (
        of_seeds(ours, theirs, metric)
        or of_items(ours, theirs, metric)
        or of_means(ours, theirs, metric, unit)
        or of_averages(ours, theirs, metric, unit)
    )


def _answers(pair: Pair, *, whole: bool) -> list[Judged]:
    """A verdict on the level by the strongest data there are, then the other questions."""
    gap = _gap(pair.ours, pair.theirs, pair.metric)
    lost = not_compared(pair)
    level = lost or (judge(pair, gap) if gap else unshared(pair))
    if lost or not whole:
        return [level]
    asked = [question(pair) for question in (faster, steadier, best_step, efficiency)]
    others = [each for each in asked if each is not None]
    if gap is not None and (judged := elsewhere(pair, gap)) is not None:
        others.insert(0, judged)
    return [level, *others, *phases(pair), *interactions(pair)]


def _policies(sources: Sequence[Source], arms: Sequence[Arm], baseline: Arm) -> list[Judged]:
    """Where a document calls policies alike and has only their KL to a reference to go by."""
    if not any(source.likens for source in sources) or "kl" not in measured(baseline):
        return []
    return [
        Judged(
            question="same_policy",
            metric="kl",
            unit="nats",
            arms=(arm.name, baseline.name),
            verdict="undecided",
            level="L1",
            because=(Because("kl_to_reference"), Because("compare_choices")),
        )
        for arm in arms
        if arm is not baseline and "kl" in measured(arm)
    ]


def _once(found: Sequence[Confound]) -> list[Confound]:
    kept: dict[tuple[Any, ...], Confound] = {}
    for each in found:
        kept.setdefault((each.kind, each.key, each.arms), each)
    return list(kept.values())
