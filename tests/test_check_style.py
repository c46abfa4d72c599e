"""Last digits, bases, lone steps and lists: what tells a slip from another way of working."""

from __future__ import annotations

from pathlib import Path

import pytest

from kleash.imports.markdown import document
from kleash.written.check import check
from kleash.written.gaps import direction
from kleash.written.made.rounded import for_hidden, is_of_printed, off_by_rounding
from kleash.written.page import read_page
from kleash.written.prose import sentences


def wrong(tmp_path: Path, text: str) -> list[tuple[int, str]]:
    """The line and text of every number that does not stand."""
    path = tmp_path / "report.md"
    path.write_text(text)
    marks = check(document.drafted(path), read_page(path))
    bad = [mark for mark in marks if mark.state in ("wrong", "unsupported")]
    return [(mark.line, mark.text.strip("* ")) for mark in bad]


# --- hidden digits

SHOTS = """# Shots

| β | Shot 1 | Shot 2 | Shot 3 | Shot 4 | 平均 |
|---|---|---|---|---|---|
| 0.05 | 57.1 | 56.3 | 55.4 | 54.8 | {} |
| 0.10 | 58.0 | 56.8 | 55.9 | 54.9 | {} |
| 0.15 | 57.7 | 57.2 | 56.1 | 55.4 | {} |
| 0.20 | 57.4 | 56.6 | 55.7 | 54.7 | {} |
| 0.30 | 56.9 | 56.1 | 55.2 | 54.6 | {} |
| 0.40 | 56.2 | 55.8 | 55.3 | 54.3 | {} |
| 0.50 | 55.7 | 55.3 | 54.2 | 53.2 | {} |
| 0.60 | 54.1 | 53.7 | 53.3 | 52.5 | {} |
"""
MEANS = ["55.90", "56.40", "56.60", "56.10", "55.70", "55.40", "54.60", "53.40"]
HIDDEN = ["55.92", "56.41", "56.58", "56.11", "55.69", "55.40", "54.62", "53.39"]


def test_means_of_printed_numbers_are_held_to_the_last_digit(tmp_path: Path) -> None:
    assert wrong(tmp_path, SHOTS.format(*MEANS)) == []
    assert wrong(tmp_path, SHOTS.format(*MEANS[:1], "56.41", *MEANS[2:])) == [(6, "56.41")]


def test_means_of_hidden_digits_are_not(tmp_path: Path) -> None:
    assert wrong(tmp_path, SHOTS.format(*HIDDEN)) == []


def test_rounding_shows_where_what_comes_out_lies_between_two_digits() -> None:
    near, far = (off_by_rounding(given, 0.0007, 2, 0.01) for given in (1.7551, 1.7501))
    assert near > 0.3
    assert far < 1e-9


def test_what_others_tell_outweighs_one_odd_number_and_not_many() -> None:
    odd, even = (for_hidden(0.4, odd=one) for one in (True, False))
    assert not is_of_printed({"own": odd}, "own")
    assert is_of_printed({"own": odd + 6 * even, "others": 8 * even}, "own")
    assert not is_of_printed({"own": odd, "others": 8 * even}, "own")


# --- what a table is held against

GAINS = """# Gains

## Epoch {0}

| β | Shot 1 | Shot 2 | 平均 | vs RCE |
|---|---|---|---|---|
| 0.05 | 55.54 | 56.36 | 55.95 | {1} |
| 0.10 | 55.10 | 56.80 | 55.95 | +1.25 |
| 0.15 | 55.90 | 55.56 | 55.73 | +1.03 |
| 0.20 | 55.74 | 56.02 | 55.88 | +1.18 |
| 0.30 | 54.88 | 55.76 | 55.32 | +0.62 |
"""


@pytest.mark.parametrize(("gain", "marks"), [("+1.25", []), ("+1.15", [(7, "+1.15")])])
def test_gains_over_a_number_that_the_table_lacks_share_it(
    tmp_path: Path, gain: str, marks: list[tuple[int, str]]
) -> None:
    others = "\n".join(GAINS.format(epoch, "+1.25") for epoch in (2, 3))
    assert wrong(tmp_path, GAINS.format(1, gain) + "\n" + others) == marks


SUMMARY = """# Summary

| 指标 | ent=0 | ent=0.005 | ent=0.02 |
|---|---|---|---|
| 最佳Step | 40 | 50 | 60 |
| 最佳Reward | 2.118 | 2.236 | 2.132 |
| 最终Reward（Step 60） | 1.968 | 2.205 | 2.132 |
| 最终 − 最佳 | {} | -0.031 | 0.000 |
"""


def test_a_title_names_the_two_rows_that_it_is_the_difference_of(tmp_path: Path) -> None:
    assert wrong(tmp_path, SUMMARY.format("-0.150")) == []
    assert wrong(tmp_path, SUMMARY.format("-0.140")) == [(8, "-0.140")]


# --- steps

COURSES = """# Resets

| Step | never | every 200 | every 100 | every 50 |
|---|---|---|---|---|
| 50 | 41.20 | 41.32 | 40.72 | 41.64 |
| 100 | 45.48 | 45.40 | 45.16 | 45.08 |
| 150 | 48.04 | 47.88 | 48.00 | 49.40 |
| 200 | 52.00 | 51.88 | 52.88 | 50.24 |
| 250 | 51.76 | 53.44 | 54.36 | 49.84 |

{}
"""
COLUMN = """| Reset | runs | Best step of the mean |
|---|---|---|
| never | 5 | 200 |
| every 200 | 5 | 250 |
| every 100 | 5 | 250 |
| every 50 | 5 | {} |"""
LISTING = """```
never      best_step=200  runs=5
every 200  best_step=250  runs=5
every 100  best_step=250  runs=5
every 50   best_step={}  runs=5
```"""


@pytest.mark.parametrize(("form", "line"), [(COLUMN, 16), (LISTING, 15)])
def test_steps_without_values_are_where_their_courses_are_best(
    tmp_path: Path, form: str, line: int
) -> None:
    assert wrong(tmp_path, COURSES.format(form.format(200))) == []
    assert wrong(tmp_path, COURSES.format(form.format(150))) == [(line, "150")]


TWICE = """# Losses

## Validation Loss

| | β=0.1 | β=0.2 |
|---|---|---|
| 最小 | 6.3318 (Epoch 33) | 6.3263 (Epoch 38) |
| 最终 | 6.3352 | 6.3285 |

## 汇总

| 项目 | β=0.1 | β=0.2 |
|---|---|---|
| Val Loss 最小的 Epoch | 33 | {} |
| 最终 Val Loss | 6.3352 | 6.3285 |
"""


def test_two_tables_tell_one_step_for_one_thing(tmp_path: Path) -> None:
    path = tmp_path / "report.md"
    for step, lines in ((38, set()), (36, {7, 14})):
        path.write_text(TWICE.format(step))
        marks = check(document.drafted(path), read_page(path))
        assert {mark.line for mark in marks if mark.code == "check.elsewhere"} == lines


# --- sentences

REWARDS = """# Rewards

| Step | ent=0 | ent=0.005 |
|---|---|---|
| 10 | 1.931 | 1.874 |
| 20 | 1.987 | 1.901 |
| 30 | 2.118 | 2.097 |
| 40 | 1.968 | 2.236 |

{}
"""


@pytest.mark.parametrize(
    ("said", "marks"),
    [
        ("Step 40 时 ent=0.005 为 2.236，比 ent=0 的 1.968 高 0.268（+13.6%）。", []),
        ("Step 40 时 ent=0.005 为 2.236，比 ent=0 的 1.968 高 0.268（+12.0%）。", ["+12.0%"]),
        ("Step 40 时 ent=0 和 ent=0.005 分别为 1.968 和 2.236。", []),
        ("Step 40 时 ent=0 和 ent=0.005 分别为 2.236 和 1.968。", ["2.236"]),
    ],
)
def test_a_gain_is_of_the_smaller_number_and_a_list_keeps_its_order(
    tmp_path: Path, said: str, marks: list[str]
) -> None:
    assert [text for _, text in wrong(tmp_path, REWARDS.format(said))] == marks


@pytest.mark.parametrize(
    ("said", "way"),
    [
        ("B 比 A 高 3.6%", 1),
        ("B 下降了 3.6%", -1),
        ("相对 -3.6%", -1),
        ("k2 is 3.6% higher", 1),
        ("the gap is 3.6%", 0),
    ],
)
def test_words_and_signs_tell_which_way_a_change_goes(tmp_path: Path, said: str, way: int) -> None:
    path = tmp_path / "report.md"
    path.write_text(f"{said}\n")
    (one,) = sentences(read_page(path), [])
    assert direction(one, one.numbers[0]) == way
