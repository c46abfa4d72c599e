"""Lines of tables that are a curve of a log, or a statistic of each run: known by their numbers.

A line is taken for that which most of its numbers are, with so many digits that chance is no
reason, whatever both are called. Left out: a line that two quantities fit alike but differ in.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import NamedTuple

import numpy as np

from kleash.compare.documents.boards import Array, Board, Table, bare, label, numbers_in
from kleash.compare.documents.judge import Mark, State
from kleash.compare.read import Imported, Source
from kleash.compare.read.markdown.page import Numbered

DIGITS = 6  # of the numbers that are a log's
SURE = 3  # of them, less two for each that is not, before one that is not is called wrong
SHORT = 60  # points of a curve that are held against a table one by one
NEARLY = 1 + 1e-4
STATISTICS: dict[str, Callable[[Array, Array], float]] = {
    "last": lambda s, v: v[-1],
    "first": lambda s, v: v[0],
    "max": lambda s, v: v.max(),
    "min": lambda s, v: v.min(),
    "mean": lambda s, v: v.mean(),
    "at max": lambda s, v: s[np.argmax(v)],
    "at min": lambda s, v: s[np.argmin(v)],
    "mean of the last 10": lambda s, v: v[-10:].mean(),
    "mean of the last 5": lambda s, v: v[-5:].mean(),
    "change": lambda s, v: (v[-1] - v[0]) / abs(v[0]) if v[0] else np.nan,
    "sum": lambda s, v: v.sum(),
    "std": lambda s, v: v.std(ddof=1) if len(v) > 1 else np.nan,
    "median": lambda s, v: np.median(v),
}
_SEED = re.compile(r"(?:^|[-_./])(?:s|seed)[-_=]?\d+(?=$|[-_./])", re.I)
_DECIMAL = re.compile(r"\d+\.\d+|\d+e-\d+")


@dataclass(frozen=True)
class Curve:
    """A quantity of a run by step, epoch, or whatever it was counted by."""

    run: str
    metric: str
    at: Array
    value: Array
    file: str


@dataclass(frozen=True)
class Held:
    """What logs have for one cell, in the scale of the page; and the number there, if one is."""

    line: int
    column: int
    value: float
    file: str
    known: Numbered | None
    metric: str
    sure: bool
    """Whether so much of its line is the log's that a number which is not is wrong."""


class _Fit(NamedTuple):
    score: int
    value: Array
    file: str
    metric: str
    odd: int


def curves(sources: Sequence[Source]) -> list[Curve]:
    """Every curve of the logs; and of runs that differ in their seed the mean."""
    found = [one for source in sources for run in source.runs for one in _of_run(run)]
    alike = defaultdict[tuple[str, tuple[float, ...], str], list[Curve]](list)
    for one in found:
        alike[one.metric, tuple(one.at), _SEED.sub("", one.run)].append(one)
    for (metric, at, name), own in alike.items():
        if len({one.run for one in own}) > 1:
            mean = np.mean([one.value for one in own], axis=0)
            found.append(Curve(name, metric, np.array(at), mean, own[0].file))
    return found


def _of_run(run: Imported) -> Iterator[Curve]:
    for series in run.series:
        at, value = (np.asarray(each, float) for each in (series.steps, series.values))
        yield Curve(run.name, series.metric, at, value, series.where.file)
    groups = defaultdict[tuple[str, str], dict[float, float]](dict)
    for cell in run.cells:
        places = {"epoch": cell.epoch, "step": cell.step, "shots": cell.shots, "items": cell.items}
        known = {axis: at for axis, at in places.items() if at is not None}
        for axis, one in known.items() if cell.number.value is not None else ():
            rest = " ".join(f"{k} {v}" for k, v in known.items() if k != axis)
            name = f"{cell.metric} {cell.statistic} by {axis} {rest}"
            groups[name, cell.number.where.file][float(one)] = float(cell.number.value or 0.0)
    for (metric, file), points in groups.items():
        if len(points) > 1:
            steps, value = np.array(sorted(points.items())).T
            yield Curve(run.name, metric, steps, value, file)


class Tracer:
    """The curves of logs, and their statistics by run."""

    def __init__(self, sources: Sequence[Source]) -> None:
        self.curves = curves(sources)
        self.runs = sorted({one.run for one in self.curves})
        by_name = defaultdict[str, dict[str, float]](dict)
        files = dict[str, str]()
        for one in self.curves:
            for name, value in _statistics(one):
                by_name[name][one.run] = value
                files.setdefault(name, one.file)
        self.named = list(files.items())
        rows = [[own.get(run, np.nan) for run in self.runs] for own in by_name.values()]
        self.values = np.array(rows, float).reshape(len(rows), len(self.runs))
        own = [(np.full(len(c.at), nth), c.at, c.value) for nth, c in enumerate(self.curves)]
        points = np.concatenate([np.empty((0, 3)), *(np.column_stack(one) for one in own)])
        self.points = points[np.argsort(points[:, 1], kind="stable")]

    def traced(self, tables: Sequence[Table]) -> Iterator[Held]:
        """What logs have for cells of tables."""
        names = [(f"{one.metric} ({one.run})", one.file) for one in self.curves]
        for board in chain.from_iterable(t.boards for t in tables if t.head):
            every = np.concatenate([self._at_steps(board), self._of_runs(board)])
            for t in range(board.first, len(board.titles)):
                if np.isfinite(board.value[t]).sum() > 1 and not board.parts[t]:
                    yield from _told(board, t, list(_fits(board, t, every, names + self.named)))

    def _at_steps(self, board: Board) -> Array:
        """What each curve has at the positions, where these are steps."""
        found = np.full((len(self.curves), len(board.positions)), np.nan)
        named = {
            p: own[0] for p, one in enumerate(board.positions) if len(own := numbers_in(one)) == 1
        }
        if 1 < len(named) == len({*named.values()}):
            for p, step in named.items():
                low, high = np.searchsorted(self.points[:, 1], [step, np.nextafter(step, np.inf)])
                nth, _, value = self.points[low:high].T
                found[nth.astype(int), p] = value
        return found

    def _of_runs(self, board: Board) -> Array:
        """What each statistic is of the runs that the positions name."""
        column = np.array([self._run(title) for title in board.positions])
        if (column >= 0).sum() < 2 or not len(self.values):
            return np.full((len(self.named), len(column)), np.nan)
        return np.where(column >= 0, self.values[:, column], np.nan)

    def _run(self, title: str) -> int:
        """Which run a title names; -1 where it names none, or several."""
        name, runs = label(title), enumerate(self.runs)
        fit = [nth for nth, r in runs if name and (name == label(r) or _same_number(title, r))]
        return fit[0] if len(fit) == 1 else -1


def _statistics(curve: Curve) -> Iterator[tuple[str, float]]:
    there = np.isfinite(curve.value)
    at, value = curve.at[there], curve.value[there]
    if len(value) == 1:
        yield curve.metric, float(value[0])
    if len(value) < 2:
        return
    for name, statistic in STATISTICS.items():
        yield f"{curve.metric}, {name}", float(statistic(at, value))
    if len(value) <= SHORT:
        for x, y in zip(at, value, strict=True):
            yield f"{curve.metric} at {x:g}", float(y)


def _same_number(title: str, run: str) -> bool:
    """Whether a title and a run have one number with decimals: "β = 0.12", "kl012-s0"."""
    ours = _DECIMAL.findall(bare(title))
    theirs = re.findall(r"\d+\.\d+|\d+e-\d+|(?<!\d)0\d+|\d+", run)
    return len(ours) == 1 and any(
        one == ours[0] or (one.startswith("0") and one.replace(".", "") == ours[0].replace(".", ""))
        for one in theirs
    )


def _fits(board: Board, t: int, every: Array, names: Sequence[tuple[str, str]]) -> Iterator[_Fit]:
    """The quantities that more than half of a line's numbers are, with few that are not."""
    value, half = board.value[t], board.half[t]
    known = np.isfinite(value)
    # A fraction of a log may stand as a percentage.
    for scale in (1.0, 100.0) if np.nanmax(np.abs(value)) > 1 else (1.0,):
        near = known & (np.abs(scale * every - value) <= half * NEARLY)
        for nth in map(int, np.flatnonzero(2 * near.sum(1) > max(2, known.sum()))):
            fit, own = near[nth], every[nth]
            odd, count = int((known & np.isfinite(own) & ~fit).sum()), int(fit.sum())
            sizes = np.abs(np.round(value[fit] / (2 * half[fit])))
            digits = sum(len(f"{one:.0f}") for one in sizes)
            if 2 * odd <= count and digits >= DIGITS:
                yield _Fit(count - 2 * odd, scale * own, names[nth][1], names[nth][0], odd)


def _told(board: Board, t: int, fits: Sequence[_Fit]) -> Iterator[Held]:
    """What the best quantities have, where they are of one mind."""
    top = max((one.score for one in fits), default=0)
    best = [one for one in fits if one.score == top]
    decimals = max(c.decimals for c in board.cells[t] if c is not None)
    for p in range(len(board.positions)) if best else ():
        values = [float(one.value[p]) for one in best if np.isfinite(one.value[p])]
        if values and len({round(one, max(0, decimals)) for one in values}) == 1:
            line, column = board.place(t, p)
            sure = top >= SURE and 4 * best[0].odd <= top
            known = board.cells[t][p]
            yield Held(line, column, values[0], best[0].file, known, best[0].metric, sure)


def log_marks(every: Sequence[Held], failing: Collection[str]) -> Iterator[Mark]:
    """What logs bear out, and what they have otherwise; a number that one log has is right.

    `failing` are numbers that do not fit their own table either.
    """
    pairs = [(one, one.known) for one in every if one.known is not None]
    right = {n.address for one, n in pairs if abs(one.value - n.value) <= n.half * NEARLY}
    for one, number in pairs:
        fits = number.address in right
        state: State = "right" if fits else "wrong"
        value = f"{one.value:.{max(0, number.decimals)}f}" + "%" * number.is_share
        facts = {"file": one.file, "metric": one.metric} | ({} if fits else {"value": value})
        if fits or one.sure or number.address in failing:
            code = "check.log" if fits else "check.not-log"
            yield Mark(number.line, number.text, state, code, facts, number.address)
