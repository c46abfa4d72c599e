"""Sums that must come out: the loss and its parts, and numbers that a document worked out itself.

Everything is checked as printed: a number stands for all that round to it, and a finding means
that no such numbers fit together.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePath
from statistics import pstdev, stdev

from kleash.findings.record import (
    Found,
    Point,
    Range,
    apart,
    bounds,
    canonical,
    coefficient,
    number_of,
    points,
    runs,
    settings,
    shown,
    told_metrics,
)
from kleash.imports import Derived, Imported, Number, Source, Where
from kleash.imports.markdown.derived import allowed, follows

CLOSE = 1e-3  # relative: what sums of numbers that were not rounded may be off by
MOST = 3  # places named for one run; where more fail, the first stand for them
_PARTS = ("loss", "policy_loss", "kl", "kl_loss", "kl_coefficient", "entropy")

Parts = dict[str, Point]


def _rows(run: Imported, needed: set[str]) -> Iterator[tuple[str, Parts]]:
    """The parts of the loss that stand at the same place of a run, if all that are needed do."""
    if not needed <= told_metrics(run):
        return
    rows: dict[str, Parts] = defaultdict(dict)
    for point in points(run, *_PARTS):
        if point.known:
            rows[point.at].setdefault(point.metric, point)
    yield from rows.items()


def _range(point: Point) -> Range:
    if point.number.decimals is not None:
        return bounds(point.number)
    return _wide(point.value - CLOSE * abs(point.value), point.value + CLOSE * abs(point.value))


def _wide(low: float, high: float) -> Range:
    return min(low, high), max(low, high)


def _scaled(range_: Range, by: float) -> Range:
    return _wide(range_[0] * by, range_[1] * by)


def _sum(*ranges: Range) -> Range:
    return sum(low for low, _ in ranges), sum(high for _, high in ranges)


def _coefficient(run: Imported, parts: Parts) -> float | None:
    """The coefficient at one place: as logged there, else as configured if it is constant."""
    if "kl_coefficient" in parts:
        return parts["kl_coefficient"].value
    controller = str(settings(run).get("leash.controller", "fixed")).casefold()
    return coefficient(run) if "fix" in controller or "const" in controller else None


@dataclass(frozen=True)
class Sum:
    """A loss with its parts at one place of a run, and whether it comes out."""

    at: str
    parts: Parts
    coefficient: float
    less: Range
    holds: bool


def losses(run: Imported) -> Iterator[Sum]:
    """Every place at which the loss, the policy loss and KL of a run stand together."""
    if not {"kl", "kl_loss"} & told_metrics(run):
        return
    bonus = number_of(run, "entropy_bonus") or 0.0
    for at, parts in _rows(run, {"loss", "policy_loss"}):
        by = _coefficient(run, parts)
        if by is None or not {"loss", "policy_loss"} <= parts.keys():
            continue
        if not {"kl", "kl_loss"} & parts.keys():
            continue  # another place of the run has it
        if bonus and "entropy" not in parts:
            continue
        less = _scaled(_range(parts["entropy"]), -bonus) if bonus else (0.0, 0.0)
        wholes = _wholes(parts, by, less)
        off = bool(wholes) and all(apart(_range(parts["loss"]), whole) for whole in wholes)
        yield Sum(at, parts, by, less, not off)


def loss_identity(sources: Sequence[Source]) -> Iterator[Found]:
    """The loss is the policy loss + coefficient × KL, less an entropy bonus where there is one."""
    for run in runs(sources):
        every = list(losses(run))
        failed = [
            _loss_finding(run, one.at, one.parts, one.coefficient, one.less)
            for one in every
            if not one.holds
        ]
        yield from _shown(run, failed, len(every) - len(failed))


def _wholes(parts: Parts, by: float, less: Range) -> list[Range]:
    """What the loss may be: some log the KL loss before its coefficient, some after."""
    policy = _range(parts["policy_loss"])
    terms = [_scaled(_range(parts["kl"]), by)] if "kl" in parts else []
    if "kl_loss" in parts:
        terms += [_range(parts["kl_loss"]), _scaled(_range(parts["kl_loss"]), by)]
    return [_sum(policy, term, less) for term in terms]


def _loss_finding(run: Imported, at: str, parts: Parts, by: float, less: Range) -> Found:
    kl = parts.get("kl") or parts["kl_loss"]
    expected = parts["policy_loss"].value + by * kl.value + sum(less) / 2
    facts = {
        "arm": run.arm,
        "at": at,
        "loss": parts["loss"].value,
        "policy_loss": parts["policy_loss"].value,
        "kl": kl.value,
        "coefficient": by,
        "expected": shown(expected),
    }
    where = tuple(dict.fromkeys(part.number.where for part in parts.values()))
    return Found("loss-identity", "error", where, facts)


def kl_losses(run: Imported) -> Iterator[Sum]:
    """Every place at which KL and the KL loss of a run stand together."""
    for at, parts in _rows(run, {"kl", "kl_loss"}):
        by = _coefficient(run, parts)
        if by is None or not {"kl", "kl_loss"} <= parts.keys():
            continue
        kl, term = _range(parts["kl"]), _range(parts["kl_loss"])
        off = apart(term, _scaled(kl, by)) and apart(term, kl)
        kept = {name: parts[name] for name in ("kl", "kl_loss")}
        yield Sum(at, kept, by, (0.0, 0.0), not off)


def kl_loss_identity(sources: Sequence[Source]) -> Iterator[Found]:
    """The KL loss is coefficient × KL, or in some frameworks KL itself."""
    for run in runs(sources):
        every = list(kl_losses(run))
        failed = [_kl_finding(run, one) for one in every if not one.holds]
        yield from _shown(run, failed, len(every) - len(failed))


def _kl_finding(run: Imported, one: Sum) -> Found:
    kl, term = one.parts["kl"], one.parts["kl_loss"]
    facts = {
        "arm": run.arm,
        "at": one.at,
        "kl_loss": term.value,
        "kl": kl.value,
        "coefficient": one.coefficient,
        "expected": shown(one.coefficient * kl.value),
    }
    return Found("kl-loss-identity", "error", (term.number.where, kl.number.where), facts)


def _shown(run: Imported, failed: Sequence[Found], fine: int) -> Iterator[Found]:
    """The failures that are told. A log in which nothing adds up logs something else: a warning."""
    if run.format == "markdown" or fine or not failed:
        yield from failed[:MOST]
    else:
        yield replace(failed[0], severity="warning")


# --- numbers that a document derived from its own


def derived_numbers(sources: Sequence[Source]) -> Iterator[Found]:
    """What is worked out from a number that is missing, or printed twice and not alike.

    Whether sums, differences and means come out is for `kleash check`: what they are made of is
    found by their numbers there, and not by their names.
    """
    for source in sources:
        for derived in source.derived:
            if derived.number.value is None:
                continue
            facts, where = _facts(derived), (derived.number.where,)
            if any(operand.state == "missing" for operand in (*derived.of, *derived.minus)):
                facts = {key: facts[key] for key in ("text", "kind", "metric", "arms")}
                yield Found("derived-from-missing", "error", where, facts)
            elif derived.kind == "same" and follows(derived) is False and not roughly(derived):
                del facts["kind"]
                yield Found("printed-twice", "error", (*where, derived.of[0].where), facts)


def unchecked_reports(sources: Sequence[Source]) -> Iterator[Found]:
    """Reports with sums and sentences, which are not checked here."""
    for file in dict.fromkeys(one.number.where.file for s in sources for one in s.derived):
        yield Found("report-unchecked", "note", (Where(file, 1),), {"report": PurePath(file).name})


def spread_identity(sources: Sequence[Source]) -> Iterator[Found]:
    """A spread over seeds is that of the seeds shown: deviation, of sample or whole, or error."""
    for source in sources:
        if not any(cell.statistic == "spread" for run in source.runs for cell in run.cells):
            continue
        seeds: dict[tuple[str, str, str], list[Point]] = defaultdict(list)
        for run in source.runs:
            for point in points(run) if run.seed is not None else ():
                seeds[run.arm, point.metric, point.at].append(point)
        for run in source.runs:
            for cell in run.cells if run.seed is None else ():
                told = seeds.get((run.arm, canonical(cell.metric), ""), [])
                if cell.statistic == "spread" and cell.number.value is not None and len(told) > 2:
                    found = _spread(run, cell.number, told)
                    if found is not None:
                        yield found


def _spread(run: Imported, printed: Number, told: Sequence[Point]) -> Found | None:
    values = [point.value for point in told]
    whole, sample = pstdev(values), stdev(values)
    half = max(0.5 * 10.0 ** -(point.number.decimals or 9) for point in told)
    near = bounds(printed)[0] - half, bounds(printed)[1] + half
    meant = (whole, sample, sample / len(values) ** 0.5, 1.96 * sample / len(values) ** 0.5)
    if not all(apart((each, each), near) for each in meant):
        return None
    facts = {
        "arm": run.arm,
        "metric": told[0].written,
        "spread": printed.value,
        "expected": shown(sample),
        "seeds": len(values),
    }
    return Found("spread-identity", "error", (printed.where, told[0].number.where), facts)


def _facts(derived: Derived) -> dict[str, object]:
    range_ = allowed(derived)
    low, high = (None, None) if range_ is None else map(shown, range_)
    return {
        "text": derived.number.text or f"{derived.number.value:g}",
        "kind": derived.kind,
        "low": low,
        "high": high,
        "metric": derived.metric,
        "arms": list(derived.arms),
    }


def roughly(derived: Derived) -> bool:
    """Whether a number that was called rough is off by no more than one in its last digit."""
    printed, range_ = derived.number, allowed(derived)
    if not printed.about or range_ is None or printed.value is None:
        return False
    unit = 10.0 ** -(printed.decimals or 0)
    signs = (1, -1) if derived.unsigned else (1,)
    return any(
        not apart((sign * printed.value - unit, sign * printed.value + unit), range_)
        for sign in signs
    )


def derived_from_rounded(sources: Sequence[Source]) -> Iterator[Found]:
    """A difference of rounded means is not the rounded difference of the means."""
    for source in sources:
        means = [one for one in source.derived if one.kind == "mean" and follows(one)]
        found: list[Found] = []
        for derived in source.derived:
            if derived.kind not in ("difference", "relative") or follows(derived) is not True:
                continue
            ours, theirs = (_leaves(side, means) for side in (derived.of, derived.minus))
            if (ours, theirs) == (derived.of, derived.minus):
                continue
            whole = Derived(derived.kind, derived.number, ours, theirs, unsigned=derived.unsigned)
            exact = allowed(Derived(derived.kind, derived.number, _plain(ours), _plain(theirs)))
            if exact is None or derived.number.value is None:
                continue
            half = 0.5 * 10.0 ** -(derived.number.decimals or 0)
            off = (
                min(abs(sign * derived.number.value - exact[0]) for sign in (1, -1)) > half * 1.001
            )
            if off:
                facts = _facts(whole) | {"metric": derived.metric, "arms": list(derived.arms)}
                facts |= {"low": shown(exact[0]), "high": shown(exact[1])}
                found.append(Found("derived-from-rounded", "note", (derived.number.where,), facts))
        yield from _together(found)


def _together(found: Sequence[Found]) -> Iterator[Found]:
    """Findings with the same text and values as one, with all their arms and places."""
    groups: dict[tuple[object, ...], list[Found]] = defaultdict(list)
    for one in found:
        groups[one.facts["text"], one.facts["low"], one.facts["metric"]].append(one)
    for group in groups.values():
        arms = list(dict.fromkeys(arm for one in group for arm in one.facts["arms"]))
        where = tuple(place for one in group for place in one.where)
        yield Found(group[0].code, group[0].severity, where, group[0].facts | {"arms": arms})


def _leaves(numbers: Sequence[Number], means: Sequence[Derived]) -> tuple[Number, ...]:
    """What stands behind a single mean; other numbers as they are."""
    if len(numbers) != 1:
        return tuple(numbers)
    behind = [mean.of for mean in means if mean.number == numbers[0]]
    return (
        behind[0] if behind and all(one.value is not None for one in behind[0]) else (numbers[0],)
    )


def _plain(numbers: Sequence[Number]) -> tuple[Number, ...]:
    return tuple(Number(one.value, one.state, one.where) for one in numbers)


RULES = (
    loss_identity,
    kl_loss_identity,
    derived_numbers,
    spread_identity,
    derived_from_rounded,
    unchecked_reports,
)
