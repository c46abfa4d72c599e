"""Every measurement that was made or is missing, over all sources, with what would fill a gap.

A cell that one source leaves open and another fills is known; an estimate never fills a cell that
was measured. Series count point by point where they are outcomes of evaluation, and training
metrics are in the matrix only where a source laid them out in a table.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from kleash.compare.read import Cell, Imported, Number, Series, Source, State, Where, names

RANK = {"known": 2, "estimated": 1, "missing": 0}
LONGEST = 1000  # points of a series that are cells; a longer one is a log
OUTCOMES = ("accuracy", "eval_reward", "reward", "performance", "val_loss")


@dataclass(slots=True)
class MatrixCell:
    """One measurement: whose, of what, where in training, on what, and its state.

    Not frozen: logs have a hundred thousand, and those take four times as long to make.
    """

    arm: str
    metric: str
    epoch: float | None
    step: float | None
    shots: int | None
    items: int | None
    state: State
    number: float | None
    where: Where
    command: str = ""
    seed: int | None = None
    statistic: str = ""
    split: str = ""


@dataclass(frozen=True)
class Matrix:
    """All cells, and how many of them are known, missing and estimated."""

    known: int
    missing: int
    estimated: int
    cells: tuple[MatrixCell, ...]


def matrix(sources: Sequence[Source]) -> Matrix:
    """The cells of all sources, one for each measurement: the best known of those that say it."""
    best: dict[tuple[object, ...], MatrixCell] = {}
    for source in sources:
        for run in source.runs:
            whose = (names.spelling(run.arm), run.seed)
            for cell in _cells(run, _curves(run, written=bool(source.tables))):
                where = (cell.epoch, cell.step, cell.shots, cell.items, cell.split, cell.statistic)
                place = (*whose, _quantity(cell.metric), *where)
                other = best.get(place)
                best[place] = cell if other is None else _better(other, cell)
    cells = tuple(best.values())
    counts = Counter(cell.state for cell in cells)
    return Matrix(counts["known"], counts["missing"], counts["estimated"], cells)


def may_lack(sources: Sequence[Source]) -> bool:
    """Whether some cell may be missing or estimated: a cheap look, before all are made."""
    return any(
        any(cell.number.state != "known" for cell in run.cells)
        or any(series.estimated is not None for series in run.series)
        or not all(np.isfinite(scores.values).any() for scores in run.scores)
        for source in sources
        for run in source.runs
    )


@lru_cache(maxsize=4096)
def _quantity(metric: str) -> str:
    """The name of a quantity, however it is written."""
    known = names.metric(metric)
    return names.spelling(metric) if known is None else known.name


def _better(ours: MatrixCell, theirs: MatrixCell) -> MatrixCell:
    """The better known of two, the first of equals; a gap keeps the command that fills it."""
    if RANK[theirs.state] > RANK[ours.state]:
        return theirs
    if ours.state == "missing" and not ours.command and theirs.command:
        return theirs
    return ours


def _curves(run: Imported, *, written: bool) -> Iterator[Series]:
    """Series that are cells: of a log only outcomes, of a source `written` as tables all."""
    for series in run.series:
        known = names.metric(series.metric)
        outcome = known is not None and known.name in OUTCOMES
        if (outcome or written) and len(series.steps) <= LONGEST:
            yield series


def _cells(run: Imported, curves: Iterable[Series]) -> Iterator[MatrixCell]:
    """The cells of a run, and the points of some of its curves."""
    for cell in run.cells:
        if cell.statistic in ("", "best"):
            yield _of_cell(run, cell)
    for series in curves:
        yield from _of_series(run, series)
    for scores in run.scores:
        tried = scores.values[np.isfinite(scores.values)]
        mean = Number(None, "missing", scores.where)
        if len(tried):
            mean = Number(float(tried.mean()), "known", scores.where)
        again = 0 if scores.repeats is None else int((scores.repeats > 0).sum())
        items = len(scores.items) - again
        cell = Cell(scores.metric, mean, None, scores.step, scores.shots, items, scores.split)
        yield _of_cell(run, cell)


def _of_series(run: Imported, series: Series) -> Iterator[MatrixCell]:
    """Every point of a series; by position, because there are many."""
    by_epoch = series.axis == "epoch"
    guessed = [False] * len(series.steps) if series.estimated is None else series.estimated.tolist()
    points = zip(series.steps.tolist(), series.values.tolist(), guessed, strict=True)
    for at, (step, value, guess) in enumerate(points):
        epoch, step_ = (step, None) if by_epoch else (None, step)
        state: State = "estimated" if guess else "known"
        yield MatrixCell(
            run.arm, series.metric, epoch, step_, None, None,
            state, value, series.place(at), "", run.seed,
        )  # fmt: skip


def _of_cell(run: Imported, cell: Cell) -> MatrixCell:
    number = cell.number
    return MatrixCell(
        arm=run.arm,
        metric=cell.metric,
        epoch=cell.epoch,
        step=cell.step,
        shots=cell.shots,
        items=cell.items,
        state=number.state,
        number=number.value,
        where=number.where,
        command=cell.command,
        seed=run.seed,
        statistic=cell.statistic,
        split=cell.split,
    )
