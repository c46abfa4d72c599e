"""Drawing ids on a GPU as Triton kernels: the noise of `draws`, never written to memory.

Each program looks at a chunk of words; what it found is put together by a second kernel.

Shapes: N rows, V words.
"""

# Triton reads these functions itself: their parameters are what a kernel needs, and no types.
# ruff: noqa: PLR0913

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from kleash.models.engine.draws import FIRST, GAMMA, SECOND, signed

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
def _picked(found, choice, logp, chunks, words, ROOM: tl.constexpr):
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


def picked(
    logits_NV: Tensor, temperature_N: Tensor, stream_N: Tensor, step_N: Tensor, keyed_N: Tensor
) -> tuple[Tensor, Tensor]:
    """An id for each row and its log-probability: what `draws.picked` says without a top-p."""
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
    _picked[(rows,)](found, choice_N, logp_N, chunks, words, ROOM=room, num_warps=1)
    return choice_N, logp_N
