"""What a line of numbers is made of: differences, shares, means, losses of others.

Numbers propose here what a model proposes of sentences: formulas, which `judge` works out. What
most numbers of a line hold to, all should, unless chance explains it: what other accounts of the
kind come to. Long, because candidates are of no use without the search among them.
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

from kleash.compare.documents.boards import Array, Board, bare
from kleash.compare.documents.judge import Claim

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
    """Lines side by side, that a statistic may be of."""
    count = len(others)
    runs = [others[a:b] for a in range(count) for b in range(a + 2, count + 1)]
    if len(runs) > MANY:
        ends = {others[0], others[-1], t - 1, t + 1}
        runs = [one for one in runs if {one[0], one[-1]} & ends]
    yield from (one for one in runs if len({board.is_share[i] for i in one}) == 1)


Truth = NDArray[np.bool_]
EPS = 1e-9
MISS = 2.5  # what a number that does not come out takes from a score, in nats
WHOLE = 4.0  # what an account that every number holds to has beside
HINTED = 2.5  # what a title that says so is worth
_GAP_ONLY = re.compile(
    r"差[异值距]?|绝对差[异值]?|Δ|delta|diff(?:erence)?|gap|变化|change|提升", re.I
)
_TOTAL = re.compile(r"合计|总|平均|均值|total|all|mean|avg|overall", re.I)


def proposals(boards: Sequence[Board], constants: Array) -> Iterator[Claim]:
    """What lines of tables are made of: of their own table, and of the one that tells each best."""
    for board in boards:
        best = dict[frozenset[str], Account]()
        whole = np.array(board.is_whole)[:, None]  # counts have no hidden digits, for what is none
        for t in range(board.first, len(board.titles)):
            if np.isfinite(board.value[t]).sum() > 1:
                at = list(range(len(board.positions)))
                search = Search(board, t, at)
                lines = Lines(board, at, np.where(whole & ~board.is_whole[t], 0, board.half))
                one = search.best(lines.within(t, constants, search.wants))
                # Of one relation turned about the way in which it holds.
                if one and (one.names not in best or one.rank > best[one.names].rank):
                    best[one.names] = one
        yield from (claim for one in best.values() for claim in one.claims)
    for board in boards:
        apart = [other for other in boards if other.table is not board.table]
        shared = [(other, both) for other in apart if len(both := _shared(board, other)) > 1]
        for t in range(board.first, len(board.titles)) if shared else ():
            found = [one for other, both in shared if (one := _across(board, t, other, both))]
            if found:
                yield from max(found, key=lambda one: one.score).claims


def _shared(board: Board, other: Board) -> list[tuple[int, int]]:
    """Positions of two boards that stand under one label."""
    there = other.by_label
    return [
        (at, there[name][0])
        for name, own in board.by_label.items()
        for at in own
        if len(there.get(name, ())) == 1
    ]


def _across(board: Board, t: int, other: Board, both: Sequence[tuple[int, int]]) -> Account | None:
    ours, theirs = ([pair[side] for pair in both] for side in (0, 1))
    values = board.value[t, ours]
    if len({*values[np.isfinite(values)]}) < 2:
        return None
    search = Search(board, t, ours, "other table")
    lines = Lines(other, theirs, other.half)
    return search.best(lines.across(is_share=board.is_share[t], wants=search.wants))


@dataclass
class Account:
    """What a line is made of: the formulas, of which numbers, and how sure."""

    score: float
    rank: tuple[float, float]
    """How often it holds as printed, then its score."""
    claims: list[Claim]
    names: frozenset[str]


class Search:
    """The search for the best account of one line, among all of its positions or some."""

    def __init__(self, board: Board, t: int, at: Sequence[int], by: str = "") -> None:
        self.board, self.t, self.at = board, t, at
        self.by = by or ("rows" if board.turned else "columns")
        self.title = board.titles[t]
        if by and board.is_signed[t] and re.search(GAP, board.table.heading, re.I):
            self.title += f" | {board.table.heading}"
        self.value, self.half = board.value[t, at], board.half[t, at]
        self.known, self.size = np.isfinite(self.value), np.abs(self.value)
        typical = np.median(self.size[self.known])
        self.span = max(np.ptp(self.value[self.known]), 0.02 * typical, 1e-12)

    def hinted(self, kind: Kind) -> bool:
        """Whether the title calls the line so."""
        return bool(re.search(kind.hint, self.title, re.I))

    def wants(self, kind: Kind) -> bool:
        """Whether a kind of account is to be tried."""
        return (kind.plain < inf and self.by != "rows") or self.hinted(kind)

    def best(self, every: Iterator[Candidates]) -> Account | None:
        """The account that chance explains least, if it does not explain it."""
        with np.errstate(all="ignore"):
            found = [one for each in every if (one := self._of(each)) is not None]
        return max(found, key=lambda one: one.score, default=None)

    def _of(self, every: Candidates) -> Account | None:
        given, size, hinted = every.given, self.size, self.hinted(every.kind)
        signed = self.board.is_signed[self.t]
        off = np.abs(given - self.value) if signed else np.abs(np.abs(given) - size)
        there = np.isfinite(given) & self.known
        fit = there & (off <= self.half + every.room + EPS * (size + 1))
        held, missed = fit.sum(1), (there & ~fit).sum(1)
        if not ((held > 1) & (missed <= held)).any():
            return None
        telling = fit & (size > self.half)  # zeros tell nothing
        chance = 2 * (self.half + every.room) / self._usual(off, there)
        gain = np.where(telling, -np.log(np.minimum(1.0, chance)), 0.0)
        score = gain.sum(1) - MISS * missed - every.cost
        good = self._may_hold(every, held, missed) & (telling.sum(1) > 1)
        least = every.kind.hinted if hinted else every.kind.plain
        score[~good | ((score <= least) & (not self._is_gap(every.kind)))] = -inf
        for k in np.argsort(-score)[:3]:
            if score[k] > -inf and self._credible(every.kind, given[k], there[k], fit[k]):
                sure = score[k] + WHOLE * (missed[k] == 0) + HINTED * hinted
                near = np.where(fit[k], np.where(off[k] <= self.half + EPS, 1, -1), -4)[there[k]]
                return self._account(every, int(k), there[k], float(sure), float(near.sum()))
        return None

    def _is_gap(self, kind: Kind) -> bool:
        """Whether the title says that it is the difference of the only two lines beside it."""
        lines = len(self.board.titles) - self.board.first
        return kind is DIFFERENCE and lines == 3 and bool(_GAP_ONLY.fullmatch(self.title))

    def _usual(self, off: Array, there: Truth) -> Array:
        """How far off accounts of this kind usually are, by position."""
        if len(off) < 4:
            return np.full(off.shape[1], self.span)
        some = np.sort(np.where(there, off, inf)[:: max(1, len(off) // 400)], axis=0)
        middle = np.minimum(np.isfinite(some).sum(0) // 2, len(some) - 1)
        usual = 2 * some[middle, np.arange(some.shape[1])] + self.half
        told: Array = np.where(np.isfinite(usual), np.minimum(self.span, usual), self.span)
        return told

    def _may_hold(self, every: Candidates, held: Places, missed: Places) -> Truth:
        """Which accounts hold often enough."""
        kind, known, hinted = every.kind, self.known.sum(), self.hinted(every.kind)
        lax = hinted and len(self.value) > 3
        spare = 1 if lax and kind.spare > 3 else kind.spare
        most = np.maximum(0 if kind is SAME and known < 3 else 1, held // spare)
        good = (held > 1) & (missed <= most) & (held >= missed + (not lax))
        enough: Truth = held + missed >= max(2, 0.6 * known)
        return good & enough

    def _credible(self, kind: Kind, given: Array, there: Truth, fit: Truth) -> bool:
        """Whether what fails may be slips: few of many, or a digit, a sign, a number beside it."""
        odd = np.flatnonzero(there & ~fit).tolist()
        if kind is SHARE and any(_TOTAL.search(self.board.positions[self.at[p]]) for p in odd):
            return False
        slips = 0
        for p in odd:
            beside = np.abs(given[p] - self.value) <= self.half
            beside[p] = False
            slips += bool(_is_slip(self.value[p], given[p], self.half[p]) or beside.any())
        tried = int(there.sum())
        if kind is SAME or tried < 5:
            return slips == len(odd)
        return len(odd) < 2 or 4 * len(odd) <= tried or 2 * slips >= len(odd)

    def _account(
        self, every: Candidates, k: int, there: Truth, score: float, exact: float
    ) -> Account:
        claims, names = list[Claim](), set[str]()
        line = f"{id(self.board)} {self.t} {self.by}"
        for p in map(int, np.flatnonzero(there)):
            cell = self.board.cells[self.t][self.at[p]]
            if cell is not None:
                formula = every.formula(k, p)
                claims.append(Claim(at=cell.address, formula=formula, by=self.by, line_of=line))
                names |= {cell.address, *every.cells(k, p)}
        return Account(score, (exact, score), claims, frozenset(names))


def _is_slip(said: float, given: float, half: float) -> bool:
    """Whether a number is what comes out but for its sign, one digit, or two digits exchanged."""
    one, other = (f"{abs(round(value / (2 * half))):d}" for value in (said, given))
    odd = [(a, b) for a, b in zip(one, other, strict=False) if a != b]
    swapped = len(odd) == 2 and odd[0] == odd[1][::-1]
    return len(one) == len(other) and (len(odd) < 2 or swapped)
