"""Every number as CSV, each row with the file and line that it came from.

Arms have their own names here and values are not rounded: these are for machines and for whoever
looks a number up. A mean is of many lines and names the first. `write` makes the files, `files`
says on the page which there are.
"""

from __future__ import annotations

import csv
import io
import json
import math
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from itertools import islice, repeat
from pathlib import Path
from typing import Any

from kleash.compare.comparison import Judged
from kleash.compare.read import Where
from kleash.report.choices import chosen_columns
from kleash.report.courses import course, courses, outcome
from kleash.report.material import Material
from kleash.report.parts import Paragraph, Part
from kleash.stats import mean_ends
from kleash.study.plan import BASELINE
from kleash.study.plan.folder import Seen
from kleash.study.results import KL, Measured

MOST_PAIRS = 500  # of arms; 200 arms have 19,900
SECONDS, PER_STEP = "seconds", "seconds_per_step"
Row = tuple[Any, ...]
"""Values, then the file and line that they came from."""
Spot = Callable[[Where | None], tuple[str, int | None]]
"""A place as a file, as seen from the report's folder, and a line; '' where there is none."""


def scores_place(seen: Seen, checkpoint: str, split: str, shots: int) -> Where | None:
    """Where a run's scores of a checkpoint begin, on a split and at some shots."""
    column = seen.scored.get((checkpoint, split, shots))
    if column is None or seen.run is None:
        return None
    return Where(seen.run.file("scores.jsonl"), column.lines[0])


def tested(made: Material) -> dict[str, Where | None]:
    """By arm, where its first tested column begins."""
    assert made.study is not None
    found: dict[str, Where | None] = {}
    for (name, _), seen in made.study.overview.seen.items():
        for shots in made.study.file.measure.shots if found.get(name) is None else ():
            found[name] = found.get(name) or scores_place(seen, seen.chosen, "test", shots)
    return found


def cells(made: Material, spot: Spot) -> Iterator[Row]:
    """Every measurement with its interval over items."""
    assert made.study is not None
    measured, seen = made.study.measured, made.study.overview.seen
    for each, (low, high) in zip(measured, _ends(measured), strict=True):
        cell = each.cell
        place = (each.checkpoint or cell.checkpoint, cell.split, cell.shots, cell.items)
        arm, run = cell.arm.removeprefix(BASELINE), seen[cell.arm, cell.seed]
        where = scores_place(run, each.checkpoint, cell.split, cell.shots)
        numbers = (each.state, each.mean, low, high, each.broken)
        yield arm, cell.seed, *place, *numbers, *spot(where)


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


def gaps(made: Material, spot: Spot) -> Iterator[Row]:
    """Every verdict that has a number: the interval is the one that decides the word."""
    first = tested(made)
    for each in (one for found in made.comparisons for one in found.verdicts):
        if each.estimate is not None:
            arms = each.arms[0], each.arms[-1]
            numbers = (each.estimate, each.low, each.high, each.p, each.adjusted_p, each.n)
            words = (each.question, each.metric, *arms, each.verdict, each.level, each.unit)
            yield *words, *numbers, *spot(_place(made, each, first))


def _place(made: Material, judged: Judged, first: dict[str, Where | None]) -> Where | None:
    """Where the scores that a verdict is about begin, or the curve that it is about."""
    if made.study is not None and judged.metric in ("", made.study.file.compare.metric):
        where = next((first[arm] for arm in judged.arms if first.get(arm)), None)
        if where is not None:
            return where
    for arm in (arm for name in judged.arms for arm in made.arms if arm.name == name):
        each = course(arm, judged.metric)
        if each is not None:
            step = float(each.steps[0]) if judged.over is None else judged.over.first
            return each.where(step)
    return None


def curves(made: Material, spot: Spot) -> Iterator[Row]:
    """The outcome and KL of every arm: means over its runs with their 95 % band."""
    for metric in dict.fromkeys((outcome(made), "kl", KL)):
        for each in courses(made, metric) if metric else ():
            bands = [side.tolist() if side is not None else None for side in (each.low, each.high)]
            points = zip(each.steps.tolist(), each.values.tolist(), strict=True)
            for at, (step, value) in enumerate(points):
                ends = (None if side is None else side[at] for side in bands)
                words = (each.arm, each.metric, each.axis)
                yield *words, step, value, *ends, each.runs, *spot(each.where(step))


def metrics(made: Material, spot: Spot) -> Iterator[Row]:
    """Every quantity that a run logged by epoch."""
    for (arm, seed), run in made.runs.items():
        for series in run.series:
            if series.axis == "epoch":
                lines = repeat(None) if series.lines is None else series.lines.tolist()
                file = spot(series.where)[0]  # a run's points are in one file
                words = map(repeat, (arm, seed, series.metric))
                points = series.steps.tolist(), series.values.tolist()
                yield from zip(*words, *points, repeat(file), lines, strict=False)


def agreement(made: Material, spot: Spot) -> Iterator[Row]:
    """How alike every two arms are."""
    assert made.study is not None
    first = tested(made)
    for each in islice(made.study.agreements, MOST_PAIRS):
        same = (each.equal_pointers, each.kl, each.identical_outputs, each.seeds)
        yield *each.arms, *same, each.differ, each.parameters, *spot(first.get(each.arms[0]))


def demonstrations(made: Material, spot: Spot) -> Iterator[Row]:
    """How often each arm chose each demonstration on the test."""
    assert made.study is not None
    first = tested(made)
    for arm, columns in chosen_columns(made.study).items():
        counts = Counter(name for _, column in columns for p in column.pointers for name in p)
        for name, times in counts.most_common():
            yield arm, name, times, *spot(first.get(arm))


def timings(made: Material, spot: Spot) -> Iterator[Row]:
    """What the clocks of every run say: the mean over its epochs, and where the first stands."""
    assert made.study is not None
    for (arm, seed), seen in made.study.overview.seen.items():
        if (arm, seed) not in made.runs or seen.run is None or not seen.run.has("timings.jsonl"):
            continue
        found: dict[str, tuple[list[float], int]] = {}
        steps = _steps_per_epoch(made, arm, seed)
        for number, line in enumerate(seen.run.timings(), 1):
            read = {k: v for k, v in line.items() if isinstance(v, float) and math.isfinite(v)}
            if SECONDS in read and "step" in line:
                read[PER_STEP] = read.pop(SECONDS)
            elif SECONDS in read and steps:
                read[PER_STEP] = read[SECONDS] / steps
            for key, value in read.items() if line.get("phase") == "grpo" else ():
                found.setdefault(key, ([], number))[0].append(value)
        for key, (values, number) in found.items():
            mean = sum(values) / len(values)
            yield arm, seed, key, mean, *spot(Where(seen.run.file("timings.jsonl"), number))


def _steps_per_epoch(made: Material, arm: str, seed: int) -> float:
    """Steps that an epoch of a run has, on average; 0 where it logged none."""
    series = made.runs[arm, seed].series
    counts = {
        axis: max((len(each.steps) for each in series if each.axis == axis), default=0)
        for axis in ("step", "epoch")
    }
    return counts["step"] / counts["epoch"] if counts["epoch"] else 0.0


def provenance(made: Material, spot: Spot) -> Iterator[Row]:
    """Every run with the hashes of what went in, and what of its data was used."""
    assert made.study is not None
    keys = ("data", "base", "speech" if made.of_agents else "answerer", "revision")
    runs = {seen.run.path: seen.run for seen in made.study.overview.seen.values() if seen.run}
    for run in runs.values():
        counts = (run.meta.get(key) for key in ("view", "facts"))
        used = [json.dumps(each, ensure_ascii=False) if each else None for each in counts]
        values = (run.name, *(run.meta.get(key) for key in keys), *used)
        yield *values, *spot(Where(run.file("meta.json")))


TABLES: dict[str, tuple[Callable[[Material, Spot], Iterable[Row]], str]] = {
    "cells": (cells, "arm seed checkpoint split shots items state mean low high broken"),
    "gaps": (
        gaps,
        "question metric arm against verdict level unit estimate low high p adjusted_p n",
    ),
    "curves": (curves, "arm metric axis at mean low high runs"),
    "metrics": (metrics, "arm seed metric epoch value"),
    "agreement": (
        agreement,
        "arm other equal_pointers kl identical_outputs seeds parameters_that_differ parameters",
    ),
    "demonstrations": (demonstrations, "arm demonstration times"),
    "timings": (timings, "arm seed quantity mean"),
    "provenance": (provenance, "run data base answerer revision view facts"),
}
"""By name its rows, and its columns before file and line."""


def texts(made: Material, folder: Path) -> Iterator[tuple[str, str]]:
    """By name the CSV of each table that has a row; files as seen from the report's folder."""

    @cache
    def shown(path: str) -> str:
        return os.path.relpath(path, folder).replace(os.sep, "/")

    def spot(where: Where | None) -> tuple[str, int | None]:
        return ("", None) if where is None else (shown(where.file), where.line)

    for name, (rows_of, head) in TABLES.items():
        file = io.StringIO()
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow((*head.split(), "file", "line"))
        empty = file.tell()
        writer.writerows(rows_of(made, spot))
        if file.tell() > empty:
            yield f"{name}.csv", file.getvalue()


def files(made: Material) -> list[Part]:
    """Where everything else stands; of sources that are no study there are no such files."""
    names = [f"{name}.csv" for name in TABLES]
    return [Paragraph(made.say("files_are", names=names))] if made.study is not None else []
