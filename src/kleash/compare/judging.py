"""From a gap to a verdict: margins, levels, confounds, and the reasons that limit it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from kleash import stats
from kleash.compare.arms import Arm
from kleash.compare.confounds import changed, confounds, factor
from kleash.compare.evidence import Gap
from kleash.compare.items import weights_of
from kleash.compare.records import Amount, Because, Confound, Judged, Question
from kleash.imports import names
from kleash.imports.names import Metric
from kleash.stats import Interval, SeedGap

ACCURACY_MARGIN = 0.01
SHARE_MARGIN = 0.05  # of the baseline's mean, where the metric is not a fraction

ALPHA = 0.05
NARROW = 1 - 2 * ALPHA  # the interval of two one-sided tests
BY_INTERVAL = ("needs_margin", "inside_at_90")
CONFIGURED = {"must match"}


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
        assert found is not None  # `metrics_of` lists no other
        return found

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
        told = [set(arm.kinds.values()) & CONFIGURED for arm in (self.ours, self.theirs)]
        return all(told) and bool(factor(self.ours, self.theirs))

    def also_changed(self, *, lengths: bool = False) -> tuple[str, ...]:
        """What else differs in the pair: its gap may be due to that, whatever other arms show."""
        return changed(self.confounds, lengths=lengths)


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
    integrity = [*gap.integrity, *pair.flags]
    evidence = stats.Evidence(
        level=level,
        n=gap.n,
        k=gap.k,
        items=gap.items,
        items_error=width.errors[1][0] if len(width.errors) > 1 else 0.0,
        spread=gap.spread,
        span=gap.span,
        confounds=also,
        integrity=integrity,
    )
    wide, narrow = width.better_up(1 - ALPHA, gap.n), width.better_up(NARROW, gap.n)
    found = stats.verdict(wide, narrow, margin, evidence)
    unseen = gap.too_few or not narrow.low < narrow.high
    alike = unseen and not gap.too_few and not gap.estimate
    judged = Judged(
        question=question,
        metric=pair.metric,
        unit=pair.known.unit,
        arms=pair.names,
        verdict=found.word if found.word == "invalid" or not alike else "identical",
        level=found.level,
        estimate=gap.estimate,
        n=gap.n,
        counted=gap.counted,
        items=gap.items,
        over=gap.over,
        margin=margin,
        width=None if unseen else width,
        more=found.more,
        more_of=found.unit if found.more else "",
        bound=found.bound,
        also_changed=also,
        because=tuple(reasons(pair, gap, integrity)),
    )
    hashes = [weights_of(arm) for arm in (pair.ours, pair.theirs)]
    if judged.verdict == "identical" and all(hashes):
        same = Because("same_weights" if hashes[0] == hashes[1] else "other_weights")
        judged = replace(judged, because=(*judged.because, same))
    if unseen and judged.verdict not in ("invalid", "identical"):
        judged = replace(judged, verdict="undecided")
    if unseen and not gap.too_few:
        judged = replace(judged, because=(*judged.because, Because("no_spread")))
    return settled(judged)


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


def over_seeds(pair: Pair, blank: Judged, gap: SeedGap, *, logs: bool = False) -> Judged:
    """The verdict on a gap over seeds of which less is better, steps or a logarithm of swings."""
    also = pair.also_changed()
    seeds = gap.interval.n
    because = list(blank.because)
    if seeds < stats.FEWEST_SEEDS:
        because.append(Because("too_few_seeds"))
    if not pair.configured:
        because.append(Because("config_unknown"))
    middle = gap.interval.estimate
    judged = replace(
        blank,
        level=stats.claim_level(
            item_scores=False, seeds=seeds, only_treatment_differs=pair.configured and not also
        ),
        estimate=math.exp(middle) if logs else middle,
        n=seeds,
        counted="seeds",
        width=replace(gap.width, turned=True, logs=logs),
        also_changed=also,
        because=tuple(because),
    )
    return settled(judged)


def reasons(pair: Pair, gap: Gap, integrity: Sequence[str]) -> list[Because]:
    """What limits a verdict."""
    because = list(gap.because)
    if gap.too_few or (gap.counted == "seeds" and gap.n < stats.FEWEST_SEEDS):
        because.append(Because(f"too_few_{gap.counted}"))
    if gap.seeds < 2:
        because.append(Because("one_run_per_arm"))
    if not pair.configured:
        because.append(Because("config_unknown"))
    because += [Because(f"integrity_{code}") for code in integrity]
    because += [
        Because("contradicted", {"arm": each.arms[0], "key": each.key, "values": each.values})
        for each in pair.confounds
        if each.kind == "contradicted"
    ]
    return because


def rounded_up(value: float) -> float:
    """To two significant digits, never less."""
    if not value > 0:
        return 0.0
    size = 10.0 ** (math.floor(math.log10(value)) - 1)
    return float(f"{math.ceil(value / size - 1e-9) * size:.6g}")


def turned(interval: Interval, sign: int) -> Interval:
    """The interval with better upwards."""
    if sign >= 0:
        return interval
    return replace(interval, estimate=-interval.estimate, low=-interval.high, high=-interval.low)
