"""Where a policy acts, and groups of rewarded episodes from it. One file for each family.

A world is all that a recipe's episodes need, made the same way for training and evaluation. What
comes of acting is `Groups`, in which the maths of both families is the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import torch
from torch import Tensor

from kleash.algo import guard
from kleash.algo.policy import fingerprint
from kleash.errors import CheckpointError
from kleash.runs.ledger import Ledger
from kleash.runs.run import Checkpoint, Run
from kleash.train.recipe import AgentRecipe, Recipe, SelectorRecipe, recipe_from

__all__ = [
    "Groups",
    "World",
    "compute_one_way",
    "load_checkpoint",
    "load_policy",
    "one_way",
    "world_of",
]


def compute_one_way() -> None:
    """Torch as every run has it, so that the same recipe gives the same bytes however it is called.

    Two threads under load are many times slower than one, and oneDNN's set-up costs more than it
    saves on products this small. For a process that is ours; in another's, `one_way` gives it back.
    """
    torch.set_num_threads(1)
    torch.backends.mkldnn.enabled = False  # type: ignore[assignment]


@contextmanager
def one_way() -> Iterator[None]:
    """`compute_one_way`, and at the end whatever was set before."""
    products: Any = torch.backends.mkldnn
    threads, before = torch.get_num_threads(), products.enabled
    compute_one_way()
    try:
        yield
    finally:
        torch.set_num_threads(threads)
        products.enabled = before


class World(Protocol):
    """What the episodes of a recipe need."""

    device: str
    ledger: Ledger
    progress: Callable[[int], None]

    @property
    def recipe(self) -> Recipe:
        """What it was made for."""

    @property
    def content(self) -> str:
        """The hash of the data or the tasks."""

    def with_recipe(self, recipe: Any) -> Any:
        """The world of another recipe; what both have in common is made once and shared."""

    def by_content(self) -> dict[str, Any]:
        """Keys of the recipe that are names, as the content they stand for."""

    def facts(self) -> dict[str, Any]:
        """What `meta.json` tells of it."""

    def state(self) -> dict[str, Any]:
        """What a checkpoint tells of how it was trained."""

    def item_ids(self, split: str) -> list[str]:
        """The queries or tasks of a split by their names, in the order they are measured."""

    def empty_policy(self) -> Any:
        """A policy to load weights into, strictly: its own mean nothing."""

    def fresh_policy(self) -> Any:
        """A policy with weights drawn by the recipe's seed."""


def world_of(
    recipe: Recipe,
    ledger: Ledger,
    *,
    device: str = "cpu",
    served: str = "",
    progress: Callable[[int], None] = lambda count: None,
) -> Any:
    """The world of a recipe's family; `progress` hears of every answer or episode."""
    if isinstance(recipe, AgentRecipe):
        from kleash.train.rollout.agent import AgentWorld

        return AgentWorld(recipe, ledger, device=device, progress=progress)
    from kleash.train.rollout.selector import SelectorWorld

    assert isinstance(recipe, SelectorRecipe)
    return SelectorWorld(recipe, ledger, device=device, served=served, progress=progress)


def load_checkpoint(path: Path) -> tuple[Checkpoint, Recipe]:
    """The checkpoint RUN/checkpoints/NAME without its trainer, and the recipe of its run."""
    if path.parent.name != "checkpoints":
        raise CheckpointError(f"{path} is not a checkpoint: give RUN/checkpoints/NAME")
    run = Run.open(path.parent.parent)
    return run.load(path.name, trainer=False), recipe_from(run.config)


def load_policy(run: Run, world: Any, name: str) -> Any:
    """The policy of a checkpoint, strictly, proven to be the one that was trained."""
    found = run.load(name, trainer=False)
    policy = world.empty_policy()
    guard.load_strictly(policy, found.weights, source=f"{run.path}/checkpoints/{name}")
    guard.same_weights(found.state["weights_hash"], fingerprint(policy.state_dict()))
    return policy.to(world.device)


@dataclass(frozen=True)
class Groups:
    """Rewarded episodes of some queries or tasks: group g holds those of one of them.

    Broken ones are in no group: a group that falls below two is dropped, and both are counted.
    """

    batch: Any
    """What the policy judges, choice by choice."""
    episode: Tensor
    """Of every choice, which episode it belongs to."""
    reward: Tensor
    """Of every episode, in double: in float32 episodes with equal rewards could differ."""
    group: Tensor
    logp: Tensor | None
    """Of every choice, how likely it was when sampled; none where it was not."""
    broken: int
    dropped: int
    credit: Tensor | None = None
    """Of every choice, what its episode's advantage is multiplied by."""
    own: Tensor | None = None
    """Of every choice, a value compared with the same turn's of the group, in place of all that."""
    measured: Mapping[str, float] = field(default_factory=dict)
    """What else is logged of these episodes."""
    cache: dict[str, Any] = field(default_factory=dict, compare=False, repr=False)
    """What follows from the rewards alone, for groups that are met again."""

    @property
    def size(self) -> int:
        """How many groups there are."""
        return int(self.group.max()) + 1
