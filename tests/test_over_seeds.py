"""Over seeds: for which items a verdict holds, and whether a setting is faster or steadier."""

import math
from dataclasses import replace

import numpy as np
import pytest

from kleash import stats
from kleash.compare.arms import gather
from kleash.compare.comparison import Wish, compare
from kleash.compare.items import scored
from kleash.compare.read import Scores
from kleash.report.words.verdicts import reasons, sentence
from kleash.seeds import generator
from kleash.stats import GapSpread
from kleash.study.looks import item_gaps
from made_crossed import HERE, SHARE, crossed_gaps, crossed_source
from test_compare import asked, codes, level, run, sources, with_curve, with_scores

CONFIG = {"lr": 1e-6, "steps": 100, "batch": 8}
STEPS = np.arange(10.0, 130.0, 10.0)


def judged(rng, spread, gap=0.0, seeds=5, items=200):
    drawn = crossed_gaps(rng, spread, {"1": gap}, seeds, items)
    return level(compare([crossed_source(drawn)], Wish("accuracy", "kl-none", 0.01, units=SHARE)))


# --- for which items


@pytest.mark.parametrize(
    "studies", [pytest.param(12, id="short"), pytest.param(1000, marks=pytest.mark.slow, id="full")]
)
def test_equal_arms_that_items_move_are_seldom_told_apart_by_compare(studies):
    """Ten seeds, 200 items, an SD of 0.2 between items: over seeds alone one study in four."""
    rng, apart, alone = generator("told apart"), 0, 0
    for _ in range(studies):
        found = judged(rng, GapSpread(0.01, 0.2, 0.3), seeds=10)
        apart += found.verdict.startswith(("better", "worse"))
        facts = next(each.facts for each in found.because if each.code == "on_items_like_these")
        alone += facts["low"].value > 0 or facts["high"].value < 0
    assert apart / studies <= (0.06 if studies > 100 else 0.2)
    assert alone / studies > 0.15


def test_a_verdict_says_for_which_items_it_holds():
    found = judged(generator("says"), GapSpread(0.01, 0.1, 0.3), gap=0.2)
    assert (found.verdict, found.level, found.n, found.items) == ("better", "L3", 5, 200)
    told = " ".join(reasons(found, "en"))
    assert (
        "it holds for items like these" in told
        and "for these items alone from 18.57 points to 23.59" in told
    )
    assert "结论适用于同类题目" in " ".join(reasons(found, "zh"))
    assert sentence(found, "en", factor=("leash.coefficient",)).endswith("[L3].")
    source = crossed_source(
        crossed_gaps(generator("means"), GapSpread(0.01, 0, 0), {"1": 0.2}, 5, 9)
    )
    for each in source.runs:
        [scores] = each.scores
        each.scores = []
        with_curve(each, [float(scores.values.mean())] * 2, metric="accuracy")
    means = level(compare([source], Wish("accuracy", "kl-none", 0.01, units=SHARE)))
    assert (means.verdict, means.level, means.items) == ("better", "L3", None)
    assert "on_these_items" in codes(means) and "on_items_like_these" not in codes(means)


def test_smaller_samples_inside_larger_ones_are_compared_on_what_both_have():
    drawn = crossed_gaps(generator("nested"), GapSpread(0.01, 0.1, 0.1), {"1": 0.0}, 5, 100)
    source = crossed_source(drawn)
    for each in source.runs:
        [scores] = each.scores
        if each.arm == "kl-none":  # measured on the first forty only, the easy ones
            each.scores = [
                replace(scores, items=scores.items[:40], values=scores.values[:40] + 0.0)
            ]
        else:
            each.scores = [replace(scores, values=scores.values - np.repeat([0.0, 1.0], [40, 60]))]
    found = level(compare([source], Wish("accuracy", "kl-none", 0.01, units=SHARE)))
    assert found.items == 40 and {"n": 40, "of": 100} in [each.facts for each in found.because]
    expected = (drawn["1"] - drawn["none"])[:, :40].mean()
    assert found.estimate == pytest.approx(expected)


def test_items_of_one_image_are_one_and_broken_ones_are_in_no_gap():
    drawn = crossed_gaps(generator("images"), GapSpread(0.01, 0.2, 0.1), {"1": 0.0}, 5, 40)
    source = crossed_source({name: np.repeat(table, 2, axis=1) for name, table in drawn.items()})
    lone = level(compare([source], Wish("accuracy", "kl-none", 0.01, units=SHARE)))
    for each in source.runs:
        [scores] = each.scores
        images = [f"image-{at // 2}" for at in range(80)]
        each.scores = [replace(scores, clusters=images)]
    grouped = level(compare([source], Wish("accuracy", "kl-none", 0.01, units=SHARE)))
    assert grouped.width.errors[0] == pytest.approx(lone.width.errors[0])
    assert grouped.width.errors[1] == (
        pytest.approx(lone.width.errors[1][0] * math.sqrt(2), rel=0.02),
        39,
    )
    source.runs[0].scores[0].values[3] = np.nan
    table = scored(gather([source]), "accuracy")
    assert np.isfinite(table.scores_ASN).sum(axis=2).tolist() == [[79, 80, 80, 80, 80]] * 2


def test_runs_that_give_the_same_answers_under_every_seed_are_identical():
    table = np.tile([0.0, 1.0], (5, 50))
    found = level(compare([crossed_source({"none": table, "1": table})], Wish("", "kl-none", 0.01)))
    assert (found.verdict, found.items) == ("identical", 100)
    assert found.bound == pytest.approx(1 - 0.05 ** (1 / 100))
    assert "100" in sentence(found, "en", factor=())


def test_few_differing_items_are_not_called_equivalent_however_many_seeds():
    none = np.tile([0.0, 1.0], (8, 100))
    ours = none.copy()
    ours[::2, 0] = 1.0  # one item of 200, under every other seed
    found = level(compare([crossed_source({"none": none, "1": ours})], Wish("", "kl-none", 0.01)))
    assert found.verdict == "undecided"
    wide = level(compare([crossed_source({"none": none, "1": ours})], Wish("", "kl-none", 0.03)))
    assert wide.verdict == "equivalent"


def test_further_items_are_the_next_step_where_seeds_would_not_do():
    drawn = crossed_gaps(generator("next"), GapSpread(0.001, 0.5, 0.05), {"1": 0.02}, 6, 60)
    found = compare([crossed_source(drawn)], Wish("accuracy", "kl-none", 0.02, units=SHARE))
    assert level(found).verdict == "undecided" and level(found).more_of == "items"
    [step] = [each for each in found.next if each.code in ("more_items", "more_seeds")]
    assert step.code == "more_items" and step.facts["more"] > 60


def test_a_trend_is_for_items_like_these_too():
    rng = generator("trend")
    drawn = crossed_gaps(rng, GapSpread(0.01, 0.3, 0.1), {"0.1": 0.0, "1": 0.0, "10": 0.0}, 5, 80)
    for table in drawn.values():
        table[:] = np.clip(table, 0, 1)
    found = compare([crossed_source(drawn)], Wish("accuracy", "kl-none", 0.01, units=SHARE))
    slope = asked(found, "trend")
    assert slope.level == "L3" and len(slope.width.errors) == 2 and slope.width.errors[1][0] > 0
    weights = np.array([-1.0, 0.0, 1.0]) / (2 * math.log2(10))
    by_hand = sum(
        w * drawn[name].mean() for w, name in zip(weights, ("0.1", "1", "10"), strict=True)
    )
    assert slope.estimate == pytest.approx(by_hand)


def test_a_study_that_adds_seeds_looks_at_items_like_these():
    gaps = np.tile([0.0, 0.0, 0.2, 0.0], (5, 1)) + np.linspace(0, 0.004, 5)[:, None]
    means = gaps.mean(axis=1), np.zeros(5)
    assert stats.look(*means).interval.low > 0
    found = stats.look(*means, items=gaps)
    assert found.interval.low < 0 < found.interval.high
    assert found.p == min(1.0, 4 * stats.crossed_seeds(gaps).p) and stats.look(*means).p < 0.05
    ours = {0: {"a": 0.5, "b": 1.0}, 1: {"a": 0.5}}
    theirs = {0: {"a": 0.25, "c": 0.0}, 1: {"a": 0.0, "b": 0.0}}
    assert item_gaps(ours, theirs, [0, 1]).tolist() == [[0.25], [0.5]]
    assert item_gaps(ours, {0: theirs[0]}, [0, 1]) is None


# --- faster and steadier


def climbing(rng, beta, seed, soon, noise=0.02, items=0, top=0.8):
    """A run that climbs from .2; its validation curve, or the scores behind it."""
    made = run(f"kl{beta:g}-s{seed}", config=CONFIG | {"beta": beta}, seed=seed, arm=f"kl{beta:g}")
    rate = 0.2 + (top - 0.2) * (1 - np.exp(-STEPS / soon))
    if not items:
        return with_curve(made, rate + rng.normal(0, noise, len(STEPS)), "accuracy", STEPS)
    for step, share in zip(STEPS, rate, strict=True):
        values = (rng.random(items) < share).astype(float)
        ids = [f"q{at}" for at in range(items)]
        made.scores.append(Scores("accuracy", ids, values, HERE, step=step, split="validation"))
    return made


def study(rng, soon, seeds=5, **more):
    """Runs of two arms; each seed has its own pace, which both share, and each run its own."""
    runs = []
    for seed in range(seeds):
        shared = rng.lognormal(0, 0.2)
        for beta, pace in zip((0.0, 0.1), soon, strict=True):
            own = pace * shared * rng.lognormal(0, 0.15)
            runs.append(climbing(rng, beta, seed, own, **more))
    return compare(sources(*runs), Wish("accuracy", "kl0"))


@pytest.mark.parametrize("items", [0, 100])
def test_a_setting_is_faster_over_seeds(items):
    found = asked(study(generator("faster"), (60, 15), items=items), "faster")
    assert (found.verdict, found.level, found.counted, found.n) == ("better", "L3", "seeds", 5)
    assert found.low < found.estimate < found.high < 0 and found.p < 0.05
    assert codes(found)[0] == "threshold_over_seeds"
    assert ("on_items_like_these" if items else "on_these_items") in codes(found)
    slower = asked(study(generator("slower"), (15, 60), items=items), "faster")
    assert slower.verdict == "worse" and slower.low > 0
    assert "随机种子的平均" in reasons(slower, "zh")[0]


def test_few_seeds_decide_nothing_and_one_is_told_as_before():
    few = asked(study(generator("few"), (60, 15), seeds=3), "faster")
    assert (few.level, few.n, few.high < 0) == ("L1", 3, few.verdict == "better")
    assert "too_few_seeds" in codes(few)
    one = asked(study(generator("one"), (60, 15), seeds=1), "faster")
    assert (one.level, one.counted) == ("L1", "steps") and "threshold_reached" in codes(one)
    lone = asked(study(generator("lone"), (60, 15), seeds=1, items=200), "faster")
    assert (lone.level, lone.counted) == ("L2", "items")
    steady = asked(study(generator("one"), (60, 15), seeds=1), "steadier")
    assert (steady.level, steady.counted) == ("L1", "steps")


def test_runs_that_never_arrive_count_at_the_end():
    rng, runs = generator("late"), []
    for seed in range(5):
        runs.append(climbing(rng, 0.0, seed, 20))
        runs.append(climbing(rng, 0.1, seed, 20, top=0.8 if seed else 0.3))
    found = asked(compare(sources(*runs), Wish("accuracy", "kl0")), "faster")
    facts = found.because[0].facts
    assert (facts["late"], facts["of"]) == (1, 10)
    assert "1 of 10 runs never arrive" in reasons(found, "en")[0]


def test_arrivals_are_known_to_one_evaluation_only():
    """All at the same step under every seed: even so, nothing finer than evaluations is claimed."""
    runs = [
        climbing(generator("same"), beta, seed, 20, 0.0) for beta in (0, 0.1) for seed in range(5)
    ]
    found = asked(compare(sources(*runs), Wish("accuracy", "kl0")), "faster")
    # 2.132 is t at .95: within the 10 steps between evaluations, so the 90 % interval is shown.
    assert (found.estimate, found.verdict) == (0, "equivalent")
    assert found.high == pytest.approx(2.132 * 10 / math.sqrt(30), abs=0.01)


def swinging(rng, sds, seeds=5):
    runs = []
    for seed in range(seeds):
        for beta, sd in zip((0.0, 0.1), sds, strict=True):
            own = sd * rng.lognormal(0, 0.2)
            runs.append(climbing(rng, beta, seed, 30, own))
    return asked(compare(sources(*runs), Wish("accuracy", "kl0")), "steadier")


def test_a_setting_is_steadier_over_seeds():
    found = swinging(generator("steady"), (0.1, 0.02))
    assert (found.verdict, found.level, found.counted, found.n) == ("better", "L3", "seeds", 5)
    assert 0 < found.low < found.estimate < found.high < 1 and found.margin == 1.25
    assert codes(found)[:2] == ["swings_over_seeds", "drawdowns_over_seeds"]
    assert swinging(generator("unsteady"), (0.02, 0.1)).verdict == "worse"
    assert swinging(generator("steady"), (0.1, 0.02), seeds=2).verdict == "undecided"


@pytest.mark.slow
@pytest.mark.parametrize("seeds", [4, 5, 10])
@pytest.mark.parametrize("items", [0, 60])
def test_equal_settings_are_seldom_called_faster_or_steadier(seeds, items):
    rng, fast, steady, studies = generator("equal", seeds, items), 0, 0, 300
    for _ in range(studies):
        found = study(rng, (30, 30), seeds=seeds, items=items)
        fast += asked(found, "faster").p < 0.05
        steady += asked(found, "steadier").p < 0.05
    # 5 % of 300, and what luck adds to it less than once in a hundred times.
    assert fast <= 25 and steady <= 25


def test_arms_that_share_no_seed_have_no_table_of_both():
    alone = [with_scores(run(f"kl{at}-s{at}", seed=at), np.arange(9) < 5) for at in range(2)]
    assert scored(gather(sources(*alone)), "accuracy") is None
