"""Which runs of different sources are the same run, told twice: other rules rest on it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

from kleash.findings.record import Found, Point, apart, bounds, digits, points
from kleash.imports import Imported, Source, names

ENOUGH = 3  # equal points, to the digit, that make a run the same run
MANY = 60  # runs beyond which only names and paths are compared


@dataclass(frozen=True)
class Kin:
    """Two records of one run, and how that is known: its path, or its values."""

    ours: Imported
    theirs: Imported
    by: str


def kin(sources: Sequence[Source]) -> Iterator[Kin]:
    """Pairs of runs in different sources, under different names, that are one run."""
    for ours, theirs in combinations(sources, 2):
        if len(ours.runs) > MANY or len(theirs.runs) > MANY:
            continue
        for run in ours.runs:
            for other in theirs.runs:
                if names.spelling(run.arm) == names.spelling(other.arm):
                    continue
                paths = _paths(ours, run) & _paths(theirs, other)
                if paths:
                    yield Kin(run, other, "path")
                elif _same_values(run, other):
                    yield Kin(run, other, "values")


def _paths(source: Source, run: Imported) -> set[str]:
    """Folders and W&B ids that a source gives as the origin of one run, and of no other."""
    origins = [fact for fact in source.facts if fact.kind in ("path", "wandb") and fact.arm]
    mine = {_folder(fact.text) for fact in origins if fact.arm == run.arm}
    return mine - {_folder(fact.text) for fact in origins if fact.arm != run.arm}


def _folder(text: str) -> str:
    return re.sub(r"/+$", "", text.strip())


def outcome(metric: str) -> str:
    """A metric, with "performance" for any reward: a document may not say what was measured."""
    return "performance" if metric in ("eval_reward", "reward", "performance") else metric


def placed(run: Imported) -> dict[tuple[str, str], Point]:
    """The numbers of a run by what and where they are; the first of several."""
    found: dict[tuple[str, str], Point] = {}
    for point in points(run):
        found.setdefault((outcome(point.metric), point.at), point)
    return found


def _same_values(run: Imported, other: Imported) -> bool:
    """Whether at least three measured points are equal to the digit and none is different."""
    ours, theirs = placed(run), placed(other)
    pairs = [
        (ours[place], theirs[place])
        for place in ours.keys() & theirs.keys()
        if ours[place].known and theirs[place].known and place[1].startswith(("step", "epoch"))
    ]
    # Means over items are equal too often: only curves tell runs apart.
    pairs = [pair for pair in pairs if pair[0].items is None and digits(pair[0].number) > 2]
    alike = [not apart(bounds(a.number), bounds(b.number)) for a, b in pairs]
    return len(alike) >= ENOUGH and all(alike)


def same_run(sources: Sequence[Source]) -> Iterator[Found]:
    """One run under two names in two sources is one run, not two."""
    for pair in kin(sources):
        facts = {"arms": [pair.ours.arm, pair.theirs.arm], "by": pair.by}
        yield Found("same-run", "note", (pair.ours.where, pair.theirs.where), facts)


RULES = (same_run,)
