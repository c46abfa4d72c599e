"""What many comparisons at once allow: families of p-values, all pairs of arms, the contenders.

By items the arms are looked at together (max-T over flipped items); by anything else Holm adjusts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations

from kleash import stats
from kleash.compare.arms import Arm
from kleash.compare.evidence import MOST_FLIPS, Gap
from kleash.compare.items import aligned, latest, span_of
from kleash.compare.judging import Pair, judge
from kleash.compare.records import Because, Judged
from kleash.compare.seeds import of_seeds
from kleash.imports.names import Metric
from kleash.seeds import generator
from kleash.stats import Floats, PairGap

ALPHA = 0.05
OUTCOME = ("level", "trend", "trend_zero")


def decided(judged: Judged) -> bool:
    """Whether one side was found better."""
    return judged.verdict.startswith(("better", "worse"))


@dataclass(frozen=True)
class Together:
    """Scores of all arms on the same items, and the arms' gaps to the baseline by max-T."""

    scores_MN: Floats
    baseline: int
    to_baseline: dict[str, PairGap]
    """By the other arm's name."""


def together(
    arms: Sequence[Arm], baseline: Arm, metric: str, levels: Sequence[Judged]
) -> Together | None:
    """Where three arms or more are judged by the same items, none of them in clusters."""
    if len(arms) < 3 or any(each.counted != "items" or each.level == "L1" for each in levels):
        return None
    groups = latest(arms, metric)
    if groups is None or any(scores.clusters is not None for each in groups for scores in each):
        return None
    scores = aligned(groups)
    if scores is None or any(each.n != scores.shape[1] for each in levels):
        return None
    at = next(index for index, arm in enumerate(arms) if arm is baseline)
    rng = generator("compare", "max_t")
    found = stats.max_t(scores, rng, baseline=at, draws=MOST_FLIPS, span=span_of(scores))
    return Together(scores, at, {arms[each.ours].name: each for each in found})


def adjust(verdicts: Sequence[Judged], joint: Together | None = None) -> list[Judged]:
    """p among all that were looked at; what is decided alone but not among them is undone.

    Two families: the arms' outcome (against the baseline, and its trend), and everything else. With
    `joint` the arms are adjusted by max-T, and the trend is among the rest.
    """
    found = list(verdicts)
    first = ("level",) if joint else OUTCOME
    families = (
        [at for at, each in enumerate(verdicts) if each.question in first and each.p is not None],
        [
            at
            for at, each in enumerate(verdicts)
            if each.question not in first and each.p is not None
        ],
    )
    for number, family in enumerate(families):
        if not family:
            continue
        adjusted = stats.holm([verdicts[at].p or 0.0 for at in family]).tolist()
        if joint and number == 0:
            adjusted = [joint.to_baseline[verdicts[at].arms[0]].adjusted_p for at in family]
        shares = holm_shares([verdicts[at].p or 0.0 for at in family], adjusted)
        for at, p, share in zip(family, adjusted, shares, strict=True):
            found[at] = _held(_widened(verdicts[at], share), p, len(family))
    return found


def holm_shares(p_values: Sequence[float], adjusted: Sequence[float]) -> list[float]:
    """The part of alpha that Holm's step leaves for each interval.

    Those after the first that does not reject are as wide as that one.
    """
    order = sorted(range(len(p_values)), key=lambda at: p_values[at])
    rejected = sum(p < ALPHA for p in adjusted)
    shares = [0.0] * len(p_values)
    for rank, at in enumerate(order):
        shares[at] = ALPHA / (len(p_values) - min(rank, rejected))
    return shares


def _widened(judged: Judged, share: float) -> Judged:
    """A gap over seeds with the interval its share of alpha allows, so that it says what p says."""
    if not judged.errors or judged.estimate is None or share >= ALPHA:
        return judged
    half = stats.reach(judged.errors, 1 - share)
    return replace(judged, low=judged.estimate - half, high=judged.estimate + half)


def _held(judged: Judged, p: float, count: int) -> Judged:
    judged = replace(judged, adjusted_p=p)
    if not decided(judged) or p < ALPHA:
        return judged
    undone = Because("undone_by_many", {"count": count, "p": p})
    return replace(
        judged, verdict="undecided", beyond_margin=False, because=(*judged.because, undone)
    )


# --- pairs without the baseline


def other_pairs(
    pairs: Sequence[Pair], levels: Sequence[Judged], joint: Together | None
) -> list[Judged]:
    """Every pair without the baseline, among all pairs: by max-T over items, or Holm over seeds.

    They are decided only where an arm was told apart from the baseline; so among equal arms the
    chance that anything is called better stays that of the main question.
    """
    if not pairs:
        return []
    judged = _by_items(pairs, joint) if joint else _by_seeds(pairs, levels)
    if any(decided(each) for each in levels):
        return judged
    return [
        replace(
            each,
            verdict="undecided",
            beyond_margin=False,
            because=(*each.because, Because("baseline_first")),
        )
        if decided(each)
        else each
        for each in judged
    ]


def _by_items(pairs: Sequence[Pair], joint: Together) -> list[Judged]:
    arms = pairs[0].arms
    rng = generator("compare", "max_t", "pairs")
    span = span_of(joint.scores_MN)
    found = {
        (arms[each.ours].name, arms[each.theirs].name): each
        for each in stats.max_t(joint.scores_MN, rng, draws=MOST_FLIPS, span=span)
    }
    judged = []
    for pair in pairs:
        each = found[pair.names]
        theirs = joint.scores_MN[next(i for i, arm in enumerate(arms) if arm is pair.theirs)]
        gap = Gap(
            wide=each.interval,
            narrow=each.interval,
            counted="items",
            p=each.p,
            k=each.k,
            span=span,
            item_scores=True,
            because=[Because("items_differ", {"k": each.k, "n": each.n}), Because("all_pairs")],
            baseline_mean=float(theirs.mean()),
        )
        judged.append(_held(judge(pair, gap, "pairs"), each.adjusted_p, len(found)))
    return judged


def _by_seeds(pairs: Sequence[Pair], levels: Sequence[Judged]) -> list[Judged]:
    judged = []
    for pair in pairs:
        gap = of_seeds(pair.ours, pair.theirs, pair.metric)
        if gap is not None:
            judged.append(judge(pair, gap, "pairs"))
    every = [*judged, *(each for each in levels if each.counted == "seeds")]
    if not judged:
        return []
    adjusted = stats.holm([1.0 if each.p is None else each.p for each in every]).tolist()
    return [
        _held(each, p, len(every)) for each, p in zip(judged, adjusted[: len(judged)], strict=True)
    ]


def without_baseline(arms: Sequence[Arm], baseline: Arm) -> list[tuple[Arm, Arm]]:
    """All pairs of other arms, in their order."""
    return list(combinations([arm for arm in arms if arm is not baseline], 2))


def contenders(arms: Sequence[Arm], known: Metric, joint: Together) -> Judged:
    """The arms that may be the best on items like these: the best is among them in 95 %."""
    rng = generator("compare", "contenders")
    found = stats.contenders((known.direction or 1) * joint.scores_MN, rng)
    names = tuple(arms[at].name for at in found.arms)
    facts = {"count": len(names), "of": len(arms), "n": found.n}
    apart = sum(gap.adjusted_p < ALPHA for gap in joint.to_baseline.values())
    alone = len(names) == 1 and apart > 0
    return Judged(
        question="contenders",
        metric=known.name,
        unit=known.unit,
        arms=names,
        verdict="better" if alone else "undecided",
        level="L2",
        n=found.n,
        counted="items",
        because=(Because("may_be_best", facts), Because("one_run_per_arm")),
    )
