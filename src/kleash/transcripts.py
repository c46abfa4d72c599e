"""What an agent says on the first test tasks, kept for every checkpoint of a run, token by token.

Greedy episodes with the log-probability of each token and its exact KL to the base: what the run
started from. They are for reading; scores are made by `evaluate`, and nothing is chosen by these.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import torch

from kleash.choices import load_policy
from kleash.language.policy import LanguagePolicy
from kleash.recipe import TRANSCRIPTS
from kleash.rollout import one_way
from kleash.rollout.agent import AgentWorld
from kleash.runs import Run, canonical
from kleash.train.agent import passes_of
from kleash.types import Episode

DIGITS = 6  # behind the point, of log-probabilities and KL


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
