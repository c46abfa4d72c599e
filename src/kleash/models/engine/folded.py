"""The lean forward for small models on a CPU, where calling an operation costs as much as doing it.

Gains of norms are folded into the weights behind them, gains of heads into the rotations, and
weights that read the same are put side by side, so that a layer takes few operations. These are
copies: `reread` makes them anew when the policy was updated. Anything but plain float32 weights
goes through `lean`.

Shapes as in `lean`; P heads of queries and keys together.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from kleash.models.engine.lean import LeanForward, Tick, keep, laid_out
from kleash.models.engine.seats import Feed, Seats

SMALL = 2**22  # parameters of a model that is folded


@dataclass(frozen=True)
class Layer:
    """One layer's weights, ready to multiply with."""

    projected: Tensor
    """Queries, keys and values of a normed state."""
    cos: Tensor | None
    """Gains of the heads times cosines [L, P, D]; none where all heads share the plain ones."""
    sin: Tensor | None
    mixed: Tensor
    opened: Tensor
    """Gate and up."""
    closed: Tensor
    head_epsilon: float


def foldable(model: Any) -> bool:
    """Whether the model of Llama's shape is small, in float32, on a CPU, and has plain weights."""
    parameters = list(model.parameters())
    return (
        sum(p.numel() for p in parameters) <= SMALL
        and all(p.dtype == torch.float32 and p.device.type == "cpu" for p in parameters)
        and all(
            type(part) is nn.Linear and part.bias is None
            for layer in model.model.layers
            for block in (layer.self_attn, layer.mlp)
            for part in block.children()
            if hasattr(part, "in_features")
        )
        and model.config.hidden_act == "silu"
        and type(model.lm_head) is nn.Linear
        and model.lm_head.bias is None
        and type(model.model.embed_tokens) is nn.Embedding
    )


class FoldedForward(LeanForward):
    """Logits after the last id of every row, from folded weights."""

    def __init__(self, model: Any) -> None:
        super().__init__(model)
        net = model.model
        self.width = net.layers[0].self_attn.head_dim
        self.scaling = net.layers[0].self_attn.scaling
        self.epsilon = torch.full((1, 1), net.norm.variance_epsilon)
        size = model.config.hidden_size
        self.mean = torch.full((size, 1), 1 / size)
        self._layers: list[Layer] = []
        self._places = 0

    def reread(self) -> None:
        """The weights have changed."""
        self._layers = []

    def __call__(self, feed: Feed, seats: Seats) -> Tensor:
        """Logits [N, V] of what comes next in every row."""
        if not self._layers or self._places < seats.places:
            self._fold(seats.places)
        tick = laid_out(feed, seats, self.heads, self.head)
        found = F.embedding(tick.ids_T, self.embedding)
        plain = None
        if self._layers[0].cos is None:
            cos, sin = self._rotations(seats.places, self.embedding)
            plain = cos[tick.place_T, None], sin[tick.place_T, None]
        for index, layer in enumerate(self._layers):
            rows = len(tick.mask) if index == len(self._layers) - 1 else len(found)
            found = self._through(layer, index, found, rows, plain, tick, seats)
        return F.linear(self._normed(found), self.head)

    def _normed(self, found: Tensor) -> Tensor:
        """Divided by the root mean square; the gain is in the weights."""
        return found * torch.addmm(self.epsilon, found * found, self.mean).rsqrt_()

    def _through(
        self,
        layer: Layer,
        index: int,
        found: Tensor,
        rows: int,
        plain: tuple[Tensor, Tensor] | None,
        tick: Tick,
        seats: Seats,
    ) -> Tensor:
        """One layer: all ids leave their keys and values, the first `rows` go on."""
        heads_THD = F.linear(self._normed(found), layer.projected).unflatten(-1, (-1, self.width))
        turned, value = heads_THD.split([heads_THD.shape[1] - self.heads, self.heads], 1)
        half = turned.roll(self.width // 2, -1)
        if layer.cos is None or layer.sin is None:
            assert plain is not None
            turned = torch.addcmul(turned * plain[0], half, plain[1])
        else:
            size = torch.linalg.vector_norm(turned, dim=-1, keepdim=True)
            size = size.square_().div_(self.width).add_(layer.head_epsilon).rsqrt_()
            cos, sin = (each.index_select(0, tick.place_T) for each in (layer.cos, layer.sin))
            turned = torch.addcmul(turned * cos, half, sin).mul_(size)
        query, key = turned.split([turned.shape[1] - self.heads, self.heads], 1)
        keys, values = seats.layer(index, key[0])
        keep(key, keys, tick.written_TH)
        keep(value, values, tick.written_TH)
        mixed = self._mixed(query[:rows], keys, values, tick, self.scaling)
        found = torch.addmm(found[:rows], mixed, layer.mixed)
        gate, up = F.linear(self._normed(found), layer.opened).chunk(2, -1)
        return torch.addmm(found, F.silu(gate).mul_(up), layer.closed)

    @torch.no_grad()
    def _fold(self, places: int) -> None:
        """Make the copies, for so many places."""
        net = self.model.model
        self.embedding = net.embed_tokens.weight.detach()
        self.head = self.model.lm_head.weight * net.norm.weight
        cos, sin = self._rotations(places, self.embedding)
        self._layers = [self._folded(layer, cos, sin) for layer in net.layers]
        self._places = places

    def _folded(self, layer: Any, cos_LD: Tensor, sin_LD: Tensor) -> Layer:
        part, mlp = layer.self_attn, layer.mlp
        weights = [each.weight for each in (part.q_proj, part.k_proj, part.v_proj)]
        cos = sin = None
        epsilon = 0.0
        if hasattr(part, "q_norm"):
            counts = (self.heads * self.groups, self.heads)
            norms = (part.q_norm.weight, part.k_norm.weight)
            pairs = zip(norms, counts, strict=True)
            gain_PD = torch.cat([gain.expand(count, -1) for gain, count in pairs])
            cos = cos_LD[:, None] * gain_PD
            sin = sin_LD[:, None] * gain_PD.roll(self.width // 2, -1)
            epsilon = part.q_norm.variance_epsilon
        return Layer(
            torch.cat(weights) * layer.input_layernorm.weight,
            cos,
            sin,
            part.o_proj.weight.detach().t(),
            torch.cat([mlp.gate_proj.weight, mlp.up_proj.weight])
            * layer.post_attention_layernorm.weight,
            mlp.down_proj.weight.detach().t(),
            epsilon,
        )
