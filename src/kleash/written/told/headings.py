"""Epochs that items give to arms, held against the headings under which their results stand.

"A: epoch 1, 2; B: epoch 1, 2, 3" is wrong where a section on epoch 3 has A and not B: the two were
exchanged. One arm alone may have epochs whose results stand nowhere.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from kleash.imports.markdown.draft import Draft
from kleash.imports.markdown.text import bare, plain
from kleash.written.marks import Mark
from kleash.written.page import Page
from kleash.written.printed import squeezed
from kleash.written.prose import places

_LIST = re.compile(r"(?<![a-z])(epoch|step|shot)s?\s?(\d+(?:\s?[,、和]\s?\d+)+)", re.I)
_HEADING = re.compile(r"(#{1,6})\s+(.*)")
Shown = Mapping[tuple[str, float], Mapping[str, int]]
"""By axis and place, the arms whose results have a heading, and its line."""


@dataclass(frozen=True)
class Listed:
    """An arm with the epochs that an item gives it."""

    line: int
    arm: str
    text: str
    at: frozenset[float]


def exchanged_epochs(draft: Draft, page: Page) -> Iterator[Mark]:
    """Items of two arms of which each has an epoch that sections give to the other alone."""
    listed = _listed(draft)
    for (axis, at), arms in _shown(draft, page).items() if listed else ():
        own = listed.get(axis, [])
        without = [one for one in own if at not in one.at and one.arm in arms]
        beyond = [one for one in own if at in one.at and one.arm not in arms]
        if len(without) != 1 or len(beyond) != 1:
            continue
        line = arms[without[0].arm]
        for one in (*without, *beyond):
            facts = {"value": f"{without[0].arm}: {axis} {at:g}", "lines": [line]}
            yield Mark(one.line, one.text, "unsupported", "check.told-otherwise", facts, axis)


def _listed(draft: Draft) -> dict[str, list[Listed]]:
    found: dict[str, list[Listed]] = defaultdict(list)
    for line, text in draft.lines:
        every, arms = _LIST.findall(text), draft.arms.within(text)
        if len(every) == len(arms) == 1:
            axis, numbers = every[0]
            at = frozenset(map(float, re.findall(r"\d+", numbers)))
            found[axis.casefold()].append(Listed(line, arms[0], f"{axis} {numbers}", at))
    return found


def _shown(draft: Draft, page: Page) -> Shown:
    found: dict[tuple[str, float], dict[str, int]] = defaultdict(dict)
    above: dict[int, list[tuple[str, float]]] = {}
    for nth, (start, end) in enumerate(page.lines, 1):
        match = _HEADING.match(page.text[start:end])
        if match is None:
            continue
        level, text = len(match[1]), bare(plain(match[2]))
        above = {at: each for at, each in above.items() if at < level}
        own = [(one.axis, one.at) for one in places(squeezed(text)) if one.is_of_training]
        above[level] = own or next((above[at] for at in sorted(above, reverse=True)), [])
        arms = draft.arms.within(text)
        for place in above[level] if len(above[level]) == len(arms) == 1 else ():
            found[place].setdefault(arms[0], nth)
    return found
