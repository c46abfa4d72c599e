"""A batch of packs learnt in one go: each is judged once, forward and back, and forgotten.

With one update on a batch, what the policy says of a pack is also its own past, and what the leash
takes off an advantage hangs on that episode alone. So nothing needs a pass over the batch before.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from dataclasses import fields, replace
from typing import Any

import torch
from torch import Tensor

from kleash import guard
from kleash.engine import Engine
from kleash.engine.pages import unclaimed
from kleash.errors import ConfigError
from kleash.grpo import Choices
from kleash.language.lean import of_this_shape
from kleash.language.packed import Packing, layers_again
from kleash.language.policy import LanguagePolicy
from kleash.policy import Judged
from kleash.recipe import Scale
from kleash.rollout import Groups
from kleash.train.sampler import SampledLeash
from kleash.train.update import Parts, together

HALF = (torch.bfloat16, torch.float16)


def packing_of(scale: Scale, policy: LanguagePolicy) -> Packing | None:
    """How a policy is packed on its device; none where it is not."""
    narrow = policy.device.type == "cuda" and next(policy.parameters()).dtype in HALF
    can = of_this_shape(policy.model) is not None
    if scale.packed == "off" or (scale.packed == "auto" and not (narrow and can)):
        if scale.reference == "pinned":
            raise ConfigError("scale.reference=pinned needs packs: set scale.packed=on")
        return None
    compiled = ("fixed" if narrow else "off") if scale.compile == "auto" else scale.compile
    step = 128 if compiled == "dynamic" else 512
    return Packing(
        tokens=scale.pack_tokens,
        step=min(step, scale.pack_tokens),
        compile=compiled,
        recompute=max(0, scale.recompute),
    )


def recomputed(policy: LanguagePolicy, packing: Packing, share: float = 1.0) -> int:
    """How many layers are worked out again, if a share of the memory that is left is for them."""
    if policy.device.type != "cuda":
        return 0
    return layers_again(policy.model, packing.tokens, share * unclaimed(policy.device))


def make_room(engine: Engine, policy: LanguagePolicy) -> None:
    """Have an engine give its memory back where an update does not fit beside it.

    Without it the update was planned with `recompute` layers worked out again, and not with more.
    One that is not packed was not planned, and has what the engine left.
    """
    packing = policy.packing
    if packing is not None and recomputed(policy, packing) > packing.recompute:
        engine.release()
        gc.collect()
        torch.cuda.empty_cache()


Seen = list[tuple[slice | Tensor, Judged, Choices]]


class PackedLeash(SampledLeash):
    """`SampledLeash` that goes over a batch once, where that gives the same numbers."""

    def learn(
        self, groups: Groups, logp_old: Tensor | None = None, tied: Tensor | None = None
    ) -> tuple[dict[str, float], Judged]:
        """One update on a fresh batch; several updates, and a leash in the reward, go over it more.

        The reference goes first, over the whole batch: so it may be streamed from elsewhere.
        """
        if getattr(self.policy, "packing", None) is None:
            return super().learn(groups, logp_old, tied)
        parts = self.split(groups.batch)
        fresh = logp_old is None and tied is None
        once = self.recipe.updates == 1 and self.recipe.leash.form != "reward_k1"
        if len(parts) == 1 or not fresh or not once:
            return super().learn(groups, logp_old, tied)
        return self.learn_once(groups, parts, self.policy.tie(groups.batch, self.reference.policy))

    def learn_once(
        self, groups: Groups, parts: Parts, reference: Any
    ) -> tuple[dict[str, float], Judged]:
        """One update; `reference.take` gives what each part is judged beside."""
        guard.finite([("the rewards", groups.reward)], lambda: self.descent.keep(groups.batch))
        coefficient = self.controller.coefficient
        seen: Seen = []
        turns = self.in_turn(groups, parts, reference, coefficient, seen)
        record = self.one_update(self.losses(turns, coefficient), groups, coefficient)
        judged, choices = self.all_seen(seen)
        value = self.leash_value(choices, record["leash/value"])
        leash = {"leash/value": value, "leash/penalty": coefficient * value}
        return record | leash | self.after(groups, judged, choices), judged

    def all_seen(self, seen: Seen) -> tuple[Judged, Choices]:
        """What was said of the packs, in the order of the batch."""
        places = [place for place, _, _ in seen]
        judged = together([judged for _, judged, _ in seen], places)
        return judged, whole([choices for _, _, choices in seen], places)

    def in_turn(
        self, groups: Groups, parts: Parts, reference: Any, coefficient: float, seen: Seen
    ) -> Iterator[Choices]:
        """The choices of each pack as they are judged, with the leash on them."""
        for batch, place in parts:
            judged = self.judged(batch, reference.take(place))
            old = judged.logp.detach()
            guard.finite([("the log-probabilities", old)], lambda: self.descent.keep(groups.batch))
            self.check_judged(judged, old, None if groups.logp is None else groups.logp[place])
            choices = self.leash(groups, judged, old, coefficient, place)
            said = {f.name: getattr(judged, f.name) for f in fields(Judged)}
            kept = {name: each.detach() for name, each in said.items() if each is not None}
            seen.append((place, Judged(**kept), choices))
            entropy = judged.entropy if self.recipe.entropy_bonus else kept["entropy"]
            yield replace(choices, logp=judged.logp, entropy=entropy, exact_kl=judged.exact_kl)


def whole(parts: list[Choices], places: list[slice | Tensor]) -> Choices:
    """Choices of parts in the order of the batch."""
    order = torch.cat([place for place in places if isinstance(place, Tensor)]).argsort()
    columns = {
        f.name: torch.cat([getattr(each, f.name) for each in parts])[order]
        for f in fields(Choices)
        if getattr(parts[0], f.name) is not None
    }
    return Choices(**columns)
