"""Seeds × items: the parts of a spread are found again, and power is what was promised."""

import math
from functools import partial

import numpy as np
import pytest

from kleash import stats
from kleash.seeds import generator
from kleash.stats import Crossed, GapSpread, cautious_factor, gap_spread, item_error
from kleash.stats.intervals import t_quantile
from kleash.stats.planning import smallest, t_power
from made_crossed import crossed_gaps

SETTINGS = [
    # spread, arms beside the baseline, seeds, items
    (GapSpread(0.02, 0.05, 0.2), 1, 5, 100),
    (GapSpread(0.01, 0.10, 0.3), 1, 4, 200),
    (GapSpread(0.01, 0.00, 0.1), 5, 8, 50),
    (GapSpread(0.03, 0.30, 0.3), 3, 6, 400),
    (GapSpread(0.00, 0.20, 0.4), 2, 10, 200),
    (GapSpread(0.05, 0.00, 0.0), 4, 12, 2),
]


def gap_of(tables, arm, level=0.95):
    return stats.crossed_seeds(tables[arm] - tables["none"], level=level)


def simulated(spread, others, seeds, items, studies):
    """How often an arm with the promised gap is called better, and an equal one equivalent."""
    rng = generator("crossed", spread, others, seeds, items)
    promise = Crossed(spread, seeds, items, comparisons=others)
    gap, margin = promise.smallest_gap(), promise.smallest_margin()
    better = equal = alarms = 0
    for _ in range(studies):
        drawn = crossed_gaps(rng, spread, dict.fromkeys(map(str, range(others)), 0.0), seeds, items)
        p = [gap_of(drawn, str(arm)).p for arm in range(others)]
        alone, narrow = gap_of(drawn, "0").interval, gap_of(drawn, "0", 0.9).interval
        inside = -margin < narrow.low and narrow.high < margin
        apart = alone.low > 0 or alone.high < 0
        assert apart == (p[0] < 0.05)
        equal += inside and stats.holm(p)[0] >= 0.05
        alarms += apart
        drawn["0"] += gap
        p[0] = gap_of(drawn, "0").p
        better += stats.holm(p)[0] < 0.05 and gap_of(drawn, "0").interval.estimate > 0
    return promise, better / studies, equal / studies, alarms / studies


@pytest.mark.parametrize("setting", SETTINGS, ids=lambda each: f"{each[1] + 1}x{each[2]}x{each[3]}")
@pytest.mark.parametrize(
    "studies",
    [pytest.param(60, id="short"), pytest.param(4000, id="full", marks=pytest.mark.slow)],
)
def test_power_is_what_was_promised(setting, studies):
    room = 0.03 if studies > 1000 else 0.03 + 2.5 * math.sqrt(0.16 / studies)
    promise, better, equal, alarms = simulated(*setting, studies)
    assert promise.power(promise.smallest_gap()) == pytest.approx(0.8, abs=0.002)
    assert better == pytest.approx(0.8, abs=room)
    assert equal == pytest.approx(0.8, abs=room)
    assert alarms <= 0.06 + (0 if studies > 1000 else 2.5 * math.sqrt(0.05 / studies))


# --- equal arms on items like these


@pytest.mark.parametrize("seeds", [3, 5, 10])
@pytest.mark.parametrize("item_sd", [0.0, 0.1, 0.2])
@pytest.mark.parametrize(
    "studies",
    [pytest.param(200, id="short"), pytest.param(8000, id="full", marks=pytest.mark.slow)],
)
def test_equal_arms_are_told_apart_in_one_study_of_twenty_whatever_items_add(
    seeds, item_sd, studies
):
    rng = generator("alarms", seeds, item_sd)
    spread, fixed, whole = GapSpread(0.01, item_sd, 0.3), 0, 0
    for _ in range(studies):
        drawn = crossed_gaps(rng, spread, {"1": 0.0}, seeds, 200)
        found = gap_of(drawn, "1")
        alone = found.on_these_items
        whole += not found.interval.low < 0 < found.interval.high
        fixed += not alone.low < 0 < alone.high
        assert found.interval.low <= alone.low and alone.high <= found.interval.high
    luck = 2.6 * math.sqrt(0.05 * 0.95 / studies)
    assert whole / studies <= (0.06 if studies > 1000 else 0.05 + luck)
    if item_sd == 0.2 and seeds == 10:
        # The interval over seeds alone takes what these items add for the setting's own.
        assert fixed / studies > 0.25


@pytest.mark.slow
@pytest.mark.parametrize("clusters", [1, 4])
@pytest.mark.parametrize("missing", [0.0, 0.1])
def test_items_that_lack_and_items_in_clusters(clusters, missing):
    """Scores of 0 and 1, items of one image alike, some items broken in some runs."""
    rng, apart, studies = generator("binary", clusters, missing), 0, 4000
    for _ in range(studies):
        easy = np.repeat(rng.normal(0, 0.2, (2, 1, 40)), clusters, axis=2)
        scores = (rng.random((2, 6, 40 * clusters)) < np.clip(0.5 + easy, 0, 1)).astype(float)
        gaps = scores[0] - scores[1]
        gaps[rng.random(gaps.shape) < missing] = np.nan
        images = np.repeat(np.arange(40), clusters).tolist()
        inside = stats.crossed_seeds(gaps, images if clusters > 1 else None).interval
        apart += not inside.low < 0 < inside.high
    assert apart / studies <= 0.06


def test_what_items_add_by_hand():
    # Two seeds whose gaps on two items are the same: all of the spread is the items'.
    error, free = item_error(np.array([[0.0, 0.4], [0.0, 0.4]]))
    assert (error, free) == (pytest.approx(0.2), 1)  # SD .283 of two items over √2
    # The mean squares of the table, as every textbook has them.
    rng = generator("squares")
    table = rng.normal(size=(5, 30)) + rng.normal(size=30)
    by_seed, by_item = table.mean(axis=1, keepdims=True), table.mean(axis=0)
    of_items = 5 * by_item.var(ddof=1)
    rest = ((table - by_seed - by_item + table.mean()) ** 2).sum() / (4 * 29)
    error, free = item_error(table)
    assert error**2 == pytest.approx((of_items - rest) / (5 * 30)) and free == 29
    found = stats.crossed_seeds(table)
    alone = stats.paired_seeds(table.mean(axis=1), np.zeros(5))
    assert found.on_these_items == alone.interval and found.sd == alone.sd
    halves = [t_quantile(df, 0.975) * e for e, df in (alone.errors[0], (error, 29))]
    assert found.interval.high - found.interval.estimate == pytest.approx(math.hypot(*halves))
    # A cluster is one item: items that are copies of each other count once.
    twice = np.repeat(table, 2, axis=1)
    names = np.repeat(np.arange(30), 2).tolist()
    assert item_error(twice, names) == (pytest.approx(error), 29)


def test_gaps_that_no_seed_changes_have_the_p_of_their_signs_or_of_their_items():
    one = np.tile(np.repeat([0.0, 1.0], [60, 40]), (8, 1))
    found = stats.crossed_seeds(one)
    assert found.p == pytest.approx(2.0**-7) and found.interval.low > 0
    few = np.tile(np.repeat([0.0, 1.0], [60, 3]), (8, 1))
    found = stats.crossed_seeds(few)
    alone = stats.mean_interval(few[0])
    assert found.p > 2.0**-7 and found.interval.low == pytest.approx(alone.low)


def test_seeds_with_items_of_their_own_need_nothing_on_top():
    rng = generator("own items")
    table = np.full((4, 40), np.nan)
    for seed in range(4):
        table[seed, 10 * seed : 10 * seed + 10] = rng.normal(size=10)
    assert item_error(table)[0] == pytest.approx(0, abs=1e-6)
    with pytest.raises(ValueError, match="an item each"):
        item_error(np.array([[1.0, 2.0], [np.nan, np.nan]]))


def test_arms_without_common_seeds_share_their_items_all_the_same():
    rng, apart = generator("unpaired items"), 0
    for _ in range(400):
        drawn = crossed_gaps(rng, GapSpread(0.01, 0.2, 0.2), {"1": 0.0}, 10, 200)
        ours, theirs = drawn["1"][:5], drawn["none"][5:]
        means = ours.mean(axis=1), theirs.mean(axis=1)
        found = stats.unpaired_seeds(*means, items=(ours, theirs))
        alone = stats.unpaired_seeds(*means)
        assert found.on_these_items == alone.interval and found.p >= alone.p
        apart += found.p < 0.05
    assert apart / 400 <= 0.05 + 2.5 * math.sqrt(0.0475 / 400)


def test_further_items_are_asked_for_where_seeds_cannot_decide():
    needed = partial(stats.still_needed, 0.01, 0.02, 0.01, 5, seeds=True, items=200)
    left = math.sqrt(0.01**2 - (2.8016 * 0.001) ** 2)
    seeds = stats.seeds_needed(left, 0.01) - 5
    assert needed(items_error=0.001) == (seeds, "seeds")
    # Twice (2.8 · .01 / .01)² as many, less those there are.
    assert needed(items_error=0.01) == (math.ceil(200 * (2 * 2.8016**2 - 1)), "items")


def test_without_items_power_is_that_of_seeds_alone():
    for seeds in (4, 5, 8):
        crossed = Crossed(GapSpread(0.02, 0.0, 0.0), seeds, 100)
        shift = crossed.smallest_gap() / 0.02 * math.sqrt(seeds)
        # One direction only, so a trace less than the two-sided test has.
        assert t_power(shift, seeds - 1) == pytest.approx(0.8, abs=1.6e-3)


def test_errors_by_hand():
    crossed = Crossed(GapSpread(0.03, 0.4, 0.4), seeds=4, items=100)
    # √(.03² + .4²/100) is .05, over √4; the items' part is .04.
    assert crossed.error == pytest.approx(0.025)
    assert crossed.whole_error == pytest.approx(math.hypot(0.025, 0.04))
    assert crossed.spread.times(2.0) == GapSpread(0.06, 0.8, 0.8)


def test_what_items_add_cannot_be_mended_with_seeds():
    spread = GapSpread(0.01, 0.3, 0.1)
    few, many, most = (Crossed(spread, seeds, 100).smallest_gap() for seeds in (5, 40, 400))
    assert few > many > most > 2.8 * 0.3 / math.sqrt(100)
    assert Crossed(spread, 5, 100_000).smallest_gap() < many / 2


def test_the_parts_of_a_spread_are_found_again():
    rng, truth = generator("parts"), GapSpread(0.03, 0.2, 0.3)
    found = []
    for _ in range(60):
        drawn = crossed_gaps(rng, truth, {"a": 0.02, "b": 0.0}, 6, 80)
        found.append(gap_spread([drawn[name] - drawn["none"] for name in ("a", "b")]))
    squares = np.mean([[f.seeds**2, f.items**2, f.rest**2] for f in found], axis=0)
    assert squares == pytest.approx([0.03**2, 0.2**2, 0.3**2], rel=0.15)


def test_parts_by_hand():
    # Two seeds apart by 2, two items apart by 4, nothing left.
    assert gap_spread([[[0, 4], [2, 6]]]) == GapSpread(math.sqrt(2), math.sqrt(8), 0.0)
    # Nothing but what is left: the parts of seeds and items come out below 0 and are 0.
    assert gap_spread([[[1, -1], [-1, 1]]]) == GapSpread(0.0, 0.0, 2.0)


def test_the_cautious_factor_is_an_upper_bound_four_times_in_five():
    rng = generator("cautious")
    for seeds, arms in ((5, 1), (5, 4)):
        held = 0
        for _ in range(2000):
            runs = rng.normal(size=(arms + 1, seeds))
            gaps = runs[1:] - runs[0]
            sd = math.sqrt(gaps.var(axis=1, ddof=1).mean())
            held += cautious_factor(seeds, arms) * sd >= math.sqrt(2)
        assert held / 2000 == pytest.approx(0.8, abs=0.03)


def test_a_spread_of_nothing_is_refused():
    with pytest.raises(ValueError, match="spread of 0"):
        Crossed(GapSpread(0, 0, 0), 4, 10).power(0.1)
    assert smallest(lambda value: value > 3, 1.0) == pytest.approx(3, rel=1e-3)
    assert smallest(lambda value: False, 1.0) == math.inf
