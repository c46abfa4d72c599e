"""Pointers that a trained selector proposes: its likeliest ones, and samples at temperatures."""

from __future__ import annotations

from pathlib import Path

import torch

from kleash import guard
from kleash.demos.propose import Proposal, Proposing
from kleash.errors import ConfigError
from kleash.policy import Noise, keyed_noise
from kleash.recipe import SelectorRecipe
from kleash.rollout import load_checkpoint
from kleash.selector import STOP, Queries, Selector


def selector_at(path: str, width: int) -> Selector:
    """The selector of a checkpoint, loaded strictly for embeddings of this width."""
    kept, recipe = load_checkpoint(Path(path))
    if not isinstance(recipe, SelectorRecipe):
        raise ConfigError(f"propose.policy {path!r} is an agent's checkpoint: give a selector's")
    if recipe.blocks().towers != "fixed":
        raise ConfigError(
            f"propose.policy {path!r} chooses by towers of its own: give one that was trained"
            " without +lora"
        )
    policy = Selector(recipe.blocks(), width, None)
    guard.load_strictly(policy, kept.weights, source=path)
    return policy


@torch.no_grad()
def chosen_by(
    policy: Selector, queries: Queries, proposing: Proposing, shots: int, seed: int
) -> list[list[Proposal]]:
    """What the selector proposes for each query; pointers that stop early are left out."""
    found: list[list[Proposal]] = [[] for _ in range(len(queries))]
    settled = policy.settle(queries)
    if proposing.policy_beams:
        pointers, _ = policy.beams(settled, shots, proposing.policy_beams)
        for query, pointer in zip(pointers.query_P.tolist(), pointers.lists(), strict=True):
            if STOP not in pointer:
                found[query].append(Proposal(pointer, "policy"))
    for heat in proposing.temperatures if proposing.samples else ():
        query_P = torch.arange(len(queries), device=queries.mask_BK.device)
        query_P = query_P.repeat_interleave(proposing.samples)
        keys = [
            (seed, "propose", "sample", heat, task, draw)
            for task in queries.tasks
            for draw in range(proposing.samples)
        ]
        pointers, _ = policy.choose(
            settled, shots, hotter(keyed_noise(keys), heat), query_P=query_P
        )
        for query, pointer in zip(query_P.tolist(), pointers.lists(), strict=True):
            if STOP not in pointer:
                found[query].append(Proposal(pointer, "sample"))
    return found


def hotter(noise: Noise, heat: float) -> Noise:
    """Noise with which the largest is a draw at this temperature (the Gumbel trick, scaled)."""
    return lambda index, step, size: heat * noise(index, step, size)
