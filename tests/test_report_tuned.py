"""Sections that only some studies have, numbers by hand; costs; tables that were cut."""

import json
import re
from pathlib import Path

import made_study as made
from kleash import report
from kleash.report import choices, courses, curves, efficiency, study_tables, tuned
from kleash.report.parts import Figure, Table, cells, text_of
from kleash.results import results
from test_report_links import unlinked


def material(folder, language="en", **keys):
    made.made_study(folder, **keys)
    return report.study_material(results(folder), language)


def tables(parts):
    return [
        [[text_of(cell) for cell in row] for row in part.rows]
        for part in parts
        if isinstance(part, Table)
    ]


def all_linked(parts, one):
    names = sorted((arm.name for arm in one.arms), key=len, reverse=True)
    return not [text for part in parts for text in unlinked(part, one, names)]


def searched(tmp_path, *, won):
    trial = {"keys": {"lr": 0.002}, "state": "whole", "epochs": 3, "score": 0.5, "curve": {}}
    kept = {
        "baseline": "none",
        "best": "trial-001",
        "keys": {"lr": 0.002} if won else {},
        "pruned": 1,
        "pruning": "median",
        "trials": [
            trial | {"trial": "trial-000", "state": "pruned", "score": None},
            trial | {"trial": "trial-001"},
        ],
        "tuned": {"found": [0.5], "baseline": [0.4 if won else 0.6]},
    }
    made.made_study(tmp_path / "found")
    path = tmp_path / "found/search.json"
    path.write_text(json.dumps(kept, indent=2), encoding="utf-8")
    return report.study_material(results(tmp_path / "found"), "en")


def test_a_search_is_told_with_every_trial_and_what_is_not_confirmed(tmp_path):
    one = searched(tmp_path, won=True)
    parts = tuned.tuning(one)
    text = "".join(text_of(cell) for cell in parts[0].line)
    assert "2 settings were tried on tuning seeds, 1 of them ended early" in text
    assert "+10.000 points over no KL" in text
    assert "not confirmed yet" in parts[1].chart.title
    gains, trials = tables(parts)
    assert gains == [["where it was tuned", "+10.000 points", "—"]]
    assert [row[:3] for row in trials] == [
        ["trial-001", "whole", "50.0%"],
        ["trial-000", "ended early", "—"],
    ]
    place = parts[-1].rows[0][2].where
    lines = (tmp_path / "found/search.json").read_text().splitlines()
    assert '"trial": "trial-001"' in lines[place.line - 1]
    assert all_linked(parts, one)


def test_a_search_that_beat_nothing_says_so_and_draws_nothing(tmp_path):
    parts = tuned.tuning(searched(tmp_path, won=False))
    assert "none beat no KL there" in "".join(text_of(cell) for cell in parts[0].line)
    assert not any(isinstance(part, Figure) for part in parts)


def test_arms_that_a_calibration_placed_stand_beside_the_kl_they_reached(tmp_path):
    made.made_study(tmp_path / "wide")
    kept = {"coefficients": [0.15], "expected_kl": [0.4321]}
    (tmp_path / "wide/calibration.json").write_text(json.dumps(kept, indent=1), encoding="utf-8")
    one = report.study_material(results(tmp_path / "wide"), "en")
    ((row,),) = tables(tuned.tuning(one))
    assert row[:2] == ["0.15", "0.432"]


# --- costs


def test_costs_of_a_study_are_by_step_and_beside_the_baseline_arm(tmp_path):
    one = material(tmp_path / "timed")
    (rows,) = tables(efficiency.efficiency(one))
    told = {(row[0], row[1]): row[2:] for row in rows}
    assert told["no KL", "seconds per epoch"] == ["3", "24", "—"]
    # Four seconds an epoch beside three, in every seed; an epoch has three steps.
    assert told["kl0.15", "seconds per epoch"] == ["4", "24", "1.33 [1.33, 1.33]"]
    assert told["kl0.15", "seconds per step"] == ["1.33", "24", "1.33 [1.33, 1.33]"]


def test_speeds_that_runs_time_are_told(tmp_path):
    made.made_study(tmp_path / "fast")
    for path in (tmp_path / "fast/runs").iterdir():
        line = {"phase": "grpo", "step": 1, "seconds": 2.5, "speed/tokens_per_second": 1250.5}
        line |= {"speed/mfu/update": 0.41, "speed/mfu/step": 0.125}
        (path / "timings.jsonl").write_text(json.dumps(line) + "\n", encoding="utf-8")
    one = report.study_material(results(tmp_path / "fast"), "zh")
    (rows,) = tables(efficiency.efficiency(one))
    assert [row[1:3] for row in rows[:4]] == [
        ["每步秒数", "2.5"],
        ["每秒 token 数", "1.25e+03"],
        ["更新阶段的 MFU", "0.41"],
        ["整步的 MFU", "0.125"],
    ]


def test_speeds_that_logs_hold_are_told(tmp_path):
    head = "step,reward,speed/tokens_per_second,speed/mfu/step,perf/mfu/actor,timing_s/step\n"
    rows = "".join(f"{n},{0.1 * n},{1000 + n},0.2,0.31,7.25\n" for n in range(1, 12))
    from test_report_links import told

    for name in ("none.csv", "kl0.1.csv"):
        (tmp_path / name).write_text(head + rows, encoding="utf-8")
    one = told([tmp_path / "none.csv", tmp_path / "kl0.1.csv"], "en")
    rows = tables(efficiency.efficiency(one))[0]
    assert {row[1]: row[2] for row in rows if row[0] == "no KL"} == {
        "time per step": "7.25",
        "MFU": "0.31",
        "tokens per second": "1006",
        "MFU of the whole step": "0.2",
    }


# --- tables that were cut


def test_a_cut_table_says_how_much_is_left_out_and_where_all_is(tmp_path, monkeypatch):
    one = material(tmp_path / "long")
    whole = report.markdown_of(one, tmp_path / "long")
    assert "left out" not in whole
    cells = len(one.study.measured)
    monkeypatch.setattr(study_tables, "MOST_ROWS", 10)
    monkeypatch.setattr(curves, "MOST_ROWS", 7)
    cut = report.markdown_of(one, tmp_path / "long")
    number = re.search(
        rf"^{cells - 10} of {cells} rows are left out; all are in \[plan\.json\]\[(\d+)\]$",
        cut,
        re.M,
    )[1]
    assert f"\n[{number}]: plan.json\n" in cut
    runs = r"^\d+ of \d+ rows are left out; they are in the runs' own files, the first of them in"
    assert re.search(rf"{runs} \[metrics\.jsonl\]", cut, re.M)
    page = report.html_of(one, tmp_path / "long")
    assert page.count('<p class="below">') == 2


def test_of_many_arms_some_have_a_column_and_the_rest_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr(courses, "MOST_COLUMNS", 2)
    one = material(tmp_path / "wide")
    assert [arm.name for arm in courses.beside(one)] == ["none", "kl0.15"]  # the baseline first
    for section in (curves.curves, curves.epochs, curves.steps, curves.dynamics):
        found = [part for part in section(one) if isinstance(part, Table)]
        assert found, section
        for table in found:
            assert "kl1.5" not in table.head
            assert text_of(table.below[0]).startswith("1 of 3 arms are left out; they are in the")
            where = table.below[-1].where
            assert "kl1.5-s0" in where.file
            assert json.loads(Path(where.file).read_text().splitlines()[where.line - 1])
    _, cut, gallery = choices.items(one)
    assert cut.line[0].startswith("1 of 3 arms are left out")
    assert "kl1.5-s0" in cut.line[-1].where.file
    told = ["".join(map(text_of, cells(line))) for line in gallery.entries[0].lines]
    assert [line.partition(":")[0] for line in told[-2:]] == ["no KL", "kl0.15"]
    assert not any("kl1.5" in line for line in told)
    monkeypatch.setattr(courses, "MOST_COLUMNS", 3)
    again = report.study_material(one.study, "en")
    assert len(courses.beside(again)) == 3
    assert "arms are left out" not in report.markdown_of(again, tmp_path / "wide")
