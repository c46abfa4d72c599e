"""Which printed numbers must fit together: what was worked out of what, and what is told twice."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from typing import Literal

from kleash.documents.page import Page
from kleash.findings.identities import Sum, kl_losses, losses, roughly
from kleash.findings.record import canonical
from kleash.imports import Derived, Imported, Number, Table
from kleash.imports.markdown.derived import allowed, follows
from kleash.imports.markdown.draft import Draft
from kleash.imports.markdown.labels import is_best_step
from kleash.imports.markdown.text import bare
from kleash.written.across import across
from kleash.written.grids import Grid, grids, winners, without_winners
from kleash.written.made.bench import HINTS
from kleash.written.made.boards import boards
from kleash.written.made.rounded import Node as Node
from kleash.written.made.rounded import Relation as Relation
from kleash.written.made.rounded import as_printed, off_by_rounding, without_refuted
from kleash.written.made.rounded import node as node
from kleash.written.made.weighed import Worked, worked_out
from kleash.written.patterns import Made, patterns
from kleash.written.printed import figure_of, squeezed
from kleash.written.retold import told_again
from kleash.written.twice import of_one_thing, same, told_twice
from kleash.written.unlikely import likely

_GAP = re.compile(r"\s[-−–]\s|Δ|差")  # names of gaps of two arms
_STEP_OF = re.compile(r"\W*(\d+)\s?[(（]\s?\d+\.\d")
APART_KINDS = ("difference", "relative")
TEN = 10
PLAIN: dict[str, Literal["mean", "difference", "relative"]] = {
    "mean": "mean",
    "difference": "difference",
    "relative": "relative",
}


def relations(draft: Draft, page: Page | None = None) -> list[Relation]:
    """Every relation of a document that can be worked out."""
    every = grids(draft)
    nodes = _nodes(every)
    made = [_of_cells(one, nodes) for one in worked_out(boards(draft.source.tables, page))]
    # How a column is made its own numbers know better than its header.
    known = {one.nodes[0] for one in made}
    held = {one.nodes[0]: set(one.nodes[1:]) for one in made if one.holds}
    guessed = [
        one for one in patterns(every) if node(one.number) not in known and not _undone(one, held)
    ]
    known |= {node(one.number) for one in guessed}
    read = [d for d in without_winners(draft) if d.kind == "same" or node(d.number) not in known]
    seen = [one for each in guessed for one in _plain(each)]
    derived = [*oriented(read), *seen]
    hidden = {node(one.number) for one in seen if not HINTS["mean"].search(one.number.where.spot)}
    told = _well_read(draft, [one for each in derived for one in _derived(each)])
    # What is a mean only by its numbers need not be one: that it nearly is one is no slip.
    told = [
        replace(one, inexact=False) if one.kind == "mean" and one.nodes[0] in hidden else one
        for one in told
    ]
    found = as_printed([*told, *made], _tables(draft))
    found += [_of_pattern(each) for each in guessed if each.kind not in PLAIN or each.ready]
    found += [_of_pattern(each) for each in across(every)]
    found += _worked_out_twice(derived)
    found += [*of_one_thing(draft, list(told_twice(draft, known))), *_borne_out(draft)]
    gaps = {one.nodes[0] for one in made if one.kind in APART_KINDS and one.holds}
    again = ((theirs, ours) for ours, theirs in told_again(every))
    found += [same(*two) for two in again if len({node(one) in gaps for one in two}) == 1]
    # A point of a series has lost its place in the line: its line and value lead back to it.
    places = {(one.where.line, one.value): node(one) for one in measured(draft)}
    made_of = list[Relation]()
    for run in draft.source.runs[:100]:
        for kind, sums in (("loss", losses(run)), ("kl_loss", kl_losses(run))):
            made_of += [_sum(kind, one, places) for one in sums]
        found += _ordered(run)
    found += _well_read(draft, made_of)
    steps = {each for table in draft.source.tables for each in _steps_of_values(table)}
    won = {
        (line, t.header[at]) for t in draft.source.tables for at in winners(t) for line in t.lines
    }
    found = [
        one for one in found
        if not any((line, spot.partition(" / ")[0]) in won for line, spot, _ in one.nodes)
        and (one.holds or not (_is_of_digits(one) or steps & {(n[0], n[2]) for n in one.nodes}))
    ]  # fmt: skip
    found = without_refuted(_between_places(draft, likely(found, draft)))
    return list({(one.kind, one.nodes): one for one in found}.values())


def _steps_of_values(table: Table) -> Iterator[tuple[int, float]]:
    """By line, the steps of a row such as "best step | 40 (2.224)": nothing is made of them."""
    for line, row in zip(table.lines, table.rows, strict=True):
        for cell in row[1:] if is_best_step(squeezed(bare(row[0]))) else ():
            match = _STEP_OF.match(bare(cell))
            if match:
                yield line, float(match[1])


def _is_of_digits(one: Relation) -> bool:
    """Whether numbers are all of one digit: ranks and the like are made of nothing."""
    values = [value for *_, value in one.nodes]
    return all(value == round(value) and abs(value) < TEN for value in values)


def _undone(one: Made, held: Mapping[Node, set[Node]]) -> bool:
    """Whether a number would be made of what is made of it."""
    parts = map(node, (*one.of, *one.minus))
    return any(node(one.number) in held.get(part, ()) for part in parts)


def _tables(draft: Draft) -> dict[int, int]:
    """By line, which table it is of."""
    return {line: nth for nth, one in enumerate(draft.source.tables) for line in one.lines}


def _between_places(draft: Draft, every: Sequence[Relation]) -> list[Relation]:
    """Without what two cells of one table say of each other: a table tells each thing once."""
    table = _tables(draft)
    return [
        one
        for one in every
        if one.kind != "same" or len({table.get(each[0], -each[0]) for each in one.nodes}) > 1
    ]


def _well_read(draft: Draft, every: Sequence[Relation]) -> list[Relation]:
    """Without what was read into a line of a table none of whose numbers bears it out."""
    table = _tables(draft)
    groups: dict[object, list[Relation]] = defaultdict(list)
    for one in every:
        line, spot, _ = one.nodes[0]
        title, row = (*spot.split(" / "), "")[:2]
        keys = ((table[line], title), (table[line], "", row)) if line in table else ()
        for key in keys:
            groups[one.kind, key].append(one)
    misread = {
        id(one)
        for group in groups.values()
        if len(group) > 1 and not any(each.holds for each in group)
        for one in group
    }
    return [one for one in every if one.holds or id(one) not in misread]


def well_read(draft: Draft) -> list[Derived]:
    """What was worked out, but for columns none of whose numbers bears out how they were read."""
    read = [one for each in oriented(without_winners(draft)) for one in _derived(each)]
    every, kept = (
        {(one.nodes[0][1].partition(" / ")[0], one.kind) for one in each}
        for each in (read, _well_read(draft, read))
    )
    never = every - kept
    return [
        one
        for one in without_winners(draft)
        if (one.number.where.spot.partition(" / ")[0], one.kind) not in never
    ]


def _nodes(every: Sequence[Grid]) -> dict[tuple[int, int, float], Node]:
    """Numbers by line, column and what is printed: a cell has the same place here as elsewhere."""
    return {
        (number.where.line or 0, slot[0], figure.value): node(number)
        for grid in every
        for (_, slot), number in (*grid.at.items(), *grid.fixed.items())
        if (figure := figure_of(number)) is not None
    }


CODES = dict.fromkeys(("argmax", "argmin", "rank", "complement"), "summary")
CODES["offset"] = "difference"


def _of_cells(one: Worked, nodes: Mapping[tuple[int, int, float], Node]) -> Relation:
    """What a cell is made of, by the recipe of its line."""
    places, suspect = dict[Node, str](), None
    for cell in (one.cell, *one.of):
        part, (line, column) = one.board.at[cell], one.board.places[cell]
        own = line, f"{column} {cell[1][1]}", part.value
        there = nodes.get((line, column, part.value), own)
        places.setdefault(there, part.text)
        if one.suspect is not None and one.suspect[0] == cell:
            suspect = there, one.suspect[1] / (100 if part.unit == "%" else 1)
    part = one.board.at[one.cell]
    share = part.unit == "%"
    low, high = ((one.given + sign * one.within) / (100 if share else 1) for sign in (-1, 1))
    decimals = part.decimals + 2 * share
    kind = CODES.get(one.kind, one.kind)
    unit = "%" if share else ""
    return Relation(
        kind, tuple(places), one.holds, part.text, low, high, unit, decimals,
        one.inexact, one.chance, tuple(places.values()), suspect,
    )  # fmt: skip


def _plain(made: Made) -> Iterator[Derived]:
    """What a pattern works out, as a report that was understood would have it."""
    if made.kind in PLAIN and not made.ready:
        yield Derived(PLAIN[made.kind], made.number, made.of, made.minus)


def _of_pattern(made: Made) -> Relation:
    """A sum, a product, a share or a deviation."""
    number = made.number
    nodes = tuple(dict.fromkeys(map(node, (number, *made.of, *made.minus))))
    unit, decimals = number.unit, number.decimals
    return Relation(made.kind, nodes, made.holds, number.text, made.low, made.high, unit, decimals)


def oriented(every: Sequence[Derived]) -> list[Derived]:
    """Differences of two arms, all in the order in which most of the document takes them."""
    ways: dict[frozenset[str], Counter[tuple[str, ...]]] = defaultdict(Counter)
    for one in every:
        if _has_order(one) and follows(one):
            ways[frozenset(one.arms)][one.arms] += 1
    made = []
    for one in every:
        counts = ways.get(frozenset(one.arms), Counter()) if _has_order(one) else Counter()
        usual = counts.most_common(1)[0][0] if counts else one.arms
        clear = counts[usual] >= max(4, 2 * (counts.total() - counts[usual]))
        if usual != one.arms and clear:
            one = replace(one, of=one.minus, minus=one.of, arms=usual)
        made.append(one)
    return made


def _has_order(one: Derived) -> bool:
    """Whether a difference would have the other sign if it were taken the other way round."""
    plain = one.kind == "difference" and not one.unsigned and bool(one.number.value)
    return plain and len(one.arms) == 2


def _worked_out_twice(every: Sequence[Derived]) -> Iterator[Relation]:
    """The same thing worked out of the same numbers is the same number."""
    groups: dict[tuple[object, ...], list[Number]] = defaultdict(list)
    for one in every:
        of, minus = (tuple(each.value for each in side) for side in (one.of, one.minus))
        plain = one.kind in ("mean", "difference", "relative") and not one.unsigned
        if plain and one.number.value is not None and None not in (*of, *minus):
            groups[one.kind, of, minus, one.number.decimals].append(one.number)
    for numbers in groups.values():
        for ours, theirs in combinations(numbers[:12], 2):
            unit = 10.0 ** -(ours.decimals or 0)
            gap = abs((ours.value or 0.0) - (theirs.value or 0.0))
            one_off = 0 < gap < 1.5 * unit  # what was rounded to the same number was not the same
            if node(ours) != node(theirs) and not (ours.about or theirs.about or one_off):
                yield same(theirs, ours)


def _ordered(run: Imported) -> Iterator[Relation]:
    """The least of a curve is no more than its mean, first and last; the greatest no less."""
    by_metric: dict[str, dict[str, Number]] = defaultdict(dict)
    if _GAP.search(run.name):
        return  # the gap of two curves at their ends is no end of a curve
    for cell in run.cells:
        if cell.statistic and cell.number.value is not None and cell.number.state == "known":
            by_metric[canonical(cell.metric)].setdefault(cell.statistic, cell.number)
    for metric, found in by_metric.items():
        if metric in ("step", "epoch") or any(map(_is_rank, found.values())):
            continue  # the step of the peak is no greatest step, and its rank no greatest rank
        for end, sign in (("min", 1), ("max", -1)):
            for other in ("mean", "first", "last", "median") if end in found else ():
                if other in found:
                    least, inner = found[end], found[other]
                    gap = sign * ((inner.value or 0.0) - (least.value or 0.0))
                    yield Relation(end, (node(least), node(inner)), gap >= 0, least.text)


def _is_rank(number: Number) -> bool:
    return bool(HINTS["rank"].search(bare(number.where.spot.partition(" / ")[0]) or "-"))


def measured(draft: Draft) -> Iterator[Number]:
    """Every number that a document gives as measured, where it first stands."""
    for told in draft.histories.values():
        for history in told:
            yield from history.points.values()
    for cells in draft.cells.values():
        yield from (cell.number for cell in cells if cell.number.value is not None)


def _derived(derived: Derived) -> Iterator[Relation]:
    # A guess was typed as it stands: it has no hidden digits.
    of, minus = (tuple(map(_typed, side)) for side in (derived.of, derived.minus))
    derived = _share(replace(derived, of=of, minus=minus))
    if derived.kind == "relative" and derived.number.unit not in ("", "%"):
        return  # "+2,520 s (+0.70 h)" tells a difference again
    holds, range_ = follows(derived), allowed(derived)
    if holds is None or range_ is None:
        return
    low, high = range_
    if derived.unsigned and (derived.number.value or 0.0) * (low + high) < 0:
        low, high = -high, -low
    number, operands = derived.number, (*derived.of, *derived.minus)
    nodes = tuple(dict.fromkeys(map(node, (number, *operands))))
    inexact, chance = _exactness(derived, low, high)
    yield Relation(
        derived.kind, nodes, holds or roughly(derived), number.text, low, high, number.unit,
        number.decimals, inexact, chance,
    )  # fmt: skip


def _share(derived: Derived) -> Derived:
    """A percentage beside numbers that are none is no difference of theirs, if it is a change."""
    plain = all(one.unit != "%" for one in (*derived.of, *derived.minus))
    if derived.kind == "difference" and derived.number.unit == "%" and plain:
        change = replace(derived, kind="relative")
        return change if follows(change) else derived
    return derived


def _typed(number: Number) -> Number:
    return replace(number, decimals=None) if number.state == "estimated" else number


def _exactness(derived: Derived, low: float, high: float) -> tuple[bool, float]:
    """Whether a number misses what the printed ones give, and how likely that is by rounding."""
    number, operands = derived.number, (*derived.of, *derived.minus)
    if derived.kind not in PLAIN or number.decimals is None or number.about or high <= low:
        return False, 0.0
    exact = allowed(
        replace(
            derived,
            of=tuple(replace(each, decimals=None) for each in derived.of),
            minus=tuple(replace(each, decimals=None) for each in derived.minus),
        )
    )
    if exact is None or number.value is None:
        return False, 0.0
    unit = 10.0**-number.decimals
    values = (number.value, -number.value) if derived.unsigned else (number.value,)
    inexact = all(abs(value - exact[0]) > 0.5 * unit * (1 + 1e-6) for value in values)
    rounded = [one for one in operands if one.decimals is not None]
    if derived.kind == "difference" and all(o.decimals == number.decimals for o in rounded):
        # On the grid of the printed numbers one rounding alone never shows.
        return inexact, 0.25 if len(rounded) > 1 else 0.0
    return inexact, off_by_rounding(exact[0], (high - low) / 2, len(operands), unit)


def _borne_out(draft: Draft) -> Iterator[Relation]:
    """Bests that are the highest or lowest point of their arm's curve: that speaks for both."""
    for (whose, _, _, statistic), cells in draft.cells.items():
        curves = [
            list(history.points.values())
            for (arm, *_), told in draft.histories.items()
            for history in told
            if arm == whose and statistic in ("best", "min", "max")
        ]
        for cell in cells:
            for points in curves:
                values = [one.value or 0.0 for one in points]
                ends = {max(values, default=None), min(values, default=None)}
                if cell.number.value is not None and cell.number.value in ends:
                    top = next(one for one in points if one.value == cell.number.value)
                    yield same(cell.number, top)


def _sum(kind: str, one: Sum, places: Mapping[tuple[int | None, float | None], Node]) -> Relation:
    """The loss, or the KL loss, with its parts."""
    whole = one.parts[kind]
    others = [part for name, part in one.parts.items() if name != kind]
    if kind == "loss":
        kl = one.parts.get("kl") or one.parts["kl_loss"]
        value = one.parts["policy_loss"].value + one.coefficient * kl.value + sum(one.less) / 2
    else:
        value = one.coefficient * one.parts["kl"].value
    numbers = [part.number for part in (whole, *others)]
    nodes = tuple(dict.fromkeys(places.get((n.where.line, n.value)) or node(n) for n in numbers))
    decimals = whole.number.decimals
    return Relation(kind, nodes, one.holds, whole.number.text, value, value, "", decimals)
