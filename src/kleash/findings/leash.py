"""The leash: KL that is not 0 at the start or falls, and what KL and the loss cannot show."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kleash.findings.record import (
    Found,
    Point,
    bounds,
    canonical,
    coefficient,
    curves,
    ends,
    points,
    runs,
    settings,
    shown,
)
from kleash.imports import Imported, Source

ZERO = 1e-3  # nats: what rounding may make of 0
LARGE = 0.02  # nats: beyond what first updates do
FALL = 0.05  # of the first value


def _kl(run: Imported) -> list[Point]:
    """KL of a run in the order of training; the KL loss where KL itself is not given.

    Of a curve that is whole its ends: nobody asks for what lies between.
    """
    for metric in ("kl", "kl_loss"):
        whole = curves(run, metric)
        alone = len(whole) == 1 and whole[0].axis != "time" and not run.cells
        if alone and (both := ends(whole[0])):
            return both
        found = [p for p in points(run, metric) if p.known and p.items is None]
        curve = [p for p in found if p.at.startswith(("epoch", "step"))]
        if curve:
            return sorted(curve, key=lambda p: p.epoch if p.epoch is not None else p.step or 0.0)
        told = [p for at in ("first", "last") for p in found if p.at == at]
        if told:
            return told
    return []


def _starts(point: Point) -> bool:
    """Whether a point stands at the very start of training."""
    if point.at == "first":
        return True
    at = point.epoch if point.epoch is not None else point.step
    return at is not None and at <= 1


def _fall(found: Sequence[Point]) -> float:
    """How far KL falls from its first value to its last, as a part of it; 0 where it does not."""
    first, last = found[0], found[-1]
    fall = (last.value - first.value) / first.value if first.value > 0 else 0.0
    sure = fall < -FALL and bounds(last.number)[1] < bounds(first.number)[0]
    return fall if sure else 0.0


def kl_at_start(sources: Sequence[Source]) -> Iterator[Found]:
    """KL to the policy that training starts from is 0 before any update.

    A first step may be logged after its updates and a first epoch is many of them: there it tells
    only where KL is large, of a step, or falls afterwards.
    """
    for run in runs(sources):
        found = _kl(run)
        if not found or not _starts(found[0]) or coefficient(run) == 0:
            continue
        first = found[0]
        updated = bool(first.epoch or first.step)
        large = first.epoch is None and first.value >= LARGE and not _grown(run, first)
        if updated and not large and not _fall(found):
            continue
        if bounds(first.number)[0] > ZERO:
            severity = "warning" if first.value >= LARGE else "note"
            facts = {"arm": run.arm, "value": first.value, "at": first.at}
            yield Found("kl-at-start", severity, (first.number.where,), facts)  # type: ignore[arg-type]


def _grown(run: Imported, first: Point) -> bool:
    """Whether KL goes on as it would have come from 0 to its first value."""
    for series in curves(run, first.metric):
        if len(series.steps) > 1 and series.steps[0] == first.step:
            slope = (series.values[1] - series.values[0]) / (series.steps[1] - series.steps[0])
            return bool(first.value <= 2 * slope * first.step)
    return False


def kl_falls(sources: Sequence[Source]) -> Iterator[Found]:
    """KL to a fixed start rises from 0; one that falls from the start measures something else."""
    for run in runs(sources):
        found = _kl(run)
        if len(found) < 2 or not _starts(found[0]):
            continue
        first, last = found[0], found[-1]
        if fall := _fall(found):
            facts = {
                "arm": run.arm,
                "first": first.value,
                "last": last.value,
                "change": shown(fall),
            }
            where = (first.number.where, last.number.where)
            yield Found("kl-falls", "warning", where, facts)


def loss_across_coefficients(sources: Sequence[Source]) -> Iterator[Found]:
    """A loss that contains coefficient × KL is another quantity for every coefficient."""
    for source in sources:
        for metric in ("loss", "kl_loss"):
            arms = {
                run.arm: coefficient(run)
                for run in source.runs[:100]
                if points(run, metric) and settings(run).get("leash.coefficient") is not None
            }
            compared = [
                derived.number.where
                for derived in source.derived
                if canonical(derived.metric) == metric and len(set(derived.arms)) > 1
            ]
            if len(set(arms.values())) > 1 and compared:
                facts = {
                    "arms": list(arms),
                    "metric": metric,
                    "coefficients": list(arms.values()),
                }
                yield Found("loss-across-coefficients", "note", tuple(compared), facts)


RULES = (kl_at_start, kl_falls, loss_across_coefficients)
