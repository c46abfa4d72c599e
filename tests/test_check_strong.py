"""Strong words: found only where no line that they may be about bears them out."""

import pytest

from test_check import marks

COURSES = """# 两个版本

## 验证 Reward

| Step | 无KL约束 | 有KL约束 | 备注 |
|---|---|---|---|
| 5 | 1.818 | 1.695 | {remark} |
| 10 | 2.140 | 1.992 | {second} |
| 15 | 1.840 | 1.768 | {third} |
| 20 | 1.830 | 1.915 | {fourth} |
| 25 | 1.750 | 1.970 | |

{said}
"""
LISTED = """# 新实验

## 新实验的曲线

```
Step 5: 1.695
Step 10: 1.{point}
Step 15: 1.768
Step 20: 1.915
```

**特征**：
- {said}
"""
TRAINED = """# KL_BETA

## Epoch 1

| KL_BETA | KL 值 | PPO Loss |
|---|---|---|
| 0.12 | 0.08082 | 0.00650 |
| 0.145 | 0.08471 | 0.00761 |
| 0.155 | 0.08164 | 0.00172 |

## Epoch 2

| KL_BETA | KL 值 | PPO Loss |
|---|---|---|
| 0.12 | 0.07178 | 0.00860 |
| 0.145 | 0.07384 | 0.01164 |
| 0.155 | 0.07144 | 0.01142 |

## 分析

{said}
"""
SHOTS = """# Shots

## Inference

| KL_BETA | Shot 1 | Shot 2 | Shot 3 | Shot 4 |
|---|---|---|---|---|
| 0.12 | 57.0% | 56.1% | 53.1% | 55.2% |
| 0.15 | 58.8% | 56.6% | {third} | 55.2% |
| 0.18 | 56.3% | 55.9% | 52.8% | 54.1% |

{said}
"""
LOSSES = """# 两个系数

## Validation Loss

| 指标 | KL_BETA=0.12 | KL_BETA=0.15 | 差异 |
|---|---|---|---|
| 平均 | 8.009721 | 8.003451 | 0.006270 |
| 初始 | 8.057354 | {first} | {gap} |
| 最终 | 7.987274 | 7.982051 | 0.005223 |
| 最小 | 7.977695 (Epoch 47) | 7.972539 (Epoch 41) | 0.005156 |
| 变化 | -0.87% | -1.01% | 0.14% |

两个模型的性能接近，{said}
"""
RANGES = """# 效率

## 训练效率

| 指标 | 之前 8B | 新实验KL版本 |
|---|---|---|
| 每步时间 | ~193-205s | ~205-220s |
| 吞吐量 | ~262-297 tokens/s | ~247-285 tokens/s |

观察:
- 新实验每步时间略长
- {said}
"""
STRENGTHS = """# 预期

## 影响

- **KL_BETA=0.18**（更大）：更强的约束：
  - {said}
- **KL_BETA=0.12**（更小）：更弱的约束：
  - KL 值下降更快
- **KL_BETA=0.15**（中等）：平衡点
"""
ARMS = """# Three arms

## Results

| arm | reward | KL |
|---|---|---|
| free | 0.612 | 0.413 |
| loose | 0.635 | 0.242 |
| tight | 0.624 | 0.091 |

{said}
"""
EMPTY = dict.fromkeys(("remark", "second", "third", "fourth", "said"), "")
FIRST = {"first": "8.053024", "gap": "0.004330"}


def codes(tmp_path, text):
    found = marks(tmp_path / "r.md", text)
    return [mark.code for mark in found if mark.state in ("wrong", "unsupported")]


def told(text, said, **cells):
    return text.format_map({**EMPTY, **FIRST, **cells, "said": said})


@pytest.mark.parametrize(
    ("text", "right", "wrong", "code"),
    [
        (TRAINED, "Epoch 2 的 KL 值各不相同", "Epoch 2 的 KL 值完全相同", "check.not-equal"),
        (
            TRAINED,
            "1. **KL 值**：\n   - 各组差异不大，数值接近",
            "1. **KL 值**：\n   - 收敛到 0.07 左右，完全相同",
            "check.not-equal",
        ),
        (ARMS, "The KL differs by arm.", "The KL of all arms is identical.", "check.not-equal"),
        (
            ARMS,
            "loose and tight differ.",
            "The results of loose and tight are exactly the same.",
            "check.not-equal",
        ),
        (
            TRAINED,
            "对比：\n- **0.145**: KL 值较高，更新幅度大\n- **0.155**: KL 值较低",
            "对比：\n- **0.155**: KL 值较高，更新幅度大\n- **0.145**: KL 值较低",
            "check.not-trend",
        ),
        (
            ARMS,
            "In short:\n- **free**: KL is higher\n- **tight**: KL is lower",
            "In short:\n- **tight**: KL is higher\n- **free**: KL is lower",
            "check.not-trend",
        ),
        (STRENGTHS, "KL 值下降较慢", "KL 值可能下降更快", "check.not-both"),
        (
            "# Expected\n\n- **A** (the larger coefficient): so\n  - {said}\n"
            "- **B** (the smaller coefficient): so\n  - the KL falls faster\n",
            "the KL falls slower",
            "the KL falls faster",
            "check.not-both",
        ),
        (
            TRAINED,
            "2. **PPO Loss**：\n   - 0.155 < 0.12 < 0.145\n   - 0.155 最低，更新更少",
            "2. **PPO Loss**：\n   - 0.155 < 0.12 < 0.145\n   - 0.12 最低，更新更少",
            "check.not-order",
        ),
        (
            "# Orders\n\n{said}\n",
            "The entropy: A (0.91) > B (0.72) > C (0.55), A is the highest.",
            "The entropy: A (0.91) > B (0.72) > C (0.55), B is the highest.",
            "check.not-order",
        ),
        (RANGES, "吞吐量略低，但差异不大", "吞吐量略高，但差异不大", "check.turned"),
        (COURSES, "KL版本训练曲线起伏", "KL版本训练曲线单调上升", "check.not-monotone"),
        (COURSES, "KL版本有回落", "KL版本从未回落", "check.not-monotone"),
        (COURSES, "**KL版本**：\n- 有升有降", "**KL版本**：\n- 全程上升", "check.not-monotone"),
        (LOSSES, "KL_BETA=0.15 各项均更低", "KL_BETA=0.12 各项均更低", "check.not-all"),
        (
            LOSSES,
            "KL_BETA=0.15 在更早的 epoch（41）达到最小 Validation Loss",
            "KL_BETA=0.15 在更早的 epoch（47）达到最小 Validation Loss",
            "check.elsewhere",
        ),
        (
            LOSSES,
            "KL_BETA=0.12 的走势近似（Validation Loss 变化更小）",
            "KL_BETA=0.15 的走势近似（Validation Loss 变化更小）",
            "check.not-trend",
        ),
    ],
)
def test_a_strong_word_is_marked_only_if_nothing_bears_it_out(tmp_path, text, right, wrong, code):
    assert code not in codes(tmp_path, told(text, right))
    assert code in codes(tmp_path, told(text, wrong))


@pytest.mark.parametrize(
    ("place", "right", "wrong"),
    [
        ("third", "两者都下降", "仅无KL版本下降"),
        ("third", "both fall", "only 有KL约束 falls"),
        ("fourth", "仅无KL版本下降", "两者都下降"),
        ("fourth", "KL版本上升", "KL版本下降"),
        ("second", "无KL版本达到最佳", "KL版本上升，无KL版本下降"),
        ("second", "KL版本达到最佳", ""),
        ("third", "随后两者上升", "KL版本达到最佳"),
    ],
)
def test_a_remark_is_held_against_its_own_row_and_the_ones_before_it(tmp_path, place, right, wrong):
    assert "check.not-winner" not in codes(tmp_path, told(COURSES, "", **{place: right}))
    if wrong:
        assert "check.not-winner" in codes(tmp_path, told(COURSES, "", **{place: wrong}))


def test_a_course_that_only_its_heading_names_is_that_of_the_section(tmp_path):
    said = "全程单调上升，最终接近"
    assert "check.not-monotone" in codes(tmp_path, LISTED.format(point="992", said=said))
    assert "check.not-monotone" not in codes(tmp_path, LISTED.format(point="702", said=said))
    part = "Step 15-20 单调上升"
    assert "check.not-monotone" not in codes(tmp_path, LISTED.format(point="992", said=part))


@pytest.mark.parametrize(
    "said", ["0.15 在每个 Shot 都表现最好", "0.15 performs best at every shot"]
)
def test_the_best_of_every_line_is_at_the_same_end_of_each(tmp_path, said):
    assert "check.not-all" not in codes(tmp_path, told(SHOTS, said, third="53.9%"))
    assert "check.not-all" in codes(tmp_path, told(SHOTS, said, third="53.0%"))


def test_all_statistics_of_a_table_are_meant_by_each_of_them(tmp_path):
    said = "KL_BETA=0.15 各项均更低"
    higher = told(LOSSES, said, first="8.063024", gap="-0.005670")
    assert "check.not-all" not in codes(tmp_path, told(LOSSES, said))
    assert "check.not-all" in codes(tmp_path, higher)
