"""What is measured while a run trains: validation, and KL on a probe set that every arm shares."""

from __future__ import annotations

import math

import numpy as np
import torch

from kleash import guard
from kleash.errors import DataError
from kleash.kl import episode_sum, measure
from kleash.policy import keyed_noise
from kleash.rollout.proposed import Bought, best_pointers
from kleash.rollout.selector import SelectorWorld
from kleash.selector import Selector, exact_sequence_kl

PROBE_QUERIES, PROBE_ROLLOUTS = 64, 4


@torch.no_grad()
def validation(policy: Selector, world: SelectorWorld, bought: Bought) -> dict[str, float]:
    """The loss of the best proposals beside a blind choice's; the accuracy of greedy choices."""
    recipe, queries = world.recipe, policy.settle(world.queries("validation"))
    batch = best_pointers(queries, bought, range(len(bought.pointers)))
    loss = -episode_sum(policy.judge(batch).logp, batch.episode).mean().item()
    chosen, _ = policy.choose(queries, recipe.shots)
    _, answers = world.rewards("validation", list(enumerate(chosen.lists())))
    items = world.pooled("validation").queries
    scores = [
        world.score(answer.text, item)
        for answer, item in zip(answers, items, strict=True)
        if answer is not None
    ]
    if len(scores) < 2:
        raise DataError(f"{len(answers) - len(scores)} of {len(answers)} validation answers broke")
    return {
        "validation/loss": loss,
        "validation/uniform_loss": guard.uniform_loss(recipe.pool.size, recipe.shots),
        "validation/accuracy": float(np.mean(scores)),
        "validation/accuracy_se": float(np.std(scores, ddof=1)) / math.sqrt(len(scores)),
        "validation/n": len(scores),
        "validation/broken": len(answers) - len(scores),
    }


@torch.no_grad()
def probe(policy: Selector, reference: Selector, world: SelectorWorld) -> dict[str, float]:
    """KL, entropy and diversity of fresh samples on queries and noise that every arm shares."""
    recipe, whole = world.recipe, world.queries("validation")
    queries = policy.settle(whole.take(range(min(PROBE_QUERIES, len(whole)))))
    query_P = torch.arange(len(queries), device=queries.mask_BK.device)
    keys = [
        (recipe.seed, "probe", task, rollout)
        for task in queries.tasks
        for rollout in range(PROBE_ROLLOUTS)
    ]
    pointers, _ = policy.choose(
        queries,
        recipe.shots,
        keyed_noise(keys),
        query_P=query_P.repeat_interleave(PROBE_ROLLOUTS),
    )
    judged = policy.judge(pointers, reference)
    found = measure(
        pointers.episode,
        logp=judged.logp,
        logp_ref=judged.logp_ref,
        exact_kl=judged.exact_kl,
        forward_kl=judged.forward_kl,
    )
    lists = pointers.lists()
    groups = [lists[i : i + PROBE_ROLLOUTS] for i in range(0, len(lists), PROBE_ROLLOUTS)]
    found["entropy"] = judged.entropy.mean().item()
    found["distinct"] = sum(len(set(group)) for group in groups) / len(lists)
    if recipe.shots <= 2:
        kl = exact_sequence_kl(policy, reference, queries, recipe.shots)
        found["kl/ref/enumerated"] = kl.mean().item()
    return {f"probe/{name}": value for name, value in found.items()}
