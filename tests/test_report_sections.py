"""Sections one by one: what clocks say, and tables that were cut."""

import csv
import json

import made_study as made
from kleash import report
from kleash.compare.comparison import compare
from kleash.compare.read import read
from kleash.report import answer, choices, courses, curves, document_tables
from kleash.report.parts import Table
from kleash.study.results import results


def timings(folder):
    report.write(results(folder))
    with (folder / "tables/timings.csv").open(encoding="utf-8", newline="") as file:
        return {(row["arm"], row["seed"], row["quantity"]): row for row in csv.DictReader(file)}


def test_the_table_and_the_title_name_what_arms_that_are_compared_differ_in(tmp_path):
    fast = {"lr": 0.5, "batch": 4, "leash": {"coefficient": 1.5}}
    arms = made.ASKED["arms"] | {"kl1.5": fast}
    compare = {"baselines": ["none", "kl1.5"], "margin": 0.01}
    made.made_study(tmp_path / "blocks", arms=arms, compare=compare, expect=[], seeds=2)
    shown = report.study_material(results(tmp_path / "blocks"), "zh")
    assert answer.question(shown) == "made：KL 系数有什么影响？"
    assert answer.arms_table(shown).head[:3] == ["配置", "KL 系数", "准确率"]
    assert "frontier" in {part.key for part in report.tables_of(shown).sections}


def test_what_clocks_say_is_by_run_and_by_step(tmp_path):
    made.made_study(tmp_path / "timed")
    rows = timings(tmp_path / "timed")
    # Three seconds an epoch in the first arm, four in the second; an epoch has three steps.
    assert float(rows["none", "0", "seconds"]["mean"]) == 3.0
    assert float(rows["kl0.15", "7", "seconds"]["mean"]) == 4.0
    assert round(float(rows["kl0.15", "7", "seconds_per_step"]["mean"]), 3) == 1.333
    assert rows["kl0.15", "7", "seconds"]["file"] == "runs/kl0.15-s7/timings.jsonl"


def test_speeds_that_runs_time_by_the_step_are_there(tmp_path):
    made.made_study(tmp_path / "fast")
    for path in (tmp_path / "fast/runs").iterdir():
        line = {"phase": "grpo", "step": 1, "seconds": 2.5, "speed/tokens_per_second": 1250.5}
        (path / "timings.jsonl").write_text(json.dumps(line) + "\n", encoding="utf-8")
    rows = timings(tmp_path / "fast")
    assert float(rows["none", "0", "seconds_per_step"]["mean"]) == 2.5
    assert float(rows["none", "0", "speed/tokens_per_second"]["mean"]) == 1250.5
    assert ("none", "0", "seconds") not in rows


def test_speeds_that_logs_hold_are_told(tmp_path):
    head = "step,reward,speed/tokens_per_second,speed/mfu/step,perf/mfu/actor,timing_s/step\n"
    rows = "".join(f"{n},{0.1 * n},{1000 + n},0.2,0.31,7.25\n" for n in range(1, 12))
    for name in ("none.csv", "kl0.1.csv"):
        (tmp_path / name).write_text(head + rows, encoding="utf-8")
    sources = [read(tmp_path / name) for name in ("none.csv", "kl0.1.csv")]
    one = report.of_sources(compare(sources), "x", "en")
    [table] = document_tables.efficiency(one)
    assert {row[1]: row[2] for row in table.rows if row[0] == "no KL"} == {
        "time per step": "7.25",
        "MFU": "0.31",
        "tokens per second": "1006",
        "MFU of the whole step": "0.2",
    }


def test_of_many_arms_some_have_a_column_and_the_rest_is_counted(tmp_path, monkeypatch):
    made.made_study(tmp_path / "wide")
    one = report.study_material(results(tmp_path / "wide"), "en")
    assert "left out" not in report.markdown_of(report.tables_of(one))
    monkeypatch.setattr(courses, "MOST_COLUMNS", 2)
    assert [arm.name for arm in courses.beside(one)] == ["none", "kl0.15"]  # the baseline first
    for section in (curves.curves, curves.epochs, curves.steps, curves.dynamics):
        found = [part for part in section(one) if isinstance(part, Table)]
        assert found, section
        for table in found:
            assert "kl1.5" not in table.head
            assert table.below == "1 of 3 arms are left out."
    _, cut, gallery = choices.items(one)
    assert cut.line == "1 of 3 arms are left out."
    lines = gallery.entries[0].lines
    assert [line.partition(":")[0] for line in lines[-2:]] == ["no KL", "kl0.15"]
    assert not any("kl1.5" in line for line in lines)
