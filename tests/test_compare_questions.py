"""The other questions of comparing: trends, endings, many arms, speed, noise.

Sources are made up here; the numbers expected are worked out by hand or by a plain formula.
"""

import numpy as np
import pytest

from kleash import stats
from kleash.compare.arms import gather
from kleash.compare.comparison import compare
from kleash.compare.curves import floor_of
from kleash.compare.read import Scores, Where
from kleash.report import screen
from kleash.report.words import gap_text
from kleash.report.words.verdicts import sentence
from test_compare import asked, codes, run, seeded, sources, with_curve, with_scores

HERE = Where("made up")
SOME_ARM_IS_BETTER = ("level", "trend", "pairs", "recommend")


def every(found, question):
    return [each for each in found.verdicts if each.question == question]


def fact(judged, code, name):
    return next(each for each in judged.because if each.code == code).facts[name]


def leashed(name, beta, **more):
    return run(name, config={"beta": beta, "lr": 1e-6} | more)


def scored(made, values, *, step=10.0, shots=1, repeats=1, where=HERE, split="test"):
    """Scores of items q0, q1, …; `values` is [item], or [item, try] with `repeats`."""
    table = np.asarray(values, dtype=float).reshape(-1, repeats)
    items = [f"q{at}" for at in range(len(table)) for _ in range(repeats)]
    made.scores.append(Scores("accuracy", items, table.ravel(), where, step, shots, split))
    return made


# --- what the coefficient did


def test_a_trend_over_seeds_is_the_slope_per_doubling():
    """Each doubling adds 0.1 to every seed, and no leash is 0.5 below."""
    rng = np.random.default_rng(0)
    noise = rng.normal(0, 0.01, 5)
    runs = [
        with_curve(
            run(f"kl{beta}-s{seed}", config={"beta": beta, "lr": 1e-6}, seed=seed),
            np.full(4, height + noise[seed] + rng.normal(0, 0.002)),
        )
        for beta, height in ((0.0, 0.6), (0.1, 1.0), (0.2, 1.1), (0.4, 1.2))
        for seed in range(5)
    ]
    found = compare(sources(*runs))
    slope = asked(found, "trend")
    assert "trend_over" in codes(slope)
    assert slope.arms == ("kl0.0", "kl0.1", "kl0.2", "kl0.4")
    assert (slope.verdict, slope.level, slope.n) == ("better", "L3", 5)
    assert slope.estimate == pytest.approx(0.1, abs=0.003)
    assert slope.adjusted_p >= slope.p
    assert "per doubling" in sentence(slope, "en", factor=())


def test_a_trend_over_coefficients_alone_may_be_one_of_anything_else():
    runs = [
        with_curve(
            run(f"kl{beta}-s{seed}", config={"beta": beta}, seed=seed), [beta * (1 + seed / 50)] * 4
        )
        for beta in (0.1, 0.2, 0.4)
        for seed in range(5)
    ]
    slope = asked(compare(sources(*runs)), "trend")
    assert (slope.verdict, slope.level) == ("better", "L1")
    assert {"trend_over_named", "config_unknown"} <= set(codes(slope))


def test_a_trend_of_three_seeds_or_of_means_alone_is_only_told():
    rng = np.random.default_rng(0)
    few = [r for beta, up in ((0.1, 0), (0.2, 1), (0.4, 2)) for r in seeded(up, 3, rng, beta)]
    judged = asked(compare(sources(*few)), "trend")
    assert (judged.level, judged.low > 0) == ("L1", judged.verdict == "better")
    assert "too_few_seeds" in codes(judged)
    alone = [
        with_curve(leashed(f"r{b}", b), [1 + 3 * np.log2(b / 0.1)] * 9) for b in (0.1, 0.2, 0.4)
    ]
    judged = asked(compare(sources(*alone)), "trend")
    assert judged.estimate == pytest.approx(3.0)
    assert (judged.verdict, judged.level, judged.low, judged.p) == ("undecided", "L1", None, None)
    assert "no_replicates" in codes(judged)


def test_arms_that_differ_in_more_than_the_coefficient_are_in_no_trend():
    values = np.linspace(1, 2, 9)
    here = {"train_files": "here.json"}
    alike = [with_curve(leashed(f"r{b}", b, **here), values + b) for b in (0.1, 0.2, 0.4)]
    other = with_curve(leashed("other", 0.8, train_files="elsewhere.json"), values + 9)
    told = asked(compare(sources(*alike, other)), "trend")
    assert told.arms == ("r0.1", "r0.2", "r0.4")
    twice = with_curve(leashed("twice", 0.2, frozen="some"), values)
    assert not every(compare(sources(*alike[:2], twice)), "trend")


def test_a_lower_loss_with_more_leash_is_a_better_trend():
    rng = np.random.default_rng(1)
    runs = [
        with_curve(
            run(f"kl{beta}-s{seed}", config={"beta": beta, "lr": 1e-6}, seed=seed),
            np.full(4, 3 - np.log2(beta / 0.1) + rng.normal(0, 0.01)),
            "val_loss",
        )
        for beta in (0.1, 0.2, 0.4)
        for seed in range(4)
    ]
    judged = asked(compare(sources(*runs)), "trend")
    assert (judged.verdict, judged.estimate) == ("better", pytest.approx(-1, abs=0.03))


def two(ours, theirs, metric="val_reward"):
    return sources(
        with_curve(leashed("without", 0.0), theirs, metric),
        with_curve(leashed("with", 0.1), ours, metric),
    )


# --- how a curve ends


def test_a_curve_that_falls_and_stays_down_has_collapsed():
    rng = np.random.default_rng(6)
    up = 1 + np.linspace(0, 1, 40) + rng.normal(0, 0.02, 40)
    down = up.copy()
    down[30:] -= 1.0
    found = compare(two(down, up))
    ends = {each.arms[0]: each for each in every(found, "collapse")}
    assert ends["with"].verdict == "worse"
    assert fact(ends["with"], "collapsed", "step") == 31
    assert ends["without"].verdict == "undecided"
    out = screen.terminal(found, "en")
    assert "Did it collapse? with: yes" in out
    assert "Did it collapse? without" not in out


def test_a_fall_by_less_than_a_quarter_is_no_collapse():
    rng = np.random.default_rng(6)
    up = 1 + np.linspace(0, 1, 40) + rng.normal(0, 0.02, 40)
    found = compare(two(up - np.where(np.arange(40) >= 30, 0.4, 0.0), up))
    (fell,) = (each for each in every(found, "collapse") if each.arms == ("with",))
    assert (fell.verdict, fell.estimate) == ("worse_within_margin", pytest.approx(-0.3, abs=0.15))
    assert "Did it collapse? with: no, but it fell from its best" in screen.terminal(found, "en")


def test_a_slow_fall_is_judged_by_how_deep_it_gets():
    """When it is noticed it has lost less than a quarter, in the end far more."""
    rng = np.random.default_rng(6)
    up = 1 + np.linspace(0, 1, 40) + rng.normal(0, 0.02, 40)
    found = compare(two(up - np.clip(np.arange(40) - 28, 0, None) * 0.1, up))
    (fell,) = (each for each in every(found, "collapse") if each.arms == ("with",))
    assert fact(fell, "collapsed", "drop").value < 0.25 * fact(fell, "collapsed", "best").value
    assert (fell.verdict, fell.estimate) == ("worse", -fact(fell, "collapsed", "deepest").value)
    assert fact(fell, "collapsed", "deepest").value == pytest.approx(0.85, abs=0.15)


def test_a_collapse_is_looked_for_in_every_training():
    rng = np.random.default_rng(6)
    up = 1 + np.linspace(0, 1, 40)
    runs = [
        with_curve(
            run(f"kl{beta}-s{seed}", config={"beta": beta, "lr": 1e-6}, seed=seed),
            up + rng.normal(0, 0.02, 40) - lost * (np.arange(40) >= 30),
        )
        for beta, losses in ((0.1, (0.0, 1.0, 0.4)), (0.2, (0.0, 0.0, 0.0)))
        for seed, lost in enumerate(losses)
    ]
    found = compare(sources(*runs))
    ends = {each.arms[0]: each for each in every(found, "collapse")}
    assert (ends["kl0.1"].verdict, ends["kl0.2"].verdict) == ("worse", "undecided")
    counts = {name: fact(ends["kl0.1"], "runs_that_fell", name) for name in ("fell", "deep", "of")}
    assert counts == {"fell": 2, "deep": 1, "of": 3}


def test_a_loss_that_rises_again_has_collapsed():
    rng = np.random.default_rng(6)
    loss = 3 - np.linspace(0, 1, 40) + rng.normal(0, 0.02, 40)
    worse = loss + np.where(np.arange(40) >= 30, 1.0, 0.0)
    found = compare(two(worse, loss, "val_loss"))
    judged = next(each for each in every(found, "collapse") if each.arms == ("with",))
    assert judged.verdict == "worse"
    assert judged.estimate == pytest.approx(0.9, abs=0.3)


def test_one_training_that_broke_off_does_not_end_the_curves_of_all():
    rng = np.random.default_rng(3)
    runs = []
    for beta in (0.0, 0.1):
        for seed in range(5):
            long = 3 if (beta, seed) == (0.0, 2) else 12
            values = np.linspace(0, 1 + beta, 12)[:long] + rng.normal(0, 0.01, long)
            made = run(f"kl{beta}-s{seed}", config={"beta": beta, "lr": 1e-6}, seed=seed)
            runs.append(with_curve(made, values))
    found = compare(sources(*runs))
    for question in ("faster", "steadier"):
        (judged,) = every(found, question)
        assert (judged.counted, judged.n, fact(judged, "seeds_left_out", "n")) == ("seeds", 4, 1)


# --- many arms


def six(rng, shift=0.0, items=300):
    """Six arms on the same items; the last is better by `shift`, the others are equal."""
    easy = rng.normal(0.5, 0.2, items)
    return [
        scored(leashed(f"kl{arm}", arm / 10), rng.random(items) < easy + shift * (arm == 5))
        for arm in range(6)
    ]


def test_arms_on_the_same_items_are_adjusted_together():
    """Holm's p is at least the plain one; an interval leaves out 0 exactly when it is small."""
    found = compare(sources(*six(np.random.default_rng(7), 0.3)))
    levels = {each.arms[0]: each for each in every(found, "level")}
    assert levels["kl5"].verdict == "better"
    for each in (*levels.values(), *every(found, "pairs")):
        assert each.adjusted_p >= each.p
        assert (each.adjusted_p < 0.05) == (each.low > 0 or each.high < 0)
    pairs = {each.arms: each for each in every(found, "pairs")}
    assert len(pairs) == 10  # of five arms beside the baseline
    assert pairs["kl1", "kl5"].verdict == "worse"
    assert pairs["kl1", "kl2"].verdict == "undecided"
    assert pairs["kl1", "kl2"].low < 0 < pairs["kl1", "kl2"].high


def test_without_an_arm_that_differs_from_the_baseline_no_pair_is_decided():
    """Two arms on either side of the baseline differ from each other, and neither from it."""
    rng = np.random.default_rng(8)
    base = (rng.random(400) < 0.5).astype(float)
    up, down = base.copy(), base.copy()
    up[np.flatnonzero(base == 0)[:11]] = 1
    up[np.flatnonzero(base == 1)[:3]] = 0
    down[np.flatnonzero(base == 1)[20:31]] = 0
    down[np.flatnonzero(base == 0)[30:33]] = 1
    arms = [("a", 0.0, base), ("b", 0.1, up), ("c", 0.2, down)]
    found = compare(sources(*(scored(leashed(n, b), v) for n, b, v in arms)))
    assert not any(each.verdict.startswith(("better", "worse")) for each in every(found, "level"))
    pair = asked(found, "pairs")
    assert (pair.verdict, pair.low, pair.p) == ("undecided", None, None)
    assert "baseline_first" in codes(pair)


def test_clusters_and_other_items_go_back_to_holm():
    runs = six(np.random.default_rng(9), 0.3)
    runs[2].scores[0] = Scores(
        "accuracy",
        runs[2].scores[0].items[:200],
        runs[2].scores[0].values[:200],
        HERE,
        10,
        1,
        "test",
    )
    found = compare(sources(*runs))
    family = [e for e in found.verdicts if e.question in ("level", "trend")]
    adjusted = stats.holm([each.p for each in family])
    assert [each.adjusted_p for each in family] == pytest.approx(adjusted)


def test_pairs_over_seeds_are_adjusted_by_holm():
    rng = np.random.default_rng(10)
    runs = [
        each for arm, up in ((0.0, 0), (0.1, 0.3), (0.2, 0.6)) for each in seeded(up, 5, rng, arm)
    ]
    found = compare(sources(*runs))
    pair = asked(found, "pairs")
    assert (pair.arms, pair.verdict, pair.level) == (("kl0.1", "kl0.2"), "worse", "L3")
    assert pair.adjusted_p >= pair.p


# --- six equal arms


def study(rng, seeds, run_sd, items=100):
    """Six arms of one truth: their runs differ by chance, and so do the scores of their items."""
    easy = rng.normal(0.6, 0.15, items)
    runs = []
    for arm in range(6):
        for seed in range(seeds):
            chance = np.clip(easy + rng.normal(0, run_sd), 0.02, 0.98)
            made = run(f"kl{arm / 10}-s{seed}", config={"beta": arm / 10, "lr": 1e-6}, seed=seed)
            runs.append(with_scores(made, rng.random(items) < chance))
    return compare(sources(*runs))


def called_better(seeds, run_sd, studies):
    """In how many studies anything says that some arm is better or worse."""
    wrong = 0
    for number in range(studies):
        found = study(np.random.default_rng([number, seeds]), seeds, run_sd)
        wrong += any(
            each.verdict.startswith(("better", "worse"))
            for each in found.verdicts
            if each.question in SOME_ARM_IS_BETTER
        )
    return wrong


# The noise of a mean over 100 items is 0.05: runs differ by twice that, and by a fifth.
@pytest.mark.parametrize("run_sd", [0.1, 0.01])
@pytest.mark.parametrize("seeds", [3, 5, 10])
def test_six_equal_arms_are_rarely_told_apart_by_the_whole_of_compare(seeds, run_sd):
    # At exactly 5 %, more than 4 of 20 come less than once in a hundred times.
    assert called_better(seeds, run_sd, 20) <= 4


@pytest.mark.slow
@pytest.mark.parametrize("seeds", [3, 5, 10])
def test_six_equal_arms_are_told_apart_in_at_most_five_percent_of_studies(seeds):
    # One noise with 5 seeds and 4,000 studies: 4.35 %. 1,000 of them alone may pass 50 by chance.
    assert sum(called_better(seeds, run_sd, 1_000) for run_sd in (0.1, 0.01)) <= 100


# --- faster, by items


def climbing(rng, name, beta, soon, items=200):
    made = leashed(name, beta)
    for step in range(0, 100, 10):
        rate = 0.2 + 0.6 * (1 - np.exp(-step / soon))
        scored(made, rng.random(items) < rate, step=float(step))
    return made


def test_speed_by_items_has_an_interval_and_a_verdict():
    rng = np.random.default_rng(11)
    found = compare(sources(climbing(rng, "slow", 0.0, 60), climbing(rng, "fast", 0.1, 10)))
    judged = asked(found, "faster")
    assert (judged.verdict, judged.level, judged.n) == ("better", "L2", 200)
    assert judged.low <= judged.estimate <= judged.high < 0
    assert "threshold_half_way" in codes(judged)
    best = asked(found, "best_step")
    assert "out_of_bag" in codes(best)


def test_equal_speeds_are_rarely_told_apart():
    wrong = 0
    for number in range(20):
        rng = np.random.default_rng([number, 12])
        pair = sources(climbing(rng, "a", 0.0, 30, 60), climbing(rng, "b", 0.1, 30, 60))
        wrong += asked(compare(pair), "faster").verdict in ("better", "worse")
    assert wrong <= 4  # of 20 at exactly 5 %: more comes less than once in a hundred times


# --- the noise of evaluating


def replicate(made):
    return gather(sources(made, leashed("other", 0.9)))[0].replicates[0]


CURVE = np.array([1.0, 1.2, 0.9, 1.3, 1.0])


def test_noise_floors_are_taken_in_their_order():
    values = np.tile([0.0, 1.0], 50)
    by_items = scored(leashed("a", 0.0), values)
    floor = floor_of(replicate(by_items), "accuracy", CURVE, 0.5)
    assert (floor.way, floor.sd) == ("items", pytest.approx(0.05))
    tried = scored(leashed("a", 0.0), np.tile([[0.0, 1.0]], (50, 1)), repeats=2)
    floor = floor_of(replicate(tried), "accuracy", CURVE, 0.5)
    assert (floor.way, floor.sd) == ("generations", pytest.approx(np.sqrt(50 * 0.5) / 50))
    again = leashed("a", 0.0)
    means = [0.50, 0.52, 0.48, 0.54, 0.46]
    for at, mean in enumerate(means):
        scored(again, np.arange(100) < 100 * mean, where=Where(f"again-{at}.jsonl"))
    floor = floor_of(replicate(again), "accuracy", CURVE, 0.5)
    assert (floor.way, floor.sd) == ("repeats", pytest.approx(np.std(means, ddof=1)))


def test_without_items_the_curve_tells_and_a_declared_floor_comes_last():
    bare = replicate(with_curve(leashed("a", 0.0), CURVE, "accuracy"))
    bends = np.diff(CURVE, 2)
    floor = floor_of(bare, "accuracy", CURVE, 0.5)
    assert floor.way == "second_differences"
    assert floor.sd == pytest.approx(np.sqrt(bends @ bends / 18))
    assert floor_of(bare, "accuracy", np.ones(5), 0.5).way == "declared"
    assert floor_of(bare, "accuracy", np.ones(5)) is None


# --- one screen


def test_the_screen_is_one_screen_and_says_what_is_left_out():
    rng = np.random.default_rng(13)
    runs = [
        with_curve(leashed(f"arm{a}", a / 10, foo=a, ent_coef=a), rng.normal(1, 0.1, 30))
        for a in range(12)
    ]
    found = compare(sources(*runs))
    for language in ("en", "zh"):
        rows = screen.terminal(found, language).splitlines()
        assert len(rows) <= screen.SCREEN
        assert any("--json" in row for row in rows)


def test_findings_of_one_kind_share_a_line_on_the_screen():
    from kleash.compare.checks import Found

    found = compare(two(np.arange(9.0), np.arange(9.0) + 1))
    kind = {"severity": "error", "where": (Where("a.md", 3),)}
    found.findings = [
        Found(code="diverged", facts={"arm": f"r{at}", "metric": "kl"}, **kind) for at in range(7)
    ]
    out = screen.terminal(found, "en")
    assert out.count("r0") == 1
    assert "and 6 more of this kind" in " ".join(out.split())


def test_gaps_in_steps_are_whole_where_they_are_large():
    assert gap_text(33.333, -114.337, 181.003, "step", "en") == "+33 [-114, +181] steps"
    assert gap_text(0.5, None, None, "epoch", "en") == "+0.5 epochs"


def test_a_value_that_names_its_arm_is_no_difference():
    named = [
        with_curve(leashed(f"kl{b}", b, ckpt=f"kl{b}/grpo_epoch1.pt"), np.arange(9.0))
        for b in (0.1, 0.2)
    ]
    assert compare(sources(*named)).confounds == []
    told = [
        with_curve(leashed(f"kl{b}", b, ckpt=f"rce_{b}.pt"), np.arange(9.0)) for b in (0.1, 0.2)
    ]
    assert [each.key for each in compare(sources(*told)).confounds] == ["ckpt"]
