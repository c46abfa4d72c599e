"""What measuring KL costs: whole steps of an agent with its reference and without one.

Without, nothing is known of KL and no leash could act; only this bench does so. Both play the same
episodes from the same weights and make the same update, one after the other, turn by turn.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kleash.train.rollout import Groups
    from kleash.train.update import LeashedPolicy

RECIPE = {
    "env": "intention",
    "gym": {"surface": "tokens", "limit": 7},
    "supervised": {"epochs": 1, "dialogues": 800},
    "turn_tokens": 4,
    "leash": {"form": "k3", "coefficient": 0.01},
}


def without_reference(leashed: LeashedPolicy) -> None:
    """Have a leash judge its policy alone: KL is taken as 0, and costs nothing."""
    import torch

    def judged(batch: Any, reference: Any) -> Any:
        found = leashed.policy.judge(batch)
        zero = torch.zeros_like(found.logp)
        return replace(found, logp_ref=found.logp.detach(), exact_kl=zero, forward_kl=zero)

    leashed.judged = judged  # type: ignore[method-assign]


def leash_bench(*, steps: int = 12) -> dict[str, Any]:
    """Seconds of CPU of a step, played and updated, with KL measured and without."""
    from kleash.algo.policy import Reference
    from kleash.runs.ledger import Ledger
    from kleash.train.optimizer import Optimizer
    from kleash.train.recipe import recipe_from
    from kleash.train.rollout import load_checkpoint, one_way
    from kleash.train.rollout.agent import AgentWorld, play_groups
    from kleash.train.training import train
    from kleash.train.update import LeashedPolicy

    with (
        one_way(),
        tempfile.TemporaryDirectory() as spare,
        Ledger(Path(spare) / "ledger.sqlite") as ledger,
    ):
        recipe: Any = recipe_from(RECIPE, {"phase": "supervised"})
        world = AgentWorld(recipe, ledger)
        run = train(Path(spare) / "base", recipe, {}, world)
        weights = load_checkpoint(run.path / "checkpoints" / run.checkpoints()[-1])[0].weights
        policy = world.empty_policy()
        policy.load_state_dict(weights)
        engine, tasks = world.engine(policy), world.tasks("train")[: recipe.batch]
        spent: dict[str, list[float]] = {"playing": [], "with KL": [], "without": []}
        for step in range(steps):
            began = time.process_time()
            groups = play_groups(engine, policy, world, tasks, ("bench", step))
            spent["playing"].append(time.process_time() - began)
            for way in ("with KL", "without") if step % 2 else ("without", "with KL"):
                policy.load_state_dict(weights)
                optimizer = Optimizer(policy, 1e-3, 1.0, str)
                leashed = LeashedPolicy(recipe, policy, Reference(policy), optimizer, steps)
                leashed.split = lambda batch: policy.parts(batch, recipe.part_tokens)
                if way == "without":
                    without_reference(leashed)
                spent[way].append(seconds_of(leashed, groups))
            policy.load_state_dict(weights)
            engine.refresh(policy)
    median = {name: statistics.median(times) for name, times in spent.items()}
    whole, bare = (median["playing"] + median[way] for way in ("with KL", "without"))
    return {
        "seconds of CPU, playing": median["playing"],
        "seconds of CPU, update with KL": median["with KL"],
        "seconds of CPU, update without": median["without"],
        "whole step, times that without KL": whole / bare,
        "share of the step that KL takes": 1 - bare / whole,
    }


def seconds_of(leashed: LeashedPolicy, groups: Groups) -> float:
    """The CPU time of learning from these groups."""
    began = time.process_time()
    leashed.update_on_batch(groups)
    return time.process_time() - began
