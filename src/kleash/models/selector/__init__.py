"""A pointer network that chooses demonstrations from a pool, one after the other.

Query and pool are encoded once; every pointer of every query is then scored from that in one pass.
How it is trained is not here (`grpo`, `train`), nor where pools and embeddings come from (`demos`).
Which blocks a name stands for is in `demos/presets`; here is one table for each kind of block.

Shapes: B queries, K candidates, R rows that pools are made of, A alternatives (K, and stop where
there is one), P pointers, T choices of a pointer, S choices made before, G places for a query's
pointers, N choices of all pointers, D and H widths; M topics, r features or candidates kept, where
a block has them.
"""

from __future__ import annotations

from kleash.models.selector.network import Selector, exact_sequence_kl
from kleash.models.selector.pointers import (
    END,
    STOP,
    Observation,
    Pointers,
    Queries,
    all_pointers,
)

__all__ = [
    "END",
    "STOP",
    "Observation",
    "Pointers",
    "Queries",
    "Selector",
    "all_pointers",
    "exact_sequence_kl",
]
