"""Conversations of given lengths with users that answer after a while: all that is said is drawn.

What a step of a real size is played with. Weights that were drawn know no words, so that a text is
its ids, written out.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

from benchmarks.shapes import GROUP, TASKS
from kleash.seeds import generator
from kleash.tasks.envs.contract import Step
from kleash.types import Turn

Lengths = list[list[list[int]]]
"""For each episode its turns, as (heard, said)."""


def alike_in_groups(turns: Lengths) -> Lengths:
    """The same lengths with openings that are alike in a group: what is over is heard later."""
    made = []
    for number, episode in enumerate(turns):
        first = number // GROUP * GROUP
        opening = min(each[0][0] for each in turns[first : first + GROUP])
        over = episode[0][0] - opening
        (_, said), (heard, then), *rest = episode
        made.append([[opening, said], [heard + over, then], *rest])
    return made


class Numbers:
    """A speech in which a text is its ids, written out."""

    identity, pad = "numbers", 0
    stops: frozenset[int] = frozenset()

    def __init__(self, size: int) -> None:
        self.size = size

    def opening(self, instructions: str, tools: Any, observation: str) -> list[int]:
        """The observation's ids."""
        return self.ids(observation)

    def reply(self, observation: str) -> list[int]:
        """The observation's ids."""
        return self.ids(observation)

    def text(self, ids: Sequence[int]) -> str:
        """The ids, written out."""
        return " ".join(map(str, ids))

    def ids(self, text: str) -> list[int]:
        """The ids that are written."""
        return [int(word) for word in text.split()]


class SlowUser:
    """Says texts of given lengths, each after a while; the last turn earns a drawn reward."""

    def __init__(self, texts: Sequence[str], reward: float, latency: float) -> None:
        self.texts, self.reward, self.latency, self.turns = texts, reward, latency, 0

    def start(self) -> str:
        """The opening."""
        return self.texts[0]

    async def step(self, text: str) -> Step:
        """The next text."""
        await asyncio.sleep(self.latency)
        self.turns += 1
        if self.turns == len(self.texts):
            return Step("", self.reward, True, "finished")
        return Step(self.texts[self.turns], 0.0)

    def cut(self) -> None:
        """Never happens: every turn is taken for ended."""
        raise RuntimeError("a turn was cut")

    def metrics(self) -> dict[str, float]:
        """How many turns there were."""
        return {"turns": float(self.turns)}


class SlowGym:
    """Tasks whose conversations have given lengths."""

    content = "drawn"
    surface = SimpleNamespace(instructions="", tools=[])

    def __init__(self, lengths: Lengths, speech: Numbers, latency: float) -> None:
        self.lengths, self.speech, self.latency = lengths, speech, latency

    def tasks(self, split: str) -> list[Any]:
        """As many as a step has."""
        return [SimpleNamespace(id=str(number)) for number in range(TASKS)]

    def make(self, task: Any, *, seed: int, rollout: int) -> SlowUser:
        """A user of its own; what he says first is the same for a group."""
        texts = []
        for turn, (heard, _) in enumerate(self.lengths[int(task.id) * GROUP + rollout]):
            rng = generator("bench", "step", task.id, rollout if turn else -1, turn)
            texts.append(self.speech.text(rng.integers(0, self.speech.size, heard).tolist()))
        reward = float(generator("bench", "reward", task.id, rollout).random())
        return SlowUser(texts, reward, self.latency)


def drawn_turns(lengths: Lengths, words: int) -> list[list[Turn]]:
    """Conversations of those lengths with drawn ids."""
    rng = generator("bench", "step", "warm-up")

    def drawn(count: int) -> tuple[int, ...]:
        return tuple(rng.integers(0, words, count).tolist())

    return [[Turn(drawn(heard), drawn(said), ()) for heard, said in each] for each in lengths]
