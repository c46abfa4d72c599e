"""Which arm reports compare the others with, by what their differences are taken from."""

from __future__ import annotations

from collections.abc import Sequence

from kleash.compare.arms import Arm
from kleash.imports import Source


def compared_with(sources: Sequence[Source], arms: Sequence[Arm]) -> Arm | None:
    """The arm that reports take from two others or more; of two arms either may come first."""
    by_name = {name: arm for arm in arms for name in (arm.name, *arm.names)}
    others: dict[str, set[str]] = {arm.name: set() for arm in arms}
    for source in sources:
        owners = {cell.number.where: run.arm for run in source.runs for cell in run.cells}
        owners |= {
            one.number.where: one.arms[0]
            for one in source.derived
            if one.kind == "mean" and len(one.arms) == 1
        }
        for one in source.derived:
            if one.kind not in ("difference", "relative") or not one.arms:
                continue
            named = [*one.arms, *(owners.get(number.where, "") for number in one.minus[:1])]
            ours, theirs = by_name.get(named[0]), by_name.get("".join(named[1:2]))
            if ours is not None and theirs is not None and ours is not theirs:
                others[theirs.name].add(ours.name)
    most = max(arms, key=lambda arm: len(others[arm.name]))
    return most if len(others[most.name]) > 1 else None
