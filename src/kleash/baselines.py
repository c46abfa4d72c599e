"""What a selector must beat: pointers chosen without learning, on the same items and pools."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from kleash.data import Dataset
from kleash.demos.propose import Ask, Pointer, Pooled, Proposing, gain_beams, similar
from kleash.seeds import generator

# Pointers for every query: of (queries and pools, the data set, shots, how to ask).
Baseline = Callable[[Pooled, Dataset, int, Ask], list[Pointer] | None]


def zero_shot(pooled: Pooled, data: Dataset, shots: int, ask: Ask) -> list[Pointer] | None:
    """No demonstrations at all, whatever the shots."""
    return [() for _ in range(len(pooled))]


def first_k(pooled: Pooled, data: Dataset, shots: int, ask: Ask) -> list[Pointer] | None:
    """The first candidates of the pool, whose order says nothing: a constant choice."""
    return [tuple(range(shots)) for _ in range(len(pooled))]


def random(draw: int) -> Baseline:
    """Demonstrations drawn from the pool; each draw is a baseline of its own."""

    def choose(pooled: Pooled, data: Dataset, shots: int, ask: Ask) -> list[Pointer] | None:
        size = pooled.pools.shape[1]
        return [
            tuple(
                int(place)
                for place in generator("baseline", "random", draw, item.id).permutation(size)[
                    :shots
                ]
            )
            for item in pooled.queries
        ]

    return choose


def most_similar(kind: str) -> Baseline:
    """The most similar demonstrations by `image`, `text` or `both`, the nearest one last.

    Nothing where the encoder sees no images or reads no text.
    """

    def choose(pooled: Pooled, data: Dataset, shots: int, ask: Ask) -> list[Pointer] | None:
        if kind not in pooled.query_rows.kinds:
            return None
        return [similar(pooled, query, kind, shots) for query in range(len(pooled))]

    return choose


def planted(pooled: Pooled, data: Dataset, shots: int, ask: Ask) -> list[Pointer] | None:
    """What the generator of the data knows to be best; nothing where no generator knows."""
    found = [data.planted(pooled.queries[i], pooled.pool(i), shots) for i in range(len(pooled))]
    return [pointer for pointer in found if pointer is not None] if all(found) else None


def best_greedy(pooled: Pooled, data: Dataset, shots: int, ask: Ask) -> list[Pointer] | None:
    """Forward search over the whole pool by the true answer's probability.

    Optimistic: it looks at the truth, and the best of many lucky answers is no oracle. It asks for
    K answers per step and query, so it is measured on few items.
    """
    width = Proposing(beams=1, width=pooled.pools.shape[1], random=0, retrieval=0)
    beams = gain_beams(width, pooled, shots, 0, ask)
    return [pointers[0] if pointers else tuple(np.arange(shots).tolist()) for pointers in beams]


BASELINES: dict[str, Baseline] = {
    "zero-shot": zero_shot,
    **{f"random-{draw}": random(draw) for draw in range(5)},
    **{f"similar-{kind}": most_similar(kind) for kind in ("image", "text", "both")},
    "first-k": first_k,
    "planted": planted,
}
"""Cheap ones, measured on every item. `best_greedy` is measured on request."""
