"""Scores paired by seed and item, by hand: an arm over its start, a preset over another."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from kleash import stats
from kleash.compare import Judged
from kleash.plan import StudyFile
from kleash.plan.arms import Arm
from kleash.plan.cells import Column
from kleash.plan.folder import Overview, Seen
from kleash.results import paired
from kleash.results.gains import gains
from kleash.results.paired import mean_gap
from kleash.results.presets import gap, score

ITEMS = ["a", "b", "c", "d"]
START = "start"
SIZES = ("small", "large")


def seen(checkpoint: str, *columns: list[float | None]) -> Seen:
    """A run whose scores are those, at 0 and 2 shots."""
    scored = {
        (checkpoint, "test", shots): Column(ITEMS[: len(scores)], list(scores))
        for shots, scores in zip((0, 2), columns, strict=True)
    }
    return Seen("run", None, scored, checkpoint)  # type: ignore[arg-type]


def study(runs: dict[tuple[str, int], Seen], **keys: Any) -> Any:
    """As much of a study's results as gains look at."""
    file = StudyFile.model_validate(
        {
            "name": "made",
            "seeds": sorted({seed for _, seed in runs}),
            "base": {"env": "intention", "model": "models/some", "gym": {"surface": "text"}},
            "measure": {"shots": [0, 2], "items": [2, 4]},
            "arms": {"held": {}},
        }
    )
    said = Judged("gain", "accuracy", "", ("held", "start"), "better", "L3", 0.75, 0.5, 1.0)
    arms = [Arm("held", keys)]
    comparison = SimpleNamespace(verdicts=[said])
    return SimpleNamespace(
        file=file, arms=arms, overview=Overview(seen=runs), comparison=comparison
    )


def test_a_gain_is_paired_by_seed_and_item() -> None:
    runs = {
        ("base", 0): seen(START, [0, 1, 2, 3], [1, 1, 1, 1]),
        ("base", 1): seen(START, [1, 1, 2, 2], [0, 1, 0, 1]),
        ("held", 0): seen("epoch-2", [1, 2, 3, 4], [1, 1, 1, 1]),
        ("held", 1): seen("epoch-1", [2, 2, 3, 5], [0, 1, 0, 3]),
    }
    (found,) = gains(study(runs))
    assert found.by_shots[0] is not None and found.by_shots[2] is not None
    assert found.by_shots[0].estimate == pytest.approx((1 + 1.5) / 2)
    assert found.by_shots[2].estimate == pytest.approx((0 + 0.5) / 2)
    assert found.mean is not None  # as the verdict has it, whose interval is among all arms
    assert (found.mean.estimate, found.mean.low, found.mean.high) == (0.75, 0.5, 1.0)
    alone = stats.crossed_seeds([[1, 1, 1, 1], [1, 1, 1, 3]], level=1 - 0.05 / 2).interval
    assert found.by_shots[0] == alone  # one of two numbers of shots, which hold together


def test_what_broke_is_left_out_and_what_is_not_measured_says_nothing() -> None:
    runs = {
        ("base", 0): seen(START, [0, 1, 2, None], [1, 1, 1, 1]),
        ("held", 0): seen("epoch-1", [1, None, 4, 3], [1, 1, 1, 2]),
        ("base", 1): seen(START, [0, 0, 0, 0], [0, 0, 0, 0]),
        ("held", 1): seen("epoch-1", [9, 9, 9, 9], [9, 9]),  # two of four items are there yet
    }
    (found,) = gains(study(runs))
    assert found.seeds == 1
    assert found.by_shots[0] is not None
    assert found.by_shots[0].estimate == pytest.approx((1 + 2) / 2)
    del runs["base", 0]
    assert gains(study(runs)) == []


def test_an_arm_from_elsewhere_has_no_gain_over_this_start() -> None:
    scores = ([0, 1, 1, 0], [1, 1, 0, 1])
    runs = {("base", 0): seen(START, *scores), ("held", 0): seen("e", *scores)}
    assert gains(study(runs))  # it grew from this one
    for elsewhere in ({"selector": "v1"}, {"from": "runs/other"}):
        assert gains(study(runs, **elsewhere)) == []
    assert gains(study({("held", 0): seen("e", [0, 1], [1, 1])})) == []


def test_items_are_paired_by_name_in_whatever_order_they_were_measured() -> None:
    measured = paired.Tested(["a", "b", "c"], np.array([1.0, 2.0, np.nan]))
    assert measured.over(["a", "b", "c"]) is measured.values_N
    np.testing.assert_array_equal(measured.over(["c", "b", "d", "a"]), [np.nan, 2, np.nan, 1])
    np.testing.assert_array_equal(measured.over(["b", "a", "c"]), [2, 1, np.nan])
    assert measured.known() == [1.0, 2.0]


def test_what_broke_under_every_seed_is_no_item() -> None:
    gaps_SN = np.array([[0.1, 0.4, 0.2], [0.3, np.nan, 0.6]])
    broken = np.insert(gaps_SN, 1, np.nan, axis=1)
    found = mean_gap(broken)
    assert found is not None and found == mean_gap(gaps_SN)
    assert found == stats.crossed_seeds(gaps_SN).interval
    assert mean_gap(broken[:1]) == stats.mean_interval(gaps_SN[0])
    assert mean_gap(np.array([[0.1, 0.4], [np.nan, np.nan]])) is None
    assert mean_gap(np.array([[0.1, np.nan]])) is None


def test_presets_are_paired_by_seed_and_item_too() -> None:
    runs = {
        ("small", 0): seen("epoch-1", [0, 1, 2, None], [1, 1, 1, 1]),
        ("small", 1): seen("epoch-2", [1, 1, 2, 2], [0, 1, 0, 1]),
        ("large", 0): seen("epoch-2", [1, None, 4, 3], [1, 1, 1, 1]),
        ("large", 1): seen("epoch-2", [2, 2, 3, 5], [0, 1, 0]),  # and one more to come
        ("large", 2): seen("epoch-2", [9, 9, 9, 9], [9, 9, 9, 9]),  # of which there is one side
    }
    found = study(runs)
    small, large = ({s: each for (n, s), each in runs.items() if n == name} for name in SIZES)
    apart = gap(found, large, small, 0)
    assert apart is not None and apart.estimate == pytest.approx((1.5 + 1.5) / 2)
    assert gap(found, large, small, 2) is None and gap(found, large, {}, 0) is None
    mean = score(found, large.values(), 0)
    assert mean is not None and mean.estimate == pytest.approx((8 / 3 + 3 + 9) / 3)
    assert score(found, large.values(), 2) is None and score(found, [], 0) is None
    alone = score(found, [large[1]], 0)
    assert alone == stats.mean_interval([2, 2, 3, 5])
