"""Runs whose curves lie in several files: `train_kl010.csv` and an `eval.csv` with a row for 0.10.

Groups that measure the same differ in what names a run; where two kinds of groups measure nothing
in common, those whose names differ in the same are one run.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import replace

from kleash.written.curves import Thread
from kleash.written.sought.naming import Items, items

COUNTERS = frozenset(("epoch", "step"))


def joined(threads: Sequence[Thread]) -> list[Thread]:
    """The same curves, those of one run under one name."""
    metrics: dict[str, set[str]] = defaultdict(set)
    for one in threads:
        metrics[one.group].add(one.metric)
    called: dict[str, str] = {}
    known: dict[Items, str] = {}
    for kind in sorted(_kinds(metrics), key=lambda kind: -len(kind)):
        own = _own(kind)
        called |= {group: known[name] for name, group in own.items() if name in known}
        known = own | known
    return [replace(one, group=called.get(one.group, one.group)) for one in threads]


def _kinds(metrics: dict[str, set[str]]) -> list[list[str]]:
    """Groups that measure something in common."""
    found: list[tuple[set[str], list[str]]] = []
    for group, own in metrics.items():
        near = [one for one in found if one[0] & (own - COUNTERS)]
        every = set[str](own).union(*(one[0] for one in near)) - COUNTERS
        groups = [name for one in near for name in one[1]]
        found = [one for one in found if one not in near] + [(every, [*groups, group])]
    return [groups for _, groups in found]


def _own(kind: Sequence[str]) -> dict[Items, str]:
    """What names each group of a kind, and no other of it."""
    have = {group: items(group) for group in kind}
    often = Counter(item for own in have.values() for item in own)
    own = {
        group: frozenset(i for i in all_ if often[i] < len(kind)) for group, all_ in have.items()
    }
    times = Counter(own.values())
    return {name: group for group, name in own.items() if name and times[name] == 1}
