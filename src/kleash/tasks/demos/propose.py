"""Proposals: pointers worth asking the answerer about, for each training query.

Every proposed pointer is answered by the model; nothing is copied from another query. Proposals are
the same whatever order queries come in, and no pointer of a query comes twice (order counts). What
a trained selector proposes is drawn elsewhere (`rollout/proposing`) and handed in.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, SerializerFunctionWrapHandler, model_serializer

from kleash.config import Config
from kleash.seeds import generator
from kleash.tasks.demos.embeddings import Embeddings, nearest
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
    gain: Literal["cumulative", "step"] = "cumulative"
    """What the search keeps: the largest gain in all, or the largest gain of the last step."""
    policy: str = ""
    """A checkpoint, as RUN/checkpoints/NAME, whose selector proposes too."""
    policy_beams: int = Field(0, ge=0)
    """Its likeliest pointers, by beam search."""
    samples: int = Field(0, ge=0)
    """Pointers sampled from it at each temperature."""
    temperatures: tuple[float, ...] = (1.0, 1.3)
    """The temperatures; each above 0."""
    budget: int = Field(0, ge=0)
    """The most answers asked for a query, those of the search included; 0 is no limit."""
    total: int = Field(0, ge=0)
    """The most answers asked in all, shared evenly among queries; 0 is no limit."""
    facts: str = ""
    """A file of RL data whose pools, pointers and answers stand in the place of proposals."""

    @model_serializer(mode="wrap")
    def modest(self, dump: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Without what was added later and is not used: recipes from before stay what they were."""
        return without_defaults(dump(self), LATER)

    def limit(self, queries: int) -> int | None:
        """The most answers for one of so many queries."""
        limits = [self.budget] * (self.budget > 0)
        limits += [self.total // max(queries, 1)] * (self.total > 0)
        return min(limits) if limits else None

    def searched(self, shots: int) -> int:
        """What the search asks for a query, at most."""
        return self.width * (1 + (shots - 1) * self.beams) if self.beams else 0

    def within(self, limit: int | None, shots: int) -> Proposing:
        """The same with a search that is not dearer than the limit; none if no width is."""
        if limit is None or self.searched(shots) <= limit:
            return self
        width = limit // (1 + (shots - 1) * self.beams)
        return self.but(width=width) if width else self.but(beams=0)


LATER: dict[str, Any] = {
    "gain": "cumulative",
    "policy": "",
    "policy_beams": 0,
    "samples": 0,
    "temperatures": (1.0, 1.3),
    "budget": 0,
    "total": 0,
    "facts": "",
}


def without_defaults(whole: Mapping[str, Any], defaults: Mapping[str, Any]) -> dict[str, Any]:
    """What is dumped of a config, less the keys that have these values."""

    def plain(value: Any) -> Any:
        return list(value) if isinstance(value, tuple) else value

    return {
        key: value
        for key, value in whole.items()
        if key not in defaults or plain(value) != plain(defaults[key])
    }


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
        return self.some(range(count))

    def some(self, places: Sequence[int]) -> Pooled:
        """Some of the queries."""
        rows = np.asarray(places, dtype=np.int64)
        return Pooled(
            [self.queries[place] for place in places],
            self.query_rows.rows(rows),
            self.demonstrations,
            self.demonstration_rows,
            self.pools[rows],
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
    proposing: Proposing,
    pooled: Pooled,
    shots: int,
    seed: int,
    ask: Ask,
    *,
    chosen: Sequence[Sequence[Proposal]] | None = None,
    limit: int | None = None,
) -> list[list[Proposal]]:
    """The proposals for every query: of the search, of a selector (`chosen`), near ones, random.

    `limit`: the most answers for a query; what comes last is left out first.
    """
    size, kinds = pooled.pools.shape[1], pooled.query_rows.kinds
    asked = proposing.within(limit, shots)
    beams = gain_beams(asked, pooled, shots, seed, ask) if asked.beams else None
    proposals = []
    for query, item in enumerate(pooled.queries):
        rng = generator("propose", "random", seed, item.id)
        found: dict[Pointer, str] = {}
        for pointer in beams[query] if beams else ():
            found.setdefault(pointer, "beam")
        for proposal in chosen[query] if chosen else ():
            found.setdefault(proposal.pointer, proposal.method)
        for rank in range(asked.retrieval):
            skipped, kind = divmod(rank, len(kinds))
            near = similar(pooled, query, kinds[kind], shots + skipped)
            found.setdefault(near[:shots], "retrieval")
        for _ in range(asked.random):
            pointer = tuple(int(p) for p in rng.choice(size, shots, replace=False))
            found.setdefault(pointer, "random")
        kept = [Proposal(pointer, method) for pointer, method in found.items()]
        if limit is not None:  # the search has asked for its own pointers already
            own = sum(each.method == "beam" for each in kept)
            kept = kept[: own + limit - asked.searched(shots)]
        proposals.append(kept)
    return proposals


def further(
    pooled: Pooled, query: int, known: Iterable[Pointer], count: int, seed: int
) -> list[Pointer]:
    """Up to so many random pointers of a query that are not known yet, each as long as those."""
    met = set(known)
    shots = len(next(iter(met)))
    rng = generator("propose", "further", seed, pooled.queries[query].id)
    found: dict[Pointer, None] = {}
    for _ in range(20 * count):
        if len(found) == count:
            break
        drawn = rng.choice(pooled.pools.shape[1], shots, replace=False)
        pointer = tuple(int(place) for place in drawn)
        if pointer not in met:
            found.setdefault(pointer)
    return list(found)


def gain_beams(
    proposing: Proposing, pooled: Pooled, shots: int, seed: int, ask: Ask
) -> list[list[Pointer]]:
    """Pointers that make the true answer likeliest, found one demonstration at a time.

    A step tries `width` candidates in front of each kept pointer, so the demonstration chosen first
    stands next to the query.
    """
    size = pooled.pools.shape[1]
    kept: list[list[Pointer]] = [[()] for _ in range(len(pooled))]
    before: list[dict[Pointer, float]] = [{(): 0.0} for _ in range(len(pooled))]
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
        reached: list[dict[Pointer, float]] = [{} for _ in range(len(pooled))]
        for (query, pointer), answer in zip(tries, answers, strict=True):
            if answer is not None:
                # All that was gained is what the truth is now; a step gains over what it builds on.
                base = before[query][pointer[1:]] if proposing.gain == "step" else 0.0
                scored[query].append((base - answer.truth_logp, pointer))
                reached[query][pointer] = answer.truth_logp
        kept = [[pointer for _, pointer in sorted(row)[: proposing.beams]] for row in scored]
        before = reached
    return kept
