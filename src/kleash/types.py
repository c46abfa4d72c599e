"""Records that every part shares. Tensors are not here: the maths has its own in `policy`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

BROKEN_SHARE = 0.02  # of episodes or answers; where more broke, the rest shows nothing: it is void


class Brief:
    """A network that a notebook shows in a line, not layer by layer."""

    def __repr__(self: Any) -> str:
        weights = sum(each.numel() for each in self.parameters())
        return f"<{type(self).__name__}: {weights:,} weights>"


@dataclass(frozen=True)
class Turn:
    """What a policy saw, what it chose, and how likely each choice was to it (nats)."""

    observation: Any
    choices: tuple[int, ...]
    logp: tuple[float, ...]


@dataclass(frozen=True)
class Episode:
    """One try at one task. A broken one has an error and no reward: a failure is not a number."""

    task: str
    turns: tuple[Turn, ...]
    reward: float | None
    stop_reason: str = "finished"
    error: str | None = None
    rewards: tuple[float, ...] = ()
    """What each turn earned."""
    facts: Mapping[str, float] = field(default_factory=dict)
    """What else is logged of it."""
    heard: tuple[str, ...] = ()
    """What was said to the policy before each turn, as text."""
    covered: tuple[tuple[str, ...], ...] = ()
    """What each turn uncovered, in words."""


@dataclass(frozen=True, slots=True)
class Item:
    """A question about an image with its annotators' answers; also a demonstration.

    `answer` is the majority answer, which a demonstration shows.
    """

    id: str
    image: str
    question: str
    answers: tuple[str, ...]
    answer: str
    facts: dict[str, Any] = field(default_factory=dict, compare=False)
    scores: tuple[tuple[str, float], ...] = ()
    """What each answer is worth (0 to 1), where that is known instead of who gave it."""
    caption: str = ""
    """What the image shows, in words, for whoever cannot see it."""


@dataclass(frozen=True)
class Prompt:
    """Demonstrations in order, then the query: what an answerer sees."""

    demonstrations: tuple[Item, ...]
    query: Item


@dataclass(frozen=True)
class Answer:
    """What an answerer said, and how likely it found the query's own majority answer (nats)."""

    text: str
    truth_logp: float
    error: str | None = None
    """Why there is no answer, where this prompt alone broke."""


@dataclass(frozen=True)
class Heard:
    """A line that a run reports while it trains: its `kind` is epoch, step or finding.

    `step` counts over all phases and never falls; a finding belongs to no epoch (0 of 0).
    """

    phase: str
    epoch: int
    epochs: int
    record: Mapping[str, Any]
    step: int


Listener = Callable[[Heard], None]
