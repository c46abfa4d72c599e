"""What is wrong with a set of runs, or means less than it seems.

`CHECKS` is the table: for each code its severity, the function that looks for it, and what is said
in English and Chinese. A check knows quantities, identities and rounding, and no file; it takes all
that was read and yields where it fires with the facts of its sentence. docs/findings.md lists them.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from kleash.compare.checks.evidence import Evidence, Severity
from kleash.compare.checks.table import CHECKS
from kleash.compare.read import Source, Where

__all__ = ["CHECKS", "Found", "find"]

ORDER: tuple[Severity, ...] = ("error", "warning", "note")


@dataclass(frozen=True)
class Found:
    """Where a check fired: its facts are the values for its sentence."""

    code: str
    severity: Severity
    where: tuple[Where, ...]
    facts: dict[str, Any]


def find(sources: Sequence[Source], codes: Collection[str] = CHECKS) -> list[Found]:
    """All that the checks find, errors first, in the order of the table."""
    evidence = Evidence(sources)
    found = [
        Found(code, hit.severity or severity, hit.where, hit.facts)
        for code, (severity, check, _, _) in CHECKS.items()
        if code in codes
        for hit in check(evidence)
    ]
    return sorted(found, key=lambda each: ORDER.index(each.severity))
