"""Tables that say where or who the best is: against their own numbers, and against other tables."""

from __future__ import annotations

from pathlib import Path

import pytest

from kleash.imports.markdown import document
from kleash.written.check import check
from kleash.written.page import read_page


def wrong(tmp_path: Path, text: str, code: str) -> list[str]:
    path = tmp_path / "report.md"
    path.write_text(text)
    marks = check(document.drafted(path), read_page(path))
    return [mark.text for mark in marks if mark.code == code]


PICKED = """# Epochs

| β | ep1 | ep2 | ep3 | ep4 | 选用 |
|---|---|---|---|---|---|
| 0.05 | 62.57 | 62.89 | 63.48 | 63.13 | ep3 |
| 0.08 | 63.15 | 64.18 | 63.25 | 64.35 | {} |
| 0.10 | 63.67 | 63.93 | 65.02 | 64.39 | ep3 |
| 0.20 | 62.63 | 64.18 | 63.92 | 64.18 | ep2 |
"""

LOWEST = """# Loss

| epoch | 0.05 | 0.08 | 0.10 |
|---|---|---|---|
| 1 | 6.3920 | 6.3907 | 6.3880 |
| 2 | 6.3719 | 6.3762 | 6.3735 |
| 3 | 6.3686 | 6.3814 | 6.3647 |
| lowest at | ep3 | ep2 | {} |
"""

WINNERS = """# Two arms

| what | no KL | KL 0.01 | winner |
|---|---|---|---|
| best performance | 2.331 | 2.218 | no KL |
| steps to best | 55 | 60 | no KL |
| late performance | 1.310 | 2.081 | {} |
| seconds per step (time) | 164.4 | 188.0 | no KL |
"""


@pytest.mark.parametrize(
    ("text", "right", "false"),
    [(PICKED, "ep4", "ep2"), (LOWEST, "ep3", "ep2"), (WINNERS, "KL 0.01", "no KL")],
)
def test_a_cell_that_names_the_best_is_held_against_the_numbers(
    tmp_path: Path, text: str, right: str, false: str
) -> None:
    assert wrong(tmp_path, text.format(right), "check.not-pick") == []
    assert wrong(tmp_path, text.format(false), "check.not-pick") == [false]


COURSES = """# Runs

| step | no KL | KL 0.01 |
|---|---|---|
| 20 | 1.657 | 1.686 |
| 40 | 1.948 | 1.771 |
| 60 | 1.743 | 2.034 |

| arm | best reward | best step | last |
|---|---|---|---|
| no KL | 1.948 | {} | 1.743 |
| KL 0.01 | 2.034 | 60 | 2.034 |

| | no KL | KL 0.01 |
|---|---|---|
| peak (step) | 1.948 (40) | 2.034 ({}) |
| first at 1.9 or more | 40 | 60 |
"""


def test_the_step_of_a_best_is_where_another_table_has_it(tmp_path: Path) -> None:
    assert wrong(tmp_path, COURSES.format(40, 60), "check.elsewhere") == []
    assert "60" in wrong(tmp_path, COURSES.format(60, 60), "check.elsewhere")
    assert "2.034 (20)" in wrong(tmp_path, COURSES.format(40, 20), "check.elsewhere")


def test_a_best_between_the_printed_steps_is_left_alone(tmp_path: Path) -> None:
    assert wrong(tmp_path, COURSES.format(45, 60), "check.elsewhere") == []


TITLES = """# Arms

## β = 0.10

| epoch | shot 1 | shot 2 | shot 3 |
|---|---|---|---|
| 1 | 59.15% | 56.85% | 55.25% |
| 2 | 57.95% | 56.25% | 54.65% |

## β = 0.18

| epoch | shot 1 | shot 2 | shot 3 |
|---|---|---|---|
| 1 | 58.75% | 57.25% | 56.15% |
| 2 | 58.05% | 57.35% | 55.05% |

## Both, epoch 2

| shot | {} |
|---|---|---|
| shot 1 | 57.95% | 58.05% |
| shot 2 | 56.25% | 57.35% |
| shot 3 | 54.65% | 55.05% |
"""


def test_titles_in_each_others_place_are_told_by_other_tables(tmp_path: Path) -> None:
    assert wrong(tmp_path, TITLES.format("β = 0.10 | β = 0.18"), "check.crossed-titles") == []
    found = wrong(tmp_path, TITLES.format("β = 0.18 | β = 0.10"), "check.crossed-titles")
    assert found == ["β = 0.18 / β = 0.10"]


def test_titles_that_count_stand_in_order(tmp_path: Path) -> None:
    text = "# A\n\n| n | shot 1 | shot 2 | shot {} | shot {} |\n|---|---|---|---|---|\n"
    text += "| 100 | 59.1% | 56.8% | 55.2% | 55.7% |\n| 200 | 57.9% | 56.2% | 54.6% | 56.3% |\n"
    assert wrong(tmp_path, text.format(3, 4), "check.crossed-titles") == []
    assert wrong(tmp_path, text.format(4, 3), "check.crossed-titles") == ["shot 4 / shot 3"]
