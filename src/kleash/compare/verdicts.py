"""Verdicts: a gap with its interval, margin, level and confounds becomes a word, and its reasons.

Every question of a kind is corrected with all others of that kind by Holm, over all arms there are;
word, interval and p of a line come from one `Width`, so they cannot contradict each other. It is
long because one gap, a family of them and all arms at once are judged by the same few functions.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from kleash import stats
from kleash.compare.arms import Arm, known_name
from kleash.compare.confounds import changed, confounds, factor
from kleash.compare.gaps import (
    Gap,
    average_over_seeds,
    of_curves,
    of_items,
    of_seeds,
    shared_means,
)
from kleash.compare.read import names
from kleash.compare.read.names import Metric
from kleash.compare.records import Amount, Because, Confound, Judged, Question
from kleash.stats import SeedGap, Word

ACCURACY_MARGIN = 0.01
SHARE_MARGIN = 0.05  # of the baseline's mean, where the metric is not a fraction
ALPHA = 0.05
NARROW = 1 - 2 * ALPHA  # the interval of two one-sided tests
BY_INTERVAL = ("needs_margin", "inside_at_90")
OUTCOME = ("level", "trend")
ALONE = ("gain", "untrained")
"""Questions that are families of their own: all arms against their start, or without training."""


@dataclass(frozen=True)
class Pair:
    """Two arms among all, the metric they are compared on, and the margin that was asked for."""

    arms: Sequence[Arm]
    ours: Arm
    theirs: Arm
    metric: str
    margin: float | None = None
    flags: tuple[str, ...] = ()
    """What findings say that voids a verdict on this pair and metric."""
    noise: float | None = None
    """The SD of evaluating again, where it was declared."""

    @property
    def names(self) -> tuple[str, str]:
        """The arms' names, ours first."""
        return self.ours.name, self.theirs.name

    @property
    def known(self) -> Metric:
        """The quantity; only metrics that are known are compared."""
        found = names.metric(self.metric)
        assert found is not None
        return found

    @property
    def sign(self) -> int:
        """-1 where lower is better."""
        return self.known.direction or 1

    @property
    def untrained(self) -> bool:
        """Whether it is training that they differ in: then every setting of it is the factor."""
        return bool(self.theirs.role)

    @cached_property
    def confounds(self) -> list[Confound]:
        """All that differs besides the factor, or that sources disagree on."""
        return [] if self.untrained else confounds(self.ours, self.theirs)

    @property
    def configured(self) -> bool:
        """Whether configs of both arms are told, and a factor in which they differ.

        A column with the coefficient is no config: nothing shows that the rest was the same.
        """
        if self.untrained:
            return True
        told = all("must match" in arm.kinds.values() for arm in (self.ours, self.theirs))
        return told and bool(factor(self.ours, self.theirs))

    def also_changed(self, *, lengths: bool = False) -> tuple[str, ...]:
        """What else differs in the pair: its gap may be due to that, whatever other arms show."""
        return changed(self.confounds, lengths=lengths)

    def judged(self, question: Question, unit: str = "", **more: Any) -> Judged:
        """A record about the pair, of which nothing is decided yet."""
        more = {"verdict": "undecided", "level": "L1"} | more
        return Judged(question, self.metric, unit or self.known.unit, self.names, **more)


# --- one gap


def margin_for(asked: float | None, unit: str, mean: float) -> float:
    """The gap that would matter: as asked, one point of a fraction, or 5 % of a mean."""
    if asked is not None:
        return asked
    if unit == "fraction":
        return ACCURACY_MARGIN
    return SHARE_MARGIN * abs(mean) or ACCURACY_MARGIN


def judge(pair: Pair, gap: Gap, question: Question = "level") -> Judged:
    """The verdict on a gap alone; an interval of width 0 is none, for it shows no noise."""
    margin = margin_for(pair.margin, pair.known.unit, gap.baseline_mean)
    also = pair.also_changed(lengths=gap.counted != "steps")
    level = stats.claim_level(
        item_scores=gap.item_scores,
        seeds=gap.seeds,
        only_treatment_differs=pair.configured and not also,
    )
    width = replace(gap.width, turned=pair.known.direction < 0)
    wide, narrow = width.better_up(1 - ALPHA, gap.n), width.better_up(NARROW, gap.n)
    unseen = gap.too_few or not narrow.low < narrow.high
    alike = unseen and not gap.too_few and not gap.estimate
    integrity = [*gap.integrity, *pair.flags]
    word: Word = "invalid" if integrity else stats.word_of(wide, narrow, margin)
    more, more_of = None, ""
    if not integrity and gap.k == 0:
        word = "identical"
    elif word == "undecided":
        errors = width.errors
        more, more_of = stats.still_needed(
            wide.estimate,
            margin,
            gap.spread,
            gap.n,
            seeds=level == "L3",
            items=gap.items,
            items_error=errors[1][0] if len(errors) > 1 else 0.0,
        )
    bound = stats.differing_bound(0, gap.items or gap.n) * gap.span
    judged = pair.judged(
        question,
        level=level,
        estimate=gap.estimate,
        n=gap.n,
        counted=gap.counted,
        items=gap.items,
        over=gap.over,
        margin=margin,
        width=None if unseen else width,
        more=more,
        more_of=more_of if more else "",
        bound=bound if word == "identical" else None,
        also_changed=also,
    )
    if word in ("invalid", "identical") or alike:
        judged = replace(judged, verdict=word if integrity else "identical")
    because = [*_limits(pair, gap, integrity), *_same_weights(pair, judged)]
    because += [Because("no_spread")] if unseen and not gap.too_few else []
    return settled(replace(judged, because=tuple(because)))


def _limits(pair: Pair, gap: Gap, integrity: Sequence[str]) -> Iterator[Because]:
    """What limits a verdict."""
    yield from gap.because
    if gap.too_few or (gap.counted == "seeds" and gap.n < stats.FEWEST_SEEDS):
        yield Because(f"too_few_{gap.counted}")
    if gap.seeds < 2:
        yield Because("one_run_per_arm")
    if not pair.configured:
        yield Because("config_unknown")
    yield from (Because(f"integrity_{code}") for code in integrity)
    for each in pair.confounds:
        if each.kind == "contradicted":
            facts = {"arm": each.arms[0], "key": each.key, "values": each.values}
            yield Because("contradicted", facts)


def weights_of(arm: Arm) -> set[str]:
    """The hashes of the weights that were scored; none where some were not kept."""
    hashes = {scores.weights for each in arm.replicates for scores in each.scores}
    return set() if "" in hashes else hashes


def _same_weights(pair: Pair, judged: Judged) -> list[Because]:
    """Of identical outputs, whether they are of the same weights, where hashes tell."""
    hashes = [weights_of(arm) for arm in (pair.ours, pair.theirs)]
    if judged.verdict != "identical" or not all(hashes):
        return []
    return [Because("same_weights" if hashes[0] == hashes[1] else "other_weights")]


def settled(judged: Judged, share: float = ALPHA) -> Judged:
    """The word, and the interval that decides it, where it has that share of alpha.

    Equivalence is decided by the interval at 90 %, however many there are: it takes two one-sided
    tests that both reject, and no further question makes that easier.
    """
    if judged.width is None:
        return judged
    width, n = judged.width, judged.n or 0
    wide, narrow = width.better_up(1 - share, n), width.better_up(NARROW, n)
    margin = judged.margin or 0.0
    if width.logs and margin:
        margin = math.log(margin)
    word = judged.verdict
    if word not in ("invalid", "identical"):
        word = stats.word_of(wide, narrow, margin)
    beyond = wide.low > margin if word.startswith("better") else wide.high < -margin
    low, high = width.shown(NARROW if word == "equivalent" else 1 - share)
    because = [each for each in judged.because if each.code not in BY_INTERVAL]
    inside = width.shown(NARROW)
    if word == "undecided" and judged.question in ("level", "pairs"):
        reach = rounded_up(max(abs(low), abs(high)))
        because.append(Because("needs_margin", {"margin": Amount(reach, judged.unit, gap=True)}))
    if word == "equivalent" or word.endswith("within_margin"):
        ends = {"low": inside[0], "high": inside[1], "margin": judged.margin or 0.0}
        facts = {key: Amount(each, judged.unit, gap=True) for key, each in ends.items()}
        because.append(Because("inside_at_90", facts))
    return replace(
        judged,
        verdict=word,
        low=low,
        high=high,
        narrow=inside,
        p=width.p if judged.p is None else judged.p,
        beyond_margin=beyond and word.startswith(("better", "worse")),
        more=judged.more if word == "undecided" else None,
        because=tuple(because),
    )


def judge_seeds(pair: Pair, blank: Judged, gap: SeedGap, *, logs: bool = False) -> Judged:
    """The verdict on a gap over seeds of which less is better, steps or a logarithm of swings."""
    also = pair.also_changed()
    seeds, middle = gap.interval.n, gap.interval.estimate
    because = list(blank.because)
    because += [Because("too_few_seeds")] if seeds < stats.FEWEST_SEEDS else []
    because += [] if pair.configured else [Because("config_unknown")]
    level = stats.claim_level(
        item_scores=False, seeds=seeds, only_treatment_differs=pair.configured and not also
    )
    judged = replace(
        blank,
        level=level,
        estimate=math.exp(middle) if logs else middle,
        n=seeds,
        counted="seeds",
        width=replace(gap.width, turned=True, logs=logs),
        also_changed=also,
        because=tuple(because),
    )
    return settled(judged)


def rounded_up(value: float) -> float:
    """To two significant digits, never less."""
    if not value > 0:
        return 0.0
    size = 10.0 ** (math.floor(math.log10(value)) - 1)
    return float(f"{math.ceil(value / size - 1e-9) * size:.6g}")


# --- where the gap is not what was asked for first


def elsewhere(pair: Pair, level: Gap) -> Judged | None:
    """The same gap at the end where the level is the curves' mean, else on average.

    One run each is judged by the whole of both curves, several runs each by where they end: a leash
    often costs at first and pays later, so the two need not agree. The reasons that the level has
    given already are left out.
    """
    question: Question
    if level.counted == "steps":
        gap, question = of_curves(pair.ours, pair.theirs, pair.metric, at_end=True), "at_end"
    elif level.of_curves:
        gap, question = average_over_seeds(pair.ours, pair.theirs, pair.metric), "average"
    else:
        return None
    if gap is None:
        return None
    few = [Because("too_few_steps")] if gap.too_few and gap.counted == "steps" else []
    return replace(judge(pair, gap, question), because=(*gap.because, *few))


def unshared(pair: Pair) -> Judged:
    """Nothing measured at the same place: what whole-run statistics there are, and no verdict."""
    arms, unit = (pair.ours, pair.theirs), pair.known.unit
    means = [
        next(iter(cells.values())).value
        for arm in arms
        for each in arm.replicates
        for (metric, place), cells in each.cells.items()
        if metric == pair.metric and place[4] == "mean"
    ]
    seen = shared_means(pair.ours, pair.theirs, pair.metric)
    told = "; ".join(f"{arm.name}: {_places(arm, pair.metric)}" for arm in arms)
    why, ours, theirs = Because("nothing_shared", {"names": told}), None, None
    if seen is not None:
        ours, theirs, code = seen.ours, seen.theirs, "means_of_unknown_size"
    elif len(means) == 2:
        (ours, theirs), code = means, "run_means_only"
    estimate = None
    if ours is not None and theirs is not None:
        estimate = ours - theirs
        facts: dict[str, Any] = {"ours": Amount(ours, unit), "theirs": Amount(theirs, unit)}
        why = Because(code, facts | ({"shots": seen.shots} if seen else {}))
    moved = [Because("one_checkpoint")] if seen and seen.moved else []
    return pair.judged(
        "level",
        estimate=estimate,
        also_changed=pair.also_changed(lengths=True),
        because=(why, *moved, Because("one_run_per_arm")),
    )


def _places(arm: Arm, metric: str) -> str:
    """Where an arm was measured, shortly."""
    found: dict[str, set[float]] = {}
    for each in arm.replicates:
        for (name, axis), curve in each.curves.items():
            if name == metric:
                found.setdefault(axis, set()).update(curve.steps.tolist())
        for name, (epoch, step, *_) in each.cells:
            for axis, at in (("epoch", epoch), ("step", step)):
                if name == metric and at is not None:
                    found.setdefault(axis, set()).add(at)
        for scores in each.scores:
            if known_name(scores.metric) == metric and scores.step is not None:
                found.setdefault("step", set()).add(scores.step)
    parts = []
    for axis, steps in found.items():
        every = [f"{each:g}" for each in sorted(steps)]
        every = every if len(every) < 5 else [*every[:2], "…", every[-1]]
        parts.append(f"{axis} {', '.join(every)}")
    return ", ".join(parts) or "—"


# --- runs that ended in no numbers


def divergences(arms: Sequence[Arm]) -> Iterator[Judged]:
    """The first divergence of each arm that has one, and of how many runs it is true.

    That comes first, and the arm is compared with nothing: the steps before say how a run went
    until it broke, not what its setting leads to.
    """
    for arm in arms:
        if not arm.lost:
            continue
        first = min(arm.lost, key=lambda one: one.step)
        facts = {
            "arm": arm.name,
            "metric": first.metric,
            "axis": first.axis,
            "step": first.step,
            "last": first.last,
            "count": first.count,
            "runs": len(arm.lost),
            "of": len(arm.replicates),
        }
        because = (Because("it_diverged", facts),)
        metric = known_name(first.metric)
        yield Judged("diverged", metric, "", (arm.name,), "diverged", "L1", because=because)


# --- families of questions


def decided(judged: Judged) -> bool:
    """Whether one side was found better."""
    return judged.verdict.startswith(("better", "worse"))


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
    found = []
    for before, p, share in zip(judged, adjusted.tolist(), shares.tolist(), strict=True):
        now = replace(settled(before, share), adjusted_p=p)
        if decided(before) and not decided(now):
            undone = Because("undone_by_many", {"count": len(judged), "p": p})
            now = replace(now, because=(*now.because, undone))
        found.append(now)
    return found


# --- many arms


def other_pairs(pairs: Sequence[Pair], levels: Sequence[Judged]) -> list[Judged]:
    """Every pair without the baseline, in one family with those that have it.

    They are decided only where an arm was told apart from the baseline; so among equal arms the
    chance that anything is called better stays that of the main question.
    """
    judged = []
    of_checkpoints = bool(levels) and levels[0].counted == "items" and levels[0].level != "L1"
    for pair in pairs:
        gap = of_seeds(pair.ours, pair.theirs, pair.metric)
        if gap is None and of_checkpoints:
            gap = of_items(pair.ours, pair.theirs, pair.metric)
        if gap is not None:
            judged.append(judge(pair, gap, "pairs"))
    known = [each for each in levels if each.p is not None]
    found = in_family([*judged, *known])[: len(judged)]
    if any(decided(each) for each in levels):
        return found
    return [_unasked(each) if decided(each) else each for each in found]


def _unasked(judged: Judged) -> Judged:
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
