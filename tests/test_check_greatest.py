"""Which is best, most, first or last: in columns, lists of names, spans of steps and brackets."""

from __future__ import annotations

from pathlib import Path

import pytest

from kleash.imports.markdown import document
from kleash.written.check import check
from kleash.written.page import read_page

CURVES = """# 两个版本

| Step | 旧版 | 新版 | 差异 |
|---|---|---|---|
| 8 | 1.290 | 1.250 | -0.040 |
| 16 | 1.470 | 1.390 | -0.080 |
| 24 | 1.675 | 1.525 | -0.150 |
| 32 | 1.530 | 1.569 | +0.039 |
| 40 | 1.955 | 1.632 | -0.323 |
| 48 | 1.801 | 1.863 | +0.062 |
| 56 | 1.715 | 1.804 | +0.089 |

| 指标 | 旧版 | 新版 |
|---|---|---|
| 最佳 Reward | 1.955 (Step 40) | 1.863 (Step 48) |
| 最大下降 | {drop} | -3.2% (Step 56) |

- {said}
"""

BETAS = """# Accuracy during training

| β | 100 | 200 | 300 | 400 | best step |
|---|---|---|---|---|---|
| β=0 | 0.689 | 0.709 | 0.725 | 0.717 | 300 |
| β=0.01 | 0.685 | 0.698 | 0.712 | 0.732 | 400 |
| β=0.02 | 0.681 | 0.696 | 0.708 | 0.731 | 400 |
| β=0.04 | 0.677 | 0.686 | 0.699 | 0.711 | 400 |

{}
"""

COSTS = """# Cost

| β | GPU-hours | Cost | Cost per solved task |
|---|---|---|---|
| 0.000 | 146.0 | $335.80 | $1.36 |
| 0.004 | 160.4 | $368.92 | $1.37 |
| 0.008 | 157.6 | $362.48 | $1.33 |
| 0.016 | 159.2 | $366.16 | $1.40 |

- {}
"""

SIZES = """# 题目数

| 题目数 | 0.06 | 0.10 | 0.14 | 0.18 | 平均 |
|---|---|---|---|---|---|
| 100 | 59.35 | 57.71 | 59.15 | 58.68 | 58.72 |
| 200 | 55.25 | 56.21 | 57.77 | 56.51 | 56.44 |
| 400 | 52.92 | 53.45 | 54.38 | 54.11 | 53.72 |
| 800 | 50.34 | 51.44 | 52.04 | 52.09 | 51.48 |

{}
"""

PICKED = """# Summary

| KL_BETA | Epoch 1 | Epoch 2 | Best epoch |
|---|---|---|---|
| 0.10 | 56.95% | 56.85% | {} |
| 0.14 | 57.85% | 58.21% | Epoch 2 |
| 0.18 | 57.24% | 57.76% | Epoch 2 |
"""

LOSSES = """# Training

| β | KL | PPO loss |
|---|---|---|
| 0.06 | 0.11442 | 0.01149 |
| 0.14 | 0.11202 | 0.00869 |
| 0.22 | 0.11008 | 0.00489 |

- {}
"""

GAPS = """# 差异

| Epoch | A | B | 差异 |
|---|---|---|---|
| 1 | 6.4113 | 6.4194 | -0.0081 |
| 10 | 6.3640 | 6.3663 | -0.0023 |
| 20 | 6.3414 | 6.3339 | 0.0075 |
| 30 | {} | 0.0032 |
| 40 | 6.3233 | 6.3129 | 0.0104 |
| 60 | 6.3189 | 6.3168 | 0.0021 |

- {}
"""

LOWEST = """# 验证损失

| Epoch | 0.06 | 0.10 | 0.14 | 0.22 |
|---|---|---|---|---|
| 1 | 6.8125 | 6.8078 | 6.8035 | 6.8120 |
| 2 | 6.7961 | 6.7937 | 6.7824 | 6.7936 |
| 3 | 6.7989 | 6.7886 | 6.7774 | 6.7846 |
| 4 | 6.7992 | 6.7903 | 6.7831 | 6.7842 |
| 最低值 | 6.7961 | 6.7886 | 6.7774 | 6.7842 |
| 所在 epoch | 2 | 3 | 3 | 4 |

- {}
"""

RUNS = """# Rewards

| Step | A | B | C |
|---|---|---|---|
| 20 | 1.489 | 1.504 | 1.462 |
| 40 | 1.643 | 1.736 | 1.508 |
| 60 | 1.614 | 1.967 | 1.612 |
| 80 | 1.586 | 1.868 | 1.794 |
| 100 | 1.565 | 1.753 | 1.698 |

|  | A | B | C |
|---|---|---|---|
| Best reward | 1.643 | 1.967 | 1.794 |
| Best step | 40 | 60 | 80 |

| Step | KL of C | Entropy of C |
|---|---|---|
| 20 | 0.011 | 0.416 |
| 60 | 0.112 | 0.387 |
| 80 | 0.174 | 0.362 |
| 100 | 0.277 | 0.327 |

{}
"""


def wrong(tmp_path: Path, text: str) -> list[str]:
    """What is wrong, or told in two ways, each as its code."""
    path = tmp_path / "report.md"
    path.write_text(text)
    marks = check(document.drafted(path), read_page(path))
    return [mark.code for mark in marks if mark.state == "wrong"]


@pytest.mark.parametrize(
    ("text", "right", "false", "code"),
    [
        (
            BETAS,
            "From step 100 to 400 the largest gain is β=0.02 (+0.050).",
            "From step 100 to 400 the largest gain is β=0.01 (+0.047).",
            "check.not-most",
        ),
        (
            BETAS,
            "从 Step 100 到 400 增幅最小的是 β=0（+0.028）。",
            "从 Step 100 到 400 增幅最小的是 β=0.04（+0.034）。",
            "check.not-most",
        ),
        (
            COSTS,
            "Per solved task the cheapest is β=0.008 ($1.33).",
            "Per solved task the cheapest is β=0.016 ($1.33).",
            "check.not-most",
        ),
        (
            SIZES,
            "最好的系数不固定：100 题为 0.06，200 题为 0.14，400 题为 0.14，800 题为 0.18。",
            "最好的系数不固定：100 题为 0.06，200 题为 0.14，400 题为 0.18，800 题为 0.18。",
            "check.not-pick",
        ),
        (
            LOSSES,
            "The lowest PPO loss is that of 0.22 (0.00489).",
            "The lowest PPO loss is that of 0.22 (0.00498).",
            "check.slip",
        ),
        (
            LOSSES,
            "PPO loss 最低的是 0.22（0.00489）",
            "PPO loss 最低的是 0.22（0.00849）",
            "check.slip",
        ),
        (
            SIZES,
            "The best weight is 0.06 at 100, 0.14 at 200, 0.14 at 400 and 0.18 at 800.",
            "The best weight is 0.06 at 100, 0.18 at 200, 0.14 at 400 and 0.18 at 800.",
            "check.not-pick",
        ),
        (
            LOWEST,
            "验证损失最低点随系数不同落在第 2 到第 4 个 epoch 之间。",
            "验证损失最低点随系数不同落在第 3 到第 4 个 epoch 之间。",
            "check.slip",
        ),
        (
            LOWEST,
            "0.06 的最低验证损失出现在 Epoch 2，0.22 的出现在 Epoch 4。",
            "0.06 的最低验证损失出现在 Epoch 2，0.22 的出现在 Epoch 3。",
            "check.elsewhere",
        ),
        (
            RUNS,
            "Keep the checkpoints of step 60 for B and step 80 for C; these are the best of both.",
            "Keep the checkpoints of step 60 for B and step 100 for C; these are the best of both.",
            "check.elsewhere",
        ),
        (
            RUNS,
            "最早到达最佳的是 A（Step 40），最晚的是 C（Step 80）。",
            "最早到达最佳的是 A（Step 60），最晚的是 C（Step 80）。",
            "check.elsewhere",
        ),
    ],
)
def test_who_is_best_is_held_against_the_tables(
    tmp_path: Path, text: str, right: str, false: str, code: str
) -> None:
    assert wrong(tmp_path, text.format(right)) == []
    assert code in wrong(tmp_path, text.format(false))


@pytest.mark.parametrize(
    ("right", "false"),
    [
        ("差距最大的是 Epoch 40（0.0104）", "差距最大的是 Epoch 20（0.0075）"),
        ("The largest gap is at epoch 40 (0.0104).", "The largest gap is at epoch 20 (0.0075)."),
    ],
)
def test_a_number_of_few_digits_is_known_by_its_row(tmp_path: Path, right: str, false: str) -> None:
    assert wrong(tmp_path, GAPS.format("6.3322 | 6.3290", right)) == []
    assert wrong(tmp_path, GAPS.format("6.3322 | 6.3290", false)) == ["check.not-most"]


def test_a_gap_without_sign_is_no_size_where_others_are_below_nought(tmp_path: Path) -> None:
    assert wrong(tmp_path, GAPS.format("6.3322 | 6.3290", "")) == []
    assert wrong(tmp_path, GAPS.format("6.3290 | 6.3322", ""))


@pytest.mark.parametrize(
    ("right", "false"),
    [
        (
            "旧版在 Step 40，新版在 Step 48，新版晚 8 步。",
            "旧版在 Step 40，新版在 Step 56，新版晚 16 步。",
        ),
        ("旧版单次跌幅 Step 40 → 48（-0.154）", "旧版单次跌幅 Step 48 → 56（-0.154）"),
    ],
)
def test_two_steps_are_those_of_their_courses(tmp_path: Path, right: str, false: str) -> None:
    drop = "-8.7% (Step 32)"
    assert wrong(tmp_path, CURVES.format(drop=drop, said=right)) == []
    assert wrong(tmp_path, CURVES.format(drop=drop, said=false))


def test_the_greatest_fall_of_a_row_is_the_greatest_of_its_course(tmp_path: Path) -> None:
    assert wrong(tmp_path, CURVES.format(drop="-8.7% (Step 32)", said="")) == []
    false = CURVES.format(drop="-7.9% (Step 48)", said="")
    assert wrong(tmp_path, false) == ["check.not-most"]


def test_one_of_three_best_epochs_that_name_a_column_is_wrong(tmp_path: Path) -> None:
    assert wrong(tmp_path, PICKED.format("Epoch 1")) == []
    assert wrong(tmp_path, PICKED.format("Epoch 2")) == ["check.not-pick"]
