"""What each rank of the sharded tests does; imported by spawned processes."""

from __future__ import annotations

import json
import os
import warnings
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist

from kleash.algo.policy import frozen
from kleash.models.language.models import fresh
from kleash.models.language.packed import Packing
from kleash.models.language.policy import LanguagePolicy
from kleash.seeds import generator, torch_generator
from kleash.train import checkpoints, ranked
from kleash.train.optimizer import RoundedAdamW
from kleash.types import Turn

SIZE, HOW = 19, Packing(tokens=32, step=8)


def policy_and_reference() -> tuple[LanguagePolicy, Any]:
    model = fresh(SIZE, torch_generator("ranks"), width=16, layers=3, heads=2, inner=24)
    policy = LanguagePolicy(model.double(), packing=HOW)
    reference = frozen(policy)
    rng = torch_generator("moved")
    with torch.no_grad():
        for weight in policy.parameters():
            weight.add_(torch.randn(weight.shape, generator=rng, dtype=weight.dtype), alpha=0.05)
    return policy, reference


def episodes() -> list[list[Turn]]:
    rng = generator("ranks")
    draw = lambda most: tuple(rng.integers(0, SIZE, 1 + rng.integers(most)).tolist())  # noqa: E731
    return [[Turn(draw(8), draw(6), ()) for _ in range(1 + rng.integers(3))] for _ in range(11)]


def loss_of(judged: Any, index: torch.Tensor, count: int) -> torch.Tensor:
    weight = torch.linspace(-1, 1, count, dtype=torch.float64)[index] / count
    told = judged.logp + 0.1 * judged.entropy + 0.2 * judged.exact_kl
    return (weight * told).sum()


def optimiser_of(policy: LanguagePolicy) -> torch.optim.Optimizer:
    return torch.optim.AdamW(policy.parameters(), lr=1e-2, foreach=False)


def alone(policy: LanguagePolicy, reference: Any) -> None:
    """The gradient of the whole batch in one process."""
    batch = policy.gather(episodes())
    policy.zero_grad()
    for part, index in policy.parts(batch, 10**6):
        loss_of(policy.judge(part, reference), index, len(batch)).backward()


def shared(policy: LanguagePolicy, reference: Any, rank: int, ranks: int) -> None:
    """The gradient of this rank's episodes, summed over ranks."""
    batch = policy.gather(episodes())
    policy.zero_grad()
    for part, index, counts in ranked.packs_of_rank(batch, rank, ranks, HOW):
        loss = counts * loss_of(policy.judge(part, reference), index, len(batch))
        (loss * ranks).backward()  # FSDP takes means over ranks, sums are meant


def whole(tensors: Any) -> dict[str, torch.Tensor]:
    return {
        name: (each.full_tensor() if hasattr(each, "full_tensor") else each).detach().clone()
        for name, each in tensors
    }


def kept(policy: LanguagePolicy, optimiser: torch.optim.Optimizer) -> dict[str, torch.Tensor]:
    """Weights and moments by name, each as it lies here: whole, or this rank's piece."""
    moments = optimiser.state_dict()["state"]
    return {f"weights.{name}": weight for name, weight in policy.state_dict().items()} | {
        f"moments.{index}.{key}": value
        for index in moments
        for key, value in moments[index].items()
    }


def save(folder: Path, policy: LanguagePolicy, optimiser: torch.optim.Optimizer) -> None:
    files = checkpoints.save(folder, kept(policy, optimiser))
    folder.with_suffix(".json").write_text(json.dumps(files))


def load(folder: Path, policy: LanguagePolicy, optimiser: torch.optim.Optimizer) -> None:
    checkpoints.empty_moments(optimiser)
    assert checkpoints.hashes(folder) == json.loads(folder.with_suffix(".json").read_text())
    checkpoints.load(folder, kept(policy, optimiser))


def rank_main(rank: int, ranks: int, folder: str, resume: str) -> None:
    """Gradients, a checkpoint and what comes after it, or going on from one process's."""
    warnings.simplefilter("ignore")
    os.environ["GLOO_SOCKET_IFNAME"] = "lo"
    torch.set_num_threads(1)
    place = Path(folder)
    dist.init_process_group(
        "gloo", init_method=f"file://{place}/meet-{resume or 'new'}", rank=rank, world_size=ranks
    )
    policy, reference = policy_and_reference()
    ranked.shard(policy)
    ranked.shard(reference)
    optimiser = optimiser_of(policy)
    found: dict[str, Any] = {}
    if resume:
        load(place / resume, policy, optimiser)
    else:
        shared(policy, reference, rank, ranks)
        found["gradients"] = whole((n, p.grad) for n, p in policy.named_parameters())
        found["pieces"] = {n: p.to_local().numel() for n, p in policy.named_parameters()}
        optimiser.step()
        save(place / "from-ranks", policy, optimiser)
    shared(policy, reference, rank, ranks)
    optimiser.step()
    found["weights"] = whole(policy.named_parameters())
    if rank == 0:
        torch.save(found, place / f"found-{resume or 'new'}.pt")
    dist.destroy_process_group()


def narrow_policy() -> LanguagePolicy:
    """In bfloat16, with sizes that no number of ranks divides."""
    model = fresh(SIZE, torch_generator("narrow"), width=16, layers=2, heads=2, inner=23)
    return LanguagePolicy(model.bfloat16(), packing=HOW)


def rounded_steps(policy: LanguagePolicy, piece: Any) -> dict[str, Any]:
    """Three steps of our AdamW on gradients that are given, and what comes of them."""
    optimiser, rng = RoundedAdamW(policy.parameters(), lr=1e-3), torch_generator("gradients")
    norms = []
    for _ in range(3):
        optimiser.zero_grad()
        for weight in policy.parameters():
            drawn = torch.randn(weight.shape, generator=rng).bfloat16()
            weight.grad = piece(weight, drawn)
            optimiser.gradients.take(weight)
        norms.append(optimiser.clip(1.0).item())
        optimiser.step()
    moments = optimiser.state_dict()["state"]
    named = {f"{at}.{key}": each for at in moments for key, each in moments[at].items()}
    return {"norms": norms, "kept": whole([*policy.named_parameters(), *named.items()])}


def rounded_main(rank: int, ranks: int, folder: str) -> None:
    """The same on pieces."""
    from torch.distributed.tensor import distribute_tensor

    warnings.simplefilter("ignore")
    os.environ["GLOO_SOCKET_IFNAME"] = "lo"
    torch.set_num_threads(1)
    dist.init_process_group(
        "gloo", init_method=f"file://{folder}/meet-{ranks}", rank=rank, world_size=ranks
    )
    policy = narrow_policy()
    ranked.shard(policy)
    found = rounded_steps(
        policy,
        lambda weight, drawn: distribute_tensor(drawn, weight.device_mesh, weight.placements),
    )
    if rank == 0:
        torch.save(found, Path(folder) / f"rounded-{ranks}.pt")
    dist.destroy_process_group()
