"""What becomes of query and pool before anything is chosen: projections and attention.

Shapes as in `kleash.models.selector`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import torch
import torch.nn.functional as F
from torch import Generator, Tensor, nn

from kleash.models.selector.pointers import Queries
from kleash.tasks.demos.presets import Blocks


def linear(width_in: int, width_out: int) -> nn.Linear:
    """A matrix without bias."""
    return nn.Linear(width_in, width_out, bias=False)


def unit(vectors: Tensor) -> Tensor:
    """The vectors at length one."""
    return F.normalize(vectors, dim=-1)


def near_identity(weight: Tensor, rng: Generator) -> None:
    """Start as a little more than nothing: the identity and noise of 1 %."""
    nn.init.eye_(weight)
    weight += 0.01 * torch.randn(weight.shape, generator=rng, dtype=weight.dtype)


class Block(nn.Module):
    """A part of a selector."""

    def reset(self, rng: Generator) -> None:
        """Draw the parameters, if any."""


@dataclass(frozen=True, eq=False)
class Projected:
    """What a selector's projections make of queries; right for as long as they do not change.

    Without `row_BK` the candidates [B,K,H] themselves, otherwise the table [R,H] that it points to.
    """

    by: Projections
    query_BH: Tensor
    reduced: Tensor
    row_BK: Tensor | None

    @cached_property
    def candidate(self) -> Tensor:
        """The second projection of the same, at length one."""
        return unit(self.by.candidate(self.reduced))

    @cached_property
    def pool_BKH(self) -> Tensor:
        """Pools after the first projection."""
        return self.in_pools(self.reduced)

    @cached_property
    def candidates_BKH(self) -> Tensor:
        """Pools after the second projection too."""
        return self.in_pools(self.candidate)

    def in_pools(self, values: Tensor) -> Tensor:
        """The values of each pool's candidates."""
        return values if self.row_BK is None else F.embedding(self.row_BK, values)

    def take(self, index: Tensor) -> Projected:
        """What was made of some of the queries; the table of candidates stays whole."""
        if self.row_BK is None:
            return Projected(self.by, self.query_BH[index], self.reduced[index], None)
        made = Projected(self.by, self.query_BH[index], self.reduced, self.row_BK[index])
        if "candidate" in self.__dict__:
            made.__dict__["candidate"] = self.candidate
        return made


class Projections(Block):
    """d → h for query and pool, and later h → h for each."""

    def __init__(self, blocks: Blocks, width: int) -> None:
        super().__init__()
        self.input = linear(width, blocks.hidden)
        if blocks.projection == "separate":
            self.input_query = linear(width, blocks.hidden)
        self.query = linear(blocks.hidden, blocks.hidden)
        self.candidate = linear(blocks.hidden, blocks.hidden)

    def reset(self, rng: Generator) -> None:
        for name, weight in self.named_parameters():
            if name.startswith("input"):
                nn.init.orthogonal_(weight, generator=rng)
            else:
                near_identity(weight, rng)

    def project(self, queries: Queries) -> Projected:
        """Queries and pools after the first projection; what pools share is projected once."""
        if queries.projected is not None and queries.projected.by is self:
            return queries.projected
        query_BH = getattr(self, "input_query", self.input)(queries.query_BD)
        if len(queries.rows_RD) < queries.row_BK.numel():
            return Projected(self, query_BH, self.input(queries.rows_RD), queries.row_BK)
        return Projected(self, query_BH, self.input(queries.pool_BKD), None)


class SetEncoder(Block):
    """A pre-norm transformer layer over the candidates of a pool, without positions."""

    def __init__(self, blocks: Blocks) -> None:
        super().__init__()
        h, self.heads = blocks.hidden, blocks.heads
        self.attention_norm = nn.LayerNorm(h)
        self.attention_in = nn.Linear(h, 3 * h)
        self.attention_out = nn.Linear(h, h)
        self.mlp_norm = nn.LayerNorm(h)
        self.mlp_in = nn.Linear(h, 4 * h)
        self.mlp_out = nn.Linear(4 * h, h)

    def reset(self, rng: Generator) -> None:
        for part in self.children():
            if isinstance(part, nn.LayerNorm):
                part.reset_parameters()
            elif isinstance(part, nn.Linear):
                nn.init.xavier_uniform_(part.weight, generator=rng)
                nn.init.zeros_(part.bias)

    def forward(self, pool_BKH: Tensor, mask_BK: Tensor) -> Tensor:
        parts: Tensor = self.attention_in(self.attention_norm(pool_BKH))
        q, k, v = parts.view(*mask_BK.shape, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        mixed = F.scaled_dot_product_attention(q, k, v, attn_mask=mask_BK[:, None, None])
        pool_BKH = pool_BKH + self.attention_out(mixed.transpose(1, 2).flatten(2))
        changed: Tensor = self.mlp_out(F.gelu(self.mlp_in(self.mlp_norm(pool_BKH))))
        return pool_BKH + changed


class CrossAttention(Block):
    """One layer from the query to its pool, with a residual and a norm after it.

    A query has one vector, so its keys and values need not be made: W_k and W_v are applied to
    the query's side of both products. The numbers are those of `nn.MultiheadAttention`, whose
    weights are kept under its names; its bias for keys shifts all scores alike and cancels.
    """

    def __init__(self, blocks: Blocks) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(blocks.hidden, blocks.heads, batch_first=True)
        self.norm = nn.LayerNorm(blocks.hidden)

    def reset(self, rng: Generator) -> None:
        for weight in (self.attention.in_proj_weight, self.attention.out_proj.weight):
            nn.init.xavier_uniform_(weight, generator=rng)
        for bias in (self.attention.in_proj_bias, self.attention.out_proj.bias):
            nn.init.zeros_(bias)
        self.norm.reset_parameters()

    def forward(self, query_BH: Tensor, pool_BKH: Tensor, mask_BK: Tensor) -> Tensor:
        heads, size = self.attention.num_heads, self.attention.head_dim
        w_q, w_k, w_v = self.attention.in_proj_weight.chunk(3)
        b_q, _, b_v = self.attention.in_proj_bias.chunk(3)
        # Heads lie side by side as queries of one pool, each with the others' entries at zero.
        own_nH = torch.eye(heads, dtype=w_q.dtype, device=w_q.device).repeat_interleave(size, 1)
        asked_BnH = (F.linear(query_BH, w_q, b_q)[:, None] * own_nH) @ w_k
        pool_B1KH = pool_BKH[:, None]
        mixed_B1nH = F.scaled_dot_product_attention(
            asked_BnH[:, None],
            pool_B1KH,
            pool_B1KH,
            attn_mask=mask_BK[:, None, None],
            scale=1 / math.sqrt(size),
        )
        value_BH = (F.linear(mixed_B1nH[:, 0], w_v, b_v) * own_nH).sum(1)
        normed: Tensor = self.norm(query_BH + self.attention.out_proj(value_BH))
        return normed


class QueryEncoder(Block):
    """Layers of cross-attention."""

    def __init__(self, blocks: Blocks) -> None:
        super().__init__()
        self.layers = nn.ModuleList(CrossAttention(blocks) for _ in range(blocks.query_layers))

    def reset(self, rng: Generator) -> None:
        for layer in self.layers:
            assert isinstance(layer, CrossAttention)
            layer.reset(rng)

    def forward(self, query_BH: Tensor, pool_BKH: Tensor, mask_BK: Tensor) -> Tensor:
        for layer in self.layers:
            query_BH = layer(query_BH, pool_BKH, mask_BK)
        return query_BH


def nothing(blocks: Blocks) -> None:
    """A block that is left out."""


SET_ENCODERS: dict[str, Callable[[Blocks], SetEncoder | None]] = {
    "none": nothing,
    "transformer": SetEncoder,
}
