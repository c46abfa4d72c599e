"""A finding, and the few ways in which all rules look at what was imported."""

from __future__ import annotations

from collections.abc import Iterator, KeysView, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import lru_cache
from math import floor, isfinite, log10
from typing import Any, Literal

from kleash.imports import Cell, Imported, Number, Series, Source, State, Where, names

Severity = Literal["note", "warning", "error"]
SLACK = 1e-9
SHORT, SAMPLED = 200, 20  # a longer series is looked at in that many points
KEPT = 2_000_000  # points kept for the next rule, of a hundred bytes each
Range = tuple[float, float]


@dataclass(frozen=True)
class Found:
    """Something that a rule found: its facts are the values for its sentence in the catalogue."""

    code: str
    severity: Severity
    where: tuple[Where, ...]
    facts: dict[str, Any]


@dataclass(slots=True, eq=False)
class Point:
    """One number of a run at one place, from a series or a cell, under the name of its metric."""

    metric: str
    written: str
    at: str
    value: float
    known: bool
    of: Number | Series
    """The number of a series' point is made when it is asked for: logs have many, few are."""
    nth: int = 0
    epoch: float | None = None
    step: float | None = None
    shots: int | None = None
    items: int | None = None

    @property
    def number(self) -> Number:
        """The number with its state, place and decimals."""
        if isinstance(self.of, Series):
            series, decimals = self.of, self.of.decimals
            if series.float32 and decimals is None:
                decimals = _float32_decimals(self.value)
            state: State = "known" if self.known else "estimated"
            self.of = Number(self.value, state, series.place(self.nth), decimals)
        return self.of

    @property
    def decimals(self) -> int | None:
        """Those of its number."""
        narrow = isinstance(self.of, Series) and self.of.float32
        return self.number.decimals if narrow else self.of.decimals

    @property
    def place(self) -> tuple[str, str]:
        return self.metric, self.at


@dataclass
class Made:
    """What was made of runs for the rules of one search, by the ids of what it was made of."""

    series: dict[int, Sequence[Point]] = field(default_factory=dict)
    places: dict[tuple[int, str], list[str]] = field(default_factory=dict)
    curves: dict[int, dict[str, list[Series]]] = field(default_factory=dict)
    count: int = 0


_MADE: ContextVar[Made | None] = ContextVar("made of runs", default=None)


def runs(sources: Sequence[Source]) -> Iterator[Imported]:
    """Every run of every source."""
    for source in sources:
        yield from source.runs


@lru_cache(maxsize=4096)
def canonical(metric: str) -> str:
    """The name of a quantity where it is known, else as it is written."""
    known = names.metric(metric)
    return metric if known is None else known.name


def settings(run: Imported) -> dict[str, Any]:
    """The config of a run under known names; not to be written to."""
    return run.resolved.values


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
    """Within it points are made once, for all rules that ask; then they are let go."""
    token = _MADE.set(Made())
    try:
        yield
    finally:
        _MADE.reset(token)


def points(run: Imported, *metrics: str) -> list[Point]:
    """All numbers of a run that have a value, series first; of a long series some of its points.

    Of some metrics only, if any are named: then the others are not made.
    """
    found = [point for series in curves(run, *metrics) for point in series_points(series)]
    found += [each for each in cell_points(run) if not metrics or each.metric in metrics]
    return found


def curves(run: Imported, *metrics: str) -> Sequence[Series]:
    """The series of a run, of some metrics only if any are named; in the order of the file."""
    if len(metrics) != 1:
        return [s for s in run.series if not metrics or canonical(s.metric) in metrics]
    return _by_metric(run).get(metrics[0], ())


def _by_metric(run: Imported) -> dict[str, list[Series]]:
    made = _MADE.get()
    if made is not None and id(run) in made.curves:
        return made.curves[id(run)]
    found: dict[str, list[Series]] = {}
    for series in run.series:
        found.setdefault(canonical(series.metric), []).append(series)
    if made is not None:
        made.curves[id(run)] = found
    return found


def every_value(run: Imported, *metrics: str) -> Iterator[float]:
    """The values of `points`, for those who need no more: logs have many."""
    for series in curves(run, *metrics):
        values = series.values[:: _stride(series)].tolist()
        yield from values if series.finite else filter(isfinite, values)
    for cell in run.cells:
        if cell.number.value is not None and canonical(cell.metric) in metrics:
            yield cell.number.value


def known_values(run: Imported, *metrics: str) -> Iterator[float]:
    """Those of `points` that are known; of a run with estimates by a look at every point."""
    if any(series.estimated is not None for series in run.series) or run.cells:
        return (point.value for point in points(run, *metrics) if point.known)
    return every_value(run, *metrics)


def cell_points(run: Imported) -> list[Point]:
    """The numbers of a run that stand in cells."""
    return [
        Point(
            canonical(cell.metric),
            cell.metric,
            place_of(cell),
            cell.number.value,
            cell.number.state == "known",
            cell.number,
            0,
            cell.epoch,
            cell.step,
            cell.shots,
            cell.items,
        )
        for cell in run.cells
        if cell.number.value is not None
    ]


def told_metrics(run: Imported) -> KeysView[str]:
    """The metrics that a run has a curve or a cell of, which may hold no number; as told."""
    if not run.cells:
        return _by_metric(run).keys()
    written = [series.metric for series in run.series] + [cell.metric for cell in run.cells]
    return dict.fromkeys(map(canonical, written)).keys()


def series_points(series: Series) -> Sequence[Point]:
    """The points of one series; of a long one some."""
    made = _MADE.get()
    if made is None:
        return _of_series(series, {})
    kept = made.series.get(id(series))  # none ends while a rule looks at it: no id comes back
    if kept is None:
        kept = _of_series(series, made.places)
        if made.count + len(kept) <= KEPT:
            made.series[id(series)] = kept
            made.count += len(kept)
    return kept


def ends(series: Series) -> list[Point]:
    """The first and the last of its points, if steps rise and all values are known; else none."""
    if not (series.rises and series.finite and series.estimated is None):
        return []
    count, stride = len(series.steps), _stride(series)
    last = (count - 1) // stride * stride
    return [_point(series, nth) for nth in dict.fromkeys((0, last))] if count else []


def _point(series: Series, nth: int) -> Point:
    step, by_epoch = float(series.steps[nth]), series.axis == "epoch"
    return Point(
        canonical(series.metric),
        series.metric,
        f"{series.axis} {step:g}",
        float(series.values[nth]),
        True,
        series,
        nth,
        step if by_epoch else None,
        None if by_epoch else step,
    )


def _stride(series: Series) -> int:
    return 1 if len(series.steps) <= SHORT else -(-len(series.steps) // SAMPLED)


def _places(series: Series, known: dict[tuple[int, str], list[str]]) -> list[str]:
    at = known.get((id(series.steps), series.axis))  # series of one file share their steps
    if at is None:
        at = [f"{series.axis} {step:g}" for step in series.steps[:: _stride(series)].tolist()]
        known[id(series.steps), series.axis] = at
    return at


def sampled(series: Series) -> tuple[list[str], list[float]]:
    """Where the points of a series stand, and their values, finite or not; of a long one some."""
    made = _MADE.get()
    at = _places(series, {} if made is None else made.places)
    return at, series.values[:: _stride(series)].tolist()


def _of_series(series: Series, places: dict[tuple[int, str], list[str]]) -> list[Point]:
    stride = _stride(series)
    metric, written = canonical(series.metric), series.metric
    steps, values = series.steps[::stride].tolist(), series.values[::stride].tolist()
    at = _places(series, places)
    guessed = [False] * len(steps)
    if series.estimated is not None:
        guessed = series.estimated[::stride].tolist()
    by_epoch = series.axis == "epoch"
    return [
        Point(
            metric,
            written,
            at[nth],
            value,
            not guessed[nth],
            series,
            nth * stride,
            step if by_epoch else None,
            None if by_epoch else step,
        )
        for nth, (step, value) in enumerate(zip(steps, values, strict=True))
        if isfinite(value)
    ]


def _float32_decimals(value: float) -> int:
    """The decimals to which a number that went through float32 can be trusted."""
    return 6 - (floor(log10(abs(value))) if value else 0)


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
