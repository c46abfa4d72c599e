"""A recipe tried on a line: where it fits, and how likely chance would do as well."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import log

import numpy as np
from numpy.typing import NDArray

from kleash.written.made.bench import OTHER, SHAPED, Batch, Bench
from kleash.written.made.slipped import told_by_exchange, told_by_slip

SLACK = 1e-9
SLIPS = 0.1  # numbers of a line that are wrong, in a report that has slips at all
SLIPPED = 12.0  # as much as slips may speak for a recipe
BY_FACTOR = ("multiple", "complement")  # which chance makes of many lines
FEW = 4  # numbers of a line for each that fits, if slips explain the others
TWO = 2  # numbers that are off where two were exchanged
FEWEST = 20  # halves of its last digit that a number has if it has two digits


@dataclass(frozen=True)
class Tried:
    """A recipe with what came of it."""

    batch: Batch
    nth: int
    cost: int
    odds: float
    fits: NDArray[np.bool_]
    known: NDArray[np.bool_]
    weak: bool = False
    """Whether its numbers have too few digits to tell anything."""
    crossed: bool = False
    """Whether two numbers are off by the same, one up and one down: parts of them were swapped."""
    explained: int = 0
    """How many that do not fit are what a slip would have left."""

    @property
    def slips(self) -> int:
        """How many slips explain what does not fit."""
        return 1 if self.crossed else int((self.known & ~self.fits).sum())


def of_batch(
    on: Bench, batch: Batch, tries: NDArray[np.float64], least: float = 0.5
) -> Iterator[Tried]:
    """The recipes of a batch that fit at least such a part of a line."""
    value, half = on.value_N[None, :], on.half_N[None, :]
    known = np.isfinite(batch.given_CN) & np.isfinite(value)
    slack = SLACK * np.maximum(1e-6, np.abs(batch.given_CN))
    fits = known & (np.abs(value - batch.given_CN) <= half + batch.within_CN + slack)
    if least > 0 and not fits.any():
        return
    off = known & ~fits
    room = np.where(off, half + batch.within_CN, 0.0).sum(1)
    gaps = np.where(off, value - batch.given_CN, 0.0)
    crossed = (off.sum(1) == TWO) & (np.abs(gaps.sum(1)) <= room) & (np.abs(gaps).max(1) > room)
    crossed &= batch.kind in ("sum", "mean")
    counts = fits.sum(1)
    weak = on.length < FEWEST
    enough = (counts >= least) & (counts >= least * (known.sum(1) - crossed))
    few = ~enough & _may_slip(on, batch, counts, known) & (least > 0)
    for nth in map(int, np.flatnonzero(enough | few)):
        cost = int(batch.cost_C[nth])
        chance = chance_of(on, batch, nth, fits[nth], said=cost <= SHAPED)
        odd = np.flatnonzero(off[nth])
        slips = 1 if crossed[nth] else len(odd)
        odds = log(tries[cost]) + chance - log(SLIPS) * slips
        explained = 0
        if cost < OTHER and not on.line[1] and (few[nth] or -SLIPPED < odds < SLIPPED * slips):
            told = [
                max(
                    told_by_slip(on, batch, nth, int(at)),
                    told_by_exchange(on, batch, nth, int(at), [int(one) for one in odd]),
                )
                for at in odd
            ]
            odds, explained = odds - sum(told), sum(one > 0 for one in told)
        if enough[nth] or len(odd) - explained <= counts[nth]:
            yield Tried(
                batch, nth, cost, odds, fits[nth], known[nth], weak, bool(crossed[nth]), explained
            )


def _may_slip(
    on: Bench, batch: Batch, counts: NDArray[np.int64], known_CN: NDArray[np.bool_]
) -> NDArray[np.bool_]:
    """Recipes that a title speaks for and that fit some of a line: the others may be slips."""
    some = np.where(batch.cost_C <= SHAPED, 1, 2)
    few: NDArray[np.bool_] = (counts >= some) & (FEW * counts >= known_CN.sum(1))
    plain = on.line[1] == "" and batch.kind not in BY_FACTOR
    return few & (batch.cost_C < OTHER) if plain else np.zeros_like(few)


def _apart(on: Bench, batch: Batch, nth: int, fits: NDArray[np.bool_]) -> NDArray[np.float64]:
    """How far the parts of each number that fits are from each other."""
    parts = [[on.board.at[cell].value for cell in batch.cells(nth, int(at)) if cell in on.board.at]
             for at in np.flatnonzero(fits)]  # fmt: skip
    return np.array([max(own, default=0.0) - min(own, default=0.0) for own in parts])


def chance_of(on: Bench, batch: Batch, nth: int, fits: NDArray[np.bool_], *, said: bool) -> float:
    """The logarithm of how likely numbers that have nothing to do with each other fit so."""
    if batch.odds is not None:
        return int(fits.sum()) * log(batch.odds)
    if not fits.any():
        return 0.0
    value, given = on.value_N[fits], batch.given_CN[nth][fits]
    width = 2 * (on.half_N[fits] + batch.within_CN[nth][fits])
    size = 2 * np.maximum(np.abs(value), np.abs(given))
    size = np.where(said & (size == 0), size.mean(), size)  # a zero tells as much as the others
    room = size if said else np.minimum(size, value.max() - value.min())
    if batch.kind == "mean" and not said:  # which lies between its parts, whatever they are
        room = np.minimum(room, _apart(on, batch, nth, fits))
    logs = np.sort(np.log(np.maximum(width, 1e-300) / (room + width)))
    spared = 0 if said else 1 + batch.free
    return float(logs[: max(0, len(logs) - spared)].sum())
