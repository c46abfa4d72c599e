"""Every code has a made-up source that trips its rule and a near one that does not."""

import os
import re
from pathlib import Path
from string import Formatter

import numpy as np
import pytest

from kleash.compare.checks import CHECKS, find
from kleash.compare.checks.histories import content, settings_differ
from kleash.compare.checks.learning import uniform_loss
from kleash.compare.read import (
    Cell,
    Derived,
    Fact,
    Imported,
    Number,
    Scores,
    Series,
    Setting,
    Source,
    Where,
)

HERE = Where("report.md", 1)


def number(value, decimals=3, *, state="known", line=1, **more):
    return Number(value, state, Where("report.md", line), decimals, **more)


def series(metric, values, *, steps=None, axis="step", decimals=3, **more):
    places = range(1, len(values) + 1) if steps is None else steps
    lines = np.array(more.pop("lines", [1] * len(values)))
    estimated = more.pop("estimated", None)
    return Series(
        metric,
        axis,
        np.array(list(places), dtype=float),
        np.array(values, dtype=float),
        Where("report.md", int(lines[0])),
        decimals=decimals,
        lines=lines,
        estimated=None if estimated is None else np.array(estimated, dtype=bool),
        **more,
    )


def epochs(metric, *values, decimals=5):
    return series(metric, values, axis="epoch", decimals=decimals)


def cell(metric, value, decimals=3, **more):
    return Cell(metric, number(value, decimals), **more)


def run(arm, *parts, config=None, file="report.md", kind="markdown", **more):
    made = Imported(arm, arm, kind, Where(file, 1), **more)
    made.config = {key: Setting(value, HERE) for key, value in (config or {}).items()}
    for part in parts:
        where = {Series: made.series, Cell: made.cells, Scores: made.scores}[type(part)]
        where.append(part)
    return made


def source(*runs, derived=(), facts=(), tables=(), path="report.md"):
    return Source(
        path,
        "markdown",
        list(runs),
        derived=list(derived),
        facts=list(facts),
        tables=list(tables),
    )


def noticed(code):
    """Two runs of an arm and one of another; a guard of one noticed something twice."""
    told = [(code, 32, Where("metrics.jsonl", 34)), (code, 64, Where("metrics.jsonl", 68))]
    return source(run("none"), run("none", noticed=told), run("kl"))


def leashed(*parts, beta=0.1, arm="a"):
    return run(arm, *parts, config={"kl_beta": beta})


def loss(whole, policy=0.00650, kl=0.08082):
    return source(
        leashed(
            epochs("Train Loss", whole), epochs("PPO Loss", policy), epochs("KL", kl), beta=0.12
        )
    )


def kl_loss(value):
    return source(leashed(epochs("KL Loss", value), epochs("KL", 0.05)))


def guessed(*flags):
    return source(run("a", series("reward", [1.0, 1.1, 1.2], estimated=flags)))


def measured_later(*, told):
    guess = number(1.85, 2, state="estimated", line=2)
    first = series("reward", [1.818, 1.85], steps=[5, 10], estimated=[0, 1], lines=[1, 2])
    first = run("without", series("x", [1.0]), first)
    gap = Derived("difference", number(0.142), (number(1.992),), (guess,), "reward")
    steps = [5, 10] if told else [5, 15]
    second = run("no KL", series("score", [1.818, 2.140], steps=steps), file="other.md")
    path = "/runs/without/"
    return [
        source(first, derived=[gap], facts=[Fact("path", path, "without")]),
        source(second, facts=[Fact("path", path, "no KL")], path="other.md"),
    ]


def shots(arm, *values, epoch=1, items=200, beta=None):
    parts = [
        cell("accuracy", value, epoch=epoch, shots=at, items=items)
        for at, value in enumerate(values, 1)
    ]
    return run(arm, *parts, config={} if beta is None else {"kl_beta": beta})


def over_training(*later):
    early = shots("a", 0.570, 0.561, 0.551)
    early.cells += shots("a", *later, epoch=2).cells
    return source(early)


def rows(second_loss):
    ours = [epochs("KL", 0.08471, 0.07384), epochs("Train Loss", 0.01989, 0.02235)]
    theirs = [epochs("KL", 0.08134, 0.07002), epochs("Train Loss", 0.02038, second_loss)]
    ours.append(epochs("PPO Loss", 0.00761, 0.01164))
    theirs.append(epochs("PPO Loss", 0.00574, 0.01164))
    return source(run("a", *ours), run("b", *theirs))


def lattice(odd):
    # n = 800 and 0.6 or 1 for an item: sums are multiples of 0.2.
    values = [*(round((380.2 + 1.8 * at) / 800, 4) for at in range(20)), odd]
    cells = [cell("accuracy", v, 4, shots=at, items=800, epoch=1) for at, v in enumerate(values)]
    return source(run("a", *cells))


def scored(*values, checkpoint="", step=None):
    items = [str(at) for at in range(len(values))]
    return Scores("accuracy", items, np.array(values), HERE, step=step, checkpoint=checkpoint)


def nested(*means):
    sizes = (100, 200, 400, 800)
    cells = [cell("accuracy", v, 3, epoch=1, items=n) for n, v in zip(sizes, means, strict=True)]
    return source(run("a", *cells))


def val_loss(*values, pool="rl_data_k64.json"):
    return source(run("a", epochs("val loss", *values), config={"data file": pool}))


def histories(start):
    ours = run("KL 0.15", config={"base checkpoint": "kl012/rce_epoch5.pt"})
    theirs = run("KL 0.15", config={"base checkpoint": start}, file="other.md")
    return [source(ours), source(theirs, path="other.md")]


def clash(other):
    made = run("a")
    made.config["GRPO LR"] = Setting(5e-6, HERE, (Setting(other, HERE),))
    return source(made)


def told_twice(path):
    return [
        source(run("before"), facts=[Fact("path", "/runs/x/", "before")]),
        source(run("no KL"), facts=[Fact("path", path, "no KL")], path="other.md"),
    ]


def shown_epochs(n):
    return source(run("a", epochs("KL", *[0.08] * n), config={"epochs": 3}))


def steps_told(*steps):
    return source(run("a", series("loss", np.arange(len(steps)) / 10, steps=steps, decimals=None)))


def ending(*values):
    return source(run("a", series("loss", [0.25, *values], decimals=None)))


def twice(second):
    return source(run("a", series("loss", [0.25, second], steps=[2, 2], decimals=None)))


def told_apart(count, kind="markdown"):
    """As many quantities with two values each."""
    metrics = ("reward", "KL", "entropy", "accuracy")[:count]
    twice_ = [series(name, [value, 0.5]) for name in metrics for value in (0.25, 0.75)]
    return source(run("a", *twice_, kind=kind))


def derived_from(operand):
    return source(derived=[Derived("difference", number(-0.003), (number(0.558),), (operand,))])


def coefficients(*logged, controller="fixed"):
    config = {"kl_beta": 0.1, "kl_ctrl.type": controller}
    return source(run("a", series("actor/kl_coef", logged, decimals=None), config=config))


MISSING = Number(None, "missing", HERE)
# For every code: sources that trip its rule, and near ones that do not.
CASES = {
    **{
        f"run-{guard}": (noticed(guard), noticed("something else"))
        for guard in (
            *("collapse", "no-signal", "little-signal", "near-uniform", "no-choice"),
            *("coefficient-unit", "few-tasks", "far-sampler"),
        )
    },
    "loss-identity": (loss(0.01720), loss(0.01620)),
    "kl-loss-identity": (kl_loss(0.00600), kl_loss(0.00500)),
    "other-coefficient": (coefficients(0.01, 0.01), coefficients(0.1, 0.1)),
    "derived-from-missing": (derived_from(MISSING), derived_from(number(0.561))),
    "estimated-values": (guessed(False, True, False), guessed(False, False, False)),
    "estimate-contradicted": (measured_later(told=True), measured_later(told=False)),
    "identical-results": (
        source(shots("a", 0.570, 0.561, 0.551), shots("b", 0.570, 0.561, 0.551)),
        source(shots("a", 0.570, 0.561, 0.551), shots("b", 0.570, 0.561, 0.552)),
    ),
    "identical-over-training": (
        over_training(0.570, 0.561, 0.551),
        over_training(0.570, 0.563, 0.552),
    ),
    "copied-row": (rows(0.02235), rows(0.02249)),
    "off-lattice": (lattice(0.4789), lattice(0.4790)),
    "order-effect": (nested(0.68, 0.60, 0.53, 0.48), nested(0.50, 0.51, 0.50, 0.50)),
    "kl-at-start": (
        source(leashed(series("KL", [0.079], steps=[1]))),
        source(leashed(series("KL", [0.0], steps=[1]))),
    ),
    "kl-falls": (
        source(leashed(epochs("KL", 0.079, 0.054))),
        source(leashed(epochs("KL", 0.001, 0.054))),
    ),
    "near-uniform": (val_loss(8.06, 7.99), val_loss(8.06, 4.00)),
    "barely-moved": (val_loss(8.06, 7.99), val_loss(8.06, 7.00)),
    "little-signal": (
        source(run("a", epochs("Adv Std", 0.0063, 0.0062))),
        source(run("a", epochs("Adv Std", 0.17, 0.23))),
    ),
    "same-run": (told_twice("/runs/x"), told_twice("/runs/y")),
    "two-histories": (histories("RCE epoch 2"), histories("RCE epoch 5")),
    "config-clash": (clash(1e-6), clash(5e-6)),
    "stale-weights": (
        source(run("a", scored(1.0, checkpoint="c", step=1), scored(1.0, checkpoint="c", step=2))),
        source(run("a", scored(1.0, checkpoint="c", step=1), scored(1.0, checkpoint="d", step=2))),
    ),
    "step-restart": (steps_told(1, 2, 3, 2, 3), steps_told(1, 2, 3, 4, 5)),
    "diverged": (ending(0.2, np.nan, np.nan), ending(np.nan, 0.2, np.nan)),
    "duplicate-step": (twice(0.24), twice(0.25)),
    "fewer-than-planned": (shown_epochs(2), shown_epochs(3)),
}


def found(sources, code):
    listed = sources if isinstance(sources, list) else [sources]
    return [one for one in find(listed) if one.code == code]


def facts(code):
    (one,) = found(CASES[code][0], code)
    return one.facts


@pytest.mark.parametrize("code", CASES)
def test_a_check_fires_with_the_facts_of_its_sentence_and_is_silent_on_a_near_case(code):
    trips, near = CASES[code]
    needed = {name for _, name, _, _ in Formatter().parse(CHECKS[code][2]) if name}
    every = found(trips, code)
    assert every
    for one in every:
        assert needed <= one.facts.keys()
        assert all(isinstance(place, Where) for place in one.where) and one.where
    assert not found(near, code)


def test_every_code_has_a_case_and_a_line_in_the_page():
    assert set(CASES) == set(CHECKS)
    page = (Path(__file__).parent.parent / "docs/findings.md").read_text(encoding="utf-8")
    lines = dict(re.findall(r"^\| `([a-z-]+)` \| ([a-z]+)", page, re.M))
    assert lines == {code: severity for code, (severity, *_) in CHECKS.items()}


def test_nothing_is_found_in_nothing():
    assert find([]) == []
    assert find([source()]) == []
    nothing = np.array([])
    empty = [run(arm, Series("reward", "step", nothing, nothing, HERE)) for arm in "ab"]
    assert find([source(*empty)]) == []


def test_errors_come_first_and_only_what_is_asked_for_is_looked_for():
    order = ["error", "warning", "note"]
    sources = [lattice(0.4789), *measured_later(told=True)]
    severities = [one.severity for one in find(sources)]
    assert len(set(severities)) > 1
    assert severities == sorted(severities, key=order.index)
    assert {one.code for one in find(sources, ("off-lattice",))} == {"off-lattice"}


# --- by hand


def test_what_a_guard_noticed_is_counted_by_runs_and_not_by_lines():
    (one,) = found(noticed("collapse"), "run-collapse")
    assert one.facts == {"arms": ["none"], "count": 1, "of": 2, "at": "step 32"}
    assert [where.line for where in one.where] == [34]


def test_the_loss_that_follows_is_given_beside_the_loss_that_was_printed():
    # 0.0065 + 0.12 × 0.08082 = 0.0161984, printed as 0.01620
    assert facts("loss-identity")["expected"] == pytest.approx(0.0161984)


def test_an_entropy_bonus_is_part_of_the_loss():
    parts = [epochs("loss", 0.0180), epochs("PG loss", 0.0100), epochs("KL", 0.1)]
    config = {"kl_beta": 0.1, "entropy coeff": 0.01}
    assert not found(
        source(run("a", *parts, epochs("entropy", 0.2), config=config)), "loss-identity"
    )
    # 0.01 + 0.1 × 0.1 - 0.01 × 0.2 = 0.018; an entropy of 0.5 would make it 0.015
    wrong = source(run("a", *parts, epochs("entropy", 0.5), config=config))
    assert found(wrong, "loss-identity")
    unknown = source(run("a", *parts, config=config))
    assert not found(unknown, "loss-identity")


def test_a_coefficient_that_moves_is_taken_from_the_log():
    parts = [epochs("KL loss", 0.01, 0.02), epochs("KL", 0.05, 0.05)]
    parts.append(epochs("actor/kl_coef", 0.2, 0.4))
    adaptive = run("a", *parts, config={"kl_beta": 0.1, "kl_ctrl.type": "adaptive"})
    assert not found(source(adaptive), "kl-loss-identity")
    unlogged = run("a", *parts[:2], config={"kl_beta": 0.1, "kl_ctrl.type": "adaptive"})
    assert not found(source(unlogged), "kl-loss-identity")


def test_a_kl_loss_before_its_coefficient_is_no_contradiction():
    assert not found(kl_loss(0.05), "kl-loss-identity")


def test_an_estimate_turns_the_sign_of_the_difference_taken_from_it():
    # 1.992 - 1.85 = +.142, but 1.992 - 2.140 = -.148
    one = facts("estimate-contradicted")
    assert (one["count"], one["wrong_signs"], one["signs"]) == (1, 1, 1)
    assert one["largest"] == pytest.approx(0.29)


def test_three_arms_with_identical_results_are_one_finding():
    arms = [shots(name, 0.570, 0.561, 0.551) for name in ("a", "b", "c")]
    (one,) = found(source(*arms, shots("d", 0.588, 0.566, 0.539)), "identical-results")
    assert one.facts["arms"] == ["a", "b", "c"]
    assert one.facts["cells"] == 3


def at_lines(accuracies, first):
    return [
        Cell("accuracy", number(value, 4, line=first + at, text=text), items=800, shots=shots)
        for at, (value, text, shots) in enumerate(accuracies)
    ]


@pytest.mark.parametrize(
    "others",
    [
        [(0.4789, "+47.89%", 1)],  # a change
        [(0.4789, "47.89%", None)],  # beside single shots: their mean
        [(0.4789, "47.89%", 1), (0.4774, "47.74%", 2), (0.4803, "48.03%", 3)],  # a table of its own
    ],
)
def test_what_is_no_mean_over_items_need_not_lie_on_their_lattice(others):
    scores = [(round((380.2 + 1.8 * at) / 800, 4), "", at) for at in range(20)]
    assert not found(source(run("a", *at_lines(scores, 1), *at_lines(others, 40))), "off-lattice")
    assert found(source(run("a", *at_lines([*scores, (0.4789, "", 1)], 1))), "off-lattice")


def test_the_step_of_the_scores_is_learnt():
    assert facts("off-lattice")["step"] == pytest.approx(0.2)


def test_too_few_means_teach_no_lattice():
    few = source(shots("a", 0.5, 0.25, 0.75, 0.33, items=100))
    assert not found(few, "off-lattice")


def test_blocks_of_nested_samples():
    # (200 × .60 - 100 × .68)/100 = .52, (400 × .53 - 120)/200 = .46, (800 × .48 - 212)/400 = .43
    one = facts("order-effect")
    assert one["blocks"] == pytest.approx([0.68, 0.52, 0.46, 0.43])
    assert one["p"] < 0.05


def test_a_uniform_choice_of_two_from_64():
    assert uniform_loss(64, 2) == pytest.approx(8.3020, abs=1e-4)  # ln 64 + ln 63
    assert (facts("near-uniform")["pool"], facts("near-uniform")["shots"]) == (64, 2)


def test_kl_of_a_first_epoch_is_of_many_updates_and_tells_only_where_it_falls_afterwards():
    assert not found(source(leashed(epochs("KL", 0.079))), "kl-at-start")
    assert not found(source(leashed(epochs("KL", 0.03, 0.05, 0.06))), "kl-at-start")
    (falling,) = found(source(leashed(epochs("KL", 0.079, 0.06, 0.054))), "kl-at-start")
    assert falling.severity == "warning"


def test_files_are_compared_by_what_they_name():
    assert content("kl012/rce_epoch5.pt") == content("RCE epoch 5 (val_loss=7.9)")
    assert settings_differ("start", "kl012/rce_epoch5.pt", "RCE epoch 2")
    assert not settings_differ("data", "OK-VQA", "rl_data_k64.json")
    assert settings_differ("data", "rl_data_a.json", "rl_data_b.json")


def test_one_name_with_other_numbers_has_two_histories():
    ours = source(leashed(epochs("KL", 0.08082)))
    theirs = source(leashed(epochs("KL", 0.09400)), path="other.md")
    theirs.runs[0].where = Where("other.md", 1)
    (one,) = found([ours, theirs], "two-histories")
    assert one.facts["differs"] == [["KL, epoch 1", 0.08082, 0.094]]


def test_seeds_of_one_arm_are_no_two_histories():
    ours, theirs = histories("RCE epoch 2")
    ours.runs[0].seed, theirs.runs[0].seed = 1, 2
    assert not found([ours, theirs], "two-histories")


def test_two_spellings_of_one_setting_in_a_document():
    made = run("a", config={"KL beta": 0.12, "Beta": 0.15})
    assert found(source(made), "config-clash")
    made.format = "verl"
    assert not found(source(made), "config-clash")


def test_a_value_that_a_list_tells_differently_from_a_table():
    told = source(run("a", series("reward", [1.7, 1.9]), series("reward", [1.7, 1.2])))
    (one,) = found(told, "duplicate-step")
    assert (one.facts["at"], one.facts["values"]) == ("step 2", [1.9, 1.2])


def test_a_run_under_two_names_is_held_to_one_history():
    ours, theirs = told_twice("/runs/x")
    ours.runs[0].config["entropy coeff"] = Setting(0.01, HERE)
    theirs.runs[0].config["entropy_coeff"] = Setting(0.04, HERE)
    theirs.runs[0].where = Where("other.md", 1)
    (one,) = found([ours, theirs], "two-histories")
    assert one.facts == {"arm": "before = no KL", "differs": [["entropy_bonus", 0.01, 0.04]]}


def test_a_long_log_is_looked_at_in_some_of_its_points():
    values = np.linspace(0.001, 0.2, 100_000)
    parts = [series(name, values, decimals=None) for name in ("kl", "policy_loss")]
    wrong = run("a", *parts, series("loss", values, decimals=None), config={"kl_beta": 0.1})
    assert 1 <= len(found(source(wrong), "loss-identity")) <= 3


def test_a_log_in_which_no_loss_adds_up_is_one_warning():
    parts = [epochs(name, 0.1, 0.2, decimals=None) for name in ("kl", "policy_loss", "loss")]
    log = run("a", *parts, config={"kl_beta": 0.1}, kind="verl")
    (one,) = found(source(log), "loss-identity")
    assert one.severity == "warning"


def test_weights_that_are_newer_than_their_scores_were_not_what_was_evaluated(tmp_path):
    weights = tmp_path / "checkpoints" / "epoch-2" / "model.safetensors"
    weights.parent.mkdir(parents=True)
    weights.write_bytes(b"weights")
    told = tmp_path / "scores.jsonl"
    told.write_text("", encoding="utf-8")
    scores = Scores("accuracy", ["q"], np.array([1.0]), Where(str(told)), 2, checkpoint="epoch-2")
    os.utime(weights, (1_000_000, 1_000_000))
    assert not found(source(run("a", scores)), "stale-weights")
    os.utime(told, (900_000, 900_000))
    (one,) = found(source(run("a", scores)), "stale-weights")
    assert one.facts["checkpoint"] == "epoch-2"


def test_numbers_of_a_report_that_contradict_each_other_throughout_were_misread():
    assert [one.severity for one in found(told_apart(3), "duplicate-step")] == ["error"] * 3
    assert [one.severity for one in found(told_apart(4), "duplicate-step")] == ["note"]
    log = run("a", *[series(name, [1, 2], steps=[3, 3]) for name in ("KL", "reward")], kind="csv")
    assert [one.severity for one in found(source(log), "duplicate-step")] == ["error"]


def test_a_coefficient_under_a_controller_is_not_the_one_that_was_asked_for():
    assert not found(coefficients(0.01, 0.01, controller="adaptive"), "other-coefficient")
    assert not found(coefficients(0.01, 0.02), "other-coefficient")


def test_one_run_in_two_documents_is_not_two_identical_arms():
    ours, theirs = (shots(name, 0.570, 0.561, 0.551, beta=0.1) for name in "ab")
    assert not found([source(ours), source(theirs, path="other.md")], "identical-results")
    theirs = shots("b", 0.570, 0.561, 0.551, beta=0.2)
    assert found([source(ours), source(theirs, path="other.md")], "identical-results")


def test_what_a_program_logged_nobody_copied():
    logged = rows(0.02235)
    for each in logged.runs:
        each.format = "csv"
    assert not found(logged, "copied-row")


@pytest.mark.parametrize(
    ("steps", "values", "fires"),
    [
        ([0], [0.003], False),  # what other kernels make of 0
        ([0], [0.03], True),
        ([1], [0.003], False),
        ([1, 2, 3], [0.476, 1.015, 1.4], False),  # it grew to that from 0
        ([1, 2, 3], [0.476, 0.6, 0.7], True),
        ([1, 2, 3], [0.06, 0.04, 0.02], True),
    ],
)
def test_kl_of_a_first_step_is_told_where_updates_cannot_have_made_it(steps, values, fires):
    told = source(leashed(series("KL", values, steps=steps, decimals=3)))
    assert bool(found(told, "kl-at-start")) == fires


def test_the_first_value_of_a_summary_stands_before_any_update():
    assert found(source(leashed(cell("KL", 0.079, statistic="first"))), "kl-at-start")


def test_steps_that_end_long_before_the_plan_and_a_measured_epoch_beyond_the_curve():
    config = {"training steps": 485}
    early = run("a", series("eval reward", [1.8, 2.1], steps=[5, 45]), config=config)
    (one,) = found(source(early), "fewer-than-planned")
    assert (one.facts["axis"], one.facts["last"], one.facts["planned"]) == ("step", 45, 485)
    whole = shown_epochs(2)
    whole.runs[0].cells.append(cell("accuracy", 0.57, epoch=3, shots=1))
    assert not found(whole, "fewer-than-planned")
