"""Lines that are others by one factor, shares and sums of others, or ranks in them."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from itertools import combinations

import numpy as np

from kleash.imports.markdown.text import bare
from kleash.written.made.bench import HINTED, HINTS, OTHER, SHAPED, WHOLE, Array, Batch, Bench, Cell
from kleash.written.printed import differ_in_number

TIGHT = 0.01  # how well numbers must tell what the text around their table says
FEW = 0.25  # of the numbers of a line that may be otherwise
AGREEING = 3  # numbers of a line that must agree
UNITS = (1.0, 1 / 60, 1 / 3600)  # minutes and hours


def by_one_factor(on: Bench) -> Iterator[Batch]:
    """So many times another, by one factor, or as much more or less, that nobody has to tell."""
    if not on.even or not any(on.even_L):
        return
    x = np.where(np.array(on.even_L)[:, None], on.value_LN, np.nan)
    whole = np.all(np.isnan(on.half_LN) | (on.half_LN == WHOLE), axis=1)  # may be counts
    exact = np.where(whole[:, None], 0.0, on.half_LN)
    for halves in (on.half_LN, exact) if whole.any() else (on.half_LN,):
        yield from _by_factor(on, x, halves, "multiple")
        yield from _by_factor(on, 1 / x, halves / x**2, "multiple")
        yield from _by_factor(on, -x, halves, "complement")
    yield from offsets(on)


def offsets(on: Bench) -> Iterator[Batch]:
    """Another line less one number that the table does not have, if the title speaks of a gap."""
    if on.even and HINTS["difference"].search(on.title):
        x = np.where(np.array(on.even_L)[:, None], on.value_LN, np.nan)
        yield from _by_factor(on, x, on.half_LN, "offset")


def _by_factor(on: Bench, base_LN: Array, off_LN: Array, kind: str) -> Iterator[Batch]:
    """Another line times one factor, or plus one number; apart if the title has that number."""
    times = kind == "multiple"
    given, within = base_LN * np.nan, base_LN * np.nan
    named = np.zeros(len(base_LN), bool)
    every = _constants(on, base_LN, off_LN, times=times)
    for nth, found in enumerate(every):
        if found is None or abs(found[0] - times) <= found[1]:
            continue  # it is the same line once more
        if times and differ_in_number(on.title, on.board.titles[on.others[nth][0]]):
            continue  # one quantity at two steps, or of two seeds
        constant, room = found
        named[nth] = _has_constant(on, constant, room, times=times) or (
            _is_hinted(on, nth, kind)
            and _is_told(on, base_LN[nth], off_LN[nth], constant, room, kind)
        )
        given[nth] = constant * base_LN[nth] if times else constant + base_LN[nth]
        given[nth] = np.where(given[nth] == 0, np.nan, given[nth]) if times else given[nth]
        scale = abs(constant) if times else 1.0
        within[nth] = scale * off_LN[nth] + room * (np.abs(base_LN[nth]) if times else 1.0)

    def cells(nth: int, at: int) -> tuple[Cell, ...]:
        return ((at, on.others[nth]),)

    own = np.array(
        [
            SHAPED if times and line == (on.line[0], "") and on.line[1] == "("
            else HINTED if _is_hinted(on, nth, kind) else OTHER
            for nth, line in enumerate(on.others)
        ]
    )  # fmt: skip
    for free, chosen in ((1, ~named), (0, named)):
        if chosen.any():
            cost = np.where(chosen & (free == 0), SHAPED, own)
            yield Batch(kind, np.where(chosen[:, None], given, np.nan), within, cost, cells, free)


def _is_hinted(on: Bench, nth: int, kind: str) -> bool:
    """Whether titles speak of a line as made of another: hours of steps, a sum of a mean."""
    words = ("multiple", "share") if kind == "multiple" else ("difference",)
    if any(HINTS[word].search(on.title) for word in words):
        return True
    both = (on.title, bare(on.board.titles[on.others[nth][0]]))
    sums, means = ([bool(HINTS[word].search(one)) for one in both] for word in ("sum", "mean"))
    return kind == "multiple" and sums != means and any(sums) and any(means)


def _has_constant(on: Bench, constant: float, room: float, *, times: bool) -> bool:
    """Whether the titles of a table have the number by which a line is made of another."""
    texts = " ".join((on.title, "" if on.board.turned else on.board.titles[0]))
    found = re.findall(r"\d[\d,]*(?:\.\d+)?", bare(texts))
    numbers = {float(one.replace(",", "")) for one in found}
    written = re.findall(r"(\d+(?:\.\d+)?)\s?[×*·]\s?[^\W\d]", bare(on.title))  # "0.01 × KL"
    exact = any(abs(float(one) - constant) <= room + 1e-9 for one in written)
    return times and (exact or _is_factor(numbers, constant, room, percent=True))


def _is_told(on: Bench, base: Array, off: Array, constant: float, room: float, kind: str) -> bool:
    """Whether the text around a table has it, where all but a few numbers of the line agree."""
    times = kind == "multiple"
    if kind == "complement" or room > TIGHT * (abs(constant) if times else 1.0):
        return False
    gap = np.abs(on.value_N - (constant * base if times else constant + base))
    within = on.half_N + off * (abs(constant) if times else 1.0)
    known = np.isfinite(gap) & ((base != 0) if times else True)
    odd = int((gap[known] > within[known] * (1 + 1e-6)).sum())
    few = odd <= max(1, FEW * known.sum()) and known.sum() - odd >= AGREEING
    if not times:
        known_bases = on.board.said | on.board.often
        return few and any(abs(abs(constant) - one) <= room + 1e-9 for one in known_bases)
    percent = bool(HINTS["share"].search(on.title))
    return few and _is_factor(on.board.said, constant, room, percent=percent)


def _is_factor(numbers: Collection[float], constant: float, room: float, *, percent: bool) -> bool:
    """Whether a factor is one of some numbers, or one over it, or that in percent."""
    fit = [value for one in numbers if one > 1 for value in (one, 1 / one)]
    fit += [value for one in numbers if one > 1 and percent for value in (100 / one, one / 100)]
    return any(abs(value - constant) <= room + 1e-9 for value in fit)


def _constants(
    on: Bench, base_LN: Array, off_LN: Array, *, times: bool
) -> list[tuple[float, float] | None]:
    """By line the factor (or sum) that most positions share, and how well they tell it."""
    value, half = on.value_N, on.half_N
    both = np.isfinite(value) & np.isfinite(base_LN) & ((base_LN != 0) if times else True)
    plain = np.round(value, 9)
    varied = np.where(both, plain, -np.inf).max(1) > np.where(both, plain, np.inf).min(1)
    ratio = value / base_LN if times else value - base_LN
    room = (
        np.abs(ratio) * (half / np.maximum(np.abs(value), 1e-12) + off_LN / np.abs(base_LN))
        if times
        else half + off_LN
    )
    low, high = (np.where(both, ratio + sign * room, np.nan) for sign in (-1, 1))
    inside = (low[:, :, None] <= low[:, None, :]) & (low[:, None, :] <= high[:, :, None])
    best = inside.sum(1).argmax(1)
    chosen = inside[np.arange(len(best)), :, best]
    first = np.where(chosen, low, -np.inf).max(1)
    last = np.where(chosen, high, np.inf).min(1)
    found, room = (first + last) / 2, (last - first) / 2
    return [
        (float(found[nth]), float(room[nth])) if fine else None
        for nth, fine in enumerate(varied & (both.sum(1) >= 3))
    ]


def products(on: Bench) -> Iterator[Batch]:
    """Two others times each other: so many epochs of so many seconds, in hours."""
    plain = [
        nth for nth, line in enumerate(on.others) if not line[1] and line[0] and on.even_L[nth]
    ]
    pairs = list(combinations(plain, 2))
    if not pairs or not on.even or not HINTS["multiple"].search(on.title):
        return
    whole = np.all(np.isnan(on.half_LN) | (on.half_LN == WHOLE), axis=1)  # may be counts
    halves = np.where(whole[:, None], 0.0, on.half_LN)
    (x, y), (dx, dy) = ([each[list(side)] for side in zip(*pairs, strict=True)]
                        for each in (on.value_LN, halves))  # fmt: skip
    for times in UNITS:
        given = times * x * y
        within = times * (dx * np.abs(y) + dy * np.abs(x))

        def cells(nth: int, at: int) -> tuple[Cell, ...]:
            return tuple((at, on.others[one]) for one in pairs[nth])

        yield Batch("product", given, within, np.full(len(pairs), HINTED), cells)


def of_all(on: Bench) -> Iterator[Batch]:
    """Shares of the sum of a line, and sums of it up to each position."""
    plain = np.array([at in on.board.plain for at in range(len(on.board.labels))])
    if not len(on.others) or plain.sum() < 2:
        return
    x = np.where(plain, on.value_LN, np.nan)
    total, off = np.nansum(x, 1, keepdims=True), np.nansum(on.half_LN * plain, 1, keepdims=True)

    def cells(nth: int, at: int) -> tuple[Cell, ...]:
        return ((at, on.others[nth]),)

    hint = HINTED if HINTS["share"].search(on.title) else OTHER
    given = 100 * x / total
    within = np.abs(given) * (on.half_LN / np.abs(x) + off / np.abs(total))
    cost = np.full(len(on.others), hint)
    yield Batch("share", given, within, cost, cells)
    cost = np.full(len(on.others), OTHER)
    yield Batch("sum", np.cumsum(x, 1), np.cumsum(on.half_LN, 1), cost, cells)


def ranks(on: Bench) -> Iterator[Batch]:
    """The place of each number among those of its line, from the highest or from the lowest."""
    whole = on.value_N[np.isfinite(on.value_N)]
    if not len(on.others) or not np.all(whole == np.round(whole)) or whole.max() > len(whole):
        return
    own = np.isfinite(on.value_N)
    said = HINTS["rank"].search(on.title)
    if not said and bool(np.all(np.diff(whole) > 0)):
        return  # epochs that are counted up rank nothing, however evenly something falls
    hint = HINTED if said else OTHER
    for sign in (1, -1):
        x = np.where(own & np.isfinite(on.value_LN), sign * on.value_LN, np.nan)
        given = 1.0 + (x[:, None, :] > x[:, :, None]).sum(2)
        given = np.where(np.isfinite(x), given, np.nan)

        def cells(nth: int, at: int) -> tuple[Cell, ...]:
            return ((at, on.others[nth]),)

        cost = np.full(len(on.others), hint)
        odds = 1 / max(2, len(whole))
        yield Batch("rank", given, given * 0, cost, cells, odds=odds)
