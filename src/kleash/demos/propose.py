"""Proposals: pointers worth asking the answerer about, for each training query.

Every proposed pointer is answered by the model; nothing is copied from another query. Proposals are
the same whatever order queries come in, and no pointer of a query comes twice (order counts).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from kleash.config import Config
from kleash.demos.embeddings import Embeddings, nearest
from kleash.seeds import generator
from kleash.types import Answer, Item, Prompt

Pointer = tuple[int, ...]
# Answers to prompts, in order; None where the answer broke.
Ask = Callable[[Sequence[Prompt]], Sequence[Answer | None]]


class Proposing(Config):
    """How many pointers of each kind are proposed for a query."""

    random: int = Field(8, ge=0)
    """Pointers drawn at random from the pool."""
    retrieval: int = Field(4, ge=0)
    """Pointers of similar demonstrations, by rank."""
    beams: int = Field(2, ge=0)
    """Pointers found by beam search on information gain; only these cost answers to find."""
    width: int = Field(8, ge=1)
    """Candidates tried at each step of the beam search."""


@dataclass(frozen=True)
class Proposal:
    """A pointer and the method that proposed it."""

    pointer: Pointer
    method: str


@dataclass(frozen=True)
class Pooled:
    """Queries with their pools as items and as embeddings; row i of each belongs together."""

    queries: Sequence[Item]
    query_rows: Embeddings
    demonstrations: Sequence[Item]
    demonstration_rows: Embeddings
    pools: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.queries)

    def pool(self, query: int) -> list[Item]:
        """The candidates of a query."""
        return [self.demonstrations[row] for row in self.pools[query].tolist()]

    def prompt(self, query: int, pointer: Iterable[int]) -> Prompt:
        """The prompt a pointer makes: its demonstrations in order, then the query."""
        rows = self.pools[query]
        shown = tuple(self.demonstrations[int(rows[place])] for place in pointer)
        return Prompt(shown, self.queries[query])

    def take(self, count: int) -> Pooled:
        """The first so many queries."""
        return Pooled(
            self.queries[:count],
            self.query_rows.rows(np.arange(count)),
            self.demonstrations,
            self.demonstration_rows,
            self.pools[:count],
        )


def similar(pooled: Pooled, query: int, kind: str, count: int) -> Pointer:
    """The places of the most similar candidates, the most similar one next to the query."""
    near = nearest(
        pooled.query_rows.rows(np.array([query])).part(kind),
        pooled.demonstration_rows.rows(pooled.pools[query]).part(kind),
        count,
    )[0]
    return tuple(int(place) for place in near[::-1])


def propose(
    proposing: Proposing, pooled: Pooled, shots: int, seed: int, ask: Ask
) -> list[list[Proposal]]:
    """The proposals for every query."""
    size, kinds = pooled.pools.shape[1], pooled.query_rows.kinds
    beams = gain_beams(proposing, pooled, shots, seed, ask) if proposing.beams else None
    proposals = []
    for query, item in enumerate(pooled.queries):
        rng = generator("propose", "random", seed, item.id)
        found: dict[Pointer, str] = {}
        for pointer in beams[query] if beams else ():
            found.setdefault(pointer, "beam")
        for rank in range(proposing.retrieval):
            skipped, kind = divmod(rank, len(kinds))
            near = similar(pooled, query, kinds[kind], shots + skipped)
            found.setdefault(near[:shots], "retrieval")
        for _ in range(proposing.random):
            pointer = tuple(int(p) for p in rng.choice(size, shots, replace=False))
            found.setdefault(pointer, "random")
        proposals.append([Proposal(pointer, method) for pointer, method in found.items()])
    return proposals


def gain_beams(
    proposing: Proposing, pooled: Pooled, shots: int, seed: int, ask: Ask
) -> list[list[Pointer]]:
    """Pointers that make the true answer likeliest, found one demonstration at a time.

    A step tries `width` candidates in front of each kept pointer, so the demonstration chosen first
    stands next to the query.
    """
    size = pooled.pools.shape[1]
    kept: list[list[Pointer]] = [[()] for _ in range(len(pooled))]
    for step in range(shots):
        tries: list[tuple[int, Pointer]] = []
        for query, item in enumerate(pooled.queries):
            rng = generator("propose", "beam", seed, item.id, step)
            for pointer in kept[query]:
                others = np.setdiff1d(np.arange(size), pointer)
                picked = rng.choice(others, min(proposing.width, len(others)), replace=False)
                tries += [(query, (int(place), *pointer)) for place in picked]
        answers = ask([pooled.prompt(query, pointer) for query, pointer in tries])
        scored: list[list[tuple[float, Pointer]]] = [[] for _ in range(len(pooled))]
        for (query, pointer), answer in zip(tries, answers, strict=True):
            if answer is not None:
                scored[query].append((-answer.truth_logp, pointer))
        kept = [[pointer for _, pointer in sorted(row)[: proposing.beams]] for row in scored]
    return kept
