"""The best step and early stopping: by hand, on curves with a known truth, and by simulation."""

import math

import numpy as np
import pytest
import scipy.integrate
import scipy.stats

from kleash.seeds import generator
from kleash.stats import (
    StopDecision,
    best_of_curve,
    early_stop,
    out_of_bag_best,
    tie_distance,
)
from kleash.stats.best import shrunk_curve, tied_by_items, tied_steps

# Two validation curves of nine evaluations, without and with a leash.
STEPS = np.arange(5, 50, 5)
FREE = np.array([1.818, 2.140, 1.840, 1.830, 1.750, 1.788, 2.040, 2.003, 2.202])
LEASHED = np.array([1.695, 1.992, 1.768, 1.915, 1.970, 1.828, 1.840, 2.123, 2.005])

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
    [pytest.param(100, id="short"), pytest.param(2000, id="full", marks=pytest.mark.slow)],
)
@pytest.mark.parametrize(
    ("steps", "items", "spread", "raw_bias", "bias"),
    [
        (9, 40, 0.0, 0.150, 0.001),
        (9, 40, 0.05, 0.134, -0.010),
        (9, 40, 0.15, 0.080, -0.028),
        (9, 200, 0.05, 0.044, -0.011),
        (50, 40, 0.05, 0.205, -0.012),
    ],
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
    if studies > 1000 and raw_bias > 0.13:
        assert abs(np.mean(corrected)) <= 0.02


# --- steps that tie


@pytest.mark.parametrize(("k", "c"), [(2, 1.645 * math.sqrt(2)), (9, 3.37)])
def test_how_far_a_tie_reaches(k, c):
    assert tie_distance(k) == pytest.approx(c, abs=0.005)


def test_the_distance_is_dunnetts_critical_value_times_root_two():
    # P(every other difference stays below c) by scipy's multivariate normal, correlation 1/2.
    c = tie_distance(5) / math.sqrt(2)
    cov = np.full((4, 4), 0.5) + 0.5 * np.eye(4)
    covered = scipy.stats.multivariate_normal.cdf(
        np.full(4, c), cov=cov, rng=np.random.default_rng(1), abseps=1e-6
    )
    assert covered == pytest.approx(0.95, abs=2e-5)


@pytest.mark.parametrize("k", [3, 9, 93])
def test_the_distance_solves_its_integral(k):
    c = tie_distance(k)
    found, _ = scipy.integrate.quad(
        lambda x: scipy.stats.norm.pdf(x) * scipy.stats.norm.cdf(x + c) ** (k - 1), -9, 9
    )
    assert found == pytest.approx(0.95, abs=1e-8)


def test_one_step_ties_with_itself_and_none_is_refused():
    assert tie_distance(1) == 0
    assert tied_steps([0.5], 0.1) == (0,)
    with pytest.raises(ValueError, match="no best of 0"):
        tie_distance(0)


def test_the_steps_that_tie_with_the_best_of_two_curves():
    assert STEPS[list(tied_steps(FREE, 0.10))].tolist() == [10, 35, 40, 45]
    assert STEPS[list(tied_steps(LEASHED, 0.10))].tolist() == [10, 20, 25, 30, 35, 40, 45]


def test_ties_by_items_are_paired():
    # Both others are .1 behind. One is so on every item, the other only on average.
    rng = generator("ties")
    best = rng.random(100)
    noisy = best - 0.1 + 2 * (rng.permutation(np.repeat([-1.0, 1.0], 50)))
    scores = np.stack([best, best - 0.1, noisy], axis=1)
    assert tied_by_items(scores) == (0, 2)
    assert out_of_bag_best(scores, generator("bag")).ties == (0, 2)


@pytest.mark.parametrize(("t", "ties"), [(1.6, (0, 1)), (1.7, (0,))])
def test_two_steps_tie_below_the_one_sided_z(t, ties):
    # One comparison: c/√2 is 1.645 errors of the paired difference.
    gap = np.repeat([-1.0, 1.0], 50)
    gap = gap / gap.std(ddof=1) + t / 10
    assert tied_by_items(np.stack([gap, np.zeros(100)], axis=1)) == ties


@pytest.mark.parametrize(
    "studies",
    [pytest.param(300, id="short"), pytest.param(5000, id="full", marks=pytest.mark.slow)],
)
@pytest.mark.parametrize(("steps", "spread"), [(9, 0.0), (9, 0.05), (30, 0.1)])
def test_the_truly_best_step_is_among_those_that_tie(steps, spread, studies):
    rng = generator("tied", steps, spread)
    by_floor, by_items = 0, 0
    for _ in range(studies):
        truth = spread * rng.normal(size=steps)
        truly = int(truth.argmax())
        by_floor += truly in tied_steps(truth + 0.1 * rng.normal(size=steps), 0.1)
        by_items += truly in tied_by_items(truth + 0.637 * rng.normal(size=(60, steps)))
    room = 3 * math.sqrt(0.05 * 0.95 / studies)
    assert by_floor / studies >= 0.95 - room
    assert by_items / studies >= 0.94 - room


# --- the best of a curve of means


@pytest.mark.parametrize(
    ("curve", "floor", "corrected"),
    [
        (FREE, 0.1015, 2.113),
        (LEASHED, 0.1015, 2.006),
        (FREE, 0.08, 2.149),
        (LEASHED, 0.08, 2.052),
        (FREE, 0.13, 2.049),
        (LEASHED, 0.13, 1.956),
    ],
)
def test_the_best_of_two_curves_without_its_luck(curve, floor, corrected):
    # 20,000 draws: the Monte-Carlo error of the optimism is .0008 at most.
    best = best_of_curve(curve, floor, generator("curve"), steps=STEPS)
    assert best.corrected == pytest.approx(corrected, abs=0.003)
    assert (best.raw, best.n) == (curve.max(), 9)


@pytest.mark.parametrize(("curve", "step", "again"), [(FREE, 8, 0.59), (LEASHED, 7, 0.35)])
def test_how_often_the_same_step_would_be_best_again(curve, step, again):
    best = best_of_curve(curve, 0.1015, generator("again"), steps=STEPS)
    assert best.step == step
    assert best.again == pytest.approx(again, abs=0.012)
    assert best.ties == tied_steps(curve, 0.1015)


def test_residuals_are_kept_as_far_as_they_are_not_noise():
    # Residual SD .1612: λ = 1 - .1²/.1612² = .6151; below the noise nothing is kept but the line.
    centre, kept = shrunk_curve(STEPS, FREE, 0.10)
    assert kept == pytest.approx(0.6151, abs=1e-4)
    _, nothing = shrunk_curve(STEPS, FREE, 0.2)
    assert nothing == 0
    trend = np.polyval(np.polyfit(STEPS, FREE, 1), STEPS)
    np.testing.assert_allclose(centre, trend + kept * (FREE - trend))
    assert shrunk_curve([0, 1, 2], [0.0, 1.0, 2.0], 0.1)[1] == 0


def test_a_curve_without_noise_has_no_luck_to_take_out():
    with pytest.raises(ValueError, match="set it > 0"):
        best_of_curve(FREE, 0.0, generator("curve"))
    best = best_of_curve(FREE, 1e-6, generator("curve"), steps=STEPS)
    assert best.raw - best.corrected < 1e-5


@pytest.mark.parametrize(
    "studies",
    [pytest.param(200, id="short"), pytest.param(2000, id="full", marks=pytest.mark.slow)],
)
@pytest.mark.parametrize("spread", [0.0, 0.1])
def test_the_corrected_best_of_a_curve_is_nearer_the_truth(spread, studies):
    rng = generator("curves", spread)
    raw, corrected = [], []
    for _ in range(studies):
        truth = 1.9 + 0.005 * STEPS + spread * rng.normal(size=9)
        best = best_of_curve(truth + 0.1 * rng.normal(size=9), 0.1, rng, steps=STEPS, draws=500)
        raw.append(best.raw - truth[best.step])
        corrected.append(best.corrected - truth[best.step])
    room = 3 * np.std(corrected) / math.sqrt(studies)
    assert np.mean(raw) > 0.07
    assert abs(np.mean(corrected)) < 0.025 + room


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
