"""Means that lie outside of what they are of: whatever the weights, they are wrong."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from kleash.written.made.bench import Bench, Cell
from kleash.written.made.gathered import alike_before

_MEAN = re.compile(
    r"\W*(?:宏|微|总|加权|按\w{1,4}加权|macro|micro|weighted|overall)?[\s-]*"
    r"(?:平均|均值|加权|mean|average|avg\.?)[值分]?\W*",
    re.I,
)
LEAST = 2  # means of a line that lie inside, for each that does not


def beyond(on: Bench) -> Iterator[tuple[int, tuple[Cell, ...], float, float]]:
    """Where a line that is called a mean is outside of the lines before it: their ends there."""
    group = list(alike_before(on))
    if len(group) < LEAST or not _MEAN.fullmatch(on.title):
        return
    low = (on.value_LN[group] - on.half_LN[group]).min(0)
    high = (on.value_LN[group] + on.half_LN[group]).max(0)
    known = np.isfinite(on.value_N) & np.isfinite(low)
    inside = known & (low <= on.value_N + on.half_N) & (on.value_N - on.half_N <= high)
    outside = np.flatnonzero(known & ~inside)
    if inside.sum() < LEAST * len(outside):
        return
    for at in map(int, outside):
        cells = tuple((at, on.others[nth]) for nth in group)
        yield at, cells, float(low[at]), float(high[at])
