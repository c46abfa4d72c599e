"""Whole turns on a GPU: by our engine, by `model.generate`, with users that think; judged again.

The rows of `gpu_rollouts` that need more than single steps.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kleash.seeds import generator

if TYPE_CHECKING:
    from kleash.models.engine import Said
    from kleash.models.engine.decoder import Decoder
    from kleash.models.engine.paged import PagedEngine

STEPS = 24  # that are timed


@dataclass(frozen=True)
class Shape:
    """A model's shape, and what is measured of it."""

    config: dict[str, Any]
    batches: tuple[int, ...] = (64, 256)
    contexts: tuple[int, ...] = (576, 2048, 4096)
    talks: int = 64
    opening: int = 512
    says: int = 128
    """Ids that a talk says where whole turns are timed: on the way it is 576 tokens long."""
    generated: int = 32
    turns: int = 5
    latency: float = 0.2


def now(device: str) -> float:
    """Seconds, when the device has done what it was told."""
    import torch

    if device == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter()


class Talks:
    """Conversations of one model."""

    def __init__(self, model: Any, shape: Shape, device: str) -> None:
        self.model, self.shape, self.device = model, shape, device
        self.engine: PagedEngine | None = None
        self.heard: list[list[int]] = []
        self.said: list[Said] = []
        self.rate = 0.0  # tokens per second of generate

    def generate(self) -> dict[str, Any]:
        """`model.generate` of as many conversations, sampled, reading not counted."""
        import torch

        shape, spent = self.shape, {}
        length = shape.opening + shape.says // 2 - shape.generated // 2
        words = shape.config["vocab_size"]
        rows = generator("bench", "generate").integers(0, words, (shape.talks, length))
        ids = torch.from_numpy(rows).to(self.device)
        for count in (1, 1, 1 + shape.generated):
            begun = now(self.device)
            with torch.no_grad():
                made = self.model.generate(
                    ids,
                    attention_mask=torch.ones_like(ids),
                    max_new_tokens=count,
                    do_sample=True,
                    top_k=0,
                    pad_token_id=0,
                )
            spent[count] = now(self.device) - begun
            assert made.shape[1] == length + count
        took = spent[1 + shape.generated] - spent[1]
        self.rate = shape.talks * shape.generated / took
        return {
            "batch": shape.talks,
            "context": length + shape.generated // 2,
            "tokens per second": self.rate,
            "seconds to read": spent[1],
        }

    # --- whole turns

    def talks(self) -> dict[str, Any]:
        """Whole turns by the engine: groups of eight that share an opening, asyncio and all."""
        from kleash.models.engine.paged import PagedEngine

        shape = self.shape
        room = 2 * shape.talks * (shape.opening + shape.says + 256)
        self.engine = PagedEngine(self.model, (), slots=2 * shape.talks, places=room)
        self.turn(2, 0)
        reading = self.turn(1, 1)
        spent = self.turn(shape.says, 2)
        count = shape.talks * shape.says
        rate = (count - shape.talks) / (spent - reading)
        found = {
            "batch": shape.talks,
            "context": shape.opening + shape.says // 2,
            "tokens per second, reading counted": count / spent,
            "tokens per second": rate,
            "seconds to read": reading,
            "tokens read, once for a group": shape.talks // 8 * shape.opening,
        }
        return found | ({"times generate": rate / self.rate} if self.rate else {})

    def turn(self, most: int, seed: int) -> float:
        """One turn of every talk; what is said last is kept."""
        assert self.engine is not None
        engine, words = self.engine, self.shape.config["vocab_size"]
        rng = generator("bench", "openings", seed)
        self.heard = [rng.integers(0, words, self.shape.opening).tolist() for _ in range(99)]

        async def one(number: int) -> Said:
            talk = engine.talk((seed, number), most=most)
            try:
                return await engine.say(talk, self.heard[number // 8])
            finally:
                engine.forget(talk)

        async def all_of_them() -> list[Said]:
            return await asyncio.gather(*map(one, range(self.shape.talks)))

        begun = now(self.device)
        self.said = asyncio.run(all_of_them())
        return now(self.device) - begun

    def judged(self) -> dict[str, Any]:
        """How far log-probabilities when sampled are from those of the trainer's forward pass.

        Beside it, how far the trainer's are from those of the model's own forward pass.
        """
        import torch

        from kleash.models.language.policy import LanguagePolicy
        from kleash.types import Turn

        policy = LanguagePolicy(self.model)
        chosen = range(0, self.shape.talks, 4)
        heard = [self.heard[number // 8] for number in chosen]
        said = [self.said[number] for number in chosen]
        episodes = [[Turn(tuple(h), s.ids, s.logp)] for h, s in zip(heard, said, strict=True)]
        with torch.no_grad():
            trainer = policy.judge(policy.gather(episodes)).logp.float().cpu()
            own = []
            for ids, turn in zip(heard[:4], said[:4], strict=True):
                row = torch.tensor([[*ids, *turn.ids]], device=self.device)
                logits = self.model(row, logits_to_keep=len(turn.ids) + 1).logits[0, :-1].float()
                at = row[0, len(ids) :, None]
                own.append(logits.log_softmax(-1).gather(-1, at)[:, 0].cpu())
        sampled = torch.tensor([likely for turn in said for likely in turn.logp])
        model = torch.cat(own)
        return {
            "ids": len(sampled),
            **{f"sampled - trainer: {k}": v for k, v in gap(sampled, trainer).items()},
            **{f"model - trainer: {k}": v for k, v in gap(model, trainer[: len(model)]).items()},
        }

    def users(self, latency: float) -> dict[str, Any]:
        """Conversations whose turns are of several lengths, with users that think so long.

        There are more of them than slots, so that the batch stays full until the last ones. Two
        turns of each go before, in which graphs are captured, also of steps that read replies.
        """
        shape = self.shape
        engine, words = self.engine, shape.config["vocab_size"]
        assert engine is not None
        count = 3 * shape.talks
        rng = generator("bench", "users")
        openings = [rng.integers(0, words, shape.opening // 2).tolist() for _ in range(count)]
        most = rng.integers(shape.says // 8, shape.says, size=count).tolist()
        reply = rng.integers(0, words, max(2, shape.says // 4)).tolist()

        async def one(number: int, turns: int) -> int:
            talk = engine.talk(("users", number), most=most[number])
            heard, total = openings[number // 8], 0
            try:
                for _ in range(turns):
                    total += len((await engine.say(talk, heard)).ids)
                    await asyncio.sleep(latency)
                    heard = reply
            finally:
                engine.forget(talk)
            return total

        async def all_of_them(turns: int) -> list[int]:
            return await asyncio.gather(*(one(number, turns) for number in range(count)))

        asyncio.run(all_of_them(2))
        ticks, begun = engine.ticks, now(self.device)
        said = sum(asyncio.run(all_of_them(shape.turns)))
        spent = now(self.device) - begun
        steps = engine.ticks - ticks
        return {
            "talks": count,
            "slots": engine.most_slots,
            "turns": shape.turns,
            "latency, seconds": latency,
            "tokens said per second": said / spent,
            "seconds": spent,
            "steps": steps,
            "tokens said per step": said / steps,
            "ms per step": 1e3 * spent / steps,
        }

    def profile(self) -> dict[str, Any]:
        """Where the time of a step goes, by kernel."""
        from torch.profiler import ProfilerActivity
        from torch.profiler import profile as profiler

        assert self.engine is not None
        decoder, batch = self.engine.decoder, self.shape.talks
        laid(decoder, batch, self.shape.opening)
        decoder._one(batch, truncated=False)
        now(self.device)
        with profiler(activities=[ProfilerActivity.CUDA]) as found:
            for _ in range(3):
                decoder._one(batch, truncated=False)
            now(self.device)
        spent = {
            each.key: (each.device_time_total / 3, each.count / 3) for each in found.key_averages()
        }
        order = sorted(spent, key=lambda name: -spent[name][0])[:14]
        return {
            "microseconds of a step": sum(time for time, _ in spent.values()),
            "kernels": sum(count for _, count in spent.values()),
            **{name[:70]: [round(spent[name][0]), round(spent[name][1])] for name in order},
        }


def laid(decoder: Decoder, batch: int, place: int) -> None:
    """Feed a decoder one token of each of so many talks, all at that place, and room to go on."""
    import numpy as np

    from kleash.models.engine import decoder as fields

    fed = np.repeat(fields.EMPTY[:, None], batch, axis=1)
    fed[fields.IDS] = generator("bench", "ids").integers(0, 300, batch)
    fed[fields.SLOT] = np.arange(batch)
    fed[fields.PLACE] = place
    fed[fields.STREAM] = np.arange(batch) * 1_000_003
    fed[fields.LEFT] = 1 << 40
    fed[fields.KEYED] = 1
    spread = iter(generator("bench", "pages").permutation(decoder.pages.count).tolist())
    for slot in range(batch):
        held = decoder.pages.held[slot]
        held.clear()
        for _ in range(-(-(place + STEPS + 4) // 128)):
            decoder.pages._hold(slot, next(spread))
    decoder.start(fed, 1)
    decoder.fed_FN[:, :batch].copy_(decoder._host_FN[:, :batch])


def gap(ours: Any, theirs: Any) -> dict[str, float]:
    """How far two rows of log-probabilities are from one another, in nats."""
    off = (ours - theirs).abs().sort().values
    return {
        "mean": (ours - theirs).mean().item(),
        "mean size": off.mean().item(),
        "99th percentile": off[int(0.99 * (len(off) - 1))].item(),
        "largest": off[-1].item(),
    }
