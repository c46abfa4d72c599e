"""Rows on disk, each under the hash of what it was made from and the name of who made it.

SQLite, because many workers of a study may look for rows at once and one may be killed at any time.
"""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from kleash.errors import DataError
from kleash.tasks.data import Images, image_content
from kleash.tasks.demos.embeddings import Rows

AT_ONCE = 256  # rows made between two writes: what a kill can lose
PATIENCE = 60.0  # seconds to wait for another process that writes
LOOKED_UP = 500  # keys in one question to the database


class KeptRows:
    """The rows that one encoder made, in a file that others may share."""

    def __init__(self, path: Path, encoder: str) -> None:
        self.path, self.encoder = path, encoder
        try:
            self.db = sqlite3.connect(path, timeout=PATIENCE, isolation_level=None)
            self.db.execute(
                "CREATE TABLE IF NOT EXISTS rows (encoder TEXT, key BLOB, row BLOB,"
                " PRIMARY KEY (encoder, key)) WITHOUT ROWID"
            )
        except sqlite3.DatabaseError as error:
            raise DataError(f"{path} holds no embeddings ({error}): move it away") from None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.db.close()

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
        found: dict[bytes, NDArray[np.float32]] = {}
        for start in range(0, len(keys), LOOKED_UP):
            some = keys[start : start + LOOKED_UP]
            marks = ",".join("?" * len(some))
            asked = f"SELECT key, row FROM rows WHERE encoder = ? AND key IN ({marks})"
            with closing(self.db.execute(asked, (self.encoder, *some))) as rows:
                found |= {key: np.frombuffer(row, np.float32) for key, row in rows}
        return found

    def keep(self, keys: Sequence[bytes], made: Rows) -> dict[bytes, NDArray[np.float32]]:
        """Write rows; where another process was first, its row counts for both."""
        self.db.execute("BEGIN IMMEDIATE")
        self.db.executemany(
            "INSERT OR IGNORE INTO rows VALUES (?, ?, ?)",
            [(self.encoder, key, row.tobytes()) for key, row in zip(keys, made, strict=True)],
        )
        self.db.execute("COMMIT")
        return self.lookup(keys)


def key_of(kind: str, content: bytes) -> bytes:
    """What a row is kept under."""
    return hashlib.sha256(kind.encode() + b"\x1f" + content).digest()
