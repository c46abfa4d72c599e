"""Gaps and shares whose numbers stand beside them, and what tells two numbers apart."""

import os
import re
import subprocess
import sys

import pytest

from kleash.written.book import Book
from kleash.written.doubts import acquitted
from kleash.written.marks import Mark
from test_check_slips import bad, page

TABLE = (
    "| step | no KL | 0.001 | 0.005 |",
    "|---|---|---|---|",
    "| 20 | 0.612 | 0.574 | 0.556 |",
    "| 40 | 0.688 | 0.655 | 0.603 |",
    "| 60 | 0.742 | 0.731 | 0.649 |",
    "| 80 | 0.571 | 0.779 | 0.694 |",
    "",
)
SAID = 10  # the line of what is said below the table


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        # Of where it began, not of where it came to, nor what is left of it.
        ("无 KL 从 0.742 降到 0.571，降了 23.0%。", ("29.9%", "77.0%")),
        ("Without KL it goes from 0.742 to 0.571, that is -23.0%.", ("-29.9%", "-77.0%")),
        ("It is higher (0.779) than at step 40 (0.655), an increase of 18.9%.", ("15.9%",)),
        ("最好的是 0.779，起点 0.742，增量 +0.037，相对提升 5.0%。", ("4.7%",)),
        ("0.001 (0.779) is 0.085 above 0.005 (0.694), a relative gain of 12.2%.", ("10.9%",)),
        # Of the two numbers right beside it, whatever a table has.
        ("两组落在 0.694 到 0.779 之间，极差 0.085。", ("0.043", "0.095")),
        ("末步 0.779，比 0.005 的末步（0.694）高 0.085。", ("0.095", "0.043")),
        ("The last values are 0.779 vs 0.694, up by 0.085.", ("0.095",)),
        ("0.001 一路上升（0.574 → 0.655 → 0.731 → 0.779），累计 +0.205。", ("+0.195",)),
        ("It ranges from 0.556 (step 20) to 0.694 (step 80), a factor of 1.25.", ("1.27",)),
        # A part of a whole, and what is drawn from two numbers.
        ("三次训练共 18.94 小时，占总时长 25.13 小时的 75.4%。", ("73.4%",)),
        ("All three take 18.94 h, 75.4% of the 25.13 h.", ("73.4%",)),
        ("末步只剩 0.070 的提升，峰值时曾有 0.659，也就是丢掉了 89.4%。", ("84.9%",)),
    ],
)
def test_a_gap_is_of_the_two_numbers_beside_it(tmp_path, right, wrong):
    share = re.findall(r"[+-]?\d+\.\d+%", right) or re.findall(r"[+-]?\d+\.\d+", right)
    own = share[0] if right.startswith("All three") else share[-1]
    assert SAID not in bad(tmp_path, page(*TABLE, f"- {right}"), *RECKONED)
    for other in wrong:
        text = right.replace(own, other)
        assert text != right
        assert SAID in bad(tmp_path, page(*TABLE, f"- {text}"), *RECKONED, "check.slip"), text


RECKONED = ("check.not-difference", "check.not-relative", "check.not-share")


def test_a_gap_of_two_steps_is_one_only_where_it_counts_steps(tmp_path):
    assert SAID not in bad(tmp_path, page(*TABLE, "- 40 到 60，共多 30 条。"), *RECKONED)
    assert SAID in bad(tmp_path, page(*TABLE, "- 40 到 60，共多 30 步。"), *RECKONED)


@pytest.mark.parametrize(
    "text",
    [
        "其余 11 个点上 0.001 都更高（0.779 vs 0.694）。",
        "末步 0.571 vs 0.779，都低于各自最佳（-0.171，-0.043）。",
        "从 100 到 800 样本，准确率掉了 12.75%。",
        "The gap shrinks from 5.44 to 1.92 points, about 35% of it.",
        "0.694 到 0.779 之间，比无 KL 高 0.208。",
    ],
)
def test_a_gap_that_may_be_of_something_else_is_let_be(tmp_path, text):
    assert SAID not in bad(tmp_path, page(*TABLE, f"- {text}"), *RECKONED)


def test_of_two_in_brackets_the_first_is_what_is_more(tmp_path):
    assert not bad(tmp_path, page(*TABLE, "- 末步 0.779 对 0.694，高 0.085。"), *RECKONED)
    text = page(*TABLE, "- 末步 0.694 对 0.779，高 0.085。")
    assert bad(tmp_path, text, *RECKONED) == {SAID}
    text = page(*TABLE, "- 0.005 还在升（0.694 → 0.649）。")
    assert bad(tmp_path, text, "check.turned") == {SAID}
    text = page(*TABLE, "- 降幅从 20.1% 到 28.9% 不等。")
    assert not bad(tmp_path, text, "check.turned")


# --- tables

SOLVED = (
    "| run | retail (150) | rate | airline (75) | rate | total (225) | total rate |",
    "|---|---|---|---|---|---|---|",
    *(
        f"| {name} | {a} | {a / 1.5:.1f}% | {b} | {b / 0.75:.1f}% | {a + b} | "
        f"{(a + b) / 2.25:.1f}% |"
        for name, a, b in (
            ("A @ 100", 100, 41), ("A @ 200", 79, 29), ("B @ 140", 108, 43),
            ("B @ 200", 107, 45), ("C @ 180", 96, 38), ("C @ 200", 92, 37),
        )
    ),
)  # fmt: skip


def test_a_total_is_a_sum_though_it_is_also_a_share_of_a_whole(tmp_path):
    assert not bad(tmp_path, page(*SOLVED))
    text = page(*SOLVED).replace("| 92 | 61.3% |", "| 98 | 65.3% |")
    assert bad(tmp_path, text, "check.no-fit", "check.not-sum") == {10}


def test_a_range_is_known_by_its_title(tmp_path):
    rows = [(62.0, 64.0, 67.0), (53.6, 57.2, 60.0), (50.2, 55.4, 56.8), (49.8, 55.4, 56.4)]
    lines = [
        f"| {n} | {' | '.join(map(str, one))} | {max(one) - min(one):.1f} |"
        for n, one in zip((100, 250, 500, 1000), rows, strict=True)
    ]
    text = page("| n | random | kNN | RL | max − min |", "|---|---|---|---|---|", *lines)
    assert not bad(tmp_path, text)
    assert bad(tmp_path, text.replace("| 50.2 |", "| 53.6 |")) == {7}


def test_a_cell_that_says_what_it_is_is_no_sum(tmp_path):
    rows = ("| 0.02 | 3.87 | 15.5 | 61.5 |", "| 0.05 | 4.01 | 16.0 | 61.4 |")
    rows += ("| 0.10 | 3.90 | 15.6 | 61.5 |", "| 0.20 | 4.15 | 16.6 | 61.6 |")
    total = "| 合计 | 15.93 | 63.7 | 61.6（最大） |"
    text = page("| β | 时长（h） | 卡时 | 显存（GB） |", "|---|---|---|---|", *rows, total)
    assert not bad(tmp_path, text, "check.not-sum")
    assert bad(tmp_path, text.replace("15.93", "17.93"), "check.not-sum") == {9}


def test_two_numbers_whose_difference_stands_beside_them_are_in_their_place(tmp_path):
    pairs = [(172, 129), (158, 124), (164, 111), (149, 133), (163, 126), (143, 124)]
    pairs += [(130, 142), (172, 120), (183, 128), (189, 123)]
    rows = [f"| pair {n} | {a} | {b} | {a - b:+d} |" for n, (a, b) in enumerate(pairs)]
    text = page("| pair | first only | second only | net |", "|---|---|---|---|", *rows)
    assert not bad(tmp_path, text, "check.exchanged")


def test_numbers_by_shots_are_held_in_parallel(tmp_path):
    rows = ("| 1-shot | 56.1% | 59.1% |", "| 2-shot | 57.3% | 60.7% |")
    rows += ("| 3-shot | 58.0% | 60.6% |", "| 4-shot | 56.8% | 59.0% |")
    other = ("| Epoch | 1-shot | 2-shot | 3-shot | 4-shot |", "|---|---|---|---|---|")
    other += ("| 1 | 57.0% | 58.0% | 58.3% | 57.4% |", "| 2 | 56.7% | 58.1% | 57.3% | 57.6% |", "")
    table = (*other, "| shot | 起点 | β=0.05 |", "|---|---|---|", *rows, "")
    said = "起点的成绩：1-shot 56.1%，2-shot 57.3%，3-shot 58.0%，4-shot 56.8%。"
    assert not bad(tmp_path, page(*table, f"- {said}"))
    turned = said.replace("57.3", "x").replace("58.0", "57.3").replace("x", "58.0")
    assert bad(tmp_path, page(*table, f"- {turned}")) == {15}


def test_a_count_that_labels_its_rows_has_no_numbers_of_its_own(tmp_path):
    rows = [f"| A / B | {n} | {x} |" for n, x in ((2, 6.14), (4, 4.10), (8, 0.39))]
    table = ("| pair | shots | χ² |", "|---|---|---|", *rows, "")
    text = page(*table, "- A passes with 2 shots (6.14) and 4 shots (4.10), not with 8 (0.39).")
    assert not bad(tmp_path, text, "check.anothers")


@pytest.mark.parametrize("seed", ["0", "1", "4"])
def test_check_says_the_same_in_every_process(tmp_path, seed):
    """Names that stand at one place came in the order of a set, which no two processes share."""
    path = tmp_path / "r.md"
    both = [(560, 558), (596, 587), (625, 612), (639, 631), (642, 649), (629, 652), (618, 652)]
    rows = [
        f"| {25 * n} | 0.{a} | 0.{b} | {(b - a) / 1000:+.3f} |" for n, (a, b) in enumerate(both, 1)
    ]
    head = ("| step | β=0.0 | β=0.01 | 0.01 − 0.0 |", "|---|---|---|---|")
    path.write_text(page(*head, *rows, "", ALWAYS))
    made = subprocess.run(
        [sys.executable, "-m", "kleash", "check", str(path), "--json"],
        env={**os.environ, "PYTHONHASHSEED": seed},
        capture_output=True,
        text=True,
        check=False,
    )
    assert '"check.not-all"' in made.stdout, made.stderr


ALWAYS = "- 从 step 25 起 β=0.01 始终高于 β=0.0。"


# --- what was taken for wrong

COURSES = (
    "| Epoch | 0.10 | 0.15 | 0.20 |",
    "|---|---|---|---|",
    "| 1 | 46.85 | 47.31 | 47.02 |",
    "| 2 | 47.52 | 48.22 | 48.10 |",
    "| 3 | 47.55 | 49.12 | 48.63 |",
    "| 4 | 46.97 | 48.51 | 48.87 |",
    "",
)


@pytest.mark.parametrize(
    "text",
    [
        "0.20 值得续训到 Epoch 6，看能否超过 49.12。",
        "每个 checkpoint 评测 16 个点（4 个样本数 × 4 个 shot），22 个 checkpoint 共 352 个点。",
    ],
)
def test_a_right_sentence_is_let_be(tmp_path, text):
    codes = ("check.elsewhere", "check.not-most", "check.not-trend", "check.stranger")
    assert not bad(tmp_path, page(*COURSES, f"- {text}"), *codes, "number-without-source")


def test_a_number_is_not_that_of_the_unit_before_it(tmp_path):
    rows = ("| A | 9.12 | 78.6 | 943.27 |", "| B | 9.40 | 80.7 | 968.41 |")
    total = "| total | 18.52 | 159.3 | 1911.68 |"
    head = ("| run | training (h) | GPU-hours | cost ($) |", "|---|---|---|---|")
    text = page(*head, *rows, total, "", "- Both took 159.3 GPU-hours and 1911.68 dollars.")
    assert not bad(tmp_path, text, "check.anothers", "check.not-same")


def test_steps_in_a_row_are_those_of_a_column_of_best_steps(tmp_path):
    every = ((125, 643), (150, 632), (150, 657), (175, 660), (225, 662), (200, 670))
    seeds = ("| 0.0 | 7", "|  | 42", "|  | 2024", "| 0.01 | 7", "|  | 42", "|  | 2024")
    rows = [f"{seed} | {at} | 0.{best} |" for seed, (at, best) in zip(seeds, every, strict=True)]
    table = ("| β | seed | best step | best |", "|---|---|---|---|", *rows, "")
    said = "- β=0.0 的三个 run 最佳步是 125、150、150。"
    assert not bad(tmp_path, page(*table, said), "check.slip")
    turned = said.replace("125、150、150", "125、125、150")
    assert bad(tmp_path, page(*table, turned), "check.slip") == {12}
    # Other steps altogether are of something else.
    assert not bad(tmp_path, page(*table, "- We look at steps 20, 60, 100 and 250."), "check.slip")


def test_cells_of_two_numbers_are_told_apart_by_nothing():
    """They broke the whole check: "17.1 ± 1.1" is no number."""
    book, mark = Book([], []), Mark(8, "17.1 ± 1.1, 314.25%", "wrong", "check.exchanged")
    assert acquitted([mark], book, [], set(), set()) == [mark]
    plain = Mark(8, "130, 142", "wrong", "check.exchanged")
    assert acquitted([plain], book, [], set(), set(), (), {(8, 130.0, 142.0)}) == []
