"""The small operations of a decoder over pages in plain torch, and the records they read.

`kernels` has the same for a GPU; these say what it must compute, on any device.

Shapes: N tokens, B blocks of tokens of one talk; S slots, M most pages of one; K heads of queries,
H heads of keys and values, D width of a head; the rest as in `pages`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from kleash.models.engine import draws
from kleash.models.language import llama
from kleash.models.language.llama import Rope, norm_heads, rotate

add_norm = llama.add_norm


@dataclass(frozen=True)
class TokenPositions:
    """Of every token, its talk's slot and its place there; a place below 0 is nobody's."""

    slot_N: Tensor
    place_N: Tensor
    table_SM: Tensor


@dataclass(frozen=True)
class Blocks:
    """Tokens that lie end to end and follow one another in one talk, at most `longest` a block."""

    slot_B: Tensor
    place_B: Tensor
    """Of its first token."""
    first_B: Tensor
    """Which of the tokens that is."""
    count_B: Tensor
    table_SM: Tensor
    longest: int = 1


@dataclass(frozen=True)
class Tiling:
    """How attention is cut up: keys at a time, warps, loads under way, parts of what is seen."""

    columns: int = 64
    warps: int = 4
    stages: int = 3
    splits: int = 1


def product(x_NW: Tensor, weight_OW: Tensor) -> Tensor:
    """Rows times a weight."""
    return F.linear(x_NW, weight_OW)


def silu_and_mul(gate: Tensor, up: Tensor) -> Tensor:
    """silu(gate)·up."""
    return F.silu(gate) * up


def rotate_into_pages(
    parts: tuple[Tensor, Tensor, Tensor],
    attention: Any,
    table: Rope,
    positions: TokenPositions,
    keys_PHLD: Tensor,
    values_PHLD: Tensor,
) -> Tensor:
    """Queries [N,K,D] normed and rotated by their place; keys, likewise, and values go to pages."""
    page, width = keys_PHLD.shape[2:]
    query, key, value = (part.unflatten(-1, (-1, width)) for part in parts)
    cos, sin = (each[positions.place_N.clamp(min=0), None] for each in table)
    query, key = norm_heads(attention, query, key)
    there = positions.place_N >= 0
    place = positions.place_N[there]
    at = positions.table_SM[positions.slot_N[there], place // page].long()
    keys_PHLD[at, :, place % page] = rotate(key, cos, sin)[there]
    values_PHLD[at, :, place % page] = value[there]
    return rotate(query, cos, sin)


def paged_attention(
    query_NKD: Tensor,
    keys_PHLD: Tensor,
    values_PHLD: Tensor,
    blocks: Blocks,
    scale: float,
    config: Tiling,
) -> Tensor:
    """What queries take from what their talks have kept, heads side by side [N, K·D]."""
    heads, page, _ = keys_PHLD.shape[1:]
    step_Q = torch.arange(blocks.longest, device=query_NKD.device)
    there_BQ = step_Q < blocks.count_B[:, None]
    token_BQ = (blocks.first_B[:, None] + step_Q).clamp(max=len(query_NKD) - 1)
    sees_BQ = (blocks.place_B[:, None] + step_Q).clamp(min=0)
    reach = int(torch.where(there_BQ, sees_BQ, 0).max()) + 1
    pages_BM = blocks.table_SM[blocks.slot_B, : -(-reach // page)].long()
    keys, values = (
        kept[pages_BM].transpose(1, 2).flatten(2, 3)[:, :, :reach]
        for kept in (keys_PHLD, values_PHLD)
    )
    found = F.scaled_dot_product_attention(
        query_NKD[token_BQ].transpose(1, 2),
        keys,
        values,
        attn_mask=(torch.arange(reach, device=sees_BQ.device) <= sees_BQ[:, :, None])[:, None],
        scale=scale,
        enable_gqa=query_NKD.shape[1] > heads,
    )
    out = torch.zeros_like(query_NKD)
    out[token_BQ[there_BQ]] = found.transpose(1, 2)[there_BQ]
    return out.flatten(1)


def sample(
    logits_NV: Tensor, temperature_N: Tensor, stream_N: Tensor, step_N: Tensor, keyed_N: Tensor
) -> tuple[Tensor, Tensor]:
    """An id for each row and its log-probability, without a top-p."""
    return draws.sample(logits_NV, temperature_N, None, stream_N, step_N, keyed_N)
