"""One run: warm-up, then GRPO on a leash; from fresh weights or a checkpoint.

`loop` goes through the phases and keeps checkpoints, `update` makes one batch's updates on a leash,
`optimizer` one step; `selector` and `agent` are what the families do in each phase; several
processes that train one agent go together by `ranks`. How groups are made is in `rollout`, what
must not pass in `guard`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from torch import Tensor, nn

from kleash.algo import guard
from kleash.algo.policy import fingerprint
from kleash.config import merge
from kleash.runs.run import Run, identity, machine_facts, revision_facts
from kleash.runs.sinks import open_sinks
from kleash.train import checkpoints, ranks
from kleash.train.loop import Trainer
from kleash.train.recipe import AgentRecipe, Recipe, SelectorRecipe
from kleash.train.rollout import World, load_checkpoint, one_way
from kleash.train.selector import SelectorTrainer
from kleash.types import Heard, Listener

__all__ = ["Heard", "Listener", "Stopped", "Trainer", "train"]


@one_way()
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
    began = start_policy(recipe, world)
    known = ranks.first(lambda: facts(recipe, world, began))
    config = recipe.resolved()
    plain = ranks.first(lambda: Run.create(folder, config, given, known | machine_facts()))
    run = checkpoints.shared(plain)
    if not ranks.is_first():
        listen, sinks = silent, ()
    with run.lock():
        if run.finished and run.config["epochs"] >= recipe.epochs:
            return plain
        run.reopen(config, given, known)
        with open_sinks(sinks, run, listen) as listener:
            trainer = trainer_of(recipe)
            try:
                trainer(run, recipe, world, began[0], listener).run_phases()
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


def facts(
    recipe: Recipe, world: World, began: tuple[Any, str | None] | None = None
) -> dict[str, Any]:
    """What a run is made from, by content. What does not fit is refused before a folder is made.

    `began` is its `start_policy`, where that was made already.
    """
    policy, base = start_policy(recipe, world) if began is None else began
    tied = recipe.leash.reference_path if recipe.leash.reference == "path" else ""
    reference = fitting(policy, tied)
    by_content = {"from": "", "leash": {"reference_path": reference}} | world.by_content()
    whole = merge(recipe.resolved(), by_content)
    return {
        "identity": identity(whole, world.content, base, length=recipe.length_keys()),
        "data": world.content,
        "base": base,
        "reference": reference,
        "trainable_share": trainable_share(recipe, policy),
        **world.facts(),
        **revision_facts(),
    }


def start_policy(recipe: Recipe, world: World) -> tuple[Any, str | None]:
    """The policy before the first step, and the hash of the weights it starts from, if any."""
    weights = base_weights(recipe)
    if weights is None:
        return world.fresh_policy(), None
    policy = world.empty_policy()
    guard.load_strictly(policy, weights, source=recipe.start)
    return policy, fingerprint(weights)


def fitting(policy: nn.Module, path: str) -> str | None:
    """The hash of a checkpoint's weights, which would fit the policy; none without a path."""
    if not path:
        return None
    weights = load_checkpoint(Path(path))[0].weights
    guard.fits_strictly(policy, weights, source=path)
    return fingerprint(weights)


def trainable_share(recipe: Recipe, policy: Any) -> float:
    """The share of the policy's numbers that train in the GRPO phase."""
    before = [p for p in policy.parameters() if p.requires_grad]
    if isinstance(recipe, SelectorRecipe):
        policy.freeze(recipe.freeze)
    trained: int = sum(p.numel() for p in policy.parameters() if p.requires_grad)
    for parameter in before:  # earlier phases train them all
        parameter.requires_grad_(True)
    return float(trained / sum(p.numel() for p in policy.parameters()))


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
