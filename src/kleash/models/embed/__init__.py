"""Encoders: items as vectors, for pools, baselines and selectors. One line in `ENCODERS` for each.

Those that are models of their own (`towers`) keep every row on disk under what it was made from, so
that none is made twice and a kill loses one batch. Their modules are loaded when they are asked
for, so torch is not imported here.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from kleash.errors import DataError
from kleash.models.answer import Answerer, embedded_by
from kleash.runs.ledger import Database
from kleash.tasks.data import Images, fitting, image_content, imported
from kleash.tasks.demos.embeddings import Embeddings, Rows
from kleash.types import Item

KEPT_ROWS = "embeddings.sqlite"
"""What the rows of a study or a folder of runs are kept in, beside its ledger."""
AT_ONCE = 256  # rows made between two writes: what a kill can lose


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


class CachedEncoder:
    """A model of its own, with every row it ever made kept on disk."""

    def __init__(self, towers: Towers, images: Images, path: Path) -> None:
        self.towers, self.images, self.path = towers, images, path
        self.identity = towers.identity

    def embed(self, items: Sequence[Item]) -> Embeddings:
        """The items as vectors: those that are not there yet are made, some at a time."""
        towers = self.towers
        with StoredRows(self.path, towers.identity) as stored:
            text = stored.rows_of_texts([towers.text(item) for item in items], towers.read)
            if not towers.sees:
                return Embeddings(None, text, towers.joint)
            names = [item.image for item in items]
            return Embeddings(
                stored.rows_of_images(names, self.images, towers.see), text, towers.joint
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
    return CachedEncoder(make(**{"device": device} | given), images, kept)


# --- rows on disk, each under the hash of what it was made from and the name of who made it


class StoredRows(Database):
    """The rows that one encoder made, in a file that others may share."""

    what = "file of embeddings"

    def __init__(self, path: Path, encoder: str) -> None:
        self.encoder = encoder
        super().__init__(path)

    def _prepare(self) -> None:
        self._db.execute(
            "CREATE TABLE IF NOT EXISTS rows (encoder TEXT, key BLOB, row BLOB,"
            " PRIMARY KEY (encoder, key)) WITHOUT ROWID"
        )

    def rows_of_texts(self, texts: Sequence[str], read: Callable[[Sequence[str]], Rows]) -> Rows:
        """A row for every text."""
        keys = {text: key_of("text", text.encode()) for text in texts}
        return self.rows([keys[text] for text in texts], texts, read)

    def rows_of_images(
        self,
        names: Sequence[str],
        images: Images,
        see: Callable[[Sequence[NDArray[Any]]], Rows],
    ) -> Rows:
        """A row for every image; only those that are new are decoded."""
        keys = {name: key_of("image", image_content(images, name)) for name in dict.fromkeys(names)}
        return self.rows(
            [keys[name] for name in names], names, lambda some: see([images(name) for name in some])
        )

    def rows(
        self, keys: Sequence[bytes], what: Sequence[str], make: Callable[[Sequence[str]], Rows]
    ) -> Rows:
        """The rows under keys, in order; those that are not there are made first."""
        by_key = dict(zip(keys, what, strict=True))
        there = self.lookup(list(by_key))
        new = [key for key in by_key if key not in there]
        for start in range(0, len(new), AT_ONCE):
            some = new[start : start + AT_ONCE]
            made = make([by_key[key] for key in some])
            if not np.isfinite(made).all():
                raise DataError(f"the encoder gave a vector that is no number ({self.encoder})")
            there |= self.keep(some, made)
        return np.stack([there[key] for key in keys]) if keys else np.zeros((0, 0), np.float32)

    def lookup(self, keys: Sequence[bytes]) -> dict[bytes, NDArray[np.float32]]:
        """What is there of the keys."""
        query = "SELECT key, row FROM rows WHERE encoder = ? AND key IN ({})"
        rows = self._rows(query, self.encoder, keys)
        return {key: np.frombuffer(row, np.float32) for key, row in rows}

    def keep(self, keys: Sequence[bytes], made: Rows) -> dict[bytes, NDArray[np.float32]]:
        """Write rows; where another process was first, its row counts for both."""
        rows = [(self.encoder, key, row.tobytes()) for key, row in zip(keys, made, strict=True)]
        with self._clear_errors(), self._transaction():
            self._db.executemany("INSERT OR IGNORE INTO rows VALUES (?, ?, ?)", rows)
        return self.lookup(keys)


def key_of(kind: str, content: bytes) -> bytes:
    """What a row is kept under."""
    return hashlib.sha256(kind.encode() + b"\x1f" + content).digest()
