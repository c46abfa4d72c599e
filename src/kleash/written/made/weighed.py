"""Which recipe a line of a table follows, if one fits it better than chance would let any.

A recipe that the title says needs little; one that was found among hundreds has to fit so well that
none of hundreds would by chance. Of a line that follows a recipe the exceptions are slips, unless
another recipe that is believed accounts for them.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import log, sqrt

import numpy as np
from numpy.typing import NDArray

from kleash.written.fitting import is_typo
from kleash.written.made.bench import HINTED, OTHER, SAID, SHAPED, Batch, Bench, Cell, bench
from kleash.written.made.boards import Board, Line, turned
from kleash.written.made.factors import by_one_factor, of_all, ranks
from kleash.written.made.gathered import of_many
from kleash.written.made.recipes import of_a_base, of_two

SLACK = 1e-9
BELIEVED = {SAID: 3, SHAPED: 20, HINTED: 100, OTHER: 100}
"""How much likelier than chance a recipe has to be, by how it comes to mind."""
DOUBT = 1e4  # the same for one that nothing but numbers speaks for, if it calls some wrong
SLIPS = 0.1  # numbers of a line that are wrong, in a report that has slips at all
TYPOS = 40  # numbers of four digits that a wrong digit, a swap of two or a wrong sign makes of one
SLIPPED = 12.0  # as much as slips may speak for a recipe
FEWEST = 20  # halves of its last digit that a number has if it has two digits
LEAST = {SAID: 1, SHAPED: 1, HINTED: 2, OTHER: 3}  # numbers that have to fit


@dataclass(frozen=True)
class Worked:
    """A cell, what it is made of, and what it should be by that."""

    board: Board
    kind: str
    cell: Cell
    of: tuple[Cell, ...]
    given: float
    within: float
    holds: bool
    inexact: bool
    chance: float
    odds: float

    @property
    def place(self) -> tuple[int, int, str]:
        """The line of the page, the column, and the part."""
        return (*self.board.places[self.cell], self.cell[1][1])


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


def worked_out(every: Sequence[Board]) -> list[Worked]:
    """All cells of all tables that are made of others, each by the recipe of its line."""
    found: list[Worked] = []
    for board in every:
        both = [_lines(view) for view in (board, turned(board))]
        right = {one.place for side in both for one in side if one.holds}
        found += [one for side in both for one in side if one.holds or one.place not in right]
    return found


def _lines(view: Board) -> list[Worked]:
    """What each line is made of; of three lines each is made of the other two, so that once."""
    found: dict[frozenset[Line], tuple[Tried, list[Worked]]] = {}
    for line in view.lines:
        on = bench(view, line)
        best = _line(on) if on is not None else None
        if best is None:
            continue
        tried, made = best
        lines = frozenset(cell[1] for one in made for cell in (one.cell, *one.of))
        other = found.get(lines)
        if other is None or (tried.cost, tried.odds) < (other[0].cost, other[0].odds):
            found[lines] = best
    return [one for _, made in found.values() for one in made]


def _line(on: Bench) -> tuple[Tried, list[Worked]] | None:
    """The cells of a line by the likeliest recipe; exceptions only if nothing else fits them."""
    believed = [one for one in _tried(on, recipes(on)) if _is_believed(one)]
    if not believed:
        return None
    best = min(believed, key=lambda one: (one.odds, one.cost))
    sure = [one for one in believed if 2 * one.odds <= best.odds]
    fine = np.any([one.fits for one in sure], axis=0)
    made = []
    for at in map(int, np.flatnonzero(best.known)):
        of = best.batch.cells(best.nth, at)
        if best.fits[at]:
            made.append(_worked(on, best, at))
            continue
        # A factor that nobody tells need not hold everywhere, unless a slip hides it.
        held = not best.batch.free or _slip_of(on, best.batch, best.nth, at)
        if held and not fine[at] and not _otherwise(on, of, at):
            made.append(_worked(on, best, at))
    return best, made


def _otherwise(on: Bench, of: Sequence[Cell], at: int) -> bool:
    """Whether a number is made of the same cells in another way: of their brackets, or summed."""
    value, half = float(on.value_N[at]), float(on.half_N[at])
    kinds = {kind for cell in of for _, (column, kind) in on.board.at if column == cell[1][0]}
    for kind in kinds if len(of) > 1 else ():
        cells = [(where, (line[0], kind)) for where, line in of]
        parts = [on.board.at.get(cell) for cell in cells if cell != (at, on.line)]
        known = [part for part in parts if part is not None]
        values, room = np.array([part.value for part in known]), sum(part.half for part in known)
        if len(known) < len(of):
            continue
        made = [values.mean(), values.sum(), values[0] - values[-1]]
        made += [] if on.board.at[at, on.line].signed else [np.ptp(values)]
        made += [100 * (values[0] / values[1] - 1)] if len(values) == 2 and values[1] else []
        if any(abs(value - one) <= half + room + SLACK for one in made):
            return True
    return False


def recipes(on: Bench) -> list[Batch]:
    """All that a line may be made of."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        ways = (of_two, of_a_base, of_many, by_one_factor, of_all, ranks)
        return [batch for way in ways for batch in way(on)]


def _is_believed(one: Tried) -> bool:
    fits, odd = int(one.fits.sum()), int((one.known & ~one.fits).sum())
    if one.cost == OTHER and (one.weak or 2 * odd > fits):
        return False
    limit = DOUBT if odd and one.cost == OTHER else BELIEVED[one.cost]
    least = max(LEAST[one.cost], 3) + 1 if one.batch.free else LEAST[one.cost]
    return one.odds < -log(limit) and fits >= least and odd <= fits


def _tried(on: Bench, batches: Sequence[Batch]) -> Iterator[Tried]:
    """Every recipe that fits anywhere, with the odds that chance does as well."""
    count = np.zeros(OTHER + 1)
    for batch in batches:
        some = np.isfinite(batch.given_CN).sum(1) > 1
        for cost in range(OTHER + 1):
            count[cost] += (some & (batch.cost_C == cost)).sum()
    tries = np.maximum(1, np.cumsum(count))
    for batch in batches:
        with np.errstate(all="ignore"):
            yield from _of_batch(on, batch, tries)


def _of_batch(on: Bench, batch: Batch, tries: NDArray[np.float64]) -> Iterator[Tried]:
    value, half = on.value_N[None, :], on.half_N[None, :]
    known = np.isfinite(batch.given_CN) & np.isfinite(value)
    slack = SLACK * np.maximum(1e-6, np.abs(batch.given_CN))
    fits = known & (np.abs(value - batch.given_CN) <= half + batch.within_CN + slack)
    counts = fits.sum(1)
    weak = bool(np.nanmedian(np.abs(on.value_N) / on.half_N) < FEWEST)
    for nth in np.flatnonzero((counts >= 1) & (2 * counts >= known.sum(1))):
        cost = int(batch.cost_C[nth])
        chance = _chance(on, batch, int(nth), fits[nth], said=cost <= SHAPED)
        odd = np.flatnonzero(known[nth] & ~fits[nth])
        odds = log(tries[cost]) + chance - log(SLIPS) * len(odd)
        if cost < OTHER and len(odd) <= counts[nth] and -SLIPPED < odds < SLIPPED * len(odd):
            odds -= sum(_slip(on, batch, int(nth), int(at)) for at in odd)
        yield Tried(batch, int(nth), cost, odds, fits[nth], known[nth], weak)


def _chance(on: Bench, batch: Batch, nth: int, fits: NDArray[np.bool_], *, said: bool) -> float:
    """The logarithm of how likely numbers that have nothing to do with each other fit so."""
    if batch.odds is not None:
        return int(fits.sum()) * log(batch.odds)
    value, given = on.value_N[fits], batch.given_CN[nth][fits]
    width = 2 * (on.half_N[fits] + batch.within_CN[nth][fits])
    size = 2 * np.maximum(np.abs(value), np.abs(given))
    room = size if said else np.minimum(size, value.max() - value.min())
    logs = np.sort(np.log(np.maximum(width, 1e-300) / (room + width)))
    spared = 0 if said else 1 + batch.free
    return float(logs[: max(0, len(logs) - spared)].sum())


def _slip(on: Bench, batch: Batch, nth: int, at: int) -> float:
    """How much a number that does not fit speaks for a recipe, as a slip of what it gives."""
    value, unit = float(on.value_N[at]), 2 * float(on.half_N[at])
    if not value or not _slip_of(on, batch, nth, at):
        return 0.0
    return max(0.0, log(2 * abs(value) / unit / TYPOS))


def _slip_of(on: Bench, batch: Batch, nth: int, at: int) -> bool:
    """Whether a number is what a recipe gives but for a digit, two swapped ones or its sign."""
    value, unit = float(on.value_N[at]), 2 * float(on.half_N[at])
    given, within = float(batch.given_CN[nth, at]), float(batch.within_CN[nth, at])
    decimals = max(0, on.board.at[at, on.line].decimals)
    near = [given] if within < unit / 4 else [given - unit, given, given + unit]
    return any(is_typo(value, each, decimals) for each in near) or abs(value + given) <= within


def _worked(on: Bench, one: Tried, at: int) -> Worked:
    of = one.batch.cells(one.nth, at)
    given, within = float(one.batch.given_CN[one.nth, at]), float(one.batch.within_CN[one.nth, at])
    value, half = float(on.value_N[at]), float(on.half_N[at])
    holds = bool(one.fits[at])
    plain = one.batch.kind in ("difference", "relative", "mean", "share") and not one.batch.free
    inexact = plain and holds and abs(value - given) > half * (1 + 1e-6)
    chance = min(0.9, 0.8 * 2 * within / sqrt(12 * max(1, len(of))) / (2 * half))
    same = all(on.board.at[cell].half == half for cell in of if cell in on.board.at)
    if one.batch.kind == "difference" and same and len(of) == 2:
        chance = 0.25
    cell: tuple[int, Line] = (at, on.line)
    return Worked(
        on.board, one.batch.kind, cell, of, given, within, holds, inexact, chance, one.odds
    )
