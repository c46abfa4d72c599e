"""Answerers: models that see demonstrations and a query, and answer.

Each has one line in `ANSWERERS`. Its module is loaded when it is asked for, so torch is not
imported here.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from kleash.errors import ConfigError
from kleash.tasks.data import Images, fitting, imported
from kleash.tasks.demos.embeddings import Embeddings
from kleash.types import Answer, Item, Prompt

__all__ = ["ANSWERERS", "Answerer", "Images", "answerer", "embedded_by", "looks_at_images"]


class Answerer(Protocol):
    """A model that answers prompts, and finds out how likely it holds the true answer.

    One that reads captions and never looks at an image says so: its `looks` is False. One that can
    make vectors of items with its own eyes has `embed(items)`.
    """

    @property
    def identity(self) -> str:
        """The hash of weights and decoding: what an answer depends on besides its prompt."""

    def answer(self, prompts: Sequence[Prompt]) -> list[Answer]:
        """An answer for every prompt; no answer depends on what else was asked."""


ANSWERERS = {
    "embedded": "kleash.models.answer.embedded:Embedded",
    "transformers": "kleash.models.answer.local:Transformers",
    "endpoint": "kleash.models.answer.remote:Remote",
}


def answerer(
    name: str,
    images: Images,
    device: str = "cpu",
    options: Mapping[str, Any] | None = None,
) -> Answerer:
    """The answerer of that name, looking at the given images, on a device it can compute on."""
    make: Callable[..., Answerer] = imported(ANSWERERS, name, "answerer")
    given = fitting(make, options or {}, f"answerer {name!r}", without={"images"})
    if device == "cpu":
        return make(images, **given)
    if "device" not in inspect.signature(make).parameters:
        raise ConfigError(f"the answerer {name!r} takes no `device`: it computes on the CPU only")
    return make(images, **given | {"device": device})


def looks_at_images(answerer: Answerer) -> bool:
    """Whether what it says depends on images, and not on captions instead of them."""
    return bool(getattr(answerer, "looks", True))


def embedded_by(answerer: Answerer, items: Sequence[Item]) -> Embeddings:
    """The images and questions of items as vectors, by an answerer that can."""
    embed: Callable[[Sequence[Item]], Embeddings] | None = getattr(answerer, "embed", None)
    if embed is None:
        raise ConfigError(
            "this answerer makes no vectors of items: set encoder to clip, siglip or sentences, and"
            " encoder_options.model to its folder"
        )
    return embed(items)
