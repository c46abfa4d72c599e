"""Every number as CSV, each row with the file and line that it came from.

Arms have their own names here and values are not rounded: these are for machines and for whoever
looks a number up. `write` makes the files, `files` says on the page which there are.
"""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from itertools import islice, repeat
from pathlib import Path
from typing import Any

from kleash.imports import Where
from kleash.plan import BASELINE
from kleash.report.choices import chosen_columns
from kleash.report.courses import courses, outcome
from kleash.report.efficiency import clocks_of
from kleash.report.links import Links
from kleash.report.material import Material
from kleash.report.parts import Paragraph, Part
from kleash.report.places import cell_place, first_place, judged_place
from kleash.results import KL, Measured
from kleash.stats import mean_ends

MOST_PAIRS = 500  # of arms; 200 arms have 19,900
Row = tuple[Sequence[Any], str, int | None]
"""Values, then the file and line that they came from."""


def spot(where: Where | None) -> tuple[str, int | None]:
    """A place as a file and a line; '' where there is none."""
    return ("", None) if where is None else (where.file, where.line)


def cells(made: Material) -> Iterator[Row]:
    """Every measurement with its interval over items."""
    assert made.study is not None
    measured = made.study.measured
    for each, (low, high) in zip(measured, _ends(measured), strict=True):
        cell = each.cell
        place = (each.checkpoint or cell.checkpoint, cell.split, cell.shots, cell.items)
        arm = cell.arm.removeprefix(BASELINE)
        told = (arm, cell.seed, *place, each.state, each.mean, low, high, each.broken)
        yield told, *spot(cell_place(made, each))


def _ends(measured: Sequence[Measured]) -> list[tuple[float | None, float | None]]:
    """The interval of each cell: at once those of as many items, of which a study has thousands."""
    ends: list[tuple[float | None, float | None]] = [(None, None)] * len(measured)
    alike: dict[tuple[int, Any], list[int]] = {}
    for nth, each in enumerate(measured):
        if len(each.scores) > 1:
            alike.setdefault((len(each.scores), each.bounds), []).append(nth)
    for (_, bounds), these in alike.items():
        lows, highs = mean_ends([measured[nth].scores for nth in these], bounds=bounds)
        for nth, *both in zip(these, lows.tolist(), highs.tolist(), strict=True):
            ends[nth] = both[0], both[1]
    return ends


def gaps(made: Material) -> Iterator[Row]:
    """Every verdict that has a number: the interval is the one that decides the word."""
    for each in (one for found in made.comparisons for one in found.verdicts):
        if each.estimate is not None:
            arms = each.arms[0], each.arms[-1]
            numbers = (each.estimate, each.low, each.high, each.p, each.adjusted_p, each.n)
            told = (each.question, each.metric, *arms, each.verdict, each.level, each.unit)
            yield (*told, *numbers), *spot(judged_place(made, each))


def curves(made: Material) -> Iterator[Row]:
    """The outcome and KL of every arm: means over its runs with their 95 % band."""
    for metric in dict.fromkeys((outcome(made), "kl", KL)):
        for each in courses(made, metric) if metric else ():
            bands = [side.tolist() if side is not None else None for side in (each.low, each.high)]
            for at, (step, value) in enumerate(
                zip(each.steps.tolist(), each.values.tolist(), strict=True)
            ):
                ends = (None if side is None else side[at] for side in bands)
                told = (each.arm, each.metric, each.axis, step, value, *ends, each.runs)
                yield told, *spot(each.where(step))


def metrics(made: Material) -> Iterator[Row]:
    """Every quantity that a run logged by epoch."""
    for (arm, seed), run in made.runs.items():
        for series in run.series:
            if series.axis == "epoch":
                points = zip(series.steps.tolist(), series.values.tolist(), strict=True)
                lines = repeat(None) if series.lines is None else series.lines.tolist()
                metric, file = series.metric, series.where.file  # a run's points are in one file
                for (epoch, value), line in zip(points, lines, strict=False):
                    yield (arm, seed, metric, epoch, value), file, line


def agreement(made: Material) -> Iterator[Row]:
    """How alike every two arms are."""
    assert made.study is not None
    for each in islice(made.study.agreements, MOST_PAIRS):
        same = (each.equal_pointers, each.kl, each.identical_outputs, each.seeds)
        told = (*each.arms, *same, each.differ, each.parameters)
        yield told, *spot(first_place(made, each.arms[0]))


def demonstrations(made: Material) -> Iterator[Row]:
    """How often each arm chose each demonstration on the test."""
    assert made.study is not None
    for arm, columns in chosen_columns(made.study).items():
        counts = Counter(name for _, column in columns for p in column.pointers for name in p)
        for name, times in counts.most_common():
            yield (arm, name, times), *spot(first_place(made, arm))


def timings(made: Material) -> Iterator[Row]:
    """What the clocks of every arm say, by seed."""
    assert made.study is not None
    for row in made.study.rows:
        for key, clock in clocks_of(made, row.name).items():
            for seed, value in clock.means().items():
                yield (row.name, seed, key, value), *spot(clock.where)


def provenance(made: Material) -> Iterator[Row]:
    """Every run with the hashes of what went in."""
    assert made.study is not None
    keys = ("data", "base", "speech" if made.of_agents else "answerer", "revision")
    runs = {seen.run.path: seen.run for seen in made.study.overview.seen.values() if seen.run}
    for run in runs.values():
        told = (run.name, *(run.meta.get(key) for key in keys))
        yield told, run.file("meta.json"), None


TABLES: dict[str, tuple[Callable[[Material], Iterable[Row]], tuple[str, ...]]] = {
    "cells": (
        cells,
        (
            *("arm", "seed", "checkpoint", "split", "shots", "items"),
            *("state", "mean", "low", "high", "broken"),
        ),
    ),
    "gaps": (
        gaps,
        (
            *("question", "metric", "arm", "against", "verdict", "level", "unit"),
            *("estimate", "low", "high", "p", "adjusted_p", "n"),
        ),
    ),
    "curves": (curves, ("arm", "metric", "axis", "at", "mean", "low", "high", "runs")),
    "metrics": (metrics, ("arm", "seed", "metric", "epoch", "value")),
    "agreement": (
        agreement,
        (
            *("arm", "other", "equal_pointers", "kl", "identical_outputs", "seeds"),
            *("parameters_that_differ", "parameters"),
        ),
    ),
    "demonstrations": (demonstrations, ("arm", "demonstration", "times")),
    "timings": (timings, ("arm", "seed", "quantity", "mean")),
    "provenance": (provenance, ("run", "data", "base", "answerer", "revision")),
}


def texts(made: Material, folder: Path) -> Iterator[tuple[str, str]]:
    """By name the CSV of each table that has a row; files as seen from the report's folder."""
    shown = cache(Links(folder).shown)
    for name, (rows_of, head) in TABLES.items():
        file = io.StringIO()
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow((*head, "file", "line"))
        empty = file.tell()
        writer.writerows((*row, path and shown(path), line) for row, path, line in rows_of(made))
        if file.tell() > empty:
            yield f"{name}.csv", file.getvalue()


def files(made: Material) -> list[Part]:
    """Where everything else stands; of sources that are no study there are no such files."""
    names = [f"{name}.csv" for name in TABLES]
    return [Paragraph(made.say("files_are", names=names))] if made.study is not None else []
