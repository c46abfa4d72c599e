"""At which step or epoch: bests, values in sentences, points of lists; and whose setting it is.

A value of three digits and more names its point of a curve, so that it can be told where else it
stands. `findings.moments` knows sentences with a step and a value side by side; here are the rest.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence

from kleash.documents.marks import Mark
from kleash.findings.plans import is_stage
from kleash.findings.record import digits
from kleash.findings.spoken import position
from kleash.imports import Claim, Number, names
from kleash.imports.markdown.draft import SEED, Draft
from kleash.written.steps import BEST, LISTED, MORE, PLACE, SPAN, axis_and_step, clause_of
from kleash.written.strangers import strangers

DIGITS = 3
NAMING = 4  # digits of a value that stands at two steps of one curve by mistake, not by chance
_EARLIER = re.compile(r"更早|提前|较早|先(?=达到)|earlier|sooner", re.I)
_LATER = re.compile(r"更晚|较晚|later(?= than|[\s,.]|$)", re.I)
Points = dict[tuple[str, str, str], dict[float, list[Number]]]
"""By arm, metric and axis, then by step."""


def curves(draft: Draft) -> Points:
    """Every known value of every arm by metric and step or epoch, whoever tells of it."""
    found: Points = defaultdict(lambda: defaultdict(list))
    for (whose, metric, axis), told in draft.histories.items():
        for history in told:
            for step, number in history.points.items():
                if number.state == "known":
                    found[whose.partition(SEED)[0], metric, axis][step].append(number)
    for (whose, metric, place, statistic), cells in draft.cells.items():
        for axis, at in (("step", place.step), ("epoch", place.epoch)):
            known = [cell.number for cell in cells if cell.number.state == "known"]
            if at is not None and not (statistic or place.shots or place.items):
                # A second value for one step of a list is kept as a cell.
                found[whose.partition(SEED)[0], metric, axis][at] += known
    return found


def bests(draft: Draft) -> dict[tuple[str, str], set[float]]:
    """The steps or epochs at which tables and lists put the best of each arm."""
    found: dict[tuple[str, str], set[float]] = defaultdict(set)
    for (whose, *_), cells in draft.cells.items():
        arm = whose.partition(SEED)[0]
        for cell in cells:
            if cell.statistic in ("best", "min", "max"):
                for axis, at in (("step", cell.step), ("epoch", cell.epoch)):
                    if at is not None:
                        found[arm, axis].add(float(at))
            elif cell.statistic == "best step" and cell.number.value is not None:
                axis = "epoch" if cell.number.unit == "epoch" else "step"
                found[arm, axis].add(cell.number.value)
    return found


def placed(draft: Draft, marks: Sequence[Mark]) -> list[Mark]:
    """Everything that is said to be where it is not."""
    wrong = {(mark.line, mark.code) for mark in marks if mark.state == "wrong"}
    told = curves(draft)
    tops = bests(draft)
    rows = {cell.line for cell in draft.printed}
    found = [*_stray(told, rows), *_beyond(draft, tops), *_own_settings(draft), *strangers(draft)]
    for claim in draft.source.claims:
        line = claim.where.line or 0
        if (line, "value-elsewhere") not in wrong:
            found += _valued(claim, told)
        found += _bests_said(claim, tops)
    return found


# --- points and values


def _stray(told: Points, rows: set[int]) -> Iterator[Mark]:
    """A value that a list tells at another step than the table does."""
    for points in told.values():
        by_value: dict[float, list[tuple[float, Number]]] = defaultdict(list)
        for step, numbers in points.items():
            for number in numbers:
                if digits(number) >= NAMING and number.value is not None:
                    by_value[number.value].append((step, number))
        for found in by_value.values():
            usual = {step for step, number in found if number.where.line in rows}
            for step, number in found:
                if usual and step not in usual and number.where.line not in rows:
                    facts = {"said": _whole(step), "at": [*map(_whole, sorted(usual))]}
                    line = number.where.line or 0
                    yield Mark(
                        line, number.text, "wrong", "check.elsewhere", facts, number.where.spot
                    )


def _whole(step: float) -> float:
    return int(step) if float(step).is_integer() else step


def _valued(claim: Claim, told: Points) -> Iterator[Mark]:
    """A sentence with one step whose values all stand at other steps."""
    matches = list(PLACE.finditer(claim.text))
    listed = "→" in claim.text or LISTED.search(claim.text)
    if len(matches) != 1 or SPAN.search(claim.text) or listed:
        return
    if MORE.match(claim.text, matches[0].end()):
        return
    axis, at = axis_and_step(matches[0])
    near = clause_of(claim.text, matches[0])
    numbers = [one for one in claim.numbers if one.value is not None and digits(one) >= DIGITS]
    numbers = [one for one in numbers if one.text.strip("+-%* ") in near]
    numbers = [one for one in numbers if not _is_compared(near, one.text.strip("+-%* "))]
    arms = [key for key in told if key[2] == axis and (not claim.arms or key[0] in claim.arms)]
    places: set[float] = set()
    for number in numbers:
        for key in arms or [key for key in told if key[2] == axis]:
            places |= {step for step, held in told[key].items() if _has(held, number)}
    if places and at not in places:
        facts = {"text": claim.text, "said": _whole(at), "at": [*map(_whole, sorted(places))]}
        line = claim.where.line or 0
        yield Mark(line, matches[0].group(), "wrong", "check.elsewhere", facts, "placed")


def _is_compared(text: str, number: str) -> bool:
    """Whether something is said to be above or below a number, which is another's."""
    return bool(re.search(rf"(?:{_THAN})[^,，。;；]*{re.escape(number)}", text))


_THAN = r"低于|高于|超过|不及|不如|(?<![a-z])(?:below|above|than|exceeds?|over)(?![a-z])"


def _has(held: Sequence[Number], number: Number) -> bool:
    half = 0.5 * 10.0 ** -(number.decimals or 0) * (1 + 1e-9)
    return any(abs((one.value or 0.0) - (number.value or 0.0)) <= half for one in held)


# --- bests


def _bests_said(claim: Claim, tops: dict[tuple[str, str], set[float]]) -> Iterator[Mark]:
    """ "B reaches its minimum at an earlier epoch (41)": the epoch of B's best, and the order."""
    if not BEST.search(claim.text) or {"expected", "recommended"} & set(claim.judgements):
        return
    line = claim.where.line or 0
    signs = {-1: _EARLIER.search(claim.text), 1: _LATER.search(claim.text)}
    if bool(signs[-1]) == bool(signs[1]) or not claim.arms:
        return
    sign = -1 if signs[-1] else 1
    first = min(claim.arms, key=lambda arm: position(arm, claim.text) % 10_000)
    for axis in ("step", "epoch"):
        every = {arm: steps for (arm, kind), steps in tops.items() if kind == axis}
        others = [steps for arm, steps in every.items() if arm != first]
        if len(others) == 1 and first in every:
            gaps = [ours - theirs for ours in every[first] for theirs in others[0]]
            if all(sign * gap < 0 for gap in gaps):
                facts = {"text": claim.text, "at": [*map(_whole, sorted(every[first] | others[0]))]}
                yield Mark(line, claim.text, "wrong", "check.best-order", facts, "placed")


def _beyond(draft: Draft, tops: dict[tuple[str, str], set[float]]) -> Iterator[Mark]:
    """A best at an epoch or step that was never trained."""
    planned: dict[tuple[str, str], float] = {}
    for run in draft.source.runs:
        config = names.resolve({key: one.value for key, one in run.config.items()}).values
        for key, axis in (("epochs", "epoch"), ("steps", "step")):
            value = config.get(key)
            if isinstance(value, int | float) and not isinstance(value, bool):
                planned[run.arm, axis] = float(value)
    for (whose, *_), cells in draft.cells.items():
        for cell in cells if not is_stage(whose) else ():
            for axis, at in (("epoch", cell.epoch), ("step", cell.step)):
                limit = planned.get((whose.partition(SEED)[0], axis))
                known = cell.number.value is not None  # what is open is still to be trained
                if known and limit is not None and at is not None and at > limit:
                    facts = {"said": _whole(at), "limit": _whole(limit)}
                    where = cell.number.where
                    text = cell.number.text
                    yield Mark(where.line or 0, text, "wrong", "check.beyond", facts, where.spot)


# --- settings that name arms


def _own_settings(draft: Draft) -> Iterator[Mark]:
    """The setting that names an arm, given to that arm with another value."""
    for run in draft.source.runs:
        pair = draft.arms.keys.get(run.arm)
        for key, setting in run.config.items() if pair else ():
            known = names.key(key)
            if pair is None or known is None or known.name != pair.key:
                continue
            for one in (setting, *setting.others):
                if isinstance(one.value, int | float) and one.value != pair.value:
                    facts = {"arm": run.arm, "value": f"{pair.value}"}
                    line = one.where.line or 0
                    yield Mark(line, f"{key} {one.value}", "wrong", "check.other-arm", facts, key)
