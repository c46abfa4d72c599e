"""`kleash check`: right figures are left alone, planted errors are found, each is told as it is."""

import json
import time
from pathlib import Path

import pytest
from typer.testing import CliRunner

from kleash.cli import app
from kleash.compare.documents.check import check
from kleash.compare.read import read
from kleash.compare.read.markdown.page import read_page
from made_reports import STYLES
from pace import soon
from test_planted import NAMES, text_of

SEEDS = Path(__file__).parent.parent.parent / "shared/seeds"
DOCUMENTS = sorted(SEEDS.glob("00*.txt"))
BAD = ("wrong", "unsupported")


def marks(path, text, *logs):
    path.write_text(text, encoding="utf-8")
    return check(read_page(path), [read(one) for one in logs])


# --- nothing is said against what is right


@pytest.mark.parametrize("name", NAMES)
def test_a_right_report_has_nothing_wrong(tmp_path, name):
    found = marks(tmp_path / "r.md", text_of(name))
    assert not [(mark.line, mark.code, mark.text) for mark in found if mark.state == "wrong"]


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("seed", [0, 1, *(pytest.param(n, marks=pytest.mark.slow) for n in (2, 3))])
def test_a_report_in_another_style_has_nothing_wrong(tmp_path, style, seed):
    found = marks(tmp_path / "r.md", STYLES[style](seed))
    wrong = [mark for mark in found if mark.state in BAD and mark.code != "check.word"]
    assert not [(mark.line, mark.code, mark.text) for mark in wrong]
    assert sum(mark.state == "right" for mark in found) > 3


@pytest.mark.skipif(len(DOCUMENTS) != 5, reason="the five documents are not here")
@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name[:3])
def test_no_number_of_the_five_documents_is_called_wrong(path, tmp_path):
    found = marks(tmp_path / "r.md", path.read_text(encoding="utf-8"))
    assert not [(mark.line, mark.code, mark.text) for mark in found if mark.state == "wrong"]
    assert sum(mark.state == "right" for mark in found) >= 20


# --- how it tells


REPORT = """# Two arms

| Step | free | leashed | Difference |
|---|---|---|---|
| 10 | 0.512 | 0.498 | -0.014 |
| 20 | 0.530 | 0.541 | +0.021 |
| 30 | 0.571 | 0.560 | -0.011 |

- leashed is significantly better
"""


def test_a_wrong_number_is_told_with_the_right_one_and_exits_1(tmp_path):
    path = tmp_path / "report.md"
    path.write_text(REPORT)
    told = CliRunner().invoke(app, ["check", str(path)])
    assert told.exit_code == 1
    (line,) = [line for line in told.output.splitlines() if ":6: WRONG" in line]
    assert "+0.021" in line
    assert "+0.011" in line
    assert ":9: not supported" in told.output
    fine = tmp_path / "fine.md"
    fine.write_text(REPORT.replace("+0.021", "+0.011"))
    assert CliRunner().invoke(app, ["check", str(fine)]).exit_code == 0


def test_it_answers_in_the_language_of_the_report(tmp_path):
    path = tmp_path / "report.md"
    path.write_text(STYLES["curves"](0).replace("| 最终 |", "| 最终 |"), encoding="utf-8")
    told = CliRunner().invoke(app, ["check", str(path), "--all"])
    assert "正确" in told.output
    assert told.exit_code == 0


def test_a_log_overrules_the_report(tmp_path):
    path = tmp_path / "report.md"
    path.write_text(REPORT)
    rows = {10: (0.512, 0.498), 20: (0.530, 0.551), 30: (0.571, 0.560)}
    for nth, arm in enumerate(("free", "leashed")):
        made = [json.dumps({"step": step, "reward": both[nth]}) for step, both in rows.items()]
        (tmp_path / f"{arm}.jsonl").write_text("\n".join(made) + "\n")
    asked = ["check", str(path), "--against", str(tmp_path / "free.jsonl"), "--json"]
    told = json.loads(CliRunner().invoke(app, [*asked, str(tmp_path / "leashed.jsonl")]).output)
    wrong = [mark for mark in told["marks"] if mark["state"] == "wrong"]
    assert [(mark["line"], mark["text"], mark["right"]) for mark in wrong] == [
        (6, "0.541", "0.551")
    ]
    right = [mark["line"] for mark in told["marks"] if mark["code"] == "check.log"]
    assert len(right) >= 5


def test_logs_of_something_else_are_told_by_name(tmp_path):
    path = tmp_path / "report.md"
    path.write_text(REPORT)
    rows = [json.dumps({"step": step, "loss": 7.123 + step}) for step in (1, 2, 3)]
    (tmp_path / "pretrain.jsonl").write_text("\n".join(rows) + "\n")
    asked = ["check", str(path), "--against", str(tmp_path / "pretrain.jsonl")]
    assert "they were read as the runs pretrain" in CliRunner().invoke(app, asked).output


def test_a_report_of_300_lines_of_tables_and_prose_with_logs_takes_two_seconds_of_cpu(tmp_path):
    (tmp_path / "logs").mkdir()
    steps, betas = range(10, 410, 10), (0.01, 0.02, 0.05, 0.1, 0.2, 0.5)
    tables = {}
    for nth, beta in enumerate(betas):
        names = [f"val/score_{k}" for k in range(12)]
        rows = [
            [round(0.3 + 0.001 * s + 0.013 * k + 0.007 * nth, 4) for k in range(12)] for s in steps
        ]
        lines = [",".join(["step", *names])]
        lines += [",".join(map(str, (s, *row))) for s, row in zip(steps, rows, strict=True)]
        (tmp_path / "logs" / f"kl{beta}.csv").write_text("\n".join(lines) + "\n")
        tables[beta] = rows
    text = "# Sweep\n"
    for k in range(3):
        text += (
            f"\n## Score {k}\n\n| step | {' | '.join(map(str, betas))} | mean |\n|{'---|' * 8}\n"
        )
        for at, s in enumerate(steps):
            own = [tables[beta][at][k] for beta in betas]
            text += f"| {s} | {' | '.join(f'{x:.4f}' for x in own)} | {sum(own) / 6:.4f} |\n"
        text += "\nAt step 100 every arm is above 0.39.\n" * 28
    assert len(text.splitlines()) >= 300
    (tmp_path / "r.md").write_text(text)
    CliRunner().invoke(app, ["check", str(tmp_path / "r.md")])  # what is imported is not counted
    began = time.process_time()
    told = CliRunner().invoke(
        app, ["check", str(tmp_path / "r.md"), "--against", str(tmp_path / "logs"), "--json"]
    )
    spent = time.process_time() - began
    assert json.loads(told.output)["counts"]["right"] > 700
    assert soon(spent, 2)
