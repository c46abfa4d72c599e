"""What playing ahead saves: steps of an agent whose user takes his time, on the clock.

With staleness 0 the policy waits for its batch, and who plays waits for the policy. With more, a
copy plays the next batches meanwhile. All make as many updates on as many episodes; that they
learn as much from each is not measured here.
"""

from __future__ import annotations

import asyncio
import statistics
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from torch import Tensor

    from kleash.train.rollout.agent import AgentWorld

RECIPE: dict[str, Any] = {
    "env": "intention",
    "gym": {"surface": "tokens", "limit": 7},
    "supervised": {"epochs": 1, "dialogues": 800},
    "turn_tokens": 4,
    "batch": 32,
    "lr": 5e-4,
    "leash": {"form": "k3", "coefficient": 0.01},
    "validation": {"tasks": 4, "training": 0},
}
LATENCY = 0.05  # seconds that a user thinks
STALENESS = (0, 1, 2)


class Thinking:
    """The user of an environment, who takes his time."""

    def __init__(self, env: Any, latency: float) -> None:
        self.env, self.latency = env, latency

    def __getattr__(self, name: str) -> Any:
        return getattr(self.env, name)

    async def step(self, text: str) -> Any:
        """What the user answers, later."""
        await asyncio.sleep(self.latency)
        return await self.env.step(text)


def staleness_bench(
    device: str = "cpu", *, steps: int = 8, rounds: int = 3, latency: float = LATENCY
) -> dict[str, Any]:
    """Seconds of a step on the clock for each staleness, in turns, beside the bound of overlap."""
    from kleash.runs.ledger import Ledger
    from kleash.train.recipe import recipe_from
    from kleash.train.rollout import load_checkpoint, one_way
    from kleash.train.rollout.agent import AgentWorld
    from kleash.train.training import train

    with (
        one_way(),
        tempfile.TemporaryDirectory() as spare,
        Ledger(Path(spare) / "ledger.sqlite") as ledger,
    ):
        recipe: Any = recipe_from(RECIPE, {"phase": "supervised"})
        world = AgentWorld(recipe, ledger, device=device)
        run = train(Path(spare) / "base", recipe, {}, world)
        weights = load_checkpoint(run.path / "checkpoints" / run.checkpoints()[-1])[0].weights
        real = world.gym.make
        world.gym.make = lambda *given, **named: Thinking(  # type: ignore[method-assign]
            real(*given, **named), latency
        )
        spent: dict[int, list[dict[str, float]]] = {behind: [] for behind in STALENESS}
        for _ in range(rounds):
            for behind, found in spent.items():
                asked: Any = {"sampler": {"cap": 2.0 if behind else 0.0, "staleness": behind}}
                other: Any = recipe_from(RECIPE, asked)
                found.append(one_epoch(world.with_recipe(other), weights, steps))
    return told(spent) | {"user's latency, seconds": latency, "steps": steps, "rounds": rounds}


def one_epoch(world: AgentWorld, weights: Mapping[str, Tensor], steps: int) -> dict[str, float]:
    """Steps from these weights: seconds of each on the clock, and what they were spent on."""
    from kleash.algo.policy import Reference
    from kleash.train.optimizer import Optimizer
    from kleash.train.player import Player
    from kleash.train.rollout.agent import make_groups
    from kleash.train.update import LeashedPolicy

    recipe, policy = world.recipe, world.empty_policy()
    policy.load_state_dict(weights)
    leashed = LeashedPolicy(
        recipe, policy, Reference(policy), Optimizer(policy, recipe.lr, 1.0, str), steps
    )
    leashed.split = lambda batch: policy.parts(batch, recipe.part_tokens)
    player = Player(world, policy, recipe.sampler.staleness)
    player.sync_weights()
    tasks, count = world.tasks("train"), recipe.batch
    wanted = [(tasks[i * count : (i + 1) * count], ("bench", i)) for i in range(steps)]
    playing = updating = apart = 0.0
    began = time.monotonic()
    for played in player.batches(wanted):
        groups = make_groups(policy, recipe, played.members)
        before = time.monotonic()
        record, _ = leashed.update_on_batch(groups)
        player.after_update()
        updating += time.monotonic() - before
        playing += played.seconds
        apart += record["kl/sampler/k1/choice/mean"]
    whole = time.monotonic() - began
    player.close()
    found = {"step": whole, "playing": playing, "update": updating, "apart": apart}
    return {name: value / steps for name, value in found.items()}


def told(spent: Mapping[int, list[dict[str, float]]]) -> dict[str, Any]:
    """Medians over rounds, and how many times as fast it was to be stale in the same round."""
    found: dict[str, Any] = {}
    for behind, rounds in spent.items():
        name = f"staleness {behind}: "
        for what in ("step", "playing", "update"):
            found[f"{name}seconds, {what}"] = statistics.median(each[what] for each in rounds)
        found[f"{name}KL of the sampler, nats a choice"] = rounds[0]["apart"]
        ratios = [o["step"] / s["step"] for o, s in zip(spent[0], rounds, strict=True)]
        if behind:
            found[f"{name}times as fast"] = statistics.median(ratios)
            found[f"{name}range"] = (min(ratios), max(ratios))
    parts = [found[f"staleness 0: seconds, {what}"] for what in ("playing", "update")]
    return found | {"most that overlap can give, times": sum(parts) / max(parts)}
