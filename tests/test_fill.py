"""`kleash fill`: open cells are filled as their neighbours are written; no byte else changes."""

import json
import re
import shlex
import shutil
import sys
from pathlib import Path

import pytest
from typer.main import get_command
from typer.testing import CliRunner

from kleash.cli import app
from kleash.config import build
from kleash.runs.run import write_json
from kleash.study.plan import StudyFile, arm_recipe, arms_of

SEEDS = Path(__file__).parent.parent.parent / "shared/seeds"
DOCUMENTS = sorted(SEEDS.glob("002*.txt"))
REPORT = """# Two coefficients

Is beta=0.1 better?  Who knows?

| beta |  1-shot | 2-shot  | Mean | vs 0.02 |
|------|:-------:|---------|------|---------|
| 0.02 | 51.00%  | 50.00%  | 50.50% | baseline |
| 0.1  |   ?     | **?**   | ? | ? |
| 0.5  | ? | ? | ? | ? |

## beta=0.02 and 0.1, training

| Epoch | beta=0.02 Train Loss | beta=0.1 Train Loss | Note |
|---|---|---|---|
| 1 | 0.0123 | TBD | ? |
"""


def run_folder(path, config, seed, scores, losses):
    """A run of ours that measured some checkpoints: {(epoch, shots): share of items right}."""
    path.mkdir(parents=True)
    for name, value in (("config", config), ("given", {}), ("meta", {"identity": path.name})):
        write_json(path / f"{name}.json", value)
    rows = []
    for (epoch, shots), right in scores.items():
        (path / "checkpoints" / f"epoch-{epoch}").mkdir(parents=True, exist_ok=True)
        state = {"step": epoch, "epoch": epoch}
        write_json(path / "checkpoints" / f"epoch-{epoch}" / "state.json", state)
        rows += [
            {
                "checkpoint": f"epoch-{epoch}",
                "split": "test",
                "shots": shots,
                "item": f"test-{n}",
                "score": float(n % 20 < 20 * right),
            }
            for n in range(800)
        ]
    lines = "".join(json.dumps(row) + "\n" for row in rows)
    (path / "scores.jsonl").write_text(lines, encoding="utf-8")
    told = [
        {"kind": "epoch", "phase": "grpo", "epoch": epoch, "step": epoch, **row}
        for epoch, row in losses.items()
    ]
    (path / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in told))


def study(folder, measured, losses, seeds=(0, 1)):
    """The folder of a study that measured part of its cells."""
    asked = {
        "name": "kl",
        "seeds": len(seeds),
        "base": {"supervised": {"epochs": 1}, "rce": {"epochs": 1}},
        "arms": {f"kl-{beta:g}": {"leash": {"coefficient": beta}} for beta in measured},
    }
    file = build(StudyFile, asked)
    for arm in arms_of(file):
        beta = arm.keys["leash.coefficient"]
        for seed in seeds:
            config = arm_recipe(file, arm, seed, "BASE").resolved()
            path = folder / "runs" / f"{arm.name}-s{seed}"
            run_folder(path, config, seed, measured[beta], losses.get(beta, {}))
    (folder / "study.toml").write_text("", encoding="utf-8")
    return folder


def fill(report, *more):
    told = CliRunner().invoke(app, ["fill", str(report), *map(str, more)])
    assert told.exit_code == 0, told.output
    return told.output


@pytest.fixture
def measured(tmp_path):
    scores = {(1, 1): 0.55, (1, 2): 0.45}
    return study(tmp_path / "kl", {0.1: scores}, {0.1: {1: {"loss": 0.04567}}})


def test_only_open_cells_change_and_what_was_not_measured_stays(tmp_path, measured):
    report = tmp_path / "report.md"
    text = REPORT.replace("1-shot", "1-shot (Epoch 1)").replace("2-shot", "2-shot (Epoch 1)")
    report.write_bytes(text.replace("\n", "\r\n").encode())
    told = fill(report, "--from", measured)
    rows = report.read_bytes().decode().split("\r\n")
    assert rows[7] == "| 0.1  |   55.00%     | **45.00%**   | 50.00% | -0.50% |"
    assert rows[14] == "| 1 | 0.0123 | 0.0457 | ? |"
    before = text.split("\n")
    assert [n for n in range(len(before)) if rows[n] != before[n]] == [7, 14]
    assert "kleash study from" in told  # beta=0.5 was never trained
    filled = report.read_bytes()
    fill(report, "--from", measured)
    assert report.read_bytes() == filled


@pytest.mark.parametrize("encoding", ["utf-8-sig", "gb18030", "utf-16"])
def test_a_report_keeps_its_encoding(tmp_path, measured, encoding):
    text = REPORT.replace("Who knows", "谁知道")
    report, out = tmp_path / "report.md", tmp_path / "filled.md"
    report.write_bytes(text.encode(encoding))
    fill(report, "--from", measured, "--out", out)
    assert report.read_bytes() == text.encode(encoding)
    filled = "|   55.00%     | **45.00%**   | 50.00% | -0.50% |"
    expected = text.replace("|   ?     | **?**   | ? | ? |", filled).replace("TBD", "0.0457")
    assert out.read_bytes() == expected.encode(encoding)


def test_a_wrong_difference_is_corrected_and_the_old_text_struck_out(tmp_path, measured):
    report = tmp_path / "report.md"
    wrong = REPORT.replace("| 50.50% |", "| 51.50% |")
    report.write_text(wrong)
    told = fill(report, "--from", measured)
    assert "| 50.50% ~~51.50%~~ |" in report.read_text()
    assert "51.50%" in told
    again = report.read_bytes()
    assert "corrected: 0" in fill(report, "--from", measured, "--lang", "en")
    assert report.read_bytes() == again


def test_a_dry_run_writes_nothing(tmp_path, measured):
    report = tmp_path / "report.md"
    report.write_text(REPORT)
    assert "+| 1 | 0.0123 | 0.0457 | ? |" in fill(report, "--from", measured, "--dry-run")
    assert report.read_text() == REPORT


def test_commands_can_be_pasted_and_a_dry_run_says_that_it_wrote_nothing(tmp_path):
    scores = {(1, 1): 0.55}
    folder = study(tmp_path / "my runs", {0.1: scores}, {}, seeds=(0,))
    report = tmp_path / "my report.md"
    report.write_text(REPORT.replace("-shot", "-shot (Epoch 1)"))
    told = CliRunner().invoke(
        app, ["fill", str(report), "--from", str(folder), "--dry-run", "--lang", "en"]
    )
    assert "nothing was written; it would be: cells filled: 1" in told.output
    asked = [line.strip() for line in told.output.splitlines() if line.startswith("    kleash ")]
    assert len(asked) == 2
    for line in asked:
        for command in line.split(" && "):
            verb, what, *rest = shlex.split(command)[1:]
            known = {str(report), str(folder / "runs/kl-0.1-s0"), "my report.toml", "from"}
            assert verb in ("eval", "study") and what in known and rest != ["report.md"], command
    report.write_text("# Nothing is asked\n")
    assert fill(report, "--from", folder, "--lang", "en").endswith("nothing was open\n")


def test_no_report_is_filled_from_another(tmp_path):
    report = tmp_path / "report.md"
    report.write_text(REPORT)
    told = CliRunner().invoke(app, ["fill", str(report), "--from", str(report)])
    assert told.exit_code != 0
    assert "is a report itself" in str(told.exception)


@pytest.mark.skipif(not DOCUMENTS, reason="the documents are not here")
def test_of_139_open_cells_of_document_002_only_those_not_measured_stay(tmp_path):
    shares = {(epoch, shots): 0.4 + 0.05 * shots for epoch in (1, 2) for shots in (1, 2, 3, 4)}
    row = {"loss": 0.0112, "policy_loss": 0.0003, "validation/loss": 5.1, "std_advantage": 0.006}
    row |= {"max_advantage": 0.009, "probe/kl/ref/exact/episode/mean": 0.09}
    losses = dict.fromkeys((1, 2), row)
    folder = study(tmp_path / "kl", {0.12: shares, 0.18: shares}, {0.18: losses})
    report = tmp_path / "002.md"
    report.write_bytes(DOCUMENTS[0].read_bytes())
    before = report.read_text(encoding="utf-8").split("\n")
    told = CliRunner().invoke(app, ["fill", str(report), "--from", str(folder), "--lang", "en"])
    assert "OKVQA in" in str(told.exception) or "on OKVQA" in str(told.exception)
    assert report.read_bytes() == DOCUMENTS[0].read_bytes()
    fill(report, "--from", folder, "--anyway")
    after = report.read_text(encoding="utf-8").split("\n")
    assert sum(line.count("?") for line in before) == 139
    left = [number for number, line in enumerate(after, 1) for _ in range(line.count("?"))]
    # Epoch 3 was not measured (6 + 32 cells), and ten cells ask for words.
    assert len(left) == 48
    assert set(left) == {
        64,
        *range(119, 123),
        *range(163, 167),
        *range(172, 176),
        185,
        *range(193, 197),
    }
    for old, new in zip(before, after, strict=True):
        kept = re.sub(r"\?", "\0", old)
        pattern = re.escape(kept).replace("\0", r"(?:\?|[+-]?[\d.]+%?(?: \(200样本\))?)")
        assert re.fullmatch(pattern, new), (old, new)
    once = report.read_bytes()
    fill(report, "--from", folder, "--anyway")
    assert report.read_bytes() == once


def interpreted_before(report, claim):
    """An interpreter's answer is kept beside the report, so that none is asked."""
    kept = report.with_name(f"{report.name}.answers.jsonl")
    CliRunner().invoke(app, ["check", str(report), "--answers", str(kept)])
    (question,) = map(json.loads, kept.read_text().splitlines())
    kept.write_text(json.dumps({**question, "answer": json.dumps(claim)}) + "\n")


def test_the_commands_of_the_page_and_of_the_help_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("report.md").write_text(REPORT)
    interpreted_before(Path("report.md"), {"at": "D7", "formula": "mean(B7:C7)"})
    scores = {(1, 1): 0.55, (1, 2): 0.45}
    study(Path("studies/kl"), {0.02: scores, 0.1: scores}, {}, seeds=(0,))
    for name in ("kl0.02-s0", "kl0.1-s0", "kl0.12-s0", "kl0.15-s0", "kl0.18-s0"):
        Path("runs").mkdir(exist_ok=True)
        shutil.copytree("studies/kl/runs/kl-0.1-s0", f"runs/{name}")
    page = (Path(__file__).parent.parent / "docs/reports_by_hand.md").read_text(encoding="utf-8")
    asked = re.findall(r"^\$ (kleash .*)$", page, re.M)
    helped = [get_command(app).commands[verb].help for verb in ("fill", "check")]
    asked += re.findall(r"^ *(kleash (?:fill|check) .*)$", "\n".join(helped), re.M)
    assert len(asked) == 10
    for command in asked:
        told = CliRunner().invoke(app, shlex.split(command)[1:])
        wrong = isinstance(told.exception, SystemExit) and " check " in command
        assert told.exit_code == 0 or wrong, (command, told.output, told.exception)
        assert told.output.strip()


CURVES = """# Two agents

| Step | A (plain) | B (leashed) | Length of A |
|---|---|---|---|
| 0 | 31.2 % | 31.2 % | 1284 |
| 10 | 38.8 % | ? | 1341 |
| 20 | ? | 41.9 % | ? |
| 30 | 50.3 % | 46.8 % | 1462 |
| 40 | ? | 50.6 % | 1527 |
"""


def consoles(folder, b=(0.312, 0.371, 0.419, 0.468, 0.506)):
    runs = {
        "alf_one": ((0.312, 0.388, 0.447, 0.503, 0.541), (1284, 1341, 1398, 1462, 1527)),
        "alf_two": (b, (1284, 1303, 1321, 1342, 1358)),
    }
    for name, (rates, lengths) in runs.items():
        rows = [
            {"step": 10 * at, "val-core/alfworld/success_rate": rate, "tokens/mean": length}
            for at, (rate, length) in enumerate(zip(rates, lengths, strict=True))
        ]
        (folder / name).mkdir(parents=True, exist_ok=True)
        text = "".join(json.dumps(row) + "\n" for row in rows)
        (folder / name / "metrics.jsonl").write_text(text)
    return folder


def test_a_column_is_the_curve_that_its_numbers_are_whatever_both_are_called(tmp_path):
    report = tmp_path / "report.md"
    report.write_text(CURVES)
    fill(report, "--from", consoles(tmp_path / "logs"))
    rows = report.read_text().split("\n")
    assert rows[5] == "| 10 | 38.8 % | 37.1 % | 1341 |"
    assert rows[6] == "| 20 | 44.7 % | 41.9 % | 1398 |"
    assert rows[8] == "| 40 | 54.1 % | 50.6 % | 1527 |"


def test_two_curves_that_agree_alike_fill_only_what_both_say(tmp_path):
    report = tmp_path / "report.md"
    report.write_text(CURVES)
    logs = consoles(tmp_path / "logs", b=(0.312, 0.388, 0.447, 0.503, 0.777))
    fill(report, "--from", logs)
    rows = report.read_text().split("\n")
    assert rows[6].startswith("| 20 | 44.7 % | 41.9 % |")
    assert rows[8].startswith("| 40 | ? |")  # 54.1 or 77.7


def test_percent_without_its_sign_is_filled_as_percent(tmp_path):
    text = REPORT.replace("%", "").replace("-shot", "-shot accuracy (Epoch 1)")
    report = tmp_path / "report.md"
    report.write_text(text)
    fill(report, "--from", study(tmp_path / "kl", {0.1: {(1, 1): 0.55, (1, 2): 0.45}}, {}))
    assert "| 0.1  |   55.00     | **45.00**   | 50.00 | -0.50 |" in report.read_text()


def quantities(folder, rows):
    """Two runs as CSV, a row an epoch."""
    folder.mkdir()
    for beta, (rewards, entropies, kls) in rows.items():
        told = zip((1, 2, 3), rewards, entropies, kls, strict=True)
        lines = ["epoch,train_reward,entropy,kl", *(",".join(map(str, each)) for each in told)]
        (folder / f"kl{beta}.csv").write_text("\n".join(lines) + "\n")


RUNS = {
    0.05: ([0.4674, 0.4879, 0.5027], [2.3629, 2.095, 1.8342], [0.09715, 0.08409, 0.0718]),
    0.1: ([0.4608, 0.481, 0.4989], [2.4151, 2.1175, 1.9231], [0.08871, 0.07687, 0.06309]),
    0.2: ([0.4665, 0.4803, 0.4944], [2.4166, 2.1882, 1.9764], [0.07082, 0.06294, 0.0521]),
}


def filled(tmp_path, report):
    (tmp_path / "report.md").write_text(report)
    fill(tmp_path / "report.md", "--from", str(tmp_path / "logs"))
    return (tmp_path / "report.md").read_text()


@pytest.mark.parametrize(
    ("known", "filled_with"),
    [
        (("26.1%", "28.9%"), "26.4%"),  # a fall has no sign
        (("26.1%", "-28.9%"), "-26.4%"),  # nobody can tell
        (("-26.1%", "-28.9%"), "-26.4%"),
    ],
)
def test_a_fall_is_written_without_a_sign_where_its_column_has_none(tmp_path, known, filled_with):
    quantities(tmp_path / "logs", RUNS)
    text = filled(
        tmp_path,
        "# Selectors\n\n## KL 随 epoch 的变化\n\n"
        "| KL_BETA | Epoch 1 | Epoch 2 | Epoch 3 | 降幅 (E1→E3) |\n|---|---|---|---|---|\n"
        f"| 0.05 | 0.09715 | 0.08409 | 0.07180 | {known[0]} |\n"
        f"| 0.10 | 0.08871 | 0.07687 | 0.06309 | {known[1]} |\n"
        "| 0.20 | 0.07082 | 0.06294 | 0.05210 | ? |\n",
    )
    assert f"| 0.05210 | {filled_with} |" in text


def test_a_loss_keeps_its_sign_though_its_neighbour_lost_it(tmp_path):
    losses = {0.1: {1: {"loss": -0.0457}, 2: {"loss": -0.0333}}}
    report = tmp_path / "report.md"
    row = "| 1 | 0.0123 | TBD | ? |\n"
    report.write_text(REPORT.replace(row, "| 1 | 0.0123 | 0.0457 | x |\n| 2 | 0.0111 | ? | x |\n"))
    fill(report, "--from", study(tmp_path / "kl", {0.1: {(1, 1): 0.55}}, losses))
    assert "| 2 | 0.0111 | -0.0333 | x |" in report.read_text()


STATED = """# Sweep

| Parameter | Value |
|---|---|
| Dataset | {data} |
| Answerer | {model} |

"""


@pytest.mark.parametrize(
    ("data", "model", "said"),
    [
        ("OKVQA", "embedded", ["OKVQA in the report (line 5)", "scenes in the runs"]),
        ("scenes", "Qwen2.5-VL-3B-Instruct", ["Qwen2.5-VL-3B-Instruct in the report (line 6)"]),
    ],
)
def test_other_data_or_another_model_is_asked_about_before_a_byte_is_written(
    tmp_path, measured, monkeypatch, data, model, said
):
    report = tmp_path / "report.md"
    report.write_text(STATED.format(data=data, model=model) + REPORT)
    before, asked = (
        report.read_bytes(),
        ["fill", str(report), "--from", str(measured), "--lang", "en"],
    )
    told = CliRunner().invoke(app, asked)
    assert told.exit_code != 0 and "--anyway" in str(told.exception)
    assert all(each in str(told.exception) for each in said), told.exception
    assert report.read_bytes() == before
    shown = CliRunner().invoke(app, [*asked, "--dry-run"])
    assert shown.exit_code == 0 and all(each in shown.output for each in said)
    assert report.read_bytes() == before
    monkeypatch.setattr(sys.modules["kleash.cli.fill"], "is_terminal", lambda: True)
    assert CliRunner().invoke(app, asked, input="n\n").exit_code != 0
    assert report.read_bytes() == before
    assert CliRunner().invoke(app, asked, input="y\n").exit_code == 0
    assert "0.0457" in report.read_text()


def test_what_one_side_does_not_state_is_said_once_and_what_is_alike_not_at_all(tmp_path, measured):
    report = tmp_path / "report.md"
    report.write_text(REPORT)
    told = fill(report, "--from", measured, "--lang", "en")
    assert told.count("not compared, as one side does not say it: data, model") == 1
    report.write_text(STATED.format(data="Scenes", model="embedded") + REPORT)
    assert "compared" not in fill(report, "--from", measured, "--lang", "en")


def test_printed_numbers_that_are_none_of_the_runs_are_asked_about(tmp_path):
    logs = study(tmp_path / "kl", {0.02: {(1, 1): 0.25, (1, 2): 0.2}, 0.1: {(1, 1): 0.55}}, {})
    text = REPORT.replace("1-shot", "1-shot (Epoch 1)").replace("2-shot", "2-shot (Epoch 1)")
    text = text.replace("| 0.1  |   ?     |", "| 0.1  |  75.00% |")
    report = tmp_path / "report.md"
    report.write_text(text)
    asked = ["fill", str(report), "--from", str(logs), "--lang", "en"]
    study(tmp_path / "more", {0.1: {(1, 2): 0.45}}, {})
    told = CliRunner().invoke(app, [*asked, "--from", str(tmp_path / "more")])
    assert "51.00% in the report (line 7), 25.00%" in str(told.exception), told.output
    assert report.read_text() == text


def test_a_share_and_a_time_have_the_unit_of_their_row(tmp_path):
    folder = tmp_path / "logs"
    folder.mkdir()
    for name, share in (("kl0.02", 0.352), ("kl0.1", 0.3587)):
        (folder / f"{name}.csv").write_text(
            f"step,val/accuracy,timing_s/step\n10,{share},5400\n20,{share + 0.01},7200\n"
        )
    report = tmp_path / "report.md"
    report.write_text(
        "# Sweep\n\n| KL_BETA | performance, step 10 | step time, step 10 |\n|---|---|---|\n"
        "| 0.02 | 35.20 | 1.5 h |\n| 0.1 | ? | ? |\n"
    )
    fill(report, "--from", folder)
    assert "| 0.1 | 35.87 | 1.5 h |" in report.read_text()
