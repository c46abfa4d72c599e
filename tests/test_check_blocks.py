"""Whole tables against logs and against each other, steps that nothing has, bests in lists."""

import json
from math import sin
from statistics import fmean, stdev

import pytest

from test_check import marks

ARMS = {"no KL": ("nokl", 0.0), "KL 0.01": ("kl0.01", 0.05), "KL 0.1": ("kl0.1", -0.08)}
STEPS = range(10, 121, 10)
BAD = ("wrong", "unsupported")


def reward(nth, step):
    return 1.5 + ARMS[list(ARMS)[nth]][1] + 0.2 * sin(step / 40 + nth) + 0.05 * sin(7 * step + nth)


def windows(folder, *, logs=True):
    """Logs of three arms, and a report with their courses and the means of windows of them."""
    courses = {name: {step: reward(n, step) for step in STEPS} for n, name in enumerate(ARMS)}
    for name, (file, _) in ARMS.items() if logs else ():
        rows = [
            f"step:{step} - val/reward:{value:.6f} - actor/entropy:{0.3 + 0.1 * sin(step):.5f}\n"
            for step, value in courses[name].items()
        ]
        (folder / f"agent_{file}.log").write_text("".join(rows))
    curves = [
        f"| {step} | " + " | ".join(f"{courses[name][step]:.3f}" for name in ARMS) + " |"
        for step in STEPS
    ]
    parts = [("Step 10-40", 0, 4), ("Step 50-80", 4, 8), ("Step 90-120", 8, 12), ("overall", 0, 12)]
    means = [
        f"| {label} | "
        + " | ".join(f"{fmean(list(courses[n].values())[a:b]):.3f}" for n in ARMS)
        + f" | {max(ARMS, key=lambda n: fmean(list(courses[n].values())[a:b]))} |"
        for label, a, b in parts
    ]
    head = "| " + " | ".join(ARMS)
    return "\n".join(
        [
            "# Three coefficients",
            "",
            "## Validation reward",
            "",
            f"| Step {head} |",
            "|---|---|---|---|",
            *curves,
            "",
            "The mean of each part of training:",
            "",
            f"| Part {head} | best |",
            "|---|---|---|---|---|",
            *means,
            "",
        ]
    )


def slipped(text, row, column):
    """A report with one digit of a cell changed, and the line of it."""
    lines = text.split("\n")
    at = next(n for n, line in enumerate(lines) if line.startswith(f"| {row} |"))
    cells = lines[at].split(" | ")
    number = cells[column].strip(" |")
    changed = number[:-2] + f"{(int(number[-2]) + 3) % 10}" + number[-1]
    cells[column] = cells[column].replace(number, changed)
    lines[at] = " | ".join(cells)
    return "\n".join(lines), at + 1


@pytest.mark.parametrize("logs", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_means_of_windows_are_read_though_a_winner_stands_beside_them(tmp_path, logs):
    (tmp_path / "logs").mkdir()
    text = windows(tmp_path / "logs", logs=logs)
    given = [tmp_path / "logs"] if logs else ()
    assert not [m for m in marks(tmp_path / "r.md", text, given) if m.state in BAD]
    for row, column in (("Step 10-40", 1), ("Step 50-80", 3), ("overall", 2)):
        changed, line = slipped(text, row, column)
        found = [m for m in marks(tmp_path / "r.md", changed, given) if m.state == "wrong"]
        assert {m.line for m in found} == {line}


def test_means_and_deviations_of_bests_and_ends_over_seeds_are_read(tmp_path):
    head = "| beta | best: mean | best: std | last: mean | last: std |"
    rows = []
    for nth, beta in enumerate((0.0, 0.01, 0.1)):
        bests, ends = [], []
        for seed in (1, 2, 3):
            values = [0.5 + 0.1 * nth + 0.07 * sin(step * seed + nth) for step in range(1, 13)]
            history = [{"step": 10 * n, "eval_acc": v} for n, v in enumerate(values, 1)]
            folder = tmp_path / "logs" / f"grpo_beta{beta}_seed{seed}"
            folder.mkdir(parents=True)
            (folder / "trainer_state.json").write_text(json.dumps({"log_history": history}))
            bests.append(max(values))
            ends.append(values[-1])
        told = (fmean(bests), stdev(bests), fmean(ends), stdev(ends))
        rows.append(f"| {beta} | " + " | ".join(f"{one:.4f}" for one in told) + " |")
    text = "\n".join(["# Seeds", "", head, "|---|---|---|---|---|", *rows, ""])
    logs = [tmp_path / "logs"]
    assert not [m for m in marks(tmp_path / "r.md", text, logs) if m.state in BAD]
    for column in (1, 2, 3, 4):
        changed, line = slipped(text, "0.01", column)
        found = [m for m in marks(tmp_path / "r.md", changed, logs) if m.state == "wrong"]
        assert line in {m.line for m in found}


def test_evaluations_with_a_file_each_are_one_run(tmp_path):
    def accuracy(arm, epoch, items, shots):
        return round(50 + 3 * arm + epoch + items / 200 + 2 * sin(7 * arm + epoch * shots), 2)

    rows = []
    for arm, beta in enumerate((0.1, 0.2, 0.3)):
        folder = tmp_path / "logs" / f"kl0{int(10 * beta)}0"
        folder.mkdir(parents=True)
        for epoch in (1, 2, 3):
            for items in (100, 400):
                found = {f"shot{n}": accuracy(arm, epoch, items, n) for n in (1, 2, 3)}
                told = {"kl_beta": beta, "grpo_epoch": epoch, "num_samples": items}
                file = folder / f"eval_epoch{epoch}_n{items}.json"
                file.write_text(json.dumps({**told, "accuracy": found}))
        shown = " | ".join(f"{accuracy(arm, 2, 400, n):.2f}%" for n in (1, 2, 3))
        rows.append(f"| {beta:.2f} | {shown} |")
    head = ["# Shots", "", "## Epoch 2, 400 samples", "", "| KL_BETA | Shot 1 | Shot 2 | Shot 3 |"]
    text = "\n".join([*head, "|---|---|---|---|", *rows, ""])
    logs = [tmp_path / "logs"]
    right = marks(tmp_path / "r.md", text, logs)
    assert not [m for m in right if m.state in BAD]
    assert sum(m.code == "check.log" for m in right) == 12  # the coefficients too
    cells = rows[1].split(" | ")
    swapped = " | ".join([cells[0], cells[2], cells[1], cells[3]])
    found = marks(tmp_path / "r.md", text.replace(rows[1], swapped), logs)
    assert [m.code for m in found if m.state == "wrong"] == ["check.not-log"] * 2


STEP = """# One run

| Step | free | leashed |
|---|---|---|
| 10 | 0.512 | 0.498 |
| 20 | 0.530 | 0.541 |
| 30 | 0.571 | 0.560 |
| 40 | 0.566 | 0.583 |

- leashed is still above free {where}.
"""


@pytest.mark.parametrize(
    ("where", "known"),
    [
        ("at step 40", True),
        ("at step 45", False),
        ("at step 50", False),
        ("and should be trained to step 80", True),
        ("after the SFT of epoch 5", True),
    ],
)
def test_a_step_that_nothing_has_is_told(tmp_path, where, known):
    found = marks(tmp_path / "r.md", STEP.format(where=where))
    assert ("check.unheard-step" in {m.code for m in found}) == (not known)


def test_a_full_stop_behind_a_step_does_not_hide_it(tmp_path):
    text = STEP.format(where="at step 40") + "\nThe best is 0.583, reached by leashed at step {}.\n"
    found = {at: marks(tmp_path / "r.md", text.format(at)) for at in (40, 30)}
    told = {at: {(m.code, m.text) for m in every} for at, every in found.items()}
    assert ("check.elsewhere", "0.583") in told[30]
    assert ("check.elsewhere", "0.583") not in told[40]


def test_the_best_of_a_list_is_where_it_says(tmp_path):
    lists = [
        "kl_beta=0.06  52.10 / 51.35 / 50.85   best=epoch1",
        "kl_beta=0.09  53.15 / 51.95 / 51.65   best=epoch1",
        "kl_beta=0.12  52.35 / 52.70 / 52.85   best=epoch3",
    ]
    text = "# Lists\n\n```\n" + "\n".join(lists) + "\n```\n"
    assert "check.elsewhere" not in {m.code for m in marks(tmp_path / "r.md", text)}
    found = marks(tmp_path / "r.md", text.replace("52.85   best=epoch3", "52.85   best=epoch2"))
    assert [m.line for m in found if m.code == "check.elsewhere"] == [6]


TESTED = """# Seeds

## Ends

Welch's t-test over three seeds: t = 4.10, p = 0.015 in favour of leashed.

## Length

- leashed writes 120 tokens, free 180{p}.
"""


def test_a_test_of_one_section_does_not_speak_for_another(tmp_path):
    def tests(text):
        return [m.line for m in marks(tmp_path / "r.md", text) if m.code == "check.test"]

    assert tests(TESTED.format(p=" (p < 0.01)")) == [9]
    assert not tests(TESTED.format(p=" (p = 0.015)"))
    general = "# Seeds\n\nAll p-values are of Welch's t-test.\n"
    assert not tests(general + TESTED.format(p=" (p < 0.01)"))
    statistic = "McNemar 统计量（不加校正）为 6.23，大于 3.84。"
    assert tests(f"# Seeds\n\n## 配对\n\n{statistic}\n\n## 长度\n\n- 短 12 字（p < 0.01）。\n") == [
        9
    ]


def test_a_row_that_stands_twice_with_its_labels_is_a_copy(tmp_path):
    rows = ["| 0.0 | 7 | 0.643 | 0.641 |", "| | 42 | 0.642 | 0.640 |", "| | 99 | 0.645 | 0.642 |"]
    head = "# Seeds\n\n| beta | seed | best | last |\n|---|---|---|---|\n"
    assert "check.copied" not in {m.code for m in marks(tmp_path / "r.md", head + "\n".join(rows))}
    found = marks(tmp_path / "r.md", head + "\n".join([rows[0], rows[1], rows[1]]) + "\n")
    assert {m.line for m in found if m.code == "check.copied"} == {6, 7}


def test_a_gap_to_an_arm_with_several_rows_is_to_its_row_of_the_same_epoch(tmp_path):
    text = """# Two arms by epoch

| KL_BETA | Epoch | Shot 1 | Shot 2 | mean | vs 0.15 |
|---|---|---|---|---|---|
| 0.10 | 1 | 57.00% | 56.00% | 56.50% | -0.60 |
| 0.10 | 2 | 58.80% | 57.00% | 57.90% | -0.20 |
| 0.10 | 3 | 58.70% | 55.10% | 56.90% | -1.40 |
| 0.15 | 1 | 58.20% | 56.00% | 57.10% | base |
| 0.15 | 2 | 59.20% | 57.00% | 58.10% | base |
| 0.15 | 3 | 59.60% | 57.00% | 58.30% | base |
"""
    assert not [m for m in marks(tmp_path / "r.md", text) if m.state in BAD]
    found = marks(tmp_path / "r.md", text.replace("| -0.20 |", "| -0.50 |"))
    assert [m.line for m in found if m.state == "wrong"] == [6]


def test_an_arm_without_its_point_is_called_by_its_coefficient(tmp_path):
    rows = ["| | kl010 | kl020 |", "|---|---|---|", "| KL beta | 0.10 | 0.20 |"]
    text = "# Arms\n\n" + "\n".join([*rows, "| lr | 5e-6 | 5e-6 |"]) + "\n"
    assert "check.other-arm" not in {m.code for m in marks(tmp_path / "r.md", text)}
