"""The search for the account of a line: what most of its numbers hold to, all should.

Chance is what other accounts of a kind come to: the mean of two neighbours is near by itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import inf

import numpy as np
from numpy.typing import NDArray

from kleash.documents.accounts import DIFFERENCE, SAME, SHARE, Candidates, Kind, candidates
from kleash.documents.boards import Array, Board
from kleash.documents.claims import Claim

EPS = 1e-9
MISS = 2.5  # what a number that does not come out takes from a score, in nats
WHOLE = 4.0  # what an account that every number holds to has beside
HINTED = 2.5  # what a title that says so is worth
Truth = NDArray[np.bool_]


@dataclass
class Found:
    """The account of a line: which candidate, how sure, where it says something, how far off."""

    score: float
    every: Candidates
    nth: int
    there: Array
    off: Array


@dataclass
class Proposal:
    """The formulas of a line, and whose numbers they relate."""

    claims: list[Claim]
    lines: frozenset[int]
    rank: tuple[float, float]


def proposals(board: Board, constants: Array) -> Iterator[Proposal]:
    """What a board's lines are made of; of one relation turned about, the way in which it holds."""
    best = dict[frozenset[int], Proposal]()
    for t in range(board.first, len(board.titles)):
        if np.isfinite(board.value[t]).sum() < 2:
            continue
        search = Search(board, t)
        with np.errstate(all="ignore"):
            found = search.best(candidates(board, t, constants, search.wants))
        one = None if found is None else search.proposal(found)
        if one is not None and (one.lines not in best or one.rank > best[one.lines].rank):
            best[one.lines] = one
    yield from best.values()


class Search:
    """The search for the best account of one line, among all of its positions or some."""

    def __init__(
        self, board: Board, t: int, title: str = "", at: Sequence[int] | None = None, by: str = ""
    ) -> None:
        self.board, self.t, self.by = board, t, by or ("rows" if board.turned else "columns")
        self.at = list(range(len(board.positions)) if at is None else at)
        self.title = title or board.titles[t]
        self.value, self.half = board.value[t][self.at], board.half[t][self.at]
        self.known = np.isfinite(self.value)
        self.size = np.abs(self.value)
        spread = np.ptp(self.value[self.known])
        typical = np.median(self.size[self.known])
        self.span = max(float(spread), 0.02 * float(typical), 1e-12)

    @cached_property
    def is_gap(self) -> bool:
        """Whether the title says that it is the difference of the only two lines beside it."""
        lines = len(self.board.titles) - self.board.first
        return lines == 3 and bool(_GAP_ONLY.fullmatch(self.title))

    def hinted(self, kind: Kind) -> bool:
        """Whether the title calls the line so."""
        return bool(kind.hint.search(self.title))

    def wants(self, kind: Kind) -> bool:
        """Whether a kind of account is to be tried."""
        if kind.name == "place" and (
            self.board.is_signed[self.t] or (self.half[self.known] < 0.4).any()
        ):
            return False
        free = kind.plain < inf and not (self.board.turned and self.by == "rows")
        return free or self.hinted(kind)

    def best(self, every: Iterator[Candidates]) -> Found | None:
        """The account that chance explains least, if it does not explain it."""
        found = [one for each in every if (one := self._of(each)) is not None]
        return max(found, key=lambda one: one.score, default=None)

    def _of(self, every: Candidates) -> Found | None:
        given, size = every.given, self.size
        signed = self.board.is_signed[self.t]
        off = np.abs(given - self.value) if signed else np.abs(np.abs(given) - size)
        there = np.isfinite(given) & self.known
        fit = there & (off <= self.half + every.room + EPS * (size + 1))
        telling = fit & (size > self.half)  # zeros tell nothing
        with np.errstate(all="ignore"):
            chance = 2 * (self.half + every.room) / self._usual(off, there)
            gain = np.where(telling, -np.log(np.minimum(1.0, chance)), 0.0)
        held, tried = fit.sum(1), there.sum(1)
        missed = tried - held
        score = gain.sum(1) - MISS * missed - every.cost
        score = self._allowed(every, score, held, missed, telling.sum(1))
        for k in np.argsort(-score)[:3]:
            if score[k] == -inf:
                break
            if self._credible(every.kind, given[k], there[k], fit[k]):
                bonus = WHOLE * (missed[k] == 0) + HINTED * self.hinted(every.kind)
                return Found(float(score[k] + bonus), every, int(k), there[k], off[k])
        return None

    def _usual(self, off: Array, there: Array) -> Array:
        """How far off accounts of this kind usually are, by position."""
        if len(off) < 4:
            return np.full(off.shape[1], self.span)
        some = np.where(there, off, inf)[:: max(1, len(off) // 400)]
        some.sort(axis=0)
        middle = np.isfinite(some).sum(0) // 2
        median = some[np.minimum(middle, len(some) - 1), np.arange(some.shape[1])]
        return np.where(
            np.isfinite(median), np.minimum(self.span, 2 * median + self.half), self.span
        )

    def _allowed(
        self, every: Candidates, score: Array, held: Array, missed: Array, telling: Array
    ) -> Array:
        """Scores, of accounts that hold often enough."""
        kind, hinted = every.kind, self.hinted(every.kind)
        lax = hinted and len(self.value) > 3
        spare = 1 if lax and kind.spare > 3 else kind.spare
        few = missed <= np.maximum(0 if kind is SAME and self.known.sum() < 3 else 1, held // spare)
        most = held + missed >= max(2, 0.6 * self.known.sum())
        good = (held >= 2) & (telling >= 2) & most & few & (held >= missed + (not lax))
        if every.natural is not None and not hinted:
            good &= every.natural.astype(bool)
        least = kind.hinted if hinted else kind.plain
        least = -inf if self.is_gap and kind is DIFFERENCE else least
        return np.where(good & (score > least), score, -inf)

    def _credible(self, kind: Kind, given: Array, there: Truth, fit: Truth) -> bool:
        """Whether what fails may be slips: few of many, or a digit, a sign, a number beside it."""
        odd = np.flatnonzero(there & ~fit)
        known = np.flatnonzero(self.known)
        if kind is SHARE and any(_TOTAL.search(self.board.positions[self.at[p]]) for p in odd):
            return False
        slips = sum(
            slip(self.value[p], given[p], self.half[p])
            or any(abs(given[p] - self.value[q]) <= self.half[q] for q in known if q != p)
            for p in odd
        )
        tried = int(there.sum())
        if kind is SAME or tried < 5:
            return slips == len(odd)
        return len(odd) < 2 or 4 * len(odd) <= tried or 2 * slips >= len(odd)

    def proposal(self, found: Found) -> Proposal:
        """What was found, as formulas."""
        claims, lines = list[Claim](), {self.t}
        cells = self.board.cells[self.t]
        room, off = found.every.room[found.nth], found.off
        line = f"{id(self.board)} {self.t} {self.by} {found.every.kind.name}"
        for p in np.flatnonzero(found.there):
            cell = cells[self.at[p]]
            formula = found.every.formula(found.nth, int(p))
            if cell is not None:
                claims.append(Claim(at=cell.address, formula=formula, by=self.by, line_of=line))
        exact, near = off <= self.half + EPS, off <= self.half + room + EPS
        held = [(1 if exact[p] else -1 if near[p] else -4) for p in np.flatnonzero(found.there)]
        names = {
            one for claim in claims for one in re.findall(r"[A-Z]+\d+(?:\.\d+)?", claim.formula)
        }
        lines |= {
            i for i, row in enumerate(self.board.cells) if names & {c.address for c in row if c}
        }
        alone = frozenset(lines) if len(lines) > 1 else frozenset({self.t, -1 - self.t})
        return Proposal(claims, alone, (float(sum(held)), found.score))


_GAP_ONLY = re.compile(
    r"差[异值距]?|绝对差[异值]?|Δ|delta|diff(?:erence)?|gap|变化|change|提升", re.I
)
_TOTAL = re.compile(r"合计|总|平均|均值|total|all|mean|avg|overall", re.I)


def slip(said: float, given: float, half: float) -> bool:
    """Whether a number is what comes out but for its sign, one digit, or two digits exchanged."""
    if not np.isfinite(given):
        return False
    one, other = (f"{abs(round(value / (2 * half))):d}" for value in (said, given))
    if len(one) != len(other):
        return False
    odd = [n for n, (a, b) in enumerate(zip(one, other, strict=True)) if a != b]
    if len(odd) < 2:
        return True
    return len(odd) == 2 and one[odd[0]] == other[odd[1]] and one[odd[1]] == other[odd[0]]
