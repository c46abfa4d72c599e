"""An update of a language agent of real size, beside the plain way, part by part: `bench gpu`.

Weights are drawn, so log-probabilities mean nothing; sizes and lengths are as in real use. Every
part is tried by itself: one that fails leaves its error among the figures, and the others go on.
On a CPU a tiny model of the same shape is measured, to see that it all runs.
"""

from __future__ import annotations

import gc
import json
import os
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from kleash.errors import KleashError
from kleash.seeds import generator
from kleash.types import Turn

if TYPE_CHECKING:
    import torch

    from kleash.language.packed import Packing
    from kleash.language.policy import Batch

SHAPES: dict[str, dict[str, Any]] = {
    "8b": {"width": 4096, "inner": 12_288, "layers": 36, "heads": 32, "tied": False},
    "4b": {"width": 2560, "inner": 9728, "layers": 36, "heads": 32, "tied": True},
    "1.7b": {"width": 2048, "inner": 6144, "layers": 28, "heads": 16, "tied": True},
    "tiny": {"width": 32, "inner": 64, "layers": 3, "heads": 4, "tied": False},
}
"""Qwen3's; all but the tiny one have 8 heads of keys, heads of 128, and 151,936 ids."""
TASKS, GROUP, TOKENS = 6, 8, 179_517
"""A step of documents 003 and 004: 48 episodes, half of their tokens said by the policy."""
PLAIN_AT_ONCE = 2
PLAIN_EPISODES = 12
"""Episodes of the plain way; its time is scaled to all of them by tokens."""
PARTS = ("update", "reference", "rollouts", "step")
CLOSE = 0.25
"""Nats: the largest gap between packed and padded log-probabilities in bfloat16."""


def lengths_of_turns(tokens: int, tasks: int = TASKS, group: int = GROUP) -> list[list[list[int]]]:
    """For each episode its turns, as (heard, said); half of all tokens are said.

    A task's opening is the same for its group; turns are 3 to 16, as long as they happen to be.
    """
    rng = generator("bench", "gpu", "lengths")
    openings = rng.integers(300, 700, tasks)
    raw = []
    for number in range(tasks * group):
        turns = int(rng.integers(3, 17))
        heard = np.exp(rng.normal(4.7, 0.4, turns))
        heard[0] = openings[number // group]
        said = np.exp(rng.normal(5.2, 0.6, turns))
        raw.append((heard, said))
    for side, total in enumerate((tokens - tokens // 2, tokens // 2)):
        whole = shared_out(np.concatenate([each[side] for each in raw]), total)
        ends = np.cumsum([len(each[side]) for each in raw])[:-1]
        for each, part in zip(raw, np.split(whole, ends), strict=True):
            each[side][:] = part
    return [[[int(h), int(s)] for h, s in zip(*each, strict=True)] for each in raw]


def shared_out(weights: Any, total: int) -> Any:
    """Whole numbers of at least 1 in proportion to the weights, which sum to the total."""
    exact = 1 + weights / weights.sum() * (total - len(weights))
    whole = np.floor(exact)
    missing = int(total - whole.sum())
    whole[np.argsort(whole - exact, kind="stable")[:missing]] += 1
    return whole


def conversations(tokens: int, size: int) -> list[list[Turn]]:
    """Episodes of those lengths with ids drawn at random."""
    rng = generator("bench", "gpu", "ids")
    made = []
    for turns in lengths_of_turns(tokens):
        drawn = [[tuple(rng.integers(0, size, n).tolist()) for n in turn] for turn in turns]
        made.append([Turn(heard, said, ()) for heard, said in drawn])
    return made


def drawn_model(name: str, device: str) -> Any:
    """A Qwen3 of that shape with drawn weights, made where it will compute."""
    import torch
    from transformers import Qwen3Config, Qwen3ForCausalLM

    shape = SHAPES[name]
    large = name != "tiny"
    config = Qwen3Config(
        vocab_size=151_936 if large else 64,
        hidden_size=shape["width"],
        intermediate_size=shape["inner"],
        num_hidden_layers=shape["layers"],
        num_attention_heads=shape["heads"],
        num_key_value_heads=8 if large else 2,
        head_dim=128 if large else 8,
        max_position_embeddings=40_960,
        rms_norm_eps=1e-6,
        tie_word_embeddings=shape["tied"],
        use_cache=False,
    )
    dtype = torch.bfloat16 if device != "cpu" else torch.float32
    devices: list[int] | None = [] if device == "cpu" else None
    with torch.random.fork_rng(devices=devices), torch.device(device):
        model: Any = Qwen3ForCausalLM._from_config(config, dtype=dtype)
    return model.to(device).eval()


class Bench:
    """What is measured, on one device, until time is up."""

    def __init__(
        self, name: str, device: str, seconds: float, *, tokens: int, backend: str, packs: str
    ) -> None:
        import torch

        self.torch, self.name, self.device = torch, name, device
        self.began, self.seconds = time.monotonic(), seconds
        self.backend, self.packs = backend, packs
        self.large = device != "cpu"
        self.found: dict[str, Any] = {"setting": f"Qwen3-{name} shape, drawn weights, {device}"}
        self.model = drawn_model(name, device)
        self.tokens, self.peak = tokens, 0.0
        from kleash.train.work_done import peak

        self.peak = peak(device) or float("nan")
        self.note("seconds to make the model", self.left(used=True))

    def left(self, *, used: bool = False) -> float:
        """Seconds until time is up, or those that are gone."""
        gone = time.monotonic() - self.began
        return gone if used else self.seconds - gone

    def note(self, name: str, value: Any) -> None:
        """Keep a figure, and write it down at once."""
        self.found[name] = value
        line = json.dumps({"what": name, "figure": value, "at": round(self.left(used=True), 1)})
        print(line, file=sys.stderr, flush=True)  # noqa: T201 (so that none is lost if killed)

    def attempt(self, name: str, measure: Callable[[], None], needs: float = 0.0) -> None:
        """One part by itself; its error is its figure."""
        if self.left() < needs:
            self.note(f"{name}: not measured", f"{self.left():.0f} s were left")
            return
        try:
            measure()
        except Exception as error:  # noqa: BLE001 (whatever breaks a part must not break the others)
            self.note(f"{name}: failed", f"{type(error).__name__}: {str(error)[:600]}")
        gc.collect()
        if self.large:
            self.torch.cuda.empty_cache()

    def clocked(self, work: Callable[[], Any]) -> float:
        """Seconds of it on the device."""
        self.wait()
        began = time.perf_counter()
        work()
        self.wait()
        return time.perf_counter() - began

    def wait(self) -> None:
        """Until the device has done all it was told."""
        if self.large:
            self.torch.cuda.synchronize()

    def memory(self, *, reset: bool = False) -> float:
        """The peak of allocated memory since the last reset, in GiB."""
        if not self.large:
            return 0.0
        if reset:
            self.torch.cuda.reset_peak_memory_stats()
        return float(self.torch.cuda.max_memory_allocated()) / 2**30

    def rates(self, name: str, seconds: float, rows: int, passes: int) -> None:
        """Tokens per second and both MFUs of a pass over the whole batch."""
        from kleash.train.work_done import arithmetic

        batch = self.batch
        causal, usual = arithmetic(self.model, batch.lengths, rows, passes=passes)
        self.note(f"{name}, seconds", seconds)
        self.note(f"{name}, tokens per second", sum(batch.lengths) / seconds)
        self.note(f"{name}, MFU (causal)", causal / seconds / self.peak)
        self.note(f"{name}, MFU (usual formula)", usual / seconds / self.peak)

    # --- ours

    def packing(self, compiled: str = "") -> Packing:
        """How episodes are packed here."""
        from kleash.language.packed import Packing

        tokens = 8192 if self.large else 64
        compiled = compiled or self.packs
        step = (128 if compiled == "dynamic" else 512) if self.large else 8
        kind: Any = compiled if self.backend else "off"
        return Packing(tokens=tokens, step=step, compile=kind, backend=self.backend)

    def ours(self) -> None:
        """Reference and update of a batch, packed."""
        from kleash.language.policy import LanguagePolicy
        from kleash.policy import frozen

        self.policy = LanguagePolicy(self.model, packing=self.packing())
        size = self.model.config.vocab_size
        self.batch = self.policy.gather(conversations(self.tokens, size))
        self.note("episodes", len(self.batch.lengths))
        self.note("tokens", self.tokens)
        self.note("of which said by the policy", len(self.batch))
        self.reference = frozen(self.policy)

    def reference_pass(self) -> None:
        """What the leash costs: the hidden states of the reference, then its head beside ours."""
        from kleash.train.work_done import FORWARD

        parts = self.policy.parts(self.batch, 1 << 20)
        with self.torch.no_grad():
            self.note("reference, seconds to compile", self.clocked(lambda: self.tie(parts[:1])))
            self.memory(reset=True)
            seconds = self.clocked(lambda: self.tie(parts))
        self.rates("reference pass without head", seconds, 0, FORWARD)
        self.note("reference pass, peak GiB", self.memory())
        self.tied = self.tie(parts)

    def tie(self, parts: Sequence[Any]) -> list[Any]:
        """The reference's say on each part."""
        return [self.policy.tie(part, self.reference) for part, _ in parts]

    def agreement(self) -> None:
        """Packed and padded log-probabilities of the shortest episodes."""
        order = sorted(range(len(self.batch.lengths)), key=lambda at: self.batch.lengths[at])
        few, _ = self.batch.take(sorted(order[:3]), 0)
        with self.torch.no_grad():
            self.policy.packing = replace(self.packing(), compile="off")
            packed = self.policy.judge(few).logp
            self.policy.packing = None
            padded = self.policy.judge(few).logp
            self.policy.packing = self.packing()
        gap = (packed - padded).abs()
        self.note("packed against padded, largest gap (nats)", gap.max().item())
        self.note("packed against padded, mean gap (nats)", gap.mean().item())
        if not gap.max().item() < (CLOSE if self.large else 1e-4):
            raise RuntimeError("packed and padded log-probabilities differ")

    def update(self, name: str, packing: Packing) -> None:
        """One whole update with its optimiser step; the best of two where time allows."""
        from kleash.language.packed import layers_again
        from kleash.train.rounded import RoundedAdamW
        from kleash.train.work_done import UPDATE

        if not hasattr(self, "adam"):
            weights = [p for p in self.policy.parameters() if p.requires_grad]
            self.adam = RoundedAdamW(weights, lr=1e-6, backend=self.backend if self.large else "")
        free = self.torch.cuda.mem_get_info()[0] if self.large else 1e12
        self.policy.packing = packing
        parts = self.policy.parts(self.batch, 1 << 20)
        room = max(part.room for part, _ in parts)
        again = layers_again(self.model, room, free)
        self.policy.packing = replace(packing, recompute=again)
        self.note(f"{name}, free GiB before", free / 2**30)
        self.note(f"{name}, layers worked out again", again)
        self.note(f"{name}, packs", len(parts))
        self.note(f"{name}, places of the largest pack", room)
        padding = sum(part.room for part, _ in parts) / sum(self.batch.lengths) - 1
        self.note(f"{name}, padding", padding)
        tied = self.tie(parts)
        warm = self.clocked(lambda: self.one_update(parts[:1], tied[:1]))
        self.note(f"{name}, seconds to compile", warm)
        self.memory(reset=True)
        seconds = self.clocked(lambda: self.one_update(parts, tied))
        if self.left() > 8 * seconds:
            seconds = min(seconds, self.clocked(lambda: self.one_update(parts, tied)))
        self.note(f"{name}, peak GiB", self.memory())
        self.rates(name, seconds, len(self.batch), UPDATE)
        self.note(f"{name}, seconds of the optimiser", self.clocked(self.descend))

    def one_update(self, parts: Sequence[Any], tied: Sequence[Any]) -> None:
        """Every pack forward and back with the default leash, then the step."""
        from kleash.grpo import Choices, Clip, grpo_loss, leash_advantage

        self.adam.zero_grad()
        for (part, _), head in zip(parts, tied, strict=True):
            judged = self.policy.judge(part, head)
            logp = judged.logp.detach()
            assert judged.logp_ref is not None
            choices = Choices(
                logp=judged.logp,
                logp_old=logp,
                logp_ref=judged.logp_ref,
                advantage=(part.episode % 2 * 2 - 1).to(logp.dtype),
                weight=self.torch.full_like(logp, 1 / len(self.batch)),
                episode=part.episode,
                entropy=judged.entropy.detach(),
                exact_kl=judged.exact_kl,
            )
            leashed = leash_advantage(choices, form="return_to_go", coefficient=0.01)
            held = replace(leashed, advantage=leashed.advantage.detach())
            grpo_loss(held, Clip(), form="return_to_go", coefficient=0.01).total.backward()
        self.descend()

    def descend(self) -> None:
        """The norm, and the step."""
        self.adam.clip(1.0)
        self.adam.step()

    # --- the plain way

    def plain(self) -> None:
        """transformers' own forward, padded, every layer worked out again, torch's AdamW."""
        from kleash.train.work_done import UPDATE

        if hasattr(self, "adam"):
            self.adam.gradients.close()
        for name in ("adam", "tied"):
            self.__dict__.pop(name, None)
        gc.collect()
        if self.large:
            self.torch.cuda.empty_cache()
        self.policy.packing = None
        adam = self.torch.optim.AdamW(self.model.parameters(), lr=1e-6, fused=self.large)
        few, _ = self.batch.take(range(min(PLAIN_EPISODES, len(self.batch.lengths))), 0)
        self.model.gradient_checkpointing_enable(
            gradient_checkpointing_kwargs={"use_reentrant": False}
        )
        self.model.train()
        try:
            self.plain_passes(few, 1)
            self.memory(reset=True)
            seconds = self.clocked(lambda: self.plain_passes(few, len(few.lengths)))
            adam.step()
            step = self.clocked(adam.step)
            self.note("plain update, peak GiB", self.memory())
        finally:
            self.model.gradient_checkpointing_disable()
            self.model.eval()
            adam.zero_grad()
        whole = seconds * sum(self.batch.lengths) / sum(few.lengths) + step
        self.note("plain update, episodes measured", len(few.lengths))
        self.note("plain update, seconds of the optimiser", step)
        self.rates("plain update, scaled to all episodes", whole, len(self.batch), UPDATE)
        ours = self.found.get("update, seconds")
        if ours:
            self.note("update, times the plain way", whole / ours)

    def plain_passes(self, few: Batch, count: int) -> None:
        """Some episodes side by side, forward and back, with all logits there at once."""
        torch = self.torch
        ids, places, chosen = (
            each.split(size)
            for each, size in (
                (few.ids, few.lengths),
                (few.place, few.counts),
                (few.chosen, few.counts),
            )
        )
        for first in range(0, count, PLAIN_AT_ONCE):
            at = range(first, min(first + PLAIN_AT_ONCE, len(few.lengths)))
            rows = torch.nn.utils.rnn.pad_sequence([ids[i] for i in at], batch_first=True)
            mask = torch.nn.utils.rnn.pad_sequence(
                [torch.ones_like(ids[i]) for i in at], batch_first=True
            )
            logits = self.model(input_ids=rows, attention_mask=mask, use_cache=False).logits
            losses = [
                torch.nn.functional.cross_entropy(
                    logits[row, places[i]].float(), chosen[i], reduction="sum"
                )
                for row, i in enumerate(at)
            ]
            (sum(losses) / len(few)).backward()


def gpu_bench(
    device: str = "cuda",
    *,
    part: str = "update",
    model: str = "",
    seconds: float = 200.0,
    tokens: int = 0,
    backend: str | None = None,
    packs: str = "dynamic",
) -> dict[str, Any]:
    """Update, reference and plain way at one shape; `part` says how far to go."""
    if part not in PARTS:
        raise KleashError(f"no part {part!r}: there is {', '.join(PARTS)}")
    if part == "rollouts":
        from kleash.bench.gpu_rollouts import gpu_rollouts_bench  # type: ignore[import-not-found]

        rollouts: dict[str, Any] = gpu_rollouts_bench(device, seconds=seconds)
        return rollouts
    os.environ.setdefault("PYTORCH_CUDA_ALLOC_CONF", "expandable_segments:True")
    large = device != "cpu"
    name = model or ("8b" if large else "tiny")
    if name not in SHAPES:
        raise KleashError(f"no shape {name!r}: there is {', '.join(SHAPES)}")
    if backend is None:
        backend = "inductor" if large else ""
    tokens = tokens or (TOKENS if large else 2400)
    bench = Bench(name, device, seconds, tokens=tokens, backend=backend, packs=packs)
    here: torch.device | Any = bench.torch.cuda.device(device) if large else nullcontext()
    with here:
        bench.attempt("setting", bench.ours)
        bench.attempt("agreement", bench.agreement)
        bench.attempt("reference", bench.reference_pass, 30)
        if part in ("update", "step"):
            bench.attempt("update", lambda: bench.update("update", bench.packing()), 40)
            bench.attempt("shares", lambda: shares(bench.found, bench.note))
        if part == "update":
            if "update, seconds" not in bench.found:  # the other way, then
                other = bench.packing("fixed" if packs == "dynamic" else "dynamic")
                bench.attempt("other", lambda: bench.update("update", other), 50)
            bench.attempt("plain", bench.plain, 20)
    bench.note("seconds of it all", bench.left(used=True))
    return bench.found


def shares(found: dict[str, Any], note: Callable[[str, Any], None]) -> None:
    """What the leash takes of reference and update together."""
    reference = found["reference pass without head, seconds"]
    update = found["update, seconds"]
    note("share of the reference pass in reference and update", reference / (reference + update))
    note("share of the optimiser in the update", found["update, seconds of the optimiser"] / update)
