"""Recipes that tables with the same titles teach each other: what most hold to, all should.

A table of three rows of which two are wrong says little about how its columns are made; six such
tables under one header say it all.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np

from kleash.imports.markdown.text import bare
from kleash.written.made.bench import OTHER, Bench, bench
from kleash.written.made.boards import Board, Line
from kleash.written.made.factors import offsets
from kleash.written.made.recipes import of_two
from kleash.written.made.slipped import slip_of
from kleash.written.made.tried import Tried, of_batch

TEACHERS = 2  # other tables in which a recipe has to fit
FITS = 4  # numbers of these that have to fit
SURE = -12.0  # the logarithm of how likely they would by chance
SIGNS = 2  # negative numbers that fit, before a wrong sign is a slip
Key = tuple[str, tuple[Line, ...]]


@dataclass(frozen=True)
class Lesson:
    """Of which lines a line is made in the other tables, and whether signs tell."""

    key: Key
    signed: bool

    def followed(self, on: Bench, best: Tried | None) -> Tried | None:
        """The recipe of the others, if a line may be held to it; `best` is what it has itself."""
        every = [one for key, one in of_pairs(on) if key == self.key]
        one = max(every, key=lambda each: int(each.fits.sum()), default=None)
        if one is None:
            return None
        fits, odd = int(one.fits.sum()), np.flatnonzero(one.known & ~one.fits)
        own = 0 if best is None else int(best.fits.sum())
        if fits >= len(odd) and (self.signed or own <= fits):
            return one
        if best is not None and not (best.known & ~best.fits).any():
            return None
        slips = sum(slip_of(on, one.batch, one.nth, int(at)) for at in odd)
        return one if fits or 2 * slips >= len(odd) else None


def of_pairs(on: Bench) -> Iterator[tuple[Key, Tried]]:
    """Every recipe of two lines, or of one and a number, that a title suggests, fit or not."""
    with np.errstate(all="ignore"):
        for batch in (*of_two(on), *offsets(on)):
            for one in of_batch(on, batch, np.ones(OTHER + 1), least=0.0):
                if one.cost < OTHER and one.known.any():
                    at = int(np.flatnonzero(one.known)[0])
                    yield (batch.kind, tuple(c[1] for c in batch.cells(one.nth, at))), one


def lessons(every: Sequence[Board]) -> dict[tuple[int, Line], Lesson]:
    """By table and line, how the other tables with its titles make that line."""
    found: dict[tuple[int, Line], Lesson] = {}

    def titles(board: Board) -> tuple[str, ...]:
        return tuple(bare(title).casefold() for title in board.titles)

    for _, same in groupby(sorted(every, key=titles), key=titles):
        group = list(same)
        if len(group) <= TEACHERS:
            continue
        for line in sorted({line for board in group for line in board.lines}):
            tried = _in_all(group, line)
            for board in group:
                lesson = _lesson(tried, board)
                if lesson is not None:
                    found[board.nth, line] = lesson
    return found


def _in_all(group: Sequence[Board], line: Line) -> dict[Key, dict[int, Tried]]:
    """By recipe, what came of it in each table."""
    found: dict[Key, dict[int, Tried]] = defaultdict(dict)
    for board in group:
        on = bench(board, line) if line in board.lines else None
        for key, one in of_pairs(on) if on is not None else ():
            other = found[key].get(board.nth)
            if other is None or one.odds < other.odds:
                found[key][board.nth] = one
    return found


def _lesson(tried: Mapping[Key, Mapping[int, Tried]], board: Board) -> Lesson | None:
    """The recipe that fits most of the other tables, if it fits them by no chance."""
    best: tuple[float, Lesson] | None = None
    for key, by_board in tried.items():
        others = [one for nth, one in by_board.items() if nth != board.nth]
        given = [one.batch.given_CN[one.nth][one.fits] for one in others]
        telling = [int(np.count_nonzero(each)) for each in given]
        known, odds = sum(int(one.known.sum()) for one in others), sum(one.odds for one in others)
        fits = sum(int(one.fits.sum()) for one in others)
        enough = sum(telling) >= FITS and sum(count > 0 for count in telling) >= TEACHERS
        if enough and 2 * fits >= known and odds < SURE and (best is None or odds < best[0]):
            signed = sum(int((each < 0).sum()) for each in given) >= SIGNS
            best = odds, Lesson(key, signed)
    return best[1] if best else None
