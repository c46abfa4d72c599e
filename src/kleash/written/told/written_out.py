"""Sums that a sentence writes out: "172 × 80 / 3600 = 3.82 h"."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from kleash.written.marks import Mark
from kleash.written.prose import Sentence

_NUMBER = r"\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?"
_UNIT = r"\s?(?:%|[a-z]{1,8}(?![a-z])|[\u4e00-\u9fff]{1,3})?\s?"
_SIGN = r"\s?[×x*·/÷+-]\s?"
_FORMULA = re.compile(
    rf"(?<![\w.)(=^×x*·/÷+-])(?P<left>(?:{_NUMBER}){_UNIT}(?:{_SIGN}(?:{_NUMBER}){_UNIT}){{1,5}})"
    rf"[=≈]\s?(?P<sign>[+-]?)(?P<made>{_NUMBER})\s?(?P<share>%?)(?![\w.]*\d|\s?[×x*·/÷])"
)
_TOKEN = re.compile(rf"(?P<number>{_NUMBER})|(?P<sign>[×x*·/÷+-])")
NEARLY = 1 + 1e-6


@dataclass(frozen=True)
class WrittenOut:
    """A sum as it is written, and what comes out of it."""

    at: int
    numbers: tuple[str, ...]
    text: str
    value: str
    """What comes out, as it would be printed."""
    holds: bool


def false_formulas(sentence: Sentence) -> Iterator[Mark]:
    """What is written behind "=" and does not come out."""
    for one in _formulas(sentence):
        if not one.holds:
            line = sentence.line(one.at)
            facts: dict[str, object] = {"value": one.value, "lines": [line]}
            spot = f"said {one.text.rstrip('%')}"
            yield Mark(line, one.text, "wrong", "check.not-product", facts, spot)


def right_formulas(sentence: Sentence) -> set[tuple[int, str]]:
    """The numbers of what comes out, by line and digits."""
    right = [one for one in _formulas(sentence) if one.holds]
    return {(sentence.line(one.at), number) for one in right for number in one.numbers}


def _formulas(sentence: Sentence) -> Iterator[WrittenOut]:
    for match in _FORMULA.finditer(sentence.apart):
        made, room = _worked_out(match["left"])
        text, share = match["made"], match["share"]
        scale = 100.0 if share and "%" not in match["left"] else 1.0
        decimals, value = len(text.partition(".")[2]), float(text.replace(",", ""))
        off = abs(scale * abs(made) - value)
        holds = off <= 0.5 * 10.0**-decimals * NEARLY + scale * room
        numbers = (*re.findall(_NUMBER, match["left"]), text)
        right = f"{scale * abs(made):.{decimals}f}{share}"
        yield WrittenOut(match.start("made"), numbers, text + share, right, holds)


def _worked_out(text: str) -> tuple[float, float]:
    """What a row of numbers and signs gives, products first, and its room."""
    terms: list[tuple[float, float]] = []
    sign, minus = "+", False
    for token in _TOKEN.finditer(text):
        if token["sign"]:
            sign = token["sign"]
            continue
        value = float(token["number"].replace(",", ""))
        decimals = len(token["number"].partition(".")[2])
        room = 0.5 * 10.0**-decimals / value if decimals and value else 0.0
        if sign in "+-" or not terms:
            minus = sign == "-"
            terms.append((-value if minus else value, room))
        else:
            made, off = terms[-1]
            terms[-1] = (made / value if sign in "/÷" and value else made * value, off + room)
    return sum(made for made, _ in terms), sum(abs(made) * off for made, off in terms)
