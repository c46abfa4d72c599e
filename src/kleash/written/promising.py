"""Which guesses at a column can fit any of its numbers: all of them at once, as arrays.

Of hundreds of ways in which a column may be made of others hardly any gives even one of its
numbers. Those that do are for `patterns` to work out; what is said here only spares it the others,
so everything is taken a little wider than it takes it.

Axes: S slots, N lines.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from kleash.imports.markdown.derived import bounds
from kleash.written.grids import Grid, Part, Slot
from kleash.written.guessed import Guess

SLACK = 1e-6  # relative: far more than sums may be off by in whatever order they are taken
Array = NDArray[np.float64]
Bools = NDArray[np.bool_]
Range = tuple[Array, Array]
"""The least and the greatest of each number that is made."""


class Promising:
    """The numbers of one slot, held against all that can be made of some others."""

    def __init__(self, grid: Grid, slot: Slot, others: Sequence[Slot]) -> None:
        self._index = {one: nth for nth, one in enumerate(others)}
        low, high = _ends(grid, [slot])
        self._low, self._high = low[0], high[0]
        bracketed = any(part == "bracket" for _, (_, part) in grid.at)
        parts: tuple[Part, ...] = ("", "bracket") if bracketed else ("",)
        # By part, what may be taken; and from what it may be taken, where no settings are.
        self._taken = [
            (_ends(grid, own, fixed=True), _ends(grid, own))
            for own in ([(at, part) for at, _ in others] for part in parts)
        ]
        units = {one.unit == "%" for one in (*grid.at.values(), *grid.fixed.values())}
        self._points = len(units) > 1
        self._pairs: dict[str, Bools] = {}
        self._based: dict[tuple[str, int], Bools] = {}
        self._runs: dict[tuple[str, int], Bools] = {}

    def may_fit(self, guess: Guess) -> bool:
        """Whether a guess, which no title says, may give any number of the slot."""
        first = self._index[guess.of[0]]
        if guess.base is not None:
            return bool(self._of_base(guess.kind, guess.base)[first])
        if guess.kind in ("mean", "sum", "spread"):
            return bool(self._of_run(guess.kind, len(guess.of))[first])
        last = self._index[(*guess.of, *guess.minus)[1]]
        return bool(self._of_two(guess.kind)[first, last])

    def _of_two(self, kind: str) -> Bools:
        if kind not in self._pairs:
            every = (
                _of_two(kind, _apart(ours, 1), _apart(ours if kind == "product" else theirs, 0))
                for ours, theirs in self._taken
            )
            self._pairs[kind] = self._fit(kind, every)
        return self._pairs[kind]

    def _of_base(self, kind: str, base: int) -> Bools:
        if (kind, base) not in self._based:
            every = (_of_two(kind, ours, _moved(theirs, base)) for ours, theirs in self._taken)
            self._based[kind, base] = self._fit(kind, every)
        return self._based[kind, base]

    def _of_run(self, kind: str, count: int) -> Bools:
        if (kind, count) not in self._runs:
            every = (_of_many(kind, ours, count) for ours, _ in self._taken)
            self._runs[kind, count] = self._fit(kind, every)
        return self._runs[kind, count]

    @np.errstate(all="ignore")  # what is missing, or divided by nothing, fits nothing
    def _fit(self, kind: str, every: Iterator[Range]) -> Bools:
        """What may print as the number of the slot in any line."""
        in_points = self._points and kind not in ("relative", "share", "product")
        found = []
        for low, high in every:
            for scale in (1.0, 100.0) if in_points else (1.0,):
                ends = np.maximum(np.abs(scale * low), np.abs(scale * high))
                slack = SLACK * np.maximum(1.0, np.maximum(ends, np.abs(self._high)))
                fits = (self._low <= scale * high + slack) & (self._high >= scale * low - slack)
                found.append(fits.any(-1))
        return np.asarray(np.any(found, axis=0))


def _ends(grid: Grid, slots: Sequence[Slot], *, fixed: bool = False) -> Range:
    """What each number of some slots stands for; not a number where there is none."""
    lines = max(len(grid.names), *(line + 1 for line, _ in grid.at))
    low, high = (np.full((len(slots), lines), np.nan) for _ in range(2))
    for nth, slot in enumerate(slots):
        for line in range(lines):
            number = grid.at.get((line, slot)) or (grid.fixed.get((line, slot)) if fixed else None)
            ends = bounds(number) if number is not None else None
            if ends is not None:
                low[nth, line], high[nth, line] = ends
    return low, high


def _apart(ends: Range, axis: int) -> Range:
    return np.expand_dims(ends[0], axis), np.expand_dims(ends[1], axis)


def _moved(ends: Range, base: int) -> Range:
    """By line, the numbers of the line before it, or of one line for all."""
    low, high = (
        one[:, base : base + 1]
        if base >= 0
        else np.concatenate([np.full((len(one), 1), np.nan), one[:, :-1]], 1)
        for one in ends
    )
    return low, high


_MADE: dict[str, Callable[[Array, Array], Array]] = {
    "product": lambda x, y: x * y,
    "share": lambda x, y: x / y,
    "relative": lambda x, y: (x - y) / y,
}


def _of_two(kind: str, ours: Range, theirs: Range) -> Range:
    if kind == "difference":
        return ours[0] - theirs[1], ours[1] - theirs[0]
    corners = [_MADE[kind](x, y) for x in ours for y in theirs]
    low, high = np.minimum.reduce(corners), np.maximum.reduce(corners)
    if kind != "product":  # what is divided by what may be nothing is anything
        low = np.where((theirs[0] <= 0) & (theirs[1] >= 0), np.nan, low)
    return low, high


def _of_many(kind: str, ours: Range, count: int) -> Range:
    low, high = (sliding_window_view(one, count, axis=0) for one in ours)
    if kind == "mean":
        return low.mean(-1), high.mean(-1)
    if kind == "sum":
        return low.sum(-1), high.sum(-1)
    middle = ((low + high) / 2).std(-1, ddof=1)
    half = ((high - low) / 2).max(-1)
    return middle - half, middle + half
