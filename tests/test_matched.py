"""Settings compared at equal KL and equal updates; proxy beside gold. By hand, and on real runs."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import study_tools
from kleash.plan import Arm
from kleash.plan.folder import Seen
from kleash.results import KL, realised_kl, results
from kleash.results.matched import (
    at_equal_kl,
    at_equal_updates,
    families,
    pair_at_equal_kl,
    score_at,
    shared_kls,
)
from kleash.results.proxy import proxy_rows
from kleash.runs import Run
from kleash.study import Asked, run_study
from study_tools import inline, run_small, small

__all__ = ["inline"]


def test_realised_kl_is_that_of_the_last_epoch_of_grpo(tmp_path: Path) -> None:
    lines: list[dict[str, Any]] = [
        {"kind": "epoch", "phase": "rce", "epoch": 1, "step": 3, KL: 9.0},
        {"kind": "epoch", "phase": "grpo", "epoch": 1, "step": 3, "loss": 1.0, KL: 0.25},
        {"kind": "step", "step": 4, "loss": 1.0},
    ]
    facts = {"identity": "a", "base": "w"}
    run = Run.create(tmp_path / "none-s0", {"seed": 0}, {}, facts)
    seen = Seen("none-s0", run, {})
    assert realised_kl(Seen("none-s1", None, {}), {}) is None
    assert realised_kl(seen, {}) is None
    for line in lines:
        run.log(line)
    assert realised_kl(seen, {}) == 0.25
    run.log({"kind": "epoch", "phase": "grpo", "epoch": 2, "step": 6, "loss": 1.0})
    assert realised_kl(seen, {}) is None  # the last epoch told none


def test_score_between_two_coefficients_by_hand() -> None:
    curve = [(0.01, 0.2), (1.0, 0.6)]
    assert score_at(curve, 0.1) == pytest.approx(0.4)
    assert score_at(curve, 1.0) == pytest.approx(0.6)


def test_only_what_every_seed_of_both_reached_is_compared() -> None:
    slow, fast = [(0.01, 0.2), (1.0, 0.6)], [(0.1, 0.3), (9.0, 0.5)]
    other = [(0.04, 0.3), (4.0, 0.5)]
    assert shared_kls([(slow, fast), (slow, other)]) == pytest.approx([0.1, math.sqrt(0.1), 1.0])
    assert shared_kls([(slow, [(2.0, 0.1), (3.0, 0.1)]), (slow, slow)]) == []
    assert shared_kls([(slow, fast)]) == []  # one seed tells nothing about settings


def test_pair_is_compared_by_seed_at_the_same_kl() -> None:
    slow = {0: [(0.01, 0.2), (1.0, 0.6)], 1: [(0.01, 0.3), (1.0, 0.5)]}
    fast = {0: [(0.1, 0.5), (10.0, 0.5)], 1: [(0.1, 0.6), (10.0, 0.6)], 7: [(0.1, 0.0), (1.0, 0.0)]}
    far = {0: [(3.0, 0.5), (9.0, 0.5)], 1: [(3.0, 0.5), (9.0, 0.5)]}
    curves = {"slow": slow, "fast": fast, "far": far}
    first, _, last = pair_at_equal_kl(curves, "fast", "slow")
    assert (first.at, last.at) == pytest.approx((0.1, 1.0))
    # Half way in the logarithm the slow ones have 0.4 and 0.4; at the end 0.6 and 0.5.
    assert first.gap.estimate == pytest.approx((0.1 + 0.2) / 2)
    assert last.gap.estimate == pytest.approx((-0.1 + 0.1) / 2)
    assert first.gap.n == 2
    assert pair_at_equal_kl(curves, "far", "slow") == []


def test_families_differ_in_the_coefficient_alone() -> None:
    arms = [
        Arm("a", {"lr": 0.1, "leash.coefficient": 0.0}),
        Arm("b", {"lr": 0.2, "leash.coefficient": 0.0}),
        Arm("c", {"lr": 0.1, "leash.coefficient": 1.0}),
    ]
    found = {name: [arm.name for arm in each] for name, each in families(arms).items()}
    assert found == {"lr=0.1": ["a", "c"], "lr=0.2": ["b"]}


@pytest.mark.slow
def test_real_arms_at_equal_kl_and_equal_updates(tmp_path: Path, inline: None) -> None:
    arms: dict[str, Any] = {
        f"{pace}-{value:g}": {"lr": 1e-3, "updates": updates, "leash": {"coefficient": value}}
        for pace, updates in (("once", 1), ("twice", 2))
        for value in (0.0, 1.0)
    }
    measure = {"baselines": [], "shots": [2], "items": [60]}
    folder = tmp_path / "matched"
    drop: dict[str, Any] = {"arms": arms, "compare": {"baselines": ["once-0"]}}
    with study_tools.tests_importable():
        run_study(Asked(small(measure=measure, **drop).but(arms=arms), folder))
    found = results(folder)
    rows = at_equal_updates(found)
    assert [(row.ours, row.theirs, row.at) for row in rows] == [
        ("twice-0", "once-0", 6.0),
        ("twice-1", "once-1", 6.0),
    ]
    # 24 queries in batches of 8: six updates are two epochs of the one and one of the other.
    gaps = []
    for seed in (0, 1):
        ends = {}
        for arm, epoch in (("twice-0", 1), ("once-0", 2)):
            (line,) = [
                line
                for line in Run.open(folder / f"runs/{arm}-s{seed}").metrics()
                if line["kind"] == "epoch" and line["epoch"] == epoch
            ]
            ends[arm] = line["validation/accuracy"]
        gaps.append(ends["twice-0"] - ends["once-0"])
    assert rows[0].gap.estimate == pytest.approx(np.mean(gaps))
    for row in at_equal_kl(found):
        assert row.ours.startswith("lr=0.001,updates=2")
        assert row.on == "kl"


@pytest.mark.slow
def test_proxy_gold_and_retention_of_real_runs(tmp_path: Path, inline: None) -> None:
    folder = tmp_path / "proxy"
    measure = {"baselines": ["base"], "shots": [2], "items": [60], "choose": "last"}
    taught = {"queries": 100, "supervised": {"epochs": 8, "lr": 2e-3}}
    run_small(folder, base=taught, grpo={"reward": "wordy"}, measure=measure)
    found = results(folder)
    rows = {row.arm: row for row in proxy_rows(found)}
    assert list(rows) == ["base", "none", "tight"]
    assert {name for row in found.rows for name in row.chosen} == {"epoch-2"}
    base = rows["base"]
    assert base.retained is not None
    assert base.retained.estimate == 1.0
    scores: dict[tuple[str, int], dict[str, Any]] = {}
    for seed in (0, 1):
        for arm, folder_name in (("base", f"base-s{seed}"), ("none", f"runs/none-s{seed}")):
            for line in Run.open(folder / folder_name).scores():
                if line["split"] == "test":
                    scores.setdefault((arm, seed), {})[line["item"]] = line
    shares, paid = [], []
    for seed in (0, 1):
        right = [item for item, line in scores["base", seed].items() if line["score"] > 0]
        shares.append(np.mean([scores["none", seed][item]["score"] > 0 for item in right]))
        lines = scores["none", seed].values()
        paid.append(np.mean([x["score"] + len(x["answer"].split()) - 1 for x in lines]))
    none = rows["none"]
    assert none.retained is not None and none.proxy is not None
    assert none.retained.estimate == pytest.approx(np.mean(shares))
    assert none.proxy.estimate == pytest.approx(np.mean(paid))
    assert none.retention_items == tuple(
        sum(line["score"] > 0 for line in scores["base", seed].values()) for seed in (0, 1)
    )


def test_no_proxy_nothing_to_set_apart(tmp_path: Path) -> None:
    assert proxy_rows(results(tmp_path, file=small())) == []
