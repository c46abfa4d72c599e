"""Sentences that work numbers out themselves, and titles in two parts."""

import pytest

from kleash.written.parted import in_two
from test_check_dense import bad, page

TABLE = (
    "| arm | reward | hours |",
    "|---|---|---|",
    "| none | 1.952 | 26.4 |",
    "| weak | 2.065 | 20.0 |",
    "| strong | 1.798 | 31.5 |",
    "| start | 1.037 | 12.5 |",
)


def found(path, sentence, *codes):
    """What is marked in a sentence under a table: by number, what it should be."""
    line = len(TABLE) + 4
    marks = bad(path, page(*TABLE, "", sentence), *codes)
    return {marks[line].text: marks[line].facts["value"]} if line in marks else {}


@pytest.mark.parametrize(
    ("right", "old", "new", "value"),
    [
        ("训练占 26.4 GPU 小时，是总量 46.4 的 56.9%。", "56.9", "59.6", "56.9%"),
        ("五组共 336.32 GPU 小时，其中两组用掉 129.36，占 38.5%。", "38.5", "38.4", "38.5%"),
        ("They solve 47 of the 135 tasks of weak, 34.8%.", "34.8", "34.9", "34.8%"),
        ("Of the 134 tasks that fail, 52 hit the limit (38.8%).", "38.8", "38.9", "38.8%"),
        ("训练 18.94 小时，占总时长 25.13 小时的 75.4%。", "75.4", "74.5", "75.4%"),
        ("可省 80 步，即 172 × 80 / 3600 = 3.82h。", "3.82", "3.28", "3.82"),
        ("The grid has 5 × 4 × 3 = 60 runs.", "60", "80", "60"),
        ("最佳为 2.065，比起点高 1.028（+99.1%）。", "99.1", "91.9", "99.1%"),
        ("strong 只有 1.798，低 0.154（-7.9%）。", "7.9", "8.6", "-7.9%"),
        ("长度从 599 增加到 1833 tokens（+1234）。", "1833", "1883", "1284"),
        ("Grad norm is 3.17 times as high (0.01738 / 0.00549).", "3.17", "3.71", "3.17"),
        ("KL grows 5.5-fold, from 0.0176 to 0.0976.", "5.5-", "6.5-", "5.5"),
        ("最高的是 57.15%，最低为 55.30%，极差 1.85 个百分点。", "1.85", "1.75", "1.85"),
        ("最大值 3.922，是新版（1.770）的 2.22 倍。", "2.22", "2.21", "2.22"),
        ("KL 一路升到 0.604，是 weak（0.063）的 9.6 倍。", "9.6", "8.6", "9.6"),
    ],
)
def test_a_sentence_gives_the_numbers_that_another_is_of(tmp_path, right, old, new, value):
    codes = "check.not-share", "check.not-product", "check.not-relative", "check.not-difference"
    assert not found(tmp_path, right, *codes)
    marked = found(tmp_path, right.replace(old, new), *codes, "check.slip")
    assert list(marked.values()) == [value]


@pytest.mark.parametrize(
    "right",
    [
        "训练次数为 5 × 4 = 20，300 样本评估次数为 5 × 4 × 4 = 80。",
        "共 1020 条，正样本 612 条，占 60.0%；每条 32 个候选，合计 32640 条。",
        "降得最多的一档是 300 → 600，少了 1.81 个百分点。",
        "none 从 2.365 降到 2.085，降 0.280，weak 降 0.284。",
    ],
)
def test_numbers_of_other_things_are_left_alone(tmp_path, right):
    codes = "check.not-share", "check.not-product", "check.not-relative", "check.not-difference"
    assert not found(tmp_path, right, *codes)


def test_a_chinese_comma_is_none_of_a_number(tmp_path):
    text = "共 5 × 4 = 20，300 个样本各评一次。"
    assert not found(tmp_path, text)
    assert found(tmp_path, text.replace("= 20，", "= 30，")) == {"30": "20"}


@pytest.mark.parametrize(
    ("right", "old", "new", "value"),
    [
        (
            "The best is weak at 2.065, 0.113 over none and 0.267 over strong.",
            "267",
            "277",
            "0.267",
        ),
        ("weak 达到 2.065，比 strong 高 0.267。", "0.267", "0.367", "0.267"),
        (
            "none、weak 和 strong 分别为 2226、2274、2256 次，weak 比 none 多 48 次。",
            "48",
            "58",
            "48",
        ),
    ],
)
def test_gaps_to_a_name_are_of_what_it_has(tmp_path, right, old, new, value):
    assert not found(tmp_path, right, "check.not-difference")
    marked = found(tmp_path, right.replace(old, new), "check.not-difference")
    assert list(marked.values()) == [value]


# --- by one in the last digit

TOLD = (
    "KL falls from 0.384 to 0.117, 3.28 times.",
    "It is 0.0176 → 0.0976, 5.55 times.",
    "KL goes from 0.117 to 0.384, 3.29 times.",
)


def gains(*, hidden):
    """A table of differences: of printed numbers, or of what they were."""
    pairs = [(0.3124 + n / 37, 0.4986 + n / 29) for n in range(16)]
    rows = []
    for nth, (one, other) in enumerate(pairs):
        gap = other - one if hidden else round(other, 3) - round(one, 3)
        rows.append(f"| x{nth} | {one:.3f} | {other:.3f} | +{gap:.3f} |")
    return ["| arm | a | b | b - a |", "|---|---|---|---|", *rows, ""]


def test_the_last_digit_counts_where_all_else_is_of_printed_numbers(tmp_path):
    printed, hidden = gains(hidden=False), gains(hidden=True)
    assert printed != hidden
    last = len(printed) + 2 + len(TOLD)
    assert set(bad(tmp_path, page(*printed, *TOLD), "check.not-share")) == {last}
    assert not bad(tmp_path, page(*hidden, *TOLD), "check.not-share")


# --- titles in two parts


def test_titles_that_are_a_grid_are_in_two_parts():
    titles = ["Step", "KL（无）", "KL（弱）", "熵（无）", "熵（弱）"]
    parts = {1: ("KL", "无 kl"), 2: ("KL", "弱 kl"), 3: ("熵", "无 kl"), 4: ("熵", "弱 kl")}
    assert in_two(titles, {"无 kl", "弱 kl", "弱 kl - 无 kl"}) == parts
    titles = ["阶段", "基线轮数", "KL 版轮数", "基线工具调用", "KL 版工具调用"]
    assert in_two(titles, ())[4] == ("KL 版", "工具调用")
    assert in_two(["Step", "A KL", "B KL", "A reward", "B reward"], ())[2] == ("B", "KL")


@pytest.mark.parametrize(
    "titles",
    [
        ["β", "1-shot", "2-shot", "3-shot", "mean"],
        ["Step", "无 KL", "弱 KL", "强 KL", "弱 − 无", "强 − 无"],
        ["n", "100 题", "200 题", "差值 (pp)", "变化 (%)"],
    ],
)
def test_other_titles_are_whole(titles):
    assert in_two(titles, ()) == {}


def test_a_sentence_names_arm_and_quantity_of_a_title_in_two_parts(tmp_path):
    table = (
        "| Step | KL（无） | KL（弱） | KL（强） | 熵（无） | 熵（弱） | 熵（强） |",
        "|---|---|---|---|---|---|---|",
        "| 10 | 0.076 | 0.044 | 0.021 | 0.561 | 0.600 | 0.628 |",
        "| 20 | 0.140 | 0.067 | 0.030 | 0.509 | 0.574 | 0.608 |",
        "| 40 | 0.257 | 0.116 | 0.045 | 0.378 | 0.509 | 0.574 |",
        "| 60 | 0.360 | 0.152 | 0.055 | 0.272 | 0.443 | 0.553 |",
        "",
        "| 组 | 得分 |",
        "|---|---|",
        "| 无 KL | 3.1 |",
        "| 弱 KL | 3.4 |",
        "| 强 KL | 2.9 |",
        "",
    )
    told = "熵从 Step 10 到 Step 60：无 KL 降 0.289，弱 KL 降 0.157，强 KL 降 0.075。"
    assert not bad(tmp_path, page(*table, told))
    marks = bad(tmp_path, page(*table, told.replace("0.157", "0.167")))
    assert [one.facts.get("value") for one in marks.values()] == ["0.157"]
