"""An update of a language agent of real size, beside the plain way, part by part: `benchmarks gpu`.

Weights are drawn, so log-probabilities mean nothing; sizes and lengths are as in real use. Every
part is tried by itself: one that fails leaves its error among the figures, and the others go on.
On a CPU a tiny model of the same shape is measured, to see that it all runs.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import replace
from importlib import import_module
from typing import TYPE_CHECKING, Any

from benchmarks.figures import Figures
from benchmarks.shapes import SHAPES, TOKENS, conversations, drawn_model
from kleash.errors import KleashError
from kleash.models.language import flops
from kleash.models.language.flops import Work
from kleash.models.language.shape import Shape

if TYPE_CHECKING:
    import torch

    from kleash.models.language.packed import Packing
    from kleash.models.language.policy import Batch

PLAIN_AT_ONCE = 2
PLAIN_EPISODES = 12
"""Episodes of the plain way; its time is scaled to all of them by tokens."""
MODULES = ("step", "agreement", "fits")
PARTS = ("update", "reference", "rollouts", *MODULES)
"""What can be measured; the last ones have modules of their own."""


class Bench(Figures):
    """What is measured of one model on one device."""

    def __init__(
        self, name: str, device: str, seconds: float, *, tokens: int, backend: str, packs: str
    ) -> None:
        super().__init__(device, seconds, f"Qwen3-{name} shape")
        self.backend, self.packs = backend, packs
        self.model = drawn_model(name, device)
        self.tokens = tokens
        self.sizes = Shape.of(self.model.config)
        self.note("seconds to make the model", self.left(used=True))

    @property
    def whole(self) -> Work:
        """An update of the whole batch."""
        return flops.update(self.sizes, self.batch.lengths, len(self.batch))

    # --- ours

    def packing(self, compiled: str = "") -> Packing:
        """How episodes are packed here."""
        from kleash.models.language.packed import Packing

        tokens = 8192 if self.large else 64
        compiled = compiled or self.packs
        step = (128 if compiled == "dynamic" else 512) if self.large else 8
        kind: Any = compiled if self.backend else "off"
        return Packing(tokens=tokens, step=step, compile=kind, backend=self.backend)

    def ours(self) -> None:
        """Reference and update of a batch, packed."""
        from kleash.algo.policy import frozen
        from kleash.models.language.policy import LanguagePolicy

        self.policy = LanguagePolicy(self.model, packing=self.packing())
        size = self.model.config.vocab_size
        self.batch = self.policy.gather(conversations(self.tokens, size))
        self.note("episodes", len(self.batch.lengths))
        self.note("tokens", self.tokens)
        self.note("of which said by the policy", len(self.batch))
        self.reference: Any = frozen(self.policy)

    def reference_pass(self) -> None:
        """What the leash costs: the hidden states of the reference, then its head beside ours."""

        parts = self.policy.parts(self.batch, 1 << 20)
        with self.torch.no_grad():
            self.note("reference, seconds to compile", self.clocked(lambda: self.tie(parts[:1])))
            self.memory(reset=True)
            seconds = self.clocked(lambda: self.tie(parts))
        work = flops.headless(self.sizes, self.batch.lengths)
        self.rates("reference pass without head", seconds, work, self.tokens)
        self.note("reference pass, peak GiB", self.memory())

    def tie(self, parts: Sequence[Any]) -> list[Any]:
        """The reference's say on each part; kept, so that it is asked once."""
        self.tied = [self.policy.tie(part, self.reference) for part, _ in parts]
        return self.tied

    def pinned_pass(self) -> None:
        """The same with the reference in the machine's memory, layer by layer."""

        device = self.policy.device
        self.policy.packing = self.reference.packing = self.packing()
        self.note("seconds to pin the reference", self.clocked(self.reference.pinned))
        far = self.reference.streamed(device)
        self.memory(reset=True)
        seconds = self.clocked(lambda: self.policy.tie(self.batch, far))
        work = flops.headless(self.sizes, self.batch.lengths)
        self.rates("reference pass from the machine's memory", seconds, work, self.tokens)
        self.note("reference pass from the machine's memory, peak GiB", self.memory())

    def agreement(self) -> None:
        """Packed and padded log-probabilities of the shortest episodes.

        In bfloat16 both are rounded: which of them is nearer to float32 is told by another part.
        """
        order = sorted(range(len(self.batch.lengths)), key=lambda at: self.batch.lengths[at])
        few, _ = self.batch.take(sorted(order[:3]), 0)
        with self.torch.no_grad():
            try:
                self.policy.packing = replace(self.packing(), compile="off")
                packed = self.policy.judge(few).logp
                self.policy.packing = None
                padded = self.policy.judge(few).logp
            finally:
                self.policy.packing = self.packing()
        gap = (packed - padded).abs()
        self.note("packed against padded, largest gap (nats)", gap.max().item())
        self.note("packed against padded, mean gap (nats)", gap.mean().item())
        if not self.large and not gap.max().item() < 1e-4:
            raise RuntimeError("packed and padded log-probabilities differ")

    def update(self, name: str, packing: Packing) -> None:
        """One whole update with its optimiser step; the best of two where time allows."""
        from kleash.models.language.packed import layers_again
        from kleash.train.optimizer import RoundedAdamW

        if not hasattr(self, "adam"):
            weights = [p for p in self.policy.parameters() if p.requires_grad]
            self.adam = RoundedAdamW(weights, lr=1e-6, backend=self.backend if self.large else "")
        free = self.torch.cuda.mem_get_info()[0] if self.large else 1e12
        self.policy.packing = self.reference.packing = packing
        parts = self.policy.parts(self.batch, 1 << 20)
        room = max(part.room for part, _ in parts)
        self.note(f"{name}, free GiB before", free / 2**30)
        self.note(f"{name}, packs", len(parts))
        self.note(f"{name}, places of the largest pack", room)
        padding = sum(part.room for part, _ in parts) / sum(self.batch.lengths) - 1
        self.note(f"{name}, padding", padding)
        tied = getattr(self, "tied", ())
        if [len(head.hidden_ND) for head in tied] != [len(part) for part, _ in parts]:
            tied = self.tie(parts)
        self.warm_up(name, parts, tied, layers_again(self.model, room, free))
        self.memory(reset=True)
        seconds = self.clocked(lambda: self.one_update(parts, tied))
        self.rates(name, seconds, self.whole, self.tokens)
        if self.left() > 8 * seconds:
            seconds = min(seconds, self.clocked(lambda: self.one_update(parts, tied)))
            self.rates(name, seconds, self.whole, self.tokens)
        self.note(f"{name}, peak GiB", self.memory())
        self.note(f"{name}, seconds of the optimiser", self.clocked(self.descend))

    def warm_up(self, name: str, parts: Sequence[Any], tied: Sequence[Any], again: int) -> None:
        """The largest pack once; if it does not fit, with more layers worked out again."""
        largest = max(range(len(parts)), key=lambda at: parts[at][0].room)
        held = slice(largest, largest + 1)
        while True:
            assert self.policy.packing is not None
            self.policy.packing = replace(self.policy.packing, recompute=again)
            try:
                seconds = self.clocked(lambda: self.one_update(parts[held], tied[held]))
            except self.torch.OutOfMemoryError as error:
                self.note(f"{name}, does not fit with {again} layers again", str(error)[:200])
                if again >= self.model.config.num_hidden_layers:
                    raise
                again += 9
            else:
                break
            self.tidy()
        self.note(f"{name}, layers worked out again", again)
        self.note(f"{name}, seconds to compile", seconds)

    def one_update(self, parts: Sequence[Any], tied: Sequence[Any]) -> None:
        """Every pack forward and back with the default leash, then the step."""
        from kleash.algo.grpo import Choices, Clip, grpo_loss, leash_advantage

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
        if hasattr(self, "adam"):
            self.adam.gradients.close()
        for name in ("adam", "tied"):  # what the plain way has no room for
            self.__dict__.pop(name, None)
        self.tidy()
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
        self.rates("plain update, scaled to all episodes", whole, self.whole, self.tokens)
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


def gpu_bench(  # noqa: PLR0913 (one for each thing that can be told)
    device: str = "cuda",
    *,
    part: str = "update",
    model: str = "",
    seconds: float = 200.0,
    tokens: int = 0,
    backend: str | None = None,
    packs: str = "fixed",
    reference: str = "pinned",
) -> dict[str, Any]:
    """Update, reference and plain way at one shape; `part` says how far to go."""
    if part not in PARTS:
        raise KleashError(f"no part {part!r}: there is {', '.join(PARTS)}")
    if reference not in ("pinned", "device"):
        raise KleashError(f"no place {reference!r} for a reference: there is pinned and device")
    if part == "rollouts":
        return rollouts(model, seconds)
    os.environ.setdefault("PYTORCH_CUDA_ALLOC_CONF", "expandable_segments:True")
    large = device != "cpu"
    name = model or ("8b" if large else "tiny")
    if name not in SHAPES:
        raise KleashError(f"no shape {name!r}: there is {', '.join(SHAPES)}")
    if backend is None:
        backend = "inductor" if large else ""
    tokens = tokens or (TOKENS if large else 2400)
    if part in MODULES:
        measured = import_module(f"benchmarks.gpu_{part}")
        shape = model if part == "fits" and large else name  # without one, all that fit
        where = {"reference": reference} if part == "step" else {}
        found: dict[str, Any] = measured.measure(shape, device, seconds, tokens, **where)
        return found
    bench = Bench(name, device, seconds, tokens=tokens, backend=backend, packs=packs)
    here: torch.device | Any = bench.torch.cuda.device(device) if large else nullcontext()
    with here:
        updates(bench, part)
    bench.note("seconds of it all", bench.left(used=True))
    return bench.found


def updates(bench: Bench, part: str) -> None:
    """The reference's pass and, if that is the part, the update beside the plain way."""
    bench.attempt("setting", bench.ours)
    bench.attempt("agreement", bench.agreement)
    bench.attempt("reference", bench.reference_pass, 30)
    if part == "update":
        bench.attempt("update", lambda: bench.update("update", bench.packing()), 40)
        if "update, seconds" not in bench.found:  # the other way, then
            other = bench.packing("fixed" if bench.packs == "dynamic" else "dynamic")
            bench.attempt("other", lambda: bench.update("update", other), 50)
        bench.attempt("plain", bench.plain, 20)
    if "update, seconds" in bench.found:
        bench.attempt("shares", lambda: shares(bench.found, bench.note))
    bench.attempt("pinned", bench.pinned_pass, 35)


def rollouts(model: str, seconds: float) -> dict[str, Any]:
    """How fast an agent of that shape talks: rows of figures by their names."""
    from benchmarks import gpu_rollouts

    rows = []
    for row in gpu_rollouts.measure(seconds, f"qwen3-{model or '8b'}"):
        rows.append(row)
        print(json.dumps(row), file=sys.stderr, flush=True)  # noqa: T201
    rows.append(gpu_rollouts.verdict(rows))
    return {f"{n} {row['row']}": json.dumps(row) for n, row in enumerate(rows)}


def shares(found: dict[str, Any], note: Callable[[str, Any], None]) -> None:
    """What the leash takes of reference and update together."""
    reference = found["reference pass without head, seconds"]
    update = found["update, seconds"]
    note("share of the reference pass in reference and update", reference / (reference + update))
    note("share of the optimiser in the update", found["update, seconds of the optimiser"] / update)
