"""What a selector is asked and what it answers: queries with their pools, and pointers into them.

Shapes as in `kleash.models.selector`. No network is here, and no weights.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from kleash.errors import DataError
from kleash.types import Item

if TYPE_CHECKING:
    from kleash.models.selector.encoders import Projected

END = -1
"""In a row of pointers: past the end of this one."""
STOP = -2
"""A choice of no further demonstration. It names no position, so padding a pool cannot move it."""


@dataclass(frozen=True, eq=False)
class Observation:
    """One query and its pool, as embeddings."""

    task: str
    query_D: Tensor
    pool_KD: Tensor


@dataclass(frozen=True, eq=False)
class Queries:
    """Many observations, pools padded to the largest; the mask is true where a candidate is.

    Pools are rows of one table, which they may share.
    """

    tasks: tuple[str, ...]
    query_BD: Tensor
    rows_RD: Tensor
    row_BK: Tensor
    mask_BK: Tensor
    projected: Projected | None = None
    """What a selector's projections make of them, where that was worked out before."""
    asked: tuple[Item, ...] = ()
    """The queries as items, for a selector whose towers train."""
    shown: Sequence[Item] = ()
    """The rows of the table as items, likewise."""
    near_BKE: Tensor | None = None
    """How near each candidate is by each retrieval, for a selector that begins as one of them."""

    @classmethod
    def of(
        cls, tasks: Sequence[str], query_BD: Tensor, pool_BKD: Tensor, mask_BK: Tensor
    ) -> Queries:
        """Queries whose pools share nothing."""
        row_BK = torch.arange(mask_BK.numel(), device=mask_BK.device).view_as(mask_BK)
        return cls(tuple(tasks), query_BD, pool_BKD.flatten(0, 1), row_BK, mask_BK)

    @classmethod
    def stack(cls, observations: Sequence[Observation]) -> Queries:
        """Observations side by side."""
        if not observations:
            raise DataError("no queries to choose demonstrations for")
        pools = [seen.pool_KD for seen in observations]
        sizes = torch.tensor([len(pool) for pool in pools])
        return cls.of(
            tasks=[seen.task for seen in observations],
            query_BD=torch.stack([seen.query_D for seen in observations]),
            pool_BKD=nn.utils.rnn.pad_sequence(pools, batch_first=True),
            mask_BK=(torch.arange(int(sizes.max())) < sizes[:, None]).to(pools[0].device),
        )

    @property
    def pool_BKD(self) -> Tensor:
        """The candidates of each query side by side."""
        return self.rows_RD[self.row_BK]

    def take(self, index: Sequence[int]) -> Queries:
        """Some of the queries, in the order asked for."""
        rows = torch.as_tensor(index, device=self.mask_BK.device)
        return Queries(
            tuple(self.tasks[i] for i in index),
            self.query_BD[rows],
            self.rows_RD,
            self.row_BK[rows],
            self.mask_BK[rows],
            None if self.projected is None else self.projected.take(rows),
            tuple(self.asked[i] for i in index) if self.asked else (),
            self.shown,
            None if self.near_BKE is None else self.near_BKE[rows],
        )

    def few(self, candidates: int) -> Queries:
        """The same queries with no more than the first so many of their candidates."""
        row_BK, mask_BK = self.row_BK[:, :candidates], self.mask_BK[:, :candidates]
        near_BKE = None if self.near_BKE is None else self.near_BKE[:, :candidates]
        return replace(self, row_BK=row_BK, mask_BK=mask_BK, projected=None, near_BKE=near_BKE)

    def __len__(self) -> int:
        return len(self.tasks)


@dataclass(frozen=True, eq=False)
class Pointers:
    """Pointers of a batch of queries. `chosen_PT` holds pool positions, `STOP`, then `END`."""

    queries: Queries
    query_P: Tensor
    chosen_PT: Tensor

    @classmethod
    def of(cls, queries: Queries, groups: Sequence[Sequence[Sequence[int]]]) -> Pointers:
        """One group of pointers for each query; groups and pointers may differ in length."""
        for task, group, size in zip(
            queries.tasks, groups, queries.mask_BK.sum(1).tolist(), strict=True
        ):
            for pointer in group:
                shown = [position for position in pointer if position != STOP]
                if not pointer or len({*shown}) < len(shown) or not {*shown} <= {*range(size)}:
                    raise DataError(
                        f"query {task}: {tuple(pointer)} is no pointer into a pool of {size}: "
                        "positions count from 0 and none comes twice"
                    )
        rows = [torch.tensor(tuple(pointer)) for group in groups for pointer in group]
        index = [i for i, group in enumerate(groups) for _ in group]
        device = queries.mask_BK.device
        return cls(queries, torch.tensor(index, device=device), padded(rows).to(device))

    @cached_property
    def made_PT(self) -> Tensor:
        """True where a choice was made."""
        return self.chosen_PT != END

    @cached_property
    def chosen(self) -> Tensor:
        """The choices end to end."""
        return self.chosen_PT[self.made_PT]

    @cached_property
    def episode(self) -> Tensor:
        """Which pointer each choice belongs to, choices end to end."""
        return self.made_PT.nonzero()[:, 0]

    @cached_property
    def open_PTK(self) -> Tensor:
        """The positions that can be chosen at each step; policy and reference share them."""
        mask_PK = self.queries.mask_BK.index_select(0, self.query_P)
        return still_open(mask_PK, self.chosen_PT[:, :-1])

    def lists(self) -> list[tuple[int, ...]]:
        """Each pointer as pool positions, with `STOP` at the end of one that stopped."""
        return [tuple(c for c in row if c != END) for row in self.chosen_PT.tolist()]


def still_open(mask_PK: Tensor, chosen_PS: Tensor) -> Tensor:
    """The candidates [P,S+1,K] that were not chosen before, at the start and after each choice."""
    open_PK = mask_PK
    rows = [open_PK]
    for chosen_P in chosen_PS.unbind(1):
        chosen_P1 = chosen_P[:, None]
        # STOP and END choose no candidate: what they write is what is there already.
        kept_P1 = open_PK[:, :1] & (chosen_P1 < 0)
        open_PK = open_PK.scatter(1, chosen_P1.clamp(min=0), kept_P1)
        rows.append(open_PK)
    return torch.stack(rows, dim=1)


def shared(observations: Sequence[Observation]) -> tuple[Queries, Tensor]:
    """The distinct observations side by side, and which of them each one is."""
    distinct = {id(seen): seen for seen in observations}
    place = {name: index for index, name in enumerate(distinct)}
    queries = Queries.stack(list(distinct.values()))
    index = [place[id(seen)] for seen in observations]
    return queries, torch.tensor(index, device=queries.mask_BK.device)


def padded(rows: Sequence[Tensor]) -> Tensor:
    """Pointers of different lengths as rows [P,T]."""
    return nn.utils.rnn.pad_sequence(list(rows), batch_first=True, padding_value=END)


def check_shots(queries: Queries, shots: int) -> Queries:
    """The queries, if every pool is large enough."""
    smallest = int(queries.mask_BK.sum(1).min())
    if smallest < shots:
        raise DataError(
            f"a pool of {smallest} cannot fill {shots} shots: enlarge it or ask for fewer"
        )
    return queries


def trimmed(chosen_PT: Tensor) -> Tensor:
    """Pointers that end where they first stop."""
    stops = (chosen_PT == STOP).cumsum(1)
    return chosen_PT.masked_fill((stops > 1) | ((stops == 1) & (chosen_PT != STOP)), END)


def places(query_P: Tensor, queries: int) -> tuple[Tensor, int]:
    """A place for each pointer beside the others of its query, and how many places a query has."""
    count = query_P.bincount(minlength=queries)
    order = query_P.argsort(stable=True)
    within = torch.empty_like(order)
    within[order] = torch.arange(len(order), device=order.device)
    within -= (count.cumsum(0) - count)[query_P]
    group = int(count.max())
    return query_P * group + within, group


def spread(values_PSH: Tensor, place_P: Tensor, queries: int, group: int) -> Tensor:
    """The pointers' values in their places [B,G,S,H]; empty places hold zeros."""
    empty = values_PSH.new_zeros(queries * group, *values_PSH.shape[1:])
    return empty.index_copy(0, place_P, values_PSH).view(queries, group, *values_PSH.shape[1:])


def all_pointers(size: int, shots: int, *, stop: bool = False) -> list[tuple[int, ...]]:
    """Every pointer there is, in the order of their positions; those that stop come last."""
    whole = list(itertools.permutations(range(size), shots))
    early = [
        (*chosen, STOP)
        for made in range(shots)
        for chosen in itertools.permutations(range(size), made)
    ]
    return whole + early if stop else whole
