"""Pools: for each query the demonstrations that a selector may choose from.

The same function makes the pools of training and of evaluation; `Pooling.maker` is the name under
which a run remembers how, so that a guard can compare.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from kleash.config import Config
from kleash.errors import DataError
from kleash.seeds import generator
from kleash.tasks.demos.embeddings import Embeddings, nearest
from kleash.types import Item


class Pooling(Config):
    """How pools are made."""

    kind: Literal["mixed", "random", "text", "image"] = "mixed"
    """Which demonstrations: random, text- or image-similar ones, or mixed, as many of each."""
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
    drawn = min(2 * pooling.size, len(demonstrations))
    seen = tuple(kind for kind in ("text", "image") if kind in query_rows.kinds)
    kinds = {"mixed": seen, "random": ()}.get(pooling.kind, (pooling.kind,))
    share = pooling.size // (len(kinds) + 1) if pooling.kind == "mixed" else pooling.size
    near = {
        kind: nearest(query_rows.part(kind), demonstration_rows.part(kind), 2 * pooling.size)
        for kind in kinds
    }
    pools = np.empty((len(queries), pooling.size), dtype=np.int64)
    for place, query in enumerate(queries):
        rng = generator("pool", seed, query.id)
        chosen: dict[int, None] = {}
        strangers = rng.choice(len(demonstrations), drawn, replace=False)
        sources = [(near[kind][place], share) for kind in kinds] + [(strangers, pooling.size)]
        for rows, most in sources:
            fresh = (
                row
                for row in rows.tolist()
                if row not in chosen and demonstrations[row].image != query.image
            )
            chosen |= dict.fromkeys(islice(fresh, min(most, pooling.size - len(chosen))))
        if len(chosen) < pooling.size:
            raise DataError(
                f"a pool of {pooling.size} for {query.id}: only {len(chosen)} demonstrations were"
                " found that show another image; make pool.size smaller"
            )
        pools[place] = rng.permutation(list(chosen))
    return pools
