"""Every metric of every run in one row: mean, first, last, change, least and greatest with steps.

Known values only. Where a document gives only the statistics of a run, those are the row.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kleash.compare.arms import Arm, Curve, Replicate
from kleash.compare.gaps import unit_of
from kleash.compare.read import names
from kleash.compare.records import Summary


def summaries(arms: Sequence[Arm]) -> list[Summary]:
    """A row for each arm, run and metric."""
    return [row for arm in arms for each in arm.replicates for row in _rows(arm, each)]


def _rows(arm: Arm, replicate: Replicate) -> Iterator[Summary]:
    for curve in replicate.curves.values():
        for telling in (curve, *curve.others):
            if not _is_setting(telling):
                yield _of_curve(arm, replicate, telling)
    told: dict[str, dict[str, tuple[float, float | None]]] = {}
    for (metric, (epoch, step, _, _, statistic)), cells in replicate.cells.items():
        number = next(iter(cells.values()))
        if statistic and number.value is not None:
            at = epoch if epoch is not None else step
            told.setdefault(metric, {})[statistic] = (number.value, at)
    curved = {metric for metric, _ in replicate.curves}
    for metric, by in told.items():
        if metric not in curved and by.keys() & {"mean", "first", "last", "min", "max"}:
            about = (arm.name, replicate.name, metric, unit_of(metric))
            ends = [by.get(each, (None, None)) for each in ("mean", "first", "last", "min", "max")]
            mean, first, last, low, high = ends
            values = (mean[0], first[0], last[0], *low, *high)
            yield Summary(*about, 0, 0, *values)


def _is_setting(curve: Curve) -> bool:
    """Whether it is a setting that was logged at every step: `kl_beta`, the same throughout."""
    known = names.key(curve.metric) is not None and names.metric(curve.metric) is None
    return known and len(curve) > 0 and bool((curve.values == curve.values[0]).all())


def _of_curve(arm: Arm, replicate: Replicate, curve: Curve) -> Summary:
    about = (arm.name, replicate.name, curve.metric, unit_of(curve.metric))
    n, steps, values = len(curve), curve.steps, curve.values
    if not n:
        return Summary(*about, 0, curve.estimated)
    low, high = int(values.argmin()), int(values.argmax())
    seen = (
        values.mean(),
        values[0],
        values[-1],
        values[low],
        steps[low],
        values[high],
        steps[high],
    )
    return Summary(*about, n, curve.estimated, *map(float, seen))
