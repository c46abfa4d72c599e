"""Which runs are one arm, what is kept of each, and what else differs between two. By hand."""

from dataclasses import replace

import numpy as np
import pytest

from kleash.compare.arms import Curve, gather
from kleash.compare.confounds import confounds, contradictions, factor
from kleash.compare.read import Setting
from test_compare import HERE, run, sources, with_curve

BASE = {"beta": 0.0, "lr": 1e-6, "batch_size": 16}


# --- arms


def test_seeds_are_replicates_and_each_keeps_its_run():
    runs = [run(f"kl0.1-s{seed}", config=BASE | {"seed": seed}) for seed in (3, 4)]
    [arm] = gather(sources(*runs))
    assert (arm.name, [each.seed for each in arm.replicates]) == ("kl0.1", [3, 4])
    assert [each.runs for each in arm.replicates] == [[runs[0]], [runs[1]]]


def test_a_seed_told_twice_is_one_training():
    twice = [run("kl0.1-s3", config=BASE, seed=3), run("kl0.1-s3", config=BASE, seed=3)]
    [arm] = gather([*sources(twice[0]), *sources(twice[1])])
    assert [each.runs for each in arm.replicates] == [twice]


def test_a_name_without_kl_is_a_coefficient_of_zero():
    [arm] = gather(sources(run("no-kl")))
    assert arm.coefficient == 0.0
    [arm] = gather(sources(run("plain")))
    assert arm.coefficient is None


@pytest.mark.parametrize(("other", "histories"), [(1.84, 0), (1.85, 1)])
def test_tellings_agree_within_what_the_coarser_prints(other, histories):
    """1.8305 and 1.84 may be one number in two decimals, 1.8305 and 1.85 may not."""
    fine = with_curve(run("a-s3", config=BASE, seed=3), [1.8305, 2.0])
    coarse = with_curve(run("a-s3", config=BASE, seed=3), [other, 2.0, 2.5])
    coarse.series[0] = replace(coarse.series[0], decimals=2)
    [arm] = gather([*sources(fine), *sources(coarse)])
    curve = arm.replicates[0].curve("eval_reward")
    assert len(curve.others) == histories
    assert curve.values.tolist() == ([1.8305, 2.0] if histories else [1.8305, 2.0, 2.5])


def test_a_resumed_run_keeps_the_later_telling_and_nothing_beyond_the_restart():
    again = with_curve(run("a"), [1.0, 2.0, 3.0, 9.0, 8.0], steps=[0, 1, 2, 1, 3])
    [arm] = gather(sources(again))
    curve = arm.replicates[0].curve("eval_reward")
    assert (curve.steps.tolist(), curve.values.tolist()) == ([0, 1, 3], [1, 9, 8])


def test_points_of_another_telling_fill_gaps_and_replace_nothing():
    curve = Curve("reward", "step", np.array([1.0, 3.0]), np.array([10.0, 30.0]))
    curve.take(np.array([1.0, 2.0, 4.0]), np.array([11.0, 20.0, 40.0]))
    assert curve.steps.tolist() == [1, 2, 3, 4]
    assert curve.values.tolist() == [10, 20, 30, 40]


# --- what else differs


def pair(ours, theirs):
    return gather(sources(run("b", config=ours), run("a", config=theirs)))


def test_what_follows_from_the_coefficient_is_no_second_factor():
    found = pair(BASE | {"beta": 0.1, "use_kl_loss": True}, BASE | {"use_kl_loss": False})
    assert factor(*found) == ("leash.coefficient",)
    assert confounds(*found) == []


def told(*values):
    made = run("b", config=BASE | {"beta": 0.1})
    made.config["base_checkpoint"] = Setting(
        values[0], HERE, others=tuple(Setting(value, HERE) for value in values[1:])
    )
    [arm] = gather(sources(made))
    [key] = [key for key in arm.settings if "base" in key or "start" in key]
    return contradictions(arm, key)


def test_two_wordings_may_mean_one_thing_and_two_numbers_may_not():
    assert told("rce epoch 5") == []
    assert told("rce epoch 5", "kl012/rce_epoch5.pt") == []
    [found] = told("rce epoch 5", "rce epoch 4")
    assert (found.kind, found.arms) == ("contradicted", ("b",))
    assert set(found.values) == {"rce epoch 5", "rce epoch 4"}
    assert told(5, 15) and told("5", 15)
