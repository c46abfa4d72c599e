"""Which of several numbers is to blame where they do not fit together.

A difference that does not come out may be wrong itself, or one of the numbers it was taken from.
Numbers stand in several such relations, so the fewest numbers that explain all that fails are
blamed: a base that four differences were taken from is one slip, not four.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from kleash.documents.marks import Mark, printed_as
from kleash.written.made.rounded import Node, Relation


@dataclass(frozen=True)
class Blame:
    """A number that does not fit, what it should be, and the relation that says so."""

    node: Node
    relation: Relation
    value: float | None
    """What it should be, where the others tell."""
    consequences: tuple[Relation, ...] = ()
    """What else fails because of it."""
    rival: Node | None = None
    """The other telling of the same number, where nothing says which of the two is wrong."""


def blamed(
    every: Sequence[Relation],
    innocent: Iterable[Node] = (),
    quoted: Mapping[float, int] | None = None,
    doubtful: Container[int] = (),
) -> list[Blame]:
    """The fewest numbers that explain all relations that fail; those of `innocent` are right.

    Lines that are `doubtful` (copies, values of another step) are blamed before others; of two that
    explain as much, the one that fewer sentences quote.
    """
    fine: dict[Node, int] = defaultdict(int)
    for relation in every:
        for one in relation.nodes if relation.holds else ():
            fine[one] += 1
    right = set(innocent)
    left = [relation for relation in every if not relation.holds]
    found: list[Blame] = []
    while left:
        failing: dict[Node, int] = defaultdict(int)
        for relation in left:
            for one in relation.nodes:
                failing[one] += 1
        results = {relation.nodes[0] for relation in left}
        suspects = {relation.suspect[0] for relation in left if relation.suspect}

        def guilt(one: Node) -> tuple[object, ...]:
            count = failing[one]  # noqa: B023  it is asked for before the next round
            worked_out = one in results  # noqa: B023
            said = (quoted or {}).get(one[2], 0)
            weight = (one[0] in doubtful, count > fine[one], count - fine[one])
            return one not in right, *weight, one in suspects, -said, worked_out, one  # noqa: B023

        worst = max(failing, key=guilt)
        about = [relation for relation in left if worst in relation.nodes]
        blame = _blame(worst, about)
        if len(about) == 1 and blame.relation.kind == "same":
            other = next(one for one in blame.relation.nodes if one != worst)
            blame = replace(blame, rival=other if guilt(other)[:6] == guilt(worst)[:6] else None)
        found.append(blame)
        left = [relation for relation in left if worst not in relation.nodes]
    return found


def _blame(worst: Node, about: Sequence[Relation]) -> Blame:
    own = [relation for relation in about if relation.nodes[0] == worst]
    again = [relation for relation in about if relation.kind == "same"]
    first = (own or again or list(about))[0]
    value = None
    told = [one.suspect[1] for one in about if one.suspect and one.suspect[0] == worst]
    if told and not own:
        value = told[0]
    elif own and first.kind != "between" and first.low is not None and first.high is not None:
        value = (first.low + first.high) / 2
    elif again:
        value = next(one[2] for one in again[0].nodes if one != worst)
    elif first.kind == "difference" and len(first.nodes) == 3:
        value = _solved(first, worst)
    rest = tuple(relation for relation in about if relation is not first)
    return Blame(worst, first, value, rest)


def _solved(relation: Relation, worst: Node) -> float:
    """The operand of a difference from the other two numbers."""
    gap, ours, theirs = (one[2] for one in relation.nodes)
    return gap + theirs if relation.nodes[1] == worst else ours - gap


def copied_lines(every: Sequence[Relation], pairs: Iterable[tuple[int, int]]) -> set[int]:
    """Of lines with the same numbers those that are the copies: of each two, what fits less.

    Where three lines are the same, they came out so.
    """
    every_pair = list(pairs)
    often = Counter(line for pair in every_pair for line in pair)
    fails = Counter(
        line
        for relation in every
        if not relation.holds
        for line in {one[0] for one in relation.nodes}
    )
    found: set[int] = set()
    for one, other in every_pair:
        if max(often[one], often[other]) > 1:
            continue
        found |= {line for line in (one, other) if fails[line] == max(fails[one], fails[other])}
    return found


# --- what is said of it


def related(
    every: Sequence[Relation],
    right: set[Node],
    quoted: Mapping[float | None, int],
    doubtful: set[int],
) -> list[Mark]:
    """Marks of what fits together and of what does not."""
    said = {value: n for value, n in quoted.items() if value is not None}
    blames = blamed(every, right, said, doubtful)
    marks = [mark for one in blames for mark in _blamed(one)]
    guilty = {one for each in blames for one in (each.node, each.rival) if one is not None}
    shaky = {relation.nodes[0]: one for one in blames for relation in one.consequences}
    for base, one in shaky.items():
        if base not in guilty:
            facts = {"other": one.node[0]}
            text = next(each.text for each in one.consequences if each.nodes[0] == base)
            marks.append(
                Mark(base[0], text or f"{base[2]:g}", "unknown", "check.rests-on", facts, base[1])
            )
    fits: dict[Node, list[Relation]] = defaultdict(list)
    for relation in every:
        for printed in relation.nodes if relation.holds else ():
            fits[printed].append(relation)
    marks += [_fits(printed, about) for printed, about in fits.items() if printed not in guilty]
    return marks


def _blamed(one: Blame) -> Iterator[Mark]:
    """The mark of a number that does not fit; of two where nothing says which of them it is."""
    if one.rival is None:
        yield _wrong(one)
        return
    for ours, theirs in ((one.node, one.rival), (one.rival, one.node)):
        shown = [
            printed_as(each[2], one.relation.unit, one.relation.decimals) for each in (ours, theirs)
        ]
        facts = {"value": shown[1], "lines": [theirs[0]]}
        yield Mark(ours[0], shown[0], "unsupported", "check.told-otherwise", facts, ours[1])


def _wrong(one: Blame) -> Mark:
    relation, (line, spot, _) = one.relation, one.node
    own = relation.nodes[0] == one.node
    text = _text(relation, one.node)
    others = sorted({other[0] for other in relation.nodes if other != one.node})
    facts: dict[str, object] = {"lines": others, "kind": relation.kind}
    if one.value is None:
        return Mark(line, text, "wrong", "check.no-fit", facts, spot)
    if not own and relation.suspect and relation.suspect[0] == one.node:
        facts["value"] = _like(text, one.value)
        return Mark(line, text, "wrong", "check.mistyped", facts, spot)
    signed = own and ("+" in relation.text or "-" in relation.text)
    facts["value"] = printed_as(one.value, relation.unit, relation.decimals, signed=signed)
    if facts["value"] == text:  # the last digit was cut off, not rounded
        facts["value"] = f"{one.value:.6g}"
    return Mark(line, text, "wrong", f"check.not-{relation.kind}", facts, spot)


def _like(text: str, value: float) -> str:
    """A value as another number is printed."""
    share, (_, _, decimals) = "%" in text, re.sub(r"[^\d.]", "", text).partition(".")
    return f"{100 * value if share else value:.{len(decimals)}f}{'%' if share else ''}"


def _text(relation: Relation, one: Node) -> str:
    """A number of a relation as it is printed."""
    if relation.texts:
        return relation.texts[relation.nodes.index(one)]
    if relation.nodes[0] == one and relation.text:
        return relation.text
    return printed_as(one[2], relation.unit, relation.decimals)


def _fits(one: Node, about: Sequence[Relation]) -> Mark:
    own = [relation for relation in about if relation.nodes[0] == one]
    first = (own or about)[0]
    lines = sorted({other[0] for relation in about for other in relation.nodes if other != one})
    text = _text(first, one)
    code = f"check.{first.kind}" if own else "check.fits"
    return Mark(one[0], text, "right", code, {"lines": lines[:6]}, one[1])
