"""An agent small enough for tests: real training in the embedded world, in seconds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from torch import Tensor

from kleash.config import merge, parse_overrides
from kleash.runs.ledger import Ledger
from kleash.runs.run import Run
from kleash.train.recipe import AgentRecipe, recipe_from
from kleash.train.rollout import Groups
from kleash.train.rollout.agent import AgentWorld, Attempt
from kleash.train.training import train
from kleash.train.update import LeashedPolicy
from kleash.types import Episode

AGENT: dict[str, Any] = {
    "env": "intention",
    "gym": {"surface": "tokens", "limit": 5, "world": {"train": 60, "validation": 20, "test": 50}},
    "tiny": {"width": 32, "layers": 1, "heads": 2},
    "epochs": 2,
    "steps": 2,
    "batch": 8,
    "group": 8,
    "lr": 3e-3,
    "supervised": {"epochs": 3, "dialogues": 1000, "lr": 0.01},
    "validation": {"tasks": 20, "training": 4},
}
SHORT: dict[str, Any] = {
    "env": "intention",
    "lr": 1e-3,
    "gym": {"surface": "tokens", "limit": 3, "world": {"train": 40, "validation": 30, "test": 20}},
    "supervised": {"epochs": 1, "dialogues": 32},
    "epochs": 2,
    "steps": 2,
    "batch": 3,
    "group": 4,
    "validation": {"tasks": 12, "training": 4},
    "turn_tokens": 8,
}
"""An agent that learns nothing much in a second: for how it is trained, not for what it learns."""


def agent_world(folder: Path, **changes: Any) -> AgentWorld:
    """The world of the small agent with some of its recipe changed."""
    recipe = recipe_from(merge(AGENT, changes))
    assert isinstance(recipe, AgentRecipe)
    return AgentWorld(recipe, Ledger(folder / "ledger.sqlite"))


def trained(folder: Path, name: str, **changes: Any) -> tuple[Run, AgentWorld]:
    """A run of the small agent, to its end."""
    world = agent_world(folder, **changes)
    return train(folder / name, world.recipe, merge(AGENT, changes), world), world


@dataclass(frozen=True)
class Agents:
    """Agents of one recipe, each with some keys changed as on the command line."""

    given: Mapping[str, Any]

    def asked(self, *keys: str) -> dict[str, Any]:
        return merge(self.given, parse_overrides(keys))

    def recipe(self, *keys: str) -> AgentRecipe:
        made = recipe_from(self.asked(*keys))
        assert isinstance(made, AgentRecipe)
        return made

    def trained(self, folder: Path, ledger: Ledger, *keys: str) -> Run:
        recipe = self.recipe(*keys)
        return train(folder, recipe, self.asked(*keys), AgentWorld(recipe, ledger))


def steps_of(run: Run) -> list[dict[str, Any]]:
    """What was measured of each update."""
    return [line for line in run.metrics() if line["kind"] == "step"]


def bytes_of(run: Run) -> dict[str, bytes]:
    """What must not depend on how often a run was stopped."""
    kept = [run.path / "metrics.jsonl", *sorted(run.path.glob("checkpoints/*/*"))]
    return {str(path.relative_to(run.path)): path.read_bytes() for path in kept if path.is_file()}


@dataclass
class Learnt:
    """Every batch that was learnt from, and the weights before it."""

    weights: list[dict[str, Tensor]] = field(default_factory=list)
    batches: list[Groups] = field(default_factory=list)


def watch_learning(patch: pytest.MonkeyPatch) -> Learnt:
    """What packed updates are given from here on; they do what they did."""
    seen, real = Learnt(), LeashedPolicy.update_on_batch

    def learn(self: LeashedPolicy, groups: Groups, *given: Any) -> Any:
        seen.weights.append({n: t.clone() for n, t in self.policy.state_dict().items()})
        seen.batches.append(groups)
        return real(self, groups, *given)

    patch.setattr(LeashedPolicy, "update_on_batch", learn)
    return seen


class Cut(Exception):
    """The run is stopped here."""


def cut_after(patch: pytest.MonkeyPatch, episodes: int) -> None:
    """Stop a run once so many episodes of GRPO have begun: others are over or under way."""
    begun, real = {"count": 0}, AgentWorld.play_one

    async def cut(self: AgentWorld, engine: Any, one: Attempt) -> Episode | None:
        begun["count"] += one.key is not None and one.key[1] == "grpo"
        if begun["count"] > episodes:
            raise Cut
        return await real(self, engine, one)

    patch.setattr(AgentWorld, "play_one", cut)
