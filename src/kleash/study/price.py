"""What an answer costs before one was bought: from the size of the model and of its prompts.

Only the model's config.json is read; of models that were not fetched yet, some are known by name.
The rate was measured on one kind of card (docs/benchmarks.md). After the first jobs of a study,
what they took is used instead.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kleash.train.recipe import SelectorRecipe

RATE, CARD = 1.6e14, "H200"
"""Operations a second, pictures and three beams in it: 0.050 s for 1,437 tokens of the 3B."""
WORDS = 25  # tokens of a question with its answer and what stands around them
CAPTION = 15  # tokens
SIDES = (480, 640)  # pixels of a COCO image
KNOWN = {
    "Qwen2.5-VL-3B-Instruct": (2_773_000_000, 391),
    "Qwen2.5-VL-7B-Instruct": (6_525_000_000, 391),
}
"""By folder: the weights that a token passes through, and the tokens of an image."""


@dataclass(frozen=True)
class Price:
    """What one answer is expected to take."""

    seconds: float
    parameters: int
    tokens: int


def price(recipe: SelectorRecipe) -> Price | None:
    """The price of an answer of a local model; None where nothing is known of it."""
    if recipe.answerer != "transformers":
        return None
    folder = Path(str(recipe.answerer_options.get("model", ""))).expanduser()
    count, image = KNOWN.get(folder.name, (0, 0))
    if (folder / "config.json").is_file():
        try:
            config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        except ValueError:
            return None
        count, image = parameters(config.get("text_config") or config), image_tokens(config)
    if not count:
        return None
    tokens = (recipe.shots + 1) * (WORDS + (image or CAPTION))
    return Price(2 * count * tokens / RATE, count, tokens)


def parameters(text: dict[str, Any]) -> int:
    """The weights that every token passes through in a decoder; 0 where the config is another."""
    try:
        width, inner = int(text["hidden_size"]), int(text["intermediate_size"])
        layers, heads = int(text["num_hidden_layers"]), int(text["num_attention_heads"])
    except KeyError:
        return 0
    shared = int(text.get("num_key_value_heads") or heads) / heads
    return round(layers * (width * width * (2 + 2 * shared) + 3 * width * inner))


def image_tokens(config: dict[str, Any]) -> int:
    """Tokens of an image of COCO's size; 0 where the model sees none."""
    eyes = config.get("vision_config")
    if eyes is None:
        return 0
    patch = int(eyes.get("patch_size", 14))
    if "spatial_merge_size" in eyes:  # as large as the image is
        side = patch * int(eyes["spatial_merge_size"])
        return round(SIDES[0] / side) * round(SIDES[1] / side)
    if "perceiver_config" in config:
        return int(config["perceiver_config"].get("resampler_n_latents", 64))
    tokens = (int(eyes.get("image_size", 336)) // patch) ** 2
    return tokens // int(config.get("scale_factor") or 1) ** 2
