"""Statistics by hand, against other implementations, and by simulation of made-up studies."""

import itertools
import math
import subprocess
import sys
from collections import Counter

import numpy as np
import pytest
import scipy.stats

from kleash.seeds import generator
from kleash.stats import (
    Interval,
    clustered_width,
    differing_bound,
    mean_ends,
    mean_interval,
    paired_difference,
    sign_flip,
)
from kleash.stats.intervals import t_p
from kleash.stats.seeds import row_means

# Sizes of the differences between two scores of {0, .6, 1}.
STEPS = np.array([0.4, 0.6, 1.0])
short = pytest.param(400, id="short")
full = pytest.param(10_000, id="full", marks=pytest.mark.slow)


def made_up_gaps(rng, n, discordance, share_up):
    """Differences of n pairs, of which about `discordance` differ, `share_up` of them upwards."""
    signs = np.where(rng.random(n) < share_up, 1, -1)
    return (rng.random(n) < discordance) * signs * rng.choice(STEPS, n)


def test_importing_the_statistics_does_not_import_all_of_scipy():
    code = "import sys, kleash.stats; sys.exit('scipy.stats' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], timeout=600).returncode == 0


# --- intervals


@pytest.mark.parametrize("bounds", [None, (0.0, 1.0)])
def test_the_ends_of_many_means_are_those_of_each(bounds):
    rows = np.random.default_rng(0).random((7, 25))
    lows, highs = mean_ends(rows, bounds=bounds)
    each = [mean_interval(row, bounds=bounds) for row in rows]
    assert lows.tolist() == [one.low for one in each]
    assert highs.tolist() == [one.high for one in each]
    with pytest.raises(ValueError, match="bounds"):
        mean_ends(rows + 1, bounds=(0.0, 1.0))
    with pytest.raises(ValueError, match="2 or more columns"):
        mean_ends(rows[:, :1])


def test_a_mean_interval_by_hand():
    # Mean 2, SD 1, n 3: 2 ± 4.302653 / √3.
    reach = 4.302653 / math.sqrt(3)
    found = mean_interval([1.0, 2.0, 3.0])
    assert (found.estimate, found.level, found.n) == (2.0, 0.95, 3)
    assert (found.low, found.high) == pytest.approx((2 - reach, 2 + reach), abs=1e-6)


@pytest.mark.parametrize("level", [0.5, 0.9, 0.99])
def test_a_mean_interval_is_that_of_scipy(level):
    values = generator("test", level).normal(size=12)
    theirs = scipy.stats.ttest_1samp(values, 0).confidence_interval(level)
    ours = mean_interval(values, level=level)
    assert (ours.low, ours.high) == pytest.approx(tuple(theirs), abs=1e-12)


def test_a_paired_difference_by_hand():
    # Gaps 1, 0 and the pseudo-gaps 1, -1: mean 1/4, sum of squares 3, SD √(11/12), t(3) 3.182446.
    found = paired_difference([1.0, 0.6], [0.0, 0.6])
    reach = 3.182446 * math.sqrt(11 / 12) / 2
    assert found.estimate == 0.5
    assert (found.low, found.high) == pytest.approx((0.25 - reach, 0.25 + reach), abs=1e-6)
    assert found.n == 2


def test_a_wider_span_is_for_scores_that_can_differ_by_more():
    # Gaps 0, 0, 0 and the pseudo-gaps ±2: SD √(8/4), t(4) 2.776445.
    found = paired_difference([1.0, 2.0, 0.0], [1.0, 2.0, 0.0], span=2.0)
    assert found.high == pytest.approx(2.776445 * math.sqrt(2) / math.sqrt(5), abs=1e-6)
    assert found.low == -found.high
    with pytest.raises(ValueError, match="leave the bounds"):
        paired_difference([2.0], [0.0])


def test_agreement_on_all_items_is_not_certainty():
    same = np.ones(200)
    found = paired_difference(same, same)
    assert found.estimate == 0
    # About the exact bound for no differing pair, 1 - .05 ** (1 / 200) = .0149.
    assert 0.0130 < found.high < 0.0149
    assert found.low == -found.high


def test_exchanging_the_sides_mirrors_the_interval():
    rng = generator("test", "mirror")
    ours, theirs = rng.random(30), rng.random(30)
    found, mirrored = paired_difference(ours, theirs), paired_difference(theirs, ours)
    assert mirrored.estimate == pytest.approx(-found.estimate)
    assert (mirrored.low, mirrored.high) == pytest.approx((-found.high, -found.low))


@pytest.mark.parametrize("n", [1, 2, 50])
def test_the_estimate_lies_in_its_interval_even_at_the_edge(n):
    found = paired_difference(np.ones(n), np.zeros(n))
    assert found.low < found.estimate == 1.0 < found.high


@pytest.mark.parametrize(
    ("ours", "theirs", "message"),
    [
        ([], [], "one value or more"),
        ([[1.0]], [[0.0]], "flat"),
        ([1.0, 0.0], [1.0], "same items"),
        ([1.0, math.nan], [1.0, 0.0], "1 of 2 values are not finite"),
    ],
)
def test_what_cannot_be_compared_is_refused(ours, theirs, message):
    with pytest.raises(ValueError, match=message):
        paired_difference(ours, theirs)


def test_one_value_has_no_interval_unless_its_bounds_are_known():
    with pytest.raises(ValueError, match="no spread"):
        mean_interval([0.6])
    assert isinstance(mean_interval([0.6], bounds=(0.0, 1.0)), Interval)


@pytest.mark.parametrize("studies", [short, full])
@pytest.mark.parametrize("share_up", [0.5, 0.7, 1.0])
@pytest.mark.parametrize("n", [100, 200, 400, 800])
def test_the_adjusted_interval_covers_the_truth(n, share_up, studies):
    # At least 94 % everywhere, and at most 97 % where 40 items or more are expected to differ.
    for discordance in (0.005, 0.01, 0.02, 0.05, 0.1, 0.2):
        rng = generator("coverage", n, share_up, discordance)
        truth = discordance * (2 * share_up - 1) * STEPS.mean()
        found = [
            paired_difference(made_up_gaps(rng, n, discordance, share_up), np.zeros(n))
            for _ in range(studies)
        ]
        covered = np.mean([interval.low <= truth <= interval.high for interval in found])
        room = 0.0 if studies > 1000 else 3 * math.sqrt(0.05 * 0.95 / studies)
        assert covered >= 0.94 - room, discordance
        if discordance * n >= 40:
            assert covered <= 0.97 + room, discordance


# --- equivalence


def narrow(gap):
    return paired_difference(gap, np.zeros(len(gap)), level=0.9)


def equivalent(gap, margin):
    """As a verdict has it: the 90 % interval lies inside the margin."""
    return -margin < narrow(gap).low and narrow(gap).high < margin


def test_the_narrow_interval_by_hand():
    # 60 of 400 up by 1 and 60 down: gap 0, with the pseudo-gaps Σd² = 122, SD √(122/401), t(401).
    gap = np.repeat([1.0, -1.0, 0.0], [60, 60, 280])
    reach = scipy.stats.t.ppf(0.95, 401) * math.sqrt(122 / 401 / 402)
    found = narrow(gap)
    assert (found.low, found.high) == pytest.approx((-reach, reach), abs=1e-12)
    assert equivalent(gap, 0.05) and not equivalent(gap, 0.045)


def test_equivalence_is_the_two_one_sided_tests_of_statsmodels():
    weightstats = pytest.importorskip("statsmodels.stats.weightstats")
    gap = made_up_gaps(generator("tost"), 300, 0.2, 0.6)
    shown, found = np.append(gap, [1.0, -1.0]), set()
    for margin in (0.05, 0.075, 0.1, 0.125):
        p, *_ = weightstats.ttost_paired(shown, np.zeros(302), -margin, margin)
        assert equivalent(gap, margin) == (p < 0.05)
        found.add(equivalent(gap, margin))
    assert found == {True, False}


def test_fewer_differing_items_only_make_equivalence_easier():
    """What was equivalent with more of them is so with fewer: no rule counts them."""
    for margin in (0.013, 0.02, 0.03):
        found = [
            equivalent(np.repeat([1.0, -1.0, 0.0], [k, k, 200 - 2 * k]), margin) for k in range(10)
        ]
        assert found == sorted(found, reverse=True) and found[0]


@pytest.mark.parametrize("studies", [short, full])
@pytest.mark.parametrize(
    ("n", "discordance"),
    [(100, 0.03), (200, 0.03), (800, 0.03), (200, 0.1), (400, 0.2), (800, 0.1)],
)
def test_a_gap_as_wide_as_the_margin_is_seldom_called_equivalent(n, discordance, studies):
    # The truth is the margin of 2 points: of those that differ, so many more go up than down.
    rng = generator("equivalence", n, discordance)
    share_up = 0.5 + 0.02 / (2 * discordance * STEPS.mean())
    called = sum(
        equivalent(made_up_gaps(rng, n, discordance, share_up), 0.02) for _ in range(studies)
    )
    room = 0.0 if studies > 1000 else 3 * math.sqrt(0.065 * 0.935 / studies)
    assert called / studies <= 0.065 + room


# --- how many may differ, and looking early


@pytest.mark.parametrize(
    ("n", "points"), [(100, 2.95), (200, 1.49), (400, 0.75), (800, 0.37), (5046, 0.06)]
)
def test_identical_on_n_items_is_not_identical_everywhere(n, points):
    assert differing_bound(0, n) == pytest.approx(1 - 0.05 ** (1 / n), rel=1e-9)
    assert round(100 * differing_bound(0, n), 2) == points


@pytest.mark.parametrize(("k", "n", "level"), [(1, 50, 0.8), (7, 200, 0.95), (50, 50, 0.8)])
def test_the_bound_is_that_of_clopper_and_pearson(k, n, level):
    exact = scipy.stats.binomtest(k, n, alternative="less").proportion_ci(level, "exact")
    assert differing_bound(k, n, level=level) == pytest.approx(exact.high, rel=1e-9)


@pytest.mark.parametrize(("k", "n"), [(-1, 5), (6, 5), (0, 0)])
def test_more_than_all_cannot_differ(k, n):
    with pytest.raises(ValueError, match="k of n"):
        differing_bound(k, n)


# --- sign flips


def by_lattice(steps):
    """The exact p from a dynamic programme over whole steps: another way to the same number."""
    ways = Counter({0: 1})
    for step in steps:
        moved = Counter()
        for total, count in ways.items():
            moved[total + step] += count
            moved[total - step] += count
        ways = moved
    far = abs(sum(steps))
    return sum(count for total, count in ways.items() if abs(total) >= far) / 2 ** len(steps)


@pytest.mark.parametrize(("wins", "p"), [(1, 1.0), (2, 0.5), (5, 0.0625), (6, 0.03125)])
def test_wins_only_by_hand(wins, p):
    ours = np.array([1.0] * wins + [0.6] * 10)
    theirs = np.array([0.0] * wins + [0.6] * 10)
    test = sign_flip(ours, theirs, generator("unused"))
    assert (test.p, test.k, test.n, test.exact) == (p, wins, wins + 10, True)


def test_no_differing_pair_is_no_evidence():
    same = np.array([0.3, 1.0])
    test = sign_flip(same, same, generator("unused"))
    assert (test.p, test.k, test.exact) == (1.0, 0, True)


def test_equal_steps_of_the_lattice_are_equal_though_their_floats_are_not():
    # .9 - .6, .6 - .3 and .3 - 0 are three floats and one step: 3 of 4 up is p = 10 / 16.
    ours = np.array([0.9, 0.6, 0.3, 0.0])
    theirs = np.array([0.6, 0.3, 0.0, 0.3])
    assert sign_flip(ours, theirs, generator("unused")).p == 10 / 16


def test_a_rounding_apart_is_not_a_difference():
    averages = np.array([0.1 + 0.2, 0.7 + 0.1])
    test = sign_flip(averages, np.array([0.3, 0.8]), generator("unused"))
    assert (test.p, test.k) == (1.0, 0)


@pytest.mark.parametrize("k", [1, 2, 7, 10])
def test_the_exact_test_counts_every_arrangement(k):
    gap = generator("flip", k).normal(size=k)
    sums = [abs(np.dot(signs, gap)) for signs in itertools.product([-1, 1], repeat=k)]
    expected = np.mean(np.array(sums) >= abs(gap.sum()) - 1e-9)
    assert sign_flip(gap, np.zeros(k), generator("unused")).p == expected


@pytest.mark.parametrize("k", [13, 29, 30])
@pytest.mark.parametrize("share_up", [0.5, 0.8])
def test_the_exact_test_agrees_with_a_dynamic_programme_on_the_lattice(k, share_up):
    rng = generator("lattice", k, share_up)
    steps = rng.choice([2, 3, 5], k) * np.where(rng.random(k) < share_up, 1, -1)
    found = sign_flip(steps / 5, np.zeros(k), generator("unused"))
    assert found.exact
    assert found.p == pytest.approx(by_lattice(steps.tolist()), rel=1e-12)


def test_binary_scores_give_the_exact_test_of_mcnemar():
    gap = np.array([1.0] * 12 + [-1.0] * 4 + [0.0] * 20)
    expected = scipy.stats.binomtest(12, 16).pvalue
    assert sign_flip(gap, np.zeros(36), generator("unused")).p == pytest.approx(expected)


def test_random_flips_are_close_to_the_exact_value_and_repeatable():
    gap = np.array([1.0] * 30 + [-1.0] * 16)
    first = sign_flip(gap, np.zeros(46), generator("flips"))
    assert not first.exact
    assert first.p == pytest.approx(scipy.stats.binomtest(30, 46).pvalue, abs=0.008)
    assert first == sign_flip(gap, np.zeros(46), generator("flips"))


def test_random_flips_never_say_impossible():
    assert sign_flip(np.ones(60), np.zeros(60), generator("flips"), draws=999).p == 1 / 1000


@pytest.mark.parametrize("studies", [short, full])
@pytest.mark.parametrize("discordance", [0.02, 0.1])
def test_the_sign_flip_test_errs_no_more_often_than_it_says(discordance, studies):
    rng = generator("flip error", discordance)
    gaps = (made_up_gaps(rng, 200, discordance, 0.5) for _ in range(studies))
    wrong = sum(sign_flip(gap, np.zeros(200), rng, draws=500).p <= 0.05 for gap in gaps)
    allowed = 0.05 + 3 * math.sqrt(0.05 * 0.95 / studies)
    assert wrong / studies <= allowed


def test_very_many_sizes_of_gap_are_judged_by_their_normal_limit():
    gap = generator("limit").normal(0.02, 1, size=3000)
    z = gap.sum() / math.sqrt((gap**2).sum())
    found = sign_flip(gap, np.zeros(3000), generator("unused"))
    assert not found.exact
    assert found.p == pytest.approx(2 * scipy.stats.norm.sf(abs(z)), rel=1e-6)


def test_p_where_there_is_no_spread():
    assert (t_p(0.0, 0.0, 3), t_p(0.1, 0.0, 3)) == (1.0, 0.0)


# --- clusters


def test_clusters_of_one_are_items():
    rng = generator("clusters")
    ours, theirs = rng.choice([0.0, 0.6, 1.0], (2, 50))
    plain = paired_difference(ours, theirs)
    assert clustered_width(ours - theirs, range(50)).at(0.95) == pytest.approx(
        (plain.low, plain.high)
    )


def test_clusters_that_all_agree_are_worth_one_item_each():
    plain = paired_difference(np.ones(20), np.ones(20))
    found = clustered_width(np.zeros(80), list(range(20)) * 4)
    assert found.at(0.95) == pytest.approx((plain.low, plain.high))


def test_every_item_needs_a_cluster_and_a_gap_within_the_span():
    with pytest.raises(ValueError, match="a cluster for each"):
        clustered_width(np.array([1.0, 0.0]), ["a"])
    with pytest.raises(ValueError, match="beyond the span"):
        clustered_width(np.full(20, 2.0), range(20))


@pytest.mark.parametrize("studies", [short, full])
def test_clusters_are_the_replicates(studies):
    rng = generator("clustered coverage")
    studies = min(studies, 3000)
    covered, items = 0, 0
    for _ in range(studies):
        member = np.repeat(np.arange(40), rng.integers(1, 9, 40))
        ours, theirs = (
            (rng.normal(0, 0.6, 40)[member] + rng.normal(size=len(member)) > 0) * 1.0
            for _ in range(2)
        )
        low, high = clustered_width(ours - theirs, member.tolist()).at(0.95)
        covered += low <= 0 <= high
        plain = paired_difference(ours, theirs)
        items += plain.low <= 0 <= plain.high
    room = 3 * math.sqrt(0.05 * 0.95 / studies)
    assert 0.95 - room <= covered / studies <= 0.985 + room
    assert items / studies < 0.88


# --- the functions below


def test_the_distribution_functions_are_those_of_scipy_and_come_without_the_rest_of_it():
    code = (
        "import sys, kleash.stats.special as ours\n"
        "loaded = {'scipy.special', 'numpy.f2py', 'numpy.testing'} & sys.modules.keys()\n"
        "assert not loaded, loaded\n"
        "import scipy.special as theirs\n"
        "names = [name for name, each in vars(ours).items() if type(each).__name__ == 'ufunc']\n"
        "assert len(names) == 11, names\n"
        "assert theirs.gamma(5.0) == 24\n"
        "assert all(getattr(theirs, name) is getattr(ours, name) for name in names)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_means_of_rows_are_those_of_nanmean_to_the_bit_whatever_is_missing_or_how_it_lies():
    rng = np.random.default_rng(3)
    whole = rng.normal(size=(5, 4, 37))
    holes = np.where(rng.random(whole.shape) < 0.2, np.nan, whole)
    for table in (whole[:, 1], whole[..., 2], holes[:, 1], np.asfortranarray(whole[:, 0])):
        assert row_means(table).tobytes() == np.nanmean(table, axis=1).tobytes()
