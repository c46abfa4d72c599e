"""Numbers of tables against logs: whose they are, which statistic, and what is no slip."""

import json
from math import sin

import pytest

from test_check import marks

RUNS = {"lr1e-6": 1, "lr5e-6": 2, "lr1e-5": 3}
STEPS = 60
TABLES = """# Three learning rates

| lr | epoch | KL | length |
|---|---|---|---|
{by_epoch}

## Curves

| step | A | B | C | C − A |
|---|---|---|---|---|
{curves}

## Extremes

| run | reward, max @ step | KL, last 10 steps | total (h) |
|---|---|---|---|
{extremes}

A is 1e-6, B 5e-6 and C 1e-5.
"""


def logged(nth):
    """A run: reward, KL, length and seconds by step."""
    return {
        step: {
            "step": step,
            "epoch": 1 + (step - 1) // 20,
            "critic/rewards/mean": 0.4 + 0.2 * sin(step / (9 + nth)) + 0.05 * sin(7 * step + nth),
            "actor/kl": 0.001 * step * nth + 0.004 * sin(5 * step) ** 2,
            "response_length/mean": 800 + 9 * step * nth + 40 * sin(3 * step),
            "timing_s/step": 70 + 6 * nth + 4 * sin(11 * step + nth),
        }
        for step in range(1, STEPS + 1)
    }


def study(folder):
    """The logs of all runs, and a report that is right."""
    runs = {name: logged(nth) for name, nth in RUNS.items()}
    for name, rows in runs.items():
        (folder / name).mkdir(parents=True)
        text = "".join(json.dumps(row) + "\n" for row in rows.values())
        (folder / name / "metrics.jsonl").write_text(text)
    by_epoch = [
        f"| {name[2:]} | {epoch} | {rows[20 * epoch]['actor/kl']:.5f} "
        f"| {rows[20 * epoch]['response_length/mean']:.1f} |"
        for name, rows in runs.items()
        for epoch in (1, 2, 3)
    ]
    rewards = {
        name: {step: row["critic/rewards/mean"] for step, row in rows.items()}
        for name, rows in runs.items()
    }
    curves = []
    for step in range(5, STEPS + 1, 5):
        three = [rewards[name][step] for name in RUNS]
        told = " | ".join(f"{one:.4f}" for one in three)
        curves.append(f"| {step} | {told} | {three[2] - three[0]:+.4f} |")
    extremes = []
    for letter, (name, rows) in zip("ABC", runs.items(), strict=True):
        best = max(rewards[name], key=rewards[name].get)
        last = sum(rows[step]["actor/kl"] for step in range(STEPS - 9, STEPS + 1)) / 10
        hours = sum(row["timing_s/step"] for row in rows.values()) / 3600
        extremes.append(
            f"| {letter} | {rewards[name][best]:.4f} @ {best} | {last:.5f} | {hours:.3f} |"
        )
    joined = {"by_epoch": by_epoch, "curves": curves, "extremes": extremes}
    return TABLES.format(**{key: "\n".join(rows) for key, rows in joined.items()})


def told_wrong(folder, text):
    found = marks(folder / "r.md", text, [folder / "logs"])
    return [(m.line, m.text, m.facts["value"]) for m in found if m.code == "check.not-log"]


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    folder = tmp_path_factory.mktemp("study")
    return folder, study(folder / "logs")


def cell(text, line, column):
    return [one.strip() for one in text.split("\n")[line - 1].split("|")[1:-1]][column]


def changed(text, line, column, new):
    lines = text.split("\n")
    cells = lines[line - 1].split("|")
    cells[column + 1] = f" {new} "
    lines[line - 1] = "|".join(cells)
    return "\n".join(lines)


def row(text, start):
    return next(n for n, one in enumerate(text.split("\n"), 1) if one.startswith(start))


def test_a_right_report_has_no_number_that_its_logs_contradict(kept):
    folder, text = kept
    assert told_wrong(folder, text) == []
    found = marks(folder / "r.md", text, [folder / "logs"])
    known = {mark.line for mark in found if mark.code == "check.log"}
    assert {
        row(text, f"| {one} |") for one in ("1e-6", "5e-6", "1e-5", "5", "60", "A", "C")
    } <= known


@pytest.mark.parametrize(
    "start, column",
    [("| 5e-6 | 2", 2), ("| 1e-5 | 3", 3), ("| 35 |", 2), ("| B |", 2)],
)
def test_a_last_digit_is_known_by_two_labels_and_by_learnt_names(kept, start, column):
    folder, text = kept
    line = row(text, start)
    right = cell(text, line, column)
    wrong = right[:-1] + str((int(right[-1]) + 1) % 10)
    assert (line, wrong, right) in told_wrong(folder, changed(text, line, column, wrong))


def test_a_best_step_in_the_same_cell_as_the_best_is_known(kept):
    folder, text = kept
    line = row(text, "| B |")
    value, step = cell(text, line, 1).split(" @ ")
    wrong = f"{value} @ {int(step) + 3}"
    assert told_wrong(folder, changed(text, line, 1, wrong)) == [(line, str(int(step) + 3), step)]


def test_a_row_copied_from_another_step_is_not_taken_for_that_step(kept):
    folder, text = kept
    line, other = row(text, "| 40 |"), row(text, "| 35 |")
    copied = text
    for column in (1, 2, 3):
        copied = changed(copied, line, column, cell(text, other, column))
    assert {found[0] for found in told_wrong(folder, copied)} == {line}
