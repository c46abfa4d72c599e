"""Statistics for comparing runs: arrays and a generator in, a record out.

Every procedure has a row in `docs/statistics.md`, with the error rate that was measured. Which runs
may be compared, and in what words, is decided elsewhere.
"""

from __future__ import annotations

from kleash.stats.best import (
    Best,
    StopDecision,
    best_of_curve,
    early_stop,
    out_of_bag_best,
    tie_distance,
)  # fmt: skip
from kleash.stats.curves import (
    STEADY_MARGIN,
    SWAPPED_UP_TO,
    Collapse,
    CurveGap,
    NoiseFloor,
    SeedSpeed,
    Speed,
    collapse,
    curve_gap,
    end_gap,
    end_of,
    line,
    logged,
    max_drawdown,
    noise_floor,
    second_difference_sd,
    speed,
    speed_by_items,
    speed_over_seeds,
    spread_ratio,
    swapped_steps,
)  # fmt: skip
from kleash.stats.effects import (
    FactorEffect,
    Fitted,
    added,
    aliases,
    design,
    estimable,
    fitted,
    misfit,
    rank,
    uneven,
)  # fmt: skip
from kleash.stats.intervals import (
    NORMAL,
    Errors,
    Floats,
    Interval,
    Width,
    checked,
    clustered_width,
    differing_bound,
    gaps,
    mean_ends,
    mean_interval,
    mean_width,
    paired_difference,
)  # fmt: skip
from kleash.stats.lattice import (
    aggregate_bound,
    block_means,
    lattice_of_means,
    may_be_nested,
    order_effect,
)  # fmt: skip
from kleash.stats.many import holm, sign_flip
from kleash.stats.planning import (
    Crossed,
    GapSpread,
    cautious_factor,
    gap_spread,
    items_for_equivalence,
    items_needed,
    pair_sd,
    points_for_ratio,
    seeds_for_equivalence,
    seeds_needed,
    smallest_detectable_by_seeds,
    smallest_margin,
    spread_bound,
)  # fmt: skip
from kleash.stats.seeds import (
    SeedGap,
    Trend,
    crossed_seeds,
    item_error,
    least_error,
    look,
    paired_seeds,
    trend,
    unpaired_seeds,
)  # fmt: skip
from kleash.stats.words import FEWEST_SEEDS, Level, Word, claim_level, still_needed, word_of

__all__ = [
    "FEWEST_SEEDS", "NORMAL", "STEADY_MARGIN", "SWAPPED_UP_TO", "Best", "Collapse",
    "Crossed", "CurveGap", "Errors", "FactorEffect", "Fitted", "Floats",
    "GapSpread", "Interval", "Level", "NoiseFloor", "SeedGap", "SeedSpeed", "Speed",
    "StopDecision", "Trend", "Width", "Word", "added", "aggregate_bound", "aliases",
    "best_of_curve", "block_means", "cautious_factor", "checked", "claim_level",
    "clustered_width", "collapse", "crossed_seeds",
    "curve_gap", "design", "differing_bound", "early_stop", "end_gap", "end_of", "estimable",
    "fitted", "gap_spread", "gaps", "holm", "item_error",
    "items_for_equivalence", "items_needed", "lattice_of_means", "least_error", "line",
    "logged", "look", "max_drawdown", "may_be_nested", "mean_ends", "mean_interval",
    "mean_width", "misfit", "noise_floor", "order_effect", "out_of_bag_best", "pair_sd",
    "paired_difference", "paired_seeds", "points_for_ratio", "rank", "second_difference_sd",
    "seeds_for_equivalence", "seeds_needed", "sign_flip", "smallest_detectable_by_seeds",
    "smallest_margin", "speed", "speed_by_items", "speed_over_seeds", "spread_bound",
    "spread_ratio", "still_needed", "swapped_steps", "tie_distance", "trend", "uneven",
    "unpaired_seeds", "word_of",
]  # fmt: skip
