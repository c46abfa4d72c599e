"""Results that cannot be so: too much alike, no mean over their items, of no random sample.

Equal means to the last printed digit, several at a time: with three digits each, chance does not do
it. The step of the scores is learnt from their means, so that a wrong one stands out.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from itertools import combinations

import numpy as np

from kleash import stats
from kleash.compare.checks.evidence import Evidence, Hit, Numbers, Places, Point
from kleash.compare.read import Cell, names
from kleash.stats.lattice import fits, lattice_of_means

ENOUGH = 3  # equal cells that chance does not explain
DIGITS = 3
COPIED = 4  # digits of numbers of one row, two of which nobody measures twice
MANY = 30  # groups of one value that are looked at
FEWEST = 8  # means that say something, to learn a lattice from
FINEST = 20  # parts of 1 that scores are multiples of
CHANCE = 1e-3
RANDOM = 0.05
_MEAN = re.compile(r"平均|均值|(?<![a-z])(?:mean|avg|average)(?![a-z])", re.I)

Measured = tuple[Numbers, Places]


# --- too much alike


def _is_outcome(metric: str) -> bool:
    known = names.metric(metric)
    return known is not None and known.direction == 1 and known.unit in ("fraction", "reward", "")


def _by_place(points: Sequence[Point]) -> Places:
    """Points by their place, the first of several; no bests that repeat other cells."""
    found: Places = {}
    for point in points:
        if not point.at.startswith("best"):
            found.setdefault((point.metric, point.at), point)
    return found


def _equal(ours: Point, theirs: Point, digits: int = DIGITS) -> bool:
    """Whether two numbers are printed alike, with enough digits for that to mean something."""
    return ours.value == theirs.value and min(ours.digits, theirs.digits) >= digits


def identical_results(evidence: Evidence) -> Iterator[Hit]:
    """Two arms with the same results to the digit gave the same outputs."""
    for (run, first), *others in _groups(evidence):
        if others:
            common = set(first).intersection(*(places for _, places in others))
            cells = [first[place] for place in sorted(common or first)]
            place = cells[0].metric, cells[0].at
            where = [places[place] for _, places in others if place in places]
            arms = list(dict.fromkeys([run.arm, *(other.arm for other, _ in others)]))
            yield run.hit([cells[0], *where], arms=arms, cells=len(cells))


def _groups(evidence: Evidence) -> list[list[Measured]]:
    """All runs, those that are alike together."""
    groups: list[list[Measured]] = []
    holders: dict[tuple[object, ...], list[int]] = defaultdict(list)
    for run in evidence.runs:
        mine = run, _by_place(run.known(*filter(_is_outcome, run.origins)))
        values = [(place, point.value) for place, point in mine[1].items()]
        shared = Counter(group for each in values for group in holders[each][:MANY])
        near = (group for group, count in shared.items() if count >= ENOUGH)
        alike = (at for at in near if any(_alike(mine, other) for other in groups[at]))
        at = next(alike, len(groups))
        if at == len(groups):
            groups.append([])
        groups[at].append(mine)
        for each in values:
            if at not in holders[each]:
                holders[each].append(at)
    return groups


def _alike(ours: Measured, theirs: Measured) -> bool:
    """Whether two arms have equal results wherever both have them."""
    (run, outcomes), (other, others) = ours, theirs
    if names.spelling(run.arm) == names.spelling(other.arm):
        return False
    coefficients = [each.setting("leash.coefficient") for each in (run, other)]
    # In another source one run may stand under another name: only a coefficient tells.
    distinct = None not in coefficients and coefficients[0] != coefficients[1]
    shared = outcomes.keys() & others.keys() if distinct or run.source is other.source else ()
    return len(shared) >= ENOUGH and all(_equal(outcomes[at], others[at]) for at in shared)


def identical_over_training(run: Numbers) -> Iterator[Hit]:
    """Results of one arm that do not change between checkpoints, to the digit."""
    tables: dict[tuple[str, str], dict[object, Point]] = defaultdict(dict)
    for point in _by_place(run.cells()).values():
        if _is_outcome(point.metric) and (point.items or point.shots) is not None:
            at = f"step {point.step}" if point.epoch is None else f"epoch {point.epoch:g}"
            tables[point.metric, at][point.shots, point.items] = point
    for (metric, at), (other_metric, later) in combinations(sorted(tables), 2):
        ours, theirs = tables[metric, at], tables[other_metric, later]
        shared = [cell for cell in ours if cell in theirs]
        equal = [cell for cell in shared if _equal(ours[cell], theirs[cell])]
        if metric == other_metric and len(equal) >= max(ENOUGH, len(shared) / 2):
            points = [ours[equal[0]], theirs[equal[0]]]
            yield run.hit(points, at=[at, later], cells=len(equal), of=len(shared))


def copied_rows(evidence: Evidence) -> Iterator[Hit]:
    """Several numbers of two rows of a document are equal while others of them differ.

    What a program logs nobody copied: runs that share a seed share draws.
    """
    for runs in evidence.by_source():
        rows = [(run, _training(run)) for run in runs if run.by_hand]
        for (run, ours), (other, theirs) in combinations(rows, 2):
            shared = [place for place in ours if place in theirs]
            # What never differs has another reason: it comes from the data.
            differing = {one[0] for one in shared if ours[one].value != theirs[one].value}
            for at in dict.fromkeys(at for _, at in shared):
                row = [ours[place] for place in shared if place[1] == at]
                same = [
                    p
                    for p in row
                    if p.metric in differing and _equal(p, theirs[p.metric, at], COPIED)
                ]
                if 1 < len(same) < len(row):
                    values, metrics = [p.value for p in same], [p.name for p in same]
                    points, arms = [same[0], theirs[same[0].metric, at]], [run.arm, other.arm]
                    yield run.hit(points, arms=arms, values=values, metrics=metrics)


def _training(run: Numbers) -> Places:
    """What was printed of the training of a run, after its start."""
    return {
        (metric, at): point
        for (metric, at), point in _by_place(run.known(*run.origins)).items()
        if at.startswith(("step", "epoch")) and point.time > 0
        if point.decimals is not None and not _is_outcome(metric)
    }


# --- what means can be


def off_lattice(evidence: Evidence) -> Iterator[Hit]:
    """A mean over n items lies on the lattice that the other means show."""
    by_metric: dict[tuple[str, bool], list[tuple[Numbers, Point]]] = defaultdict(list)
    of_means = {
        (table.where.file, line)
        for source in evidence.sources
        for table in source.tables
        if table.headings and _MEAN.search(table.headings[-1])
        for line in table.lines
    }
    for run in evidence.runs:
        for point in _shares(run):
            where = point.where
            mean = (where.file, where.line) in of_means or _MEAN.search(where.spot.split(" / ")[0])
            if point.decimals is not None and not mean:
                # Beside scores of single shots, one without is their mean, on a finer lattice.
                by_metric[point.metric, point.shots is None].append((run, point))
    for found in by_metric.values():
        parts, stray = _stray([point for _, point in found])
        if stray is not None:
            run, point = found[stray]
            yield run.hit([point], text=_text(point), items=point.items, step=1 / parts)


def _text(point: Point) -> str:
    printed = point.origin.number.text if isinstance(point.origin, Cell) else ""
    return printed or f"{point.value:g}"


def _shares(run: Numbers) -> list[Point]:
    """Cells that are means of scores from 0 to 1 over items, and no changes."""
    return [
        point
        for point in run.cells()
        if point.items and 0 <= point.value <= 1 and _text(point)[:1] not in ("+", "-")
    ]


def _stray(found: Sequence[Point]) -> tuple[int, int | None]:
    """Into how many parts the scores divide 1, and the only mean that no such scores have.

    Where several stray they are another quantity, such as means of several such means.
    """
    means = np.array([point.value for point in found])
    sizes = np.array([point.items for point in found], dtype=np.float64)
    halves = np.array([point.half for point in found])
    for parts in range(1, FINEST + 1):
        on = fits(means * sizes, halves * sizes, 1 / parts)
        if on.sum() >= max(FEWEST, len(found) - 1):
            chance = CHANCE / len(found)
            learnt = lattice_of_means(means[on], sizes[on], halves[on], chance=chance)
            sure = learnt is not None and learnt.step == 1 / parts
            return parts, int(np.flatnonzero(~on)[0]) if sure and not on.all() else None
    return 1, None


def order_effect(run: Numbers) -> Iterator[Hit]:
    """The first 100, 200, 400 items of one set, where they are not like the later ones."""
    tables: dict[tuple[object, ...], dict[int | None, dict[int, Point]]] = defaultdict(dict)
    for point in _shares(run):
        by_size = tables[point.metric, point.epoch, point.step].setdefault(point.shots, {})
        by_size.setdefault(point.items or 0, point)
    for by_shots in tables.values():
        sizes = sorted(set.intersection(*map(set, by_shots.values())))
        rows = [[points[n] for n in sizes] for points in by_shots.values()]
        values = np.array([[point.value for point in row] for row in rows])
        if len(sizes) < 2 or not 0 < values[:, -1].mean() < 1 or (values == values[:, :1]).all():
            continue
        half = max(point.half for row in rows for point in row)
        means = values.mean(axis=0)
        # The mean over shots varies less than single scores: the test errs towards no effect.
        p = stats.order_effect(sizes, means).p
        if p < RANDOM and all(stats.may_be_nested(sizes, row, half=half) for row in values):
            blocks = [block.mean for block in stats.block_means(sizes, means)]
            first = rows[0][0]
            at = f"epoch {first.epoch:g}" if first.epoch is not None else f"step {first.step}"
            yield run.hit(rows[0], at=at, blocks=blocks, p=p)
