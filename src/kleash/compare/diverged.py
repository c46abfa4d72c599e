"""Arms whose runs ended in no numbers: that comes first, and they are compared with nothing.

The steps before say how a run went until it broke, not what its setting leads to.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kleash.compare.arms import Arm, known_name
from kleash.compare.judging import Pair
from kleash.compare.records import Because, Judged


def divergences(arms: Sequence[Arm]) -> Iterator[Judged]:
    """The first divergence of each arm that has one, and of how many runs it is true."""
    for arm in arms:
        if not arm.lost:
            continue
        first = min(arm.lost, key=lambda one: one.step)
        facts = {
            "arm": arm.name,
            "metric": first.metric,
            "axis": first.axis,
            "step": first.step,
            "last": first.last,
            "count": first.count,
            "runs": len(arm.lost),
            "of": len(arm.replicates),
        }
        because = (Because("it_diverged", facts),)
        metric = known_name(first.metric)
        yield Judged("diverged", metric, "", (arm.name,), "diverged", "L1", because=because)


def not_compared(pair: Pair) -> Judged | None:
    """The verdict on a pair of which one diverged; None where none did."""
    if not (pair.ours.lost or pair.theirs.lost):
        return None
    return Judged("level", pair.metric, pair.known.unit, pair.names, "diverged", "L1")
