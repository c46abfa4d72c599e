"""From a gap to a verdict: margins, levels, confounds, and what many questions at once allow."""

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
from kleash.stats import Interval

ACCURACY_MARGIN = 0.01
SHARE_MARGIN = 0.05  # of the baseline's mean, where the metric is not a fraction
ALPHA = 0.05


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
        """Whether configs of both arms are told, and a factor in which they differ."""
        told = self.ours.configs and self.theirs.configs
        return bool(told) and bool(factor(self.ours, self.theirs))

    def also_changed(self, *, lengths: bool = False) -> tuple[str, ...]:
        """What cannot be told apart from the factor in this design."""
        keys = changed(self.confounds, lengths=lengths)
        return aliased(self.arms, self.ours, self.theirs, keys) if keys else ()


def margin_for(pair: Pair, baseline_mean: float) -> float:
    """The gap that would matter: as asked, one point of a fraction, or 5 % of the baseline."""
    if pair.margin is not None:
        return pair.margin
    if pair.known.unit == "fraction":
        return ACCURACY_MARGIN
    return SHARE_MARGIN * abs(baseline_mean) or ACCURACY_MARGIN


def judge(pair: Pair, gap: Gap, question: Question = "level") -> Judged:
    """The verdict on a gap, in the order of the rules: `stats.verdict` decides, this explains."""
    margin = margin_for(pair, gap.baseline_mean)
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
        p=gap.p,
        margin=margin,
        more=found.more,
        beyond_margin=found.beyond_margin,
        bound=found.bound,
        also_changed=also,
        because=tuple(reasons(pair, gap, word, integrity)),
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


def adjust(verdicts: list[Judged]) -> list[Judged]:
    """Holm over the main question's arms, and over everything else; what does not hold is undone.

    A gap that is decided alone but not among all that were looked at is undecided.
    """
    families = (
        [at for at, each in enumerate(verdicts) if each.question == "level" and each.p is not None],
        [at for at, each in enumerate(verdicts) if each.question != "level" and each.p is not None],
    )
    found = list(verdicts)
    for family in families:
        if not family:
            continue
        p_values = [verdicts[at].p or 0.0 for at in family]
        for at, p in zip(family, stats.holm(p_values).tolist(), strict=True):
            each = replace(verdicts[at], adjusted_p=p)
            if each.verdict.startswith(("better", "worse")) and p >= ALPHA:
                undone = Because("undone_by_many", {"count": len(family), "p": p})
                each = replace(
                    each,
                    verdict="undecided",
                    beyond_margin=False,
                    because=(*each.because, undone),
                )
            found[at] = each
    return found
