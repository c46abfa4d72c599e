"""Every code has a made-up source that trips its rule and a near one that does not."""

import os
import re
from pathlib import Path

import numpy as np
import pytest

from kleash.findings import CODES, RULES, find
from kleash.findings.histories import content, differ
from kleash.findings.learning import uniform_loss
from kleash.findings.noticed import GUARDS
from kleash.imports import (
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
from test_planted import PLANTS

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


def worked_out(kind, value, of, minus=(), *, decimals=3, **more):
    made = Derived(
        kind,
        number(value, decimals),
        tuple(number(one) if isinstance(one, float) else one for one in of),
        tuple(number(one) if isinstance(one, float) else one for one in minus),
        "accuracy",
        ("a", "b"),
        **more,
    )
    return source(derived=[made])


def from_rounded(value):
    shots = tuple(number(one) for one in (0.588, 0.566, 0.539, 0.552))
    mean, other = number(0.561), number(0.5585, 4)
    return source(
        derived=[
            Derived("mean", mean, shots),
            Derived("difference", number(value, 4), (other,), (mean,)),
        ]
    )


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
        source(first, derived=[gap], facts=[Fact("path", path, HERE, "without")]),
        source(second, facts=[Fact("path", path, HERE, "no KL")], path="other.md"),
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


def begun_alike(decimals):
    """Two runs of a seed: what a draw decides is equal at the first step, and later is not."""
    runs = []
    for arm, last in (("a", 0.0223512345678), ("b", 0.0224912345678)):
        drawn = (("entropy", 1.2292165756225586), ("std_advantage", 0.5819143652915955))
        parts = [series(name, [first, last], decimals=decimals) for name, first in drawn]
        runs.append(run(arm, *parts, series("loss", [last + 1, last], decimals=decimals)))
    return source(*runs)


def spreads(*values):
    return source(run("a", epochs("Adv Std", 0.1703, 0.2328)), run("b", epochs("Adv Std", *values)))


def advantages(value):
    return source(run("a", epochs("Mean Advantage", value, decimals=8)))


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


def curve(arm, *values, best=True, metric="eval reward"):
    steps = range(5, 5 * len(values) + 5, 5)
    parts = [series(metric, values, steps=steps)]
    if best:
        at = 5 * (values.index(max(values)) + 1)
        parts.append(cell(metric, max(values), step=at, statistic="best"))
    return run(arm, *parts)


NO_KL = (1.818, 2.140, 1.840, 1.830, 1.750, 1.788, 2.040, 2.003, 2.202)
KL = (1.695, 1.992, 1.768, 1.915, 1.970, 1.828, 1.840, 2.123, 2.005)


def bests(*, subtracted):
    gap = Derived("difference", number(-0.079), (number(2.123),), (number(2.202),))
    return source(curve("no KL", *NO_KL), curve("KL", *KL), derived=[gap] if subtracted else [])


def lengths(step):
    return source(
        run("a", series("response length", [2709.0], steps=[5])),
        run("b", series("response length", [2980.0], steps=[step])),
    )


def compared(metric, *betas):
    gap = Derived(
        "difference", number(0.001), (number(0.02),), (number(0.019),), metric, ("a", "b")
    )
    return source(
        *(leashed(epochs(metric, 0.02), beta=b, arm=f"a{b}") for b in betas), derived=[gap]
    )


def val_loss(*values, pool="rl_data_k64.json"):
    return source(run("a", epochs("val loss", *values), config={"data file": pool}))


def warm(steps):
    return source(run("a", series("eval reward", NO_KL), config={"warmup steps": steps}))


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
        source(run("before"), facts=[Fact("path", "/runs/x/", HERE, "before")]),
        source(run("no KL"), facts=[Fact("path", path, HERE, "no KL")], path="other.md"),
    ]


def shown_epochs(n):
    return source(run("a", epochs("KL", *[0.08] * n), config={"epochs": 3}))


def evaluations(steps):
    return source(run("a", series("eval reward", NO_KL, steps=range(5, 50, 5)), config=steps))


def dated(day):
    pace = Cell("time per step", number(None, 0, low=205.0, high=220.0))
    made = run("a", pace, config={"training steps": 465}, started="2025-12-06T01:39:57")
    return source(made, facts=[Fact("date", day, HERE)])


def long_answers(limit):
    made = run("a", series("response length", [2980.0]), config={"max response length": limit})
    return source(made)


def one_score_off(*odd):
    return source(run("a", scored(*[0.0, 0.6, 1.0] * 20, *odd)))


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


MISSING = Number(None, "missing", HERE)
GUESS = number(1.85, 2, state="estimated")
# For every code: sources that trip its rule, and near ones that do not.
CASES = {
    "loss-identity": (loss(0.01720), loss(0.01620)),
    "kl-loss-identity": (kl_loss(0.00600), kl_loss(0.00500)),
    "report-misread": (told_apart(4), told_apart(3)),
    "report-unchecked": (
        worked_out("mean", 0.561, (0.588, 0.566, 0.539, 0.552)),
        source(run("a", epochs("KL", 0.0, 0.05))),
    ),
    "derived-from-missing": (
        worked_out("difference", -0.0025, (0.5585,), (MISSING,)),
        source(derived=[Derived("difference", MISSING, (number(0.5),), (MISSING,))]),
    ),
    "derived-from-rounded": (from_rounded(-0.0025), from_rounded(-0.0028)),
    "printed-twice": (worked_out("same", 1.996, (1.992,)), worked_out("same", 1.992, (1.992,))),
    "estimated-values": (guessed(False, True, False), guessed(False, False, False)),
    "derived-from-estimate": (
        worked_out("difference", 0.142, (1.992,), (GUESS,)),
        worked_out("difference", 0.142, (1.992,), (1.85,)),
    ),
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
    "same-in-all-arms": (spreads(0.1703, 0.2328), spreads(0.1703, 0.2329)),
    "constant-by-construction": (advantages(-9e-8), advantages(0.01)),
    "off-lattice": (lattice(0.4789), lattice(0.4790)),
    "scores-off-lattice": (one_score_off(0.57), one_score_off(0.6)),
    "nested-samples": (nested(0.50, 0.51, 0.50, 0.50), source(shots("a", 0.5, 0.5))),
    "order-effect": (nested(0.68, 0.60, 0.53, 0.48), nested(0.50, 0.51, 0.50, 0.50)),
    "samples-differ": (nested(0.90, 0.30, 0.53, 0.48), nested(0.68, 0.60, 0.53, 0.48)),
    "best-of-several": (source(curve("a", *KL)), source(curve("a", *KL, best=False))),
    "best-against-best": (bests(subtracted=True), bests(subtracted=False)),
    "unequal-steps": (lengths(10), lengths(5)),
    **{code: (noticed(guard), noticed("something else")) for guard, code in GUARDS.items()},
    "kl-at-start": (
        source(leashed(series("KL", [0.079], steps=[1]))),
        source(leashed(series("KL", [0.0], steps=[1]))),
    ),
    "kl-falls": (
        source(leashed(epochs("KL", 0.079, 0.054))),
        source(leashed(epochs("KL", 0.001, 0.054))),
    ),
    "loss-across-coefficients": (
        compared("train loss", 0.12, 0.15),
        compared("val loss", 0.12, 0.15),
    ),
    "near-uniform": (val_loss(8.06, 7.99), val_loss(8.06, 4.00)),
    "barely-moved": (val_loss(8.06, 7.99), val_loss(8.06, 7.00)),
    "little-signal": (
        source(run("a", epochs("Adv Std", 0.0063, 0.0062))),
        source(run("a", epochs("Adv Std", 0.17, 0.23))),
    ),
    "lr-below-print": (
        source(run("a", series("actor/lr", [0.0, 0.0]))),
        source(run("a", series("actor/lr", [1e-6, 1e-6], decimals=None))),
    ),
    "inside-warmup": (warm(50), warm(5)),
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
    "beyond-plan": (shown_epochs(4), shown_epochs(3)),
    "evaluations-missing": (
        evaluations({"training steps": 485}),
        evaluations({"training steps": 45}),
    ),
    "too-long-for-dates": (dated("2025-12-06"), dated("2025-12-07")),
    "beyond-limit": (long_answers(2048), long_answers(4096)),
}


def found(sources, code):
    listed = sources if isinstance(sources, list) else [sources]
    return [one for one in find(listed) if one.code == code]


def facts(code):
    (one,) = found(CASES[code][0], code)
    return one.facts


@pytest.mark.parametrize("code", CASES)
def test_a_rule_finds_what_it_is_for_and_gives_the_facts_it_promises(code):
    trips, near = CASES[code]
    every = found(trips, code)
    assert every
    for one in every:
        assert tuple(sorted(one.facts)) == tuple(sorted(CODES[code]))
        assert all(isinstance(place, Where) for place in one.where) and one.where
    assert not found(near, code)


def test_every_code_has_a_case_and_a_line_in_the_page():
    assert set(CASES) | {plant[3] for plant in PLANTS} == set(CODES)
    page = (Path(__file__).parent.parent / "docs/findings.md").read_text(encoding="utf-8")
    lines = dict(re.findall(r"^\| `([a-z-]+)` \| (.*)$", page, re.M))
    assert set(lines) == set(CODES)
    for code, line in lines.items():
        assert set(re.findall(r"\{(\w+)\}", line)) <= set(CODES[code]), code


def test_nothing_is_found_in_nothing():
    assert find([]) == []
    assert find([source()]) == []
    assert len(RULES) == len(set(RULES))


def test_errors_come_first():
    order = ["error", "warning", "note"]
    severities = [one.severity for one in find([lattice(0.4789), *measured_later(told=True)])]
    assert severities == sorted(severities, key=order.index)


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


def test_numbers_of_a_report_that_contradict_each_other_throughout_were_misread():
    assert len(found(told_apart(3), "duplicate-step")) == 3
    (note,) = find([told_apart(4)])
    assert (note.code, note.severity, note.facts["count"]) == ("report-misread", "note", 4)
    log = source(run("a", *[series(n, [1, 2], steps=[3, 3]) for n in ("KL", "reward")], kind="csv"))
    assert found(log, "duplicate-step") and not found(log, "report-misread")


def test_a_difference_of_rounded_means_is_worked_out_from_the_shots():
    # mean of .588 .566 .539 .552 is .56125, so the difference to .5585 is -.00275
    assert facts("derived-from-rounded")["low"] == pytest.approx(-0.00275)


def test_an_estimate_turns_the_sign_of_the_difference_taken_from_it():
    # 1.992 - 1.85 = +.142, but 1.992 - 2.140 = -.148
    one = facts("estimate-contradicted")
    assert (one["count"], one["wrong_signs"], one["signs"]) == (1, 1, 1)
    assert one["largest"] == pytest.approx(0.29)


def test_three_arms_with_identical_results_are_one_finding():
    arms = [shots(name, 0.570, 0.561, 0.551) for name in ("a", "b", "c")]
    (one,) = found(source(*arms, shots("d", 0.588, 0.566, 0.539)), "identical-results")
    assert one.facts["arms"] == ["a", "b", "c"]
    assert (one.facts["cells"], one.facts["items"]) == (3, 200)


def test_one_run_in_two_documents_is_not_two_identical_arms():
    ours, theirs = source(curve("before", *KL)), source(curve("with KL", *KL), path="other.md")
    assert not found([ours, theirs], "identical-results")
    assert found([ours, theirs], "same-run")[0].facts["by"] == "values"


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


def accurate(*highest):
    return source(
        *(
            run(f"arm-{n}", cell("accuracy", 0.6), cell("accuracy", 0.5), cell("accuracy", one))
            for n, one in enumerate(highest)
        )
    )


def test_accuracies_above_one_in_several_runs_are_something_else():
    assert found(accurate(0.6, 0.6, 1.2), "beyond-limit")
    assert not found(accurate(0.6, 1.1, 1.2), "beyond-limit")


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


def test_the_best_of_nine_is_too_good_by_a_multiple_of_the_noise():
    # 1.485 SDs for nine points; the SD from second differences is 0.1304
    one = facts("best-of-several")
    assert one["optimism"] == pytest.approx(1.485 * 0.1304, rel=2e-3)
    assert 10 in one["ties"] and one["points"] == 9


def test_a_gap_between_bests_beyond_the_noise_is_a_note():
    gap = Derived("difference", number(-3.0), (number(2.123),), (number(5.123),))
    far = tuple(value + 3 for value in KL[::-1])
    trip = source(curve("KL", *KL), curve("other", *far), derived=[gap])
    assert found(trip, "best-against-best")[0].severity == "note"


def test_a_uniform_choice_of_two_from_64():
    assert uniform_loss(64, 2) == pytest.approx(8.3020, abs=1e-4)  # ln 64 + ln 63
    assert (facts("near-uniform")["pool"], facts("near-uniform")["shots"]) == (64, 2)


def test_a_pool_that_nobody_names_is_guessed_only_where_demonstrations_are_chosen():
    plain = val_loss(8.06, 7.99, pool="data.json")
    assert not found(plain, "near-uniform")
    plain.runs[0].cells.append(cell("accuracy", 0.6, shots=2))
    guesses = found(plain, "near-uniform")
    assert {one.severity for one in guesses} == {"note"}
    assert (2, 64) in {(one.facts["shots"], one.facts["pool"]) for one in guesses}


def test_a_small_kl_before_the_first_step_is_a_note_and_after_it_nothing():
    (small,) = found(source(leashed(series("KL", [0.003], steps=[0], decimals=3))), "kl-at-start")
    assert small.severity == "note"
    assert not found(source(leashed(series("KL", [0.001], steps=[0], decimals=3))), "kl-at-start")
    assert not found(source(leashed(series("KL", [0.003], steps=[1], decimals=3))), "kl-at-start")
    grown = series("KL", [0.476, 1.015, 1.4], steps=[1, 2, 3], decimals=3)
    assert not found(source(leashed(grown)), "kl-at-start")
    begun = series("KL", [0.476, 0.6, 0.7], steps=[1, 2, 3], decimals=3)
    assert found(source(leashed(begun)), "kl-at-start")
    falling = series("KL", [0.006, 0.004, 0.002], steps=[1, 2, 3], decimals=3)
    assert found(source(leashed(falling)), "kl-at-start")


def test_kl_of_a_first_epoch_is_of_many_updates_and_tells_only_where_it_falls_afterwards():
    assert not found(source(leashed(epochs("KL", 0.079))), "kl-at-start")
    assert not found(source(leashed(epochs("KL", 0.03, 0.05, 0.06))), "kl-at-start")
    (falling,) = found(source(leashed(epochs("KL", 0.079, 0.06, 0.054))), "kl-at-start")
    assert falling.severity == "warning"


def test_files_are_compared_by_what_they_name():
    assert content("kl012/rce_epoch5.pt") == content("RCE epoch 5 (val_loss=7.9)")
    assert differ("start", "kl012/rce_epoch5.pt", "RCE epoch 2")
    assert not differ("data", "OK-VQA", "rl_data_k64.json")
    assert differ("data", "rl_data_a.json", "rl_data_b.json")


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


def test_hours_between_start_and_report():
    # 465 × 205 s = 26.5 h; from 01:39:57 to midnight there are 22.3 h
    one = facts("too-long-for-dates")
    assert (one["hours_low"], one["hours"]) == (26.5, 22.3)


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


def test_a_series_without_points_is_passed_over():
    runs = [
        Imported(
            name=arm,
            arm=arm,
            format="csv",
            where=Where("a.md", 3),
            series=[Series("reward", "step", np.array([]), np.array([]), Where("a.md", 3))],
        )
        for arm in ("a", "b")
    ]
    assert not [f for f in find([Source("a.md", "markdown", runs)]) if f.code == "unequal-steps"]


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


def test_rows_that_a_program_logged_alike_were_not_copied():
    assert not found(begun_alike(decimals=None), "copied-row")
    assert found(begun_alike(decimals=13), "copied-row")


def test_what_is_repeated_for_every_size_was_not_sampled():
    assert not found(nested(0.5, 0.5, 0.5, 0.5), "nested-samples")


def long_logs(*copied: str, first: float = 1.0):
    """Two consoles of 150 steps, three decimals; at the 77th some metrics are the same."""
    rng = np.random.default_rng(5)
    near = {"entropy": 0.3, "grad_norm": 0.5, "step_time": 54.0, "clip_ratio": 0.1}
    told = {name: rng.normal(mean, 0.02, (2, 150)).round(3) for name, mean in near.items()}
    for name, (ours, theirs) in told.items():
        theirs[ours == theirs] += 0.001
        if name in copied:
            theirs[76] = ours[76]
    steps = np.arange(first, first + 150)
    curves = [[series(k, v[at], steps=steps, decimals=3) for k, v in told.items()] for at in (0, 1)]
    return source(*(run(name, *made) for name, made in zip("ab", curves, strict=True)))


def test_of_hundreds_of_rows_some_have_two_numbers_in_common():
    assert not found(long_logs("entropy", "grad_norm"), "copied-row")
    (one,) = found(long_logs("entropy", "grad_norm", "step_time"), "copied-row")
    assert one.facts["at"] == "step 77"
    assert not found(long_logs("entropy", "grad_norm", "step_time", first=-76.0), "copied-row")


def test_what_takes_few_values_is_often_the_same():
    rng = np.random.default_rng(7)
    kinds = ("entropy", "grad_norm", "clip_ratio", "step_time")
    told = {name: (62.8 + 0.61 * rng.integers(0, 5, (2, 150))).round(2) for name in kinds}
    told["step_time"] = rng.normal(50, 5, (2, 150)).round(2)
    for values in told.values():
        values[1, 76] = values[0, 76] + (values is told["step_time"])
    steps = np.arange(1.0, 151.0)
    curves = [[series(k, v[at], steps=steps, decimals=2) for k, v in told.items()] for at in (0, 1)]
    both = source(*(run(name, *made) for name, made in zip("ab", curves, strict=True)))
    assert not found(both, "copied-row")


def test_counts_and_epochs_are_the_same_in_all_arms_and_say_nothing():
    for name, values in (
        ("val_n", [200, 200]),
        ("progress", [0.125, 0.25]),
        ("spread", [0.25, 0.125]),
    ):
        made = [run(arm, epochs(name, *values)) for arm in "ab"]
        assert bool(found(source(*made), "same-in-all-arms")) == (name == "spread"), name


def test_an_arm_is_named_once_whatever_its_seeds():
    same = [0.1703, 0.2328]
    made = [run(arm, epochs("Adv Std", *same)) for arm in "aab"]
    (one,) = found(source(*made), "same-in-all-arms")
    assert one.facts["arms"] == ["a", "b"]


def test_step_times_that_are_all_missing_say_nothing():
    times = series("每步时间", [float("nan"), float("nan")])
    assert find([source(run("a", times, config={"训练步数": 2}))]) == []


def test_a_metric_over_steps_and_epochs_is_the_same_where_all_arms_have_it():
    steps = np.array([1.0, 2.0])
    ours, theirs = (
        Series("Adv Std", "step", steps, np.array(values), HERE, lines=np.array([1, 2]))
        for values in ((0.171, 0.182), (0.193, 0.204))
    )
    same = epochs("Adv Std", 0.1703, 0.2328)
    both = [run("a", ours, same), run("b", theirs, same)]
    assert "same-in-all-arms" not in {one.code for one in find([source(*both)])}
    third = run("c", same)
    assert "same-in-all-arms" in {one.code for one in find([source(*both, third)])}
