"""The search for the account of a line: what most of its numbers hold to, all should.

Chance is what other accounts of a kind come to: the mean of two neighbours is near by itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import inf

import numpy as np
from numpy.typing import NDArray

from kleash.documents.accounts import (
    DIFFERENCE,
    GAP,
    SAME,
    SHARE,
    Candidates,
    Kind,
    Lines,
    Places,
)
from kleash.documents.boards import Array, Board
from kleash.documents.claims import Claim

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
