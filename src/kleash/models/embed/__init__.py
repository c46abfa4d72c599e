"""Encoders: items as vectors, for pools, baselines and selectors. One line in `ENCODERS` for each.

Those that are models of their own (`towers`) keep every row on disk under what it was made from, so
that none is made twice and a kill loses one batch. Their modules are loaded when they are asked
for, so torch is not imported here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, Protocol

from numpy.typing import NDArray

from kleash.models.answer import Answerer, embedded_by
from kleash.models.embed.kept import KeptRows
from kleash.tasks.data import Images, fitting, imported
from kleash.tasks.demos.embeddings import Embeddings, Rows
from kleash.types import Item

KEPT_ROWS = "embeddings.sqlite"
"""What the rows of a study or a folder of runs are kept in, beside its ledger."""


class Encoder(Protocol):
    """Who makes vectors of items."""

    @property
    def identity(self) -> str:
        """The hash of all that a vector depends on besides its item."""

    def embed(self, items: Sequence[Item]) -> Embeddings:
        """The items as vectors; none depends on what else was asked for."""


class Towers(Protocol):
    """A model that makes a row of an image, a row of a text, or both; it is loaded when needed."""

    identity: str
    joint: Literal["beside", "mean"]
    sees: bool
    """Whether it makes rows of images."""

    def text(self, item: Item) -> str:
        """What of an item it reads."""

    def read(self, texts: Sequence[str]) -> Rows:
        """A row for each text, of length one."""

    def see(self, pictures: Sequence[NDArray[Any]]) -> Rows:
        """A row for each picture, of length one."""


ENCODERS = {
    "answerer": "kleash.models.embed:ByAnswerer",
    "clip": "kleash.models.embed.towers:Clip",
    "siglip": "kleash.models.embed.towers:Siglip",
    "sentences": "kleash.models.embed.towers:Sentences",
}
BLIND = ("sentences",)
"""Encoders that see no images: by image nothing is similar then."""


class ByAnswerer:
    """The answerer's own eyes: what it sees and reads, as it sees and reads it."""

    def __init__(self, answerer: Answerer) -> None:
        self.answerer, self.identity = answerer, answerer.identity

    def embed(self, items: Sequence[Item]) -> Embeddings:
        """The items as vectors."""
        return embedded_by(self.answerer, items)


class Kept:
    """A model of its own, with every row it ever made kept on disk."""

    def __init__(self, towers: Towers, images: Images, path: Path) -> None:
        self.towers, self.images, self.path = towers, images, path
        self.identity = towers.identity

    def embed(self, items: Sequence[Item]) -> Embeddings:
        """The items as vectors: those that are not there yet are made, some at a time."""
        towers = self.towers
        with KeptRows(self.path, towers.identity) as kept:
            text = kept.rows_of_texts([towers.text(item) for item in items], towers.read)
            if not towers.sees:
                return Embeddings(None, text, towers.joint)
            names = [item.image for item in items]
            return Embeddings(
                kept.rows_of_images(names, self.images, towers.see), text, towers.joint
            )


def encoder(
    name: str,
    images: Images,
    answerer: Callable[[], Answerer],
    *,
    kept: Path,
    device: str = "cpu",
    options: Mapping[str, Any] | None = None,
) -> Encoder:
    """The encoder of that name; `kept` is the file that its rows are kept in."""
    make: Callable[..., Any] = imported(ENCODERS, name, "encoder")
    given = fitting(make, options or {}, f"encoder {name!r}", without={"answerer"})
    if make is ByAnswerer:
        return ByAnswerer(answerer())
    return Kept(make(**{"device": device} | given), images, kept)
