"""Items as vectors, and who is near whom. Which model made the vectors is not known here."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

SIMILARITIES = ("image", "text", "both")


@dataclass(frozen=True)
class Embeddings:
    """One row per item, images and questions apart; every row has length one."""

    image_ND: NDArray[np.float32]
    text_ND: NDArray[np.float32]

    def part(self, kind: str) -> NDArray[np.float32]:
        """The rows to compare by `image`, `text` or `both`."""
        if kind == "both":
            return np.concatenate([self.image_ND, self.text_ND], axis=1) / np.float32(np.sqrt(2))
        return {"image": self.image_ND, "text": self.text_ND}[kind]

    def rows(self, wanted: NDArray[np.int64]) -> Embeddings:
        """Some of the items."""
        return Embeddings(self.image_ND[wanted], self.text_ND[wanted])


def unit_rows(vectors_ND: NDArray[np.float32]) -> NDArray[np.float32]:
    """Each row at length one."""
    length = np.linalg.norm(vectors_ND, axis=1, keepdims=True)
    return (vectors_ND / np.maximum(length, 1e-12)).astype(np.float32)


def nearest(
    query_ND: NDArray[np.float32], others_MD: NDArray[np.float32], count: int, block: int = 1024
) -> NDArray[np.int64]:
    """[N, count]: for each query the others by falling dot product; ties in order of rows.

    Exact, by matrix products in blocks. Products are rounded to six digits before ordering, so that
    the order does not hang on how a machine sums.
    """
    found = []
    for start in range(0, len(query_ND), block):
        fit = np.round(query_ND[start : start + block] @ others_MD.T, 6)
        found.append(np.argsort(-fit, axis=1, kind="stable")[:, :count])
    return np.concatenate(found) if found else np.zeros((0, count), dtype=np.int64)
