"""The processes of one run: how they find each other, and what all of them hear.

Every rank goes through the same loop with the same numbers. With one process everything here is a
plain call. What is written by several is in `checkpoints`, what is played and learnt in shares in
`ranked`.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields, is_dataclass, replace
from datetime import timedelta
from typing import Any, TypeVar

import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed.rendezvous import rendezvous

from kleash.errors import ConfigError, KleashError
from kleash.train.recipe import AgentRecipe, Recipe

T = TypeVar("T")
PATIENCE = timedelta(days=7)
"""Ranks wait for one that plays with a user who is away; one that died is noticed by its parent."""
GRACE = 10.0
"""Seconds that a rank which failed after another one leaves that one to say why."""


def count() -> int:
    """How many processes train this run."""
    return dist.get_world_size() if dist.is_available() and dist.is_initialized() else 1


def rank() -> int:
    """Which of them this is."""
    return dist.get_rank() if count() > 1 else 0


def is_first() -> bool:
    """Whether this one writes and prints."""
    return rank() == 0


# --- what all hear


def all_gather(own: T) -> list[T]:
    """What every rank has to say, by rank."""
    if count() == 1:
        return [own]
    every: list[Any] = [None] * count()
    dist.all_gather_object(every, own)
    return every


def first(call: Callable[[], T]) -> T:
    """What rank 0 found when it alone made this call; what it raised for its user, all raise."""
    if count() == 1:
        return call()
    told: list[Any] = [None, None]
    if is_first():
        try:
            told[0] = call()
        except KleashError as error:
            told[1] = error
    dist.broadcast_object_list(told, src=0)
    if told[1] is not None:
        raise told[1]
    found: T = told[0]
    return found


def all_sum(numbers: Mapping[str, float]) -> dict[str, float]:
    """By name, the sum over ranks."""
    every = all_gather(dict(numbers))
    return {name: sum(each[name] for each in every) for name in numbers}


def all_gather_tensors(own: T, device: Any) -> list[T]:
    """What every rank has to say in tensors, and records and lists of them, by rank."""
    return [moved(theirs, device) for theirs in all_gather(moved(own, "cpu"))]


def moved(value: Any, device: Any) -> Any:
    """Tensors, and records and lists of them, on a device."""
    if isinstance(value, Tensor):
        return value.to(device)
    if isinstance(value, (list, tuple)):
        return type(value)(moved(each, device) for each in value)
    if is_dataclass(value) and not isinstance(value, type):
        columns = {f.name: moved(getattr(value, f.name), device) for f in fields(value)}
        return replace(value, **columns)
    return value


# --- a tensor in pieces (FSDP2)


def local(tensor: Tensor) -> Tensor:
    """A tensor, or the piece of it that this rank holds."""
    found: Tensor = tensor.to_local() if hasattr(tensor, "to_local") else tensor
    return found


def first_place(tensor: Tensor) -> int:
    """Where in the whole tensor, laid flat, the piece here begins: rows go to ranks in order."""
    if not hasattr(tensor, "to_local"):
        return 0
    rows = -(-tensor.shape[0] // dist.get_world_size())
    before = min(dist.get_rank() * rows, tensor.shape[0])
    return before * math.prod(tensor.shape[1:])


# --- finding each other


@contextmanager
def joined(device: str) -> Iterator[str]:
    """Be one of the processes that torchrun has started; the device of this one.

    Of those that fail only the first says why: the others fail because of it, or just as it did.
    """
    size = int(os.environ.get("WORLD_SIZE", "1")) if dist.is_torchelastic_launched() else 1
    if size == 1:
        yield device
        return
    on_gpu = device.startswith("cuda")
    store, own, size = next(iter(rendezvous("env://")))
    try:
        here = own_device(device)
        backend = "cpu:gloo,cuda:nccl" if on_gpu else "gloo"
        dist.init_process_group(backend, store=store, rank=own, world_size=size, timeout=PATIENCE)
        yield here
        dist.barrier()
    except BaseException:
        if store.add("kleash failed", 1) > 1:
            time.sleep(GRACE)
            raise SystemExit(2) from None
        raise
    dist.destroy_process_group()


def own_device(device: str) -> str:
    """The GPU of this process among those of its machine."""
    if not device.startswith("cuda") or int(os.environ.get("WORLD_SIZE", "1")) == 1:
        return device
    if device != "cuda":
        raise ConfigError(f"each rank has a GPU of its own, not all {device}: give --device cuda")
    own = f"cuda:{os.environ['LOCAL_RANK']}"
    torch.cuda.set_device(own)
    return own


def several_machines() -> bool:
    """Whether the processes of this run are on more than one."""
    return os.environ.get("LOCAL_WORLD_SIZE", str(count())) != str(count())


def check(recipe: Recipe) -> None:
    """Refuse what so many processes cannot train together, before anything is written."""
    here = count()
    if isinstance(recipe, AgentRecipe) and recipe.scale.ranks not in (0, here):
        wanted = recipe.scale.ranks
        raise ConfigError(
            f"scale.ranks asks for {wanted} processes and there is {here}: start it with"
            f" torchrun --nproc-per-node={wanted} -m kleash train …, or set scale.ranks=0"
            if here == 1
            else f"scale.ranks asks for {wanted} processes and there are {here}: give torchrun"
            f" --nproc-per-node={wanted}, or set scale.ranks=0"
        )
    if here == 1:
        return
    if not isinstance(recipe, AgentRecipe):
        raise ConfigError(f"a selector trains in one process, not in {here}: start it without them")
    scale, engine = recipe.scale, recipe.engine
    for key, value, alone, instead, why in (
        ("scale.moments", scale.moments, "host", "device", "each rank holds a share"),
        ("scale.reference", scale.reference, "pinned", "device", "it is shared out"),
        ("scale.packed", scale.packed, "off", "on", "ranks learn from packs"),
        ("lora.base", recipe.lora.base, recipe.lora.base, "plain", "it is shared out"),
        (
            "engine",
            engine,
            engine if ":" in engine else "",
            "own",
            "each rank plays on its own weights",
        ),
    ):
        if value == alone != instead:
            raise ConfigError(
                f"{key}={value} is for one process, and there are {here}: {why}, so set"
                f" {key}={instead}"
            )
