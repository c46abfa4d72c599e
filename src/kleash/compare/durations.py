"""How long trainings took, as their logs tell: a total, or times of steps, epochs or rows."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Literal, NamedTuple

import numpy as np

from kleash.compare.arms import Arm, Curve, Replicate
from kleash.compare.read import names

Span = tuple[float, float]
Per = Literal["step", "epoch", "row", "run"]

_UNITS = {
    "ms": 1e-3,
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), 1.0),
    **dict.fromkeys(("min", "mins", "minutes"), 60.0),
    **dict.fromkeys(("h", "hr", "hrs", "hour", "hours"), 3600.0),
}
_PER: dict[str, Per] = {"step": "step", "update": "step", "iteration": "step", "iter": "step"}
_PER |= {"epoch": "epoch"}
_PER |= dict.fromkeys(("total", "wall", "walltime", "runtime", "elapsed", "gpu"), "run")
_FILLING = frozenset(("train", "training", "time", "timing", "perf", "per", "clock", "summary"))
_KNOWN = {"step_time": "step_time_s", "gpu_hours": "gpu_h"}  # metrics with names of their own


class Clock(NamedTuple):
    """What a name says of a time: its unit in seconds, and what it is the time of."""

    seconds: float
    per: Per
    of_devices: bool
    """Whether it counts the time of every device."""


@lru_cache(maxsize=1024)
def clock(name: str) -> Clock | None:
    """What a column such as `epoch_time_s` or `sec_per_step` counts; None if it is no whole time.

    The time of a part, as `eval_time_s` or `timing_s/gen`, is none.
    """
    words = re.findall(r"[a-z]+|[^\W_a-z]+", _KNOWN.get(name, name).casefold())
    units = [_UNITS[word] for word in words if word in _UNITS]
    per = {_PER[word] for word in words if word in _PER}
    if "runtime" in words:
        units = units or [1.0]
    others = [word for word in words if word not in {*_UNITS, *_PER, *_FILLING}]
    if len(units) != 1 or others or len(per) > 1:
        return None
    return Clock(units[0], per.pop() if per else "row", "gpu" in words)


def training_hours(arm: Arm) -> Span | None:
    """Hours that one training of an arm took, at least and at most; None where no log tells."""
    devices = devices_of(arm) or 1
    for replicate in arm.replicates:
        seconds = [run.seconds for run in replicate.runs if run.seconds]
        if seconds:
            return seconds[0] / 3600, seconds[0] / 3600
        for found, (low, high) in _spans(replicate, arm.number("steps")):
            hour = 3600 * (devices if found.of_devices else 1)
            return low / hour, high / hour
    return None


def devices_of(arm: Arm) -> int | None:
    """How many devices an arm trained on, where a config or a row tells."""
    if (asked := arm.number("hardware")) is not None:
        return int(asked)
    for replicate in arm.replicates:
        for (name, _), cells in replicate.cells.items():
            known = names.key(name)
            for number in cells.values() if known and known.name == "hardware" else ():
                if number.value:
                    return int(number.value)
    return None


def tells_device_hours(arm: Arm) -> bool:
    """Whether some log counts the time of every device."""
    told = {name for each in arm.replicates for name, _ in (*each.curves, *each.cells)}
    return any(found is not None and found.of_devices for found in map(clock, told))


def _spans(replicate: Replicate, asked: float | None) -> Iterator[tuple[Clock, Span]]:
    """Every telling of what a training took in seconds, of all steps that it made."""
    for (name, axis), curve in replicate.curves.items():
        found = clock(name)
        if found is not None and len(curve):
            last = _last(replicate, axis)
            # A run that was broken off would have gone on for as long as it was asked to.
            last = max(last, asked or 0.0) if axis == "step" else last
            seconds = _of_curve(found, curve, axis, last)
            if seconds is not None:
                yield found, (seconds, seconds)
    for name, cells in _cells(replicate).items():
        found = clock(name)
        times = None if found is None else _times(found, list(cells), asked)
        if found is not None and times:
            low, high = (float(np.mean(ends)) for ends in zip(*cells.values(), strict=True))
            yield found, (low * found.seconds * times, high * found.seconds * times)


def _cells(replicate: Replicate) -> dict[str, dict[float | None, Span]]:
    """Single numbers by name and by the epoch or step they stand at, with their ends."""
    found: dict[str, dict[float | None, Span]] = {}
    for (name, (epoch, step, *_)), cells in replicate.cells.items():
        for number in cells.values():
            low = number.value if number.low is None else number.low
            high = number.value if number.high is None else number.high
            if low is not None and high is not None:
                at = step if epoch is None else epoch
                found.setdefault(name, {}).setdefault(at, (low, high))
    return found


def _times(found: Clock, places: list[float | None], asked: float | None) -> float | None:
    """How often what the single numbers are the mean of was done; None where that is not told."""
    if places == [None]:
        return {"run": 1.0, "step": asked}.get(found.per)
    rows = sorted(at for at in places if at is not None)
    every = found.per == "row" and rows == [*range(1, len(places) + 1)]
    return float(len(rows)) if every or found.per == "epoch" else None


def _of_curve(found: Clock, curve: Curve, axis: str, last: float) -> float | None:
    """Seconds of a whole training by the times along it."""
    values = curve.values * found.seconds
    rising = len(values) > 2 and bool((np.diff(values) > 0).all())
    if found.per == axis:
        return float(np.median(values)) * last
    if found.per in ("run", "row") and rising and values[-1] > 2 * values[0]:
        return float(values[-1])  # time that has passed since the start
    if found.per == "run":
        return float(values[-1]) if len(values) == 1 else None
    whole = found.per == "epoch" or (len(curve) == last and curve.steps[-1] == last)
    return float(values.sum()) if found.per in ("row", "epoch") and whole else None


def _last(replicate: Replicate, axis: str) -> float:
    """The last step or epoch that any curve reaches."""
    ends = [curve.steps[-1] for (_, of), curve in replicate.curves.items() if of == axis and curve]
    return float(max(ends, default=0.0))
