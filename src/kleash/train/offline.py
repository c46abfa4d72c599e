"""Offline groups: the proposals of the training queries, and what stands still while they train.

The reference and the policy that an epoch began with judge all proposals at once, many queries at
a time, and not again for every update. Always the same queries together, so that the numbers do not
depend on the order of an epoch or on where a run was gone on with.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from kleash.policy import judge_logits
from kleash.rollout import Groups
from kleash.rollout.proposed import Bought, proposal_groups
from kleash.rollout.selector import SelectorWorld
from kleash.selector import Pointers, Selector

AT_ONCE = 64  # queries judged together


class Offline:
    """The proposals of all training queries as groups."""

    def __init__(self, world: SelectorWorld, bought: Bought, policy: Selector) -> None:
        self.bought, self.queries = bought, world.queries("train")
        # Frozen towers and projections make the same of the queries in every update.
        before = [part for part in (policy.towers, policy.projections) if part is not None]
        if not any(p.requires_grad for part in before for p in part.parameters()):
            self.queries = policy.settle(self.queries)
        self.places = range(len(self.queries)) if bought.kept is None else bought.kept
        self.alone: dict[int, Groups] = {}

    def groups(self, places: Sequence[int]) -> Groups:
        """The groups of some queries; those of a lone query are kept, with all they work out."""
        if len(places) > 1:
            return proposal_groups(self.queries, self.bought, places)
        place = places[0]
        if place not in self.alone:
            self.alone[place] = proposal_groups(self.queries, self.bought, places)
        return self.alone[place]

    def logits(self, policy: Selector) -> dict[str, Tensor]:
        """Of every query, a policy's logits [n,A] at the choices of its group."""
        found: dict[str, Tensor] = {}
        for pointers, logits_NA in self.judged(policy):
            found |= by_query(logits_NA, pointers)
        return found

    def logp(self, policy: Selector) -> dict[str, Tensor]:
        """Of every query, how likely each choice of its group is to a policy."""
        found: dict[str, Tensor] = {}
        for pointers, logits_NA in self.judged(policy):
            found |= by_query(judge_logits(logits_NA, policy.chosen(pointers)).logp, pointers)
        return found

    @torch.no_grad()
    def judged(self, policy: Selector) -> Iterator[tuple[Pointers, Tensor]]:
        """All pointers with a policy's logits, many queries at a time."""
        queries = policy.settle(self.queries)
        for start in range(0, len(self.places), AT_ONCE):
            places = self.places[start : start + AT_ONCE]
            pointers = proposal_groups(queries, self.bought, places).batch
            yield pointers, policy.logits(pointers)


def by_query(values: Tensor, pointers: Pointers) -> dict[str, Tensor]:
    """Values of choices end to end, query by query."""
    sizes = pointers.query_P[pointers.episode].bincount().tolist()
    return dict(zip(pointers.queries.tasks, values.split(sizes), strict=True))


def joined(values: dict[str, Tensor], groups: Groups) -> Tensor | None:
    """The values of a batch, from those of its queries; none where none were worked out."""
    if not values:
        return None
    parts = [values[task] for task in groups.batch.queries.tasks]
    return parts[0] if len(parts) == 1 else torch.cat(parts)
