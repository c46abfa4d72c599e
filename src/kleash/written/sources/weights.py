"""How likely each thing is that a number may be, by how it is named: weights fitted to reports.

A pattern has a value for each of its facets; its weight is the sum of the weights of these values
and of some of their pairs. `scripts/fit_sources.py` fits them to reports without errors, in which
every number is what it is: one that comes out has most of the weight.
"""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files
from math import exp

from kleash.written.sources.of_tables import Pattern

LIMIT = 30.0  # for the logarithm of a weight
DIGITS = 6  # from which more tell no more
_AROUND = "near table heading known"
FACETS = {
    "cell": f"ask {_AROUND} row column label title end print beside part mean",
    "two": f"ask {_AROUND} line words both ends first side one other",
    "many": f"ask {_AROUND} line words side how word",
    "part": f"ask {_AROUND} line words side how named word",
    "lines": f"ask {_AROUND} both how word",
    "own": "ask where apart gap one other",
    "its": f"ask where {_AROUND} row column gap word",
    "multiple": "ask where",
    "else": "ask digits",
}
FAMILIES = {
    "cell": "cell",
    **dict.fromkeys(("gap", "change", "share", "ratio", "rate"), "two"),
    **dict.fromkeys(("mean", "sum", "range", "deviation"), "many"),
    "part": "part",
    **dict.fromkeys(("gap of means", "gap of sums"), "lines"),
    **dict.fromkeys(("own gap", "own change", "own share", "own ratio"), "own"),
    **dict.fromkeys(("its gap", "its change", "its share", "its ratio"), "its"),
    "multiple": "multiple",
    "else": "else",
}
PAIRS = {
    "cell": "row+column near+known title+column end+row end+column print+ask beside+row "
    "beside+column row+ask column+ask near+title near+heading label+row",
    "two": "line+both near+known line+words first+both near+heading",
    "many": "line+words near+known how+line",
    "part": "named+word line+named",
    "lines": "",
    "own": "where+ask",
    "its": "row+column where+gap",
    "multiple": "",
    "else": "ask+digits",
}
OWN = {  # facets that tell more by what the number would be
    "cell": "",
    "two": "ask one other one+other line both one+ask",
    "many": "ask word how+word word+line word+near",
    "part": "ask",
    "lines": "ask word both",
    "own": "ask where one+other",
    "its": "ask where gap word",
    "multiple": "",
    "else": "",
}


@cache
def weight(pattern: Pattern) -> float:
    """How likely a thing is, against others."""
    known = _weights()
    total = sum([known.get(one, 0.0) for one in features(pattern)])
    return exp(max(-LIMIT, min(LIMIT, total)))


def elsewhere(ask: str, digits: int) -> Pattern:
    """The pattern of a number that comes from nowhere in a report."""
    return "else", ask, str(min(DIGITS, digits))


def features(pattern: Pattern) -> list[str]:
    """Everything about a pattern that has a weight of its own."""
    kind = pattern[0]
    count, plan = _plan(kind)
    if len(pattern) != count:
        raise ValueError(f"a pattern of {kind!r} has {count} parts: {pattern}")
    ones = [
        prefix + (pattern[first] if second is None else f"{pattern[first]}+{pattern[second]}")
        for prefix, first, second in plan
    ]
    return [kind, *ones]


@cache
def _plan(kind: str) -> tuple[int, list[tuple[str, int, int | None]]]:
    """How long a pattern of a kind is, and what of it has a weight: a facet of it, or two."""
    family = FAMILIES[kind]
    facets = FACETS[family].split()
    at = {facet: nth for nth, facet in enumerate(facets, 1)}
    plan = list[tuple[str, int, int | None]]()
    for name, ones in ((family, [*facets, *PAIRS[family].split()]), (kind, OWN[family].split())):
        for one in ones:
            first, _, second = one.partition("+")
            plan.append((f"{name}: {one} ", at[first], at[second] if second else None))
    return 1 + len(facets), plan


@cache
def _weights() -> dict[str, float]:
    text = files("kleash.written.sources").joinpath("weights.json").read_text(encoding="utf-8")
    found: dict[str, float] = json.loads(text)
    return found
