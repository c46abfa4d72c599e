"""What is said of every row, column, step or arm of a table, and who is said to be an exception."""

from __future__ import annotations

from pathlib import Path

import pytest

from kleash.imports.markdown import document
from kleash.written.check import check
from kleash.written.page import read_page

STAGES = """# 两个版本

## 分阶段平均

| 阶段 | 无KL约束 | 有KL约束 | 差异 |
|---|---|---|---|
| 早期 | 1.612 | 1.481 | -0.131 |
| 中期 | 1.764 | 1.713 | -0.051 |
| 后期 | 1.892 | 1.864 | -0.028 |

{said}
"""
MEANS = """# 分阶段

## 平均与标准差

| 阶段 | A 平均 | B 平均 | A 标准差 | B 标准差 |
|---|---|---|---|---|
| 早期 | 1.863 | 1.843 | 0.099 | 0.135 |
| 中期 | 2.001 | 1.941 | 0.051 | 0.133 |
| 后期 | 2.134 | 2.040 | 0.032 | 0.029 |

{said}
"""
GRID = """# Two arms

## Along training

| Step | KL (A) | KL (B) | A / B | Entropy (A) | Entropy (B) |
|---|---|---|---|---|---|
| 50 | 0.0147 | 0.0128 | 1.15 | 0.682 | 0.702 |
| 100 | 0.0323 | 0.0194 | 1.66 | 0.616 | 0.650 |
| 150 | 0.0545 | 0.0269 | 2.03 | 0.530 | 0.624 |

{said}
"""
GAMES = """# 对局

## 对手

| 对手 | 局数 | A 臂胜 | B 臂胜 | A 臂胜率 | B 臂胜率 |
|---|---|---|---|---|---|
| 规则 | 60 | 46 | 43 | 76.7% | 71.7% |
| 固执 | 60 | 26 | 34 | 43.3% | 56.7% |
| 自博弈 | 60 | 31 | 34 | 51.7% | 56.7% |
| 合计 | 180 | 103 | 111 | 57.2% | 61.7% |

{said}
"""
SIZES = """# 对照

## 题量

| 题量 | 随机 | 仅 RCE | GRPO |
|---|---|---|---|
| 150 | 63.30% | 67.95% | 67.71% |
| 300 | 62.09% | 65.16% | 66.52% |
| 600 | 60.58% | 63.23% | 64.71% |

{said}
"""
EPOCHS = """# 扫描

## 训练指标

| β | Epoch | KL | Train Loss |
|---|---|---|---|
| 0.06 | 1 | 0.1038 | 0.01231 |
| 0.06 | 2 | 0.0925 | 0.01506 |
| 0.06 | 3 | 0.0811 | 0.01627 |
| 0.10 | 1 | 0.0917 | 0.01530 |
| 0.10 | 2 | 0.0807 | 0.01725 |
| 0.10 | 3 | 0.0725 | 0.01695 |
| 0.14 | 1 | 0.0874 | 0.01751 |
| 0.14 | 2 | 0.0790 | 0.01763 |
| 0.14 | 3 | 0.0694 | 0.01771 |

{said}
"""
SHOTS = """# Shots

## Accuracy

### β=0.14

| Samples | Shot 1 | Shot 2 | Shot 3 |
|---|---|---|---|
| 100 | 64.7% | 64.1% | 63.3% |
| 200 | 59.8% | 59.7% | 60.1% |
| 400 | 56.1% | 55.0% | 53.6% |

### β=0.18

| Samples | Shot 1 | Shot 2 | Shot 3 |
|---|---|---|---|
| 100 | 64.2% | 63.7% | 62.1% |
| 200 | 59.6% | 58.2% | 57.2% |
| 400 | 57.2% | 56.5% | 54.5% |

{said}

## Runs

| β | best | mean |
|---|---|---|
| β=0.14 | 64.7% | 59.60% |
| β=0.18 | 64.2% | 59.24% |
"""
TASKS = """# 任务

## 按类型

| 类型 | 对话数 | Step 10 | Step 90 | 90 − 10 |
|---|---|---|---|---|
| 改期 | 30 | 14 | 22 | +8 |
| 换车 | 30 | 12 | 21 | +9 |
| 退款 | 30 | 11 | 18 | +7 |
| 保险 | 30 | 13 | 21 | +8 |

{said}
"""
SWEEP = """# Sweep

## KL by coefficient

| β | KL | Accuracy |
|---|---|---|
| 0.05 | 0.104 | 61.2% |
| 0.10 | 0.092 | 62.4% |
| 0.15 | 0.081 | 61.9% |
| 0.20 | 0.070 | 60.8% |

{said}
"""
CURVES = """# Curves

## Reward

| Step | A arm | B arm |
|---|---|---|
| 25 | 0.376 | 0.424 |
| 50 | 0.465 | 0.398 |
| 75 | 0.477 | 0.530 |
| 100 | 0.498 | 0.514 |

{said}
"""
RUN = """# Run

## Metrics

| Step | KL | Entropy | Reward |
|---|---|---|---|
| 60 | 0.0176 | 0.512 | 0.640 |
| 120 | 0.0380 | 0.498 | 0.655 |
| 180 | 0.0520 | 0.507 | 0.671 |
| 240 | 0.0498 | 0.501 | 0.678 |

{said}
"""
CODES = ("check.not-course", "check.not-all", "check.not-same", "check.not-monotone",
         "check.not-trend", "check.not-the-one")  # fmt: skip


def wrong(tmp_path: Path, report: str, said: str) -> list[str]:
    path = tmp_path / "report.md"
    path.write_text(report.format(said=said))
    marks = check(document.drafted(path), read_page(path))
    return [mark.text for mark in marks if mark.code in CODES]


CLAIMS = [
    # two arms, of which one is named
    (STAGES, "三个阶段都是无KL版本更高。", "三个阶段都是KL版本更高。", "更高"),
    (MEANS, "三个阶段 A 的平均值都更高。", "三个阶段 B 的平均值都更高。", "更高"),
    (MEANS, "前两次都是 B 更高。", "三个阶段都是 B 的标准差更小。", "更小"),
    (GAMES, "A 臂胜率合计 57.2%。", "B 臂对三个对手全部占优。", "占优"),
    (SIZES, "相比随机，GRPO 在全部三档都领先。", "相比仅 RCE，GRPO 在全部三档都领先。", "领先"),
    # an arm in several columns, and the places in the clause before
    (GRID, "三个取样点上，A 的 Entropy 都低于 B。",
     "三个取样点上，A 的 Entropy 都高于 B。", "高于"),
    (GRID, "At all three steps the KL of A is above that of B.",
     "At all three steps the entropy of A is above that of B.", "above"),
    # the best in every line
    (SHOTS, "For β=0.18, Shot 1 is the best shot at every sample size.",
     "For β=0.14, Shot 1 is the best shot at every sample size.", "is the best shot at every"),
    (SIZES, "三个题量都是随机最低。", "三个题量都是 GRPO 最高。", "三"),
    # courses of all arms, and exceptions to them
    (EPOCHS, "三个 β 的 KL 都是逐轮下降。", "三个 β 的 Train Loss 都是逐轮上升。", "上升"),
    (EPOCHS, "从 Epoch 1 到 Epoch 2 三个 β 的 Train Loss 都上升。",
     "从 Epoch 2 到 Epoch 3 三个 β 的 Train Loss 都上升。", "上升"),
    (EPOCHS, "三个 β 的 Train Loss 都是逐轮上升，只有 β=0.10 例外。",
     "三个 β 的 KL 都是逐轮下降，只有 β=0.14 例外。", "β=0.14"),
    (EPOCHS, "All three runs have a KL that falls.", "三个 β 的 Train Loss 都在下降。", "下降"),
    (CURVES, "A arm is smoother and rises monotonically.",
     "B 的曲线更平稳，并且是单调上升。", "单调"),
    # a direction without a number
    (CURVES, "A's reward rises.", "A's reward falls.", "falls"),
    (RUN, "Reward 上升。", "Reward 下降。", "下降"),
    (RUN, "Entropy 基本不变。", "KL 基本不变。", "基本不变"),
    # how many rows rose
    (TASKS, "四类任务全部有进步。", "四类任务中有一类退步。", "四类任务中有一类退步"),
    (TASKS, "All four kinds improved.",
     "One of the four kinds fell.", "One of the four kinds fell"),
    # with a setting
    (SWEEP, "KL 随 β 增大单调下降。", "准确率随 β 增大单调下降。", "准确率随 β 增大单调下"),
    (SWEEP, "The KL falls as β grows.", "The KL rises as β grows.", "The KL rises as β grows"),
    (SWEEP, "The larger β, the lower the KL.", "The larger β, the higher the KL.",
     "The larger β, the higher the KL"),
]  # fmt: skip


@pytest.mark.parametrize(("report", "right", "false", "text"), CLAIMS)
def test_what_is_said_of_all_holds_for_each(
    tmp_path: Path, report: str, right: str, false: str, text: str
) -> None:
    assert wrong(tmp_path, report, right) == []
    assert text in wrong(tmp_path, report, false)


TWO_TABLES = """# Two arms

## Reward

| Step | A | B |
|---|---|---|
| 25 | 0.376 | 0.424 |
| 50 | 0.398 | 0.465 |
| 75 | 0.530 | 0.477 |

## Cost

| | A | B |
|---|---|---|
| hours | 3.5 | 4.1 |

## Reward again

| Step | A | B |
|---|---|---|
| 25 | 0.376 | 0.424 |
| 50 | 0.398 | 0.465 |
| 75 | 0.530 | 0.477 |

### What we see

{said}
"""
RIGHT = [
    (GAMES, "B 臂在三个对手中的两个上领先。"),
    (GAMES, "A 臂只对规则型对手占优，B 臂在另外两个上都领先。"),
    (EPOCHS, "三个 β 的 Train Loss 都在上升。"),
    (EPOCHS, "All three rise in train loss except β=0.10."),
    (TWO_TABLES, "- 早期（Step 25-50）：\n  - B 在两个点上都更高"),
    (TASKS, "四类任务中只有一类提升 9 条。"),
    (SWEEP, "Accuracy rises up to β=0.10 and falls after it."),
    (CURVES, "B falls twice, A rises at every step."),
]


@pytest.mark.parametrize(("report", "said"), RIGHT)
def test_what_is_said_of_some_is_not_asked_of_all(tmp_path: Path, report: str, said: str) -> None:
    assert wrong(tmp_path, report, said) == []
