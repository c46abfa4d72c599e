"""Lines that are made of two others, or of another and one of its own positions.

Every recipe says what a line would hold at each position and how far off rounding may put it. None
is believed here: `weighed` does that.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from kleash.imports.markdown.text import bare
from kleash.written.made.bench import (
    HINTED,
    HINTS,
    OTHER,
    SAID,
    SHAPED,
    WHOLE,
    Array,
    Batch,
    Bench,
    Cell,
    mentions,
    said_pairs,
    takes_away,
)
from kleash.written.made.boards import Line

_GAP = re.compile(
    r"\W*(?:差异|差值|差距|相差|差|变化|增量|diff(?:erence)?|gap|delta|change|Δ)\W*"
    r"(?:\((?:pp|pts?|points?|%|个?百分点|点)\))?\W*",
    re.I,
)
_CHANGED = re.compile(
    r"\(.*?\)|\[.*?\]|Δ|提升|变化|下降|回落|增量|差异?|(?<![a-z])(?:delta|diff(?:erence)?|change|gain|drop|"
    r"loss|lost)(?![a-z])|(?:vs\.?|against|over|(?<![a-z])(?:in|of|from))(?![a-z]).*$|[较对比相](?:对|比)?.*$",
    re.I,
)
_FALL = re.compile(
    r"回落|回吐|跌|降|丢|(?<![a-z])(?:drop|fall|lost|loss|decline|giv\w+ back|degrad)", re.I
)
_TOP = re.compile(r"最[佳好优高]|峰|(?<![a-z])(?:best|peak|highest|max)", re.I)
_LAST = re.compile(r"最[后终]|末|终点|(?<![a-z])(?:last|final|end)(?![a-z])", re.I)
NEAR = 3  # lines before another of which it is likely made
OWN = -2  # for a base: the one of the group that a position is in


# --- two lines


def of_two(on: Bench) -> Iterator[Batch]:
    count = len(on.others)
    if count < 2:
        return
    ours, theirs = (each.ravel() for each in np.meshgrid(range(count), range(count), indexing="ij"))
    keep = ours != theirs
    ours, theirs = ours[keep], theirs[keep]
    x, y = on.value_LN[ours], on.value_LN[theirs]
    dx, dy = on.half_LN[ours], on.half_LN[theirs]

    def cells(nth: int, at: int) -> tuple[Cell, ...]:
        return (at, on.others[ours[nth]]), (at, on.others[theirs[nth]])

    said, near = said_pairs(on) or _only_two(on), _nearest(on)
    alike = np.array([on.units[a] == on.units[b] for a, b in zip(ours, theirs, strict=True)])
    whole = np.all(np.isnan(on.half_LN) | (on.half_LN == WHOLE), axis=1)
    counts = whole[ours] & whole[theirs]
    for kind, given, within in comparisons(on, x, y, dx, dy):
        hint = HINTED if HINTS[kind].search(on.title) or on.line[1] == "(" else OTHER
        told = said if kind == "difference" or not takes_away(on.title) else set()
        told = told or (_best_and_last(on) if kind == "difference" else set())
        cost = np.array(
            [
                SAID if (a, b) in told else SHAPED if hint < OTHER and {a, b} <= near else hint
                for a, b in zip(ours, theirs, strict=True)
            ]
        )
        given = np.where(alike[:, None] | (kind == "share"), given, np.nan)
        yield Batch(kind, given, within, cost, cells)
        if kind == "share" and counts.any():  # of what was counted nothing is rounded
            yield Batch(kind, np.where(counts[:, None], given, np.nan), 0 * within, cost, cells)


def _only_two(on: Bench) -> set[tuple[int, int]]:
    """The two lines before a line that is called a difference, if no more are before it."""
    before = [nth for nth, line in enumerate(on.others) if 0 < line[0] < on.line[0]]
    plain = [nth for nth in before if not on.others[nth][1]]
    beside = [on.others[nth][0] for nth in plain] == [on.line[0] - 2, on.line[0] - 1]
    named = len(plain) == 2 and beside and _GAP.fullmatch(on.title)
    return {(plain[0], plain[1]), (plain[1], plain[0])} if named else set()


def _best_and_last(on: Bench) -> set[tuple[int, int]]:
    """The best and the last, of which a line that is called a fall is the difference."""
    if not _FALL.search(on.title):
        return set()
    plain = {
        nth: bare(on.board.titles[line[0]]) for nth, line in enumerate(on.others) if not line[1]
    }
    best, last = (
        [nth for nth, title in plain.items() if word.search(title) and not other.search(title)]
        for word, other in ((_TOP, _LAST), (_LAST, _TOP))
    )
    pairs = [
        (one, other)
        for one in best
        for other in last
        if np.nanmedian(on.half_LN[one]) == np.nanmedian(on.half_LN[other]) < WHOLE
    ]
    return {pairs[0], pairs[0][::-1]} if len(pairs) == 1 else set()


def _nearest(on: Bench) -> set[int]:
    """The lines before a line that are printed alike, and those of its own cells."""
    own = [nth for nth, line in enumerate(on.others) if line[0] == on.line[0]]
    if len(own) > 1 and on.line[1]:
        return set(own)
    before = [nth for nth, line in enumerate(on.others) if line[0] < on.line[0] and not line[1]]
    last = {on.others[nth][0] for nth in before[-1:]}
    arrows = [nth for nth, line in enumerate(on.others) if line[0] in last]
    return {*own, *before[-NEAR:], *(arrows if len(arrows) > 1 else ())}


def comparisons(
    on: Bench, x: Array, y: Array, dx: Array, dy: Array
) -> Iterator[tuple[str, Array, Array]]:
    """The difference, the change and the ratio of numbers, in the units that a line may have."""
    ratio = x / y
    off = np.abs(ratio) * (dx / np.abs(x) + dy / np.abs(y))
    off = np.where(x == 0, dx / np.abs(y), off)
    percent = on.unit == "%" or "%" in on.title
    if on.unit != "×":
        yield "difference", *_by_unit(on, x - y, dx + dy, ratio, off)
        small = (np.abs(x) <= 1.5) & (np.abs(y) <= 1.5)
        yield "difference", np.where(small, 100 * (x - y), np.nan), 100 * (dx + dy)
    if on.unit in ("%", "") and (percent or on.unit == ""):
        yield "relative", 100 * (ratio - 1), 100 * off
        if not on.signed:
            yield "relative", 100 * (1 - ratio), 100 * off
    if on.unit != "%":
        yield "share", ratio, off
    if on.unit != "×":
        yield "share", 100 * ratio, 100 * off


def _by_unit(on: Bench, gap: Array, room: Array, ratio: Array, off: Array) -> tuple[Array, Array]:
    """Differences, but changes and ratios where a number is one by its unit."""
    if on.unit == "%" or not {"%", "×"} & set(on.units_N):
        return gap, room
    share, times = (on.units_N == "%") & ~on.share_N, on.units_N == "×"
    given = np.where(share, 100 * (ratio - 1), np.where(times, ratio, gap))
    return given, np.where(share, 100 * off, np.where(times, off, room))


# --- a line and one of its own positions


def of_a_base(on: Bench) -> Iterator[Batch]:
    """Against the position before, or against one that all are held against."""
    missing = [
        at
        for at in on.board.used
        if not np.isfinite(on.value_N[at]) or on.value_N[at] in (0.0, 1.0)
    ]
    own = _own_bases(on, missing)
    bases = [-1, *on.board.used, *([OWN] if own else [])]
    said = [at for at in on.board.used if mentions(on.title, on.board.labels[at])]
    of = _of_which(on)
    pairs = [(nth, base) for nth in range(len(on.others)) for base in bases if on.even_L[nth]]
    if not pairs:
        return
    x = np.array([on.value_LN[nth] for nth, _ in pairs])
    dx = np.array([on.half_LN[nth] for nth, _ in pairs])
    y = np.array([_base(on.value_LN[nth], base, own) for nth, base in pairs])
    dy = np.array([_base(on.half_LN[nth], base, own) for nth, base in pairs])

    def cells(nth: int, at: int) -> tuple[Cell, ...]:
        line, base = on.others[pairs[nth][0]], pairs[nth][1]
        there = own[at] if base == OWN else at - 1 if base < 0 else base
        return (at, line), (there, line)

    for kind, given, within in comparisons(on, x, y, dx, dy):
        hinted = bool(HINTS[kind].search(on.title)) or on.line[1] == "("
        cost = np.array(
            [_base_cost(on, on.others[nth], base, missing, said, of, hinted) for nth, base in pairs]
        )
        yield Batch(kind, given, within, cost, cells)
        if kind == "share" and on.unit == "×":  # a speed-up
            yield Batch(kind, 1 / given, within / given**2, cost, cells)


def _of_which(on: Bench) -> int | None:
    """The one other line whose title has the rest of that of a change: "Δ LC", "LC win rate"."""
    rest = _CHANGED.sub("", bare(on.title).casefold()).strip(" :-.")
    if len(rest) < (2 if re.search(r"[\u4e00-\u9fff]", rest) else 3) and not rest.isalpha():
        return None
    own = re.compile(rf"(?<![a-z\d.]){re.escape(rest)}(?![a-z\d.])")
    found = [
        at
        for at, title in enumerate(on.board.titles)
        if at != on.line[0] and rest and own.search(bare(title).casefold())
    ]
    return found[0] if len(found) == 1 else None


def _own_bases(on: Bench, missing: Sequence[int]) -> dict[int, int]:
    """For each position the one of its group that all of the group are held against.

    Rows of two labels are in groups by the first: "epoch 2 | β = 0.1".
    """
    groups = {at: bare(on.board.labels[at]).partition(" | ")[0] for at in on.board.used}
    bases = {groups[at]: at for at in missing}
    own = {at: bases[group] for at, group in groups.items() if group in bases}
    whole = len(missing) == len(bases) > 1 and set(groups.values()) == set(bases)
    return own if whole and len(groups) > len(bases) else {}


def _base(values: Array, base: int, own: Mapping[int, int]) -> Array:
    if base == OWN:
        there = [own.get(at, at) for at in range(len(values))]
        return np.where(np.array(there) == np.arange(len(values)), np.nan, values[there])
    if base >= 0:
        made = np.full(len(values), values[base])
        made[base] = np.nan
        return made
    return np.concatenate([[np.nan], values[:-1]])


def _base_cost(
    on: Bench,
    line: Line,
    base: int,
    missing: list[int],
    said: list[int],
    of: int | None,
    hinted: bool,  # noqa: FBT001
) -> int:
    beside = line == (on.line[0], "") if on.line[1] else line == (on.line[0] - 1, "")
    before = base == OWN or (base < 0 and missing[:1] == on.board.used[:1])
    natural = said == [base] if said and base != OWN else before or missing == [base]
    meant = of == line[0] or mentions(on.title, on.board.titles[line[0]])
    if said == [base] and (meant or (beside and hinted)):
        return SAID
    if of is not None and natural and hinted:  # "Δ accuracy", where one row has none
        return SAID if of == line[0] and not line[1] and missing == [base] else HINTED
    if natural and hinted and (beside or meant or (base != -1 and not line[1])):
        return SHAPED
    return HINTED if hinted and (natural or beside) else OTHER
