"""The update of a policy on one batch of groups: advantages, the leash, the clipped loss, guards.

A batch is judged micro-batch by micro-batch, each forward and back before the next one is looked
at. In the first update what the policy says of a micro-batch is also its own past, and what the
leash takes off an advantage hangs on that episode alone: so one pass over the batch does both. Only
a leash in the reward needs the whole batch judged before. Who samples and who are the other ranks
is known here no further than what they have to say of a batch. The file is long because one update
is one idea: what is done to a batch, and what is asked of every number on the way.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, TypeVar

import torch
from torch import Tensor

from kleash.algo import guard
from kleash.algo.control import SCHEDULES, Controller
from kleash.algo.grpo import (
    ADVANTAGES,
    WEIGHTS,
    Choices,
    Clip,
    Loss,
    effective_coefficient,
    grpo_loss,
    leash_advantage,
    leash_reward,
    leash_value,
    reward_unit,
    truncated,
)
from kleash.algo.kl import episode_sum, k1, measure
from kleash.algo.policy import Judged, Reference
from kleash.errors import DataError
from kleash.train import ranks
from kleash.train.optimizer import Optimizer
from kleash.train.recipe import AgentRecipe, Recipe
from kleash.train.rollout import Groups

Record = TypeVar("Record", Judged, Choices)
Place = slice | Tensor
"""Which choices of a batch: those of a micro-batch, or all of them."""
WHOLE = slice(None)

IN_ADVANTAGE = ("return_to_go", "exact")
"""The forms that take something off the advantages."""
OTHER_SAMPLER = (
    "; or, where the engine must differ, set sampler.cap=2: each advantage is then weighed by"
    " how much likelier its choice is to the trainer, at most twice"
)


@dataclass(frozen=True)
class Signal:
    """What a batch's rewards are worth before any leash: the same whenever the batch is met."""

    advantage: Tensor
    weight: Tensor
    unit: Tensor | None
    pull: float | None
    """The effective coefficient of a coefficient of 1; none where it has no meaning."""
    share: float
    """Of groups that teach anything."""
    reward: float


def advantage(groups: Groups, reward: Tensor, name: str) -> Tensor:
    """Of every choice: its episode's advantage, shared out by turn where a credit says how."""
    if groups.own is not None:
        return groups.own
    found = ADVANTAGES[name](reward, groups.group)[groups.episode]
    return found if groups.credit is None else found * groups.credit


def signal(groups: Groups, recipe: Recipe) -> Signal:
    """Advantages, weights and units of a batch, from its rewards alone."""
    leash, name, episode = recipe.leash, recipe.advantage, groups.episode
    reward, group = groups.reward, groups.group
    unit = reward_unit(name, reward, group) if leash.scaled else None
    scaled = leash.scaled or leash.form == "reward_k1"
    return Signal(
        advantage=advantage(groups, reward, name),
        weight=WEIGHTS[recipe.weight](episode, group),
        unit=None if unit is None else unit[episode],
        pull=effective_coefficient(1.0, name, reward, group, scaled=scaled),
        share=guard.share_with_signal(reward, group),
        reward=reward.mean().item(),
    )


@dataclass(frozen=True)
class MicroBatch:
    """A part of a batch that is judged at once, and which of the batch's choices it holds."""

    batch: Any
    place: Place
    count: float = 1.0
    """0 for one that is gone through once more only to meet the other ranks."""


def in_order(records: Sequence[Record], places: Sequence[Place]) -> Record:
    """Records of micro-batches as one, in the order of the batch."""
    if len(records) == 1 and isinstance(places[0], slice):
        return records[0]
    columns = {
        f.name: torch.cat([getattr(each, f.name) for each in records])
        for f in fields(records[0])
        if getattr(records[0], f.name) is not None
    }
    if all(isinstance(place, Tensor) for place in places):  # else they were cut in order
        order = torch.cat([place for place in places if isinstance(place, Tensor)]).argsort()
        columns = {name: each[order] for name, each in columns.items()}
    return replace(records[0], **columns)


def without_gradient(judged: Judged) -> Judged:
    """What is kept of a micro-batch after its way back."""
    said = {f.name: getattr(judged, f.name) for f in fields(Judged)}
    return Judged(**{name: each.detach() for name, each in said.items() if each is not None})


def always(reference: Any) -> Callable[[Place], Any]:
    """The same beside every micro-batch."""
    return lambda place: reference


class LeashedPolicy:
    """A policy, its optimizer, and the leash: reference and controller."""

    def __init__(
        self, recipe: Recipe, policy: Any, reference: Reference, optimizer: Optimizer, total: int
    ) -> None:
        self.recipe, self.policy = recipe, policy
        self.reference, self.optimizer, self.total = reference, optimizer, total
        self.controller = Controller(recipe.leash)
        self.split: Callable[[Any], Sequence[tuple[Any, ...]]] = policy.parts
        # Updates with signal until all must move: LoRA's A has a gradient once B, zero, has moved,
        # and what a selector learns beside retrieval once its score has.
        later = getattr(policy, "adapted", False) or getattr(policy, "retrieval", None) is not None
        self.unproven = int(later)

    def update_on_batch(
        self, groups: Groups, logp_old: Tensor | None = None, ref_logits: Tensor | None = None
    ) -> tuple[dict[str, float], Judged]:
        """All updates on a batch; its numbers, and how it was judged before the first of them.

        Without `logp_old` the batch is fresh: the first judging is its own past. `ref_logits` are
        the reference's, where they are known.
        """
        self.check_finite(groups, "the rewards", groups.reward)
        micro_batches = [MicroBatch(*each) for each in self.split(groups.batch)]
        beside = self.beside(groups.batch, ref_logits)
        coefficient = self.controller.coefficient
        if self.recipe.leash.form == "reward_k1" and (len(micro_batches) > 1 or ranks.count() > 1):
            with torch.no_grad():
                seen = [self.judged(micro.batch, beside(micro.place)) for micro in micro_batches]
            judged = self.whole(seen, micro_batches)
            choices = self.checked(groups, judged, logp_old)
            record = self.one_update(self.again(choices, micro_batches, beside), groups)
        else:
            made: list[tuple[Judged, Choices]] = []
            first = self.first_pass(groups, micro_batches, beside, logp_old, made)
            record = self.one_update(first, groups)
            judged = self.whole([each for each, _ in made], micro_batches)
            choices = self.whole([each for _, each in made], micro_batches)
        for _ in range(self.recipe.updates - 1):
            beside = always(self.reference.policy if ref_logits is None else ref_logits)
            record = self.one_update(self.again(choices, micro_batches, beside), groups)
        if ranks.count() > 1 and self.reference.kind != "adapter_off":
            sharded: Any = self.reference.module
            sharded.reshard()  # what is not in a layer was left whole
        value = self.leash_value(choices, record["leash/value"])
        leash = {"leash/value": value, "leash/penalty": coefficient * value}
        return record | leash | self.measured(groups, judged, choices), judged

    # --- passes over the micro-batches

    def first_pass(
        self,
        groups: Groups,
        micro_batches: Sequence[MicroBatch],
        beside: Callable[[Place], Any],
        logp_old: Tensor | None,
        made: list[tuple[Judged, Choices]],
    ) -> Iterator[Choices]:
        """The choices of each micro-batch as it is judged, with the leash on them."""
        for micro in micro_batches:
            judged = self.judged(micro.batch, beside(micro.place))
            old = None if logp_old is None else logp_old[micro.place]
            choices = self.checked(groups, judged, old, micro.place)
            made.append((without_gradient(judged), choices))
            yield self.seen_now(choices, judged, micro)

    def again(
        self,
        choices: Choices,
        micro_batches: Sequence[MicroBatch],
        beside: Callable[[Place], Any],
    ) -> Iterator[Choices]:
        """The choices as the policy sees them now, micro-batch by micro-batch."""
        for micro in micro_batches:
            judged = self.judged(micro.batch, beside(micro.place))
            yield self.seen_now(choices.take(micro.place), judged, micro)

    def seen_now(self, choices: Choices, judged: Judged, micro: MicroBatch) -> Choices:
        """Choices with what the policy says of them now, with gradients."""
        entropy = judged.entropy if self.recipe.entropy_bonus else judged.entropy.detach()
        weight = choices.weight if micro.count == 1 else choices.weight * micro.count
        return replace(
            choices, weight=weight, logp=judged.logp, entropy=entropy, exact_kl=judged.exact_kl
        )

    def beside(self, batch: Any, ref_logits: Tensor | None) -> Callable[[Place], Any]:
        """What each micro-batch is judged beside in its first pass.

        A packed reference goes over the whole batch before, so that it may be streamed from
        elsewhere; on several ranks, where each has its own packs, it goes pack by pack.
        """
        reference = self.reference.policy if ref_logits is None else ref_logits
        packed = getattr(self.policy, "packing", None) is not None and ref_logits is None
        if not packed or ranks.count() > 1:
            return always(reference)
        head = self.policy.tie(batch, reference)
        return lambda place: head.take(place)

    def judged(self, batch: Any, reference: Any) -> Judged:
        """What the policy says of a micro-batch, beside its reference."""
        found: Judged = self.policy.judge(batch, reference)
        return found

    def whole(self, own: Sequence[Record], micro_batches: Sequence[MicroBatch]) -> Record:
        """Records of the micro-batches as one of the batch, each of all ranks' once."""
        both = zip(micro_batches, own, strict=True)
        found = [(micro.place, record) for micro, record in both if micro.count]
        if ranks.count() > 1:
            every = ranks.all_gather_tensors(found, self.policy.device)
            found = [each for theirs in every for each in theirs]
        return in_order([record for _, record in found], [place for place, _ in found])

    # --- one update

    def one_update(self, passing: Iterator[Choices], groups: Groups) -> dict[str, float]:
        """The losses of the micro-batches, an optimizer step, and what moved."""
        coefficient, metrics = self.controller.coefficient, dict[str, float]()

        def losses() -> Iterator[Tensor]:
            for choices in passing:
                loss = self.loss(choices, coefficient)
                for name, value in loss.metrics.items():
                    metrics[name] = metrics.get(name, 0.0) + value
                yield loss.total

        taught = bool(self.signal(groups).advantage.abs().max() > 0)
        schedule = SCHEDULES[self.recipe.schedule]
        lr = self.recipe.lr * schedule(self.optimizer.updates, self.recipe.warmup, self.total)
        still = guard.snapshot(self.policy) if taught and lr > 0 and not self.unproven else None
        norm = self.optimizer.step(losses(), groups.batch, lr)
        record = ranks.all_sum(metrics)
        self.check_coefficient(record, coefficient)
        if still is not None and norm > 0:
            guard.moved_as_meant(still, self.policy, rate=lr)
        self.unproven -= taught and lr > 0 and norm > 0
        if self.reference.after_update(self.policy, self.optimizer.updates):
            self.optimizer.reset()
        return record | {"grad_norm": norm, "lr": lr}

    def loss(self, choices: Choices, coefficient: float) -> Loss:
        """The loss of choices at this coefficient."""
        recipe = self.recipe
        return grpo_loss(
            choices,
            Clip(recipe.clip.low, recipe.clip.high, recipe.clip.dual),
            form=recipe.leash.form,
            coefficient=coefficient,
            entropy_bonus=recipe.entropy_bonus,
            clamp=recipe.leash.clamp,
        )

    # --- the leash

    def checked(
        self, groups: Groups, judged: Judged, old: Tensor | None, place: Place = WHOLE
    ) -> Choices:
        """The leashed choices of a place, once it is clear that what was said of them is sound."""
        logp = judged.logp.detach()
        self.check_finite(groups, "the log-probabilities", logp)
        old = logp if old is None else old
        self.check_judged(judged, old, None if groups.logp is None else groups.logp[place])
        return self.with_leash(groups, judged, old, place)

    def with_leash(
        self, groups: Groups, judged: Judged, old: Tensor, place: Place = WHOLE
    ) -> Choices:
        """Choices with advantages, weights, and what the leash does before the loss.

        Of the batch, or of whole episodes of it, as they were judged at that place.
        """
        form, coefficient = self.recipe.leash.form, self.controller.coefficient
        episode, worth, kind = groups.episode[place], self.signal(groups), judged.logp.dtype
        assert judged.logp_ref is not None
        of_reward = worth.advantage[place]
        if form == "reward_k1":
            reward = leash_reward(
                groups.reward,
                old,
                judged.logp_ref,
                episode,
                form=form,
                coefficient=coefficient,
            )
            of_reward = advantage(groups, reward, self.recipe.advantage)
        choices = Choices(
            logp=judged.logp.detach(),
            logp_old=old,
            logp_ref=judged.logp_ref,
            advantage=of_reward.to(kind),
            weight=worth.weight[place],
            episode=episode,
            exact_kl=None if judged.exact_kl is None else judged.exact_kl.detach(),
            unit=None if worth.unit is None else worth.unit[place].to(kind),
        )
        if form in IN_ADVANTAGE:
            choices = self.off_advantages(choices, coefficient)
        # The sampler's weights are for the gain alone: a leash in the loss has none.
        return truncated(choices, sampled(groups)[place], self.cap)[0] if self.cap else choices

    def off_advantages(self, choices: Choices, coefficient: float) -> Choices:
        """The leash taken off the advantages, as much as was asked for."""
        form = self.recipe.leash.form
        found = leash_advantage(choices, form=form, coefficient=coefficient)
        guard.leash_as_asked(
            (choices.advantage - found.advantage).double().mean().item(),
            coefficient,
            leash_value(choices, form).double().mean().item(),
            where="advantage",
            size=(choices.advantage.abs().max() + found.advantage.abs().max()).item(),
        )
        return found

    def leash_value(self, choices: Choices, in_loss: float) -> float:
        """What the coefficient multiplied, wherever the form acts, with the weights of the loss.

        In units of advantage where the leash is scaled. For offline pointers this is no KL: they
        are not draws from the policy.
        """
        if self.recipe.leash.form == "reward_k1":
            kl = k1(choices.logp_old, choices.logp_ref)
            return episode_sum(kl, choices.episode).mean().item()
        if self.recipe.leash.form not in IN_ADVANTAGE:
            return in_loss
        weight = choices.weight.double()
        return in_loss + (weight @ leash_value(choices, self.recipe.leash.form).double()).item()

    def signal(self, groups: Groups) -> Signal:
        """What the batch's rewards are worth, worked out when it is first met."""
        if "signal" not in groups.cache:
            groups.cache["signal"] = signal(groups, self.recipe)
        found: Signal = groups.cache["signal"]
        return found

    @property
    def cap(self) -> float:
        """The most that a choice weighs for being likelier to the trainer than to the sampler."""
        return self.recipe.sampler.cap if isinstance(self.recipe, AgentRecipe) else 0.0

    # --- what is measured

    def measured(self, groups: Groups, judged: Judged, choices: Choices) -> dict[str, float]:
        """Move the controller by the KL measured before the updates; the batch's own numbers."""
        assert judged.exact_kl is not None
        worth, advantage = self.signal(groups), choices.advantage
        exact = judged.exact_kl.detach().double()
        kl = episode_sum(exact, groups.episode).mean().item()
        # At proposals it is the KL of states that the policy may never meet: no KL of the policy.
        at = "kl/proposed/exact" if groups.logp is None else "kl/ref/exact"
        found: dict[str, float] = {
            "reward": worth.reward,
            f"{at}/choice/mean": exact.mean().item(),
            f"{at}/episode/mean": kl,
            "leash/coefficient": self.controller.coefficient,
            "groups_with_signal": worth.share,
            "broken": float(groups.broken),
            "dropped_groups": float(groups.dropped),
        }
        if worth.pull:
            found["effective_coefficient"] = self.controller.coefficient * worth.pull
        self.controller.update(kl)
        numbers = torch.stack([advantage.mean(), advantage.std(), advantage.max()]).tolist()
        names = ("mean_advantage", "std_advantage", "max_advantage")
        found |= {**dict(zip(names, numbers, strict=True)), **groups.measured}
        return found | self.from_sampler(groups, choices)

    def from_sampler(self, groups: Groups, choices: Choices) -> dict[str, float]:
        """How far an engine was from the policy that was to learn, and what was weighed."""
        if groups.logp is None or not isinstance(self.recipe, AgentRecipe):
            return {}
        found = measure(groups.episode, logp=choices.logp_old, logp_sampler=groups.logp)
        if self.cap:
            found |= truncated(choices, groups.logp, self.cap)[1]
            guard.same_sampler(found["kl/sampler/k1/choice/mean"])
        return found

    # --- guards

    def check_finite(self, groups: Groups, name: str, values: Tensor) -> None:
        """NaN or infinity stops the run, the batch being saved."""
        guard.finite([(name, values)], lambda: self.optimizer.save_batch(groups.batch))

    def check_judged(self, judged: Judged, old: Tensor, logp_sampler: Tensor | None) -> None:
        """What was sampled is what is judged; before the first update ratios are 1 and KL is 0."""
        narrow = next(self.policy.parameters()).dtype == torch.bfloat16
        if logp_sampler is not None and not self.cap:
            within = guard.GPU_TOLERANCE if logp_sampler.is_cuda else guard.SAMPLED_TOLERANCE
            guard.sampled_as_recomputed(
                logp_sampler,
                judged.logp.detach(),
                tolerance=guard.HALF_TOLERANCE if narrow else within,
                otherwise=OTHER_SAMPLER if isinstance(self.recipe, AgentRecipe) else "",
            )
        if self.optimizer.updates == 0:
            assert judged.logp_ref is not None
            kind, kl = self.recipe.leash.reference, judged.exact_kl
            most = guard.HALF_KL_AT_START if narrow else guard.KL_AT_START
            guard.ratio_one_at_start(judged.logp.detach(), old)
            guard.zero_kl_at_start(judged.logp, judged.logp_ref, kl, reference=kind, tolerance=most)

    def check_coefficient(self, metrics: Mapping[str, float], coefficient: float) -> None:
        """What the leash added to the loss is coefficient × what is logged."""
        bonus = self.recipe.entropy_bonus * metrics["entropy"]
        added = metrics["loss"] - metrics["policy_loss"] + bonus
        size = abs(metrics["loss"]) + abs(metrics["policy_loss"]) + abs(bonus)
        if math.isfinite(added):
            guard.leash_as_asked(
                added, coefficient, metrics["leash/value"], where="loss", size=size
            )


def sampled(groups: Groups) -> Tensor:
    """The engine's log-probabilities, which a cap cannot do without."""
    if groups.logp is None:
        raise DataError(
            "sampler.cap weighs choices by the log-probabilities they were sampled with, and the"
            " engine gave none: set sampler.cap=0"
        )
    return groups.logp
