"""Claims on all, on so many, on a stretch of steps, and on the shape of a course."""

from __future__ import annotations

from pathlib import Path

import pytest

from kleash.imports.markdown import document
from kleash.written.check import check
from kleash.written.page import read_page

COURSES = """# 三组训练

## 验证 Reward

| Step | 无KL | KL=0.005 | KL=0.02 |
|---|---|---|---|
| 10 | 1.402 | 1.342 | 1.340 |
| 20 | 1.624 | 1.528 | 1.465 |
| 30 | 1.772 | 1.678 | 1.576 |
| 40 | 1.627 | 1.759 | 1.656 |
| 50 | 1.566 | 1.806 | 1.686 |
| 60 | 1.483 | 1.881 | 1.758 |

{said}
"""
DROPS = """# 六个设置

## 回落

| 设置 | 最佳 Reward | 最终 Reward | 回落比例 | 最终 KL |
|---|---|---|---|---|
| B1 | 1.691 | 1.204 | -28.8% | 0.511 |
| B2 | 1.821 | 1.374 | -24.5% | 0.234 |
| B3 | 1.723 | 1.637 | -5.0% | 0.074 |
| B4 | 1.891 | 1.823 | -3.6% | 0.061 |
| B5 | 1.620 | 1.610 | -0.6% | 0.025 |
| B6 | 1.724 | 1.704 | -1.2% | 0.018 |

{said}
"""
SHOTS = """# Shots

## Accuracy

| β | Shot 1 | Shot 2 | Shot 4 | Shot 8 | mean |
|---|---|---|---|---|---|
| 0.02 | 58.0% | 57.5% | 61.0% | 61.5% | 59.50% |
| 0.05 | 62.0% | 60.5% | 62.5% | 65.5% | 62.62% |
| 0.08 | 62.5% | 62.5% | 63.5% | 64.5% | 63.25% |
| 0.11 | 61.0% | 60.0% | 62.0% | 63.0% | 61.50% |

{said}
"""
METRICS = """# Run

## Training dynamics

| Step | Train reward | KL | Test accuracy |
|---|---|---|---|
| 60 | 0.409 | 0.0176 | 50.75% |
| 120 | 0.444 | 0.0380 | 51.80% |
| 180 | 0.470 | 0.0520 | 52.65% |
| 240 | 0.486 | 0.0636 | 53.35% |
| 300 | 0.496 | 0.0806 | 52.80% |
| 360 | 0.500 | 0.0776 | 52.65% |

{said}
"""
TIMES = """# 开销

## 每步耗时

| 项目 | 无KL | KL=0.005 |
|---|---|---|
| 生成 (s) | 98.4 | 89.8 |
| 参考模型 (s) | 0.0 | 17.7 |
| 更新 (s) | 64.7 | 65.8 |
| 每步合计 (s) | 163.1 | 173.3 |

{said}
"""
CODES = ("check.not-all", "check.not-same", "check.not-monotone", "check.not-course",
         "check.not-trend", "check.not-most", "check.not-the-one")  # fmt: skip


def wrong(tmp_path: Path, report: str, said: str) -> list[str]:
    path = tmp_path / "report.md"
    path.write_text(report.format(said=said))
    marks = check(document.drafted(path), read_page(path))
    return [mark.text for mark in marks if mark.code in CODES]


CLAIMS = [
    # limits that so many keep
    (DROPS, "后四组回落都不到 10%。", "后四组回落都不到 3%。", "3%"),
    (DROPS, "没有崩溃的四个最终 KL 都低于 0.1。", "没有崩溃的四个最终 KL 都低于 0.05。", "0.05"),
    (DROPS, "B1、B2 的最终 KL 都高于 0.2。", "B1、B2 的最终 KL 都高于 0.3。", "0.3"),
    (DROPS, "All four runs with KL end with a final KL below 0.1.",
     "All four runs with KL end with a final KL below 0.05.", "0.05"),
    (SHOTS, "16 次结果全部高于 57%。", "16 次结果全部高于 58%。", "58%"),
    # courses over a stretch, of so many, and their shape
    (COURSES, "从 Step 30 到 Step 60 无KL每次验证都下降。",
     "从 Step 20 到 Step 60 无KL每次验证都下降。", "每次验证都"),
    (COURSES, "KL=0.005 rises at every checkpoint and is best at step 60.",
     "All three runs rise at every checkpoint and are best at step 60.", "at every checkpoint"),
    (COURSES, "无KL先升后降。", "KL=0.02 先升后降。", "先升后降"),
    (METRICS, "KL grows throughout up to step 300.", "KL 先降后升。", "先降后升"),
    (METRICS, "Train reward grows from 0.409 to 0.500, without a single decrease.",
     "KL grows from 0.0176 to 0.0776, without a single decrease.", "without a single decrease"),
    (METRICS, "Test accuracy peaks at step 240 and falls, while the train reward is still rising.",
     "Test accuracy peaks at step 240 and falls, while the train reward is falling too.",
     "is falling"),
    (METRICS, "KL 在 Step 300 最高（0.0806），Step 360 回落到 0.0776。",
     "KL 在 Step 300 最高（0.0806），Step 360 继续升高到 0.0776。", "继续升高到"),
    # sweeps and wins
    (SHOTS, "四个 β 的 Shot 4 都高于 Shot 2。", "四个 β 的 Shot 1 都高于 Shot 2。", "高于"),
    (COURSES, "Step 40-60：三个点上 KL=0.005 都高于无KL。",
     "Step 20-60：五个点上 KL=0.005 都高于无KL。", "高于"),
    (COURSES, "6 个评估点中：KL=0.005 最高 3 次，无KL最高 3 次。",
     "6 个评估点中：KL=0.005 最高 4 次，无KL最高 3 次。", "4"),
    (COURSES, "6 个评估点里，KL=0.02 高于无KL 的有 3 个。",
     "6 个评估点里，KL=0.02 高于无KL 的有 4 个。", "4"),
    (SHOTS, "0.08 is best at 3 of the 4 shot counts.", "0.08 is best at all 4 shot counts.", "4"),
    (SHOTS, "0.08 在 4 个 shot 中有 3 个取得最高。", "0.08 在 4 个 shot 中有 4 个取得最高。", "4"),
    # parts of a gap
    (TIMES, "KL=0.005 每步比无KL多 10.2s：参考模型多花 17.7s，但生成少花 8.6s。",
     "KL=0.005 每步比无KL多 10.2s：参考模型多花 17.7s，生成也多花 8.6s。", "多花 8.6"),
]  # fmt: skip


@pytest.mark.parametrize(("report", "right", "false", "text"), CLAIMS)
def test_a_claim_is_held_against_all_that_it_reaches(
    tmp_path: Path, report: str, right: str, false: str, text: str
) -> None:
    assert wrong(tmp_path, report, right) == []
    assert text in wrong(tmp_path, report, false)


@pytest.mark.parametrize(
    ("report", "said"),
    [
        (SHOTS, "0.08 is ahead in 3 of 4 columns, and 0.05 at 8 shots."),
        (SHOTS, "The lowest run of 0.05 (60.5%) is below the highest run of 0.08 (64.5%)."),
        (COURSES, "前三个点无KL都是最高。"),
        (COURSES, "KL=0.005 leads at every step from 40 on."),
        (DROPS, "B3 的三个种子都高于 B5。"),
        (METRICS, "Test accuracy rises, then falls."),
    ],
)
def test_a_claim_on_some_only_is_let_pass(tmp_path: Path, report: str, said: str) -> None:
    assert wrong(tmp_path, report, said) == []
