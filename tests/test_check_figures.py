"""Figures that are a digit off what a report tells elsewhere, and settings given to another arm."""

import pytest

from test_check_slips import bad, page

# --- arms

SWEEP = (
    "| β | loss | KL |",
    "|---|---|---|",
    "| 0.12 | 0.0162 | 0.0808 |",
    "| 0.145 | 0.0199 | 0.0847 |",
    "| 0.155 | 0.0144 | 0.0816 |",
    "",
    "- 0.155 has the lowest loss (0.0144)",
    "- 0.145 has the highest KL (0.0847)",
    "- 0.155 has the steadier course",
    "",
    "Both 0.145 and 0.155 end alike.",
    "",
    "0.155 is what we keep.",
    "",
    "0.145 is not far off.",
    "",
    "Of 0.145 and 0.155 the first is older.",
    "",
    "0.155 and 0.145 cost the same.",
    "",
    "Next: try 0.145 and 0.155 with more data.",
)
ARMS = page("## Arms", "", *SWEEP)


def test_an_arm_that_is_a_digit_off_is_a_stranger_wherever_it_stands(tmp_path):
    assert not bad(tmp_path, ARMS, "check.stranger")
    for old, new, line in (
        ("0.155 has the steadier", "0.156 has the steadier", 13),
        ("try 0.145 and", "try 0.144 and", 25),  # though it is planned
    ):
        found = bad(tmp_path, ARMS.replace(old, new), "check.stranger")
        assert found == {line}, new


def test_a_new_arm_that_is_planned_is_no_stranger(tmp_path):
    text = ARMS.replace("try 0.145 and 0.155 with", "try 0.145 and 0.165 with")
    assert not bad(tmp_path, text, "check.stranger")


def test_tables_of_one_header_tell_how_the_numbers_of_a_column_look(tmp_path):
    head = ("| β | loss | spread |", "|---|---|---|")
    few = ("| 0.12 | 0.00650 | - |", "| 0.145 | 0.00761 | 0.1703 |", "| 0.155 | 0.00172 | 0.1703 |",
           "| 0.18 | 0.00574 | - |")  # fmt: skip
    more = ("| 0.145 | 0.01164 | 0.2328 |", "| 0.155 | 0.01142 | 0.2328 |")
    text = page("## Epoch 1", "", *head, *few, "", "## Epoch 2", "", *head, *more)
    assert not bad(tmp_path, text, "check.exchanged")
    text = text.replace("0.00761 | 0.1703", "0.1703 | 0.00761")
    assert bad(tmp_path, text, "check.exchanged") == {8}


# --- a quantity that is told many times

COST = page(
    "| arm | best |",
    "|---|---|",
    "| free | 2.202 |",
    "| leashed | 2.123 |",
    "",
    "The gap is small (3.6%).",
    "",
    "- the loss of reward is small: only 3.6%",
    "- a gap of 3.6% may be chance",
    "- leashed costs 3.6% of the reward",
    "",
    "## Conclusion",
    "",
    "The loss of reward is small (3.6%), and the run is steadier.",
)


@pytest.mark.parametrize("zh", [False, True])
def test_a_quantity_told_alike_in_many_places_and_once_a_digit_off_is_told(tmp_path, zh):
    text, last = COST, "The loss of reward is small (3.6%)"
    if zh:
        text = text.replace("loss of reward is small", "性能损失很小")
        last = last.replace("loss of reward is small", "性能损失很小")
    assert not bad(tmp_path, text, "check.told-otherwise")
    assert bad(tmp_path, text.replace(last, last.replace("6", "7")), "check.told-otherwise") == {16}
    # In other words it is another quantity.
    other = text.replace(last, "Epoch two added (3.7%)")
    assert not bad(tmp_path, other, "check.told-otherwise")


# --- decimal points

LOSSES = page(
    "## Validation loss",
    "",
    "| | free | leashed |",
    "|---|---|---|",
    "| mean | 8.009721 | 8.003451 |",
    "| end | 7.987274 | 7.982051 |",
    "",
    "- the two ends are close: a gap of about 0.07%",
    "",
    "## Conclusion",
    "",
    "- Validation loss: a difference of 0.006 (about 0.078%)",
)


@pytest.mark.parametrize(
    ("old", "new", "line"),
    [("of about 0.07%", "of about 0.7%", 10), ("0.078%", "0.78%", 14), ("0.078%", "0.0078%", 14)],
)
def test_a_share_with_its_point_in_another_place_is_told(tmp_path, old, new, line):
    assert not bad(tmp_path, LOSSES)
    assert bad(tmp_path, LOSSES.replace(old, new), "check.not-relative") == {line}


def test_a_share_that_some_gap_of_its_tables_has_is_left_alone(tmp_path):
    text = LOSSES.replace("| end |", "| start | 9.070000 | 9.006510 |\n| end |")
    text = text.replace("of about 0.07%", "of about 0.7%")
    assert not bad(tmp_path, text, "check.not-relative")


# --- items and lists of two arms

GAPS = page(
    "| | free | leashed | gap |",
    "|---|---|---|---|",
    "| mean | 0.01676696 | 0.01793236 | -0.00116540 |",
    "| start | 0.01770976 | 0.01887384 | -0.00116408 |",
    "| final | 0.01451395 | 0.01355903 | 0.00095492 |",
    "",
    "- the mean gap is small (-0.0012)",
    "- the final gap is as small (only 0.0010)",
)


def test_two_items_that_tell_each_others_numbers_are_exchanged(tmp_path):
    assert not bad(tmp_path, GAPS)
    text = GAPS.replace("(-0.0012)", "(0.0010)").replace("only 0.0010", "only -0.0012")
    assert bad(tmp_path, text, "check.slip") == {9, 10}
    # One of them alone may be of something else.
    assert not bad(tmp_path, GAPS.replace("(-0.0012)", "(0.0010)"), "check.slip")


def swings(first, second, most, words):
    """Two lists of changes, and what is called the largest of each."""
    lists = []
    for name, changes in (("无KL约束版本", first), ("有KL约束版本", second)):
        value, lines = 2.0, ["Step 10: 2.000"]
        for nth, change in enumerate(changes, 2):
            value *= 1 + change / 100
            lines.append(f"Step {10 * nth}: {value:.3f} ({change:+.1f}%)")
        lists += [f"**{name}**：", "```", *lines, "```", ""]
    arms = ("| Step | 无KL约束 | 有KL约束 |", "|---|---|---|", "| 5 | 1.818 | 1.695 |",
            "| 60 | 2.202 | 2.005 |", "")  # fmt: skip
    told = (
        f"- **{name}版本**：{words} ±{one}%" for name, one in zip(("无KL", "KL"), most, strict=True)
    )
    return page(*arms, "## Steadiness", "", *lists, *told)


FIRST, SECOND = (-14.0, -0.5, 14.1, 9.9), (-11.2, 8.3, 15.4, -5.6)


@pytest.mark.parametrize("words", ["最大波动", "largest swing"])
def test_the_largest_change_of_a_list_is_not_that_of_the_other_arms_list(tmp_path, words):
    right = swings(FIRST, SECOND, (14.1, 15.4), words)
    lines = [nth for nth, line in enumerate(right.split("\n"), 1) if "±" in line]
    found = bad(tmp_path, right, "check.not-largest")
    wrong = swings(FIRST, SECOND, (15.4, 14.1), words)
    assert bad(tmp_path, wrong, "check.not-largest") - found == set(lines)
