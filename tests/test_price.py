"""What a study of a real model will cost, told before it starts."""

from __future__ import annotations

import json

import pytest

from kleash.cli.study import in_words
from kleash.study.estimate import estimate
from kleash.study.plan import read_study
from kleash.study.price import RATE, image_tokens, parameters, price
from kleash.train.recipe import recipe_from

TEXT_3B = {
    "hidden_size": 2048,
    "intermediate_size": 11_008,
    "num_hidden_layers": 36,
    "num_attention_heads": 16,
    "num_key_value_heads": 2,
}


def test_the_weights_of_a_decoder_by_hand():
    per_layer = 2 * 2048**2 + 2 * 2048 * 256 + 3 * 2048 * 11_008
    assert parameters(TEXT_3B) == 36 * per_layer
    assert parameters({"n_embd": 768}) == 0


@pytest.mark.parametrize(
    ("config", "tokens"),
    [
        ({"vision_config": {"patch_size": 14, "spatial_merge_size": 2}}, 17 * 23),
        ({"vision_config": {"patch_size": 14, "image_size": 336}}, 576),
        ({"vision_config": {}, "perceiver_config": {"resampler_n_latents": 64}}, 64),
        ({}, 0),
    ],
)
def test_the_tokens_of_an_image(config, tokens):
    assert image_tokens(config) == tokens


def test_an_answer_costs_what_its_tokens_pass_through(tmp_path):
    config = {"text_config": TEXT_3B, "vision_config": {"patch_size": 14, "spatial_merge_size": 2}}
    (tmp_path / "config.json").write_text(json.dumps(config))
    given = {"answerer": "transformers", "answerer_options": {"model": str(tmp_path)}, "shots": 2}
    found = price(recipe_from(given))
    assert found is not None and found.tokens == 3 * (25 + 391)
    assert found.seconds == pytest.approx(2 * found.parameters * found.tokens / RATE)
    assert price(recipe_from({})) is None
    (tmp_path / "config.json").write_text("{")
    assert price(recipe_from(given)) is None


def test_the_bundled_study_tells_its_price_before_anything_is_fetched(tmp_path):
    plan = estimate(tmp_path, read_study("okvqa-kl", []))
    lines = in_words(plan, "en")["lines"]
    said = next(line for line in lines if line.startswith("time:"))
    assert "hours of one H200" in said and "2.8 billion weights, 1,248 tokens" in said
    assert plan["answers"] * 2 * 2.773e9 * 1248 / RATE == pytest.approx(plan["seconds"], rel=1e-3)
    assert not any("planted" in cell[0] for cell in plan["cells"])
    captions = estimate(tmp_path, read_study("okvqa-captions", []))
    assert not any(cell[0].endswith(("similar-image", "-both")) for cell in captions["cells"])
