"""Runs as rows: what each scored, and in which settings they differ.

A setting that is the same everywhere is no factor, one that follows the seed is the seed's, and one
that no two runs share is a label. Settings that always change together are one factor with several
names: which of them did it, these runs cannot say.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from kleash.compare.arms import OUTCOMES, Arm, Replicate
from kleash.compare.confounds import COSMETIC, FOLLOWING, alike
from kleash.compare.records import Window
from kleash.compare.seeds import broken_off, run_means, shared_end, shared_run_means
from kleash.compare.wished import known_metric
from kleash.errors import ConfigError, DataError
from kleash.imports import in_names, names
from kleash.imports.tables import TABLES
from kleash.stats import Floats

COEFFICIENT = "leash.coefficient"
FEWEST_RUNS = 3
LINEAR_FROM = 3  # different numbers from which a factor is a line in their logarithm
APART = ("seed", "harmless")
OF_SEED = ("start",)  # each seed may have a start of its own; of any other setting it is an alias


@dataclass(frozen=True)
class Row:
    """One run: its outcome, and its settings under known names where they have one."""

    name: str
    arm: str
    seed: int | None
    value: float
    settings: Mapping[str, Any]
    written: Mapping[str, str]
    """How each setting is called where it was written."""
    path: str
    format: str
    numbers: Mapping[str, float] = field(default_factory=dict)
    """What else stands in its row of a table: a setting or a result, no name tells which."""

    @property
    def called(self) -> str:
        """Its name, with its arm's where that does not tell it."""
        return self.name if self.arm in self.name else f"{self.arm}/{self.name}"


@dataclass(frozen=True)
class Factor:
    """A setting that differs between runs, as columns of a design.

    `values` has one for each run, None where it is not told. `also` are settings that change
    exactly when this one does.
    """

    key: str
    values: tuple[Any, ...]
    reference: Any
    levels: tuple[Any, ...]
    """One for each column: a value against the reference; of a line, DOUBLING or 0."""
    columns: Floats
    also: tuple[str, ...] = ()

    @property
    def keys(self) -> tuple[str, ...]:
        """All its names."""
        return (self.key, *self.also)


DOUBLING = "doubling"


@dataclass
class Sorted:
    """What became of every setting: a factor, or the reason why it is none."""

    factors: list[Factor] = field(default_factory=list)
    constant: list[str] = field(default_factory=list)
    untold: list[str] = field(default_factory=list)
    """The same wherever it is told, and not told everywhere."""
    of_seed: list[str] = field(default_factory=list)
    labels: list[str] = field(default_factory=list)
    ignored: list[str] = field(default_factory=list)
    """Factors that were not asked for: what they did is in the effects of those that were."""
    numbers: list[str] = field(default_factory=list)
    """Numbers of a table that differ, and may be settings or results."""


def outcome(arms: Sequence[Arm], wanted: str) -> names.Metric:
    """What runs are judged by: as asked, else the first outcome that most have, and differ in."""
    if wanted:
        return known_metric(wanted, OUTCOMES)
    means = {name: [m for arm in arms for _, m in run_means(arm, name)] for name in OUTCOMES}
    # One in which runs differ, if there is any: of the others nothing did anything.
    found = names.metric(max(means, key=lambda name: (len(set(means[name])) > 1, len(means[name]))))
    assert found is not None  # every outcome is in the table
    return found


@dataclass(frozen=True)
class Rows:
    """The runs that are judged, and apart those that are not."""

    kept: list[Row]
    aside: list[Row]
    """Those that tell no coefficient, where others do."""
    broke_off: list[Row]
    """A few that ended before the others."""
    over: Window | None
    """Where on their curves all are judged."""


def rows_of(arms: Sequence[Arm], metric: str) -> Rows:
    """Every run that has the outcome, judged where all of them end."""
    runs = [(arm, run, mean) for arm in arms for run, mean in run_means(arm, metric)]
    every = [_row(*each) for each in runs]
    leashed = [COEFFICIENT in row.settings for row in every]
    if not _is_sweep(every):
        leashed = [True] * len(every)
    aside = [row for row, there in zip(every, leashed, strict=True) if not there]
    kept = [at for at, there in enumerate(leashed) if there]
    early = broken_off([runs[at][1] for at in kept], metric)
    broke = [every[at] for number, at in enumerate(kept) if number in early]
    kept = [at for number, at in enumerate(kept) if number not in early]
    judged = [runs[at][1] for at in kept]
    means = shared_run_means(judged, metric) if kept else []
    made = [replace(every[at], value=mean) for at, mean in zip(kept, means, strict=True)]
    if len(made) < FEWEST_RUNS:
        raise DataError(
            f"{len(made)} runs tell their {metric}: what did it takes {FEWEST_RUNS} or more"
        )
    if len({each.value for each in made}) == 1:
        raise DataError(
            f"all {len(made)} runs scored the same: either one model was measured again and again,"
            " or there is nothing to attribute"
        )
    return Rows(made, aside, broke, shared_end(judged, metric))


def _row(arm: Arm, replicate: Replicate, value: float) -> Row:
    plain: dict[str, Any] = {}
    numbers: dict[str, float] = {}
    for run in replicate.runs:
        for key, setting in run.config.items():
            plain.setdefault(key, setting.value)
        for cell in run.cells:
            # A table of runs has settings in its columns; one that is a known key is no outcome.
            if cell.number.value is None or _measures(cell.metric):
                continue
            if names.key(cell.metric):
                plain.setdefault(cell.metric, cell.number.value)
            elif names.metric(cell.metric) is None and run.format in TABLES:
                numbers.setdefault(cell.metric, cell.number.value)
    found = names.resolve(plain)
    settings = {**{key: plain[key] for key in found.unknown}, **found.values}
    if arm.coefficient is not None:
        settings.setdefault(COEFFICIENT, arm.coefficient)
    first = replicate.runs[0]
    return Row(
        name=replicate.name,
        arm=arm.name,
        seed=replicate.seed,
        value=value,
        settings={key: _kept(each) for key, each in settings.items()},
        written={key: found.written.get(key, key) for key in settings},
        path=first.where.file,
        format=first.format,
        numbers={key: value for key, value in numbers.items() if key not in settings},
    )


def _is_sweep(rows: Sequence[Row]) -> bool:
    """Whether enough runs tell different coefficients: what tells none is then a start, no arm."""
    told = [row.settings[COEFFICIENT] for row in rows if COEFFICIENT in row.settings]
    return len(told) >= FEWEST_RUNS and len(set(told)) > 1


def with_names(rows: Sequence[Row]) -> tuple[list[Row], list[str]]:
    """Rows with the settings that names of arms tell, and which these are."""
    arms = list(dict.fromkeys(row.arm for row in rows))
    told = dict(zip(arms, in_names.settings(arms), strict=True))
    fresh = {key for named in told.values() for key in named}
    fresh -= {key for row in rows for key in row.settings}
    for key in list(fresh):
        values = {told[row.arm].get(key) for row in rows}
        if names.key(key) is None and len(values) == len(rows):
            fresh.remove(key)  # each run is called otherwise: that is its name
    made = []
    for row in rows:
        more = {key: value for key, value in told[row.arm].items() if key in fresh}
        written = {**row.written, **{key: key for key in more}}
        made.append(replace(row, settings={**row.settings, **more}, written=written))
    return made, sorted(fresh)


def _measures(name: str) -> bool:
    known = names.metric(name)
    return known is not None and known.name in OUTCOMES


def _kept(value: Any) -> Any:
    return "null" if value is None else value


def sort_settings(rows: Sequence[Row], asked: Sequence[str] = ()) -> Sorted:
    """Every setting, each in its place; with `asked`, factors are those alone."""
    found = Sorted()
    groups: dict[tuple[int, ...], list[str]] = {}
    wanted = [known.name if (known := names.key(each)) else each for each in asked]
    keys = list(_keys(rows))
    numbers = list(dict.fromkeys(key for row in rows for key in row.numbers))
    for key in wanted:
        if key not in (*keys, *numbers):
            raise ConfigError(f"no run tells {key!r}: they tell {', '.join((*keys, *numbers))}")
    for key in dict.fromkeys((*wanted, *keys)):
        groups_of = partition([told(row, key) for row in rows])
        place = _place(key, rows, groups_of, asked=key in wanted)
        if wanted and key not in wanted:
            found.ignored += [key] if place is None else []
        elif place is None:
            groups.setdefault(groups_of, []).append(key)
        else:
            getattr(found, place).append(key)
    for keys_of in groups.values():
        first, *also = sorted(keys_of, key=_rank)
        found.factors.append(factor(first, [told(row, first) for row in rows], also))
    found.factors.sort(key=lambda each: _rank(each.key))
    found.numbers = [
        key
        for key in numbers
        if key not in wanted and len({row.numbers.get(key) for row in rows}) > 1
    ]
    return found


def told(row: Row, key: str) -> Any:
    """What a run says of a setting; None if nothing."""
    return row.settings.get(key, row.numbers.get(key))


def _keys(rows: Sequence[Row]) -> Iterator[str]:
    for key in dict.fromkeys(key for row in rows for key in row.settings):
        known = names.key(key)
        if known is None:
            if not key.lower().rsplit(".", 1)[-1].endswith(COSMETIC):
                yield key
        elif known.kind not in APART and key not in FOLLOWING:
            yield key


def _rank(key: str) -> int:
    """The treatment gives a group its name, then what is known to matter."""
    known = names.key(key)
    return 2 if known is None else ("treatment", "must match").index(known.kind)


def partition(values: Sequence[Any]) -> tuple[int, ...]:
    """Which values are the same, as numbers from 0 in the order they come; -1 is not told."""
    places: dict[Any, int] = {}
    seen: list[Any] = []
    found = []
    for value in values:
        if value is None:
            found.append(-1)
            continue
        # By its spelling first: `alike` opens files, and a thousand runs have many values.
        mark = names.spelling(value) if isinstance(value, str) else repr(value)
        key = (type(value).__name__, mark)
        if key not in places:
            near = seen if not isinstance(value, str) or _is_file(value) else ()
            same = (at for at, other in enumerate(near) if alike(value, other))
            places[key] = next(same, len(seen))
            if places[key] == len(seen):
                seen.append(value)
        found.append(places[key])
    return tuple(found)


def _is_file(text: str) -> bool:
    try:
        return Path(text).is_file()
    except (OSError, ValueError):
        return False


def _place(key: str, rows: Sequence[Row], groups: tuple[int, ...], *, asked: bool) -> str | None:
    """Why a setting is no factor; None if it is one."""
    told = set(groups) - {-1}
    if len(told) < 2:
        return "untold" if -1 in groups else "constant"
    if asked:
        return None
    seeds = [row.seed for row in rows]
    pairs = set(zip(groups, seeds, strict=True))
    own = key in OF_SEED or names.key(key) is None
    if own and None not in seeds and len(pairs) == len(set(seeds)) == len(set(groups)) < len(rows):
        return "of_seed"
    if names.key(key) is None and len(told) == len(rows):
        return "labels"
    return None


def factor(key: str, values: Sequence[Any], also: Sequence[str] = ()) -> Factor:
    """The columns of a setting: a line in the logarithm of three numbers or more, else levels."""
    groups = partition(values)
    numbers = [value for value in values if _is_number(value) and value >= 0]
    if len(numbers) == len(values) and len(set(groups)) >= LINEAR_FROM:
        return _line(key, np.array(numbers, dtype=float), also)
    counts = Counter(groups)
    usual = max(counts, key=lambda group: (counts[group], -group))
    others = [group for group in dict.fromkeys(groups) if group != usual]
    columns = [[float(group == other) for group in groups] for other in others]
    return Factor(
        key=key,
        values=tuple(values),
        reference=values[groups.index(usual)],
        levels=tuple(values[groups.index(other)] for other in others),
        columns=np.array(columns).T,
        also=tuple(also),
    )


def _line(key: str, numbers: Floats, also: Sequence[str]) -> Factor:
    """One slope per doubling; 0, which has no logarithm, is a level against the others' mean."""
    positive = numbers > 0
    logs = np.zeros(len(numbers))
    logs[positive] = np.log2(numbers[positive]) - np.log2(numbers[positive]).mean()
    columns, levels = [logs], [DOUBLING]
    if not positive.all():
        columns.append((~positive).astype(float))
        levels.append("0")
    return Factor(
        key=key,
        values=tuple(numbers.tolist()),
        reference=float(np.exp(np.log(numbers[positive]).mean())),
        levels=tuple(levels),
        columns=np.array(columns).T,
        also=tuple(also),
    )


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
