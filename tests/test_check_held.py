"""Rules of `kleash check` that held-out reports taught: where each speaks up, and where not."""

import pytest

from held_reports import HELD
from test_check import marks
from test_check_rules import ARMS, CHINESE, POINTS, STEPS, bad, marked_if_wrong

COST = """# Cost

| method | s/step | tokens/s | GPU-hours | reward |
|---|---|---|---|---|
| A | 71.2 | 5,843 | 94.9 | 0.912 |
| B | 76.9 | 5,410 | 102.5 | 0.874 |
| C | 78.4 | 5,306 | 104.5 | 0.931 |
| D | 77.6 | 5,361 | 103.5 | 0.902 |
| E | 112.3 | 3,704 | 149.7 | 0.955 |

{}
"""
GAPS = """# Five methods

| Method | Benchmark ||| Avg. |
|---|---|---|---|---|
| | maths | code | facts | |
| P | 75.6 ± 0.6 | 54.6 ± 1.2 | 19.9 ± 1.3 | 50.03 |
| Dr. Q | 74.9 ± 1.2 | 53.8 ± 2.0 | 17.1 ± 1.1 | 48.60 |
| Q | 73.6 ± 0.6 | 51.1 ± 2.6 | 14.6 ± 1.6 | 46.43 |
| R | 73.0 ± 0.7 | 50.5 ± 1.9 | 15.9 ± 1.4 | 46.47 |

## Against Q

| Method | maths | code | facts |
|---|---|---|---|
| P | +2.0 | +3.5 | +5.3 |
| Dr. Q | +1.3 | +2.7 | +2.5 |
| R | -0.6 | -0.6 | +1.3 |

{}
"""
TIMES = """# 速度

| 指标 | 基线 | 异步 | 缓存 | 全部 |
|---|---|---|---|---|
| 每步总时间 (s) | 312.0 | 241.5 | 268.4 | 148.2 |
| 其中 rollout (s) | 218.6 | 147.3 | 174.9 | 63.5 |
| 其中更新 (s) | 71.2 | 71.4 | 71.1 | 68.3 |
| 其他 (s) | 22.2 | 22.8 | 22.4 | 16.4 |
| 加速比 | 1.00× | 1.29× | 1.16× | 2.11× |

{}
"""
BETAS = """# Two coefficients

| step | β 0.1: loss | β 0.1: acc. | β 0.01: loss | β 0.01: acc. |
|---|---|---|---|---|
| 200 | 0.6214 | 66.8 % | 0.6571 | 65.1 % |
| 400 | 0.5803 | 70.1 % | 0.6213 | 67.9 % |
| 600 | 0.5571 | 72.4 % | 0.6058 | 69.7 % |
| 800 | 0.5362 | 75.2 % | 0.6071 | 70.2 % |
| 1000 | 0.5391 | 74.8 % | 0.6094 | 69.9 % |

{}
"""

COPIED = (
    "| R | 73.0 ± 0.7 | 50.5 ± 1.9 | 15.9 ± 1.4 |",
    "| R | 73.6 ± 0.6 | 51.1 ± 2.6 | 14.6 ± 1.6 |",
)

# A text, a sentence that is right, and the same with something wrong in it.
SENTENCES = [
    (BETAS, "With β = 0.01 the minimum comes earlier, at step 600 (0.6058).", None),
    (
        BETAS,
        "From step 200 to step 800 β = 0.1 gains 8.4 points.",
        "From step 200 to step 800 β = 0.1 gains 7.4 points.",
    ),
    (BETAS, "β = 0.1; keep `checkpoint-800`.", "β = 0.1; keep `checkpoint-600`."),
    (
        BETAS,
        "The last is 74.8 %, 4.9 points above β = 0.01.",
        "The last is 74.8 %, 5.9 points above β = 0.01.",
    ),
    (GAPS, "Its average is 50.03, 1.43 above Dr. Q (48.60), which is second.", None),
    (GAPS, "On maths: 75.6 (P) > 74.9 (Dr. Q) > 73.6 (Q).", None),
    (
        TIMES,
        "计算在 rollout 上从 218.6 s 到 63.5 s，少了 155.1 s，占总节省（163.8 s）的 94.7%。",
        None,
    ),
    (TIMES, "全部每步 148.2 s，是基线的 47.5%。", "全部每步 148.2 s，是基线的 49.5%。"),
    (
        CHINESE,
        "显存从 71.4 GB 降到 58.3 GB，少 13.1 GB。",
        "显存从 71.4 GB 降到 58.3 GB，少 14.1 GB。",
    ),
    (CHINESE, "延迟 1.32 → 1.58 秒。", None),
    (CHINESE, "无效率从 18.3% 降到 6.3%。", None),
    (ARMS, "loose took 25.9% of all GPU-hours.", "loose took 29.5% of all GPU-hours."),
    (ARMS, "Length came to 597 tokens, 1.45 times the first 412.", None),
    (STEPS, "At update 240 B is 0.073 below its best.", "At update 240 B is 0.037 below its best."),
    (POINTS, "Accuracy is read at step 40.", None),
    (ARMS, "loose beats free.", "loose reliably beats free."),
]


@pytest.mark.parametrize(("text", "right", "wrong"), SENTENCES, ids=range(len(SENTENCES)))
def test_a_sentence_is_marked_only_if_it_is_wrong(tmp_path, text, right, wrong):
    marked_if_wrong(tmp_path, text, right, wrong)


@pytest.mark.parametrize(
    ("text", "old", "new"),
    [
        (COST, "| 1,093 | 103.5 |".replace("1,093", "5,361"), "| 5,361 | 108.5 |"),
        (TIMES, "| 1.00× | 1.29× | 1.16× | 2.11× |", "| 2.11× | 1.29× | 1.16× | 1.00× |"),
        (GAPS, "| R | -0.6 | -0.6 | +1.3 |", "| R | +1.3 | -0.6 | -0.6 |"),
        (TIMES, "| 22.8 |", "| 25.8 |"),
        (TIMES, "1.29×", "1.27×"),
        (GAPS, *COPIED),
    ],
)  # fmt: skip
def test_a_cell_that_others_work_out_is_marked_if_it_is_wrong(tmp_path, text, old, new):
    whole = text.format("")
    assert bad(tmp_path, whole) == []
    planted = whole.replace(old, new)
    at = next(n for n, line in enumerate(planted.split("\n"), 1) if new in line)
    assert at in {line for line, _, _ in bad(tmp_path, planted)}


def test_a_run_of_other_length_is_no_slip(tmp_path):
    """A number that its neighbours' factor does not give is left alone if no slip makes it so."""
    assert bad(tmp_path, COST.format("").replace("| 103.5 |", "| 51.7 |")) == []


def test_counts_of_two_digits_are_no_multiples_of_each_other(tmp_path):
    found = marks(tmp_path / "r.md", HELD["readme"](5))
    assert not [mark for mark in found if mark.code == "check.not-multiple"]
