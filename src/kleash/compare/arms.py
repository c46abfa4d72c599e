"""Arms from sources: which runs are of one setting, and what each run measured.

A run told by two documents is one run (same path, same W&B id, same name); runs that differ in
nothing but their seed are one arm. Estimates are dropped here, so that nothing after can use them.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from kleash.imports import Imported, Number, Scores, Series, Source, names
from kleash.imports.names import Resolved
from kleash.stats import Floats

Place = tuple[float | None, float | None, int | None, str, str]
OUTCOMES = ("accuracy", "eval_reward", "performance", "reward", "val_loss")
SEED = re.compile(r"[-_ ]?(?:seed|s)[-_=]?(\d{1,9})$", re.I)
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

    @property
    def coefficient(self) -> float | None:
        """What a nat of KL costs in this arm, if any source says; 0 where the leash is off."""
        for _, config, _ in self.configs:
            value = config.values.get("leash.coefficient")
            if isinstance(value, int | float) and not isinstance(value, bool):
                return float(value)
        if any(names.leash_in_name(name) is False for name in self.names):
            return 0.0
        return None


@lru_cache(maxsize=4096)
def known_name(metric: str) -> str:
    """A metric's name in our tables, or its own where it has none."""
    known = names.metric(metric)
    return known.name if known else metric


def gather(sources: Sequence[Source]) -> list[Arm]:
    """The arms of all sources together, in the order in which they are first told of."""
    told = [(source, run) for source in sources for run in source.runs]
    groups = _joined(sources, told)
    arms = [_arm([told[at] for at in group]) for group in groups]
    best = _telling(sources)
    for arm, group in zip(arms, groups, strict=True):
        fit = [told[at][1] for at in group if told[at][0] is best]
        arm.name = _label(fit[0]) if fit else arm.names[0]
    seen: Counter[str] = Counter()
    for arm in arms:
        seen[arm.name] += 1
        if seen[arm.name] > 1:
            arm.name = f"{arm.name} ({seen[arm.name]})"
    return arms


def _label(run: Imported) -> str:
    return run.arm or SEED.sub("", run.name) or run.name


def _telling(sources: Sequence[Source]) -> Source | None:
    """The source whose names say most about the leash: arms are called as they are there."""

    def says(source: Source) -> int:
        labels = [_label(run) for run in source.runs]
        return sum(names.leash_in_name(each) is not None or "=" in each for each in labels)

    return max(sources, key=says, default=None)


def _plain(run: Imported) -> dict[str, Any]:
    return {key: setting.value for key, setting in run.config.items()}


def _joined(sources: Sequence[Source], told: list[tuple[Source, Imported]]) -> list[list[int]]:
    """Indices of runs, grouped into arms: each key that two runs share joins them."""
    parent = list(range(len(told)))

    def root(at: int) -> int:
        while parent[at] != at:
            at = parent[at]
        return at

    first: dict[Any, int] = {}
    shared = _own_places(sources)
    for at, (source, run) in enumerate(told):
        for key in (*_keys(run), *shared.get((id(source), run.arm), ())):
            other = first.setdefault(key, at)
            if root(other) != root(at):
                late, early = sorted((root(other), root(at)), reverse=True)
                parent[late] = early
    groups: dict[int, list[int]] = {}
    for at in range(len(told)):
        groups.setdefault(root(at), []).append(at)
    return list(groups.values())


def _keys(run: Imported) -> Iterable[tuple[object, ...]]:
    """What makes two runs the same arm: its name, or a config that is equal but for the seed."""
    label = _label(run)
    yield ("name", names.spelling(label))
    if run.format == "markdown" or "leash.coefficient" not in run.resolved.values:
        return
    kept = frozenset(
        (key, repr(setting.value))
        for key, setting in run.config.items()
        if (known := names.key(key)) is None or known.kind not in ("seed", "harmless")
    )
    if len(kept) > 2:
        yield ("config", kept)


def _own_places(sources: Sequence[Source]) -> dict[tuple[int, str], list[tuple[str, ...]]]:
    """Paths and run ids that a document gives as the place of one of its arms alone."""
    found: dict[tuple[int, str], list[tuple[str, ...]]] = {}
    for source in sources:
        whose: dict[str, set[str]] = {}
        for fact in source.facts:
            if fact.kind in ("path", "wandb") and fact.arm:
                whose.setdefault(fact.text.strip().rstrip("/"), set()).add(fact.arm)
        for text, arms in whose.items():
            if len(arms) == 1:
                found.setdefault((id(source), next(iter(arms))), []).append(("place", text))
    return found


def _arm(told: list[tuple[Source, Imported]]) -> Arm:
    labels = list(dict.fromkeys(_label(run) for _, run in told))
    arm = Arm(labels[0], labels)
    kept: dict[Any, Replicate] = {}
    for source, run in told:
        seed = run.seed if run.seed is not None else _seed_of(run)
        # Documents tell of one run again and again; logs of two runs are two runs.
        key = seed if seed is not None or run.format == "markdown" else run.where.file + run.name
        replicate = kept.setdefault(key, Replicate(run.name, seed))
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


def _seed_of(run: Imported) -> int | None:
    named = SEED.search(run.name)
    return int(named[1]) if named else None


def _add(replicate: Replicate, run: Imported) -> None:
    for series in run.series:
        if series.axis != "time":
            _add_series(replicate, series)
    for cell in run.cells:
        if cell.number.state == "known":
            place = (cell.epoch, cell.step, cell.items, cell.split, cell.statistic)
            held = replicate.cells.setdefault((known_name(cell.metric), place), {})
            held.setdefault(cell.shots, cell.number)
    replicate.scores += run.scores


def _add_series(replicate: Replicate, series: Series) -> None:
    metric = known_name(series.metric)
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
    if not series.rises and (np.diff(steps) <= 0).any():
        # A resumed run tells some steps again: the later telling is the run that went on.
        steps, last = np.unique(steps[::-1], return_index=True)
        values = values[::-1][last]
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
