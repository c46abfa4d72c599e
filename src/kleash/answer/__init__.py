"""Answerers: models that see demonstrations and a query, and answer.

Each has one line in `ANSWERERS`. Its module is loaded when it is asked for, so torch is not
imported here.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from numpy.typing import NDArray

from kleash.data import imported
from kleash.demos.embeddings import Embeddings
from kleash.errors import ConfigError
from kleash.types import Answer, Item, Prompt

Images = Callable[[str], NDArray[Any]]


class Answerer(Protocol):
    """A model that answers prompts, and finds out how likely it holds the true answer."""

    @property
    def identity(self) -> str:
        """The hash of weights and decoding: what an answer depends on besides its prompt."""

    def answer(self, prompts: Sequence[Prompt]) -> list[Answer]:
        """An answer for every prompt; no answer depends on what else was asked."""

    def embed(self, items: Sequence[Item]) -> Embeddings:
        """The images and questions of items as vectors."""


ANSWERERS = {
    "embedded": "kleash.answer.embedded:Embedded",
}


def answerer(name: str, images: Images, device: str = "cpu") -> Answerer:
    """The answerer of that name, looking at the given images, on a device it can compute on."""
    make: Callable[..., Answerer] = imported(ANSWERERS, name, "answerer")
    if device == "cpu":
        return make(images)
    if "device" not in inspect.signature(make).parameters:
        raise ConfigError(f"the answerer {name!r} takes no `device`: it computes on the CPU only")
    return make(images, device=device)
