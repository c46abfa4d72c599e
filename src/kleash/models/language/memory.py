"""What training a model will take of a GPU's memory, part by part: computed, nothing is allocated.

Tensors only. What CUDA itself, workspaces of kernels and gaps between tensors take is not known
before a run; `Card.room` leaves something for them. No torch here: the doctor plans without it.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Literal

from kleash.errors import ConfigError, DataError
from kleash.models.language.shape import QWEN3, Shape

NF4 = 0.5 + 1 / 64 + 4 / (64 * 256)
"""Bytes of a weight in nf4: four bits, a byte for each 64, and a float for each 256 of those."""
BYTES = {"float32": 4.0, "bf16": 2.0, "nf4": 2.0}
"""Bytes of a plain number; of weights in nf4, what they are unpacked to."""
ON_HEAD = 32
"""Bytes for each logit of a chunk: logits, log-probabilities and probabilities on both sides."""
CHUNK = 1 << 26
"""Logits that are there at once, as `language.head` has it on a GPU."""

Precision = Literal["float32", "bf16", "nf4"]
Held = Literal["adapter_off", "copy", "swapped"]


@dataclass(frozen=True)
class Training:
    """How a model is to be trained and played, as far as memory depends on it."""

    rank: int = 0
    """Of a LoRA adapter on every product but the head; 0 trains every weight."""
    weights: Precision = "bf16"
    """Of the model; in nf4 the products of the layers only, and only under an adapter."""
    reference: Held = "swapped"
    """Who holds the reference: the policy without its adapter, a second copy, or the host."""
    recompute: int = 0
    """Layers that are worked out again on the way back."""
    compiled: bool = True
    """Whether layers are compiled: the gated product then keeps one tensor less."""
    tokens: int = 8192
    """In a pack."""
    choices: int = 4096
    """Of them, those that the policy said."""
    conversations: int = 16
    context: int = 4096
    """Room for keys and values: so many conversations of so many tokens."""
    chunk: int = CHUNK
    moments: Literal["device", "host"] = "device"
    """Where the optimiser's moments are between steps."""
    frozen: Literal["device", "host"] = "device"
    """Where the layers' weights are between uses, under an adapter."""

    def __post_init__(self) -> None:
        if not self.rank and (self.weights == "nf4" or self.frozen == "host"):
            raise ConfigError("weights in nf4 or on the host do not train: set a rank for LoRA")
        if not self.rank and self.reference == "adapter_off":
            raise ConfigError("a reference by adapter_off needs an adapter: set a rank")


@dataclass(frozen=True)
class Memory:
    """Bytes on the device by part, and those that lie on the host."""

    device: dict[str, int]
    host: dict[str, int]

    @property
    def total(self) -> int:
        """Of the device. Keys and values stay while the model is updated."""
        return sum(self.device.values())


def plan(shape: Shape, how: Training) -> Memory:
    """The bytes of every part."""
    size = BYTES[how.weights]
    trained = shape.adapter(how.rank) if how.rank else shape.parameters
    own = 4.0 if how.rank else size  # adapters are kept in float32
    weights = weight_bytes(shape, how.weights)
    body = weights - size * (shape.parameters - shape.body)
    largest = max(into * out for into, out in shape.products)
    device = {
        "weights": weights,
        "adapter": own * trained if how.rank else 0.0,
        # Gradients are summed in float32; of bf16 weights the moments are bf16, rounded at random.
        "gradients": 4.0 * trained,
        "moments": 2 * own * trained,
        "reference": weights if how.reference == "copy" else 0.0,
        "activations": activations(shape, how),
        "head": head(shape, how),
        "keys and values": size * shape.kept * how.conversations * how.context,
        "unpacked": size * largest if how.weights == "nf4" else 0.0,
    }
    host = {"reference": weights} if how.reference == "swapped" else {}
    if how.moments == "host":
        host["moments"] = device["moments"]
        # The step goes tensor by tensor: one's moments are here at a time.
        device["moments"] = 2 * own * (max(shape.table, largest) if not how.rank else 0)
    if how.frozen == "host":
        host["weights"] = body
        # Layers that are not worked out again hold what was brought for them until the way back.
        held = 1 - min(how.recompute, shape.layers) / shape.layers
        device["weights"] += 2 * size * largest - body + held * body
    return Memory(
        {part: round(number) for part, number in device.items()},
        {part: round(number) for part, number in host.items()},
    )


def weight_bytes(shape: Shape, precision: Precision) -> float:
    """Of the model itself: in nf4 embedding, head, norms and biases stay as they are."""
    rest = BYTES[precision] * (shape.parameters - shape.body)
    return rest + shape.body * (NF4 if precision == "nf4" else BYTES[precision])


def activations(shape: Shape, how: Training) -> float:
    """What the layers keep of a pack for the way back."""
    size, again = BYTES[how.weights], min(how.recompute, shape.layers)
    own, shared = shape.heads * shape.head, shape.kv_heads * shape.head
    # Before and behind both norms; queries, keys and values, the former two also before their
    # norm; the mix; gate, up and their product.
    normed = own + shared if shape.head_norms else 0
    numbers = 4 * shape.width + 2 * own + 2 * shared + normed + 3 * shape.inner
    if not how.compiled:  # and what the norms give before their gain, and the gate's own value
        numbers += 2 * shape.width + normed + shape.inner
    layer = size * numbers
    if how.rank:
        # Adapters read a float32 copy of a product's input, and leave `rank` numbers. Compiled, one
        # copy serves all products with that input, in whose place it is kept: the products' own
        # weights are frozen, and need none. (Measured: 8B shape, rank 16, 3 % more.)
        copied = 4.0 * sum(into for into, _ in shape.products)
        if how.compiled:
            copied = (4 - size) * (2 * shape.width + own + shape.inner)
        layer += (0 if how.weights == "float32" else copied) + 4 * how.rank * len(shape.products)
    kept = (shape.layers - again) * layer + again * size * shape.width
    return how.tokens * (kept + (layer if again else 0))


def head(shape: Shape, how: Training) -> float:
    """A chunk of logits; hidden states of policy and reference and their gradient."""
    rows = 3 * BYTES[how.weights] * how.choices * shape.width
    own = 0.0 if how.rank else (4 + BYTES[how.weights]) * shape.table  # its gradient, in the making
    chunk = min(how.chunk, how.choices * shape.vocabulary)
    return ON_HEAD * chunk + rows + own


# --- what fits


@dataclass(frozen=True)
class Card:
    """A GPU by what it is sold as."""

    name: str
    gib: float

    @property
    def room(self) -> float:
        """Bytes for tensors: 1 GiB and a twentieth are left to CUDA and to gaps (assumed)."""
        return (0.95 * self.gib - 1) * 2**30


CARDS = (Card("24 GB", 24), Card("40 GB", 39.4), Card("80 GB", 79.2), Card("141 GB", 139))
"""GiB as the driver gives them: RTX 4090, A100-40GB, A100-80GB or H100, H200."""

LEAST = Training(tokens=4096, choices=2048, conversations=8, context=4096)
"""The work that the table is about: packs of 4,096 tokens, 8 conversations at a time."""
WAYS: dict[str, Training] = {
    "full": LEAST,
    "full, moments on host": replace(LEAST, moments="host"),
    "LoRA": replace(LEAST, rank=16, reference="adapter_off"),
    "LoRA on nf4": replace(LEAST, rank=16, reference="adapter_off", weights="nf4"),
    "LoRA, weights on host": replace(LEAST, rank=16, reference="adapter_off", frozen="host"),
}
"""From the most demanding on. In `full` the reference is swapped in from host memory."""


@dataclass(frozen=True)
class Fit:
    """Whether a way of training fits a card: with as few layers worked out again as that takes."""

    way: str
    card: str
    fits: bool
    recompute: int
    memory: Memory


def fit(shape: Shape, way: str, card: Card) -> Fit:
    """The fewest layers worked out again with which it fits; if it never does, all of them."""
    for again in range(shape.layers + 1):
        found = plan(shape, replace(WAYS[way], recompute=again))
        if found.total <= card.room:
            return Fit(way, card.name, True, again, found)
    return Fit(way, card.name, False, shape.layers, found)


def fitting(shape: Shape) -> list[list[Fit]]:
    """For every way, every card."""
    return [[fit(shape, way, card) for card in CARDS] for way in WAYS]


def shape_at(name: str) -> Shape:
    """Qwen3 of that size, or the model in a folder, from its `config.json` alone."""
    if name in QWEN3:
        return QWEN3[name]
    file = Path(name) / "config.json"
    try:
        given = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        known = ", ".join(QWEN3)
        raise DataError(f"no model at {name}: give {known}, or a folder with config.json") from None
    config = {"tie_word_embeddings": False, "model_type": "?"} | given
    try:
        return Shape.of(SimpleNamespace(**config))
    except AttributeError as error:
        raise DataError(f"{file} does not say how large the model is: {error}") from None
