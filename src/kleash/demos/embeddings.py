"""Items as vectors, and who is near whom. Which model made the vectors is not known here."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from kleash.errors import DataError

# What makes two rows of length one, laid side by side, one row of length one.
HALF_LENGTH = np.float32(0.5**0.5)
SIMILARITIES = ("text", "image", "both")


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
