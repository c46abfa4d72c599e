"""Numbers of tables among the records of log files: by shots, samples, seeds, parts and costs."""

import json
import re
from collections import Counter
from random import Random
from statistics import mean, stdev

import numpy as np
import pytest
from typer.testing import CliRunner

from kleash.cli import app
from kleash.documents.page import read_page
from kleash.imports.markdown.document import draft_of
from kleash.written.filed.columns import DEVIATION, MEAN, columns_of
from kleash.written.filed.found import filed as filed_in
from kleash.written.filed.found import on_file
from kleash.written.filed.records import Record, records, spelled
from kleash.written.grids import grids
from kleash.written.logs import logs_of
from kleash.written.printed import sheets
from kleash.written.styles import is_alike
from test_check import marks

ARMS = ("random", "rce", "grpo_kl0.05", "grpo_kl0.10", "grpo_kl0.20")
SHOWN = ("random", "RCE", "β=0.05", "β=0.10", "β=0.20")
SHOTS = (1, 2, 3, 4)


def accuracy(arm, epoch, size, shots):
    """A number that no other place of the matrix has."""
    drawn = Random(f"{arm} {epoch} {size} {shots}")
    return round(45 + 2 * ARMS.index(arm) + shots + drawn.uniform(-1.5, 1.5), 2)


def filed(folder, sizes=(250, 1000), epochs=(1, 2, 3)):
    """A file with a row for each arm, epoch, size and number of shots."""
    rows = [
        f"{arm},{epoch},{size},{shots},{accuracy(arm, epoch, size, shots)}"
        for arm in ARMS for epoch in epochs for size in sizes for shots in SHOTS
    ]  # fmt: skip
    (folder / "logs").mkdir(exist_ok=True)
    text = "\n".join(["arm,epoch,n,shots,acc", *rows])
    (folder / "logs" / "eval.csv").write_text(text, encoding="utf-8")
    return [folder / "logs"]


def by_shots(epoch=3, size=1000):
    """A table of arms by shots with their mean; its rows begin at the fifth line."""
    lines = ["# Selectors", "", "| selector | 1-shot | 2-shot | 3-shot | 4-shot | mean |"]
    lines.append("|---|---|---|---|---|---|")
    for arm, name in zip(ARMS, SHOWN, strict=True):
        row = [accuracy(arm, epoch, size, shots) for shots in SHOTS]
        mean = sum(map(round, (100 * one for one in row))) / 400
        lines.append(f"| {name} | {' | '.join(f'{x:.2f}' for x in row)} | {mean:.2f} |")
    return "\n".join([*lines, ""])


def held(folder, text, logs):
    """What is wrong by the logs: the line, what is written, and what they have."""
    found = marks(folder / "r.md", text, logs)
    return {
        (one.line, one.text, one.facts["value"]) for one in found if one.code == "check.not-log"
    }


def test_every_number_of_a_right_table_is_on_file(tmp_path):
    found = marks(tmp_path / "r.md", by_shots(), filed(tmp_path))
    assert Counter(one.code for one in found if one.line >= 5) == {"check.log": 25}


@pytest.mark.parametrize("seed", range(12))
def test_a_wrong_digit_is_the_only_mark_and_has_its_right_value(tmp_path, seed):
    drawn, lines = Random(seed), by_shots().split("\n")
    line = drawn.randrange(5, 10)
    cells = lines[line - 1].split(" | ")
    at = drawn.randrange(1, 5)
    right = cells[at]
    digit = drawn.choice([n for n in "0123456789" if n != right[-1]])
    cells[at] = right[:-1] + digit
    lines[line - 1] = " | ".join(cells)
    found = marks(tmp_path / "r.md", "\n".join(lines), filed(tmp_path))
    bad = [one for one in found if one.state in ("wrong", "unsupported")]
    assert [(one.line, one.text, one.facts["value"]) for one in bad] == [(line, cells[at], right)]


def test_the_last_digit_of_a_mean_is_held_too(tmp_path):
    text = by_shots()
    mean = text.split("\n")[6].split(" | ")[5].rstrip(" |")
    other = f"{float(mean) + 0.02:.2f}"
    assert held(tmp_path, text.replace(mean, other), filed(tmp_path)) == {(7, other, mean)}


def test_two_numbers_in_each_others_place_are_told_apart(tmp_path):
    text = by_shots()
    one, other = (f"{accuracy('rce', 3, 1000, shots):.2f}" for shots in (2, 4))
    swapped = text.replace(one, "X").replace(other, one).replace("X", other)
    assert held(tmp_path, swapped, filed(tmp_path)) == {(6, other, one), (6, one, other)}


def test_a_row_that_was_copied_is_not_that_of_its_label(tmp_path):
    lines = by_shots().split("\n")
    own, other = lines[7].split(" | "), lines[8].split(" | ")
    lines[8] = " | ".join([other[0], *own[1:]])
    found = held(tmp_path, "\n".join(lines), filed(tmp_path))
    assert {(line, value) for line, _, value in found} >= {(9, each) for each in other[1:5]}
    every = marks(tmp_path / "r.md", "\n".join(lines), filed(tmp_path))
    bad = {(one.line, one.code) for one in every if one.state in ("wrong", "unsupported")}
    assert bad == {(9, "check.not-log")}  # and nothing is said of copies: one error is one mark


def test_what_is_worked_out_of_a_wrong_number_is_held_against_the_right_one(tmp_path):
    """The mean beside a wrong digit comes out, so that only the digit is marked."""
    text, right = by_shots(), f"{accuracy('grpo_kl0.10', 3, 1000, 2):.2f}"
    wrong = f"{float(right) + 3:.2f}"
    said = f"\nβ=0.10 reaches {right} with two shots.\n"
    found = marks(tmp_path / "r.md", text.replace(right, wrong) + said, filed(tmp_path))
    bad = [(one.line, one.text) for one in found if one.state in ("wrong", "unsupported")]
    assert bad == [(8, wrong)]


def test_a_folder_for_each_run_and_a_file_for_each_epoch_are_coordinates(tmp_path):
    for arm in ARMS:
        for epoch in (1, 2, 3):
            told = {"n": 1000, "correct": {}}
            for shots in SHOTS:
                told["correct"][f"shot{shots}"] = round(10 * accuracy(arm, epoch, 1000, shots))
            place = tmp_path / "logs" / arm / f"eval_ep{epoch}.json"
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(json.dumps(told), encoding="utf-8")
    lines = ["# Shots", "", "| β | 1-shot | 2-shot | 3-shot | 4-shot |", "|---|---|---|---|---|"]
    for arm, name in zip(ARMS, SHOWN, strict=True):
        counts = [round(10 * accuracy(arm, 2, 1000, shots)) for shots in SHOTS]
        lines.append(f"| {name} | {' | '.join(f'{n / 10:.1f}%' for n in counts)} |")
    text = "\n".join([*lines, ""])
    assert not held(tmp_path, text, [tmp_path / "logs"])
    right = f"{round(10 * accuracy('rce', 2, 1000, 3)) / 10:.1f}"
    wrong = f"{float(right) + 0.3:.1f}"
    found = held(tmp_path, text.replace(right, wrong), [tmp_path / "logs"])
    assert found == {(6, f"{wrong}%", f"{right}%")}


def costs(folder, name, numbers):
    """A file with one number for each arm."""
    (folder / "logs").mkdir()
    rows = [f"{arm},{one}" for arm, one in zip(ARMS, numbers, strict=True)]
    text = "\n".join([f"run,{name}", *rows])
    (folder / "logs" / "cost.csv").write_text(text, encoding="utf-8")
    return [folder / "logs"]


def test_hours_of_several_gpus_are_no_slip(tmp_path):
    hours = (102.75, 94.03, 114.41, 121.33, 133.43)
    logs = costs(tmp_path, "wall_h", hours)
    lines = ["# Cost", "", "| run | GPU hours |", "|---|---|"]
    for name, one in zip(SHOWN, hours, strict=True):
        lines.append(f"| {name} | {one * (4 if name == 'RCE' else 1):.2f} |")
    text = "\n".join([*lines, ""])
    assert not held(tmp_path, text, logs)
    assert held(tmp_path, text.replace("376.12", "376.42"), logs) == {(6, "376.42", "94.03")}


def filled(folder, text, logs):
    (folder / "r.md").write_text(text, encoding="utf-8")
    asked = ["fill", str(folder / "r.md"), "--out", str(folder / "o.md")]
    told = CliRunner().invoke(
        app, [*asked, *(part for one in logs for part in ("--from", str(one)))]
    )
    assert told.exit_code == 0, told.output
    return (folder / "o.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("fraction", [False, True])
@pytest.mark.parametrize("sign", ["", "%"])
def test_open_cells_are_filled_with_what_stood_there(tmp_path, seed, fraction, sign):
    """Whether logs have percent or fractions, a cell is written as those beside it."""
    whole = re.sub(r"(\d\d\.\d\d)", rf"\g<1>{sign}", by_shots())
    drawn, lines = Random(seed), whole.split("\n")
    for nth in range(4, 9):
        cells = lines[nth].split(" | ")
        cells[drawn.randrange(1, 5)] = "?"
        lines[nth] = " | ".join(cells)
    logs = filed(tmp_path)
    if fraction:
        path = logs[0] / "eval.csv"
        head, *rows = path.read_text(encoding="utf-8").split("\n")
        parts = [row.rpartition(",") for row in rows]
        rows = [f"{told},{float(value) / 100:.4f}" for told, _, value in parts]
        path.write_text("\n".join([head, *rows]), encoding="utf-8")
    assert filled(tmp_path, "\n".join(lines), logs) == whole


def test_nothing_is_filled_that_is_of_another_size_than_its_column(tmp_path):
    lines = ["| run | seconds | hours |", "|---|---|---|", "| a | 12122 | 3.37 |"]
    lines += ["| b | 9916 | ? |", "| c | 14482 | 4.02 |", ""]
    draft = draft_of("\n".join(lines), tmp_path / "r.md")
    cell = next(one for one in draft.printed if (one.line, one.column) == (4, 2))
    assert is_alike(draft, cell, 2.75)
    assert not is_alike(draft, cell, 9916.0)


def test_what_is_taken_of_printed_numbers_is_taken_of_rounded_ones(tmp_path):
    path = tmp_path / "runs.csv"
    rows = [f"a,{shots},{0.7004 + shots / 40}" for shots in SHOTS]
    path.write_text("\n".join(["arm,shots,acc", *rows, "b,1,0.1"]), encoding="utf-8")
    column = next(one for one in columns_of(records([path])) if one.name == "acc")
    at = next(n for n, (code, some) in enumerate(column.parts) if code == MEAN and len(some) == 4)
    own = at + len(column.values) - len(column.parts)
    assert column.values[own] == pytest.approx(0.7629)
    assert column.rounded(1.0, 3)[own] == pytest.approx(0.7625)


def test_two_of_a_row_in_each_others_place_are_told_though_no_column_tells(tmp_path):
    values, arms = {}, ARMS[1:]
    for arm in arms:
        row = {"step": 60, **{m: round(Random(f"{arm}{m}").random(), 3) for m in ("entropy", "kl")}}
        values[arm] = row
        (tmp_path / "logs" / arm).mkdir(parents=True)
        text = json.dumps({**row, "step": 30, "entropy": 0.5, "kl": 0.5}) + "\n" + json.dumps(row)
        (tmp_path / "logs" / arm / "metrics.jsonl").write_text(text + "\n", encoding="utf-8")
    lines = ["# End", "", f"| at step 60 | {' | '.join(SHOWN[1:])} |", "|---|---|---|---|---|"]
    for metric in ("entropy", "kl"):
        row = [f"{values[arm][metric]:.3f}" for arm in arms]
        lines.append(f"| {metric} | {' | '.join(row)} |")
    text = "\n".join([*lines, ""])
    assert not held(tmp_path, text, [tmp_path / "logs"])
    one, other = (f"{values[arm]['entropy']:.3f}" for arm in arms[1:3])
    swapped = text.replace(f"{one} | {other}", f"{other} | {one}")
    found = held(tmp_path, swapped, [tmp_path / "logs"])
    assert found == {(5, other, one), (5, one, other)}


def test_an_epoch_that_follows_from_the_step_splits_nothing(tmp_path):
    for run in ("beta0", "beta0.1"):
        history = [
            {"step": at, "epoch": at / 600, "eval_loss": round(Random(f"{run}{at}").random(), 4)}
            for at in range(200, 1400, 200)
        ]
        (tmp_path / run).mkdir()
        told = json.dumps({"global_step": 1200, "log_history": history})
        (tmp_path / run / "trainer_state.json").write_text(told, encoding="utf-8")
    column = next(one for one in columns_of(records([tmp_path])) if one.name == "eval_loss")
    assert column.axes == ("step", "path")


def test_what_cannot_be_read_is_passed_over(tmp_path):
    filed(tmp_path)
    (tmp_path / "logs" / "broken.json").write_text('{"acc": [1, 2', encoding="utf-8")
    (tmp_path / "logs" / "huge.json").write_text('{"acc": 1e999, "n": NaN}', encoding="utf-8")
    (tmp_path / "logs" / "notes.txt").write_text("acc 51.2", encoding="utf-8")
    found = records([tmp_path / "logs"])
    assert {one.file for one in found} == {str(tmp_path / "logs" / "eval.csv")}


def test_means_are_those_of_their_parts(tmp_path):
    column = next(one for one in columns_of(records(filed(tmp_path))) if one.name == "acc")
    shots = column.axes.index("shots")
    own = dict(zip(map(tuple, column.codes), column.values, strict=True))
    mean = next(
        key for key in own if key[shots] == MEAN and min(key) == MEAN and key.count(MEAN) == 1
    )
    parts = [value for key, value in own.items() if min(key) >= 0 and _but(key, mean, shots)]
    assert len(parts) == 4
    assert own[mean] == pytest.approx(sum(parts) / 4)


def _but(one, other, at):
    return all(a == b for n, (a, b) in enumerate(zip(one, other, strict=True)) if n != at)


@pytest.mark.parametrize(
    ("name", "rest", "told"),
    [
        ("kl005_e4", "kl005", {"epoch": "4"}),
        ("grpo_kl0.20/eval_ep3", "grpo_kl0.20/eval", {"epoch": "3"}),
        ("grpo-beta0.04-s23/trainer_state", "grpo-beta0.04/trainer_state", {"seed": "23"}),
        ("kl022/eval_epoch2_n200", "kl022/eval", {"epoch": "2", "size": "200"}),
        ("grpo_beta0", "grpo_beta0", {}),
    ],
)
def test_names_spell_out_epochs_seeds_and_sizes(name, rest, told):
    assert spelled(name) == (rest, told)


def test_a_change_with_the_wrong_sign_is_no_range(tmp_path):
    rows = [(1.878, 1.709), (1.759, 1.991), (1.701, 1.908), (1.540, 1.718)]
    lines = ["# Halves", "", "| run | first half | second half | change |", "|---|---|---|---|"]
    for n, (one, other) in enumerate(rows):
        lines.append(f"| run {n} | {one:.3f} | {other:.3f} | {other - one:+.3f} |")
    text = "\n".join([*lines, ""])
    wrong = [one for one in marks(tmp_path / "r.md", text) if one.state == "wrong"]
    assert not wrong
    found = marks(tmp_path / "r.md", text.replace("-0.169", "+0.169"))
    assert [(one.line, one.text) for one in found if one.state == "wrong"] == [(5, "+0.169")]


def test_a_row_of_what_each_adds_is_held_to_the_one_before(tmp_path):
    lines = ["# Serving", "", "| at 2 GPUs | 1 shot | 2 shots | 3 shots | 4 shots |"]
    lines += ["|---|---|---|---|---|", "| Latency (ms) | 375 | 468 | 573 | 675 |"]
    text = "\n".join([*lines, "| Added latency (ms) | — | +93 | +105 | +102 |", ""])
    assert not [one for one in marks(tmp_path / "r.md", text) if one.state == "wrong"]
    found = marks(tmp_path / "r.md", text.replace("+105", "+115"))
    assert [(one.line, one.text) for one in found if one.state == "wrong"] == [(6, "+115")]


def test_a_mean_may_be_of_points_as_they_are_printed(tmp_path):
    """0.7506 is their mean, 0.7502 that of 0.700, 0.725, 0.750, 0.775 and 0.801."""
    points = {"kl0": (0.7004, 0.7254, 0.7504, 0.7754, 0.8014)}
    for nth, run in enumerate(("kl0.01", "kl0.1", "kl1"), 1):
        points[run] = tuple(round(0.6 + Random(f"{nth} {n}").random() / 3, 3) for n in range(5))
    lines = ["# Runs", "", "| run | mean reward | last reward |", "|---|---|---|"]
    for run, values in points.items():
        rows = [json.dumps({"step": 10 * n, "reward": x}) for n, x in enumerate(values, 1)]
        (tmp_path / "logs" / run).mkdir(parents=True)
        text = "\n".join(rows)
        (tmp_path / "logs" / run / "metrics.jsonl").write_text(text, encoding="utf-8")
        mean = sum(round(x, 3) for x in values) / 5
        lines.append(f"| {run} | {mean:.3f} | {values[-1]:.3f} |")
    text = "\n".join([*lines, ""])
    assert "| kl0 | 0.750 | 0.801 |" in text
    assert not held(tmp_path, text, [tmp_path / "logs"])
    assert held(tmp_path, text.replace("0.750", "0.753"), [tmp_path / "logs"])


def best_epochs(size=1000):
    """A table of the best epoch of each arm, with its mean over shots."""
    lines = ["# Bests", "", "| selector | best epoch | mean |", "|---|---|---|"]
    for arm, name in zip(ARMS, SHOWN, strict=True):
        means = {
            epoch: sum(accuracy(arm, epoch, size, shots) for shots in SHOTS) / 4
            for epoch in (1, 2, 3)
        }
        best = max(means, key=means.__getitem__)
        lines.append(f"| {name} | {best} | {means[best] + 1e-9:.2f} |")
    return "\n".join([*lines, ""])


def test_the_best_epoch_beside_a_best_is_where_logs_have_it(tmp_path):
    text, logs = best_epochs(), filed(tmp_path)
    assert not held(tmp_path, text, logs)
    lines = text.split("\n")
    name, best, mean = lines[7].strip("| ").split(" | ")
    other = str(int(best) % 3 + 1)
    lines[7] = f"| {name} | {other} | {mean} |"
    assert held(tmp_path, "\n".join(lines), logs) == {(8, other, best)}


def test_a_row_is_not_called_by_a_step_at_which_it_was_not_measured(tmp_path):
    lines = by_shots(epoch=2).split("\n")
    for nth in range(4, 9):
        lines[nth] = lines[nth].replace(" | ", ", epoch 2 | ", 1)
    assert not held(tmp_path, "\n".join(lines), filed(tmp_path))
    lines[7] = lines[7].replace("epoch 2", "epoch 3")
    found = held(tmp_path, "\n".join(lines), filed(tmp_path))
    assert found == {(8, "β=0.10, epoch 3", "epoch 2")}


def test_objects_under_the_names_of_another_are_its_rows(tmp_path):
    sizes = {"strings": 100, "arrays": 150, "graphs": 60, "proofs": 90, "heaps": 110, "trees": 70}
    right = {}
    for run in ("code_kl0.001", "code_kl0.01"):
        evals = []
        for step in (0, 50, 100):
            rows = {
                part: {"n": n, "correct": Random(f"{run}{step}{part}").randrange(n // 3, n)}
                for part, n in sizes.items()
            }
            right |= {(run, step, part): row["correct"] / row["n"] for part, row in rows.items()}
            evals.append({"step": step, "categories": rows})
        (tmp_path / "logs").mkdir(exist_ok=True)
        told = json.dumps({"task": "code", "evals": evals})
        (tmp_path / "logs" / f"eval_{run}.json").write_text(told, encoding="utf-8")
    lines = ["# Parts", "", "| part | kl 0.001 | kl 0.01 |", "|---|---|---|"]
    for part in sizes:
        shares = (right[run, 100, part] for run in ("code_kl0.001", "code_kl0.01"))
        lines.append(f"| {part} | {' | '.join(f'{100 * x + 1e-9:.1f}' for x in shares)} |")
    text = "\n".join([*lines, ""])
    assert not held(tmp_path, text, [tmp_path / "logs"])
    share = f"{100 * right['code_kl0.001', 100, 'graphs'] + 1e-9:.1f}"
    wrong = f"{float(share) + 3:.1f}"
    found = held(tmp_path, text.replace(share, wrong, 1), [tmp_path / "logs"])
    assert found == {(7, wrong, share)}


def test_several_sets_that_were_validated_are_told_apart(tmp_path):
    """All are validation rewards by their names, and each has its own."""
    (tmp_path / "logs").mkdir()
    runs, steps, sets = ("run_kl0.0", "run_kl0.01", "run_kl0.1"), (0, 20, 40, 60), ("search", "sql")
    values = {
        (run, one, step): round(0.3 + Random(f"{run}{one}{step}").random() / 2, 3)
        for run in runs for one in sets for step in steps
    }  # fmt: skip
    for run in runs:
        rows = []
        for step in steps:
            told = (f"val-core/{one}/reward/mean@1:{values[run, one, step]:.6f}" for one in sets)
            rows.append(f"(main pid=7) step:{step} - {' - '.join(told)}")
        text = "\n".join([*rows, ""])  # a last line without an end may be cut off
        (tmp_path / "logs" / f"{run}.log").write_text(text, encoding="utf-8")
    lines = ["# SQL", "", f"| kl | {' | '.join(f'step {step}' for step in steps)} |"]
    lines.append("|---|---|---|---|---|")
    for run in runs:
        row = (f"{values[run, 'sql', step]:.3f}" for step in steps)
        lines.append(f"| {run.removeprefix('run_kl')} | {' | '.join(row)} |")
    found = marks(tmp_path / "r.md", "\n".join([*lines, ""]), [tmp_path / "logs"])
    assert Counter(one.code for one in found if one.line >= 5)["check.log"] == 12


def test_a_total_of_shares_is_no_sum(tmp_path):
    """It is their mean by the number of questions, which stands beside them."""
    rows = (("strings", 100, 53), ("arrays", 150, 70), ("graphs", 60, 17), ("proofs", 90, 40))
    lines = ["# Parts", "", "| part | questions | start (%) | end (%) |", "|---|---|---|---|"]
    for name, count, right in (*rows, ("total", 400, 180)):
        shares = (100 * right / count, 100 * (right + count // 10) / count)
        lines.append(f"| {name} | {count} | {' | '.join(f'{x:.1f}' for x in shares)} |")
    text = "\n".join([*lines, ""])
    assert not [one for one in marks(tmp_path / "r.md", text) if one.state == "wrong"]


# --- deviations, windows, hours and the steps of bests


def seeded(folder, seeds=(11, 22, 33)):
    """Rewards of three arms and seeds at every tenth step, with the seconds of each step."""
    rows = []
    for arm in ("kl0.01", "kl0.04", "kl0.1"):
        for seed in seeds:
            drawn = Random(f"{arm} {seed}")
            for step in range(10, 101, 10):
                value = 0.4 + step / 500 + drawn.uniform(-0.08, 0.08)
                rows.append(f"{arm},{seed},{step},{value:.4f},{drawn.uniform(900, 1400):.1f}")
    (folder / "logs").mkdir(exist_ok=True)
    text = "\n".join(["arm,seed,step,reward,seconds", *rows])
    (folder / "logs" / "runs.csv").write_text(text, encoding="utf-8")
    return [folder / "logs"]


def rewards(folder, column=3):
    """By arm and seed the numbers of all its steps."""
    text = (folder / "logs" / "runs.csv").read_text(encoding="utf-8")
    found = {}
    for line in text.split("\n")[1:]:
        cells = line.split(",")
        found.setdefault((cells[0], cells[1]), {})[int(cells[2])] = float(cells[column])
    return found


def changed_by_one(text, shown):
    """A table with one number off by one in its last digit, and that number."""
    decimals = len(shown.partition(".")[2])
    other = f"{float(shown) + 10.0**-decimals:.{decimals}f}"
    assert text.count(f" {shown} ") == 1
    return text.replace(f" {shown} ", f" {other} "), other


def test_deviations_over_seeds_are_held(tmp_path):
    logs = seeded(tmp_path)
    lines = ["# Seeds", "", "| arm | seed 11 | seed 22 | seed 33 | mean | std |"]
    lines.append("|---|---|---|---|---|---|")
    shown = []
    for arm in ("kl0.01", "kl0.04", "kl0.1"):
        last = [rewards(tmp_path)[arm, f"{seed}"][100] for seed in (11, 22, 33)]
        shown.append(f"{stdev(last):.4f}")
        cells = [*(f"{x:.4f}" for x in last), f"{mean(last):.4f}", shown[-1]]
        lines.append(f"| {arm} | {' | '.join(cells)} |")
    text = "\n".join([*lines, ""])
    assert not held(tmp_path, text, logs)
    off, other = changed_by_one(text, shown[1])
    assert held(tmp_path, off, logs) == {(6, other, shown[1])}


def by_records(folder, text, logs):
    """What records alone have otherwise: curves know some of it too."""
    (folder / "r.md").write_text(text, encoding="utf-8")
    page, draft = read_page(folder / "r.md"), draft_of(text, folder / "r.md")
    tables = sheets(grids(draft))
    every = filed_in(tables, on_file(logs_of(logs, draft.source), tables), page)
    right = sum(one.mark.state == "right" for one in every)
    return right, {(one.line, one.mark.text) for one in every if one.mark.state == "wrong"}


def test_means_over_stretches_of_steps_are_held(tmp_path):
    logs = seeded(tmp_path, seeds=(11,))
    lines = [
        "# Windows",
        "",
        "| arm | step 10–30 | step 40–60 | step 70–100 |",
        "|---|---|---|---|",
    ]
    for arm in ("kl0.01", "kl0.04", "kl0.1"):
        own = rewards(tmp_path)[arm, "11"]
        parts = ((10, 30), (40, 60), (70, 100))
        means = [mean(own[at] for at in own if low <= at <= high) for low, high in parts]
        lines.append(f"| {arm} | {' | '.join(f'{x:.4f}' for x in means)} |")
    text = "\n".join([*lines, ""])
    assert by_records(tmp_path, text, logs) == (9, set())
    shown = lines[5].split(" | ")[2]
    off, other = changed_by_one(text, shown)
    assert by_records(tmp_path, off, logs) == (8, {(6, other)})


def test_hours_are_of_the_seconds_of_all_steps(tmp_path):
    logs = seeded(tmp_path, seeds=(11,))
    lines = ["# Cost", "", "| arm | hours | last reward |", "|---|---|---|"]
    for arm in ("kl0.01", "kl0.04", "kl0.1"):
        hours = sum(rewards(tmp_path, 4)[arm, "11"].values()) / 3600
        lines.append(f"| {arm} | {hours:.3f} | {rewards(tmp_path)[arm, '11'][100]:.4f} |")
    text = "\n".join([*lines, ""])
    assert by_records(tmp_path, text, logs) == (6, set())
    shown = lines[5].split(" | ")[1]
    off, other = changed_by_one(text, shown)
    assert by_records(tmp_path, off, logs) == (5, {(6, other)})


@pytest.mark.parametrize(
    ("row", "cut"),
    [
        ("| {arm} | checkpoint-{step} | {best:.4f} |", "checkpoint-{step}"),
        ("| {arm} | {step} | {best:.4f} |", "| {step} |"),
        ("| {arm} | - | {step} ({best:.4f}) |", "{step} ("),
    ],
)
def test_the_step_of_a_best_is_that_at_which_its_run_has_it(tmp_path, row, cut):
    logs = seeded(tmp_path, seeds=(11,))
    lines = ["# Bests", "", "| arm | best step | best reward |", "|---|---|---|"]
    tops = {}
    for arm in ("kl0.01", "kl0.04", "kl0.1"):
        own = rewards(tmp_path)[arm, "11"]
        tops[arm] = max(own, key=own.__getitem__)
        lines.append(row.format(arm=arm, step=tops[arm], best=own[tops[arm]]))
    text = "\n".join([*lines, ""])
    assert not held(tmp_path, text, logs)
    other = 10 + tops["kl0.04"] % 100
    lines[5] = lines[5].replace(cut.format(step=tops["kl0.04"]), cut.format(step=other))
    found = held(tmp_path, "\n".join([*lines, ""]), logs)
    assert {(line, value) for line, _, value in found} == {(6, f"{tops['kl0.04']}")}


def test_the_mean_of_a_long_run_is_not_that_of_rounded_steps():
    rows = [Record({"step": f"{n}", "arm": "a"}, {"x": (2.046, 2.043)[n % 2]}, "f")
            for n in range(40)]  # fmt: skip
    rows += [Record({"step": f"{n}", "arm": "b"}, {"x": 2.046}, "f") for n in range(3)]
    (column,) = columns_of(rows)
    steps = column.axes.index("step")
    means = np.flatnonzero(column.codes[:, steps] == MEAN)
    long, short = (one for one in means if column.codes[one, 1 - steps] >= 0)
    assert column.rounded(1.0, 2)[long] == 2.04  # not 2.045, the mean of what would be printed
    assert column.rounded(1.0, 2)[short] == pytest.approx(2.05)
    assert column.values[short] == pytest.approx(2.046)


def test_a_deviation_of_means_is_of_the_means_as_printed():
    shots = {1: (63.69, 63.69, 63.70), 2: (63.80, 63.80, 63.79), 3: (63.88, 63.88, 63.89)}
    rows = [Record({"seed": f"{seed}", "shots": f"{n}"}, {"x": value}, "f")
            for seed, values in shots.items() for n, value in enumerate(values, 1)]  # fmt: skip
    (column,) = columns_of(rows)
    seeds = column.axes.index("seed")
    told = (column.codes[:, seeds] == DEVIATION) & (column.codes[:, 1 - seeds] == MEAN)
    (at,) = np.flatnonzero(told)
    assert column.rounded(1.0, 2)[at] == pytest.approx(stdev([63.69, 63.80, 63.88]), abs=1e-9)
    assert column.values[at] != pytest.approx(stdev([63.69, 63.80, 63.88]), abs=1e-4)


def test_rows_of_means_have_no_steps_of_bests_and_a_step_is_of_the_best_beside_it(tmp_path):
    """The mean of best steps is no step; 17.71 is highest elsewhere, but it is not called best."""
    logs = seeded(tmp_path, seeds=(11,))
    apart, tops, lines = 0, [], ["# Bests", "", "| arm | seconds | best step | best reward |"]
    lines.append("|---|---|---|---|")
    for arm in ("kl0.01", "kl0.04", "kl0.1"):
        own, seconds = rewards(tmp_path)[arm, "11"], rewards(tmp_path, 4)[arm, "11"]
        tops.append(max(own, key=own.__getitem__))
        most = max(seconds.values())
        apart += seconds[tops[-1]] != most
        lines.append(f"| {arm} | {most:.1f} | {tops[-1]} | {own[tops[-1]]:.4f} |")
    best = mean(max(own.values()) for own in rewards(tmp_path).values())
    lines.append(f"| mean | - | {round(mean(tops))} | {best:.4f} |")
    assert apart
    assert not by_records(tmp_path, "\n".join([*lines, ""]), logs)[1]
