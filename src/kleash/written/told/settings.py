"""Settings of arms that a report tells in two places, once as another arm's.

Where a sentence wants to lower a coefficient from 0.01, or says how long was trained, it tells what
its arm had. If a table or list gives that to another arm, and this one something else, two were
exchanged: which of the places is wrong nobody can tell, so both are told.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from kleash.imports import Setting, names
from kleash.imports.markdown.draft import Draft
from kleash.written.marks import Mark
from kleash.written.page import Page

NAMED = 24  # letters before "from" in which a setting is named
_FROM = re.compile(
    r"(?:从|由|(?<![a-z])from)\s?(\d+(?:\.\d+)?(?:e-?\d+)?)\s?[^\d,;。()]{0,6}?(?:到|至|为|→|->|(?<![a-z])to)\s?\d",
    re.I,
)
_TRAINED = re.compile(
    r"训练(?:已?完成|已?结束)?了?\s?(\d+)\s?(步|轮)|"
    r"(?<![a-z])(?:trained|run|ran) for (\d+) (steps|epochs|updates)",
    re.I,
)
_UNITS = {"步": "steps", "轮": "epochs"}
_NEW = re.compile(r"新|本次|当前|(?<![a-z])(?:new|current|ours|this)(?![a-z])", re.I)
_LEADS = re.compile(r"[:：]\s*$")
Values = Mapping[str, Mapping[str, Setting]]
"""By setting, what each arm has."""


@dataclass(frozen=True)
class Told:
    """What a line says that an arm has."""

    line: int
    arm: str
    setting: str
    value: float
    text: str


def exchanged_settings(draft: Draft, page: Page) -> Iterator[Mark]:
    """What a line says that an arm has, and another has."""
    have = _values(draft)
    for one in (*_from(draft, page), *_trained(draft)):
        by_arm = have.get(one.setting, {})
        own = by_arm.get(one.arm)
        if own is None or own.where.line == one.line or own.value == one.value:
            continue
        if not any(each.value == one.value for each in by_arm.values()):
            continue
        told: dict[str, object] = {"value": f"{own.value}", "lines": [own.where.line]}
        yield Mark(one.line, one.text, "unsupported", "check.told-otherwise", told, one.setting)
        told = {"value": one.text, "lines": [one.line]}
        line, text = own.where.line or 0, f"{own.value}"
        yield Mark(line, text, "unsupported", "check.told-otherwise", told, one.setting)


def _values(draft: Draft) -> Values:
    """Settings with one number for each arm, in which arms differ."""
    found: dict[str, dict[str, Setting]] = {}
    for run in draft.source.runs:
        for name, setting in run.config.items():
            known = names.key(name)
            number = isinstance(setting.value, int | float) and not isinstance(setting.value, bool)
            if known is not None and number and not setting.others:
                found.setdefault(known.name, {})[run.arm] = setting
    return {name: arms for name, arms in found.items() if len({s.value for s in arms.values()}) > 1}


def _from(draft: Draft, page: Page) -> Iterator[Told]:
    """ "For A: lower the entropy coefficient from 0.01 to 0.005"."""
    heads = [nth for nth, (a, _) in enumerate(page.lines, 1) if page.text.startswith("#", a)]
    for nth, (line, text) in enumerate(draft.lines):
        found = _FROM.search(text)
        setting = _named(text[: found.start()]) if found else ""
        if found is None or not setting:
            continue
        arms = draft.arms.within(text)
        if not arms:
            head = bisect_left(heads, line)
            before = [
                each for at, each in draft.lines[:nth]
                if bisect_left(heads, at) == head and _LEADS.search(each)
            ]  # fmt: skip
            arms = draft.arms.within(before[-1]) if before else []
        if len(arms) == 1:
            yield Told(line, arms[0], setting, float(found[1]), found[1])


def _named(text: str) -> str:
    """The setting that the end of a text names, by as many of its letters as do."""
    end = text.rstrip(" :：(")[-NAMED:]
    starts = (m.start() for m in re.finditer(r"(?<![A-Za-z_])[A-Za-z_]|[\u4e00-\u9fff]", end))
    known = (names.key(end[at:]) for at in starts)
    return next((one.name for one in known if one is not None), "")


def _trained(draft: Draft) -> Iterator[Told]:
    """ "465 steps have been trained": of the arm that is called new, where none is named."""
    new = [arm for arm in draft.arms.all() if _NEW.search(arm)]
    for line, text in draft.lines:
        found = _TRAINED.search(text)
        if found is None:
            continue
        arms = draft.arms.within(text) or new
        unit = (found[2] or found[4]).casefold()
        if len(arms) == 1:
            count = found[1] or found[3]
            yield Told(line, arms[0], _UNITS.get(unit, unit), float(count), count)
