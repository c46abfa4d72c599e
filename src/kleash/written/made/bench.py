"""A line of a table on the bench: its numbers and those of the others, as arrays, and its title.

What it may be made of is for `recipes`, `gathered` and `factors`; what is believed, for `weighed`.

Axes: C recipes, L lines, N positions.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from kleash.imports.markdown.text import bare
from kleash.written.made.boards import Board, Line
from kleash.written.printed import MINIMUM, named, squeezed

MEANT = 3  # lines that one word of a title may name
WHOLE = 0.5  # half a unit of a number without decimals: it may be a count
WIDEST = 18  # lines of which pairs are tried
Array = NDArray[np.float64]
Cell = tuple[int, Line]
SAID, SHAPED, HINTED, OTHER = 0, 1, 2, 3
"""How a recipe comes to mind: by its title, by title and layout, by a word of it, not at all."""
_CHANGE = (
    r"差|下降|降幅|跌|减|增|涨|vs|Δ|delta|diff|gap|chang|gain|提升|变化|环比|相对|较|对比|回落|drop|improv|against|"
    r"over|extra|lead|overhead|added|increment|→|^对(?![数话照])|(?<![a-z])(?:lost|loses|fall|fell|rise|"
    r"rose|declin|longer|shorter|giv\w+ back|回吐|丢)"
)
HINTS = {
    "difference": re.compile(_CHANGE + "|极差|spread|range|改变", re.I),
    "range": re.compile(
        rf"{_CHANGE}|极差|spread|range|跨度|改变|(?:max|最[高大]|best|highest)[^,;]{{0,12}}?"
        r"\s?[-/]\s?(?:min|最[低小差]|worst|lowest)",
        re.I,
    ),
    "relative": re.compile(_CHANGE + "|%|开销", re.I),
    "share": re.compile(
        r"率|比|占|保持|倍|rate|share|ratio|per\b|fraction|speed|/|%|×|vs|相对|cost|每", re.I
    ),
    "mean": re.compile(r"平均|均值|mean|avg|average", re.I),
    "sum": re.compile(r"合计|总|之和|和$|sum|total|overall|all|pooled", re.I),
    "spread": re.compile(r"±|std|标准差|stdev|s\.?d\b|sem\b", re.I),
    "rank": re.compile(r"名次|排名|rank|^#$|^\s*$", re.I),
    "best": re.compile(
        rf"最[高低大小佳优好差]|峰|best|highest|lowest|max|{MINIMUM}|peak|top", re.I
    ),
    "multiple": re.compile(
        r"小时|时长|时间|卡时|费用|成本|元|hours?|GPU|cost|price|usd|\$|€|\bh\b|token|题数|条数|总",
        re.I,
    ),
}


@dataclass(frozen=True)
class Batch:
    """Recipes of one kind: what they give, within what, how likely each was meant."""

    kind: str
    given_CN: Array
    within_CN: Array
    cost_C: NDArray[np.int64]
    cells: Callable[[int, int], tuple[Cell, ...]]
    """The cells of which a recipe makes one position."""
    free: int = 0
    """How many of the fits any numbers would have: a factor was chosen to fit."""
    odds: float | None = None
    """How likely one fits by chance, where it is no matter of rounding."""


@dataclass(frozen=True)
class Bench:
    """A line and the others of its table, ready to be tried."""

    board: Board
    line: Line
    others: list[Line]
    value_N: Array
    half_N: Array
    value_LN: Array
    half_LN: Array
    unit: str
    units: list[str]
    units_N: NDArray[np.str_]
    share_N: NDArray[np.bool_]
    """Where all other numbers are percentages."""
    even: bool
    even_L: list[bool]
    """Which lines hold numbers of one kind, so that their positions may be held together."""

    @cached_property
    def title(self) -> str:
        return bare(self.board.titles[self.line[0]])

    @cached_property
    def length(self) -> float:
        """How many halves of its last digit a number of the line has: few tell nothing."""
        return float(np.nanmedian(np.abs(self.value_N) / self.half_N))

    @cached_property
    def middle_L(self) -> list[float]:
        """Half the last digit that numbers of the others have, by line."""
        return [float(np.nanmedian(one)) for one in self.half_LN]

    @cached_property
    def signed(self) -> bool:
        return any(part.signed for part in self.board.by_line[self.line])

    @cached_property
    def gap_L(self) -> list[bool]:
        """Which of the others are how far others are apart: with a sign, some with a plus."""
        own = [[part for part in self.board.by_line[one] if part.value] for one in self.others]
        return [
            all(part.signed for part in each) and any(part.text[:1] == "+" for part in each)
            for each in own
        ]


def bench(board: Board, line: Line) -> Bench | None:
    """A line with all that it may be made of; None if it is no line of numbers of one kind."""
    value, half = _arrays(board, [line])
    if np.isfinite(value).sum() < 2:
        return None
    near = sorted(
        (one for one in board.lines if one != line), key=lambda one: abs(one[0] - line[0])
    )[:WIDEST]
    others = sorted(near)
    values, halves = _arrays(board, others)
    units = [_unit(board, one) for one in others]
    own = np.array([getattr(board.at.get((at, line)), "unit", "") for at in range(value.shape[1])])
    even = [_even(board, one) for one in others]
    share = np.array(
        [
            all(
                board.at[at, one].unit == "%"
                for one in others
                if (at, one) in board.at and not one[1]
            )
            for at in range(value.shape[1])
        ]
    )
    return Bench(
        board, line, others, value[0], half[0], values, halves, _unit(board, line), units, own,
        share, _even(board, line), even,
    )  # fmt: skip


def _arrays(board: Board, lines: Sequence[Line]) -> tuple[Array, Array]:
    values, halves = (np.full((len(lines), len(board.labels)), np.nan) for _ in range(2))
    for nth, line in enumerate(lines):
        for at in range(len(board.labels)):
            part = board.at.get((at, line))
            if part is not None:
                values[nth, at], halves[nth, at] = part.value, part.half
    return values, halves


def _even(board: Board, line: Line) -> bool:
    """Whether the numbers of a line are printed alike, or nearly so."""
    parts = board.by_line[line]
    decimals = [part.decimals for part in parts]
    return len({part.unit for part in parts}) == 1 and max(decimals) - min(decimals) <= 1


def _unit(board: Board, line: Line) -> str:
    """The unit that most of a line has: %, × or the like."""
    units = [part.unit for part in board.by_line[line]]
    return max(set(units), key=units.count) if units else ""


# --- what a title says


_PLAIN = r"\d+(?:\.\d+)?(?:e-?\d+)?"
_SIGN = re.compile(
    r"\s*(?:[→/÷]|->|(?<![a-z\d])-|-(?![\d])|\s-\s|(?<![a-z])(?:vs\.?|minus|over|to|from)(?![a-z])|相对|较|对|比|从|到|至)\s*"
)


def said_pairs(on: Bench) -> set[tuple[int, int]]:
    """The two others that the title of a line names, if it names two; all that may be meant.

    Of "A − B" the first is A, else each may be.
    """
    named = []
    for piece in _SIGN.split(on.title.casefold()):
        fits = [
            at
            for at, title in enumerate(on.board.titles)
            if at != on.line[0] and names(piece, title)
        ]
        exact = [at for at in fits if _key(on.board.titles[at]) == _key(piece)]
        named += [exact or fits] if fits else []
    if len(named) != 2 or max(map(len, named)) > MEANT:
        return set()
    first, second = (
        [nth for nth, line in enumerate(on.others) if line[0] in columns] for columns in named
    )
    pairs = {(a, b) for a in first for b in second if a != b}
    return pairs if takes_away(on.title) else pairs | {(b, a) for a, b in pairs}


def takes_away(title: str) -> bool:
    """Whether a title is one thing minus another."""
    return bool(re.search(r"\S\s?−\s?\S|\S\s-\s\S|(?<![a-z])minus(?![a-z])", title))


def _key(text: str) -> str:
    return re.sub(r"[\s*_`:]|\(.*?\)", "", bare(text).casefold()) or bare(text).casefold()


def names(piece: str, title: str) -> bool:
    """Whether a piece of a title is another title, its beginning, or the one number that it has."""
    ours, theirs = _key(piece), _key(title)
    if not ours or not theirs:
        return False
    begins = theirs.startswith(ours) and not re.match(r"[a-z\d.]", theirs[len(ours) :])
    shortest = 1 if re.fullmatch(r"[\u4e00-\u9fff]+", ours) else 2
    if theirs == ours or begins:
        return True
    if len(ours) > shortest and theirs.startswith(ours) and ours.isalpha():
        return True
    if (
        len(theirs) > 1
        and ours.startswith(theirs)
        and not re.match(r"[a-z\d.]", ours[len(theirs) :])
    ):
        return True
    number = re.findall(_PLAIN, theirs)
    return len(number) == 1 and re.sub(r"^[^\d]*|[^\d]*$", "", ours) == number[0]


@lru_cache(maxsize=65536)
def mentions(title: str, other: str) -> bool:
    """Whether a title names another, whole or by the one number that it has."""
    theirs = squeezed(re.sub(r"\(.*?\)", "", bare(other)) or bare(other)).strip(" :")
    ours = squeezed(bare(title))
    if not theirs or theirs == ours.strip(" :"):
        return False
    if any(named(ours, theirs)):
        return True
    number = _own_number(other)
    return bool(number) and number in re.findall(rf"(?<![\w.-]){_PLAIN}(?![\w.])", bare(title))


def _own_number(title: str) -> str:
    """The only number of a title that is no part of a word; none if it has another."""
    every = re.findall(_PLAIN, bare(title))
    alone = re.findall(rf"(?<![\w.-]){_PLAIN}(?![A-Za-z\d.])", bare(title))
    return alone[0] if len(every) == len(alone) == 1 else ""
