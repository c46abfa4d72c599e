"""Every measurement that was made or is missing, over all sources, with what would fill a gap.

A cell that one source leaves open and another fills is known; an estimate never fills a cell that
was measured. Series count point by point where they are outcomes of evaluation, and training
metrics are in the matrix only where a source laid them out in a table.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from kleash.imports import Cell, Imported, Number, Source, State, Where, names

RANK = {"known": 2, "estimated": 1, "missing": 0}
LONGEST = 1000  # points of a series that are cells; a longer one is a log
OUTCOMES = ("accuracy", "eval_reward", "reward", "performance", "val_loss")


@dataclass(frozen=True)
class MatrixCell:
    """One measurement: whose, of what, where in training, on what, and its state."""

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
            for cell in _cells(run, written=bool(source.tables)):
                place = _place(cell)
                other = best.get(place)
                best[place] = cell if other is None else _better(other, cell)
    cells = tuple(best.values())
    counts = {state: sum(cell.state == state for cell in cells) for state in RANK}
    return Matrix(counts["known"], counts["missing"], counts["estimated"], cells)


def _place(cell: MatrixCell) -> tuple[object, ...]:
    metric = names.metric(cell.metric)
    name = names.spelling(cell.metric) if metric is None else metric.name
    where = (cell.epoch, cell.step, cell.shots, cell.items, cell.split, cell.statistic)
    return (names.spelling(cell.arm), cell.seed, name, *where)


def _better(ours: MatrixCell, theirs: MatrixCell) -> MatrixCell:
    """The better known of two, the first of equals; a gap keeps the command that fills it."""
    if RANK[theirs.state] > RANK[ours.state]:
        return theirs
    if ours.state == "missing" and not ours.command and theirs.command:
        return theirs
    return ours


def _cells(run: Imported, *, written: bool) -> Iterator[MatrixCell]:
    """The cells of a run; of a log only outcomes, of a source `written` as tables all series."""
    for cell in run.cells:
        if cell.statistic in ("", "best"):
            yield _of_cell(run, cell)
    for series in run.series:
        known = names.metric(series.metric)
        outcome = known is not None and known.name in OUTCOMES
        if not (outcome or written) or len(series.steps) > LONGEST:
            continue
        for at, (step, value) in enumerate(zip(series.steps, series.values, strict=True)):
            guessed = series.estimated is not None and bool(series.estimated[at])
            state: State = "estimated" if guessed else "known"
            number = Number(float(value), state, series.place(at), series.decimals)
            epoch = float(step) if series.axis == "epoch" else None
            cell = Cell(series.metric, number, epoch, None if epoch is not None else float(step))
            yield _of_cell(run, cell)
    for scores in run.scores:
        tried = scores.values[np.isfinite(scores.values)]
        mean = Number(None, "missing", scores.where)
        if len(tried):
            mean = Number(float(tried.mean()), "known", scores.where)
        again = 0 if scores.repeats is None else int((scores.repeats > 0).sum())
        items = len(scores.items) - again
        cell = Cell(scores.metric, mean, None, scores.step, scores.shots, items, scores.split)
        yield _of_cell(run, cell)


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
