"""Compare arms: what may be said, why, and what to run next. Codes and facts, no sentences.

`compare` puts the parts together: arms from sources, what else changed between them, a verdict for
each question and pair, one recommendation, and what the checks and the matrix say. It trains
nothing, reads nothing but sources, and uses no estimated value.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

from kleash.compare.arms import Arm, gather, known_name
from kleash.compare.checks import find
from kleash.compare.confounds import factor
from kleash.compare.curves import best_step, collapse_of, faster, steadier
from kleash.compare.gaps import gap_of_pair
from kleash.compare.matrix import Matrix, may_lack
from kleash.compare.next_steps import next_steps
from kleash.compare.outcome import Wish, choose, in_one_unit
from kleash.compare.read import Source
from kleash.compare.recommend import held, parted, recommended
from kleash.compare.records import (
    Amount,
    Because,
    Comparison,
    Confound,
    Judged,
    Question,
    Step,
    Window,
)
from kleash.compare.trend import trend
from kleash.compare.verdicts import (
    Pair,
    adjust,
    divergences,
    elsewhere,
    judge,
    other_pairs,
    unshared,
)
from kleash.errors import ConfigError, DataError

__all__ = [
    "Amount",
    "Arm",
    "Because",
    "Comparison",
    "Confound",
    "Judged",
    "Step",
    "Window",
    "Wish",
    "compare",
]
MOST_PAIRS = 20  # arms beside the baseline; of more, only the main question is answered
VOIDING = {"stale-weights": "stale_weights", "off-lattice": "off_lattice"}


def compare(sources: Sequence[Source], wish: Wish | None = None) -> Comparison:
    """Everything that follows from the sources about their arms."""
    wish = wish or Wish()
    margin, on = _margin(sources, wish), wish.on or next((s.on for s in sources if s.on), "")
    sources, on, of_units = in_one_unit(sources, on, wish.units)
    sources, aside = parted(sources)
    arms, others = gather(sources), gather(aside)
    if not arms or len(arms) + len(others) < 2:
        raise DataError(_too_few(arms))
    arms, baseline, metric, remarks = choose(arms, replace(wish, on=on), sources)
    found = Comparison(
        arms=[_row(arm) for arm in (*arms, *others)],
        baseline=baseline.name,
        findings=list(find(sources)),
        sources=sources,
        notes=[note for source in sources for note in source.notes],
        gathered=arms,
    )
    asked = _Asked(arms, others, baseline, metric, margin, wish, found.findings)
    found.factor = tuple(
        dict.fromkeys(key for pair in asked.pairs for key in factor(pair.ours, pair.theirs))
    )
    unique: dict[Any, Confound] = {}
    for each in (each for pair in asked.pairs for each in pair.confounds):
        unique.setdefault((each.kind, each.key, each.arms), each)
    found.confounds = list(unique.values())
    found.verdicts = asked.verdicts()
    if found.verdicts:  # what was decided before anything was compared stands with the first
        first = found.verdicts[0]
        because = (*first.because, *of_units, *remarks)
        found.verdicts[0] = replace(first, because=because)
    found.verdicts.append(recommended(found, beyond_margin=margin is not None))
    cells = found.matrix if may_lack(sources) else Matrix(0, 0, 0, ())
    found.next = next_steps(arms, baseline, found.verdicts, found.confounds, cells)
    return found


def _margin(sources: Sequence[Source], wish: Wish) -> float | None:
    """As the user asks, else as a study's file says."""
    if wish.margin is not None and not wish.margin > 0:
        raise ConfigError(f"a margin of {wish.margin:g} leaves no room: give one above 0")
    margins = [wish.margin, *(source.margin for source in sources)]
    return next((each for each in margins if each is not None), None)


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


def _row(arm: Arm) -> dict[str, Any]:
    return {
        "name": arm.name,
        "also": [name for name in arm.names if name != arm.name],
        "coefficient": arm.coefficient,
        "role": arm.role,
        "runs": len(arm.replicates),
        "seeds": [each.seed for each in arm.replicates if each.seed is not None],
    }


@dataclass
class _Asked:
    """Which pairs and arms are asked what, once metric and baseline are chosen."""

    arms: list[Arm]
    others: list[Arm]
    """The start, and what needs no training."""
    baseline: Arm
    metric: str
    margin: float | None
    wish: Wish
    findings: Sequence[Any]

    def __post_init__(self) -> None:
        self.groups = self._groups()
        self.pairs = [self._pair(arm, arm_b) for arm_b, own in self.groups.items() for arm in own]
        self.whole = len(self.pairs) <= MOST_PAIRS

    def _groups(self) -> dict[Arm, list[Arm]]:
        """Arms by the one they are compared with: as their study says, else the baseline.

        Where their study names one that has not begun, they are among `pairs` alone.
        """
        called = {name: arm for arm in self.arms for name in (*arm.names, arm.name)}
        own = {} if self.wish.baseline else {arm: arm.against for arm in self.arms if arm.against}
        groups: dict[Arm, list[Arm]] = {self.baseline: []}
        groups |= {called[name]: [] for name in own.values() if name in called}
        for arm in self.arms:
            theirs = called.get(own[arm]) if arm in own else self.baseline
            if arm not in groups and theirs is not None:
                groups[theirs].append(arm)
        return groups

    def _pair(self, ours: Arm, theirs: Arm) -> Pair:
        """With what findings say that voids its verdict: old weights, a value off the lattice."""
        labels = {name for arm in (ours, theirs) for name in (arm.name, *arm.names)}
        flags = dict.fromkeys(
            VOIDING[each.code]
            for each in self.findings
            if each.code in VOIDING
            and each.facts.get("arm") in labels
            and known_name(str(each.facts.get("metric", self.metric))) == self.metric
        )
        noise = self.wish.noise
        return Pair(self.arms, ours, theirs, self.metric, self.margin, tuple(flags), noise)

    def verdicts(self) -> list[Judged]:
        """Every answer but the recommendation, adjusted for all that is asked."""
        known = self._pair(self.baseline, self.baseline).known
        judged = [each for pair in self.pairs for each in self._of_pair(pair)]
        levels = [each for each in judged if each.question == "level"]
        sound = [arm for arm in self.arms if not arm.lost]
        for question, ours, theirs in held(sound, self.others, self.metric):
            judged += self._beside(question, self._pair(ours, theirs))
        void = {each.arms[0] for each in levels if each.verdict in ("invalid", "diverged")}
        for theirs, own in self.groups.items():
            fit = [arm for arm in self.arms if arm is theirs or arm in own]
            line = trend([arm for arm in fit if arm.name not in void], theirs, known)
            judged += [line] if line is not None else []
        if self.whole:
            falls = [collapse_of(arm, known, self.wish.noise) for arm in self.arms]
            judged += [each for each in falls if each is not None]
        judged = adjust(judged)
        levels = [each for each in judged if each.question == "level"]
        if self.whole:
            compared = {frozenset(pair.names) for pair in self.pairs}
            pairs = [self._pair(*pair) for pair in combinations(sound, 2)]
            rest = [pair for pair in pairs if frozenset(pair.names) not in compared]
            judged += other_pairs(rest, levels)
        return [*judged, *divergences(self.arms)]

    def _beside(self, question: Question, pair: Pair) -> list[Judged]:
        gap = gap_of_pair(pair.ours, pair.theirs, self.metric)
        return [judge(pair, gap, question)] if gap is not None else []

    def _of_pair(self, pair: Pair) -> list[Judged]:
        """A verdict on the level by the strongest data there are, then the other questions."""
        if pair.ours.lost or pair.theirs.lost:
            return [pair.judged("level", verdict="diverged")]
        gap = gap_of_pair(pair.ours, pair.theirs, self.metric)
        level = judge(pair, gap) if gap else unshared(pair)
        if not self.whole:
            return [level]
        asked = [elsewhere(pair, gap) if gap else None]
        asked += [question(pair) for question in (faster, steadier, best_step)]
        return [level, *(each for each in asked if each is not None)]
