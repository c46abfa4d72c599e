"""Whether the reward that was trained on says the same as what was evaluated.

A policy can earn more of the one and be worse at the other; that is what a leash is for, and why
arms are not to be chosen by their training curves.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from kleash.compare.arms import Arm
from kleash.compare.confounds import told
from kleash.compare.evidence import Gap
from kleash.compare.judging import Pair, judge
from kleash.compare.many import in_family
from kleash.compare.records import Amount, Because, Judged
from kleash.stats import Word

TRAINED_ON = "reward"
Measure = Callable[[Arm, Arm, str], Gap | None]


def proxies(pairs: Sequence[Pair], levels: Sequence[Judged], measure: Measure) -> list[Judged]:
    """For each pair that both decide, whether they decide alike; the gap is that of the reward."""
    by_arms = {each.arms: each for each in levels}
    rewards = []
    for pair in pairs:
        level = by_arms[pair.names]
        gap = None if _may_hold_kl(pair) else measure(pair.ours, pair.theirs, TRAINED_ON)
        if pair.metric == TRAINED_ON or gap is None or level.estimate is None:
            continue
        on = replace(pair, metric=TRAINED_ON, margin=None, flags=())
        rewards.append((pair, judge(on, gap, "proxy")))
    adjusted = in_family([each for _, each in rewards])
    judged = []
    for (pair, _), reward in zip(rewards, adjusted, strict=True):
        level = by_arms[pair.names]
        ends = [each.verdict.partition("_")[0] for each in (reward, level)]
        word: Word = "undecided"
        if set(ends) <= {"better", "worse"}:
            word = "equivalent" if ends[0] == ends[1] else "worse"
        assert level.estimate is not None  # asked above
        up = level.estimate * (pair.known.direction or 1) > 0
        facts = {"metric": pair.metric, "gap": Amount(abs(level.estimate), level.unit, gap=True)}
        because = (Because("evaluated_better" if up else "evaluated_worse", facts),)
        # The word is about both gaps, so no one interval decides it.
        lower = min(reward.level, level.level)
        blank = replace(reward, low=None, high=None, narrow=None, width=None, margin=None)
        judged.append(replace(blank, verdict=word, level=lower, because=because))
    return judged


def _may_hold_kl(pair: Pair) -> bool:
    """Whether the logged reward may have the penalty in it, which is larger with the leash."""
    return any(
        True in values
        for arm in (pair.ours, pair.theirs)
        for values in told(arm, "leash.in_reward").values()
    )
