"""Which factor did it: effects of settings from whatever runs there are, balanced or not.

One linear model over runs, with errors that seeds share (`stats.fitted`). It is refused where
factors act on each other or runs of some settings spread more than those of others. An effect is
told where these runs can tell it from all others; any other factor is refused, with the names of
those it is aliased with and the runs that would part them. Codes and facts, no sentences.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import Any

import numpy as np

from kleash import stats
from kleash.attribution.adding import Addition, additions
from kleash.attribution.factors import (
    COEFFICIENT,
    DOUBLING,
    Factor,
    Row,
    Sorted,
    outcome,
    rows_of,
    sort_settings,
    with_names,
)
from kleash.compare import VOIDING
from kleash.compare.arms import OUTCOMES, Arm, gather
from kleash.compare.recommend import parted
from kleash.compare.records import Because, Window
from kleash.compare.wished import wished
from kleash.errors import DataError
from kleash.findings import find
from kleash.imports import Source
from kleash.stats import FactorEffect, Floats, Interval

__all__ = [
    "DOUBLING",
    "Addition",
    "Attribution",
    "Effect",
    "Pair",
    "Refused",
    "Row",
    "attribute",
]
ALPHA = 0.05
SEED = "seed"
MOST_PAIRS = 45  # of ten factors


@dataclass(frozen=True)
class Effect:
    """What a factor's change from `theirs` to `ours` did; of a line, what a doubling did.

    `keys` are several where settings always change together: then the effect is of all of them.
    """

    keys: tuple[str, ...]
    ours: Any
    theirs: Any
    estimate: float
    interval: Interval | None
    """None where no run is left over to show a spread."""
    p: float | None = None
    adjusted_p: float | None = None

    @property
    def named(self) -> bool:
        """Whether this factor, and no other, did something."""
        return len(self.keys) == 1 and self.adjusted_p is not None and self.adjusted_p < ALPHA


@dataclass(frozen=True)
class Refused:
    """A factor whose effect cannot be told from that of others."""

    key: str
    aliased_with: tuple[str, ...]
    always: bool
    """Whether they change together in every run."""


@dataclass(frozen=True)
class Pair:
    """Two factors: whether these runs could show that one depends on the other, and if so how."""

    keys: tuple[str, str]
    estimable: bool
    effect: Effect | None = None
    """Where one number says it."""
    p: float | None = None
    """Of "neither acts on the other", among all pairs."""


@dataclass
class Attribution:
    """Everything that one call of `attribute` has to say."""

    metric: str
    unit: str
    rows: list[Row]
    df: int
    shared: float
    """The part of the spread that runs of one seed share, as far as these runs tell."""
    effects: list[Effect] = field(default_factory=list)
    refused: list[Refused] = field(default_factory=list)
    pairs: list[Pair] = field(default_factory=list)
    misfit: float | None = None
    """p of "effects add up"; None where no setting was run twice."""
    uneven: float | None = None
    """p of "runs spread alike"; None where too few settings were repeated."""
    settings: Sorted = field(default_factory=Sorted)
    add: list[Addition] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)
    aside: list[str] = field(default_factory=list)
    """Arms that tell no coefficient, where others do: they are not in the model."""
    broke_off: list[str] = field(default_factory=list)
    """Runs that ended before the others: they are not in the model."""
    over: Window | None = None
    """Where on their curves runs are judged."""
    by_name: list[str] = field(default_factory=list)
    """Factors that only the names of arms tell."""
    of_units: list[Because] = field(default_factory=list)
    """How percentages were told from fractions."""

    @property
    def doubts(self) -> list[str]:
        """Why one effect for each factor is no answer: then none is told."""
        acting = any(each.p is not None and each.p < ALPHA for each in self.pairs)
        found = {
            "factors_act": acting or (self.misfit is not None and self.misfit < ALPHA),
            "runs_uneven": self.uneven is not None and self.uneven < ALPHA,
        }
        return [code for code, there in found.items() if there]

    @property
    def seeds(self) -> int:
        """How many different seeds are told."""
        return len({row.seed for row in self.rows if row.seed is not None})


def attribute(
    sources: Sequence[Source], on: str = "", factors: Sequence[str] = (), units: Sequence[str] = ()
) -> Attribution:
    """What each setting did, as far as these runs can tell it apart from the others."""
    sources, on, of_units = wished(parted(sources)[0], on, units, OUTCOMES)
    arms, void = _sound(sources)
    metric = outcome(arms, on)
    judged = rows_of(arms, metric.name)
    rows = judged.kept
    found, by_name = sort_settings(rows), list[str]()
    if all(each.keys == (COEFFICIENT,) for each in found.factors):
        # No config tells anything else: then what names say is all there is.
        rows, by_name = with_names(rows)
    found = sort_settings(rows, factors)
    if not found.factors:
        labels = f"; {', '.join(found.labels)}: different in every run" if found.labels else ""
        raise DataError(
            f"no setting differs between the {len(rows)} runs: all that is left is the seed{labels}"
        )
    columns = {each.key: each.columns for each in found.factors}
    values = np.array([row.value for row in rows])
    design = stats.design(columns, len(rows))
    seeds = [row.seed for row in rows]
    fit = stats.fitted(values, design, seeds)
    aliased = stats.aliases(columns, len(rows)) | _with_seed(columns, seeds)
    made = Attribution(
        metric=metric.name,
        unit=metric.unit,
        rows=rows,
        df=len(rows) - stats.rank(design),
        shared=0.0 if fit is None else fit.shared,
        settings=found,
        left_out=void,
        aside=list(dict.fromkeys(row.arm for row in judged.aside)),
        broke_off=[row.called for row in judged.broke_off],
        over=judged.over,
        by_name=[key for each in found.factors for key in each.keys if key in by_name],
        of_units=of_units,
    )
    told = [each for each in found.factors if each.key not in aliased]
    made.effects = _adjusted(list(_effects(told, columns, values, fit)))
    made.refused = list(_refused(found.factors, aliased))
    made.pairs = _pairs(told, columns, values, seeds)
    spelt = [_spelt(found.factors, at) for at in range(len(rows))]
    made.misfit = stats.misfit(values, design, spelt, seeds)
    made.uneven = stats.uneven(values, spelt, seeds)
    if made.doubts:
        made.effects = []
    made.add = additions(rows, found.factors, len(made.refused))
    return made


def _sound(sources: Sequence[Source]) -> tuple[list[Arm], list[str]]:
    """The arms without those whose numbers are not of what was trained."""
    wrong = {str(each.facts.get("arm")) for each in find(sources) if each.code in VOIDING}
    arms = gather(sources)
    void = [arm for arm in arms if wrong & {arm.name, *arm.names}]
    return [arm for arm in arms if arm not in void], [arm.name for arm in void]


def _with_seed(
    columns: Mapping[str, Floats], seeds: Sequence[int | None]
) -> dict[str, tuple[str, ...]]:
    """Factors that change only with the seed, where too few seeds are left to show a spread."""
    told = [at if seed is None else f"seed {seed}" for at, seed in enumerate(seeds)]
    groups = list(dict.fromkeys(told))
    if len(groups) in (1, len(told)):
        return {}
    member = np.array([[float(each == group) for group in groups] for each in told])
    blocks = dict(columns) | {SEED: member[:, 1:]}
    between = {
        name: each
        for name, each in columns.items()
        if not stats.estimable(blocks, len(told), name)
        and stats.estimable(columns, len(told), name)
    }
    means = (member / member.sum(axis=0)).T @ stats.design(between, len(told))
    return dict.fromkeys(between, (SEED,)) if len(groups) <= stats.rank(means) else {}


def _effects(
    told: Sequence[Factor], columns: Mapping[str, Floats], values: Floats, fit: stats.Fitted | None
) -> list[Effect]:
    made, design = [], stats.design(columns, len(values))
    plain = np.linalg.lstsq(design, values, rcond=None)[0]
    for each in told:
        for at, level in zip(_where(columns, each.key), each.levels, strict=True):
            contrast = np.eye(design.shape[1])[at]
            effect = Effect(each.keys, level, each.reference, float(plain[at]), None)
            made.append(effect if fit is None else _with(effect, fit.effect(contrast)))
    return made


def _with(effect: Effect, found: FactorEffect) -> Effect:
    gap = found.interval
    return replace(effect, estimate=gap.estimate, interval=gap, p=found.p)


def _where(columns: Mapping[str, Floats], name: str) -> range:
    """Which columns of the design are a factor's; the first is that of 1s."""
    start = 1
    for key, each in columns.items():
        if key == name:
            return range(start, start + each.shape[1])
        start += each.shape[1]
    raise KeyError(name)


def _adjusted(effects: list[Effect]) -> list[Effect]:
    """p among all effects that were looked at (Holm)."""
    known = [each.p for each in effects if each.p is not None]
    if len(known) < len(effects) or not known:
        return effects
    return [
        replace(each, adjusted_p=float(p))
        for each, p in zip(effects, stats.holm(known), strict=True)
    ]


def _refused(factors: Sequence[Factor], aliased: Mapping[str, tuple[str, ...]]) -> list[Refused]:
    by_key = {each.key: each for each in factors}
    made = []
    for each in factors:
        others = [key for name in aliased.get(each.key, ()) for key in _names(by_key, name)]
        for key in each.keys:
            same = [other for other in each.keys if other != key]
            if same or others:
                made.append(Refused(key, (*same, *others), always=not others))
    return made


def _names(by_key: Mapping[str, Factor], name: str) -> tuple[str, ...]:
    return by_key[name].keys if name in by_key else (name,)


def _pairs(
    told: Sequence[Factor],
    columns: Mapping[str, Floats],
    values: Floats,
    seeds: Sequence[int | None],
) -> list[Pair]:
    """Every two factors that are told, and whether their acting on each other could be seen."""
    made = []
    for one, other in list(combinations(told, 2))[:MOST_PAIRS]:
        both = [one.columns[:, a] * other.columns[:, b] for a, b in _every(one, other)]
        more = dict(columns) | {"both": np.array(both).T}
        wide, n = stats.design(more, len(values)), len(values)
        seen = stats.estimable(more, n, "both") and n > stats.rank(wide)
        effect, p = None, None
        if seen:
            p = stats.added(values, stats.design(columns, n), more["both"], seeds)
        if seen and len(both) == 1:
            fit = stats.fitted(values, wide, seeds)
            if fit is not None:
                blank = Effect((one.key, other.key), one.levels[0], other.levels[0], 0.0, None)
                effect = _with(blank, fit.effect(np.eye(wide.shape[1])[-1]))
        made.append(Pair((one.key, other.key), seen, effect, p))
    known = [each.p for each in made if each.p is not None]
    adjusted = iter(stats.holm(known).tolist() if known else ())
    made = [each if each.p is None else replace(each, p=next(adjusted)) for each in made]
    return [
        replace(each, effect=each.effect and replace(each.effect, adjusted_p=each.p))
        for each in made
    ]


def _every(one: Factor, other: Factor) -> list[tuple[int, int]]:
    return [(a, b) for a in range(len(one.levels)) for b in range(len(other.levels))]


def _spelt(factors: Sequence[Factor], at: int) -> str:
    """A run's settings in one text: runs of the same are repeats."""
    return repr([each.values[at] for each in factors])
