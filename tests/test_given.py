"""Paths as a user gives them: which runs are of one arm, and what they are called."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from rich.console import Console
from typer.testing import CliRunner

from kleash.cli import app
from kleash.cli.train import show_scores
from kleash.compare.arms import gather
from kleash.compare.attribution import effect_of
from kleash.compare.comparison import compare
from kleash.compare.read import Imported, Series, Setting, Source, Where, in_names, names, read
from kleash.compare.read.run_names import label
from kleash.errors import ConfigError, DataError


def rewards(level: float) -> list[float]:
    return [level + 0.01 * step + (0.02 if step % 3 else 0.0) for step in range(1, 13)]


def console(level: float, config: dict[str, object] | None = None) -> str:
    """What verl prints."""
    head = f"{config}\n" if config else ""
    lines = [
        f"(TaskRunner pid=9) step:{step} - actor/kl_loss:0.001 - critic/rewards/mean:{value:.4f}"
        for step, value in enumerate(rewards(level), 1)
    ]
    return head + "\n".join(lines) + "\n"


def settings(coefficient: float, seed: int) -> dict[str, object]:
    return {
        "actor_rollout_ref": {"actor": {"kl_loss_coef": coefficient, "use_kl_loss": True}},
        "data": {"train_batch_size": 64, "seed": seed, "train_files": "gsm8k.parquet"},
    }


def rows(level: float) -> str:
    return "".join(
        json.dumps({"step": step, "reward": value}) + "\n"
        for step, value in enumerate(rewards(level), 1)
    )


def table(level: float) -> str:
    lines = [f"{step},{value:.4f}" for step, value in enumerate(rewards(level), 1)]
    return "step,reward\n" + "\n".join(lines) + "\n"


WRITERS = {".log": console, ".out": console, ".txt": console, ".jsonl": rows, ".csv": table}


def put(path: Path, level: float, *more: object) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(WRITERS[path.suffix](level, *more))
    return path


def arms_of(*words: object) -> list[str]:
    """The arms that `compare` tells of, whatever else it says."""
    done = CliRunner().invoke(app, ["compare", *map(str, words), "--json"])
    assert done.exit_code == 0, repr(done.exception)
    return [arm["name"] for arm in json.loads(done.stdout)["arms"]]


def runs_watched(*words: object) -> list[str]:
    done = CliRunner().invoke(app, ["watch", *map(str, words), "--once", "--json"])
    assert done.exit_code == 0, repr(done.exception)
    return [run["name" if "name" in run else "run"] for run in
            json.loads(done.stdout.splitlines()[-1])["runs"]]  # fmt: skip


FILES = ["console.log", "train.log", "nohup.out", "run.txt", "metrics.jsonl", "results.csv",
         "logs/train.log", "verl/logs/console.log", "out/metrics.jsonl", "qwen.log"]  # fmt: skip


@pytest.mark.parametrize("name", FILES)
def test_two_paths_are_two_arms_and_two_runs_whatever_their_files_are_called(name, tmp_path):
    files = [put(tmp_path / arm / name, level) for arm, level in (("A", 0.3), ("B", 0.4))]
    wanted = ["A/qwen", "B/qwen"] if name == "qwen.log" else ["A", "B"]
    assert arms_of(*files) == wanted
    assert sorted(runs_watched(*files)) == wanted
    folders = [tmp_path / arm for arm in ("A", "B")]
    assert len(arms_of(*folders)) == 2
    assert len(set(runs_watched(*folders))) == 2
    if "/" in name:  # the folder that the user points at is called alike, too
        assert arms_of(*(folder / Path(name).parts[0] for folder in folders)) == ["A", "B"]


def test_relative_paths_and_the_folder_one_stands_in(tmp_path, monkeypatch):
    for arm, level in (("A", 0.3), ("B", 0.4)):
        put(tmp_path / arm / "console.log", level)
    monkeypatch.chdir(tmp_path / "A")
    assert arms_of("console.log", "../B/console.log") == ["A", "B"]
    assert len(arms_of(".", "../B")) == 2


def test_a_user_names_paths(tmp_path):
    a, b, c = (put(tmp_path / arm / "console.log", 0.1 * at) for at, arm in enumerate("ABC"))
    assert arms_of("--name", f"no KL={a}", "--name", f"KL 0.01={b}") == ["no KL", "KL 0.01"]
    assert arms_of(a, b, "--name", f"x={a}") == ["x", "console"]
    # What the user calls alike is one arm.
    assert arms_of("--name", f"x={a}", "--name", f"x={b}", "--name", f"y={c}") == ["x", "y"]
    assert set(runs_watched(a, "--name", f"x={b}")) == {"console", "x"}
    done = CliRunner().invoke(app, ["compare", str(a), "--name", "x"])
    assert isinstance(done.exception, ConfigError) and "--name A=runs/a" in str(done.exception)


def test_names_hold_against_equal_configs(tmp_path):
    a, b = (put(tmp_path / arm / "console.log", 0.3, settings(0.01, seed))
            for seed, arm in enumerate("AB"))  # fmt: skip
    assert arms_of("--name", f"old={a}", "--name", f"new={b}") == ["old", "new"]


def test_seeds_of_one_arm_in_paths_of_their_own_are_one_arm(tmp_path):
    files = [
        put(tmp_path / f"job{at}/console.log", 0.3 + at / 50, settings(beta, seed))
        for at, (beta, seed) in enumerate([(0.0, 1), (0.0, 2), (0.01, 1), (0.01, 2)])
    ]
    found = gather([read(file) for file in files])
    assert [[each.seed for each in arm.replicates] for arm in found] == [[1, 2], [1, 2]]
    named = [put(tmp_path / f"kl{beta}-s{seed}/metrics.jsonl", beta + seed / 50)
             for beta in (0.0, 0.01) for seed in (1, 2)]  # fmt: skip
    assert arms_of(*named) == ["kl0.0", "kl0.01"]
    folders = [put(tmp_path / f"more/kl{beta}/seed{seed}/console.log", beta + seed / 50)
               for beta in (0.0, 0.01) for seed in (1, 2)]  # fmt: skip
    assert arms_of(*folders) == ["kl0.0", "kl0.01"]
    inside = [put(tmp_path / f"s{seed}/kl{beta}.jsonl", beta + seed / 50)
              for beta in (0.0, 0.01) for seed in (1, 2)]  # fmt: skip
    assert arms_of(*inside) == ["kl0.0", "kl0.01"]
    assert {tuple(each["seeds"]) for each in compared(*inside)} == {(1, 2)}


def compared(*words: object) -> list[dict[str, object]]:
    done = CliRunner().invoke(app, ["compare", *map(str, words), "--json"])
    return json.loads(done.stdout)["arms"]


def test_one_config_and_one_seed_in_two_paths_are_two_arms(tmp_path):
    files = [put(tmp_path / arm / "console.log", 0.3, settings(0.01, 1)) for arm in "AB"]
    assert arms_of(*files) == ["A", "B"]


def test_seeds_of_two_trees_are_not_mixed(tmp_path):
    files = [put(tmp_path / f"{tree}/kl0.01-s{seed}.jsonl", 0.3 + seed / 50)
             for tree in ("old", "new") for seed in (0, 1)]  # fmt: skip
    assert arms_of(*files) == ["old/kl0.01", "new/kl0.01"]
    assert [each["runs"] for each in compared(*files)] == [2, 2]


def test_parts_of_one_training_stay_one_arm(tmp_path):
    """Its curve and its evaluation, each in a folder for such files."""
    files = []
    for beta in ("kl0", "kl0.01"):
        files.append(put(tmp_path / f"train/{beta}.jsonl", 0.3))
        files.append(tmp_path / f"eval/{beta}.csv")
        files[-1].parent.mkdir(exist_ok=True)
        files[-1].write_text("step,accuracy\n10,0.5\n20,0.6\n")
    assert arms_of(*files) == ["kl0", "kl0.01"]


def test_one_arm_alone_is_told_with_what_to_do(tmp_path):
    file = put(tmp_path / "A/console.log", 0.3)
    done = CliRunner().invoke(app, ["compare", str(file), str(file)])
    assert isinstance(done.exception, DataError)
    assert "only one arm was found, console (1 run)" in str(done.exception)
    assert "--name A=PATH" in str(done.exception)


def test_a_warning_names_the_run_that_it_is_about(tmp_path):
    for arm, last in (("A", 0.9), ("B", 0.0)):
        lines = [f"step:{n} - critic/rewards/mean:{0.9 if n < 60 else last}" for n in range(1, 90)]
        path = tmp_path / arm / "console.log"
        path.parent.mkdir()
        path.write_text("\n".join(lines) + "\n")
    words = ["watch", *(str(tmp_path / arm / "console.log") for arm in "AB"), "--once", "--json"]
    *warned, _ = map(json.loads, CliRunner().invoke(app, words).stdout.splitlines())
    assert {each["run"] for each in warned} == {"B"}
    assert all("console" not in each["text"] for each in warned)


# --- one name for one quantity


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def verl_log(path: Path, level: float, name: str = "") -> Path:
    """A console of verl with the penalty for KL in the reward: two rewards, one less than KL."""
    lines = []
    for step, value in enumerate(rewards(level), 1):
        line = f"step:{step} - critic/rewards/mean:{value - 0.02 * step:.4f}"
        line += f" - critic/score/mean:{value:.4f} - actor/reward_kl_penalty:{0.001 * step:.4f}"
        lines.append(line + (f" - {name}:{2 * value:.4f}" if name else ""))
    return write(path, "\n".join(lines) + "\n")


def trl_log(path: Path, level: float) -> Path:
    """The state of a trainer with two reward functions, which evaluates every second step."""
    history: list[dict[str, float]] = []
    for step, value in enumerate(rewards(level), 1):
        told = {"reward": value + 0.9, "rewards/accuracy_reward/mean": value,
                "rewards/format_reward/mean": 0.9, "reward_std": 0.1}  # fmt: skip
        history.append({"step": step, "epoch": step / 12, "loss": 0.01, "kl": 0.001} | told)
        if not step % 2:
            history.append({"step": step} | {f"eval_{name}": v for name, v in told.items()})
    state = {"global_step": 12, "max_steps": 12, "log_history": history}
    return write(path / "trainer_state.json", json.dumps(state)).parent


def level_of(*words: object) -> dict[str, object]:
    done = CliRunner().invoke(app, ["compare", *map(str, words), "--lang", "en", "--json"])
    assert done.exit_code == 0, repr(done.exception)
    return next(e for e in json.loads(done.stdout)["verdicts"] if e["question"] == "level")


def test_two_reward_functions_with_evaluation_are_not_two_histories(tmp_path):
    found = level_of(*(trl_log(tmp_path / arm, level) for arm, level in (("a", 0.3), ("b", 0.4))))
    assert found["verdict"] != "invalid"
    assert found["metric"] == "eval_reward"
    assert found["estimate"] == pytest.approx(0.1)
    (line,) = (text for text in found["because"] if text.startswith("read and not used"))
    assert "eval_rewards/accuracy_reward/mean" in line and "eval_rewards/format" in line


def test_kl_in_the_reward_of_verl_is_not_two_histories_and_the_score_is_judged(tmp_path):
    files = [verl_log(tmp_path / arm / "console.log", level) for arm, level in
             (("a", 0.3), ("b", 0.4))]  # fmt: skip
    found = level_of(*files)
    assert found["verdict"] == "better"
    assert (found["metric"], found["estimate"]) == ("reward", pytest.approx(0.1))
    assert "read and not used: critic/rewards/mean" in found["because"]


@pytest.mark.parametrize("spelling", ["mean@1", "mean_at_1", "mean_1"])
@pytest.mark.parametrize(("of", "metric"), [("reward", "eval_reward"), ("acc", "accuracy")])
def test_validation_is_known_as_each_tool_of_verl_spells_it(spelling, of, metric, tmp_path):
    name = f"val-core/gsm8k/{of}/{spelling}"
    files = [verl_log(tmp_path / arm / "console.log", level, name) for arm, level in
             (("a", 0.2), ("b", 0.3))]  # fmt: skip
    found = level_of(*files)
    assert (found["metric"], found["verdict"]) == (metric, "better")
    assert in_names.within(name) == in_names.within(f"val-core/gsm8k/{of}/mean@1")


@pytest.mark.parametrize("name", ["val-core/x/reward/best@4/mean", "loss_mean_1", "mean_1"])
def test_what_only_looks_like_it_stays_unknown(name):
    assert names.metric(name) is None


def test_a_validation_that_no_table_knows_is_said_where_another_curve_is_judged(tmp_path):
    name = "val-core/gsm8k/reward/best@4/mean"
    files = [verl_log(tmp_path / arm / "console.log", level, name) for arm, level in
             (("a", 0.2), ("b", 0.3))]  # fmt: skip
    found = level_of(*files)
    assert found["metric"] == "reward"
    assert any(name in text and "not used" in text for text in found["because"])


# --- common steps


def test_runs_with_seeds_of_their_own_in_their_configs_are_compared_on_common_steps(tmp_path):
    files = [put(tmp_path / arm / "console.log", level, settings(beta, seed))
             for arm, level, beta, seed in (("a", 0.3, 0.0, 1), ("b", 0.4, 0.01, 42))]  # fmt: skip
    found = level_of(*files)
    assert (found["verdict"], found["n"]) == ("better", 12)
    assert found["estimate"] == pytest.approx(0.1)


TABLES = {
    "gsm8k_accuracy.csv": "run,step 100,step 200,step 300,best\n"
    "kl0,0.51,0.54,0.53,0.54\nkl0.01,0.52,0.56,0.57,0.57\n",
    "accuracy.tsv": "method\tstep_100\tstep_200\tstep_300\tbest\n"
    "no KL\t51\t54\t53\t54\nKL 0.01\t52\t56\t57\t57\n",
    "table.csv": "run,metric,epoch 1,epoch 2,epoch 3\nkl0,accuracy,0.51,0.54,0.53\n"
    "kl0,kl,0,0,0\nkl0.01,accuracy,0.52,0.56,0.57\nkl0.01,kl,0,0,0\n",
    "more.csv": "run,accuracy@step100,accuracy@step200,accuracy@step300\n"
    "kl0,0.51,0.54,0.53\nkl0.01,0.52,0.56,0.57\n",
    "report.md": "# Results\n\nAccuracy on GSM8K.\n\n"
    "| run | step 100 | step 200 | step 300 | best |\n"
    "|---|---|---|---|---|\n| kl 0 | 51.0 | 54.0 | 53.0 | 54.0 |\n"
    "| kl 0.01 | 52.0 | 56.0 | 57.0 | 57.0 |\n",
}  # fmt: skip


@pytest.mark.parametrize("name", list(TABLES))
def test_a_table_with_a_column_for_each_step_is_a_curve_for_each_row(name, tmp_path):
    found = level_of(write(tmp_path / name, TABLES[name]))
    assert (found["metric"], found["n"]) == ("accuracy", 3)
    assert found["estimate"] == pytest.approx(0.07 / 3)


def test_arms_without_a_common_step_are_told_with_their_steps(tmp_path):
    for arm, every in (("A", 5), ("B", 7)):
        lines = [f"{step},0.5" for step in range(every, 60, every) if step != 35]
        write(tmp_path / f"{arm}.csv", "step,reward\n" + "\n".join(lines) + "\n")
    files = [tmp_path / f"{arm}.csv" for arm in "AB"]
    told = level_of(*files)["because"][1]
    assert told == (
        "the runs have no common steps for this metric (B: step 7, 14, …, 56; A: step 5, 10, …, 55)"
    )


# --- Kleash's own runs


def own(arm: str, seed: int, level: float, last: int = 12) -> Imported:
    """A finished run as it is read: the reward by step, validation by epoch."""
    run = Imported(f"{arm}-s{seed}", "", "kleash", Where(f"{arm}-s{seed}"), finished=True)
    run.config = {"leash.coefficient": Setting(float(arm[2:]), run.where),
                  "lr": Setting(1e-3, run.where), "seed": Setting(seed, run.where)}  # fmt: skip
    values = np.array(rewards(level)[:last])
    for metric, axis in (("validation/accuracy", "epoch"), ("episode/reward", "step"),
                         ("reward", "step")):  # fmt: skip
        where = run.where
        run.series.append(Series(metric, axis, np.arange(1.0, last + 1), values + seed / 90, where))
    return label(run)


def test_own_runs_are_compared_by_the_accuracy_of_validation():
    source = Source("runs", "kleash", [own("kl0", 0, 0.3), own("kl0.1", 0, 0.4)])
    found = compare([source])
    assert found.verdicts[0].metric == "accuracy"


def test_a_finished_run_did_not_break_off():
    sizes = {("kl0", 0): 6}
    runs = [own(arm, seed, 0.3 + seed / 50, sizes.get((arm, seed), 12))
            for arm in ("kl0", "kl0.1", "kl0.2") for seed in (0, 1)]  # fmt: skip

    def broke_off():
        found = effect_of("kl_coef", [Source("runs", "kleash", runs)], "accuracy")
        return found.left_out["broke_off"]

    assert broke_off() == []
    runs[0].finished = False
    assert broke_off() != []


@pytest.mark.parametrize("kind", ["env", "selector"])
def test_eval_of_an_agent_tells_its_reward_and_its_passes(kind, monkeypatch, capsys):
    cells = [{"checkpoint": name, "shots": n, "n": 5, "broken": 0, "mean": 1.222, "low": 1.0,
              "high": 1.4} for name in ("epoch-1", "epoch-2") for n in (0, 2)]  # fmt: skip
    gap = {"against": "epoch-1", "shots": 0, "estimate": 0.1, "low": 0.0, "high": 0.2,
           "differ": 2, "n": 5, "p": 0.5}  # fmt: skip
    monkeypatch.setattr("kleash.train.evaluate.table", lambda run, wanted: cells)
    monkeypatch.setattr("kleash.train.evaluate.gaps", lambda run, wanted: [gap])
    wanted = SimpleNamespace(
        checkpoints=["epoch-1", "epoch-2"], shots=[0, 2], split="test", items=5
    )
    show_scores(SimpleNamespace(config={kind: {}}), wanted, "en", as_json=False)
    told = capsys.readouterr().out
    if kind == "env":
        assert "reward on 5 tasks" in told and "greedy" in told and "2 sampled passes" in told
        assert "accuracy" not in told and "shot" not in told
    else:
        assert "accuracy on 5 items" in told and "2 shots" in told


def test_no_two_runs_look_alike_in_eighty_columns(tmp_path, monkeypatch):
    name = "grpoqwen3instructfourbillionlearningrate1e6batch128"
    for end in "12":
        put(tmp_path / f"{name}x{end}.log", 0.3)
    module = sys.modules["kleash.cli.watch"]
    monkeypatch.setattr(module, "stdout", lambda: Console(width=80))
    told = CliRunner().invoke(app, ["watch", str(tmp_path), "--once"]).stdout
    rows = "".join(line.split("│")[1].strip() for line in told.splitlines() if "│" in line)
    assert f"{name}x1{name}x2" in rows and "…" not in rows
