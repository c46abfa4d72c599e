"""What arms measured, where, and what of it nothing was made of."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from kleash.compare.arms import Arm, known_name
from kleash.imports import names

SHOWN = 6  # names in a sentence
_EDGE = r"(?<![a-z])(?:{})(?![a-z])"
OUTCOME_LIKE = re.compile(
    _EDGE.format("val|eval|validation|test|acc|accuracy|rewards?|scores?|success|pass|win"), re.I
)
NO_OUTCOME = re.compile(  # of what is measured beside outcomes
    _EDGE.format(
        "std|var|min|max|se|sd|median|runtime|second|steps?|epoch|loss|len|length|lengths|ratio|"
        "time|timing|num|count|n|items|samples|zero|kl|entropy|tokens?|clip\\w*|penalty|coeff?|broken|"
        "dead|spread|norm|lr|turns|aux"
    ),
    re.I,
)


def unknown(arms: Sequence[Arm]) -> list[str]:
    """What two arms or more measured and no table knows."""
    counts = Counter(name for arm in arms for name in measured(arm))
    others = [one for one, n in counts.items() if n > 1 and not names.metric(one)]
    return sorted(one for one in others if not names.key(one))[:SHOWN]


def unused(arms: Sequence[Arm], metric: str) -> list[str]:
    """What looks like an outcome and was not taken for one, or is told beside the one taken."""
    found: set[str] = set()
    for each in (each for arm in arms for each in arm.replicates):
        told = {*(one for one, _ in each.curves), *(one for one, _ in each.cells)}
        found |= {one for one in told if not names.metric(one) and not names.key(one)
                  and OUTCOME_LIKE.search(one) and not NO_OUTCOME.search(one)}  # fmt: skip
        found |= {one for one in each.unused if known_name(one) == metric}
    return sorted(found)


def measured(arm: Arm) -> set[str]:
    """The quantities of which an arm has a value."""
    found: set[str] = set()
    for each in arm.replicates:
        found |= {metric for (metric, _), curve in each.curves.items() if len(curve)}
        found |= {metric for metric, _ in each.cells}
        found |= {known_name(scores.metric) for scores in each.scores}
    return found


def places(arm: Arm, metric: str) -> str:
    """Where an arm was measured, shortly."""
    found: dict[str, set[float]] = {}
    for each in arm.replicates:
        for (name, axis), curve in each.curves.items():
            if name == metric:
                found.setdefault(axis, set()).update(curve.steps.tolist())
        for name, (epoch, step, *_) in each.cells:
            for axis, at in (("epoch", epoch), ("step", step)):
                if name == metric and at is not None:
                    found.setdefault(axis, set()).add(at)
        for scores in each.scores:
            if known_name(scores.metric) == metric and scores.step is not None:
                found.setdefault("step", set()).add(scores.step)
    return ", ".join(f"{axis} {_first_and_last(sorted(at))}" for axis, at in found.items()) or "—"


def _first_and_last(places: Sequence[float]) -> str:
    every = [f"{at:g}" for at in places]
    return ", ".join(every if len(every) < 5 else [*every[:2], "…", every[-1]])
