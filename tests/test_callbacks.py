"""Runs of TRL and verl kept as ours: scores of items, config, hashes and KL, so that L2 is reached.

TRL itself trains two arms where it is installed; verl, which wants a GPU, is held to the interfaces
that its sources state: `Tracking(…)`, `log(data, step)` and the dumps of a validation.
"""

import json
import os
import subprocess
import sys
import types
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kleash.compare.comparison import compare
from kleash.compare.read import read
from kleash.compare.recorders import Keeper, hash_files, hash_rows
from kleash.compare.recorders import verl as for_verl
from kleash.compare.recorders.trl import item_of, keep, rows_hash, total
from kleash.errors import ConfigError
from kleash.runs.run import Run

ROOT = Path(__file__).parent.parent
ITEMS = 16


# --- what is kept


def keeper(folder: Path, said: list[str], **config: Any) -> Keeper:
    hashes = {"data": "d" * 64, "eval_data": None, "start": "b" * 64}
    return Keeper(folder, {"trainer": "trl", "beta": 0.1, **config}, hashes, told=said.append)


def test_a_kept_run_is_one_of_ours(tmp_path: Path) -> None:
    said: list[str] = []
    kept = keeper(tmp_path / "runs/kl0.1-s0", said, seed=0, max_grad_norm=float("inf"))
    kept.begin(0)
    kept.log(1, {"reward": 0.5, "loss": float("nan"), "word": "x", "step": 9})
    kept.score(1, "validation", [("a", 1.0), ("a", 0.0), ("b", None), ("b", None), ("c", 2.0)], "w")
    kept.end(finished=True)
    run = Run.open(tmp_path / "runs/kl0.1-s0")
    assert run.finished
    first, found = run.metrics()
    assert first == {"kind": "step", "phase": "grpo", "step": 1, "reward": 0.5}
    assert (found["kind"], found["code"]) == ("finding", "not-finite")
    assert run.config["data"] == "sha256:" + "d" * 16
    assert run.config["max_grad_norm"] == "inf"
    assert run.meta["hashes"]["start"] == "b" * 64
    lines = {line["item"]: line for line in run.scores()}
    assert (lines["a"]["score"], lines["a"]["tries"], lines["a"]["weights"]) == (0.5, 2, "w")
    assert lines["b"]["score"] is None and "no reward function" in lines["b"]["error"]
    assert lines["c"]["step"] == 1
    [imported] = read(run.path).runs
    [scores] = imported.scores
    assert (scores.metric, scores.step) == ("eval_reward", 1)
    assert np.isnan(scores.values).sum() == 1


def test_a_run_that_goes_on_forgets_what_came_after_its_checkpoint(tmp_path: Path) -> None:
    said: list[str] = []
    kept = keeper(tmp_path / "kl0.1-s0", said)
    kept.begin(0)
    for step in (1, 2, 3, 4):
        kept.log(step, {"reward": float(step)})
        kept.score(step, "validation", [("a", float(step))])
    kept.end(finished=False)
    again = keeper(tmp_path / "kl0.1-s0", said)
    again.begin(2)
    again.log(3, {"reward": 30.0})
    again.score(3, "validation", [("a", 30.0)])
    again.score(3, "validation", [("a", 31.0)])  # an evaluation that is repeated adds nothing
    again.end(finished=True)
    run = Run.open(tmp_path / "kl0.1-s0")
    assert [line["reward"] for line in run.metrics()] == [1.0, 2.0, 30.0]
    assert [line["score"] for line in run.scores()] == [1.0, 2.0, 30.0]
    other = keeper(tmp_path / "kl0.1-s0", said, beta=0.2)
    assert other.run.path.name.startswith("kl0.1-s0-"), "another config is another run"
    other.end(finished=False)


def test_what_goes_wrong_is_one_line_and_training_goes_on(tmp_path: Path) -> None:
    said: list[str] = []
    kept = keeper(tmp_path / "a-s0", said)
    kept.begin(0)
    (kept.run.path / "metrics.jsonl").unlink()
    (kept.run.path / "metrics.jsonl").mkdir()
    for step in (1, 2, 3):
        kept.log(step, {"reward": 1.0})
    kept.end(finished=True)
    assert len(said) == 1
    assert "is kept no more, the training goes on" in said[0]


def test_hashes_are_of_content_alone(tmp_path: Path) -> None:
    rows = [{"prompt": "a", "n": 1}, {"prompt": "b", "n": 2}]
    assert hash_rows(rows) == hash_rows([dict(reversed(row.items())) for row in rows])
    assert hash_rows(rows) != hash_rows(rows[::-1])
    image = np.arange(4)
    assert hash_rows([{"image": image}]) == hash_rows([{"image": image.copy()}])
    assert rows_hash(rows) == hash_rows(rows)
    assert rows_hash({"x": rows}) == rows_hash({"x": list(rows)}) != rows_hash(rows)
    assert rows_hash(iter(rows)) is None
    for name, text in (("a/w.bin", "1"), ("b/w.bin", "1"), ("c/w.bin", "2")):
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_text(text)
    one, same, other = (hash_files([tmp_path / f"{name}/w.bin"]) for name in "abc")
    assert one == same != other
    assert hash_files([tmp_path / "none"]) is None and hash_files([]) is None


def test_rewards_are_summed_by_their_weights_and_none_is_no_zero() -> None:
    nan = float("nan")
    summed = total([1.0, 0.5])
    assert summed([2.0, 4.0]) == 4.0
    assert summed([2.0, nan]) == 2.0
    assert summed([nan, nan]) is None


# --- TRL


def test_a_trainer_that_is_no_grpo_trainer_is_refused() -> None:
    with pytest.raises(ConfigError, match="SimpleNamespace has no _calculate_rewards"):
        keep(types.SimpleNamespace(), "runs/a-s0")


@pytest.fixture(scope="module")
def arms(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two arms trained by TRL itself; the one without a leash was stopped and went on."""
    if find_spec("trl") is None:
        pytest.skip("TRL is not installed here")
    folder = tmp_path_factory.mktemp("arms")
    paths = os.pathsep.join(str(ROOT / part) for part in ("src", "tests"))
    command = [sys.executable, str(ROOT / "tests/trl_arms.py"), str(folder)]
    env = os.environ | {"PYTHONPATH": paths, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=1800)
    assert done.returncode == 0, done.stderr[-3000:]
    return folder


def lines(run: Run, name: str) -> dict[int, float]:
    return {line["step"]: line[name] for line in run.metrics() if name in line}


def test_comparing_arms_that_trl_trained_reaches_items(arms: Path) -> None:
    found = compare([read(arms / "runs/kl0-s3"), read(arms / "runs/kl0.15-s3")])
    [level] = [each for each in found.verdicts if each.question == "level"]
    assert level.level == "L2"
    assert level.metric == "eval_reward"
    assert (level.counted, level.n) == ("items", ITEMS)
    assert not [each.key for each in found.confounds if each.kind == "must match"]


def test_kl_is_there_in_the_arm_without_a_leash_too(arms: Path) -> None:
    for name in ("kl0-s3", "kl0.15-s3"):
        kl = lines(Run.open(arms / "runs" / name), "kl")
        assert list(kl)[:4] == [1, 2, 3, 4]
        assert kl[1] == pytest.approx(0, abs=1e-6), "before any update it is 0"
        assert kl[4] > 1e-3, "the copy of the start stays where it was"


def test_what_went_in_is_hashed_and_what_came_out_is_scored_item_by_item(arms: Path) -> None:
    free, leashed = (Run.open(arms / "runs" / name) for name in ("kl0-s3", "kl0.15-s3"))
    assert free.meta["hashes"] == leashed.meta["hashes"]
    assert all(free.meta["hashes"].values())
    assert (free.config["beta"], leashed.config["beta"]) == (0.0, 0.15)
    assert free.config["reward"] == ["count_a", "short"]
    scores = list(leashed.scores())
    assert [line["step"] for line in scores] == [2] * ITEMS + [4] * ITEMS
    assert all(line["tries"] == 2 for line in scores)
    weights = {line["step"]: line["weights"] for line in scores}
    assert len({*weights.values(), leashed.meta["hashes"]["start"]}) == 3
    logged = lines(leashed, "eval_reward")
    for step in (2, 4):
        mean = np.mean([line["score"] for line in scores if line["step"] == step])
        assert logged[step] == pytest.approx(mean, abs=1e-5)
    assert {item_of("a e"), item_of("d h")} <= {line["item"] for line in scores}


def test_a_run_of_trl_that_goes_on_is_one_run(arms: Path) -> None:
    run = Run.open(arms / "runs/kl0-s3")
    assert [path.name for path in sorted((arms / "runs").glob("kl0-s3*"))] == ["kl0-s3"]
    assert run.finished
    assert list(lines(run, "reward")) == [1, 2, 3, 4, 5, 6]
    assert [line["step"] for line in run.scores()] == [2] * ITEMS + [4] * ITEMS + [6] * ITEMS


# --- verl


class Tracking:
    """verl's, as its sources state it: what it is made of and how it is called."""

    def __init__(
        self,
        project_name: str,
        experiment_name: str,
        default_backend: str | list[str] = "console",
        config: dict[str, Any] | None = None,
    ) -> None:
        self.rows: list[tuple[int, dict[str, Any]]] = []

    def log(self, data: dict[str, Any], step: int, backend: list[str] | None = None) -> None:
        self.rows.append((step, data))

    def finish(self, exit_code: int = 0) -> None:
        self.exit_code = exit_code

    def __del__(self) -> None:
        self.finish()


def settings(place: Path, coefficient: float, *, leashed: bool = True) -> dict[str, Any]:
    """The part of verl's config that matters, as OmegaConf resolves it."""
    actor = {"use_kl_loss": leashed, "kl_loss_coef": coefficient, "kl_loss_type": "low_var_kl"}
    return {
        "data": {
            "train_files": str(place / "train.parquet"),
            "val_files": [str(place / "val.parquet")],
        },
        "actor_rollout_ref": {"model": {"path": str(place / "model")}, "actor": actor},
        "algorithm": {"use_kl_in_reward": False, "adv_estimator": "grpo"},
        "trainer": {
            "validation_data_dir": str(place / f"val-{coefficient}"),
            "total_training_steps": 2,
            "experiment_name": f"kl{coefficient}-s0",
        },
    }


def dump(place: Path, step: int, shift: float) -> None:
    """What verl writes of a validation: one line for each generation."""
    place.mkdir(exist_ok=True)
    rows = [
        {"input": f"question {n}", "output": "…", "gts": "1", "score": n % 3 + shift, "step": step}
        for n in range(ITEMS)
    ]
    (place / f"{step}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


@pytest.fixture
def verl(monkeypatch: pytest.MonkeyPatch) -> types.ModuleType:
    """A module where verl has its tracker, with a class of that shape in it."""
    tracking = types.ModuleType("verl.utils.tracking")
    tracking.Tracking = Tracking  # type: ignore[attr-defined]
    utils, whole = types.ModuleType("verl.utils"), types.ModuleType("verl")
    utils.tracking = tracking  # type: ignore[attr-defined]
    whole.utils = utils  # type: ignore[attr-defined]
    for module in (whole, utils, tracking):
        monkeypatch.setitem(sys.modules, module.__name__, module)
    return tracking


def test_runs_that_verl_tracks_are_kept_with_their_dumps_and_reach_items(
    tmp_path: Path, verl: types.ModuleType, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "model").mkdir()
    for name in ("train.parquet", "val.parquet", "model/model.safetensors"):
        (tmp_path / name).write_bytes(name.encode())
    for_verl.keep(tmp_path / "runs")
    for_verl.keep(tmp_path / "runs")  # the reward function may be loaded twice
    for coefficient, shift in ((0.0, 0.0), (0.01, 0.25)):
        config = settings(tmp_path, coefficient)
        name = config["trainer"]["experiment_name"]
        logger = verl.Tracking(
            project_name="p", experiment_name=name, default_backend=["console"], config=config
        )
        for step in (1, 2):
            row = {"critic/rewards/mean": np.float64(1.5), "actor/kl_loss": 0.001 * step}
            logger.log(data=row, step=step)
            dump(tmp_path / f"val-{coefficient}", step, shift)  # in a thread: after it was logged
        if coefficient:
            logger.finish()
        assert [step for step, _ in logger.rows] == [1, 2], "verl's own tracker hears it all"
        del logger  # versions without `finish` end so
    runs = [Run.open(tmp_path / "runs" / name) for name in ("kl0.0-s0", "kl0.01-s0")]
    for run in runs:
        assert run.finished
        assert lines(run, "critic/rewards/mean") == {1: 1.5, 2: 1.5}
        assert all(run.meta["hashes"].values())
        assert [line["step"] for line in run.scores()] == [1] * ITEMS + [2] * ITEMS
    found = compare([read(run.path) for run in runs])
    [level] = [each for each in found.verdicts if each.question == "level"]
    assert (level.level, level.counted, level.n) == ("L2", "items", ITEMS)
    assert level.estimate == pytest.approx(0.25)
    assert "kleash" not in capsys.readouterr().err


def test_verl_is_told_what_its_settings_keep_from_being_known(
    tmp_path: Path,
    verl: types.ModuleType,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("KLEASH_RUNS", str(tmp_path / "runs"))
    for_verl.keep()
    config = settings(tmp_path, 0.0, leashed=False)
    del config["trainer"]["validation_data_dir"]
    logger = verl.Tracking("p", "free-s0", "console", config)
    logger.log({"critic/rewards/mean": 1.0}, 1)
    told = capsys.readouterr().err
    assert "kl_loss_coef=0" in told and "trainer.validation_data_dir" in told
    run = Run.open(tmp_path / "runs/free-s0")
    codes = [line["code"] for line in run.metrics() if line["kind"] == "finding"]
    assert codes == ["no-kl", "no-items"]
    assert run.meta["hashes"] == {"data": None, "eval_data": None, "start": None}
    del logger
    assert not run.finished, "one of two steps"


def test_without_verl_it_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "verl", None)
    with pytest.raises(ConfigError, match="verl is not installed here"):
        for_verl.keep()
