"""From a gap to a verdict, by hand: margins, and what limits a claim."""

import math

import pytest

from kleash.compare.arms import gather
from kleash.compare.gaps import Gap
from kleash.compare.read import Setting
from kleash.compare.verdicts import Pair, judge, rounded_up
from kleash.stats import Interval, Width
from test_compare import HERE, run, sources

BASE = {"beta": 0.0, "lr": 1e-6, "steps": 100}


def pair(metric="eval_reward", ours=None, theirs=None, **asked):
    first = run("b", config=BASE | {"beta": 0.1} if ours is None else ours)
    arms = gather(sources(first, run("a", config=BASE if theirs is None else theirs)))
    return Pair(arms, arms[0], arms[1], metric, **asked)


def gap(low=-1.0, high=1.0, **more):
    middle = (low + high) / 2
    width = Width.stretched(Interval(middle, low, high, 0.95, 20))
    return Gap(middle, width, 20, more.pop("counted", "steps"), **more)


def codes(judged):
    return [each.code for each in judged.because]


def reason(judged, code):
    [found] = [each for each in judged.because if each.code == code]
    return found.facts


# --- margins


@pytest.mark.parametrize(
    ("metric", "mean", "asked", "margin"),
    [
        ("accuracy", 0.6, None, 0.01),
        ("accuracy", 0.6, 0.03, 0.03),
        ("eval_reward", 2.0, None, 0.1),
        ("eval_reward", -2.0, None, 0.1),
        ("eval_reward", 0.0, None, 0.01),
    ],
)
def test_the_margin_is_a_point_or_a_twentieth_of_the_baseline(metric, mean, asked, margin):
    judged = judge(pair(metric, margin=asked), gap(baseline_mean=mean))
    assert judged.margin == pytest.approx(margin, rel=1e-15)


def test_an_undecided_gap_says_which_margin_would_do():
    for low, high in ((-0.1472, 0.0861), (-0.0861, 0.1472)):
        needs = reason(judge(pair(), gap(low, high)), "needs_margin")["margin"]
        assert (needs.value, needs.gap) == (0.15, True)
    assert "needs_margin" not in codes(judge(pair(margin=2.0), gap()))


@pytest.mark.parametrize(
    ("value", "up"),
    [(0.1472, 0.15), (0.15, 0.15), (0.151, 0.16), (1234.0, 1300.0), (0.0, 0.0), (math.nan, 0.0)],
)
def test_a_margin_is_rounded_up_to_two_digits(value, up):
    assert rounded_up(value) == up


def test_a_loss_is_turned_and_a_reward_is_not():
    assert judge(pair("eval_reward"), gap(0.1, 0.5)).verdict == "better"
    assert judge(pair("val_loss"), gap(0.1, 0.5)).verdict == "worse"
    # What is printed stays first less second, whichever end is better.
    assert judge(pair("val_loss"), gap(0.1, 0.5)).low == pytest.approx(0.1)


# --- what limits a claim


def test_one_training_each_is_said_and_two_are_not_one():
    assert "one_run_per_arm" in codes(judge(pair(), gap(seeds=1)))
    assert "one_run_per_arm" not in codes(judge(pair(), gap(seeds=2, counted="seeds")))


def test_too_few_points_decide_nothing_but_do_not_mend_what_is_broken():
    judged = judge(pair(), gap(0.1, 0.5, too_few=True))
    assert (judged.verdict, judged.low, judged.p) == ("undecided", None, None)
    assert "too_few_steps" in codes(judged)
    assert judge(pair(), gap(0.1, 0.5)).verdict == "better"
    broken = judge(pair(), gap(0.1, 0.5, too_few=True, integrity=["two_histories"]))
    assert broken.verdict == "invalid"


@pytest.mark.parametrize("middle", [0.0, 0.3])
def test_an_interval_of_width_0_is_none(middle):
    """The same gap at every step, as of one log read twice, shows no noise."""
    same = Gap(middle, Width(middle, ((0.0, 9),)), 10, "steps")
    judged = judge(pair(), same)
    assert judged.verdict == ("undecided" if middle else "identical")
    assert (judged.low, judged.high, judged.p) == (None, None, None)
    assert "no_spread" in codes(judged)


def test_what_voids_a_verdict_is_told_from_data_and_from_findings():
    judged = judge(pair(flags=("stale_weights",)), gap(0.1, 0.5, integrity=["broken_items"]))
    assert judged.verdict == "invalid"
    told = [code for code in codes(judged) if code.startswith("integrity_")]
    assert told == ["integrity_broken_items", "integrity_stale_weights"]


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        ({}, BASE),
        (BASE | {"beta": 0.1}, {}),
        (BASE | {"lr": 2e-6, "batch_size": 8}, BASE | {"batch_size": 16}),
    ],
)
def test_without_both_configs_and_a_factor_there_is_no_claim_about_a_setting(ours, theirs):
    seeds = {"seeds": 5, "counted": "seeds"}
    assert judge(pair(), gap(0.1, 0.5, **seeds)).level == "L3"
    judged = judge(pair(ours=ours, theirs=theirs), gap(0.1, 0.5, **seeds))
    assert judged.level == "L1"
    assert "config_unknown" in codes(judged)


def test_another_length_matters_unless_curves_are_compared_at_the_same_steps():
    longer = pair(ours=BASE | {"beta": 0.1, "steps": 200})
    assert judge(longer, gap(counted="steps")).also_changed == ()
    assert judge(longer, gap(counted="items")).also_changed == ("steps",)


def test_sources_that_contradict_each_other_are_quoted_and_plain_changes_are_not():
    first = run("b", config=BASE | {"beta": 0.1, "batch_size": 8})
    first.config["lr"] = Setting(1e-6, HERE, others=(Setting(5e-6, HERE),))
    arms = gather(sources(first, run("a", config=BASE | {"batch_size": 16})))
    judged = judge(Pair(arms, arms[0], arms[1], "eval_reward"), gap())
    facts = reason(judged, "contradicted")
    assert (facts["arm"], facts["key"]) == ("b", "lr")
    assert sorted(facts["values"]) == [1e-6, 5e-6]
