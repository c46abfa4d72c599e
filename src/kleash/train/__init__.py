"""One run: warm-up, then GRPO on a leash; from fresh weights or a checkpoint.

`loop` goes through the phases and keeps checkpoints, `update` makes one batch's updates on a leash;
`selector` and `agent` are what the families do in each phase; several processes that train one
agent go together by `ranks`. How groups are made is in `rollout`, what must not pass in `guard`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from torch import Tensor, nn

from kleash import guard
from kleash.config import merge
from kleash.policy import fingerprint
from kleash.recipe import AgentRecipe, Recipe, SelectorRecipe
from kleash.rollout import World, load_checkpoint
from kleash.runs import Run, identity, machine_facts, revision_facts
from kleash.sinks import open_sinks
from kleash.train import ranks
from kleash.train.loop import Trainer
from kleash.train.selector import SelectorTrainer
from kleash.types import Heard, Listener

__all__ = ["Heard", "Listener", "Stopped", "Trainer", "prepare", "train"]


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
    sinks: Sequence[str] = (),
) -> Run:
    """The run of a recipe: begun, gone on with, or extended, until it is finished.

    Sinks are opened under the run's lock, so that two processes never log one run. Where several
    ranks train it, all call this; only the first tells the listener and the sinks.
    """
    ranks.check(recipe)
    plain = ranks.first(lambda: prepare(folder, recipe, given, world))
    run = ranks.shared(plain)
    if not ranks.is_first():
        listen, sinks = silent, ()
    with run.lock():
        if run.finished and run.config["epochs"] >= recipe.epochs:
            return plain
        run.reopen(recipe.resolved(), given, ranks.first(lambda: facts(recipe, world)))
        with open_sinks(sinks, run, listen) as told:
            trainer = trainer_of(recipe)
            try:
                trainer(run, recipe, world, base_weights(recipe), told).run_phases()
            except KeyboardInterrupt:
                raise Stopped(plain) from None
            run.finish()
    return plain


class Stopped(KeyboardInterrupt):
    """Ctrl-C, with the run that it stopped: called again it goes on from its last checkpoint."""

    def __init__(self, run: Run) -> None:
        super().__init__(str(run.path))
        self.run = run


def silent(heard: Heard) -> None:
    """For all ranks but the first."""


def facts(recipe: Recipe, world: World) -> dict[str, Any]:
    """What a run is made from, by content. What does not fit is refused before a folder is made."""
    policy = world.empty_policy()
    base = fitting(policy, recipe.start)
    tied = recipe.leash.reference_path if recipe.leash.reference == "path" else ""
    reference = fitting(policy, tied)
    if isinstance(recipe, SelectorRecipe):
        policy.freeze(recipe.freeze)
    by_content = {"from": "", "leash": {"reference_path": reference}} | world.by_content()
    whole = merge(recipe.resolved(), by_content)
    return {
        "identity": identity(whole, world.content, base, length=recipe.length_keys()),
        "data": world.content,
        "base": base,
        "reference": reference,
        "trainable_share": trainable_share(policy),
        **world.facts(),
        **revision_facts(),
    }


def fitting(policy: nn.Module, path: str) -> str | None:
    """The hash of a checkpoint's weights, which fit the policy; none without a path."""
    if not path:
        return None
    weights = load_checkpoint(Path(path))[0].weights
    guard.load_strictly(policy, weights, source=path)
    return fingerprint(weights)


def trainable_share(policy: nn.Module) -> float:
    """The share of the policy's numbers that train in the GRPO phase."""
    trained = sum(p.numel() for p in policy.parameters() if p.requires_grad)
    return trained / sum(p.numel() for p in policy.parameters())


def base_weights(recipe: Recipe) -> dict[str, Tensor] | None:
    """The weights a run starts from, if not fresh ones."""
    return load_checkpoint(Path(recipe.start))[0].weights if recipe.start else None


def trainer_of(recipe: Recipe) -> type[Trainer]:
    """How the recipe's family is trained."""
    if isinstance(recipe, AgentRecipe) and ranks.count() > 1:
        from kleash.train.ranked import RankedTrainer

        return RankedTrainer
    if isinstance(recipe, AgentRecipe):
        from kleash.train.agent import AgentTrainer

        return AgentTrainer
    return SelectorTrainer
