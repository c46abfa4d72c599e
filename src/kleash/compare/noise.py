"""The noise of evaluating one checkpoint again, by the best way that a run's records allow.

In order: five evaluations of one checkpoint or more, scores of single items, the curve's own second
differences, a number that was declared.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from kleash import stats
from kleash.compare.arms import Replicate
from kleash.compare.items import by_item, by_spot
from kleash.compare.read import Scores
from kleash.compare.records import Amount, Because
from kleash.stats import Floats, NoiseFloor

FEWEST_REPEATS = 5
LEAST = 1e-12  # of an SD: below it values were rounded or copied


def floor_of(
    replicate: Replicate, metric: str, values: Floats, declared: float | None = None
) -> NoiseFloor | None:
    """The noise floor of a run's curve; None where nothing tells it."""
    ways = _ways(replicate, metric, values, declared)
    return next((floor for floor in ways if floor.sd >= LEAST), None)


def reason(floor: NoiseFloor, unit: str) -> Because:
    """What the floor is and how it is known."""
    return Because(f"noise_{floor.way}", {"floor": Amount(floor.sd, unit, gap=True)})


def _ways(
    replicate: Replicate, metric: str, values: Floats, declared: float | None
) -> Iterator[NoiseFloor]:
    """Every way there is, the best first."""
    spots = by_spot(replicate, metric)
    if spots:
        last = spots[max(spots)]
        if (repeats := _repeated(list(spots.values()))) is not None:
            yield stats.noise_floor(repeats=repeats)
        if (tries := _tries(last)) is not None:
            yield stats.noise_floor(generations_NK=tries)
        if items := list(by_item(last)[0].values()):
            yield stats.noise_floor(items=items)
    if len(values) > 2:
        yield stats.noise_floor(curve=values)
    if declared is not None:
        yield stats.noise_floor(declared=declared)


def _repeated(spots: Sequence[Sequence[Scores]]) -> Floats | None:
    """The means of evaluations of one checkpoint with the same shots, of the one measured most."""
    found: list[list[float]] = []
    for group in spots:
        by: dict[tuple[int | None, str], list[Scores]] = {}
        for each in group:
            by.setdefault((each.shots, each.checkpoint), []).append(each)
        for same in by.values():
            if len(same) >= FEWEST_REPEATS:
                means = [list(by_item([each])[0].values()) for each in same]
                found.append([float(np.mean(each)) for each in means if each])
    longest = max(found, key=len, default=[])
    return np.array(longest) if len(longest) >= FEWEST_REPEATS else None


def _tries(scores: Sequence[Scores]) -> Floats | None:
    """Several answers per item, as many for each: a table [item, try]."""
    for each in scores:
        tries: dict[str, list[float]] = {}
        for item, value in zip(each.items, each.values.tolist(), strict=True):
            tries.setdefault(item, []).append(value)
        sizes = {len(values) for values in tries.values()}
        if len(sizes) == 1 and max(sizes) > 1:
            table = np.array(list(tries.values()))
            whole: Floats = table[np.isfinite(table).all(axis=1)]
            return whole if len(whole) else None
    return None
