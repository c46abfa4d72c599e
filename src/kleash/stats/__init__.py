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
)
from kleash.stats.curves import (
    STEADY_MARGIN,
    SWAPPED_UP_TO,
    NoiseFloor,
    Speed,
    collapse,
    curve_gap,
    end_gap,
    end_of,
    logged,
    max_drawdown,
    noise_floor,
    second_difference_sd,
    speed,
    speed_by_items,
    speed_over_seeds,
    spread_ratio,
    swapped_steps,
)
from kleash.stats.effects import (
    Fitted,
    added,
    aliases,
    design,
    estimable,
    fitted,
    misfit,
    rank,
    uneven,
)
from kleash.stats.intervals import (
    NORMAL,
    Floats,
    Interval,
    Width,
    clustered_width,
    differing_bound,
    gaps,
    mean_ends,
    mean_interval,
    mean_width,
    paired_difference,
)
from kleash.stats.lattice import (
    aggregate_bound,
    block_means,
    lattice_of_means,
    may_be_nested,
    order_effect,
)
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
)
from kleash.stats.seeds import (
    SeedGap,
    crossed_seeds,
    item_error,
    least_error,
    look,
    paired_seeds,
    trend,
    unpaired_seeds,
)
from kleash.stats.words import FEWEST_SEEDS, Level, Word, claim_level, still_needed, word_of
