"""Arms from sources: which runs are of one setting, and what each run measured.

A run told by two documents is one run (same path, same W&B id, same name); runs that differ in
nothing but their seed are one arm. Estimates are dropped here, so that nothing after can use them.
It is long because curves, cells and scores come in many tellings, and are put together here once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache, reduce
from typing import Any

import numpy as np

from kleash.compare.joining import SEED, arm_name, groups_of
from kleash.compare.read import (
    Cell,
    Imported,
    Number,
    Role,
    Scores,
    Series,
    Source,
    in_names,
    names,
)
from kleash.compare.read.course import Divergence, divergence, last_branch
from kleash.compare.read.given import tell_apart
from kleash.compare.read.names import Resolved
from kleash.compare.read.units import ABOVE, WHOLE
from kleash.stats import Floats

Place = tuple[float | None, float | None, int | None, str, str]
OUTCOMES = ("accuracy", "eval_reward", "performance", "reward", "val_loss")
EVALUATED = ("accuracy", "eval_reward")
FEW = 8  # trainings of an arm that a log without a seed may be of
SAME_POINTS = 2  # known points that must agree before a vague name is taken for a clear one


NONE: Floats = np.empty(0)
NONE.flags.writeable = False


@dataclass(eq=False)
class Curve:
    """One metric of one run over its steps, which rise; known points only."""

    metric: str
    axis: str
    steps: Floats = field(default_factory=lambda: NONE)
    values: Floats = field(default_factory=lambda: NONE)
    guessed: Floats = field(default_factory=lambda: NONE)
    """Steps that some source only estimates."""
    decimals: int | None = None
    others: list[Curve] = field(default_factory=list)
    """Tellings that contradict this one at some step: two histories under one name, kept apart."""

    def __len__(self) -> int:
        return len(self.steps)

    @property
    def estimated(self) -> int:
        """How many steps have an estimate and nothing better."""
        if not len(self.guessed):
            return 0
        return len(np.setdiff1d(self.guessed, self.steps))

    def agrees(self, steps: Floats, values: Floats, room: float) -> bool:
        """Whether the known values at common steps are the same within rounding."""
        if not len(self):
            return True
        _, ours, theirs = np.intersect1d(self.steps, steps, return_indices=True)
        return bool((np.abs(self.values[ours] - values[theirs]) <= room + 1e-12).all())

    def take(self, steps: Floats, values: Floats) -> None:
        """Points of another telling, where there are none yet."""
        if not len(self):
            self.steps, self.values = steps, values
            return
        fresh = ~np.isin(steps, self.steps)
        every = np.concatenate([self.steps, steps[fresh]])
        order = np.argsort(every, kind="stable")
        self.steps = every[order]
        self.values = np.concatenate([self.values, values[fresh]])[order]


@dataclass(eq=False)
class Replicate:
    """One training of an arm, whoever tells of it."""

    name: str
    seed: int | None
    runs: list[Imported] = field(default_factory=list)
    curves: dict[tuple[str, str], Curve] = field(default_factory=dict)
    cells: dict[tuple[str, Place], dict[int | None, Number]] = field(default_factory=dict)
    scores: list[Scores] = field(default_factory=list)
    measured: dict[str, Curve] = field(default_factory=dict)
    """Curves that nobody logged, made of the scores of single items."""
    means: dict[str, float | None] = field(default_factory=dict)
    """The mean of a metric that stands for the training, once it was worked out."""
    sets: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """By metric, the sets of data that its curve is the mean over."""
    unused: list[str] = field(default_factory=list)
    """Names under which other quantities stand beside one that names of its kind mean."""
    items: dict[Any, dict[str, float]] = field(default_factory=dict)
    """Scores by item of a metric and some of `scores`, once they were put together."""

    def curve(self, metric: str) -> Curve | None:
        """The metric's longest curve, over steps or epochs; of equals the one told first."""
        steps, epochs = self.curves.get((metric, "step")), self.curves.get((metric, "epoch"))
        if steps is None or epochs is None:
            return epochs if steps is None else steps
        return max((curve for (name, _), curve in self.curves.items() if name == metric), key=len)


@dataclass(eq=False)
class Arm:
    """A setting under study: its names, its trainings, and its config as each source tells it."""

    name: str
    names: list[str] = field(default_factory=list)
    replicates: list[Replicate] = field(default_factory=list)
    configs: list[tuple[str, Resolved, dict[str, Any]]] = field(default_factory=list)
    settings: dict[str, dict[str, list[Any]]] = field(default_factory=dict)
    """What each source says of a setting, once it was looked for."""
    role: Role = ""
    start: str = ""
    against: str = ""
    """The arms it began from and is compared with, as its source calls them."""
    apart: dict[Arm, list[Any]] = field(default_factory=dict, init=False, repr=False)
    """What differs from another arm, once that was worked out."""
    courses: dict[tuple[str, str], Any] = field(default_factory=dict, init=False)
    """The way of a metric over all trainings, once a report worked it out."""

    @cached_property
    def unknown(self) -> dict[str, list[Any]]:
        """The different values of each key that no table knows."""
        found: dict[str, list[Any]] = {}
        for _, config, plain in self.configs:
            for key in config.unknown:
                value, values = plain[key], found.setdefault(key, [])
                for other in values:
                    if type(value) is type(other) and value == other:
                        break
                else:
                    values.append(value)
        return found

    @cached_property
    def kinds(self) -> dict[str, str]:
        """Every key that some source tells of and a table knows, with its kind."""
        told = dict.fromkeys(key for _, config, _ in self.configs for key in config.values)
        return {key: known.kind for key in told if (known := names.key(key))}

    @cached_property
    def lost(self) -> list[Divergence]:
        """Where its trainings ended in no numbers, for each that did."""
        return [
            found
            for each in self.replicates
            if (found := next(filter(None, map(divergence, each.runs)), None))
        ]

    @property
    def coefficient(self) -> float | None:
        """What a nat of KL costs in this arm, by a config or else a name; 0: the leash is off."""
        for _, config, _ in self.configs:
            value = config.values.get("leash.coefficient")
            if isinstance(value, int | float) and not isinstance(value, bool):
                return float(value)
        told = (in_names.coefficient(name)[0] for name in self.names)
        return next((value for value in told if value is not None), None)


@lru_cache(maxsize=4096)
def known_name(metric: str) -> str:
    """A metric's name in our tables, or its own where it has none."""
    known = names.metric(metric)
    return known.name if known else metric


def gather(sources: Sequence[Source]) -> list[Arm]:
    """The arms of all sources together, in the order in which they are first told of."""
    tell_apart(sources)
    told = [(source, run) for source in sources for run in source.runs]
    groups = groups_of(sources, told)
    arms = [_arm([told[at] for at in group]) for group in groups]
    best = _telling(sources)
    for arm, group in zip(arms, groups, strict=True):
        fit = [told[at][1] for at in group if told[at][0] is best]
        arm.name = arm_name(fit[0]) if fit else arm.names[0]
    seen: Counter[str] = Counter()
    for arm in arms:
        seen[arm.name] += 1
        if seen[arm.name] > 1:
            arm.name = f"{arm.name} ({seen[arm.name]})"
    return arms


def _telling(sources: Sequence[Source]) -> Source | None:
    """The source whose names say most about the leash: arms are called as they are there."""

    def says(source: Source) -> int:
        labels = [arm_name(run) for run in source.runs]
        return sum(in_names.leash(each) is not None or "=" in each for each in labels)

    return max(sources, key=says, default=None)


def _plain(run: Imported) -> dict[str, Any]:
    return {key: setting.value for key, setting in run.config.items()}


def _arm(told: list[tuple[Source, Imported]]) -> Arm:
    labels = list(dict.fromkeys(arm_name(run) for _, run in told))
    arm = Arm(labels[0], labels)
    kept: dict[Any, Replicate] = {}
    first = told[0][1]
    arm.role, arm.start, arm.against = first.role, first.start, first.against
    for source, run in told:
        seed = run.seed if run.seed is not None else _seed_of(run)
        replicate = _training(kept, run, seed)
        replicate.runs.append(run)
        _add(replicate, run)
        plain = _plain(run)
        if plain:
            arm.configs.append((source.path, run.resolved, plain))
            arm.configs += [
                (source.path, names.resolve({name: other.value}), {name: other.value})
                for name, setting in run.config.items()
                for other in setting.others
            ]
    arm.replicates = list(kept.values())
    for replicate in arm.replicates:
        _name_outcome(replicate)
    return arm


def _training(kept: dict[Any, Replicate], run: Imported, seed: int | None) -> Replicate:
    """The training that a run is of: documents tell of one again and again, and so do logs whose
    files measured other things or at other places; two logs of one thing are two trainings."""
    if seed is not None or run.format == "markdown":
        return kept.setdefault(seed, Replicate(run.name, seed))
    held = [one for one in kept.values() if one.runs[0].format != "markdown"][:FEW]
    fit = [one for one in held if not _collide(one, run)]
    if fit:
        return fit[0]
    return kept.setdefault(run.where.file + run.name, Replicate(run.name, seed))


def _collide(replicate: Replicate, run: Imported) -> bool:
    """Whether a training measured the same as a run at the same place."""
    places = {(known_name(one.metric), _place(one), one.shots) for one in run.cells}
    if any((*key, shots) in places for key, cells in replicate.cells.items() for shots in cells):
        return True
    spots = {(one.metric, one.step, one.shots, one.split) for one in replicate.scores}
    if any((one.metric, one.step, one.shots, one.split) in spots for one in run.scores):
        return True
    for series in run.series:
        curve = replicate.curves.get((known_name(series.metric), series.axis))
        if curve is not None and len(curve) and len(series.steps):
            apart = curve.steps[-1] < series.steps.min() or series.last < curve.steps[0]
            if not apart:
                return True
    return False


def _place(cell: Cell) -> Place:
    return (cell.epoch, cell.step, cell.items, cell.split, cell.statistic)


def _seed_of(run: Imported) -> int | None:
    named = SEED.search(run.name)
    return int(named[1]) if named else None


def _add(replicate: Replicate, run: Imported) -> None:
    every = last_branch(run)[0]
    if run.format == "markdown":
        every = [in_percent(one) for one in every]
    several, others = _sets(run), other_quantities(run, every)
    for series in every:
        if series.axis == "time" or (called(series.metric, series.values), series.axis) in several:
            continue
        if id(series) in others:
            replicate.unused.append(series.metric)
        else:
            _add_series(replicate, series)
    for (metric, axis), sets in several.items():
        _add_sets(replicate, metric, axis, sets)
    # What was counted right is told last: where its share stands beside it, that is taken.
    for cell in sorted(run.cells, key=lambda one: one.metric.casefold() in names.COLUMNS["right"]):
        _add_cell(replicate, cell)
    replicate.scores += run.scores


def _add_cell(replicate: Replicate, cell: Cell) -> None:
    value = NONE if cell.number.value is None else np.array([cell.number.value])
    metric, number = called(cell.metric, value), cell.number
    if number.state != "known":
        return
    told = in_names.within(cell.metric) if metric in EVALUATED else in_names.Within()
    cell = replace(cell, items=cell.items or told.items, split=cell.split or told.split)
    if metric.casefold() in names.COLUMNS["right"] and cell.items and number.value is not None:
        if not 0 <= number.value <= cell.items:
            return
        metric, number = "accuracy", replace(number, value=number.value / cell.items, decimals=None)
    held = replicate.cells.setdefault((metric, _place(cell)), {})
    first = held.setdefault(cell.shots if cell.shots is not None else told.shots, number)
    if first is not number and first.value != number.value:
        replicate.unused.append(cell.metric)


def _sets(run: Imported) -> dict[tuple[str, str], list[Series]]:
    """Curves of one outcome on several sets of data, or with several shots, by outcome and axis."""
    found: dict[tuple[str, str], list[Series]] = {}
    for series in last_branch(run)[0]:
        metric = called(series.metric, series.values)
        if metric in EVALUATED and series.axis != "time":
            found.setdefault((metric, series.axis), []).append(series)
    return {
        key: sets
        for key, sets in found.items()
        if len({in_names.within(one.metric) for one in sets}) == len(sets) > 1
    }


def _add_sets(replicate: Replicate, metric: str, axis: str, sets: Sequence[Series]) -> None:
    """The curve of the whole, else the mean over sets that count the same; with shots, cells."""
    by_shots = [one for one in sets if in_names.within(one.metric).shots is not None]
    for series in by_shots:
        told = in_names.within(series.metric)
        for nth, (step, value) in enumerate(zip(series.steps, series.values, strict=True)):
            number = Number(float(value), "known", series.place(nth), series.decimals)
            epoch, at = (float(step), None) if axis == "epoch" else (None, float(step))
            cell = Cell(metric, number, epoch, at, told.shots, told.items, told.split)
            _add_cell(replicate, cell)
    rest = [one for one in sets if one not in by_shots]
    whole = [one for one in rest if not in_names.within(one.metric).split]
    if whole or len(rest) == 1:
        _add_series(replicate, (whole or rest)[0])
    elif rest:
        steps = reduce(np.intersect1d, [one.steps for one in rest])
        values = [one.values[np.searchsorted(one.steps, steps)] for one in rest if one.rises]
        if len(steps) and len(values) == len(rest):
            mean = replace(rest[0], steps=steps, values=np.mean(values, axis=0), decimals=None)
            _add_series(replicate, replace(mean, lines=None, times=None, estimated=None))
            replicate.sets[metric] = tuple(in_names.within(one.metric).split for one in rest)


def _add_series(replicate: Replicate, series: Series) -> None:
    metric = called(series.metric, series.values)
    curve = replicate.curves.get((metric, series.axis))
    steps, values = series.steps, series.values
    if curve is None:
        plain = series.estimated is None and series.finite and series.rises
        told = (steps, values, NONE, series.decimals) if plain else ()
        curve = replicate.curves[metric, series.axis] = Curve(metric, series.axis, *told)
        if plain:
            return
    if series.estimated is not None or not series.finite:
        usable = np.isfinite(values)
        if series.estimated is not None:
            curve.guessed = np.union1d(curve.guessed, steps[series.estimated])
            usable &= ~series.estimated
        steps, values = steps[usable], values[usable]
    for telling in (curve, *curve.others):
        places = [d for d in (telling.decimals, series.decimals) if d is not None]
        room = 10.0 ** -min(places) if places else 0.0
        if telling.agrees(steps, values, room):
            telling.take(steps, values)
            telling.decimals = min(places, default=None)
            return
    other = Curve(metric, series.axis, decimals=series.decimals)
    other.take(steps, values)
    curve.others.append(other)


def _name_outcome(replicate: Replicate) -> None:
    """性能 or "score" becomes the outcome whose known values it repeats."""
    vague = [key for key in replicate.curves if key[0] == "performance"]
    for key in vague:
        ours = replicate.curves[key]
        for metric in ("eval_reward", "accuracy", "reward"):
            other = replicate.curves.get((metric, key[1]))
            if other is None:
                continue
            both = len(np.intersect1d(ours.steps, other.steps))
            room = 10.0 ** -(ours.decimals or 9)
            if (
                both >= SAME_POINTS
                and not ours.others
                and other.agrees(ours.steps, ours.values, room)
            ):
                other.take(ours.steps, ours.values)
                other.guessed = np.union1d(other.guessed, ours.guessed)
                del replicate.curves[key]
                break


# --- which curves are of one quantity: tables know names, values tell what they are not


def called(metric: str, values: Floats) -> str:
    """The same of what was measured: what is above 1 is no fraction, whatever its name says."""
    known = names.metric(metric)
    if known is None:
        return metric
    return metric if known.unit == "fraction" and (values > ABOVE).any() else known.name


def in_percent(series: Series) -> Series:
    """A curve of shares as a document prints them, mostly without the sign: 57.3 is 0.573."""
    known, values = names.metric(series.metric), series.values[np.isfinite(series.values)]
    if known is None or known.unit != "fraction" or not len(values):
        return series
    if values.min() < 0 or values.max() > WHOLE or 2 * int((values > ABOVE).sum()) <= len(values):
        return series
    decimals = None if series.decimals is None else series.decimals + 2
    return replace(series, values=series.values / WHOLE, decimals=decimals)


def other_quantities(run: Imported, every: Sequence[Series]) -> set[int]:
    """Curves of a log that a table takes for what another of it is, and that have other values.

    A score and the same less a penalty for KL are both called reward. Reports are not logs: they
    tell one thing under several names, at several places.
    """
    if run.format == "markdown":
        return set()
    alike: dict[tuple[str, str], list[Series]] = {}
    for series in every:
        alike.setdefault((called(series.metric, series.values), series.axis), []).append(series)
    found = set()
    for same in alike.values():
        first = min(same, key=lambda one: names.rank(one.metric))
        for other in same if len(same) > 1 else ():
            if other.metric != first.metric and not _same_values(first, other):
                found.add(id(other))
    return found


def _same_values(ours: Series, theirs: Series) -> bool:
    """Whether two curves have common steps, and are the same there within rounding."""
    _, left, right = np.intersect1d(ours.steps, theirs.steps, return_indices=True)
    places = [d for d in (ours.decimals, theirs.decimals) if d is not None]
    room = 10.0 ** -min(places) if places else 0.0
    apart = np.abs(ours.values[left] - theirs.values[right])
    return bool(len(left)) and bool((apart[np.isfinite(apart)] <= room + 1e-12).all())
