"""Which factor did it: planted ones are found, aliased ones refused by name and taken apart."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

from kleash.attribution import attribute
from kleash.attribution.factors import factor, partition
from kleash.catalogue import attribution_screen as screen
from kleash.cli import app
from kleash.errors import ConfigError, DataError
from kleash.imports import read
from kleash.results import results
from kleash.results.factors import factor_effects
from kleash.results.sources import read_sources
from kleash.seeds import generator
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


def found(folder, rows, values, **more):
    return attribute([read(table(folder, rows, values))], **more)


def by_key(made):
    return {each.keys: each for each in made.effects}


def test_a_planted_factor_is_found_and_nothing_else(tmp_path):
    made = found(tmp_path, MONTH, scored(MONTH, generator("planted"), entropy=0.08, seeds=0.01))
    assert [each.keys for each in made.effects if each.named] == [("entropy_bonus",)]
    effect = by_key(made)[("entropy_bonus",)]
    assert effect.interval.low < 0.08 < effect.interval.high
    assert (effect.ours, effect.theirs) == (0.001, 0.0)
    assert not made.refused and not made.add
    assert made.df == len(MONTH) - 5
    assert (made.metric, made.seeds) == ("accuracy", 5)


@pytest.mark.parametrize(
    "studies",
    [pytest.param(40, id="short"), pytest.param(500, id="full", marks=pytest.mark.slow)],
)
def test_intervals_cover_and_equal_factors_are_rarely_named(studies, tmp_path):
    rng = generator("month")
    covered = named = refused = 0
    for _ in range(studies):
        made = found(tmp_path, MONTH, scored(MONTH, rng, entropy=0.02, seeds=0.01))
        refused += bool(made.doubts)
        if made.doubts:
            continue
        inside = by_key(made)[("entropy_bonus",)].interval
        covered += inside.low <= 0.02 <= inside.high
        named += any(e.named and e.keys != ("entropy_bonus",) for e in made.effects)
    room = 2.5 * np.sqrt(0.05 * 0.95 / studies)
    assert refused / studies <= 0.1 + room  # two tests at 5 % each, of what holds
    assert covered / (studies - refused) >= 0.93 - room
    assert named / studies <= 0.06 + room


def test_settings_that_change_together_are_refused_by_name(tmp_path):
    values = scored(TOGETHER, generator("together"), noise=0.003, entropy=0.1)
    made = found(tmp_path, TOGETHER, values)
    refused = {each.key: set(each.aliased_with) for each in made.refused}
    three = {"leash.coefficient", "entropy_bonus", "schedule"}
    assert refused == {key: three - {key} for key in three}
    assert all(each.always for each in made.refused)
    [joint] = [each for each in made.effects if len(each.keys) == 3]
    assert joint.adjusted_p < 0.05 and not joint.named
    assert joint.interval.low < 0.1 < joint.interval.high
    said = screen.terminal(made, "en", 300)
    assert "entropy coefficient is refused: it never changes without" in said
    assert "which of them did it, these runs cannot say" in said


def test_the_runs_that_are_proposed_take_aliases_apart(tmp_path):
    rng = generator("apart")
    made = found(tmp_path, TOGETHER, scored(TOGETHER, rng))
    assert 0 < len(made.add) <= 2
    names = {"leash.coefficient": 2, "entropy_bonus": 3, "schedule": 4}
    rows = list(TOGETHER)
    for each in made.add:
        like = next(row for row in rows if f"{row[0]}-s{row[1]}" == each.like)
        changed = list(like)
        changed[0], changed[names[each.key]] = f"more{len(rows)}", each.value
        rows.append(tuple(changed))
    again = found(tmp_path, rows, scored(rows, rng))
    assert not again.refused
    assert len(again.effects) == 4


def test_factors_that_only_together_make_another_are_refused(tmp_path):
    heads = ("run", "seed", "kl_coef", "entropy_coeff", "lr", "batch_size")
    # The batch was doubled whenever one of the two was changed.
    rows = [
        ("a", 0, 0.0, 0.0, 1e-6, 8), ("b", 1, 0.0, 0.0, 1e-6, 8), ("c", 2, 0.01, 0.0, 1e-6, 16),
        ("d", 3, 0.01, 0.0, 1e-6, 16), ("e", 4, 0.0, 0.1, 1e-6, 16), ("f", 5, 0.0, 0.1, 1e-6, 16),
    ]  # fmt: skip
    values = scored(rows, generator("doubled"))
    made = attribute([read(table(tmp_path, rows, values, heads))])
    refused = {each.key: each.aliased_with for each in made.refused}
    assert set(refused) == {"leash.coefficient", "entropy_bonus", "batch"}
    assert set(refused["batch"]) == {"leash.coefficient", "entropy_bonus"}
    assert not any(each.always for each in made.refused)
    assert made.settings.constant == ["lr"]
    assert "cannot be told from that of" in screen.terminal(made, "en")


def test_a_factor_that_changes_only_with_the_seed_is_refused(tmp_path):
    rows = [
        ("a", 0, 0.0, 0.0, "constant", 1e-6), ("b", 0, 0.0, 0.01, "constant", 1e-6),
        ("c", 0, 0.0, 0.0, "cosine", 1e-6), ("d", 7, 0.1, 0.0, "constant", 1e-6),
        ("e", 7, 0.1, 0.01, "constant", 1e-6), ("f", 7, 0.1, 0.0, "cosine", 1e-6),
        ("g", None, 0.0, 0.0, "constant", 1e-6),
    ]  # fmt: skip
    made = found(tmp_path, rows[:6], scored(rows[:6], generator("seeded")))
    assert [(e.key, e.aliased_with) for e in made.refused] == [("leash.coefficient", ("seed",))]
    assert {each.keys[0] for each in made.effects} == {"entropy_bonus", "schedule"}
    assert "cannot be told from that of seed" in screen.terminal(made, "en", 300)
    # Three seeds on each side are replicates: nothing is wrong with runs that share none.
    apart = [(*row[:1], at, *row[2:]) for at, row in enumerate(rows)]
    assert not found(tmp_path, apart, scored(apart, generator("own"))).refused


def test_numbers_are_a_line_in_their_logarithm(tmp_path):
    rows = [
        (f"r{at}", at, kl, 0.0, "constant", 1e-6) for at, kl in enumerate([0, 0.1, 0.2, 0.4] * 3)
    ]
    values = [0.5 + 0.02 * np.log2(row[2] / 0.2) if row[2] else 0.4 for row in rows]
    rng = generator("line")
    made = found(tmp_path, rows, np.array(values) + rng.normal(0, 0.002, len(rows)))
    slope, zero = made.effects
    assert slope.ours == "doubling" and slope.interval.low < 0.02 < slope.interval.high
    assert zero.ours == "0" and zero.interval.low < -0.1 < zero.interval.high
    assert zero.theirs == pytest.approx(0.2)
    text = screen.terminal(made, "en")
    assert "every doubling" in text and "0 instead of about 0.2" in text


def test_what_is_no_factor_is_told_apart(tmp_path):
    heads = ("run", "seed", "kl_coef", "tag_x", "model", "base_checkpoint", "lr_scheduler")
    rows = [
        ("a", 0, 0.0, "u", "m", "d0", "constant"), ("b", 0, 0.1, "v", "m", "d0", "constant"),
        ("c", 1, 0.0, "w", "m", "d1", ""), ("d", 1, 0.1, "x", "m", "d1", "constant"),
    ]  # fmt: skip
    made = attribute([read(table(tmp_path, rows, [0.5, 0.6, 0.51, 0.62], heads))])
    kept = made.settings
    assert [each.key for each in kept.factors] == ["leash.coefficient"]
    assert (kept.constant, kept.untold) == (["model"], ["schedule"])
    assert (kept.of_seed, kept.labels) == (["start"], ["tag_x"])
    asked = attribute([read(tmp_path / "runs.csv")], factors=["kl_coef", "tag_x"])
    assert {each.key for each in asked.settings.factors} == {"leash.coefficient", "tag_x"}
    with pytest.raises(ConfigError, match="no run tells 'warmup'"):
        attribute([read(tmp_path / "runs.csv")], factors=["warmup_steps"])


def test_two_factors_that_act_on_each_other(tmp_path):
    rows = [
        (f"r{at}", at, kl, entropy, "constant", 1e-6)
        for at, (kl, entropy) in enumerate([(0, 0), (0.1, 0), (0, 0.1), (0.1, 0.1)] * 4)
    ]
    rng = generator("both")
    values = [0.5 + 0.1 * (r[2] > 0) * (r[3] > 0) + rng.normal(0, 0.01) for r in rows]
    made = found(tmp_path, rows, values)
    [pair] = made.pairs
    assert pair.estimable and pair.effect.adjusted_p < 0.001
    assert pair.effect.interval.low < 0.1 < pair.effect.interval.high
    assert made.misfit < 0.001
    # One effect for each would be wrong at either level of the other, so none is told.
    assert (made.effects, made.doubts) == ([], ["factors_act"])
    said = screen.terminal(made, "en")
    assert "act on each other" in said and "do not just add up" in said
    assert "No factor is named" in said and "did it" not in said
    # Without a run that has both, nobody can say.
    made = found(tmp_path, [r for r in rows if not (r[2] and r[3])], values[:12])
    assert [each.estimable for each in made.pairs] == [False]
    assert "cannot be seen in these runs: KL coefficient × entropy" in screen.terminal(made, "en")


def test_runs_that_spread_unequally_are_refused(tmp_path):
    """With the high rate nothing is sure, and one error for all would make the low one so."""
    rng = generator("uneven")
    rows = [
        (f"r{at}", at // 4, kl, 0.0, "constant", lr)
        for at, (kl, lr) in enumerate([(0, 1e-6), (0.1, 1e-6), (0, 5e-6), (0.1, 5e-6)] * 6)
    ]
    values = [0.5 + rng.normal(0, 0.001 if row[5] == 1e-6 else 0.05) for row in rows]
    made = found(tmp_path, rows, values)
    assert (made.effects, made.doubts) == ([], ["runs_uneven"]) and made.uneven < 0.05
    said = screen.terminal(made, "zh")
    assert "离散得多" in said
    assert json.loads(json.dumps(screen.plain(made, "en")))["doubts"] == ["runs_uneven"]


def test_without_a_spare_run_there_are_no_intervals(tmp_path):
    rows = [MONTH[0], MONTH[3], MONTH[9]]
    made = found(tmp_path, rows, [0.5, 0.52, 0.51])
    assert made.df == 0
    assert [each.interval for each in made.effects] == [None, None]
    assert by_key(made)[("leash.coefficient",)].estimate == pytest.approx(0.02)
    text = screen.terminal(made, "en")
    assert "repeat a run with another seed" in text and "run a-s0 again with another seed" in text
    assert "did it" not in text


def test_runs_that_say_nothing_are_refused(tmp_path):
    with pytest.raises(DataError, match="all 12 runs scored the same"):
        found(tmp_path, MONTH, [0.5] * 12)
    with pytest.raises(DataError, match="2 runs tell their accuracy"):
        found(tmp_path, MONTH[:2], [0.5, 0.6])
    same = [MONTH[0], MONTH[1], MONTH[11]]
    with pytest.raises(DataError, match="no setting differs"):
        found(tmp_path, same, [0.5, 0.6, 0.7])
    with pytest.raises(ConfigError, match="no metric 'beauty'"):
        found(tmp_path, MONTH, scored(MONTH, generator("x")), on="beauty")


def test_one_seed_for_all_is_said(tmp_path):
    rows = [(row[0], 42, *row[2:]) for row in MONTH]
    made = found(tmp_path, rows, scored(rows, generator("one seed"), entropy=0.1))
    assert by_key(made)[("entropy_bonus",)].named
    assert "所有运行只用了一个随机种子" in screen.terminal(made, "zh")


def test_a_balanced_study_gives_what_its_report_gives(tmp_path):
    grid = {"leash.coefficient": [0.0, 0.01], "entropy_bonus": [0.0, 0.01]}
    worth = lambda keys: 1.0 + 0.3 * (keys["entropy_bonus"] > 0)  # noqa: E731
    made_factorial(tmp_path / "made", worth, grid=grid, grpo={"epochs": 2}, seeds=4)
    made = attribute(read_sources([tmp_path / "made"]))
    ours = {each.keys[0]: each for each in made.effects}
    theirs = {e.keys[0]: e for e in factor_effects(results(tmp_path / "made")) if len(e.keys) == 1}
    assert set(ours) == set(theirs)
    for key, each in ours.items():
        sign = 1 if each.theirs == theirs[key].values[0][1] else -1
        assert sign * each.estimate == pytest.approx(theirs[key].gap.estimate, abs=1e-9)
    assert [each.keys for each in made.effects if each.named] == [("entropy_bonus",)]
    assert made.metric == "eval_reward"


def test_a_run_of_ours_is_proposed_as_a_command(tmp_path):
    made_factorial(
        tmp_path / "made",
        lambda keys: 1.0,
        grid={},
        arms={
            "none": {"leash": {"coefficient": 0.0}},
            "both": {"leash": {"coefficient": 0.1}, "entropy_bonus": 0.01},
        },
        seeds=3,
    )
    made = attribute(read_sources([tmp_path / "made"]))
    [each] = made.add
    assert each.command.startswith(f"kleash train {tmp_path}/made/runs/")
    assert f"{each.key}={each.value} --new --out " in each.command
    assert each.command in screen.terminal(made, "en")


def test_values_are_the_same_by_what_they_mean():
    assert partition([1, 1.0, "a", "A", None]) == (0, 0, 1, 1, -1)
    made = factor("lr", [1e-6, 1e-6, None, 2e-6, 4e-6])
    assert made.reference == 1e-6 and made.levels == (None, 2e-6, 4e-6)


def test_the_verb_in_both_languages_and_as_json(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    values = scored(MONTH, generator("verb"), entropy=0.08)
    table(tmp_path, MONTH, values)
    told = CliRunner().invoke(app, ["attribute", "runs.csv", "--lang", "zh"])
    assert told.exit_code == 0 and "熵系数起了作用" in told.output
    told = CliRunner().invoke(app, ["attribute", "runs.csv", "--json", "--on", "acc"])
    plain = json.loads(told.output)
    named = [each for each in plain["effects"] if each["named"]]
    assert [each["keys"] for each in named] == [["entropy_bonus"]]
    assert plain["refused"] == [] and plain["because"]


def test_what_a_factor_asked_for_leaves_out_is_said(tmp_path):
    values = scored(MONTH, generator("asked"), entropy=0.08)
    made = found(tmp_path, MONTH, values, factors=["lr"])
    assert [each.keys for each in made.effects] == [("lr",)]
    assert set(made.settings.ignored) == {"leash.coefficient", "entropy_bonus", "schedule"}
    said = screen.terminal(made, "en", 300)
    assert "--factor leaves it out: learning-rate schedule, KL coefficient, entropy" in said
    assert "all else equal" not in said
    assert "all else equal" in screen.terminal(found(tmp_path, MONTH, values), "en", 300)


def test_a_number_without_a_known_name_is_told_of_and_may_be_asked_for(tmp_path):
    heads = (*HEADS[:-1], "warm_share", "lr")
    rows = [(*row[:-1], [0.1, 0.3][at % 2], row[-1]) for at, row in enumerate(MONTH)]
    values = scored(MONTH, generator("number"))
    source = [read(table(tmp_path, rows, values, heads))]
    made = attribute(source)
    assert made.settings.numbers == ["warm_share"]
    assert "warm_share" in screen.terminal(made, "zh", 300)
    asked = attribute(source, factors=["warm_share", "lr"])
    assert {each.keys for each in asked.effects} == {("warm_share",), ("lr",)}
    assert asked.settings.numbers == []
    with pytest.raises(ConfigError, match="warm_share"):
        attribute(source, factors=["warm_shares"])


def test_labels_of_many_runs_are_told_apart_without_opening_files(tmp_path, monkeypatch):
    calls = []
    monkeypatch.setattr("kleash.attribution.factors.alike", lambda *pair: calls.append(pair))
    assert partition([f"run-{at % 500}" for at in range(2000)]) == tuple(
        at % 500 for at in range(2000)
    )
    assert not calls
    monkeypatch.undo()
    for name in ("a.json", "b.json"):
        (tmp_path / name).write_text("{}")
    (tmp_path / "c.json").write_text("[]")
    files = [str(tmp_path / name) for name in ("a.json", "b.json", "c.json", "a.json")]
    assert partition(files) == (0, 0, 1, 0)
    assert partition([1, 1.0, True, "1", None]) == (0, 0, 1, 2, -1)
