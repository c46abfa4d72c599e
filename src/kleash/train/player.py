"""Who plays an agent's batches: the policy itself, or a copy of it while the policy learns.

Playing and learning share a GPU's memory: how an update goes through packs, and when an engine must
give its pages back for it, is here too.

Which weights play a batch is fixed by its number and never by the clock: batch t of an epoch is
played by the weights that were there before batch max(0, t - staleness) was learnt from. Every
epoch begins with nothing played, so a run that goes on from a checkpoint plays what was played.
"""

from __future__ import annotations

import asyncio
import copy
import gc
import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from kleash.errors import ConfigError
from kleash.models.engine import Engine
from kleash.models.engine.pages import unclaimed
from kleash.models.language.llama import of_this_shape
from kleash.models.language.packed import Packing, layers_again
from kleash.models.language.policy import LanguagePolicy
from kleash.train.recipe import Scale
from kleash.train.rollout import compute_one_way
from kleash.train.rollout.agent import AgentWorld, Attempt, play_tasks
from kleash.types import Episode

HALF = (torch.bfloat16, torch.float16)

Wanted = tuple[Sequence[Any], tuple[object, ...]]
"""The tasks of a batch, and what names their draws."""


@dataclass(frozen=True)
class Played:
    """The episodes of a batch, task by task."""

    members: list[list[Episode]]
    seconds: float
    staleness: int
    """How many batches the policy had learnt from since the weights that played were its own."""


class Player:
    """An engine that speaks for a policy; for a copy of it where weights may be stale."""

    def __init__(self, world: AgentWorld, policy: LanguagePolicy, staleness: int) -> None:
        if staleness and dist.is_initialized() and dist.get_world_size() > 1:
            raise ConfigError(
                "sampler.staleness needs a run of one process: ranks that play and learn at once"
                " would wait for each other in another order on each; set it to 0"
            )
        self.world, self.policy, self.staleness = world, policy, staleness
        self.speaker = twin(policy) if staleness else policy
        self.engine = world.engine(self.speaker)
        self.thread: ThreadPoolExecutor | None = None

    def sync_weights(self, weights: Mapping[str, Tensor] | None = None) -> None:
        """Speak with these weights; with the policy's as they are now, if none are given."""
        if self.staleness:
            self.speaker.load_state_dict(weights or self.policy.state_dict())
            synchronize(self.world.device)
        self.engine.refresh(self.speaker)

    def play(self, attempts: Sequence[Attempt]) -> list[Episode]:
        """Episodes by the weights that were followed last."""
        return self.world.play(self.engine, attempts)

    def batches(self, wanted: Sequence[Wanted]) -> Iterator[Played]:
        """Each batch in order; when the next one is asked for, the policy has learnt from it."""
        if self.staleness:
            yield from self._ahead(wanted)
            self.sync_weights()
            return
        for one in wanted:
            yield self._batch(one, 0)

    def after_update(self) -> None:
        """The policy has learnt from a batch: who is never stale follows at once."""
        if not self.staleness:
            self.sync_weights()

    def _ahead(self, wanted: Sequence[Wanted]) -> Iterator[Played]:
        """The same, later ones being played meanwhile."""
        if self.thread is None:
            self.thread = ThreadPoolExecutor(
                1, "player", initializer=begin_thread, initargs=(self.world.device,)
            )
        begun: deque[Future[Played]] = deque()
        for now in range(len(wanted)):
            first = now + self.staleness if now else 0
            numbers = range(first, min(now + self.staleness + 1, len(wanted)))
            weights = self._snapshot() if numbers else {}
            for number in numbers:
                begun.append(self.thread.submit(self._batch, wanted[number], number - now, weights))
            del weights
            yield begun.popleft().result()

    def _snapshot(self) -> dict[str, Tensor]:
        kept = {name: each.detach().clone() for name, each in self.policy.state_dict().items()}
        synchronize(self.world.device)
        return kept

    def _batch(
        self, one: Wanted, staleness: int, weights: Mapping[str, Tensor] | None = None
    ) -> Played:
        began = time.monotonic()
        if weights is not None:
            self.sync_weights(weights)
        members = play_tasks(self.engine, self.world, *one)
        return Played(members, time.monotonic() - began, staleness)

    def close(self) -> None:
        """End what is being played, and the thread."""
        if self.thread is None:
            return
        self.thread.shutdown(wait=False, cancel_futures=True)
        self.world.stop()
        self.thread.shutdown()
        self.thread = None
        with suppress(asyncio.CancelledError):  # nothing may be left that would end the next play
            self.world.wait(asyncio.sleep(0))


def twin(policy: LanguagePolicy) -> LanguagePolicy:
    """A copy that shares every weight that does not train."""
    shared = {id(weight): weight for weight in policy.parameters() if not weight.requires_grad}
    return copy.deepcopy(policy, shared).requires_grad_(False)


def begin_thread(device: str) -> None:
    """A thread computes as a run does, and on a GPU in a stream of its own."""
    compute_one_way()
    if device.startswith("cuda"):
        torch.cuda.set_stream(torch.cuda.Stream(torch.device(device)))


def synchronize(device: str) -> None:
    """Wait for what this thread has begun on a GPU: another thread's stream will need it."""
    if device.startswith("cuda"):
        torch.cuda.current_stream(torch.device(device)).synchronize()


# --- the memory they share


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
