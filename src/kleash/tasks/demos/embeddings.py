"""Items as vectors, and who is near whom. Which model made the vectors is not known here."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from kleash.errors import DataError

# What makes two rows of length one, laid side by side, one row of length one.
HALF_LENGTH = np.float32(0.5**0.5)
SIMILARITIES = ("text", "image", "both")
MANY = 300_000  # rows from which on faiss is used where it is installed


Rows = NDArray[np.float32]


@dataclass(frozen=True)
class Embeddings:
    """One row per item, images and questions apart; every row has length one.

    An encoder that sees no images gives texts alone, one that reads none gives images alone.
    """

    image_ND: Rows | None
    text_ND: Rows | None
    joint: Literal["beside", "mean"] = "beside"
    """What both are together: one beside the other or, where they share a space, their mean."""

    @property
    def kinds(self) -> tuple[str, ...]:
        """By what items can be compared."""
        if self.image_ND is None:
            return ("text",)
        return SIMILARITIES if self.text_ND is not None else ("image",)

    def part(self, kind: str) -> Rows:
        """The rows to compare by `image`, `text` or `both`; where one is all there is, that one."""
        image, text = self.image_ND, self.text_ND
        if kind == "both" and image is not None and text is not None:
            if self.joint == "mean":
                return unit_rows(image + text)
            return np.concatenate([image, text], axis=1) * HALF_LENGTH
        found = {"image": image, "text": text, "both": text if image is None else image}[kind]
        if found is None:
            raise DataError(
                f"nothing to compare by {kind}: the encoder gives {' and '.join(self.kinds)}"
            )
        return found

    def rows(self, wanted: NDArray[np.int64]) -> Embeddings:
        """Some of the items."""
        image, text = (
            None if part is None else part[wanted] for part in (self.image_ND, self.text_ND)
        )
        return Embeddings(image, text, self.joint)


def unit_rows(vectors_ND: NDArray[np.float32]) -> NDArray[np.float32]:
    """Each row at length one."""
    length = np.linalg.norm(vectors_ND, axis=1, keepdims=True)
    unit: NDArray[np.float32] = (vectors_ND / np.maximum(length, 1e-12)).astype(np.float32)
    return unit


def nearest(
    query_ND: Rows, others_MD: Rows, count: int, block: tuple[int, int] = (1024, 8192)
) -> NDArray[np.int64]:
    """[N, count]: for each query the others by falling dot product; ties in order of rows.

    Exact, by matrix products of a block of queries with a block of others: never all with all. Sums
    are double and rounded to six digits before ordering, so that the order of equals does not hang
    on how a machine sums or on what else is asked.
    """
    count = min(count, len(others_MD))
    if len(others_MD) > MANY and find_spec("faiss") is not None:
        return nearest_by_faiss(query_ND, others_MD, count)
    return nearest_in_blocks(query_ND, others_MD, count, block)


def nearest_in_blocks(
    query_ND: Rows, others_MD: Rows, count: int, block: tuple[int, int] = (1024, 8192)
) -> NDArray[np.int64]:
    """`nearest`, a block of queries with a block of others at a time."""
    size = len(others_MD)
    found = np.zeros((len(query_ND), count), dtype=np.int64)
    for start in range(0, len(query_ND), block[0]):
        asked = query_ND[start : start + block[0]].astype(np.float64)
        best = np.zeros((len(asked), 0), dtype=np.int64)
        for first in range(0, size, block[1]):
            others = others_MD[first : first + block[1]].astype(np.float64)
            rows = np.arange(first, first + len(others))
            best = largest(np.concatenate([best, ranked(asked @ others.T, rows, size)], 1), count)
        found[start : start + len(asked)] = size - 1 - np.sort(best, axis=1)[:, ::-1] % size
    return found


def ranked(products: NDArray[np.float64], rows: NDArray[np.int64], size: int) -> NDArray[np.int64]:
    """Products and rows as one number each, larger for what comes first: no two are the same."""
    keys: NDArray[np.int64] = np.rint(products * 1e6).astype(np.int64) * size + (size - 1 - rows)
    return keys


def largest(keys: NDArray[np.int64], count: int) -> NDArray[np.int64]:
    """The `count` largest of each row, in any order."""
    if keys.shape[1] <= count:
        return keys
    return np.partition(keys, keys.shape[1] - count, axis=1)[:, -count:]


def nearest_by_faiss(query_ND: Rows, others_MD: Rows, count: int) -> NDArray[np.int64]:
    """`nearest` by faiss's exact search, whose sums are single: more are fetched, then ordered.

    Where equals go on behind all that was fetched, their order is found in blocks.
    """
    import faiss

    index = faiss.IndexFlatIP(others_MD.shape[1])
    index.add(np.ascontiguousarray(others_MD))
    more = min(2 * count + 16, len(others_MD))
    _, near = index.search(np.ascontiguousarray(query_ND), more)
    found = np.zeros((len(query_ND), count), dtype=np.int64)
    open_ended = []
    for place, rows in enumerate(near):
        products = others_MD[rows].astype(np.float64) @ query_ND[place].astype(np.float64)
        keys = np.sort(ranked(products[None], rows, len(others_MD)), axis=1)[0, ::-1]
        found[place] = len(others_MD) - 1 - keys[:count] % len(others_MD)
        rounded = keys // len(others_MD)
        if more < len(others_MD) and rounded[count - 1] - rounded[-1] <= 1:
            open_ended.append(place)
    if open_ended:
        found[open_ended] = nearest_in_blocks(query_ND[open_ended], others_MD, count)
    return found
