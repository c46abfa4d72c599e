"""Curves: level, collapse, stability, speed and the cost of a step."""

import itertools
import math

import numpy as np
import pytest
import scipy.stats

from kleash.seeds import generator
from kleash.stats import (
    arrival,
    collapse,
    curve_gap,
    efficiency,
    hodges_lehmann,
    max_drawdown,
    noise_floor,
    paired_seeds,
    phases,
    second_difference_sd,
    speed,
    speed_by_items,
    spread_ratio,
    stability,
    swapped_steps,
)
from kleash.stats.curves import line, newey_west_error, newey_west_lag
from kleash.stats.resampling import block_length, moving_blocks, widening
from kleash.stats.swings import second_difference_df

# Two validation curves of nine evaluations, without and with a leash.
STEPS = np.arange(5, 50, 5)
FREE = np.array([1.818, 2.140, 1.840, 1.830, 1.750, 1.788, 2.040, 2.003, 2.202])
LEASHED = np.array([1.695, 1.992, 1.768, 1.915, 1.970, 1.828, 1.840, 2.123, 2.005])

short = pytest.param(200, id="short")
full = pytest.param(4_000, id="full", marks=pytest.mark.slow)


def room(studies, rate=0.05):
    return 3 * math.sqrt(rate * (1 - rate) / studies)


def depending(rng, studies, n, rho):
    """Series of unit innovations in which each value keeps `rho` of the one before."""
    noise = rng.normal(size=(studies, n + 50))
    for now in range(1, n + 50):
        noise[:, now] += rho * noise[:, now - 1]
    return noise[:, 50:]


# --- level


def test_the_level_of_nine_steps():
    found = curve_gap(LEASHED, FREE)
    assert found.interval.estimate == pytest.approx(-0.031, abs=0.0005)
    assert (found.interval.low, found.interval.high) == pytest.approx((-0.147, 0.086), abs=0.0005)
    assert (found.method, found.warnings) == ("t", ("steps_are_not_replicates",))
    assert found.p == pytest.approx(scipy.stats.ttest_rel(LEASHED, FREE).pvalue)


def test_fewer_than_eight_steps_are_said_to_be_too_few():
    found = curve_gap(LEASHED[:7], FREE[:7])
    assert found.warnings == ("too_few_steps", "steps_are_not_replicates")
    with pytest.raises(ValueError, match="one step"):
        curve_gap([1.0], [1.0])


@pytest.mark.parametrize(("n", "lag"), [(20, 2), (50, 3), (100, 4), (300, 5), (1000, 6)])
def test_the_lag_by_hand(n, lag):
    assert newey_west_lag(n) == lag


def test_the_newey_west_error_by_hand():
    # 1, 2, 4, 5 less their mean 3: Σe² = 10, Σe_t·e_t-1 = 2 - 1 + 2 = 3; 10 + 2·½·3 = 13; / (4·3).
    assert newey_west_error([1.0, 2.0, 4.0, 5.0], 1) == pytest.approx(math.sqrt(13 / 12))
    assert newey_west_error([1.0, 2.0, 4.0, 5.0], 0) == pytest.approx(math.sqrt(10 / 12))


def test_the_newey_west_error_is_that_of_statsmodels():
    api = pytest.importorskip("statsmodels.api")
    gap = depending(generator("newey"), 1, 80, 0.4)[0]
    fit = api.OLS(gap, np.ones(80)).fit(
        cov_type="HAC", cov_kwds={"maxlags": 3, "use_correction": True}
    )
    assert newey_west_error(gap, 3) == pytest.approx(float(fit.bse[0]), rel=1e-9)


def test_a_long_curve_is_judged_by_newey_and_west():
    gap = depending(generator("long"), 1, 60, 0.2)[0]
    found = curve_gap(gap, np.zeros(60))
    error = newey_west_error(gap, 3) * widening(4 / 60)
    reach = scipy.stats.t.ppf(0.975, 59) * error
    assert found.interval.high - found.interval.estimate == pytest.approx(reach)
    assert found.p == pytest.approx(2 * scipy.stats.t.sf(abs(gap.mean()) / error, 59))
    assert (found.method, found.lag) == ("newey_west", 3)


def test_neighbours_that_are_alike_are_said_to_be():
    found = curve_gap(depending(generator("alike"), 1, 60, 0.9)[0], np.zeros(60))
    assert found.warnings == ("neighbours_alike",)
    assert curve_gap(generator("not").normal(size=60), np.zeros(60)).warnings == ()


def test_the_widening_is_that_of_its_table():
    # Kiefer and Vogelsang: 1.9600 + 2.9694 b + .4160 b² - .5324 b³; checked here by simulation.
    assert 1.96 * widening(0.5) == pytest.approx(1.96 + 1.4847 + 0.104 - 0.06655, abs=0.003)
    rng = generator("fixed b")
    n, lag = 200, 39
    rest = rng.normal(size=(4000, n))
    means = rest.mean(axis=1)
    rest = rest - means[:, None]
    total = (rest**2).sum(axis=1)
    for j in range(1, lag + 1):
        total += 2 * (1 - j / (lag + 1)) * (rest[:, j:] * rest[:, :-j]).sum(axis=1)
    t = np.abs(means) / np.sqrt(total) * n
    assert np.quantile(t, 0.95) == pytest.approx(1.96 * widening(0.2), rel=0.04)


def test_blocks_are_stretches_of_the_series():
    drawn = moving_blocks(10, 500, generator("blocks"), length=4)
    assert drawn.shape == (500, 10)
    assert (np.diff(drawn[:, :4], axis=1) == 1).all()
    assert (np.diff(drawn[:, 4:8], axis=1) == 1).all()
    assert (drawn.min(), drawn.max()) == (0, 9)
    assert [block_length(n) for n in (8, 9, 20, 1000)] == [2, 3, 3, 10]


def test_blocks_give_an_interval_about_the_mean():
    gap = depending(generator("block"), 1, 100, 0.3)[0]
    found = curve_gap(gap, np.zeros(100), generator("draws"))
    plain = curve_gap(gap, np.zeros(100)).interval
    assert (found.method, found.lag, found.p) == ("blocks", 5, None)
    width = found.interval.high - found.interval.low
    assert width == pytest.approx(plain.high - plain.low, rel=0.15)
    assert found.interval.low < gap.mean() < found.interval.high


@pytest.mark.parametrize("studies", [short, full])
@pytest.mark.parametrize(
    ("rho", "least"), [(0.0, 0.935), (0.3, 0.92), (0.6, 0.84)], ids=["none", "some", "much"]
)
@pytest.mark.parametrize("n", [9, 20, 50, 100])
def test_how_often_the_level_of_a_curve_is_covered(n, rho, least, studies):
    # Dependence costs coverage, and much of it is what `neighbours_alike` warns of. Nine steps know
    # nothing of it: t covers 95, 87 and 71 %.
    if n == 9:
        least = {0.0: 0.94, 0.3: 0.85, 0.6: 0.69}[rho]
    rng = generator("level", n, rho)
    covered = 0
    for gap in depending(rng, studies, n, rho):
        found = curve_gap(gap, np.zeros(n)).interval
        covered += found.low <= 0 <= found.high
    assert covered / studies >= least - room(studies, 1 - least)


@pytest.mark.parametrize("studies", [short, full])
def test_how_often_blocks_cover_the_level(studies):
    rng = generator("blocks level")
    studies = studies // 2
    covered = 0
    for gap in depending(rng, studies, 50, 0.3):
        found = curve_gap(gap, np.zeros(50), rng, draws=300).interval
        covered += found.low <= 0 <= found.high
    assert covered / studies >= 0.90 - room(studies, 0.1)


# --- phases, collapse


def test_phases_by_hand():
    early, middle, late = phases(np.arange(1, 8), [1, 2, 3, 9, 9, 5, 7], [0, 2, 4, 9, 8, 5, 5])
    assert (early.name, early.first, early.last, early.n) == ("early", 1, 3, 3)
    assert (early.gap, early.slope, early.error) == (0, (1, 2), pytest.approx(1 / math.sqrt(3)))
    assert early.spread == pytest.approx((0, 0), abs=1e-12)
    assert (middle.first, middle.last, middle.gap, middle.slope) == (4, 5, 0.5, (None, None))
    assert (late.name, late.gap, late.spread, late.n) == ("late", 1.0, (None, None), 2)


def test_phases_of_the_two_curves():
    found = phases(STEPS, LEASHED, FREE)
    assert [phase.gap for phase in found] == pytest.approx([-0.1143, 0.1150, -0.0923], abs=1e-4)
    assert [phase.last for phase in found] == [15, 30, 45]
    assert found[0].spread[0] == pytest.approx(line(STEPS[:3], LEASHED[:3]).sd)


def test_three_steps_are_phases_of_one():
    found = phases([1, 2, 3], [1.0, 2.0, 3.0], [0.0, 0.0, 0.0])
    assert [(phase.gap, phase.error) for phase in found] == [(1, None), (2, None), (3, None)]
    with pytest.raises(ValueError, match="early, middle and late"):
        phases([1, 2], [1.0, 2.0], [0.0, 0.0])


@pytest.mark.parametrize(
    ("steps", "values", "message"),
    [([1, 2], [1.0], "a step for each"), ([2, 1], [1.0, 2.0], "must rise")],
)
def test_what_is_no_curve_is_refused(steps, values, message):
    with pytest.raises(ValueError, match=message):
        stability(steps, values)


def test_a_line_is_that_of_scipy():
    expected = scipy.stats.linregress(STEPS, FREE)
    found = line(STEPS, FREE)
    assert (found.slope, found.error) == pytest.approx((expected.slope, expected.stderr))
    with pytest.raises(ValueError, match="3 or more"):
        line([1, 2], [1.0, 2.0])


def test_a_collapse_by_hand():
    # The best mean is 2; three errors of a difference are 3·.1·√(1 + 1/5) = .3286.
    values = [2.0] * 6 + [1.6, 1.9, 1.66, 1.6, 1.0]
    found = collapse(np.arange(10, 120, 10), values, 0.1)
    assert (found.step, found.best, found.n) == (100, 2.0, 11)
    assert found.drop == pytest.approx(2 - 1.63)
    assert found.deepest == pytest.approx(2 - 1.3)
    assert collapse(np.arange(10), [*[2.0] * 6, 1.68, 1.68, 1.68, 1.6], 0.1).step is None


def test_one_lucky_start_is_not_the_best():
    # After 3, 2, 2 the best is their mean, not 3.
    assert collapse(np.arange(4), [3.0, 2.0, 2.0, 2.0], 0.4).best == pytest.approx(2.25)
    with pytest.raises(ValueError, match="set it > 0"):
        collapse([1, 2], [1.0, 2.0], 0.0)


def test_a_long_curve_smooths_its_best_over_more():
    values = np.zeros(250)
    values[20:25] = 1.0
    assert collapse(np.arange(90), values[:90], 0.5).best == pytest.approx(1.0)
    assert collapse(np.arange(150), values[:150], 0.5).best == pytest.approx(0.5)
    assert collapse(np.arange(250), values, 0.5).best == pytest.approx(0.25)


@pytest.mark.parametrize("studies", [short, full])
@pytest.mark.parametrize(("n", "most"), [(9, 0.005), (30, 0.01), (93, 0.02), (300, 0.045)])
def test_noise_alone_seldom_looks_like_a_collapse(n, most, studies):
    rng = generator("collapse", n)
    at = np.arange(n)
    called = [collapse(at, rng.normal(size=n), 1.0).step is not None for _ in range(studies)]
    assert np.mean(called) <= most + room(studies, most)


@pytest.mark.parametrize("studies", [short, full])
def test_a_fall_of_five_errors_is_seen(studies):
    rng = generator("fall")
    truth = np.repeat([0.0, -5.0], [30, 5])
    seen = [collapse(np.arange(35), truth + rng.normal(size=35), 1.0).step for _ in range(studies)]
    assert np.mean([step is not None for step in seen]) > 0.9


# --- stability

TABLE = {
    # row: no leash, leash, digits
    "mean": (1.9346, 1.9040, 4),
    "area": (1.9251, 1.9107, 4),
    "slope": (0.0049, 0.0056, 4),
    "sd": (0.1653, 0.1334, 4),
    "detrended_sd": (0.1612, 0.1164, 4),
    "successive_sd": (0.1383, 0.1317, 4),
    "second_difference_sd": (0.1268, 0.1304, 4),
    "total_variation": (1.238, 1.278, 3),
    "excess_variation": (0.854, 0.968, 3),
    "max_drawdown": (0.390, 0.224, 3),
    "relative_drawdown": (0.182, 0.112, 3),
    "ulcer_index": (0.109, 0.058, 3),
    "drop_tail": (0.190, 0.183, 3),
    "largest_step": (0.177, 0.175, 3),
    "autocorrelation": (0.13, -0.48, 2),
}


@pytest.mark.parametrize("row", TABLE)
def test_the_stability_of_the_two_curves(row):
    free, leashed, digits = TABLE[row]
    for curve, expected in ((FREE, free), (LEASHED, leashed)):
        found = getattr(stability(STEPS, curve), row)
        assert found == pytest.approx(expected, abs=0.5 * 10**-digits + 1e-6)


def test_three_evaluations_say_nothing_about_swings():
    with pytest.raises(ValueError, match="4 or more"):
        stability([1, 2, 3], [1.0, 2.0, 3.0])
    with pytest.raises(ValueError, match="3 or more"):
        second_difference_sd([1.0, 2.0])


def test_a_straight_line_does_not_swing():
    found = stability(np.arange(6), 1 + 0.5 * np.arange(6))
    still = (found.detrended_sd, found.second_difference_sd, found.max_drawdown)
    assert still == pytest.approx((0, 0, 0), abs=1e-12)
    assert (found.excess_variation, found.drop_tail) == pytest.approx((0, 0), abs=1e-12)
    assert (found.autocorrelation, found.ulcer_index) == (0, 0)


def test_relative_rows_need_values_above_0():
    found = stability(np.arange(4), [-1.0, 0.0, 1.0, 0.5])
    assert math.isnan(found.ulcer_index)
    assert math.isnan(found.largest_step)
    assert found.max_drawdown == 0.5


def test_the_second_difference_sd_estimates_noise_whatever_the_trend():
    rng = generator("bends")
    at = np.arange(20_000)
    values = 0.3 * rng.normal(size=20_000) + np.sin(at / 500) * 5
    assert second_difference_sd(values) == pytest.approx(0.3, rel=0.02)


def test_the_degrees_of_freedom_of_second_differences():
    # 9 points: 7 bends, (6·7)²/(36·7 + 32·6 + 2·5) = 1764/454.
    assert second_difference_df(9) == pytest.approx(1764 / 454)
    for n in (4, 12):
        bends = np.diff(np.eye(n), 2, axis=0)
        inner = bends.T @ bends
        assert second_difference_df(n) == pytest.approx(np.trace(inner) ** 2 / (inner**2).sum())


@pytest.mark.parametrize(
    ("given", "way", "sd"),
    [
        ({"repeats": [1.0, 2.0, 3.0, 4.0, 5.0], "declared": 9.0}, "repeats", math.sqrt(2.5)),
        # Variances .5 and 0 over two items: √(.5/4).
        ({"repeats": [1, 2], "generations_NK": [[0, 1], [1, 1]]}, "generations", math.sqrt(1 / 8)),
        ({"items": [0.0, 1.0, 1.0, 0.0], "curve": FREE}, "items", 0.25),
        ({"curve": FREE, "declared": 0.1}, "second_differences", 0.12675633),
        ({"declared": 0.1}, "declared", 0.1),
    ],
)
def test_the_noise_floor_by_the_first_way_that_is_given(given, way, sd):
    found = noise_floor(**given)
    assert (found.way, found.upper_bound) == (way, way == "second_differences")
    assert found.sd == pytest.approx(sd)


def test_without_any_way_there_is_no_floor():
    with pytest.raises(ValueError, match="five times"):
        noise_floor(repeats=[1.0, 2.0])


def test_a_declared_model_of_the_noise_floor():
    # 40 items; each detail that may be missing is found with p = .715: variance p(1 - p) a detail.
    rng = generator("details")
    details = rng.integers(1, 5, 40)
    found = rng.binomial(details, 0.715, size=(20_000, 40)).mean(axis=1)
    expected = math.sqrt(0.715 * 0.285 * details.sum()) / 40
    assert found.std() == pytest.approx(expected, rel=0.02)


def test_the_ratio_of_swings_of_the_two_curves():
    found = spread_ratio(STEPS, FREE, LEASHED, of="detrended")
    assert found.ratio.estimate == pytest.approx(1 / 0.72, abs=0.01)
    assert (found.ratio.low, found.ratio.high) == pytest.approx((0.62, 3.10), abs=0.005)
    assert (found.p, found.df) == (pytest.approx(0.41, abs=0.005), 7)
    f = (0.16119172504 / 0.11639239870) ** 2
    assert found.p == pytest.approx(2 * scipy.stats.f.sf(f, 7, 7), rel=1e-6)
    mirrored = spread_ratio(STEPS, LEASHED, FREE, of="detrended")
    assert mirrored.log_ratio.low == pytest.approx(-found.log_ratio.high)
    assert mirrored.p == pytest.approx(found.p)


def test_a_verdict_on_swings_is_about_the_logarithm():
    found = spread_ratio(STEPS, LEASHED, FREE)
    assert found.ratio.estimate == pytest.approx(1.03, abs=0.005)
    assert found.log_ratio.estimate == pytest.approx(math.log(found.ratio.estimate))
    assert found.log_ratio.high == pytest.approx(math.log(found.ratio.high))
    assert (found.log_ratio.level, found.log_ratio_90.level) == (0.95, 0.9)
    assert found.log_ratio_90.high < found.log_ratio.high
    assert found.log_margin == pytest.approx(math.log(1.25))


def test_curves_that_do_not_swing_have_no_ratio():
    with pytest.raises(ValueError, match="rounded or copied"):
        spread_ratio(STEPS, FREE, np.arange(9.0))
    with pytest.raises(ValueError, match="4 or more"):
        spread_ratio([1, 2, 3], [1.0, 2.0, 2.5], [1.0, 3.0, 2.5])


@pytest.mark.parametrize("studies", [short, full])
@pytest.mark.parametrize("of", ["detrended", "second_difference"])
def test_the_interval_of_a_ratio_covers_it(of, studies):
    for n in (9, 30):
        rng = generator("ratio", of, n)
        at, covered = np.arange(n), 0
        for _ in range(studies):
            ours, theirs = rng.normal(size=n) + 0.2 * at, 1.5 * rng.normal(size=n)
            found = spread_ratio(at, ours, theirs, of=of).ratio
            covered += found.low <= 1 / 1.5 <= found.high
        assert 0.945 - room(studies) <= covered / studies <= 0.97 + room(studies)


def test_swapping_steps_of_the_two_curves():
    assert swapped_steps(FREE, LEASHED, max_drawdown, generator("unused")) == 0.5


def test_swapped_steps_are_all_listed_or_drawn():
    rng = generator("swaps")
    ours, theirs = rng.normal(size=(2, 6))
    total = 0
    for swaps in itertools.product([0, 1], repeat=6):
        left = np.where(swaps, theirs, ours)
        right = np.where(swaps, ours, theirs)
        total += abs(left.max() - right.max()) >= abs(ours.max() - theirs.max()) - 1e-9
    assert swapped_steps(ours, theirs, lambda y: float(y.max()), rng) == total / 64
    gap = rng.normal(0.3, 1, 15)
    drawn = swapped_steps(gap, np.zeros(15), lambda y: float(y.mean()), rng, draws=2000)
    assert drawn == pytest.approx(paired_seeds(gap, np.zeros(15)).p, abs=0.04)


@pytest.mark.parametrize("studies", [pytest.param(60, id="short"), full])
def test_swapped_steps_err_no_more_often_than_they_say(studies):
    studies = min(studies, 600)
    rng = generator("swap error")
    curves = rng.normal(size=(studies, 2, 8))
    wrong = [swapped_steps(a, b, max_drawdown, rng) <= 0.05 for a, b in curves]
    assert np.mean(wrong) <= 0.05 + room(studies)


# --- speed


def test_arrival_by_hand():
    assert arrival([5, 10, 15], [0.1, 0.5, 0.4], 0.5) == 10
    assert arrival([5, 10, 15], [0.1, 0.5, 0.4], 0.6) is None


def test_speed_at_a_common_threshold():
    # At 2.0 both arrive at step 10 or later; at 2.13 only one does, within 45 steps.
    found = speed(STEPS, FREE, STEPS, LEASHED, 2.0)
    assert (found.ours, found.theirs, found.reached, found.horizon) == (10, 40, (True, True), 45)
    found = speed(STEPS, FREE, STEPS, LEASHED, 2.13)
    assert (found.ours, found.theirs, found.reached, found.gap) == (10, 45, (True, False), None)


def test_speed_in_seconds_ends_where_both_curves_do():
    # Ours takes 100 s a step, theirs 60: theirs ends after 540 s, ours arrives after 700.
    found = speed(100 * np.arange(1, 10), np.arange(9), 60 * np.arange(1, 10), np.arange(9), 6)
    assert (found.horizon, found.ours, found.theirs) == (540, 540, 420)
    assert found.reached == (False, True)


def test_speed_over_items_that_all_agree_is_certain():
    curve = np.array([0.1, 0.5, 0.9])
    found = speed_by_items(
        ([1, 2, 3], [10, 20, 30]), np.tile(curve, (5, 1)), np.tile(curve, (5, 1)), 0.6,
        generator("speed"), draws=50,
    )  # fmt: skip
    # Horizon 3: theirs has not arrived by then.
    assert (found.ours, found.theirs, found.reached) == (3, 3, (True, False))
    assert (found.gap.estimate, found.gap.low, found.gap.high, found.gap.n) == (0, 0, 0, 5)
    with pytest.raises(ValueError, match="same items"):
        speed_by_items(([1], [1]), np.zeros((2, 1)), np.zeros((3, 1)), 0.5, generator("x"))


def test_the_restricted_mean_by_hand():
    # One of two items arrives at 1, the other never; a mean of .5 is enough. Drawn twice, the
    # first arrives (1/4), once (1/2) too, never (1/4): restricted to 2, (1 + 1 + 1 + 2)/4.
    ours = [[1.0, 1.0], [0.0, 0.0]]
    theirs = [[1.0, 1.0], [1.0, 1.0]]
    found = speed_by_items(([1, 2], [1, 2]), ours, theirs, 0.5, generator("draws"), draws=8000)
    assert found.gap.estimate == pytest.approx(0.25, abs=0.02)


@pytest.mark.parametrize("studies", [short, full])
def test_equal_arms_are_seldom_called_faster(studies):
    rng = generator("faster")
    studies = studies // 2
    truth = np.linspace(0.3, 0.8, 12)
    wrong = 0
    for _ in range(studies):
        ours, theirs = ((rng.random((100, 12)) < truth) * 1.0 for _ in range(2))
        at = np.arange(12)
        found = speed_by_items((at, at), ours, theirs, 0.6, rng, draws=300).gap
        wrong += found.low > 0 or found.high < 0
    assert wrong / studies <= 0.05 + room(studies)


# --- the cost of a step


def test_timings_by_hand():
    ours = [100.0, 100.0, 2.0, 4.0, 6.0]
    theirs = [100.0, 100.0, 1.0, 2.0, 3.0]
    found = efficiency(ours, theirs, generator("time"), warmup=2)
    assert (found.ours.median, found.ours.lower, found.ours.upper) == (4, 3, 5)
    assert (found.ours.dropped, found.ours.n, found.enough) == (2, 3, False)
    # Differences 1, 0, -1, 3, 2, 1, 5, 4, 3: the median is 2.
    assert (found.ratio.estimate, found.shift.estimate) == (2, pytest.approx(2))


@pytest.mark.parametrize("sizes", [(7, 5), (8, 6), (40, 61)])
def test_hodges_and_lehmann_without_listing_the_differences(sizes):
    rng = generator("lehmann", sizes)
    ours, theirs = rng.normal(size=sizes[0]), rng.normal(size=sizes[1])
    expected = np.median(np.subtract.outer(ours, theirs))
    assert hodges_lehmann(ours, theirs) == pytest.approx(expected, abs=1e-12)
    assert hodges_lehmann([1.0, 1.0], [0.0]) == 1


@pytest.mark.parametrize(
    ("ours", "message"), [(np.ones(6), "log more steps"), (np.zeros(20), "not timed")]
)
def test_timings_that_say_nothing_are_refused(ours, message):
    with pytest.raises(ValueError, match=message):
        efficiency(ours, np.ones(20), generator("time"))


def test_long_logs_are_thinned_and_stay_right():
    rng = generator("long logs")
    ours, theirs = rng.lognormal(0.2, 0.1, 9_000), rng.lognormal(0, 0.1, 9_000)
    found = efficiency(ours, theirs, rng, draws=100)
    assert found.ratio.low < math.exp(0.2) < found.ratio.high
    assert found.shift.low < math.exp(0.2) - 1 < found.shift.high
    assert found.ratio.high - found.ratio.low < 0.03


@pytest.mark.parametrize("studies", [pytest.param(60, id="short"), full])
@pytest.mark.parametrize("n", [20, 100])
def test_the_ratio_of_times_is_covered(n, studies):
    studies = min(studies, 600)
    rng = generator("times", n)
    ratios, shifts = 0, 0
    for _ in range(studies):
        noise = rng.normal(size=(2, n + 5))
        noise[:, 1:] += 0.5 * noise[:, :-1]
        times = np.exp(0.1 * noise) * np.array([[1.2], [1.0]])
        found = efficiency(times[0], times[1], rng, draws=200)
        ratios += found.ratio.low <= 1.2 <= found.ratio.high
        shifts += found.shift.low <= 0.2 <= found.shift.high
    for covered in (ratios, shifts):
        assert covered / studies >= 0.91 - room(studies, 0.09)
