"""The small operations of a decoder as Triton kernels; `plain` has the same in plain torch.

They round where the model's own modules round, so that what is sampled is what is judged. None of
them waits for the host, and what they do hangs on tensors alone: all can be captured in a graph.

Shapes: N tokens, B blocks of tokens of one talk, W width of the model, K heads of queries, H heads
of keys and values, D width of a head, V words; the rest as in `pages`.
"""

# Triton reads these functions itself: their parameters are what a kernel needs, and no types.
# ruff: noqa: PLR0913, PLR0915

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from kleash.models.engine.picking import picked
from kleash.models.engine.products import product
from kleash.models.engine.spots import Blocks, Config, Spots

__all__ = ["add_norm", "attended", "opened", "picked", "product", "turned"]

LOG2E = 1.4426950408889634


@triton.jit
def _add_norm(x, delta, gain, out, epsilon, width, ROOM: tl.constexpr, ADDS: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * width
    column = tl.arange(0, ROOM)
    inside = column < width
    found = tl.load(x + row + column, mask=inside, other=0.0)
    if ADDS:
        more = tl.load(delta + row + column, mask=inside, other=0.0)
        found = (found.to(tl.float32) + more.to(tl.float32)).to(found.dtype)
        tl.store(x + row + column, found, mask=inside)
    wide = found.to(tl.float32)
    scale = tl.rsqrt(tl.sum(wide * wide, 0) / width + epsilon)
    made = (wide * scale).to(found.dtype)
    gains = tl.load(gain + column, mask=inside, other=0.0)
    made = (made.to(tl.float32) * gains.to(tl.float32)).to(found.dtype)
    tl.store(out + row + column, made, mask=inside)


def add_norm(found: Tensor, delta: Tensor | None, norm: Any) -> tuple[Tensor, Tensor]:
    """The sum of both, written over the first, and what the norm makes of it."""
    out, width = torch.empty_like(found), found.shape[-1]
    room = triton.next_power_of_2(width)
    _add_norm[(len(found),)](
        found,
        found if delta is None else delta,
        norm.weight,
        out,
        norm.variance_epsilon,
        width,
        ROOM=room,
        ADDS=delta is not None,
        num_warps=8 if room >= 4096 else 4,
    )
    return found, out


@triton.jit
def _opened(gate, up, out, stride, width, ROOM: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    column = tl.program_id(1) * ROOM + tl.arange(0, ROOM)
    inside = column < width
    one = tl.load(gate + row * stride + column, mask=inside, other=0.0)
    other = tl.load(up + row * stride + column, mask=inside, other=0.0)
    wide = one.to(tl.float32)
    made = (wide / (1.0 + tl.exp(-wide))).to(one.dtype)
    made = (made.to(tl.float32) * other.to(tl.float32)).to(one.dtype)
    tl.store(out + row * width + column, made, mask=inside)


def opened(gate: Tensor, up: Tensor) -> Tensor:
    """silu(gate)·up; both may be halves of one tensor."""
    out = torch.empty(gate.shape, dtype=gate.dtype, device=gate.device)
    rows, width = gate.shape
    grid = (rows, triton.cdiv(width, 1024))
    assert gate.stride() == up.stride()
    _opened[grid](gate, up, out, gate.stride(0), width, ROOM=1024, num_warps=4)
    return out


@triton.jit
def _turned_heads(
    source, gain, cos, sin, epsilon, TILE: tl.constexpr, HALF: tl.constexpr, NORMED: tl.constexpr
):
    """A tile of heads, normed and turned: the lower and the upper half of each."""
    half = tl.arange(0, HALF)
    at = tl.arange(0, TILE)[:, None] * (2 * HALF) + half[None, :]
    low, high = tl.load(source + at), tl.load(source + at + HALF)
    kind = low.dtype
    if NORMED:
        wide_low, wide_high = low.to(tl.float32), high.to(tl.float32)
        mean = tl.sum(wide_low * wide_low + wide_high * wide_high, 1) / (2 * HALF)
        scale = tl.rsqrt(mean + epsilon)[:, None]
        gain_low = tl.load(gain + half).to(tl.float32)[None, :]
        gain_high = tl.load(gain + HALF + half).to(tl.float32)[None, :]
        low = ((wide_low * scale).to(kind).to(tl.float32) * gain_low).to(kind)
        high = ((wide_high * scale).to(kind).to(tl.float32) * gain_high).to(kind)
    x, y = low.to(tl.float32), high.to(tl.float32)
    cos_low = tl.load(cos + half).to(tl.float32)[None, :]
    cos_high = tl.load(cos + HALF + half).to(tl.float32)[None, :]
    sin_low = tl.load(sin + half).to(tl.float32)[None, :]
    sin_high = tl.load(sin + HALF + half).to(tl.float32)[None, :]
    made_low = ((x * cos_low).to(kind).to(tl.float32) + y * sin_low).to(kind)
    made_high = ((y * cos_high).to(kind).to(tl.float32) + x * sin_high).to(kind)
    return made_low, made_high


@triton.jit
def _turned(
    query,
    key,
    value,
    query_stride,
    key_stride,
    value_stride,
    query_gain,
    key_gain,
    cos,
    sin,
    out,
    keys,
    values,
    table,
    seat,
    place,
    most,
    epsilon,
    QUERIES: tl.constexpr,
    HEADS: tl.constexpr,
    TILE: tl.constexpr,
    HALF: tl.constexpr,
    PAGE: tl.constexpr,
    NORMED: tl.constexpr,
):
    """A tile of heads of a token: of queries, of keys or of values.

    It is long because what a kernel needs, and what it calls, is named one by one.
    """
    width: tl.constexpr = 2 * HALF
    row = tl.program_id(0).to(tl.int64)
    tile = tl.program_id(1) * TILE
    stands = tl.load(place + row)
    turn = tl.maximum(stands, 0) * width
    head = tl.arange(0, TILE)[:, None]
    half = tl.arange(0, HALF)[None, :]
    if tile < QUERIES:
        low, high = _turned_heads(
            query + row * query_stride + tile * width,
            query_gain,
            cos + turn,
            sin + turn,
            epsilon,
            TILE,
            HALF,
            NORMED,
        )
        at = (row * QUERIES + tile + head) * width + half
        tl.store(out + at, low)
        tl.store(out + at + HALF, high)
    elif stands >= 0:
        page = tl.load(table + tl.load(seat + row) * most + stands // PAGE).to(tl.int64)
        if tile < QUERIES + HEADS:
            first = tile - QUERIES
            low, high = _turned_heads(
                key + row * key_stride + first * width,
                key_gain,
                cos + turn,
                sin + turn,
                epsilon,
                TILE,
                HALF,
                NORMED,
            )
            at = ((page * HEADS + first + head) * PAGE + stands % PAGE) * width + half
            tl.store(keys + at, low)
            tl.store(keys + at + HALF, high)
        else:
            first = tile - QUERIES - HEADS
            source = value + row * value_stride + first * width + head * width + half
            at = ((page * HEADS + first + head) * PAGE + stands % PAGE) * width + half
            tl.store(values + at, tl.load(source))
            tl.store(values + at + HALF, tl.load(source + HALF))


def turned(
    parts: tuple[Tensor, Tensor, Tensor],
    attention: Any,
    turns: tuple[Tensor, Tensor],
    spots: Spots,
    keys_PHLD: Tensor,
    values_PHLD: Tensor,
) -> Tensor:
    """Queries [N,K,D] normed and turned by their place; keys and values are kept in their pages."""
    query, key, value = parts
    heads, page, width = keys_PHLD.shape[1:]
    queries = query.shape[1] // width
    tile = next(size for size in (8, 4, 2, 1) if not queries % size and not heads % size)
    norms = getattr(attention, "q_norm", None), getattr(attention, "k_norm", None)
    gains = [query if norm is None else norm.weight for norm in norms]
    out = torch.empty(len(query), queries, width, dtype=query.dtype, device=query.device)
    _turned[(len(query), (queries + 2 * heads) // tile)](
        query,
        key,
        value,
        query.stride(0),
        key.stride(0),
        value.stride(0),
        *gains,
        *turns,
        out,
        keys_PHLD,
        values_PHLD,
        spots.table_SM,
        spots.seat_N,
        spots.place_N,
        spots.table_SM.shape[1],
        0.0 if norms[0] is None else norms[0].variance_epsilon,
        QUERIES=queries,
        HEADS=heads,
        TILE=tile,
        HALF=width // 2,
        PAGE=page,
        NORMED=norms[0] is not None,
        num_warps=4,
    )
    return out


@triton.jit
def _attended(
    query,
    keys,
    values,
    out,
    part,
    share,
    table,
    seat,
    place,
    first,
    count,
    most,
    tokens,
    scale,
    QUERIES: tl.constexpr,
    HEADS: tl.constexpr,
    GROUP: tl.constexpr,
    MEMBERS: tl.constexpr,
    ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
    WIDTH: tl.constexpr,
    PAGE: tl.constexpr,
    SPLITS: tl.constexpr,
):
    """The queries of a block that share a head of keys, over one part of what they see.

    It is long because a kernel cannot be cut without going through memory.
    """
    block, head, split = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    begins = tl.load(place + block).to(tl.int32)
    number = tl.load(count + block).to(tl.int32)
    total = tl.where(begins < 0, 0, begins + number)
    share_of = tl.cdiv(tl.cdiv(total, COLUMNS), SPLITS) * COLUMNS
    low = split * share_of
    high = tl.minimum(low + share_of, total)

    row = tl.arange(0, ROWS)
    token, member = row // MEMBERS, row % MEMBERS
    there = (token < number) & (member < GROUP)
    at = (tl.load(first + block) + token) * QUERIES + head * GROUP + member
    column, depth = tl.arange(0, COLUMNS), tl.arange(0, WIDTH)
    q = tl.load(query + at[:, None] * WIDTH + depth[None, :], mask=there[:, None], other=0.0)
    last = begins + token
    pages = table + tl.load(seat + block) * most

    top = tl.full((ROWS,), float("-inf"), tl.float32)
    mass = tl.zeros((ROWS,), tl.float32)
    mixed = tl.zeros((ROWS, WIDTH), tl.float32)
    inside = column[:, None] * WIDTH + depth[None, :]
    page = tl.load(pages + tl.minimum(low, tl.maximum(total - 1, 0)) // PAGE)
    for start in range(low, high, COLUMNS):
        here = ((page.to(tl.int64) * HEADS + head) * PAGE + start % PAGE) * WIDTH
        # The page after this one is looked up before it is needed, or loads could not run ahead.
        page = tl.load(pages + tl.minimum(start + COLUMNS, high - 1) // PAGE)
        k = tl.load(keys + here + inside)
        score = tl.dot(q, tl.trans(k), input_precision="ieee") * scale
        score = tl.where((start + column)[None, :] <= last[:, None], score, float("-inf"))
        higher = tl.maximum(top, tl.max(score, 1))
        level = tl.where(higher > float("-inf"), higher, 0.0)  # a part that a token sees nothing of
        weight = tl.exp2(score - level[:, None])
        fade = tl.exp2(top - level)
        v = tl.load(values + here + inside)
        mixed = mixed * fade[:, None]
        mixed += tl.dot(weight.to(v.dtype), v, input_precision="ieee")
        mass = mass * fade + tl.sum(weight, 1)
        top = higher

    mixed = mixed / tl.maximum(mass, 1e-30)[:, None]
    if SPLITS == 1:
        goal = out + at[:, None] * WIDTH + depth[None, :]
        tl.store(goal, mixed.to(out.dtype.element_ty), mask=there[:, None])
    else:
        where = split.to(tl.int64) * tokens * QUERIES + at
        tl.store(share + where, top + tl.log2(tl.maximum(mass, 1e-30)), mask=there)
        goal = part + where[:, None] * WIDTH + depth[None, :]
        tl.store(goal, mixed, mask=(there & (high > low))[:, None])


@triton.jit
def _combined(part, share, out, rows, WIDTH: tl.constexpr, SPLITS: tl.constexpr):
    row = tl.program_id(0)
    where = tl.arange(0, SPLITS).to(tl.int64) * rows + row
    mass = tl.load(share + where)
    some = mass > float("-inf")
    weight = tl.where(some, tl.exp2(mass - tl.maximum(tl.max(mass, 0), -1e30)), 0.0)
    weight = weight / tl.maximum(tl.sum(weight, 0), 1e-30)
    depth = tl.arange(0, WIDTH)
    at = where[:, None] * WIDTH + depth[None, :]
    found = tl.load(part + at, mask=some[:, None], other=0.0)
    mixed = tl.sum(found * weight[:, None], 0)
    tl.store(out + row.to(tl.int64) * WIDTH + depth, mixed.to(out.dtype.element_ty))


def attended(
    query_NKD: Tensor,
    keys_PHLD: Tensor,
    values_PHLD: Tensor,
    blocks: Blocks,
    scale: float,
    config: Config,
) -> Tensor:
    """What queries take from what their talks have kept, heads side by side [N, K·D]."""
    tokens, queries, width = query_NKD.shape
    heads, page = keys_PHLD.shape[1:3]
    members = triton.next_power_of_2(queries // heads)
    out = torch.empty_like(query_NKD)
    splits = config.splits
    if splits > 1:
        part = query_NKD.new_empty((splits, tokens, queries, width), dtype=torch.float32)
        share = query_NKD.new_empty((splits, tokens, queries), dtype=torch.float32)
    else:
        part = share = out
    _attended[(len(blocks.seat_B), heads, splits)](
        query_NKD,
        keys_PHLD,
        values_PHLD,
        out,
        part,
        share,
        blocks.table_SM,
        blocks.seat_B,
        blocks.place_B,
        blocks.first_B,
        blocks.count_B,
        blocks.table_SM.shape[1],
        tokens,
        scale * LOG2E,
        QUERIES=queries,
        HEADS=heads,
        GROUP=queries // heads,
        MEMBERS=members,
        ROWS=max(16, blocks.longest * members),
        COLUMNS=min(config.columns, page),
        WIDTH=width,
        PAGE=page,
        SPLITS=splits,
        num_warps=config.warps,
        num_stages=config.stages,
    )
    if splits > 1:
        rows = tokens * queries
        _combined[(rows,)](part, share, out, rows, WIDTH=width, SPLITS=splits, num_warps=1)
    return out.flatten(1)
