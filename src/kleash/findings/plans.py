"""Plans, limits and dates: what was to be done, what is shown, and whether it can have been."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import numpy as np

from kleash.findings.record import (
    Found,
    Point,
    Severity,
    canonical,
    every_value,
    known_values,
    number_of,
    points,
    runs,
    setting_place,
    settings,
    shown,
    told_metrics,
)
from kleash.imports import Imported, Series, Source, Where

SHORTFALL = 0.9
OVERHEAD = 2.0  # evaluations and start-up may double a run, hardly more
OUTCOMES = ("accuracy", "eval_reward", "performance", "val_loss")
_COUNTED = re.compile(r"/\s?\d{2,}")  # "the same (/500)" is a count
_DATE = re.compile(r"(\d{4})\D(\d{1,2})\D(\d{1,2})")


def planned_and_done(sources: Sequence[Source]) -> Iterator[Found]:
    """As many epochs and steps as were configured, not fewer and not more."""
    for run in runs(sources):
        for axis, key in (("epoch", "epochs"), ("step", "steps")):
            planned = number_of(run, key)
            if planned is None or planned <= 0:  # 0 and -1 stand for no limit
                continue
            if is_stage(run.arm):
                continue
            ends = (_last(run, axis), _best_at(run, axis, planned))
            last = max(filter(None, ends), default=None, key=_end)
            if last is None or last[0] == planned:
                continue
            facts = {"arm": run.arm, "axis": axis, "last": last[0], "planned": planned}
            where = (last[1], setting_place(run, key))
            if last[0] > planned:
                yield Found("beyond-plan", "warning", where, facts)
            elif axis == "epoch" or (last[0] < SHORTFALL * planned and not _spaced(run)):
                yield Found("fewer-than-planned", "warning", where, facts)


_STAGE = re.compile(
    r"\s*(?:rce|sft|supervised|pre-?trained|base(?:line)?|监督|预训练|起点|初始)(?![a-z])", re.I
)


def is_stage(arm: str) -> bool:
    """Whether an arm is what training began from: it has epochs of its own."""
    return bool(_STAGE.match(arm))


def _end(end: tuple[float, Where]) -> float:
    return end[0]


def _best_at(run: Imported, axis: str, planned: float) -> tuple[float, Where] | None:
    """A best that is said to stand beyond what was planned."""
    places = [(cell.epoch if axis == "epoch" else cell.step, cell) for cell in run.cells]
    beyond = [
        (float(at), cell.number.where)
        for at, cell in places
        if at is not None and cell.statistic and cell.number.state == "known" and at > planned
    ]
    return max(beyond, key=_end, default=None)


def _last(run: Imported, axis: str) -> tuple[float, Where] | None:
    """The last epoch or step of training metrics that is shown, and where."""
    curves = [series for series in run.series if series.axis == axis and len(series.steps)]
    longest = max(curves, key=lambda series: series.last, default=None)
    ends: list[tuple[float, Where]] = []
    if longest is not None:
        ends = [(longest.last, longest.place(int(longest.steps.argmax())))]
    if axis == "epoch":
        # A cell of a best epoch, or a missing one, does not show that training went so far.
        ends += [
            (cell.epoch, cell.number.where)
            for cell in run.cells
            if cell.epoch is not None and cell.number.state == "known" and not cell.statistic
        ]
    return max(ends, key=lambda end: end[0], default=None)


def _spaced(run: Imported) -> Series | None:
    """A curve of evaluations at regular steps that ends long before training does."""
    steps = number_of(run, "steps")
    for series in run.series:
        if series.axis != "step" or canonical(series.metric) not in OUTCOMES:
            continue
        gaps = np.diff(series.steps)
        spaced = len(gaps) > 1 and gaps[0] > 0 and np.allclose(gaps, gaps[0])
        if steps and spaced and len(series.steps) < SHORTFALL * (steps // gaps[0]):
            return series
    return None


def evaluations_missing(sources: Sequence[Source]) -> Iterator[Found]:
    """Evaluations at regular steps: as many as the steps allow."""
    for run in runs(sources):
        series, steps = _spaced(run), number_of(run, "steps")
        if series is None or steps is None:
            continue
        every = float(series.steps[1] - series.steps[0])
        guessed = 0 if series.estimated is None else int(np.sum(series.estimated))
        facts = {
            "arm": run.arm,
            "metric": series.metric,
            "shown": len(series.steps) - guessed,
            "expected": int(steps // every),
            "every": every,
            "steps": steps,
        }
        where = (series.place(len(series.steps) - 1), setting_place(run, "steps"))
        yield Found("evaluations-missing", "warning", where, facts)


# --- dates


def too_long_for_dates(sources: Sequence[Source]) -> Iterator[Found]:
    """Steps × seconds per step fit between the start of a run and the report on its end."""
    for source in sources:
        last = _last_date(source)
        for run in source.runs:
            started, pace, steps = _moment(run.started), _pace(run), number_of(run, "steps")
            if started is None or pace is None or steps is None or last is None:
                continue
            day, where = last
            hours = (day + timedelta(days=1) - started).total_seconds() / 3600
            low, high, place = pace
            if 0 < hours < steps * low / 3600:
                facts = {
                    "arm": run.arm,
                    "steps": steps,
                    "hours_low": round(steps * low / 3600, 1),
                    "hours_high": round(steps * high / 3600, 1),
                    "started": started.isoformat(timespec="minutes").removesuffix("+00:00"),
                    "until": day.date().isoformat(),
                    "hours": round(hours, 1),
                }
                yield Found("too-long-for-dates", "error", (place, where), facts)


def started_after_report(sources: Sequence[Source]) -> Iterator[Found]:
    """A run that began after the day of the report on it."""
    for source in sources:
        last = _last_date(source)
        for run in source.runs:
            started = _moment(run.started)
            if started is None or last is None:
                continue
            day, where = last
            # A day more: clocks of machines and people stand in different zones.
            if started >= day + timedelta(days=2):
                facts = {
                    "arm": run.arm,
                    "started": started.isoformat(timespec="minutes").removesuffix("+00:00"),
                    "until": day.date().isoformat(),
                }
                yield Found(
                    "started-after-report", "error", (_started_at(source, run), where), facts
                )


def _started_at(source: Source, run: Imported) -> Where:
    """Where a source says when a run began."""
    told = [fact.where for fact in source.facts if fact.kind == "wandb" and fact.arm == run.arm]
    return told[0] if told else run.where


def runs_overlap(sources: Sequence[Source]) -> Iterator[Found]:
    """A run that began before the one before it can have ended: did they share the machine?"""
    for source in sources:
        begun = []
        for run in source.runs:
            started, pace, steps = _moment(run.started), _pace(run), number_of(run, "steps")
            if started is not None and pace is not None and steps is not None:
                begun.append((started, steps * pace[0] / 3600, run, _started_at(source, run)))
        begun.sort(key=lambda one: one[0])
        for (first, hours, run, place), (second, _, other, beside) in pairwise(begun):
            between = (second - first).total_seconds() / 3600
            if between < hours:
                facts = {
                    "arms": [run.arm, other.arm],
                    "hours": round(hours, 1),
                    "between": round(between, 1),
                }
                yield Found("runs-overlap", "note", (place, beside), facts)


def gpu_hours(sources: Sequence[Source]) -> Iterator[Found]:
    """GPU-hours are at least steps × seconds × GPUs."""
    for run in runs(sources):
        pace, steps, gpus = _pace(run), number_of(run, "steps"), number_of(run, "hardware")
        nodes = number_of(run, "nodes") or 1.0
        if pace is None or steps is None or gpus is None:
            continue
        least = steps * pace[0] * gpus * nodes / 3600
        most = steps * pace[1] * gpus * nodes / 3600
        for point in points(run, "gpu_hours"):
            if not point.known:
                continue
            if point.value < SHORTFALL * least or point.value > OVERHEAD * most:
                facts = {
                    "arm": run.arm,
                    "hours": point.value,
                    "expected": shown((least + most) / 2),
                    "steps": steps,
                    "seconds": pace[0],
                    "gpus": gpus * nodes,
                }
                severity: Severity = "error" if point.value < least else "warning"
                yield Found("gpu-hours", severity, (point.number.where, pace[2]), facts)


def _last_date(source: Source) -> tuple[datetime, Where] | None:
    """The latest day that a report is dated, and where it says so."""
    days = [
        (day, fact.where)
        for fact in source.facts
        if fact.kind == "date" and (day := _day(fact.text)) is not None
    ]
    return max(days, key=lambda one: one[0], default=None)


def _day(text: str) -> datetime | None:
    match = _DATE.search(text)
    try:
        return None if match is None else datetime(*map(int, match.groups()), tzinfo=UTC)  # type: ignore[misc, arg-type]
    except ValueError:
        return None


def _moment(text: str | None) -> datetime | None:
    try:
        found = None if text is None else datetime.fromisoformat(text)
    except ValueError:
        return None
    return found if found is None or found.tzinfo else found.replace(tzinfo=UTC)


def _pace(run: Imported) -> tuple[float, float, Where] | None:
    """Seconds per step, least and most, and where they stand."""
    for cell in run.cells:
        number = cell.number
        if canonical(cell.metric) == "step_time" and number.state == "known":
            low = number.low if number.low is not None else number.value
            high = number.high if number.high is not None else number.value
            if low is not None and high is not None:
                return low, high, number.where
    for series in run.series:
        if canonical(series.metric) == "step_time":
            known = series.values[np.isfinite(series.values)]
            if len(known):
                median = float(np.median(known))
                return median, median, series.where
    return None


# --- limits


def beyond_limits(sources: Sequence[Source]) -> Iterator[Found]:
    """No response is longer than the longest allowed, no share above 1."""
    every = [(run, list(_over_limits(run))) for run in runs(sources)]
    beyond = Counter(metric for _, limits in every for metric, *_ in limits)
    for run, limits in every:
        for metric, limit, key, over in limits:
            # Accuracies above 1 in several runs are something else that was taken for accuracy.
            if metric != "accuracy" or beyond[metric] == 1:
                most = max(over, key=lambda point: point.value)
                facts = {
                    "arm": run.arm,
                    "metric": most.written,
                    "value": most.value,
                    "limit": shown(limit),
                    "key": key,
                }
                yield Found("beyond-limit", "warning", (most.number.where,), facts)


def _over_limits(run: Imported) -> Iterator[tuple[str, float, str, list[Point]]]:
    """Limits of a run with the numbers that are above them."""
    for metric, limit, key in _limits(run):
        if max(known_values(run, metric), default=limit) <= limit:
            continue
        over = [p for p in points(run, metric) if p.known and p.value > limit]
        over = [p for p in over if not _COUNTED.search(p.number.where.spot)]
        over = [p for p in over if not p.number.about or p.value > 1.01 * limit]
        if over:
            yield metric, limit, key, over


def _limits(run: Imported) -> Iterator[tuple[str, float, str]]:
    found = settings(run)
    length, prompt = found.get("length"), found.get("prompt_length")
    if isinstance(length, int | float):
        yield "response_length", float(length), "length"
        if isinstance(prompt, int | float):
            yield "sequence_length", float(length + prompt), "prompt_length + length"
    told = told_metrics(run)
    if "accuracy" in told:
        values = list(every_value(run, "accuracy"))
        # "71.2" without a percent sign, like all beside it, is one of 100.
        hundred = sum(value > 1 for value in values) * 2 > len(values)
        yield "accuracy", 100.0 if hundred else 1.0, "1"
    yield from ((metric, 1.0, "1") for metric in ("clip_fraction", "mfu") if metric in told)


RULES = (
    planned_and_done,
    evaluations_missing,
    too_long_for_dates,
    started_after_report,
    runs_overlap,
    gpu_hours,
    beyond_limits,
)
