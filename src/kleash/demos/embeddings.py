"""Items as vectors, and who is near whom. Which model made the vectors is not known here."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

# What makes two rows of length one, laid side by side, one row of length one.
HALF_LENGTH = np.float32(0.5**0.5)
SIMILARITIES = ("text", "image", "both")


@dataclass(frozen=True)
class Embeddings:
    """One row per item, images and questions apart; every row has length one."""

    image_ND: NDArray[np.float32]
    text_ND: NDArray[np.float32]

    def part(self, kind: str) -> NDArray[np.float32]:
        """The rows to compare by `image`, `text` or `both`."""
        if kind == "both":
            return np.concatenate([self.image_ND, self.text_ND], axis=1) * HALF_LENGTH
        return {"image": self.image_ND, "text": self.text_ND}[kind]

    def rows(self, wanted: NDArray[np.int64]) -> Embeddings:
        """Some of the items."""
        return Embeddings(self.image_ND[wanted], self.text_ND[wanted])


def unit_rows(vectors_ND: NDArray[np.float32]) -> NDArray[np.float32]:
    """Each row at length one."""
    length = np.linalg.norm(vectors_ND, axis=1, keepdims=True)
    unit: NDArray[np.float32] = (vectors_ND / np.maximum(length, 1e-12)).astype(np.float32)
    return unit


def nearest(
    query_ND: NDArray[np.float32], others_MD: NDArray[np.float32], count: int, block: int = 1024
) -> NDArray[np.int64]:
    """[N, count]: for each query the others by falling dot product; ties in order of rows.

    Exact, by matrix products in blocks. Sums are double and rounded to six digits before ordering,
    so that the order of equals does not hang on how a machine sums or on what else is asked.
    """
    others_DM = others_MD.T.astype(np.float64)
    found = []
    for start in range(0, len(query_ND), block):
        products = np.round(query_ND[start : start + block].astype(np.float64) @ others_DM, 6)
        found.append(np.argsort(-products, axis=1, kind="stable")[:, :count])
    return np.concatenate(found) if found else np.zeros((0, count), dtype=np.int64)
