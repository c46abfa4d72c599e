"""How a selector is trained: imitation, reward-weighted imitation, then GRPO on its groups.

Groups are sampled as training goes on, or are the proposals that were answered before (`Offline`).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from kleash.algo import guard
from kleash.algo.grpo import group_mean
from kleash.algo.kl import episode_sum, measure
from kleash.algo.policy import Reference, judge_logits, keyed_noise
from kleash.errors import DataError
from kleash.models.selector import Pointers, Selector, exact_sequence_kl
from kleash.seeds import generator
from kleash.train.loop import Rollout, Totals, Trainer
from kleash.train.recipe import Phase, SelectorRecipe
from kleash.train.rollout import Groups
from kleash.train.rollout.proposed import (
    Proposals,
    best_pointers,
    buy_proposals,
    proposal_groups,
    through_view,
)
from kleash.train.rollout.selector import SelectorWorld, sample_groups
from kleash.train.update import LeashedPolicy

VALIDATION_PROPOSALS = 100
PROBE_QUERIES, PROBE_ROLLOUTS = 64, 4
AT_ONCE = 64  # queries whose proposals are judged together


class SelectorTrainer(Trainer):
    """A selector's phases."""

    SCORE, MARGIN = "accuracy", 0.01
    recipe: SelectorRecipe
    world: SelectorWorld
    policy: Selector

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.bought: dict[str, Proposals] = {}
        self.offline: Offline | None = None
        self.ref_logits: dict[str, Tensor] = {}

    def prepare(self, phase: Phase) -> None:
        """Blocks that do not train in GRPO are frozen when it begins."""
        if phase == "grpo":
            self.policy.freeze(self.recipe.freeze)

    def ready(self, phase: Phase) -> None:
        """Groups that are not sampled are made of the proposals."""
        if phase == "grpo" and self.recipe.source == "offline":
            self.offline = Offline(self.world, self.view_of_proposals(), self.policy)

    def lr(self, phase: Phase) -> float:
        """Each phase has its own."""
        rates = {"supervised": self.recipe.supervised.lr, "rce": self.recipe.rce.lr}
        return rates.get(phase, self.recipe.lr)

    def steps_in_epoch(self) -> int:
        """Until every training query was met that is trained on."""
        kept = self.queries_used("grpo")
        count = len(self.world.queries("train")) if kept is None else len(kept)
        return math.ceil(count / self.recipe.batch)

    def probe(self, reference: Reference) -> dict[str, float]:
        """KL on queries and noise that every arm shares."""
        return probe(self.policy, reference.policy, self.world)

    def validate(self) -> dict[str, float]:
        """Loss and accuracy."""
        return validation(self.policy, self.world, self.proposals("validation"))

    def why_broken(self) -> str:
        """As the answerer says it."""
        return self.world.ask.error

    def speed(self, trained: float) -> dict[str, float]:
        """Queries trained on in a second."""
        return {"queries_per_second": len(self.world.queries("train")) / trained}

    def teach(self, phase: Phase, epoch: int, epochs: int) -> dict[str, Any]:
        """Supervised or RCE."""
        if phase == "supervised":
            return self.supervised_epoch(epoch, epochs)
        return self.rce_epoch(epoch, epochs)

    def supervised_epoch(self, epoch: int, epochs: int) -> dict[str, Any]:
        """Cross-entropy of the pointer that made the true answer likeliest."""
        bought, queries, totals = self.proposals("train"), self.world.queries("train"), Totals()
        for places in self.batches("supervised", epoch):
            batch = best_pointers(queries, bought, places)
            loss = -episode_sum(self.policy.judge(batch).logp, batch.episode).mean()
            norm, used = self.optimizer.step([loss], batch), len(batch.queries)
            dropped = float(len(places) - used)
            totals.add(used, loss=loss.item(), grad_norm=norm, dropped_groups=dropped)
        record = totals.means() | {"positive_share": bought.positive_share()}
        size, shots = self.recipe.pool.size, self.recipe.shots
        if epoch == epochs:  # the first one always begins near it
            self.note(guard.loss_beside_uniform(record["loss"], size, shots))
        return record | {"uniform_loss": guard.uniform_loss(size, shots)}

    def rce_epoch(self, epoch: int, epochs: int) -> dict[str, Any]:
        """Σ softmax(R/τ) × cross-entropy over the proposals of a query; τ falls linearly."""
        bought, rce, totals = self.view_of_proposals(), self.recipe.rce, Totals()
        queries = self.world.queries("train")
        tau = rce.hot + (rce.cold - rce.hot) * (epoch - 1) / max(epochs - 1, 1)
        for places in self.batches("rce", epoch):
            groups = proposal_groups(queries, bought, places)
            judged = self.policy.judge(groups.batch)
            cost = -episode_sum(judged.logp, groups.episode)
            heat = (groups.reward.double() / tau).exp()
            size = groups.group.bincount()[groups.group]
            share = heat / (group_mean(heat, groups.group) * size)
            loss = (share * cost).sum() / groups.size
            norm = self.optimizer.step([loss], groups.batch)
            broken = {"broken": float(groups.broken), "dropped_groups": float(groups.dropped)}
            totals.add(groups.size, loss=loss.item(), grad_norm=norm, **broken)
        told = {"tau": tau, "positive_share": bought.positive_share(), **totals.means()}
        return told | self.view_counts(bought)

    def rollouts(self, leashed: LeashedPolicy, epoch: int) -> Iterator[Rollout]:
        """Pointers sampled and answered for every query of a batch, or its proposals."""
        offline = self.offline
        if offline is None:
            for places in self.batches("grpo", epoch):
                draw = ("grpo", epoch)
                yield Rollout(sample_groups(self.policy, self.world, "train", places, draw))
            return
        past = offline.logp(self.policy)
        if leashed.reference.stands and not self.ref_logits:  # which then never change
            self.ref_logits = offline.logits(leashed.reference.policy)
        for places in self.batches("grpo", epoch):
            groups = offline.groups(places)
            yield Rollout(
                groups, values_of_batch(past, groups), values_of_batch(self.ref_logits, groups)
            )

    def epoch_facts(self, record: Mapping[str, Any]) -> dict[str, Any]:
        """How many of the offline pointers had any reward, and what a view has left."""
        if self.offline is None:
            return {}
        bought = self.offline.bought
        return {"positive_share": bought.positive_share()} | self.view_counts(bought)

    def proposals(self, split: str) -> Proposals:
        """The proposals of a split, answered; asked for once."""
        if split not in self.bought:
            count = len(self.world.queries(split))
            most = count if split == "train" else min(count, VALIDATION_PROPOSALS)
            bought = self.bought[split] = buy_proposals(self.world, split, most)
            if split == "train":
                self.run.learn(positive_share=bought.positive_share(), health=bought.health())
        return self.bought[split]

    def view_of_proposals(self) -> Proposals:
        """The proposals of the training queries through the recipe's view."""
        bought, view = self.proposals("train"), self.recipe.view
        if not view.is_set:
            return bought
        if "view" not in self.bought:
            names = self.world.item_ids("train")
            self.bought["view"] = through_view(bought, view, names, self.recipe.seed)
            self.run.learn(view=dict(self.bought["view"].counts))
        return self.bought["view"]

    @staticmethod
    def view_counts(bought: Proposals) -> dict[str, float]:
        """How much a view has left, for an epoch's line; nothing without one."""
        return {f"view/{name}": value for name, value in bought.counts.items()}

    def queries_used(self, phase: Phase) -> set[int] | None:
        """The training queries that a phase uses; None for all of them."""
        shapes = phase == "rce" or (phase == "grpo" and self.recipe.source == "offline")
        if not self.recipe.view.is_set or not shapes:
            return None
        return set(self.view_of_proposals().kept or ())

    def tensors_of(self, batch: Pointers) -> dict[str, Tensor]:
        """Its queries, pools and pointers."""
        return {
            "query": batch.queries.query_BD,
            "pool": batch.queries.pool_BKD,
            "pointer_query": batch.query_P,
            "pointer": batch.chosen_PT,
        }

    def batches(self, phase: Phase, epoch: int) -> Iterator[list[int]]:
        """The training queries in this epoch's order, some at a time."""
        count = len(self.world.queries("train"))
        order = generator("order", self.recipe.seed, phase, epoch).permutation(count).tolist()
        kept = self.queries_used(phase)
        order = [place for place in order if kept is None or place in kept]
        for start in range(0, len(order), self.recipe.batch):
            yield order[start : start + self.recipe.batch]


# --- offline groups


class Offline:
    """The proposals of all training queries as groups, and what stands still while they train.

    The reference and the policy that an epoch began with judge all proposals at once, many queries
    at a time, and not again for every update. Always the same queries together, so that the numbers
    do not depend on the order of an epoch or on where a run was gone on with.
    """

    def __init__(self, world: SelectorWorld, bought: Proposals, policy: Selector) -> None:
        self.bought, self.queries = bought, world.queries("train")
        # Frozen towers and projections make the same of the queries in every update.
        before = [part for part in (policy.towers, policy.projections) if part is not None]
        if not any(p.requires_grad for part in before for p in part.parameters()):
            self.queries = policy.project(self.queries)
        self.places = range(len(self.queries)) if bought.kept is None else bought.kept
        self.alone: dict[int, Groups] = {}

    def groups(self, places: Sequence[int]) -> Groups:
        """The groups of some queries; those of a lone query are kept, with all they work out."""
        if len(places) > 1:
            return proposal_groups(self.queries, self.bought, places)
        place = places[0]
        if place not in self.alone:
            self.alone[place] = proposal_groups(self.queries, self.bought, places)
        return self.alone[place]

    def logits(self, policy: Selector) -> dict[str, Tensor]:
        """Of every query, a policy's logits [n,A] at the choices of its group."""
        found: dict[str, Tensor] = {}
        for pointers, logits_NA in self.judged(policy):
            found |= by_query(logits_NA, pointers)
        return found

    def logp(self, policy: Selector) -> dict[str, Tensor]:
        """Of every query, how likely each choice of its group is to a policy."""
        found: dict[str, Tensor] = {}
        for pointers, logits_NA in self.judged(policy):
            found |= by_query(judge_logits(logits_NA, policy.chosen(pointers)).logp, pointers)
        return found

    @torch.no_grad()
    def judged(self, policy: Selector) -> Iterator[tuple[Pointers, Tensor]]:
        """All pointers with a policy's logits, many queries at a time."""
        queries = policy.project(self.queries)
        for start in range(0, len(self.places), AT_ONCE):
            places = self.places[start : start + AT_ONCE]
            pointers = proposal_groups(queries, self.bought, places).batch
            yield pointers, policy.logits(pointers)


def by_query(values: Tensor, pointers: Pointers) -> dict[str, Tensor]:
    """Values of choices end to end, query by query."""
    sizes = pointers.query_P[pointers.episode].bincount().tolist()
    return dict(zip(pointers.queries.tasks, values.split(sizes), strict=True))


def values_of_batch(values: dict[str, Tensor], groups: Groups) -> Tensor | None:
    """The values of a batch, from those of its queries; none where none were worked out."""
    if not values:
        return None
    parts = [values[task] for task in groups.batch.queries.tasks]
    return parts[0] if len(parts) == 1 else torch.cat(parts)


# --- what is measured while a run trains


@torch.no_grad()
def validation(policy: Selector, world: SelectorWorld, bought: Proposals) -> dict[str, float]:
    """The loss of the best proposals beside a blind choice's; the accuracy of greedy choices."""
    recipe, queries = world.recipe, policy.project(world.queries("validation"))
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
    queries = policy.project(whole.take(range(min(PROBE_QUERIES, len(whole)))))
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
