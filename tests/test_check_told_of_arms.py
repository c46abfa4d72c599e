"""What a report tells of arms in two places: ranges, settings and epochs that were exchanged."""

import pytest

from test_check_slips import bad, page

# --- ranges


def speeds(time, rate, *said):
    return page(
        "## Speed",
        "",
        "| metric | baseline | leashed |",
        "|---|---|---|",
        f"| step time | {time} |",
        f"| throughput | {rate} |",
        "",
        *said,
    )


TIME, RATE = "~193-205s | ~205-220s", "~262-297 tokens/s | ~247-285 tokens/s"
SAID = ("- the step time of leashed is slightly longer, for its reference",
        "- the throughput is slightly lower, but not by much")  # fmt: skip


def test_of_two_ranges_the_one_that_lies_above_is_the_larger(tmp_path):
    assert not bad(tmp_path, speeds(TIME, RATE, *SAID), "check.turned")
    wrong = speeds("~205-220s | ~193-205s", RATE, *SAID)
    assert bad(tmp_path, wrong, "check.turned") == {10}
    # An item that names no arm goes on with that of the item before it.
    wrong = speeds(TIME, RATE, SAID[0], SAID[1].replace("lower", "higher"))
    assert bad(tmp_path, wrong, "check.turned") == {11}
    wrong = speeds(TIME, RATE, "- the step time of leashed is shorter: leashed is faster")
    assert bad(tmp_path, wrong, "check.turned") == {10}


def test_ranges_of_which_neither_lies_above_say_nothing(tmp_path):
    within = speeds("~193-220s | ~200-205s", RATE, *SAID)
    assert not bad(tmp_path, within, "check.turned")


def test_ranges_are_read_in_chinese_too(tmp_path):
    text = page("## 效率", "", "| 指标 | 基线实验 | 新实验 |", "|---|---|---|",
                "| 每步时间 | ~193-205s | ~205-220s |", "| 吞吐量 | 262-297 | 247-285 |", "",
                "- 新实验每步时间略长", "- 吞吐量略低，但差异不大")  # fmt: skip
    assert not bad(tmp_path, text, "check.turned")
    wrong = text.replace("吞吐量略低", "吞吐量略高").replace("略长", "更短")
    assert bad(tmp_path, wrong, "check.turned") == {10, 11}


# --- settings

ENTROPY = (
    "| Step | free | leashed |",
    "|---|---|---|",
    "| 5 | 1.818 | 1.695 |",
    "| 10 | 2.140 | 1.992 |",
    "",
    "## Settings",
    "",
    "- **free**: entropy_coeff=0.02",
    "- **leashed**: entropy_coeff=0.01",
    "",
    "## Next",
    "",
    "To make leashed better still:",
    "",
    "1. Lower the entropy coefficient from 0.01 to 0.005",
)


@pytest.mark.parametrize("zh", [False, True])
def test_a_setting_that_is_to_be_changed_is_that_of_its_arm(tmp_path, zh):
    text = page(*ENTROPY)
    if zh:
        text = text.replace("To make leashed better still:", "要进一步提升leashed的性能：")
        text = text.replace(
            "Lower the entropy coefficient from 0.01 to", "调整entropy系数：从0.01降到"
        )
    assert not bad(tmp_path, text)
    wrong = text.replace("=0.01", "=0").replace("=0.02", "=0.01").replace("=0\n", "=0.02\n")
    assert bad(tmp_path, wrong, "check.told-otherwise") == {11, 17}
    # What no arm has was measured before, or by others.
    assert not bad(tmp_path, text.replace("from 0.01", "from 0.03").replace("从0.01", "从0.03"))


@pytest.mark.parametrize("told", ["已训练465步", "The model was trained for 465 steps"])
def test_how_long_was_trained_is_told_of_the_arm_that_is_new(tmp_path, told):
    head = ("| 配置项 | 之前的实验 | 新实验 |", "|---|---|---|", "| 模型 | Qwen3-8B | Qwen3-8B |")
    text = page(*head, "| 训练步数 | 485步 | 465步 |", "", "## 状态", "", f"- {told}")
    assert not bad(tmp_path, text, "check.told-otherwise")
    wrong = text.replace("485步 | 465步", "465步 | 485步")
    assert bad(tmp_path, wrong, "check.told-otherwise") == {6, 10}


# --- epochs

EPOCHS = (
    "- **β = 0.18**: epoch 1, 2, 3",
    "- **β = 0.15**: epoch 1, 2",
    "- **β = 0.12**: epoch 1, 2, 3",
    "",
    *(
        line
        for epoch, arms in ((1, ("0.18", "0.15", "0.12")), (3, ("0.18", "0.12")))
        for arm in arms
        for line in (f"### β = {arm}, epoch {epoch}", "", "| shots | accuracy |", "|---|---|",
                     f"| 1 | 5{epoch}.{arm[2:]} |", f"| 2 | 4{epoch}.{arm[2:]} |", "")
    ),
)  # fmt: skip


def test_epochs_of_two_arms_are_those_that_sections_have(tmp_path):
    text = page(*EPOCHS)
    assert not bad(tmp_path, text, "check.told-otherwise")
    lines = [text.replace("0.18**: epoch 1, 2, 3", "0.18**: epoch 1, 2"),
             text.replace("0.15**: epoch 1, 2", "0.15**: epoch 1, 2, 3")]  # fmt: skip
    # One arm alone may have what no section shows.
    assert not any(bad(tmp_path, each, "check.told-otherwise") for each in lines)
    both = lines[0].replace("0.15**: epoch 1, 2", "0.15**: epoch 1, 2, 3")
    assert bad(tmp_path, both, "check.told-otherwise") == {3, 4}


# --- opposite items


@pytest.mark.parametrize(
    ("more", "less"),
    [("higher KL, so it moves farther", "lower KL, so it is safer"),
     ("KL 较高，更新幅度大", "KL 较低，更保守")],
)  # fmt: skip
def test_two_items_that_say_opposite_things_of_two_arms_are_held_against_all_tables(
    tmp_path, more, less
):
    head = ("| β | KL | loss |", "|---|---|---|")
    one = (
        "## Epoch 1",
        "",
        *head,
        "| 0.145 | 0.0847 | 0.0199 |",
        "| 0.155 | 0.0816 | 0.0144 |",
        "",
    )
    two = (
        "## Epoch 2",
        "",
        *head,
        "| 0.145 | 0.0738 | 0.0223 |",
        "| 0.155 | 0.0714 | 0.0225 |",
        "",
    )
    said = ("## What to expect", "", f"- **0.145**: {more}", f"- **0.155**: {less}")
    text = page(*one, *two, *said)
    assert not bad(tmp_path, text, "check.not-trend")
    wrong = text.replace("**0.145**", "**x**").replace("**0.155**", "**0.145**")
    wrong = wrong.replace("**x**", "**0.155**")
    assert bad(tmp_path, wrong, "check.not-trend") == {19, 20}
    # Where one table has it so, that may be meant.
    assert not bad(tmp_path, wrong.replace("0.0714", "0.0744"), "check.not-trend")
