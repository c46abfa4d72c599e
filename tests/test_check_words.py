"""Claims in words, on small made tables: each is marked only where it is not so."""

import pytest

from kleash.written.claimed.words import unsupported
from test_check import marks
from test_check_rules import ARMS, CHINESE, STEPS, marked_if_wrong


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("loose is significantly better", "check.word"),
        ("the gap is not significant", None),
        ("没有做显著性检验", None),
        ("两者没有本质差别", "check.word"),
        ("各只有一个种子, 上述差距不能说成显著差异", None),
        ("各只有一个种子, 但上述差距已是显著差异", "check.word"),
        ("with one seed this cannot be called a significant difference", None),
        ("with one seed this is a significant difference", "check.word"),
        ("看不出收敛", None),
        ("不加 KL 的一组显著更好", "check.word"),
        ("只差 0.33, 小于各自的标准差 0.79, loose 显著更优", "check.word"),
        ("loose 与 tight 之差 p = 0.574, 差异不显著", None),
        ("loose 与 tight 之差 p = 0.574, 差异显著", "check.against-test"),
        ("1.2 points below (p = 0.11), significant at 5%", "check.against-test"),
        ("1.2 points below (p = 0.02), not significant", "check.against-test"),
        ("1.2 points below (p = 0.02), not significant at 1%", None),
    ],
)
def test_a_word_needs_a_statistic_that_says_the_same_and_none_where_it_is_denied(text, code):
    found = {mark.code for mark in unsupported(1, text, tested=True)}
    assert found - {"check.word"} == {code} - {None, "check.word"}
    assert ("check.word" in found) >= (code == "check.word")
    assert bool(found) == (code is not None)


TIMES = """# Cost

| arm | accuracy ± sd (%) | s / step | throughput (tokens/s) | drop (points) |
|---|---|---|---|---|
| A no KL | 61.2 ± 0.4 | 40.1 | 912 | -3.1 |
| B 0.01 | 63.5 ± 0.2 | 44.6 | 811 | -0.4 |
| C 0.1 | 62.4 ± 0.9 | 44.9 | 803 | -1.2 |

{}
"""
# A text, a sentence that is right, and the same with something wrong in it.
SUPERLATIVES = [
    (ARMS, "The divergence is largest for free.", "The divergence is largest for loose."),
    (ARMS, "frozen has the fewest tokens.", "frozen has the most tokens."),
    (ARMS, "The lowest accuracy is that of frozen (58.9).", None),
    (ARMS, "Of the last two tight has the highest KL.", None),
    (ARMS, "free is the cheapest.", "free is the most expensive."),
    (TIMES, "The fastest is A.", "The fastest is B."),
    (TIMES, "The arm without KL is the fastest.", "The arm without KL is the slowest."),
    (TIMES, "C has the widest spread (0.9).", "C has the narrowest spread (0.9)."),
    (TIMES, "A drops the most (3.1 points).", None),
    (TIMES, "A 的准确率最低（61.2），B 最高（63.5）。", "A 的准确率最高（61.2），B 最低（63.5）。"),
    (TIMES, "每步最慢的是 C。", "每步最慢的是 A。"),
    (TIMES, "带 KL 的两组里 B 最快。", None),
    (CHINESE, "成功率最高的是 KL=0.01。", "成功率最高的是 KL=0.05。"),
    (CHINESE, "KL=0.01 的无效率最低（3.8%）。", "KL=0.01 的无效率最高（3.8%）。"),
    (CHINESE, "KL=0.05 的成功率不是最高的。", None),
]


@pytest.mark.parametrize(("text", "right", "wrong"), SUPERLATIVES)
def test_what_is_called_the_most_is_so_in_a_line_that_is_meant(tmp_path, text, right, wrong):
    marked_if_wrong(tmp_path, text, right, wrong)


BETAS = """# 系数

## KL

| β | KL | 熵 |
|---|---|---|
| 0 | 0.52 | 0.21 |
| 0.05 | 0.21 | 0.25 |
| 0.1 | 0.13 | 0.24 |
| 0.2 | 0.06 | 0.31 |

{}
"""
CLAIMS = [
    (STEPS, "A rises monotonically.", "B rises monotonically."),
    (STEPS, "B 并非单调上升。", "B 单调上升。"),
    (STEPS, "A 一路上升。", "A 一路下降。"),
    (
        STEPS,
        "B is not monotonic: there is a dip of 0.07.",
        "B is monotonic: there is a dip of 0.07.",
    ),
    (STEPS, "At update 80 B is above A.", "At update 80 B is below A."),
    (STEPS, "From update 80 onwards A is below B.", "From update 80 onwards A is above B."),
    (
        ARMS,
        "The KL of free is higher than that of tight.",
        "The KL of free is lower than that of tight.",
    ),
    (ARMS, "B falls from 4.90 to 4.41.", "B rises from 4.90 to 4.41."),
    (
        ARMS,
        "It comes back to 0.81, above the 0.67 of the start.",
        "It comes back to 0.81, below the 0.67 of the start.",
    ),
    (BETAS, "β 越大，KL 越小。", "β 越大，KL 越大。"),
    (BETAS, "KL 随 β 增大而减小。", "KL 随 β 增大而增大。"),
    (BETAS, "β 越小，KL 越大。", "β 越小，KL 越小。"),
]


@pytest.mark.parametrize(("text", "right", "wrong"), CLAIMS)
def test_orders_courses_and_trends_are_as_the_tables_have_them(tmp_path, text, right, wrong):
    fresh = {"check.turned", "check.not-trend", "check.not-monotone"}
    for said, is_wrong in ((right, False), (wrong, True)):
        found = marks(tmp_path / "r.md", text.format(said))
        assert any(mark.code in fresh for mark in found) == is_wrong, said
