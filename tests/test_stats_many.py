"""Many arms: Holm; seeds as replicates; aggregates over tasks; contrasts."""

import math

import numpy as np
import pytest
import scipy.stats

from kleash.seeds import generator
from kleash.stats import (
    holm,
    look,
    mean_interval,
    paired_difference,
    paired_seeds,
    trend,
    unpaired_seeds,
)

short = pytest.param(200, id="short")
full = pytest.param(2_000, id="full", marks=pytest.mark.slow)


def room(studies, rate=0.05):
    return 3 * math.sqrt(rate * (1 - rate) / studies)


# --- Holm


def test_holm_by_hand():
    # .01·4, .02·3, .03·2 = .06 as well, .5·1; never falling.
    np.testing.assert_allclose(holm([0.03, 0.01, 0.5, 0.02]), [0.06, 0.04, 0.5, 0.06])
    np.testing.assert_allclose(holm([0.5, 0.6]), [1.0, 1.0])


def test_holm_is_that_of_statsmodels():
    multitest = pytest.importorskip("statsmodels.stats.multitest")
    p = generator("holm").random(30) ** 3
    np.testing.assert_allclose(holm(p), multitest.multipletests(p, method="holm")[1])


@pytest.mark.parametrize("p", [[], [-0.1], [1.1], [math.nan]])
def test_what_is_no_p_is_refused(p):
    with pytest.raises(ValueError, match=r"one value|between 0 and 1|not finite"):
        holm(p)


# --- seeds


def test_paired_seeds_by_hand():
    # Gaps 1, 2, 3: mean 2, SD 1, t = 2√3 with 2 df, p = .0742.
    found = paired_seeds([2.0, 4.0, 6.0], [1.0, 2.0, 3.0])
    assert (found.interval.estimate, found.sd, found.df, found.interval.n) == (2.0, 1.0, 2, 3)
    assert found.interval.low == pytest.approx(2 - 4.302653 / math.sqrt(3), abs=1e-6)
    assert found.p == pytest.approx(0.0742, abs=5e-5)


def test_paired_seeds_are_the_paired_t_of_scipy():
    ours, theirs = generator("seeds").normal(size=(2, 7))
    expected = scipy.stats.ttest_rel(ours, theirs)
    found = paired_seeds(ours, theirs, level=0.9)
    assert found.p == pytest.approx(expected.pvalue)
    ends = expected.confidence_interval(0.9)
    assert (found.interval.low, found.interval.high) == pytest.approx(tuple(ends))


def test_gaps_without_spread_are_judged_by_their_signs():
    # Three gaps of .02: the SD is 0, but three heads in a row have p = 1/4.
    found = paired_seeds([0.62, 0.52, 0.42], [0.6, 0.5, 0.4])
    assert found.p == pytest.approx(0.25)
    assert found.interval.low < 0 < found.interval.high
    same = paired_seeds([0.6, 0.5], [0.6, 0.5])
    assert (same.p, same.interval.low, same.interval.high) == (1.0, 0.0, 0.0)


@pytest.mark.parametrize("compare", [paired_seeds, unpaired_seeds])
def test_one_run_per_arm_says_nothing_about_the_setting(compare):
    with pytest.raises(ValueError, match="one run per arm"):
        compare([0.6], [0.5])


@pytest.mark.parametrize("sizes", [(4, 4), (5, 3)])
def test_unpaired_seeds_are_the_test_of_welch(sizes):
    rng = generator("unpaired", sizes)
    ours, theirs = rng.normal(0.5, 1, sizes[0]), rng.normal(0, 2, sizes[1])
    found = unpaired_seeds(ours, theirs)
    welch = scipy.stats.ttest_ind(ours, theirs, equal_var=False)
    assert found.p == pytest.approx(welch.pvalue)
    assert found.df == pytest.approx(welch.df)
    ends = welch.confidence_interval()
    assert (found.interval.low, found.interval.high) == pytest.approx(tuple(ends))
    assert found.interval.n == min(sizes)


def test_runs_that_are_all_the_same():
    found = unpaired_seeds([1.0, 1.0], [1.0, 1.0])
    assert (found.p, found.sd) == (1.0, 0.0)


def test_an_interval_over_items_would_call_one_better_far_too_often():
    rng = generator("items for settings")
    wrong = 0
    for _ in range(200):
        skill = 0.6 + 0.03 * rng.normal(size=(6, 3))
        scores = (rng.random((6, 3, 200)) < skill[:, :, None]).mean(axis=1)
        found = [paired_difference(scores[arm], scores[0]).low > 0 for arm in range(1, 6)]
        wrong += any(found)
    assert wrong / 200 > 0.12


def test_seeds_may_be_looked_at_when_declared():
    gap = np.array([1.0, 2.0, 3.0, 2.5])
    assert look(gap, np.zeros(4)) is None
    found = look(gap[:3], np.zeros(3))
    alone = paired_seeds(gap[:3], np.zeros(3), level=1 - 0.05 / 4)
    assert (found.interval.low, found.interval.level) == (alone.interval.low, 0.95)
    assert found.p == pytest.approx(4 * alone.p)


@pytest.mark.parametrize("studies", [short, full])
def test_looks_at_growing_studies_keep_their_level(studies):
    rng = generator("looks")
    wrong = 0
    for gap in rng.normal(size=(5 * studies, 12)):
        wrong += any(look(gap[:n], np.zeros(n)).p <= 0.05 for n in (3, 5, 8, 12))
    assert wrong / (5 * studies) <= 0.05 + room(5 * studies)


# --- contrasts


def test_a_trend_by_hand():
    # Two seeds; coefficients .1, .2, .4 are one doubling apart: slopes 1 and 2; 0 is left out.
    values = [[9.0, 0.0, 1.0, 2.0], [9.0, 1.0, 3.0, 5.0]]
    found, alone = trend([0.0, 0.1, 0.2, 0.4], values), mean_interval([1.0, 2.0])
    assert (found.slope, *found.width.at(0.95)) == (alone.estimate, alone.low, alone.high)
    assert found.width.p == pytest.approx(scipy.stats.ttest_1samp([1.0, 2.0], 0).pvalue)


def test_a_trend_is_the_slope_of_least_squares_and_needs_no_arm_at_0():
    rng = generator("trend")
    at = np.array([0.12, 0.145, 0.15, 0.155, 0.18])
    values = rng.normal(size=(4, 5))
    slopes = [np.polyfit(np.log2(at), row, 1)[0] for row in values]
    found = trend(at, values)
    assert found.slope == pytest.approx(np.mean(slopes))


@pytest.mark.parametrize(
    ("at", "values", "message"),
    [
        ([0.1, 0.2], [[1.0, 2.0]], "2 or more rows"),
        ([0.1, 0.1], [[1.0, 2.0], [1.0, 2.0]], "all different"),
        ([-0.1, 0.1], [[1.0, 2.0], [1.0, 2.0]], "none < 0"),
        ([0.0, 0.1], [[1.0, 2.0], [1.0, 2.0]], "has no trend"),
        ([0.1, 0.2, 0.4], [[1.0, 2.0], [1.0, 2.0]], "one column"),
    ],
)
def test_what_has_no_trend_is_refused(at, values, message):
    with pytest.raises(ValueError, match=message):
        trend(at, values)


@pytest.mark.parametrize("studies", [short, full])
def test_a_trend_covers_the_truth(studies):
    rng = generator("contrasts")
    at, level = np.array([0.0, 0.05, 0.1, 0.2]), np.array([0.5, 0.6, 0.61, 0.62])
    covered = 0
    for _ in range(studies):
        runs = 0.1 * rng.normal(size=(5, 1)) + 0.02 * rng.normal(size=(5, 4)) + level
        low, high = trend(at, runs).width.at(0.95)
        covered += low <= 0.01 <= high
    assert 0.95 - room(studies) <= covered / studies <= 0.96 + room(studies)
