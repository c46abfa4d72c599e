"""The embedded answerer's network: patches and words in, words out. About a million parameters.

A picture becomes three vectors, once. A prompt is a row of blocks, one for each demonstration and
one for the query: three picture vectors, two words of the question, and two words of the answer
(the second is `<end>` after an answer of one word). So every prompt with s shots has the same
length, and nothing is ever padded or masked beyond "look back only".

A *memory* is what positions leave for later ones: their keys and values in a layer,
[2, B, H, S, d].

Shapes: B batch, S positions, W of them that look, D width, V picture vectors, H heads of width d.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from kleash.config import Config
from kleash.tasks.data.scenes import ATTRIBUTES, PLACES, SIDE, STRANGE, VALUES, WORDS

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

    def project(self, x_BSD: Tensor, first: int, end: int) -> Tensor:
        """Of queries, keys and values those from `first` up to `end`: [1 to 3, B, H, S, d]."""
        width = x_BSD.shape[-1]
        rows = slice(first * width, end * width)
        made = F.linear(self.before_attention(x_BSD), self.qkv.weight[rows], self.qkv.bias[rows])
        parts: Tensor = made.unflatten(-1, (end - first, self.heads, -1))
        return parts.permute(2, 0, 3, 1, 4)

    def think(
        self,
        x_BSD: Tensor,
        query: Tensor,
        memory: Tensor,
        *,
        visible: Tensor | None = None,
        causal: bool = False,
    ) -> Tensor:
        """Take up what is found among keys and values, then the perceptron."""
        key, value = memory
        found = F.scaled_dot_product_attention(query, key, value, visible, is_causal=causal)
        x_BSD = x_BSD + self.mix(found.transpose(1, 2).flatten(2))
        thought: Tensor = self.fall(F.gelu(self.rise(self.before_hidden(x_BSD))))
        return x_BSD + thought

    def forward(
        self,
        x_BSD: Tensor,
        memory: Tensor | None = None,
        *,
        visible: Tensor | None = None,
        causal: bool = False,
    ) -> tuple[Tensor, Tensor]:
        """Positions look at those in memory and at each other; a longer memory comes along."""
        made = self.project(x_BSD, 0, 3)
        memory = longer(memory, made[1:])
        return self.think(x_BSD, made[0], memory, visible=visible, causal=causal), memory

    def look(
        self, x_BWD: Tensor, others_BSD: Tensor, memory: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """Positions look at others only; a longer memory comes along."""
        memory = longer(memory, self.project(others_BSD, 1, 3))
        return self.think(x_BWD, self.project(x_BWD, 0, 1)[0], memory), memory


def longer(memory: Tensor | None, new: Tensor) -> Tensor:
    """A memory with that of new positions after it."""
    return new if memory is None else torch.cat([memory, new], dim=3)


def look_back(new: int, before: int, device: torch.device) -> Tensor:
    """The mask [new, before + new] of positions that see all before them and themselves."""
    return torch.full((new, before + new), -math.inf, device=device).triu(before + 1)


def look_past_each_other(new: int, before: int, device: torch.device) -> Tensor:
    """The mask of positions that stand for one another: each sees all before, and itself."""
    apart = torch.full((new, new), -math.inf, device=device).fill_diagonal_(0.0)
    return torch.cat([torch.zeros(new, before, device=device), apart], dim=1)


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

    @property
    def reading_layers(self) -> list[Layer]:
        """The layers that read the prompt."""
        return [layer for layer in self.layers if isinstance(layer, Layer)]

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
            x, _ = layer(x)
        vectors, _ = self.gather.look(self.glance.expand(len(x), -1, -1), x)
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
            x_BSD, _ = layer(x_BSD, causal=True)
        logits: Tensor = self.head(self.last_norm(x_BSD))
        return logits

    def remember(self, x_BSD: Tensor) -> list[Tensor]:
        """The memory that the first positions of a prompt leave in each layer."""
        *layers, last = self.reading_layers
        memory = []
        for layer in layers:
            x_BSD, own = layer(x_BSD, causal=True)
            memory.append(own)
        return [*memory, last.project(x_BSD, 1, 3)]

    def read(
        self, x_BSD: Tensor, memory: Sequence[Tensor] | None = None
    ) -> tuple[Tensor, list[Tensor]]:
        """The logits after the last position, and the memory of each layer with all positions.

        In the last layer only the last position thinks: nobody looks at the others.
        """
        *layers, last = self.reading_layers
        earlier: Sequence[Tensor | None] = memory or [None] * len(self.layers)
        before_it = memory[0].shape[3] if memory else 0
        visible = look_back(x_BSD.shape[1], before_it, x_BSD.device) if memory else None
        grown = []
        for layer, before in zip(layers, earlier[:-1], strict=True):
            x_BSD, after = layer(x_BSD, before, visible=visible, causal=not memory)
            grown.append(after)
        x_B1D, after = last.look(x_BSD[:, -1:], x_BSD, earlier[-1])
        return self.head(self.last_norm(x_B1D[:, 0])), [*grown, after]

    def go_on(self, words_BW: Tensor, where: Tensor, memory: Sequence[Tensor]) -> Tensor:
        """The logits [B, W, words] after one more word, for W ways to go on."""
        x = self.word(words_BW) + where
        visible = look_past_each_other(x.shape[1], memory[0].shape[3], x.device)
        for layer, before in zip(self.reading_layers, memory, strict=True):
            x, _ = layer(x, before, visible=visible)
        logits: Tensor = self.head(self.last_norm(x))
        return logits


def question_tokens(question: str) -> list[int]:
    """The two words of a question."""
    return [TOKEN[word] for word in question.rstrip("?").split()]


def answer_tokens(answer: str) -> list[int]:
    """The words of an answer, with `<end>` where it has only one."""
    words = [TOKEN[word] for word in answer.split()]
    return [*words, TOKEN[END]][:ANSWER_WORDS]
