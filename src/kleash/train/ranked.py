"""A language agent trained by several processes: each plays its groups and learns from its packs.

Every rank holds the policy twice: whole, to play with, to measure and to keep, and its share of the
pieces that learn (FSDP2), which are gathered into the whole one after each update. What was played
and judged is told to all ranks, so that each works out the same numbers of the whole batch.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from itertools import groupby
from typing import Any, Self, TypeVar

import torch
from torch import Tensor

from kleash.engine import Engine
from kleash.errors import KleashError
from kleash.grpo import Choices
from kleash.language.policy import Batch, LanguagePolicy
from kleash.policy import Judged, Reference
from kleash.recipe import AgentRecipe, Phase
from kleash.rollout import Groups
from kleash.rollout.agent import AgentWorld, Asked
from kleash.runs import Run
from kleash.train.agent import AgentTrainer
from kleash.train.descent import Descent
from kleash.train.packs import PackedLeash, Seen
from kleash.train.pieces import Kept, begun
from kleash.train.ranks import count, gathered, is_first, rank, summed
from kleash.train.sharded import balanced, gather, packs_of_rank, pieces_of, shard
from kleash.train.update import Losses, Parts, together
from kleash.types import Episode, Listener

T = TypeVar("T")

# --- playing


def dealt(asked: Sequence[Asked], ranks: int) -> list[list[int]]:
    """For each rank, the places of what it plays: whole groups, about as many episodes each.

    Episodes of a task stay together, since an engine hears what they share once.
    """
    places = groupby(range(len(asked)), key=lambda place: asked[place].task.id)
    groups = [list(group) for _, group in places]
    shares = balanced([len(group) for group in groups], ranks)
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

    def play(self, engine: Engine, asked: Sequence[Asked]) -> list[Episode]:
        """Every episode in order; what ends one rank's playing ends all."""
        shares, before = dealt(asked, count()), self.ledger.usage()
        played: list[Episode] = []
        failed: KleashError | None = None
        try:
            played = super().play(engine, [asked[at] for at in shares[rank()]])
        except KleashError as error:
            failed = error
        everyone = gathered((played, failed, self.ledger.usage().since(before)))
        for other, (_, broke, usage) in enumerate(everyone):
            if broke is not None:
                raise broke
            if is_first() and other:
                self.ledger.count(usage)
        if is_first():
            self.progress(len(asked) - len(played))
        found: dict[int, Episode] = {}
        for share, (theirs, _, _) in zip(shares, everyone, strict=True):
            found |= zip(share, theirs, strict=True)
        return [found[place] for place in range(len(asked))]


# --- learning


class SharedDescent(Descent):
    """An optimiser over the pieces here, of a loss that is the sum of all ranks' losses."""

    whole: LanguagePolicy
    """What plays: it gets the new weights after each update."""

    def down(self, losses: Iterable[Tensor], batch: Any, rate: float | None = None) -> float:
        """One update of all ranks; FSDP takes means of their gradients, where sums are meant."""
        norm = super().down((loss * count() for loss in losses), batch, rate)
        gather(self.policy, self.whole)
        return norm

    def clip(self) -> Tensor:
        """The norm of the whole gradient."""
        norm = super().clip()
        return norm.full_tensor() if hasattr(norm, "full_tensor") else norm


class SharedLosses(Losses):
    """The losses of this rank's packs; the metrics, once all are through, are those of all."""

    counts: Sequence[float] = ()
    """0 for a pack that is gone through once more only to meet the others."""

    def __iter__(self) -> Iterator[Tensor]:
        parts = zip(self.parts, self.counts, strict=True)
        self.parts = (replace(each, weight=each.weight * counts) for each, counts in parts)
        yield from super().__iter__()
        self.metrics = summed(self.metrics)


@dataclass(frozen=True)
class Beside:
    """A reference that is judged pack by pack."""

    policy: Any

    def take(self, place: slice | Tensor) -> Any:
        """All of it, whatever the pack."""
        return self.policy


class SharedLeash(PackedLeash):
    """`PackedLeash` on this rank's packs. Whatever is told of a batch is of all ranks' packs."""

    most = 0  # tokens of a pack
    counts: Sequence[float] = ()

    def shares(self, batch: Batch) -> Parts:
        """This rank's packs of a batch."""
        how = replace(self.policy.packing, tokens=min(self.most, self.policy.packing.tokens))
        packs = packs_of_rank(batch, rank(), count(), how)
        self.counts = [counts for _, _, counts in packs]
        return [(part, index) for part, index, _ in packs]

    def learn(
        self, groups: Groups, logp_old: Tensor | None = None, tied: Tensor | None = None
    ) -> tuple[dict[str, float], Judged]:
        """One update goes over the packs once, with the reference; several, and a leash in the
        reward, have them judged before.
        """
        if self.recipe.updates > 1 or self.recipe.leash.form == "reward_k1":
            found = super(PackedLeash, self).learn(groups, logp_old, tied)
        else:
            parts = self.split(groups.batch)
            found = self.learn_once(groups, parts, Beside(self.reference.policy))
        if self.reference.kind != "adapter_off":
            reference: Any = self.reference.module
            reference.reshard()  # what is not in a layer was left whole
        return found

    def losses(self, parts: Iterator[Choices], coefficient: float) -> Losses:
        """This rank's."""
        made = SharedLosses(parts, self.loss(coefficient))
        made.counts = self.counts
        return made

    def judge(self, parts: Parts, reference: Any) -> Judged:
        """The whole batch, each rank its packs."""
        with torch.no_grad():
            own = [(place, self.judged(batch, reference)) for batch, place in parts]
        every = self.of_all(own)
        return together([judged for _, judged in every], [place for place, _ in every])

    def now(
        self, choices: Choices, parts: Parts, reference: Any, known: Judged | None
    ) -> Iterator[Choices]:
        """What is known of the whole batch came without gradients."""
        return super().now(choices, parts, reference, None)

    def all_seen(self, seen: Seen) -> tuple[Judged, Choices]:
        """What all ranks saw, in the order of the batch."""
        return super().all_seen(self.of_all(seen))

    def of_all(self, own: Sequence[T]) -> list[T]:
        """What all ranks have to say of their packs, each pack once."""
        counted = [each for each, counts in zip(own, self.counts, strict=True) if counts]
        every = gathered(moved(counted, "cpu"))
        return [moved(each, self.policy.device) for theirs in every for each in theirs]


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


# --- the run


class RankedTrainer(AgentTrainer):
    """An agent's phases on one of several ranks."""

    LEASHED = SharedLeash
    DESCENT = SharedDescent

    def __init__(
        self, run: Run, recipe: AgentRecipe, world: AgentWorld, policy: Any, listen: Listener
    ) -> None:
        scale = recipe.scale.model_copy(update={"packed": "on"})
        packed = recipe.model_copy(update={"scale": scale})
        super().__init__(run, packed, SharedWorld.of(world), policy, listen)

    def begin(self, phase: Phase, epochs: int) -> None:
        """All ranks work out as many layers again: they meet in each."""
        super().begin(phase, epochs)
        assert isinstance(self.descent, SharedDescent)
        assert self.policy.packing is not None
        self.descent.whole = self.policy
        again = max(gathered(self.policy.packing.recompute))
        self.policy.packing = replace(self.policy.packing, recompute=again)
        self.pieces.packing = self.policy.packing
        if isinstance(self.leashed, SharedLeash):
            self.leashed.most, self.leashed.split = self.recipe.part_tokens, self.leashed.shares

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
        told: list[float] = []

        def losses() -> Iterator[Tensor]:
            for part, _, counts in packs:
                loss = self.pieces.judge(part).logp.sum() * (-counts / len(batch))
                told.append(loss.item())
                yield loss

        norm = self.descent.down(losses(), batch)
        return summed({"loss": sum(told)})["loss"], norm

    def restore(self, name: str) -> None:
        """Each rank reads its pieces, however many ranks wrote them."""
        kept = Kept(self.run, name)
        if any(key.startswith("optimiser.") for key in kept.names):
            begun(self.descent.optimiser)
        kept.fill(self.trainer_tensors())
        state = self.run.state(name)
        self.descent.step = state["step"]
        if self.leashed is not None:
            reference = self.leashed.reference
            reference.load_state_dict(reference.state_dict())
            self.leashed.controller.load(state["controller"])

    def speed(self, trained: float) -> dict[str, float]:
        """Tokens of all ranks in rank 0's seconds; MFU is of all their GPUs."""
        found = super().speed(trained)
        of_all = {k: v / count() for k, v in found.items() if k.startswith("speed/mfu/")}
        return found | of_all | ({"ranks": float(count())} if found else {})
