"""How arms got there, with seeds as replicates: by hand, and as a report tells it."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from kleash.report import markdown_of, study_material
from kleash.results import results
from kleash.results.courses import courses, dimensions
from made_factorial import made_factorial
from made_study import made_study

ARMS = {"none": {"leash": {"coefficient": 0.0}}, "kl": {"leash": {"coefficient": 0.1}}}


def test_dimensions_by_hand() -> None:
    ours = np.array([[0.0, 1.0, 3.0, 2.0, 4.0, 4.0], [0.0, 2.0, 3.0, 3.0, 3.0, 6.0]])
    theirs = np.array([[0.0, 0.0, 1.0, 3.0, 2.0, 3.0], [1.0, 0.0, 2.0, 2.0, 5.0, 5.0]])
    found = {each.dimension: each for each in dimensions("a", "b", ours, theirs)}
    assert found["peak"].gap.estimate == pytest.approx(((4 - 3) + (6 - 5)) / 2)
    assert found["threshold"].at == 3.0  # the lowest of the four peaks
    assert (found["threshold"].ours, found["threshold"].theirs) == (3.0, 4.5)
    assert found["threshold"].gap.estimate == pytest.approx(((3 - 4) + (3 - 5)) / 2)
    assert found["late"].gap.estimate == pytest.approx(((8 - 5) / 2 + (9 - 10) / 2) / 2)
    logs = [
        math.log(np.diff(one, 2).std() / np.diff(other, 2).std())
        for one, other in zip(ours, theirs, strict=True)
    ]
    assert found["swings"].gap.estimate == pytest.approx(math.exp(np.mean(logs)), rel=0.2)
    assert found["peak"].gap.n == 2


def test_the_one_ahead_has_fewer_epochs_and_fewer_swings() -> None:
    rng = np.random.default_rng(0)
    steps = np.arange(1, 11) / 10
    slow = np.array([steps + 0.1 * rng.normal(size=10) for _ in range(6)])
    fast = np.array([1.2 - steps[::-1] ** 2 + 0.01 * rng.normal(size=10) for _ in range(6)])
    found = {each.dimension: each.ahead for each in dimensions("fast", "slow", fast, slow)}
    assert found["threshold"] == found["swings"] == found["early"] == "fast"
    assert found["late"] != "slow"
    other = {each.dimension: each.ahead for each in dimensions("slow", "fast", slow, fast)}
    assert other["threshold"] == other["swings"] == "fast"


def test_curves_without_a_swing_have_no_ratio() -> None:
    flat = np.array([[1.0, 2.0, 3.0, 4.0], [1.0, 2.0, 3.0, 4.0]])
    assert "swings" not in {each.dimension for each in dimensions("a", "b", flat, flat)}


def test_better_arm_is_ahead_in_the_report(tmp_path: Path) -> None:
    made_factorial(
        tmp_path / "made",
        lambda keys: 1.5 if keys["leash.coefficient"] == 0 else 1.0,
        grid={},
        arms=ARMS,
    )
    found = results(tmp_path / "made")
    ahead = {each.dimension: each.ahead for each in courses(found)}
    assert ahead["peak"] == ahead["threshold"] == ahead["late"] == "none"
    text = markdown_of(study_material(found, "en"), tmp_path)
    assert "highest evaluation of a run" in text
    assert "达到" in markdown_of(study_material(found, "zh"), tmp_path)


def test_runs_of_three_epochs_have_none(tmp_path: Path) -> None:
    made_study(tmp_path / "made")
    assert courses(results(tmp_path / "made")) == []
