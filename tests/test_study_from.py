"""`kleash study from`: arms, places and settings of reports, and questions where they differ."""

import tomllib
from pathlib import Path

import pytest
from typer.testing import CliRunner

from kleash.cli import app
from kleash.compare.read import read
from kleash.errors import DataError
from kleash.study.plan import arms_of, read_study

SEEDS = Path(__file__).parent.parent.parent / "shared/seeds"
DOCUMENTS = sorted(SEEDS.glob("00*.txt"))
REPORT = """# KL sweep

## Configuration of beta=0.02

| Parameter | Value |
|---|---|
| Base checkpoint | RCE epoch 4 |
| Learning rate | 2e-5 |
| Batch size | 8 |
| Epochs | 2 |

## Configuration of beta=0.1

| Parameter | Value |
|---|---|
| Base checkpoint | RCE epoch 6 |
| Learning rate | 2e-5 |
| Batch size | 8 |
| Epochs | 2 |

## Epoch 1, accuracy

| beta | 100 samples, 1-shot | 200 samples, 1-shot | 100 samples, 3-shot |
|---|---|---|---|
| 0.02 | 51.0% | 50.5% | ? |
| 0.1 | 52.0% | ? | 49.0% |
"""


def made(tmp_path, *reports):
    out = tmp_path / "asked.toml"
    told = CliRunner().invoke(app, ["study", "from", *map(str, reports), "--out", str(out)])
    assert told.exit_code == 0, told.output
    return out


def test_a_report_becomes_a_study_that_can_be_planned(tmp_path):
    report = tmp_path / "report.md"
    report.write_text(REPORT)
    out = made(tmp_path, report)
    file = read_study(str(out))
    assert {arm.name: arm.keys["leash.coefficient"] for arm in arms_of(file)} == {
        "kl-0.02": 0.02,
        "kl-0.1": 0.1,
    }
    assert file.measure.shots == (1, 3)
    assert file.measure.items == (100, 200)
    assert file.measure.test == "all"
    assert (file.grpo["lr"], file.grpo["batch"], file.grpo["epochs"]) == (2e-5, 8, 2)
    told = CliRunner().invoke(app, ["study", str(out), "--dry-run"])
    assert told.exit_code == 0, told.output
    questions = [line for line in out.read_text().splitlines() if line.startswith("# ")]
    (base,) = [line for line in questions if "base checkpoint" in line]
    assert "RCE epoch 4" in base
    assert "RCE epoch 6" in base
    assert "report.md:7" in base


def test_others_are_compared_with_the_arm_that_the_report_compares_them_with(tmp_path):
    table = """| beta | 1-shot | vs 0.1 |
|---|---|---|
| 0.02 | 51.0% | -1.0% |
| 0.1 | 52.0% | baseline |
| 0.5 | 50.0% | -2.0% |
"""
    report = tmp_path / "report.md"
    report.write_text(f"# Sweep\n\n## Accuracy of beta\n\n{table}")
    assert read_study(str(made(tmp_path, report))).compare.baselines == ("kl-0.1",)
    report.write_text(REPORT)  # nothing is taken from anything: the least leash
    (tmp_path / "asked.toml").unlink()
    assert read_study(str(made(tmp_path, report))).compare.baselines == ("kl-0.02",)


OTHERS = """# 三种方法

| 方法 | 1-shot | 2-shot | 平均 |
|---|---|---|---|
| 随机 | 48.2% | 49.6% | 48.90% |
| 相似 | 50.1% | 51.7% | 50.90% |
| GRPO(β=0.1) | 53.8% | 55.7% | 54.75% |
| 合计 | 152.1% | 157.0% | 154.55% |

## 曲线

| Epoch | 随机 | β=0.1 | β=0.1 − 随机 |
|---|---|---|---|
| 1 | 48.0% | 52.0% | +4.0% |
| 2 | 48.2% | 53.8% | +5.6% |
"""


def test_what_is_no_arm_becomes_none_and_an_arm_of_two_names_one(tmp_path):
    report = tmp_path / "others.md"
    report.write_text(OTHERS, encoding="utf-8")
    out = made(tmp_path, report)
    file, text = read_study(str(out)), out.read_text(encoding="utf-8")
    assert set(file.arms) == {"arm", "arm-2", "kl-0.1"}
    assert '[arms."arm"]\n# 随机' in text and '[arms."arm-2"]\n# 相似' in text
    [unsaid] = [line for line in text.splitlines() if "的系数" in line]
    assert "随机, 相似 " in unsaid and "合计" not in text
    assert "dataset" in text.split("name =")[0]
    assert CliRunner().invoke(app, ["study", str(out), "--dry-run"]).exit_code == 0


def test_seeds_that_a_report_tells_apart_are_no_question(tmp_path):
    rows = "".join(f"| {b} | 51.{b[-1]}% | 52.0% | 50.{b[-1]}% |\n" for b in ("0.02", "0.1"))
    report = tmp_path / "seeds.md"
    report.write_text(
        f"# Accuracy\n\n| beta | seed 1 | seed 2 | seed 3 |\n|---|---|---|---|\n{rows}"
    )
    assert "trained once" not in made(tmp_path, report).read_text()
    report.write_text(REPORT)
    (tmp_path / "asked.toml").unlink()
    assert "trained once" in made(tmp_path, report).read_text()


BESIDE = """# Sweep

| arm | accuracy, epoch 1 | accuracy, epoch 2 |
|---|---|---|
| random | 40.1% | 40.1% |
| RCE | 44.0% | 44.0% |
| RL-0 | 47.0% | 48.0% |
| RL-0.05 | 48.0% | 49.0% |
| RL-0.2 | 46.0% | 45.0% |

| run | accuracy |
|---|---|
| RL-0.05 / seed 1 | 48.9% |
| RL-0.05 / seed 2 | 49.1% |
| RL-0.2, lr=5e-6 | 47.0% |
| RL-0.2, lr=1e-6 | 45.0% |

| metric | RL-0.05 | RL-0.2 | RL-0.05 − RL-0.2 |
|---|---|---|---|
| KL | 0.31 | 0.12 | +0.19 |
"""


def test_what_has_no_coefficient_where_others_do_is_asked_about_and_no_arm(tmp_path):
    report = tmp_path / "beside.md"
    report.write_text(BESIDE)
    out = made(tmp_path, report)
    arms = {name: arm["leash"]["coefficient"] for name, arm in read_study(str(out)).arms.items()}
    assert sorted(arms.values()) == [0.0, 0.05, 0.2, 0.2, 0.2]  # two rates of 0.2, and it alone
    assert not any("seed" in name for name in arms)
    [aside] = [line for line in out.read_text().splitlines() if "not taken for arms" in line]
    assert "random, RCE" in aside
    assert "RL" not in aside
    assert CliRunner().invoke(app, ["study", str(out), "--dry-run"]).exit_code == 0


def test_rows_of_an_arms_seeds_are_one_arm(tmp_path):
    rows = [("loose / seed 1", 47), ("tight (seed 1)", 48), ("loose / seed 2", 46), ("firm-s3", 49)]
    report = tmp_path / "seeds.md"
    lines = "".join(f"| {name} | {level}.0% | {level}.5% |\n" for name, level in rows)
    report.write_text(f"# Runs\n\n| run | epoch 1 | epoch 2 |\n|---|---|---|\n{lines}")
    assert set(read_study(str(made(tmp_path, report))).arms) == {"loose", "tight", "firm"}  # no -s3
    assert {run.arm for run in read(report).runs} == {"loose", "tight", "firm-s3"}


def test_the_language_is_as_asked_and_that_of_the_plan_too(tmp_path):
    report = tmp_path / "report.md"
    report.write_text(REPORT)
    for lang, question, state in (
        ("zh", "各处不一致", "个缺失"),
        ("en", "not the same", " missing"),
    ):
        out = tmp_path / f"{lang}.toml"
        words = ["study", "from", str(report), "--out", str(out), "--dry-run", "--lang", lang]
        told = CliRunner().invoke(app, words)
        assert told.exit_code == 0, told.output
        assert question in out.read_text(encoding="utf-8")
        assert state in told.output
    wrong = CliRunner().invoke(app, ["study", "from", str(report), "--out", "no/such/x.toml"])
    assert isinstance(wrong.exception, DataError) and "cannot write" in str(wrong.exception)


def test_it_is_printed_where_no_file_is_named_and_never_written_over_one(tmp_path):
    report = tmp_path / "report.md"
    report.write_text(REPORT)
    told = CliRunner().invoke(app, ["study", "from", str(report)])
    assert "kl-0.1" in tomllib.loads(told.output)["arms"]
    out = made(tmp_path, report)
    again = CliRunner().invoke(app, ["study", "from", str(report), "--out", str(out)])
    assert again.exit_code != 0


@pytest.mark.skipif(len(DOCUMENTS) != 5, reason="the five documents are not here")
def test_documents_000_and_002_ask_for_five_arms_three_epochs_four_shots_and_sizes(tmp_path):
    out = made(tmp_path, DOCUMENTS[0], DOCUMENTS[2])
    file = read_study(str(out))
    values = [arm.keys["leash.coefficient"] for arm in arms_of(file)]
    assert values == [0.12, 0.145, 0.15, 0.155, 0.18]
    assert file.grpo["epochs"] == 3
    assert file.measure.shots == (1, 2, 3, 4)
    assert file.measure.items == (100, 200, 400, 800)
    assert file.base["rce"]["epochs"] == 5
    assert (file.base["data"], file.base["answerer"]) == ("okvqa", "transformers")
    assert file.base["answerer_options"]["model"] == "models/Qwen2.5-VL-3B-Instruct"
    assert (file.grpo["lr"], file.grpo["batch"]) == (5e-6, 1)
    assert file.compare.baselines == ("kl-0.15",)
    questions = "\n".join(line for line in out.read_text().splitlines() if line.startswith("# "))
    for said in ("RCE epoch 2", "kl012/rce_epoch5.pt", "rl_data_k64_v3.json", "data/okvqa"):
        assert said in questions
    told = CliRunner().invoke(app, ["study", str(out), "--dry-run"])
    assert told.exit_code == 0
    assert "epoch-1,epoch-2,epoch-3" in told.output


@pytest.mark.skipif(len(DOCUMENTS) != 5, reason="the five documents are not here")
def test_documents_003_and_004_ask_for_agents_and_say_what_changed_together(tmp_path):
    out = made(tmp_path, DOCUMENTS[3], DOCUMENTS[4])
    file = read_study(str(out))
    assert file.of_agents
    assert set(file.arms) == {"none", "kl-0.01"}
    assert "entropy_bonus, schedule" in out.read_text()
    assert file.compare.baselines == ("none",)
    assert CliRunner().invoke(app, ["study", str(out), "--dry-run"]).exit_code == 0
