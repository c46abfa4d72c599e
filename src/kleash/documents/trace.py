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

import numpy as np

from kleash.documents.boards import Array, Board, Table, bare, label, numbers_in
from kleash.documents.marks import Mark, State
from kleash.documents.numbered import Numbered
from kleash.imports import Imported, Source

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


@dataclass(frozen=True)
class _Fit:
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
        by_name = defaultdict[str, dict[str, tuple[float, str]]](dict)
        for one in self.curves:
            for name, value in _statistics(one):
                by_name[name][one.run] = value, one.file
        self.named = [(name, next(iter(own.values()))[1]) for name, own in by_name.items()]
        rows = [[own.get(run, (np.nan,))[0] for run in self.runs] for own in by_name.values()]
        self.values = np.array(rows, float).reshape(len(rows), len(self.runs))

    def traced(self, tables: Sequence[Table]) -> Iterator[Held]:
        """What logs have for cells of tables."""
        for board in chain.from_iterable(t.boards for t in tables if t.head):
            for t in range(board.first, len(board.titles)):
                if np.isfinite(board.value[t]).sum() > 1 and not board.parts[t]:
                    yield from _told(
                        board, t, [*self._courses(board, t), *self._over_runs(board, t)]
                    )

    def _courses(self, board: Board, t: int) -> Iterator[_Fit]:
        """Positions are steps: the curves that the line is."""
        steps = [numbers_in(one) for one in board.positions]
        at = [own[0] if len(own) == 1 else np.nan for own in steps]
        known = [one for one in at if np.isfinite(one)]
        if len(known) < 2 or len({*known}) < len(known):
            return
        for curve in self.curves:
            index = dict(zip(curve.at.tolist(), curve.value.tolist(), strict=True))
            own = np.array([index.get(one, np.nan) for one in at])
            yield from _fits(board, t, own, curve.file, f"{curve.metric} ({curve.run})")

    def _over_runs(self, board: Board, t: int) -> Iterator[_Fit]:
        """Positions are runs, which their names tell: the statistics that the line is."""
        column = self._runs_of(board)
        if (column >= 0).sum() > 1:
            known = np.isfinite(board.value[t]) & (column >= 0)
            every = np.where(column >= 0, self.values[:, column], np.nan)
            for scale in _scales(board, t):
                near = np.abs(scale * every - board.value[t]) <= board.half[t] * NEARLY
                for nth in np.flatnonzero(2 * (near & known).sum(1) > known.sum()):
                    name, file = self.named[nth]
                    yield from _fits(board, t, every[nth], file, name)

    def _runs_of(self, board: Board) -> Array:
        found = np.full(len(board.positions), -1)
        for p, title in enumerate(board.positions):
            name = label(title)
            fit = [
                r
                for r, run in enumerate(self.runs)
                if name and (name == label(run) or _same_number(title, run))
            ]
            found[p] = fit[0] if len(fit) == 1 else -1
        return found


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
    if len(ours) != 1:
        return False
    theirs = re.findall(r"\d+\.\d+|\d+e-\d+|(?<!\d)0\d+|\d+", run)
    digits = ours[0].replace(".", "")
    return any(
        one == ours[0] or (one.startswith("0") and one.replace(".", "") == digits) for one in theirs
    )


def _scales(board: Board, t: int) -> tuple[float, ...]:
    """A fraction of a log may stand as a percentage."""
    return (1.0, 100.0) if np.nanmax(np.abs(board.value[t])) > 1 else (1.0,)


def _fits(board: Board, t: int, own: Array, file: str, metric: str) -> Iterator[_Fit]:
    """A quantity that at least two thirds of a line's numbers are."""
    value, half = board.value[t], board.half[t]
    for scale in _scales(board, t):
        fit = np.isfinite(value) & (np.abs(scale * own - value) <= half * NEARLY)
        odd = int((np.isfinite(value) & np.isfinite(own) & ~fit).sum())
        count, there = int(fit.sum()), int(np.isfinite(value).sum())
        if count < 2 or 2 * odd > count or 2 * count <= there:
            continue
        digits = sum(
            len(str(abs(round(v / (2 * h))))) for v, h in zip(value[fit], half[fit], strict=True)
        )
        if digits >= DIGITS:
            yield _Fit(count - 2 * odd, scale * own, file, metric, odd)


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
    right = {one.known.address for one in every if one.known is not None and _is_right(one)}
    for one in every:
        number = one.known
        if number is None:
            continue
        fits = number.address in right
        state: State = "right" if fits else "wrong"
        value = f"{one.value:.{max(0, number.decimals)}f}" + "%" * number.is_share
        facts = {"file": one.file, "metric": one.metric} | ({} if fits else {"value": value})
        if fits or one.sure or number.address in failing:
            code = "check.log" if fits else "check.not-log"
            yield Mark(number.line, number.text, state, code, facts, number.address)


def _is_right(one: Held) -> bool:
    number = one.known
    return number is not None and abs(one.value - number.value) <= number.half * NEARLY
