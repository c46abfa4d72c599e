"""Shares and means of counts, times in two units, items copied, and what was taken for an error."""

from pathlib import Path

import pytest

from kleash.imports.markdown import document
from kleash.written.check import check
from kleash.written.page import read_page

BAD = ("wrong", "unsupported")

STARTED = """# Runs

| Arm | Started | Finished | Diverged | Diverged share |
|---|---|---|---|---|
| k1 | 24 | 21 | 3 | 12.5% |
| k2 | 24 | 23 | 1 | 4.2% |
| k3 | 24 | 19 | 5 | 20.8% |
| free | 24 | 17 | 7 | 29.2% |
"""

BRACKETS = """# 各类题

| 类别 | 题数 | A | B |
|---|---|---|---|
| 地理 | 129 | 66 (51.2) | 62 (48.1) |
| 动物 | 140 | 75 (53.6) | 87 (62.1) |
| 编程 | 95 | 37 (38.9) | 44 (46.3) |
| 闲聊 | 85 | 40 (47.1) | 52 (61.2) |
"""

TOTALS = """# 数据

| 来源 | 对数 | 占比 |
|---|---|---|
| 众包 | 18,663 | 32.4% |
| 互评 | 22,570 | 39.2% |
| 改写 | 6,420 | 11.2% |
| 改错 | 9,880 | 17.2% |
| 合计 | 57,533 | 100.0% |
"""

TOGETHER = """# 胜负

| Shot | 胜 | 平 | 负 | 胜率 |
|---|---|---|---|---|
| Shot 1 | 7 | 0 | 2 | 77.8% |
| Shot 2 | 6 | 1 | 3 | 60.0% |
| Shot 3 | 4 | 2 | 3 | 44.4% |
| Shot 4 | 5 | 0 | 4 | 55.6% |
| Shot 5 | 5 | 2 | 1 | 62.5% |
"""

ACROSS = """# 攻破

每种日程 300 段。

| | 恒定 | 线性 | 余弦 | 阶梯 | 倒置 |
|---|---|---|---|---|---|
| 段数 | 45 | 29 | 31 | 34 | 61 |
| 攻破率 | 15.0% | 9.7% | 10.3% | 11.3% | 20.3% |
"""

MEANS = """# Solved

| Seed | HotpotQA | 2Wiki | MuSiQue | Mean |
|---|---|---|---|---|
| 1 | 96 | 93 | 95 | 94.67 |
| 2 | 99 | 71 | 38 | 69.33 |
| 3 | 83 | 76 | 25 | 61.33 |
| 4 | 92 | 88 | 31 | 70.33 |
"""

HOURS = """# Cost

| Metric | A | B |
|---|---|---|
| Total time | 25,200 s (7.00 h) | 27,720 s (7.70 h) |

Five epochs took 7140 s (119.0 min).
"""

COPIED = """# 训练动态

- **PG Loss**: 0.201 → 0.175 (Step 40)
- **KL Loss**: 0.003 → 0.084 (Step 40)，0.114 (Step 45)
- **Entropy**: 0.216 → 0.256 (Step 40)，0.281 (Step 45)

| 指标 | 之前 | 新实验 |
|---|---|---|
| 序列长度 | ~59,839 tokens | ~59,544 tokens |
| 响应长度 | ~2,709 tokens | ~2,980 tokens |
"""

BESTS = """# Scores

| Step | F02 | AD6 | AD12 | Mean |
|---|---|---|---|---|
| 100 | 0.21 | 0.17 | 0.20 | 0.193 |
| 200 | 0.44 | 0.35 | 0.41 | 0.400 |
| 300 | 0.61 | 0.60 | 0.68 | 0.630 |
| 400 | 0.52 | 0.68 | 0.73 | 0.643 |
| 500 | 0.38 | 0.73 | 0.70 | 0.603 |

- AD12 is best at step 400 and declines from there.
- The mean over runs is highest at step 400.

# Control

| Step | AD6 coef | AD12 coef | AD6 KL | AD12 KL |
|---|---|---|---|---|
| 100 | 0.030 | 0.050 | 1.1 | 2.3 |
| 200 | 0.045 | 0.046 | 3.2 | 6.9 |
| 300 | 0.061 | 0.049 | 4.8 | 13.5 |
| 400 | 0.080 | 0.053 | 5.9 | 13.0 |
| 500 | 0.097 | 0.057 | 6.4 | 12.4 |
"""

ENDS = [(0.0852, 0.0546), (0.0783, 0.0516), (0.0733, 0.0466), (0.0730, 0.0465), (0.0708, 0.0449)]
ENDS += [(a + 0.0007 * n, b + 0.0004 * n) for n in (1, 2, 3) for a, b in ENDS]
GAPS = "# 变化\n\n| 种子 | 初始 | 最终 | 差异 |\n|---|---|---|---|\n" + "".join(
    f"| {n} | {a:.4f} | {b:.4f} | {b - a:+.4f} |\n" for n, (a, b) in enumerate(ENDS, 11)
)

ENDPOINTS = """# PPO Loss

| 指标 | KL_BETA=0.06 | KL_BETA=0.24 |
|---|---|---|
| 平均 | 0.00720 | 0.00615 |
| 最小 | 0.00568 (Epoch 13) | 0.00368 (Epoch 16) |
| 最大 | 0.00906 (Epoch 2) | 0.00788 (Epoch 1) |

- 0.06 的最大值出现在 Epoch 2，最小值出现在 Epoch 13

# Validation Loss

| 指标 | KL_BETA=0.06 | KL_BETA=0.24 |
|---|---|---|
| 最小 | 7.9726 (Epoch 17) | 7.9775 (Epoch 11) |

# 结论

- 最小 Validation Loss：0.06 在 Epoch 17，0.24 在 Epoch 11
"""

EPOCHS = """# Epoch 1

| KL_BETA | KL值 | Train Loss | PPO Loss | Adv Std | Adv Max |
|---|---|---|---|---|---|
| 0.12 | 0.08082 | 0.01620 | 0.00650 | 0.1690 | 0.1970 |
| 0.145 | 0.08471 | 0.01989 | 0.00761 | 0.1703 | 0.1966 |
| 0.155 | 0.08164 | 0.01438 | 0.00172 | 0.1711 | 0.1981 |

# Epoch 2

| KL_BETA | KL值 | Train Loss | PPO Loss | Adv Std | Adv Max |
|---|---|---|---|---|---|
| 0.12 | 0.07178 | 0.01721 | 0.00860 | 0.2310 | 0.3541 |
| 0.145 | 0.07384 | 0.02235 | 0.01164 | 0.2328 | 0.3558 |
| 0.155 | 0.07144 | 0.02249 | 0.01142 | 0.2335 | 0.3562 |
"""

AHEAD = """# Steps

| Step | No KL | KL | Difference |
|---|---|---|---|
| 10 | 1.642 | 1.585 | -0.057 |
| 20 | 1.873 | 1.765 | -0.108 |
| 30 | 1.951 | 1.894 | -0.057 |
| 40 | 2.087 | 1.972 | -0.115 |

- Steps 10-40: No KL is ahead at all four points; the gap is largest at Step 40 (-0.115)
"""

PLANTS = [
    (AHEAD, "largest at Step 40", "largest at Step 20", "check.elsewhere"),
    (ENDPOINTS, "最大值出现在 Epoch 2", "最大值出现在 Epoch 13", "check.elsewhere"),
    (ENDPOINTS, "0.24 在 Epoch 11", "0.24 在 Epoch 14", "check.elsewhere"),
    (
        EPOCHS,
        "0.07384 | 0.02235 | 0.01164 | 0.2328 | 0.3558",
        "0.08471 | 0.01989 | 0.00761 | 0.1703 | 0.1966",
        "check.copied",
    ),
    (STARTED, "4.2%", "4.1%", "check.not-share"),
    (BRACKETS, "53.6", "53.5", "check.not-share"),
    (TOTALS, "11.2%", "11.1%", "check.not-share"),
    (TOGETHER, "55.6%", "55.5%", "check.not-share"),
    (ACROSS, "9.7%", "9.6%", "check.not-share"),
    (MEANS, "94.67", "94.66", "check.not-share"),
    (HOURS, "7.70 h", "7.07 h", "check.not-product"),
    (HOURS, "119.0 min", "120.0 min", "check.not-product"),
    (COPIED, "0.216 → 0.256 (Step 40)，0.281", "0.003 → 0.084 (Step 40)，0.114", "check.copied"),
    (COPIED, "~2,709 tokens | ~2,980", "~59,839 tokens | ~59,544", "check.copied"),
    (BESTS, "best at step 400", "best at step 300", "check.elsewhere"),
    (BESTS, "highest at step 400", "highest at step 500", "check.elsewhere"),
    (GAPS, "0.0449 | -0.0259", "0.0449 | -0.0258", "check.not-difference"),
]


def marks(path: Path, text: str) -> list[tuple[int, str]]:
    path.write_text(text, encoding="utf-8")
    every = check(document.drafted(path), read_page(path))
    return [(one.line, one.code) for one in every if one.state in BAD and one.code != "check.word"]


@pytest.mark.parametrize(("text", "old", "new", "code"), PLANTS)
def test_a_slip_is_found_where_the_numbers_beside_it_leave_no_room(
    tmp_path: Path, text: str, old: str, new: str, code: str
) -> None:
    assert text.count(old) == 1
    line = text[: text.index(old)].count("\n") + 1
    assert marks(tmp_path / "report.md", text) == []
    assert (line, code) in marks(tmp_path / "report.md", text.replace(old, new))


def test_shares_that_are_cut_and_not_rounded_are_a_habit(tmp_path: Path) -> None:
    cut = TOTALS.replace("39.2%", "39.2%").replace("32.4%", "32.4%").replace("11.2%", "11.1%")
    cut = cut.replace("17.2%", "17.1%")
    assert "check.not-share" not in {code for _, code in marks(tmp_path / "report.md", cut)}


# --- what was marked, and is right

COUNTED_UP = """# 附录

| Epoch | KL (0.06) | KL (0.24) |
|---|---|---|
| 1 | 0.09226 | 0.08639 |
| 2 | 0.08722 | 0.08111 |
| 3 | 0.08275 | 0.07491 |
| 4 | 0.08001 | 0.07086 |
| 5 | 0.07431 | 0.06870 |
| 6 | 0.07379 | 0.06288 |
| 7 | 0.07087 | 0.06107 |
| 8 | 0.06815 | 0.05904 |
| 9 | 0.06853 | 0.05793 |
| 10 | 0.06688 | 0.05631 |
"""

WINNERS = """# GRPO

## Epoch 2（800样本）

| Shot | KL_BETA=0.05 | KL_BETA=0.10 | KL_BETA=0.20 | 最佳 |
|---|---|---|---|---|
| **1** | 49.01% | 49.84% | 48.88% | 0.10 |
| **2** | 49.00% | 49.36% | 49.45% | 0.20 |
| **3** | 47.61% | 48.65% | 48.74% | 0.20 |
| **4** | 47.95% | 48.99% | 48.58% | 0.10 |

## Epoch 3（800样本）

| Shot | KL_BETA=0.05 | KL_BETA=0.10 | KL_BETA=0.20 | 最佳 |
|---|---|---|---|---|
| **1** | 49.13% | 49.73% | 49.98% | 0.20 |
| **2** | 48.31% | 49.44% | 49.30% | 0.10 |
| **3** | 47.53% | 48.49% | 48.25% | 0.10 |
| **4** | 47.93% | 49.36% | 48.58% | 0.10 |
"""

SPENT = """# Cost

Both runs were trained for 120 steps.

| Metric | No KL | KL | Difference |
|---|---|---|---|
| Time per step | 210 s | 231 s | +21 s (+10.0%) |
| Total time (120 steps) | 25,200 s (7.00 h) | 27,720 s (7.70 h) | +2,520 s (+0.70 h) |
| Time to best step | 21,000 s (350.0 min) | 20,790 s (346.5 min) | -210 s (-3.5 min) |
"""

SAID_OF_OTHERS = """# 分析

| Epoch | KL | Policy Loss | Total |
|---|---|---|---|
| 1 | 0.02183 | 0.04122 | 0.04449 |
| 2 | 0.04810 | 0.03301 | 0.04022 |
| 3 | 0.06247 | 0.02673 | 0.03610 |

- KL 从 0.02183 升到 0.06247，策略损失下降 35.2%（0.04122 → 0.02673）
- The mean absolute change of the KL run is 59.8% of that of the No KL run (0.076 vs 0.127)
- 3 个 epoch 合计 4284s，平均每个 epoch 1428s，模型取 epoch 1, 2, 3
"""

TABLES_OF_BESTS = """# 汇总

| Checkpoint | Shot 1 | Shot 4 |
|---|---|---|
| RCE | 332 | 322 |
| Epoch 1 | 331 | 322 |
| Epoch 2 | 336 | 329 |
| Epoch 3 | 342 | 329 |
| Epoch 4 | 335 | 330 |
| Epoch 5 | 336 | 327 |

| Epoch | KL值 | PPO Loss |
|---|---|---|
| 1 | 0.08825 | 0.00514 |
| 2 | 0.08137 | 0.00762 |
| 3 | 0.07654 | 0.00703 |
| 4 | 0.07341 | 0.00688 |
| 5 | 0.07263 | 0.00671 |

| Shot | 最佳 epoch |
|---|---|
| 1 | Epoch 3 |
| 4 | Epoch 4 |

- Shot 4 的最佳 epoch 是 Epoch 4，Shot 1 的最佳 epoch 是 Epoch 3
"""

PASSED = """# Reward

| Step | No KL | KL |
|---|---|---|
| 40 | 2.087 | 1.972 |
| 50 | 1.934 | 2.013 |
| 60 | 1.796 | 1.958 |

- KL first passes No KL at Step 50 (2.013 vs 1.934)
"""

TWO_STEPS = """# KL约束

| 实验 | 达到最佳性能的Step | 分数 |
|---|---|---|
| 无KL约束 | Step 45 | 2.202 |
| 有KL约束 | Step 40 | 2.123 |
| 差异 | KL版本快5步 | -0.079 |

3. 最佳性能阶段（Step 40-45）：两者相差 0.079
"""


TOTAL_OF_SHARES = """# 命中

| KL_BETA | E1 | E2 | E3 | 合计 | 命中率（÷2400，合计行÷9600） |
|---|---|---|---|---|---|
| 0.10 | 328 | 334 | 320 | 982 | 40.92% |
| 0.12 | 327 | 335 | 332 | 994 | 41.42% |
| 0.15 | 341 | 337 | 332 | 1010 | 42.08% |
| 0.20 | 325 | 338 | 333 | 996 | 41.50% |
| 合计 | 1321 | 1344 | 1317 | 3982 | 41.48% |
"""

LEAST_IS_BEST = """# 长度

| 长度 | 静 | 缓 | 急 | 最佳 |
|---|---|---|---|---|
| 8k | 69.1 | 70.2 | 62.0 | 缓 |
| 16k | 63.9 | 66.0 | 60.7 | 缓 |
| 32k | 55.0 | 58.1 | 58.8 | 急 |
| 64k | 39.3 | 42.4 | 37.0 | 缓 |
| 8k→64k 下降 | 29.8 | 27.8 | 25.0 | 急 |
"""

ORDERED = """# 名次

| 模型 | 合计 | 通过率 | 排名 |
|---|---|---|---|
| SFT | 376 | 45.7% | 5 |
| 裸跑 | 440 | 53.5% | 3 |
| 细绳 | 450 | 54.7% | 2 |
| 中绳 | 469 | 57.1% | 1 |
| 粗绳 | 423 | 51.5% | 4 |
"""

GRIDDED = """# 最佳点

| 组 | 最佳步 | 停止步 | 分数 | 显存 |
|---|---|---|---|---|
| K1 | 1000 | 1750 | 85.41 | 60 |
| K3 | 2250 | 1500 | 86.17 | 40 |
| K6 | 2250 | 1500 | 85.87 | 40 |
| K9 | 1500 | 2000 | 85.33 | 80 |
| K12 | 2500 | 2250 | 85.07 | 70 |
"""


@pytest.mark.parametrize(
    "text",
    [
        TOTAL_OF_SHARES,
        LEAST_IS_BEST,
        ORDERED,
        GRIDDED,
        COUNTED_UP,
        WINNERS,
        SPENT,
        SAID_OF_OTHERS,
        TABLES_OF_BESTS,
        PASSED,
        TWO_STEPS,
    ],
)
def test_what_is_right_is_not_marked(tmp_path: Path, text: str) -> None:
    assert marks(tmp_path / "report.md", text) == []
