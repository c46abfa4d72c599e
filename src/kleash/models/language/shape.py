"""The sizes of a decoder of Llama's shape, and how many numbers that makes: nothing is allocated.

What a plan of memory and a count of arithmetic need to know of a model. No torch here, so that the
doctor can plan where it is not installed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kleash.errors import ConfigError

FAMILIES = ("Llama", "Mistral", "Qwen2", "Qwen3")
"""Of models of this shape, as classes of transformers begin."""
KINDS = tuple(map(str.lower, FAMILIES))
"""The same as configs have them."""


@dataclass(frozen=True)
class Shape:
    """A decoder: attention with grouped keys, a gated feed-forward part, norms before both."""

    vocabulary: int
    width: int
    inner: int
    layers: int
    heads: int
    kv_heads: int
    head: int
    """Width of a head."""
    tied: bool
    """Whether the head's weights are the embedding's."""
    head_norms: bool = True
    """Whether queries and keys are normed, as in Qwen3."""
    attention_biases: int = 0
    """Numbers that are added to queries, keys, values and the mixed heads, in a layer."""
    inner_biases: int = 0
    """The same of the feed-forward part."""

    @classmethod
    def of(cls, config: Any) -> Shape:
        """The shape that a config of transformers describes; others than Llama's are refused."""
        kind = config.model_type
        if kind not in KINDS:
            raise ConfigError(f"no plan for a {kind!r}: shapes are known of {', '.join(KINDS)}")
        heads = config.num_attention_heads
        kv_heads = getattr(config, "num_key_value_heads", None) or heads
        head = getattr(config, "head_dim", None) or config.hidden_size // heads
        width, inner = config.hidden_size, config.intermediate_size
        mixed = bool(getattr(config, "attention_bias", False))
        wide = kind == "qwen2" or mixed
        return cls(
            vocabulary=config.vocab_size,
            width=width,
            inner=inner,
            layers=config.num_hidden_layers,
            heads=heads,
            kv_heads=kv_heads,
            head=head,
            tied=bool(config.tie_word_embeddings),
            head_norms=kind == "qwen3",
            attention_biases=wide * (heads + 2 * kv_heads) * head + mixed * width,
            inner_biases=bool(getattr(config, "mlp_bias", False)) * (2 * inner + width),
        )

    @property
    def products(self) -> tuple[tuple[int, int], ...]:
        """In and out of every product of a layer: queries, keys, values, mix; gate, up, down."""
        own, shared = self.heads * self.head, self.kv_heads * self.head
        return (
            (self.width, own),
            (self.width, shared),
            (self.width, shared),
            (own, self.width),
            (self.width, self.inner),
            (self.width, self.inner),
            (self.inner, self.width),
        )

    @property
    def body(self) -> int:
        """Weights of the products of all layers."""
        return self.layers * sum(into * out for into, out in self.products)

    @property
    def table(self) -> int:
        """Weights of the embedding, or of the head."""
        return self.vocabulary * self.width

    @property
    def small(self) -> int:
        """Gains of norms, and biases."""
        norms = 2 * self.width + (2 * self.head if self.head_norms else 0)
        return self.layers * (norms + self.attention_biases + self.inner_biases) + self.width

    @property
    def parameters(self) -> int:
        """All of them, tied ones once."""
        return self.body + self.small + self.table * (1 if self.tied else 2)

    def adapter(self, rank: int) -> int:
        """Weights of a LoRA adapter on every product but the head."""
        return self.layers * rank * sum(into + out for into, out in self.products)

    @property
    def kept(self) -> int:
        """Numbers in the keys and values of one token."""
        return 2 * self.layers * self.kv_heads * self.head


def _qwen3(width: int, inner: int, layers: int, heads: int, *, tied: bool) -> Shape:
    return Shape(151936, width, inner, layers, heads, 8, 128, tied)


QWEN3: Mapping[str, Shape] = {
    "0.6B": _qwen3(1024, 3072, 28, 16, tied=True),
    "1.7B": _qwen3(2048, 6144, 28, 16, tied=True),
    "4B": _qwen3(2560, 9728, 36, 32, tied=True),
    "8B": _qwen3(4096, 12288, 36, 32, tied=False),
    "14B": _qwen3(5120, 17408, 40, 40, tied=False),
    "32B": _qwen3(5120, 25600, 64, 64, tied=False),
}
"""The dense models of Qwen3, as their configs on the hub have it."""
