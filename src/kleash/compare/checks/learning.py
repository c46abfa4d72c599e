"""Whether anything was learnt, and whether KL is to the policy that training starts from."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator

from kleash.compare.checks.evidence import Check, Evidence, Hit, Numbers, Point

LEARNT = 0.05  # the share of the uniform loss below which nothing much was learnt
MOVED = 0.02
SIGNAL = 0.1
SHOTS = range(1, 5)
LARGE = 0.02  # nats: beyond what first updates do
FALL = 0.05  # of the first value
_POOL = re.compile(
    r"(?<![a-z0-9])(?:k|pool|top|candidates?|候选池?)[_=: -]?(\d{1,4})(?![0-9a-z])", re.I
)


# --- the leash


def _kl(run: Numbers) -> list[Point]:
    """KL of a run in the order of training; the KL loss where KL itself is not given."""
    return run.curve("kl") or run.curve("kl_loss")


def _starts(point: Point) -> bool:
    """Whether a point stands at the very start of training."""
    return point.at == "first" or (point.at.startswith(("epoch", "step")) and point.time <= 1)


def _fall(found: list[Point]) -> float:
    """How far KL falls from its first value to its last, as a part of it; 0 where it does not."""
    first, last = found[0], found[-1]
    fall = (last.value - first.value) / first.value if first.value > 0 else 0.0
    return fall if fall < -FALL and last.value + last.half < first.value - first.half else 0.0


def kl_at_start(run: Numbers) -> Iterator[Hit]:
    """KL to the policy that training starts from is 0 before any update.

    A first step may be logged after its updates and a first epoch is many of them: there it tells
    only where KL falls afterwards, or of a step where it did not grow to that from 0.
    """
    found = _kl(run)
    if not found or not _starts(found[0]) or run.setting("leash.coefficient") == 0:
        return
    first = found[0]
    grown = first.epoch is not None or _grows(found)
    large = first.value - first.half >= LARGE
    if large and (not first.time or not grown or _fall(found)):
        yield run.hit([first], value=first.value)


def _grows(found: list[Point]) -> bool:
    """Whether KL goes on as it would have come from 0 to its first value."""
    if len(found) < 2 or found[1].time <= found[0].time:
        return False
    slope = (found[1].value - found[0].value) / (found[1].time - found[0].time)
    return found[0].value <= 2 * slope * found[0].time


def kl_falls(run: Numbers) -> Iterator[Hit]:
    """KL to a fixed start rises from 0; one that falls from the start measures something else."""
    found = _kl(run)
    if len(found) > 1 and _starts(found[0]) and (fall := _fall(found)):
        ends = [found[0], found[-1]]
        yield run.hit(ends, first=ends[0].value, last=ends[1].value, change=fall)


# --- what was learnt


def uniform_loss(pool: int, shots: int) -> float:
    """−log of a uniform choice of `shots` from `pool`, in order and without repetition."""
    return sum(math.log(pool - drawn) for drawn in range(shots))


def near_uniform(evidence: Evidence) -> Iterator[Hit]:
    """A loss just below that of a uniform choice means that almost nothing was learnt."""
    pools = _pools(evidence)
    choices = [(pool, shots) for pool in pools for shots in SHOTS if pool > shots]
    for runs in evidence.by_source():
        curves = [(run, run.curve("val_loss")) for run in runs if choices]
        for pool, shots in choices:
            uniform = uniform_loss(pool, shots)
            close = [
                (run, curve[-1])
                for run, curve in curves
                if len(curve) > 1
                and abs(curve[0].value - uniform) <= 2 * LEARNT * uniform
                and 0 < uniform - curve[-1].value <= LEARNT * uniform
            ]
            if close:
                arms, points = ", ".join(run.arm for run, _ in close), [last for _, last in close]
                facts = {"pool": pool, "shots": shots, "uniform": round(uniform, 4)}
                yield close[0][0].hit(points, **facts, arm=arms, value=points[0].value)


def _pools(evidence: Evidence) -> list[int]:
    """Sizes of pools that configs name: `pool=64`, or `k64` in the name of a data file."""
    pairs = {(key, str(s.value)) for run in evidence.runs for key, s in run.run.config.items()}
    texts = (text for key, value in pairs for text in (f"{key}={value}", value))
    found = {int(size) for text in texts for size in _POOL.findall(text.replace("_", " "))}
    return sorted(size for size in found if size > 1)


def barely_moved(run: Numbers) -> Iterator[Hit]:
    """A validation loss that a whole training leaves where it was."""
    curve = run.curve("val_loss")
    if len(curve) > 1 and curve[0].value:
        first, last = curve[0].value, curve[-1].value
        change = (last - first) / abs(first)
        if abs(change) < MOVED:
            yield run.hit([curve[0], curve[-1]], first=first, last=last, change=change)


def little_signal(run: Numbers) -> Iterator[Hit]:
    """Advantages without spread: nearly all groups had equal rewards."""
    found = run.known("std_advantage")
    most = max(found, key=lambda point: point.value, default=None)
    if most is not None and most.value < SIGNAL:
        yield run.hit([most, *found[:8]], spread=most.value)


def noticed(guard: str) -> Check:
    """The check that tells what one kind of guard noticed while runs trained, once for all."""

    def check(evidence: Evidence) -> Iterator[Hit]:
        seen = {
            id(run): (run.arm, step, where)
            for run in evidence.runs
            for code, step, where in reversed(run.run.noticed)  # the first stays
            if code == guard
        }
        if seen:
            arms = list(dict.fromkeys(arm for arm, _, _ in seen.values()))
            of = sum(run.arm in arms for run in evidence.runs)
            at = f"step {min(step for _, step, _ in seen.values())}"
            facts = {"arms": arms, "count": len(seen), "of": of, "at": at}
            yield Hit(tuple(where for _, _, where in seen.values()), facts)

    return check
