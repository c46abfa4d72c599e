"""The arms that reports compare, and the one that they compare the others with.

What a table has beside its arms (totals, means, differences of two arms) is none, and an arm that
is called "GRPO (β=0.1)" here and "β=0.1" there is one.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from kleash.compare.arms import Arm
from kleash.documents.logs import coefficient
from kleash.imports import Source, in_names, names

NO_ARM = re.compile(
    r"total|sum|mean|average|avg|std|gap|diff(?:erence)?|delta|Δ"
    r"|总计|合计|总和|小计|平均值?|均值|标准差|差[异距值]?",
    re.I,
)
BRACKETS = re.compile(r"[(（\[].*?[)）\]]")
NUMBER = re.compile(r"\d+(?:\.\d+)?(?:e-?\d+)?", re.I)
COEFFICIENT = re.compile(r"(?:kl)?[ _-]?(?:beta|β|coeff?(?:icient)?|系数)?[ _=:-]*[\d.e-]+", re.I)


def contenders(arms: Sequence[Arm], sources: Sequence[Source]) -> list[Arm]:
    """The arms, each once, under all its names; all of them if none would be left."""
    reports = {text for source in sources for text in (Path(source.path).name, source.path)}
    called = {plain(arm.name) for arm in arms}
    found: list[Arm] = []
    for arm in sorted(arms, key=_is_coefficient):
        name, value = plain(arm.name), coefficient(arm) if _is_coefficient(arm) else None
        parts = re.split(r"\s+[-−–/]\s+", name)
        worked_out = len(parts) == 2 and set(parts) <= called
        if NO_ARM.fullmatch(name) or worked_out or arm.name in reports:
            continue
        hosts = [
            other
            for other in found
            if name == plain(other.name) or (value is not None and value == coefficient(other))
        ]
        if len(hosts) == 1:
            hosts[0].names += arm.names
        else:
            found.append(arm)
    return [arm for arm in arms if arm in found] or list(arms)


def _is_coefficient(arm: Arm) -> bool:
    """Whether a coefficient is all that an arm is called."""
    return COEFFICIENT.fullmatch(plain(arm.name)) is not None


def plain(name: str) -> str:
    """A name without what stands in brackets."""
    return BRACKETS.sub("", name).strip() or name


def leashed(arms: Sequence[Arm]) -> tuple[list[Arm], list[Arm]]:
    """The arms that differ in their leash, each once; and the rest: starts, baselines, columns.

    Only where two coefficients are told. Of arms with one coefficient those that a name tells
    apart in a known setting are several; others are told again: a seed, a metric, a difference.
    """
    values = {arm.name: coefficient(arm) for arm in arms}
    alike = {NUMBER.sub("#", plain(name)) for name, value in values.items() if value}
    for name, value in values.items():
        pattern = NUMBER.sub("#", plain(name))
        if value is None and NUMBER.findall(plain(name)) == ["0"] and pattern in alike:
            values[name] = 0.0  # called as the others are: "RL-0", "RL-0.04"
    if len(set(values.values()) - {None}) < 2:
        return list(arms), []
    told = [a for a in arms if values[a.name] is not None or in_names.leash(a.name) is not None]
    found: list[Arm] = []
    for value in dict.fromkeys(values[arm.name] for arm in told):
        same = [arm for arm in told if values[arm.name] == value]
        hosts: dict[object, Arm] = {}
        for arm, settings in zip(same, in_names.settings([a.name for a in same]), strict=True):
            known = frozenset((key, one) for key, one in settings.items() if _is_setting(key))
            host = hosts.setdefault(known, arm)
            if host is not arm:
                host.names += arm.names
                host.replicates += arm.replicates
        found += hosts.values()
    return [arm for arm in arms if arm in found], [arm for arm in arms if arm not in told]


def _is_setting(key: str) -> bool:
    known = names.key(key)
    return key == in_names.SIZE or (known is not None and known.kind in ("must match", "treatment"))


def compared_with(sources: Sequence[Source], arms: Sequence[Arm]) -> Arm | None:
    """The arm that reports take from two others or more; of two arms either may come first."""
    by_name = {name: arm for arm in arms for name in (arm.name, *arm.names)}
    others: dict[str, set[str]] = {arm.name: set() for arm in arms}
    for source in sources:
        owners = {cell.number.where: run.arm for run in source.runs for cell in run.cells}
        means = (one for one in source.derived if one.kind == "mean" and len(one.arms) == 1)
        owners |= {one.number.where: one.arms[0] for one in means}
        for one in source.derived:
            if one.kind in ("difference", "relative") and one.arms:
                named = [*one.arms, *(owners.get(number.where, "") for number in one.minus), ""]
                ours, theirs = (by_name.get(name) for name in named[:2])
                if ours is not None and theirs is not None and ours is not theirs:
                    others[theirs.name].add(ours.name)
    most = max(arms, key=lambda arm: len(others[arm.name]))
    return most if len(others[most.name]) > 1 else None
