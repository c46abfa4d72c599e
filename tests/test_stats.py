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
    StopDecision,
    early_stop,
    mean_interval,
    out_of_bag_best,
    paired_difference,
    sign_flip,
)

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
    assert subprocess.run([sys.executable, "-c", code], timeout=60).returncode == 0


# --- intervals


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
@pytest.mark.parametrize("discordance", [0.005, 0.01, 0.02, 0.05, 0.1, 0.2])
def test_the_adjusted_interval_covers_the_truth(discordance, studies):
    rng = generator("coverage", discordance)
    truth = discordance * (0.7 - 0.3) * STEPS.mean()
    covered = 0
    for _ in range(studies):
        gap = made_up_gaps(rng, 200, discordance, 0.7)
        interval = paired_difference(gap, np.zeros(200))
        covered += interval.low <= truth <= interval.high
    assert covered / studies >= 0.94


def test_the_plain_interval_fails_where_few_pairs_differ():
    # Why the adjustment is there: 62 % instead of 95 %.
    rng = generator("coverage", "plain")
    truth = 0.005 * 0.4 * STEPS.mean()
    covered = 0
    for _ in range(400):
        interval = mean_interval(made_up_gaps(rng, 200, 0.005, 0.7))
        covered += interval.low <= truth <= interval.high
    assert 0.55 < covered / 400 < 0.72


@pytest.mark.slow
@pytest.mark.parametrize(("n", "most"), [(200, 0.055), (800, 0.070)])
def test_a_gap_as_wide_as_the_margin_is_seldom_called_equivalent(n, most):
    # 3 % differ, all upwards, by 2/3 on average: the truth is the margin of 2 points.
    rng = generator("equivalence", n)
    studies, called = 10_000, 0
    for _ in range(studies):
        interval = paired_difference(made_up_gaps(rng, n, 0.03, 1.0), np.zeros(n), level=0.9)
        called += interval.low > -0.02 and interval.high < 0.02
    assert called / studies <= most


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


# --- the best step


def test_a_step_best_on_every_item_needs_no_correction():
    scores = np.array([[0.0, 1.0, 0.5]] * 20)
    best = out_of_bag_best(scores, generator("bag"))
    assert (best.step, best.raw, best.corrected, best.again, best.n) == (1, 1.0, 1.0, 1.0, 20)


def test_among_equal_steps_the_earliest_is_best():
    assert out_of_bag_best(np.ones((5, 4)), generator("bag")).step == 0


def test_two_items_by_hand():
    # A draw of two that leaves one out chooses on the other: (1, 0) chooses step 0, read on (0, 1)
    # as 0, and the other way round.
    best = out_of_bag_best([[1.0, 0.0], [0.0, 1.0]], generator("bag"))
    assert (best.raw, best.corrected) == (0.5, 0.0)
    assert best.again == pytest.approx(0.5, abs=0.1)


@pytest.mark.parametrize("scores", [[1.0, 2.0], [[1.0, 0.0]], np.empty((3, 0)), [[1.0], [np.nan]]])
def test_a_table_that_cannot_choose_is_refused(scores):
    with pytest.raises(ValueError, match=r"need a table|not finite"):
        out_of_bag_best(scores, generator("bag"))


def test_draws_that_leave_nothing_out_are_refused():
    with pytest.raises(ValueError, match="left none out"):
        out_of_bag_best(np.ones((2, 1)), generator("bag"), draws=0)


@pytest.mark.parametrize(
    "studies",
    [pytest.param(100, id="short"), pytest.param(1000, id="full", marks=pytest.mark.slow)],
)
@pytest.mark.parametrize(
    ("steps", "items", "spread", "raw_bias", "bias"),
    [(9, 40, 0.0, 0.150, 0.001), (9, 40, 0.15, 0.087, -0.019), (9, 200, 0.05, 0.044, -0.011)],
)
def test_out_of_bag_takes_the_luck_out_of_the_best(steps, items, spread, raw_bias, bias, studies):
    rng = generator("bag", steps, items, spread)
    raw, corrected = [], []
    for _ in range(studies):
        truth = 0.6 + spread * rng.normal(size=steps)
        best = out_of_bag_best(truth + 0.637 * rng.normal(size=(items, steps)), rng, draws=200)
        raw.append(best.raw - truth[best.step])
        corrected.append(best.corrected - truth[best.step])
    room = 3.5 * np.std(corrected) / math.sqrt(studies) + 0.002
    assert np.mean(raw) == pytest.approx(raw_bias, abs=room)
    assert np.mean(corrected) == pytest.approx(bias, abs=room)


# --- early stopping

EVALUATIONS = np.arange(93)
CURVES = {
    "plateau": 2 - 0.5 * np.exp(-EVALUATIONS / 15),
    "over-fitting": 2 - 0.5 * np.exp(-EVALUATIONS / 10) - 0.006 * (EVALUATIONS - 40).clip(0),
    "late jump": 1.6 - 0.3 * np.exp(-EVALUATIONS / 8) + 0.4 * (EVALUATIONS >= 70),
}


def test_nine_evaluations_are_too_few():
    assert early_stop([1.0] * 9, 0.1, 0.1) == StopDecision(
        "too few", stop_after=None, checkpoint=None, window=0, patience=0, n=9
    )
    assert early_stop([1.0] * 24, 0.1, 0.1).verdict == "too few"
    assert early_stop([1.0] * 25, 0.1, 0.1).verdict == "stop"


@pytest.mark.parametrize(
    ("noise", "margin", "n", "window"),
    [
        (0.10, 0.10, 100, 5),
        (0.10, 0.08, 100, 7),
        (0.10, 0.05, 100, 16),
        (0.27, 0.18, 100, 9),
        (0.10, 0.05, 60, 12),
        (0.00, 0.05, 100, 5),
    ],
)
def test_the_window_by_hand(noise, margin, n, window):
    decision = early_stop(np.arange(n), noise, margin)
    assert (decision.window, decision.patience) == (window, 2 * window)


def test_a_rise_then_level_by_hand():
    # Up to evaluation 30 (index 29), then level. The window of 5 is best when 30..34 are in it:
    # after 34 evaluations, centre index 31. Ten more without improvement: stop after 44.
    curve = np.concatenate([np.arange(30), np.full(70, 29.0)])
    decision = early_stop(curve, 0.0, 1.0)
    assert decision == StopDecision(
        "stop", stop_after=44, checkpoint=31, window=5, patience=10, n=100
    )


def test_an_improvement_of_half_a_standard_error_or_less_does_not_count():
    # Half a standard error of a window is .5 · .1 / √5 = .02236.
    for rise, verdict in [(0.0225, "go on"), (0.0223, "stop")]:
        curve = np.repeat([0.0, rise], [20, 10])
        assert early_stop(curve, 0.1, 0.1).verdict == verdict


def test_a_rising_curve_goes_on():
    decision = early_stop(np.arange(40), 0.1, 0.1)
    assert (decision.verdict, decision.stop_after, decision.checkpoint) == ("go on", None, 37)


def test_a_falling_curve_stops_at_the_earliest_moment_allowed():
    assert early_stop(-np.arange(100), 0.1, 0.1).stop_after == 25
    assert early_stop(-np.arange(100), 0.1, 0.05).stop_after == 3 * 16


def test_the_decision_does_not_change_once_made():
    curve = CURVES["plateau"] + 0.1 * generator("stop").normal(size=93)
    decision = early_stop(curve, 0.1, 0.08)
    after = decision.stop_after
    assert after is not None
    for seen in range(25, 94):
        early = early_stop(curve[:seen], 0.1, 0.08, planned=93)
        assert early.stop_after == (after if seen >= after else None)
        assert early.window == decision.window


@pytest.mark.parametrize(("noise", "margin"), [(-0.1, 0.1), (0.1, 0.0)])
def test_a_rule_without_a_margin_is_refused(noise, margin):
    with pytest.raises(ValueError, match="margin must be above 0"):
        early_stop(np.arange(30), noise, margin)


@pytest.mark.parametrize(
    "runs", [pytest.param(100, id="short"), pytest.param(2000, id="full", marks=pytest.mark.slow)]
)
@pytest.mark.parametrize(
    ("curve", "least", "most"),
    [("plateau", 0.03, 0.09), ("over-fitting", 0.01, 0.05), ("late jump", 0.30, 0.45)],
)
def test_what_stopping_costs(curve, least, most, runs):
    # Regret is the truth at the best step less the truth at the step kept. No rule survives a jump
    # that comes after it has stopped.
    rng = generator("regret", curve)
    truth = CURVES[curve]
    regret, stops = [], []
    for _ in range(runs):
        decision = early_stop(truth + 0.1 * rng.normal(size=93), 0.1, 0.08)
        regret.append(truth.max() - truth[decision.checkpoint])
        stops.append(decision.stop_after or 93)
    assert least < np.mean(regret) < most
    assert 35 < np.mean(stops) < 60
