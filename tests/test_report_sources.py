"""Reports of what is no study: the five documents, hostile files, the verb."""

import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from kleash import report
from kleash.cli import app
from kleash.compare.comparison import compare
from kleash.compare.read import read
from kleash.report.parts import Figure
from made_study import made_study

SEEDS = sorted((Path(__file__).parent.parent.parent / "shared/seeds").glob("00*.txt"))
DOCUMENTS = pytest.mark.skipif(len(SEEDS) != 5, reason="the five documents are not here")


def made(paths, language="zh"):
    sources = [read(path) for path in paths]
    return report.of_sources(compare(sources), "x", language)


def tables(paths):
    return report.markdown_of(report.tables_of(made(paths)))


@DOCUMENTS
@pytest.mark.parametrize("path", SEEDS, ids=lambda path: path.name[:3])
def test_each_document_becomes_a_report_in_chinese(path):
    page = tables([path])
    assert page.startswith("# 报告")
    assert "根据这些运行，不能推荐任何配置。" in page
    assert "## 结论的限制" in page
    assert "## 下一步" in page
    assert not re.search(r"^## [A-Z]", page, re.M)
    for line in re.findall(rf"\[{path.name} 第 (\d+) 行\]", page):
        assert 0 < int(line) <= len(path.read_text(encoding="utf-8").splitlines())


@DOCUMENTS
def test_the_first_document_has_its_matrix_with_the_state_of_every_cell():
    page = tables(SEEDS[:1])
    rows = [line for line in page.splitlines() if re.match(r"\| 2 +\| KL_BETA=0\.145", line)]
    assert rows[0].count("缺失") == 4
    row = next(line for line in page.splitlines() if re.match(r"\| 1 +\| KL_BETA=0\.15 ", line))
    assert re.findall(r"\d+\.\d+%", row) == ["58.8%", "56.6%", "53.9%", "55.2%", "56.125%"]
    assert "bash scripts/eval_grpo_kl0145.sh 2 0 200" in page
    assert "输出完全相同（不等于性能相同）" in page


@DOCUMENTS
def test_the_second_document_has_its_summaries_digit_by_digit():
    page = tables(SEEDS[1:2])
    table = page.split("到参考策略的 KL：汇总")[1]
    assert re.search(r"平均 +\| +0\.059986 \| +0\.059548 \| +\+0\.000438", table)
    assert "-32.24%" in table
    assert "优势均值：汇总；按定义恒定，不能说明任何配置" in page


@DOCUMENTS
def test_the_last_document_has_its_steps_with_changes_and_no_winner():
    page = tables(SEEDS[4:])
    row = next(line for line in page.splitlines() if re.match(r"\| 25 ", line))
    assert "1.750 (-4.4%)" in row
    assert "1.970 (+2.9%)" in row
    assert "+0.22" in row
    board = page.split("## 综合对比")[1].split("\n## ")[0]
    assert board.count("未定") >= 3
    assert "40 步" in board


ROWS = "step,reward,kl\n" + "".join(f"{n},{0.1 * n},{0.01 * n}\n" for n in range(1, 12))
EVIL = '"><img src=x onerror=a()> [x](javascript:y)'


def test_what_files_say_is_text_and_never_markup(tmp_path):
    names = (f"{EVIL}.csv", "<script>alert(1)<" + "very-long-" * 20 + ".csv")
    for name in names:
        (tmp_path / name).write_text(ROWS.replace("kl", "<b>kl</b>"), encoding="utf-8")
    one = made([tmp_path / name for name in names], "en")
    html = report.html_of(report.tables_of(one))
    assert "<script" not in html
    assert "<img" not in html
    assert "<b>" not in html
    assert 'href="javascript' not in html
    assert "&lt;img src=x" in html
    page = re.sub(r"```.*?```", "", report.markdown_of(report.tables_of(one)), flags=re.S)
    assert "<img" not in page
    assert "](javascript" not in page
    assert "<script" not in "".join(part.chart.file() for part in figures(one))


def figures(one):
    sections = report.tables_of(one).sections
    found = [part for each in sections for part in each.parts if isinstance(part, Figure)]
    assert found
    return found


def test_the_verb_writes_what_is_asked_for_and_the_same_each_time(tmp_path):
    for name in ("kl0.1.csv", "none.csv"):
        (tmp_path / name).write_text(ROWS, encoding="utf-8")
    asked = ["report", str(tmp_path / "none.csv"), str(tmp_path / "kl0.1.csv"), "--lang", "zh"]
    files = ["--html", str(tmp_path / "o.html"), "--md", str(tmp_path / "o.md")]
    told = CliRunner().invoke(app, [*asked, *files, "--figures", str(tmp_path / "f")])
    assert told.exit_code == 0, told.output
    first = (tmp_path / "o.html").read_bytes(), (tmp_path / "o.md").read_bytes()
    CliRunner().invoke(app, [*asked, *files])
    assert first == ((tmp_path / "o.html").read_bytes(), (tmp_path / "o.md").read_bytes())
    assert list((tmp_path / "f").glob("*.svg"))
    assert CliRunner().invoke(app, asked).output.startswith("# 报告：none.csv, kl0.1.csv")


def test_a_language_that_is_not_there_is_refused(tmp_path):
    told = CliRunner().invoke(app, ["report", str(tmp_path), "--lang", "fr"])
    assert told.exit_code != 0
    assert "there is zh and en" in str(told.exception)


def test_a_study_beside_other_sources_is_its_runs(tmp_path):
    made_study(tmp_path / "made")
    for name in ("kl0.7-s0.csv", "kl0.7-s1.csv"):
        (tmp_path / name).write_text(ROWS, encoding="utf-8")
    asked = ["report", str(tmp_path / "made"), str(tmp_path / "kl0.7-s0.csv"), "--lang", "en"]
    told = CliRunner().invoke(app, asked)
    assert told.exit_code == 0, told.output
    assert "kl0.15" in told.output
    assert "kl0.7" in told.output
    assert "base-s0" not in told.output
