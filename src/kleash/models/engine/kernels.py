"""The small operations of a decoder as Triton kernels; `operations` has the same in plain torch.

They round where the model's own modules round, so that what is sampled is what is judged. None of
them waits for the host, and what they do hangs on tensors alone: all can be captured in a graph.
The file is long because a kernel names one by one what it needs.

Shapes: N tokens, B blocks of tokens of one talk, W width of the model, K heads of queries, H heads
of keys and values, D width of a head, V words; the rest as in `pages`.
"""

# Triton reads these functions itself: their parameters are what a kernel needs, and no types.
# ruff: noqa: PLR0913, PLR0915

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
import triton
import triton.language as tl
from torch import Tensor

from kleash.models.engine.draws import FIRST, GAMMA, SECOND, signed
from kleash.models.engine.operations import Blocks, Tiling, TokenPositions
from kleash.models.language.llama import Rope

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
def _silu_and_mul(gate, up, out, stride, width, ROOM: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    column = tl.program_id(1) * ROOM + tl.arange(0, ROOM)
    inside = column < width
    one = tl.load(gate + row * stride + column, mask=inside, other=0.0)
    other = tl.load(up + row * stride + column, mask=inside, other=0.0)
    wide = one.to(tl.float32)
    made = (wide / (1.0 + tl.exp(-wide))).to(one.dtype)
    made = (made.to(tl.float32) * other.to(tl.float32)).to(one.dtype)
    tl.store(out + row * width + column, made, mask=inside)


def silu_and_mul(gate: Tensor, up: Tensor) -> Tensor:
    """silu(gate)·up; both may be halves of one tensor."""
    out = torch.empty(gate.shape, dtype=gate.dtype, device=gate.device)
    rows, width = gate.shape
    grid = (rows, triton.cdiv(width, 1024))
    assert gate.stride() == up.stride()
    _silu_and_mul[grid](gate, up, out, gate.stride(0), width, ROOM=1024, num_warps=4)
    return out


@triton.jit
def _rotated_heads(
    source, gain, cos, sin, epsilon, TILE: tl.constexpr, HALF: tl.constexpr, NORMED: tl.constexpr
):
    """A tile of heads, normed and rotate_into_pages: the lower and the upper half of each."""
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
def _rotate_into_pages(
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
    slot,
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
        low, high = _rotated_heads(
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
        page = tl.load(table + tl.load(slot + row) * most + stands // PAGE).to(tl.int64)
        if tile < QUERIES + HEADS:
            first = tile - QUERIES
            low, high = _rotated_heads(
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


def rotate_into_pages(
    parts: tuple[Tensor, Tensor, Tensor],
    attention: Any,
    table: Rope,
    positions: TokenPositions,
    keys_PHLD: Tensor,
    values_PHLD: Tensor,
) -> Tensor:
    """Queries [N,K,D] normed and rotated by their place; keys, likewise, and values go to pages."""
    query, key, value = parts
    heads, page, width = keys_PHLD.shape[1:]
    queries = query.shape[1] // width
    tile = next(size for size in (8, 4, 2, 1) if not queries % size and not heads % size)
    norms = getattr(attention, "q_norm", None), getattr(attention, "k_norm", None)
    gains = [query if norm is None else norm.weight for norm in norms]
    out = torch.empty(len(query), queries, width, dtype=query.dtype, device=query.device)
    _rotate_into_pages[(len(query), (queries + 2 * heads) // tile)](
        query,
        key,
        value,
        query.stride(0),
        key.stride(0),
        value.stride(0),
        *gains,
        *table,
        out,
        keys_PHLD,
        values_PHLD,
        positions.table_SM,
        positions.slot_N,
        positions.place_N,
        positions.table_SM.shape[1],
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
def _paged_attention(
    query,
    keys,
    values,
    out,
    part,
    share,
    table,
    slot,
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
    pages = table + tl.load(slot + block) * most

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


def paged_attention(
    query_NKD: Tensor,
    keys_PHLD: Tensor,
    values_PHLD: Tensor,
    blocks: Blocks,
    scale: float,
    config: Tiling,
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
    _paged_attention[(len(blocks.slot_B), heads, splits)](
        query_NKD,
        keys_PHLD,
        values_PHLD,
        out,
        part,
        share,
        blocks.table_SM,
        blocks.slot_B,
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


# --- products of a few rows with a large weight: most of a step of few talks
#
# Such a product is read, not computed: the weight goes through once. A library cuts a weight of few
# rows along its width and sums the parts by a kernel more; here enough programs read whole rows.

FULL = 264
"""Programs that fill a large GPU: two for each of its processors."""
NARROW = 16
"""Rows that are the least that a GPU multiplies at a time."""


@dataclass(frozen=True)
class Tile:
    """What of a weight a program reads at a time, and how."""

    outputs: int
    width: int
    warps: int
    stages: int


# The fastest of thirteen on an H200, for Qwen3-8B's weights.
LARGE = Tile(64, 128, 4, 4)
FEW_ROWS = Tile(16, 512, 2, 3)
MORE_ROWS = Tile(32, 256, 4, 4)
MOST = 64
"""More rows than that are a library's."""


@triton.jit
def _product(
    x,
    weight,
    out,
    rows,
    outputs,
    width,
    stride,
    ROWS: tl.constexpr,
    OUTPUTS: tl.constexpr,
    WIDTH: tl.constexpr,
):
    row = tl.arange(0, ROWS)
    output = tl.program_id(0) * OUTPUTS + tl.arange(0, OUTPUTS)
    column = tl.arange(0, WIDTH)
    there = (row < rows)[:, None]
    ours = x + row[:, None] * stride + column[None, :]
    theirs = weight + output[:, None].to(tl.int64) * width + column[None, :]
    found = tl.zeros((ROWS, OUTPUTS), tl.float32)
    for start in range(0, width, WIDTH):
        some = tl.load(ours + start, mask=there, other=0.0)
        found = tl.dot(some, tl.trans(tl.load(theirs + start)), found)
    goal = out + row[:, None] * outputs + output[None, :]
    tl.store(goal, found.to(out.dtype.element_ty), mask=there)


def tile_of(rows: int, outputs: int, width: int) -> Tile | None:
    """How a weight is read for so many rows; none where a library does as well or nothing fits."""
    if rows > MOST:
        return None
    if outputs >= FULL * LARGE.outputs:
        tile = LARGE if rows <= NARROW else None
    else:
        tile = FEW_ROWS if rows <= NARROW else MORE_ROWS
    fits = tile is not None and not outputs % tile.outputs and not width % tile.width
    return tile if fits else None


def product(x_NW: Tensor, weight_OW: Tensor) -> Tensor:
    """Rows times a weight, as `F.linear`."""
    tile = tile_of(len(x_NW), *weight_OW.shape)
    half = x_NW.dtype in (torch.bfloat16, torch.float16)
    if tile is None or not half or x_NW.stride(1) != 1 or not weight_OW.is_contiguous():
        return F.linear(x_NW, weight_OW)
    return tiled(x_NW, weight_OW, tile)


def tiled(x_NW: Tensor, weight_OW: Tensor, tile: Tile) -> Tensor:
    """The same by the kernel."""
    rows, (outputs, width) = len(x_NW), weight_OW.shape
    out = torch.empty(rows, outputs, dtype=x_NW.dtype, device=x_NW.device)
    _product[(outputs // tile.outputs,)](
        x_NW,
        weight_OW,
        out,
        rows,
        outputs,
        width,
        x_NW.stride(0),
        ROWS=max(NARROW, triton.next_power_of_2(rows)),
        OUTPUTS=tile.outputs,
        WIDTH=tile.width,
        num_warps=tile.warps,
        num_stages=tile.stages,
    )
    return out


# --- sampling: the noise of `draws`, never written to memory
#
# Each program looks at a chunk of words; what it found is put together by a second kernel.

CHUNK = 4096  # words that one program looks at
FAR = tl.constexpr(2.0**-64)
MIDDLE = tl.constexpr(0.5 + 2.0**-53)


@triton.jit
def _looked_at(
    logits,
    temperature,
    stream,
    step,
    keyed,
    found,
    words,
    span,
    chunks,
    ROOM: tl.constexpr,
    GAP: tl.constexpr,
    ONE: tl.constexpr,
    TWO: tl.constexpr,
):
    """Of a chunk of words: highest logit, mass, best score, its word and its logit."""
    row, chunk = tl.program_id(0).to(tl.int64), tl.program_id(1)
    word = chunk * ROOM + tl.arange(0, ROOM)
    inside = word < words
    logit = tl.load(logits + row * words + word, mask=inside, other=float("-inf")).to(tl.float32)
    logit = logit / tl.load(temperature + row).to(tl.float32)
    top = tl.max(logit, 0)
    mass = tl.sum(tl.where(inside, tl.exp(logit - top), 0.0), 0)
    bits = tl.load(stream + row) + tl.load(step + row) * span + (word + 1).to(tl.int64) * GAP
    bits = (bits ^ ((bits >> 30) & ((1 << 34) - 1))) * ONE
    bits = (bits ^ ((bits >> 27) & ((1 << 37) - 1))) * TWO
    bits = bits ^ ((bits >> 31) & ((1 << 33) - 1))
    uniform = bits.to(tl.float64) * FAR + MIDDLE
    noise = tl.log((-tl.log(1.0 - uniform)).to(tl.float32))
    score = tl.where(tl.load(keyed + row) > 0, logit - noise, logit)
    score = tl.where(inside, score, float("-inf"))
    best = tl.argmax(score, 0)
    chosen = word == chunk * ROOM + best
    at = found + (row * chunks + chunk) * 5
    tl.store(at, top)
    tl.store(at + 1, mass)
    tl.store(at + 2, tl.max(score, 0))
    tl.store(at + 3, (chunk * ROOM + best).to(tl.float32))  # below 2^24: exact
    tl.store(at + 4, tl.sum(tl.where(chosen, logit, 0.0), 0))


@triton.jit
def _sample(found, choice, logp, chunks, words, ROOM: tl.constexpr):
    row, chunk = tl.program_id(0).to(tl.int64), tl.arange(0, ROOM)
    at = found + (row * chunks + chunk) * 5
    inside = chunk < chunks
    top = tl.load(at, mask=inside, other=float("-inf"))
    mass = tl.load(at + 1, mask=inside, other=0.0)
    score = tl.load(at + 2, mask=inside, other=float("-inf"))
    best = chunk == tl.argmax(score, 0)
    word = tl.sum(tl.where(best, tl.load(at + 3, mask=inside, other=0.0), 0.0), 0)
    logit = tl.sum(tl.where(best, tl.load(at + 4, mask=inside, other=0.0), 0.0), 0)
    highest = tl.max(top, 0)
    whole = tl.sum(tl.where(inside, mass * tl.exp(top - highest), 0.0), 0)
    tl.store(choice + row, tl.minimum(word.to(tl.int64), words - 1))  # also of what is no number
    tl.store(logp + row, logit - highest - tl.log(whole))


def sample(
    logits_NV: Tensor, temperature_N: Tensor, stream_N: Tensor, step_N: Tensor, keyed_N: Tensor
) -> tuple[Tensor, Tensor]:
    """An id for each row and its log-probability: what `draws.sample` says without a top-p."""
    rows, words = logits_NV.shape
    chunks = triton.cdiv(words, CHUNK)
    found = torch.empty(rows, chunks, 5, dtype=torch.float32, device=logits_NV.device)
    choice_N = torch.empty(rows, dtype=torch.int64, device=logits_NV.device)
    logp_N = torch.empty(rows, dtype=torch.float32, device=logits_NV.device)
    _looked_at[(rows, chunks)](
        logits_NV,
        temperature_N,
        stream_N,
        step_N,
        keyed_N,
        found,
        words,
        signed(words * GAMMA),
        chunks,
        ROOM=CHUNK,
        GAP=GAMMA,
        ONE=FIRST,
        TWO=SECOND,
        num_warps=8,
    )
    room = triton.next_power_of_2(chunks)
    _sample[(rows,)](found, choice_N, logp_N, chunks, words, ROOM=room, num_warps=1)
    return choice_N, logp_N
