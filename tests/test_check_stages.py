"""Stages of a course, numbers between each other's neighbours, and a least above its greatest."""

import pytest

from kleash.imports import Table, Where
from kleash.written.grids import winners
from test_check_dense import bad, page

COURSE = (
    "| Step | reward | length |",
    "|---|---|---|",
    *(
        f"| {step} | {value} | {600 + step} |"
        for step, value in zip(
            range(10, 130, 10),
            ("1.120", "1.315", "1.235", "1.445", "1.572", "1.512",
             "1.711", "1.854", "1.931", "1.799", "1.769", "1.706"),
            strict=True,
        )
    ),
    "",
)  # fmt: skip
STAGES = (
    "| 阶段 | Step 范围 | 均值 | 最高 | 最低 |",
    "|---|---|---|---|---|",
    "| 前期 | 10–40 | 1.279 | 1.445 | 1.120 |",
    "| 中期 | 50–80 | 1.662 | 1.854 | 1.512 |",
    "| 后期 | 90–120 | 1.801 | 1.931 | 1.706 |",
)


@pytest.mark.parametrize(
    ("old", "new", "value"),
    [("1.662", "1.686", "1.662"), ("1.854 | 1.512", "1.845 | 1.512", "1.854")],
)
def test_a_stage_is_of_the_steps_that_it_names(tmp_path, old, new, value):
    text = page(*COURSE, *STAGES)
    assert not bad(tmp_path, text)
    start, _, rest = text.partition(STAGES[0])
    found = bad(tmp_path, start + STAGES[0] + rest.replace(old, new), "check.not-summary")
    assert [one.facts["value"] for one in found.values()] == [value]


def test_stages_of_another_course_are_left_alone(tmp_path):
    other = [row.replace("1.", "3.") for row in STAGES]
    assert not bad(tmp_path, page(*COURSE, *other), "check.not-summary")


def test_rows_of_other_statistics_are_no_stages(tmp_path):
    rows = (
        "| 指标 | 值 |",
        "|---|---|",
        "| Step 10–40 均值 | 1.279 |",
        "| Step 50–80 均值 | 1.662 |",
        "| Step 90–120 均值 | 1.801 |",
        "| Step 50–80 极差 | 0.342 |",
    )
    assert not bad(tmp_path, page(*COURSE, *rows), "check.not-summary")


INSIDE = (
    "| Step | PG loss | KL loss | Entropy |",
    "|---|---|---|---|",
    "| 1 | 0.241 | 0.001 | 0.417 |",
    "| 20 | 0.202 | 0.021 | 0.369 |",
    "| 40 | 0.180 | 0.031 | 0.351 |",
    "| 80 | 0.149 | 0.071 | 0.296 |",
    "| 100 | 0.158 | 0.103 | 0.272 |",
    "| 120 | 0.161 | 0.143 | 0.243 |",
)


def test_two_numbers_that_go_on_in_each_others_column_were_exchanged(tmp_path):
    text = page(*INSIDE)
    assert not bad(tmp_path, text)
    found = bad(tmp_path, text.replace("0.103 | 0.272", "0.272 | 0.103"), "check.exchanged")
    assert {line: one.text for line, one in found.items()} == {9: "0.272, 0.103"}


def test_courses_of_one_size_may_cross(tmp_path):
    rows = ("0.38 | 0.41", "0.40 | 0.42", "0.43 | 0.45", "0.46 | 0.44", "0.48 | 0.47")
    table = [f"| {10 * nth} | {row} |" for nth, row in enumerate(rows, 1)]
    text = page("| Step | A | B |", "|---|---|---|", *table)
    assert not bad(tmp_path, text, "check.exchanged")


def test_a_column_of_winners_holds_no_numbers(tmp_path):
    table = (
        "| Shot | KL_BETA=0.14 | KL_BETA=0.10 | 0.10 vs 0.14 | Best |",
        "|---|---|---|---|---|",
        "| 1 | 59.8% | 60.6% | +0.8% | 0.10 |",
        "| 2 | 59.7% | 58.4% | -1.3% | 0.14 |",
        "| 3 | 60.1% | 57.3% | -2.8% | 0.14 |",
        "| 4 | 58.4% | 58.5% | +0.1% | 0.10 |",
        "| Mean | 59.50% | 58.70% | -0.80% | 0.14 |",
    )
    assert not bad(tmp_path, page(*table))


def test_several_winners_of_a_row_are_no_numbers_either():
    header = ("Shot", "LR=5e-6", "LR=1e-5", "最高")
    rows = (("1", "58.2%", "58.1%", "5e-6"), ("2", "56.7%", "56.7%", "5e-6 / 1e-5"))
    assert winners(Table(Where("r.md", 1), (), header, rows, (3, 4))) == {3}
    other = (*rows, ("3", "57.1%", "55.6%", "2e-6"))
    assert not winners(Table(Where("r.md", 1), (), header, other, (3, 4, 5)))


def test_learning_rates_sum_up_nothing(tmp_path):
    table = (
        "| Epoch | LR | Shot 1 | Shot 2 | Shot 3 | Shot 4 | 平均 |",
        "|---|---|---|---|---|---|---|",
        "| 3 | 5e-6 | 56.90% | 55.75% | 55.15% | 55.20% | 55.75% |",
        "| 3 | 2e-5 | 57.80% | 55.55% | 56.50% | 54.75% | 56.15% |",
        "| 6 | 5e-6 | 57.35% | 56.30% | 55.50% | 54.65% | 55.95% |",
        "| 6 | 2e-5 | 58.05% | 56.95% | 56.85% | 55.80% | 56.91% |",
        "| 9 | 5e-6 | 58.05% | 57.00% | 55.20% | 55.50% | 56.44% |",
        "| 9 | 2e-5 | 57.60% | 56.25% | 56.05% | 55.65% | 56.39% |",
        "| 12 | 5e-6 | 57.75% | 58.35% | 55.85% | 55.50% | 56.86% |",
        "| 12 | 2e-5 | 57.05% | 56.55% | 56.05% | 55.35% | 56.25% |",
    )
    assert not bad(tmp_path, page(*table))


def test_a_course_may_begin_at_its_least(tmp_path):
    table = (
        "| 指标 | coef=0.005 | coef=0.01 | coef=0.02 |",
        "|---|---|---|---|",
        "| 起点 (Step 5) | 1.597 | 1.857 | 1.724 |",
        "| 最终 (Step 60) | 2.262 | 2.153 | 2.035 |",
        "| 最低 | 1.597 | 1.857 | 1.724 |",
    )
    assert not bad(tmp_path, page(*table))
    copied = [row.replace("最低", "中点 (Step 30)") for row in table]
    assert bad(tmp_path, page(*copied), "check.copied")


def test_two_tables_under_one_heading_are_of_two_quantities(tmp_path):
    head = ("| 指标 | LR=5e-6 | LR=2e-5 |", "|---|---|---|")
    rows = ("| 最小 | 0.05319 (Epoch 11) | 0.05500 (Epoch 11) |",)
    kl = (*head, *rows, "| 最大 | 0.07904 (Epoch 1) | 0.08411 (Epoch 1) |")
    loss = (*head, "| 最小 | 0.00643 (Epoch 11) | 0.00774 (Epoch 11) |")
    loss = (*loss, "| 最大 | 0.00937 (Epoch 3) | 0.01129 (Epoch 9) |")
    text = page(
        "### 1. KL散度 与 PPO Loss（逐 epoch）", "", "**KL**", "", *kl, "", "**Loss**", "", *loss
    )
    assert not bad(tmp_path, text)


def test_a_step_before_its_value_is_what_nothing_is_made_of(tmp_path):
    rows = ((20, 1.797, 2.031), (30, 1.974, 2.072), (40, 2.224, 2.171), (50, 1.896, 2.197))
    table = ["| Step | A | B | 差异 | 相对差异 |", "|---|---|---|---|---|"]
    table += [f"| {n} | {a} | {b} | {b - a:+.3f} | {100 * (b - a) / a:+.1f}% |" for n, a, b in rows]
    table += ["| **最佳Step** | 40 (2.224) | 50 (2.197) | -0.027 | -1.2% |"]
    assert not bad(tmp_path, page(*table))
    assert bad(tmp_path, page(*table).replace("| +13.0% |", "| +31.0% |"))


def test_so_many_shots_in_a_title_are_no_place(tmp_path):
    every = ("| KL_BETA | Epoch 1 | Epoch 2 |", "|---|---|---|")
    every = (*every, "| 0.10 | 55.75% | 56.05% |", "| 0.14 | 55.40% | 57.10% |")
    rows = ("| 样本数 | Shot 1 | Shot 2 | Shot 4 |", "|---|---|---|---|")
    rows = (*rows, "| 100 | 64.55% | 63.70% | 62.65% |", "| 200 | 59.85% | 57.95% | 55.90% |")
    text = page(
        "# KL_BETA 对比（0.10 vs 0.14，2 epochs × 4 shots）", "", "## 推理结果（200样本）", "",
        *every, "", "## 各自最佳", "", "### KL_BETA=0.14（Epoch 2）", "", *rows,
    )  # fmt: skip
    assert not bad(tmp_path, text)


def test_a_total_is_of_no_gap_beside_it(tmp_path):
    table = (
        "| KL_BETA | 训练 | 评估 | 合计 | vs 0.08 |",
        "|---|---|---|---|---|",
        "| 0.02 | 6.3 | 2.1 | 8.4 | -0.1 |",
        "| 0.05 | 6.5 | 2.3 | 8.8 | +0.3 |",
        "| 0.08 | 6.2 | 2.3 | 8.5 | 基准 |",
        "| 0.11 | 6.6 | 2.5 | 9.1 | +0.6 |",
        "| 0.14 | 6.5 | 2.2 | 8.7 | +0.2 |",
        "| 总计 | 32.1 | 11.4 | 43.5 | - |",
    )
    assert not bad(tmp_path, page(*table))


@pytest.mark.parametrize(("least", "greatest"), [("Earliest", "Latest"), ("最早", "最晚")])
def test_no_least_is_more_than_its_greatest(tmp_path, least, greatest):
    rows = (
        "220 | 200 | 160 | 160 | 220",
        "220 | 260 | 280 | 220 | 280",
        "260 | 280 | 320 | 260 | 320",
    )
    table = [f"| {nth} | {row} |" for nth, row in zip((0, 0.1, 0.2), rows, strict=True)]
    head = f"| β | s1 | s2 | s3 | {least} | {greatest} |", "|---|---|---|---|---|---|"
    text = page(*head, *table, "| 0.3 | 240 | 240 | 240 | 240 | 240 |")
    assert not bad(tmp_path, text, "check.exchanged")
    wrong = text.replace("160 | 160 | 220", "160 | 220 | 160").replace(
        "220 | 280 |\n", "280 | 220 |\n"
    )
    assert set(bad(tmp_path, wrong, "check.exchanged")) == {5, 6}
