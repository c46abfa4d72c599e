"""Claims in words beside the numbers that decide them: each kind right, and with a slip."""

import pytest

from test_check import marks
from test_check_rules import ARMS, STEPS

TWO = """# 有无 KL

## 验证 Reward

| Step | 无KL约束 | 有KL约束 | 备注 |
|---|---|---|---|
| 5 | 1.818 | 1.695 | {} |
| 10 | 2.140 | 1.992 | |
| 20 | 1.830 | 1.915 | |
| 40 | 2.003 | 2.123 | |
| 45 | 2.202 | 2.005 | |

{}
"""
LEASHES = """# KL_BETA

| Shot | KL_BETA=0.12 | KL_BETA=0.15 | KL_BETA=0.18 | 最高 |
|---|---|---|---|---|
| 1 | 57.1% | 58.8% | 56.2% | 0.15 |
| 2 | 56.0% | 56.6% | 56.9% | 0.18 |
| 3 | 55.3% | 53.9% | 54.4% | 0.12 |
| 4 | 54.2% | 55.2% | 53.8% | {} |

{}
"""
SAME = """# 两个系数

## Mean Advantage

| 指标 | KL_BETA=0.12 | KL_BETA=0.15 |
|---|---|---|
| 平均 | 0.0031 | 0.0031 |
| 初始 | 0.0044 | 0.0044 |
| 最终 | 0.0012 | 0.0012 |

{}

## KL Loss

| 指标 | KL_BETA=0.12 | KL_BETA=0.15 |
|---|---|---|
| 平均 | 0.0072 | 0.0089 |
| 最终 | 0.0065 | 0.0080 |
"""
EPOCHS = """# 选择器

## 验证

| β | ep1 | ep2 | ep3 | ep4 |
|---|---|---|---|---|
| 0.05 | 62.57 | 62.89 | 63.48 | 63.13 |
| 0.08 | 63.15 | 64.18 | 63.25 | 64.35 |
| 0.10 | 63.67 | 63.93 | 65.02 | 64.39 |

{}
"""
SHOTS = """# 方法

## 结果

| 方法 | Shot 1 | Shot 2 | Shot 3 |
|---|---|---|---|
| 随机 | 47.8 | 46.9 | 46.6 |
| RCE | 49.9 | 49.2 | 48.8 |
| GRPO | 51.5 | 51.3 | 50.7 |

{}
"""


def filled(text, *parts):
    """A text with its holes filled; the first ones with nothing, if there are too few parts."""
    return text.format(*("",) * (text.count("{}") - len(parts)), *parts)


# Rules on numbers that may have been first at the same place.
OTHERS = (
    "check.anothers",
    "check.crosswise",
    "check.elsewhere",
    "check.not-most",
    "check.not-same",
    "check.slip",
)
CLAIMS = [
    ("check.turned", TWO, "Step 5 时有KL约束略低（1.695 vs 1.818）。", "略低", "略高"),
    ("check.turned", ARMS, "loose is slightly higher (63.5 vs 62.4).", "higher", "lower"),
    ("check.turned", TWO, "有KL约束在末尾降至 2.005。", "2.005", "2.005"),
    ("check.turned", STEPS, "A 在 update 80 升至 0.762。", "升至", "降至"),
    ("check.turned", ARMS, "翻一倍提高 1.87, 再翻一倍提高 0.93, 收益递减。", "递减", "递增"),
    ("check.turned", ARMS, "熵的变化: 甲 +26.6%, 乙 +20.4%, 两者都上升。", "上升", "下降"),
    ("check.crosswise", ARMS, "free 61.2, loose 63.5.", "61.2, loose 63.5", "63.5, loose 61.2"),
    ("check.crosswise", ARMS, "310.8 for free, 288.4 for loose.",
     "free, 288.4 for loose", "loose, 288.4 for free"),
    ("check.crosswise", TWO, "有KL约束接近无KL约束（1.992 vs 2.140）。", "1.992 vs 2.140",
     "2.140 vs 1.992"),
    ("check.not-the-one", ARMS, "The lowest accuracy is that of frozen (58.9).", "frozen", "tight"),
    ("check.not-the-one", ARMS, "The widest gap is 2.86 (A), the narrowest 1.49 (B).", "x", "x"),
    ("check.not-the-one", ARMS, "The widest is loose (2.86) and the narrowest tight (1.49).",
     "widest is loose (2.86) and the narrowest", "narrowest is loose (2.86) and the widest"),
    ("check.not-order", ARMS, "By KL the order is free, loose, tight.", "free, loose, tight",
     "loose, free, tight"),
    ("check.not-order", ARMS, "KL 的次序是 free > loose > tight > frozen。", "loose > tight",
     "tight > loose"),
    ("check.not-all", STEPS, "A is below B at every update.", "below", "above"),
    ("check.not-all", TWO, "有KL约束并非始终低于无KL约束。", "并非始终", "始终"),
    ("check.not-trend", SAME, "KL_BETA=0.12 的 KL Loss 更低。", "0.12", "0.15"),
    ("check.not-trend", SHOTS, "所有方法的正确率都随 Shot 增加而下降。", "下降", "上升"),
    ("check.not-apart", SAME, "Mean Advantage 完全相同。", "完全相同", "略有不同"),
    ("check.not-top", EPOCHS, "0.05、0.10 在 ep3 最好，0.08 要到 ep4。", "0.10 在 ep3 最好，0.08",
     "0.08 在 ep3 最好，0.10"),
    ("check.not-place", LEASHES, "KL_BETA=0.12（更小）：更弱的 KL 约束，更激进。", "更弱", "更强"),
    ("check.not-place", LEASHES, "KL_BETA=0.15（中等）：平衡点。", "中等", "最大"),
    ("check.not-place", LEASHES, "KL_BETA=0.18 is the most conservative.", "0.18", "0.15"),
]  # fmt: skip


@pytest.mark.parametrize(("code", "text", "said", "old", "new"), CLAIMS, ids=range(len(CLAIMS)))
def test_a_claim_is_marked_only_where_its_numbers_deny_it(tmp_path, code, text, said, old, new):
    for sentence, is_wrong in ((said, False), (said.replace(old, new), old != new)):
        found = [m for m in marks(tmp_path / "r.md", filled(text, sentence)) if m.state == "wrong"]
        assert bool(found) == is_wrong, sentence
        assert not is_wrong or {mark.code for mark in found} & {code, *OTHERS}, sentence


@pytest.mark.parametrize(
    ("text", "right", "wrong"),
    [(TWO, "无KL版本此时更高", "KL版本此时更高"), (LEASHES, "0.15", "0.12")],
)
def test_a_cell_that_names_a_winner_is_as_the_numbers_of_its_row(tmp_path, text, right, wrong):
    for cell, is_wrong in ((right, False), (wrong, True)):
        found = {mark.code for mark in marks(tmp_path / "r.md", text.format(cell, ""))}
        assert ("check.not-winner" in found) == is_wrong, cell


OUTSIDE = """# Gaps

| pair | gap | 95 % CI | {title} |
|---|---|---|---|
| a | 6.48 | [+5.04, +7.92] | {yes} |
| b | 0.86 | [−0.34, +2.05] | {no} |
| c | 2.07 | [−0.08, +4.22] | {last} |
"""
TESTED = """# Tests

| pair | gap | p | {title} |
|---|---|---|---|
| a | 6.48 | < 0.001 | {yes} |
| b | 0.86 | 0.310 | {no} |
| c | 2.07 | 0.062 | {last} |
"""


@pytest.mark.parametrize(
    ("text", "title", "yes", "no"),
    [
        (OUTSIDE, "Excludes 0", "yes", "no"),
        (OUTSIDE, "含 0？", "否", "是"),
        (OUTSIDE, "显著", "是", "否"),
        (TESTED, "Significant?", "✓", "✗"),
    ],
)
def test_a_yes_beside_an_interval_or_a_test_is_as_they_say(tmp_path, text, title, yes, no):
    for last, is_wrong in ((no, False), (yes, True)):
        told = text.format(title=title, yes=yes, no=no, last=last)
        found = [m for m in marks(tmp_path / "r.md", told) if m.code == "check.not-winner"]
        assert [(m.line, m.text) for m in found] == ([(7, yes)] if is_wrong else [])


def test_what_most_rows_do_not_bear_out_is_asked_of_something_else(tmp_path):
    told = OUTSIDE.format(title="Significant", yes="no", no="no", last="yes")
    assert not [m for m in marks(tmp_path / "r.md", told) if m.code == "check.not-winner"]


def test_one_row_shows_not_yet_what_is_asked(tmp_path):
    told = OUTSIDE.format(title="Excludes 0", yes="yes", no="no", last="yes")
    told = "".join(line for line in told.splitlines(keepends=True) if "| a |" not in line)
    assert not [m for m in marks(tmp_path / "r.md", told) if m.code == "check.not-winner"]


STANDINGS = """# Success

| arm | books | toys | food | pets |
|---|---|---|---|---|
| free | 41.2 | 60.1 | 33.0 | 21.5 |
| loose | 48.9 | 55.4 | 38.2 | 27.3 |
| tight | 45.0 | 51.7 | 30.5 | 28.8 |

## Places

| group | free | loose | tight |
|---|---|---|---|
| books | 3 | {} | {} |
| toys | 1 | 2 | 3 |
| food | 2 | 1 | 3 |
| pets | 3 | 2 | 1 |
"""


def test_places_are_those_of_the_values(tmp_path):
    for told, is_wrong in ((("1", "2"), False), (("2", "1"), True), (("1", "3"), True)):
        found = [m for m in marks(tmp_path / "r.md", STANDINGS.format(*told)) if m.state == "wrong"]
        assert [(m.line, m.code) for m in found] == (
            [(13, "check.not-standing")] if is_wrong else []
        )


def test_places_of_something_else_are_left_in_peace(tmp_path):
    told = STANDINGS.format("1", "2").replace("| toys | 1 | 2 | 3 |", "| toys | 3 | 2 | 1 |")
    told = told.replace("| food | 2 | 1 | 3 |", "| food | 1 | 3 | 2 |")
    assert not [m for m in marks(tmp_path / "r.md", told) if m.code == "check.not-standing"]
