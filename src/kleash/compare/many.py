"""What many comparisons at once allow: families of p-values, all pairs of arms, the contenders.

Every question of a kind is corrected with all others of that kind by Holm, over all arms there are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from kleash import stats
from kleash.compare.arms import Arm
from kleash.compare.evidence import of_items, of_rows
from kleash.compare.items import aligned, latest
from kleash.compare.judging import ALPHA, Pair, judge, settled
from kleash.compare.records import Because, Judged
from kleash.compare.seeds import of_seeds
from kleash.imports.names import Metric
from kleash.seeds import generator
from kleash.stats import Floats

OUTCOME = ("level", "trend")
ALONE = ("gain", "untrained")
"""Questions that are families of their own: all arms against their start, or without training."""


def decided(judged: Judged) -> bool:
    """Whether one side was found better."""
    return judged.verdict.startswith(("better", "worse"))


def together(arms: Sequence[Arm], metric: str, levels: Sequence[Judged]) -> Floats | None:
    """Scores of all arms on the same items, where three or more are judged by them."""
    if len(arms) < 3 or any(each.counted != "items" or each.level == "L1" for each in levels):
        return None
    groups = latest(arms, metric)
    if groups is None or any(scores.clusters is not None for each in groups for scores in each):
        return None
    scores = aligned(groups)
    if scores is None or any(each.n != scores.shape[1] for each in levels):
        return None
    return scores


def adjust(verdicts: Sequence[Judged]) -> list[Judged]:
    """Each line with the interval and the p that it has among all that were looked at.

    Families: the arms' outcome (against the baseline, and its trend), their gains over the start,
    their gaps to what needs no training, and everything else.
    """
    found = list(verdicts)
    families: dict[str, list[int]] = {}
    for at, each in enumerate(verdicts):
        if each.p is not None:
            kind: str = each.question if each.question in ALONE else "rest"
            families.setdefault("level" if each.question in OUTCOME else kind, []).append(at)
    for family in families.values():
        for at, each in zip(family, in_family([verdicts[at] for at in family]), strict=True):
            found[at] = each
    return found


def in_family(judged: Sequence[Judged]) -> list[Judged]:
    """Holm: each as wide as its step asks; those after the first that does not reject, as it."""
    if not judged:
        return []
    p_values = np.array([1.0 if each.p is None else each.p for each in judged])
    adjusted = stats.holm(p_values)
    rejected, rank = int((adjusted < ALPHA).sum()), np.empty(len(judged), dtype=int)
    rank[np.argsort(p_values, kind="stable")] = np.arange(len(judged))
    shares = ALPHA / (len(judged) - np.minimum(rank, rejected))
    return [
        _adjusted(each, float(p), float(share), len(judged))
        for each, p, share in zip(judged, adjusted, shares, strict=True)
    ]


def _adjusted(judged: Judged, p: float, share: float, count: int) -> Judged:
    found = replace(settled(judged, share), adjusted_p=p)
    if not decided(judged) or decided(found):
        return found
    undone = Because("undone_by_many", {"count": count, "p": p})
    return replace(found, because=(*found.because, undone))


# --- pairs without the baseline


def other_pairs(
    pairs: Sequence[Pair], levels: Sequence[Judged], scores_MN: Floats | None
) -> list[Judged]:
    """Every pair without the baseline, in one family with those that have it.

    They are decided only where an arm was told apart from the baseline; so among equal arms the
    chance that anything is called better stays that of the main question.
    """
    judged = []
    for pair in pairs:
        gap = of_seeds(pair.ours, pair.theirs, pair.metric)
        if gap is None and scores_MN is not None:
            at = [next(i for i, arm in enumerate(pair.arms) if arm is each) for each in
                  (pair.ours, pair.theirs)]  # fmt: skip
            gap = of_rows(*scores_MN[at])
        elif gap is None and levels[0].counted == "items" and levels[0].level != "L1":
            gap = of_items(pair.ours, pair.theirs, pair.metric)
        if gap is not None:
            judged.append(judge(pair, gap, "pairs"))
    known = [each for each in levels if each.p is not None]
    found = in_family([*judged, *known])[: len(judged)]
    if any(decided(each) for each in levels):
        return found
    return [_untold(each) if decided(each) else each for each in found]


def _untold(judged: Judged) -> Judged:
    """A pair that is not asked about: what it would show alone is no answer."""
    because = [each for each in judged.because if each.code != "inside_at_90"]
    return replace(
        judged,
        verdict="undecided",
        low=None,
        high=None,
        narrow=None,
        p=None,
        adjusted_p=None,
        beyond_margin=False,
        because=(*because, Because("baseline_first")),
    )


def contenders(
    arms: Sequence[Arm], known: Metric, scores_MN: Floats, levels: Sequence[Judged]
) -> Judged:
    """The arms that may be the best on items like these: the best is among them in 95 %."""
    rng = generator("compare", "contenders")
    found = stats.contenders((known.direction or 1) * scores_MN, rng)
    names = tuple(arms[at].name for at in found.arms)
    facts = {"count": len(names), "of": len(arms), "n": found.n}
    alone = len(names) == 1 and any(decided(each) for each in levels)
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
