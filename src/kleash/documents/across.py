"""Lines that other tables tell again, or make: a row, a best, a mean of theirs, by their labels."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import pairwise, permutations
from math import log

import numpy as np

from kleash.documents.accounts import (
    BEST,
    DIFFERENCE,
    MEAN,
    MEDIAN,
    RANGE,
    RELATIVE,
    SAME,
    SPREAD,
    SUM,
    Candidates,
    Kind,
    kind_of,
    of_two,
    places,
)
from kleash.documents.boards import Array, Board, numbers_in
from kleash.documents.search import Found, Proposal, Search

Statistic = Callable[[Array, Array], tuple[Array, Array]]
MOST = 14  # lines of which every two are held against each other
GAP = kind_of(
    "difference",
    r"差|Δ|delta|diff|gap|vs|对|[^\d]\s?[-−–]\s?[^\d]|→|变化|提升|over|change|相[对比]|较",
)
GAP_SHARE = kind_of("relative", GAP.hint.pattern)
CHANGE = kind_of("best", r"变化|change|Δ|增|降|环比|prev|上一|前一|相邻", 5, spare=3)
MEAN_CHANGE = kind_of("mean", CHANGE.hint.pattern)
COUNT = kind_of("count", r"次数|个数|count|number|times|步数|falls|drops|rises", spare=3)


def _changes(of: Callable[[Array], Array], *, share: bool = False) -> Statistic:
    """A statistic of the changes from each to the next."""

    def made(x: Array, h: Array) -> tuple[Array, Array]:
        by = 100 / x[:-1] if share else np.ones_like(x[:-1])
        return of(by * np.diff(x, axis=0)), (abs(by) * (h[1:] + h[:-1])).max(0)

    return made


# What several lines give at each position, and how far hidden digits move it.
STATISTICS: tuple[tuple[Kind, str, Statistic], ...] = (
    (MEAN, "mean({})", lambda x, h: (x.mean(0), h.mean(0))),
    (MEDIAN, "median({})", lambda x, h: (np.median(x, 0), h.max(0))),
    (SUM, "sum({})", lambda x, h: (x.sum(0), h.sum(0))),
    (BEST, "max({})", lambda x, h: (x.max(0), 0 * h.max(0))),
    (BEST, "min({})", lambda x, h: (x.min(0), 0 * h.max(0))),
    (RANGE, "spread({})", lambda x, h: (np.ptp(x, 0), 2 * h.max(0))),
    (SPREAD, "std({})", lambda x, h: (x.std(0, ddof=1), h.max(0))),
    (CHANGE, "max(changes({}))", _changes(lambda d: d.max(0))),
    (CHANGE, "min(changes({}))", _changes(lambda d: d.min(0))),
    (CHANGE, "max(changes_percent({}))", _changes(lambda d: d.max(0), share=True)),
    (CHANGE, "min(changes_percent({}))", _changes(lambda d: d.min(0), share=True)),
    (MEAN_CHANGE, "mean(abs(changes({})))", _changes(lambda d: abs(d).mean(0))),
    (COUNT, "count(changes({}) < 0)", lambda x, h: (_times(np.diff(x, axis=0), -1), 0 * h[0])),
    (COUNT, "count(changes({}) > 0)", lambda x, h: (_times(np.diff(x, axis=0), 1), 0 * h[0])),
)


def _times(change: Array, sign: int) -> Array:
    counted: Array = (sign * change > 0).sum(0).astype(float)
    return counted


def proposals_across(boards: Sequence[Board]) -> Iterator[Proposal]:
    """For each line the table that tells it best, if one does."""
    for board in boards:
        shared = [
            (other, both)
            for other in boards
            if other.table is not board.table and len(both := _shared(board, other)) > 1
        ]
        for t in range(board.first, len(board.titles)) if shared else ():
            found = [one for other, both in shared if (one := _best(board, t, other, both))]
            if found:
                account, search = max(found, key=lambda one: one[0].score)
                yield search.proposal(account)


def _shared(board: Board, other: Board) -> list[tuple[int, int]]:
    """Positions of two boards that stand under one label."""
    there = other.by_label
    return [
        (at, there[name][0])
        for name, own in board.by_label.items()
        for at in own
        if len(there.get(name, ())) == 1
    ]


def _best(
    board: Board, t: int, other: Board, shared: Sequence[tuple[int, int]]
) -> tuple[Found, Search] | None:
    ours, theirs = ([pair[side] for pair in shared] for side in (0, 1))
    values = board.value[t, ours]
    if len({*values[np.isfinite(values)]}) < 2:
        return None
    title = board.titles[t]
    if board.is_signed[t] and GAP.hint.search(board.table.heading):
        title = f"{title} | {board.table.heading}"
    search = Search(board, t, title, ours, "other table")
    with np.errstate(all="ignore"):
        found = search.best(_Other(other, theirs, search).candidates())
    return None if found is None else (found, search)


class _Other:
    """Another board at the positions that it shares with a line."""

    def __init__(self, board: Board, at: Sequence[int], search: Search) -> None:
        self.board, self.at, self.wants = board, at, search.wants
        self.value, self.half = board.value[:, at], board.half[:, at]
        self.named = numbers_in(search.title)
        self.is_share = search.board.is_share[search.t]

    def candidates(self) -> Iterator[Candidates]:
        """Every account that lines of the other board may give."""
        board = self.board
        lines = range(board.first, len(board.titles))
        alike = [i for i in lines if board.is_share[i] == self.is_share]
        if alike:
            room = 0 * self.half[alike]
            yield Candidates(
                SAME,
                self.value[alike],
                room,
                lambda k, p: self._at(alike[k], p),
                log(len(alike) + 1) + 1,
            )
        base = [i for i in lines if not board.parts[i]]
        if 2 <= len(base) <= MOST:
            yield from self._gaps(base)
        numbered = [i for i in base if re.match(r"\D{0,12}\d", board.titles[i])]
        base = numbered if len(numbered) >= 0.6 * len(base) else base
        if len(base) > 2:
            for own in self._ranges(base):
                yield from self._statistics(own)

    def _at(self, line: int, p: int) -> str:
        cell = self.board.cells[line][self.at[p]]
        return "" if cell is None else cell.address

    def _gaps(self, base: list[int]) -> Iterator[Candidates]:
        one, other = np.array(list(permutations(base, 2))).T
        for kind, form in ((GAP, "{0} - {1}"), (GAP_SHARE, "100 * ({0} - {1}) / {1}")):
            if self.wants(kind):
                two = of_two(
                    kind, self.value[one], self.value[other], self.half[one], self.half[other]
                )

                def formula(k: int, p: int, form: str = form) -> str:
                    return form.format(self._at(one[k], p), self._at(other[k], p))

                yield Candidates(kind, *two, formula, log(len(one)) + 1)

    def _ranges(self, base: list[int]) -> Iterator[list[int]]:
        """All lines; and those from one number of a title to the next: "10–40"."""
        yield base
        firsts = [next(iter(self.board.named[i]), np.nan) for i in base]
        for low, high in pairwise(self.named):
            inside = [i for i, at in zip(base, firsts, strict=True) if low <= at <= high]
            if 1 < len(inside) < len(base):
                yield inside

    def _statistics(self, own: list[int]) -> Iterator[Candidates]:
        value, half = self.value[own], self.half[own]
        two = value[-1], value[0], half[-1], half[0]
        made: list[tuple[Kind, str, Callable[[], tuple[Array, Array]]]] = [
            (DIFFERENCE, "{last} - {first}", lambda: of_two(DIFFERENCE, *two)),
            (RELATIVE, "100 * ({last} - {first}) / {first}", lambda: of_two(RELATIVE, *two)),
            *((kind, form, partial(of, value, half)) for kind, form, of in STATISTICS),
        ]
        for kind, form, both in made:
            if self.wants(kind) and (len(own) > 2 or kind is not SPREAD):

                def formula(_: int, p: int, form: str = form) -> str:
                    cells = [self._at(i, p) for i in own]
                    return form.format(", ".join(cells), first=cells[0], last=cells[-1])

                given, room = both()
                given = np.where(np.isfinite(value).all(0), given, np.nan)
                yield Candidates(kind, given[None], (room + 0 * given)[None], formula, 1.0)
        steps = np.array([next(iter(self.board.named[i]), np.nan) for i in own])
        if np.isfinite(steps).all() and all(self.board.keys[i] for i in own):
            yield places(self.board, own, steps, self.at)
