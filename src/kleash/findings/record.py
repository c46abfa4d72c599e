"""A finding, and the few ways in which all rules look at what was imported."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from math import floor, isfinite, log10
from typing import Any, Literal

from kleash.imports import Cell, Imported, Number, Series, Source, Where, names

Severity = Literal["note", "warning", "error"]
SLACK = 1e-9
SHORT, SAMPLED = 200, 20  # a longer series is looked at in that many points
KEPT = 500_000  # points kept for the next rule, of half a kilobyte each
Range = tuple[float, float]


@dataclass(frozen=True)
class Found:
    """Something that a rule found: its facts are the values for its sentence in the catalogue."""

    code: str
    severity: Severity
    where: tuple[Where, ...]
    facts: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Point:
    """One number of a run at one place, from a series or a cell, under the name of its metric."""

    metric: str
    written: str
    at: str
    number: Number
    epoch: float | None = None
    step: float | None = None
    shots: int | None = None
    items: int | None = None

    @property
    def value(self) -> float:
        assert self.number.value is not None  # points of missing numbers are not made
        return self.number.value

    @property
    def known(self) -> bool:
        return self.number.state == "known"

    @property
    def place(self) -> tuple[str, str]:
        return self.metric, self.at


_MADE: ContextVar[dict[int, Sequence[Point]] | None] = ContextVar("points made", default=None)


def runs(sources: Sequence[Source]) -> Iterator[Imported]:
    """Every run of every source."""
    for source in sources:
        yield from source.runs


def canonical(metric: str) -> str:
    """The name of a quantity where it is known, else as it is written."""
    known = names.metric(metric)
    return metric if known is None else known.name


def settings(run: Imported) -> dict[str, Any]:
    """The config of a run under known names."""
    return names.resolve({key: setting.value for key, setting in run.config.items()}).values


def coefficient(run: Imported) -> float | None:
    """The coefficient of the leash, where the config says it."""
    value = settings(run).get("leash.coefficient")
    return float(value) if isinstance(value, int | float) else None


def number_of(run: Imported, key: str) -> float | None:
    """A setting that is a number."""
    value = settings(run).get(key)
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def setting_place(run: Imported, key: str) -> Where:
    """Where a setting of a run stands."""
    for written, setting in run.config.items():
        known = names.key(written)
        if known is not None and known.name == key:
            return setting.where
    return run.where


@contextmanager
def made_once() -> Iterator[None]:
    """Within it the points of a run are made once, for all rules that ask; then they are let go."""
    token = _MADE.set({})
    try:
        yield
    finally:
        _MADE.reset(token)


def points(run: Imported) -> Sequence[Point]:
    """All numbers of a run that have a value, series first; of a long series some of its points."""
    made = _MADE.get()
    if made is None:
        return _points(run)
    kept = made.get(id(run))  # no run ends while a rule looks at it, so no id comes back
    if kept is None:
        kept = _points(run)
        if sum(map(len, made.values())) + len(kept) <= KEPT:
            made[id(run)] = kept
    return kept


def _points(run: Imported) -> Sequence[Point]:
    found = [point for series in run.series for point in _of_series(series)]
    return (*found, *(point for cell in run.cells if (point := _of_cell(cell)) is not None))


def _of_series(series: Series) -> Iterator[Point]:
    stride = 1 if len(series.steps) <= SHORT else -(-len(series.steps) // SAMPLED)
    metric = canonical(series.metric)
    by_epoch = series.axis == "epoch"
    steps, values = series.steps[::stride].tolist(), series.values[::stride].tolist()
    for nth, (step, value) in enumerate(zip(steps, values, strict=True)):
        if not isfinite(value):
            continue
        at = nth * stride
        guessed = series.estimated is not None and bool(series.estimated[at])
        decimals = series.decimals
        if series.float32 and decimals is None:
            decimals = _float32_decimals(value)
        number = Number(value, "estimated" if guessed else "known", series.place(at), decimals)
        place = f"{series.axis} {step:g}"
        epoch, step_ = (step, None) if by_epoch else (None, step)
        yield Point(metric, series.metric, place, number, epoch, step_)


def _float32_decimals(value: float) -> int:
    """The decimals to which a number that went through float32 can be trusted."""
    return 6 - (floor(log10(abs(value))) if value else 0)


def _of_cell(cell: Cell) -> Point | None:
    if cell.number.value is None:
        return None
    return Point(
        canonical(cell.metric),
        cell.metric,
        place_of(cell),
        cell.number,
        cell.epoch,
        cell.step,
        cell.shots,
        cell.items,
    )


def place_of(cell: Cell) -> str:
    """Where in a run a cell belongs, in words that are the same in every language."""
    parts = [
        cell.statistic,
        "" if cell.epoch is None else f"epoch {cell.epoch:g}",
        "" if cell.step is None else f"step {cell.step:g}",
        "" if cell.shots is None else f"shots {cell.shots}",
        "" if cell.items is None else f"n {cell.items}",
        cell.split,
    ]
    return " ".join(filter(None, parts))


def bounds(number: Number) -> Range:
    """The least and the greatest number that would be printed so."""
    assert number.value is not None
    half = 0.0 if number.decimals is None else 0.5 * 10.0**-number.decimals
    return number.value - half, number.value + half


def apart(ours: Range, theirs: Range) -> bool:
    """Whether two ranges have nothing in common."""
    slack = SLACK * max(1e-6, *map(abs, (*ours, *theirs)))
    return ours[0] > theirs[1] + slack or theirs[0] > ours[1] + slack


def differ(ours: Number, theirs: Number) -> bool:
    """Whether two printed numbers cannot be one; of equal decimals, if they are not equal."""
    if ours.decimals is not None and ours.decimals == theirs.decimals:
        unit = 10.0**-ours.decimals
        return abs((ours.value or 0.0) - (theirs.value or 0.0)) > 0.5 * unit
    return apart(bounds(ours), bounds(theirs))


def digits(number: Number) -> int:
    """How many significant digits were printed; equal numbers of few digits mean nothing."""
    if number.value is None or number.value == 0:
        return 0
    if number.decimals is None:
        return 15
    return len(str(abs(round(number.value * 10.0**number.decimals))))


def shown(value: float) -> float:
    """A computed number without the noise of floating point, for a sentence."""
    return float(f"{value:.6g}")
