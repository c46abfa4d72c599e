"""Arms from sources: which runs are of one setting, and what each run measured.

A run told by two documents is one run (same path, same W&B id, same name); runs that differ in
nothing but their seed are one arm. Files of training and of evaluation measure nothing in common:
those that are called alike, but for words that say nothing, or are alone with their coefficient,
are of one arm, too. Estimates are dropped here, so that nothing after can use them. It is long
because curves, cells and scores come in many tellings, and are put together here once.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache, reduce
from itertools import combinations, pairwise
from typing import Any

import numpy as np

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
from kleash.compare.read.given import are_alike, setup, tell_apart
from kleash.compare.read.names import Resolved
from kleash.compare.read.units import ABOVE, WHOLE
from kleash.stats import Floats

Place = tuple[float | None, float | None, int | None, str, str]
OUTCOMES = ("accuracy", "eval_reward", "performance", "reward", "val_loss")
EVALUATED = ("accuracy", "eval_reward")
FEW = 8  # trainings of an arm that a log without a seed may be of
SAME_POINTS = 2  # known points that must agree before a vague name is taken for a clear one

SEED = re.compile(r"[-_ ]?(?:seed|s)[-_=]?(\d{1,9})$", re.I)
COUNTERS = frozenset(("epoch", "step", "global_step", "learning_rate", "lr", "seed"))
_WORD = re.compile(r"\d+(?:\.\d+)?(?:e-?\d+)?|[a-z]+|[α-ω]|[\u4e00-\u9fff]+")
_GENERIC = frozenset(
    ("eval", "evaluation", "train", "training", "metrics", "results", "result", "log", "logs",
     "run", "runs", "grpo", "rl", "test", "val", "history", "accuracy", "acc", "summary", "items"),
)  # fmt: skip
Told = tuple[Source, Imported]

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
    settings: dict[str, dict[str, list[Any]]] = field(default_factory=dict)
    """By key, as written where no table knows it: what each source says, in its different words."""
    role: Role = ""
    start: str = ""
    against: str = ""
    """The arms it began from and is compared with, as its source calls them."""

    def says(self, key: str) -> list[Any]:
        """All that is said of a setting, the first telling first."""
        return [value for values in self.settings.get(key, {}).values() for value in values]

    def number(self, key: str) -> float | None:
        """A setting that is a number."""
        said = (each for each in self.says(key) if isinstance(each, int | float))
        return next((float(each) for each in said if not isinstance(each, bool)), None)

    @cached_property
    def kinds(self) -> dict[str, str]:
        """Every key that is told, with its kind; "" where no table knows it."""
        return {key: known.kind if (known := names.key(key)) else "" for key in self.settings}

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
        value = self.number("leash.coefficient")
        if value is not None:
            return value
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
        _tell(arm, source, run.resolved, {k: setting.value for k, setting in run.config.items()})
        for name, other in ((k, each) for k, s in run.config.items() for each in s.others):
            _tell(arm, source, names.resolve({name: other.value}), {name: other.value})
    arm.replicates = list(kept.values())
    for replicate in arm.replicates:
        _name_outcome(replicate)
    return arm


def _tell(arm: Arm, source: Source, config: Resolved, plain: Mapping[str, Any]) -> None:
    """What a config says, under known names and else as it is written."""
    for key, value in (*config.values.items(), *((key, plain[key]) for key in config.unknown)):
        values = arm.settings.setdefault(key, {}).setdefault(source.path, [])
        # Seeds of one arm mostly say the same: the first is asked without a detour.
        known = values and type(values[0]) is type(value) and values[0] == value
        if not known and not any(equal(value, other) for other in values):
            values.append(value)


def equal(ours: Any, theirs: Any) -> bool:
    """Whether two values say the same."""
    return (type(ours) is type(theirs) and ours == theirs) or names.same(ours, theirs)


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


# --- which runs are of one arm, whoever tells of them and in however many files


def arm_name(run: Imported) -> str:
    """What the arm of a run is called: as the source says, or the run's name without its seed."""
    return run.arm or SEED.sub("", run.name) or run.name


def coefficient(run: Imported) -> float | None:
    """The coefficient of a run, by its config or else by its name."""
    value = run.resolved.values.get("leash.coefficient")
    if isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    return in_names.coefficient(arm_name(run))[0]


def groups_of(sources: Sequence[Source], told: Sequence[Told]) -> list[list[int]]:
    """Indices of runs, grouped into arms."""
    groups = _Groups(len(told))
    first: dict[Any, int] = {}
    shared = _own_places(sources)
    for at, (source, run) in enumerate(told):
        for key in (*_keys(run), *shared.get((id(source), run.arm), ())):
            one = first.setdefault(key, at)
            if key[0] != "config" or _are_one(told[one], told[at]):
                groups.join(one, at)
    logs = [group for group in groups.all() if not any(_is_named(told[at]) for at in group)]
    for ours, theirs in _complements([[told[at][1] for at in group] for group in logs]):
        groups.join(logs[ours][0], logs[theirs][0])
    return groups.all()


class _Groups:
    """Numbers, some of which belong together."""

    def __init__(self, count: int) -> None:
        self.parent = list(range(count))

    def root(self, at: int) -> int:
        while self.parent[at] != at:
            at = self.parent[at]
        return at

    def join(self, one: int, other: int) -> None:
        if self.root(one) != self.root(other):
            late, early = sorted((self.root(one), self.root(other)), reverse=True)
            self.parent[late] = early

    def all(self) -> list[list[int]]:
        found: dict[int, list[int]] = {}
        for at in range(len(self.parent)):
            found.setdefault(self.root(at), []).append(at)
        return list(found.values())


def _are_one(ours: Told, theirs: Told) -> bool:
    """Whether runs of one config are of one arm: from two paths, only where nothing denies it."""
    (source, run), (other, twin) = ours, theirs
    if source is other:
        return True
    return not (source.name or other.name) and are_alike(run, twin)


def _is_named(told: Told) -> bool:
    """Whether a report or the user says what a run is of."""
    return told[1].format == "markdown" or bool(told[0].name)


def _keys(run: Imported) -> Iterable[tuple[object, ...]]:
    """What makes two runs the same arm: its name, or a config that is equal but for the seed."""
    yield ("name", names.spelling(arm_name(run)))
    if run.format == "markdown" or "leash.coefficient" not in run.resolved.values:
        return
    kept = setup(run)
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


# --- training and evaluation in files of their own


def _complements(groups: Sequence[Sequence[Imported]]) -> Iterator[tuple[int, int]]:
    """Groups that measured nothing in common and are told alike: by words, else a coefficient."""
    measures = [_measures(group) for group in groups]
    words = [_words(arm_name(group[0])) for group in groups]
    leashes = [coefficient(group[0]) for group in groups]
    joined = set[int]()
    for told in (words, leashes):
        alike: dict[Hashable, list[int]] = {}
        for at, key in enumerate(told):
            if key not in (None, frozenset()) and at not in joined:
                alike.setdefault(key, []).append(at)
        for same in alike.values():
            apart = all(not measures[a] & measures[b] for a, b in combinations(same, 2))
            apart = apart and sum(not measures[at] for at in same) <= 1
            if len(same) > 1 and apart and not _contradict([groups[at][0] for at in same]):
                yield from pairwise(same)
                joined |= set(same)


def _contradict(runs: Sequence[Imported]) -> bool:
    """Whether two configs cannot be of one run."""
    every = [run.resolved.values for run in runs]
    return any(
        not names.same(one[key], other[key])
        for one, other in combinations(every, 2)
        for key in one.keys() & other.keys()
    )


def _measures(group: Sequence[Imported]) -> set[tuple[str, str]]:
    """What runs measured, and as what: a curve, a cell, or scores of items."""
    found = set[tuple[str, str]]()
    for run in group:
        found |= {(one.metric, one.axis) for one in run.series}
        found |= {(one.metric, "cell") for one in run.cells}
        found |= {(one.metric, "items") for one in run.scores}
    known = {(one, names.metric(one)) for one, _ in found}
    called = {one: metric.name if metric else one for one, metric in known}
    settings = {one for one, metric in known if metric is None and names.key(one)}
    aside = COUNTERS | settings  # what a row says of the run is nothing that it measured
    return {(called[one], form) for one, form in found if called[one] not in aside}


def _words(text: str) -> frozenset[str]:
    """The words and numbers of a name by which runs differ, the coefficient as one."""
    leash, rest = in_names.coefficient(text)
    told = {f"{float(one):g}" if one[0].isdigit() else one for one in _WORD.findall(rest)}
    return frozenset(told - _GENERIC | ({f"kl {leash:g}"} if leash is not None else set()))
