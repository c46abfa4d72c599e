"""Plans, limits and dates: what was to be done, what is shown, and whether it can have been."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta

import numpy as np

from kleash.findings.record import (
    Found,
    canonical,
    number_of,
    points,
    runs,
    settings,
    shown,
)
from kleash.imports import Imported, Series, Source, Where

SHORTFALL = 0.9
OUTCOMES = ("accuracy", "eval_reward", "performance", "val_loss")
_DATE = re.compile(r"(\d{4})\D(\d{1,2})\D(\d{1,2})")
_UNTIL = re.compile(
    r"训练到|训练至|至少训练|继续训练|train(?:ing)? (?:to|until|up to|for|on to)", re.I
)


def planned_and_done(sources: Sequence[Source]) -> Iterator[Found]:
    """As many epochs and steps as were configured, not fewer and not more."""
    for run in runs(sources):
        for axis, key in (("epoch", "epochs"), ("step", "steps")):
            planned = number_of(run, key)
            last = _last(run, axis)
            if planned is None or last is None or last[0] == planned:
                continue
            facts = {"arm": run.arm, "axis": axis, "last": last[0], "planned": planned}
            if last[0] > planned:
                yield Found("beyond-plan", "warning", (last[1],), facts)
            elif axis == "epoch" or (last[0] < SHORTFALL * planned and not _spaced(run)):
                yield Found("fewer-than-planned", "warning", (last[1],), facts)


def _last(run: Imported, axis: str) -> tuple[float, Where] | None:
    """The last epoch or step of training metrics that is shown, and where."""
    ends = [
        (float(series.steps.max()), series.place(int(series.steps.argmax())))
        for series in run.series
        if series.axis == axis and len(series.steps)
    ]
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
        where = (series.place(len(series.steps) - 1),)
        yield Found("evaluations-missing", "warning", where, facts)


# --- dates


def too_long_for_dates(sources: Sequence[Source]) -> Iterator[Found]:
    """Steps × seconds per step fit between the start of a run and the report on its end."""
    for source in sources:
        dates = [
            (day, fact.where)
            for fact in source.facts
            if fact.kind == "date" and (day := _day(fact.text)) is not None
        ]
        for run in source.runs:
            started, pace, steps = _moment(run.started), _pace(run), number_of(run, "steps")
            if started is None or pace is None or steps is None or not dates:
                continue
            day, where = max(dates, key=lambda one: one[0])
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
        if canonical(series.metric) == "step_time" and len(series.values):
            median = float(np.nanmedian(series.values))
            return median, median, series.where
    return None


def planned_below_done(sources: Sequence[Source]) -> Iterator[Found]:
    """A plan to train to fewer steps than are said to be done."""
    for source in sources:
        done = max((number_of(run, "steps") or 0.0 for run in source.runs), default=0.0)
        for claim in source.claims:
            if not done or not _UNTIL.search(claim.text):
                continue
            ends = [
                one.high if one.high is not None else one.value
                for one in claim.numbers
                if one.unit in ("步", "step", "steps")
            ]
            known = [end for end in ends if end is not None]
            if known and max(known) < done:
                facts = {"text": claim.text, "planned": max(known), "done": done}
                yield Found("planned-below-done", "note", (claim.where,), facts)


# --- limits


def beyond_limits(sources: Sequence[Source]) -> Iterator[Found]:
    """No response is longer than the longest allowed, no share above 1."""
    for run in runs(sources):
        for metric, limit, key in _limits(run):
            over = [p for p in points(run) if p.metric == metric and p.known and p.value > limit]
            over = [p for p in over if not p.number.about or p.value > 1.01 * limit]
            if over:
                most = max(over, key=lambda point: point.value)
                facts = {
                    "arm": run.arm,
                    "metric": most.written,
                    "value": most.value,
                    "limit": shown(limit),
                    "key": key,
                }
                yield Found("beyond-limit", "warning", (most.number.where,), facts)


def _limits(run: Imported) -> Iterator[tuple[str, float, str]]:
    found = settings(run)
    length, prompt = found.get("length"), found.get("prompt_length")
    if isinstance(length, int | float):
        yield "response_length", float(length), "length"
        if isinstance(prompt, int | float):
            yield "sequence_length", float(length + prompt), "prompt_length + length"
    for metric in ("accuracy", "clip_fraction", "mfu"):
        yield metric, 1.0, "1"


RULES = (
    planned_and_done,
    evaluations_missing,
    too_long_for_dates,
    planned_below_done,
    beyond_limits,
)
