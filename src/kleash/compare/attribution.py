"""The effect of one setting from runs that differ in several: `kleash compare --effect KEY`.

One linear model over runs, with errors that seeds share (`stats.fitted`); every setting that
differs is in it, so an effect is told with all others equal. It is refused where settings act on
each other, where runs of some spread more than those of others, and where these runs cannot tell
it from others. Codes and facts, no sentences. The file is long because what became of every
setting, a factor or not, belongs to the answer.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations, product
from pathlib import Path
from typing import Any

import numpy as np

from kleash import stats
from kleash.compare.arms import OUTCOMES, Arm, Replicate, gather
from kleash.compare.checks import find
from kleash.compare.comparison import VOIDING
from kleash.compare.confounds import FOLLOWING, is_cosmetic
from kleash.compare.items import broken_off, run_means, shared_end, shared_run_means
from kleash.compare.outcome import in_one_unit, known_metric
from kleash.compare.read import Source, in_names, names
from kleash.compare.read.tables import TABLES
from kleash.compare.recommend import parted
from kleash.compare.records import Because, Window
from kleash.errors import ConfigError, DataError
from kleash.stats import Floats, Interval

ALPHA = 0.05
COEFFICIENT = "leash.coefficient"
DOUBLING = "doubling"
FEWEST_RUNS = 3
LINEAR_FROM = 3  # different numbers from which a setting is a line in their logarithm
MOST_PAIRS = 45  # of ten settings
SEED = "seed"


@dataclass(frozen=True)
class Row:
    """One run: its outcome, and its settings under known names where they have one."""

    name: str
    arm: str
    seed: int | None
    value: float
    settings: Mapping[str, Any]
    numbers: Mapping[str, float] = field(default_factory=dict)
    """What else stands in its row of a table: settings or results, no name tells which."""

    def setting(self, key: str) -> Any:
        """What a run says of a setting; None if nothing."""
        return self.settings.get(key, self.numbers.get(key))


@dataclass(frozen=True)
class Factor:
    """A setting that differs between runs, as columns of a design, one for each of its levels.

    It has several keys where settings change exactly together.
    """

    keys: tuple[str, ...]
    values: tuple[Any, ...]
    reference: Any
    levels: tuple[Any, ...]
    """Each a value against the reference; of a line, DOUBLING and perhaps 0."""
    columns: Floats


@dataclass(frozen=True)
class Change:
    """What a change from `theirs` to `ours` did; of a line, what a doubling did."""

    ours: Any
    theirs: Any
    estimate: float
    interval: Interval | None = None
    """None where no run is left over to show a spread."""
    p: float | None = None
    """Among all effects of the model (Holm): any of them might have been asked for."""


@dataclass
class Effect:
    """What one setting did, as far as these runs tell."""

    keys: tuple[str, ...]
    """The setting, and those that change exactly when it does."""
    metric: str
    unit: str
    rows: list[Row]
    df: int
    others: list[str]
    """Settings that are held equal."""
    outside: list[str]
    """Those that may differ and are not in the model."""
    aliased_with: tuple[str, ...] = ()
    """Settings that its effect cannot be told from, where they change without it."""
    changes: list[Change] = field(default_factory=list)
    acting: list[tuple[tuple[str, str], float]] = field(default_factory=list)
    """Pairs of settings that act on each other, with p among all pairs (Holm)."""
    unseen: list[tuple[str, str]] = field(default_factory=list)
    """Pairs of which these runs cannot show it."""
    misfit: float | None = None
    """p of "effects add up"; None where no setting was run twice."""
    uneven: float | None = None
    """p of "runs spread alike"; None where too few settings were repeated."""
    left_out: dict[str, list[str]] = field(default_factory=dict)
    """Names by reason: `void` arms, arms `aside` without a coefficient, runs that `broke_off`."""
    over: Window | None = None
    by_name: list[str] = field(default_factory=list)
    """Settings that only the names of arms tell."""
    of_units: list[Because] = field(default_factory=list)

    @property
    def refusals(self) -> list[str]:
        """Why no number is the effect of this setting alone."""
        codes = {
            "effect_together": len(self.keys) > 1,
            "effect_aliased": bool(self.aliased_with),
            "effect_acting": bool(self.acting) or (self.misfit or 1.0) < ALPHA,
            "effect_uneven": (self.uneven or 1.0) < ALPHA,
        }
        return [code for code, holds in codes.items() if holds]

    @property
    def seeds(self) -> int:
        """How many different seeds are told."""
        return len({row.seed for row in self.rows if row.seed is not None})


def effect_of(
    key: str, sources: Sequence[Source], on: str = "", units: Sequence[str] = ()
) -> Effect:
    """What a setting did, all others equal, or why these runs cannot tell."""
    sources, on, of_units = in_one_unit(parted(sources)[0], on, units)
    wrong = {str(each.facts.get("arm")) for each in find(sources) if each.code in VOIDING}
    arms = gather(sources)
    void = [arm for arm in arms if wrong & {arm.name, *arm.names}]
    metric = _outcome([arm for arm in arms if arm not in void], on)
    rows, over, left_out = _rows([arm for arm in arms if arm not in void], metric.name)
    known = names.key(key)
    key = key if known is None else known.name
    by_name: list[str] = []
    # Our own runs tell all of their settings: whatever they are called says nothing more.
    whole = all(run.format == "kleash" for source in sources for run in source.runs)
    if not whole and all(factor.keys == (COEFFICIENT,) for factor in _factors(rows)[0]):
        # No config tells anything else: then what names of arms say is all there is.
        rows, by_name = _with_names(rows)
    factors, outside = _factors(rows, key)
    ours = next((factor for factor in factors if key in factor.keys), None)
    if ours is None:
        differing = ", ".join(each for factor in factors for each in factor.keys) or "none"
        raise ConfigError(
            f"{key} does not differ between the {len(rows)} runs: of the settings they tell these"
            f" do: {differing}"
        )
    columns = {factor.keys[0]: factor.columns for factor in factors}
    values, seeds = np.array([row.value for row in rows]), [row.seed for row in rows]
    design = stats.design(columns, len(rows))
    fit = stats.fitted(values, design, seeds)
    aliased = stats.aliases(columns, len(rows)) | _with_seed(columns, seeds)
    settings = [repr([factor.values[at] for factor in factors]) for at in range(len(rows))]
    alone = [factor for factor in factors if factor.keys[0] not in aliased]
    acting, unseen = _pairs(alone, columns, values, seeds)
    found = Effect(
        keys=(key, *(each for each in ours.keys if each != key)),
        metric=metric.name,
        unit=metric.unit,
        rows=rows,
        df=len(rows) - stats.rank(design),
        others=[each for factor in factors if factor is not ours for each in factor.keys],
        outside=outside,
        aliased_with=aliased.get(ours.keys[0], ()),
        acting=acting,
        unseen=unseen,
        misfit=stats.misfit(values, design, settings, seeds),
        uneven=stats.uneven(values, settings, seeds),
        left_out={"void": [arm.name for arm in void], **left_out},
        over=over,
        by_name=by_name,
        of_units=of_units,
    )
    if not set(found.refusals) - {"effect_together"}:
        found.changes = _changes(alone, columns, values, fit)[ours.keys[0]]
    return found


# --- runs as rows


def _outcome(arms: Sequence[Arm], wanted: str) -> names.Metric:
    """What runs are judged by: as asked, else the first outcome that most have, and differ in."""
    if wanted:
        return known_metric(wanted)
    means = {name: [m for arm in arms for _, m in run_means(arm, name)] for name in OUTCOMES}
    most = max(means, key=lambda name: (len(set(means[name])) > 1, len(means[name])))
    return known_metric(most)


def _rows(
    arms: Sequence[Arm], metric: str
) -> tuple[list[Row], Window | None, dict[str, list[str]]]:
    """Every run that has the outcome, judged where all of them end; and who is left out, and why.

    Where a coefficient is swept, arms that tell none are starts or baselines.
    """
    runs = [(arm, run, mean) for arm in arms for run, mean in run_means(arm, metric)]
    rows = [_row(*each) for each in runs]
    values = [row.settings[COEFFICIENT] for row in rows if COEFFICIENT in row.settings]
    sweep = len(values) >= FEWEST_RUNS and len(set(values)) > 1
    fit = [at for at, row in enumerate(rows) if not sweep or COEFFICIENT in row.settings]
    early = broken_off([runs[at][1] for at in fit], metric)
    whole = [at for nth, at in enumerate(fit) if nth not in early]
    left_out = {
        "aside": list(dict.fromkeys(row.arm for at, row in enumerate(rows) if at not in fit)),
        "broke_off": [_label(rows[at]) for at in fit if at not in whole],
    }
    judged = [runs[at][1] for at in whole]
    means = shared_run_means(judged, metric) if judged else []
    made = [replace(rows[at], value=mean) for at, mean in zip(whole, means, strict=True)]
    if len(made) < FEWEST_RUNS:
        raise DataError(f"{len(made)} runs tell their {metric}: an effect takes {FEWEST_RUNS}")
    if len({row.value for row in made}) == 1:
        raise DataError(
            f"all {len(made)} runs scored the same: either one model was measured again and again,"
            " or nothing had an effect"
        )
    return made, shared_end(judged, metric), left_out


def _label(row: Row) -> str:
    return row.name if row.arm in row.name else f"{row.arm}/{row.name}"


def _row(arm: Arm, replicate: Replicate, value: float) -> Row:
    plain: dict[str, Any] = {}
    numbers: dict[str, float] = {}
    for run in replicate.runs:
        for key, setting in run.config.items():
            plain.setdefault(key, setting.value)
        for cell in run.cells:
            # A table of runs has settings in its columns; one that is a known key is no outcome.
            known = names.metric(cell.metric)
            if cell.number.value is None or (known and known.name in OUTCOMES):
                continue
            if names.key(cell.metric):
                plain.setdefault(cell.metric, cell.number.value)
            elif known is None and run.format in TABLES:
                numbers.setdefault(cell.metric, cell.number.value)
    found = names.resolve(plain)
    settings = {**{key: plain[key] for key in found.unknown}, **found.values}
    if arm.coefficient is not None:
        settings.setdefault(COEFFICIENT, arm.coefficient)
    settings = {key: "null" if each is None else each for key, each in settings.items()}
    return Row(replicate.name, arm.name, replicate.seed, value, settings, numbers)


def _with_names(rows: Sequence[Row]) -> tuple[list[Row], list[str]]:
    """Rows with the settings that names of arms tell, and which these are."""
    arms = list(dict.fromkeys(row.arm for row in rows))
    by_arm = dict(zip(arms, in_names.settings(arms), strict=True))
    fresh = {key for named in by_arm.values() for key in named}
    fresh -= {key for row in rows for key in row.settings}
    for key in list(fresh):
        values = {by_arm[row.arm].get(key) for row in rows}
        if names.key(key) is None and len(values) == len(rows):
            fresh.remove(key)  # each run is called otherwise: that is its name
    made = []
    for row in rows:
        more = {key: value for key, value in by_arm[row.arm].items() if key in fresh}
        made.append(replace(row, settings={**row.settings, **more}))
    return made, sorted(fresh)


# --- settings as factors


def _factors(rows: Sequence[Row], wanted: str = "") -> tuple[list[Factor], list[str]]:
    """Settings that differ, and those that may differ and are no factor unless asked for."""
    groups: dict[tuple[int, ...], list[str]] = {}
    outside = []
    numbers = dict.fromkeys(key for row in rows for key in row.numbers)
    for key in (*_keys(rows), *numbers):
        places = partition([row.setting(key) for row in rows])
        if len(set(places) - {-1}) < 2:
            outside += [key] if -1 in places and key not in numbers else []
        elif key == wanted or (key not in numbers and not _is_label(key, rows, places)):
            groups.setdefault(places, []).append(key)
        else:
            outside.append(key)
    found = []
    for keys in groups.values():
        first, *also = sorted(keys, key=_rank)
        found.append(factor((first, *also), [row.setting(first) for row in rows]))
    return sorted(found, key=lambda each: _rank(each.keys[0])), outside


def _keys(rows: Sequence[Row]) -> Iterator[str]:
    for key in dict.fromkeys(key for row in rows for key in row.settings):
        known = names.key(key)
        if known is None:
            if not is_cosmetic(key):
                yield key
        elif known.kind not in ("seed", "harmless") and key not in FOLLOWING:
            yield key


def _rank(key: str) -> int:
    """The treatment gives a factor its name, then what is known to matter."""
    known = names.key(key)
    return 2 if known is None else ("treatment", "must match").index(known.kind)


def _is_label(key: str, rows: Sequence[Row], places: tuple[int, ...]) -> bool:
    """Whether a setting goes with the seed, as a start may, or is unknown and each run's own."""
    if key != "start" and names.key(key) is not None:
        return False
    seeds = [row.seed for row in rows]
    pairs = len(set(zip(places, seeds, strict=True)))
    of_seed = None not in seeds and pairs == len(set(seeds)) == len(set(places)) < len(rows)
    return of_seed or (key != "start" and len(set(places) - {-1}) == len(rows))


def partition(values: Sequence[Any]) -> tuple[int, ...]:
    """Which values are the same, as numbers from 0 in the order they come; -1 is not told."""
    different = {repr(value): value for value in values if value is not None}
    marks = {text: text if len(different) == 1 else _mark(v) for text, v in different.items()}
    places = {mark: at for at, mark in enumerate(dict.fromkeys(marks.values()))}
    return tuple(-1 if value is None else places[marks[repr(value)]] for value in values)


def _mark(value: Any) -> Any:
    """What equal values share: of a number its size, of a file that is there its content."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    if not isinstance(value, str):
        return repr(value)
    try:
        with Path(value).open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except (OSError, ValueError):
        return names.spelling(value)


def factor(keys: tuple[str, ...], values: Sequence[Any]) -> Factor:
    """The columns of a setting: a line in the logarithm of three numbers or more, else levels.

    A line is a slope per doubling; 0, which has no logarithm, is a level against the others' mean.
    """
    places = partition(values)
    numeric = all(isinstance(v, int | float) and not isinstance(v, bool) and v >= 0 for v in values)
    if numeric and len(set(places)) >= LINEAR_FROM:
        positive = np.array(values, dtype=float) > 0
        logs = np.log2(np.where(positive, values, 1.0))
        middle = float(logs[positive].mean())
        columns = [np.where(positive, logs - middle, 0.0), ~positive]
        levels = (DOUBLING,) if positive.all() else (DOUBLING, "0")
        table = np.column_stack(columns[: len(levels)])
        return Factor(keys, tuple(values), 2.0**middle, levels, table)
    counts = Counter(places)
    usual = max(counts, key=lambda place: (counts[place], -place))
    others = [place for place in dict.fromkeys(places) if place != usual]
    table = np.array([[float(place == other) for place in places] for other in others]).T
    named = tuple(values[places.index(other)] for other in others)
    return Factor(keys, tuple(values), values[places.index(usual)], named, table)


# --- the model


def _with_seed(
    columns: Mapping[str, Floats], seeds: Sequence[int | None]
) -> dict[str, tuple[str, ...]]:
    """Factors that change only with the seed, where too few seeds are left to show a spread."""
    labels = [at if seed is None else f"seed {seed}" for at, seed in enumerate(seeds)]
    groups, n = list(dict.fromkeys(labels)), len(labels)
    if len(groups) in (1, n):
        return {}
    member = np.array([[float(each == group) for group in groups] for each in labels])
    blocks = dict(columns) | {SEED: member[:, 1:]}
    between = {
        name: each
        for name, each in columns.items()
        if not stats.estimable(blocks, n, name) and stats.estimable(columns, n, name)
    }
    means = (member / member.sum(axis=0)).T @ stats.design(between, n)
    return dict.fromkeys(between, (SEED,)) if len(groups) <= stats.rank(means) else {}


def _changes(
    factors: Sequence[Factor],
    columns: Mapping[str, Floats],
    values: Floats,
    fit: stats.Fitted | None,
) -> dict[str, list[Change]]:
    """By factor, what each of its levels did; p among all of them."""
    design = stats.design(columns, len(values))
    plain = np.linalg.lstsq(design, values, rcond=None)[0]
    owners = [name for name, each in columns.items() for _ in range(each.shape[1])]
    made = []
    for each in factors:
        places = [at + 1 for at, name in enumerate(owners) if name == each.keys[0]]
        for at, level in zip(places, each.levels, strict=True):
            change = Change(level, each.reference, float(plain[at]))
            if fit is not None:
                found = fit.effect(np.eye(design.shape[1])[at])
                gap = found.interval
                change = replace(change, estimate=gap.estimate, interval=gap, p=found.p)
            made.append((each.keys[0], change))
    if fit is not None:
        adjusted = stats.holm([change.p for _, change in made if change.p is not None])
        made = [(name, replace(change, p=float(p)))
                for (name, change), p in zip(made, adjusted, strict=True)]  # fmt: skip
    return {name: [change for key, change in made if key == name] for name, _ in made}


def _pairs(
    factors: Sequence[Factor],
    columns: Mapping[str, Floats],
    values: Floats,
    seeds: Sequence[int | None],
) -> tuple[list[tuple[tuple[str, str], float]], list[tuple[str, str]]]:
    """Pairs of factors that act on each other, and pairs of which nobody can see it."""
    tested: list[tuple[tuple[str, str], float]] = []
    unseen, n = [], len(values)
    for one, other in list(combinations(factors, 2))[:MOST_PAIRS]:
        pair = (one.keys[0], other.keys[0])
        both = np.array([a * b for a, b in product(one.columns.T, other.columns.T)]).T
        more = dict(columns) | {"both": both}
        if stats.estimable(more, n, "both") and n > stats.rank(stats.design(more, n)):
            p = stats.added(values, stats.design(columns, n), both, seeds)
            tested += [] if p is None else [(pair, p)]
        else:
            unseen.append(pair)
    adjusted = stats.holm([p for _, p in tested]) if tested else ()
    judged = zip(tested, adjusted, strict=True)
    return [(pair, float(p)) for (pair, _), p in judged if p < ALPHA], unseen
