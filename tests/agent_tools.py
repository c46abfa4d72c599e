"""An agent small enough for tests: real training in the embedded world, in seconds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from kleash.config import merge
from kleash.ledger import Ledger
from kleash.recipe import AgentRecipe, recipe_from
from kleash.rollout.agent import AgentWorld
from kleash.runs import Run
from kleash.train import train

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


def agent_world(folder: Path, **changes: Any) -> AgentWorld:
    """The world of the small agent with some of its recipe changed."""
    recipe = recipe_from(merge(AGENT, changes))
    assert isinstance(recipe, AgentRecipe)
    return AgentWorld(recipe, Ledger(folder / "ledger.sqlite"))


def trained(folder: Path, name: str, **changes: Any) -> tuple[Run, AgentWorld]:
    """A run of the small agent, to its end."""
    world = agent_world(folder, **changes)
    return train(folder / name, world.recipe, merge(AGENT, changes), world), world
