"""What shows only in a whole source.

Fractions may be percentages without the sign: an accuracy of 57.3 is 0.573. All values of a name
tell: a benchmark that one run solves to 0.8 % and another to 16 % is in percent for both. Files of
one name in several folders are of as many runs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from kleash.imports import Cell, Imported, Scores, Series, Source, names
from kleash.imports.given import UNTELLING, separate
from kleash.imports.run_names import SEED, label

ABOVE = 1.5  # what no fraction is, though a sum of rewards may be a little above 1
WHOLE = 100.0


def settle(source: Source) -> None:
    """Call runs by their folders, make fractions of percentages, and note what is no number."""
    name_by_folder(source.runs)
    separate([placed for run in source.runs if (placed := _by_place(run))])
    as_fractions(source)
    source.notes += [note for run in source.runs for note in _odd(run)]


def _by_place(run: Imported) -> tuple[Path, Imported] | None:
    """A run with its place, where it is called by a folder or a file that says nothing of it."""
    path = Path(run.where.file).absolute()
    own = run.name == run.arm and run.arm in (path.stem, *path.parts)
    return (path, run) if own and UNTELLING.fullmatch(run.arm) else None


def _odd(run: Imported) -> Iterator[str]:
    """What of a run's numbers is there and yet no number, or that there are none."""
    if not (run.series or run.scores or run.cells):
        yield f"{run.name}: no numbers in {run.where.file}"
    odd = sum(int((~np.isfinite(s.values)).sum()) for s in run.series if not s.finite)
    if odd:
        yield f"{run.name}: {odd:,} values are NaN or infinite, kept as they are"
    lost = sum(int(np.isnan(scores.values).sum()) for scores in run.scores)
    if lost:
        yield f"{run.name}: {lost:,} scores are not there, kept as missing"


def as_fractions(source: Source) -> None:
    """Divide by 100 what is a fraction by its name and a percentage by its values."""
    held = [run for run in source.runs if run.format != "markdown"]
    ranges: dict[str, tuple[float, float]] = {}
    for run in held:
        curves = [(one.metric, one.values) for one in run.series]
        for metric, values in (*curves, *((one.metric, one.values) for one in run.scores)):
            _widen(ranges, metric, values[np.isfinite(values)])
        for cell in run.cells:
            if cell.number.value is not None:
                _widen(ranges, cell.metric, np.array([cell.number.value]))
    percents = {name for name, (low, high) in ranges.items() if low >= 0 and ABOVE < high <= WHOLE}
    if not percents:
        return
    for run in held:
        run.series = [_series(one) if one.metric in percents else one for one in run.series]
        run.scores = [_scores(one) if one.metric in percents else one for one in run.scores]
        run.cells = [_cell(one) if one.metric in percents else one for one in run.cells]
    told = ", ".join(sorted(percents)[:5])
    source.notes.append(f"{source.path}: {told} taken for percentages, by their values")


def _widen(
    ranges: dict[str, tuple[float, float]], metric: str, values: np.typing.NDArray[np.float64]
) -> None:
    known = names.metric(metric)
    if known is None or known.unit != "fraction" or not len(values):
        return
    low, high = ranges.get(metric, (np.inf, -np.inf))
    ranges[metric] = (min(low, float(values.min())), max(high, float(values.max())))


def _decimals(decimals: int | None) -> int | None:
    return None if decimals is None else decimals + 2


def _series(series: Series) -> Series:
    return replace(series, values=series.values / WHOLE, decimals=_decimals(series.decimals))


def _scores(scores: Scores) -> Scores:
    return replace(scores, values=scores.values / WHOLE)


def _cell(cell: Cell) -> Cell:
    number = cell.number
    if number.value is None:
        return cell
    made = replace(number, value=number.value / WHOLE, decimals=_decimals(number.decimals))
    return replace(cell, number=made)


def name_by_folder(runs: Sequence[Imported]) -> None:
    """Call runs by their folder that files of one name, each alone of its kind, tell of."""
    files: dict[str, set[Path]] = {}
    beside: Counter[tuple[Path, str]] = Counter()
    where = {id(run): Path(run.where.file).absolute() for run in runs}
    for path in set(where.values()):
        beside[path.parent, path.suffix] += 1
    for run in runs:
        path = where[id(run)]
        if path.stem == run.name and beside[path.parent, path.suffix] == 1:
            files.setdefault(run.name, set()).add(path)
    for run in runs:
        same, path = files.get(run.name, set()), where[id(run)]
        if path in same and len({one.parent.name for one in same}) > 1:
            seed = SEED.fullmatch(path.parent.name)
            run.name, run.arm = (f"{run.name}-s{seed[1]}" if seed else path.parent.name), ""
            label(run)
