"""Rewards for a choice of demonstrations: pure functions of what the answerer said.

A variant is a name in `REWARDS`. Advantages are not here: see `grpo`.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from kleash.tasks.demos.score import Scorer, item_score, normalise
from kleash.types import Answer, Item


@dataclass(frozen=True)
class Facts:
    """What one answer was worth, each but the words a fraction: all that a reward depends on."""

    accuracy: float
    truth_probability: float
    relevance: float
    words: int = 1

    @property
    def hit(self) -> float:
        """1 if any annotator agrees, else 0."""
        return float(self.accuracy > 0)


def facts(answer: Answer, item: Item, score: Scorer = item_score) -> Facts:
    """The facts of one answer to one item."""
    # A little above 0 is rounding; NaN fails the comparison too.
    if not answer.truth_logp <= 1e-4:
        raise ValueError(f"a log-probability is at most 0: the answerer gave {answer.truth_logp}")
    return Facts(
        accuracy=score(answer.text, item),
        truth_probability=min(1.0, math.exp(answer.truth_logp)),
        relevance=relevance(answer.text, item.answers),
        words=len(answer.text.split()),
    )


def relevance(answer: str, truths: Sequence[str]) -> float:
    """How near an answer comes to its nearest truth: mean of token F1 and edit similarity."""
    said = normalise(answer)
    return max(
        (token_f1(said, truth) + edit_similarity(said, truth)) / 2
        for truth in {normalise(truth) for truth in truths}
    )


def token_f1(left: str, right: str) -> float:
    """Twice the shared words over all words; two empty texts are the same text."""
    ours, theirs = left.split(), right.split()
    if not ours and not theirs:
        return 1.0
    shared = (Counter(ours) & Counter(theirs)).total()
    return 2 * shared / (len(ours) + len(theirs))


@lru_cache(maxsize=65_536)
def edit_similarity(left: str, right: str) -> float:
    """1 minus the Levenshtein distance over the longer length; two empty texts are the same."""
    if not left and not right:
        return 1.0
    row = list(range(len(right) + 1))
    for i, ours in enumerate(left, start=1):
        diagonal, row[0] = row[0], i
        for j, theirs in enumerate(right, start=1):
            diagonal, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, diagonal + (ours != theirs))
    return 1 - row[-1] / max(len(left), len(right))


def hard_plus_soft(facts: Facts) -> float:
    """Any agreement at all, and how much of it."""
    return facts.hit + facts.accuracy


def hard(facts: Facts) -> float:
    """Any agreement at all."""
    return facts.hit


def soft(facts: Facts) -> float:
    """How much agreement."""
    return facts.accuracy


def separated(facts: Facts) -> float:
    """`hard_plus_soft` with a wider step between wrong and right."""
    return 2 * facts.hit + facts.accuracy


def hard_plus_gtprob(facts: Facts) -> float:
    """Any agreement, and how likely the truth was: wrong answers differ too."""
    return facts.hit + facts.truth_probability


def separated_gtprob(facts: Facts) -> float:
    """`hard_plus_gtprob` with a wider step between wrong and right."""
    return 2 * facts.hit + facts.truth_probability


def hard_plus_gtprob_plus_rel(facts: Facts) -> float:
    """`hard_plus_gtprob`, and a little for a wrong answer that comes near."""
    return hard_plus_gtprob(facts) + 0.1 * (1 - facts.hit) * facts.relevance


def soft_plus_gtlogp(facts: Facts) -> float:
    """How much agreement, and the truth's log-probability from 0 at -10 nats or less to 1.

    Where most answers are wrong this still tells them apart, by orders of magnitude.
    """
    return facts.accuracy + 1 + math.log(max(facts.truth_probability, math.exp(-10))) / 10


def wordy(facts: Facts) -> float:
    """A proxy that can be had without being right: each word after the first is worth an answer.

    Made to be hacked, for studies of what a leash does then; nothing good comes of it otherwise.
    """
    return facts.accuracy + max(0, facts.words - 1)


REWARDS: dict[str, Callable[[Facts], float]] = {
    "hard_plus_soft": hard_plus_soft,
    "hard": hard,
    "soft": soft,
    "separated": separated,
    "hard_plus_gtprob": hard_plus_gtprob,
    "separated_gtprob": separated_gtprob,
    "hard_plus_gtprob_plus_rel": hard_plus_gtprob_plus_rel,
    "soft_plus_gtlogp": soft_plus_gtlogp,
    "wordy": wordy,
}
OVER = "-retrieval"
"""Behind a reward's name: only what is above the most similar demonstrations' of a query counts."""
PROXIES = ("wordy",)
"""Rewards that are not what is measured, on purpose."""


@dataclass(frozen=True)
class Health:
    """How many groups have anything to teach: only the mixed ones do."""

    all_zero: int
    all_one: int
    """Every reward at the top."""
    all_equal: int
    """Every reward the same, between zero and the top."""
    mixed: int

    @property
    def groups(self) -> int:
        """How many groups were looked at."""
        return self.all_zero + self.all_one + self.all_equal + self.mixed


def query_health(groups: Sequence[Sequence[float]], *, top: float | None = None) -> Health:
    """Count groups by what their rewards could teach; the top is the largest reward seen."""
    if not groups or not all(len(group) for group in groups):
        raise ValueError("a group without rewards has no health: leave empty groups out")
    best = max(max(group) for group in groups) if top is None else top
    kinds = Counter(kind_of_group(group, best) for group in groups)
    return Health(kinds["all_zero"], kinds["all_one"], kinds["all_equal"], kinds["mixed"])


def kind_of_group(rewards: Sequence[float], top: float) -> str:
    """Which count of `Health` a group belongs to."""
    if min(rewards) != max(rewards):
        return "mixed"
    if rewards[0] == 0:
        return "all_zero"
    return "all_one" if rewards[0] == top else "all_equal"
