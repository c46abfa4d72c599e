"""A search on the tiny world: trials on tuning seeds, resumed, pruned, and confirmed on others."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import study_tools
from kleash.cli.summary import search_line
from kleash.errors import ConfigError, KleashError
from kleash.runs.run import Run
from kleash.study.plan import arms_of
from kleash.study.plan.folder import overview, placed
from kleash.study.results.tuning import searched
from kleash.study.running import Asked, run_study
from kleash.study.search import Search, run_search, rungs
from study_tools import inline, small

optuna = pytest.importorskip("optuna")

__all__ = ["inline"]
QUICK: dict[str, Any] = {
    "seeds": 2,
    "base": {"queries": 16},
    "measure": {"baselines": [], "shots": [2], "items": [60]},
    "search": {
        "trials": 8,
        "together": 4,
        "seeds": [1000],
        "coefficient": [0.01, 10.0],
        "forms": ["return_to_go", "k3"],
        "entropy_bonus": [0.0, 0.01],
        "lr": [1e-4, 3e-3],
    },
}


class Killed(BaseException):
    """What nothing catches."""


def go(folder: Path, **changes: Any) -> tuple[list[str], dict[str, Any] | None]:
    """Search; the jobs that were started, and what was kept."""
    started: list[str] = []
    with study_tools.tests_importable():
        run_search(
            Asked(small(**(QUICK | changes)), folder),
            lambda told, found: started.append(told.job) if told.kind == "started" else None,
        )
    path = folder / "search.json"
    return started, json.loads(path.read_text(encoding="utf-8")) if path.is_file() else None


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A search that nobody disturbed."""
    from kleash.train.rollout import compute_one_way
    from study_tools import run_inline

    compute_one_way()
    folder = tmp_path_factory.mktemp("search") / "whole"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("kleash.study.running.run_jobs", run_inline)
        go(folder)
    return folder


def kept(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "search.json").read_text(encoding="utf-8"))
    return found


def test_trials_are_judged_on_validation_and_tuning_seeds_alone(whole: Path) -> None:
    found = kept(whole)
    assert len(found["trials"]) == 8
    for path in (whole / "search/runs").iterdir():
        run = Run.open(path)
        assert run.meta["seeds"]["run"] == 1000
        assert {line["split"] for line in run.scores()} == {"validation"}
    # The score is the chosen checkpoint's mean over validation items, by hand.
    best = found["best"]
    scores: dict[str, list[float]] = {}
    for line in Run.open(whole / f"search/runs/{best}-s1000").scores():
        scores.setdefault(line["checkpoint"], []).append(line["score"])
    (row,) = [row for row in found["trials"] if row["trial"] == best]
    assert row["score"] == pytest.approx(max(np.mean(each) for each in scores.values()))
    ended = [row["score"] for row in found["trials"] if row["score"] is not None]
    assert row["score"] == max(ended)


def test_trials_differ_in_what_is_searched_only(whole: Path) -> None:
    for row in kept(whole)["trials"]:
        assert row["keys"].keys() == {"leash.coefficient", "leash.form", "entropy_bonus", "lr"}
        assert 0.01 <= row["keys"]["leash.coefficient"] <= 10
    assert len({row["keys"]["lr"] for row in kept(whole)["trials"]}) == 8


def test_pruned_trials_stopped_early_and_are_in_no_ranking(whole: Path) -> None:
    found = kept(whole)
    assert found["pruning"] == "median"  # 2 epochs are too few for the stopping rule
    pruned = [row for row in found["trials"] if row["state"] == "pruned"]
    assert found["pruned"] == len(pruned)
    for row in found["trials"]:
        assert list(row["curve"]) == [str(e) for e in range(1, row["epochs"] + 1)]
        assert (row["score"] is None) == (row["state"] == "pruned")
    # Only a trial below the median of the finished ones is given up, and none of the first five.
    assert {row["state"] for row in found["trials"][:5]} == {"whole"}


@pytest.mark.slow
def test_killed_search_goes_on_with_the_same_settings(
    whole: Path, tmp_path: Path, inline: None
) -> None:
    folder = tmp_path / "killed"
    begun: list[str] = []

    def hear(told: Any, found: Any) -> None:
        if told.kind == "started":
            begun.append(told.job)
            if len(begun) in (4, 9):
                raise Killed

    for _ in range(2):  # in the first batch, and in a later rung or batch
        with study_tools.tests_importable(), pytest.raises(Killed):
            run_search(Asked(small(**QUICK), folder), hear)
    assert not (folder / "search.json").exists()
    rest, found = go(folder)
    assert found is not None
    assert "base-s1000" in begun
    assert "base-s1000" not in rest
    undisturbed = kept(whole)
    assert found["trials"] == undisturbed["trials"]
    assert found["keys"] == undisturbed["keys"]


def test_second_search_does_nothing_and_another_request_is_another_search(
    whole: Path, inline: None
) -> None:
    assert go(whole)[0] == []
    file = small(**QUICK)
    one = Search(Asked(file, whole), lambda told, found: None, lambda: False)
    search = file.search.model_copy(update={"lr": (1e-5, 1e-3)})
    other = Search(Asked(file.but(search=search), whole), lambda told, found: None, lambda: False)
    assert one.request != other.request


@pytest.mark.slow
def test_found_setting_is_confirmed_on_fresh_seeds(whole: Path, inline: None) -> None:
    file, found = small(**QUICK), kept(whole)
    assert found["keys"], "the tiny world has room above its baseline"
    with study_tools.tests_importable():
        ran = run_study(Asked(file, whole))
    assert not ran.failures
    arms = arms_of(file, placed(whole))
    assert arms[-1].name == "found"
    assert arms[-1].keys == found["keys"]
    seeds = {seed for arm, seed in ran.overview.seen if arm == "found"}
    assert seeds == {0, 1}
    told = searched(whole, file, overview(whole, file, arms))
    assert told is not None
    assert told.confirmed is not None
    gaps = []
    for seed in (0, 1):
        pair = [ran.overview.seen[arm, seed] for arm in ("found", "none")]
        means = [seen.scored[seen.chosen, "test", 2].mean(60) for seen in pair]
        assert means[0] is not None and means[1] is not None
        gaps.append(means[0] - means[1])
    assert told.confirmed.estimate == pytest.approx(np.mean(gaps))
    tuned = found["tuned"]["found"][0] - found["tuned"]["baseline"][0]
    assert told.tuned == pytest.approx(tuned)
    assert told.optimism is not None
    assert told.optimism.estimate == pytest.approx(tuned - np.mean(gaps))
    assert told.optimism.high - told.optimism.low == pytest.approx(
        told.confirmed.high - told.confirmed.low
    )
    assert told.confirmed.high > told.confirmed.low  # two seeds that agree are not certainty
    assert f"the winner's optimism is {told.optimism.estimate:+.3f}" in search_line(told, "en")


def test_search_that_beats_nothing_says_so(tmp_path: Path) -> None:
    lost = {
        "baseline": "none",
        "tuned": {"found": [0.4], "baseline": [0.5]},
        "keys": {},
        "trials": [{}] * 3,
        "pruned": 1,
        "pruning": "median",
    }
    (tmp_path / "search.json").write_text(json.dumps(lost), encoding="utf-8")
    file = small(**QUICK)
    assert placed(tmp_path) == []
    told = searched(tmp_path, file, overview(tmp_path, file, arms_of(file)))
    assert told is not None
    assert search_line(told, "en").endswith("none beat none on the tuning seeds (-0.100)")


def test_long_trials_end_by_the_stopping_rule(tmp_path: Path) -> None:
    def ending(**changes: Any) -> str:
        file = small(**QUICK, grpo=changes)
        return Search(Asked(file, tmp_path), lambda told, found: None, lambda: False).pruning

    assert ending(epochs=25) == "early stopping"
    assert ending(epochs=24) == "median"
    assert ending(epochs=24, schedule="cosine") == "none"
    assert rungs(3) == [1, 2, 3]
    assert rungs(8) == [1, 2, 4, 8]
    assert rungs(1) == [1]


@pytest.mark.parametrize(
    ("search", "word"),
    [
        ({"controllers": ["adaptive"]}, r"set leash\.target"),
        ({"forms": ["k1"]}, "'k1' is refused"),
        ({"coefficient": [0.0, 1.0]}, "no range"),
        ({"lr": [1e-3, 1e-4]}, "no range"),
    ],
)
def test_what_no_run_would_take_is_refused_first(
    tmp_path: Path, search: dict[str, Any], word: str
) -> None:
    with pytest.raises(ConfigError, match=word):
        go(tmp_path / "x", search=QUICK["search"] | search)
    assert not (tmp_path / "x").exists()


def test_course_over_time_gets_the_length_of_the_run(tmp_path: Path) -> None:
    file = small(**QUICK)
    search = Search(Asked(file, tmp_path), lambda told, found: None, lambda: False)
    keys = search.keys({"leash.controller": "linear", "leash.coefficient": 0.5})
    assert keys["leash.steps"] == 4  # 16 queries in batches of 8, twice


def test_without_optuna_one_line_says_how_to_get_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "optuna", None)
    with pytest.raises(KleashError, match=r"pip install 'kleash\[search\]'"):
        go(tmp_path / "x")


@pytest.mark.slow
def test_long_trials_are_scored_by_what_early_stopping_kept(tmp_path: Path, inline: None) -> None:
    search = QUICK["search"] | {"trials": 2, "together": 1, "lr": [3e-3, 1e-2]}
    _, found = go(tmp_path / "long", search=search, grpo={"epochs": 40}, base={"queries": 8})
    assert found is not None
    assert found["pruning"] == "early stopping"
    for row in found["trials"]:
        run = Run.open(tmp_path / f"long/search/runs/{row['trial']}-s1000")
        assert run.finished
        assert 25 <= len(row["curve"]) <= 40
        kept_ones = [name for name in run.checkpoints() if name.startswith("epoch-")]
        assert len(kept_ones) <= 2
        assert {line["checkpoint"] for line in run.scores()} <= set(kept_ones)
        assert row["score"] is not None
