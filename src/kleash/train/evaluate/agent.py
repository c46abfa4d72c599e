"""Measures language agents: plays every task, greedily or in passes, and keeps what was said.

Of the first test tasks also token by token, for every checkpoint of a run: the log-probability of
each and its exact KL to the base, which is what the run started from.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from kleash.algo import guard
from kleash.models.language.policy import LanguagePolicy
from kleash.runs.run import Run, canonical
from kleash.train.agent import passes_of
from kleash.train.recipe import TRANSCRIPTS
from kleash.train.rollout import load_policy, one_way
from kleash.train.rollout.agent import AgentWorld
from kleash.types import Episode, Turn

AT_ONCE = 256  # tasks played between two writes
DIGITS = 6  # behind the point, of log-probabilities and KL


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
    """The policy of a checkpoint, each of its tensors proven to matter; the hash of its weights."""
    policy: LanguagePolicy = load_policy(run, world, name)
    batch = policy.gather([few_words(world)])
    with torch.no_grad():
        guard.every_tensor_matters(policy, lambda: policy.judge(batch).logp)
    return policy, run.state(name)["weights_hash"]


# --- transcripts: for reading, and nothing is chosen by them


def transcripts_file(run: Path, checkpoint: str) -> Path:
    """Where the transcripts of a checkpoint lie."""
    return run / "transcripts" / f"{checkpoint}.jsonl"


@one_way()
@torch.no_grad()
def keep_transcripts(
    run: Run, world: AgentWorld, names: Sequence[str], base: LanguagePolicy
) -> None:
    """Write the transcripts of checkpoints that have none yet."""
    tasks = world.tasks("test")[:TRANSCRIPTS]
    for name in names:
        path = transcripts_file(run.path, name)
        if path.is_file():
            continue
        policy = load_policy(run, world, name)
        episodes = world.play(world.engine(policy), passes_of(tasks, world.recipe.seed, 0))
        weights = {"checkpoint": name, "weights": run.state(name)["weights_hash"]}
        lines = [weights | line for line in transcripts(policy, base, world, episodes)]
        path.parent.mkdir(exist_ok=True)
        passing = run.path / f".{path.name}.tmp"  # whoever locks the run next clears it
        passing.write_bytes(b"".join(canonical(line) for line in lines))
        passing.replace(path)


def transcripts(
    policy: LanguagePolicy, base: LanguagePolicy, world: AgentWorld, episodes: Sequence[Episode]
) -> Iterator[dict[str, Any]]:
    """Each episode turn by turn; what broke has its error and the turns before it."""
    speech = world.speech
    batch = policy.gather([episode.turns for episode in episodes])
    judged = policy.judge(batch, base)
    assert judged.exact_kl is not None
    rows = zip(judged.logp.tolist(), judged.exact_kl.tolist(), strict=True)
    for episode in episodes:
        turns: list[dict[str, Any]] = []
        for at, turn in enumerate(episode.turns):
            tokens = [
                [speech.text([choice]), *(round(value, DIGITS) for value in next(rows))]
                for choice in turn.choices
            ]
            turns.append({"said": speech.text(turn.choices), "tokens": tokens})
            if episode.error is None:
                turns[at]["reward"] = episode.rewards[at]
                turns[at]["heard"] = episode.heard[at]
                turns[at]["covered"] = list(episode.covered[at])
        made: dict[str, Any] = {"item": episode.task, "turns": turns}
        if episode.error is not None:
            yield made | {"error": episode.error}
        else:
            yield made | {"answer": episode.stop_reason, "facts": dict(episode.facts)}
