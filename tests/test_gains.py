"""What an arm gained over its start, by hand."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from kleash.plan import StudyFile
from kleash.plan.arms import Arm
from kleash.plan.cells import Column
from kleash.plan.folder import Overview, Seen
from kleash.results.gains import gains

ITEMS = ["a", "b", "c", "d"]
START = "start"


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
    return SimpleNamespace(file=file, arms=[Arm("held", keys)], overview=Overview(seen=runs))


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
    assert found.mean is not None
    assert found.mean.estimate == pytest.approx((1.25 + 0.25) / 2)
    assert found.mean.low < found.mean.estimate < found.mean.high


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
    runs = {("base", 0): seen(START, [0, 1], [1, 1]), ("held", 0): seen("e", [0, 1], [1, 1])}
    assert gains(study(runs, selector="v1")) == []
    assert gains(study({("held", 0): seen("e", [0, 1], [1, 1])})) == []
