"""Which recipe a line of a table follows, if one fits it better than chance would let any.

A recipe that the title says needs little; one that was found among hundreds has to fit so well that
none of hundreds would by chance. Of a line that follows a recipe the exceptions are slips, unless
another recipe that is believed accounts for them.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import log

import numpy as np

from kleash.imports.markdown.text import bare
from kleash.written.made.bench import HINTED, OTHER, SAID, SHAPED, Batch, Bench, Cell, bench
from kleash.written.made.boards import Board, Line, turned
from kleash.written.made.bounds import beyond
from kleash.written.made.ended import of_the_end
from kleash.written.made.factors import by_one_factor, of_all, products, ranks
from kleash.written.made.gathered import of_many
from kleash.written.made.recipes import of_a_base, of_two
from kleash.written.made.rounded import off_by_rounding
from kleash.written.made.slipped import mistyped, slip_of
from kleash.written.made.taught import Lesson, lessons
from kleash.written.made.tried import BY_FACTOR, SLACK, Tried, of_batch
from kleash.written.printed import is_total

BELIEVED = {SAID: 3, SHAPED: 20, HINTED: 100, OTHER: 100}
"""How much likelier than chance a recipe has to be, by how it comes to mind."""
DOUBT = 1e4  # the same for one that nothing but numbers speaks for, if it calls some wrong
EXACT = ("difference", "relative", "mean", "share", "sum", "spread")
WHOLES = ("sum", "mean")
LOOSE = 20  # halves of its last digit by which a number may be off and still fit
COUNTED = 0.2  # how often whole numbers are rounded, not counted
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
    suspect: tuple[Cell, float] | None = None
    """Of what it is made of, the number that has a slip, and what that should be."""
    besides: bool = False
    """Whether another recipe of its line is likelier, and this one holds all the same."""

    @property
    def tight(self) -> bool:
        """Whether few other numbers would fit as well."""
        return self.within <= LOOSE * self.board.at[self.cell].half

    @property
    def place(self) -> tuple[int, int, str]:
        """The line of the page, the column, and the part."""
        return (*self.board.places[self.cell], self.cell[1][1])


def worked_out(every: Sequence[Board]) -> list[Worked]:
    """All cells of all tables that are made of others, each by the recipe of its line."""
    found: list[Worked] = []
    taught = lessons(every)
    for board in every:
        own = {line: one for (nth, line), one in taught.items() if nth == board.nth}
        both = [_lines(board, own), _lines(turned(board), {})]
        right = {one.place for side in both for one in side if one.holds and one.tight}
        found += [
            one
            for side in both
            for one in side
            if one.holds or one.besides or one.place not in right
        ]
    return found


def _lines(view: Board, taught: Mapping[Line, Lesson]) -> list[Worked]:
    """What each line is made of; of three lines each is made of the other two, so that once."""
    found: dict[frozenset[Line], tuple[Tried, list[Worked]]] = {}
    outside: list[Worked] = []
    for line in view.lines:
        on = bench(view, line)
        every = list(_line(on, taught.get(line))) if on is not None else []
        told = {one.cell for _, made in every for one in made}
        outside += [one for one in _outside(on) if one.cell not in told] if on is not None else ()
        for tried, made in every:
            lines = frozenset(cell[1] for one in made for cell in (one.cell, *one.of))
            other = found.get(lines)
            likelier = other is None or _is_likelier((tried, made), other)
            if likelier or line in taught:
                found[lines] = tried, made
    return [*(one for _, made in found.values() for one in made), *outside]


def _outside(on: Bench) -> Iterator[Worked]:
    """Means of a line, by whatever weights, that lie outside of what they are of."""
    for at, of, low, high in beyond(on):
        given, within = (low + high) / 2, (high - low) / 2
        yield Worked(on.board, "between", (at, on.line), of, given, within, False, False, 0.0, 0.0)


def _is_likelier(one: tuple[Tried, list[Worked]], other: tuple[Tried, list[Worked]]) -> bool:
    """Which of two ends a relation is told from: the likelier, or the one that holds more to it."""
    ours, theirs = one[0], other[0]
    sure = not ours.batch.free and not theirs.batch.free
    if sure and ours.cost == theirs.cost and abs(ours.odds - theirs.odds) < 1:
        return len(one[1]) > len(other[1])
    return (ours.cost, ours.odds) < (theirs.cost, theirs.odds)


def _line(on: Bench, lesson: Lesson | None) -> Iterator[tuple[Tried, list[Worked]]]:
    """The cells of a line by the likeliest recipe; exceptions only if nothing else fits them.

    Counts that are shares of a whole may be sums as well, which other numbers show to be wrong.
    """
    tried = [one for one in _tried(on, recipes(on)) if _is_believed(one) and _tells(on, one)]
    believed = _without_parts(on, tried)
    if on.board.turned:  # that a row is made of others its label says, or all of it does
        believed = [one for one in believed if one.cost < OTHER or one.fits[one.known].all()]
    best = min(believed, key=lambda one: (one.odds, one.cost), default=None)
    taught = lesson.followed(on, best) if lesson else None
    if taught is not None:
        yield taught, [_worked(on, taught, int(at)) for at in np.flatnonzero(taught.known)]
    if best is None or taught is not None:
        return
    sure = [
        one
        for one in believed
        if 2 * one.odds <= best.odds and (one is best or _recipe(one) != _recipe(best))
    ]
    fine = np.any([one.fits for one in sure], axis=0)
    made = []
    for at in map(int, np.flatnonzero(best.known)):
        of = best.batch.cells(best.nth, at)
        if best.fits[at]:
            made.append(_worked(on, best, at))
            continue
        # A factor that nobody tells need not hold everywhere, unless one slip hides it.
        alone = best.slips == 1 and not is_total(bare(on.board.labels[at]))
        held = not best.batch.free or (alone and slip_of(on, best.batch, best.nth, at))
        if held and not fine[at] and not _otherwise(on, of, at):
            made.append(_worked(on, best, at))
    yield best, made
    for one in _besides(best, believed):
        places = map(int, np.flatnonzero(one.known))
        yield one, [replace(_worked(on, one, at), besides=True) for at in places]


def _besides(best: Tried, believed: Sequence[Tried]) -> list[Tried]:
    """The likeliest recipe of other lines that the title says and all but a slip follow."""
    own = _lines_of(best)
    others = [
        one
        for one in believed
        if one.odds < -log(DOUBT)
        and one.slips <= 1
        and (one.batch.kind == "product" or (one.cost <= SHAPED and one.batch.kind in WHOLES))
        and not own & _lines_of(one)
    ]
    return sorted(others, key=lambda one: (one.odds, one.cost))[:1]


def _without_parts(on: Bench, believed: Sequence[Tried]) -> list[Tried]:
    """Without the mean of some lines where the title says that it is the mean of all of them."""
    every = [(one, _lines_of(one)) for one in believed]
    names: set[Line] = set() if on.board.turned else {(0, "")}  # a coefficient is no part
    said = [
        (one, lines)
        for one, lines in every
        if one.cost == SAID and not names & lines and _is_of_most(one)
    ]
    return [
        one
        for one, own in every
        if not any(one.batch.kind == whole.batch.kind and own < lines for whole, lines in said)
    ]


def _is_of_most(one: Tried) -> bool:
    """Whether a recipe fits most of a line, or slips explain what it does not fit."""
    fits, known = int(one.fits.sum()), int(one.known.sum())
    return 2 * fits >= known or (fits >= LEAST[HINTED] and 2 * (fits + one.explained) >= known)


def _recipe(one: Tried) -> tuple[str, frozenset[Cell]]:
    """What a recipe is, however its numbers are taken: as rounded, or as counted."""
    return one.batch.kind, frozenset(one.batch.cells(one.nth, int(np.flatnonzero(one.known)[-1])))


def _lines_of(one: Tried) -> frozenset[Line]:
    at = int(np.flatnonzero(one.known)[0])
    return frozenset(line for _, line in one.batch.cells(one.nth, at))


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
        two = 2 * max(part.half for part in known)
        made = [(values.mean(), room / len(known)), (values.sum(), room)]
        made += [(values[0] - values[-1], two)]
        signed = on.board.at[at, on.line].signed or bool(np.nanmin(on.value_N) < 0)
        made += [] if signed else [(np.ptp(values), two)]
        if len(values) == 2 and values[1]:
            made.append((100 * (values[0] / values[1] - 1), room))
        if any(abs(value - one) <= half + off + SLACK for one, off in made):
            return True
    return False


def recipes(on: Bench) -> list[Batch]:
    """All that a line may be made of."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        ways = (of_two, of_the_end, of_a_base, of_many, by_one_factor, products, of_all, ranks)
        return [batch for way in ways for batch in way(on)]


def _is_believed(one: Tried) -> bool:
    fits, odd = int(one.fits.sum()), one.slips
    if one.cost == OTHER and (one.weak or 2 * odd > fits):
        return False
    if one.batch.kind in BY_FACTOR and 2 * odd > fits:
        return False  # a factor was chosen to fit those that do, or stands in a title by chance
    if odd and fits < LEAST[HINTED] and one.cost > SAID:
        return False  # one that fits may do so by chance, whatever slips would explain
    limit = DOUBT if odd and one.cost == OTHER else BELIEVED[one.cost]
    least = LEAST[one.cost]
    if one.batch.free:  # a slip that is explained speaks for a factor as much as a fit
        least = max(least, 3) + (one.explained == 0)
    return one.odds < -log(limit) and fits >= least and odd - one.explained <= fits


def _tells(on: Bench, one: Tried) -> bool:
    """Whether a mean that no title speaks of is that of numbers that differ: else any is."""
    if one.batch.kind != "mean" or one.cost < OTHER or not one.slips:
        return True
    apart = 0
    for at in map(int, np.flatnonzero(one.fits & one.known)):
        parts = [part for cell in one.batch.cells(one.nth, at) if (part := on.board.at.get(cell))]
        values = [part.value for part in parts]
        apart += bool(values) and max(values) - min(values) > 2 * sum(part.half for part in parts)
    return apart >= LEAST[OTHER]


def _tried(on: Bench, batches: Sequence[Batch]) -> Iterator[Tried]:
    """Every recipe that fits anywhere, with the odds that chance does as well."""
    count = np.zeros(OTHER + 1)
    for batch in batches:
        some = np.isfinite(batch.given_CN).sum(1) > 1
        count += np.bincount(batch.cost_C[some], minlength=OTHER + 1)
    tries = np.maximum(1, np.cumsum(count))
    for batch in batches:
        with np.errstate(all="ignore"):
            yield from of_batch(on, batch, tries)


def _exchanged(on: Bench, one: Tried, of: tuple[Cell, ...], at: int) -> tuple[Cell, ...]:
    """Of what two numbers are made of, the one that was exchanged, if only one would mend both."""
    if not one.crossed or one.fits[at]:
        return of
    other = next(int(n) for n in np.flatnonzero(one.known & ~one.fits) if n != at)
    gap = float(on.value_N[at] - one.batch.given_CN[one.nth, at])
    gap *= len(of) if one.batch.kind == "mean" else 1
    room = float(on.half_N[at] + one.batch.within_CN[one.nth, at])
    known = on.board.at
    own = [
        cell
        for cell in of
        if (there := (other, cell[1])) in known
        and abs(known[there].value - known[cell].value - gap) <= room
    ]
    return tuple(own) if len(own) == 1 else of


def _worked(on: Bench, one: Tried, at: int) -> Worked:
    of = _exchanged(on, one, one.batch.cells(one.nth, at), at)
    given, within = float(one.batch.given_CN[one.nth, at]), float(one.batch.within_CN[one.nth, at])
    value, half = float(on.value_N[at]), float(on.half_N[at])
    holds = bool(one.fits[at])
    plain = one.batch.kind in EXACT and not one.batch.free and one.cost < OTHER
    inexact = plain and holds and abs(value - given) > half * (1 + 1e-6)
    count = 2 if one.batch.kind == "spread" else len(of)  # a deviation hangs on the farthest
    chance = off_by_rounding(given, within, count, 2 * half)
    same = all(on.board.at[cell].half == half for cell in of if cell in on.board.at)
    if one.batch.kind == "difference" and same and len(of) == 2:
        chance = 0.25
    if all(on.board.at[cell].decimals == 0 for cell in of if cell in on.board.at):
        chance *= COUNTED
    cell: tuple[int, Line] = (at, on.line)
    suspect = None if holds else mistyped(on, one.batch, one.nth, at)
    return Worked(
        on.board, one.batch.kind, cell, of, given, within, holds, inexact, chance, one.odds, suspect
    )
