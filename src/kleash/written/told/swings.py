"""The largest of the changes that a list gives: "largest swing ±14.1 %" below both arms' lists.

A list is a run of lines, each a value with its change in brackets, under a line that names an arm.
What is called the largest of an arm is held against its own list; it is wrong if it is largest in
another's.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from kleash.imports.markdown.draft import Draft
from kleash.imports.markdown.text import bare, plain
from kleash.written.marks import Mark
from kleash.written.page import Page

FEWEST = 3  # changes of a list
ABOVE = 4  # lines before its first change in which it is told whose it is
_LEADS = re.compile(r"^#|[:：][*_\s]*$")
_CHANGE = re.compile(r"[(（]\s?([+-]\d+(?:\.\d+)?)\s?%\s?[)）]")
_LARGEST = re.compile(
    r"(?:最大|(?<![a-z])(?:largest|biggest|greatest|max(?:imum)?))(?P<of>[^,;。±+\d-]{0,24}?)"
    r"\s?[±+-]?\s?(?P<value>\d+(?:\.\d+)?)\s?%",
    re.I,
)
_UP = re.compile(r"[升涨增]|(?<![a-z])(?:rise|gain|increase|jump)", re.I)
_DOWN = re.compile(r"[降跌减]|(?<![a-z])(?:fall|drop|decrease|loss)", re.I)


@dataclass
class Changes:
    """The changes of a list, as they are printed, by line; the line `above` it tells whose."""

    above: int
    told: dict[int, str] = field(default_factory=dict)

    def largest(self, of: str) -> float:
        """The largest rise or fall, or of both where none of them is meant."""
        up, down = _UP.search(of), _DOWN.search(of)
        values = [float(one) for one in self.told.values()]
        if bool(up) != bool(down):
            values = [one for one in values if (one > 0) == bool(up)]
        return max(map(abs, values), default=0.0)


def false_swings(draft: Draft, page: Page) -> Iterator[Mark]:
    """Changes that are called the largest of an arm, and are that of another."""
    lists = list(_lists(page))
    heads = [nth for nth, (a, _) in enumerate(page.lines, 1) if page.text.startswith("#", a)]
    owners = {one.above: draft.arms.within(_line(page, one.above)) for one in lists}
    for line, text in draft.lines:
        found, arms = _LARGEST.search(text), draft.arms.within(text)
        if found is None or len(arms) != 1:
            continue
        first = heads[bisect_left(heads, line) - 1] if heads and heads[0] < line else 0
        near = [one for one in lists if first < one.above < line]
        own = [one for one in near if owners[one.above] == arms]
        others = [one for one in near if len(owners[one.above]) == 1 and one not in own]
        if len(own) != 1 or not others:
            continue
        value, right = float(found["value"]), own[0].largest(found["of"])
        if value != right and value in [one.largest(found["of"]) for one in others]:
            facts = {"value": f"{right:g}%", "lines": sorted(own[0].told)}
            text = f"{found['value']}%"
            yield Mark(line, text, "wrong", "check.not-largest", facts, "listed")


def _line(page: Page, nth: int) -> str:
    start, end = page.lines[nth - 1]
    return bare(plain(page.text[start:end]))


def _lists(page: Page) -> Iterator[Changes]:
    """Runs of lines with a change each, and the line above that tells whose they are."""
    run, texts = Changes(0), [page.text[start:end] for start, end in page.lines]
    for nth, text in enumerate([*texts, ""], 1):
        change = _CHANGE.search(text.replace("−", "-"))
        if change and not text.lstrip().startswith(("|", "#")):
            if not run.told:
                run.above = _lead(texts, nth)
            run.told[nth] = change[1]
            continue
        if len(run.told) >= FEWEST and run.above:
            yield run
        run = Changes(0)


def _lead(texts: Sequence[str], nth: int) -> int:
    """The last line before one that leads to it, if one does; 0 if none."""
    before = range(nth - 1, max(0, nth - 1 - ABOVE), -1)
    return next((at for at in before if _LEADS.search(texts[at - 1])), 0)
