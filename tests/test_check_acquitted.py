"""Numbers that are right in a way that a rule may miss, each beside one that is wrong."""

import pytest

from kleash.imports.markdown import document
from kleash.written.book import Book
from kleash.written.grids import grids
from kleash.written.page import read_page
from kleash.written.printed import sheets
from kleash.written.prose import sentences
from kleash.written.told.follows import follows
from test_check import marks

SHOTS = """# Coefficients

| β | 1-shot | 2-shot | 3-shot | 4-shot |
|---|---|---|---|---|
| 0.05 | 60.16 | 61.86 | 61.34 | 60.54 |
| 0.10 | 61.82 | 63.10 | 62.08 | 61.78 |
| 0.20 | 61.20 | 62.20 | 62.02 | 61.18 |

- {}
"""
COURSES = """# Validation

| step | A | B |
|---|---|---|
| 50 | 60.55 | 58.35 |
| 100 | 62.05 | 59.80 |
| 150 | 64.80 | 61.75 |
| 200 | 63.10 | 62.45 |

- {}
"""


def wrong(tmp_path, text):
    """The texts of all numbers that are marked."""
    found = marks(tmp_path / "report.md", text)
    return {one.text for one in found if one.state in ("wrong", "unsupported")}


def given(tmp_path, text):
    """The numbers of sentences that tables give."""
    path = tmp_path / "report.md"
    path.write_text(text, encoding="utf-8")
    page, tables = read_page(path), sheets(grids(document.drafted(path)))
    book = Book.of(tables, page)
    every = sentences(page, tables)
    return {said.text for one in every for said in one.numbers if follows(book, one, said)}


@pytest.mark.parametrize(
    ("page", "right", "number", "slip"),
    [
        (SHOTS, "0.10 从 2-shot 到 4-shot 掉了 1.32", "1.32", "1.23"),
        (COURSES, "A gains 4.25 up to step 150, then gives back 1.70.", "1.70", "1.57"),
        (COURSES, "A 后三次落在 62.05–64.80，极差 2.75", "2.75", "2.57"),
        (COURSES, "A has 62.05, 64.80, 63.10 from step 100 on, mean 63.32.", "63.32", "63.62"),
        (COURSES, "Stopping A at step 150 saves 25.0% of its steps.", "25.0", "35.0"),
    ],
)
def test_what_a_table_gives_in_two_steps_has_a_source(tmp_path, page, right, number, slip):
    assert number in given(tmp_path, page.format(right))
    assert slip not in given(tmp_path, page.format(right.replace(number, slip)))


def test_a_drop_between_two_shots_is_no_alarm_and_another_number_is(tmp_path):
    said = "0.10 从 2-shot 到 4-shot 掉了 {}"
    assert not wrong(tmp_path, SHOTS.format(said.format("1.32")))
    assert wrong(tmp_path, SHOTS.format(said.format("1.92"))) == {"1.92"}


GROUPS = """# Epochs

| epoch | β | accuracy | vs 0.15 |
|---|---|---|---|
| 1 | 0.05 | 48.45 | {} |
| 1 | 0.10 | 49.00 | -0.30 |
| 1 | 0.15 | 49.30 | 基准 |
| 2 | 0.05 | 48.20 | -1.15 |
| 2 | 0.10 | 49.65 | +0.30 |
| 2 | 0.15 | 49.35 | 基准 |
| 3 | 0.05 | 47.40 | -1.95 |
| 3 | 0.10 | 49.50 | +0.15 |
| 3 | 0.15 | 49.35 | 基准 |
"""


def test_differences_are_held_against_the_base_of_their_own_group(tmp_path):
    assert not wrong(tmp_path, GROUPS.format("-0.85"))
    assert wrong(tmp_path, GROUPS.format("-0.58")) == {"-0.58"}


BESTS = """# Epochs

| β | ep1 | ep2 | ep3 | ep4 | ep5 | ep5 − 最好 |
|---|---|---|---|---|---|---|
| 0.05 | 62.57 | 62.89 | 63.48 | 63.13 | 62.57 | -0.91 |
| 0.08 | 63.15 | 64.18 | 63.25 | 64.35 | 63.55 | {} |
| 0.10 | 63.67 | 63.93 | 65.02 | 64.39 | 63.72 | -1.30 |
| 0.20 | 62.63 | 63.75 | 63.92 | 64.18 | 63.57 | -0.61 |
| 0.30 | 62.22 | 62.89 | 63.42 | 62.77 | 62.62 | -0.80 |
"""


def test_the_best_of_a_row_need_not_be_in_one_column(tmp_path):
    assert not wrong(tmp_path, BESTS.format("-0.80"))
    assert wrong(tmp_path, BESTS.format("-0.08")) == {"-0.08"}


PAIRED = """# Paired

| seed | A − C | A − B | B − C |
|---|---|---|---|
| 11 | +8.6 | +6.0 | +2.6 |
| 23 | +1.2 | +4.4 | -3.2 |
| 42 | +2.0 | {} | +0.4 |
| 77 | +3.6 | +6.2 | -2.6 |
| mean | +3.85 | +4.55 | -0.70 |
| t (df = 3) | 2.32 | 4.28 | -0.52 |
"""


def test_a_test_of_differences_is_no_difference_of_tests(tmp_path):
    assert not wrong(tmp_path, PAIRED.format("+1.6"))
    assert "+6.1" in wrong(tmp_path, PAIRED.format("+6.1"))
