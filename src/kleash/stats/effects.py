"""Which of several factors did it: least squares over runs, with errors that seeds share.

Runs are rows, factors are columns or sets of them. What cannot be told apart is found by rank,
never by the size of a number. Effects add up by assumption; `misfit` says where repeated runs
disagree with that. In names, N is runs.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import ArrayLike

from kleash.stats.intervals import Floats, Interval, checked, checked_table, t_interval
from kleash.stats.special import fdtrc, stdtr

MOST_TOGETHER = 3  # factors tried together when looking for what one is aliased with
# What part of the spread runs of one seed share, from none to nearly all. Before anything is seen
# every share is as likely as another, so each stands for the stretch around it.
SHARED = np.array([0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.97, 0.99, 0.997, 0.9999])
STRETCHES = np.log(np.gradient(SHARED))

Columns = Mapping[str, Floats]
"""By factor, its columns [run, column]."""


def design(columns: Columns, runs: int) -> Floats:
    """All columns side by side, after the one that is 1 for every run."""
    return np.column_stack([np.ones(runs), *columns.values()])


def rank(matrix: Floats) -> int:
    """How many columns tell something new."""
    return int(np.linalg.matrix_rank(matrix)) if matrix.shape[1] else 0


def estimable(columns: Columns, runs: int, name: str) -> bool:
    """Whether a factor's effect is its own: no other factors, taken together, make its columns."""
    others = {key: each for key, each in columns.items() if key != name}
    return (
        rank(design(columns, runs)) == rank(design(others, runs)) + rank(columns[name])
        and rank(columns[name]) == columns[name].shape[1]
    )


def aliases(columns: Columns, runs: int) -> dict[str, tuple[str, ...]]:
    """By factor that is not estimable, the fewest others without which it would be."""
    found = {}
    for name in columns:
        if not estimable(columns, runs, name):
            found[name] = _in_the_way(columns, runs, name)
    return found


def _in_the_way(columns: Columns, runs: int, name: str) -> tuple[str, ...]:
    others = [key for key in columns if key != name]
    for size in range(1, MOST_TOGETHER + 1):
        fit = [
            gone
            for gone in combinations(others, size)
            if estimable({k: v for k, v in columns.items() if k not in gone}, runs, name)
        ]
        if fit:
            return tuple(dict.fromkeys(key for gone in fit for key in gone))
    return tuple(others)


@dataclass(frozen=True)
class FactorEffect:
    """What a contrast of the model is worth: its interval has n runs behind it, p is two-sided."""

    interval: Interval
    p: float


@dataclass(frozen=True)
class Fitted:
    """Least squares for every share of the spread that seeds may cause, and how likely each is."""

    basis: Floats
    """Columns to independent coordinates: a contrast of the first becomes one of the second."""
    estimates: Floats
    covariances: Floats
    weights: Floats
    df: int
    n: int

    @property
    def shared(self) -> float:
        """The part of the spread that runs of one seed share, by its mean."""
        return float(self.weights @ SHARED[: len(self.weights)])

    def effect(self, contrast: ArrayLike, *, level: float = 0.95) -> FactorEffect:
        """An estimable contrast of the columns (the first is that of 1s), by t."""
        along = checked(contrast) @ self.basis
        middles = self.estimates @ along
        errors = np.sqrt(np.einsum("i,kij,j->k", along, self.covariances, along))
        estimate = float(self.weights @ middles)
        if len(middles) == 1:
            found = t_interval(estimate, float(errors[0]), self.df, level=level, n=self.n)
        else:
            low = self._quantile(middles, errors, (1 - level) / 2)
            high = self._quantile(middles, errors, (1 + level) / 2)
            found = Interval(estimate, low, high, level, self.n)
        # Both tails by themselves: 1 less the one would be below 0 where it is nearly all there is.
        below, above = (self._below(0.0, side * middles, errors) for side in (1, -1))
        return FactorEffect(found, min(1.0, 2 * min(below, above)))

    def _below(self, value: float, middles: Floats, errors: Floats) -> float:
        return float(self.weights @ stdtr(self.df, (value - middles) / errors))

    def _quantile(self, middles: Floats, errors: Floats, share: float) -> float:
        low, high = float((middles - errors).min()), float((middles + errors).max())
        while self._below(low, middles, errors) > share:
            low -= high - low
        while self._below(high, middles, errors) < share:
            high += high - low
        for _ in range(60):
            middle = (low + high) / 2
            below = self._below(middle, middles, errors)
            low, high = (middle, high) if below < share else (low, middle)
        return (low + high) / 2


def fitted(
    values_N: ArrayLike, design_NK: ArrayLike, seeds: Sequence[Hashable] | None = None
) -> Fitted | None:
    """The fit; None where no run is left over, or none differs from what is fitted.

    Runs of one seed share a part of their error. How large a part is not known, so each share is
    fitted and weighed by its restricted likelihood; the interval is that of all of them together.
    """
    values, columns = checked(values_N), checked_table(design_NK)
    n = len(values)
    left, sizes, right = np.linalg.svd(columns, full_matrices=False)
    kept = sizes > sizes.max() * max(columns.shape) * np.finfo(float).eps
    left, basis = left[:, kept], right[kept].T / sizes[kept]
    df = n - left.shape[1]
    rest = values - left @ (left.T @ values)
    if df < 1 or float(rest @ rest) <= 1e-20 * max(float(values @ values), 1e-300):
        return None
    member = _member(seeds, n)
    several = 1 < member.shape[1] < n
    fits = [_at(values, left, member, share) for share in (SHARED if several else SHARED[:1])]
    logs = np.array([each[2] for each in fits]) + STRETCHES[: len(fits)]
    weights = np.exp(logs - logs.max())
    return Fitted(
        basis=basis,
        estimates=np.array([each[0] for each in fits]),
        covariances=np.array([each[1] for each in fits]),
        weights=weights / weights.sum(),
        df=max(1, df - several),  # one for the share, which was read off the same runs
        n=n,
    )


def _member(seeds: Sequence[Hashable] | None, n: int) -> Floats:
    """[run, seed]: 1 where a run has a seed; one that is not told (None) is nobody else's."""
    told = [None] * n if seeds is None else list(seeds)
    groups = [("untold", at) if seed is None else ("told", seed) for at, seed in enumerate(told)]
    places = {group: at for at, group in enumerate(dict.fromkeys(groups))}
    member = np.zeros((n, len(places)))
    member[np.arange(n), [places[group] for group in groups]] = 1.0
    return member


def _at(values: Floats, left: Floats, member: Floats, share: float) -> tuple[Floats, Floats, float]:
    """Estimate, covariance and restricted log-likelihood if seeds cause that share."""
    # The spread of a seed's runs has two sizes: that of their mean, and that around it.
    counts = member.sum(axis=0)
    around, along = 1 - share, 1 - share + share * counts

    def apart(table: Floats) -> Floats:
        means = (member / counts).T @ table
        moved = (table - member @ means) / math.sqrt(around)
        whitened: Floats = moved + member @ (means / np.sqrt(along)[:, None])
        return whitened

    columns, y = apart(left), apart(values[:, None])[:, 0]
    inner = np.linalg.inv(columns.T @ columns)
    estimate = inner @ (columns.T @ y)
    rest = y - columns @ estimate
    df = len(values) - left.shape[1]
    square = float(rest @ rest)
    sizes = float(np.log(along).sum()) + (len(values) - len(counts)) * math.log(around)
    log = float(np.linalg.slogdet(inner)[1]) / 2 - sizes / 2
    return estimate, inner * (square / df), log - df / 2 * math.log(square)


def misfit(
    values_N: ArrayLike,
    design_NK: ArrayLike,
    settings: Sequence[Hashable],
    seeds: Sequence[Hashable] | None = None,
) -> float | None:
    """p of "effects add up", from runs of the same settings; None where none is repeated.

    The F test for lack of fit: how far settings lie from the fit, against how far repeats do.
    """
    return added(values_N, design_NK, _member(settings, len(settings)), seeds)


def added(
    values_N: ArrayLike,
    design_NK: ArrayLike,
    more_NK: ArrayLike,
    seeds: Sequence[Hashable] | None = None,
) -> float | None:
    """p of "these columns add nothing to the design" (F); None where no run is left over.

    What runs of one seed share is taken out first, where seeds have several runs.
    """
    values, columns = checked(values_N), checked_table(design_NK)
    blocks = _blocks(seeds, len(values))
    small = np.column_stack([columns, blocks])
    large = np.column_stack([small, checked_table(more_NK)])
    free, new = len(values) - rank(large), rank(large) - rank(small)
    if free < 1 or new < 1:
        return None
    rest, pure = (float((_left(values, each) ** 2).sum()) for each in (small, large))
    if pure <= 1e-20 * float(values @ values):
        return None
    return float(fdtrc(new, free, max(rest - pure, 0) / new / (pure / free)))


def uneven(
    values_N: ArrayLike, settings: Sequence[Hashable], seeds: Sequence[Hashable] | None = None
) -> float | None:
    """p of "runs spread alike in every setting"; None where fewer than two were run three times.

    By the ranks of how far runs lie from their setting's median, so that one far run is no spread.
    What seeds share would hide it, and taking it out wrongly would, too: so both ways, and twice
    the smaller p.
    """
    values = checked(values_N)
    n = len(values)
    rest, several = _from_medians(values, settings), 1 < len(set(seeds or ())) < n
    # By medians: a mean over a seed's runs would spread the noise of some settings to all.
    ways = [rest, _from_medians(rest, list(seeds or ()))] if several else [rest]
    found = [p for each in ways if (p := _ranks_apart(each, settings)) is not None]
    return min(1.0, len(ways) * min(found)) if found else None


def _from_medians(values: Floats, groups: Sequence[Hashable]) -> Floats:
    left = values.copy()
    for each in dict.fromkeys(groups):
        at = [place for place, other in enumerate(groups) if other == each]
        left[at] -= np.median(values[at])
    return left


def _ranks_apart(values: Floats, settings: Sequence[Hashable]) -> float | None:
    """p of "distances to the median are of one size in all groups": F of their ranks."""
    groups = [
        np.abs(each - np.median(each))
        for name in dict.fromkeys(settings)
        if len(each := values[[at for at, other in enumerate(settings) if other == name]]) > 2
    ]
    if len(groups) < 2 or not np.ptp(np.concatenate(groups)):
        return None
    _, place, counts = np.unique(
        np.concatenate(groups).round(12), return_inverse=True, return_counts=True
    )
    ranks = (counts.cumsum() - counts / 2)[place]  # equal ones share theirs
    far = np.split(ranks, np.cumsum([len(each) for each in groups])[:-1])
    between = sum(len(each) * (float(each.mean()) - ranks.mean()) ** 2 for each in far)
    within = sum(float(((each - each.mean()) ** 2).sum()) for each in far)
    free = len(far) - 1, len(ranks) - len(far)
    return float(fdtrc(*free, between / free[0] / (within / free[1])))


def _blocks(seeds: Sequence[Hashable] | None, n: int) -> Floats:
    """A column for each seed, where some have several runs and there are several."""
    member = _member(seeds, n)
    return member if 1 < member.shape[1] < n else np.ones((n, 1))


def _left(values: Floats, columns: Floats) -> Floats:
    left: Floats = values - columns @ np.linalg.lstsq(columns, values, rcond=None)[0]
    return left
