"""Lines of numbers that two tables give for one thing."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import combinations

from kleash.findings.record import digits
from kleash.imports import Number
from kleash.imports.markdown.draft import agree
from kleash.imports.markdown.numbers import places
from kleash.written.grids import Grid, Slot, label, turned
from kleash.written.guessed import TELLING, within

_BEST = re.compile(r"最[佳好优高低大小]|(?<![a-z])(?:best|peak|max|min|highest|lowest)", re.I)


def told_again(every: Sequence[Grid]) -> Iterator[tuple[Number, Number]]:
    """Pairs of numbers that two tables give for one thing, by lines that are nearly all equal."""
    views = [view for grid in every for view in (grid, turned(grid))]
    rows = [
        (view, slot, {label(view.names[at]): one for at, one in view.column(slot).items()})
        for view in views
        for slot in view.slots()
        if not slot[1]
    ]
    for (one, ours, left), (other, theirs, right) in combinations(rows, 2):
        both = left.keys() & right.keys() if one.table is not other.table else set()
        telling = [at for at in both if digits(left[at]) >= TELLING]
        if len(telling) < 3 or not _one_place(one, ours, other, theirs):
            continue
        equal = [at for at in telling if agree(left[at], right[at])]
        named = _name_each_other(one, ours, other, theirs)
        most = len(equal) >= 3 and 3 * len(equal) >= 2 * len(telling) and named
        if most or _exchanged([left[at] for at in telling], [right[at] for at in telling], named):
            # A best may be of another epoch than the one that most others are best at.
            best = len(
                {bool(_BEST.search(v.titles[s[0]])) for v, s in ((one, ours), (other, theirs))}
            )
            for at in sorted(telling if best == 1 else equal):
                yield left[at], right[at]


def _exchanged(left: Sequence[Number], right: Sequence[Number], named: bool) -> bool:  # noqa: FBT001
    """Whether two lines hold the same numbers in another order; nearly so, if they are named so."""
    ours, theirs = (Counter((one.value, one.unit) for one in side) for side in (left, right))
    shared = (ours & theirs).total()
    return shared >= 3 and (shared == len(left) or (named and 4 * shared >= 3 * len(left)))


def _name_each_other(one: Grid, ours: Slot, other: Grid, theirs: Slot) -> bool:
    """Whether one of two lines names the other in its title or its headings."""
    left, right = one.titles[ours[0]], other.titles[theirs[0]]
    above, below = " ".join(one.table.headings), " ".join(other.table.headings)
    return within(left, f"{below} {right}") or within(right, f"{above} {left}")


def _one_place(one: Grid, ours: Slot, other: Grid, theirs: Slot) -> bool:
    """Whether two lines are of no different epochs, steps, shots or counts of items."""
    left, right = one.titles[ours[0]], other.titles[theirs[0]]
    above, below = " ".join(one.table.headings), " ".join(other.table.headings)
    places_ = places(f"{above} {left}")[0], places(f"{below} {right}")[0]
    fields = ("epoch", "step", "shots", "items")
    pairs = [tuple(getattr(place, name) for place in places_) for name in fields]
    return all(None in pair or pair[0] == pair[1] for pair in pairs)
