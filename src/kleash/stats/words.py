"""The word that an interval and a margin make, the level of a claim, and what would decide.

Codes only; the sentences are in the catalogue.
"""

from __future__ import annotations

import math
from typing import Literal

from kleash.stats.intervals import Interval
from kleash.stats.planning import (
    items_for_equivalence,
    items_needed,
    seeds_for_equivalence,
    seeds_needed,
    z_equivalence,
    z_total,
)

Level = Literal["L1", "L2", "L3"]
Word = Literal[
    "invalid",
    "diverged",
    "identical",
    "better",
    "better_within_margin",
    "worse",
    "worse_within_margin",
    "equivalent",
    "undecided",
]

FEWEST_SEEDS = 4


def claim_level(*, item_scores: bool, seeds: int, only_treatment_differs: bool) -> Level:
    """The highest level of claim that the data allow.

    L1: these checkpoints on these items. L2: these checkpoints on items like these. L3: the
    settings, which takes four seeds of each arm and nothing else that differs; on items like these
    if every item was scored under every seed, else on these.
    """
    if seeds >= FEWEST_SEEDS and only_treatment_differs:
        return "L3"
    return "L2" if item_scores else "L1"


def word_of(wide: Interval, narrow: Interval, margin: float) -> Word:
    """The word that two intervals and a margin make, with better upwards; a margin of 0 is none."""
    inside = -margin < narrow.low and narrow.high < margin
    if wide.low > 0:
        return "better_within_margin" if inside else "better"
    if wide.high < 0:
        return "worse_within_margin" if inside else "worse"
    return "equivalent" if inside else "undecided"


def still_needed(
    gap: float,
    margin: float,
    spread: float | None,
    n: int,
    *,
    seeds: bool = False,
    items: int | None = None,
    items_error: float = 0.0,
) -> tuple[int | None, Literal["items", "seeds"]]:
    """How many more items or seeds of each arm would decide; None if the spread is unknown.

    `spread` is that of one item's or seed's gap; `items` and `items_error` are those behind seeds:
    the standard error that no seed makes smaller. A gap below half the margin shows as equivalent
    before it shows as a gap; a larger one does not.
    """
    size = abs(gap)
    as_gap = 2 * size >= margin
    if spread is None:
        return None, "seeds" if seeds else "items"
    if not seeds:
        enough = (
            items_needed(spread, size)
            if as_gap
            else items_for_equivalence(spread, margin, gap=size)
        )
        return max(1, enough - n), "items"
    # Seeds, for what items leave of the room there is; items, if they leave nothing of it: then as
    # many that half of the room is theirs, and seeds may still be too few after that.
    room = size if as_gap else margin - size
    taken = (z_total() if as_gap else z_equivalence()) * items_error
    if taken >= room and items:
        return math.ceil(items * (2 * (taken / room) ** 2 - 1)), "items"
    left = math.sqrt(room**2 - taken**2)
    needed = seeds_needed if as_gap else seeds_for_equivalence
    return max(1, needed(left, spread) - n), "seeds"
