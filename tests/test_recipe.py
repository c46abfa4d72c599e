from pathlib import Path
from typing import Any

import pytest

from kleash.algo.control import LEASHES
from kleash.config import help_lines, parse_overrides, read_toml
from kleash.errors import ConfigError, KleashError
from kleash.tasks.demos.presets import PRESETS
from kleash.tasks.demos.reward import REWARDS
from kleash.train.recipe import AgentRecipe, Recipe, SelectorRecipe, recipe_from

# 30, and what real data and models are told besides their names: options of each, and the encoder.
BUDGET = 34


def recipe(*keys: str) -> SelectorRecipe:
    made = recipe_from(parse_overrides(keys))
    assert isinstance(made, SelectorRecipe)
    return made


def test_the_defaults_are_a_run_of_all_phases() -> None:
    assert recipe().phases() == [("supervised", 4), ("rce", 5), ("grpo", 3)]
    assert recipe_from(recipe().resolved()) == recipe()


@pytest.mark.parametrize("kind", [SelectorRecipe, AgentRecipe])
def test_a_run_has_no_more_keys_than_its_budget_and_each_has_a_sentence(kind: type[Recipe]) -> None:
    assert len(kind.model_fields) <= BUDGET
    silent = [key for key, _, sentence in help_lines(kind) if not sentence.endswith(".")]
    assert silent == []


@pytest.mark.parametrize("name", PRESETS)
def test_every_preset_is_a_recipe(name: str) -> None:
    assert recipe(f"selector={name}").blocks().shots == 2


@pytest.mark.parametrize("name", REWARDS)
def test_every_reward_is_a_recipe(name: str) -> None:
    assert recipe(f"reward={name}").reward == name


@pytest.mark.parametrize(("name", "settings"), LEASHES.items())
def test_like_lays_a_known_leash_under_what_is_given(name: str, settings: dict[str, Any]) -> None:
    made = recipe(f"like={name}", "leash.coefficient=0.7")
    assert made.advantage == settings["advantage"]
    assert made.weight == settings["weight"]
    assert made.leash.form == settings["leash"]["form"]
    assert made.leash.coefficient == 0.7
    assert recipe(f"like={name}").leash.coefficient == settings["leash"]["coefficient"]


def test_like_verl_clamps_and_clips_twice_as_verl_does() -> None:
    made = recipe("like=verl")
    assert (made.leash.clamp, made.clip.dual, made.clip.high) == (10, 3, 0.2)
    assert made.resolved()["leash"]["clamp"] == 10 and made.resolved()["clip"]["dual"] == 3


def test_a_recipe_without_clamps_is_the_recipe_it_was_before_there_were_any() -> None:
    plain = recipe().resolved()
    assert "clamp" not in plain["leash"] and "dual" not in plain["clip"]


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        (["leash.clamp=10"], "leash.clamp 10 is for k3 and k3_ratio, the form is 'return_to_go'"),
        (["clip.dual=1.1"], "clip.dual 1.1 is not above 1 [+] clip.high = 1.2"),
    ],
)
def test_a_clamp_that_cannot_be_meant_is_refused(given: list[str], complaint: str) -> None:
    with pytest.raises(ConfigError, match=complaint):
        recipe(*given)


def test_like_in_a_file_gives_way_to_like_on_the_command_line(tmp_path: Path) -> None:
    file = tmp_path / "a.toml"
    file.write_text('like = "verl"\nlr = 1e-5\n')
    made = recipe_from(read_toml(file), {"like": "trl"})
    assert (made.leash.form, made.lr) == ("k3_ratio", 1e-5)


def test_one_phase_alone_has_its_own_epochs() -> None:
    assert recipe("phase=supervised", "supervised.epochs=7").phases() == [("supervised", 7)]
    grpo = recipe("phase=grpo", "from=runs/a/checkpoints/rce-5", "epochs=9")
    assert grpo.phases() == [("grpo", 9)]
    assert grpo.start == "runs/a/checkpoints/rce-5"
    assert grpo.resolved()["from"] == grpo.start


def test_epochs_are_a_length_unless_the_schedule_spans_them() -> None:
    assert recipe("schedule=constant").length_keys() == ("epochs",)
    assert recipe("schedule=cosine").length_keys() == ()
    assert recipe("schedule=linear").length_keys() == ()


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        (["pool.size=2", "shots=3"], "a pool of 2 cannot fill 3 shots"),
        (["selector=v9"], "unknown preset 'v9'"),
        (["selector=v4_2"], "did you mean 'v4-2'"),
        (["shots=1"], "with one shot nothing is chosen before"),
        (["reward=happiness"], "no reward 'happiness': there is hard_plus_soft"),
        (["like=openai"], "no leash is known as 'openai': there is kleash, lever-plus"),
        (["phase=grpo"], "give from=RUN/checkpoints/NAME"),
        (["phase=rce"], "give from=RUN/checkpoints/NAME"),
        (["phase=warmup"], "bad value for 'phase'"),
        (["queries=0"], "bad value for 'queries'"),
        (["group=1"], "bad value for 'group'"),
        (["lr=inf"], "bad value for 'lr'"),
        (["rce.hot=inf"], "bad value for 'rce.hot'"),
        (["entropy_bonus=inf"], "bad value for 'entropy_bonus'"),
        (["clip.low=1.0"], "bad value for 'clip.low'"),
        (["kl_coef=0.1"], "did you mean 'leash.coefficient'"),
        (["leash.coefficient=-1"], "bad value for 'leash.coefficient'"),
        (["leash.reference=path"], "set leash.reference_path"),
        (["learning_rate=1"], "did you mean 'lr'"),
    ],
)
def test_what_cannot_be_run_is_refused_in_one_line(keys: list[str], expected: str) -> None:
    with pytest.raises(ConfigError) as caught:
        recipe(*keys)
    assert expected in str(caught.value)
    assert "\n" not in str(caught.value)
    assert isinstance(caught.value, KleashError)


def test_one_task_has_no_standard_error() -> None:
    with pytest.raises(ConfigError, match=r"validation\.training 1 .*set it to 2, or to 0"):
        recipe_from({"env": "intention", "validation": {"training": 1}})
