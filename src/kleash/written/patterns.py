"""What the numbers of a table say of each other: columns made out of others, and told again.

Nobody has to understand a header for that. A column whose numbers are nearly all the difference of
two others is their difference, and the few that are not are slips. What would come about by chance
too easily, for all that was tried, is not taken for a pattern.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import comb, sqrt

from kleash.imports import Derived, Number
from kleash.imports.markdown.derived import SLACK, allowed, bounds
from kleash.imports.markdown.text import bare
from kleash.written.fitting import is_typo
from kleash.written.grids import Grid, Part, Slot, turned
from kleash.written.guessed import TELLING, Guess, Kind, beside, guesses
from kleash.written.printed import named
from kleash.written.promising import Promising

CHANCE = 0.01  # of taking numbers for a pattern that have none
SURE = 0.2  # the same where all of them fit, and the title says so
WIDE = 0.05  # of twice what comes out: a share of so rough numbers fits anything
_DIFFERENCE = (
    r"差|下降|降幅|跌|减少|增[加幅]|涨|vs|Δ|delta|diff|gap|chang|gain|"
    r"提升|变化|相对|drop|improv|against|over|[-−–]\s"
)
STRICT = re.compile(r"(?:差异|差值|差距|difference|diff\.?|Δ|delta|gap)", re.I)
HINTS: dict[str, re.Pattern[str]] = {
    "mean": re.compile(r"平均|均值|mean|avg|average", re.I),
    "sum": re.compile(r"合计|总|sum|total|overall|all", re.I),
    "difference": re.compile(_DIFFERENCE, re.I),
    "relative": re.compile(_DIFFERENCE + "|%", re.I),
    "product": re.compile(r"hours|小时|总|total|cost|tokens", re.I),
    "share": re.compile(r"率|比|rate|share|ratio|per\b|fraction", re.I),
    "spread": re.compile(r"±|std|标准差|stdev|sd\b|sem\b", re.I),
}


@dataclass(frozen=True)
class Made:
    """A number and what it should be, by the pattern of its column."""

    kind: Kind
    number: Number
    of: tuple[Number, ...]
    minus: tuple[Number, ...]
    low: float
    high: float
    holds: bool
    hinted: bool = False
    ready: bool = False
    """Whether its range stands as it is: in points of percentages, or of what was counted."""


Fit = tuple[Guess, list[Made], float]
"""A guess, what it makes of a column, and how likely that is by chance."""


def patterns(every: Sequence[Grid]) -> list[Made]:
    """Every number that the pattern of its column, or of its row, works out."""
    found: dict[int, list[Made]] = defaultdict(list)
    for grid in every:
        for view in (grid, turned(grid)):
            for slot in view.slots():
                for one in _pattern(view, slot):
                    found[id(one.number)].append(one)
    # Where a row of changes meets a column of differences, one of the two is meant.
    made = [next((one for one in both if one.holds), both[0]) for both in found.values()]
    # Of three numbers each is made of the other two: what the title says comes first.
    by_numbers: dict[frozenset[int], Made] = {}
    for one in sorted(made, key=lambda each: not each.hinted):
        by_numbers.setdefault(frozenset(map(id, (one.number, *one.of, *one.minus))), one)
    return list(by_numbers.values())


def range_of(
    kind: Kind, of: Sequence[Number], minus: Sequence[Number]
) -> tuple[float, float] | None:
    """What numbers give, printed as they are: the least and the greatest."""
    if kind in ("mean", "difference", "relative"):
        return allowed(Derived(kind, of[0], tuple(of), tuple(minus)))
    ends = [one for each in (*of, *minus) if (one := bounds(each)) is not None]
    if len(ends) < len(of) + len(minus):
        return None
    if kind == "sum":
        return sum(low for low, _ in ends), sum(high for _, high in ends)
    if kind == "spread":
        return _spread_of(ends)
    (a, b), (c, d) = ends
    if kind == "share" and c <= 0 <= d:
        return None
    corners = [x * y if kind == "product" else x / y for x in (a, b) for y in (c, d)]
    return min(corners), max(corners)


def _spread_of(ends: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """The deviation, of the sample or of all, whichever is printed, within rounding."""
    values = [(low + high) / 2 for low, high in ends]
    mean = sum(values) / len(values)
    squares = sum((value - mean) ** 2 for value in values)
    half = max((high - low) / 2 for low, high in ends)
    return sqrt(squares / (len(values) - 1)) - half, sqrt(squares / (len(values) - 1)) + half


def _pattern(grid: Grid, slot: Slot) -> list[Made]:
    """The best guess at how a slot is made, line by line; nothing where it may be chance."""
    column = grid.column(slot)
    if not column or slot[1] in ("low", "high"):
        return []
    title = grid.titles[slot[0]]
    tried: dict[str, int] = {}
    best: tuple[float, int, list[Made]] = (CHANCE, 0, [])
    kept: list[Fit] = []
    shares = all(number.unit == "%" for number in column.values())
    promising = Promising(grid, slot, beside(grid, slot))
    for guess in guesses(grid, slot):
        if guess.kind == "relative" and not shares:
            continue
        tried[guess.kind] = tried.get(guess.kind, 0) + 1
        if guess.said or promising.may_fit(guess):
            kept += _kept(grid, column, guess)
    for guess, made, chance in kept:
        natural = _natural(grid, slot, guess)
        hinted = natural or _hinted(guess.kind, title, slot)
        count = 1 if natural else tried[guess.kind] if hinted else sum(tried.values())
        holds = sum(one.holds for one in made)
        odds = count * comb(len(made), holds) * chance
        if _is_doubtful(grid, guess, made, hinted=hinted, natural=natural):
            continue
        if not holds:
            odds = CHANCE / 2  # a total with one digit that is not so
        if natural or (hinted and holds == len(made)):
            odds *= CHANCE / SURE  # it is what the title says, or nothing is called wrong by it
        if (odds, -holds) < (best[0], -best[1]):
            best = (
                odds,
                holds,
                _counts([replace(one, hinted=hinted) for one in made], hinted=hinted),
            )
    found = best[2] or _of_the_two(grid, slot, kept)
    lines = {id(number): line for line, number in column.items()}
    return [one for one in found if one.holds or not _otherwise(grid, lines, slot, one)]


def _kept(grid: Grid, column: dict[int, Number], guess: Guess) -> list[Fit]:
    """What a guess makes of a column, if it fits enough of it, or a slip hides that it does."""
    made, chance = _tried(grid, column, guess)
    holds = sum(one.holds for one in made)
    typed = guess.said and guess.kind == "sum" and bool(made) and all(map(mistyped, made))
    fine = typed or (holds and (3 * holds >= len(made) or guess.said))
    return [(guess, made, chance)] if fine else []


def _is_doubtful(
    grid: Grid, guess: Guess, made: Sequence[Made], *, hinted: bool, natural: bool
) -> bool:
    """Whether too few numbers, or no title, speak for a guess."""
    holds = sum(one.holds for one in made)
    units = {number.unit for one in made for number in (one.number, *one.of)}
    if guess.kind == "sum" and len(units) > 1:
        return True  # seconds and percentages are not added
    if guess.kind == "sum" and any(
        _is_signed(part) and not _is_signed(one.number) for one in made for part in one.of
    ):
        return True  # nor is how far a number is from another
    if guess.kind == "spread" and not hinted:
        return True
    if grid.turned and not hinted and holds < len(made):
        return True  # that a row is made of others its label says, or all of it does
    few = holds < 3 or 3 * holds < 2 * len(made)
    if guess.base is not None:
        return not hinted or (few and not natural)
    return few and not hinted


def _is_signed(number: Number) -> bool:
    return bool(re.match(r"[\s*]*[+]", number.text))


def _otherwise(grid: Grid, lines: Mapping[int, int], slot: Slot, one: Made) -> bool:
    """Whether a number is the range of its line, or the mean where others are sums, or a sum."""
    number, half = one.number.value or 0.0, 0.5 * 10.0 ** -(one.number.decimals or 0)
    if one.kind == "sum":
        mean = (one.low + one.high) / 2 / max(1, len(one.of))
        return bool(one.number.decimals) and abs(number - mean) <= 2 * half
    if one.kind == "mean":  # counts are summed where others are averaged
        return not one.number.decimals and number == sum(each.value or 0.0 for each in one.of)
    line = grid.line(lines[id(one.number)]) if id(one.number) in lines else {}
    values = [each.value or 0.0 for at, each in line.items() if at[0] != slot[0] and not at[1]]
    like = [each for each in values if abs(each) > abs(number)]
    known = one.kind == "difference" and len(like) >= TELLING
    return known and abs(max(like) - min(like) - abs(number)) <= 3 * half


def _counts(made: list[Made], *, hinted: bool) -> list[Made]:
    """Sums and differences of whole numbers are exact, if most of these are: they were counted.

    Where no title speaks of it, others are no sums at all: 97, 62 and 34 are nearly one by chance.
    """
    exact = []
    for one in made:
        numbers = (one.number, *one.of, *one.minus)
        if one.kind not in ("sum", "difference") or any(n.decimals or n.unit for n in numbers):
            return made
        of, minus = (sum(each.value or 0.0 for each in side) for side in (one.of, one.minus))
        exact.append(replace(one, low=of - minus, high=of - minus, ready=True))
    holding = [replace(one, holds=one.number.value == one.low) for one in exact]
    count = sum(one.holds for one in holding)
    return holding if count >= 2 and 3 * count >= 2 * len(made) else made if hinted else []


def mistyped(one: Made) -> bool:
    """Whether a number is what comes out but for one digit, or for two in the wrong order."""
    decimals = max(0, one.number.decimals or 0)
    return is_typo(one.number.value or 0.0, (one.low + one.high) / 2, decimals)


def _of_the_two(grid: Grid, slot: Slot, fits: Sequence[Fit]) -> list[Made]:
    """A difference that is none of the only two numbers beside it, whichever way it is taken."""
    lines = list(grid.column(slot))
    others = [[one for one in grid.line(line) if one != slot] for line in lines]
    if fits or slot[1] or not STRICT.fullmatch(bare(grid.titles[slot[0]])):
        return []
    if len(lines) > 1 or any(len(each) != 2 or each[0][1] or each[1][1] for each in others):
        return []
    first, second = others[0]
    if grid.at[lines[0], first].decimals != grid.at[lines[0], slot].decimals:
        return []
    sign = (grid.at[lines[0], slot].value or 0.0) * (
        (grid.at[lines[0], second].value or 0.0) - (grid.at[lines[0], first].value or 0.0)
    )
    ours, theirs = (second, first) if sign > 0 else (first, second)
    made = _worked_out(
        grid, lines[0], grid.at[lines[0], slot], Guess("difference", (ours,), (theirs,))
    )
    return [made] if made else []


def _natural(grid: Grid, slot: Slot, guess: Guess) -> bool:
    """Whether a guess is what the layout says: the gap to the row that has none, of this column."""
    if guess.said:
        return True
    based = guess.base is not None and guess.base >= 0 and (guess.base, slot) not in grid.at
    if not based or guess.kind != "difference":
        return False
    ours, own = (bare(grid.titles[at]).casefold().strip() for at in (guess.of[0][0], slot[0]))
    return guess.of[0][0] == slot[0] or (ours != own and any(named(own, ours)))


def _hinted(kind: Kind, title: str, slot: Slot) -> bool:
    if slot[1] == "spread":
        return kind == "spread"
    if slot[1] == "bracket":
        return kind in ("difference", "relative")
    return bool(HINTS[kind].search(title))


def _tried(grid: Grid, column: dict[int, Number], guess: Guess) -> tuple[list[Made], float]:
    """What a guess makes of a column, and how likely chance makes as much of it."""
    values = [number.value or 0.0 for number in column.values()]
    room = max(max(values) - min(values), *map(abs, values))
    made, chance, left = list[Made](), 1.0, len(column)
    for line, number in column.items():
        if not guess.said and 3 * (sum(one.holds for one in made) + left) < len(made):
            break  # it will not be kept
        left -= 1
        one = _worked_out(grid, line, number, guess)
        if one is None:
            continue
        made.append(one)
        if one.holds:
            low, high = bounds(number) or (0.0, 0.0)
            width = one.high - one.low + high - low
            inner = [each.value or 0.0 for each in one.of] if guess.kind == "mean" else []
            space = max(inner) - min(inner) if inner else room
            chance *= min(1.0, width / (space + width)) if space + width else 1.0
    return made, chance


def _worked_out(grid: Grid, line: int, number: Number, guess: Guess) -> Made | None:
    """One number as a guess has it; of cells like "45 (2.202)" the bracket may be meant."""
    found = None
    parts: tuple[Part, ...] = ("", "bracket")
    for part in parts:
        if part and any((line, (at, part)) not in grid.at for at, _ in guess.of):
            continue
        meant = guess
        if part:
            meant = replace(guess, of=_in(guess.of, part), minus=_in(guess.minus, part))
        of, minus = meant.operands(grid, line)
        range_, printed = range_of(guess.kind, of, minus) if of else None, bounds(number)
        if range_ is None or printed is None or number in (*of, *minus):
            continue
        points = _in_points(guess.kind, number, of)
        range_ = (100 * range_[0], 100 * range_[1]) if points else range_
        if guess.kind in ("share", "product") and range_[1] - range_[0] > WIDE * abs(sum(range_)):
            continue  # too few digits to tell
        slack = SLACK * max(1e-6, *map(abs, (*printed, *range_)))
        holds = printed[0] <= range_[1] + slack and printed[1] >= range_[0] - slack
        if holds or not found:
            found = Made(guess.kind, number, of, minus, *range_, holds, ready=points)
        if holds:
            break
    return found


def _in_points(kind: Kind, number: Number, of: Sequence[Number]) -> bool:
    """Whether a number is printed in points of percentages: -3.3 of 55.9% and 59.2%."""
    points = number.unit != "%" and all(one.unit == "%" for one in of)
    return points and kind in ("difference", "mean", "sum", "spread")


def _in(slots: tuple[Slot, ...], part: Part) -> tuple[Slot, ...]:
    return tuple((at, part) for at, _ in slots)
