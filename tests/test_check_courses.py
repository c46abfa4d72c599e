"""Steps in sentences against courses: bests, values at steps, and first times past a limit."""

from __future__ import annotations

from pathlib import Path

import pytest

from kleash.imports.markdown import document
from kleash.written.check import check
from kleash.written.page import read_page

REPORT = """# Two arms

## Validation reward

| step | no KL | KL=0.01 |
|---|---|---|
| 20 | 1.211 | 1.195 |
| 40 | 1.562 | 1.433 |
| 60 | 1.618 | 1.547 |
| 80 | 1.574 | 1.689 |
| 100 | 1.493 | 1.702 |

{said}
"""


def wrong(tmp_path: Path, said: str) -> list[str]:
    path = tmp_path / "report.md"
    path.write_text(REPORT.format(said=said))
    marks = check(document.drafted(path), read_page(path))
    return [mark.text for mark in marks if mark.code == "check.elsewhere"]


@pytest.mark.parametrize(
    ("said", "places"),
    [
        ("Without KL the run peaks at step 40 and then falls.", ["step 40"]),
        ("The arm KL=0.01 first reaches 1.5 at step 80.", ["step 80"]),
        ("首次达到 1.5：无KL 第 40 步，KL=0.01 第 80 步。", ["第 80 步"]),
        ("KL=0.01 has 1.689 at step 60.", ["step 60", "1.689"]),
    ],
)
def test_a_step_that_its_course_contradicts_is_wrong(
    tmp_path: Path, said: str, places: list[str]
) -> None:
    assert wrong(tmp_path, said) == places


@pytest.mark.parametrize(
    "said",
    [
        "Without KL the run peaks at step 60 and then falls; KL=0.01 is best at step 100.",
        "The arm KL=0.01 first reaches 1.5 at step 60, no KL at step 40.",
        "The training entropy of KL=0.01 peaks at step 20.",
        "The largest gap is at step 100, and KL=0.01 has 1.689 at step 80.",
        "At step 40 no KL is the highest (1.562).",
    ],
)
def test_a_step_that_some_course_bears_out_is_not_marked(tmp_path: Path, said: str) -> None:
    assert wrong(tmp_path, said) == []


def marked(tmp_path: Path, said: str, code: str) -> list[str]:
    path = tmp_path / "report.md"
    path.write_text(REPORT.format(said=said))
    marks = check(document.drafted(path), read_page(path))
    return [mark.text for mark in marks if mark.code == code and mark.state == "wrong"]


@pytest.mark.parametrize(
    ("said", "text"),
    [
        ("12 个验证点中 KL=0.01 高的有 8 个（61.5%）。", "61.5%"),
        ("超过上限的：甲 183 步（76.2%）、乙 103 步（49.2%）、丁 14 步（5.8%）。", "49.2%"),
        ("The limit was crossed on 10 of 1,200 steps (0.8%), later on 29 (2.9%).", "2.9%"),
    ],
)
def test_a_share_that_is_not_of_its_whole_is_wrong(tmp_path: Path, said: str, text: str) -> None:
    assert marked(tmp_path, said, "check.not-share") == [text]


@pytest.mark.parametrize(
    "said",
    [
        "12 个验证点中 KL=0.01 高的有 8 个（66.7%）。",
        "This saves 205 of 400 steps (51%).",
        "The mean length is 183 tokens (76.2%), against 103 (49.2%).",
    ],
)
def test_a_share_of_something_else_is_not_marked(tmp_path: Path, said: str) -> None:
    assert marked(tmp_path, said, "check.not-share") == []


def test_how_often_a_course_is_past_a_limit_is_counted(tmp_path: Path) -> None:
    said = "不低于 1.5 的次数：no KL {}/5，KL=0.01 3/5。"
    assert marked(tmp_path, said.format(4), "check.not-same") == ["4"]
    assert marked(tmp_path, said.format(3), "check.not-same") == []


def test_a_number_one_digit_off_what_its_names_lead_to_is_a_slip(tmp_path: Path) -> None:
    assert marked(tmp_path, "KL=0.01 has a reward of 1.688 at step 80.", "check.slip") == ["1.688"]
    assert marked(tmp_path, "no KL goes 1.211, 1.563, 1.618.", "check.slip") == ["1.563"]
    assert marked(tmp_path, "no KL goes 1.211, 1.562, 1.618.", "check.slip") == []


def test_of_numbers_told_alike_the_one_that_the_others_contradict_is_wrong(tmp_path: Path) -> None:
    report = REPORT.replace("| no KL | KL=0.01 |", "| no KL | KL=0.01 | KL=0.05 |")
    report = report.replace("|---|---|---|", "|---|---|---|---|")
    for row, more in (("1.195", 1.102), ("1.433", 1.3), ("1.547", 1.411), ("1.689", 1.502)):
        report = report.replace(f"| {row} |", f"| {row} | {more:.3f} |")
    report = report.replace("| 1.702 |", "| 1.702 | 1.533 |")
    path = tmp_path / "report.md"
    for second, odd in (("1.664", ["1.664"]), ("1.646", [])):
        said = f"后 3 个点的平均：no KL 1.562，KL=0.01 {second}，KL=0.05 1.482。"
        path.write_text(report.format(said=said))
        marks = check(document.drafted(path), read_page(path))
        wrong = [mark.text for mark in marks if mark.state in ("wrong", "unsupported")]
        assert wrong == odd


def test_what_a_course_gives_is_not_without_a_source(tmp_path: Path) -> None:
    said = "no KL ends at 1.493, which is 0.125 below its best; it loses {} points by the end."
    assert marked(tmp_path, said.format("0.125"), "number-without-source") == []


@pytest.mark.parametrize(
    ("said", "text"),
    [
        ("no KL 从 step 60 的 1.618 降到 step 100 的 1.493，相对下降 {}%。", ("7.7", "8.4")),
        ("no KL peaks at step 60 and KL=0.01 at step 100, {} steps later.", ("40", "60")),
    ],
)
def test_a_change_is_of_its_own_two_ends(tmp_path: Path, said: str, text: tuple[str, str]) -> None:
    def digits(number: str) -> list[str]:
        path = tmp_path / "report.md"
        path.write_text(REPORT.format(said=said.format(number)))
        marks = check(document.drafted(path), read_page(path))
        return [one.text.strip("%") for one in marks if one.state in ("wrong", "unsupported")]

    right, wrong = text
    assert digits(right) == []
    assert digits(wrong) == [wrong]
