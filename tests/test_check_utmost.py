"""Numbers that sentences call the most or the least, and steps that stand beside numbers."""

from __future__ import annotations

from pathlib import Path

import pytest

from kleash.imports.markdown import document
from kleash.written.check import check
from kleash.written.page import read_page

MOST, STEP = "check.not-most", "check.elsewhere"

ABLATED = """# 消融

| 配置 | 最佳 Reward | vs 完整 | 相对变化 |
|---|---|---|---|
| 完整 | 1.891 | 基准 | - |
| 去掉格式奖励 | 1.776 | -0.115 | -6.1% |
| 去掉轮数惩罚 | 1.835 | -0.056 | -3.0% |
| 去掉参考模型 | 1.821 | -0.070 | -3.7% |
| 组大小改为 4 | 1.723 | -0.168 | -8.9% |

- {}
"""

SHOTS = """# 按 epoch 和 shot

| KL_BETA | Shot 1 | Shot 2 | Shot 4 | Shot 6 | 平均 |
|---|---|---|---|---|---|
| 0.02 | 59.0% | 59.0% | 60.5% | 61.5% | 60.00% |
| 0.08 | 61.0% | 62.5% | 63.0% | 61.5% | 62.00% |
| 0.14 | 58.5% | 60.0% | 61.5% | 62.0% | 60.50% |

- {}
"""

SEEDS = """# Accuracy by seed

| Seed | arm-a | arm-b | arm-c |
|---|---|---|---|
| 11 | 0.700 | 0.726 | 0.732 |
| 12 | 0.703 | 0.723 | 0.733 |
| 13 | 0.693 | 0.721 | 0.730 |
| mean | 0.699 | 0.723 | 0.732 |

- {}
"""

PAIRS = """# Agreement

|  | SFT | G1 | G2 | G3 |
|---|---|---|---|---|
| SFT | 100.0% | 73.8% | 57.6% | 50.8% |
| G1 | 73.8% | 100.0% | 81.0% | 65.0% |
| G2 | {} | 100.0% | 83.4% |
| G3 | 50.8% | 65.0% | 83.4% | 100.0% |

{}
"""

COURSE = """# 验证曲线

| Step | Reward | 较上次 |
|---|---|---|
| 10 | 1.037 | - |
| 20 | 1.187 | +0.150 |
| 30 | 1.268 | +0.081 |
| 40 | 1.428 | +0.160 |
| 50 | 1.463 | +0.035 |
| 60 | 1.390 | -0.073 |

- {}
"""

EPOCHS = """# Mean accuracy

| β | Epoch 1 | Epoch 2 | Epoch 3 |
|---|---|---|---|
| 0.06 | 53.95% | 54.35% | 55.10% |
| 0.09 | 54.85% | 55.50% | 55.30% |
| 0.16 | 55.45% | 55.30% | 55.85% |
| 0.22 | 54.05% | 54.70% | 54.45% |

- {}
"""

LISTED = """# 波动

| KL 系数 | 最佳 Step | 最佳 Reward | 最终 Reward |
|---|---|---|---|
| 0 | 80 | 1.605 | 0.546 |
| 0.005 | 110 | 1.663 | 1.576 |
| 0.02 | 140 | 1.575 | 1.541 |

```
Step 48: 1.579 (-7.9%)
Step 56: 1.938 (+22.7%)
Step 64: 1.677 (-13.5%)
```

- {}
"""


def wrong(tmp_path: Path, text: str, code: str) -> list[str]:
    path = tmp_path / "report.md"
    path.write_text(text)
    marks = check(document.drafted(path), read_page(path))
    return [mark.text for mark in marks if mark.code == code]


@pytest.mark.parametrize(
    ("text", "right", "false"),
    [
        (ABLATED, "影响最大的是“组大小改为 4”（-0.168）", "影响最大的是“去掉格式奖励”（-0.115）"),
        (SHOTS, "0.08 的最佳 shot 数是 4（63.0%）", "0.08 的最佳 shot 数是 2（62.5%）"),
        (
            SEEDS,
            "The best seed of arm-a (0.703) is good.",
            "The best seed of arm-a (0.700) is good.",
        ),
        (
            SEEDS,
            "For arm-b its worst seed (0.721) counts.",
            "For arm-b its worst seed (0.723) counts.",
        ),
        (COURSE, "Reward 在 Step 50 最高（1.463）", "Reward 在 Step 40 最高（1.428）"),
        (COURSE, "Reward peaks at step 50 with 1.463.", "Reward peaks at step 40 with 1.428."),
        (COURSE, "增量最大的一段到 Step 40（+0.160）", "增量最大的一段到 Step 20（+0.150）"),
    ],
)
def test_what_is_called_the_most_is_at_an_end_of_its_line(
    tmp_path: Path, text: str, right: str, false: str
) -> None:
    assert wrong(tmp_path, text.format(right), MOST) == []
    assert len(wrong(tmp_path, text.format(false), MOST)) == 1


@pytest.mark.parametrize(
    ("text", "right", "false"),
    [
        (
            COURSE,
            "**单次涨幅最大**: Step 40，1.268 → 1.428（+0.160）",
            "**单次涨幅最大**: Step 20，1.037 → 1.187（+0.150）",
        ),
        (
            EPOCHS,
            "相对 Epoch 2 提升最多的是 0.06：54.35% → 55.10%（+0.75%）",
            "相对 Epoch 2 提升最多的是 0.16：55.30% → 55.85%（+0.55%）",
        ),
    ],
)
def test_a_change_is_held_against_others_of_its_kind(
    tmp_path: Path, text: str, right: str, false: str
) -> None:
    assert wrong(tmp_path, text.format(right), MOST) == []
    assert len(wrong(tmp_path, text.format(false), MOST)) == 1


@pytest.mark.parametrize(
    "text",
    [
        SHOTS.format("其中 Shot 6 最高（61.5%）"),
        SHOTS.format("除 0.08 外平均最高的是 0.14（60.50%）"),
        COURSE.format("前 30 步里最高的是 Step 30（1.268）"),
        COURSE.format("Reward 由最高的 1.428 掉到 1.390"),
    ],
)
def test_what_is_said_of_some_only_is_left_alone(tmp_path: Path, text: str) -> None:
    assert wrong(tmp_path, text, MOST) == []


def test_the_closest_pair_is_the_one_of_the_whole_table(tmp_path: Path) -> None:
    right = PAIRS.format("57.6% | 81.0%", "The closest pair is G2 and G3 (83.4%).")
    false = PAIRS.format("57.6% | 81.0%", "The closest pair is G1 and G2 (81.0%).")
    assert wrong(tmp_path, right, MOST) == []
    assert wrong(tmp_path, false, MOST) == ["closest"]


def test_a_table_of_pairs_is_the_same_from_both_sides(tmp_path: Path) -> None:
    code = "check.told-otherwise"
    assert wrong(tmp_path, PAIRS.format("57.6% | 81.0%", ""), code) == []
    assert sorted(wrong(tmp_path, PAIRS.format("81.0% | 57.6%", ""), code)) == ["57.6%", "81.0%"]
    one = wrong(tmp_path, PAIRS.format("57.9% | 81.0%", ""), code)
    assert one == ["57.6%", "57.9%"]  # which of the two is right nothing tells


@pytest.mark.parametrize(
    ("said", "step", "false"),
    [
        ("最佳 Reward 最高的是 0.005（1.663，Step {}）", "110", "120"),
        ("最大单次波动 +22.7%（Step {}）", "56", "64"),
    ],
)
def test_a_step_in_one_bracket_with_a_number_is_where_that_stands(
    tmp_path: Path, said: str, step: str, false: str
) -> None:
    assert wrong(tmp_path, LISTED.format(said.format(step)), STEP) == []
    assert wrong(tmp_path, LISTED.format(said.format(false)), STEP) == [f"Step {false}"]
