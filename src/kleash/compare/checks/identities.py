"""Sums that must come out: the loss and its parts, and whether the coefficient was applied.

Everything is checked as printed: a number stands for all that round to it, and a check fires where
no such numbers fit together.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

from kleash.compare.checks.evidence import SLACK, Check, Evidence, Hit, Numbers, Point, each_run
from kleash.compare.read import Derived
from kleash.compare.read.markdown.derived import allowed

CLOSE = 1e-3  # relative: what sums of numbers that were not rounded may be off by
MOST = 3  # places named for one run; where more fail, the first stand for them
PARTS = ("loss", "policy_loss", "kl", "kl_loss", "kl_coefficient", "entropy")
Term = tuple[float, Point]


def _half(point: Point) -> float:
    return point.half if point.decimals is not None else CLOSE * abs(point.value)


def _total(terms: Iterable[Term]) -> float:
    return sum(weight * point.value for weight, point in terms)


def _adds_up(whole: Point, terms: Sequence[Term]) -> bool:
    """Whether a number is a weighted sum of others, within what rounding allows."""
    off = abs(whole.value - _total(terms))
    halves = [abs(weight) * _half(point) for weight, point in ((1.0, whole), *terms)]
    return off <= sum(halves) + SLACK * max(1e-6, abs(whole.value))


def _fixed_coefficient(run: Numbers) -> float | None:
    """The coefficient of the leash as configured, if nothing moves it."""
    controller = str(run.run.resolved.values.get("leash.controller", "fixed")).casefold()
    fixed = "fix" in controller or "const" in controller
    return run.setting("leash.coefficient") if fixed else None


def _rows(run: Numbers, *needed: str) -> Iterator[tuple[float, dict[str, Point]]]:
    """The parts of the loss that stand at one place, and the coefficient there."""
    if not set(needed) <= run.origins.keys():
        return
    rows: dict[str, dict[str, Point]] = defaultdict(dict)
    for point in run.known(*PARTS):
        rows[point.at].setdefault(point.metric, point)
    for parts in rows.values():
        logged = parts.get("kl_coefficient")
        by = _fixed_coefficient(run) if logged is None else logged.value
        if by is not None and set(needed) <= parts.keys():
            yield by, parts


def each_sum(check: Callable[[Numbers], Iterator[Hit | None]]) -> Check:
    """A check of sums, few of one run. A log in which none adds up logs something else."""

    def failures(run: Numbers) -> Iterator[Hit]:
        every = list(check(run))
        failed = [each for each in every if each is not None]
        if run.by_hand or len(failed) < len(every):
            yield from failed[:MOST]
        elif failed:
            yield replace(failed[0], severity="warning")

    return each_run(failures)


def loss_identity(run: Numbers) -> Iterator[Hit | None]:
    """The loss is the policy loss + coefficient × KL, less an entropy bonus where there is one."""
    bonus = run.setting("entropy_bonus") or 0.0
    for by, parts in _rows(run, "loss", "policy_loss"):
        # Some log the KL loss before its coefficient, some after.
        ways = [(by, parts[name]) for name in ("kl", "kl_loss") if name in parts]
        ways += [(1.0, parts["kl_loss"])] if "kl_loss" in parts else []
        rest = [(1.0, parts["policy_loss"])]
        rest += [(-bonus, parts["entropy"])] if bonus and "entropy" in parts else []
        if not ways or (bonus and len(rest) == 1):
            continue
        fits = any(_adds_up(parts["loss"], [way, *rest]) for way in ways)
        values = {name: point.value for name, point in parts.items()} | {"kl": ways[0][1].value}
        values |= {"coefficient": by, "expected": _total([ways[0], *rest])}
        yield None if fits else run.hit([parts["loss"], *parts.values()], **values)


def kl_loss_identity(run: Numbers) -> Iterator[Hit | None]:
    """The KL loss is coefficient × KL, or in some frameworks KL itself."""
    for by, parts in _rows(run, "kl", "kl_loss"):
        kl, term = parts["kl"], parts["kl_loss"]
        values = {"kl_loss": term.value, "kl": kl.value, "coefficient": by}
        fits = any(_adds_up(term, [(weight, kl)]) for weight in (by, 1.0))
        yield None if fits else run.hit([term, kl], **values, expected=by * kl.value)


def other_coefficient(run: Numbers) -> Iterator[Hit]:
    """The coefficient that a log holds all along is the one that was asked for."""
    asked, logged = _fixed_coefficient(run), run.known("kl_coefficient")
    steady = len({point.value for point in logged}) == 1
    if asked is not None and steady and abs(logged[0].value - asked) > _half(logged[0]) + SLACK:
        yield run.hit(logged[:1], configured=asked, logged=logged[0].value)


def derived_from_missing(evidence: Evidence) -> Iterator[Hit]:
    """A number that a document worked out from one that is missing.

    Whether sums, differences and means come out is for `kleash check`: what they are made of is
    found by their numbers there, and not by their names.
    """
    for derived in (one for source in evidence.sources for one in source.derived):
        number, parts = derived.number, (*derived.of, *derived.minus)
        if number.value is not None and any(one.state == "missing" for one in parts):
            facts = {"text": number.text or f"{number.value:g}", "metric": derived.metric}
            yield Hit((number.where,), facts | {"arms": list(derived.arms)})


def roughly(derived: Derived) -> bool:
    """Whether a number that was called rough is off by no more than one in its last digit."""
    printed, range_ = derived.number, allowed(derived)
    if not printed.about or range_ is None or printed.value is None:
        return False
    unit = 10.0 ** -(printed.decimals or 0) * (1 + SLACK)
    signs = (1, -1) if derived.unsigned else (1,)
    return any(range_[0] - unit <= sign * printed.value <= range_[1] + unit for sign in signs)
