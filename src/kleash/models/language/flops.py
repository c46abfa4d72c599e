"""How much arithmetic a pass is, by two formulas, and what a machine could do at most.

**causal**: what has to be done. Every token is multiplied with the layers' weights and sees itself
and what came before it; only tokens before a choice go through the head.
**usual**: what most papers and frameworks count (PaLM, 2204.02311, appendix B; verl's counter).
Every token goes through the head and sees its whole conversation, also what comes after it.

So the usual figure is never the smaller one. Both count a multiplication and an addition as two,
an update as three forward passes, and nothing twice that was computed twice to save memory. Under
LoRA no gradient of the frozen weights is worked out: their products count twice, not three times.
Look-ups in the embedding, norms and the optimiser are not counted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kleash.models.language.shape import Shape

PEAKS = {
    "H200": 989e12,
    "H100 PCIe": 756e12,
    "H100 NVL": 835e12,
    "H100": 989e12,
    "A100": 312e12,
    "L40S": 362e12,
    "RTX 4090": 165e12,
}
"""Dense bf16 peaks in FLOP/s, from the makers' data sheets: half of what they print as `with
sparsity`. The first name that is part of a device's is taken."""
BANDWIDTHS = {
    "H200": 4.8e12,
    "H100 PCIe": 2.0e12,
    "H100 NVL": 3.9e12,
    "H100": 3.35e12,
    "A100-SXM4-40GB": 1.555e12,
    "A100": 2.039e12,
    "L40S": 0.864e12,
    "RTX 4090": 1.008e12,
}
"""Bytes of memory read in a second, from the same data sheets."""


@dataclass(frozen=True)
class Work:
    """Floating-point operations, by both formulas."""

    causal: float
    usual: float

    def __add__(self, other: Work) -> Work:
        return Work(self.causal + other.causal, self.usual + other.usual)

    def __mul__(self, times: float) -> Work:
        return Work(self.causal * times, self.usual * times)

    def mfu(self, seconds: float, peak: float) -> dict[str, float]:
        """The share of a device's peak that this was, by both formulas."""
        return {"causal": self.causal / seconds / peak, "usual": self.usual / seconds / peak}


def forward(shape: Shape, lengths: Sequence[int], choices: int | None = None) -> Work:
    """One pass over conversations of these lengths; all tokens are choices if not said.

    Saying the same tokens one by one, with keys and values kept, is as much.
    """
    return _products(shape, lengths, choices) + _attention(shape, lengths)


def headless(shape: Shape, lengths: Sequence[int]) -> Work:
    """One pass that ends before the head, such as a reference's whose head is done elsewhere."""
    body = 2.0 * shape.body * sum(lengths)
    return Work(body, body) + _attention(shape, lengths)


def update(
    shape: Shape, lengths: Sequence[int], choices: int | None = None, *, rank: int = 0
) -> Work:
    """Forward and back; with a rank, only of an adapter on every product but the head."""
    products, attention = _products(shape, lengths, choices), _attention(shape, lengths)
    if not rank:
        return (products + attention) * 3
    added = 2.0 * shape.adapter(rank) * sum(lengths)
    return products * 2 + (attention + Work(added, added)) * 3


def _products(shape: Shape, lengths: Sequence[int], choices: int | None) -> Work:
    tokens = sum(lengths)
    headed = tokens if choices is None else choices
    return Work(
        2.0 * (shape.body * tokens + shape.table * headed),
        2.0 * (shape.body + shape.table) * tokens,
    )


def _attention(shape: Shape, lengths: Sequence[int]) -> Work:
    """Scores and the mix of values: two products over what a token sees, in every layer."""
    each = 4.0 * shape.layers * shape.heads * shape.head
    seen = sum(length * (length + 1) / 2 for length in lengths)
    return Work(each * seen, each * sum(length**2 for length in lengths))


def said_at_most(
    shape: Shape,
    conversations: int,
    context: int,
    bandwidth: float,
    *,
    weight_bytes: float = 2,
    kept_bytes: float = 2,
) -> float:
    """Tokens in a second that so many conversations of this context could say together at most.

    For each token all weights that are multiplied with and all keys and values are read once.
    """
    weights = weight_bytes * (shape.body + shape.table + shape.small)
    kept = kept_bytes * shape.kept * conversations * context
    return conversations * bandwidth / (weights + kept)


def peak(device: str) -> float | None:
    """The peak of a device of torch, in FLOP/s, where it is known."""
    return known(PEAKS, device)


def bandwidth(device: str) -> float | None:
    """Bytes that a device of torch reads in a second at most, where it is known."""
    return known(BANDWIDTHS, device)


def known(figures: dict[str, float], device: str) -> float | None:
    """The figure of the device's kind."""
    if not device.startswith("cuda"):
        return None
    from torch import cuda

    return of_name(figures, cuda.get_device_name(device))


def of_name(figures: dict[str, float], name: str) -> float | None:
    """The figure of a device with this name."""
    return next((figure for kind, figure in figures.items() if kind in name), None)
