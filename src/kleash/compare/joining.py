"""Which runs are of one arm, whoever tells of them and in however many files.

Runs of one name, place or config are of one arm. Files of training and of evaluation measure
nothing in common: those that are called alike, but for words that say nothing, or are alone with
their coefficient, are of one arm too.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable, Iterator, Sequence
from itertools import combinations, pairwise
from typing import Any

from kleash.compare.read import Imported, Source, in_names, names
from kleash.compare.read.given import are_alike, setup

SEED = re.compile(r"[-_ ]?(?:seed|s)[-_=]?(\d{1,9})$", re.I)
COUNTERS = frozenset(("epoch", "step", "global_step", "learning_rate", "lr", "seed"))
Told = tuple[Source, Imported]
_WORD = re.compile(r"\d+(?:\.\d+)?(?:e-?\d+)?|[a-z]+|[α-ω]|[\u4e00-\u9fff]+")
_GENERIC = frozenset(
    ("eval", "evaluation", "train", "training", "metrics", "results", "result", "log", "logs",
     "run", "runs", "grpo", "rl", "test", "val", "history", "accuracy", "acc", "summary", "items"),
)  # fmt: skip


def arm_name(run: Imported) -> str:
    """What the arm of a run is called: as the source says, or the run's name without its seed."""
    return run.arm or SEED.sub("", run.name) or run.name


def coefficient(run: Imported) -> float | None:
    """The coefficient of a run, by its config or else by its name."""
    value = run.resolved.values.get("leash.coefficient")
    if isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    return in_names.coefficient(arm_name(run))[0]


def groups_of(sources: Sequence[Source], told: Sequence[Told]) -> list[list[int]]:
    """Indices of runs, grouped into arms."""
    groups = _Groups(len(told))
    first: dict[Any, int] = {}
    shared = _own_places(sources)
    for at, (source, run) in enumerate(told):
        for key in (*_keys(run), *shared.get((id(source), run.arm), ())):
            one = first.setdefault(key, at)
            if key[0] != "config" or _are_one(told[one], told[at]):
                groups.join(one, at)
    logs = [group for group in groups.all() if not any(_is_named(told[at]) for at in group)]
    for ours, theirs in _complements([[told[at][1] for at in group] for group in logs]):
        groups.join(logs[ours][0], logs[theirs][0])
    return groups.all()


class _Groups:
    """Numbers, some of which belong together."""

    def __init__(self, count: int) -> None:
        self.parent = list(range(count))

    def root(self, at: int) -> int:
        while self.parent[at] != at:
            at = self.parent[at]
        return at

    def join(self, one: int, other: int) -> None:
        if self.root(one) != self.root(other):
            late, early = sorted((self.root(one), self.root(other)), reverse=True)
            self.parent[late] = early

    def all(self) -> list[list[int]]:
        found: dict[int, list[int]] = {}
        for at in range(len(self.parent)):
            found.setdefault(self.root(at), []).append(at)
        return list(found.values())


def _are_one(ours: Told, theirs: Told) -> bool:
    """Whether runs of one config are of one arm: from two paths, only where nothing denies it."""
    (source, run), (other, twin) = ours, theirs
    if source is other:
        return True
    return not (source.name or other.name) and are_alike(run, twin)


def _is_named(told: Told) -> bool:
    """Whether a report or the user says what a run is of."""
    return told[1].format == "markdown" or bool(told[0].name)


def _keys(run: Imported) -> Iterable[tuple[object, ...]]:
    """What makes two runs the same arm: its name, or a config that is equal but for the seed."""
    yield ("name", names.spelling(arm_name(run)))
    if run.format == "markdown" or "leash.coefficient" not in run.resolved.values:
        return
    kept = setup(run)
    if len(kept) > 2:
        yield ("config", kept)


def _own_places(sources: Sequence[Source]) -> dict[tuple[int, str], list[tuple[str, ...]]]:
    """Paths and run ids that a document gives as the place of one of its arms alone."""
    found: dict[tuple[int, str], list[tuple[str, ...]]] = {}
    for source in sources:
        whose: dict[str, set[str]] = {}
        for fact in source.facts:
            if fact.kind in ("path", "wandb") and fact.arm:
                whose.setdefault(fact.text.strip().rstrip("/"), set()).add(fact.arm)
        for text, arms in whose.items():
            if len(arms) == 1:
                found.setdefault((id(source), next(iter(arms))), []).append(("place", text))
    return found


# --- training and evaluation in files of their own


def _complements(groups: Sequence[Sequence[Imported]]) -> Iterator[tuple[int, int]]:
    """Groups that measured nothing in common and are told alike: by words, else a coefficient."""
    measures = [_measures(group) for group in groups]
    words = [_words(arm_name(group[0])) for group in groups]
    leashes = [coefficient(group[0]) for group in groups]
    joined = set[int]()
    for told in (words, leashes):
        alike: dict[Hashable, list[int]] = {}
        for at, key in enumerate(told):
            if key not in (None, frozenset()) and at not in joined:
                alike.setdefault(key, []).append(at)
        for same in alike.values():
            apart = all(not measures[a] & measures[b] for a, b in combinations(same, 2))
            apart = apart and sum(not measures[at] for at in same) <= 1
            if len(same) > 1 and apart and not _contradict([groups[at][0] for at in same]):
                yield from pairwise(same)
                joined |= set(same)


def _contradict(runs: Sequence[Imported]) -> bool:
    """Whether two configs cannot be of one run."""
    every = [run.resolved.values for run in runs]
    return any(
        not names.same(one[key], other[key])
        for one, other in combinations(every, 2)
        for key in one.keys() & other.keys()
    )


def _measures(group: Sequence[Imported]) -> set[tuple[str, str]]:
    """What runs measured, and as what: a curve, a cell, or scores of items."""
    found = set[tuple[str, str]]()
    for run in group:
        found |= {(one.metric, one.axis) for one in run.series}
        found |= {(one.metric, "cell") for one in run.cells}
        found |= {(one.metric, "items") for one in run.scores}
    known = {(one, names.metric(one)) for one, _ in found}
    called = {one: metric.name if metric else one for one, metric in known}
    settings = {one for one, metric in known if metric is None and names.key(one)}
    aside = COUNTERS | settings  # what a row says of the run is nothing that it measured
    return {(called[one], form) for one, form in found if called[one] not in aside}


def _words(text: str) -> frozenset[str]:
    """The words and numbers of a name by which runs differ, the coefficient as one."""
    leash, rest = in_names.coefficient(text)
    told = {f"{float(one):g}" if one[0].isdigit() else one for one in _WORD.findall(rest)}
    return frozenset(told - _GENERIC | ({f"kl {leash:g}"} if leash is not None else set()))
