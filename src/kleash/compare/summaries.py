"""Every metric of every run in one row: mean, first, last, change, least and greatest with steps.

Known values only. Where a document gives only the statistics of a run, those are the row.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kleash.compare.arms import Arm, Curve, Replicate
from kleash.compare.records import Summary
from kleash.imports import names


def summaries(arms: Sequence[Arm]) -> list[Summary]:
    """A row for each arm, run and metric."""
    return [row for arm in arms for each in arm.replicates for row in _rows(arm, each)]


def unit_of(metric: str) -> str:
    """The unit of a metric, or none where it is not known."""
    known = names.metric(metric)
    return known.unit if known else ""


def _rows(arm: Arm, replicate: Replicate) -> Iterator[Summary]:
    for curve in replicate.curves.values():
        for telling in (curve, *curve.others):
            if not _is_setting(telling):
                yield _of_curve(arm, replicate, telling)
    told: dict[str, dict[str, tuple[float, float | None]]] = {}
    for (metric, place), cells in replicate.cells.items():
        epoch, step, _, _, statistic = place
        number = next(iter(cells.values()))
        if statistic and number.value is not None:
            at = epoch if epoch is not None else step
            told.setdefault(metric, {})[statistic] = (number.value, at)
    curved = {metric for metric, _ in replicate.curves}
    for metric, by in told.items():
        if metric not in curved and by.keys() & {"mean", "first", "last", "min", "max"}:
            nothing = (None, None)
            low, high = by.get("min", nothing), by.get("max", nothing)
            yield Summary(
                arm=arm.name,
                run=replicate.name,
                metric=metric,
                unit=unit_of(metric),
                n=0,
                estimated=0,
                mean=by.get("mean", nothing)[0],
                first=by.get("first", nothing)[0],
                last=by.get("last", nothing)[0],
                low=low[0],
                low_at=low[1],
                high=high[0],
                high_at=high[1],
            )


def _is_setting(curve: Curve) -> bool:
    """Whether it is a setting that was logged at every step: `kl_beta`, the same throughout."""
    known = names.key(curve.metric) is not None and names.metric(curve.metric) is None
    return known and len(curve) > 0 and bool((curve.values == curve.values[0]).all())


def _of_curve(arm: Arm, replicate: Replicate, curve: Curve) -> Summary:
    about = (arm.name, replicate.name, curve.metric, unit_of(curve.metric))
    if not len(curve):
        return Summary(*about, n=0, estimated=curve.estimated)
    steps, values = curve.steps, curve.values
    least, greatest = int(values.argmin()), int(values.argmax())
    return Summary(
        *about,
        n=len(values),
        estimated=curve.estimated,
        mean=float(values.mean()),
        first=float(values[0]),
        last=float(values[-1]),
        low=float(values[least]),
        low_at=float(steps[least]),
        high=float(values[greatest]),
        high_at=float(steps[greatest]),
    )
