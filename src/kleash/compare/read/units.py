"""Percent or fraction: a metric has one unit in all runs, guessed only where one is possible.

An accuracy of 57.3 can be no fraction, so it is 0.573. One of 0.8 beside 16 may be a percentage or
a fraction, and only the user knows. A single 2.0 makes no percentages of the fractions around it.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from kleash.compare.read import Cell, Imported, Series, Source, names
from kleash.compare.read.gather import some_points
from kleash.errors import ConfigError

ABOVE = 1.5  # what no fraction is, though a sum of rewards may be a little above 1
WHOLE = 100.0
STRAYS = 0.125  # share of a run's values that may be no fractions among fractions
NAMED = re.compile(r"[%％]|percent|百分", re.I)

Look = Literal["percent", "fraction", "stray", "unclear", ""]


@dataclass
class Units:
    """In what unit shares were read, over all runs at once."""

    percents: dict[str, tuple[str, float]] = field(default_factory=dict)
    """What can only be in percent: its quantity, and its greatest value as written."""
    questions: dict[str, str] = field(default_factory=dict)
    """By quantity, what could be either; none of its values was changed."""
    strays: list[tuple[Imported, Series]] = field(default_factory=list)
    """Curves of fractions with values among them that are none."""


@dataclass(frozen=True)
class Seen:
    """The values of a metric in one run as written, and what they look like alone."""

    run: Imported
    look: Look
    low: float = 0.0
    high: float = 0.0


def units_of(asked: Sequence[str]) -> dict[str, str]:
    """`METRIC=percent` and `METRIC=fraction`, by the spelling of the metric."""
    made: dict[str, str] = {}
    for each in asked:
        metric, _, unit = each.rpartition("=")
        known = names.metric(metric)
        if unit not in ("percent", "fraction") or known is None or known.unit != "fraction":
            raise ConfigError(
                f"--unit {each}: write METRIC=percent or METRIC=fraction, for a share like accuracy"
            )
        made[names.spelling(metric)] = unit
    return made


def as_fractions(sources: Sequence[Source], asked: Mapping[str, str] | None = None) -> Units:
    """Divide by 100 what is a fraction by its name and can only be a percentage by its values.

    `asked` is the unit of values that may be either.
    """
    made, asked, divided = Units(), asked or {}, set[tuple[int, str]]()
    for quantity, written in _written(sources).items():
        told = {
            m: asked.get(names.spelling(m), asked.get(names.spelling(quantity))) for m in written
        }
        units = {metric: _unit(every, metric, told[metric]) for metric, every in written.items()}
        unclear = [metric for metric, unit in units.items() if unit == "either"]
        apart = [] if unclear or any(told.values()) else _apart(written, units)
        if unclear or apart:
            metric = unclear[0] if unclear else quantity
            made.questions[quantity] = _question(metric, apart if not unclear else written[metric])
            continue
        for metric, every in written.items():
            if units[metric] == "percent" and not told[metric] and not NAMED.search(metric):
                made.percents[metric] = quantity, max(seen.high for seen in every)
            divided |= set(_settled(metric, every, units[metric], made))
    for source in sources:
        runs = set(map(id, source.runs))
        if of_it := sorted({metric for run, metric in divided if run in runs}):
            told_of = ", ".join(of_it[:5])
            source.notes.append(f"{source.path}: {told_of} taken for percentages")
    return made


def _written(sources: Sequence[Source]) -> dict[str, dict[str, list[Seen]]]:
    """By quantity and name, the shares that were measured; of documents what is no fraction."""
    found: dict[str, dict[str, list[Seen]]] = {}
    for run in (run for source in sources for run in source.runs):
        parts: dict[str, list[NDArray[np.float64]]] = {}
        for metric, values in _values(run):
            known = names.metric(metric)
            if known is not None and known.unit == "fraction":
                parts.setdefault(metric, []).append(values)
        for metric, every in parts.items():
            known = names.metric(metric)
            assert known is not None
            seen = _seen(run, metric, np.concatenate(every))
            if run.format == "markdown" and seen.look != "percent":
                continue
            found.setdefault(known.name, {}).setdefault(metric, []).append(seen)
    return found


def _values(run: Imported) -> Iterator[tuple[str, NDArray[np.float64]]]:
    yield from ((one.metric, one.values) for one in run.series)
    yield from ((one.metric, one.values) for one in run.scores)
    for cell in run.cells:
        if cell.number.value is not None:
            yield cell.metric, np.array([cell.number.value])


def _seen(run: Imported, metric: str, values: NDArray[np.float64]) -> Seen:
    if metric in run.percents:
        return Seen(run, "percent", high=run.percents[metric])
    values = values[np.isfinite(values) & (values != 0)]
    if not len(values) or values.min() < 0 or values.max() > WHOLE:
        return Seen(run, "")  # either, or no share at all
    low, high = float(values.min()), float(values.max())
    if high <= ABOVE:
        return Seen(run, "fraction", low, high)
    above = int((values > ABOVE).sum())
    if 2 * above > len(values):
        return Seen(run, "percent", low, high)
    few = above == 1 or above < STRAYS * len(values)
    stray = few and int((values <= 1).sum()) == len(values) - above
    return Seen(run, "stray" if stray else "unclear", low, high)


def _unit(every: Sequence[Seen], metric: str, asked: str | None) -> str:
    """ "percent", "fraction" or "either": of all runs, as asked where both are possible."""
    looks = {seen.look for seen in every}
    if asked or NAMED.search(metric):
        return asked or "percent"
    if "unclear" in looks or ("percent" in looks and looks & {"fraction", "stray"}):
        return "either"
    return "percent" if "percent" in looks else "fraction"


def _apart(written: Mapping[str, Sequence[Seen]], units: Mapping[str, str]) -> list[Seen]:
    """Runs with percentages and others with fractions, under two names of one quantity.

    A run that has both shows that the names have their own units.
    """
    sides: dict[str, list[Seen]] = {"percent": [], "fraction": []}
    for metric, every in written.items():
        if not NAMED.search(metric):
            sides[units[metric]] += [seen for seen in every if seen.look]
    ours, theirs = ({id(seen.run) for seen in side} for side in sides.values())
    return (
        [] if not ours or not theirs or ours & theirs else [*sides["percent"], *sides["fraction"]]
    )


def _question(metric: str, every: Sequence[Seen]) -> str:
    """What the user is asked."""
    options = (shlex.quote(f"{metric}={unit}") for unit in ("percent", "fraction"))
    say = " or ".join(f"--unit {each}" for each in options)
    sure = next((seen for seen in every if seen.look == "percent"), None)
    low = next(seen for seen in every if seen.look and seen.look != "percent")
    if sure is None:
        return (
            f"{metric} of {low.run.name} has values on both sides of 1, from {low.low:g} to"
            f" {low.high:g}: percent or fractions? Say {say}"
        )
    ours, theirs = sure.run.name, low.run.name
    if ours == theirs:
        ours, theirs = (str(Path(seen.run.where.file)) for seen in (sure, low))
    return (
        f"{metric} is up to {sure.high:g} in {ours}, which is percent, and up to {low.high:g} in"
        f" {theirs}, which may be percent or a fraction. Say {say}"
    )


def _settled(
    metric: str, every: Sequence[Seen], unit: str, made: Units
) -> Iterator[tuple[int, str]]:
    """Divide what is in percent; note what is no fraction."""
    for seen in every:
        run = seen.run
        if metric in run.percents:
            continue
        if unit == "percent" or seen.look == "percent":
            _in_fractions(run, metric)
            run.percents[metric] = seen.high
            yield id(run), metric
        elif seen.look in ("stray", "unclear"):
            made.strays += [
                (run, one)
                for one in run.series
                if one.metric == metric and (one.values > ABOVE).any()
            ]


def _in_fractions(run: Imported, metric: str) -> None:
    run.series = [
        replace(one, values=one.values / WHOLE, decimals=_decimals(one.decimals))
        if one.metric == metric
        else one
        for one in run.series
    ]
    run.scores = [
        replace(one, values=one.values / WHOLE) if one.metric == metric else one
        for one in run.scores
    ]
    run.cells = [_cell(one) if one.metric == metric else one for one in run.cells]


def _decimals(decimals: int | None) -> int | None:
    return None if decimals is None else decimals + 2


def _cell(cell: Cell) -> Cell:
    number = cell.number
    if number.value is None:
        return cell
    made = replace(number, value=number.value / WHOLE, decimals=_decimals(number.decimals))
    return replace(cell, number=made)


def without_strays(run: Imported, series: Series) -> list[tuple[float, float]]:
    """Leave out of a curve of fractions what is none: its steps and values."""
    wrong = series.values > ABOVE
    made = some_points(series, np.flatnonzero(~wrong))
    run.series = [made if one is series else one for one in run.series]
    return list(zip(series.steps[wrong].tolist(), series.values[wrong].tolist(), strict=True))
