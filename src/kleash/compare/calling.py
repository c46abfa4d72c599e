"""What arms are called on a screen or a page: their names without what all of them share.

`TravelGym_Qwen3-4B_n8_kl0.001` and `TravelGym_Qwen3-4B_n8_kl0.005` look the same in the legend of
a chart, which has no room for the part in which they differ.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from kleash.compare.arms import Arm

LONG = 20  # characters: what a chart has room for
LEAST = 6  # of them: to drop fewer is not worth a word
UPTO = re.compile(r".*[_\-/ ]")
FROM = re.compile(r"[_\-/ ].*")


def call_shortly(arms: Sequence[Arm]) -> str:
    """Rename those with long names; what was dropped, "" if nothing."""
    long = [arm for arm in arms if len(arm.name) > LONG]
    names = [arm.name for arm in long]
    if len(names) < 2:
        return ""
    before = _upto(_shared(names))
    while before and not all(_says(name[len(before) :]) for name in names):
        before = _upto(before[:-1])
    rests = [name[len(before) :] for name in names]
    found = FROM.search(_shared([rest[::-1] for rest in rests])[::-1])
    after = found.group() if found else ""
    if after and not all(_says(rest[: -len(after)]) for rest in rests):
        after = ""
    short = [rest[: len(rest) - len(after)] for rest in rests]
    taken = {arm.name for arm in arms if arm not in long}
    if len(before) + len(after) < LEAST or taken & set(short):
        return ""
    for arm, name in zip(long, short, strict=True):
        arm.name = name
    return f"{before}…{after}"


def _shared(names: Sequence[str]) -> str:
    """What all of them begin with."""
    for at, letters in enumerate(zip(*names, strict=False)):
        if len(set(letters)) > 1:
            return names[0][:at]
    return min(names, key=len)


def _upto(text: str) -> str:
    found = UPTO.match(text)
    return found.group() if found else ""


def _says(rest: str) -> bool:
    """Whether what is left of a name is one: a number alone is none."""
    return any(letter.isalpha() for letter in rest)
