"""Which scores of a run a comparison takes."""

from __future__ import annotations

import numpy as np

from kleash.compare.arms import Arm, Replicate
from kleash.compare.items import latest, run_means
from kleash.compare.read import Scores, Where


def scores(split: str, step: float, values: list[float], shots: int = 2) -> Scores:
    items = [f"item-{place}" for place in range(len(values))]
    where = Where("scores.jsonl", 1)
    return Scores("accuracy", items, np.array(values), where, step, shots, split)


def arm(name: str, *measured: Scores) -> Arm:
    run = Replicate(name, 0, scores=list(measured))
    return Arm(name, [name], [run])


def test_the_test_counts_before_validation_however_late_that_was() -> None:
    one = arm("a", scores("validation", 300, [1.0, 1.0]), scores("test", 100, [0.0, 0.5]))
    other = arm("b", scores("validation", 300, [0.0, 0.0]), scores("test", 100, [1.0, 0.5]))
    found = latest([one, other], "accuracy")
    assert found is not None
    assert [[each.split for each in group] for group in found] == [["test"], ["test"]]
    assert [mean for _, mean in run_means(one, "accuracy")] == [0.25]


def test_tested_checkpoints_of_different_steps_are_compared() -> None:
    one = arm("a", scores("validation", 300, [1.0, 1.0]), scores("test", 100, [0.0, 0.5]))
    other = arm("b", scores("validation", 300, [0.0, 0.0]), scores("test", 300, [1.0, 0.5]))
    found = latest([one, other], "accuracy")
    assert found is not None
    assert [group[0].step for group in found] == [100, 300]


def test_without_a_test_the_last_common_step_is_taken() -> None:
    one = arm("a", scores("validation", 100, [1.0]), scores("validation", 200, [0.0]))
    other = arm("b", scores("validation", 100, [1.0]), scores("validation", 300, [0.0]))
    found = latest([one, other], "accuracy")
    assert found is not None
    assert [group[0].step for group in found] == [100, 100]
