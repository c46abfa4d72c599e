"""How fast our decoder speaks on a GPU, beside memory's speed and `model.generate`.

Weights are drawn, of a real model's shape. The bound is what a step must read, the weights once and
every talk's keys and values, over the speed at which memory can be read; nothing else is counted.
Each row is measured by itself: one that fails says so, and the others are measured all the same.

    python -m benchmarks.gpu_rollouts --seconds 100
"""

from __future__ import annotations

import argparse
import gc
import itertools
import json
import statistics
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from benchmarks.gpu_talks import STEPS, Shape, Talks, laid, now
from kleash.seeds import torch_generator

if TYPE_CHECKING:
    from kleash.models.engine.decoder import Decoder

MEMORY = 4.3e12  # bytes per second that an H200 copies, read and written together
RESERVE = 8e9  # bytes that are left free beside pages
QWEN3 = {
    "vocab_size": 151936,
    "hidden_size": 4096,
    "intermediate_size": 12288,
    "num_hidden_layers": 36,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "head_dim": 128,
    "max_position_embeddings": 40960,
    "tie_word_embeddings": False,
}
TINY = {
    "vocab_size": 301,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "max_position_embeddings": 1024,
}


SHAPES = {
    "qwen3-8b": Shape(QWEN3),
    "qwen3-1.7b": Shape(
        QWEN3
        | {"hidden_size": 2048, "intermediate_size": 6144, "num_hidden_layers": 28}
        | {"num_attention_heads": 16, "tie_word_embeddings": True}
    ),
    "tiny": Shape(TINY, (8, 16), (40, 200), 8, 40, 8, 4, 2, 0.01),
}


class Bench:
    """One model on one device; what is left of the time decides what is measured."""

    def __init__(self, shape: Shape, seconds: float) -> None:
        import torch

        self.shape, self.device = shape, "cuda" if torch.cuda.is_available() else "cpu"
        self.ends = time.perf_counter() + seconds
        self.model: Any = None
        self.memory = MEMORY

    def left(self) -> float:
        """Seconds that are left."""
        return self.ends - time.perf_counter()

    # --- the machine and the model

    def machine(self) -> dict[str, Any]:
        """Where, with what, and how fast its memory is copied."""
        import torch
        import transformers

        found: dict[str, Any] = {
            "torch": torch.__version__,
            "transformers": transformers.__version__,
        }
        size = 1 << (32 if self.device == "cuda" else 24)
        source = torch.arange(size // 8, device=self.device)
        goal = torch.empty_like(source)
        spent = []
        for _ in range(6):
            begun = now(self.device)
            goal.copy_(source)
            spent.append(now(self.device) - begun)
        self.memory = 2 * size / min(spent)
        if self.device == "cuda":
            found["device"] = torch.cuda.get_device_name()
            found["free bytes"] = torch.cuda.mem_get_info()[0]
        return found | {"copied bytes per second": self.memory}

    def made(self) -> dict[str, Any]:
        """The model, with drawn weights."""
        import torch
        from transformers import Qwen3Config, Qwen3ForCausalLM

        from kleash.models.engine.decoder import put_side_by_side

        begun = now(self.device)
        dtype = torch.bfloat16 if self.device == "cuda" else torch.float32
        none: dict[str, Any] = {"pad_token_id": None, "bos_token_id": None, "eos_token_id": None}
        with torch.random.fork_rng(), torch.device(self.device):
            config = Qwen3Config(**self.shape.config, **none)
            self.model = Qwen3ForCausalLM._from_config(config, dtype=dtype).eval()
        self.model.requires_grad_(False)
        put_side_by_side(self.model)
        return {
            "parameters": sum(weight.numel() for weight in self.model.parameters()),
            "bytes a step reads of weights": self.weights(),
            "seconds": now(self.device) - begun,
        }

    def weights(self) -> int:
        """Bytes of the weights that a step reads: all but an embedding that is not the head too."""
        embedding, head = self.model.model.embed_tokens.weight, self.model.lm_head.weight
        sizes = {
            weight.data_ptr(): weight.numel() * weight.element_size()
            for weight in self.model.parameters()
            if weight is not embedding or embedding is head
        }
        return sum(sizes.values())

    # --- single steps

    def decoder(self) -> tuple[Decoder, dict[str, Any]]:
        """A decoder with as many pages as are wanted or fit, full of random keys and values."""
        import torch

        from kleash.models.engine.decoder import Decoder
        from kleash.models.engine.pages import Pages, Size

        config, weight = self.model.config, self.model.model.embed_tokens.weight
        wanted = max(self.shape.batches) * -(-max(self.shape.contexts) // 128) * 128
        kind = (config.num_hidden_layers, config.num_key_value_heads, config.head_dim)
        where = (
            max(self.shape.batches),
            config.max_position_embeddings,
            weight.dtype,
            weight.device,
        )
        token = Size(*kind, 0, *where).bytes_of_token
        if self.device == "cuda":
            torch.cuda.empty_cache()
            wanted = min(wanted, int(torch.cuda.mem_get_info()[0] - RESERVE) // token)
        pages = Pages(Size(*kind, wanted, *where))
        for buffer in (pages.keys_APHLD, pages.values_APHLD):
            for layer in buffer:
                layer.normal_(generator=torch_generator("bench", "cache", device=self.device))
        made = Decoder(self.model, pages, ())
        told: dict[str, Any] = {"places": wanted, "bytes of a token": token}
        if self.device == "cuda":
            begun = now(self.device)
            tried = made.tune()
            read = 64 * 4096 * token
            told["attention, bytes per second"] = {
                f"{c.columns} keys, {c.warps} warps, {c.stages} stages": read / seconds
                for c, seconds in tried.items()
            }
            told["seconds to tune"] = now(self.device) - begun
        return made, told

    def step(self, decoder: Decoder, batch: int, context: int) -> dict[str, Any]:
        """Steps of a batch of talks that are so long when the last of them is made."""
        asked, pages = batch, decoder.pages
        each = -(-context // 128) * 128
        batch = max(size for size in decoder.sizes if size <= min(asked, pages.size.places // each))
        laid(decoder, batch, context - STEPS - 4)
        begun = now(self.device)
        for _ in range(4):
            decoder._one(batch, truncated=False)
        ready = now(self.device) - begun
        begun = now(self.device)
        for _ in range(STEPS):
            decoder._one(batch, truncated=False)
        spent = (now(self.device) - begun) / STEPS
        cached = batch * (context - STEPS / 2) * pages.size.bytes_of_token
        whole = sum(weight.numel() * weight.element_size() for weight in self.model.parameters())
        need = self.weights() + cached
        told = {
            "batch": batch,
            "context": context,
            "ms per step": 1e3 * spent,
            "tokens per second": batch / spent,
            "bound, tokens per second": batch / (need / MEMORY),
            "share of the bound": need / MEMORY / spent,
            "share of the bound at this run's copy speed": need / self.memory / spent,
            "share of the bound, embedding counted as read": (whole + cached) / MEMORY / spent,
            "seconds to capture": ready,
        }
        if batch < asked:
            told["asked for"] = asked
            told["why fewer"] = (
                f"{asked} talks of {context} tokens are {asked * each} places and"
                f" {asked * each * pages.size.bytes_of_token / 1e9:.0f} GB; there are"
                f" {pages.size.places}"
            )
        return told

    def steps(self, decoder: Decoder) -> Iterator[dict[str, Any]]:
        """Every batch at every context."""
        for batch, context in itertools.product(self.shape.batches, self.shape.contexts):
            for each in decoder.pages.held[:]:
                each.clear()  # rubbish all: every step lays its talks out anew
            yield self.row("step", 3, partial(self.step, decoder, batch, context))

    # --- rows

    def row(self, name: str, needs: float, work: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        """What is found, why it is not there, or why it was not tried."""
        if self.left() < needs:
            return {"row": name, "skipped": f"{self.left():.0f} s left, and it needs {needs:g}"}
        begun = time.perf_counter()
        try:
            found = work()
        except Exception as error:  # noqa: BLE001 (one that fails must not cost the others)
            where = traceback.format_exc().strip().splitlines()[-7:]
            return {"row": name, "error": f"{type(error).__name__}: {error}"[:600], "where": where}
        return {"row": name, **found, "took": round(time.perf_counter() - begun, 2)}

    def rows(self) -> Iterator[dict[str, Any]]:
        """Everything, what matters most first."""
        yield self.row("machine", 0, self.machine)
        yield self.row("model", 0, self.made)
        made: list[Decoder] = []

        def decoder() -> dict[str, Any]:
            found, told = self.decoder()
            made.append(found)
            return told

        yield self.row("pages", 0, decoder)
        if made:
            yield from self.steps(made.pop())
        self.tidy()
        if self.model is None:
            return
        talks = Talks(self.model, self.shape, self.device)
        yield self.row("generate", 5, talks.generate)
        self.tidy()
        yield self.row("talks", 5, talks.talks)
        yield self.row("log-probabilities", 3, talks.judged)
        yield self.row("users", 15, partial(talks.users, 0.0))
        yield self.row("users", 15, partial(talks.users, self.shape.latency))
        if self.device == "cuda":
            yield self.row("profile", 4, talks.profile)

    def tidy(self) -> None:
        """Give back memory that nobody holds."""
        import torch

        gc.collect()
        if self.device == "cuda":
            torch.cuda.empty_cache()


def measure(seconds: float, shape: str = "qwen3-8b") -> Iterator[dict[str, Any]]:
    """Rows of results, each as soon as it is there; about so many seconds in all."""
    yield from Bench(SHAPES[shape], seconds).rows()


def verdict(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """What the rows say of the targets."""
    steps = [row for row in rows if row["row"] == "step" and "share of the bound" in row]
    talks = next((row for row in rows if row["row"] == "talks"), {})
    shares = [row["share of the bound"] for row in steps]
    return {
        "row": "targets",
        "tokens per second at the first batch and context (6000)": steps[0]["tokens per second"]
        if steps
        else None,
        "smallest share of the bound (0.5)": min(shares, default=None),
        "median share": statistics.median(shares) if shares else None,
        "times generate (10)": talks.get("times generate"),
    }


def main() -> None:
    """Write rows as lines of JSON."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--seconds", type=float, default=100.0)
    parser.add_argument("--shape", choices=sorted(SHAPES), default="qwen3-8b")
    given = parser.parse_args()
    rows = []
    for row in measure(given.seconds, given.shape):
        rows.append(row)
        sys.stdout.write(json.dumps(row) + "\n")
        sys.stdout.flush()
    sys.stdout.write(json.dumps(verdict(rows)) + "\n")


if __name__ == "__main__":
    main()
