"""A policy and its episodes shared out over ranks (FSDP2); checkpoints for any number of them.

Weights of a loss are fixed over the whole batch, so each rank adds up its own episodes and the sum
over ranks is the gradient of one process. Needs an initialised process group (`torchrun`).
"""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
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
    through its last one again, which then counts 0.
    """
    shares = balanced(batch.lengths, ranks)
    plans = [plan([batch.lengths[at] for at in share], how) for share in shares]
    most = max(map(len, plans))
    if min(map(len, plans)) == 0:
        raise ValueError(f"{len(batch.lengths)} episodes do not give each of {ranks} ranks one")
    made = []
    for held, room in plans[rank]:
        part, index = batch.take([shares[rank][at] for at in held], room)
        made.append((part, index, 1.0))
    part, index, _ = made[-1]
    return made + [(part, index, 0.0)] * (most - len(made))


def shard(policy: LanguagePolicy, *, wide: bool = False) -> None:
    """Share out the weights: each layer by itself, and all that is not in one together.

    With `wide`, weights and gradients are kept in float32 and multiplied in bfloat16. The policy
    must be packed; from here on its weights are pieces, and `judge` gathers them as it goes.
    """
    from torch.distributed.fsdp import (
        MixedPrecisionPolicy,
        fully_shard,
        register_fsdp_forward_method,
    )

    if policy.packing is None:
        raise ValueError("only a packed policy is shared out: give it a packing first")
    narrow = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
    given: dict[str, Any] = {"mp_policy": narrow} if wide else {}
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


def backward(loss: Tensor) -> None:
    """The way back of a rank's part of a loss: FSDP takes means over ranks, sums are meant."""
    (loss * dist.get_world_size()).backward()


# --- checkpoints


def state_of(policy: nn.Module, optimiser: torch.optim.Optimizer) -> dict[str, Any]:
    """Weights and moments by name, each as it lies here: whole, or this rank's piece."""
    names: dict[Tensor, str] = {weight: name for name, weight in policy.named_parameters()}
    moments = {
        f"{names[weight]}.{key}": value
        for weight, kept in optimiser.state.items()
        for key, value in kept.items()
    }
    return {"weights": dict(policy.state_dict()), "moments": moments}


def save(folder: Path, policy: nn.Module, optimiser: torch.optim.Optimizer) -> None:
    """Every rank writes its pieces."""
    from torch.distributed.checkpoint.state_dict_saver import save as write

    with maybe_alone() as alone:
        write(state_of(policy, optimiser), checkpoint_id=folder, no_dist=alone)


def load(folder: Path, policy: nn.Module, optimiser: torch.optim.Optimizer) -> None:
    """Into a policy and an optimiser of any number of ranks; the optimiser must have stepped once.

    What lies in the folder is cut as these need it, however it was cut when it was written.
    """
    from torch.distributed.checkpoint.state_dict_loader import load as read

    state = state_of(policy, optimiser)
    with maybe_alone() as alone:
        read(state, checkpoint_id=folder, no_dist=alone)
    policy.load_state_dict(state["weights"])


@contextlib.contextmanager
def maybe_alone() -> Iterator[bool]:
    """Whether there is but one process, which torch would warn of though it is meant."""
    alone = not dist.is_initialized()
    with warnings.catch_warnings():
        if alone:
            warnings.filterwarnings("ignore", "torch.distributed is disabled", UserWarning)
        yield alone


def begun(optimiser: torch.optim.Optimizer) -> None:
    """Give an optimiser that never stepped its moments, without moving a weight."""
    rates = [group["lr"] for group in optimiser.param_groups]
    for group in optimiser.param_groups:
        group["lr"] = torch.zeros_like(torch.as_tensor(group["lr"])).item()
        for weight in group["params"]:
            weight.grad = torch.zeros_like(weight)
    optimiser.step()
    optimiser.zero_grad()
    for group, rate in zip(optimiser.param_groups, rates, strict=True):
        group["lr"] = rate
