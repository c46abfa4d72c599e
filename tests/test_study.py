"""Whole small studies: controlled, resumable, extended, and what must not pass unnoticed."""

from __future__ import annotations

import json
import shutil
import time
from pathlib import Path
from typing import Any

import pytest

from kleash.errors import KleashError
from kleash.runs.jobs import Told
from kleash.runs.run import Run
from kleash.study.plan import arms_of
from kleash.study.plan.folder import late_arms, overview, read_plan, spent
from kleash.study.results import results
from kleash.study.running import Asked, Keeper, run_study
from study_tools import inline, kill_and_go_on, lasting, run_small, small, small_study

__all__ = ["inline", "small_study"]


@pytest.fixture
def copied(small_study: Path, tmp_path: Path) -> Path:
    """A copy of the finished study to change."""
    return Path(shutil.copytree(small_study, tmp_path / "small"))


def test_every_cell_is_filled(small_study: Path) -> None:
    plan = read_plan(small_study)
    assert set(plan["counts"]) == {"done"}
    assert plan["counts"]["done"] == len(plan["cells"]) == 78
    assert plan["failures"] == {}
    assert {row[-1] for row in plan["cells"]} == {"done"}


def test_arms_of_a_seed_share_start_tasks_and_pools(small_study: Path) -> None:
    for seed in (0, 1):
        base = Run.open(small_study / f"base-s{seed}")
        runs = [Run.open(small_study / "runs" / f"{arm}-s{seed}") for arm in ("none", "tight")]
        start = base.state("rce-1")["weights_hash"]
        assert [run.meta["base"] for run in runs] == [start, start]
        assert runs[0].meta["pool"] == runs[1].meta["pool"] == base.meta["pool"]
        first = [next(line for line in run.metrics() if line["kind"] == "step") for run in runs]
        # The same draws from the same policy: the first batch is rewarded alike.
        assert first[0]["reward"] == first[1]["reward"]


def test_a_job_that_starts_as_another_ends_is_seen_to_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = small()
    found = overview(tmp_path, file, arms_of(file))
    keeper = Keeper(Asked(file, tmp_path), arms_of(file), found, lambda told, found: None)
    monkeypatch.setattr(
        "kleash.study.running.WRITE_EVERY", 3600.0
    )  # both come too soon to be written
    keeper.wrote = time.monotonic()
    keeper(Told("done", "base-s0", {"seconds": 1.0}))
    keeper(Told("started", "none-s0"))
    monkeypatch.setattr("kleash.study.running.WRITE_EVERY", -1.0)
    keeper(Told("told", "none-s0", {"at": "grpo 1/2"}))
    states = {row[-1] for row in read_plan(tmp_path)["cells"] if row[:2] == ["none", 0]}
    assert states == {"running"}


def test_second_run_does_nothing_and_changes_nothing(copied: Path, inline: None) -> None:
    before, paid = lasting(copied), spent(copied)
    ran, started = run_small(copied)
    assert started == []
    assert not ran.failures
    assert lasting(copied) == before
    assert spent(copied) == paid


def test_ledger_saves_answers_between_arms(small_study: Path) -> None:
    paid = spent(small_study)
    assert 0 < paid["bought"] < 0.5 * paid["asked"]


def test_new_arm_runs_alone_and_is_marked_as_late(copied: Path, inline: None) -> None:
    before = lasting(copied)
    arms = {"loose": {"leash": {"coefficient": 0.01}}}
    ran, started = run_small(copied, arms=arms)
    assert sorted(started) == ["loose-s0", "loose-s1"]
    assert late_arms(copied) == ["loose"]
    after = lasting(copied)
    assert {name: after[name] for name in before if name != "plan.json"} == {
        name: content for name, content in before.items() if name != "plan.json"
    }
    found = results(copied)
    assert [row.late for row in found.rows] == [False, False, True]
    assert set(ran.overview.counts()) == {"done"}


def test_more_shots_measure_only_what_is_new(copied: Path, inline: None) -> None:
    scores = (copied / "runs/none-s0/scores.jsonl").read_bytes()
    ran, _ = run_small(copied, measure={"shots": [1, 2, 3], "items": [20, 40, 60]})
    assert set(ran.overview.counts()) == {"done"}
    grown = (copied / "runs/none-s0/scores.jsonl").read_bytes()
    assert grown.startswith(scores)
    assert grown.count(b"\n") == scores.count(b"\n") + 60


def test_more_epochs_extend_the_runs(copied: Path, inline: None) -> None:
    ran, started = run_small(copied, grpo={"epochs": 3})
    assert sorted(started) == ["none-s0", "none-s1", "tight-s0", "tight-s1"]
    assert set(ran.overview.counts()) == {"done"}
    run = Run.open(copied / "runs/none-s0")
    assert run.checkpoints() == ["epoch-1", "epoch-2", "epoch-3"]


@pytest.mark.slow
def test_checkpoints_that_early_stopping_let_go_of_are_no_empty_cells(
    tmp_path: Path, inline: None
) -> None:
    arms = {"none": {"leash": {"coefficient": 0.0}, "early_stop": "on"}, "tight": {}}
    keys: dict[str, Any] = {"seeds": 1, "arms": arms, "base": {"queries": 8}}
    ran, _ = run_small(tmp_path / "small", **keys, grpo={"epochs": 30})
    run = Run.open(tmp_path / "small/runs/none-s0")
    kept = [name for name in run.checkpoints() if name.startswith("epoch-")]
    assert len(kept) <= 2
    assert set(ran.overview.counts()) == {"done"}
    places = [cell for cell, _ in ran.overview.cells if cell.split == "validation"]
    assert [cell.checkpoint for cell in places if cell.arm == "none"] == kept
    assert len([cell for cell in places if cell.arm == "tight"]) == 30
    assert results(tmp_path / "small").overview.counts() == ran.overview.counts()
    _, started = run_small(tmp_path / "small", **keys, grpo={"epochs": 30})
    assert started == []
    # Further epochs are asked for: they are cells again, though the rule may let go of them too.
    longer = small(**keys, grpo={"epochs": 31})
    assert overview(tmp_path / "small", longer, arms_of(longer)).counts()["missing"] == 2
    ran, _ = run_small(tmp_path / "small", **keys, grpo={"epochs": 31})
    assert set(ran.overview.counts()) == {"done"}


def test_changed_config_is_another_run_and_the_old_one_stays(copied: Path, inline: None) -> None:
    old = lasting(copied / "runs/none-s0")
    _, started = run_small(copied, grpo={"lr": 2e-3})
    assert sorted(started) == ["none-s0", "none-s1", "tight-s0", "tight-s1"]
    assert lasting(copied / "runs/none-s0") == old
    assert len(list((copied / "runs").glob("none-s0-*"))) == 1
    found = results(copied)
    assert {seen.name.count("-") for seen in found.overview.seen.values() if seen.chosen} == {2}


def test_results_say_who_was_chosen_and_how_alike_arms_are(small_study: Path) -> None:
    found = results(small_study)
    names = {row.name: row for row in found.rows}
    assert names["tight"].against == "none"
    assert names["tight"].gap is not None
    assert names["tight"].gap.counted == "seeds"
    assert len(names["none"].scores) == 2
    run = Run.open(small_study / "runs/tight-s1")
    means = {}
    for name in ("epoch-1", "epoch-2"):
        scores = [
            line["score"]
            for line in run.scores()
            if line["checkpoint"] == name and line["split"] == "validation"
        ]
        assert len(scores) == 40
        means[name] = sum(scores) / 40
    assert names["tight"].chosen[1] == max(means, key=lambda name: means[name])
    (pair,) = found.agreements
    assert pair.arms == ("none", "tight")
    assert pair.kl is not None
    assert pair.kl > 0
    assert pair.differ
    # The code may be another by now, which is told; what was learnt from may not.
    assert {entry["what"] for entry in found.mixed} <= {"revision", "diff"}
    assert found.test_uses["none"] == 2


@pytest.mark.slow
def test_killed_once_it_ends_with_the_same_bytes(small_study: Path, tmp_path: Path) -> None:
    kill_and_go_on(small_study, tmp_path / "killed", kills=1, jobs=1)


@pytest.mark.slow
def test_killed_ten_times_it_ends_with_the_same_bytes(small_study: Path, tmp_path: Path) -> None:
    kill_and_go_on(small_study, tmp_path / "killed", kills=10)


def test_a_second_driver_is_sent_away(copied: Path) -> None:
    from kleash.study.plan.folder import held

    with held(copied), pytest.raises(KleashError, match="is being run by process"):
        run_small(copied)


def test_budget_leaves_the_rest_missing(tmp_path: Path, inline: None) -> None:
    ran, started = run_small(tmp_path / "poor", budget={"answers": 1})
    assert ran.stopped
    assert len(started) < 7
    counts = ran.overview.counts()
    assert counts["missing"] > 0
    assert "failed" not in counts


def test_more_items_than_there_are_is_refused_before_anything_runs(tmp_path: Path) -> None:
    with pytest.raises(KleashError, match="61 items of 'test' were asked for"):
        run_study(Asked(small(measure={"items": [61]}), tmp_path / "big"))
    assert not (tmp_path / "big" / "runs").exists()


# --- the accidents of the documents, planted


def test_arm_from_another_base_is_never_attributed(copied: Path, inline: None) -> None:
    other = copied / "base-s1/checkpoints/rce-1"
    arms = {"tight": {"from": str(other), "leash": {"coefficient": 1.0}}}
    shutil.rmtree(copied / "runs/tight-s0")
    shutil.rmtree(copied / "runs/tight-s1")
    run_small(copied, arms=arms)
    found = results(copied)
    assert [entry["run"] for entry in found.mixed if entry["what"] == "base"] == ["tight-s0"]
    (gap,) = [row.gap for row in found.rows if row.name == "tight"]
    assert gap is not None
    assert gap.level != "L3"
    assert "start" in gap.also_changed


def test_other_data_under_the_same_name_is_refused(copied: Path) -> None:
    meta = copied / "runs/none-s0/meta.json"
    changed = json.loads(meta.read_text(encoding="utf-8")) | {"data": "another file's hash"}
    meta.write_text(json.dumps(changed), encoding="utf-8")
    with pytest.raises(KleashError, match="none-s0 was made with another data"):
        run_small(copied)


def test_checkpoint_without_its_trained_tensors_is_not_measured(copied: Path, inline: None) -> None:
    from safetensors.torch import load_file, save_file

    file = copied / "runs/tight-s0/checkpoints/epoch-2/weights.safetensors"
    tensors = load_file(file)
    save_file(dict(list(tensors.items())[1:]), file)
    scores = copied / "runs/tight-s0/scores.jsonl"
    scores.unlink()
    ran, _ = run_small(copied)
    assert "does not hold the tensors that were saved" in ran.failures["tight-s0"]
    assert read_plan(copied)["counts"]["failed"] > 0


def test_stale_scores_are_not_taken_for_the_new_weights(copied: Path, inline: None) -> None:
    scores = copied / "runs/tight-s0/scores.jsonl"
    lines = [json.loads(line) for line in scores.read_text(encoding="utf-8").splitlines()]
    for line in lines:
        line["weights"] = "0" * 64
    text = "".join(json.dumps(line) + "\n" for line in lines[:-1])
    scores.write_text(text, encoding="utf-8")
    ran, _ = run_small(copied)
    assert "tight-s0" in ran.failures


def test_pool_of_two_leaves_no_choice_and_is_refused(tmp_path: Path) -> None:
    with pytest.raises(KleashError, match="a pool of 2 leaves nothing to choose at 2 shots"):
        run_small(tmp_path / "two", base={"pool": {"size": 2}})


def test_dropout_left_on_in_the_policy_only_stops_the_run(
    copied: Path, inline: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    import torch

    from kleash.models.selector import Selector
    from kleash.seeds import torch_generator

    plain = Selector.logits

    def careless(self: Selector, pointers: Any, dropout: Any = None) -> Any:
        training = torch.is_grad_enabled()  # the reference is judged without gradients
        return plain(self, pointers, torch_generator("careless") if training else dropout)

    def dropped(self: Selector, values: Any, rng: Any) -> Any:
        return values * (torch.rand(values.shape, generator=rng) < 0.9) / 0.9

    monkeypatch.setattr(Selector, "logits", careless)
    monkeypatch.setattr(Selector, "drop", dropped)
    shutil.rmtree(copied / "runs/tight-s0")
    ran, _ = run_small(copied)
    assert set(ran.failures) == {"tight-s0"}
    assert "between sampling and training" in ran.failures["tight-s0"]
    assert "tight-s0" not in {seen.name for seen in ran.overview.seen.values() if seen.chosen}


def test_identical_outputs_of_two_arms_are_called_identical(copied: Path) -> None:
    for seed in (0, 1):
        source = copied / f"runs/none-s{seed}/scores.jsonl"
        shutil.copy(source, copied / f"runs/tight-s{seed}/scores.jsonl")
    found = results(copied)
    (pair,) = found.agreements
    assert pair.identical_outputs == pair.seeds == 2


def test_overview_of_an_empty_folder_is_all_missing(tmp_path: Path) -> None:
    file = small()
    found = overview(tmp_path, file, arms_of(file))
    assert found.counts() == {"missing": 78}
