"""Curves: level, collapse, swings and speed."""

import itertools
import math

import numpy as np
import pytest
import scipy.stats

from kleash.seeds import generator
from kleash.stats import (
    collapse,
    curve_gap,
    logged,
    max_drawdown,
    noise_floor,
    paired_seeds,
    second_difference_sd,
    speed,
    speed_by_items,
    spread_ratio,
    swapped_steps,
)
from kleash.stats.curves import (
    line,
    newey_west_error,
    newey_west_lag,
    second_difference_df,
    widening,
)

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
    assert found.width.middle == pytest.approx(-0.031, abs=0.0005)
    assert found.width.at(0.95) == pytest.approx((-0.147, 0.086), abs=0.0005)
    assert (found.lag, found.warnings) == (0, ("steps_are_not_replicates",))
    assert found.width.p == pytest.approx(scipy.stats.ttest_rel(LEASHED, FREE).pvalue)


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
    assert found.width.at(0.95)[1] - found.width.middle == pytest.approx(reach)
    assert found.width.p == pytest.approx(2 * scipy.stats.t.sf(abs(gap.mean()) / error, 59))
    assert (found.n, found.lag) == (60, 3)


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
        low, high = curve_gap(gap, np.zeros(n)).width.at(0.95)
        covered += low <= 0 <= high
    assert covered / studies >= least - room(studies, 1 - least)


# --- collapse


@pytest.mark.parametrize(
    ("steps", "values", "message"),
    [([1, 2], [1.0], "a step for each"), ([2, 1], [1.0, 2.0], "must rise")],
)
def test_what_is_no_curve_is_refused(steps, values, message):
    with pytest.raises(ValueError, match=message):
        line(steps, values)


def test_a_line_is_that_of_scipy():
    found = line(STEPS, FREE)
    assert found.slope == pytest.approx(scipy.stats.linregress(STEPS, FREE).slope)
    assert found.sd == pytest.approx(0.1612, abs=1e-4)
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


# --- swings


@pytest.mark.parametrize(
    ("curve", "swing", "fall"), [(FREE, 0.1268, 0.390), (LEASHED, 0.1304, 0.224)]
)
def test_how_much_the_two_curves_swing(curve, swing, fall):
    assert second_difference_sd(curve) == pytest.approx(swing, abs=5e-5)
    assert max_drawdown(curve) == pytest.approx(fall, abs=5e-4)


def test_a_straight_line_does_not_swing_and_two_points_say_nothing():
    straight = 1 + 0.5 * np.arange(6)
    assert (second_difference_sd(straight), max_drawdown(straight)) == pytest.approx((0, 0))
    with pytest.raises(ValueError, match="3 or more"):
        second_difference_sd([1.0, 2.0])


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
    assert found.way == way
    assert found.sd == pytest.approx(sd)


def test_without_any_way_there_is_no_floor():
    with pytest.raises(ValueError, match="five times"):
        noise_floor(repeats=[1.0, 2.0])


def test_the_ratio_of_swings_of_the_two_curves():
    found = spread_ratio(LEASHED, FREE)
    assert found.estimate == pytest.approx(0.1304 / 0.1268, abs=0.001)
    df = second_difference_df(9)
    edge = math.sqrt(scipy.stats.f.ppf(0.975, df, df))
    assert found.high == pytest.approx(found.estimate * edge)
    assert found.low == pytest.approx(found.estimate / edge)
    mirrored = spread_ratio(FREE, LEASHED)
    assert logged(mirrored).low == pytest.approx(-logged(found).high)


def test_curves_that_do_not_swing_have_no_ratio():
    with pytest.raises(ValueError, match="rounded or copied"):
        spread_ratio(FREE, np.arange(9.0))
    with pytest.raises(ValueError, match="4 or more"):
        spread_ratio([1.0, 2.0, 2.5], [1.0, 3.0, 2.5])


@pytest.mark.parametrize("studies", [short, full])
def test_the_interval_of_a_ratio_covers_it(studies):
    for n in (9, 30):
        rng = generator("ratio", "second_difference", n)
        at, covered = np.arange(n), 0
        for _ in range(studies):
            ours, theirs = rng.normal(size=n) + 0.2 * at, 1.5 * rng.normal(size=n)
            found = spread_ratio(ours, theirs)
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


def test_speed_at_a_common_threshold():
    # At 2.0 both arrive at step 10 or later; at 2.13 only one does: the other counts at the end.
    found = speed(STEPS, FREE, LEASHED, 2.0)
    assert (found.ours, found.theirs) == (10, 40)
    found = speed(STEPS, FREE, LEASHED, 2.13)
    assert (found.ours, found.theirs, found.gap) == (10, 45, None)


def test_speed_over_items_that_all_agree_is_certain():
    curves = np.tile([0.1, 0.5, 0.9], (5, 1))
    found = speed_by_items([1, 2, 3], curves, curves / 2, 0.5, generator("speed"), draws=50)
    # Theirs never arrives and counts at the end.
    assert (found.ours, found.theirs) == (2, 3)
    assert (found.gap.estimate, found.gap.low, found.gap.high, found.gap.n) == (-1, -1, -1, 5)
    with pytest.raises(ValueError, match="same items"):
        speed_by_items([1], np.zeros((2, 1)), np.zeros((3, 1)), 0.5, generator("x"))


def test_the_restricted_mean_by_hand():
    # One of two items arrives at 1, the other never; a mean of .5 is enough. Drawn twice, the
    # first arrives (1/4), once (1/2) too, never (1/4): restricted to 2, (1 + 1 + 1 + 2)/4.
    ours = [[1.0, 1.0], [0.0, 0.0]]
    theirs = [[1.0, 1.0], [1.0, 1.0]]
    found = speed_by_items([1, 2], ours, theirs, 0.5, generator("draws"), draws=8000)
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
        found = speed_by_items(at, ours, theirs, 0.6, rng, draws=300).gap
        wrong += found.low > 0 or found.high < 0
    assert wrong / studies <= 0.05 + room(studies)
