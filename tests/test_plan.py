"""A study's file, arms and cells, before anything runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from kleash.config import build, merge
from kleash.errors import ConfigError
from kleash.study.plan import (
    Arm,
    Cell,
    Column,
    StudyFile,
    against,
    arm_recipe,
    arms_of,
    base_checkpoint,
    base_recipe,
    bundled,
    cells_of,
    check_expected,
    chosen_of,
    read_study,
    state_of,
)
from kleash.study.plan.arms import seeded
from pace import cpu_within
from study_tools import SMALL, small


def test_number_of_cells_by_hand() -> None:
    file = small()
    cells = list(cells_of(file, arms_of(file)))
    # 11 baselines × 2 shots × 2 sizes and best-greedy × 2 shots; the base 2 seeds × 2 × 2;
    # 2 arms × 2 seeds × (2 checkpoints on validation + 2 shots × 2 sizes of the test).
    assert len(cells) == 11 * 4 + 2 + 8 + 2 * 2 * (2 + 4)
    assert len(set(cells)) == len(cells)
    assert Cell("tight", 1, "chosen", "test", 2, 60) in cells


def test_embedded_study_is_a_ladder_and_a_sweep_with_five_seeds() -> None:
    file = read_study("demos-kl")
    arms = arms_of(file)
    assert file.seeds == (0, 1, 2, 3, 4)
    ladder, sweep = ("kl-0.3", "kl-1", "kl-3"), ("offline-0.12", "offline-0.15", "offline-0.18")
    pairs = {**dict.fromkeys(ladder, "none"), **dict.fromkeys(sweep, "offline-none")}
    assert against(file, arms) == pairs and len(arms) == 8


@pytest.mark.parametrize("name", bundled())
def test_bundled_studies_can_be_planned_and_say_what_they_are_for(name: str) -> None:
    file = read_study(name)
    arms = arms_of(file, [Arm("kl-0.1", {"leash.coefficient": 0.1})] * bool(file.calibrate.arms))
    assert len(file.about) > 40
    assert sum(1 for _ in cells_of(file, arms)) > 50
    for arm in arms:
        assert arm_recipe(file, arm, 0, "BASE").phase == "grpo"


@pytest.mark.parametrize("name", bundled())
def test_the_recipe_of_another_seed_is_the_one_that_would_be_built(name: str) -> None:
    file = read_study(name)
    own = Arm("own", {"from": "x/checkpoints/y"})
    for arm in (*arms_of(file), own):
        first = arm_recipe(file, arm, 0, "BASE")
        other = seeded(first, arm, 3, Path("ELSE"))
        assert other == arm_recipe(file, arm, 3, Path("ELSE"))
        assert other.resolved() == arm_recipe(file, arm, 3, Path("ELSE")).resolved()
        assert first.seed == 0


def test_arm_differs_only_in_the_keys_it_names() -> None:
    file = small(arms={"other": {"leash": {"coefficient": 0.3}, "lr": 0.5}})
    none, _, other = arms_of(file)
    ours = arm_recipe(file, other, 1, "BASE").resolved()
    theirs = arm_recipe(file, none, 1, "BASE").resolved()
    assert {key for key in ours if ours[key] != theirs[key]} == {"leash", "lr"}
    assert ours["leash"] == theirs["leash"] | {"coefficient": 0.3}


def test_base_is_the_same_whatever_arms_do() -> None:
    plain = base_recipe(small(), 0)
    assert base_recipe(small(grpo={"lr": 0.1, "updates": 4}), 0) == plain
    assert base_recipe(small(base={"leash": {"coefficient": 9.0}, "lr": 3.0}), 0) == plain
    assert base_recipe(small(base={"queries": 9}), 0) != plain
    assert plain.epochs == 0


def test_base_checkpoint_is_the_last_phase_that_trains() -> None:
    assert base_checkpoint(small(), 0) == "rce-1"
    assert base_checkpoint(small(base={"rce": {"epochs": 0}}), 0) == "supervised-1"
    both = {"rce": {"epochs": 0}, "supervised": {"epochs": 0}}
    assert base_checkpoint(small(base=both), 0) == "start"
    assert base_checkpoint(small(base={"from": "x/checkpoints/y"}), 0) == "start"


def test_arm_is_compared_with_the_baseline_nearest_to_it() -> None:
    arms = {
        "fast": {"lr": 0.1, "leash": {"coefficient": 0.0}},
        "fast-tight": {"lr": 0.1, "leash": {"coefficient": 1.0}},
    }
    file = small(arms=arms, compare={"baselines": ["none", "fast"]})
    assert against(file, arms_of(file)) == {"tight": "none", "fast-tight": "fast"}


def test_grid_is_a_product_with_names() -> None:
    grid = {"leash": {"coefficient": [0.0, 0.1]}, "lr": [0.001, 0.01]}
    file = build(StudyFile, merge({k: v for k, v in SMALL.items() if k != "arms"}, {"grid": grid}))
    names = [arm.name for arm in arms_of(file)]
    assert names == [
        "coefficient=0,lr=0.001",
        "coefficient=0,lr=0.01",
        "coefficient=0.1,lr=0.001",
        "coefficient=0.1,lr=0.01",
    ]


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"arms": {"x/y": {}}}, "cannot be called"),
        ({"arms": {"x-s3": {}}}, "no seed at the end"),
        ({"arms": {"x": {"seed": 3}}}, "its own seed"),
        ({"arms": {"x": {"phase": "all"}}}, "its own phase"),
        ({"arms": {"x": {"kl_beta": 3}}}, "did you mean 'leash.coefficient'"),
        ({"seeds": [1, 1]}, "each once"),
        ({"compare": {"baselines": ["nobody"]}}, "no arm 'nobody'"),
        ({"expect": [{"arm": "nobody", "direction": "better"}]}, "no arm 'nobody'"),
        ({"expect": [{"arm": "none", "direction": "better"}]}, "others are compared with"),
        ({"measure": {"items": [60, 20]}}, "must rise"),
        ({"measure": {"baselines": ["oracle"]}}, "no baseline 'oracle'"),
        ({"search": {"seeds": [1]}}, "cannot be confirmed"),
        ({"mesure": {}}, "did you mean"),
    ],
)
def test_what_cannot_be_planned_is_one_clear_line(change: dict[str, object], word: str) -> None:
    with pytest.raises(ConfigError, match=word):
        file = small(**change)
        against(file, arms_of(file))
        check_expected(file, arms_of(file))


def test_no_such_study_names_those_there_are() -> None:
    with pytest.raises(ConfigError, match="demos-kl"):
        read_study("nothing")


def test_own_file_with_changes_from_the_command_line(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text(
        "seeds = 3\n[arms.a]\nleash.coefficient = 0.1\n", encoding="utf-8"
    )
    file = read_study(str(tmp_path / "mine.toml"), ["seeds=7", "base.queries=9"])
    assert file.name == "mine"
    assert len(file.seeds) == 7
    assert base_recipe(file, 0).queries == 9


def test_state_of_a_cell_follows_from_its_scores() -> None:
    scored = {("epoch-1", "test", 2): Column(scores=[1.0] * 98 + [None] * 2)}
    cell = Cell("a", 0, "chosen", "test", 2, 100)
    assert state_of(cell, scored, "epoch-1") == "done"  # 2 % broke: just within
    assert state_of(cell, scored, "") == "missing"
    assert state_of(cell._replace(items=101), scored, "epoch-1") == "missing"
    scored["epoch-1", "test", 2].scores[0] = None
    assert state_of(cell, scored, "epoch-1") == "void"
    assert state_of(cell._replace(items=50), scored, "epoch-1") == "done"


def test_chosen_is_best_on_validation_and_the_earliest_of_equals() -> None:
    def column(*scores: float | None) -> Column:
        return Column(scores=list(scores))

    scored = {
        ("epoch-1", "validation", 2): column(1.0, 0.0, 1.0),
        ("epoch-2", "validation", 2): column(1.0, None, 0.0),
        ("epoch-3", "validation", 2): column(0.0, 1.0, 1.0),
        ("epoch-3", "test", 2): column(9.0, 9.0, 9.0),
    }
    names = ["epoch-1", "epoch-2", "epoch-3"]
    assert chosen_of(scored, 2, 3, names) == "epoch-1"
    assert chosen_of(scored, 2, 3, [*names, "epoch-4"]) == ""
    scored["epoch-2", "validation", 2].scores[2] = 1.0
    assert chosen_of(scored, 2, 3, names) == "epoch-2"


def test_a_hundred_thousand_cells_are_planned_in_seconds() -> None:
    file = read_study("demos-kl", ["seeds=600"])
    arms = arms_of(file)
    with cpu_within(5):
        count = sum(1 for _ in cells_of(file, arms))
    assert count > 100_000


def test_of_equal_means_the_earliest_is_chosen_whatever_order_they_are_summed_in() -> None:
    # Summed from the left, ten tenths are less than 1.
    scored = {
        ("epoch-1", "validation", 2): Column([], [0.1] * 10 + [0.0] * 10),
        ("epoch-2", "validation", 2): Column([], [1.0] + [0.0] * 19),
    }
    assert chosen_of(scored, 2, 20, ["epoch-1", "epoch-2"]) == "epoch-1"
