"""How much arithmetic a step was, and what share of the machine's peak that is (MFU).

The usual formula: 6 × parameters × tokens for an update, 2 × for a forward pass, plus attention
over what each token can see. Embeddings that are only looked up are not counted.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torch import cuda

# Dense bf16 peaks in FLOP/s, from the makers' data sheets.
PEAKS = {"H200": 989e12, "H100": 989e12, "A100": 312e12, "L40S": 362e12, "RTX 4090": 165e12}
UPDATE, FORWARD = 6, 2


def weights_used(model: Any) -> int:
    """How many weights a token is multiplied with: all but those of a look-up table."""
    looked_up = model.get_input_embeddings().weight
    own: int = sum(p.numel() for p in model.parameters() if p is not looked_up)
    head = model.get_output_embeddings()
    tied = head is not None and head.weight is looked_up
    return own + (int(looked_up.numel()) if tied else 0)


def flops(model: Any, tokens: float, context: float, *, passes: int) -> float:
    """Of `tokens` tokens that see `context` tokens each on average; `passes` is 6 or 2."""
    config = model.config
    width = config.num_attention_heads * getattr(
        config, "head_dim", config.hidden_size // config.num_attention_heads
    )
    attention = 2 * config.num_hidden_layers * width * context
    return float(passes * (weights_used(model) + attention) * tokens)


def peak(device: str) -> float | None:
    """The peak of a device, where it is known."""
    if not device.startswith("cuda"):
        return None
    name = cuda.get_device_name(device)
    return next((speed for known, speed in PEAKS.items() if known in name), None)


def arithmetic(
    model: Any, lengths: Sequence[int], rows: int, *, passes: int
) -> tuple[float, float]:
    """Of whole episodes: what must be done, and what the usual formula says it is.

    The first is causal: a token attends to itself and those before it, and the head is at `rows`
    tokens only. The usual formula has all tokens see all of their episode, and the head at every
    token; without rows there is no head in either.
    """
    config = model.config
    head = model.get_output_embeddings().weight.numel()
    body = weights_used(model) - head
    width = config.num_attention_heads * getattr(
        config, "head_dim", config.hidden_size // config.num_attention_heads
    )
    tokens, seen = sum(lengths), sum(length * (length + 1) / 2 for length in lengths)
    pairs = sum(length**2 for length in lengths)
    each = 2 * config.num_hidden_layers * width
    causal = passes * (body * tokens + head * rows + each * seen)
    usual = passes * ((body + (head if rows else 0)) * tokens + each * pairs)
    return float(causal), float(usual)
