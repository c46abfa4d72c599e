"""A report says what the records say, in both languages; every number has its place in a CSV."""

import csv
import json
import re
import tomllib

import pytest

from kleash import report
from kleash.report import csv_tables
from kleash.report.markdown import escaped
from kleash.report.parts import Figure
from kleash.study.results import results
from made_study import made_study


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    folder = tmp_path_factory.mktemp("reports") / "made"
    made_study(folder)
    return results(folder)


@pytest.mark.parametrize("language", ["en", "zh"])
def test_no_cell_and_no_legend_of_any_page_calls_an_arm_none(study, language):
    from typer.testing import CliRunner

    from kleash.cli import app
    from kleash.report.serve.answers import study_answer
    from kleash.report.serve.store import Store

    made = report.of_study(study, language)
    whole = report.tables_of(made)
    page, lines = report.html_of(whole), report.markdown_of(whole)
    asked = ["compare"], ["report", "--terminal"]
    screens = [
        CliRunner().invoke(app, [*words, str(study.folder), "--lang", language]).output
        for words in asked
    ]
    live = study_answer(Store(study.folder), study.folder, language)
    for text in (page, lines, live, *screens):
        assert ("no KL" if language == "en" else "无 KL") in text
        assert not re.search(r"> ?none ?<|[|│┃] *none *[|│┃]|^ *- none$", text, re.M)
    figures = [part for each in whole.sections for part in each.parts if isinstance(part, Figure)]
    chart = next(each.chart for each in figures if each.name.startswith("curve-"))
    assert {row[0] for row in chart.rows} == {made.arm("none"), "kl0.15", "kl1.5"}


def test_a_report_made_twice_has_the_same_bytes(study):
    first = [path.read_bytes() for path in report.write(study)]
    assert first == [path.read_bytes() for path in report.write(study)]


def test_the_first_paragraph_says_which_why_how_sure_and_what_is_not_said(study):
    page = report.write(study, language="en")[0].read_text()
    first, paragraph, *_ = page.split("## Verdict\n\n")[1].split("\n\n")
    assert first.startswith("Use kl0.15: accuracy +50.000 [")
    assert first.endswith("over its start (8 seeds), and no arm is better than it.")
    assert re.search(r"Better than the start: kl0\.15 \(.*points\)\.", paragraph)
    assert re.search(r"differ\?\*\* .*Better than no KL: kl0\.15 \(\+", page)
    assert "How far this goes [L3]: these settings on questions like these (8 seeds" in page
    assert "Not tested: other values, data or models." in page


def test_expectations_are_answered(study):
    page = report.write(study, language="en")[0].read_text()
    assert re.search(r"kl0\.15 better than no KL on accuracy +\| less drift +\| borne out", page)
    assert re.search(r"kl1\.5 worse than no KL on accuracy +\| +\| (refuted|undecided)", page)


def test_missing_cells_are_told_with_the_command_that_fills_them(tmp_path):
    made_study(tmp_path / "half", leave_out=("kl1.5-s3",))
    found = results(tmp_path / "half")
    page = report.write(found, language="en")[0].read_text()
    done, every = (f"{n:,}" for n in (found.overview.counts()["done"], len(found.measured)))
    assert f"{done} of {every} measurements done" in page
    assert "\nkleash study half\n" in page


@pytest.mark.parametrize(
    ("language", "said"),
    [
        ("en", "no KL: 1 of 8 runs showed signs of collapse, first at step 2"),
        ("zh", "出现崩溃迹象"),
    ],
)
def test_what_a_run_noticed_of_itself_limits_the_verdict(tmp_path, language, said):
    made_study(tmp_path / "fell")
    with (tmp_path / "fell/runs/none-s3/metrics.jsonl").open("a+", encoding="utf-8") as file:
        told = {"kind": "finding", "code": "collapse", "severity": "warning", "step": 2}
        file.write(json.dumps(told | {"message": "signs of collapse"}) + "\n")
        file.seek(0)
        line = len(file.readlines())
    page = report.write(results(tmp_path / "fell"), language=language)[0].read_text("utf-8")
    [limit] = [each for each in page.splitlines() if said in each]
    place = {"en": f"[metrics.jsonl line {line}]", "zh": f"[metrics.jsonl 第 {line} 行]"}
    assert limit.endswith(place[language])


def test_both_languages_have_the_same_sections_and_numbers(study):
    both = [report.write(study, language=each)[0].read_text() for each in ("en", "zh")]
    numbers = [re.findall(r"\d+\.\d+%", page) for page in both]
    assert numbers[0] == numbers[1]
    assert both[0].count("\n## ") == both[1].count("\n## ")
    assert "用 kl0.15：准确率比起点 +50.000" in both[1]


def test_what_a_file_says_is_text(study):
    assert escaped("<script>a|b</script>\n`x`") == "&lt;script>a\\|b&lt;/script> \\`x\\`"
    assert escaped("[x](javascript:y)") == "[x]\\(javascript:y)"


# --- the page


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_page_is_short_and_its_answer_stands_on_the_first_screen(study, language):
    text, html = (path.read_text() for path in report.write(study, language=language)[:2])
    assert len(text.encode()) <= 15_000 and len(html.encode()) <= 250_000
    made = report.study_material(study, language)
    answer = text.split(f"## {made.heading('limits')}")[0]
    lines = [line for line in answer.splitlines() if line and line[0] not in "|#*"]
    assert len(lines) <= 8, lines
    first, kl, best = (
        next(line for line in answer.splitlines() if line.startswith(f"| {name} "))
        for name in (made.say("start_row", name="rce-1"), made.arm("none"), "kl0.15")
    )
    assert made.say("reference") in first and "1.2" in kl
    gain = next(row.gain for row in study.rows if row.name == "kl0.15")
    assert f"{100 * gain.low:+.2f}, {100 * gain.high:+.2f}]" in best  # what decides the word
    assert "<script" not in html and "<a " not in html


def test_every_number_of_the_page_has_its_file_and_line_in_a_csv(study):
    report.write(study)
    names = {path.name for path in (study.folder / "tables").iterdir()}
    assert names == {f"{name}.csv" for name in csv_tables.TABLES}
    for path in (study.folder / "tables").iterdir():
        with path.open(encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file))
        assert rows, path.name
        for row in rows[:: max(1, len(rows) // 50)]:
            there = study.folder / row["file"]
            assert there.is_file() and row["file"], (path.name, row)
            if row["line"]:
                assert int(row["line"]) <= len(there.read_bytes().splitlines())
    with (study.folder / "tables/gaps.csv").open(encoding="utf-8", newline="") as file:
        [gain] = [
            row
            for row in csv.DictReader(file)
            if (row["question"], row["arm"]) == ("gain", "kl0.15")
        ]
    judged = next(row.gain for row in study.rows if row.name == "kl0.15")
    assert [float(gain[key]) for key in ("estimate", "low", "high")] == [
        judged.estimate,
        judged.low,
        judged.high,
    ]


def test_tables_of_a_document_are_there_when_asked_for(study):
    from typer.testing import CliRunner

    from kleash.cli import app

    asked = ["report", str(study.folder), "--lang", "zh"]
    told = CliRunner().invoke(app, [*asked, "--tables"])
    assert told.exit_code == 0 and "## 综合对比" in told.output and "## 逐步对比" in told.output


# --- what else stands in it


def page_of(study, language="en"):
    return report.html_of(report.tables_of(report.study_material(study, language)))


def test_sections_stand_in_their_order(study):
    keys = re.findall(r'<section id="([a-z]+)">', page_of(study))
    wanted = [key for key in report.TABLES if key in keys]
    assert keys == wanted
    assert {"verdict", "gaps", "scoreboard", "curves", "steps"} <= set(keys)


def test_a_page_needs_nothing_else(study):
    page = page_of(study)
    assert "<script" not in page
    assert not re.search(r'(?:src|href)="(?:https?:)?//', page)
    assert not re.search(r"@import|url\(", page)
    assert "prefers-color-scheme:dark" in page
    assert "@media print" in page


def test_what_is_recommended_is_there_for_machines(study):
    path = report.write(study)[2]
    told = tomllib.loads(path.read_text())
    assert told["arm"] == "kl0.15"
    assert told["level"] == "L3"
    assert told["over_start"]["against"] == "start"
    assert told["keys"] == {"leash.coefficient": 0.15}


def test_items_on_which_arms_disagree_have_their_picture_and_what_was_said(study):
    report.write(study, language="en")
    page = (study.folder / "items.html").read_text(encoding="utf-8")
    gallery = page.split('<ul class="gallery">')[1].split("</ul>")[0]
    assert 0 < gallery.count("<li>") <= 20
    assert gallery.count('src="data:image/png;base64,') == gallery.count("<li>")
    assert "kl0.15: 100.0%, said red" in re.sub("<[^>]+>", "", gallery)


def test_a_chart_says_what_is_seen_at_a_point_that_all_arms_have(study):
    assert "validation accuracy at epoch 3: highest in kl0.15 (0.8), lowest in no KL (0.4)" in (
        re.sub("<[^>]+>", "", page_of(study))
    )


def test_what_is_constant_by_construction_is_labelled(study):
    page = report.markdown_of(report.tables_of(report.study_material(study, "en")))
    assert "mean advantage (constant by construction)" in page


def test_without_a_pair_to_compare_nothing_is_claimed(tmp_path):
    every = [f"{arm}-s{seed}" for arm in ("none", "kl0.15", "kl1.5") for seed in range(8)]
    made_study(tmp_path / "begun", leave_out=tuple(every))
    page = report.write(results(tmp_path / "begun"), language="en")[0].read_text()
    assert "Nothing to compare yet" in page


def test_the_scoreboard_has_both_sides(study):
    page = report.markdown_of(report.tables_of(report.study_material(study, "en")))
    board = page.split("## Scoreboard")[1].split("\n## ")[0]
    row = next(line for line in board.splitlines() if "| kl0.15" in line)
    assert re.findall(r"\d+\.\d%", row) == ["41.2%", "81.2%"]
    assert re.search(r"points \| +kl0\.15 \| +L3 \|", row)


# --- on the terminal


def test_the_first_screen_stands_on_the_terminal_and_writes_nothing(tmp_path):
    from typer.testing import CliRunner

    from kleash.cli import app
    from kleash.report.words import width

    made_study(tmp_path / "made")
    asked = ["report", str(tmp_path / "made"), "--terminal", "--lang"]
    for language, said in (("en", "Use kl0.15: accuracy +50.000"), ("zh", "用 kl0.15：准确率")):
        told = CliRunner(env={"COLUMNS": "90"}).invoke(app, [*asked, language])
        assert told.exit_code == 0 and said in told.output
        lines = told.output.splitlines()
        assert max(map(width, lines)) <= 92  # a stop may stand over the edge
        assert [line for line in lines if line.startswith("kl1.5 ") and "43.8%" in line]
        assert [line for line in lines if "[42.6, 44.9]" in line]  # not cut
        assert not any(line.startswith(("|", "#")) for line in lines)
    told = CliRunner().invoke(app, ["report", str(tmp_path / "made"), "--json"])
    assert json.loads(told.output)["study"] == "made"
    assert not (tmp_path / "made/report.md").exists()
