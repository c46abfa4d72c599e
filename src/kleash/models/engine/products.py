"""Products of a few rows with a large weight, as a Triton kernel: most of a step of few talks.

Such a product is read, not computed: the weight goes through once. A library cuts a weight of few
rows along its width and sums the parts by a kernel more; here enough programs read whole rows.

Shapes: N rows, W width, O outputs.
"""

# Triton reads these functions itself: their parameters are what a kernel needs, and no types.
# ruff: noqa: PLR0913

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
import triton
import triton.language as tl
from torch import Tensor

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
