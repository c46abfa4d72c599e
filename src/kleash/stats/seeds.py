"""Runs as replicates: what seeds say about a setting, paired, unpaired, and over many arms.

An interval over items is about checkpoints; only these are about settings. `crossed_seeds` is about
settings on items like those measured, the others on these items. In names, S is seeds, M arms and
N items.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from kleash.stats.intervals import (
    Errors,
    Floats,
    Interval,
    Width,
    checked,
    checked_table,
    gaps,
    mean_width,
    parts_interval,
    t_quantile,
)
from kleash.stats.special import stdtrit

LEAST = 1e-12  # of an SD: below it gaps are the same
LOOKS = (3, 5, 8, 12)  # seeds at which a study that grows may be looked at


@dataclass(frozen=True)
class SeedGap:
    """The gap of two arms over seeds."""

    interval: Interval
    """Its n is the number of seeds of each arm; of the smaller if they differ."""
    sd: float
    """Of the paired gaps, or of runs within an arm."""
    df: float
    """Of what seeds show."""
    errors: Errors
    """The standard error that seeds show; then what shared items add, where that was seen."""
    least: Errors = ()
    """The error that it has at least: as if two items had differed, one each way."""
    looks: int = 1
    """At how many it may be looked at: each has its share of alpha."""

    @property
    def p(self) -> float:
        """Two-sided, of a truth of 0; over all looks."""
        return min(1.0, self.width.p * self.looks)

    @property
    def items_error(self) -> float:
        """The standard error that no further seed makes smaller; 0 where it was not seen."""
        return self.errors[1][0] if len(self.errors) > 1 else 0.0

    @property
    def on_these_items(self) -> Interval:
        """The interval that takes the items for fixed: of the setting on these items alone."""
        inside = self.interval
        return parts_interval(inside.estimate, self.errors[:1], level=inside.level, n=inside.n)

    def at(self, level: float) -> Interval:
        """The interval at another level; what else is known of the gap depends on none."""
        low, high = self.width.at(level)
        return Interval(self.interval.estimate, low, high, level, self.interval.n)

    @property
    def width(self) -> Width:
        """The same at every level."""
        return Width(self.interval.estimate, self.errors, self.least)


def paired_seeds(ours: ArrayLike, theirs: ArrayLike, *, level: float = 0.95) -> SeedGap:
    """t over the gaps of runs that share a seed, S - 1 degrees of freedom.

    Gaps that are all the same and not 0 have no spread to be judged by; they get the p that their
    signs alone give, 2 ** (1 - S).
    """
    gap = gaps(ours, theirs)
    mean, error, sd = _over_seeds(gap)
    return seed_gap(mean, (error,), sd, level=level, n=len(gap))


def _over_seeds(gap: Floats) -> tuple[float, tuple[float, float], float]:
    """Mean, its error with the degrees of freedom, and the SD."""
    seeds = len(gap)
    if seeds < 2:
        raise ValueError(
            "one run per arm: nothing follows about the setting; run two seeds or more"
        )
    # The sums of `mean` and `std`, without what these look at first: a study has thousands of gaps.
    mean, df = float(np.add.reduce(gap)) / seeds, seeds - 1
    apart = gap - mean
    sd = math.sqrt(float(np.add.reduce(apart * apart)) / df)
    error = sd / math.sqrt(seeds)
    if sd < LEAST and mean:
        error = abs(mean) / float(stdtrit(df, 1 - 2.0**-seeds))
    return mean, (error, df), sd


def seed_gap(
    mean: float, errors: Errors, sd: float, *, level: float, n: int, least: Errors = ()
) -> SeedGap:
    """The record of a mean gap and the parts of its error, that of seeds first."""
    width = Width(mean, errors, least)
    interval = Interval(mean, *width.at(level), level, n)
    return SeedGap(interval, sd, errors[0][1], errors, least)


def crossed_seeds(
    gaps_SN: ArrayLike,
    clusters: Sequence[Hashable] | None = None,
    *,
    level: float = 0.95,
    span: float | None = None,
) -> SeedGap:
    """The mean gap of settings on items like these, from the gap of every item under every seed.

    What seeds show is that of `paired_seeds`; what shared items add (`item_error`) is the same
    under every seed and comes on top, so the interval is never narrower. NaN is not measured. Gaps
    that are the same under all seeds have a p of 2 ** (1 - S) here, too, or of their items.

    `span` is the largest gap that an item can have. With it the interval is never narrower than
    that of its items and two more that differ, one each way, by the size that gaps have where there
    are any (`typical_size`): of arms that are nearly one, what few items show is no measure of
    what others would.
    """
    mean, errors, sd = _crossed(gaps_SN, clusters)
    table = np.asarray(gaps_SN, dtype=np.float64)
    least = () if span is None else least_error(typical_size(table, span), *errors[1])
    return seed_gap(mean, errors, sd, level=level, n=len(table), least=least)


def typical_size(gaps_SN: Floats, span: float) -> float:
    """How much items differ that do, under the seed that shows it most; two count that do by all.

    Of scores of 0 and 1 it is 1; of graded ones it is soon what is seen.
    """
    most = np.fmax.reduce(np.abs(gaps_SN), axis=0)
    some = most[most > LEAST]
    return math.sqrt((float(some @ some) + 2 * span**2) / (len(some) + 2))


def least_error(size: float, error: float, df: float) -> Errors:
    """That of items, with two more that differ so much, one each way; `df` is one less than all."""
    return ((math.hypot(error, math.sqrt(2) * size / (df + 1)), df),)


def _crossed(
    gaps_SN: ArrayLike, clusters: Sequence[Hashable] | None
) -> tuple[float, Errors, float]:
    """Mean, the parts of its error, and the SD over seeds."""
    table = np.asarray(gaps_SN, dtype=np.float64)
    by_seed = row_means(table)
    mean, (error, df), sd = _over_seeds(gaps(by_seed, np.zeros(len(by_seed))))
    item = item_error(table, clusters)
    if sd < LEAST and mean:
        left = mean**2 - (t_quantile(item[1], 2.0 ** -len(table)) * item[0]) ** 2
        error = math.sqrt(max(0.0, left)) / abs(t_quantile(df, 2.0 ** -len(table)))
    return mean, ((error, df), item), sd


# --- what items add to a gap over seeds


def item_error(gaps_SN: Floats, clusters: Sequence[Hashable] | None = None) -> tuple[float, float]:
    """How far the items that seeds share move the mean of their gaps, and its degrees of freedom.

    Two seeds' mean gaps vary together by what their common items add: its square is the mean
    covariance of two seeds over items, (MS_items - MS_rest)/(S·N) if none is missing, cut at 0.
    Items of one cluster are added up first. Seeds that share no items get 0: their t has it all.
    """
    shares = _shares(gaps_SN, clusters)
    square, free = _between(shares), _free(shares)
    return math.sqrt(max(0.0, square) * (free + 1) / free), free


def item_error_apart(ours_SN: Floats, theirs_SN: Floats) -> tuple[float, float]:
    """The same for arms that share items and no seeds: within each arm, less between them."""
    ours, theirs = _shares(ours_SN), _shares(theirs_SN)
    square = _between(ours) + _between(theirs) - 2 * float(ours.mean(axis=0) @ theirs.mean(axis=0))
    free = min(_free(ours), _free(theirs))
    return math.sqrt(max(0.0, square) * (free + 1) / free), free


def row_means(table_SN: Floats) -> Floats:
    """Each seed's mean over its items; NaN is not measured."""
    if np.logical_and.reduce(np.isfinite(table_SN), axis=None):  # as `nanmean`, without its detours
        means: Floats = np.add.reduce(table_SN, axis=1) / table_SN.shape[1]
        return means
    return np.asarray(np.nanmean(table_SN, axis=1), dtype=np.float64)


def _shares(table_SN: Floats, clusters: Sequence[Hashable] | None = None) -> Floats:
    """What each item (or cluster) adds to its seed's mean, about that mean; NaN adds nothing."""
    there = np.isfinite(table_SN)
    if clusters is None and table_SN.ndim == 2 and np.logical_and.reduce(there, axis=None):
        n = table_SN.shape[1]
        about: Floats = (table_SN - np.add.reduce(table_SN, axis=1, keepdims=True) / n) / n
        return about
    counts = there.sum(axis=1, keepdims=True)
    if table_SN.ndim != 2 or not counts.all():
        raise ValueError(f"need a table of seeds with an item each or more: {table_SN.shape}")
    held = np.where(there, table_SN, 0.0)
    shares: Floats = np.where(there, held - held.sum(axis=1, keepdims=True) / counts, 0.0) / counts
    if clusters is not None:
        of = {name: at for at, name in enumerate(dict.fromkeys(clusters))}
        at = np.array([of[name] for name in clusters])
        shares = np.array([np.bincount(at, weights=row) for row in shares])
    return shares


def _between(shares_SN: Floats) -> float:
    """The mean product of two different rows."""
    seeds, total = len(shares_SN), shares_SN.sum(axis=0)
    return float(total @ total - (shares_SN**2).sum()) / (seeds * (seeds - 1))


def _free(shares_SN: Floats) -> float:
    return float(max(1, shares_SN.shape[1] - 1))


# --- arms whose runs share no seeds


def unpaired_seeds(
    ours: ArrayLike,
    theirs: ArrayLike,
    *,
    items: tuple[ArrayLike, ArrayLike] | None = None,
    span: float | None = None,
    level: float = 0.95,
) -> SeedGap:
    """Welch's interval; its SD is that of runs within an arm.

    `items` are the scores behind the means, [run, item] of each arm over the same items: with them
    the interval is for items like these, as that of `crossed_seeds`.
    """
    left, right = checked(ours), checked(theirs)
    if min(len(left), len(right)) < 2:
        raise ValueError(
            "one run per arm: nothing follows about the setting; run two seeds or more"
        )
    mean = float(left.mean() - right.mean())
    parts = np.array([left.var(ddof=1) / len(left), right.var(ddof=1) / len(right)])
    error = math.sqrt(parts.sum())
    free = np.array([len(left) - 1, len(right) - 1])
    df = float(parts.sum() ** 2 / (parts**2 / free).sum()) if error else float(free.sum())
    pooled = math.sqrt(float((free * [left.var(ddof=1), right.var(ddof=1)]).sum() / free.sum()))
    smaller = min(len(left), len(right))
    errors: Errors = ((error, df),)
    if items is not None:
        errors = (*errors, item_error_apart(*(np.asarray(side, float) for side in items)))
    least: Errors = ()
    if span is not None and items is not None:
        apart = np.subtract(*(np.nanmean(np.asarray(side, float), axis=0) for side in items))
        least = least_error(typical_size(apart[None], span), *errors[1])
    return seed_gap(mean, errors, pooled, level=level, n=smaller, least=least)


def look(
    ours: ArrayLike,
    theirs: ArrayLike,
    *,
    items: ArrayLike | None = None,
    looks: Sequence[int] = LOOKS,
    level: float = 0.95,
) -> SeedGap | None:
    """The paired gap when seeds are added until it is decided; None between declared looks.

    Each look has its share of alpha, so all of them together keep the level. `items` are the gaps
    [seed, item] behind the means: with them it is for items like these.
    """
    if len(gaps(ours, theirs)) not in looks:
        return None
    share = 1 - (1 - level) / len(looks)
    found = (
        paired_seeds(ours, theirs, level=share)
        if items is None
        else crossed_seeds(items, level=share)
    )
    return replace(found, interval=replace(found.interval, level=level), looks=len(looks))


# --- a trend over coefficients


@dataclass(frozen=True)
class Trend:
    """The slope per doubling of the coefficient, over the arms that have one above 0."""

    slope: float
    width: Width


def trend(coefficients: ArrayLike, values: ArrayLike, *, span: float | None = None) -> Trend:
    """Linear in the logarithm of the coefficient; 0, which has none, is left out.

    One slope for each row (seed or item) of `values` [row, arm], then t over rows: arms share their
    rows. With a third axis, [seed, arm, item], for items like these by `crossed_seeds`. `span`
    is the largest difference of two scores of an item; None where rows are seeds.
    """
    at, table = checked(coefficients), np.asarray(values, dtype=np.float64)
    if table.ndim == 2:
        checked_table(table, rows=2)
    if len(at) != table.shape[1] or (at < 0).any() or len(np.unique(at)) < len(at):
        raise ValueError("need one column of values for each coefficient, all different, none < 0")
    positive = at > 0
    logs = np.log2(at[positive])
    if len(logs) < 2:
        raise ValueError(f"{len(logs)} arm with a coefficient above 0 has no trend: give 2 or more")
    centred = logs - logs.mean()
    along = centred / (centred @ centred)
    largest = None if span is None else span * float(np.abs(along).sum()) / 2
    slopes = np.tensordot(table[:, positive], along, axes=(1, 0))
    if slopes.ndim == 2:
        width = crossed_seeds(slopes, span=largest).width
        return Trend(width.middle, width)
    if largest is None:
        width = paired_seeds(slopes, np.zeros(len(slopes))).width
        return Trend(width.middle, width)
    return Trend(float(slopes.mean()), mean_width(slopes, (-largest, largest)))
