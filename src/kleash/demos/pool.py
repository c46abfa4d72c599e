"""Pools: for each query the demonstrations that a selector may choose from.

The same function makes the pools of training and of evaluation; `Pooling.maker` is the name under
which a run remembers how, so that a guard can compare.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from kleash.config import Config
from kleash.demos.embeddings import Embeddings, nearest
from kleash.errors import DataError
from kleash.seeds import generator
from kleash.types import Item


class Pooling(Config):
    """How pools are made."""

    kind: Literal["mixed", "random", "text", "image"] = "mixed"
    """Which demonstrations: random, text- or image-similar ones, or mixed, a third of each."""
    size: int = Field(64, ge=1)
    """Candidates in a pool (K)."""

    @property
    def maker(self) -> str:
        """The name of this way of making pools."""
        return f"{self.kind}-{self.size}"


def make_pools(
    pooling: Pooling,
    seed: int,
    queries: Sequence[Item],
    query_rows: Embeddings,
    demonstrations: Sequence[Item],
    demonstration_rows: Embeddings,
) -> NDArray[np.int64]:
    """[query, K]: rows of the demonstrations, in an order that says nothing about them.

    A query's own image is never in its pool. The draws are named by seed and query.
    """
    if len(demonstrations) <= pooling.size:
        raise DataError(
            f"a pool of {pooling.size} needs more than {len(demonstrations)} demonstrations:"
            " make pool.size smaller"
        )
    share = {"mixed": pooling.size // 3, "random": 0}.get(pooling.kind, pooling.size)
    kinds = {"mixed": ("text", "image"), "random": ()}.get(pooling.kind, (pooling.kind,))
    near = {
        kind: nearest(query_rows.part(kind), demonstration_rows.part(kind), 2 * pooling.size)
        for kind in kinds
    }
    pools = np.empty((len(queries), pooling.size), dtype=np.int64)
    for place, query in enumerate(queries):
        rng = generator("pool", seed, query.id)
        chosen: dict[int, None] = {}
        for kind in kinds:
            fresh = (r for r in near[kind][place].tolist() if r not in chosen)
            other = (r for r in fresh if demonstrations[r].image != query.image)
            for _, row in zip(range(share), other, strict=False):
                chosen[row] = None
        strangers = rng.choice(len(demonstrations), 2 * pooling.size, replace=False)
        for row in strangers.tolist():
            if len(chosen) == pooling.size:
                break
            if demonstrations[row].image != query.image:
                chosen[row] = None
        pools[place] = rng.permutation(list(chosen))
    return pools
