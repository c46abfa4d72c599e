"""Logs are taken as they are written: items by their names, numbers in their unit, runs to their
true end."""

import json
import math
import struct
from contextlib import chdir

import numpy as np
import pytest
from typer.testing import CliRunner

from kleash.cli import app
from kleash.compare.arms import gather
from kleash.compare.checks import find
from kleash.compare.comparison import Wish, compare
from kleash.compare.read import read, wire
from kleash.errors import ConfigError, DataError
from kleash.report import screen

ALIKE = ["1", "01", "1.0", "1e0", "NA", "none", "null", "?", "-", "12345678901234567"]
ALIKE += ["12345678901234568"]


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def lines(rows):
    return "".join(json.dumps(row) + "\n" for row in rows)


def items_of(path):
    [run] = read(path).runs
    return list(run.scores[0].items)


def level(*paths, **wish):
    found = compare([read(path) for path in paths], Wish(**wish))
    return next(each for each in found.verdicts if each.question == "level")


# --- items are called what their file calls them


def test_items_of_a_table_keep_their_text(tmp_path):
    rows = "".join(f"{name},1\n" for name in ALIKE)
    assert items_of(write(tmp_path / "a.csv", "item,score\n" + rows)) == ALIKE


def test_items_of_json_lines_keep_their_digits(tmp_path):
    names = [*ALIKE, 1, 12345678901234567, 1.5, True]
    path = write(tmp_path / "a.jsonl", lines({"item": name, "score": 1} for name in names))
    assert items_of(path) == [*ALIKE, "1", "12345678901234567", "1.5", "True"]
    # Rows with little in common are taken one by one.
    sparse = [{"item": name, "score": 1, f"x{at}": 0} for at, name in enumerate(names)]
    assert items_of(write(tmp_path / "b.jsonl", lines(sparse))) == items_of(path)


def test_a_decimal_that_has_lost_the_digits_of_a_name_is_refused(tmp_path):
    rows = [{"item": 12345678901234567.0, "score": 1}]
    with pytest.raises(DataError, match=r"1\.2345678901234568e\+16.* as text"):
        read(write(tmp_path / "a.jsonl", lines(rows)))


def test_items_with_a_column_for_each_run_keep_their_names(tmp_path):
    rows = [{"id": 12345678901234560 + at, "kl0": 0.5, "kl0.1": at / 50} for at in range(40)]
    for path in (
        write(tmp_path / "a.json", json.dumps(rows)),
        write(
            tmp_path / "b.csv",
            "\n".join(["id,kl0,kl0.1", *(",".join(map(str, row.values())) for row in rows)]),
        ),
    ):
        first, _ = read(path).runs
        assert list(first.scores[0].items) == [str(row["id"]) for row in rows]


def test_rows_that_name_no_item_are_told_and_are_none(tmp_path):
    source = read(write(tmp_path / "a.csv", "item,score\nq1,1\n,0\nq2,0\n,1\n"))
    assert list(source.runs[0].scores[0].items) == ["q1", "q2"]
    assert any("2 rows name no item" in note for note in source.notes)


def test_neighbours_among_long_ids_are_compared_as_the_items_they_are(tmp_path):
    paths = []
    for arm in range(2):
        rows = "".join(f"{12345678901234560 + at},{(at + arm) % 2}\n" for at in range(100))
        paths.append(write(tmp_path / f"kl{arm}.csv", "item,score\n" + rows))
    assert level(*paths).n == 100


def test_an_arm_may_be_called_none(tmp_path):
    rows = "".join(f"{arm},{step},0.{step}\n" for arm in ("none", "NA", "kl") for step in (1, 2, 3))
    for column in ("arm", "method"):
        source = read(write(tmp_path / f"{column}.csv", f"{column},step,reward\n" + rows))
        assert [run.name for run in source.runs] == ["none", "NA", "kl"]


@pytest.mark.parametrize("metric", ["val_loss", "eval_loss", "validation loss"])
def test_a_row_for_each_item_is_a_score_of_it_whatever_the_metric(tmp_path, metric):
    rng = np.random.default_rng(0)
    rows = [
        {"arm": arm, "item": item, metric: round(2.0 + 0.3 * (arm == "kl") + rng.normal() / 5, 3)}
        for arm in ("none", "kl")
        for item in range(60)
    ]
    table = f"arm,item,{metric}\n" + "".join(",".join(map(str, r.values())) + "\n" for r in rows)
    for path in (write(tmp_path / "a.csv", table), write(tmp_path / "b.jsonl", lines(rows))):
        found = level(path, baseline="none")
        assert (found.n, found.counted, found.verdict) == (60, "items", "worse")
        means = [np.mean([r[metric] for r in rows if r["arm"] == arm]) for arm in ("kl", "none")]
        assert found.estimate == pytest.approx(means[0] - means[1])


def test_a_row_for_each_run_is_no_item_though_it_has_an_id(tmp_path):
    path = write(tmp_path / "a.csv", "id,arm,val_loss\n1,kl0,2.1\n2,kl0.1,2.3\n")
    assert [len(run.cells) for run in read(path).runs if not run.scores] == [2, 2]


# --- percent and fraction


def curve(path, values, metric="accuracy", first=1):
    rows = ({"step": 5 * at, metric: value} for at, value in enumerate(values, first))
    return write(path, lines(rows))


def shares(middle, n=20, seed=0):
    return (middle + np.random.default_rng(seed).normal(0, 0.01, n)).tolist()


def percents(middle, **more):
    return [100 * each for each in shares(middle, **more)]


def codes(judged):
    return [each.code for each in judged.because]


def test_one_log_in_percent_and_one_in_fractions_is_a_question(tmp_path):
    curve(tmp_path / "a.jsonl", percents(0.57))
    curve(tmp_path / "b.jsonl", shares(0.58, seed=1))
    for paths in ([tmp_path], [tmp_path / "a.jsonl", tmp_path / "b.jsonl"]):
        with pytest.raises(DataError, match="accuracy=percent or --unit accuracy=fraction") as said:
            level(*paths)
        assert "up to 59.4" in str(said.value) or "up to 58." in str(said.value)
        answered = level(*paths, units=("accuracy=fraction",))
        assert abs(answered.estimate) == pytest.approx(0.01, abs=0.01)
        answered = level(*paths, units=("accuracy=percent",))
        assert abs(answered.estimate) == pytest.approx(0.57 - 0.0058, abs=0.01)


def test_a_folder_and_its_files_are_read_alike(tmp_path):
    for name, values in (("a", percents(0.57)), ("b", percents(0.60, seed=1))):
        curve(tmp_path / f"{name}.jsonl", values)
    whole = level(tmp_path)
    single = level(tmp_path / "a.jsonl", tmp_path / "b.jsonl")
    assert whole.estimate == single.estimate == pytest.approx(0.03, abs=0.01)
    for judged in (whole, single):
        assert "read_as_percent" in codes(judged)


def test_fractions_are_fractions_without_a_word(tmp_path):
    curve(tmp_path / "a.jsonl", shares(0.57))
    curve(tmp_path / "b.jsonl", shares(0.60))
    assert not {"read_as_percent", "no_share"} & set(codes(level(tmp_path)))


@pytest.mark.parametrize("at", [0, 7, 19])
def test_one_stray_value_divides_no_curve(tmp_path, at):
    ours = shares(0.60, seed=1)
    curve(tmp_path / "a.jsonl", shares(0.57))
    clean = level(curve(tmp_path / "clean/b.jsonl", ours), tmp_path / "a.jsonl")
    ours[at] = 2.0
    curve(tmp_path / "b.jsonl", ours)
    judged = level(tmp_path / "b.jsonl", tmp_path / "a.jsonl")
    assert judged.estimate == pytest.approx(clean.estimate, abs=0.003)
    assert "no_share" in codes(judged)
    told = next(each.facts for each in judged.because if each.code == "no_share")
    assert (told["value"], told["step"]) == (2.0, 5 * (at + 1))


def test_a_curve_that_climbs_through_one_percent_is_one_of_percents(tmp_path):
    rising = np.linspace(0, 30, 40).tolist()
    curve(tmp_path / "a.jsonl", rising)
    curve(tmp_path / "b.jsonl", [0.9 * each for each in rising])
    assert level(tmp_path, baseline="b").estimate == pytest.approx(0.015, abs=0.016)
    [run] = read(tmp_path / "a.jsonl").runs
    assert run.series[0].values[-1] == pytest.approx(0.3)


def test_values_on_both_sides_of_one_are_asked_about(tmp_path):
    curve(tmp_path / "a.jsonl", np.linspace(0.2, 2.4, 20).tolist())
    curve(tmp_path / "b.jsonl", np.linspace(0.2, 0.9, 20).tolist())
    with pytest.raises(DataError, match="--unit accuracy="):
        level(tmp_path)
    assert level(tmp_path, units=("accuracy=percent",)).estimate is not None


def test_scores_of_items_in_percent_are_percent_though_most_are_zero(tmp_path):
    for name, hits in (("a", 30), ("b", 40)):
        rows = ({"item": at, "acc": 100 * (at < hits)} for at in range(100))
        write(tmp_path / f"{name}.jsonl", lines(rows))
    assert abs(level(tmp_path).estimate) == pytest.approx(0.1)


def test_a_metric_that_is_not_judged_by_asks_nothing(tmp_path):
    for name, scale in (("a", 1), ("b", 100)):
        rows = [
            {"step": at, "reward": 1.0 + at / 10, "mfu": 0.3 * scale, "accuracy": 0.5 * scale}
            for at in range(1, 11)
        ]
        write(tmp_path / f"{name}.jsonl", lines(rows))
    assert level(tmp_path, on="reward").metric == "reward"


def test_a_name_may_say_its_unit(tmp_path):
    curve(tmp_path / "a.jsonl", [0.4, 0.8, 1.1, 0.9], metric="accuracy (%)")
    [run] = read(tmp_path / "a.jsonl").runs
    assert run.series[0].values.tolist() == pytest.approx([0.004, 0.008, 0.011, 0.009])


def test_a_unit_that_is_none_is_an_error(tmp_path):
    curve(tmp_path / "a.jsonl", shares(0.57))
    curve(tmp_path / "b.jsonl", shares(0.60))
    for unit in ("accuracy=points", "accuracy", "reward=percent"):
        with pytest.raises(ConfigError, match="--unit"):
            level(tmp_path, units=(unit,))


# --- a run that was resumed


def logged(path, *branches, metric="reward", start=0.0):
    """A log of branches of (step, value)."""
    return write(path, lines({"step": s, metric: v} for branch in branches for s, v in branch))


def branch(first, last, level, every=5):
    return [(step, level + step / 1000) for step in range(first, last + 1, every)]


def curve_of(path, metric="reward"):
    [arm] = gather([read(path)])
    return arm.replicates[0].curves[metric, "step"]


def test_the_last_branch_of_a_resumed_log_is_its_end(tmp_path):
    path = logged(tmp_path / "a.jsonl", branch(5, 100, 1.0), branch(55, 80, 2.0))
    held = curve_of(path)
    assert held.steps.tolist() == list(range(5, 81, 5))
    assert (held.values[9], held.values[10]) == (1.05, 2.055)
    # At other steps than before: those between are not of the run that went on.
    held = curve_of(logged(tmp_path / "b.jsonl", branch(5, 100, 1.0), branch(52, 92, 2.0, 10)))
    assert held.steps.tolist() == [*range(5, 51, 5), 52, 62, 72, 82, 92]


def test_a_run_resumed_twice_ends_as_it_ended(tmp_path):
    path = logged(
        tmp_path / "a.jsonl", branch(5, 100, 1.0), branch(55, 90, 2.0), branch(30, 45, 3.0)
    )
    held = curve_of(path)
    assert held.steps.tolist() == list(range(5, 46, 5))
    assert held.values.tolist() == pytest.approx(
        [1 + s / 1000 for s in range(5, 30, 5)] + [3 + s / 1000 for s in range(30, 46, 5)]
    )


def test_what_was_not_measured_again_since_a_restart_is_of_the_dead_branch(tmp_path):
    def rows(first, last, level):
        for step in range(first, last + 1):
            more = {"val/reward": level} if step % 20 == 0 else {}
            yield {"step": step, "reward": level} | more

    path = write(tmp_path / "a.jsonl", lines([*rows(1, 100, 1.0), *rows(61, 75, 2.0)]))
    assert curve_of(path).steps[-1] == 75
    assert curve_of(path, "eval_reward").steps.tolist() == [20, 40, 60]


def test_a_restart_is_told_with_what_was_left_out(tmp_path):
    path = logged(tmp_path / "a.jsonl", branch(5, 100, 1.0), branch(55, 80, 2.0))
    [one] = [each for each in find([read(path)]) if each.code == "step-restart"]
    assert (one.facts["at"], one.facts["back"], one.facts["dropped"]) == (100, 55, 10)


@pytest.mark.parametrize("seed", range(5))
def test_a_table_in_no_order_is_one_curve(tmp_path, seed):
    steps = list(range(5, 101, 5))
    for rows in (steps[::-1], np.random.default_rng(seed).permutation(steps).tolist()):
        path = write(tmp_path / "a.csv", "step,reward\n" + "".join(f"{s},{s / 10}\n" for s in rows))
        held = curve_of(path)
        assert held.steps.tolist() == steps
        assert held.values.tolist() == [s / 10 for s in steps]


def test_counters_that_begin_anew_each_epoch_take_nothing_from_other_curves(tmp_path):
    rows = [{"step": step, "val/reward": step / 10} for step in range(1, 31)]
    rows += [{"step": step, "reward": epoch} for epoch in range(3) for step in range(1, 11)]
    path = write(tmp_path / "a.jsonl", lines(rows))
    assert len(curve_of(path, "eval_reward")) == 30


def event(time, step, value):
    """A scalar called reward as TensorBoard keeps it: framed, with its checksums."""
    scalar = b"\x0a\x06reward\x15" + struct.pack("<f", value)
    summary = b"\x0a" + bytes([len(scalar)]) + scalar
    data = b"\x09" + struct.pack("<d", time) + b"\x10" + bytes([step])
    data += b"\x2a" + bytes([len(summary)]) + summary
    length = struct.pack("<Q", len(data))
    sums = [struct.pack("<I", wire.masked(wire.crc32c(part))) for part in (length, data)]
    return length + sums[0] + data + sums[1]


def test_events_of_a_resumed_run_go_on_in_another_file(tmp_path):
    values = [(step, 1.0) for step in range(1, 11)], [(step, 2.0) for step in range(6, 9)]
    for at, part in enumerate(values):
        file = tmp_path / f"run/events.out.tfevents.17000000{at}0.host"
        file.parent.mkdir(exist_ok=True)
        file.write_bytes(b"".join(event(1.7e9 + 100 * at + s, s, v) for s, v in part))
    held = curve_of(tmp_path / "run")
    assert held.steps.tolist() == list(range(1, 9))
    assert held.values.tolist() == [1.0] * 5 + [2.0] * 3


def test_seeds_that_one_arm_lacks_are_told(tmp_path):
    rng = np.random.default_rng(0)
    table = "arm,seed,accuracy\n" + "".join(
        f"{arm},{seed},{0.5 + rng.normal() / 50:.4f}\n"
        for arm, seeds in (("kl0", (1, 2, 3, 4, 5, 7)), ("kl0.1", (1, 2, 3, 4, 5, 6)))
        for seed in seeds
    )
    judged = level(write(tmp_path / "a.csv", table))
    told = [each.facts for each in judged.because if each.code == "seeds_of_one_arm"]
    assert told == [
        {"arm": "kl0.1", "seeds": [6], "other": "kl0"},
        {"arm": "kl0", "seeds": [7], "other": "kl0.1"},
    ]


def test_the_names_of_items_change_nothing_in_a_draw(tmp_path):
    rng = np.random.default_rng(1)
    scores = (rng.random((3, 120)) < [[0.5], [0.55], [0.66]]).astype(int)

    def judged(folder, order):
        rows = (
            f"kl{arm},{order[item]:04d},{scores[arm, item]}\n"
            for arm in range(3)
            for item in range(120)
        )
        path = write(tmp_path / folder / "a.csv", "arm,item,score\n" + "".join(rows))
        return [
            (each.question, each.arms, each.verdict, each.low, each.high, each.p, each.adjusted_p)
            for each in compare([read(path)]).verdicts
        ]

    assert judged("a", range(120)) == judged("b", rng.permutation(120))


# --- a run that ended in no numbers


def trained(path, ends=(), n=40, seed=0, metric="accuracy", **more):
    rng = np.random.default_rng(seed)
    rows = [{"step": 5 * at, metric: 0.5 + rng.normal() / 50} | more for at in range(1, n + 1)]
    for row, value in zip(rows[len(rows) - len(ends) :], ends, strict=True):
        row.update(value if isinstance(value, dict) else {metric: value})
    return write(path, lines(rows))


@pytest.mark.parametrize("gone", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("what", ["accuracy", "loss"])
def test_a_run_that_ends_in_no_numbers_diverged_and_is_compared_with_nothing(tmp_path, gone, what):
    trained(tmp_path / "a.jsonl", loss=0.1)
    trained(tmp_path / "b.jsonl", [{what: gone}] * 10, seed=1, loss=0.1)
    found = compare([read(tmp_path)])
    first = min(found.verdicts, key=screen.rank)
    assert (first.question, first.arms, first.verdict) == ("diverged", ("b",), "diverged")
    facts = first.because[0].facts
    assert (facts["step"], facts["last"], facts["count"]) == (155, 200, 10)
    [judged] = [each for each in found.verdicts if each.question == "level"]
    assert (judged.verdict, judged.estimate, judged.p) == ("diverged", None, None)
    pairs = {each.question for each in found.verdicts if len(each.arms) > 1}
    assert pairs <= {"level", "recommend"}
    assert [each.facts["at"] for each in found.findings if each.code == "diverged"] == ["step 155"]
    with chdir(tmp_path):
        page = CliRunner().invoke(app, ["report", "a.jsonl", "b.jsonl", "--lang", "en"]).stdout
    assert page.split("## Verdict")[1].lstrip().startswith("b diverged at step 155")
    for language in ("en", "zh"):
        text = screen.terminal(found, language)
        assert "155" in text.split("\n- ")[1] and "b" in text.split("\n- ")[1]


def test_an_arm_with_a_diverged_run_is_not_recommended_nor_the_baseline(tmp_path):
    rng = np.random.default_rng(0)
    rows = []
    for arm, gain in (("kl0", 0.0), ("kl0.1", 0.2), ("kl0.2", 0.4)):
        for seed in range(5):
            for step in range(1, 21):
                value = 1 + gain + rng.normal() / 20
                if (arm, seed) in (("kl0.2", 3), ("kl0", 1)) and step > 15:
                    value = math.nan
                rows.append({"arm": arm, "seed": seed, "step": step, "reward": value})
    found = compare([read(write(tmp_path / "a.jsonl", lines(rows)))])
    assert found.baseline == "kl0.1"
    told = {
        each.arms[0]: each.because[0].facts
        for each in found.verdicts
        if each.question == "diverged"
    }
    assert {arm: (facts["runs"], facts["of"]) for arm, facts in told.items()} == {
        "kl0": (1, 5), "kl0.2": (1, 5)
    }  # fmt: skip
    [last] = [each for each in found.verdicts if each.question == "recommend"]
    assert not last.verdict.startswith("better")


def test_gaps_written_as_nan_are_no_divergence(tmp_path):
    for name in "ab":
        rows = [
            {"step": step, "accuracy": 0.5 if step % 5 == 0 else math.nan} for step in range(1, 44)
        ]
        write(tmp_path / f"{name}.jsonl", lines(rows))
    assert not [each for each in compare([read(tmp_path)]).verdicts if each.question == "diverged"]


def test_a_cost_that_is_not_measured_at_the_end_is_no_divergence(tmp_path):
    for name in "ab":
        trained(tmp_path / f"{name}.jsonl", [{"step_time": math.nan}] * 5, step_time=2.0)
    assert not [each for each in compare([read(tmp_path)]).verdicts if each.question == "diverged"]


def test_a_run_that_was_resumed_before_it_diverged_did_not(tmp_path):
    dead = [(step, math.nan) for step in range(105, 131, 5)]
    logged(tmp_path / "a.jsonl", branch(5, 100, 1.0), dead, branch(80, 150, 1.0))
    logged(tmp_path / "b.jsonl", branch(5, 150, 1.0))
    assert not [each for each in compare([read(tmp_path)]).verdicts if each.question == "diverged"]
