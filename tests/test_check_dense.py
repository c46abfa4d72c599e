"""Tables in which much is wrong: slips that explain themselves, looks, intervals, leaps."""

import pytest

from test_check import marks

BAD = ("wrong", "unsupported")


def bad(path, text, *codes):
    """By line, the codes of what is marked."""
    found = [one for one in marks(path / "r.md", text, ()) if one.state in BAD]
    return {one.line: one for one in found if not codes or one.code in codes}


def page(*lines):
    return "\n".join(["# A sweep", "", *lines, ""])


# --- half of a column is wrong, and each by a slip

GAINS = (
    "| model | LC win rate | length | Δ LC |",
    "|---|---|---|---|",
    "| SFT | 11.7 | 1587 | — |",
    "| 0.01 | 17.8 | 2318 | +6.1 |",
    "| 0.03 | 21.6 | 2107 | +9.9 |",
    "| 0.1 | 24.9 | 1894 | +13.2 |",
    "| 0.3 | 23.1 | 1762 | +11.4 |",
    "| 0.5 | 19.4 | 1693 | +7.7 |",
)


def test_most_of_a_column_may_be_wrong_if_slips_explain_it(tmp_path):
    assert not bad(tmp_path, page(*GAINS))
    text = page(*GAINS).replace("+6.1", "-6.1").replace("+11.4", "+12.4").replace("+7.7", "+6.7")
    found = bad(tmp_path, text, "check.not-difference")
    assert {line: one.facts["value"] for line, one in found.items()} == {
        6: "+6.1",
        9: "+11.4",
        10: "+7.7",
    }


def test_what_no_slip_explains_speaks_against_a_recipe(tmp_path):
    text = page(*GAINS).replace("+6.1", "+1.8").replace("+11.4", "+22.9").replace("+7.7", "+3.5")
    assert not bad(tmp_path, text, "check.not-difference", "check.mistyped")


def test_a_slip_in_what_a_number_is_made_of_is_found_there(tmp_path):
    found = bad(tmp_path, page(*GAINS).replace("| 17.8", "| 77.8"))
    assert set(found) == {6}
    assert (found[6].code, found[6].text, found[6].facts["value"]) == (
        "check.mistyped",
        "77.8",
        "17.8",
    )


MEANS = (
    "| arm | seed 1 | seed 2 | seed 3 | mean |",
    "|---|---|---|---|---|",
    "| 0 | 19.04 | 17.55 | 18.51 | 18.37 |",
    "| 0.01 | 21.53 | 22.57 | 21.58 | 21.89 |",
    "| 0.04 | 20.02 | 21.51 | 20.53 | 20.69 |",
    "| 0.1 | 19.01 | 18.02 | 19.54 | 18.86 |",
)


@pytest.mark.parametrize(
    ("old", "new", "value"),
    [("| 21.58 |", "| 61.58 |", "21.57"), ("| 17.55 |", "| 37.55 |", "17.56")],
)
def test_a_mean_tells_the_digit_of_a_part(tmp_path, old, new, value):
    assert not bad(tmp_path, page(*MEANS))
    text = page(*MEANS).replace(old, new)
    (found,) = bad(tmp_path, text).values()
    assert (found.code, found.facts["value"]) == ("check.mistyped", value)


STARTS = (
    "| run | step 0 | step 50 | step 100 |",
    "|---|---|---|---|",
    "| a | 0.409 | 0.528 | 0.487 |",
    "| b | 0.409 | 0.519 | 0.587 |",
    "| c | 0.409 | 0.507 | 0.596 |",
    "| d | 0.409 | 0.453 | 0.503 |",
    "",
    "## Bests",
    "",
    "| run | best step | best reward | gain over step 0 |",
    "|---|---|---|---|",
    "| a | 60 | 0.569 | +0.160 |",
    "| b | 80 | 0.599 | +0.190 |",
    "| c | 90 | 0.597 | +0.188 |",
    "| d | 70 | 0.507 | +0.098 |",
)


def test_gains_are_over_where_all_start_in_another_table(tmp_path):
    assert not bad(tmp_path, page(*STARTS))
    found = bad(tmp_path, page(*STARTS).replace("+0.188", "-0.188"))
    assert {line: one.facts["value"] for line, one in found.items()} == {16: "+0.188"}


# --- looks

LOSSES = (
    "| epoch | train loss | val loss | recall (%) |",
    "|---|---|---|---|",
    *(
        f"| {n} | {3.4 - n / 5 + n % 3 / 60:.4f} | {2.3 - n / 11:.4f} | {41 + n / 2:.2f} |"
        for n in range(1, 8)
    ),
)


def test_numbers_are_known_by_their_looks_whatever_titles_make_of_them(tmp_path):
    """Under "(%)" a number is a share: how it is printed tells where it belongs."""
    assert not bad(tmp_path, page(*LOSSES))
    cells = LOSSES[4].split(" | ")
    turned = " | ".join([cells[0], cells[1], cells[3].strip(" |"), f"{cells[2]} |"])
    found = bad(tmp_path, page(*LOSSES).replace(LOSSES[4], turned), "check.exchanged")
    assert set(found) == {7}


def test_the_total_of_two_columns_is_known_by_its_decimals(tmp_path):
    rows = [f"| k{n} | {60.3 + 7 * n:.1f} | {144.72 + 16.8 * n:.2f} |" for n in range(5)]
    head = ("| arm | GPU-hours | USD |", "|---|---|---|")
    text = page(*head, *rows, "| all | 371.5 | 891.60 |")
    assert not bad(tmp_path, text)
    text = page(*head, *rows, "| all | 891.60 | 371.5 |")
    assert 10 in bad(tmp_path, text, "check.exchanged")


def test_rows_that_are_the_same_are_both_named(tmp_path):
    """What a sum is blamed for may be the other of the two."""
    rows = (
        "| a | 43.1 | 2.39 | 41.4 |",
        "| b | 46.2 | 2.57 | 35.8 |",
        "| c | 45.9 | 2.55 | 34.6 |",
    )
    rows += ("| d | 46.2 | 2.57 | 35.8 |", "| all | 181.2 | 10.06 | 146.9 |")
    text = page("| run | s | h | tokens (M) |", "|---|---|---|---|", *rows)
    assert set(bad(tmp_path, text, "check.copied")) == {6, 8}


def test_a_column_that_is_far_larger_tells_rows_that_were_exchanged(tmp_path):
    rows = [(0.9754, 0.8640), (0.9965, 0.8902), (0.9535, 0.8414), (1.0033, 0.9029)]
    rows += [(1.0505, 0.9505), (0.9768, 0.8968), (0.8559, 0.7336), (0.8353, 0.7353)]
    lines = [f"| b{n} | {a:.4f} | {b:.4f} | {a - b:.4f} |" for n, (a, b) in enumerate(rows)]
    head = ("| run | best | at the end | given back |", "|---|---|---|---|")
    assert not bad(tmp_path, page(*head, *lines))
    for nth in (0, 6):
        _, name, best, end, gap, _ = (one.strip() for one in lines[nth].split("|"))
        lines[nth] = f"| {name} | {best} | {gap} | {end} |"
    assert set(bad(tmp_path, page(*head, *lines), "check.exchanged")) == {5, 11}


def test_an_arm_without_a_leash_has_no_numbers_exchanged(tmp_path):
    """Its KL is large and its entropy small."""
    rows = [(0.141, 0.713), (0.664, 0.152), (0.723, 0.083), (0.754, 0.091), (0.846, 0.022)]
    lines = [f"| b{n} | {a:.3f} | {b:.3f} |" for n, (a, b) in enumerate(rows)]
    text = page("| run | entropy | kl |", "|---|---|---|", *lines)
    assert not bad(tmp_path, text, "check.exchanged")
    text = text.replace("| entropy | kl |", "| best reward | given back |")
    assert set(bad(tmp_path, text, "check.exchanged")) == {5}


@pytest.mark.parametrize(
    ("title", "first", "rest"),
    [
        ("kl coef", "| a | 63.3 | 0.0 |", ("0.001 | 71.9", "0.005 | 71.9", "0.02 | 71.8")),
        ("gap", "| a | 52.0 | +0.0 |", ("+3.3 | 56.0", "+4.1 | 58.3", "+2.0 | 51.4")),
    ],
)
def test_zeros_and_signs_tell_what_was_exchanged(tmp_path, title, first, rest):
    rows = [f"| b{n} | {one} |" for n, one in enumerate(rest)]
    head = (f"| run | {title} | memory |", "|---|---|---|")
    assert set(bad(tmp_path, page(*head, first, *rows), "check.exchanged")) == {5}
    _, name, one, other, _ = (each.strip() for each in first.split("|"))
    right = f"| {name} | {other} | {one} |"
    assert not bad(tmp_path, page(*head, right, *rows), "check.exchanged")


def test_a_range_is_of_what_came_of_counts(tmp_path):
    rows = [(64, 90.6, 84.4, 68.8), (52, 69.2, 69.2, 65.4), (48, 66.7, 56.3, 72.9)]
    rows += [(44, 61.4, 57.7, 70.1), (32, 53.1, 43.8, 59.4)]
    lines = [f"| t{k} | {n} | {a} | {b} | {c} | {max(a, b, c) - min(a, b, c):.1f} |"
             for k, (n, a, b, c) in enumerate(rows)]  # fmt: skip
    text = page("| task | n | A | B | C | range |", "|---|---|---|---|---|---|", *lines)
    assert not bad(tmp_path, text)
    assert set(
        bad(tmp_path, text.replace("| 21.8 |", "| 24.8 |").replace("| 3.8 |", "| 8.8 |"))
    ) == {5, 6}


def test_columns_that_share_no_row_are_read(tmp_path):
    rows = ("| a | 1.25 |  |", "| b | 2.75 |  |", "| c |  | 3.15 |", "| d |  | 0.00 |")
    assert not bad(tmp_path, page("| arm | x | y |", "|---|---|---|", *rows))


def test_hours_are_epochs_of_seconds(tmp_path):
    rows = [(6, 1839.0), (5, 2257.0), (4, 3405.5), (4, 3404.1), (3, 3422.1), (3, 3420.7)]
    lines = [f"| s{n} | {a} | {b:.1f} | {a * b / 3600:.2f} |" for n, (a, b) in enumerate(rows)]
    text = page("| stage | epochs | s per epoch | hours |", "|---|---|---|---|", *lines)
    assert not bad(tmp_path, text)
    assert set(bad(tmp_path, text.replace("3422.1", "3822.1"))) == {9}


# --- sentences

SAID = (
    "| arm | entropy | grad norm | clipped (%) |",
    "|---|---|---|---|",
    "| 0 | 0.380 | 1.001 | 9.88 |",
    "| 0.01 | 0.564 | 0.632 | 4.77 |",
    "| 0.04 | 0.740 | 0.586 | 0.80 |",
    "",
    "- The entropy of arm 0.01 is 0.564.",
)


def test_a_sentence_tells_the_digit_of_a_table(tmp_path):
    assert not bad(tmp_path, page(*SAID))
    found = bad(tmp_path, page(*SAID).replace("| 0.564 |", "| 0.534 |"))
    assert set(found) == {6, 9}
    assert found[6].code == "check.told-otherwise"


def test_numbers_far_apart_are_no_two_tellings_of_one(tmp_path):
    text = page(*SAID).replace("| 0.564 |", "| 0.164 |")
    assert not bad(tmp_path, text, "check.told-otherwise")


BESTS = (
    "| step | low | high |",
    "|---|---|---|",
    *(
        f"| {40 * n} | {0.398 + 0.081 * n - 0.004 * n * n:.3f} | {1.2 + 0.37 * n:.3f} |"
        for n in range(8)
    ),
    "",
)


def test_a_number_is_a_digit_off_the_only_one_that_is_near(tmp_path):
    right = "In the end 3.790 is reached."
    assert not bad(tmp_path, page(*BESTS, right))
    found = bad(tmp_path, page(*BESTS, right.replace("3.790", "3.791")), "check.slip")
    assert {one.facts["value"] for one in found.values()} == {"3.790"}
    text = page(*BESTS, "On average 3.791 is reached.")  # which may be a mean of what is not shown
    assert not bad(tmp_path, text, "check.slip")


def test_a_number_stands_in_tables_at_another_step(tmp_path):
    right = "The highest score, 0.769, is at step 280."
    assert not bad(tmp_path, page(*BESTS, right))
    found = bad(tmp_path, page(*BESTS, right.replace("280", "265")), "check.unheard-step")
    assert set(found) == {14}
    text = page(*BESTS, "Training passes 0.769 at step 265.")  # training has all steps
    assert not bad(tmp_path, text, "check.unheard-step")


@pytest.mark.parametrize(
    ("right", "old", "new", "value"),
    [
        ("每个 epoch 更新 750 次，12 个 epoch 合计 9000 次。", "9000", "8400", "9000"),
        ("两组每步各采样 64 × 6 = 384 条，120 步共 46080 条。", "46080", "46800", "46080"),
        ("数据共 1020 条；每条 32 个候选，合计 32640 条。", "32640", "32460", "32640"),
        ("Each of 12 epochs has 750 updates, in total 9,000.", "9,000", "9,100", "9000"),
        ("甲组由 2215 增至 3391，多出 1176。", "1176", "1276", "1176"),
        ("丁组从第 10 步的 0.547 升到第 120 步的 0.707，增幅 29.3%。", "29.3", "22.6", "29.3%"),
        ("最高点 step 110 的 2.142，到 step 120 为 2.003，跌幅 6.5%。", "6.5", "7.5", "6.5%"),
        ("All solve 47 of 135 repair episodes, 34.8%.", "34.8", "34.9", "34.8%"),
        ("Of the 134 episodes that fail, 52 hit the limit (38.8%).", "38.8", "38.9", "38.8%"),
    ],
)
def test_a_sentence_shows_its_own_arithmetic(tmp_path, right, old, new, value):
    codes = ("check.not-product", "check.not-difference", "check.not-relative", "check.not-share")
    assert not bad(tmp_path, page(right), *codes)
    (found,) = bad(tmp_path, page(right.replace(old, new)), *codes).values()
    assert found.facts["value"] == value


def test_totals_that_are_no_products_are_left_alone(tmp_path):
    text = page(
        "数据共 1020 条；每条 32 个候选，合计 41250 条。", "", "12 runs of 750, 10,000 in all."
    )
    assert not bad(tmp_path, text, "check.not-product")


SHARES = (
    "| task | n | solved | rate |",
    "|---|---|---|---|",
    "| a | 160 | 111 | 69.4% |",
    "| b | 140 | 80 | 57.1% |",
    "| c | 120 | 81 | 67.5% |",
    "| d | 80 | 40 | 50.0% |",
    "| e | 90 | 33 | 36.7% |",
)


def test_shares_of_counts_are_exact(tmp_path):
    assert not bad(tmp_path, page(*SHARES))
    assert set(bad(tmp_path, page(*SHARES).replace("57.1%", "57.2%"))) == {6}


def test_means_off_by_as_much_show_that_two_were_exchanged(tmp_path):
    """And that the mean is of all rows, not of those that happen to give it."""
    rows = ("| Shot 1 | 56.7 | 57.5 | 57.9 |", "| Shot 2 | 55.6 | 56.9 | 56.7 |")
    rows += ("| Shot 3 | 54.6 | 56.3 | 55.2 |", "| Shot 4 | 55.7 | 56.7 | 55.8 |")
    rows += ("| mean | 55.65 | 56.85 | 56.40 |",)
    text = page("| shot | 0.08 | 0.16 | 0.24 |", "|---|---|---|---|", *rows)
    assert not bad(tmp_path, text)
    assert bad(tmp_path, text.replace("55.7 | 56.7", "56.7 | 55.7"))


# --- intervals

GAPS = (
    "| No. | comparison | difference | se | 95 % CI | excludes 0 |",
    "|---|---|---|---|---|---|",
    "| 1 | 0.005 vs 0 | +6.48 | 0.73 | [+5.04, +7.92] | yes |",
    "| 2 | 0.02 vs 0 | +5.85 | 0.60 | [+4.68, +7.02] | yes |",
    "| 3 | 0.08 vs 0 | +0.86 | 0.61 | [−0.34, +2.05] | no |",
    "| 4 | 0.005 vs 0.02 | +0.63 | 0.45 | [−0.26, +1.52] | no |",
    "| 5 | 0.08 vs 0.02 | −2.93 | 1.00 | [−4.89, −0.97] | yes |",
)


def test_an_estimate_lies_in_its_interval(tmp_path):
    codes = ("check.outside", "check.off-middle", "check.zero")
    assert not bad(tmp_path, page(*GAPS), *codes)
    found = bad(tmp_path, page(*GAPS).replace("| +5.85", "| -5.85"), *codes)
    assert {line: one.code for line, one in found.items()} == {6: "check.outside"}
    found = bad(tmp_path, page(*GAPS).replace("+6.48", "+6.53"), *codes)
    assert {line: one.facts["value"] for line, one in found.items()} == {5: "+6.48"}
    found = bad(tmp_path, page(*GAPS).replace("+1.52] | no", "+1.52] | yes"), *codes)
    assert {line: one.code for line, one in found.items()} == {8: "check.zero"}


def test_intervals_that_are_not_even_say_nothing_of_their_middle(tmp_path):
    text = page(*GAPS).replace("+7.92", "+8.31").replace("+2.05", "+1.75")
    assert not bad(tmp_path, text, "check.off-middle", "check.outside")


# --- leaps

COURSE = (
    "| step | 0 | 100 | 200 | 300 | 400 | 500 | 600 |",
    "|---|---|---|---|---|---|---|---|",
    "| GRPO | 52.4 | 62.6 | 68.3 | 71.3 | 72.9 | 73.9 | 73.6 |",
    "| DAPO | 52.4 | 64.9 | 70.7 | 73.8 | 75.2 | 76.1 | 75.6 |",
)


def test_a_leap_of_one_digit_is_doubted(tmp_path):
    assert not bad(tmp_path, page(*COURSE))
    found = bad(tmp_path, page(*COURSE).replace("76.1", "16.1"), "check.off-course")
    assert {line: one.state for line, one in found.items()} == {6: "unsupported"}


def test_a_leap_that_no_digit_explains_is_one(tmp_path):
    assert not bad(tmp_path, page(*COURSE).replace("76.1", "41.8"), "check.off-course")


def test_a_course_that_leaps_elsewhere_may_leap(tmp_path):
    rows = ("| a | 0.31 | 0.92 | 0.38 | 0.87 | 0.35 | 0.95 | 0.33 |",)
    text = page(*COURSE[:2], *rows)
    assert not bad(tmp_path, text, "check.off-course")


# --- bests by name, and means

LEADERS = (
    "| n | random | kNN | RL | max − min | leader |",
    "|---|---|---|---|---|---|",
    "| 100 | 62.0 | 64.0 | 67.0 | 5.0 | RL |",
    "| 250 | 53.6 | 57.2 | 60.0 | 6.4 | RL |",
    "| 500 | 50.2 | 55.4 | 52.8 | 5.2 | kNN |",
    "| 1000 | 49.8 | 55.4 | 56.4 | 6.6 | RL |",
)


def test_two_of_four_leaders_may_be_wrong(tmp_path):
    assert not bad(tmp_path, page(*LEADERS))
    text = (
        page(*LEADERS).replace("64.0 | 67.0", "67.0 | 64.0").replace("55.4 | 52.8", "52.8 | 55.4")
    )
    assert set(bad(tmp_path, text, "check.not-pick")) == {5, 7}


def test_a_mean_lies_between_what_it_is_of_whatever_its_weights(tmp_path):
    head = ("| type | 0 | 0.05 | 0.1 | 0.2 |", "|---|---|---|---|---|")
    rows = ("| what | 54.7 | 56.2 | 55.7 | 55.4 |", "| which | 46.7 | 51.8 | 48.3 | 48.7 |")
    rows += ("| why | 41.8 | 44.4 | 46.1 | 42.2 |", "| weighted mean | 49.1 | 52.9 | 51.7 | 50.8 |")
    assert not bad(tmp_path, page(*head, *rows))
    text = page(*head, *rows).replace("51.7", "31.7")
    assert set(bad(tmp_path, text)) == {8}
