"""Figures that are a digit off what a report tells elsewhere, and settings given to another arm."""

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
