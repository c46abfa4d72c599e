"""How far log-probabilities in bfloat16 are from float32's: `benchmarks gpu --part agreement`.

Two ways in bfloat16 differ from each other because each of them is rounded. What matters is how far
each is from the truth, which here is the same weights in float32, padded. A way that is farther
from it than the padded one in bfloat16 would have a fault of its own.
"""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from benchmarks.figures import Figures
from benchmarks.gpu_talks import gap
from benchmarks.shapes import SHAPES, drawn_model
from kleash.seeds import generator
from kleash.types import Turn

if TYPE_CHECKING:
    from torch import Tensor

    from kleash.models.language.policy import Batch, LanguagePolicy

FARTHER = 1.1
"""How much farther from float32 than the padded way another of ours may be in the mean."""
OWN = "the model's own forward"  # what ours stand beside: how far it is off is not our doing


@dataclass(frozen=True)
class Talks:
    """Conversations that are played and judged: in groups of four that open alike."""

    count: int = 16
    turns: int = 2
    heard: int = 400
    said: int = 128


class Agreement(Figures):
    """One shape at several depths."""

    def __init__(self, name: str, device: str, seconds: float, talks: Talks) -> None:
        super().__init__(device, seconds, f"Qwen3-{name} shape")
        self.name, self.talks = name, talks
        self.whole = int(SHAPES[name]["layers"])

    def depth(self, layers: int) -> None:
        """All ways through a model of so many layers."""
        from kleash.models.language.packed import Packing
        from kleash.models.language.policy import LanguagePolicy

        model = drawn_model(self.name, self.device, layers=layers).bfloat16()
        policy = LanguagePolicy(model)
        episodes = self.played(model)
        batch = policy.gather(episodes)
        label = f"{layers} layers"
        self.note(f"{label}, choices", len(batch))
        ways = {"sampled": self.torch.tensor([p for e in episodes for t in e for p in t.logp])}
        tokens = max(2048, max(batch.lengths)) if self.large else 64
        packing = Packing(tokens=tokens, step=512 if self.large else 8)
        ways["padded"] = self.judged(policy, batch)
        ways["packed"] = self.judged(policy, batch, packing)
        if self.large:
            compiled = replace(packing, compile="fixed")
            ways["packed and compiled"] = self.judged(policy, batch, compiled)
        ways[OWN] = self.own(model, episodes)
        wide = LanguagePolicy(copy.deepcopy(model).float())
        truth = self.judged(wide, batch)
        self.note(
            f"{label}, packed against padded, both in float32, largest (nats)",
            (self.judged(wide, batch, packing) - truth).abs().max().item(),
        )
        self.compare(label, ways, truth)

    def compare(self, label: str, ways: dict[str, Tensor], truth: Tensor) -> None:
        """Every way against the truth, and against the padded one."""
        found = {way: gap(logp, truth) for way, logp in ways.items()}
        for way, figures in found.items():
            self.note(f"{label}, {way} against float32 (nats)", figures)
        for way in ("packed", "sampled"):
            self.note(f"{label}, {way} against padded (nats)", gap(ways[way], ways["padded"]))
        plain = found["padded"]["mean size"]
        for way, figures in found.items():
            self.note(f"{label}, {way}, times as far as padded", figures["mean size"] / plain)
        ours = {way: figures for way, figures in found.items() if way != OWN}
        far = [way for way, figures in ours.items() if figures["mean size"] > FARTHER * plain]
        if far:
            raise RuntimeError(f"farther from float32 than padded: {', '.join(far)}")

    # --- the ways

    def played(self, model: Any) -> list[list[Turn]]:
        """Conversations that the engine says, with what it says of them."""
        from kleash.models.engine.paged import PagedEngine

        talks = self.talks
        words = model.config.vocab_size
        room = talks.count * (talks.turns * (talks.heard + talks.said) + 256)
        engine = PagedEngine(model, (), slots=talks.count, places=room)

        async def one(number: int) -> list[Turn]:
            talk, turns = engine.talk(("agreement", number), most=talks.said), []
            for turn in range(talks.turns):
                rng = generator("bench", "agreement", turn, number if turn else number // 4)
                heard = tuple(rng.integers(0, words, talks.heard).tolist())
                said = await engine.say(talk, heard)
                turns.append(Turn(heard, said.ids, said.logp))
            engine.forget(talk)
            return turns

        async def every_one() -> list[list[Turn]]:
            return await asyncio.gather(*map(one, range(talks.count)))

        return asyncio.run(every_one())

    def judged(self, policy: LanguagePolicy, batch: Batch, packing: Any = None) -> Tensor:
        """What the trainer says, padded or packed."""
        policy.packing = packing
        with self.torch.no_grad():
            logp = policy.judge(batch).logp
        return logp.float().cpu()

    def own(self, model: Any, episodes: Sequence[Sequence[Turn]]) -> Tensor:
        """What transformers' own forward says, one conversation at a time."""
        found = []
        for turns in episodes:
            ids: list[int] = []
            places: list[int] = []
            for turn in turns:
                ids += turn.observation
                places += range(len(ids) - 1, len(ids) - 1 + len(turn.choices))
                ids += turn.choices
            row = self.torch.tensor([ids], device=self.device)
            at = self.torch.tensor(places, device=self.device)
            with self.torch.no_grad():
                logits = model(row, use_cache=False, logits_to_keep=at).logits[0].float()
            found.append(logits.log_softmax(-1).gather(-1, row[0, at + 1, None])[:, 0].cpu())
        every: Tensor = self.torch.cat(found)
        return every


def measure(name: str, device: str, seconds: float, tokens: int) -> dict[str, Any]:
    """A shallow model, then the whole one; how much is said is always the same."""
    talks = Talks() if device != "cpu" else Talks(count=8, heard=20, said=10)
    bench = Agreement(name, device, seconds, talks)
    for layers in (min(4, bench.whole - 1), bench.whole):
        bench.attempt(f"{layers} layers", lambda layers=layers: bench.depth(layers))  # type: ignore[misc]
    bench.note("seconds of it all", bench.left(used=True))
    return bench.found
