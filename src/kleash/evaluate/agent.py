"""Measures language agents: plays every task, greedily or in passes, and keeps what was said."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch

from kleash import guard
from kleash.language.policy import LanguagePolicy
from kleash.policy import fingerprint
from kleash.rollout.agent import AgentWorld
from kleash.runs import Run
from kleash.train.agent import passes_of
from kleash.types import Episode, Turn

AT_ONCE = 256  # tasks played between two writes


def measured(
    run: Run, world: AgentWorld, name: str, split: str, cells: Mapping[int, Sequence[int]]
) -> Iterator[list[dict[str, Any]]]:
    """The lines of one checkpoint, some at a time: places of tasks by number of passes."""
    policy, weights = loaded(run, world, name)
    engine, tasks = world.engine(policy), world.tasks(split)
    for passes, places in cells.items():
        key = {"checkpoint": name, "shots": passes, "split": split, "weights": weights}
        for block in sorted({place // AT_ONCE for place in places}):
            # Up to the last that is wanted: whoever goes on plays the same tasks together.
            wanted = {place for place in places if place // AT_ONCE == block}
            some = tasks[block * AT_ONCE : max(wanted) + 1]
            episodes = world.play(engine, passes_of(some, world.recipe.seed, passes))
            each = max(passes, 1)
            yield [
                key | line(world, episodes[at * each : (at + 1) * each])
                for at in range(len(some))
                if block * AT_ONCE + at in wanted
            ]


def line(world: AgentWorld, episodes: Sequence[Episode]) -> dict[str, Any]:
    """What came of one task: the mean reward of its passes, and the first one turn by turn."""
    first = episodes[0]
    speech = world.speech
    said = [speech.text(turn.choices) for turn in first.turns]
    made: dict[str, Any] = {"item": first.task, "pointer": said}
    broken = [episode.error for episode in episodes if episode.error is not None]
    if broken:
        return made | {"error": broken[0]}
    rewards = [episode.reward for episode in episodes if episode.reward is not None]
    return made | {
        "answer": first.stop_reason,
        "score": sum(rewards) / len(rewards),
        "heard": list(first.heard),
        "rewards": list(first.rewards),
        "facts": dict(first.facts),
    }


def few_words(world: AgentWorld) -> list[Turn]:
    """A short conversation: a model is judged on it once for each of its tensors."""
    surface, task = world.gym.surface, world.tasks("validation")[0]
    start = world.gym.make(task, seed=world.recipe.seed, rollout=0).start()
    ids = tuple(world.speech.opening(surface.instructions, surface.tools, start)[:16])
    half = len(ids) // 2
    return [Turn(ids[:half], ids[half:], (0.0,) * (len(ids) - half))]


def loaded(run: Run, world: AgentWorld, name: str) -> tuple[LanguagePolicy, str]:
    """The policy of a checkpoint, proven to be the one that was trained."""
    kept = run.load(name, trainer=False)
    policy = world.empty_policy()
    guard.load_strictly(policy, kept.weights, source=f"{run.path}/checkpoints/{name}")
    weights = fingerprint(policy.state_dict())
    guard.same_weights(kept.state["weights_hash"], weights)
    policy.to(world.device)
    batch = policy.gather([few_words(world)])
    with torch.no_grad():
        guard.every_tensor_matters(policy, lambda: policy.judge(batch).logp)
    return policy, weights
