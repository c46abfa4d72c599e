"""Lists of all epochs with the best of them beside: "52.10 / 51.35 / 50.85  best=epoch1".

Whether the highest or the lowest is meant the other lists of the report tell.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from kleash.imports.markdown.text import fold, plain
from kleash.written.marks import Mark
from kleash.written.page import Page

LEAST = 2  # lists that have their best where they say
_LIST = re.compile(r"(?<![\d.])\d+\.\d+\s?%?(?:\s?(?:/|→|->)\s?\d+\.\d+\s?%?){2,}(?![\d.])")
_BEST = re.compile(
    r"(?:最佳|最好|最优|峰值|(?<![a-z])(?:best|peak))[\s=:(]{0,3}(?:在|at)?\s?"
    r"(?:epoch|ep|第)\s?[=:]?\s?(\d{1,2})(?![\d.])",
    re.I,
)


@dataclass(frozen=True)
class Listed:
    """A list of the values of all epochs, and which of them is said to be best."""

    line: int
    text: str
    values: tuple[float, ...]
    nth: int

    def fits(self, *, low: bool) -> bool:
        """Whether the best is where the list says."""
        best = min(self.values) if low else max(self.values)
        return self.nth <= len(self.values) and self.values[self.nth - 1] == best


def false_slashed(page: Page) -> Iterator[Mark]:
    """Lists whose best is elsewhere than they say, where others have it there."""
    every = [one for nth, (a, b) in enumerate(page.lines, 1) for one in _read(nth, page.text[a:b])]
    low = sum(one.fits(low=True) for one in every) > sum(one.fits(low=False) for one in every)
    off = [one for one in every if not one.fits(low=low)]
    if len(every) - len(off) < max(LEAST, len(off)):
        return
    for one in off:
        best = min(one.values) if low else max(one.values)
        facts = {"said": one.nth, "at": [one.values.index(best) + 1]}
        yield Mark(one.line, one.text, "wrong", "check.elsewhere", facts, "slashed")


def _read(line: int, text: str) -> Iterator[Listed]:
    folded = fold(plain(text))
    listed, best = _LIST.findall(folded), _BEST.findall(folded)
    if len(listed) != 1 or len(best) != 1:
        return
    values = tuple(map(float, re.findall(r"\d+\.\d+", listed[0])))
    if int(best[0]) >= 1:
        yield Listed(line, listed[0], values, int(best[0]))
