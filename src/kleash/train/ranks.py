"""The processes of one run: how they find each other, who writes, and what all of them hear.

Every rank goes through the same loop with the same numbers. Rank 0 alone reads and writes the run's
folder, and tells the others what it found; to a checkpoint each adds its pieces. What is learnt and
played in shares is in `ranked`. With one process everything here is a plain call.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from datetime import timedelta
from typing import Any, TypeVar

import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed.rendezvous import rendezvous

from kleash.errors import ConfigError, KleashError
from kleash.recipe import AgentRecipe, Recipe
from kleash.runs import Checkpoint, Run
from kleash.train.pieces import PIECES, save

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


def gathered(own: T) -> list[T]:
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


def summed(numbers: Mapping[str, float]) -> dict[str, float]:
    """By name, the sum over ranks."""
    every = gathered(dict(numbers))
    return {name: sum(each[name] for each in every) for name in numbers}


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
    scale = recipe.scale
    for key, value, alone, why in (
        (
            "scale.moments",
            scale.moments,
            scale.moments == "host",
            "each rank holds a share: device",
        ),
        (
            "scale.reference",
            scale.reference,
            scale.reference == "pinned",
            "it is shared out: device",
        ),
        ("scale.packed", scale.packed, scale.packed == "off", "ranks learn from packs: on"),
        ("lora.base", recipe.lora.base, recipe.lora.base != "plain", "it is shared out: plain"),
        ("engine", recipe.engine, ":" in recipe.engine, "each rank plays on its own weights: own"),
    ):
        if alone:
            reason, _, instead = why.partition(": ")
            raise ConfigError(
                f"{key}={value} is for one process, and there are {here}: {reason}, so set"
                f" {key}={instead}"
            )


# --- the run's folder


def shared(run: Run) -> Run:
    """The run as all ranks may use it."""
    return SharedRun(run) if count() > 1 else run


def everyone(name: str) -> Any:
    """The method of that name, made by rank 0; all have what it found."""

    def call(run: SharedRun, *given: Any) -> Any:
        return first(lambda: getattr(run.plain, name)(*given))

    return call


class SharedRun(Run):
    """A run that several ranks train. All call the same methods in the same order."""

    def __init__(self, plain: Run) -> None:
        super().__init__(plain.path, plain.config, plain.given, plain.meta)
        self.plain = plain

    checkpoints = everyone("checkpoints")
    state = everyone("state")
    slim = everyone("slim")
    drop = everyone("drop")
    rewind = everyone("rewind")
    finish = everyone("finish")

    @property
    def finished(self) -> bool:
        """Whether all that was asked of the run has been done."""
        return first(lambda: self.plain.finished)

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Rank 0 holds it."""
        with ExitStack() as held:
            first(lambda: held.enter_context(self.plain.lock()))
            yield

    def reopen(
        self, config: Mapping[str, Any], given: Mapping[str, Any], meta: Mapping[str, Any]
    ) -> None:
        """Go on with a run; all hold what its folder then says."""
        first(lambda: self.plain.reopen(config, given, meta))
        mine = self.plain
        told = first(lambda: (mine.config, mine.given, mine.meta))
        self.config, self.given, self.meta = mine.config, mine.given, mine.meta = told

    def log(self, record: Mapping[str, Any]) -> None:
        """Rank 0 writes the line, which all have."""
        if is_first():
            self.plain.log(record)

    def time(self, record: Mapping[str, Any]) -> None:
        """Rank 0's time."""
        if is_first():
            self.plain.time(record)

    def metrics(self) -> Iterator[dict[str, Any]]:
        """The lines that are there now."""
        return iter(first(lambda: list(self.plain.metrics())))

    def save(
        self,
        name: str,
        weights: Mapping[str, Tensor],
        trainer: Mapping[str, Tensor],
        state: Mapping[str, Any],
    ) -> None:
        """Weights, which every rank has whole, are written once, and the trainer's in pieces."""
        passing = first(lambda: self.plain.begin_checkpoint(name))
        told = {**state, "trainer_files": save(passing / PIECES, trainer)}
        first(lambda: self.plain.end_checkpoint(passing, weights, told))

    def load(self, name: str, *, trainer: bool = True) -> Checkpoint:
        """Every rank reads what it needs by itself."""
        return self.plain.load(name, trainer=trainer)
