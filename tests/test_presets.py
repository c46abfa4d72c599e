import pytest

from kleash.config import help_lines
from kleash.errors import ConfigError
from kleash.tasks.demos.presets import PRESETS, Blocks, preset


@pytest.mark.parametrize("name", PRESETS)
def test_every_preset_is_a_setting_of_the_blocks(name):
    blocks = preset(name)
    assert blocks == Blocks(**PRESETS[name])
    assert (blocks.temperature, blocks.dropout, blocks.shots) == (0.1, 0.0, 2)
    assert blocks.hidden == {"v0-gpt2": 512, "v0-lstm": 128}.get(name, 256)


def test_the_presets_are_those_that_users_know():
    later = [f"v4-{number}" for number in range(1, 11)]
    assert list(PRESETS) == ["v0-gpt2", "v0-lstm", "v1", "v2", "v3", *later, "retrieval-plus"]


def test_presets_differ():
    assert len({preset(name).model_dump_json() for name in PRESETS}) == len(PRESETS)


def test_a_preset_takes_changes_and_checks_them():
    assert preset("v3", hidden=64).hidden == 64
    with pytest.raises(ConfigError, match="unknown key 'hiden': did you mean 'hidden'"):
        preset("v3", hiden=64)


def test_an_unknown_preset_is_answered_with_the_nearest():
    with pytest.raises(ConfigError, match="unknown preset 'v4_2': did you mean 'v4-2'"):
        preset("v4_2")
    with pytest.raises(ConfigError, match="unknown preset 'lstm': did you mean 'v0-lstm'"):
        preset("lstm")
    with pytest.raises(ConfigError, match="the presets are: v0-gpt2, v0-lstm, v1, v2, v3"):
        preset("gru decoder")


def test_heads_must_divide_the_width():
    with pytest.raises(ConfigError, match="3 heads do not divide a hidden width of 256"):
        preset("v3", heads=3)


@pytest.mark.parametrize("changes", [{"score": "cosine"}, {"decoder": "two-stage"}])
def test_what_would_not_begin_as_retrieval_is_refused(changes):
    with pytest.raises(ConfigError, match="a bilinear score that begins at 0"):
        preset("retrieval-plus", **changes)


def test_slots_read_no_state():
    with pytest.raises(ConfigError, match='nothing would read state "gru"'):
        preset("v4-2", decoder="slots")


@pytest.mark.parametrize("changes", [{"state": "gru"}, {"bonus": "mmr"}, {"bonus": "dpp"}])
def test_what_one_shot_could_never_train_is_refused(changes):
    with pytest.raises(ConfigError, match="set shots to 2 or more"):
        preset("v3", shots=1, **changes)
    for name in ("v3", "v0-gpt2", "v0-lstm", "v4-8"):
        assert preset(name, shots=1).shots == 1


def test_every_field_has_its_sentence():
    assert all(sentence.endswith(".") for _, _, sentence in help_lines(Blocks))
