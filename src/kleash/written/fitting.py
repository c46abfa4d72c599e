"""Whether a number of a sentence is what two printed numbers give, or is one of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal

from kleash.written.made.rounded import off_by_rounding
from kleash.written.printed import Cell, Figure
from kleash.written.prose import Said

SLACK = 1e-9
NAMING = 3  # digits of a number that names its cell
EXACT = 9  # decimals of what was not rounded
Kind = Literal["printed", "difference", "relative", "ratio", "mean", "sum"]


@dataclass(frozen=True)
class Account:
    """How a number comes about; `exact` if it does from the numbers as they are printed."""

    kind: Kind
    cells: tuple[Cell, ...]
    exact: bool
    value: float
    """What comes out, as it would be printed in the sentence."""
    chance: float = 0.0
    """How likely it misses what printed numbers give by a digit, if taken before rounding."""


def fits(said: Figure, low: float, high: float) -> tuple[bool, bool]:
    """Whether a number may be what lies between two, and whether it is the middle as printed."""
    value, half = abs(said.value), said.half
    low, high = sorted((abs(low), abs(high))) if low * high > 0 else (0.0, max(abs(low), abs(high)))
    slack = SLACK * max(1.0, high)
    near = value - half <= high + slack and value + half >= low - slack
    return near, near and abs(value - (low + high) / 2) <= half + slack


def prints(said: Figure, cell: Figure) -> bool:
    """Whether a number is a figure of a table, to its own decimals or fewer."""
    if _is_as_printed(said, cell.value, cell.decimals):
        return True
    if said.unit == cell.unit or "%" not in (said.unit, cell.unit):
        return False
    # A percentage may be that of a fraction, and a fraction that of a percentage.
    if said.unit == "%":
        small, value, decimals = abs(cell.value) <= 1.5, cell.value * 100.0, cell.decimals - 2
    else:
        small, value, decimals = abs(said.value) <= 1.5, cell.value * 0.01, cell.decimals
    return small and _is_as_printed(said, value, decimals)


def _is_as_printed(said: Figure, value: float, decimals: int) -> bool:
    room = said.half if decimals > said.decimals or said.loose > 1 else 0.0
    return abs(abs(said.value) - abs(value)) <= room + SLACK * max(1.0, abs(value))


def pair(said: Said, one: Figure, other: Figure, cells: tuple[Cell, ...]) -> Iterator[Account]:
    """A number as the difference, change or ratio of two others; what a log has is exact."""
    found = of_figures(said, one, other, cells)
    if one.true is None or other.true is None:
        yield from found
        return
    yield from (each for each in found if each.exact)
    found = of_figures(said, unrounded(one), unrounded(other), cells)
    yield from (each for each in found if each.exact)


def unrounded(one: Figure) -> Figure:
    return one if one.true is None else replace(one, value=one.true, decimals=EXACT, true=None)


def of_figures(
    said: Said, one: Figure, other: Figure, cells: tuple[Cell, ...]
) -> Iterator[Account]:
    gap, half = one.value - other.value, one.half + other.half
    small = max(abs(one.value), abs(other.value)) <= 1
    decimals = min(one.decimals, other.decimals)
    fraction = said.kind == "share" and small and one.unit != "%"
    if said.kind != "times" and not fraction and decimals >= said.figure.decimals - 1:
        yield from kept("difference", said, gap - half, gap + half, cells)
    if said.kind in ("points", "share") and small and decimals >= said.figure.decimals + 1:
        yield from kept("difference", said, 100 * (gap - half), 100 * (gap + half), cells)
    for ours, theirs in ((one, other), (other, one)):
        if said.kind in ("share", "times") and ours.value * theirs.value > 0:
            if abs(theirs.value) <= theirs.half:
                continue
            corners = [
                a / b
                for a in (ours.value - ours.half, ours.value + ours.half)
                for b in (theirs.value - theirs.half, theirs.value + theirs.half)
            ]
            if said.kind == "times":
                yield from kept("ratio", said, min(corners), max(corners), cells)
                continue
            yield from kept(
                "relative", said, 100 * min(corners) - 100, 100 * max(corners) - 100, cells
            )
            yield from kept("ratio", said, 100 * min(corners), 100 * max(corners), cells)


def kept(
    kind: Kind, said: Said, low: float, high: float, cells: tuple[Cell, ...]
) -> Iterator[Account]:
    near, exact = fits(said.figure, low, high)
    if near:
        middle = (low + high) / 2
        count = max(2, len(cells))
        chance = off_by_rounding(middle, (high - low) / 2, count, 2 * said.figure.half)
        yield Account(kind, cells, exact, middle, chance)


def is_typo(ours: float, theirs: float, decimals: int) -> bool:
    """Whether two numbers differ, as printed, in one digit or by two in each other's place."""
    left, right = (f"{value:.{decimals}f}" for value in (ours, theirs))
    if len(left) != len(right):
        return False
    odd = [at for at, pair in enumerate(zip(left, right, strict=True)) if pair[0] != pair[1]]
    return len(odd) == 1 or (
        len(odd) == 2 and left[odd[0]] == right[odd[1]] and left[odd[1]] == right[odd[0]]
    )
