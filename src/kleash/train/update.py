"""Updates on one batch of groups: advantages, the leash, the clipped loss, and guards."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import torch
from torch import Tensor

from kleash import guard
from kleash.control import SCHEDULES, Controller
from kleash.grpo import (
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
)
from kleash.kl import episode_sum, k1
from kleash.policy import Judged, Reference
from kleash.recipe import Recipe
from kleash.rollout import Groups
from kleash.train.descent import Descent

IN_ADVANTAGE = ("return_to_go", "exact")
"""The forms that take something off the advantages."""


@dataclass(frozen=True)
class Worth:
    """What a batch's rewards are worth before any leash: the same whenever the batch is met."""

    advantage: Tensor
    weight: Tensor
    unit: Tensor | None
    pull: float | None
    """The effective coefficient of a coefficient of 1; none where it has no meaning."""
    signal: float
    """The share of groups that teach anything."""
    reward: float


def advantage(groups: Groups, reward: Tensor, name: str) -> Tensor:
    """Of every choice: its episode's advantage, shared out by turn where a credit says how."""
    if groups.own is not None:
        return groups.own
    found = ADVANTAGES[name](reward, groups.group)[groups.episode]
    return found if groups.credit is None else found * groups.credit


def worth(groups: Groups, recipe: Recipe) -> Worth:
    """Advantages, weights and units of a batch, from its rewards alone."""
    leash, name, episode = recipe.leash, recipe.advantage, groups.episode
    reward, group = groups.reward, groups.group
    unit = reward_unit(name, reward, group) if leash.scaled else None
    scaled = leash.scaled or leash.form == "reward_k1"
    return Worth(
        advantage=advantage(groups, reward, name),
        weight=WEIGHTS[recipe.weight](episode, group),
        unit=None if unit is None else unit[episode],
        pull=effective_coefficient(1.0, name, reward, group, scaled=scaled),
        signal=guard.share_with_signal(reward, group),
        reward=reward.mean().item(),
    )


Parts = Sequence[tuple[Any, slice | Tensor]]
"""A batch in parts, and which of its choices each holds."""


def together(found: Sequence[Judged], places: Sequence[slice | Tensor]) -> Judged:
    """What was said of parts as one, in the order of the whole."""
    whole = [torch.cat([getattr(each, f.name) for each in found]) for f in fields(Judged)]
    if any(isinstance(place, slice) for place in places):  # cut in order
        return Judged(*whole)
    order = torch.cat([place for place in places if isinstance(place, Tensor)]).argsort()
    return Judged(*(each[order] for each in whole))


class Losses:
    """The losses of parts, one at a time; their metrics add up to those of the whole."""

    def __init__(self, parts: Iterator[Choices], loss: Callable[[Choices], Loss]) -> None:
        self.parts, self.loss = parts, loss
        self.metrics: dict[str, float] = {}

    def __iter__(self) -> Iterator[Tensor]:
        for choices in self.parts:
            loss = self.loss(choices)
            for name, value in loss.metrics.items():
                self.metrics[name] = self.metrics.get(name, 0.0) + value
            yield loss.total


class Leashed:
    """A policy, its descent, and the leash: reference and controller."""

    ELSE = ""  # what can be done about a sampler that differs, but to mend it

    def __init__(
        self, recipe: Recipe, policy: Any, reference: Reference, descent: Descent, total: int
    ) -> None:
        self.recipe, self.policy = recipe, policy
        self.reference, self.descent, self.total = reference, descent, total
        self.controller = Controller(recipe.leash)
        self.split: Callable[[Any], Parts] = policy.parts
        # Updates with signal until all must move: LoRA's A has a gradient once B, zero, has moved.
        self.unproven = 1 if getattr(policy, "adapted", False) else 0

    def learn(
        self, groups: Groups, logp_old: Tensor | None = None, tied: Tensor | None = None
    ) -> tuple[dict[str, float], Judged]:
        """All updates on a batch; its numbers, and how it was judged before the first of them.

        Without `logp_old` the batch is fresh: the first judging is its own past. `tied` are the
        reference's logits, where they are known.
        """
        reference = self.reference.policy if tied is None else tied
        parts = self.split(groups.batch)
        judged = before = self.judge(parts, reference)
        guard.finite(
            [("the rewards", groups.reward), ("the log-probabilities", judged.logp)],
            lambda: self.descent.keep(groups.batch),
        )
        old = judged.logp.detach() if logp_old is None else logp_old
        self.check_start(groups, judged, old)
        coefficient = self.controller.coefficient
        choices = self.leash(groups, judged, old, coefficient)
        record: dict[str, float] = {}
        for update in range(self.recipe.updates):
            known = judged if not update and len(parts) == 1 else None
            losses = self.losses(self.now(choices, parts, reference, known), coefficient)
            record = self.one_update(losses, groups, coefficient)
        value = self.leash_value(choices, record["leash/value"])
        leash = {"leash/value": value, "leash/penalty": coefficient * value}
        return record | leash | self.after(groups, before, choices), before

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

    def judge(self, parts: Parts, reference: Any) -> Judged:
        """All parts; with gradients where the whole is one part, and then it is not judged twice.

        Otherwise each part is judged again when its loss is worked out, so that only one is held.
        """
        if len(parts) == 1:
            return self.judged(parts[0][0], reference)
        with torch.no_grad():
            found = [self.judged(batch, reference) for batch, _ in parts]
        return together(found, [place for _, place in parts])

    def judged(self, batch: Any, reference: Any) -> Judged:
        """What the policy says of a batch, beside its reference."""
        found: Judged = self.policy.judge(batch, reference)
        return found

    def now(
        self, choices: Choices, parts: Parts, reference: Any, known: Judged | None
    ) -> Iterator[Choices]:
        """The choices as the policy sees them now, part by part."""
        for batch, place in parts:
            judged = known or self.judged(batch, reference)
            entropy = judged.entropy if self.recipe.entropy_bonus else judged.entropy.detach()
            yield replace(
                choices.take(place), logp=judged.logp, entropy=entropy, exact_kl=judged.exact_kl
            )

    def losses(self, parts: Iterator[Choices], coefficient: float) -> Losses:
        """The losses of parts at this coefficient."""
        return Losses(parts, self.loss(coefficient))

    def loss(self, coefficient: float) -> Callable[[Choices], Loss]:
        """The loss of choices at this coefficient."""
        recipe = self.recipe
        return lambda choices: grpo_loss(
            choices,
            Clip(recipe.clip.low, recipe.clip.high, recipe.clip.dual),
            form=recipe.leash.form,
            coefficient=coefficient,
            entropy_bonus=recipe.entropy_bonus,
            clamp=recipe.leash.clamp,
        )

    def one_update(self, losses: Losses, groups: Groups, coefficient: float) -> dict[str, float]:
        """The loss, the step down, and what moved."""
        taught = bool(self.worth(groups).advantage.abs().max() > 0)
        rate = self.rate()
        still = guard.snapshot(self.policy) if taught and rate > 0 and not self.unproven else None
        norm = self.descent.down(losses, groups.batch, rate)
        self.check_coefficient(losses.metrics, coefficient)
        if still is not None and norm > 0:
            guard.moved_as_meant(still, self.policy, rate=rate)
        self.unproven -= taught and rate > 0 and norm > 0
        if self.reference.after_update(self.policy, self.descent.step):
            self.descent.renew()
        return losses.metrics | {"grad_norm": norm, "lr": rate}

    def leash(
        self,
        groups: Groups,
        judged: Judged,
        old: Tensor,
        coefficient: float,
        place: slice | Tensor = slice(None),
    ) -> Choices:
        """The batch with advantages, weights, and what the leash does before the loss.

        Or whole episodes of it, as they were judged at that place.
        """
        leash, episode, worth = self.recipe.leash, groups.episode[place], self.worth(groups)
        assert judged.logp_ref is not None
        held, unit, kind = worth.advantage[place], worth.unit, judged.logp.dtype
        if leash.form == "reward_k1":
            reward = leash_reward(
                groups.reward,
                old,
                judged.logp_ref,
                episode,
                form=leash.form,
                coefficient=coefficient,
            )
            held = advantage(groups, reward, self.recipe.advantage)
        bare = Choices(
            logp=judged.logp.detach(),
            logp_old=old,
            logp_ref=judged.logp_ref,
            advantage=held.to(kind),
            weight=worth.weight[place],
            episode=episode,
            exact_kl=None if judged.exact_kl is None else judged.exact_kl.detach(),
            unit=None if unit is None else unit[place].to(kind),
        )
        if leash.form not in IN_ADVANTAGE:
            return bare
        tied = leash_advantage(bare, form=leash.form, coefficient=coefficient)
        guard.leash_as_asked(
            (bare.advantage - tied.advantage).double().mean().item(),
            coefficient,
            leash_value(bare, leash.form).double().mean().item(),
            where="advantage",
            size=(bare.advantage.abs().max() + tied.advantage.abs().max()).item(),
        )
        return tied

    def rate(self) -> float:
        """The learning rate of the next update."""
        schedule = SCHEDULES[self.recipe.schedule]
        return self.recipe.lr * schedule(self.descent.step, self.recipe.warmup, self.total)

    def after(self, groups: Groups, judged: Judged, choices: Choices) -> dict[str, float]:
        """Move the controller by the KL measured before the updates; the batch's own numbers."""
        assert judged.exact_kl is not None
        worth, advantage = self.worth(groups), choices.advantage
        used = worth.pull and {"effective_coefficient": self.controller.coefficient * worth.pull}
        exact = judged.exact_kl.detach().double()
        kl = episode_sum(exact, groups.episode).mean().item()
        # At proposals it is the KL of states that the policy may never meet: no KL of the policy.
        at = "kl/proposed/exact" if groups.logp is None else "kl/ref/exact"
        measured = {
            f"{at}/choice/mean": exact.mean().item(),
            f"{at}/episode/mean": kl,
            "leash/coefficient": self.controller.coefficient,
        }
        self.controller.update(kl)
        numbers = torch.stack([advantage.mean(), advantage.std(), advantage.max()]).tolist()
        names = ("mean_advantage", "std_advantage", "max_advantage")
        return {
            "reward": worth.reward,
            **measured,
            **dict(zip(names, numbers, strict=True)),
            "groups_with_signal": worth.signal,
            "broken": float(groups.broken),
            "dropped_groups": float(groups.dropped),
            **(used or {}),
            **groups.measured,
        }

    def worth(self, groups: Groups) -> Worth:
        """What the batch's rewards are worth, worked out when it is first met."""
        if "worth" not in groups.worked_out:
            groups.worked_out["worth"] = worth(groups, self.recipe)
        found: Worth = groups.worked_out["worth"]
        return found

    # --- guards

    def check_start(self, groups: Groups, judged: Judged, old: Tensor) -> None:
        """What was sampled is what is judged; before the first update ratios are 1 and KL is 0."""
        self.check_judged(judged, old, groups.logp)

    def check_judged(self, judged: Judged, old: Tensor, sampled: Tensor | None) -> None:
        """The same for a batch or a part of one."""
        narrow = next(self.policy.parameters()).dtype == torch.bfloat16
        if sampled is not None:
            within = guard.GPU_TOLERANCE if sampled.is_cuda else guard.SAMPLED_TOLERANCE
            within = guard.HALF_TOLERANCE if narrow else within
            guard.sampled_as_recomputed(
                sampled, judged.logp.detach(), tolerance=within, otherwise=self.ELSE
            )
        if self.descent.step == 0:
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
