"""Planning, lattices, nested samples and verdicts: tables typed in, bounds tried out."""

import itertools
import math

import numpy as np
import pytest
import scipy.stats

from kleash.seeds import generator
from kleash.stats import (
    Interval,
    aggregate_bound,
    block_means,
    claim_level,
    differing_bound,
    items_for_equivalence,
    items_needed,
    lattice_of_means,
    may_be_nested,
    order_effect,
    pair_sd,
    paired_difference,
    paired_seeds,
    points_for_ratio,
    seeds_for_equivalence,
    seeds_needed,
    smallest_detectable_by_seeds,
    smallest_margin,
    spread_bound,
    still_needed,
    word_of,
)
from kleash.stats.many import as_far_exactly
from kleash.stats.planning import t_power

GRADES = np.array([0.4, 0.6, 1.0])
# Root mean squares of differing scores: of {0, .6, 1}, and of five values.
THREE, FIVE = math.sqrt(0.651431), math.sqrt(0.5565)


def made_up_gaps(rng, n, discordance, share_up):
    """Differences of n pairs, of which about `discordance` differ, `share_up` of them upwards."""
    signs = np.where(rng.random(n) < share_up, 1, -1)
    return (rng.random(n) < discordance) * signs * rng.choice(GRADES, n)


# --- items

NEEDED = {
    # discordance: items to see .275 points and 1 point; smallest margins at n = 200 and 800
    0.01: (6761, 512, 1.67, 0.84),
    0.02: (13522, 1023, 2.36, 1.18),
    0.05: (33805, 2557, 3.73, 1.87),
    0.10: (67610, 5114, 5.28, 2.64),
    0.20: (135220, 10227, 7.47, 3.73),
}


@pytest.mark.parametrize("discordance", NEEDED)
def test_the_items_that_show_a_gap(discordance):
    sd = pair_sd(discordance, THREE)
    small, point, margin_200, margin_800 = NEEDED[discordance]
    assert (items_needed(sd, 0.00275), items_needed(sd, 0.01)) == (small, point)
    assert items_needed(sd, -0.01) == point
    assert 100 * smallest_margin(sd, 200) == pytest.approx(margin_200, abs=0.0051)
    assert 100 * smallest_margin(sd, 800) == pytest.approx(margin_800, abs=0.0051)


def test_equivalence_by_hand():
    # (1.644854 + 1.281552)·.1/(.02 - .005) squared is 380.6.
    assert items_for_equivalence(0.1, 0.02, gap=-0.005) == 381
    assert items_for_equivalence(0.1, smallest_margin(0.1, 300)) == 300


def test_the_sd_of_pairs_by_hand():
    assert pair_sd(0.25, 0.8) == 0.4
    with pytest.raises(ValueError, match="from 0 to 1"):
        pair_sd(1.1, 1.0)


@pytest.mark.parametrize(
    ("plan", "message"),
    [
        (lambda: items_needed(0.1, 0.0), "gap of 0"),
        (lambda: seeds_needed(0.0, 0.1), "gap of 0"),
        (lambda: items_for_equivalence(0.1, 0.01, gap=0.01), "not inside the margin"),
        (lambda: seeds_for_equivalence(0.01, 0.1, gap=0.02), "not inside the margin"),
        (lambda: smallest_detectable_by_seeds(1), "one run per arm"),
        (lambda: points_for_ratio(1.0), "ratio of 1.0"),
        (lambda: differing_bound(3, 2), "k of n"),
    ],
)
def test_plans_that_cannot_be_made_are_refused(plan, message):
    with pytest.raises(ValueError, match=message):
        plan()


@pytest.mark.parametrize(
    "studies",
    [pytest.param(600, id="short"), pytest.param(6000, id="full", marks=pytest.mark.slow)],
)
def test_planned_items_have_the_power_they_were_planned_for(studies):
    # A tenth differs, six in ten of them upwards: a gap of .1·.2·2/3.
    rng = generator("power")
    gap = 0.1 * 0.2 * GRADES.mean()
    n = items_needed(math.sqrt(0.1 * (GRADES**2).mean() - gap**2), gap)
    found = (paired_difference(made_up_gaps(rng, n, 0.1, 0.6), np.zeros(n)) for _ in range(studies))
    seen = np.mean([interval.low > 0 for interval in found])
    assert seen == pytest.approx(0.8, abs=0.015 + 3 * math.sqrt(0.16 / studies))
    n = items_for_equivalence(pair_sd(0.1, math.sqrt((GRADES**2).mean())), 0.02)
    equal = (made_up_gaps(rng, n, 0.1, 0.5) for _ in range(studies))
    found = (paired_difference(gap, np.zeros(n), level=0.9) for gap in equal)
    seen = np.mean([max(-each.low, each.high) < 0.02 for each in found])
    assert seen == pytest.approx(0.8, abs=0.015 + 3 * math.sqrt(0.16 / studies))


def test_the_bound_on_the_spread_by_hand():
    # None of 20 differs: 1 - .2^(1/20) = 7.7 % may, by the whole span.
    assert spread_bound(np.zeros(20)) == pytest.approx(math.sqrt(1 - 0.2 ** (1 / 20)))
    assert spread_bound(np.zeros(20), span=2.0) == pytest.approx(2 * spread_bound(np.zeros(20)))
    # All of four differ, by ±1: χ²(3) at the lower 20 % is 1.0052.
    assert spread_bound([1.0, -1.0, 1.0, -1.0]) == pytest.approx(math.sqrt(4 / 1.005174), abs=1e-5)
    assert spread_bound([0.5]) == pytest.approx(0.5)


@pytest.mark.parametrize("discordance", [0.01, 0.05, 0.2])
@pytest.mark.parametrize("n", [50, 200, 800])
def test_the_spread_is_below_its_bound_about_four_times_in_five(n, discordance):
    rng = generator("spread", n, discordance)
    truth = math.sqrt(discordance * (GRADES**2).mean())
    below = np.mean(
        [truth <= spread_bound(made_up_gaps(rng, n, discordance, 0.5)) for _ in range(500)]
    )
    assert below >= 0.75 - 0.04


def test_the_spread_of_values_that_are_never_0():
    rng = generator("normal spread")
    for n in (5, 20):
        assert np.mean([spread_bound(rng.normal(size=n), span=9) >= 1 for _ in range(1000)]) > 0.78


# --- seeds

SEEDS = {2: 5.65, 3: 3.07, 4: 2.38, 5: 2.02, 6: 1.80, 8: 1.51, 10: 1.32, 20: 0.91, 30: 0.74}
"""Between-seed SDs that so many seeds of each arm show."""


@pytest.mark.parametrize("seeds", SEEDS)
def test_the_smallest_gap_that_seeds_show(seeds):
    assert smallest_detectable_by_seeds(seeds) == pytest.approx(SEEDS[seeds], abs=0.0051)


def test_the_power_of_t_is_that_of_scipy():
    for shift, df in ((3.1, 4), (2.0, 18), (0.5, 8)):
        edge = scipy.stats.t.ppf(0.975, df)
        expected = scipy.stats.nct.sf(edge, df, shift) + scipy.stats.nct.cdf(-edge, df, shift)
        assert t_power(shift, df) == pytest.approx(expected, abs=1e-5)
    assert t_power(0.0, 5) == pytest.approx(0.05, abs=1e-5)


def test_the_power_of_t_is_that_of_statsmodels():
    power = pytest.importorskip("statsmodels.stats.power")
    expected = power.TTestIndPower().solve_power(nobs1=6, alpha=0.05, power=0.8)
    assert smallest_detectable_by_seeds(6) == pytest.approx(expected, rel=1e-3)


@pytest.mark.parametrize(
    ("seeds", "gap"), [(3, 3.26), (4, 2.13), (5, 1.68), (6, 1.43), (8, 1.16), (20, 0.66)]
)
def test_seeds_needed_are_the_fewest_that_do(seeds, gap):
    """Gaps in SDs of the paired difference; each is rounded up, so it is shown."""
    assert seeds_needed(gap + 0.006, 1.0) == seeds
    assert seeds_needed(gap - 0.006, 1.0) == seeds + 1
    assert seeds_needed(100.0, 1.0) == seeds_needed(1.0, 0.0) == 2


def test_seeds_for_equivalence_do():
    seeds = seeds_for_equivalence(1.0, 1.0)
    rng = generator("equal seeds")
    shown = []
    for gap in rng.normal(size=(4000, seeds)):
        interval = paired_seeds(gap, np.zeros(seeds), level=0.9).interval
        shown.append(interval.low > -1 and interval.high < 1)
    # t's own spread makes this a little more than .8.
    assert seeds == 11
    assert 0.8 <= np.mean(shown) <= 0.87
    assert seeds_for_equivalence(1.0, 1.0, gap=0.5) > 3 * seeds


@pytest.mark.parametrize(("ratio", "points"), [(2.0, 19), (1.5, 50), (1.39, 75), (0.5, 19)])
def test_the_evaluations_that_show_a_ratio(ratio, points):
    assert points_for_ratio(ratio) == points


# --- lattices


# Printed accuracies of one arm for 1 to 4 shots, on the first 100, 200, 400 and 800 items.
SIZES = (100, 200, 400, 800)
PRINTED = np.array(
    [
        [63.2, 65.8, 60.8, 61.8],
        [58.8, 56.6, 53.9, 55.2],
        [53.0, 51.0, 50.55, 50.95],
        [49.75, 47.8, 47.15, 47.83],
    ]
)


def test_the_lattice_of_printed_means():
    # Two decimals of a percentage, trailing zeros dropped: half a hundredth of a point.
    means = PRINTED.ravel() / 100
    found = lattice_of_means(means, np.repeat(SIZES, 4), np.full(16, 0.5e-4))
    assert found.step == pytest.approx(0.2)
    assert found.chance < 1e-6


def test_means_printed_too_coarsely_say_nothing():
    assert lattice_of_means([0.57, 0.56], [200, 200], [0.005, 0.005]) is None


def test_means_on_no_lattice():
    assert lattice_of_means([0.12345, 0.54321], [10, 10], [1e-6, 1e-6]) is None
    with pytest.raises(ValueError, match="for each mean"):
        lattice_of_means([0.5, 0.5], [10], [0.1, 0.1])


@pytest.mark.parametrize("step", [1.0, 0.2, 0.1])
def test_a_lattice_is_found_again_and_a_coarser_one_seldom(step):
    rng = generator("lattice", step)
    right = 0
    for _ in range(100):
        sums = rng.integers(0, round(100 / step), 12) * step
        found = lattice_of_means((sums / 100).round(4), np.full(12, 100), np.full(12, 0.5e-4))
        right += found is not None and found.step == pytest.approx(step)
    assert right >= 95


def test_means_off_every_lattice_are_seldom_said_to_be_on_one():
    rng = generator("off")
    called = 0
    for _ in range(300):
        means = rng.random(6).round(4)
        called += lattice_of_means(means, np.full(6, 400), np.full(6, 0.5e-4)) is not None
    assert called / 300 <= 0.05


# --- aggregates only


def test_what_two_means_can_show_at_best():
    # 58.8 against 57.0 on 200 items is 3.6 in all: nine steps of .4, p = 2 ** -8.
    found = aggregate_bound(0.588, 0.570, 200, 0.4)
    assert (found.most_differing, found.n) == (9, 200)
    assert found.p_min == 2**-8


def test_equal_means_show_nothing():
    found = aggregate_bound(0.57, 0.57, 200, 0.4)
    assert (found.most_differing, found.p_min) == (0, 1.0)
    with pytest.raises(ValueError, match="smallest gap"):
        aggregate_bound(0.5, 0.6, 200, 0.0)


def test_no_arrangement_of_scores_beats_the_bound():
    # Every multiset of up to eight differences of {0, .6, 1}. Above .2 some do, as (-.4, .4, .6).
    sizes = np.array([-1.0, -0.6, -0.4, 0.4, 0.6, 1.0])
    beaten = []
    for k in range(1, 9):
        for gap in itertools.combinations_with_replacement(sizes, k):
            total = sum(gap)
            if total > 1e-9:
                p = as_far_exactly(np.abs(gap), total - 1e-9)
                bound = aggregate_bound(total / k, 0.0, k, 0.4).p_min
                assert p >= min(bound, 0.2)
                beaten.append(p < bound)
    assert any(beaten)


# --- samples inside samples


def test_blocks_by_hand():
    blocks = block_means(SIZES, PRINTED[:, 0] / 100)
    assert [block.n for block in blocks] == [100, 100, 200, 400]
    assert [block.mean for block in blocks] == pytest.approx([0.632, 0.544, 0.472, 0.465])


def test_the_first_items_were_easier():
    found = order_effect(SIZES, PRINTED[:, 0] / 100)
    by_hand = (
        100 * (0.632 - 0.4975) ** 2
        + 100 * (0.544 - 0.4975) ** 2
        + 200 * (0.472 - 0.4975) ** 2
        + 400 * (0.465 - 0.4975) ** 2
    ) / (0.4975 * 0.5025)  # without an SD the largest possible stands in
    assert (found.chi2, found.df) == (pytest.approx(by_hand), 3)
    assert found.p == pytest.approx(scipy.stats.chi2.sf(by_hand, 3))
    assert found.p < 0.02


@pytest.mark.parametrize(
    ("sizes", "means", "message"),
    [
        ((200, 100), [0.5, 0.5], "rising sizes"),
        ((100, 100), [0.5, 0.5], "rising sizes"),
        ((100,), [0.5, 0.5], "rising sizes"),
        ((100,), [0.5], "no order"),
        ((100, 200), [1.0, 1.0], "without spread"),
    ],
)
def test_what_has_no_order_is_refused(sizes, means, message):
    with pytest.raises(ValueError, match=message):
        order_effect(sizes, means)


def test_the_order_test_errs_as_often_as_it_says():
    rng = generator("order")
    wrong = 0
    for _ in range(2000):
        scores = (rng.random(800) < 0.5) * 1.0
        means = [scores[:n].mean() for n in SIZES]
        wrong += order_effect(SIZES, means).p <= 0.05
    assert wrong / 2000 == pytest.approx(0.05, abs=0.015)


def test_whether_samples_can_be_nested():
    assert may_be_nested(SIZES, PRINTED[:, 0] / 100, half=0.5e-4)
    # 90 of 100 right cannot lie inside 40 of 110: the next ten would have scored -50.
    assert not may_be_nested((100, 110), [0.9, 40 / 110])
    # 5 of 10 and 4.9 of 20: a block of -.1, which rounding of a hundredth may have made.
    assert not may_be_nested((10, 20), [0.5, 0.245])
    assert may_be_nested((10, 20), [0.5, 0.245], half=0.01)


# --- verdicts


def judged(low, high, margin=0.02):
    """The word for an interval; the narrower one is 5/6 as wide."""
    middle, reach = (low + high) / 2, (high - low) / 2
    narrow = Interval(middle, middle - reach * 5 / 6, middle + reach * 5 / 6, 0.90, 200)
    return word_of(Interval(middle, low, high, 0.95, 200), narrow, margin)


@pytest.mark.parametrize(
    ("low", "high", "word"),
    [
        (0.01, 0.05, "better"),
        (0.001, 0.015, "better_within_margin"),
        (-0.05, -0.01, "worse"),
        (-0.015, -0.001, "worse_within_margin"),
        (-0.015, 0.015, "equivalent"),
        (-0.022, 0.022, "equivalent"),
        (-0.03, 0.03, "undecided"),
        (-0.01, 0.05, "undecided"),
        (0.0, 0.05, "undecided"),
    ],
)
def test_the_word_for_an_interval(low, high, word):
    assert judged(low, high) == word


def test_how_many_more_items_decide():
    # A gap of 3 points with an SD of .2: (2.801585·.2/.03)² = 348.8, of which 200 are there.
    assert still_needed(0.03, 0.02, 0.2, 200) == (149, "items")
    # A gap of half a point, margin 2: (2.926405·.2/.015)² = 1522.5.
    assert still_needed(0.005, 0.02, 0.2, 200) == (1523 - 200, "items")
    assert still_needed(0.005, 0.02, None, 200) == (None, "items")
    # 1.2 points of 2: as a gap 2180 items, as equivalent (2.926405·.2/.008)² = 5353.
    assert still_needed(0.012, 0.02, 0.2, 200) == (2181 - 200, "items")
    assert still_needed(0.03, 0.02, 1e-6, 200) == (1, "items")


def test_how_many_more_seeds_decide():
    assert seeds_needed(0.03, 0.02) - 4 == 2
    assert still_needed(0.03, 0.02, 0.02, 4, seeds=True) == (2, "seeds")
    assert seeds_for_equivalence(0.02, 0.02) - 5 == 6
    assert still_needed(0.0, 0.02, 0.02, 5, seeds=True) == (6, "seeds")


@pytest.mark.parametrize(
    ("item_scores", "seeds", "clean", "level"),
    [
        (False, 1, True, "L1"),
        (True, 1, True, "L2"),
        (True, 3, True, "L2"),
        (True, 4, True, "L3"),
        (False, 5, True, "L3"),
        (True, 5, False, "L2"),
        (False, 5, False, "L1"),
    ],
)
def test_the_level_of_a_claim(item_scores, seeds, clean, level):
    found = claim_level(item_scores=item_scores, seeds=seeds, only_treatment_differs=clean)
    assert found == level


@pytest.mark.parametrize(
    "studies",
    [pytest.param(500, id="short"), pytest.param(8000, id="full", marks=pytest.mark.slow)],
)
@pytest.mark.parametrize("discordance", [0.02, 0.1])
def test_verdicts_on_equal_arms_are_seldom_better_or_worse(discordance, studies):
    rng = generator("verdicts", discordance)
    wrong = 0
    for _ in range(studies):
        gap = made_up_gaps(rng, 400, discordance, 0.5)
        wide, narrow = (paired_difference(gap, np.zeros(400), level=at) for at in (0.95, 0.9))
        wrong += word_of(wide, narrow, 0.01).startswith(("better", "worse"))
    assert wrong / studies <= 0.05 + 2 * math.sqrt(0.05 * 0.95 / studies)
