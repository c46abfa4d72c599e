"""Where on their curves trainings are compared: over seeds at the end, of one run each on average.

A leash that costs at first and pays later is equal on average and better at the end.
"""

import re

import numpy as np
import pytest
import scipy.stats

from kleash.compare.arms import gather
from kleash.compare.comparison import compare
from kleash.compare.items import run_means
from kleash.compare.read import read
from kleash.report import markdown_of, of_sources, screen, short_page, tables_of
from kleash.report.words.verdicts import sentence
from kleash.stats import end_gap, end_of
from test_compare import asked, codes, level, run, sources, with_curve, with_scores
from test_compare_questions import every, fact

STEPS = np.arange(100.0, 900.0, 100.0)
FREE = np.array([0.30, 0.35, 0.38, 0.40, 0.41, 0.40, 0.38, 0.34])
# As much lower at first as it is higher at the end.
LEASHED = FREE + np.array([-0.04, -0.03, -0.02, -0.01, 0.01, 0.02, 0.03, 0.04])


def trained(beta, curve, seeds, noise=0.002, steps=STEPS):
    rng = np.random.default_rng(int(1000 * beta))
    return [
        with_curve(
            run(f"kl{beta}-s{seed}", config={"beta": beta, "lr": 1e-6}, seed=seed),
            np.asarray(curve) + rng.normal(0, noise, len(curve)),
            "accuracy",
            steps=steps,
        )
        for seed in range(seeds)
    ]


def test_over_seeds_it_counts_where_they_end_and_the_average_stands_beside_it():
    found = compare(sources(*trained(0.0, FREE, 5), *trained(0.1, LEASHED, 5)))
    end, mean = level(found), asked(found, "average")
    assert (end.verdict, end.level) == ("better", "L3")
    assert end.estimate == pytest.approx(0.04, abs=0.005)
    assert (end.over.axis, end.over.first, end.over.last) == ("step", 800, 800)
    assert fact(end, "seed_means", "theirs").value == pytest.approx(0.34, abs=0.003)
    assert (mean.verdict, mean.level) == ("equivalent", "L3")
    assert mean.estimate == pytest.approx(0.0, abs=0.002)
    assert (mean.over.first, mean.over.last) == (100, 800)
    assert not every(found, "at_end")
    text = screen.terminal(found, "en")
    assert "better; accuracy at step 800 +" in " ".join(text.split())
    assert "第 800 步的准确率" in sentence(end, "zh", factor=())
    assert "over steps 100–800" in sentence(mean, "en", factor=())


def test_one_run_each_counts_on_average_and_the_end_stands_beside_it():
    found = compare(sources(*trained(0.0, FREE, 1), *trained(0.1, LEASHED, 1)))
    mean, end = level(found), asked(found, "at_end")
    assert mean.estimate == pytest.approx(0.0, abs=0.002)
    assert mean.verdict == "undecided"
    assert (end.verdict, end.level) == ("better", "L1")
    assert end.estimate == pytest.approx(0.04, abs=0.005)
    assert codes(end) == ["curve_ends", "noise_from_bends"]
    assert "And at the end?" in screen.terminal(found, "en")
    assert not every(found, "average")


def test_what_says_the_same_elsewhere_is_not_on_the_screen():
    found = compare(sources(*trained(0.0, FREE, 5), *trained(0.1, FREE + 0.05, 5)))
    assert level(found).verdict == asked(found, "average").verdict == "better"
    assert "And on average" not in screen.terminal(found, "en")
    assert "And on average" in markdown_of(short_page(of_sources(found, "x", "en")))


def test_a_run_that_broke_off_is_compared_where_it_ended():
    """Left out it would favour the arm whose runs break; the answer says that ends differ."""
    free = trained(0.0, FREE, 5)
    broken = trained(0.1, LEASHED, 5)
    series = broken[2].series[0]
    series.steps, series.values = series.steps[:3], series.values[:3]
    judged = level(compare(sources(*free, *broken)))
    assert judged.n == 5
    assert judged.over is None
    assert judged.estimate == pytest.approx((4 * 0.04 - 0.02) / 5, abs=0.004)
    told = next(each.facts for each in judged.because if each.code == "ends_differ")
    assert (told["first"], told["last"]) == (300, 800)


def test_the_end_of_a_long_log_is_its_last_tenth():
    steps = np.arange(1.0, 41.0)
    rise = np.where(steps > 36, 1.0, 0.0)
    runs = [
        *trained(0.0, np.zeros(40), 4, noise=0.01, steps=steps),
        *trained(0.1, rise, 4, noise=0.01, steps=steps),
    ]
    judged = level(compare(sources(*runs)))
    assert judged.estimate == pytest.approx(1.0, abs=0.02)
    assert (judged.over.first, judged.over.last) == (37, 40)


def test_better_arms_that_are_not_told_apart_are_named_together():
    noisy = {"noise": 0.004}
    runs = [
        *trained(0.0, FREE, 5, **noisy),
        *trained(0.01, FREE + 0.060, 5, **noisy),
        *trained(0.02, FREE + 0.059, 5, **noisy),
        *trained(0.5, FREE + 0.030, 5, **noisy),
    ]
    found = compare(sources(*runs))
    best = asked(found, "recommend")
    (others,) = (each.facts["arms"] for each in best.because if each.code == "as_good")
    assert {*best.arms, *others} == {"kl0.01", "kl0.02"}
    assert f"Not shown to differ from it: {others[0]}" in screen.terminal(found, "en")


def test_the_gap_at_the_end_by_hand():
    # Second differences 1, -2, 1, 0, 0, 3: their squares sum to 15, 6·6 of the variance.
    found = end_gap([0, 0, 1, 0, 0, 0, 0, 3.0], np.zeros(8))
    error, t = np.sqrt(15 / 36), scipy.stats.t(36**2 / (36 * 6 + 32 * 5 + 2 * 4))
    assert found.width.middle == 3.0
    assert found.width.at(0.95)[1] == pytest.approx(3.0 + t.ppf(0.975) * error)
    assert found.width.p == pytest.approx(2 * t.sf(3.0 / error))
    assert found.warnings == ("noise_from_bends",)
    assert "too_few_steps" in end_gap([0, 1, 0.0], [0, 0, 0.0]).warnings
    with pytest.raises(ValueError, match="three or more"):
        end_gap([0, 1.0], [0, 0.0])


def test_an_end_of_two_points_is_known_better_than_one_of_one():
    gap = np.tile([0.0, 1.0], 10)
    sd = np.sqrt((18 * 4) / (6 * 18))
    found = end_gap(gap, np.zeros(20))
    t = scipy.stats.t((6 * 18) ** 2 / (36 * 18 + 32 * 17 + 2 * 16))
    assert found.width.middle == 0.5
    assert found.width.at(0.95)[1] == pytest.approx(0.5 + t.ppf(0.975) * sd / np.sqrt(2))


def test_a_few_steps_decide_nothing_at_the_end():
    """However far apart: how much they bend is not known."""
    steps = STEPS[:5]
    pair = [trained(b, c, 1, steps=steps) for b, c in ((0.0, FREE[:5]), (0.1, FREE[:5] + 0.3))]
    end = asked(compare(sources(*pair[0], *pair[1])), "at_end")
    assert (end.verdict, codes(end)[-1]) == ("undecided", "too_few_steps")
    assert end.estimate == pytest.approx(0.3, abs=0.01)


def test_runs_that_share_no_step_are_worth_their_own_ends():
    shifted = STEPS + 50
    runs = [*trained(0.0, FREE, 2), *trained(0.1, LEASHED, 2, steps=shifted)]
    means = {
        arm.name: [mean for _, mean in run_means(arm, "accuracy")] for arm in gather(sources(*runs))
    }
    assert means["kl0.0"] == pytest.approx([FREE[-1]] * 2, abs=0.01)
    assert level(compare(sources(*runs))).estimate == pytest.approx(0.04, abs=0.01)


def test_where_items_tell_the_average_is_not_asked():
    def scored(runs, share):
        for each in runs:
            with_scores(each, np.arange(20) < 20 * share)
        return runs

    runs = [*scored(trained(0.0, FREE, 5), 0.5), *scored(trained(0.1, LEASHED, 5), 0.6)]
    found = compare(sources(*runs))
    assert level(found).items == 20
    assert not every(found, "average")


def test_an_average_that_decides_nothing_is_not_on_the_screen():
    rng = np.random.default_rng(4)
    wild = [rng.normal(0, 0.2, 8) * (STEPS < 700) for _ in range(5)]
    runs = [*trained(0.0, FREE, 5), *trained(0.1, FREE + 0.05, 5)]
    for each, noise in zip(runs[5:], wild, strict=True):
        each.series[0].values += noise
    found = compare(sources(*runs))
    assert (level(found).verdict, asked(found, "average").verdict) == ("better", "undecided")
    assert "And on average" not in screen.terminal(found, "en")


def test_the_end_is_one_step_in_ten():
    assert end_of(np.arange(9.0)).tolist() == [8]
    assert end_of(np.arange(19.0)).tolist() == [18]
    assert end_of(np.arange(20.0)).tolist() == [18, 19]


@pytest.mark.parametrize("steps", [8, 12, 60])
def test_curves_that_end_alike_are_rarely_told_apart(steps):
    rng = np.random.default_rng(steps)
    rise = 20 * (1 - np.exp(-3 * np.linspace(0, 1, steps)))
    found = [end_gap(*(rise + rng.normal(size=(2, steps)))).width.p < 0.05 for _ in range(1000)]
    assert np.mean(found) <= 0.07


def test_a_report_says_where(tmp_path):
    """One run each: the first screen has the end too, and tables say at which steps."""
    for name, curve in (("kl0", FREE), ("kl0.1", LEASHED)):
        noise = np.random.default_rng(len(name)).normal(0, 0.002, len(curve))
        rows = [f"{step:g},{value:.4f}" for step, value in zip(STEPS, curve + noise, strict=True)]
        (tmp_path / f"{name}.csv").write_text("\n".join(["step,accuracy", *rows]) + "\n")
    sources_ = [read(tmp_path)]
    made = of_sources(compare(sources_), "logs", "en")
    page = markdown_of(tables_of(made))
    verdict = page.split("## Verdict")[1].split("\n## ")[0]
    assert "accuracy over steps 100–800" in verdict
    assert re.search(r"And at the end\? better: kl0\.1 \(gap \+3\.\d+ points\)", verdict)
    (row,) = (line for line in page.splitlines() if line.startswith("| Faster?"))
    assert "step 500" in row
