"""What to run next, and at what cost: each step where it helps, and nowhere else."""

import pytest

from kleash.compare.arms import gather
from kleash.compare.comparison import compare
from kleash.compare.matrix import Matrix, matrix
from kleash.compare.next_steps import next_steps
from kleash.compare.read import Cell, Number
from kleash.compare.records import Because, Confound, Judged
from kleash.report.words import say
from test_compare import HERE, run, sources, with_curve

BASE = {"beta": 0.0, "lr": 1e-6, "steps": 100, "n_gpus": 4}


def arms(ours=None, seconds=(None, None)):
    first = run("b", config=BASE | {"beta": 0.1} | (ours or {}))
    second = run("a", config=BASE)
    first.seconds, second.seconds = seconds
    return gather(sources(first, second))


def judged(word="undecided", level="L3", **more):
    given = {"question": "level", "counted": "seeds", "n": 5} | more
    question = given.pop("question")
    return Judged(question, "accuracy", "fraction", ("b", "a"), word, level, **given)


def steps(verdicts, found=None, confounds=(), cells=None):
    found = found or arms()
    return next_steps(found, found[1], verdicts, confounds, cells or matrix([]))


def codes(verdicts, **more):
    return [step.code for step in steps(verdicts, **more)]


def only(made, code):
    [step] = [each for each in made if each.code == code]
    return step


def test_where_all_is_decided_by_seeds_nothing_is_left_to_run():
    assert codes([judged("better")]) == []


def test_without_an_outcome_the_first_thing_is_to_measure_one():
    assert "measure_outcome" in codes([])
    assert "measure_outcome" not in codes([judged()])


def test_more_seeds_are_asked_for_only_where_seeds_are_what_is_missing():
    made = steps([judged(more=7), judged(more=3), judged("better", more=90)])
    assert [step.code for step in made] == ["more_seeds"]  # and not so many items
    assert made[0].facts == {"more": 7, "arms": ["b", "a"]}
    assert "more_seeds" not in codes([judged(level="L2", more=7)])
    assert "more_seeds" not in codes([judged()])  # nobody knows how many


def test_fewer_than_four_seeds_are_first_made_four():
    assert "seeds" in codes([judged(n=3)])
    assert "seeds" not in codes([judged(n=4)])
    assert "seeds" in codes([judged(counted="items", level="L2", n=800)])


def test_an_arm_that_diverged_is_trained_otherwise_and_not_more_often():
    runs = run("b", seed=0, config=BASE | {"beta": 0.1}), run("a", seed=0, config=BASE)
    for each, late in zip(runs, (float("nan"), 0.3), strict=True):
        with_curve(with_curve(each, [0.1, 0.2, 0.2, *[late] * 5]), [1.0] * 3 + [late] * 5, "loss")
    made = compare(sources(*runs)).next
    step = only(made, "after_divergence")
    assert (step.facts["arm"], step.facts["step"]) == ("b", 3)
    assert not {"seeds", "more_seeds", "score_checkpoints", "measure_outcome"} & {
        each.code for each in made
    }
    assert "learning rate" in say(step.code, step.facts, "en")


def test_seeds_are_no_advice_beside_an_arm_that_diverged():
    """Two arms are left to compare: they are asked for seeds, and not the one that is lost."""
    lost = judged("diverged", level="L1", counted="", n=None)
    assert codes([lost]) == []
    assert codes([lost, judged(more=7)]) == ["more_seeds"]


def test_scores_of_items_come_before_more_of_them():
    lone = {"counted": "steps", "n": 9}
    assert "score_items" in codes([judged(level="L1", margin=0.01, **lone)])
    assert "score_checkpoints" in codes([judged(level="L1", **lone)])
    by_item = {"counted": "items", "n": 800, "level": "L2"}
    assert only(steps([judged(more=300, **by_item)]), "more_items").facts == {"more": 300}
    assert "more_items" not in codes([judged("better", more=300, **by_item)])


def test_outputs_that_are_identical_ask_for_the_weights_to_be_looked_at():
    made = steps([judged("identical")])
    assert only(made, "check_weights").facts == {"arms": ["a", "b"]}
    assert "check_weights" not in codes([judged("equivalent")])


def test_unknown_configs_are_told_first():
    unknown = judged(because=(Because("config_unknown"),), more=7)
    made = steps([unknown])
    assert (made[0].code, made[0].hours) == ("tell_configs", (0, 0))
    aside = judged(question="steadier", because=(Because("config_unknown"),))
    assert "tell_configs" not in codes([judged(), aside])


def test_a_contradiction_is_settled_once_for_all_arms_that_have_it():
    def contradicted(arm, key, *values):
        return Confound("contradicted", key, (arm,), values, ("x", "y"))

    found = [
        contradicted("a", "lr", 1, 2),
        contradicted("b", "lr", 1, 2),
        contradicted("a", "lr", 1, 3),
        Confound("changed", "epochs", ("a", "b"), (1, 2), ("x",)),
    ]
    made = [step for step in steps([judged("better")], confounds=found) if step.code == "settle"]
    assert [(step.facts["arms"], step.facts["values"]) for step in made] == [
        (["a", "b"], [1, 2]),
        (["a"], [1, 3]),
    ]
    assert {step.hours for step in made} == {(0, 0)}


def cells(*commands, known=0):
    told = run("a", config=BASE, arm="a")
    for at, command in enumerate(commands):
        number = Number(None, "missing", HERE)
        told.cells.append(Cell("accuracy", number, shots=at, command=command))
    for at in range(known):
        told.cells.append(Cell("accuracy", Number(0.5, "known", HERE), shots=90 + at))
    made = matrix(sources(told))
    assert isinstance(made, Matrix)
    return made


def test_missing_cells_are_filled_with_the_commands_of_a_document():
    made = only(steps([judged("better")], cells=cells("x", "y", "z", "w", "x")), "fill_cells")
    assert made.facts == {"missing": 5, "commands": ["x", "y", "z"], "of": 4}
    by_hand = only(steps([judged("better")], cells=cells("", known=2)), "fill_cells_by_hand")
    assert by_hand.facts["missing"] == 1
    assert codes([judged("better")], cells=cells(known=3)) == []


def test_a_confounded_pair_asks_for_the_one_run_that_tells_them_apart():
    found = arms({"lr": 5e-6}, seconds=(7200.0, 3600.0))
    made = only(steps([judged(also_changed=("lr", "gone"))], found), "unconfound")
    assert (made.facts["arm"], made.facts["baseline"]) == ("b", "a")
    assert made.facts["coefficient"] == 0.1
    assert made.facts["factor"] == ["leash.coefficient"]
    assert made.facts["keep"] == {"lr": 1e-6, "gone": None}
    assert made.hours == (2.0, 2.0)  # one run of that arm


# --- cost


def test_seeds_cost_two_trainings_of_each_arm_by_the_clock():
    made = only(steps([judged(n=1)], arms(seconds=(7200.0, 3600.0))), "seeds")
    assert made.hours == pytest.approx((6.0, 6.0))
    assert made.devices == 4
    assert made.facts["baseline"] == "a"
    assert only(steps([judged(n=1)], arms()), "seeds").hours is None


def test_an_arm_without_times_is_taken_to_cost_what_the_others_do():
    made = only(steps([judged(n=1)], arms(seconds=(7200.0, None))), "seeds")
    assert made.hours == pytest.approx((8.0, 8.0))


def test_more_seeds_cost_both_arms():
    made = only(steps([judged(more=3)], arms(seconds=(3600.0, 3600.0))), "more_seeds")
    assert made.hours == pytest.approx((6.0, 6.0))


def test_times_of_steps_stand_in_for_the_clock():
    """36 s in the middle, 100 steps: an hour. A printed range gives two ends."""
    timed = with_curve(run("b", config=BASE | {"beta": 0.1}), [36, 30, 900], metric="step_time")
    found = gather(sources(timed, run("a", config=BASE)))
    assert only(steps([judged(n=1)], found), "seeds").hours == pytest.approx((4.0, 4.0))
    ranged = run("b", config=BASE | {"beta": 0.1})
    number = Number(None, "known", HERE, low=36.0, high=72.0)
    ranged.cells.append(Cell("step_time", number))
    found = gather(sources(ranged, run("a", config=BASE)))
    assert only(steps([judged(n=1)], found), "seeds").hours == pytest.approx((4.0, 8.0))
