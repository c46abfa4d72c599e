"""Encoders that are models of their own: what a row is, and what it does not depend on."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from kleash.errors import ConfigError
from kleash.models.embed import CachedEncoder
from kleash.models.embed.towers import BATCH, Clip, Sentences, Siglip
from made_encoders import clip_folder, sentence_folder, siglip_folder
from made_models import made_images, made_items


@pytest.fixture(scope="module")
def clip(tmp_path_factory):
    return clip_folder(tmp_path_factory.mktemp("clip"))


@pytest.fixture(scope="module")
def sentences(tmp_path_factory):
    return sentence_folder(tmp_path_factory.mktemp("sentences"))


def by_transformers(folder, text, picture):
    """An image and a text, each alone, by the library's own way."""
    from transformers import AutoImageProcessor, AutoModel, AutoTokenizer

    model = AutoModel.from_pretrained(folder).eval()
    pixels = AutoImageProcessor.from_pretrained(folder, use_fast=False)(
        images=picture, return_tensors="pt"
    )
    tokens = AutoTokenizer.from_pretrained(folder)(
        [text], padding="max_length", truncation=True, max_length=24, return_tensors="pt"
    )
    with torch.no_grad():
        seen = model.get_image_features(pixel_values=pixels["pixel_values"]).pooler_output[0]
        given = {"input_ids": tokens["input_ids"]}
        if "clip" in type(model).__name__.lower():
            given["attention_mask"] = tokens["attention_mask"]
        read = model.get_text_features(**given).pooler_output[0]
    return (seen / seen.norm()).numpy(), (read / read.norm()).numpy()


@pytest.mark.parametrize("kind", ["clip", "siglip"])
def test_rows_are_what_the_towers_say(kind, clip, tmp_path):
    folder = clip if kind == "clip" else siglip_folder(tmp_path / "siglip")
    towers = Clip(str(folder)) if kind == "clip" else Siglip(str(folder))
    picture = made_images()("one")
    seen, read = by_transformers(folder, "Which animal is in the picture?", picture)
    assert towers.see([picture])[0] == pytest.approx(seen, abs=1e-5)
    assert towers.read(["Which animal is in the picture?"])[0] == pytest.approx(read, abs=1e-5)


def test_no_row_depends_on_what_else_was_asked_for(clip, sentences):
    pictures = [made_images()(str(n)) for n in range(BATCH + 3)]
    towers = Clip(str(clip))
    together = towers.see(pictures)
    assert (towers.see(pictures[5:6])[0] == together[5]).all()
    reader = Sentences(str(sentences))
    texts = [f"What is this? {'a dog ' * n}" for n in range(12)]
    rows = reader.read(texts)
    for at in (0, 5, 11):
        assert (reader.read([texts[at]])[0] == rows[at]).all()
    assert len({tuple(row) for row in rows.tolist()}) == 12


def test_a_sentence_is_the_mean_over_its_tokens(sentences):
    from transformers import AutoModel, AutoTokenizer

    model = AutoModel.from_pretrained(sentences).eval()
    tokens = AutoTokenizer.from_pretrained(sentences)("What is this?", return_tensors="pt")
    with torch.no_grad():
        mean = model(**tokens).last_hidden_state[0].mean(0).numpy()
    found = Sentences(str(sentences)).read(["What is this?"])[0]
    assert found == pytest.approx(mean / np.linalg.norm(mean), abs=1e-5)


def test_question_and_caption_are_read_by_who_does_not_see(sentences, tmp_path):
    items = made_items(6)
    rows = CachedEncoder(Sentences(str(sentences)), None, tmp_path / "rows").embed(items)
    assert rows.kinds == ("text",)
    said = Sentences(str(sentences)).read([f"{items[2].question} {items[2].caption}"])
    assert (rows.part("both")[2] == said[0]).all()


def test_images_are_kept_by_their_content_and_the_model_is_loaded_when_needed(clip, tmp_path):
    items, images = made_items(5), made_images()
    CachedEncoder(Clip(str(clip)), images, tmp_path / "rows").embed(items)
    again = Clip(str(clip))
    rows = CachedEncoder(again, images, tmp_path / "rows").embed(items[:3])
    assert "network" not in vars(again)
    assert rows.kinds == ("text", "image", "both") and rows.part("both").shape == (3, 8)
    other = made_images(84, 84)
    assert (
        CachedEncoder(again, other, tmp_path / "rows").embed(items[:3]).image_ND != rows.image_ND
    ).any()


def test_another_model_has_another_identity(clip, tmp_path):
    assert Clip(str(clip)).identity == Clip(str(clip)).identity
    copy = tmp_path / "copy"
    copy.mkdir()
    for path in clip.iterdir():
        (copy / path.name).write_bytes(path.read_bytes())
    assert Clip(str(copy)).identity == Clip(str(clip)).identity
    weights = copy / "model.safetensors"
    content = bytearray(weights.read_bytes())
    content[-1] ^= 1
    weights.write_bytes(content)
    assert Clip(str(copy)).identity != Clip(str(clip)).identity


def test_a_folder_without_a_model_is_one_clear_line(tmp_path):
    with pytest.raises(ConfigError, match=r"no model in .*folder of a CLIP model"):
        Clip(str(tmp_path))
    (Path(tmp_path) / "config.json").write_text("{}")
    with pytest.raises(ConfigError, match=r"no .*safetensors in"):
        Clip(str(tmp_path))
