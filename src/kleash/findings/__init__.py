"""What is wrong with a set of runs, or means less than it seems: general rules, one function each.

A rule takes all sources and yields findings; it knows quantities, identities and rounding, and no
file. It gives facts, not sentences: those are the catalogue's. docs/findings.md lists the codes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import chain

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
from kleash.findings.record import Found, made_once
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
_ORDER = {"error": 0, "warning": 1, "note": 2}


def find(sources: Sequence[Source]) -> list[Found]:
    """All that the rules find, errors first, in the order of the rules."""
    found = chain.from_iterable(rule(sources) for rule in RULES)
    with made_once():
        return sorted(found, key=lambda one: _ORDER[one.severity])
