"""What is wrong with a set of runs, or means less than it seems: general rules, one function each.

A rule takes all sources and yields findings; it knows quantities, identities and rounding, and no
file. It gives facts, not sentences: those are the catalogue's. docs/findings.md lists the codes.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from pathlib import PurePath

from kleash.findings import (
    copies,
    guesses,
    histories,
    identities,
    kinship,
    lattices,
    learning,
    leash,
    noticed,
    peaks,
    plans,
)
from kleash.findings.codes import CODES
from kleash.findings.record import Found, made_once, runs
from kleash.imports import Source

__all__ = ["CODES", "RULES", "Found", "find"]

Rule = Callable[[Sequence[Source]], Iterable[Found]]
RULES: tuple[Rule, ...] = (
    *noticed.RULES,
    *identities.RULES,
    *guesses.RULES,
    *copies.RULES,
    *lattices.RULES,
    *histories.RULES,
    *kinship.RULES,
    *leash.RULES,
    *learning.RULES,
    *peaks.RULES,
    *plans.RULES,
)
MISREAD = 3  # errors of one kind beyond which a report was misread, and is not wrong
_BY_NAMES = ("duplicate-step", "config-clash", "spread-identity")
"""What is wrong if two numbers are of one quantity, which names and places alone say."""
_ORDER = {"error": 0, "warning": 1, "note": 2}


def find(sources: Sequence[Source]) -> list[Found]:
    """All that the rules find, errors first, in the order of the rules."""
    found = chain.from_iterable(rule(sources) for rule in RULES)
    with made_once():
        return sorted(_as_read(sources, list(found)), key=lambda one: _ORDER[one.severity])


def _as_read(sources: Sequence[Source], found: Sequence[Found]) -> Iterator[Found]:
    """The findings; of a report that was misread one note in place of what is then false."""
    reports = {run.where.file for run in runs(sources) if run.format == "markdown"}
    kinds: dict[tuple[str, str], list[Found]] = defaultdict(list)
    for one in found:
        report = one.where[0].file if one.where and one.code in _BY_NAMES else ""
        if report not in reports:
            yield one
        else:
            kinds[report, one.code].append(one)
    misread: dict[str, list[Found]] = defaultdict(list)
    for (report, _), same in kinds.items():
        if len(same) <= MISREAD:
            yield from same
        else:
            misread[report] += same
    for report, wrong in misread.items():
        facts = {"report": PurePath(report).name, "count": len(wrong)}
        yield Found("report-misread", "note", tuple(one.where[0] for one in wrong), facts)
