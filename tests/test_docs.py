"""docs/moving.md: its commands run, and every command of the five documents has a row in it.

So do those of docs/studies.md on planning, and what the `--help` of some verbs shows.
"""

import json
import re
import shlex
import shutil
from pathlib import Path

import pytest
import tomli_w
from typer.main import get_command
from typer.testing import CliRunner

import tiny
from kleash.cli import app
from kleash.config import merge, read_toml
from kleash.report.words.coefficients import known_rows, rows_for
from kleash.seeds import generator
from study_tools import SMALL, inline
from test_adopt import Theirs, save
from test_attribution import MONTH, scored, table
from test_data_check import made as made_rl_data
from test_prospect import noisy_study

__all__ = ["inline"]

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs/moving.md").read_text(encoding="utf-8")
SEEDS = sorted((ROOT.parent / "shared/seeds").glob("00*.txt"))
FIXTURES = ROOT / "tests/fixtures/imports/handmade"
DOCUMENTS = pytest.mark.skipif(len(SEEDS) != 5, reason="the five documents are not here")

# What makes the page's files small: the tests' world, few queries and items, one seed.
RUN = {key: SMALL["base"][key] for key in ("data", "answerer", "pool", "propose")} | {
    "supervised": {"epochs": 1},
    "queries": 12,
}
STUDY = {
    "seeds": 1,
    "base": RUN,
    "measure": {"shots": [1, 2], "items": [20, 40], "validation": 20, "greedy_items": 2},
}
# Eight arms, of which the page says only that they run.
SHORTER = {"factors.toml": {"grpo": {"epochs": 1}}}
# What the two runs of an agent scored at steps 5, 10, … 45.
REWARDS = {
    "": (1.818, 2.140, 1.840, 1.830, 1.750, 1.788, 2.040, 2.003, 2.202),
    "_kl": (1.695, 1.992, 1.768, 1.915, 1.970, 1.828, 1.840, 2.123, 2.005),
}
WANDB = {"": "run-20251205_042058-kzhcvif9", "_kl": "run-20251206_013957-l6ldowdv"}


def blocks(language):
    return re.findall(rf"^```{language}\n(.*?)^```", PAGE, re.S | re.M)


def commands():
    """Every command of the page, in its order."""
    lines = "".join(blocks("console")).replace("\\\n", " ").splitlines()
    assert all(line.startswith("$ kleash ") for line in lines)
    return [line[2:] for line in lines]


def place(folder):
    """Everything that the commands of the page name and do not make themselves."""
    (folder / "configs").mkdir()
    recipe = merge(read_toml(ROOT / "configs/lever-plus.toml"), RUN)
    (folder / "configs/lever-plus.toml").write_text(tomli_w.dumps(recipe), encoding="utf-8")
    for text in blocks("toml"):
        path = folder / re.match(r"# (\S+\.toml)\n", text)[1]
        path.write_text(text, encoding="utf-8")
        shorter = merge(merge(read_toml(path), STUDY), SHORTER.get(path.name, {}))
        path.write_text(tomli_w.dumps(shorter), encoding="utf-8")
    (folder / "old").mkdir()
    for path in SEEDS:
        shutil.copy(path, folder / "old" / f"{path.name[:3]}.md")
    place_logs(folder)
    save(folder / "model_cpk/kl012/rce_epoch5.pt", Theirs())
    save(folder / "model_cpk/kl012/grpo_epoch1.pt", Theirs(seed=1), kl_beta=0.12)
    shutil.copy(folder / "results/okvqa/training_metrics_kl012.json", folder / "model_cpk/kl012")
    (folder / "rl_data_k64_v3.json").write_text(json.dumps(made_rl_data()), encoding="utf-8")


def place_logs(folder):
    curves = folder / "results/okvqa"
    curves.mkdir(parents=True)
    points = json.loads((FIXTURES / "selector/training_metrics_kl012.json").read_text())
    (curves / "training_metrics_kl012.json").write_text(json.dumps(points))
    lower = [point | {"grpo_loss": point["grpo_loss"] - 0.001} for point in points]
    (curves / "training_metrics_kl015.json").write_text(json.dumps(lower))
    for arm, rewards in REWARDS.items():
        told = list(enumerate(rewards, 1))
        run = folder / f"UserRL/IntentionGym_Qwen8B_3GPU_Full_Group8{arm}"
        run.mkdir(parents=True)
        lines = [{"step": 5 * n, "data": {"val/reward": reward}} for n, reward in told]
        (run / f"{run.name}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
        files = folder / "wandb" / WANDB[arm] / "files"
        shutil.copytree(FIXTURES / "wandb/run-20240101_000000-abc/files", files)
        printed = "".join(f"step:{5 * n} - val/reward:{reward}\n" for n, reward in told)
        (files / "output.log").write_text(printed)
        off = (files / "config.yaml").read_text().replace("use_kl_loss: true", "use_kl_loss: false")
        if not arm:
            (files / "config.yaml").write_text(off)


@pytest.mark.slow
def test_the_commands_run_in_the_order_of_the_page(tmp_path, monkeypatch, inline):
    monkeypatch.setitem(tiny.SIZES, "test", 800)
    monkeypatch.chdir(tmp_path)
    place(tmp_path)
    asked = [each for each in commands() if SEEDS or "old/" not in each]
    for command in asked:
        ran(command)
    for made in re.findall(r"--(?:html|md) (\S+)", " ".join(asked)):
        assert (tmp_path / made).stat().st_size > 1000, made
    for made in re.findall(r"--figures (\S+)", " ".join(asked)):
        assert list((tmp_path / made).glob("*.svg")), made
    assert "kl-0.145" in (tmp_path / "studies/kl-sweep/report.md").read_text(encoding="utf-8")
    assert (tmp_path / "studies/factors/report.html").is_file()


@DOCUMENTS
@pytest.mark.parametrize("path", SEEDS, ids=lambda path: path.name[:3])
def test_every_command_and_file_of_a_document_has_its_row(path):
    text = path.read_text(encoding="utf-8")
    lines = "".join(re.findall(r"^```bash\n(.*?)^```", text, re.S | re.M)).splitlines()
    named = [line.split("#")[0].strip() for line in lines]
    named += re.findall(r"`([^`\n]*(?:\.py|\.json|\.pt|/|run-\d+_\d+-\w+))`", text)
    rows = [line for line in PAGE.splitlines() if line.startswith("|")]
    assert not [name for name in named if name and not any(f"`{name}`" in row for row in rows)]
    assert any(path.name[:3] in line for line in PAGE.splitlines() if line.startswith("## "))


def test_everything_that_the_documents_do_is_there():
    assert "not yet" not in PAGE


# --- coefficients elsewhere


def test_the_table_of_coefficients_is_the_one_that_coef_prints():
    page = (ROOT / "docs/method.md").read_text(encoding="utf-8")
    section = page.split("## Coefficients elsewhere\n")[1].split("\n## ")[0]
    rows = [line for line in section.splitlines() if line.startswith("| ")][1:]
    assert rows == [
        f"| {row.project} | {row.settings[0]} | {row.here[0]} |"
        f" {row.amount(f'`{row.key}`')}{', ' if row.note[0] else ''}{row.note[0]} |"
        for row in known_rows()
    ]


def coef(*words):
    return CliRunner().invoke(app, ["coef", *words], catch_exceptions=False).output


def test_a_coefficient_is_told_in_units_of_reward():
    every = coef("verl", "actor.kl_loss_coef=0.001")
    assert every.count("leash.coefficient = ") == 2
    assert "leash.coefficient = 0.001·σ·(G/(G-1))" in every
    assert "refused: no leash" in every
    # By hand: 0.04 times 0.3 times 8/7; centred rewards are not divided by their spread.
    told = ("trl", "beta=0.04", "--reward-sd", "0.3", "--group", "8")
    assert "leash.coefficient = 0.01371 = 0.04·σ·(G/(G-1))" in coef(*told, "loss_type=dapo")
    one = coef(*told, "scale_rewards='none'")
    assert one.count("leash.coefficient = ") == 1
    assert "leash.coefficient = 0.04571 = 0.04·G/(G-1)" in one
    both = coef("verl", "kl_loss_coef=1", "kl_loss_type=kl", "norm_adv_by_std_in_grpo=False")
    assert "refused" in both and "leash.coefficient = " not in both
    both = coef("trl", "beta=1", "loss_type=grpo", "scale_rewards=none")
    assert "σ·" not in both.split("σ: SD")[0]
    assert "拒绝" in coef("verl", "kl_coef=0.1", "kl_penalty=low_var_kl", "--lang", "zh")


@pytest.mark.parametrize("row", known_rows(), ids=lambda row: f"{row.project} {row.when[0]}")
def test_the_settings_of_a_row_find_it(row):
    key, found = rows_for(row.project, {row.key: "1"} | dict([row.when[0].split("=")]))
    assert (key, list(found)) == (row.key, [row])


# --- what `--help` shows


def place_runs(folder):
    """A study that was run, three runs of W&B, and a table of runs."""
    noisy_study(folder / "studies/demos-kl", seeds=4)
    for at, (used, rewards) in enumerate(zip((1, 0, 1), [*REWARDS.values()] * 2, strict=False), 1):
        files = folder / f"wandb/run-{at}/files"
        shutil.copytree(FIXTURES / "wandb/run-20240101_000000-abc/files", files)
        told = [f"step:{5 * n} - val/reward:{r + at / 50}\n" for n, r in enumerate(rewards, 1)]
        (files / "output.log").write_text("".join(told))
        config = (files / "config.yaml").read_text().replace("value: 1\n", f"value: {at}\n")
        if not used:
            config = config.replace("use_kl_loss: true", "use_kl_loss: false")
        (files / "config.yaml").write_text(config)
    table(folder, MONTH, scored(MONTH, generator("help"), entropy=0.05))


def test_what_help_shows_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    place_runs(tmp_path)
    shown = re.findall(r"^ *(kleash plan .*?)(?:  \(.*)?$", command_help("plan"), re.M)
    assert len(shown) > 2
    for command in shown:
        ran(command)


def ran(command):
    told = CliRunner().invoke(app, shlex.split(command)[1:])
    if told.exception is not None and not isinstance(told.exception, SystemExit):
        raise AssertionError(command) from told.exception
    assert told.exit_code == 0, f"{command}\n{told.output}"
    assert told.output.strip(), command


def command_help(verb):
    return get_command(app).commands[verb].help


def test_the_commands_of_the_page_on_planning_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    place_runs(tmp_path)
    page = (ROOT / "docs/studies.md").read_text(encoding="utf-8")
    lines = re.findall(r"^\$ (kleash plan .*)$", page, re.M)
    assert len(lines) == 4
    page = (ROOT / "docs/compare.md").read_text(encoding="utf-8")
    lines += re.findall(r"^\$ (kleash compare .* --effect .*)$", page, re.M)
    assert len(lines) > 5
    for line in lines:
        ran(line.removeprefix("$ "))
