"""The embedded answerer's network: patches and words in, words out. About a million parameters.

A picture becomes three vectors, once. A prompt is a row of blocks, one for each demonstration and one
for the query: three picture vectors, two words of the question, and two words of the answer (the
second is `<end>` after an answer of one word). So every prompt with s shots has the same length, and
nothing is ever padded or masked beyond "look back only".

Shapes: B batch, S positions, D width, P patches, V picture vectors, H heads.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from kleash.config import Config
from kleash.data.scenes import ATTRIBUTES, PLACES, SIDE, STRANGE, VALUES, WORDS

END = "<end>"
VOCABULARY = (END, "mo", "ti", *PLACES, *ATTRIBUTES, *VALUES, *STRANGE, *WORDS)
TOKEN = {word: i for i, word in enumerate(VOCABULARY)}

PICTURE_VECTORS, QUESTION_WORDS, ANSWER_WORDS = 3, 2, 2
ASKED = PICTURE_VECTORS + QUESTION_WORDS
BLOCK = ASKED + ANSWER_WORDS
MAX_BLOCKS = 9


class Size(Config):
    """How large the network is."""

    width: int = 128
    """Width of every vector."""
    layers: int = 4
    """Layers that read the prompt."""
    picture_layers: int = 2
    """Layers that read the patches."""
    heads: int = 4
    """Attention heads."""
    hidden: int = 256
    """Width inside a layer."""
    patch: int = 8
    """Side of a patch in pixels."""


class Layer(nn.Module):
    """Pre-norm attention and a two-layer perceptron."""

    def __init__(self, size: Size) -> None:
        super().__init__()
        self.heads = size.heads
        self.before_attention = nn.LayerNorm(size.width)
        self.qkv = nn.Linear(size.width, 3 * size.width)
        self.mix = nn.Linear(size.width, size.width)
        self.before_hidden = nn.LayerNorm(size.width)
        self.rise = nn.Linear(size.width, size.hidden)
        self.fall = nn.Linear(size.hidden, size.width)

    def split(self, x_BSD: Tensor) -> Tensor:
        """[B, S, D] as heads, [B, H, S, D/H]."""
        return x_BSD.unflatten(-1, (self.heads, -1)).transpose(1, 2)

    def project(self, x_BSD: Tensor, first: int = 0) -> tuple[Tensor, ...]:
        """Queries (unless `first` is 1), keys and values of the positions."""
        start = first * x_BSD.shape[-1]
        made = F.linear(
            self.before_attention(x_BSD), self.qkv.weight[start:], self.qkv.bias[start:]
        )
        return tuple(self.split(part) for part in made.chunk(3 - first, dim=-1))

    def think(self, x_BSD: Tensor, seen_BHSd: Tensor) -> Tensor:
        """Take up what was seen, then the perceptron."""
        x_BSD = x_BSD + self.mix(seen_BHSd.transpose(1, 2).flatten(2))
        return x_BSD + self.fall(F.gelu(self.rise(self.before_hidden(x_BSD))))

    def forward(self, x_BSD: Tensor, *, causal: bool) -> tuple[Tensor, Tensor, Tensor]:
        """Every position looks at every one, or back only; keys and values come along."""
        query, key, value = self.project(x_BSD)
        seen = F.scaled_dot_product_attention(query, key, value, is_causal=causal)
        return self.think(x_BSD, seen), key, value

    def look(self, x_BWD: Tensor, others_BSD: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Some positions look at others; keys and values of the others come along."""
        key, value = self.project(others_BSD, first=1)
        width = x_BWD.shape[-1]
        asked = F.linear(
            self.before_attention(x_BWD), self.qkv.weight[:width], self.qkv.bias[:width]
        )
        seen = F.scaled_dot_product_attention(self.split(asked), key, value)
        return self.think(x_BWD, seen), key, value

    def look_back(self, x_BWD: Tensor, key: Tensor, value: Tensor) -> Tensor:
        """New positions look at kept keys and values and at themselves, but not at each other."""
        query, own_key, own_value = self.project(x_BWD)
        new, kept = x_BWD.shape[1], key.shape[2]
        visible = torch.ones(new, kept + new, dtype=torch.bool, device=x_BWD.device)
        visible[:, kept:] = torch.eye(new, dtype=torch.bool, device=x_BWD.device)
        seen = F.scaled_dot_product_attention(
            query,
            torch.cat([key, own_key], 2),
            torch.cat([value, own_value], 2),
            attn_mask=visible,
        )
        return self.think(x_BWD, seen)


class Network(nn.Module):
    """Pictures to vectors, blocks to words."""

    def __init__(self, size: Size) -> None:
        super().__init__()
        self.size = size
        patches = (SIDE // size.patch) ** 2
        self.patch = nn.Linear(3 * size.patch**2, size.width)
        self.patch_place = nn.Parameter(torch.zeros(patches, size.width))
        self.picture_layers = nn.ModuleList(Layer(size) for _ in range(size.picture_layers))
        self.glance = nn.Parameter(torch.zeros(PICTURE_VECTORS, size.width))
        self.gather = Layer(size)
        self.picture_norm = nn.LayerNorm(size.width)
        self.word = nn.Embedding(len(VOCABULARY), size.width)
        self.slot = nn.Parameter(torch.zeros(BLOCK, size.width))
        self.block = nn.Parameter(torch.zeros(MAX_BLOCKS, size.width))
        self.layers = nn.ModuleList(Layer(size) for _ in range(size.layers))
        self.last_norm = nn.LayerNorm(size.width)
        self.head = nn.Linear(size.width, len(VOCABULARY))

    def draw_weights(self, generator: torch.Generator) -> None:
        """Fresh weights, all from the generator."""
        for name, tensor in self.named_parameters():
            with torch.no_grad():
                if "norm" in name or "before" in name:
                    tensor.fill_(1.0 if name.endswith("weight") else 0.0)
                elif name.endswith("bias"):
                    tensor.zero_()
                else:
                    tensor.normal_(0.0, 0.02 if tensor.dim() < 2 else 0.05, generator=generator)

    def eye_parameters(self) -> list[nn.Parameter]:
        """What turns pictures into vectors."""
        parts = ("patch", "picture_layers", "glance", "gather", "picture_norm")
        return [p for name, p in self.named_parameters() if name.startswith(parts)]

    def reading_parameters(self) -> list[nn.Parameter]:
        """What turns blocks into words: all the others."""
        eyes = {id(parameter) for parameter in self.eye_parameters()}
        return [parameter for parameter in self.parameters() if id(parameter) not in eyes]

    def see(self, pictures: Tensor) -> Tensor:
        """[N, 48, 48, 3] bytes to [N, V, D]."""
        side = self.size.patch
        pixels = pictures.to(self.patch.weight.dtype) / 127.5 - 1.0
        patches = pixels.unfold(1, side, side).unfold(2, side, side).flatten(1, 2).flatten(2)
        x = self.patch(patches) + self.patch_place
        for layer in self.picture_layers:
            x, _, _ = layer(x, causal=False)
        vectors, _, _ = self.gather.look(self.glance.expand(len(x), -1, -1), x)
        normed: Tensor = self.picture_norm(vectors)
        return normed

    def place(self, blocks_BNLD: Tensor, first: int = 0) -> Tensor:
        """Add where each vector stands and lay the blocks end to end: [B, N·L, D]."""
        _, n, length, _ = blocks_BNLD.shape
        where = self.slot[:length] + self.block[first : first + n, None]
        return (blocks_BNLD + where).flatten(1, 2)

    def forward(self, x_BSD: Tensor) -> Tensor:
        """The logits of the next word after every position (training)."""
        for layer in self.layers:
            x_BSD, _, _ = layer(x_BSD, causal=True)
        logits: Tensor = self.head(self.last_norm(x_BSD))
        return logits

    def read(self, x_BSD: Tensor) -> tuple[Tensor, list[tuple[Tensor, Tensor]]]:
        """The logits after the last position, and what later words may look at.

        In the last layer only the last position thinks: nobody looks at the others.
        """
        *layers, last = (layer for layer in self.layers if isinstance(layer, Layer))
        seen = []
        for layer in layers:
            x_BSD, key, value = layer(x_BSD, causal=True)
            seen.append((key, value))
        x_B1D, key, value = last.look(x_BSD[:, -1:], x_BSD)
        return self.head(self.last_norm(x_B1D[:, 0])), [*seen, (key, value)]

    def go_on(self, words_BW: Tensor, where: Tensor, seen: list[tuple[Tensor, Tensor]]) -> Tensor:
        """The logits [B, W, words] after one more word, for W ways to go on."""
        x = self.word(words_BW) + where
        for layer, (key, value) in zip(self.layers, seen, strict=True):
            assert isinstance(layer, Layer)
            x = layer.look_back(x, key, value)
        logits: Tensor = self.head(self.last_norm(x))
        return logits


def question_tokens(question: str) -> list[int]:
    """The two words of a question."""
    return [TOKEN[word] for word in question.rstrip("?").split()]


def answer_tokens(answer: str) -> list[int]:
    """The words of an answer, with `<end>` where it has only one."""
    words = [TOKEN[word] for word in answer.split()]
    return [*words, TOKEN[END]][:ANSWER_WORDS]
