"""How a line of numbers may be made of others: differences, shares, means, losses.

Numbers propose here what a model proposes of sentences: formulas, which `judge` works out. Which of
these candidates a line holds to is for `search`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import permutations
from math import inf, log
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kleash.documents.boards import Array, Board, bare

MANY = 800  # runs of lines that are tried
MOST = 14  # lines of another table of which every two are held against each other


class Kind(NamedTuple):
    """A kind of account: its formula, what titles call it, and what score it needs."""

    form: str
    of: Callable[..., Array]
    hint: str
    plain: float = inf
    """The score it needs where the title does not call it so."""
    hinted: float = 4.0
    spare: int = 4
    """One number of so many may fail."""


GAP = r"差|Δ|delta|diff|gap|vs|对|[^\d]\s?[-−–]\s?[^\d]|→|变化|提升|over|change|相[对比]|较"
_BEST = r"最|best|max|min|peak|top|high|low|峰|谷"
_STEP = r"变化|change|Δ|增|降|环比|prev|上一|前一|相邻"
_LESS = (
    r"差|Δ|delta|diff|gap|vs|[-−–]|变化|提升|over|gain|los[ts]|drop|降|增|改善|相[对比]|change|较"
)
_CHANGE = r"%|％|比例|幅|相[对比]|change|vs|率|提升|变化|Δ|较|下降|上升"
_PART = r"%|％|率|share|rate|占|比|acc|win|loss|per "
_TIMES = r"×|\*|总|penalty|惩罚|hours|GPU|乘|cost|费|total|项|时|kl"
_SUM = r"合计|总|共|total|sum|all|整"
_SPREAD = r"标准差|std|sd|±|spread|dev|seed|种子"
_MEAN = r"平均|均值|mean|avg|average|overall|总体|整体"
DIFFERENCE = Kind("{} - {}", np.subtract, _LESS, 9)
RELATIVE = Kind("100 * ({0} - {1}) / {1}", lambda a, b: 100 * (a / b - 1), _CHANGE, 8)
SHARE = Kind("100 * {} / {}", lambda a, b: 100 * a / b, _PART, 8)
RATIO = Kind("{} / {}", np.divide, r"比|倍|ratio|/|×|x\b|times|per|每|均|avg|mean", 9)
PRODUCT = Kind("{} * {}", np.multiply, _TIMES, 9)
TOTAL = Kind("{} + {}", np.add, _SUM)
WEIGHTED = Kind("{} + {} * {}", np.add, r"loss|损失|总|total|objective", 12, 6)
SAME = Kind("{}", np.positive, r"(?!)", 8)
TWO = (DIFFERENCE, TOTAL, PRODUCT, RATIO, SHARE, RELATIVE)
AGAINST = (DIFFERENCE, RATIO, SHARE, RELATIVE)
SINCE = tuple(one._replace(hint=_STEP, plain=inf) for one in (DIFFERENCE, RELATIVE))
ACROSS = tuple(one._replace(hint=GAP, plain=inf) for one in (DIFFERENCE, RELATIVE))
STATISTICS = (
    Kind("mean({all})", lambda x: x.mean(0), _MEAN),
    Kind("sum({all})", lambda x: np.nansum(x, 0), _SUM),
    Kind("max({all})", lambda x: x.max(0), _BEST, hinted=5, spare=3),
    Kind("min({all})", lambda x: x.min(0), _BEST, hinted=5, spare=3),
    Kind("std({all})", lambda x: x.std(0, ddof=1), _SPREAD, hinted=5, spare=3),
)
Wants = Callable[[Kind], bool]
Places = NDArray[np.int_]


@dataclass
class Candidates:
    """Accounts of one kind: what each gives at each position, how exactly, and of which cells."""

    kind: Kind
    given: Array
    room: Array
    """How far hidden digits move it."""
    cells: Callable[[int, int], list[str]]
    cost: float = 0.0

    def formula(self, k: int, p: int) -> str:
        """The formula of the k-th account at a position."""
        cells = self.cells(k, p)
        return self.kind.form.format(*cells, all=", ".join(filter(None, cells)))


@dataclass
class Lines:
    """Lines of a board at some of its positions, of which another line may be made."""

    board: Board
    at: Sequence[int]
    half: Array

    def __post_init__(self) -> None:
        self.value, self.half = self.board.value[:, self.at], self.half[:, self.at]

    def cell(self, line: int, p: int) -> str:
        """The address of a number."""
        one = self.board.cells[line][self.at[p]]
        return "" if one is None else one.address

    def within(self, t: int, constants: Array, wants: Wants) -> Iterator[Candidates]:
        """Every account that a line of the same board may have."""
        others = np.array([i for i in range(len(self.value)) if i != t])
        m, n = len(others), len(self.at)
        if not m:
            return
        here = np.arange(n)
        if m > 1:
            one, other = np.array(list(permutations(others, 2))).T
            yield from self._pairs(TWO, wants, one, other, here, log(max(2, len(one))))
        if n > 1:
            every, base = np.repeat(others, n), np.tile(here, m)[:, None]
            yield from self._pairs(AGAINST, wants, every, every, base, log(m * n + 1))
            yield from self._pairs(SINCE, wants, others, others, here - 1, log(m + 1))
        if m > 1:
            groups = list(_groups(self.board, t, others.tolist()))
            yield from self._statistics(groups, wants, log(len(groups) + 1))
        if not self.board.turned or wants(WEIGHTED) or wants(PRODUCT):
            yield from self._scaled(others, constants, wants)

    def across(self, *, is_share: bool, wants: Wants) -> Iterator[Candidates]:
        """Every account that a line of another board may have."""
        board = self.board
        lines = range(board.first, len(board.titles))
        alike = np.array([i for i in lines if board.is_share[i] == is_share], int)
        if len(alike):
            value = self.value[alike]
            cost = log(len(alike) + 1) + 1
            yield Candidates(SAME, value, 0 * value, lambda k, p: [self.cell(alike[k], p)], cost)
        base = [i for i in lines if not board.parts[i]]
        here = np.arange(len(self.at))
        if 2 <= len(base) <= MOST:
            one, other = np.array(list(permutations(base, 2))).T
            yield from self._pairs(ACROSS, wants, one, other, here, log(len(one)) + 1)
        numbered = [i for i in base if re.match(r"\D{0,12}\d", board.titles[i])]
        base = numbered if len(numbered) >= 0.6 * len(base) else base
        if len(base) > 2:
            last, first = np.array(base[-1:]), np.array(base[:1])
            yield from self._pairs((DIFFERENCE, RELATIVE), wants, last, first, here, 1.0)
            yield from self._statistics([base], wants, 1.0)

    def _pairs(
        self,
        kinds: Sequence[Kind],
        wants: Wants,
        one: Places,
        other: Places,
        at: Places,
        cost: float,
    ) -> Iterator[Candidates]:
        """Of a number of one line at each position, and one of another, or of another position."""
        here = np.arange(len(self.at))
        at = np.broadcast_to(at, (len(one), len(here)))
        itself = (one == other)[:, None] & (at == here)
        a, b = self.value[one], np.where(itself | (at < 0), np.nan, self.value[other[:, None], at])
        for kind in filter(wants, kinds):
            given = kind.of(a, b)
            room = abs(kind.of(a + self.half[one], b) - given)
            room += abs(kind.of(a, b + self.half[other[:, None], at]) - given)
            yield Candidates(
                kind,
                given,
                room,
                lambda k, p: [self.cell(one[k], p), self.cell(other[k], at[k, p])],
                cost,
            )

    def _statistics(
        self, groups: Sequence[Sequence[int]], wants: Wants, cost: float
    ) -> Iterator[Candidates]:
        """Means, sums and extremes of several lines."""
        for kind in filter(wants, STATISTICS if groups else ()):
            lone = [np.isfinite(self.value[g]).sum(0) < 2 for g in groups]
            given = np.where(lone, np.nan, [kind.of(self.value[g]) for g in groups])
            room = [np.fmax(kind.of(self.half[g]), self.half[g].max(0)) for g in groups]
            yield Candidates(
                kind, given, np.array(room), lambda k, p: [self.cell(i, p) for i in groups[k]], cost
            )

    def _scaled(self, others: Places, constants: Array, wants: Wants) -> Iterator[Candidates]:
        """A line times a coefficient, alone or beside another: a penalty, a loss."""
        m, n = len(others), len(self.at)
        told = [{*map(float, _DECIMAL.findall(bare(one)))} for one in self.board.positions]
        own = np.array([one.pop() if len(one) == 1 else np.nan for one in told])
        own = np.where((own > 0) & (own < 1), own, np.nan)
        factors = [np.full(n, one) for one in constants] + [own] * int(np.isfinite(own).sum() > 1)
        if not factors:
            return
        c = np.repeat(factors, m, axis=0)
        line = np.tile(others, len(factors))
        given, room = c * self.value[line], c * self.half[line]

        def cells(k: int, p: int) -> list[str]:
            return [f"{c[k, p]:.12g}", self.cell(line[k], p)]

        if wants(PRODUCT):
            yield Candidates(PRODUCT, given, room, cells, log(len(c) + 1))
        if m > 1 and wants(WEIGHTED):
            both = [(i, k) for i in others for k in range(len(c)) if line[k] != i]
            one, nth = np.array(both).T
            yield Candidates(
                WEIGHTED,
                self.value[one] + given[nth],
                self.half[one] + room[nth],
                lambda k, p: [self.cell(one[k], p), *cells(nth[k], p)],
                log(len(c) * m + 1),
            )


_DECIMAL = re.compile(r"(?<![\d.])0?\.\d+(?![\d.])")


def _groups(board: Board, t: int, others: list[int]) -> Iterator[list[int]]:
    """Lines that a statistic may be of: side by side, or the same part of every cell."""
    count = len(others)
    runs = [others[a:b] for a in range(count) for b in range(a + 2, count + 1)]
    if len(runs) > MANY:
        ends = {others[0], others[-1], t - 1, t + 1}
        runs = [one for one in runs if {one[0], one[-1]} & ends]
    by_part = [[i for i in others if board.parts[i] == k] for k in set(board.parts)]
    odd = [i for i in others if i % 2 == t % 2]
    for group in (*runs, *by_part, odd):
        if len(group) > 1 and len({board.is_share[i] for i in group}) == 1:
            yield group
