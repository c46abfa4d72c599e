"""Seeds × items: the parts of a spread are found again, and power is what was promised."""

import math

import numpy as np
import pytest

from kleash import stats
from kleash.seeds import generator
from kleash.stats import Crossed, GapSpread, cautious_factor, gap_spread
from kleash.stats.crossed import smallest
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


def simulated(spread, others, seeds, items, studies):
    """How often an arm with the promised gap is called better, and an equal one equivalent."""
    rng = generator("crossed", spread, others, seeds, items)
    promise = Crossed(spread, seeds, items, comparisons=others)
    gap, margin = promise.smallest_gap(), promise.smallest_margin()
    better = equal = alarms = 0
    for _ in range(studies):
        drawn = crossed_gaps(rng, spread, dict.fromkeys(map(str, range(others)), 0.0), seeds, items)
        means = np.array([table.mean(axis=1) for table in drawn.values()])
        none = stats.arms_over_seeds(means, baseline=0)[0]
        narrow = stats.paired_seeds(means[1], means[0], level=0.9).interval
        alone = stats.paired_seeds(means[1], means[0]).interval
        inside = -margin < narrow.low and narrow.high < margin
        apart = alone.low > 0 or alone.high < 0
        equal += inside and (not apart or none.adjusted_p < 0.05)
        alarms += apart
        means[1] += gap
        better += stats.arms_over_seeds(means, baseline=0)[0].gap.interval.low > 0
    return promise, better / studies, equal / studies, alarms / studies


@pytest.mark.parametrize("setting", SETTINGS, ids=lambda each: f"{each[1] + 1}x{each[2]}x{each[3]}")
@pytest.mark.parametrize(
    "studies",
    [pytest.param(250, id="short"), pytest.param(4000, id="full", marks=pytest.mark.slow)],
)
def test_power_is_what_was_promised(setting, studies):
    room = 0.03 if studies > 1000 else 0.03 + 2.5 * math.sqrt(0.16 / studies)
    promise, better, equal, alarms = simulated(*setting, studies)
    assert promise.power(promise.smallest_gap()) == pytest.approx(0.8, abs=0.002)
    assert better == pytest.approx(0.8, abs=room)
    assert equal == pytest.approx(0.8, abs=room)
    assert alarms == pytest.approx(promise.false_alarms(), abs=room)


def test_without_items_power_is_that_of_seeds_alone():
    for seeds in (4, 5, 8):
        crossed = Crossed(GapSpread(0.02, 0.0, 0.0), seeds, 100)
        expected = stats.smallest_detectable_by_seeds(seeds, paired=True) * 0.02
        # One direction only, so a trace less than the two-sided test has.
        assert crossed.smallest_gap() == pytest.approx(expected, rel=2e-3)
        assert crossed.false_alarms() == pytest.approx(0.05, abs=1e-6)


def test_errors_by_hand():
    crossed = Crossed(GapSpread(0.03, 0.4, 0.4), seeds=4, items=100)
    # √(.03² + .4²/100) is .05, over √4; the items' part is .04.
    assert crossed.error == pytest.approx(0.025)
    assert crossed.whole_error == pytest.approx(math.hypot(0.025, 0.04))
    assert crossed.spread.times(2.0) == GapSpread(0.06, 0.8, 0.8)


def test_what_items_add_cannot_be_mended_with_seeds():
    spread = GapSpread(0.01, 0.3, 0.1)
    few, many = (Crossed(spread, seeds, 100) for seeds in (5, 40))
    assert 0.05 < few.false_alarms() < many.false_alarms() < 1
    assert Crossed(spread, 5, 100_000).false_alarms() == pytest.approx(0.05, abs=0.005)
    # Gaps found and undone again, because many arms were looked at, are not called equal either.
    assert Crossed(GapSpread(0.01, 0.08, 0.0), 4, 10, 50).smallest_margin() == math.inf


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
