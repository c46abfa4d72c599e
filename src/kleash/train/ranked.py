"""A language agent trained by several processes (FSDP2), each on its own groups and packs.

Every rank holds the policy twice: whole, to play with, to measure and to keep, and its share of the
pieces that learn, which are gathered into the whole one after each update. Weights of a loss are
fixed over the whole batch, so each rank adds up its own episodes and the sum over ranks is the
gradient of one process. What was played and judged is told to all ranks, so that each works out the
same numbers of the whole batch. Needs an initialised process group (`torchrun`).
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from types import MethodType
from typing import Any, Self

import torch
import torch.distributed as dist
from torch import Tensor

from kleash.algo.policy import Judged, Reference
from kleash.errors import KleashError
from kleash.models.engine import Engine
from kleash.models.language.packed import Packing, block_of, packable, plan
from kleash.models.language.policy import Batch, LanguagePolicy
from kleash.runs.run import Run
from kleash.train.agent import AgentTrainer
from kleash.train.ranks import all_gather, all_sum, count, is_first, rank
from kleash.train.recipe import AgentRecipe
from kleash.train.rollout.agent import AgentWorld, Attempt
from kleash.types import Episode, Listener

# --- shares


def balance(lengths: Sequence[int], ranks: int) -> list[list[int]]:
    """Episodes for each rank, so that all have about as many tokens: the longest goes first."""
    shares: list[list[int]] = [[] for _ in range(ranks)]
    held = [0] * ranks
    for index in sorted(range(len(lengths)), key=lambda index: -lengths[index]):
        rank = held.index(min(held))
        shares[rank].append(index)
        held[rank] += lengths[index]
    return [sorted(share) for share in shares]


def packs_of_rank(
    batch: Batch, rank: int, ranks: int, how: Packing
) -> list[tuple[Batch, Tensor, float]]:
    """The packs of a rank, which of the batch's choices each holds, and what it counts.

    All ranks go through equally many, since they meet in every layer: one that has fewer goes
    through its last one again, or through another's, which then counts 0.
    """
    shares = balance(batch.lengths, ranks)
    plans = [plan([batch.lengths[at] for at in share], how) for share in shares]
    packs = [
        [([share[at] for at in held], room) for held, room in packs]
        for share, packs in zip(shares, plans, strict=True)
    ]
    most, other = max(map(len, packs)), next(each[0] for each in packs if each)
    made = [(*batch.take(*pack), 1.0) for pack in packs[rank]]
    part, index = made[-1][:2] if made else batch.take(*other)
    return made + [(part, index, 0.0)] * (most - len(made))


def shard(policy: LanguagePolicy) -> None:
    """Share out the weights: each layer by itself, and all that is not in one together.

    Gradients are summed over ranks in float32. The policy must be packed; from here on its weights
    are pieces, and `judge` gathers them as it goes.
    """
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import (
        MixedPrecisionPolicy,
        fully_shard,
        register_fsdp_forward_method,
    )

    if policy.packing is None:
        raise ValueError("only a packed policy is shared out: give it a packing first")
    narrow = next(policy.parameters()).dtype == torch.bfloat16
    given: dict[str, Any] = {"mesh": init_device_mesh(policy.device.type, (dist.get_world_size(),))}
    if narrow:
        given["mp_policy"] = MixedPrecisionPolicy(reduce_dtype=torch.float32)
    run = block_of(policy.packing.compile, policy.packing.backend)
    for layer in packable(policy.model).model.layers:
        layer.packed = MethodType(run, layer)
        fully_shard(layer, **given)
        register_fsdp_forward_method(layer, "packed")
    fully_shard(policy, reshard_after_forward=False, **given)
    held: Any = policy
    held.said, held.judge = MethodType(said, policy), MethodType(judge, policy)
    register_fsdp_forward_method(policy, "said")
    register_fsdp_forward_method(policy, "hidden")


def said(policy: LanguagePolicy, batch: Batch, reference: Any) -> tuple[Tensor | None, ...]:
    """`LanguagePolicy.judge` as tensors, which FSDP's hooks look for."""
    judged = LanguagePolicy.judge(policy, batch, reference)
    return judged.logp, judged.entropy, judged.logp_ref, judged.exact_kl, judged.forward_kl


def judge(policy: Any, batch: Batch, reference: Any = None) -> Judged:
    """Every choice of a pack, the weights gathered layer by layer."""
    theirs = None if reference is None else LanguagePolicy.tie(policy, batch, reference)
    return Judged(*policy.said(batch, theirs))


def pieces_of(policy: LanguagePolicy) -> LanguagePolicy:
    """A copy of a policy of which every rank holds its share."""
    made = copy.deepcopy(policy)
    shard(made)
    return made


# --- playing


def deal(attempts: Sequence[Attempt], ranks: int) -> list[list[int]]:
    """For each rank, the places of what it plays: whole groups, about as many episodes each.

    Episodes of a task stay together, since an engine hears what they share once.
    """
    places = groupby(range(len(attempts)), key=lambda place: attempts[place].task.id)
    groups = [list(group) for _, group in places]
    shares = balance([len(group) for group in groups], ranks)
    return [[place for at in share for place in groups[at]] for share in shares]


class SharedWorld(AgentWorld):
    """A world in which each rank plays its share of what is asked for, and all have all of it.

    Draws are named by seed, task and member: what is said does not depend on who plays it.
    """

    @classmethod
    def of(cls, world: AgentWorld) -> Self:
        """The same world, shared."""
        made = cls.__new__(cls)
        made.__dict__.update(world.__dict__)
        return made

    def play(self, engine: Engine, attempts: Sequence[Attempt]) -> list[Episode]:
        """Every episode in order; what ends one rank's playing ends all."""
        shares, before = deal(attempts, count()), self.ledger.usage()
        played: list[Episode] = []
        failed: KleashError | None = None
        try:
            played = super().play(engine, [attempts[at] for at in shares[rank()]])
        except KleashError as error:
            failed = error
        everyone = all_gather((played, failed, self.ledger.usage().since(before)))
        for other, (_, broke, usage) in enumerate(everyone):
            if broke is not None:
                raise broke
            if is_first() and other:
                self.ledger.count(usage)
        if is_first():
            self.progress(len(attempts) - len(played))
        found: dict[int, Episode] = {}
        for share, (theirs, _, _) in zip(shares, everyone, strict=True):
            found |= zip(share, theirs, strict=True)
        return [found[place] for place in range(len(attempts))]


# --- the run


class RankedTrainer(AgentTrainer):
    """An agent's phases on one of several ranks."""

    def __init__(
        self, run: Run, recipe: AgentRecipe, world: AgentWorld, policy: Any, listen: Listener
    ) -> None:
        scale = recipe.scale.model_copy(update={"packed": "on"})
        packed = recipe.model_copy(update={"scale": scale})
        super().__init__(run, packed, SharedWorld.of(world), policy, listen)

    def learner(self) -> LanguagePolicy:
        """The policy in pieces."""
        self.pieces = pieces_of(self.policy)
        return self.pieces

    def reference(self) -> Reference:
        """In pieces too; without its adapter it is the policy that plays."""
        made = super().reference()
        if made.kind == "adapter_off":
            return made
        assert isinstance(made.module, LanguagePolicy)
        made.module.packing = self.policy.packing
        shard(made.module)
        return made

    def imitate(self, batch: Batch) -> tuple[float, float]:
        """Each rank's dialogues."""
        assert self.policy.packing is not None
        packs = packs_of_rank(batch, rank(), count(), self.policy.packing)
        found: list[float] = []

        def losses() -> Iterator[Tensor]:
            for part, _, counts in packs:
                loss = self.pieces.judge(part).logp.sum() * (-counts / len(batch))
                found.append(loss.item())
                yield loss

        norm = self.optimizer.step(losses(), batch)
        return all_sum({"loss": sum(found)})["loss"], norm

    def micro_batches(self, batch: Batch) -> Sequence[tuple[Any, ...]]:
        """This rank's packs of a batch."""
        assert self.policy.packing is not None
        most = min(self.recipe.part_tokens, self.policy.packing.tokens)
        return packs_of_rank(batch, rank(), count(), replace(self.policy.packing, tokens=most))

    def speed(self, trained: float) -> dict[str, float]:
        """Tokens of all ranks in rank 0's seconds; MFU is of all their GPUs."""
        found = super().speed(trained)
        of_all = {k: v / count() for k, v in found.items() if k.startswith("speed/mfu/")}
        return found | of_all | ({"ranks": float(count())} if found else {})
