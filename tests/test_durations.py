"""What a training cost, as its log tells; and what hours then buy."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kleash.cli.plan import answer, grounds
from kleash.compare.arms import gather
from kleash.compare.comparison import Wish
from kleash.compare.durations import Clock, clock, devices_of, training_hours
from kleash.compare.read import read
from kleash.study.budget import Cost, after_runs, cost_of


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("step_time_s", Clock(1.0, "step", of_devices=False)),
        ("sec_per_step", Clock(1.0, "step", of_devices=False)),
        ("sec_per_update", Clock(1.0, "step", of_devices=False)),
        ("step_time", Clock(1.0, "step", of_devices=False)),
        ("time/epoch_s", Clock(1.0, "epoch", of_devices=False)),
        ("epoch_min", Clock(60.0, "epoch", of_devices=False)),
        ("time_ms", Clock(1e-3, "row", of_devices=False)),
        ("train_runtime", Clock(1.0, "run", of_devices=False)),
        ("wall_h", Clock(3600.0, "run", of_devices=False)),
        ("gpu_hours", Clock(3600.0, "run", of_devices=True)),
        ("eval_time_s", None),  # of a part
        ("timing_s/gen", None),
        ("ref_logprob_sec_per_step", None),
        ("usd_per_gpu_hour", None),
        ("tokens_per_sec", None),
        ("steps", None),
        ("time", None),  # of the day
    ],
)
def test_what_a_column_counts(name: str, told: Clock | None) -> None:
    assert clock(name) == told


def hours(folder: Path, rows: list[str], name: str = "kl0.1.csv") -> tuple[float, float] | None:
    (folder / name).write_text("\n".join(rows) + "\n")
    (arm,) = gather([read(folder / name)])
    return training_hours(arm)


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        # logged at every 25th step, the middle one of 36 s: 100 steps take an hour
        (["step,reward,step_time_s", "25,0.5,99", "50,0.5,36", "75,0.5,36", "100,0.5,36"], 1.0),
        (["epoch,loss,epoch_time_s", "1,0.5,1800", "2,0.4,1800", "3,0.3,3600"], 1.5),
        (["epoch,loss,secs", "1,0.5,1800", "2,0.4,1700", "3,0.3,1900"], 1.5),  # a row an epoch
        (["step,loss,elapsed_s", "10,0.5,900", "20,0.4,1800", "30,0.3,2700", "40,0.2,3600"], 1.0),
        (["step,loss,time_s", "10,0.5,3.1", "20,0.4,3.0", "30,0.3,3.2"], None),  # of which steps?
        (["step,loss,eval_time_s", "1,0.5,30", "2,0.4,30"], None),
    ],
)  # fmt: skip
def test_hours_of_a_training(tmp_path: Path, rows: list[str], expected: float | None) -> None:
    assert hours(tmp_path, rows) == (None if expected is None else pytest.approx((expected,) * 2))


def test_a_run_that_was_broken_off_is_counted_as_long_as_it_was_asked_to_be(tmp_path: Path) -> None:
    rows = [{"step": at, "reward": 0.5, "step_time": 36.0} for at in range(1, 11)]
    state = {"log_history": rows, "max_steps": 100, "global_step": 10}
    (tmp_path / "trainer_state.json").write_text(json.dumps(state))
    (arm,) = gather([read(tmp_path)])
    assert training_hours(arm) == pytest.approx((1.0, 1.0))


def test_the_time_that_somebody_wrote_beside_a_trainers_history(tmp_path: Path) -> None:
    rows: list[dict[str, float]] = [{"step": at, "reward": 0.5} for at in range(1, 11)]
    state = {"log_history": rows, "max_steps": 10, "global_step": 10, "train_runtime": 7200}
    (tmp_path / "trainer_state.json").write_text(json.dumps(state))
    (arm,) = gather([read(tmp_path)])
    assert training_hours(arm) == pytest.approx((2.0, 2.0))
    rows.append({"step": 10, "train_runtime": 3600})  # the trainer's own, which counts more
    (tmp_path / "trainer_state.json").write_text(json.dumps(state))
    (arm,) = gather([read(tmp_path)])
    assert training_hours(arm) == pytest.approx((1.0, 1.0))


def test_hours_of_devices_are_shared_among_them(tmp_path: Path) -> None:
    rows = ["run,accuracy,gpu_hours,n_gpus", "kl0.1,0.5,16,8"]
    assert hours(tmp_path, rows, "runs.csv") == (2.0, 2.0)
    (arm,) = gather([read(tmp_path / "runs.csv")])
    assert devices_of(arm) == 8
    assert cost_of([arm]) == Cost(16.0)
    hours(tmp_path, ["run,accuracy,gpu_hours", "kl0.1,0.5,16"], "runs.csv")
    assert cost_of(gather([read(tmp_path / "runs.csv")])) == Cost(16.0)


def test_times_of_epochs_beside_shots(tmp_path: Path) -> None:
    rows = [
        "epoch,loss,epoch_time_s,acc_1shot,acc_2shot",
        "1,0.5,1800,0.5,0.6",
        "2,0.4,1800,0.6,0.7",
    ]
    assert hours(tmp_path, rows) == (1.0, 1.0)
    (run,) = read(tmp_path / "kl0.1.csv").runs
    # What has no shots is a curve, what has some is cells.
    assert {series.metric for series in run.series} == {"loss", "epoch_time_s"}
    assert {(cell.metric, cell.shots) for cell in run.cells} == {("acc", 1), ("acc", 2)}


def arms(folder: Path, seeds: int) -> list[Path]:
    """Two arms far apart, a training of three hours for each seed."""
    for arm, level in (("kl0", 0.7), ("kl0.1", 0.4)):
        for seed in range(seeds):
            own = level + 0.01 * (seed if arm == "kl0" else seed % 2)
            rows = [f"{at},{own + 0.01 * (at % 3):.3f},108" for at in range(1, 101)]
            text = "\n".join(["step,reward,step_time_s", *rows]) + "\n"
            (folder / f"{arm}_seed{seed}.csv").write_text(text)
    return [folder]


def test_one_training_decides_nothing_about_a_setting(tmp_path: Path) -> None:
    found = after_runs([read(path) for path in arms(tmp_path, 1)], Wish(), 12.0)
    assert found.cost.run == pytest.approx(3.0)
    assert ([each.arms[0] for each in found.open], found.decided) == (["kl0.1"], [])
    assert "four seeds of all arms take 18 hours, of two arms 18" in "\n".join(answer(found, "en"))
    assert any("not tell on how many devices" in each for each in grounds(found, "en"))
    enough = after_runs([read(path) for path in arms(tmp_path, 1)], Wish(), 18.0)
    assert enough.designs[0].seeds == 4


def test_four_seeds_that_agree_do(tmp_path: Path) -> None:
    found = after_runs([read(path) for path in arms(tmp_path, 5)], Wish(), 12.0)
    assert ([each.arms[0] for each in found.decided], found.open) == (["kl0.1"], [])
