"""How a selector is trained: imitation, reward-weighted imitation, then GRPO on its groups."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from torch import Tensor

from kleash import guard
from kleash.grpo import group_mean
from kleash.kl import episode_sum
from kleash.policy import Judged
from kleash.recipe import Phase, SelectorRecipe
from kleash.rollout import Groups
from kleash.rollout.proposed import (
    Bought,
    best_pointers,
    buy_proposals,
    proposal_groups,
    viewed,
)
from kleash.rollout.selector import SelectorWorld, sample_groups
from kleash.seeds import generator
from kleash.selector import Pointers, Selector
from kleash.train.loop import Trainer
from kleash.train.offline import Offline, joined
from kleash.train.totals import Totals
from kleash.train.update import Leashed
from kleash.train.watch import probe, validation

VALIDATION_PROPOSALS = 100


class SelectorTrainer(Trainer):
    """A selector's phases."""

    SCORE, MARGIN = "accuracy", 0.01
    recipe: SelectorRecipe
    world: SelectorWorld
    policy: Selector

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.bought: dict[str, Bought] = {}
        self.offline: Offline | None = None
        self.tied: dict[str, Tensor] = {}

    def begin(self, phase: Phase, epochs: int) -> None:
        """Blocks that do not train in GRPO are frozen when it begins."""
        if phase == "grpo":
            self.policy.freeze(self.recipe.freeze)
        super().begin(phase, epochs)
        if phase == "grpo" and self.recipe.source == "offline":
            self.offline = Offline(self.world, self.shaped(), self.policy)

    def rate(self, phase: Phase) -> float:
        """Each phase has its own."""
        rates = {"supervised": self.recipe.supervised.lr, "rce": self.recipe.rce.lr}
        return rates.get(phase, self.recipe.lr)

    def steps_in_epoch(self) -> int:
        """Until every training query was met that is trained on."""
        kept = self.kept("grpo")
        count = len(self.world.queries("train")) if kept is None else len(kept)
        return math.ceil(count / self.recipe.batch)

    def probe(self, leashed: Leashed) -> dict[str, float]:
        """KL on queries and noise that every arm shares."""
        return probe(self.policy, leashed.reference.policy, self.world)

    def validate(self) -> dict[str, float]:
        """Loss and accuracy."""
        return validation(self.policy, self.world, self.proposed("validation"))

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
        bought, queries, totals = self.proposed("train"), self.world.queries("train"), Totals()
        for places in self.batches("supervised", epoch):
            batch = best_pointers(queries, bought, places)
            loss = -episode_sum(self.policy.judge(batch).logp, batch.episode).mean()
            norm, used = self.descent.down([loss], batch), len(batch.queries)
            dropped = float(len(places) - used)
            totals.add(used, loss=loss.item(), grad_norm=norm, dropped_groups=dropped)
        record = totals.means() | {"positive_share": bought.positive_share()}
        size, shots = self.recipe.pool.size, self.recipe.shots
        if epoch == epochs:  # the first one always begins near it
            self.note(guard.loss_beside_uniform(record["loss"], size, shots))
        return record | {"uniform_loss": guard.uniform_loss(size, shots)}

    def rce_epoch(self, epoch: int, epochs: int) -> dict[str, Any]:
        """Σ softmax(R/τ) × cross-entropy over the proposals of a query; τ falls linearly."""
        bought, rce, totals = self.shaped(), self.recipe.rce, Totals()
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
            norm = self.descent.down([loss], groups.batch)
            broken = {"broken": float(groups.broken), "dropped_groups": float(groups.dropped)}
            totals.add(groups.size, loss=loss.item(), grad_norm=norm, **broken)
        told = {"tau": tau, "positive_share": bought.positive_share(), **totals.means()}
        return told | self.seen(bought)

    def learnt(
        self, leashed: Leashed, epoch: int
    ) -> Iterator[tuple[Groups, dict[str, float], Judged | None]]:
        """Groups, advantages, the leash, clipped updates."""
        offline = self.offline
        past = {} if offline is None else offline.logp(self.policy)
        tied = self.tied_logits(leashed)
        for places in self.batches("grpo", epoch):
            if offline is not None:
                groups = offline.groups(places)
                record, _ = leashed.learn(groups, joined(past, groups), joined(tied, groups))
                yield groups, record, None
            else:
                groups = sample_groups(self.policy, self.world, "train", places, ("grpo", epoch))
                yield groups, *leashed.learn(groups)

    def grpo_epoch(self, leashed: Leashed, epoch: int) -> dict[str, Any]:
        """Also how many of the offline pointers had any reward."""
        record = super().grpo_epoch(leashed, epoch)
        if self.offline is not None:
            record["positive_share"] = self.offline.bought.positive_share()
            record |= self.seen(self.offline.bought)
        return record

    def tied_logits(self, leashed: Leashed) -> dict[str, Tensor]:
        """The reference's logits on offline groups, worked out once if it never moves."""
        if self.offline is not None and not self.tied and leashed.reference.stands:
            self.tied = self.offline.logits(leashed.reference.policy)
        return self.tied

    def proposed(self, split: str) -> Bought:
        """The proposals of a split, answered; asked for once."""
        if split not in self.bought:
            count = len(self.world.queries(split))
            most = count if split == "train" else min(count, VALIDATION_PROPOSALS)
            bought = self.bought[split] = buy_proposals(self.world, split, most)
            if split == "train":
                self.run.learn(positive_share=bought.positive_share(), health=bought.health())
        return self.bought[split]

    def shaped(self) -> Bought:
        """The proposals of the training queries through the recipe's view."""
        bought, view = self.proposed("train"), self.recipe.view
        if not view.is_set:
            return bought
        if "view" not in self.bought:
            names = self.world.item_ids("train")
            self.bought["view"] = viewed(bought, view, names, self.recipe.seed)
            self.run.learn(view=dict(self.bought["view"].counts))
        return self.bought["view"]

    @staticmethod
    def seen(bought: Bought) -> dict[str, float]:
        """How much a view has left, for an epoch's line; nothing without one."""
        return {f"view/{name}": value for name, value in bought.counts.items()}

    def kept(self, phase: Phase) -> set[int] | None:
        """The training queries that a phase uses; None for all of them."""
        shapes = phase == "rce" or (phase == "grpo" and self.recipe.source == "offline")
        if not self.recipe.view.is_set or not shapes:
            return None
        return set(self.shaped().kept or ())

    def keep_batch(self, batch: Pointers) -> str:
        """Write the batch that broke, and the weights it broke, beside the run."""
        from safetensors.torch import save_file

        path = self.run.path / f"broken-step-{self.descent.step}.safetensors"
        tensors = {
            "query": batch.queries.query_BD,
            "pool": batch.queries.pool_BKD,
            "pointer_query": batch.query_P,
            "pointer": batch.chosen_PT,
            **{f"weights.{name}": t for name, t in self.policy.state_dict().items()},
        }
        save_file({name: t.detach().cpu().contiguous() for name, t in tensors.items()}, path)
        return str(path)

    def batches(self, phase: Phase, epoch: int) -> Iterator[list[int]]:
        """The training queries in this epoch's order, some at a time."""
        count = len(self.world.queries("train"))
        order = generator("order", self.recipe.seed, phase, epoch).permutation(count).tolist()
        kept = self.kept(phase)
        order = [place for place in order if kept is None or place in kept]
        for start in range(0, len(order), self.recipe.batch):
            yield order[start : start + self.recipe.batch]
