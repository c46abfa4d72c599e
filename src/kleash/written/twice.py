"""Numbers that a report tells twice: what is printed for one point of one run is one number."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import combinations

from kleash.imports import Number
from kleash.imports.markdown.draft import Draft, agree
from kleash.written.made.rounded import Node, Relation, node
from kleash.written.unlikely import FARTHER

_SPAN = re.compile(r"\d+\s?[-–~]\s?\d+\s?/")  # "1–40": of what, only a heading says
_AT = re.compile(r"[(（]\s?(?:e|ep|epoch|step|s|第)?\s?\d+\s?(?:步|轮)?\s?[)）]", re.I)
APART = 3  # numbers that differ between two tables that are not of one thing
FAR = 0.2  # of the greater: two tellings of one thing are seldom further apart


def told_twice(draft: Draft, worked_out: set[Node]) -> Iterator[Relation]:
    """All that is printed for one point of one run is one number, unless it was worked out."""
    rows = {line for table in draft.source.tables for line in table.lines}
    again: dict[Node, list[Number]] = defaultdict(list)
    for derived in draft.source.derived:
        if derived.kind == "same":
            again[node(derived.of[0])].append(derived.number)
    for numbers in _points(draft):
        known = [one for one in numbers if one.value is not None and one.state == "known"]
        known = [n for n in known if node(n) not in worked_out and not _SPAN.match(n.where.spot)]
        known = [n for n in known if not _AT.search(n.text)]  # "63.05 (E4)" is of its own epoch
        printed = [each for one in known for each in (one, *again[node(one)])]
        conflict = len(known) > 1
        for ours, theirs in combinations(printed[:12], 2) if conflict else ():
            # Two cells of one row are two things, whatever their column is called.
            apart = ours.where.line != theirs.where.line or ours.where.line not in rows
            if apart:
                yield replace(same(theirs, ours), far=_of_two_kinds(ours, theirs))


def _of_two_kinds(ours: Number, theirs: Number) -> bool:
    """Whether numbers are so far apart, and printed so differently, that one was misread."""
    left, right = abs(ours.value or 0.0), abs(theirs.value or 0.0)
    far = FAR if ours.decimals != theirs.decimals else FARTHER
    return abs(left - right) > far * max(left, right)


def of_one_thing(draft: Draft, every: Sequence[Relation]) -> Iterator[Relation]:
    """Without numbers of two tables of which as many differ as agree: they are of two things."""
    table = {line: nth for nth, one in enumerate(draft.source.tables) for line in one.lines}
    groups: dict[frozenset[int | None], list[Relation]] = defaultdict(list)
    for one in every:
        groups[frozenset(table.get(each[0]) for each in one.nodes)].append(one)
    for tables, told in groups.items():
        differ = sum(not one.holds for one in told)
        if None in tables or differ < APART or 2 * differ < len(told):
            yield from (one for one in told if not one.far)


def _points(draft: Draft) -> Iterator[list[Number]]:
    """The different numbers that a document gives for each point and cell."""
    for cells in draft.cells.values():
        yield [cell.number for cell in cells]
    for told in draft.histories.values():
        by_step: dict[float, list[Number]] = defaultdict(list)
        for history in told:
            for step, number in history.points.items():
                by_step[step].append(number)
        yield from by_step.values()


def same(ours: Number, theirs: Number) -> Relation:
    value = theirs.value or 0.0
    nodes = (node(ours), node(theirs))
    return Relation(
        "same", nodes, agree(ours, theirs), ours.text, value, value, ours.unit, ours.decimals
    )
