"""One run: supervised, then RCE, then GRPO on a leash; from fresh weights or a checkpoint.

`loop` goes through the phases and keeps checkpoints, `update` makes one batch's updates on a leash,
`watch` validates and measures. How groups are made is in `rollout`, what must not pass in `guard`.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from torch import Tensor

from kleash.policy import fingerprint
from kleash.recipe import Recipe
from kleash.rollout import World, load_checkpoint
from kleash.runs import Run, identity, machine_facts, revision_facts
from kleash.train.loop import Heard, Listener, Trainer

__all__ = ["Heard", "Listener", "Trainer", "prepare", "train"]


def prepare(folder: Path, recipe: Recipe, given: Mapping[str, Any], world: World) -> Run:
    """The run of a recipe in a folder, new or as it stands; nothing is trained yet."""
    return Run.create(folder, recipe.resolved(), given, facts(recipe, world) | machine_facts())


def train(
    folder: Path,
    recipe: Recipe,
    given: Mapping[str, Any],
    world: World,
    *,
    listen: Listener = lambda heard: None,
) -> Run:
    """The run of a recipe: begun, gone on with, or extended, until it is finished."""
    run = prepare(folder, recipe, given, world)
    with run.lock():
        if run.finished and run.config["epochs"] >= recipe.epochs:
            return run
        run.reopen(recipe.resolved(), given, facts(recipe, world))
        Trainer(run, recipe, world, base_weights(recipe), listen).run_phases()
        run.finish()
    return run


def facts(recipe: Recipe, world: World) -> dict[str, Any]:
    """What a run is made from, by content."""
    base = base_weights(recipe)
    hashed = None if base is None else fingerprint(base)
    return {
        "identity": identity(
            recipe.resolved() | {"from": ""},
            world.data.content,
            hashed,
            length=recipe.length_keys(),
        ),
        "data": world.data.content,
        "base": hashed,
        "answerer": world.answerer.identity,
        "pool": recipe.pool.maker,
        **revision_facts(),
    }


def base_weights(recipe: Recipe) -> dict[str, Tensor] | None:
    """The weights a run starts from, if not fresh ones."""
    return load_checkpoint(Path(recipe.start))[0].weights if recipe.start else None
