"""A policy and its episodes shared out over ranks (FSDP2).

Weights of a loss are fixed over the whole batch, so each rank adds up its own episodes and the sum
over ranks is the gradient of one process. Needs an initialised process group (`torchrun`). How the
processes of a run go together is in `ranks`, what they keep in `pieces`.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from types import MethodType
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn

from kleash.language.packed import Packing, block_of, packable, plan
from kleash.language.policy import Batch, LanguagePolicy
from kleash.policy import Judged


def balanced(lengths: Sequence[int], ranks: int) -> list[list[int]]:
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
    shares = balanced(batch.lengths, ranks)
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


@torch.no_grad()
def gather(pieces: nn.Module, whole: nn.Module) -> None:
    """Put the weights of all ranks into a policy that is whole, one tensor after the other."""
    held = pieces.state_dict()
    for name, tensor in whole.state_dict().items():
        tensor.copy_(held[name].full_tensor())


def backward(loss: Tensor) -> None:
    """The way back of a rank's part of a loss: FSDP takes means over ranks, sums are meant."""
    (loss * dist.get_world_size()).backward()
