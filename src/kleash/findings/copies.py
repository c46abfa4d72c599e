"""Numbers that are too much alike: identical results, copied rows, quantities that cannot differ.

Equal to the last printed digit, several at a time: with three digits each, chance does not do it.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Container, Iterable, Iterator, Sequence
from itertools import combinations
from math import comb, prod

from kleash.findings.record import (
    Found,
    Point,
    canonical,
    cell_points,
    coefficient,
    digits,
    every_value,
    points,
    sampled,
    series_points,
    told_metrics,
)
from kleash.imports import Imported, Series, Source, names

ENOUGH = 3  # equal cells that chance does not explain
DIGITS = 3
MANY = 30  # arms that are compared pair by pair
START = ("step 0", "epoch 0")
CHANCE = 0.01  # rows as much alike that are expected of runs that nobody copied
NEAR = 1e-4  # how close to its constant a quantity is that has one by construction

Places = dict[tuple[str, str], Point]
Values = dict[tuple[str, str], float]


def _is_outcome(written: str) -> bool:
    known = names.metric(written)
    return known is not None and known.direction == 1 and known.unit in ("fraction", "reward", "")


def _outcomes(run: Imported) -> Places:
    """What was measured of a run's results, without bests that repeat other cells."""
    curves = [series for series in run.series if _is_outcome(series.metric)]
    every = [point for series in curves for point in series_points(series)]
    return _placed([*every, *_measured(run)])


def _measured(run: Imported) -> list[Point]:
    return [point for point in cell_points(run) if _is_outcome(point.written)]


def _placed(found: Sequence[Point]) -> Places:
    """Known points by their place, the first of several; no bests that repeat other cells."""
    return {
        (point.metric, point.at): point
        for point in reversed(found)
        if point.known and not point.at.startswith("best")
    }


def _equal(ours: Point, theirs: Point) -> bool:
    """Whether two numbers are printed alike, with enough digits for that to mean something."""
    return ours.value == theirs.value and min(digits(ours.number), digits(theirs.number)) >= DIGITS


def _values(run: Imported) -> Values:
    """The values of `_outcomes`, without a point for each: logs have many."""
    if run.cells or any(s.estimated is not None or not s.finite for s in run.series):
        return {place: point.value for place, point in _outcomes(run).items()}
    made: Values = {}
    for series in reversed(run.series):
        if _is_outcome(series.metric):
            metric, (places, values) = canonical(series.metric), sampled(series)
            made |= zip([(metric, at) for at in reversed(places)], reversed(values), strict=True)
    return made


def _print(run: Imported) -> tuple[tuple[object, ...], tuple[bytes, ...]] | None:
    """Where the outcomes of a run stand, and the outcomes; None of what is not simply a log."""
    if run.cells or any(s.estimated is not None or not s.finite for s in run.series):
        return None
    curves = [series for series in run.series if _is_outcome(series.metric)]
    places = tuple((canonical(s.metric), s.axis, s.steps.tobytes()) for s in curves)
    return places, tuple((s.values + 0.0).tobytes() for s in curves)


def identical_results(sources: Sequence[Source]) -> Iterator[Found]:
    """Two arms with the same results to the digit gave the same outputs."""
    told = [(index, run) for index, source in enumerate(sources) for run in source.runs]
    prints = [_print(run) for _, run in told]
    if None not in prints and len({places for places, _ in filter(None, prints)}) == 1:
        # Logs of the same steps: those that are alike anywhere are alike everywhere.
        seen = Counter(prints)
        told = [each for each, made in zip(told, prints, strict=True) if seen[made] > 1]
    every = [(index, run, _values(run)) for index, run in told]
    for group in _joined(len(every), _alike(every)):
        members = [(run, _outcomes(run)) for _, run, _ in (every[index] for index in group)]
        shared = set.intersection(*(set(places) for _, places in members))
        first = members[0][1]
        cells = sorted(shared) or sorted(first)
        items = {first[cell].items for cell in cells} - {None}
        facts = {
            "arms": list(dict.fromkeys(run.arm for run, _ in members)),
            "metric": first[cells[0]].written,
            "cells": len(cells),
            "items": max((n for n in items if n is not None), default=None),
            "values": [first[cell].value for cell in cells][:8],
        }
        where = tuple(places[cells[0]].number.where for _, places in members if cells[0] in places)
        yield Found("identical-results", "error", where, facts)


def _alike(every: Sequence[tuple[int, Imported, Values]]) -> Iterator[tuple[int, int]]:
    """Pairs of arms whose results are equal wherever both have them."""
    index: dict[tuple[object, ...], list[int]] = defaultdict(list)
    for at, (_, _, values) in enumerate(every):
        for cell in values.items():
            index[cell].append(at)
    several = (group[:MANY] for group in index.values() if len(group) > 1)
    candidates = {pair for group in several for pair in combinations(group, 2)}
    for ours, theirs in sorted(candidates):
        (source, run, values), (other_source, other, others) = every[ours], every[theirs]
        if names.spelling(run.arm) == names.spelling(other.arm):
            continue
        # Across sources, one run may stand under two names: only another coefficient tells.
        if source != other_source and (
            coefficient(run) is None or coefficient(run) == coefficient(other)
        ):
            continue
        shared = values.keys() & others.keys()
        if len(shared) < ENOUGH or any(values[cell] != others[cell] for cell in shared):
            continue
        places, told = _outcomes(run), _outcomes(other)
        if all(_equal(places[cell], told[cell]) for cell in shared):
            yield ours, theirs


def _joined(n: int, pairs: Iterable[tuple[int, int]]) -> list[list[int]]:
    """Groups of two and more that pairs join."""
    group = {at: [at] for at in range(n)}
    for ours, theirs in pairs:
        if group[ours] is not group[theirs]:
            group[ours] += group[theirs]
            for at in group[theirs]:
                group[at] = group[ours]
    distinct = {id(each): sorted(each) for each in group.values()}
    return [each for each in distinct.values() if len(each) > 1]


def identical_over_training(sources: Sequence[Source]) -> Iterator[Found]:
    """Results of one arm that do not change between checkpoints, to the digit."""
    for run in (run for source in sources for run in source.runs):
        cells: dict[tuple[str, str], dict[object, Point]] = defaultdict(dict)
        for point in _placed(_measured(run)).values():
            if point.items is not None or point.shots is not None:
                at = f"epoch {point.epoch:g}" if point.epoch is not None else f"step {point.step}"
                cells[point.metric, at][point.shots, point.items] = point
        for (metric, at), (other_metric, later) in combinations(sorted(cells), 2):
            ours, theirs = cells[metric, at], cells[other_metric, later]
            shared = ours.keys() & theirs.keys()
            equal = [cell for cell in sorted(shared, key=str) if _equal(ours[cell], theirs[cell])]
            if metric != other_metric or len(equal) < ENOUGH or 2 * len(equal) < len(shared):
                continue
            facts = {
                "arm": run.arm,
                "metric": ours[equal[0]].written,
                "at": [at, later],
                "cells": len(equal),
                "of": len(shared),
            }
            where = (ours[equal[0]].number.where, theirs[equal[0]].number.where)
            yield Found("identical-over-training", "warning", where, facts)


# --- training metrics


def _training(run: Imported, without: Container[str] = ()) -> Places:
    curves = [
        series
        for series in run.series
        if series.axis != "time"
        and canonical(series.metric) not in without
        and not _is_outcome(series.metric)
    ]
    every = [point for series in curves for point in series_points(series)]
    cells = [
        point
        for point in cell_points(run)
        if not _is_outcome(point.written) and point.at.startswith(("step", "epoch"))
    ]
    return _placed([*every, *cells])


def _prints(run: Imported) -> bool:
    """Whether some number of a run may have been printed, with the decimals it has."""
    return bool(run.cells) or any(s.decimals is not None or s.float32 for s in run.series)


def _printed(places: Places) -> Places:
    return {at: point for at, point in places.items() if point.decimals is not None}


def copied_rows(sources: Sequence[Source]) -> Iterator[Found]:
    """Several numbers of two rows are equal to the digit while others of them differ.

    More than the many rows of a log are by chance. Of numbers that were printed, as whoever copies
    does: what a program logs with all its digits nobody typed, runs that share a seed share draws,
    and shares of few groups are often equal.
    """
    for source in sources:
        printed = [run for run in source.runs[:MANY] if _prints(run)]
        rows = [(run, _printed(_training(run))) for run in printed]
        for first, second in _with_equals([places for _, places in rows]):
            (run, ours), (other, theirs) = rows[first], rows[second]
            shared = sorted(ours.keys() & theirs.keys())
            differing = {m for m, at in shared if ours[m, at].value != theirs[m, at].value}
            by_place: dict[str, list[str]] = defaultdict(list)
            for metric, at in shared:
                # What never differs has another reason: see `same_in_all_arms`.
                if metric in differing and _equal(ours[metric, at], theirs[metric, at]):
                    by_place[at].append(metric)
            for at, metrics in by_place.items():
                if at in START:
                    continue  # all runs have it from where they began
                rest = any(place == at and metric not in metrics for metric, place in shared)
                cells = [ours[metric, at] for metric in metrics]
                often = sum(_has_all(places, metrics, at, cells) for _, places in rows)
                if len(metrics) < 2 or not rest or often > 2:  # in three they came out so
                    continue
                chosen = comb(sum(place == at for _, place in shared), len(metrics))
                tried = comb(len(rows), 2) * len({place for _, place in shared}) * chosen
                if tried * prod(_tie(ours, theirs, m, at) for m in metrics) > CHANCE:
                    continue
                facts = {
                    "arms": [run.arm, other.arm],
                    "at": at,
                    "metrics": [cell.written for cell in cells],
                    "values": [cell.value for cell in cells],
                }
                where = (cells[0].number.where, theirs[metrics[0], at].number.where)
                yield Found("copied-row", "error", where, facts)


def _tie(ours: Places, theirs: Places, metric: str, at: str) -> float:
    """How likely two runs print the same for a metric: by how far apart they are elsewhere."""
    gaps = [
        abs(point.value - theirs[metric, place].value)
        for (name, place), point in ours.items()
        if name == metric and place != at and (metric, place) in theirs
    ]
    here = ours[metric, at]
    unit = 10.0 ** -(here.decimals or 0)
    usual = sum(gaps) / len(gaps) if gaps else abs(here.value) / 10
    return min(1.0, max(gaps.count(0.0) / max(1, len(gaps)), unit / (2 * usual or 1.0)))


def _has_all(places: Places, metrics: Sequence[str], at: str, cells: Sequence[Point]) -> bool:
    told = [places.get((metric, at)) for metric in metrics]
    return all(one is not None and _equal(one, cell) for one, cell in zip(told, cells, strict=True))


def _with_equals(rows: Sequence[Places]) -> list[tuple[int, int]]:
    """The pairs of rows in which two numbers are equal or more, in order."""
    index: dict[tuple[str, str, float], list[int]] = defaultdict(list)
    for at, places in enumerate(rows):
        for (metric, where), point in places.items():
            index[metric, where, point.value].append(at)
    pairs = Counter(pair for holders in index.values() for pair in combinations(holders, 2))
    return sorted(pair for pair, equal in pairs.items() if equal > 1)


def same_in_all_arms(sources: Sequence[Source]) -> Iterator[Found]:
    """A training metric that is equal in all arms at all places comes from the data."""
    for source in sources:
        by_metric: dict[str, list[tuple[Imported, Places]]] = defaultdict(list)
        differing = _differing(source.runs[:100])
        for run in source.runs[:100]:
            places = _training(run, differing)
            mine: dict[str, Places] = defaultdict(dict)
            for place, point in places.items():
                mine[point.metric][place] = point
            for metric, found in mine.items():
                by_metric[metric].append((run, found))
        for told in by_metric.values():
            same = _never_differs(told)
            if same is not None:
                yield same


def _differing(runs: Sequence[Imported]) -> set[str]:
    """Metrics that differ between two runs at every step: a cheap look, before all is compared."""
    first: dict[tuple[str, str], Series] = {}
    found: set[tuple[str, str]] = set()
    holders: Counter[object] = Counter()
    for run in runs:
        curves = [series for series in run.series if series.axis != "time"]
        told = [((canonical(series.metric), series.axis), series) for series in curves]
        counts = Counter(key for key, _ in told)
        holders.update(counts.keys() | {metric for metric, _ in counts})
        for key, series in () if run.cells else told:
            if counts[key] == 1 and series.finite and series.estimated is None:
                other = first.setdefault(key, series)
                if other.steps is series.steps and bool((other.values != series.values).all()):
                    found.add(key)
    # What only some runs have over this axis may yet be the same where all have it.
    return {metric for metric, axis in found if holders[metric, axis] == holders[metric]}


def _never_differs(told: Sequence[tuple[Imported, Places]]) -> Found | None:
    if len({names.spelling(run.arm) for run, _ in told}) < 2:
        return None
    shared = sorted(set.intersection(*(set(places) for _, places in told)))
    first = told[0][1]
    known = names.metric(first[shared[0]].written) if shared else None
    if len(shared) < 2 or (known is not None and known.constant is not None):
        return None
    if known is not None and known.name in ("learning_rate", "kl_coefficient"):
        return None  # settings that were logged
    if shared and first[shared[0]].written.endswith(("/n", "/uniform_loss")):
        return None  # of the data, and logged to be read beside others
    if known is None and _counts([first[place] for place in shared]):
        return None
    if not all(_equal(first[place], places[place]) for _, places in told for place in shared):
        return None
    facts = {
        "arms": list(dict.fromkeys(run.arm for run, _ in told)),
        "metric": first[shared[0]].written,
        "points": len(shared),
    }
    where = tuple(places[shared[0]].number.where for _, places in told)
    return Found("same-in-all-arms", "note", where, facts)


def _counts(found: Sequence[Point]) -> bool:
    """Whether a quantity counts something: whole numbers, or an epoch that goes on."""
    values = [point.value for point in sorted(found, key=lambda p: (p.epoch or 0, p.step or 0))]
    return all(value.is_integer() for value in values) or values == sorted(values)


def constant_by_construction(sources: Sequence[Source]) -> Iterator[Found]:
    """A quantity with one value whatever is trained."""
    for source in sources:
        by_metric: dict[str, list[tuple[str, Point]]] = defaultdict(list)
        varying: set[str] = set()
        for run in source.runs:
            for metric in told_metrics(run):
                constant = _constant(metric)
                if constant is None or metric in varying:
                    continue
                if any(abs(value - constant) > NEAR for value in every_value(run, metric)):
                    varying.add(metric)
                    by_metric.pop(metric, None)
                    continue
                found = [(run.arm, point) for point in points(run, metric)]
                if found:
                    by_metric[metric] += found
        for name, found in by_metric.items():
            constant = _constant(name) or 0.0
            facts = {
                "arms": list(dict.fromkeys(arm for arm, _ in found)),
                "metric": found[0][1].written,
                "constant": constant,
                "value": found[0][1].value,
            }
            where = tuple(point.number.where for _, point in found[:8])
            yield Found("constant-by-construction", "note", where, facts)


def _constant(metric: str) -> float | None:
    """The value that a quantity has whatever is trained, if there is one."""
    known = names.metric(metric)
    return None if known is None else known.constant


RULES = (
    identical_results,
    identical_over_training,
    copied_rows,
    same_in_all_arms,
    constant_by_construction,
)
