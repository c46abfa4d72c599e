"""Every statistic of every metric of every run, as one array: what a cell of a report may be.

Its axes are units (a run, or several seeds together), metrics, and places: a step, an epoch, a
window of steps, or a number for a whole curve. What nobody logged is not a number.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from kleash.stats import Floats
from kleash.written.curves import Thread

MOST = 60  # steps that are looked at one by one, though no label names them
WINDOWS = (5, 10, 20, 50, 100)  # last or first points that people take the mean of
SCORED = re.compile(r"acc|pass|score|success|correct|(?:^|[_/])em(?:$|[_/])|win", re.I)
FAMILY = 40  # metrics of one pattern, such as the accuracy at so many shots

Place = tuple[str, float, float]
"""What is taken of a curve, with one or two steps where it needs them."""
WHOLE: dict[str, Callable[[Floats, Floats], float]] = {
    "last": lambda _, v: v[-1],
    "max": lambda _, v: v.max(),
    "min": lambda _, v: v.min(),
    "first": lambda _, v: v[0],
    "mean": lambda _, v: v.mean(),
    "max at": lambda s, v: s[v.argmax()],
    "min at": lambda s, v: s[v.argmin()],
    "latest max at": lambda s, v: s[len(v) - 1 - v[::-1].argmax()],
    "sd": lambda _, v: v.std(ddof=1) if len(v) > 1 else np.nan,
    "population sd": lambda _, v: v.std(),
    "median": lambda _, v: np.median(v),
    "sum": lambda _, v: v.sum(),
    "range": lambda _, v: v.max() - v.min(),
    "last step": lambda s, _: s[-1],
    "points": lambda s, _: float(len(s)),
    "change": lambda _, v: v[-1] - v[0],
    "rise": lambda _, v: v.max() - v[0],
    "fall": lambda _, v: v.max() - v[-1],
    "relative change": lambda _, v: v[-1] / v[0] - 1 if v[0] else np.nan,
}
BEST = "at best mean"  # where the mean of a family of metrics is highest, such as that over shots
EPOCHS = ("max epoch at", "min epoch at")
PAST = ("above", "below", "count above", "count below")
STEPS = (*PAST, "max at", "min at", "latest max at", *EPOCHS, "last step", "points")
DERIVED = ("change", "rise", "fall", "relative change", "range")
AVERAGED = (
    "mean",
    "sd",
    "population sd",
    "median",
    "sum",
    "last mean",
    "first mean",
    "window mean",
)
AGGREGATES: dict[str, Callable[[Floats], Floats]] = {
    "mean": lambda a: a.mean(0),
    "sd": lambda a: a.std(0, ddof=1),
    "population sd": lambda a: a.std(0),
    "min": lambda a: a.min(0),
    "max": lambda a: a.max(0),
    "range": lambda a: a.max(0) - a.min(0),
}


@dataclass(frozen=True)
class Unit:
    """A run by its group and seed, or all of its group, in one of the ways to take them as one."""

    group: str
    seed: int | None
    over: str = ""


@dataclass
class Measures:
    """The array, the names of its axes, and where each number comes from."""

    units: list[Unit]
    metrics: list[str]
    places: list[Place]
    values: Floats
    """By unit, metric and place."""
    threads: Mapping[tuple[str, str], Thread]
    """By group and metric: a file in which it lies."""

    def __post_init__(self) -> None:
        self.at = {place: nth for nth, place in enumerate(self.places)}
        self.of = {unit: nth for nth, unit in enumerate(self.units)}
        self.groups = list(dict.fromkeys(unit.group for unit in self.units))
        self.seeds: dict[str, list[int | None]] = defaultdict(list)
        for unit in self.units:
            if not unit.over:
                self.seeds[unit.group].append(unit.seed)
        self.timed = np.array([is_time(one) for one in self.metrics])
        self.numbers = [tuple(map(int, re.findall(r"\d+", one))) for one in self.metrics]
        families: dict[str, list[int]] = defaultdict(list)
        for nth, one in enumerate(self.metrics):
            if "*" not in one:
                families[pattern(one)].append(nth)
        self.families = [f for f in families.values() if 1 < len(f) <= FAMILY]
        halves = [
            [thread.half if (thread := self.threads.get((unit.group, name))) else 0.0
             for name in self.metrics]
            for unit in self.units
        ]  # fmt: skip
        self.halves = np.array(halves)


def is_time(metric: str) -> bool:
    """Whether a metric is a time in seconds, by its name."""
    return bool(re.search(r"time|(?:^|[_/])(?:s|sec|secs|seconds)(?:$|[_/])|runtime", metric, re.I))


def pattern(metric: str) -> str:
    """A metric's name without its numbers."""
    return re.sub(r"\d+", "#", metric)


def measures(threads_: Iterable[Thread], asked: Sequence[Place]) -> Measures | None:
    """All that curves have, at the places that a report asks for and those that people like to."""
    runs: dict[tuple[str, int | None], dict[str, Thread]] = defaultdict(dict)
    epochs: dict[tuple[str, int | None], dict[str, Thread]] = defaultdict(dict)
    for one in threads_:
        kept = epochs if one.axis == "epoch" else runs
        kept[one.group, one.seed].setdefault(one.metric, one)
    for key, curves in epochs.items():
        for metric, one in curves.items():
            runs[key].setdefault(metric, one)
    for curves in runs.values():
        curves |= _means_of_families(curves)
    metrics = sorted({metric for curves in runs.values() for metric in curves})
    if not metrics:
        return None
    steps = sorted({at for curves in runs.values() for one in curves.values() for at in one.points})
    places = _places(asked, steps)
    units, rows = list[Unit](), list[Floats]()
    groups: dict[str, list[tuple[str, int | None]]] = defaultdict(list)
    for key in runs:
        groups[key[0]].append(key)
    for group, keys in groups.items():
        own = [_taken(runs[key], metrics, places) for key in keys]
        units += [Unit(*key) for key in keys]
        rows += own
        if len(keys) > 1:
            together = _joined([runs[key] for key in keys])
            units += [Unit(group, None, "curve"), *(Unit(group, None, o) for o in AGGREGATES)]
            rows.append(_taken(together, metrics, places))
            rows += [taken(np.stack(own)) for taken in AGGREGATES.values()]
    threads = {(k[0], m): one for k, curves in runs.items() for m, one in curves.items()}
    return Measures(units, metrics, places, np.stack(rows), threads)


def _places(asked: Sequence[Place], steps: Sequence[float]) -> list[Place]:
    made: list[Place] = [(kind, 0.0, 0.0) for kind in (*WHOLE, *EPOCHS, BEST)]
    made += [(kind, float(n), 0.0) for n in WINDOWS for kind in ("last mean", "first mean")]
    if len(steps) <= MOST:
        made += [("at", at, 0.0) for at in steps]
    return list(dict.fromkeys([*made, *asked]))


def _taken(curves: Mapping[str, Thread], metrics: Sequence[str], places: Sequence[Place]) -> Floats:
    """The numbers of one run at every place."""
    made = np.full((len(metrics), len(places)), np.nan)
    epochs = curves.get("epoch")
    for nth, metric in enumerate(metrics):
        one = curves.get(metric)
        if one is not None:
            steps = np.array(sorted(one.points))
            values = np.array([one.points[at] for at in steps])
            made[nth] = _of_curve(steps, values, _epochs(one, steps, epochs), places)
            made[nth, places.index((BEST, 0.0, 0.0))] = _at_best_mean(metric, curves)
    return made


def _at_best_mean(metric: str, curves: Mapping[str, Thread]) -> float:
    """A metric's value at the step where it and its like are best together."""
    for match in re.finditer(r"\d+", metric):
        whole = curves.get(f"{metric[: match.start()]}*{metric[match.end() :]}")
        if whole is not None:
            best = max(whole.points, key=lambda at: whole.points[at])
            return curves[metric].points.get(best, np.nan)
    return np.nan


def _epochs(one: Thread, steps: Floats, epochs: Thread | None) -> Floats:
    """In which epoch each step was."""
    if one.axis == "epoch":
        return steps
    if epochs is None:
        return np.full(len(steps), np.nan)
    return np.array([epochs.points.get(at, np.nan) for at in steps])


def _of_curve(steps: Floats, values: Floats, epochs: Floats, places: Sequence[Place]) -> Floats:
    found = np.full(len(places), np.nan)
    at = dict(zip(steps.tolist(), values.tolist(), strict=True))
    for nth, (kind, first, second) in enumerate(places):
        if kind == "at":
            found[nth] = at.get(first, np.nan)
        elif kind == BEST:
            continue
        elif kind in WHOLE:
            found[nth] = WHOLE[kind](steps, values)
        elif kind in EPOCHS:
            found[nth] = epochs[values.argmax() if kind.startswith("max") else values.argmin()]
        elif kind in ("last mean", "first mean"):
            some = values[-int(first) :] if kind[0] == "l" else values[: int(first)]
            found[nth] = some.mean() if len(values) > first else np.nan
        else:
            found[nth] = _of_part(kind, first, second, (steps, values, epochs))
    return found


def _of_part(kind: str, first: float, second: float, curve: tuple[Floats, Floats, Floats]) -> float:
    """A number of an epoch, of a window of steps ("window max"), or the first step past a limit."""
    steps, values, epochs = curve
    if kind in PAST:
        past = values >= first if kind.endswith("above") else values <= first
        if kind.startswith("count"):
            return float(past.sum())
        return float(steps[past.argmax()]) if past.any() else np.nan
    inside = epochs == first if kind.startswith("epoch") else (steps >= first) & (steps <= second)
    if not inside.any():
        return np.nan
    return float(WHOLE[kind.partition(" ")[2]](steps[inside], values[inside]))


def _joined(several: Sequence[Mapping[str, Thread]]) -> dict[str, Thread]:
    """The mean curves of several runs, of metrics that all of them have, at common steps."""
    made = {}
    for metric, first in several[0].items():
        every = [curves[metric] for curves in several if metric in curves]
        steps = set.intersection(*(set(one.points) for one in every))
        if len(every) == len(several) and steps:
            made[metric] = _mean(first, metric, every, sorted(steps))
    return made


def _mean(first: Thread, metric: str, every: Sequence[Thread], steps: Sequence[float]) -> Thread:
    points = {at: sum(one.points[at] for one in every) / len(every) for at in steps}
    return Thread(first.group, None, metric, first.axis, points, first.file, first.line)


def _means_of_families(curves: Mapping[str, Thread]) -> dict[str, Thread]:
    """Means over metrics whose names differ in one number or one word: over shots, over sets."""
    families: dict[str, list[str]] = defaultdict(list)
    for metric in curves:
        for match in re.finditer(r"\d+|(?:^|(?<=[_/ ]))[A-Za-z][A-Za-z\d]*(?=[_/ ])", metric):
            if match.group().isdigit() or SCORED.search(metric):
                families[f"{metric[: match.start()]}*{metric[match.end() :]}"].append(metric)
    made = {}
    for name, members in families.items():
        every = [curves[metric] for metric in members]
        steps = set.intersection(*(set(one.points) for one in every))
        if 1 < len(members) <= FAMILY and steps:
            made[name] = _mean(every[0], name, every, sorted(steps))
    return made
