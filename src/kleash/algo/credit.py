"""How the rewards of an episode's turns become one score, and each turn's share of its advantage.

Plain functions of a list of rewards. `docs/agents.md` says when to use which.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

Rewards = Sequence[float]


def to_go(rewards: Rewards, gamma: float) -> list[float]:
    """From each turn on, what is still to come; a turn later is worth `gamma` as much."""
    found: list[float] = []
    after = 0.0
    for reward in reversed(rewards):
        after = reward + gamma * after
        found.append(after)
    return found[::-1]


def em(reward: float) -> float:
    """UserRL's exponential mapping: 0.5 for a reward of 0, 1 for a reward of 1."""
    return 0.5 + 0.5 * (1 - math.exp(-2 * reward)) / (1 - math.exp(-2))


# What an episode is worth in its group. `mean_per_turn` is what UserRL's code calls Sum: it pays
# for ending early, so it is kept under its true name only.
SCORES: dict[str, Callable[[Rewards, float], float]] = {
    "sum": lambda rewards, gamma: math.fsum(rewards),
    "reward_to_go": lambda rewards, gamma: to_go(rewards, gamma)[0] if rewards else 0.0,
    "mean_per_turn": lambda rewards, gamma: math.fsum(rewards) / max(len(rewards), 1),
}

# What multiplies the episode's advantage, turn by turn.
CREDITS: dict[str, Callable[[Rewards, float], list[float]]] = {
    "equal": lambda rewards, gamma: [1.0] * len(rewards),
    "reward_to_go": to_go,
    "em": lambda rewards, gamma: [em(reward) for reward in rewards],
}
