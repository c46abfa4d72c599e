"""The verdict: what an interval, its margin and what is known about the data allow to be said.

Codes only; the sentences are in the catalogue. The order of the rules is the order of the claims:
what is invalid is not judged, what is identical is not equal, what is confounded is not explained.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from kleash.stats.intervals import Interval, differing_bound
from kleash.stats.power import (
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


@dataclass(frozen=True)
class Verdict:
    """A word, how far it reaches, and what would decide if nothing is decided."""

    word: Word
    level: Level
    beyond_margin: bool
    """Of better and worse: the whole interval is beyond the margin."""
    attributable: bool
    """False if something else changed too: the gap is judged, its cause is not."""
    because: tuple[str, ...]
    """Integrity failures if invalid, else confounds, as they were given."""
    bound: float | None
    """Of identical outputs: the population gap is below this."""
    more: int | None
    """Further items, or seeds of each arm, that would decide if spread and gap stay as they are."""
    unit: Literal["items", "seeds"]
    """What `more` counts."""


@dataclass(frozen=True)
class Evidence:
    """What a verdict is given besides the interval."""

    level: Level
    n: int
    """Items, or seeds of each arm at L3."""
    k: int | None = None
    """Items that differ, under any seed; None where that is not known or means nothing."""
    items: int | None = None
    """The items behind seeds; None where n counts them, or their scores were not kept."""
    items_error: float = 0.0
    """Of a gap over seeds: the standard error that its items add and no seed makes smaller."""
    spread: float | None = None
    """Upper bound on the SD of a difference, to plan with; None if unknown."""
    span: float = 1.0
    confounds: Sequence[str] = ()
    integrity: Sequence[str] = ()


def verdict(wide: Interval, narrow: Interval, margin: float, evidence: Evidence) -> Verdict:
    """Judge a gap from its interval at 95 %, the one at 90 %, and a margin fixed beforehand."""
    if margin <= 0 or narrow.high - narrow.low > wide.high - wide.low:
        raise ValueError(
            "need a margin above 0 and the 90 % interval inside the 95 % one:"
            f" {margin=} {narrow.level=} {wide.level=}"
        )
    word = word_for(wide, narrow, margin, evidence)
    because = evidence.integrity if word == "invalid" else evidence.confounds
    decided_up, decided_down = word.startswith("better"), word.startswith("worse")
    unit: Literal["items", "seeds"] = "seeds" if evidence.level == "L3" else "items"
    more = None
    if word == "undecided":
        more, unit = still_needed(wide.estimate, margin, evidence)
    items = evidence.items or evidence.n
    return Verdict(
        word=word,
        level=evidence.level,
        beyond_margin=(decided_up and wide.low > margin) or (decided_down and wide.high < -margin),
        attributable=not evidence.confounds,
        because=tuple(because),
        bound=differing_bound(0, items) * evidence.span if word == "identical" else None,
        more=more,
        unit=unit,
    )


def word_for(wide: Interval, narrow: Interval, margin: float, evidence: Evidence) -> Word:
    """The first rule that holds."""
    if evidence.integrity:
        return "invalid"
    if evidence.k == 0:
        return "identical"
    return word_of(wide, narrow, margin)


def word_of(wide: Interval, narrow: Interval, margin: float) -> Word:
    """The word that two intervals and a margin make, with better upwards; a margin of 0 is none."""
    inside = -margin < narrow.low and narrow.high < margin
    if wide.low > 0:
        return "better_within_margin" if inside else "better"
    if wide.high < 0:
        return "worse_within_margin" if inside else "worse"
    return "equivalent" if inside else "undecided"


def still_needed(
    gap: float, margin: float, evidence: Evidence
) -> tuple[int | None, Literal["items", "seeds"]]:
    """How many more items or seeds would decide; None if the spread is unknown.

    A gap below half the margin shows as equivalent before it shows as a gap; a larger one does not.
    """
    sd, size = evidence.spread, abs(gap)
    as_gap = 2 * size >= margin
    if evidence.level == "L3":
        return seeds_or_items(size if as_gap else margin - size, evidence, as_gap=as_gap)
    if sd is None:
        return None, "items"
    enough = items_needed(sd, size) if as_gap else items_for_equivalence(sd, margin, gap=size)
    return max(1, enough - evidence.n), "items"


def seeds_or_items(
    room: float, evidence: Evidence, *, as_gap: bool
) -> tuple[int | None, Literal["items", "seeds"]]:
    """Seeds, for what items leave of the room there is; items, if they leave nothing of it.

    Then as many that half of the room is theirs: seeds may still be too few after that.
    """
    if evidence.spread is None:
        return None, "seeds"
    taken = (z_total(0.05, 0.8) if as_gap else z_equivalence(0.05, 0.8)) * evidence.items_error
    if taken >= room and evidence.items:
        return math.ceil(evidence.items * (2 * (taken / room) ** 2 - 1)), "items"
    left = math.sqrt(room**2 - taken**2)
    enough = (
        seeds_needed(left, evidence.spread, paired=True)
        if as_gap
        else seeds_for_equivalence(left, evidence.spread, paired=True)
    )
    return max(1, enough - evidence.n), "seeds"
