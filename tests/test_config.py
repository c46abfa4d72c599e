from pathlib import Path
from typing import Annotated, Any

import pytest
from pydantic import Field, ValidationError

from kleash import config
from kleash.config import Config, build, help_lines, keys, merge, parse_overrides
from kleash.errors import ConfigError


class Leash(Config):
    """How KL enters."""

    form: str = "loss"
    """Where the penalty goes:
    into the loss, the reward or the advantage."""
    coefficient: Annotated[float, Field(ge=0)] = 0.15
    """Nats of reward per nat of KL."""


class Train(Config):
    """What a run needs."""

    seed: int
    """Names every draw."""
    lr: float = 1e-3
    entropy_bonus: float = 0.0
    """Reward per nat of entropy."""
    group_size: int = Field(4, alias="group")
    """Episodes per task."""
    leash: Leash = Leash()


class Printed(Config):
    """Has a key that looks like one of the leash's."""

    format: str = "md"
    leash: Leash = Leash()


def complaint(values: dict[str, Any], kind: type[Config] = Train) -> str:
    with pytest.raises(ConfigError) as caught:
        build(kind, values)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_a_config_is_made_from_nested_mappings() -> None:
    made = build(Train, {"seed": 3, "leash": {"coefficient": 0.12}, "group": 8})
    assert (made.seed, made.lr, made.group_size) == (3, 1e-3, 8)
    assert made.leash == Leash(coefficient=0.12)


def test_a_config_is_frozen_and_a_changed_copy_is_checked_again() -> None:
    made = build(Train, {"seed": 3, "group": 8})
    with pytest.raises(ValidationError, match="frozen"):
        made.seed = 4  # type: ignore[misc]
    assert made.but(seed=4) == build(Train, {"seed": 4, "group": 8})
    assert made.seed == 3
    with pytest.raises(ConfigError, match="seed"):
        made.but(seed="three")
    with pytest.raises(ConfigError, match="sead"):
        made.but(sead=3)


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"sead": 3}, "unknown key 'sead': did you mean 'seed'?"),
        ({"groups": 3}, "unknown key 'groups': did you mean 'group'?"),
        ({"coefficient": 0.1}, "unknown key 'coefficient': did you mean 'leash.coefficient'?"),
        (
            {"leash": {"coeficient": 0.1}},
            "unknown key 'leash.coeficient': did you mean 'leash.coefficient'?",
        ),
        (
            {"zzz": 1},
            "unknown key 'zzz': the nearest keys are seed, lr, leash.form",
        ),
    ],
)
def test_an_unknown_key_is_answered_with_the_nearest(values: dict[str, Any], said: str) -> None:
    assert complaint({"seed": 1} | values) == said


@pytest.mark.parametrize("foreign", sorted(config.FOREIGN))
def test_what_others_call_a_key_is_answered_with_ours(foreign: str) -> None:
    said = f"did you mean {config.FOREIGN[foreign]!r}?"
    assert complaint({"seed": 1, foreign: 0.1}) == f"unknown key {foreign!r}: {said}"
    assert complaint({"seed": 1, "leash": {foreign: 0.1}}).endswith(said)


def test_a_foreign_name_of_a_key_we_do_not_have_is_not_suggested() -> None:
    assert complaint({"learning_rate": 1.0}, Leash) == (
        "unknown key 'learning_rate': the keys are: form, coefficient"
    )


def test_a_key_given_without_its_table_is_found_before_one_that_looks_like_it() -> None:
    assert complaint({"form": "loss"}, Printed) == "unknown key 'form': did you mean 'leash.form'?"


def test_a_missing_or_bad_value_says_what_to_do() -> None:
    assert complaint({}) == "'seed' is missing: give it in the TOML file or as seed=VALUE"
    assert complaint({"seed": "three"}) == (
        "bad value for 'seed': Input should be a valid integer,"
        " unable to parse string as an integer (got 'three')"
    )
    assert complaint({"seed": 1, "leash": {"coefficient": -1}}) == (
        "bad value for 'leash.coefficient': Input should be greater than or equal to 0 (got -1)"
    )


def test_keys_are_dotted_and_by_their_outer_names() -> None:
    assert list(keys(Train)) == [
        "seed",
        "lr",
        "entropy_bonus",
        "group",
        "leash.form",
        "leash.coefficient",
    ]


def test_the_sentence_under_a_field_is_its_help() -> None:
    assert list(help_lines(Train)) == [
        ("seed", "required", "Names every draw."),
        ("lr", "0.001", ""),
        ("entropy_bonus", "0.0", "Reward per nat of entropy."),
        ("group", "4", "Episodes per task."),
        (
            "leash.form",
            "loss",
            "Where the penalty goes: into the loss, the reward or the advantage.",
        ),
        ("leash.coefficient", "0.15", "Nats of reward per nat of KL."),
    ]


def test_overrides_are_nested_and_typed_as_in_toml() -> None:
    pairs = [
        "leash.coefficient=0.12",
        "leash.form=reward",
        "seed = 3",
        "flag=true",
        "shots=[1, 2]",
        'quoted="3"',
        "empty=",
        "formula=a=b",
    ]
    assert parse_overrides(pairs) == {
        "leash": {"coefficient": 0.12, "form": "reward"},
        "seed": 3,
        "flag": True,
        "shots": [1, 2],
        "quoted": "3",
        "empty": "",
        "formula": "a=b",
    }
    assert parse_overrides(["seed=1", "seed=2"]) == {"seed": 2}
    assert parse_overrides([]) == {}


@pytest.mark.parametrize("pair", ["seed", "=3", " = 3", "--seed"])
def test_an_override_without_key_or_value_is_refused(pair: str) -> None:
    with pytest.raises(ConfigError, match="is not key=value: write for example seed=3"):
        parse_overrides([pair])


def test_a_value_cannot_also_be_a_table() -> None:
    with pytest.raises(ConfigError, match=r"'leash\.form': 'leash' was given a value before"):
        parse_overrides(["leash=3", "leash.form=loss"])


def test_later_layers_lie_on_top_and_none_is_changed() -> None:
    low: dict[str, Any] = {"seed": 1, "leash": {"form": "loss", "coefficient": 0.1}, "lr": {"a": 1}}
    high: dict[str, Any] = {"leash": {"coefficient": 0.2}, "lr": 0.3}
    assert merge(low, high) == {
        "seed": 1,
        "leash": {"form": "loss", "coefficient": 0.2},
        "lr": 0.3,
    }
    assert merge(high, low)["lr"] == {"a": 1}
    assert low["leash"] == {"form": "loss", "coefficient": 0.1}
    merged = merge(low)
    merged["leash"]["form"] = "reward"
    assert low["leash"]["form"] == "loss"
    assert merge() == {}


def test_defaults_then_files_then_the_command_line(tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text('seed = 1\n[leash]\nform = "奖励"\ncoefficient = 0.2\n')
    file = config.read_toml(tmp_path / "a.toml")
    made = build(Train, merge(file, parse_overrides(["leash.coefficient=0.3"])))
    assert made == Train(seed=1, leash=Leash(form="奖励", coefficient=0.3))


def test_a_file_that_is_missing_or_no_toml_is_one_clear_line(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"no such config file: .*a\.toml"):
        config.read_toml(tmp_path / "a.toml")
    for content in (b"seed: 3", b"seed = '\xff'"):
        (tmp_path / "a.toml").write_bytes(content)
        with pytest.raises(ConfigError, match=r"a\.toml is not valid TOML: "):
            config.read_toml(tmp_path / "a.toml")
