"""Numbers that a sentence gives for several things alike, whatever they are worked out of."""

import pytest

from kleash.imports.markdown.document import draft_of
from kleash.written.grids import grids
from test_check_slips import bad, page

TABLE = (
    "| run | step 20 | step 40 | step 60 | step 80 |",
    "|---|---|---|---|---|",
    "| 0.001 | 0.574 | 0.655 | 0.731 | 0.779 |",
    "| 0.005 | 0.556 | 0.603 | 0.649 | 0.694 |",
    "| 0.02 | 0.531 | 0.587 | 0.669 | 0.641 |",
    "| 0.08 | 0.512 | 0.563 | 0.602 | 0.577 |",
    "",
)
SAID = 10  # the line of what is said below the table
EXCHANGED = ("check.crosswise",)


@pytest.mark.parametrize(
    ("right", "two"),
    [
        # Names behind their numbers: gaps of two columns.
        ("The gain is 0.205 for 0.001, 0.138 for 0.005 and 0.110 for 0.02.", ("0.205", "0.138")),
        ("From 20 to 80: 0.205 (0.001), 0.138 (0.005), 0.065 (0.08).", ("0.205", "0.138")),
        # What one of them has over others.
        ("末步 0.001 最高（0.779），比 0.005 高 0.085，比 0.02 高 0.138。", ("0.085", "0.138")),
        # Shares of two columns.
        ("0.001 ends at 136% of its first value, 0.02 at 121%.", ("136", "121")),
        # Names in an order, and numbers in the same.
        ("The order is 0.001 > 0.005 > 0.02 with 0.779, 0.694 and 0.641.", ("0.779", "0.694")),
        # What each step adds to the one before it.
        ("0.005 在 step 20 到 80 依次是 0.556、0.603、0.649、0.694。", ("0.603", "0.649")),
    ],
)
def test_two_of_several_in_each_others_place(tmp_path, right, two):
    assert not bad(tmp_path, page(*TABLE, f"- {right}"), *EXCHANGED), right
    one, other = two
    turned = right.replace(one, "x").replace(other, one).replace("x", other)
    assert turned != right
    assert bad(tmp_path, page(*TABLE, f"- {turned}")) == {SAID}, turned


def test_one_of_several_that_is_not_what_the_others_are(tmp_path):
    said = "- The gain is 0.205 (0.001), 0.138 (0.005), 0.110 (0.02) and 0.065 (0.08)."
    assert not bad(tmp_path, page(*TABLE, said), "check.slip")
    assert bad(tmp_path, page(*TABLE, said.replace("0.138", "0.148")), "check.slip") == {SAID}


def test_names_that_fit_before_acquit_numbers_of_those_behind(tmp_path):
    """0.779 is of what stands behind it; read the other way, two would be exchanged."""
    said = "- In the end 0.779 (0.001) > 0.694 (0.005) > 0.641 (0.02) > 0.577 (0.08)."
    assert not bad(tmp_path, page(*TABLE, said), *EXCHANGED, "check.slip")


def test_few_digits_tell_nothing(tmp_path):
    rows = ("| A | 4 | 9 |", "| B | 7 | 5 |", "| C | 8 | 6 |", "")
    table = ("| arm | wins | ties |", "|---|---|---|", *rows)
    assert not bad(tmp_path, page(*table, "- It is 7 for A and 4 for B."), *EXCHANGED)


@pytest.mark.parametrize(
    ("right", "word", "wrong"),
    [
        ("The score falls with the coefficient: 0.779, 0.694, 0.641, 0.577.", "falls", "rises"),
        ("It drops as beta rises, from 0.779 at 0.001 to 0.577 at 0.08.", "drops", "grows"),
        ("差距随 KL_BETA 增大而缩小：1.50 → 0.55 → 0.10。", "缩小", "扩大"),
    ],
)
def test_what_goes_with_a_setting_goes_as_its_own_numbers(tmp_path, right, word, wrong):
    assert not bad(tmp_path, page(*TABLE, f"- {right}"), "check.turned")
    turned = right.replace(word, wrong)
    assert bad(tmp_path, page(*TABLE, f"- {turned}"), "check.turned") == {SAID}


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        (
            "500 题的标准误约 2.2 个百分点，末步高 2.0 个百分点，不能算显著。",
            "500 题的标准误约 2.2 个百分点，末步高 2.0 个百分点，差异显著。",
        ),
        (
            "The standard error is 2.2 points, so the gap of 6.1 points is significant.",
            "The standard error is 2.2 points, so the gap of 1.9 points is significant.",
        ),
    ],
)
def test_a_gap_within_its_deviation_is_not_significant(tmp_path, right, wrong):
    assert not bad(tmp_path, page(f"- {right}"), "check.word")
    assert bad(tmp_path, page(f"- {wrong}"), "check.word")


COSTS = ("| β | GPU hours | USD |", "|---|---|---|", "| 0 | 110.56 | 210.06 |")
COSTS += ("| 0.01 | 118.72 | 225.57 |", "| 0.04 | 115.60 | 219.64 |", "| 0.1 | 112.40 | 213.56 |")


@pytest.mark.parametrize("price", ["1.90", "2.30"])
def test_a_price_above_a_table_makes_its_costs(tmp_path, price):
    """With the price on the page a cost that it does not give is wrong; without it nobody knows."""
    text = page(f"Four GPUs, ${price} per GPU hour.", "", *COSTS, "")
    assert not bad(tmp_path, text, "check.not-multiple")
    off = bad(tmp_path, text.replace("219.64", "221.64"), "check.not-multiple")
    assert off == ({9} if price == "1.90" else set())


def test_what_something_starts_from_makes_gains(tmp_path):
    rows = ("| 0.0 | 18.33 | +2.83 |", "| 0.01 | 21.83 | +6.33 |", "| 0.04 | 20.67 | +5.17 |")
    rows += ("| 0.1 | 18.83 | +3.33 |", "")
    text = page("The base solves 15.5%.", "", "| β | mean | over base |", "|---|---|---|", *rows)
    assert not bad(tmp_path, text)
    assert bad(tmp_path, text.replace("+5.17", "+5.27"), "check.not-difference") == {9}


def test_columns_of_numbered_epochs_are_in_their_order(tmp_path):
    rows = ("| 0 | 0.589 | 0.605 | 0.640 |", "| 0.01 | 0.586 | 0.607 | 0.636 |")
    rows += ("| 0.05 | 0.586 | 0.602 | 0.622 |", "")
    table = ("| KL_BETA | 第 1 轮 | 第 2 轮 | 第 3 轮 |", "|---|---|---|---|", *rows)
    other = ("## KL", "", table[0], table[1], "| 0 | 0.1 | 0.2 | 0.3 |")
    other += ("| 0.01 | 0.1 | 0.1 | 0.1 |", "| 0.05 | 0.1 | 0.2 | 0.2 |")
    said = "- 第 3 轮的排序是 KL_BETA=0 > 0.01 > 0.05。"
    top = ("## 奖励", "")
    assert not bad(tmp_path, page(*top, *table, said, "", *other), "check.not-order")
    turned = page(*top, *table, said.replace("0.01 > 0.05", "0.05 > 0.01"), "", *other)
    assert bad(tmp_path, turned, "check.not-order") == {11}


def test_a_column_called_by_a_setting_is_measured_where_it_has_decimals(tmp_path):
    rows = ("| A | 69.1 | 9.2 | 78.3 |", "| B | 64.0 | 9.3 | 73.3 |", "| C | 50.8 | 11.5 | 62.3 |")
    table = ("| 训练 | 采样 | 参考模型 | 合计 |", "|---|---|---|---|", *rows)
    assert not bad(tmp_path, page(*table))
    (grid,) = grids(draft_of(page(*table), tmp_path / "r.md"))
    assert {slot[0] for slot in grid.slots()} == {1, 2, 3}
    assert 7 in bad(tmp_path, page(*table).replace("62.3", "63.2"))


# --- tables that are right


def test_the_best_of_a_seed_is_not_its_last_told_again(tmp_path):
    last = ("| β | Seed 1 | Seed 2 | Seed 3 |", "|---|---|---|---|")
    best = ("| β | Step, seed 1 | Step, seed 2 | Best, seed 1 | Best, seed 2 | Best, seed 3 |",)
    rows = ((0, 64.7, 65.1, 63.9), (0.001, 68.7, 66.8, 68.1), (0.01, 70.6, 69.2, 69.6))
    rows += ((0.04, 67.3, 67.0, 67.7), (0.1, 65.3, 63.9, 65.0))
    tops = ((70.1, 70.6, 70.2), (71.4, 70.1, 70.6), (70.6, 69.9, 70.2), (67.3, 67.0, 67.7))
    tops += ((65.3, 64.3, 65.0),)
    ends = [f"| β = {a} | {b} | {c} | {d} |" for a, b, c, d in rows]
    made = [
        f"| β = {row[0]} | 250 | 300 | {' | '.join(map(str, top))} |"
        for row, top in zip(rows, tops, strict=True)
    ]
    lines = "|---|---|---|---|---|---|"
    text = page("Accuracy at step 500:", "", *last, *ends, "", *best, lines, *made)
    assert not bad(tmp_path, text)


def test_a_mean_of_gaps_may_be_the_gap_of_two_means(tmp_path):
    """0.838 is the mean of the printed gaps, 0.83 the gap of the printed means: both are right."""
    head = ("| run | 1 | 2 | 4 | 6 | 8 | Average |", "|---|---|---|---|---|---|---|")
    values = {
        "RCE": (55.80, 58.02, 60.00, 61.08, 61.18, 59.22),
        "β=0": (56.85, 58.87, 60.92, 61.80, 61.83, 60.05),
        "β=0.01": (57.68, 59.52, 61.90, 62.83, 63.00, 60.99),
        "β=0.04": (58.63, 60.27, 62.53, 63.33, 64.03, 61.76),
        "β=0.4": (56.45, 58.65, 60.78, 61.65, 62.07, 59.92),
    }
    rows = [f"| {name} | {' | '.join(f'{x:.2f}' for x in row)} |" for name, row in values.items()]
    gaps = []
    for name, row in list(values.items())[1:]:
        own = [x - y for x, y in zip(row, values["RCE"], strict=True)]
        gaps.append(f"| {name} | {' | '.join(f'{x:+.2f}' for x in own)} |")
    assert gaps[0].endswith("+0.83 |")
    text = page(*head, *rows, "", "Less RCE:", "", *head, *gaps)
    assert not bad(tmp_path, text)
    assert bad(tmp_path, text.replace("+0.83", "+0.93"))


def test_one_quantity_under_two_settings_is_no_multiple(tmp_path):
    """The KL falls about as the coefficient rises, which binds no number of it."""
    rows = ("| β=0.01 | 2.52 | 3.99 | 4.91 | 5.29 | 5.74 | 5.76 |",)
    rows += ("| β=0.04 | 1.01 | 1.61 | 1.95 | 2.12 | 2.30 | 2.40 |",)
    table = (
        "| arm | 250 | 500 | 750 | 1000 | 1250 | 1500 |",
        "|---|---|---|---|---|---|---|",
        *rows,
    )
    assert not bad(tmp_path, page(*table), "check.not-multiple")


def test_stretches_of_steps_are_of_what_their_heading_says(tmp_path):
    head = ("| 系数 | 1–40 | 41–80 |", "|---|---|---|")
    loss = ("### KL loss", "", *head, "| 0.001 | 0.0239 | 0.2632 |", "| 0.005 | 0.0165 | 0.1095 |")
    entropy = ("### Entropy", "", *head, "| 0.001 | 0.387 | 0.240 |", "| 0.005 | 0.400 | 0.324 |")
    assert not bad(tmp_path, page(*loss, "", *entropy))


def test_a_part_of_a_sum_is_not_a_third_of_it(tmp_path):
    """Three runs of nearly equal length are a third of their sum each, but for a digit."""
    rows = ("| 0 | 7.00 | 7.01 | 7.00 | 21.01 |", "| 0.001 | 6.91 | 6.90 | 6.90 | 20.71 |")
    rows += ("| 0.01 | 6.67 | 6.68 | 6.67 | 20.02 |", "| 0.05 | 6.51 | 6.52 | 6.52 | 19.55 |")
    head = ("| 系数 | 种子 7（小时） | 种子 17（小时） | 种子 27（小时） | 三次合计（小时） |",)
    text = page("每 100 步验证，共 300 步。", "", *head, "|---|---|---|---|---|", *rows)
    assert not bad(tmp_path, text)
    assert bad(tmp_path, text.replace("20.71", "20.17")) == {8}


@pytest.mark.parametrize("word", ["reward", "entropy"])
def test_a_step_between_all_evaluations_is_told_where_evaluations_are_meant(tmp_path, word):
    """Training logs every step, so that its entropy may be told of any."""
    logs = tmp_path / "logs"
    logs.mkdir()
    told = [
        f"step:{n} - critic/score/mean:0.{400 + n} - actor/entropy:0.5{n}" for n in range(1, 81)
    ]
    told = [f"{line} - val-core/x/reward/mean@1:0.{500 + n}" if n % 20 == 0 else line
            for n, line in enumerate(told, 1)]  # fmt: skip
    (logs / "run.log").write_text("\n".join([*told, ""]))
    rows = [f"| {n} | 0.{500 + n} |" for n in (20, 40, 60, 80)]
    text = page("| Step | reward |", "|---|---|", *rows, "", f"- The {word} turns at step 45.")
    found = bad(tmp_path, text, "check.unheard-step", logs=[logs])
    assert found == ({10} if word == "reward" else set())
    assert not bad(tmp_path, text.replace("45", "40"), "check.unheard-step", logs=[logs])
