"""What a slip of the pen would explain: a number that a recipe does not give, but nearly wrote.

A wrong digit, two in each other's place or a wrong sign, in the number itself or in one of those it
is made of; or two numbers of one row in each other's place. Half the numbers of a line may be wrong
in this way, and what the line is made of is as sure as if they were right.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import log

from kleash.written.fitting import is_typo
from kleash.written.made.bench import Batch, Bench, Cell
from kleash.written.made.parts import Part

TYPOS = 40  # numbers of four digits that a wrong digit, a swap of two or a wrong sign makes of one
SIGNS = 4  # slips for each that turns a sign
NEIGHBOURS = 3  # numbers as printed that rounding may make of what a recipe gives
TWO = 2


def slip_of(on: Bench, batch: Batch, nth: int, at: int) -> bool:
    """Whether a number is what a recipe gives but for a digit, two swapped ones or its sign."""
    value, unit = float(on.value_N[at]), 2 * float(on.half_N[at])
    given, within = float(batch.given_CN[nth, at]), float(batch.within_CN[nth, at])
    decimals = max(0, on.board.at[at, on.line].decimals)
    near = [given] if within < unit / 4 else [given - unit, given, given + unit]
    return any(is_typo(value, each, decimals) for each in near) or _is_turned(on, batch, nth, at)


def _is_turned(on: Bench, batch: Batch, nth: int, at: int) -> bool:
    """Whether a number is what a recipe gives but for its sign."""
    return bool(abs(on.value_N[at] + batch.given_CN[nth, at]) <= batch.within_CN[nth, at])


def told_by_slip(on: Bench, batch: Batch, nth: int, at: int) -> float:
    """How much a number that does not fit speaks for a recipe all the same; 0 if it does not.

    The logarithm of how much likelier a slip has left it so than chance.
    """
    value, width = float(on.value_N[at]), 2 * float(on.half_N[at])
    ways = TYPOS
    if _is_turned(on, batch, nth, at):
        ways, width = SIGNS, width + 2 * float(batch.within_CN[nth, at])
    own = value != 0 and slip_of(on, batch, nth, at)
    found = log(2 * abs(value) / width / ways) if own else 0.0
    if value != 0 and _is_exchanged(on, batch, nth, at):
        width += 2 * float(batch.within_CN[nth, at])
        found = max(found, log(2 * abs(value) / width / SIGNS))
    wanted = list(_wanted(on, batch, nth, at))
    for cell, right in wanted:
        part = on.board.at[cell]
        if _nearly(part, right):
            ways = TYPOS * NEIGHBOURS * len(wanted)
            found = max(found, log(2 * abs(part.value) * 10.0**part.decimals / ways))
    return max(0.0, found)


def told_by_exchange(on: Bench, batch: Batch, nth: int, at: int, odd: Sequence[int]) -> float:
    """The same for two sums or means that are off by as much, one up and one down.

    Of what they are made of two were exchanged.
    """
    if batch.kind not in ("sum", "mean"):
        return 0.0
    gap = on.value_N - batch.given_CN[nth]
    room = on.half_N + batch.within_CN[nth]
    pairs = [n for n in odd if n != at and abs(gap[at] + gap[n]) <= room[at] + room[n]]
    if not pairs:
        return 0.0
    return max(0.0, log(2 * abs(float(gap[at])) / float(2 * room[at]) / len(odd)))


def _is_exchanged(on: Bench, batch: Batch, nth: int, at: int) -> bool:
    """Whether a difference and what it is taken from are in each other's place."""
    of = [part for cell in batch.cells(nth, at) if (part := on.board.at.get(cell)) is not None]
    if batch.kind != "difference" or len(of) != TWO:
        return False
    gap = abs(of[0].value + of[1].value - on.value_N[at])
    return bool(gap <= of[0].half + of[1].half + on.half_N[at]) and of[1].value != 0


def mistyped(on: Bench, batch: Batch, nth: int, at: int) -> tuple[Cell, float] | None:
    """Of what a number is made of, the only one that has a slip, and what it should be."""
    if slip_of(on, batch, nth, at):
        return None
    wanted = _wanted(on, batch, nth, at)
    found = [(cell, right) for cell, right in wanted if _nearly(on.board.at[cell], right)]
    return found[0] if len(found) == 1 else None


def _nearly(part: Part, right: float) -> bool:
    """Whether a printed number is another, as that would be printed, but for a slip."""
    unit, decimals = 10.0**-part.decimals, max(0, part.decimals)
    off = abs(part.value - right)
    return off > 2 * unit and any(
        is_typo(part.value, right + way * unit, decimals) for way in (-1, 0, 1)
    )


def _wanted(on: Bench, batch: Batch, nth: int, at: int) -> Iterator[tuple[Cell, float]]:
    """The numbers of its own position that one is made of, and what they would have to be."""
    if batch.free and batch.kind == "multiple":
        return  # a factor that is not told is what its numbers make it
    of = batch.cells(nth, at)
    value, given = float(on.value_N[at]), float(batch.given_CN[nth, at])
    for order, cell in enumerate(of):
        part = on.board.at.get(cell)
        if part is None or cell[0] != at or not part.value:
            continue
        right = _solved(on, batch.kind, of, order, (value, given))
        if right is not None:
            yield cell, right


def _solved(
    on: Bench, kind: str, of: tuple[Cell, ...], order: int, told: tuple[float, float]
) -> float | None:
    """What a number would have to be for a recipe to give what is printed."""
    value, given = told
    own = on.board.at[of[order]].value
    if kind in ("mean", "sum", "offset"):
        return own + (value - given) * (len(of) if kind == "mean" else 1)
    if kind == "complement":
        return own - (value - given)
    if kind in ("multiple", "product"):
        return own * value / given if given else None
    others = [part.value for cell in of if (part := on.board.at.get(cell)) is not None]
    if len(of) != TWO or len(others) != TWO or not others[1 - order]:
        return None
    return _of_pair(kind, others[0], others[1], order, value, given)


def _of_pair(kind: str, x: float, y: float, order: int, value: float, given: float) -> float | None:
    """The same for the difference, the change or the share of two."""
    if kind == "difference":
        scale = given / (x - y) if x != y else 1.0  # points of fractions
        gap = (value - given) / scale if scale else 0.0
        return x + gap if order == 0 else y - gap
    if kind == "relative":
        fall = abs(given - 100 * (1 - x / y)) < abs(given - 100 * (x / y - 1))
        ratio = 1 - value / 100 if fall else 1 + value / 100
    elif kind == "share" and given:
        ratio = x / y * value / given
    else:
        return None
    return ratio * y if order == 0 else x / ratio if ratio else None
