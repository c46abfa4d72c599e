"""What one update takes of a device, beside what is planned for it: `benchmarks gpu --part fits`.

Each way is a shape, trained whole or by an adapter: a few packs of drawn conversations are learnt
twice with a reference, the second time measured. Nobody plays, so there are no keys and values.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from benchmarks.figures import Figures
from benchmarks.gpu_step import recipe_of
from benchmarks.shapes import GROUP, TOKENS, drawn_model, lengths_of_turns
from kleash.models.language import flops, memory
from kleash.models.language.shape import Shape
from kleash.seeds import generator, torch_generator
from kleash.types import Turn

if TYPE_CHECKING:
    from kleash.models.language.policy import LanguagePolicy
    from kleash.train.rollout import Groups

SHARE = GROUP
"""A part of a step's tokens, as one over it, that is learnt."""
NEEDS = 35.0
"""Seconds without which a way is not begun."""


@dataclass(frozen=True)
class Way:
    """What is trained."""

    shape: str
    rank: int = 0

    @property
    def name(self) -> str:
        """In words."""
        return f"{self.shape} {f'LoRA of rank {self.rank}' if self.rank else 'full'}"


WAYS = (Way("8b", 16), Way("4b"), Way("1.7b"), Way("8b", 64), Way("8b"))


class Fits(Figures):
    """One way after the other."""

    def __init__(self, device: str, seconds: float, tokens: int) -> None:
        super().__init__(device, seconds, "shapes of Qwen3")
        self.tokens = tokens
        self.recipe = recipe_of(large=self.large)

    def way(self, way: Way) -> None:
        """Learn twice, and say what it took."""
        self.torch.compiler.reset()  # nothing of another shape stays
        policy = self.made(way)
        shape, groups = Shape.of(config_of(policy)), self.groups(policy)
        lengths, said = groups.batch.lengths, len(groups.batch)
        leashed = self.leashed(way, policy)
        parts = policy.parts(groups.batch, self.recipe.part_tokens)
        self.note(f"{way.name}, packs", len(parts))
        self.note(f"{way.name}, layers worked out again", policy.packing.recompute)  # type: ignore[union-attr]
        compiling = self.clocked(lambda: leashed.update_on_batch(groups))
        self.note(f"{way.name}, seconds to compile", compiling)
        self.memory(reset=True)
        seconds = self.clocked(lambda: leashed.update_on_batch(groups))
        measured = self.memory()
        work = flops.update(shape, lengths, said, rank=way.rank) + flops.headless(shape, lengths)
        self.rates(f"{way.name}, update and reference", seconds, work, self.tokens)
        self.note(f"{way.name}, peak GiB", measured)
        largest = max(parts, key=lambda part: part[0].room)[0]
        plan = memory.plan(
            shape,
            memory.Training(
                rank=way.rank,
                reference="adapter_off" if way.rank else "copy",
                recompute=policy.packing.recompute,  # type: ignore[union-attr]
                tokens=largest.room,
                choices=max(len(part) for part, _ in parts),
                conversations=0,
            ),
        )
        gib = {part: round(size / 2**30, 2) for part, size in plan.device.items() if size}
        self.note(f"{way.name}, planned GiB", gib)
        self.note(f"{way.name}, planned GiB in all", plan.total / 2**30)
        if self.large:
            self.note(f"{way.name}, measured over planned", measured * 2**30 / plan.total)

    def made(self, way: Way) -> LanguagePolicy:
        """The policy, with its adapter perhaps."""
        from kleash.models.language.models import adapted
        from kleash.models.language.policy import LanguagePolicy
        from kleash.train.player import packing_of

        model = drawn_model(way.shape, self.device)
        if way.rank:
            model = adapted(model, torch_generator("bench", "adapter"), rank=way.rank)
        policy = LanguagePolicy(model)
        policy.packing = packing_of(self.recipe.scale, policy)
        return policy

    def groups(self, policy: LanguagePolicy) -> Groups:
        """Two groups of three drawn conversations."""
        from kleash.train.rollout import Groups

        words, rng = config_of(policy).vocab_size, generator("bench", "fits")

        def drawn(count: int) -> tuple[int, ...]:
            return tuple(rng.integers(0, words, count).tolist())

        lengths = lengths_of_turns(self.tokens, 2, 3)
        batch = policy.gather([[Turn(drawn(h), drawn(s), ()) for h, s in each] for each in lengths])
        reward = self.torch.tensor([0.0, 1.0, 0.5] * 2, device=self.device)
        group = self.torch.tensor([0, 0, 0, 1, 1, 1], device=self.device)
        return Groups(batch, batch.episode, reward, group, None, broken=0, dropped=0)

    def leashed(self, way: Way, policy: LanguagePolicy) -> Any:
        """Optimiser and reference, as a run has them after its first update."""
        from kleash.algo.policy import AdapterOff, frozen
        from kleash.train.optimizer import Optimizer
        from kleash.train.player import recomputed
        from kleash.train.update import LeashedPolicy

        optimizer = Optimizer(policy, self.recipe.lr, self.recipe.clip.norm, lambda batch: "")
        optimizer.updates = 2  # so that no weights are hashed, also under an adapter
        tied: Any = AdapterOff(policy) if way.rank else frozen(policy)
        reference: Any = SimpleNamespace(policy=tied, after_update=lambda *_: False)
        leashed = LeashedPolicy(self.recipe, policy, reference, optimizer, total=100)
        leashed.split = lambda batch: policy.parts(batch, self.recipe.part_tokens)
        assert policy.packing is not None
        policy.packing = replace(policy.packing, recompute=recomputed(policy, policy.packing))
        return leashed


def config_of(policy: LanguagePolicy) -> Any:
    """The model's config, under an adapter perhaps."""
    from kleash.models.language.policy import causal

    return causal(policy.model).config


def measure(name: str, device: str, seconds: float, tokens: int) -> dict[str, Any]:
    """Every way, or those of one shape; the tiny one is trained both ways."""
    bench = Fits(device, seconds, tokens // SHARE if tokens == TOKENS else tokens)
    ways = [way for way in WAYS if name in ("", way.shape)]
    for way in ways or [Way(name, rank) for rank in (4, 0)]:
        bench.attempt(way.name, lambda way=way: bench.way(way), NEEDS)  # type: ignore[misc]
    bench.note("seconds of it all", bench.left(used=True))
    return bench.found
