"""The numbers of a cell, each with the part it plays there: "399 → 528 (+32.5%)" has three.

What a number means is not asked here. Its part is the sign that stands before it, so that the cells
of a column that are written alike have the same parts.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from kleash.imports.markdown.text import bare, plain

WORDS = 8  # letters beside its numbers that a cell of numbers may have
MOST = 6  # numbers of a cell of numbers
_COUNT = re.compile(r"(?<![A-Za-z])(?:steps?|epochs?|iters?|第|ep?(?=\d))\s?#?(?=\d)", re.I)
_NUMBER = re.compile(
    r"(?P<sign>(?<![\d%\w)])[+-]\s?)?"
    r"(?<![A-Za-z0-9_.])(?P<digits>\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?)(?![\d.]*\d)"
    r"(?P<power>[eE][+-]?\d{1,3})?"
    r"\s?(?P<unit>%|‰|×|x(?![a-z])|倍|个?百分点|pp(?![a-z])|(?!of(?![a-z]))[A-Za-z][A-Za-z/·]*|[\u4e00-\u9fff]{1,4})?"
)
_CLOCK = re.compile(r"\d:\d\d|\d{4}-\d\d")
_ROUGH = re.compile(r"^\s*(?:~|≈|约)|估|预计")
_ALL = re.compile(r"[\s\d.,;:%+×/()\[\]<>=≥≤~@#±|*→-]")
_TIMES, _POINTS = ("×", "x", "倍"), ("个百分点", "百分点", "pp", "点")


@dataclass(frozen=True)
class Part:
    """A number as printed in its cell; `half` is half a unit of its last digit."""

    value: float
    decimals: int
    unit: str
    text: str
    signed: bool = False

    @property
    def half(self) -> float:
        return 0.5 * 10.0**-self.decimals

    @property
    def digits(self) -> int:
        """Its digits from the first that is not 0."""
        return len(str(abs(round(self.value * 10.0**self.decimals)))) if self.value else 0


@lru_cache(maxsize=8192)
def parts_of(raw: str) -> dict[str, Part]:
    """The numbers of a cell by the part they play; none if it is words, a date or a guess."""
    text = _COUNT.sub("#", bare(re.sub(r"[†‡§¶ᵃᵇᶜ]", "", plain(raw))).replace("−", "-"))
    text = text.replace("->", "→").replace("⇒", "→")
    if _CLOCK.search(text) or _ROUGH.search(text):
        return {}
    found, words = dict[str, Part](), text
    for match in _NUMBER.finditer(text):
        kind = _kind(text, match)
        while kind in found:
            kind += "'"
        found[kind] = _part(match, counted=text[: match.start()].endswith("#"))
        words = words.replace(match.group(), " ", 1)
    rest = len(_ALL.sub("", re.sub(r"(?<![a-z])(?:of|max|min|vs)(?![a-z])", "", words)))
    return found if len(found) <= MOST and rest <= WORDS else {}


def _kind(text: str, match: re.Match[str]) -> str:
    """What stands before a number: nothing, a bracket, an arrow, a stroke."""
    before = text[: match.start()].rstrip(" #")
    inside = "(" if before.count("(") > before.count(")") else ""
    inside = "[" if before.count("[") > before.count("]") else inside
    last = before[-1:]
    if inside == last:
        return inside
    if re.search(r"\d\s?[%A-Za-z]{0,4}\s?(?:/|of)$", before):
        return f"{inside}/"
    return inside + (last if last in "→@±,~-" else "")


def _part(match: re.Match[str], *, counted: bool) -> Part:
    digits, power = match["digits"].replace(",", ""), match["power"] or ""
    decimals = len(digits.partition(".")[2]) - int(power[1:] or 0)
    value = float(f"{(match['sign'] or '').strip()}{digits}{power}")
    unit = "×" if match["unit"] in _TIMES else match["unit"] or ""
    unit = "" if unit in _POINTS else unit
    return Part(
        value, decimals, "#" if counted else unit, match.group().strip(), bool(match["sign"])
    )
