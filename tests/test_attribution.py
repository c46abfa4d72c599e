"""The effect of one setting: a planted one is found, an aliased one refused by name."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

from kleash.cli import app
from kleash.compare.attribution import DOUBLING, effect_of, factor, partition
from kleash.compare.read import read
from kleash.errors import ConfigError, DataError
from kleash.report.words import attribution_screen as screen
from kleash.seeds import generator
from kleash.study.results.sources import read_sources
from made_factorial import made_factorial

HEADS = ("run", "seed", "kl_coef", "entropy_coeff", "lr_scheduler", "lr")
# Unbalanced: what a month of trying things leaves.
MONTH = [
    ("a", 0, 0.0, 0.0, "constant", 1e-6),
    ("b", 1, 0.0, 0.0, "constant", 1e-6),
    ("c", 0, 0.01, 0.0, "constant", 1e-6),
    ("d", 2, 0.01, 0.0, "constant", 1e-6),
    ("e", 0, 0.01, 0.0, "cosine", 1e-6),
    ("f", 1, 0.01, 0.0, "cosine", 1e-6),
    ("g", 3, 0.0, 0.001, "cosine", 1e-6),
    ("h", 2, 0.0, 0.001, "constant", 1e-6),
    ("i", 0, 0.01, 0.001, "constant", 5e-6),
    ("j", 4, 0.0, 0.0, "constant", 5e-6),
    ("k", 1, 0.0, 0.0, "cosine", 5e-6),
    ("l", 3, 0.0, 0.0, "constant", 1e-6),
]
TOGETHER = [
    ("a", 0, 0.0, 0.0, "constant", 1e-6),
    ("b", 1, 0.0, 0.0, "constant", 1e-6),
    ("c", 0, 0.01, 0.001, "cosine", 1e-6),
    ("d", 1, 0.01, 0.001, "cosine", 1e-6),
    ("e", 2, 0.0, 0.0, "constant", 5e-6),
    ("f", 2, 0.01, 0.001, "cosine", 5e-6),
]


def table(folder, rows, values, heads=HEADS):
    path = folder / "runs.csv"
    lines = [",".join((*heads, "accuracy"))]
    for row, value in zip(rows, values, strict=True):
        lines.append(",".join(f"{each}" for each in (*row, f"{value:.6f}")))
    path.write_text("\n".join(lines) + "\n")
    return path


def scored(rows, rng, *, noise=0.01, entropy=0.0, seeds=0.0):
    luck = {row[1]: rng.normal(0, seeds) for row in rows}
    return [0.5 + entropy * (row[3] > 0) + luck[row[1]] + rng.normal(0, noise) for row in rows]


def found(folder, rows, values, key="entropy_bonus", heads=HEADS, **more):
    return effect_of(key, [read(table(folder, rows, values, heads))], **more)


def did(made):
    """Whether some change of the setting alone is told from chance."""
    return not made.refusals and any(each.p is not None and each.p < 0.05 for each in made.changes)


def test_a_planted_effect_is_found_and_no_other(tmp_path):
    values = scored(MONTH, generator("planted"), entropy=0.08, seeds=0.01)
    made = found(tmp_path, MONTH, values)
    [change] = made.changes
    assert did(made) and change.interval.low < 0.08 < change.interval.high
    assert (change.ours, change.theirs) == (0.001, 0.0)
    assert (made.metric, made.seeds, made.df) == ("accuracy", 5, len(MONTH) - 5)
    others = {"leash.coefficient", "lr", "schedule"}
    assert set(made.others) == others
    assert not any(did(found(tmp_path, MONTH, values, key)) for key in others)
    said = screen.terminal(made, "en", 300)
    assert "all else equal: KL coefficient, learning-rate schedule, learning rate" in said


@pytest.mark.parametrize(
    "studies",
    [pytest.param(40, id="short"), pytest.param(500, id="full", marks=pytest.mark.slow)],
)
def test_intervals_cover_and_equal_settings_are_rarely_named(studies, tmp_path):
    rng = generator("month")
    covered = named = refused = 0
    for _ in range(studies):
        values = scored(MONTH, rng, entropy=0.02, seeds=0.01)
        made = found(tmp_path, MONTH, values)
        refused += bool(made.refusals)
        if made.refusals:
            continue
        inside = made.changes[0].interval
        covered += inside.low <= 0.02 <= inside.high
        keys = ("leash.coefficient", "lr", "schedule")
        named += any(did(found(tmp_path, MONTH, values, key)) for key in keys)
    room = 2.5 * np.sqrt(0.05 * 0.95 / studies)
    assert refused / studies <= 0.1 + room  # two tests at 5 % each, of what holds
    assert covered / (studies - refused) >= 0.93 - room
    assert named / studies <= 0.06 + room


def test_settings_that_change_together_are_refused_by_name(tmp_path):
    values = scored(TOGETHER, generator("together"), noise=0.003, entropy=0.1)
    three = {"leash.coefficient", "entropy_bonus", "schedule"}
    for key in three:
        made = found(tmp_path, TOGETHER, values, key)
        assert made.refusals == ["effect_together"]
        assert made.keys[0] == key and set(made.keys) == three
        [joint] = made.changes
        assert joint.p < 0.05 and joint.interval.low < 0.1 < joint.interval.high
        said = screen.terminal(made, "en", 300)
        assert "is refused: it never changes without" in said and "did it" not in said
        assert "all of them together" in said
    # The runs that it says would tell do.
    rows = [
        *TOGETHER,
        ("g", 3, 0.01, 0.0, "constant", 1e-6),
        ("h", 3, 0.0, 0.001, "constant", 1e-6),
    ]
    assert not found(tmp_path, rows, scored(rows, generator("apart"))).refusals


def test_settings_that_only_together_make_another_are_refused(tmp_path):
    heads = ("run", "seed", "kl_coef", "entropy_coeff", "lr", "batch_size")
    # The batch was doubled whenever one of the two was changed.
    rows = [
        ("a", 0, 0.0, 0.0, 1e-6, 8), ("b", 1, 0.0, 0.0, 1e-6, 8), ("c", 2, 0.01, 0.0, 1e-6, 16),
        ("d", 3, 0.01, 0.0, 1e-6, 16), ("e", 4, 0.0, 0.1, 1e-6, 16), ("f", 5, 0.0, 0.1, 1e-6, 16),
    ]  # fmt: skip
    values = scored(rows, generator("doubled"))
    made = found(tmp_path, rows, values, "batch_size", heads)
    assert (made.refusals, made.changes) == (["effect_aliased"], [])
    assert set(made.aliased_with) == {"leash.coefficient", "entropy_bonus"}
    assert "cannot be told from that of" in screen.terminal(made, "en")
    with pytest.raises(ConfigError, match=r"lr does not differ between the 6 runs"):
        found(tmp_path, rows, values, "learning_rate", heads)


def test_a_setting_that_changes_only_with_the_seed_is_refused(tmp_path):
    rows = [
        ("a", 0, 0.0, 0.0, "constant", 1e-6), ("b", 0, 0.0, 0.01, "constant", 1e-6),
        ("c", 0, 0.0, 0.0, "cosine", 1e-6), ("d", 7, 0.1, 0.0, "constant", 1e-6),
        ("e", 7, 0.1, 0.01, "constant", 1e-6), ("f", 7, 0.1, 0.0, "cosine", 1e-6),
        ("g", None, 0.0, 0.0, "constant", 1e-6),
    ]  # fmt: skip
    values = scored(rows[:6], generator("seeded"))
    made = found(tmp_path, rows[:6], values, "kl_coef")
    assert (made.refusals, made.aliased_with) == (["effect_aliased"], ("seed",))
    assert "cannot be told from that of seed" in screen.terminal(made, "en", 300)
    assert not found(tmp_path, rows[:6], values, "schedule").refusals
    # Three seeds on each side are replicates: nothing is wrong with runs that share none.
    apart = [(*row[:1], at, *row[2:]) for at, row in enumerate(rows)]
    assert not found(tmp_path, apart, scored(apart, generator("own")), "kl_coef").refusals


def test_numbers_are_a_line_in_their_logarithm(tmp_path):
    rows = [
        (f"r{at}", at, kl, 0.0, "constant", 1e-6) for at, kl in enumerate([0, 0.1, 0.2, 0.4] * 3)
    ]
    values = [0.5 + 0.02 * np.log2(row[2] / 0.2) if row[2] else 0.4 for row in rows]
    rng = generator("line")
    made = found(tmp_path, rows, np.array(values) + rng.normal(0, 0.002, len(rows)), "kl_coef")
    slope, zero = made.changes
    assert slope.ours == DOUBLING and slope.interval.low < 0.02 < slope.interval.high
    assert zero.ours == "0" and zero.interval.low < -0.1 < zero.interval.high
    assert zero.theirs == pytest.approx(0.2)
    text = screen.terminal(made, "en")
    assert "every doubling" in text and "0 instead of about 0.2" in text


def test_what_differs_and_is_not_in_the_model_is_said(tmp_path):
    heads = (*HEADS[:3], "tag_x", "model", "base_checkpoint", "lr_scheduler", "warm")
    rows = [
        ("a", 0, 0.0, "u", "m", "d0", "constant", 0.1),
        ("b", 0, 0.1, "v", "m", "d0", "constant", 0.3),
        ("c", 1, 0.0, "w", "m", "d1", "", 0.1),
        ("d", 1, 0.1, "x", "m", "d1", "constant", 0.1),
    ]
    made = found(tmp_path, rows, [0.5, 0.6, 0.51, 0.62], "kl_coef", heads)
    # A label, told of some only, goes with the seed, a number that may be a result.
    assert set(made.outside) == {"tag_x", "schedule", "start", "warm"} and made.others == []
    assert "warm" in screen.terminal(made, "zh", 300)
    asked = found(tmp_path, rows, [0.5, 0.6, 0.51, 0.62], "warm", heads)
    assert asked.keys == ("warm",) and asked.others == ["leash.coefficient"]
    assert found(tmp_path, rows, [0.5, 0.6, 0.51, 0.62], "tag_x", heads).refusals
    with pytest.raises(ConfigError, match=r"warmup does not differ .* these do: leash.coefficient"):
        found(tmp_path, rows, [0.5, 0.6, 0.51, 0.62], "warmup_steps", heads)


def test_settings_that_act_on_each_other_are_refused(tmp_path):
    rows = [
        (f"r{at}", at, kl, entropy, "constant", 1e-6)
        for at, (kl, entropy) in enumerate([(0, 0), (0.1, 0), (0, 0.1), (0.1, 0.1)] * 4)
    ]
    rng = generator("both")
    values = [0.5 + 0.1 * (r[2] > 0) * (r[3] > 0) + rng.normal(0, 0.01) for r in rows]
    made = found(tmp_path, rows, values)
    [(pair, p)] = made.acting
    assert set(pair) == {"leash.coefficient", "entropy_bonus"} and p < 0.001
    assert made.misfit < 0.001
    # One effect for each would be wrong at either level of the other, so none is told.
    assert (made.changes, made.refusals) == ([], ["effect_acting"])
    said = screen.terminal(made, "en")
    assert "act on each other" in said and "do not just add up" in said
    assert "is refused" in said and "did it" not in said
    # Without a run that has both, nobody can say.
    made = found(tmp_path, [r for r in rows if not (r[2] and r[3])], values[:12])
    assert not made.refusals and made.unseen == [("leash.coefficient", "entropy_bonus")]
    assert "cannot be seen in these runs: KL coefficient × entropy" in screen.terminal(made, "en")


def test_runs_that_spread_unequally_are_refused(tmp_path):
    """With the high rate nothing is sure, and one error for all would make the low one so."""
    rng = generator("uneven")
    rows = [
        (f"r{at}", at // 4, kl, 0.0, "constant", lr)
        for at, (kl, lr) in enumerate([(0, 1e-6), (0.1, 1e-6), (0, 5e-6), (0.1, 5e-6)] * 6)
    ]
    values = [0.5 + rng.normal(0, 0.001 if row[5] == 1e-6 else 0.05) for row in rows]
    made = found(tmp_path, rows, values, "kl_coef")
    assert (made.changes, made.refusals) == ([], ["effect_uneven"]) and made.uneven < 0.05
    assert "离散得多" in screen.terminal(made, "zh")


def test_without_a_spare_run_there_is_no_interval(tmp_path):
    made = found(tmp_path, [MONTH[0], MONTH[3], MONTH[9]], [0.5, 0.52, 0.51], "kl_coef")
    [change] = made.changes
    assert (made.df, change.interval) == (0, None)
    assert change.estimate == pytest.approx(0.02)
    text = screen.terminal(made, "en", 300)
    assert "repeat a run with another seed" in text and "did it" not in text


def test_runs_that_say_nothing_are_refused(tmp_path):
    with pytest.raises(DataError, match="all 12 runs scored the same"):
        found(tmp_path, MONTH, [0.5] * 12)
    with pytest.raises(DataError, match="2 runs tell their accuracy"):
        found(tmp_path, MONTH[:2], [0.5, 0.6])
    with pytest.raises(ConfigError, match="these do: none"):
        found(tmp_path, [MONTH[0], MONTH[1], MONTH[11]], [0.5, 0.6, 0.7])
    with pytest.raises(ConfigError, match="no metric 'beauty'"):
        found(tmp_path, MONTH, scored(MONTH, generator("x")), on="beauty")


def test_one_seed_for_all_is_said(tmp_path):
    rows = [(row[0], 42, *row[2:]) for row in MONTH]
    made = found(tmp_path, rows, scored(rows, generator("one seed"), entropy=0.1))
    assert did(made)
    assert "所有运行只用了一个随机种子" in screen.terminal(made, "zh")


def test_a_balanced_study_gives_the_gap_of_its_means(tmp_path):
    grid = {"leash.coefficient": [0.0, 0.01], "entropy_bonus": [0.0, 0.01]}
    worth = lambda keys: 1.0 + 0.3 * (keys["entropy_bonus"] > 0)  # noqa: E731
    made_factorial(tmp_path / "made", worth, grid=grid, grpo={"epochs": 2}, seeds=4)
    told = read_sources([tmp_path / "made"])
    made = effect_of("entropy_bonus", told)
    [change] = made.changes
    sides = {value: [row.value for row in made.rows if row.settings["entropy_bonus"] == value]
             for value in (change.ours, change.theirs)}  # fmt: skip
    gap = np.mean(sides[change.ours]) - np.mean(sides[change.theirs])
    assert change.estimate == pytest.approx(gap, abs=1e-9)
    assert did(made) and not did(effect_of("kl_coef", told))
    assert made.metric == "eval_reward"


def test_names_of_our_own_runs_are_no_settings(tmp_path):
    arms = {"none": {"leash": {"coefficient": 0.0}}, "tight": {"leash": {"coefficient": 1.0}}}
    made_factorial(tmp_path / "made", lambda keys: 1.0, grid={}, arms=arms, seeds=4)
    made = effect_of("kl_coef", read_sources([tmp_path / "made"]))
    assert (made.keys, made.refusals, made.by_name) == (("leash.coefficient",), [], [])
    assert not did(made)


def test_values_are_the_same_by_what_they_mean(tmp_path):
    assert partition([1, 1.0, "a", "A", None]) == (0, 0, 1, 1, -1)
    assert partition([1, 1.0, True, "1", None]) == (0, 0, 1, 2, -1)
    for name, text in (("a.json", "{}"), ("b.json", "{}"), ("c.json", "[]")):
        (tmp_path / name).write_text(text)
    files = [str(tmp_path / name) for name in ("a.json", "b.json", "c.json", "a.json")]
    assert partition(files) == (0, 0, 1, 0)
    made = factor(("lr",), [1e-6, 1e-6, None, 2e-6, 4e-6])
    assert made.reference == 1e-6 and made.levels == (None, 2e-6, 4e-6)


def test_the_verb_in_both_languages_and_as_json(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    table(tmp_path, MONTH, scored(MONTH, generator("verb"), entropy=0.08))
    asked = ["compare", "runs.csv", "--effect", "entropy_coeff"]
    told = CliRunner().invoke(app, [*asked, "--lang", "zh"])
    assert told.exit_code == 0 and "熵系数起了作用" in told.output
    plain = json.loads(CliRunner().invoke(app, [*asked, "--json", "--on", "acc"]).output)
    [change] = plain["changes"]
    assert plain["keys"] == ["entropy_bonus"] and change["p"] < 0.05
    assert plain["refusals"] == [] and "did it" in plain["because"][0]
    refused = CliRunner().invoke(app, [*asked, "--margin", "0.1"])
    assert isinstance(refused.exception, ConfigError)


# --- settings that only the names of runs tell


def logs(folder, levels, seeds=3):
    rng = generator("names", sorted(levels))
    for name, level in levels.items():
        for seed in range(seeds):
            rows = [f"{at},{level + rng.normal(0, 0.004):.4f}" for at in (10, 20, 30)]
            text = "\n".join(["step,accuracy", *rows]) + "\n"
            (folder / f"{name}-seed{seed}.csv").write_text(text)
    return [read(folder)]


def test_a_coefficient_and_a_rate_in_names_are_told_apart(tmp_path):
    levels = {
        f"kl{kl}-lr{lr}": 0.6 - (0.1 if kl == 0.2 else 0.0)
        for kl in (0.05, 0.2)
        for lr in ("1e-6", "5e-6")
    }
    told = logs(tmp_path, levels)
    made = effect_of("kl_coef", told)
    assert did(made) and made.changes[0].estimate == pytest.approx(-0.1, abs=0.01)
    assert not did(effect_of("lr", told))
    assert made.by_name == ["lr"]
    assert any("told by the names of the arms alone" in each for each in screen.limits(made, "en"))


def test_starts_and_baselines_without_a_coefficient_stand_aside(tmp_path):
    levels = {"kl0": 0.60, "kl0.05": 0.58, "kl0.1": 0.56, "kl0.2": 0.54, "random": 0.2, "rce": 0.4}
    made = effect_of("leash.coefficient", logs(tmp_path, levels))
    assert made.left_out["aside"] == ["random", "rce"]
    assert len(made.rows) == 12
    (slope, _) = made.changes  # a doubling, and 0
    assert slope.estimate == pytest.approx(-0.02, abs=0.01)


def test_names_that_are_only_names_and_names_beside_configs_are_no_settings(tmp_path):
    with pytest.raises(ConfigError, match="these do: none"):
        effect_of("lr", logs(tmp_path, {"monday": 0.5, "tuesday": 0.6, "friday": 0.55}, seeds=1))
    rows = [("fast-a", 0, 5e-6), ("fast-a", 1, 5e-6), ("slow-b", 0, 1e-6), ("slow-b", 1, 1e-6)]
    values = [0.6, 0.601, 0.5, 0.501]
    made = found(tmp_path, rows, values, "lr", ("run", "seed", "lr"))
    assert (made.keys, made.by_name, made.refusals) == (("lr",), [], [])
