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
        (COURSES, "Only 14.62M / 29.18M = 50.1% of it is trained.", "50.1", "51.0"),
    ],
)
def test_what_a_table_gives_in_two_steps_has_a_source(tmp_path, page, right, number, slip):
    assert number in given(tmp_path, page.format(right))
    assert slip not in given(tmp_path, page.format(right.replace(number, slip)))


def test_a_change_from_the_wrong_end_has_no_source(tmp_path):
    said = "Answers grew from 692 to 1191, by 499 (+41.9%)."
    assert "+41.9" not in given(tmp_path, COURSES.format(said))


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


SEEDS = """# Seeds

| seed | C | A | A − C |
|---|---|---|---|
| 42 | 50.96 | 51.94 | +0.98 |
| 1337 | 51.05 | 52.25 | +1.20 |
| 2024 | 51.05 | 51.71 | +0.66 |
| mean | 51.02 | 51.97 | +0.95 |

- A 对 C 三个种子全赢，配对 t = 6.08（df = 2，p = {}）
"""


def test_a_test_that_a_table_shows_is_supported(tmp_path):
    assert not wrong(tmp_path, SEEDS.format("0.026"))
    assert wrong(tmp_path, SEEDS.format("0.002")) == {"p = 0.002"}


PAIRS = """# Overlap

| β | 0.05 | 0.08 | 0.10 | 0.20 |
|---|---|---|---|---|
| 0.05 | 100 | 94.5 | 93.3 | 88.9 |
| 0.08 | 94.5 | 100 | 96.6 | 91.4 |
| 0.10 | 93.3 | 96.6 | 100 | 92.4 |
| 0.20 | 88.9 | 91.4 | 92.4 | 100 |

- 0.08 与 0.10 的重合（{}）最高
"""


def test_the_diagonal_of_pairs_is_no_best(tmp_path):
    assert "96.6" not in wrong(tmp_path, PAIRS.format("96.6"))


STARS = """# Epochs (accuracy, 4-shot mean)

| arm | Epoch 1 | Epoch 2 | Epoch 3 | Epoch 4 |
|---|---|---|---|---|
| hard | 49.07% | **49.71%** ⭐ | 49.65% | 49.32% |
| soft | 50.51% | {} | {} | 50.69% |
| both | 49.67% | 50.13% | **50.40%** ⭐ | 50.01% |
"""


def test_the_stars_of_a_table_may_be_those_of_its_rows(tmp_path):
    assert not wrong(tmp_path, STARS.format("50.90%", "**50.94%** ⭐"))


NAMED = """# Steps

| step | none | β=0.1 |
|---|---|---|
| 40 | 1.948 | 1.767 |
| 50 | 1.856 | 1.784 |
| 60 | 1.743 | 1.891 |

- β=0.1 在 step 50 之前一直低于 none，不过 step 60 时（{}）已经超过 none
"""


def test_the_only_number_of_a_sentence_may_be_of_any_name_in_it(tmp_path):
    assert not wrong(tmp_path, NAMED.format("1.891"))
    assert wrong(tmp_path, NAMED.format("1.948"))


SUMMARY = """# Courses

| step | A | B |
|---|---|---|
| 100 | 62.85 | 59.80 |
| 200 | 65.50 | 61.75 |
| 300 | 66.25 | 62.70 |

| arm | best | best step |
|---|---|---|
| A | 66.25 | {} |
| B | 62.70 | {} |
| C | 62.85 | {} |
"""


def test_a_mean_of_steps_is_no_step_of_a_table(tmp_path):
    assert not wrong(tmp_path, SUMMARY.format("362.5", "312.5", "262.5"))
    assert {"62.70", "100"} & wrong(tmp_path, SUMMARY.format("300", "100", "100"))
