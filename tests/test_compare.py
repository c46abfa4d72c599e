"""Comparing: arms, confounds, verdicts and what to run next, on sources made up here.

The five documents that the design speaks of are looked at where they are at hand.
"""

import json
from pathlib import Path

import numpy as np
import pytest

from kleash.compare.arms import gather
from kleash.compare.comparison import Wish, compare
from kleash.compare.confounds import changed, confounds, factor
from kleash.compare.read import (
    Cell,
    Imported,
    Number,
    Scores,
    Series,
    Setting,
    Source,
    Where,
    markdown,
    read,
)
from kleash.errors import ConfigError, DataError

HERE = Where("made up")
SEEDS = Path(__file__).parent.parent.parent / "shared/seeds"
STEPS = np.arange(5.0, 50.0, 5.0)
WITHOUT = [1.818, 2.140, 1.840, 1.830, 1.750, 1.788, 2.040, 2.003, 2.202]
WITH = [1.695, 1.992, 1.768, 1.915, 1.970, 1.828, 1.840, 2.123, 2.005]


def run(name, *, config=None, seed=None, arm=""):
    settings = {key: Setting(value, HERE) for key, value in (config or {}).items()}
    return Imported(name, arm, "jsonl", Where(f"{name}.jsonl"), config=settings, seed=seed)


def with_curve(made, values, metric="val_reward", steps=None, estimated=None):
    at = np.arange(len(values), dtype=float) if steps is None else np.asarray(steps, dtype=float)
    guessed = None if estimated is None else np.array(estimated)
    made.series.append(
        Series(metric, "step", at, np.asarray(values, dtype=float), HERE, estimated=guessed)
    )
    return made


def with_scores(made, values, metric="accuracy", items=None, clusters=None):
    named = items or [f"q{at}" for at in range(len(values))]
    made.scores.append(Scores(metric, named, np.asarray(values, dtype=float), HERE, 10, 1, "test"))
    return made


def sources(*runs):
    return [Source("made up", "jsonl", runs=list(runs))]


def level(found, ours=None):
    every = [each for each in found.verdicts if each.question == "level"]
    return next(each for each in every if ours in (None, each.arms[0]))


def asked(found, question):
    return next(each for each in found.verdicts if each.question == question)


def codes(judged):
    return [each.code for each in judged.because]


# --- worse or about the same


def two_curves(**changes):
    base = {"kl_loss_coef": 0.0, "entropy_coeff": 0.0, "lr": 1e-6}
    return sources(
        with_curve(run("without", config=base), WITHOUT, steps=STEPS),
        with_curve(run("with", config=base | {"kl_loss_coef": 0.01} | changes), WITH, steps=STEPS),
    )


def test_the_gap_of_two_curves_is_that_of_the_design():
    judged = level(compare(two_curves()))
    assert (judged.verdict, judged.level, judged.n) == ("undecided", "L1", 9)
    assert judged.estimate == pytest.approx(-0.0306, abs=5e-5)
    assert (judged.low, judged.high) == pytest.approx((-0.1472, 0.0861), abs=5e-5)
    assert "one_run_per_arm" in codes(judged)
    assert judged.also_changed == ()


def test_an_equivalence_takes_the_margin_that_the_interval_asks_for():
    assert level(compare(two_curves(), Wish(margin=0.15))).verdict == "equivalent"
    assert level(compare(two_curves(), Wish(margin=0.12))).verdict == "undecided"
    needs = next(b for b in level(compare(two_curves())).because if b.code == "needs_margin")
    assert needs.facts["margin"].value == 0.15


def test_estimates_are_used_in_nothing():
    guessed = [False, *[True] * 7, False]
    found = compare(
        sources(
            with_curve(run("a", config={"beta": 0.0}), WITHOUT, steps=STEPS, estimated=guessed),
            with_curve(run("b", config={"beta": 0.1}), WITH, steps=STEPS),
        )
    )
    judged = level(found)
    assert judged.n == 2
    assert judged.verdict == "undecided"
    told = next(each for each in judged.because if each.code == "estimates_unused")
    assert (told.facts["count"], told.facts["usable"]) == (7, 2)
    assert told.facts["arm"] == "a"


def test_tellings_that_contradict_each_other_are_kept_apart():
    """One arm, two documents: no curve is made of both, and nothing is decided on them."""
    first = [with_curve(run("a", config={"beta": 0.0}, arm="a"), WITHOUT[:5])]
    again = [with_curve(run("a", config={"beta": 0.0}, arm="a"), [9.0, *WITHOUT[1:]])]
    other = [with_curve(run("b", config={"beta": 0.1}, arm="b"), WITH)]
    told = [
        Source(f"{at}.md", "markdown", runs=runs) for at, runs in enumerate([first, again, other])
    ]
    for source in told:
        source.runs[0].format = "markdown"
    found = compare(told)
    assert level(found).verdict == "invalid"
    [curve] = (arm.replicates[0].curve("eval_reward") for arm in found.gathered if arm.name == "a")
    assert [(len(each), each.values[0]) for each in (curve, *curve.others)] == [
        (5, 1.818),
        (9, 9.0),
    ]


def test_a_lower_loss_is_better():
    rng = np.random.default_rng(0)
    found = compare(
        sources(
            with_curve(run("a", config={"beta": 0.0}), 2 + rng.normal(0, 0.01, 30), "val_loss"),
            with_curve(run("b", config={"beta": 0.1}), 1 + rng.normal(0, 0.01, 30), "val_loss"),
        )
    )
    assert level(found).verdict == "better"
    assert level(found).estimate == pytest.approx(-1, abs=0.02)


def test_items_are_paired_and_few_differing_ones_decide_nothing():
    base = np.tile([0.0, 1.0], 100)
    ours = base.copy()
    ours[:8:2] = 1.0
    found = compare(
        sources(
            with_scores(run("a", config={"beta": 0.0}), base),
            with_scores(run("b", config={"beta": 0.1}), ours),
        )
    )
    judged = level(found)
    assert (judged.verdict, judged.level, judged.n) == ("undecided", "L2", 200)
    assert judged.estimate == pytest.approx(0.02)
    # Four differ, all one way, and two pseudo-differences: t = 4/√(6 - 16/202)·√(201/202) = 1.640.
    assert judged.p == pytest.approx(0.1026, abs=0.0005)
    assert judged.more and judged.more > 0


def test_scores_that_are_all_the_same_are_identical_outputs_not_equal_arms():
    values = np.tile([0.0, 0.6, 1.0, 1.0], 50)
    judged = level(
        compare(
            sources(
                with_scores(run("a", config={"beta": 0.0}), values),
                with_scores(run("b", config={"beta": 0.1}), values),
            )
        )
    )
    assert judged.verdict == "identical"
    assert judged.bound == pytest.approx(1 - 0.05 ** (1 / 200))


def test_broken_items_void_a_comparison():
    values = np.tile([0.0, 1.0], 50)
    torn = values.copy()
    torn[:10] = np.nan
    found = compare(
        sources(
            with_scores(run("a", config={"beta": 0.0}), values),
            with_scores(run("b", config={"beta": 0.1}), torn),
        )
    )
    assert level(found).verdict == "invalid"
    assert level(found).n == 90


def seeded(shift, seeds, rng, coefficient, noise=0.02):
    return [
        with_curve(
            run(f"kl{coefficient}-s{seed}", config={"beta": coefficient, "lr": 1e-6}, seed=seed),
            1 + shift + rng.normal(0, noise) + np.zeros(4),
        )
        for seed in range(seeds)
    ]


def test_only_seeds_carry_a_claim_about_the_setting():
    rng = np.random.default_rng(1)
    runs = [*seeded(0, 5, rng, 0.0), *seeded(0.3, 5, rng, 0.1)]
    found = compare(sources(*runs))
    assert len(found.arms) == 2
    judged = level(found)
    assert (judged.verdict, judged.level, judged.n) == ("better", "L3", 5)
    assert asked(found, "recommend").arms == ("kl0.1",)


def test_seeds_without_configs_say_nothing_about_a_setting():
    rng = np.random.default_rng(1)
    runs = [*seeded(0, 5, rng, 0.0), *seeded(0.3, 5, rng, 0.1)]
    for each in runs:
        each.config = {}
    judged = level(compare(sources(*runs), Wish(baseline="kl0.0")))
    assert (judged.verdict, judged.level) == ("better", "L1")
    assert "config_unknown" in codes(judged)


def test_three_seeds_do_not():
    rng = np.random.default_rng(1)
    runs = [*seeded(0, 3, rng, 0.0), *seeded(0.3, 3, rng, 0.1)]
    judged = level(compare(sources(*runs)))
    # The word is the interval's; that it is not about the setting is the level's.
    assert (judged.level, judged.low > 0) == ("L1", judged.verdict == "better")
    assert "too_few_seeds" in codes(judged)


# --- faster, steadier, best


def test_faster_is_asked_at_a_common_threshold_and_never_by_own_bests():
    judged = asked(compare(two_curves()), "faster")
    assert judged.verdict == "undecided"
    assert judged.estimate == 30  # 2.123 is reached at step 40 with, at step 10 without
    by_best = next(each for each in judged.because if each.code == "not_by_best")
    assert (by_best.facts["ours"], by_best.facts["theirs"]) == (40, 45)


def test_steadier_is_asked_of_second_differences_and_drawdowns():
    judged = asked(compare(two_curves()), "steadier")
    assert judged.verdict == "undecided"
    assert judged.estimate == pytest.approx(0.1304 / 0.1268, abs=1e-3)
    falls = next(each for each in judged.because if each.code == "drawdowns")
    assert falls.facts["ours"].value == pytest.approx(0.224)
    assert falls.facts["p"] == pytest.approx(0.50, abs=0.005)


def test_the_gap_of_the_bests_is_inside_the_noise_of_choosing():
    judged = asked(compare(two_curves()), "best_step")
    assert "inside_selection_noise" in codes(judged)
    best = [each.facts for each in judged.because if each.code == "best_of_arm"]
    assert [each["step"] for each in best] == [40, 45]
    assert all(each["corrected"].value < each["raw"].value for each in best)


# --- what else changed


def test_what_else_changed_stands_in_the_way_of_a_cause():
    found = compare(two_curves(entropy_coeff=0.01, lr=2e-6))
    assert level(found).also_changed == ("entropy_bonus", "lr")
    step = next(each for each in found.next if each.code == "unconfound")
    assert step.facts["keep"] == {"entropy_bonus": 0.0, "lr": 1e-6}


def test_spellings_of_one_setting_are_one_setting():
    a, b = gather(
        sources(
            run("a", config={"use_kl_loss": False, "kl_loss_coef": 0.1, "learning_rate": "1e-6"}),
            run("b", config={"beta": 0.1, "actor.optim.lr": 1e-6}),
        )
    )
    assert (a.coefficient, b.coefficient) == (0.0, 0.1)
    assert factor(b, a) == ("leash.coefficient",)
    assert confounds(b, a) == []


def test_one_other_setting_alone_is_the_factor():
    a, b = gather(
        sources(
            run("a", config={"beta": 0.1, "lr": 1e-6}), run("b", config={"beta": 0.1, "lr": 2e-6})
        )
    )
    assert factor(b, a) == ("lr",)
    assert changed(confounds(b, a), lengths=True) == ()


def test_files_are_compared_by_what_is_in_them(tmp_path):
    for name in ("one", "two", "three"):
        (tmp_path / name).write_text("x" if name != "three" else "y")
    a, b, c = gather(
        sources(
            *(
                run(name, config={"beta": at, "train_files": str(tmp_path / name)})
                for at, name in enumerate(("one", "two", "three"))
            )
        )
    )
    assert confounds(b, a) == []
    assert changed(confounds(c, a), lengths=True) == ("data",)


def test_whatever_else_differs_in_a_pair_confounds_it_though_other_arms_share_it():
    """The leash does nothing, the learning rate ten points: a third arm would part them by rank."""
    rng, base = np.random.default_rng(3), {"steps": 100, "batch_size": 8}
    cells = {"kl0": (0.0, 1e-6, 0.5), "kl0.1": (0.1, 2e-6, 0.6), "kl0-lr2": (0.0, 2e-6, 0.6)}
    runs = [
        run(f"{arm}-s{seed}", config=base | {"beta": beta, "lr": lr}, arm=arm, seed=seed)
        for arm, (beta, lr, _) in cells.items()
        for seed in range(5)
    ]
    for each in runs:
        scores = (rng.random(400) < cells[each.arm][2]) * 1.0
        each.scores = [Scores("accuracy", [f"q{n}" for n in range(400)], scores, HERE, step=1.0)]
    found = compare(sources(*runs), Wish("accuracy", "kl0", 0.01))
    levels = {each.arms: each for each in found.verdicts if each.question == "level"}
    confounded = levels["kl0.1", "kl0"]
    assert confounded.also_changed == ("lr",) and confounded.level != "L3"
    assert confounded.verdict == "better"  # the gap is judged, its cause is not
    clean = next(e for e in found.verdicts if set(e.arms) == {"kl0.1", "kl0-lr2"})
    assert (clean.also_changed, clean.level) == ((), "L3")
    assert not clean.verdict.startswith(("better", "worse"))
    assert "leash" not in " ".join(codes(level(found)))


def test_an_unknown_setting_that_differs_is_told():
    a, b = gather(
        sources(
            run("a", config={"beta": 0.0, "frobnication": 1, "out_dir": "x"}),
            run("b", config={"beta": 0.1, "frobnication": 2, "out_dir": "y"}),
        )
    )
    assert [(each.kind, each.key) for each in confounds(b, a)] == [("unknown", "frobnication")]


# --- mistakes


def test_mistakes_are_told_in_one_line():
    with pytest.raises(DataError, match="only one arm was found, alone"):
        compare(sources(run("alone")))
    for wish, said in (
        (Wish(baseline="nobody"), "no arm 'nobody'"),
        (Wish(on="frobnication"), "no metric"),
        (Wish(on="kl"), "no better end"),
        (Wish(margin=0.0), "margin of 0"),
    ):
        with pytest.raises(ConfigError, match=said):
            compare(two_curves(), wish)


def test_the_baseline_may_be_named_by_its_coefficient():
    assert compare(two_curves(), Wish(baseline="0.01")).baseline == "with"
    assert compare(two_curves()).baseline == "without"


# --- anything


def anything(rng):
    """A run with curves, scores, cells and settings that may make no sense."""
    config = {"beta": [0, 0.1, "0.1", "abc", True], "lr": [1e-6, "1e-6", [1, 2]], "foo": [1, 2]}
    chosen = {key: values[rng.integers(len(values))] for key, values in config.items()}
    made = run(f"r{rng.integers(4)}-s{rng.integers(3)}", config=chosen)
    for metric in ("val_reward", "accuracy", "val_loss", "perf/time_per_step", "foo"):
        size = int(rng.choice([1, 2, 3, 7, 12, 25]))
        noise = rng.choice([0, 1e-14, 0.1, 1e6])
        with_curve(made, rng.integers(2) + rng.normal(0, noise, size), metric)
        if rng.random() < 0.3:
            with_scores(made, rng.choice([0, 0.6, 1], int(rng.choice([1, 2, 50]))), metric)
        value = float(rng.choice([0, 0.5, 1, 57, -1]))
        items = [None, 0, 100][rng.integers(3)]
        made.cells.append(Cell(metric, Number(value, "known", HERE, 3), shots=1, items=items))
    return made


@pytest.mark.parametrize("seed", range(40))
def test_anything_is_compared_or_refused_in_both_languages(seed):
    from kleash.report import html_of, markdown_of, of_sources, screen, short_page

    rng = np.random.default_rng(seed)
    try:
        found = compare(sources(*(anything(rng) for _ in range(rng.integers(1, 6)))))
    except (ConfigError, DataError):
        return
    for language in ("zh", "en"):
        assert screen.terminal(found, language)
        page = short_page(of_sources(found, "x", language))
        assert markdown_of(page) and html_of(page)


# --- documents


REPORT = """# KL_BETA 对比

## 训练配置

| 参数 | KL_BETA=0.1 | KL_BETA=0.2 | KL_BETA=0.3 |
|---|---|---|---|
| 基础 checkpoint | a.pt | a.pt | b.pt |
| 学习率 | 1e-6 | 1e-6 | 1e-6 |

## Epoch 1 推理结果（400样本）

| KL_BETA | Shot 1 | Shot 2 | Shot 3 | Shot 4 |
|---|---|---|---|---|
| 0.1 | 51.25% | 52.5% | 53.75% | 50.0% |
| 0.2 | 51.25% | 52.5% | 53.75% | 50.0% |
| 0.3 | 53.75% | 52.0% | 54.25% | ? |
"""


def test_a_report_with_copied_accuracies_and_another_start(tmp_path):
    (tmp_path / "report.md").write_text(REPORT, encoding="utf-8")
    found = compare([markdown.read(tmp_path / "report.md")])
    same = level(found, "KL_BETA=0.2")
    assert (same.verdict, same.n) == ("identical", 400)
    other = level(found, "KL_BETA=0.3")
    assert (other.verdict, other.also_changed) == ("undecided", ("start",))
    assert other.estimate == pytest.approx((0.5375 + 0.52 + 0.5425 - 0.5125 - 0.525 - 0.5375) / 3)
    assert found.next[0].code == "check_weights"
    assert found.matrix.missing == 1


needs_seeds = pytest.mark.skipif(not SEEDS.is_dir(), reason="the documents are not at hand")


def documents(*numbers):
    return [read(path) for number in numbers for path in sorted(SEEDS.glob(f"{number}*"))]


@needs_seeds
def test_with_and_without_kl():
    found = compare(documents("003", "004"))
    assert [arm["name"] for arm in found.arms] == ["无KL约束", "有KL约束"]
    judged = level(found)
    assert (judged.verdict, judged.level, judged.n) == ("undecided", "L1", 9)
    assert judged.estimate == pytest.approx(-0.031, abs=5e-4)
    assert (judged.low, judged.high) == pytest.approx((-0.147, 0.086), abs=5e-4)
    assert judged.also_changed == ("entropy_bonus", "schedule")
    assert asked(found, "faster").estimate == 30
    assert "inside_selection_noise" in codes(asked(found, "best_step"))
    step = next(each for each in found.next if each.code == "unconfound")
    assert step.facts["coefficient"] == 0.01
    assert step.facts["keep"] == {"entropy_bonus": 0, "schedule": "constant"}
    assert step.hours == pytest.approx((26.48, 28.42), abs=0.01)
    assert asked(found, "recommend").verdict == "undecided"


@needs_seeds
def test_one_document_of_estimates():
    judged = level(compare(documents("003")))
    told = next(each for each in judged.because if each.code == "estimates_unused")
    assert (told.facts["count"], told.facts["usable"]) == (7, 2)
    assert judged.verdict == "undecided"


@needs_seeds
def test_identical_accuracies_and_another_base_checkpoint():
    found = compare(documents("000", "002"))
    for arm in ("KL_BETA=0.145", "KL_BETA=0.155", "KL_BETA=0.18"):
        assert level(found, arm).verdict == "identical"
    judged = level(found, "KL_BETA=0.15")
    assert judged.verdict == "undecided"
    assert set(judged.also_changed) == {"start", "data"}
    assert judged.estimate == pytest.approx(0.00275)
    assert asked(found, "recommend").verdict == "undecided"
    kinds = {(each.kind, each.key, each.arms[0]) for each in found.confounds}
    assert ("contradicted", "start", "KL_BETA=0.15") in kinds
    step = next(each for each in found.next if each.code == "unconfound")
    assert step.facts["keep"]["start"] == "kl012/rce_epoch5.pt"


@needs_seeds
def test_kl_to_a_reference_shows_no_agreement():
    found = compare(documents("001"))
    assert "kl_to_reference" in codes(level(found))
    assert level(found).verdict == "undecided"
    assert level(found).estimate == pytest.approx(-0.00627)


# --- the verb


def call(monkeypatch, capsys, *words):
    import sys

    from kleash import cli

    monkeypatch.setattr(sys, "argv", ["kleash", "compare", *map(str, words)])
    with pytest.raises(SystemExit) as caught:
        cli.main()
    out, err = capsys.readouterr()
    return caught.value.code or 0, out, err


@pytest.fixture
def report(tmp_path):
    path = tmp_path / "report.md"
    path.write_text(REPORT, encoding="utf-8")
    return path


def test_the_verb_prints_verdict_why_and_next(report, monkeypatch, capsys):
    code, out, _ = call(monkeypatch, capsys, report, "--lang", "zh")
    assert code == 0
    headings = [out.index(f"\n{each}\n") for each in ("结论", "依据", "下一步")]
    assert headings == sorted(headings)
    assert "输出完全相同" in out
    unwrapped = "".join(out.split())  # where a line breaks depends on the terminal
    assert "不能归因于KL系数；同时改变的还有：起始检查点" in unwrapped


def test_the_verb_gives_json_with_its_keys(report, monkeypatch, capsys):
    code, out, _ = call(monkeypatch, capsys, report, "--json", "--lang", "en")
    told = json.loads(out)
    assert code == 0
    assert list(told) == ["arms", "verdicts", "findings", "matrix", "confounds", "next"]
    middle = ["verdict", "level", "estimate", "low", "high", "narrow", "n", "p", "adjusted_p"]
    keys = ["question", "metric", "arms", *middle, "because"]
    assert all(list(each) == keys for each in told["verdicts"])
    apart = [each for each in told["verdicts"] if each["verdict"].startswith(("better", "worse"))]
    assert all(each["low"] <= each["narrow"][0] for each in apart if each["narrow"])
    assert all(list(each) == ["what", "cost", "why"] for each in told["next"])
    assert all(list(each) == ["code", "severity", "where", "message"] for each in told["findings"])
    assert list(told["matrix"]) == ["known", "missing", "estimated", "cells"]


def test_the_verb_writes_pages(report, monkeypatch, capsys, tmp_path):
    files = tmp_path / "out.md", tmp_path / "out.html"
    call(monkeypatch, capsys, report, "--md", files[0], "--html", files[1], "--lang", "en")
    assert "## Verdict" in files[0].read_text(encoding="utf-8")
    assert "<h2>Verdict</h2>" in files[1].read_text(encoding="utf-8")
    logs = [tmp_path / f"{name}.csv" for name in ("a", "b")]
    for at, log in enumerate(logs):
        rows = [f"{step},{0.2 + 0.01 * step * at}" for step in range(1, 12)]
        log.write_text("\n".join(["step,reward", *rows]), encoding="utf-8")
    call(monkeypatch, capsys, *logs, "--html", files[1], "--lang", "en")
    page = files[1].read_text(encoding="utf-8")
    assert "Training curves" in page
    assert page.count("<figcaption>") >= 1


def test_a_page_of_many_arms_stays_short(monkeypatch, capsys, tmp_path):
    from benchmarks.footprint import made_logs

    files = tmp_path / "out.md", tmp_path / "out.html"
    call(monkeypatch, capsys, *made_logs(tmp_path), "--md", files[0], "--html", files[1])
    assert files[0].stat().st_size <= 15_000
    assert files[1].stat().st_size <= 250_000


@pytest.mark.parametrize(
    ("locale", "said"), [("zh_CN.UTF-8", "结论"), ("en_GB.UTF-8", "Verdict"), ("C.UTF-8", "结论")]
)
def test_the_language_is_that_of_the_locale_else_of_the_sources(
    locale, said, report, monkeypatch, capsys
):
    for name in ("LC_ALL", "LC_MESSAGES", "LANG"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("LANG", locale)
    assert said in call(monkeypatch, capsys, report)[1]


def test_mistakes_end_with_2_and_one_line(report, monkeypatch, capsys):
    for words in (
        (report, "--lang", "fr"),
        (report, "--on", "frobnication"),
        (report.parent / "nothing.md",),
        (report, "--md", report.parent / "no/such/folder.md"),
    ):
        code, out, err = call(monkeypatch, capsys, *words)
        assert (code, out, err.count("\n")) == (2, "", 1), err


def test_comparing_imports_nothing_heavy(report):
    import subprocess
    import sys

    code = (
        "import sys; from kleash.cli import main\n"
        "try: main()\nexcept SystemExit: pass\n"
        "heavy = {'torch', 'scipy.stats', 'matplotlib', 'pandas'} & sys.modules.keys()\n"
        "sys.exit(str(heavy) if heavy else 0)"
    )
    words = [sys.executable, "-c", code, "compare", str(report)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
