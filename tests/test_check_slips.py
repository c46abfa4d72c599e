"""Numbers in each other's place, rows told twice, digits off and tests that nothing shows."""

import json
from math import sin

import pytest

from kleash.compare.arms import gather
from kleash.imports import read
from kleash.written.curves import threads_of
from kleash.written.logs import Logs
from kleash.written.sought.naming import Namer
from test_check import marks

BAD = ("wrong", "unsupported")


def bad(path, text, *codes, logs=()):
    """The lines that have a mark, of some codes or of any."""
    found = [one for one in marks(path / "r.md", text, logs) if one.state in BAD]
    return {one.line for one in found if not codes or one.code in codes}


def page(*lines):
    return "\n".join(["# A sweep", "", *lines, ""])


# --- numbers in each other's column

COSTS = (
    "| arm | step (s) | hours | share |",
    "|---|---|---|---|",
    *(f"| 0.{n} | {195 + n}.5 | {6 + n / 7:.3f} | {26 + n / 3:.1f}% |" for n in range(1, 10)),
)


def test_numbers_dressed_as_each_others_column_are_exchanged_in_many_rows_too(tmp_path):
    assert not bad(tmp_path, page(*COSTS), "check.exchanged")
    text = page(*COSTS)
    for n in (2, 5, 7):
        one, other = f"{6 + n / 7:.3f}", f"{26 + n / 3:.1f}%"
        assert f"{one} | {other}" in text
        text = text.replace(f"{one} | {other}", f"{other} | {one}")
    assert bad(tmp_path, text, "check.exchanged") == {6, 9, 11}


def test_decimals_tell_nothing_where_zeros_at_the_end_are_left_out(tmp_path):
    rows = ("| 1 | 58.05% | 57.3% | 55.4% |", "| 2 | 57.3% | 57.15% | 55.05% |")
    rows += ("| 3 | 57.65% | 56.1% | 54.95% |", "| 4 | 56.55% | 56.85% | 55.15% |")
    text = page("| epoch | a | b | c |", "|---|---|---|---|", *rows)
    assert not bad(tmp_path, text, "check.exchanged")


FALLING = (0.269, 0.291, 0.335, 0.361, 0.399, 0.387, 0.386, 0.357, 0.297, 0.254, 0.196, 0.173)
RISING = (0.283, 0.365, 0.425, 0.433, 0.477, 0.511, 0.521, 0.520, 0.530, 0.548, 0.548, 0.541)


def test_the_start_of_a_curve_is_not_taken_for_anothers(tmp_path):
    both = enumerate(zip(FALLING, RISING, strict=True), 1)
    rows = [f"| {4 * n} | {few:.3f} | {many:.3f} |" for n, (few, many) in both]
    text = page("| step | few | many |", "|---|---|---|", *rows)
    assert not bad(tmp_path, text, "check.exchanged")
    rows = [f"| {n} | {0.05 + n / 300:.3f} | {0.55 - n / 90:.3f} |" for n in range(1, 10)]
    text = page("| epoch | kl | entropy |", "|---|---|---|", *rows)
    assert not bad(tmp_path, text, "check.exchanged")
    cells = rows[4].split(" | ")
    turned = f"{cells[0]} | {cells[2].strip(' |')} | {cells[1]} |"
    assert bad(tmp_path, text.replace(rows[4], turned), "check.exchanged") == {9}


def test_rows_in_a_log_do_not_acquit_two_numbers_that_are_not(tmp_path):
    """A log bears out the other numbers of a row: that says nothing of the two."""
    rows, logs = [], tmp_path / "logs"
    logs.mkdir()
    for nth, arm in enumerate(("kl0.01", "kl0.02", "kl0.05", "kl0.1")):
        values = [50 + 3 * nth + 4 * sin(step + nth) for step in range(1, 7)]
        lines = [f"step:{10 * n} - val/acc:{v:.4f}\n" for n, v in enumerate(values, 1)]
        (logs / f"{arm}.log").write_text("".join(lines))
        gap = f"{3.1 + nth / 7:.3f}"
        told = [f"{values[at]:.2f}%" for at in (0, 1, 2)]
        last = (gap, told[2]) if nth == 2 else (told[2], gap)
        rows.append(f"| {arm} | {told[0]} | {told[1]} | {last[0]} | {last[1]} |")
    text = page("| arm | step 10 | step 20 | step 30 | cost |", "|---|---|---|---|---|", *rows)
    assert 7 in bad(tmp_path, text, "check.exchanged", logs=[logs])


# --- rows told twice

FALLS = (
    "| arm | falls | largest | where | deviation |",
    "|---|---|---|---|---|",
    "| none | 4 | -0.180 | Step 50→55 | 0.139 |",
    "| 0.003 | 4 | -0.095 | Step 35→40 | 0.132 |",
    "| 0.01 | 4 | -0.077 | Step 55→60 | 0.121 |",
    "| 0.03 | 5 | -0.122 | Step 55→60 | 0.065 |",
)


def test_rows_with_few_digits_are_copies_if_chance_does_not_make_them_so(tmp_path):
    assert not bad(tmp_path, page(*FALLS), "check.copied")
    text = page(*FALLS).replace(
        "4 | -0.095 | Step 35→40 | 0.132", "4 | -0.077 | Step 55→60 | 0.121"
    )
    assert bad(tmp_path, text, "check.copied") == {6, 7}


def test_cells_that_are_no_numbers_can_be_copied_too(tmp_path):
    rows = ("| mean | 66.9 | 61.6 | 64.6 |", "| right | 685/1024 | 631/1024 | 662/1024 |")
    text = page(
        "| what | a | b | c |", "|---|---|---|---|", *rows, "| range | ±1.2 | ±2.0 | ±1.7 |"
    )
    assert not bad(tmp_path, text, "check.copied")
    changed = text.replace("±1.2 | ±2.0 | ±1.7", "685/1024 | 631/1024 | 662/1024")
    assert bad(tmp_path, changed, "check.copied") == {6, 7}


@pytest.mark.parametrize(
    "rows",
    [
        ("| n | 8 | 8 | 8 | 8 |", "| GPUs | 8 | 8 | 8 | 8 |", "| turns | 6 | 6 | 6 | 6 |"),
        ("| k1 | 0 | 0.0 | 6.90 | 34.5 |", "| k2 | 0 | 0.0 | 6.90 | 34.5 |",
         "| k3 | 0 | 0.0 | 6.90 | 34.5 |", "| k4 | 3 | 1.2 | 7.12 | 41.5 |"),
    ],
)  # fmt: skip
def test_rows_that_are_the_same_for_a_reason_are_no_copies(tmp_path, rows):
    text = page("| what | a | b | c | d |", "|---|---|---|---|---|", *rows)
    assert not bad(tmp_path, text, "check.copied")


# --- digits off in sentences

REWARDS = (
    "| Step | Group4 | Group8 |",
    "|---|---|---|",
    *(
        f"| {10 * n} | {1.2 + 0.3 * sin(n):.3f} | {1.5 + 0.3 * sin(n + 2):.3f} |"
        for n in range(1, 9)
    ),
)


def test_a_number_one_digit_off_the_only_one_that_a_name_leads_to(tmp_path):
    last = f"{1.2 + 0.3 * sin(8):.3f}"
    off = f"{float(last) + 0.001:.3f}"
    said = "- Group4 is highest at step 20, then comes down and ends at {}."
    assert not bad(tmp_path, page(*REWARDS, "", said.format(last)), "check.slip")
    assert bad(tmp_path, page(*REWARDS, "", said.format(off)), "check.slip") == {14}


@pytest.mark.parametrize("said", ["about {}", "between {}–1.4", "over {}"])
def test_rough_numbers_and_ends_of_ranges_are_not_held_to_the_digit(tmp_path, said):
    off = f"{1.2 + 0.3 * sin(8) + 0.001:.3f}"
    text = page(*REWARDS, "", f"- Group4 is at {said.format(off)} by then.")
    assert not bad(tmp_path, text, "check.slip", "number-without-source")


def test_a_step_is_that_of_the_value_before_the_name_between_them(tmp_path):
    best = f"{1.2 + 0.3 * sin(2):.3f}"
    said = "- The highest of the study is {}, from `Group4` at step {}."
    assert not bad(tmp_path, page(*REWARDS, "", said.format(best, 20)), "check.elsewhere")
    assert bad(tmp_path, page(*REWARDS, "", said.format(best, 30)), "check.elsewhere") == {14}


# --- lists and steps


def test_an_epoch_beyond_its_list_is_not_where_it_is_best(tmp_path):
    lines = [f"kl=0.0{n}  {50 + n}.10 / {51 + n}.35 / {50 + n}.85  best=epoch2" for n in (1, 2, 3)]
    assert not bad(tmp_path, page("```", *lines, "```"), "check.elsewhere")
    lines[1] = lines[1].replace("epoch2", "epoch5")
    assert bad(tmp_path, page("```", *lines, "```"), "check.elsewhere") == {5}


def test_two_sentences_with_the_same_strange_step_do_not_vouch_for_each_other(tmp_path):
    logs = tmp_path / "logs"
    logs.mkdir()
    rows = []
    for n in range(1, 9):
        rows.append(f"| {50 * n} | {0.5 + 0.02 * n:.3f} | {0.6 - 0.03 * n:.3f} |")
        told = (
            f"step:{50 * n} - val/acc:{0.5 + 0.02 * n:.4f} - actor/entropy:{0.6 - 0.03 * n:.4f}\n"
        )
        with (logs / "run.log").open("a") as file:
            file.write(told)
    said = ("- Accuracy is highest at step {0} (0.660).", "", "- Entropy at step {0} is 0.360.")
    table = ("| Step | accuracy | entropy |", "|---|---|---|", *rows)
    right = page(*table, "", *(one.format(400) for one in said))
    wrong = page(*table, "", *(one.format(395) for one in said))
    assert not bad(tmp_path, right, "check.unheard-step", logs=[logs])
    assert bad(tmp_path, wrong, "check.unheard-step", logs=[logs]) == {14, 16}
    # A table need not have every step, unless it has what is told of it at another.
    assert bad(tmp_path, wrong, "check.unheard-step") == {14}


# --- tests

TESTS = (
    "| pair | gap | t | p |",
    "|---|---|---|---|",
    "| a - b | +1.23 | 1.20 | 0.3279 |",
    "| a - c | +3.67 | 4.62 | 0.0157 |",
    "",
    "Welch's t-test over three seeds.",
    "",
)


def test_a_p_below_all_that_a_report_has_is_of_no_test(tmp_path):
    for limit, found in (("0.05", set()), ("0.01", {11})):
        text = page(*TESTS, "## Later", f"- Answers get longer (p < {limit}).")
        assert bad(tmp_path, text, "check.test") == found


@pytest.mark.parametrize(
    ("said", "wrong"),
    [
        ("t = 0.43 (df 2.4), p < 0.01", True),
        ("t = 9.9, p < 0.05", False),  # with enough runs
        ("t = 5.54 (df 2), p = 0.031", False),
        ("t = 1.10, p = 0.03", True),
    ],
)
def test_a_p_smaller_than_its_t_can_have_is_wrong(tmp_path, said, wrong):
    text = page(*REWARDS, "", f"- Welch's test of the two: {said}.")
    assert bool(bad(tmp_path, text, "check.against-test")) == wrong


def test_where_tests_are_told_by_their_t_a_p_alone_is_of_none(tmp_path):
    told = ("Welch's test: t = 4.65 for a.", "", "Welch's test: t = 0.43 for b.", "")
    assert bad(tmp_path, page(*told, "- Answers get longer (p < 0.01)."), "check.test") == {7}
    both = ("Welch's test: t = 4.65, p = 0.004 for a.", *told[1:])
    assert not bad(tmp_path, page(*both, "- Answers get longer (p < 0.01)."), "check.test")


def test_the_p_of_a_share_is_no_test(tmp_path):
    text = page(
        *REWARDS, "", "- By the binomial approximation (p≈0.5) half the width is 3.46 points."
    )
    assert not bad(tmp_path, text, "check.test")


@pytest.mark.parametrize(
    "said",
    [
        "Whether it matters later is not tested here, and it converges faster.",
        "差异是否超出随机波动未知，每个版本只训练了一次，证明该配置最优。",
    ],
)
def test_a_question_in_one_clause_does_not_excuse_the_next(tmp_path, said):
    assert bad(tmp_path, page(*REWARDS, "", f"- {said}"), "check.word") == {14}


# --- runs in several files


def test_files_of_one_run_under_two_names_are_one_run(tmp_path):
    """Training in a file for each run, evaluation in one table with a row for each."""
    logs, rows = tmp_path / "logs", ["kl_beta,epoch,shot,cider"]
    logs.mkdir()
    told = []
    for nth, beta in enumerate((0.10, 0.25)):
        curve = [{"epoch": e, "train_loss": 0.02 / e + nth / 999} for e in range(1, 4)]
        (logs / f"training_metrics_kl0{int(100 * beta)}.json").write_text(json.dumps(curve))
        for epoch in range(1, 4):
            shots = [70 + nth + 2 * sin(epoch * n + nth) for n in (1, 2, 3)]
            rows += [f"{beta},{epoch},{n},{one:.1f}" for n, one in enumerate(shots, 1)]
            told.append(f"| {beta:.2f} | {epoch} | " + " | ".join(f"{x:.1f}" for x in shots) + " |")
    (logs / "cider_eval.csv").write_text("\n".join(rows) + "\n")
    text = page("| β | Epoch | Shot 1 | Shot 2 | Shot 3 |", "|---|---|---|---|---|", *told)
    assert not bad(tmp_path, text, logs=[logs])
    cells = told[4].split(" | ")
    swapped = " | ".join([*cells[:2], cells[3], cells[2], *cells[4:]])
    assert bad(tmp_path, text.replace(told[4], swapped), "check.not-log", logs=[logs]) == {9}


def test_curves_on_single_sets_are_kept_beside_their_mean(tmp_path):
    (tmp_path / "kl0.csv").write_text("step,eval_gsm8k,eval_math500\n10,0.5,0.3\n20,0.6,0.4\n")
    threads = threads_of(Logs(gather([read(tmp_path / "kl0.csv")])))
    ends = {thread.metric: thread.points[20.0] for thread in threads}
    assert ends == {"accuracy": 0.5, "eval_gsm8k": 0.6, "eval_math500": 0.4}


def test_two_words_of_a_label_may_be_one_of_a_name():
    namer = Namer(["dapo", "drgrpo", "grpo"])
    assert [namer.group(text) for text in ("Dr. GRPO", "GRPO", "DAPO")] == [
        "drgrpo",
        "grpo",
        "dapo",
    ]


def test_a_label_names_the_run_of_which_it_has_most():
    namer = Namer(["a_nokl", "a_kl0.001", "a_kl0.01", "a_kl0.01_ent0.005"])
    assert namer.group("kl1e-2") == "a_kl0.01"
    assert namer.group("kl1e-2+ent") == "a_kl0.01_ent0.005"


# --- what is made of what

SHOTS = (
    "| n | Shot 1 | Shot 2 | Shot 3 | Shot 4 | mean |",
    "|---|---|---|---|---|---|",
    "| 100 | 58.6% | 57.8% | 56.8% | 56.0% | 57.30% |",
    "| 200 | 57.1% | 56.6% | 55.6% | 55.1% | 56.10% |",
    "| 500 | 54.9% | 54.3% | 53.5% | 52.9% | 53.90% |",
    "| 1000 | 53.4% | 52.95% | 52.3% | 51.75% | 52.60% |",
)


def test_the_mean_of_all_is_not_the_mean_of_the_two_in_the_middle(tmp_path):
    """Shots that fall evenly: both would fit, but for the one that is wrong."""
    assert not bad(tmp_path, page(*SHOTS))
    assert bad(tmp_path, page(*SHOTS).replace("| 54.9%", "| 54.4%")) == {7}


BESTS = (
    "| arm | n | best epoch | best | epoch 3 | last − best |",
    "|---|---|---|---|---|---|",
    "| 0.10 | 200 | 2 | 57.75% | 56.59% | -1.16 |",
    "| 0.10 | 400 | 2 | 53.45% | 52.05% | -1.40 |",
    "| 0.15 | 400 | 3 | 53.91% | 53.91% | 0.00 |",
    "| 0.20 | 200 | 3 | 58.33% | 58.33% | 0.00 |",
    "| 0.20 | 400 | 3 | 53.68% | 53.68% | 0.00 |",
    "| 0.20 | 800 | 3 | 49.70% | 49.70% | 0.00 |",
)


def test_a_row_is_not_the_mean_of_others_by_chance(tmp_path):
    assert not bad(tmp_path, page(*BESTS))


HOURS = (
    "| arm | epoch 1 (min) | epoch 2 (min) | epoch 3 (min) | total (min) | GPU hours |",
    "|---|---|---|---|---|---|",
    "| 0.10 | 41.2 | 40.9 | 41.3 | 123.4 | 2.06 |",
    "| 0.15 | 41.9 | 42.2 | 42.2 | 126.3 | 2.11 |",
    "| 0.20 | 42.3 | 42.2 | 42.6 | 127.1 | 2.12 |",
    "| total | 125.4 | 125.3 | 126.1 | 376.8 | 6.28 |",
)


def test_hours_are_of_minutes_and_need_not_add_up_to_the_digit(tmp_path):
    assert not bad(tmp_path, page(*HOURS))
    assert bad(tmp_path, page(*HOURS).replace("| 126.1", "| 127.1"))


def test_a_share_shows_that_two_numbers_of_its_row_are_exchanged(tmp_path):
    rows = (
        "| a | 60 | 0.646 | 0.134 | -0.512 | 20.7% |",
        "| b | 100 | 0.691 | 0.664 | -0.027 | 96.1% |",
    )
    rows += (
        "| c | 80 | 0.663 | 0.641 | -0.022 | 96.7% |",
        "| d | 120 | 0.572 | 0.570 | -0.002 | 99.7% |",
    )
    head = ("| arm | step | best | last | last − best | retained |", "|---|---|---|---|---|---|")
    assert not bad(tmp_path, page(*head, *rows))
    turned = page(*head, *rows).replace("0.691 | 0.664 | -0.027", "-0.027 | 0.664 | 0.691")
    assert 6 in bad(tmp_path, turned)


PARTS = (
    "| seconds | none | 0.001 | 0.01 |",
    "|---|---|---|---|",
    "| rollout | 101.0 | 94.0 | 90.3 |",
    "| reference | 0.0 | 14.1 | 14.1 |",
    "| update | 53.8 | 51.7 | 50.7 |",
    "| other | 9.4 | 9.4 | 9.4 |",
    "| total | 164.2 | 169.2 | 164.5 |",
    "| rollout / total | 61.5% | 55.6% | 54.9% |",
)


def test_two_sums_off_by_the_same_show_the_two_numbers_that_were_exchanged(tmp_path):
    assert not bad(tmp_path, page(*PARTS))
    turned = page(*PARTS).replace("| 51.7 | 50.7 |", "| 50.7 | 51.7 |")
    assert bad(tmp_path, turned) == {7}


def test_the_best_update_is_a_step_too(tmp_path):
    rows = [
        f"| {250 * n} | {50 + 5 * sin(n / 2):.1f} | {49 + 4 * sin(n / 3):.1f} |"
        for n in range(1, 9)
    ]
    tops = [
        max(rows, key=lambda row, at=at: float(row.split(" | ")[at].strip(" |"))) for at in (1, 2)
    ]
    steps = [int(row.split()[1]) for row in tops]
    best = [row.split(" | ")[at].strip(" |") for at, row in zip((1, 2), tops, strict=True)]
    text = page(
        "| update | free | leashed |", "|---|---|---|", *rows, "",
        "| run | best update | best |", "|---|---|---|",
        f"| free | {steps[0]} | {best[0]} |", f"| leashed | {steps[1]} | {best[1]} |",
        "", f"- free climbs to {best[0]} at update {steps[0]}.",
    )  # fmt: skip
    assert not bad(tmp_path, text, "check.elsewhere")
    wrong = text.replace(f"| free | {steps[0]} |", f"| free | {steps[0] + 250} |")
    assert bad(tmp_path, wrong, "check.elsewhere") == {16}
    wrong = text.replace(f"update {steps[0]}.", f"update {steps[0] + 250}.")
    assert bad(tmp_path, wrong, "check.elsewhere") == {19}


def test_a_row_of_which_all_but_one_cell_is_anothers(tmp_path):
    rows = ("| 0.02 | 46.5 | 3.87 | 15.5 | 61.5 |", "| 0.05 | 48.1 | 4.01 | 16.0 | 61.4 |")
    rows += ("| 0.10 | 46.8 | 3.90 | 15.6 | 61.5 |", "| 0.20 | 49.8 | 4.15 | 16.6 | 61.6 |")
    text = page("| beta | min | h | GPU-h | GB |", "|---|---|---|---|---|", *rows)
    assert not bad(tmp_path, text, "check.copied")
    wrong = text.replace("46.8 | 3.90 | 15.6", "48.1 | 4.01 | 16.0")
    assert bad(tmp_path, wrong, "check.copied") == {6, 7}


def test_a_step_with_a_result_beside_it_is_not_planned(tmp_path):
    logs = tmp_path / "logs"
    logs.mkdir()
    told = [f"step:{50 * n} - val/acc:{0.5 + 0.02 * n:.4f}\n" for n in range(1, 9)]
    (logs / "run.log").write_text("".join(told))
    rows = [f"| {50 * n} | {0.5 + 0.02 * n:.3f} |" for n in range(1, 9)]
    for said, found in (("it too: 0.660 at step 395", {14}), ("it again until step 395", set())):
        text = page("| Step | acc |", "|---|---|", *rows, "", f"- I would pick {said}.")
        assert bad(tmp_path, text, "check.unheard-step", logs=[logs]) == found


def test_one_number_far_off_is_wrong_where_labels_name_run_metric_and_statistic(tmp_path):
    logs, rows = tmp_path / "logs", []
    logs.mkdir()
    for nth, arm in enumerate(("nokl", "kl0.001", "kl0.005", "kl0.02")):
        values = [1.6 + 0.1 * nth + 0.2 * sin(n + 2 * nth) for n in range(12)]
        told = [f"step:{10 * n} - val/reward:{v:.4f}\n" for n, v in enumerate(values, 1)]
        (logs / f"agent_{arm}.log").write_text("".join(told))
        rows.append(f"| {arm} | {sum(values[-3:]) / 3:.3f} |")
    text = page("## Reward", "", "| arm | mean of the last 3 points |", "|---|---|", *rows)
    assert not bad(tmp_path, text, logs=[logs])
    wrong = text.replace("| kl0.005 | 1.", "| kl0.005 | 9.").replace(
        "| kl0.005 | 2.", "| kl0.005 | 9."
    )
    assert wrong != text
    assert bad(tmp_path, wrong, "check.not-log", logs=[logs]) == {9}
