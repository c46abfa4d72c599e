"""How lines of numbers may be made of others: differences, shares, means, losses.

Numbers propose here what a model proposes of sentences: formulas, which `judge` works out. Which of
these candidates a line holds to is for `search`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import inf, log

import numpy as np
from numpy.typing import NDArray

from kleash.documents.boards import Array, Board, bare

MANY = 800  # runs of lines that are tried


@dataclass(frozen=True)
class Kind:
    """A kind of account: what titles call it, and what score it needs, so called and not."""

    name: str
    hint: re.Pattern[str]
    hinted: float = 4.0
    plain: float = inf
    spare: int = 4
    """One number of so many may fail."""


def kind_of(name: str, hint: str, hinted: float = 4.0, plain: float = inf, spare: int = 4) -> Kind:
    """A kind of account, with the words by which titles call it."""
    return Kind(name, re.compile(hint, re.I), hinted, plain, spare)


_GAP = (
    r"差|Δ|delta|diff|gap|vs|[-−–]|变化|提升|over|gain|los[ts]|drop|降|增|改善|相[对比]|change|"
    r"高出|较"
)
DIFFERENCE = kind_of("difference", _GAP, plain=9)
RELATIVE = kind_of(
    "relative", r"%|％|比例|幅|相[对比]|change|vs|率|提升|变化|Δ|较|下降|上升", plain=8
)
SHARE = kind_of("share", r"%|％|率|share|rate|占|比|acc|win|loss|per ", plain=8)
RATIO = kind_of("ratio", r"比|倍|ratio|/|×|x\b|times|per|每|均|avg|mean", plain=9)
PRODUCT = kind_of("product", r"×|\*|总|penalty|惩罚|hours|GPU|乘|cost|费|total|项|时|kl", plain=9)
WEIGHTED = kind_of("weighted", r"loss|损失|总|total|objective", 6, 12)
SUM = kind_of("sum", r"合计|总|共|total|sum|all|整")
MEAN = kind_of("mean", r"平均|均值|mean|avg|average|overall|总体|整体")
MEDIAN = kind_of("median", r"中位|median")
RANGE = kind_of("range", r"[-−–]|range|极差|波动|spread|幅|跨度|gap|差")
BEST = kind_of("best", r"最|best|max|min|peak|top|high|low|峰|谷", 5, spare=3)
SPREAD = kind_of("spread", r"标准差|std|sd|±|spread|dev|seed|种子", 5, spare=3)
PLACE = kind_of("place", BEST.hint.pattern, spare=3)
SAME = kind_of("same", r"(?!)", plain=8)
STEP = kind_of("difference", r"变化|change|Δ|增|降|环比|prev|上一|前一|相邻")
STEP_SHARE = kind_of("relative", STEP.hint.pattern)
PAIRS: tuple[tuple[Kind, str], ...] = (
    (DIFFERENCE, "{} - {}"),
    (SUM, "{} + {}"),
    (PRODUCT, "{} * {}"),
    (RATIO, "{} / {}"),
    (SHARE, "100 * {} / {}"),
    (RELATIVE, "100 * ({0} - {1}) / {1}"),
)
AGAINST = (PAIRS[0], PAIRS[3], PAIRS[4], PAIRS[5])
Truth = NDArray[np.bool_]
Formula = Callable[[int, int], str]


@dataclass
class Candidates:
    """Accounts of one kind: what each gives at each position, how exactly, and as what formula."""

    kind: Kind
    given: Array
    room: Array
    formula: Formula
    cost: float = 0.0
    natural: Array | None = None
    """Of accounts against one position: whether the line has no number of its own there."""


def of_two(kind: Kind, a: Array, b: Array, ha: Array, hb: Array) -> tuple[Array, Array]:
    """What two lines give by a kind of account, and how far hidden digits move it."""
    match kind.name:
        case "difference":
            return a - b, ha + hb
        case "sum":
            return a + b, ha + hb
        case "product":
            return a * b, abs(a) * hb + abs(b) * ha
    ratio = a / b
    room = (ha + abs(ratio) * hb) / abs(b)
    if kind.name == "ratio":
        return ratio, room
    return 100 * (ratio if kind.name == "share" else ratio - 1), 100 * room


def candidates(board: Board, t: int, constants: Array, wants: Wants) -> Iterator[Candidates]:
    # Counts have no hidden digits, for what is not a count itself.
    half = board.half
    if not board.is_whole[t]:
        half = np.where(np.array(board.is_whole)[:, None], 0 * half, half)
    others = [i for i in range(len(board.titles)) if i != t]
    if not others:
        return
    yield from _pairs(board, others, half, wants)
    yield from _against(board, t, others, half, wants)
    yield from _runs(board, t, others, half, wants)
    if not board.turned or wants(WEIGHTED) or wants(PRODUCT):
        yield from _scaled(board, others, half, constants, wants)


Wants = Callable[[Kind], bool]


def _pairs(board: Board, others: list[int], half: Array, wants: Wants) -> Iterator[Candidates]:
    one, other = np.array([(i, j) for i in others for j in others if i != j] or [(0, 0)]).T
    value = board.value

    def formula(form: str) -> Formula:
        return lambda k, p: form.format(_at(board, one[k], p), _at(board, other[k], p))

    for kind, form in PAIRS:
        if len(others) > 1 and wants(kind):
            given = of_two(kind, value[one], value[other], half[one], half[other])
            yield Candidates(kind, *given, formula(form), log(max(2, len(one))))


def _against(
    board: Board, t: int, others: list[int], half: Array, wants: Wants
) -> Iterator[Candidates]:
    """Against one position, a baseline; and against the position before."""
    value, half = board.value[others], half[others]
    m, n = value.shape
    if n < 2:
        return
    own = board.value[t]
    empty = np.tile(~np.isfinite(own) | (abs(own) <= board.half[t]), m)

    def shape(two: tuple[Array, Array]) -> tuple[Array, Array]:
        given = np.where(np.eye(n, dtype=bool)[None], np.nan, two[0]).reshape(m * n, n)
        return given, two[1].reshape(m * n, n)

    for kind, form in AGAINST:
        if wants(kind):
            two = of_two(kind, value[:, None], value[:, :, None], half[:, None], half[:, :, None])

            def formula(k: int, p: int, form: str = form) -> str:
                line = others[k // n]
                return form.format(_at(board, line, p), _at(board, line, k % n))

            yield Candidates(kind, *shape(two), formula, log(m * n + 1), empty)
    before, halves = (np.roll(each, 1, axis=1) for each in (value, half))
    before[:, 0] = np.nan
    for kind, form in ((STEP, PAIRS[0][1]), (STEP_SHARE, PAIRS[5][1])):
        if wants(kind):

            def since(k: int, p: int, form: str = form) -> str:
                return form.format(_at(board, others[k], p), _at(board, others[k], p - 1))

            two = of_two(kind, value, before, half, halves)
            yield Candidates(kind, *two, since, log(m + 1))


STATISTICS: tuple[tuple[Kind, str, Callable[[Array, Array], tuple[Array, Array]]], ...] = (
    (MEAN, "mean", lambda x, h: (x.mean(0), h.mean(0))),
    (SUM, "sum", lambda x, h: (np.nansum(x, 0), np.nansum(h, 0))),
    (RANGE, "spread", lambda x, h: (np.ptp(x, 0), 2 * h.max(0))),
    (BEST, "max", lambda x, h: (x.max(0), 0 * h.max(0))),
    (BEST, "min", lambda x, h: (x.min(0), 0 * h.max(0))),
    (SPREAD, "std", lambda x, h: (x.std(0, ddof=1), h.max(0))),
)


def _runs(
    board: Board, t: int, others: list[int], half: Array, wants: Wants
) -> Iterator[Candidates]:
    """Means, sums, extremes of several lines; and at which of them the extreme is."""
    groups = [] if len(others) < 2 else list(_groups(board, t, others))
    for kind, name, statistic in STATISTICS:
        own = [g for g in groups if len(g) > 2 or kind is not SPREAD]
        if not own or not wants(kind):
            continue
        made = [statistic(board.value[g], half[g]) for g in own]
        lone = [np.isfinite(board.value[g]).sum(0) < 2 for g in own]
        given = np.where(lone, np.nan, [one for one, _ in made])

        def formula(k: int, p: int, own: list[list[int]] = own, name: str = name) -> str:
            cells = [c.address for i in own[k] if (c := board.cells[i][p]) is not None]
            return f"{name}({', '.join(cells)})"

        yield Candidates(kind, given, np.array([h for _, h in made]), formula, log(len(own) + 1))
    keyed = [i for i in others if board.keys[i] and len(board.named[i]) == 1]
    steps = np.array([board.named[i][0] for i in keyed])
    if len(keyed) > 2 and len(set(steps)) == len(keyed) and wants(PLACE):
        yield places(board, keyed, steps, range(len(board.positions)))


def places(board: Board, lines: list[int], steps: Array, at: Sequence[int]) -> Candidates:
    """At which of some lines each position has its highest and its lowest number."""
    value = board.value[np.ix_(lines, list(at))]
    whole = np.isfinite(value).all(0)
    given = [
        np.where(whole, steps[pick(np.where(np.isfinite(value), value, 0), 0)], np.nan)
        for pick in (np.argmax, np.argmin)
    ]

    def formula(k: int, p: int) -> str:
        cells = ", ".join(_at(board, i, at[p]) for i in lines)
        keys = ", ".join(board.keys[i] for i in lines)
        return f"{('at_max', 'at_min')[k]}([{cells}], [{keys}])"

    return Candidates(PLACE, np.array(given), np.zeros((2, len(at))), formula, 1.0)


def _groups(board: Board, t: int, others: list[int]) -> Iterator[list[int]]:
    """Lines that a statistic may be of: side by side, or the same part of every cell."""
    count = len(others)
    runs = [others[a:b] for a in range(count) for b in range(a + 2, count + 1)]
    if len(runs) > MANY:
        ends = {others[0], others[-1], t - 1, t + 1}
        runs = [one for one in runs if {one[0], one[-1]} & ends]
    by_part = [[i for i in others if board.parts[i] == k] for k in set(board.parts)]
    odd = [i for i in others if i % 2 == t % 2]
    for group in (*runs, *by_part, odd):
        if len(group) > 1 and len({board.is_share[i] for i in group}) == 1:
            yield group


def _scaled(
    board: Board, others: list[int], half: Array, constants: Array, wants: Wants
) -> Iterator[Candidates]:
    """A line times a coefficient, alone or beside another: a penalty, a loss."""
    n = len(board.positions)
    own = [one.pop() if len(one := [*set(_numbers(p))]) == 1 else np.nan for p in board.positions]
    by_position = np.where((np.array(own) > 0) & (np.array(own) < 1), own, np.nan)
    factors = [np.full(n, one) for one in constants]
    factors += [by_position] if np.isfinite(by_position).sum() > 1 else []
    if not factors:
        return
    c = np.array(factors)
    value, half, m = board.value[others], half[others], len(others)
    if wants(PRODUCT):

        def product(k: int, p: int) -> str:
            return f"{c[k // m, p]:.12g} * {_at(board, others[k % m], p)}"

        scaled = (c[:, None] * value).reshape(-1, n), (c[:, None] * half).reshape(-1, n)
        yield Candidates(PRODUCT, *scaled, product, log(len(c) * m + 1))
    if m > 1 and wants(WEIGHTED):
        apart = ~np.eye(m, dtype=bool)[None, :, :, None]
        given = np.where(apart, value[None, :, None] + c[:, None, None] * value[None, None], np.nan)
        room = half[None, :, None] + c[:, None, None] * half[None, None]

        def weighted(k: int, p: int) -> str:
            one, other = _at(board, others[k // m % m], p), _at(board, others[k % m], p)
            return f"{one} + {c[k // (m * m), p]:.12g} * {other}"

        shape = given.reshape(-1, n), room.reshape(-1, n)
        yield Candidates(WEIGHTED, *shape, weighted, log(len(c) * m * m + 1))


def _numbers(title: str) -> list[float]:
    return [float(one) for one in re.findall(r"(?<![\d.])0?\.\d+(?![\d.])", bare(title))]


def _at(board: Board, line: int, position: int) -> str:
    cell = board.cells[line][position]
    return "" if cell is None else cell.address
