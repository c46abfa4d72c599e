"""Lines that hold another against the best of several: "free - best", "best share"."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np

from kleash.written.made.bench import (
    HINTED,
    HINTS,
    SHAPED,
    WHOLE,
    Array,
    Batch,
    Bench,
    Cell,
    mentions,
)
from kleash.written.made.recipes import comparisons

LEAST = 3  # lines of which one is the best


def of_the_end(on: Bench) -> Iterator[Batch]:
    """A line against the highest, or the lowest, of those that stand together, or the reverse."""
    if not HINTS["best"].search(on.title):
        return
    for group in _groups(on):
        inside = np.array(group)
        for pick in (np.argmax, np.argmin):
            values = on.value_LN[inside]
            known = np.isfinite(values).all(0)
            at = inside[pick(np.where(known, values, 0.0), axis=0)]
            end, half = (_picked(each, at, known) for each in (on.value_LN, on.half_LN))
            yield from _against(on, group, at, end, half)


def _groups(on: Bench) -> Iterator[list[int]]:
    """Lines beside each other that are printed alike; also without the last of them."""
    plain = [nth for nth, line in enumerate(on.others) if line[0] and not line[1]]
    runs: list[list[int]] = [plain[:1]]
    for one, other in pairwise(plain):
        alike = np.nanmedian(on.half_LN[one]) == np.nanmedian(on.half_LN[other])
        near = on.others[other][0] == on.others[one][0] + 1 and on.units[one] == on.units[other]
        if not (alike and near):
            runs.append([])
        runs[-1].append(other)
    for run in runs:
        for part in (run, run[:-1], run[1:]):
            if len(part) >= LEAST:
                yield part


def _picked(values: Array, at: Array, known: Array) -> Array:
    return np.where(known, values[at.astype(int), np.arange(values.shape[1])], np.nan)


def _against(on: Bench, group: list[int], at: Array, end: Array, half: Array) -> Iterator[Batch]:
    """The comparisons of the end of a group with every line that is not in it."""
    others = [nth for nth in range(len(on.others)) if nth not in group and not on.others[nth][1]]
    if not others:
        return
    counted = bool(np.all(np.isnan(on.half_LN[others]) | (on.half_LN[others] == WHOLE)))
    counted &= bool(np.all(np.isnan(half) | (half == WHOLE)))
    x, dx = on.value_LN[others], on.half_LN[others]
    y, dy = (np.broadcast_to(each, x.shape) for each in (end, half))

    def cells(nth: int, place: int) -> tuple[Cell, ...]:
        return (place, on.others[others[nth]]), (place, on.others[int(at[place])])

    cost = np.array(
        [
            SHAPED if mentions(on.title, on.board.titles[on.others[nth][0]]) else HINTED
            for nth in others
        ]
    )
    for ours, theirs, room, other in ((x, y, dx, dy), (y, x, dy, dx)):
        for kind, given, within in comparisons(on, ours, theirs, room, other):
            yield Batch(kind, given, within, cost, cells)
            if kind == "share" and counted:  # of what was counted nothing is rounded
                yield Batch(kind, given, 0 * within, cost, cells)
