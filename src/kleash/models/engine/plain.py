"""The small operations of a decoder in plain torch: what `kernels` must compute, on any device.

Shapes as in `kernels`.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from kleash.models.engine.draws import picked as picked_within
from kleash.models.engine.spots import Blocks, Config, Spots
from kleash.models.language.lean import normed, rotated


def add_norm(found: Tensor, delta: Tensor | None, norm: Any) -> tuple[Tensor, Tensor]:
    """The sum of both, and what the norm makes of it."""
    found = found if delta is None else found + delta
    return found, normed(norm, found)


def product(x_NW: Tensor, weight_OW: Tensor) -> Tensor:
    """Rows times a weight."""
    return F.linear(x_NW, weight_OW)


def opened(gate: Tensor, up: Tensor) -> Tensor:
    """silu(gate)·up."""
    return F.silu(gate) * up


def turned(
    parts: tuple[Tensor, Tensor, Tensor],
    attention: Any,
    turns: tuple[Tensor, Tensor],
    spots: Spots,
    keys_PHLD: Tensor,
    values_PHLD: Tensor,
) -> Tensor:
    """Queries [N,K,D] normed and turned by their place; keys and values are kept in their pages."""
    page, width = keys_PHLD.shape[2:]
    query, key, value = (part.unflatten(-1, (-1, width)) for part in parts)
    if hasattr(attention, "q_norm"):
        query, key = normed(attention.q_norm, query), normed(attention.k_norm, key)
    cos, sin = (each[spots.place_N.clamp(min=0), None] for each in turns)
    there = spots.place_N >= 0
    place = spots.place_N[there]
    at = spots.table_SM[spots.seat_N[there], place // page].long()
    keys_PHLD[at, :, place % page] = rotated(key, cos, sin)[there]
    values_PHLD[at, :, place % page] = value[there]
    return rotated(query, cos, sin)


def attended(
    query_NKD: Tensor,
    keys_PHLD: Tensor,
    values_PHLD: Tensor,
    blocks: Blocks,
    scale: float,
    config: Config,
) -> Tensor:
    """What queries take from what their talks have kept, heads side by side [N, K·D]."""
    heads, page, _ = keys_PHLD.shape[1:]
    step_Q = torch.arange(blocks.longest, device=query_NKD.device)
    there_BQ = step_Q < blocks.count_B[:, None]
    token_BQ = (blocks.first_B[:, None] + step_Q).clamp(max=len(query_NKD) - 1)
    sees_BQ = (blocks.place_B[:, None] + step_Q).clamp(min=0)
    reach = int(torch.where(there_BQ, sees_BQ, 0).max()) + 1
    pages_BM = blocks.table_SM[blocks.seat_B, : -(-reach // page)].long()
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


def picked(
    logits_NV: Tensor, temperature_N: Tensor, stream_N: Tensor, step_N: Tensor, keyed_N: Tensor
) -> tuple[Tensor, Tensor]:
    """An id for each row and its log-probability, without a top-p."""
    return picked_within(logits_NV, temperature_N, None, stream_N, step_N, keyed_N)
