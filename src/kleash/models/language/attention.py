"""Attention among episodes that lie end to end, as an operation that a compiler leaves alone.

On CUDA in half precision it is torch's flash attention of variable lengths, called below its public
name (`torch.nn.attention.varlen`, whose arguments change from version to version, and which takes
shared keys only from 2.12 on); elsewhere an episode after the other. Keys are never copied to the
heads that share them.

Shapes: T places of a pack, L of an episode, H heads, K with keys, G that share one, D width.
"""

from __future__ import annotations

import itertools
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

HALF = (torch.bfloat16, torch.float16)


def attend(
    query_THD: Tensor,
    key_TKD: Tensor,
    value_TKD: Tensor,
    borders: Tensor,
    longest: int,
    scale: float,
) -> Tensor:
    """What every place takes from itself and those before it in its episode.

    Episodes begin at `borders`, which end with T; none is longer than `longest`.
    """
    given = (query_THD, key_TKD, value_TKD, borders, longest, scale)
    mixed_THD: Tensor = torch.ops.kleash.packed_attention(*given)[0]
    return mixed_THD


@torch.library.custom_op(
    "kleash::packed_attention",
    mutates_args=(),
    schema="(Tensor query, Tensor key, Tensor value, Tensor borders, SymInt longest, float scale)"
    " -> (Tensor, Tensor)",
)
def packed_attention(
    query: Tensor, key: Tensor, value: Tensor, borders: Tensor, longest: int, scale: float
) -> tuple[Tensor, Tensor]:
    """What every place takes from itself and those before it in its episode; log-sums for flash."""
    if flashes(query):
        ends = (borders, borders, longest, longest)
        mixed, sums, *_ = torch.ops.aten._flash_attention_forward(
            query,
            key,
            value,
            *ends,
            0.0,
            True,
            False,
            scale=scale,
            window_size_left=-1,
            window_size_right=0,
        )
        return mixed, sums
    sums = query.new_zeros(query.shape[1], query.shape[0], dtype=torch.float32)
    return by_episode(query, key, value, borders, scale), sums


@packed_attention.register_fake
def _(query: Tensor, *others: Any) -> tuple[Tensor, Tensor]:
    sums = query.new_empty(query.shape[1], query.shape[0], dtype=torch.float32)
    return query.new_empty(query.shape), sums


@torch.library.custom_op(
    "kleash::packed_attention_back",
    mutates_args=(),
    schema="(Tensor d_mixed, Tensor query, Tensor key, Tensor value, Tensor mixed, Tensor sums,"
    " Tensor borders, SymInt longest, float scale) -> (Tensor, Tensor, Tensor)",
)
def packed_attention_back(  # noqa: PLR0913 (all of it was kept)
    d_mixed: Tensor,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mixed: Tensor,
    sums: Tensor,
    borders: Tensor,
    longest: int,
    scale: float,
) -> tuple[Tensor, ...]:
    """The way back."""
    if flashes(query):
        found = torch.ops.aten._flash_attention_backward(
            d_mixed.contiguous(),
            query,
            key,
            value,
            mixed,
            sums,
            *(borders, borders, longest, longest),
            0.0,
            True,
            torch.zeros(2, dtype=torch.uint64, device=query.device),  # nothing drops out
            torch.empty(0, device=query.device),
            scale=scale,
            window_size_left=-1,
            window_size_right=0,
        )
        return tuple(each.contiguous() for each in found)
    back = [
        episode_back(d_mixed[at], query[at], key[at], value[at], scale) for at in episodes(borders)
    ]
    return tuple(torch.cat(each) for each in zip(*back, strict=True))


@packed_attention_back.register_fake
def _(d_mixed: Tensor, *given: Any) -> tuple[Tensor, ...]:
    return tuple(each.new_empty(each.shape) for each in given[:3])


def _save(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
    query, key, value, borders, ctx.longest, ctx.scale = inputs
    ctx.save_for_backward(query, key, value, *output, borders)


def _back(ctx: Any, d_mixed: Tensor, d_sums: Tensor) -> tuple[Tensor | None, ...]:
    query, key, value, mixed, sums, borders = ctx.saved_tensors
    given = (query, key, value, mixed, sums, borders, ctx.longest, ctx.scale)
    return (*torch.ops.kleash.packed_attention_back(d_mixed, *given), None, None, None)


packed_attention.register_autograd(_back, setup_context=_save)


def flashes(query: Tensor) -> bool:
    """Whether flash attention takes it."""
    return query.is_cuda and query.dtype in HALF


def episodes(borders: Tensor) -> list[slice]:
    """Where each episode lies that has any length."""
    ends = borders.tolist()
    return [slice(*pair) for pair in itertools.pairwise(ends) if pair[0] < pair[1]]


def by_episode(
    query_THD: Tensor, key_TKD: Tensor, value_TKD: Tensor, borders: Tensor, scale: float
) -> Tensor:
    """Each episode by itself."""
    query, key, value = (each.transpose(0, 1)[None] for each in (query_THD, key_TKD, value_TKD))
    found = [
        F.scaled_dot_product_attention(
            query[:, :, at],
            key[:, :, at],
            value[:, :, at],
            is_causal=True,
            scale=scale,
            enable_gqa=query.shape[1] != key.shape[1],
        )
        for at in episodes(borders)
    ]
    return torch.cat(found, dim=2)[0].transpose(0, 1).contiguous()


def episode_back(
    d_mixed_LHD: Tensor, query_LHD: Tensor, key_LKD: Tensor, value_LKD: Tensor, scale: float
) -> tuple[Tensor, Tensor, Tensor]:
    """The way back through the attention of one episode, its weights made again.

    With p the weights: ds = p(dp - Σ p dp), for queries in groups of G that share a key.
    """
    length, heads, width = query_LHD.shape
    shared = heads // key_LKD.shape[1]
    query_KGLD, d_mixed_KGLD = (
        each.reshape(length, -1, shared, width).permute(1, 2, 0, 3)
        for each in (query_LHD, d_mixed_LHD)
    )
    key_K1LD, value_K1LD = (each.transpose(0, 1)[:, None] for each in (key_LKD, value_LKD))
    later = torch.ones(length, length, dtype=torch.bool, device=query_LHD.device).triu(1)
    score = (query_KGLD @ key_K1LD.mT * scale).masked_fill(later, -torch.inf)
    p = score.softmax(-1)
    d_p = d_mixed_KGLD @ value_K1LD.mT
    d_score = p * (d_p - (p * d_p).sum(-1, keepdim=True)) * scale
    d_query = (d_score @ key_K1LD).permute(2, 0, 1, 3).reshape(query_LHD.shape)
    d_key = (d_score.mT @ query_KGLD).sum(1).transpose(0, 1)
    d_value = (p.mT @ d_mixed_KGLD).sum(1).transpose(0, 1)
    return d_query, d_key, d_value
