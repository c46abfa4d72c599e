"""Rules of `kleash check` on figures that show their own arithmetic: each right, then with a slip.

Shares beside their counts, rows that sum up a course, names with their number right behind them,
what is said to rise throughout, gaps between two named steps, and rows that are copies.
"""

import pytest

from test_check_rules import bad

COUNTS = """# Failures

| cause | A | B |
|---|---|---|
| timeout | 92 (32.2%) | 61 (24.4%) |
| bad call | 103 (36.0%) | 118 (47.2%) |
| wrong tool | 57 (19.9%) | 44 (17.6%) |
| other | 34 (11.9%) | 27 (10.8%) |

{}
"""
COURSE = """# Reward

| step | plain | loose | tight | slack |
|---|---|---|---|---|
| 100 | 0.412 | 0.405 | 0.398 | 0.391 |
| 200 | 0.487 | 0.461 | 0.433 | 0.402 |
| 300 | 0.531 | 0.518 | 0.472 | 0.421 |
| 400 | 0.502 | 0.544 | 0.468 | 0.433 |
| best step | 300 | 400 | 300 | 400 |
| last - first | 0.090 | 0.139 | 0.070 | 0.042 |

{}
"""
NEAR = """# Cost of speed

| arm | KL | ratio | reward | accuracy |
|---|---|---|---|---|
| base | 0.0021 | 1.0002 | 0.742 | 68.4% |
| async | 0.0034 | 1.0019 | 0.739 | 68.1% |
| cached | 0.0022 | 1.0003 | 0.743 | 68.6% |
| eight bits | 0.0068 | 1.0047 | 0.731 | 67.2% |

{}
"""
CASES = [
    (COUNTS, "61 (24.4%)", "61 (22.4%)"),
    (COUNTS, "36.0%", "39.0%"),
    (COURSE, "| 300 | 400 | 300 | 400 |", "| 300 | 400 | 200 | 400 |"),
    (COURSE, "| 0.090 | 0.139 |", "| 0.090 | 0.193 |"),
    (
        NEAR,
        "| async | 0.0034 | 1.0019 | 0.739 | 68.1% |",
        "| async | 0.0022 | 1.0003 | 0.743 | 68.6% |",
    ),
]
SENTENCES = [
    (
        COUNTS,
        "Of these 25/180 (13.9%) ran out of tokens.",
        "Of these 25/180 (19.3%) ran out of tokens.",
    ),
    (COURSE, "loose rises throughout.", "plain rises throughout."),
    (
        COURSE,
        "The highest at step 400 is loose (0.544).",
        "The highest at step 400 is loose (0.468).",
    ),
    (COURSE, "Runs stop at KL > 0.40 on 16 × H800 (2 nodes, 2.7 USD/h).", None),
    (COURSE, "Its curve reads 0.407, 0.466, 0.498, 0.511 and 0.539.", None),
    (
        COURSE,
        "The lowest at step 200 is slack (0.402).",
        "The lowest at step 200 is tight (0.433).",
    ),
    (
        COURSE,
        "Between step 100 and step 300, loose gains 0.113.",
        "Between step 100 and step 300, loose gains 0.131.",
    ),
    (
        NEAR,
        "The lowest reward is that of eight bits (0.731).",
        "The lowest reward is that of eight bits (0.739).",
    ),
]


def lines(path, text):
    return {line for line, _, _ in bad(path, text)}


@pytest.mark.parametrize(("text", "old", "new"), CASES)
def test_a_cell_is_marked_only_if_it_is_wrong(tmp_path, text, old, new):
    whole = text.format("")
    assert whole.count(old) == 1
    assert lines(tmp_path, whole) == set()
    at = whole[: whole.index(old)].count("\n") + 1
    assert at in lines(tmp_path, whole.replace(old, new))


@pytest.mark.parametrize(("text", "right", "wrong"), SENTENCES)
def test_a_sentence_is_marked_only_if_it_is_wrong(tmp_path, text, right, wrong):
    assert lines(tmp_path, text.format(right)) == set()
    planted = text.format(wrong or "")
    assert wrong is None or planted.split("\n").index(wrong) + 1 in lines(tmp_path, planted)


def test_shares_of_something_else_are_left_alone(tmp_path):
    """If most shares of a column are not of its sum, the column's whole is another."""
    text = COUNTS.format("").replace("32.2%", "52.2%").replace("36.0%", "56.0%")
    assert lines(tmp_path, text) == set()


EFFICIENCY = """# 效率对比

| 指标 | KL=0.01 | KL=0.005 | 差异 |
|---|---|---|---|
| **每步时间** | 213.7s | 210.5s | -3.2s |
| **总时间（60步）** | 213.7min | 210.5min | -3.2min |
| **吞吐量 (tokens/s)** | 279.7 | 283.9 | +1.5% |
| **达到最佳步数** | Step 40 | Step 55 | +15 |
| **达到2.0步数** | Step 40 | Step 25 | -15 |
"""
RATES = """# 学习率对比（LR=2e-6 vs 5e-6 vs 1e-5）

- **对比模型**: LR=2e-6、5e-6（基准）、1e-5

| 配置 | Epoch 1 | Epoch 2 | Epoch 3 |
|---|---|---|---|
| LR=2e-6 | 54.25% | 54.80% | 55.10% |
| LR=5e-6 | 55.45% | 56.05% | 56.75% |
| LR=1e-5 | 55.65% | 56.90% | 55.20% |
"""


MEANS = """# 最佳

- Group16 最佳性能更高：2.156 vs 2.087（+3.3%），平均 1.995 vs 1.938

| Step | Group8 | Group16 |
|---|---|---|
| 10 | 1.812 | 1.902 |
| 20 | 1.915 | 1.927 |
| 30 | 2.087 | 2.156 |
"""
PAIRS = [(1500 + 13 * nth, 11 * (7 * nth % 5)) for nth in range(24)]
EXACT = "".join(
    f"| {5 * nth} | {one / 1000:.3f} | {(one + gap) / 1000:.3f} | +{gap / 1000:.3f} |\n"
    for nth, (one, gap) in enumerate(PAIRS, 1)
)
MINUTES = f"""# 验证

| Step | A | B | 差异 |
|---|---|---|---|
{EXACT}
| 指标 | A | B | 差异 |
|---|---|---|---|
| 到最佳的时间 | 142.3min | 193.1min | +50.9min |
| 每步时间 | 213.7s | 210.5s | -3.2s |
"""


@pytest.mark.parametrize(
    "text", [EFFICIENCY, RATES, MEANS, pytest.param(MINUTES, marks=pytest.mark.slow)]
)
def test_other_units_shares_and_settings_with_exponents_are_read_as_they_are(tmp_path, text):
    assert not bad(tmp_path, text)
