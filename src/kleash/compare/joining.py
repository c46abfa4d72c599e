"""Which runs are of one arm, whoever tells of them and in however many files.

Runs of one name, place or config are of one arm. Files of training and of evaluation measure
nothing in common: where a coefficient, or what else their names differ in, is that of one run in
each of two such kinds, they are of one arm too.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Sequence
from itertools import combinations
from typing import Any

from kleash.imports import Imported, Source, names

SEED = re.compile(r"[-_ ]?(?:seed|s)[-_=]?(\d{1,9})$", re.I)
COUNTERS = frozenset(("epoch", "step", "global_step", "learning_rate", "lr", "seed"))
Told = tuple[Source, Imported]
_WORD = re.compile(r"\d+(?:\.\d+)?(?:e-?\d+)?|[a-z]+|[α-ω]|[\u4e00-\u9fff]+")
_GENERIC = frozenset(
    ("eval", "evaluation", "train", "training", "metrics", "results", "result", "log", "logs",
     "run", "runs", "grpo", "rl", "test", "val", "history", "accuracy", "acc", "summary", "items"),
)  # fmt: skip


def label(run: Imported) -> str:
    """What the arm of a run is called: as the source says, or the run's name without its seed."""
    return run.arm or SEED.sub("", run.name) or run.name


def coefficient(run: Imported) -> float | None:
    """The coefficient of a run, by its config or else by its name."""
    value = run.resolved.values.get("leash.coefficient")
    if isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    return names.coefficient_in_name(label(run))[0]


def groups_of(sources: Sequence[Source], told: Sequence[Told]) -> list[list[int]]:
    """Indices of runs, grouped into arms."""
    groups = _Groups(len(told))
    first: dict[Any, int] = {}
    shared = _own_places(sources)
    for at, (source, run) in enumerate(told):
        for key in (*_keys(run), *shared.get((id(source), run.arm), ())):
            groups.join(first.setdefault(key, at), at)
    logs = [group for group in groups.all() if not any(_is_report(told[at]) for at in group)]
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


def _is_report(told: Told) -> bool:
    return told[1].format == "markdown"


def _keys(run: Imported) -> Iterable[tuple[object, ...]]:
    """What makes two runs the same arm: its name, or a config that is equal but for the seed."""
    yield ("name", names.spelling(label(run)))
    if run.format == "markdown" or "leash.coefficient" not in run.resolved.values:
        return
    kept = frozenset(
        (key, repr(setting.value))
        for key, setting in run.config.items()
        if (known := names.key(key)) is None or known.kind not in ("seed", "harmless")
    )
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
    """Groups of two kinds that are of one run: by their words, else by their coefficient."""
    kinds = _kinds([_measures(group) for group in groups])
    words = [_words(label(group[0])) for group in groups]
    leashes = [coefficient(group[0]) for group in groups]
    for one, other in combinations(kinds, 2):
        taken = set[int]()
        for told in (words, leashes):
            left, right = (_alone(kind, told, taken) for kind in (one, other))
            for key in left.keys() & right.keys():
                if not _contradict(groups[left[key]], groups[right[key]]):
                    yield left[key], right[key]
                    taken |= {left[key], right[key]}


def _contradict(ours: Sequence[Imported], theirs: Sequence[Imported]) -> bool:
    """Whether two configs cannot be of one run."""
    one, other = ours[0].resolved.values, theirs[0].resolved.values
    return any(not names.same(one[key], other[key]) for key in one.keys() & other.keys())


def _alone(kind: Sequence[int], told: Sequence[Hashable], taken: set[int]) -> dict[Hashable, int]:
    """By what they are told by, the groups of a kind that alone are told so."""
    often = Counter(told[at] for at in kind)
    empty = (None, frozenset())
    return {
        told[at]: at
        for at in kind
        if told[at] not in empty and often[told[at]] == 1 and at not in taken
    }


def _measures(group: Sequence[Imported]) -> set[tuple[str, str]]:
    """What runs measured, and as what: a curve, a cell, or scores of items."""
    found = set[tuple[str, str]]()
    for run in group:
        found |= {(one.metric, one.axis) for one in run.series}
        found |= {(one.metric, "cell") for one in run.cells}
        found |= {(one.metric, "items") for one in run.scores}
    known = {(one, names.metric(one)) for one, _ in found}
    called = {one: metric.name if metric else one for one, metric in known}
    return {(called[one], form) for one, form in found if called[one] not in COUNTERS}


def _kinds(measures: Sequence[set[tuple[str, str]]]) -> list[list[int]]:
    """Groups that measured something in common, as the same."""
    found: list[tuple[set[tuple[str, str]], list[int]]] = []
    for at, own in enumerate(measures):
        near = [one for one in found if one[0] & own]
        every = own.union(*(one[0] for one in near))
        held = sorted([at, *(other for one in near for other in one[1])])
        found = [one for one in found if not one[0] & own] + [(every, held)]
    return [held for measured, held in found if measured]


def _words(text: str) -> frozenset[str]:
    """The words and numbers of a name by which runs differ, the coefficient as one."""
    leash, rest = names.coefficient_in_name(text)
    told = {f"{float(one):g}" if one[0].isdigit() else one for one in _WORD.findall(rest)}
    return frozenset(told - _GENERIC | ({f"kl {leash:g}"} if leash is not None else set()))
