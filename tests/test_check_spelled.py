"""Words that the numbers of their own sentence deny: courses, and one of two that has more."""

from __future__ import annotations

from pathlib import Path

import pytest

from kleash.imports.markdown import document
from kleash.written.check import check
from kleash.written.page import read_page

TWO = """# 两臂

## 训练

| 指标 | β=0.08 | β=0.20 |
|---|---|---|
| 初始 KL | 0.0943 | 0.0925 |
| 最终 KL | 0.0588 | 0.0562 |
| KL 变化 | -37.67% | -39.26% |
| 奖励标准差 | 0.0073 | 0.0052 |

{said}
"""
COURSE = """# Run

## KL

| Step | KL loss | Reward |
|---|---|---|
| 8 | 0.010 | 1.42 |
| 24 | 0.034 | 1.51 |
| 40 | 0.052 | 1.47 |
| 56 | 0.096 | 1.58 |

{said}
"""


def turned(tmp_path: Path, report: str, said: str) -> list[str]:
    path = tmp_path / "report.md"
    path.write_text(report.format(said=said))
    marks = check(document.drafted(path), read_page(path))
    return [mark.text for mark in marks if mark.code == "check.turned"]


CLAIMS = [
    # what is called flat
    (COURSE, "Reward 基本不变（1.42 → 1.51 → 1.47 → 1.58）。",
     "KL Loss 基本不变（0.010 → 0.034 → 0.052 → 0.096）。", "基本不变"),
    (COURSE, "The reward is almost constant (1.42 → 1.51 → 1.47 → 1.58).",
     "The KL loss barely changes (0.010 → 0.034 → 0.052 → 0.096).", "barely changes"),
    (COURSE, "KL Loss 并没有保持不变（0.010 → 0.034 → 0.052 → 0.096）。",
     "KL Loss 保持不变（0.010 → 0.034 → 0.052 → 0.096）。", "保持不变"),
    # the other way, however far
    (COURSE, "KL Loss 逐步增加（0.010 → 0.034 → 0.052 → 0.096）。",
     "KL Loss 逐步减少（0.010 → 0.034 → 0.052 → 0.096）。", "减少"),
    (COURSE, "The KL loss grows (0.010 → 0.034 → 0.052 → 0.096).",
     "The KL loss falls (0.010 → 0.034 → 0.052 → 0.096).", "falls"),
    # monotone, where a rise and a fall were told
    (COURSE, "KL Loss 单调上升，没有一次回落。",
     "4 个检查点里有 1 个比前一个低，但曲线整体是单调上升的。", "单调"),
    (COURSE, "The reward rises up to step 24 and falls after it, so it is not monotone.",
     "The reward rises up to step 24 and falls after it, so the course is monotone.", "monotone"),
    (COURSE, "Reward 有 1 次下降，KL Loss 单调上升。",
     "Reward 单调上升，其中有 1 次下降。", "单调"),
    # earlier and later
    (COURSE, "The peak moves later as β grows, from 195 to 355.",
     "The peak moves earlier as β grows, from 195 to 355.", "earlier"),
    (COURSE, "最佳点从第 40 步提前到第 24 步。", "最佳点从第 24 步提前到第 40 步。", "提前"),
    # one of two
    (TWO, "两者都下降（0.08 下降 37.67%，0.20 下降 39.26%），0.20 的降幅更大。",
     "两者都下降（0.08 下降 37.67%，0.20 下降 39.26%），0.08 的降幅更大。", "更大"),
    (TWO, "奖励标准差：0.08 为 0.0073，0.20 为 0.0052，0.20 的训练更稳定。",
     "奖励标准差：0.08 为 0.0073，0.20 为 0.0052，0.08 的训练更稳定。", "更稳定"),
    (TWO, "The final KL of β=0.08 is 0.0588 and that of β=0.20 is 0.0562, so β=0.08 is higher.",
     "The final KL of β=0.08 is 0.0588 and that of β=0.20 is 0.0562, so β=0.20 is higher.",
     "higher"),
    # of something else nothing is known
    (TWO, "最终 KL：0.08 为 0.0588，0.20 为 0.0562，0.20 的得分更高。",
     "最终 KL：0.08 为 0.0588，0.20 为 0.0562，0.20 更高。", "更高"),
]  # fmt: skip


@pytest.mark.parametrize(("report", "right", "false", "text"), CLAIMS)
def test_a_word_is_held_against_the_numbers_of_its_sentence(
    tmp_path: Path, report: str, right: str, false: str, text: str
) -> None:
    assert turned(tmp_path, report, right) == []
    assert text in turned(tmp_path, report, false)


def test_steps_of_a_course_are_no_course(tmp_path: Path) -> None:
    said = "KL Loss 从 Step 8 到 Step 56 逐点上升，每次分别增加 0.024、0.018、0.044。"
    assert turned(tmp_path, COURSE, said) == []


@pytest.mark.parametrize(
    "said", ["KL Loss 一路上升，Reward 有 1 次下降。", "A 单调上升，B 有 2 次回落。"]
)
def test_a_fall_of_another_breaks_no_course(tmp_path: Path, said: str) -> None:
    assert turned(tmp_path, COURSE, said) == []
