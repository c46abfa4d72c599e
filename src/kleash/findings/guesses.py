"""Estimates: how many there are, what was worked out from them, and what was measured later."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import chain

from kleash.findings.kinship import kin, placed
from kleash.findings.record import Found, Point, points, runs, shown
from kleash.imports import Derived, Imported, Number, Source, names

QUOTED = 3
Spot = tuple[str, int | None, float | None]
Missed = dict[Spot, tuple[Point, Point]]


def _spot(number: Number) -> Spot:
    return number.where.file, number.where.line, number.value


def estimated_values(sources: Sequence[Source]) -> Iterator[Found]:
    """A value that somebody guessed is no measurement."""
    for run in runs(sources):
        guesses = any(series.estimated is not None for series in run.series)
        by_metric: dict[str, list[Point]] = defaultdict(list)
        for point in points(run) if guesses or run.cells else ():
            by_metric[point.written].append(point)
        for metric, found in by_metric.items():
            guessed = [point for point in found if not point.known]
            if guessed:
                # A best that is said again is the same number, not another one.
                placed_at = {point.at for point in found if not point.at.startswith("best")}
                facts = {
                    "arm": run.arm,
                    "metric": metric,
                    "estimated": len(guessed),
                    "of": len(placed_at) or len(found),
                }
                where = tuple(point.number.where for point in guessed)
                yield Found("estimated-values", "warning", where, facts)


def _rests(derived: Derived) -> bool:
    return any(one.state == "estimated" for one in (*derived.of, *derived.minus))


def derived_from_estimates(sources: Sequence[Source]) -> Iterator[Found]:
    """What is worked out from a guess is a guess."""
    for source in sources:
        by_metric: dict[str, list[Derived]] = defaultdict(list)
        for derived in source.derived:
            if derived.kind != "same" and derived.number.value is not None:
                by_metric[derived.metric].append(derived)
        for metric, found in by_metric.items():
            resting = [derived for derived in found if _rests(derived)]
            if resting:
                facts = {
                    "metric": metric,
                    "count": len(resting),
                    "of": len(found),
                    "texts": [derived.number.text for derived in resting[:QUOTED]],
                }
                where = tuple(derived.number.where for derived in resting)
                yield Found("derived-from-estimate", "warning", where, facts)


def estimates_contradicted(sources: Sequence[Source]) -> Iterator[Found]:
    """Where the same point was measured elsewhere, a guess can be held against it."""
    pairs = [(pair.ours, pair.theirs) for pair in kin(sources)]
    pairs += list(_namesakes(sources))
    for ours, theirs in chain(pairs, [(theirs, ours) for ours, theirs in pairs]):
        found = _contradicted(ours, theirs, sources)
        if found is not None:
            yield found


def _namesakes(sources: Sequence[Source]) -> Iterator[tuple[Imported, Imported]]:
    """Runs of one name and seed in different sources."""
    first: dict[tuple[str, int | None], tuple[int, Imported]] = {}
    for index, source in enumerate(sources):
        for run in source.runs:
            name = names.spelling(run.arm), run.seed
            before = first.setdefault(name, (index, run))
            if before[0] != index:
                yield before[1], run


def _contradicted(ours: Imported, theirs: Imported, sources: Sequence[Source]) -> Found | None:
    measured = placed(theirs)
    missed: Missed = {}
    for (metric, at), point in placed(ours).items():
        other = measured.get((metric, at))
        if not point.known and other is not None and other.known:
            missed[_spot(point.number)] = (point, other)
    if not missed:
        return None
    signs = [_sign_holds(derived, missed) for derived in _resting(sources)]
    told = [sign for sign in signs if sign is not None]
    first = next(iter(missed.values()))[0]
    facts = {
        "arm": ours.arm,
        "metric": first.written,
        "count": len(missed),
        "largest": shown(max(abs(guess.value - other.value) for guess, other in missed.values())),
        "wrong_signs": told.count(False),
        "signs": len(told),
    }
    where = tuple(point.number.where for pair in missed.values() for point in pair)
    return Found("estimate-contradicted", "error", where, facts)


def _resting(sources: Sequence[Source]) -> Iterator[Derived]:
    for source in sources:
        for derived in source.derived:
            if derived.kind == "difference" and _rests(derived) and derived.number.value:
                yield derived


def _sign_holds(derived: Derived, missed: Missed) -> bool | None:
    """Whether a difference keeps its sign once its guesses are replaced by what was measured."""
    if not any(_spot(one) in missed for one in (*derived.of, *derived.minus)):
        return None
    sides = []
    for side in (derived.of, derived.minus):
        values = [
            missed[_spot(one)][1].value if _spot(one) in missed else one.value for one in side
        ]
        known = [value for value in values if value is not None]
        if not known or len(known) < len(values):
            return None
        sides.append(sum(known) / len(known))
    value = derived.number.value
    return None if value is None else (sides[0] - sides[1]) * value > 0


RULES = (estimated_values, derived_from_estimates, estimates_contradicted)
