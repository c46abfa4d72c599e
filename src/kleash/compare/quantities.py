"""Which curves of a run are of one quantity: tables know names, values tell what they are not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from kleash.imports import Imported, Series, names
from kleash.imports.units import ABOVE, WHOLE
from kleash.stats import Floats


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
