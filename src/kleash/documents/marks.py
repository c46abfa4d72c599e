"""What a check says of one number or claim of a report, and how numbers are written in it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from kleash.imports import Number

State = Literal["right", "wrong", "unsupported", "unknown"]
STATES: tuple[State, ...] = ("wrong", "unsupported", "right", "unknown")
# Rules that find out by themselves what a number is made of.
OF_PARTS = (
    "check.not-difference",
    "check.not-relative",
    "check.not-mean",
    "check.not-sum",
    "check.not-share",
    "check.not-product",
    "check.not-multiple",
)


@dataclass(frozen=True)
class Mark:
    """A number or a claim, where it stands, what came of it, and why: a code and its facts."""

    line: int
    text: str
    state: State
    code: str
    facts: dict[str, Any] = field(default_factory=dict)
    spot: str = ""


def written(value: float, like: Number) -> str:
    """A value as a report would write it: with the unit, decimals and sign of another number."""
    return printed_as(value, like.unit, like.decimals, signed="+" in like.text or "-" in like.text)


def printed_as(value: float, unit: str, decimals: int | None, *, signed: bool = False) -> str:
    """A value with a unit and decimals; fractions are percentages where they were printed so."""
    share = unit == "%"
    places = (6 if decimals is None else decimals) - (2 if share else 0)
    text = f"{100 * value if share else value:.{max(0, places)}f}"
    if float(text) == 0:
        text = text.removeprefix("-")
    plus = "+" if signed and value > 0 and float(text) != 0 else ""
    between = "" if share or not unit or not unit.isascii() else " "
    return f"{plus}{text}{between}{unit}"


def number_mark(number: Number, state: State, code: str, facts: dict[str, object]) -> Mark:
    """A mark at the place of a number."""
    line, spot = number.where.line or 0, number.where.spot
    return Mark(line, number.text or f"{number.value:g}", state, code, facts, spot)
