"""From a gap to a verdict: margins, levels, confounds, and the reasons that limit it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from kleash import stats
from kleash.compare.arms import Arm
from kleash.compare.confounds import aliased, changed, confounds, factor
from kleash.compare.evidence import Gap
from kleash.compare.records import Amount, Because, Confound, Judged, Question
from kleash.imports import names
from kleash.imports.names import Metric
from kleash.stats import Interval, SeedGap

ACCURACY_MARGIN = 0.01
SHARE_MARGIN = 0.05  # of the baseline's mean, where the metric is not a fraction

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

    @cached_property
    def confounds(self) -> list[Confound]:
        """All that differs besides the factor, or that sources disagree on."""
        return confounds(self.ours, self.theirs)

    @property
    def configured(self) -> bool:
        """Whether configs of both arms are told, and a factor in which they differ.

        A column with the coefficient is no config: nothing shows that the rest was the same.
        """
        told = [set(arm.kinds.values()) & CONFIGURED for arm in (self.ours, self.theirs)]
        return all(told) and bool(factor(self.ours, self.theirs))

    def also_changed(self, *, lengths: bool = False) -> tuple[str, ...]:
        """What cannot be told apart from the factor in this design."""
        keys = changed(self.confounds, lengths=lengths)
        return aliased(self.arms, self.ours, self.theirs, keys) if keys else ()


def margin_for(asked: float | None, unit: str, mean: float) -> float:
    """The gap that would matter: as asked, one point of a fraction, or 5 % of a mean."""
    if asked is not None:
        return asked
    if unit == "fraction":
        return ACCURACY_MARGIN
    return SHARE_MARGIN * abs(mean) or ACCURACY_MARGIN


def judge(pair: Pair, gap: Gap, question: Question = "level") -> Judged:
    """The verdict on a gap, in the order of the rules: `stats.verdict` decides, this explains."""
    margin = margin_for(pair.margin, pair.known.unit, gap.baseline_mean)
    also = pair.also_changed(lengths=gap.counted != "steps")
    level = stats.claim_level(
        item_scores=gap.item_scores,
        seeds=gap.seeds,
        only_treatment_differs=pair.configured and not also,
    )
    sign = pair.known.direction
    integrity = [*gap.integrity, *pair.flags]
    evidence = stats.Evidence(
        level=level,
        n=gap.wide.n,
        k=gap.k,
        items=gap.items,
        items_error=gap.errors[1][0] if len(gap.errors) > 1 else 0.0,
        spread=gap.spread,
        span=gap.span,
        confounds=also,
        integrity=integrity,
    )
    found = stats.verdict(turned(gap.wide, sign), turned(gap.narrow, sign), margin, evidence)
    word = found.word
    if gap.too_few and word not in ("invalid", "identical", "undecided"):
        word = "undecided"
    return Judged(
        question=question,
        metric=pair.metric,
        unit=pair.known.unit,
        arms=pair.names,
        verdict=word,
        level=found.level,
        estimate=gap.wide.estimate,
        low=gap.wide.low,
        high=gap.wide.high,
        n=gap.wide.n,
        counted=gap.counted,
        items=gap.items,
        over=gap.over,
        p=gap.p,
        margin=margin,
        more=found.more,
        more_of=found.unit if found.more else "",
        errors=gap.errors,
        beyond_margin=found.beyond_margin,
        bound=found.bound,
        also_changed=also,
        because=tuple(reasons(pair, gap, word, integrity)),
    )


def over_seeds(pair: Pair, blank: Judged, wide: SeedGap, narrow: SeedGap) -> Judged:
    """The verdict on a gap over seeds of which less is better, steps or a logarithm of swings."""
    also = pair.also_changed()
    seeds = wide.interval.n
    level = stats.claim_level(
        item_scores=False, seeds=seeds, only_treatment_differs=pair.configured and not also
    )
    ends = turned(wide.interval, -1), turned(narrow.interval, -1)
    evidence = stats.Evidence(level=level, n=seeds, spread=wide.sd, confounds=also)
    found = stats.verdict(*ends, blank.margin or 1.0, evidence)
    because = list(blank.because)
    few = seeds < stats.FEWEST_SEEDS
    if few:
        because.append(Because("too_few_seeds"))
    if not pair.configured:
        because.append(Because("config_unknown"))
    return replace(
        blank,
        verdict="undecided" if few else found.word,
        level=found.level,
        estimate=wide.interval.estimate,
        low=wide.interval.low,
        high=wide.interval.high,
        n=seeds,
        counted="seeds",
        beyond_margin=found.beyond_margin,
        also_changed=also,
        because=tuple(because),
    )


def reasons(pair: Pair, gap: Gap, word: str, integrity: Sequence[str]) -> list[Because]:
    """Why the verdict is no other, and what limits it."""
    because = list(gap.because)
    if gap.too_few:
        because.append(Because(f"too_few_{gap.counted}"))
    if word == "undecided":
        reach = rounded_up(max(abs(gap.wide.low), abs(gap.wide.high)))
        unit = pair.known.unit
        because.append(Because("needs_margin", {"margin": Amount(reach, unit, gap=True)}))
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
