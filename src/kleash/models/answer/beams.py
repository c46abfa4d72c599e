"""Which words are said: greedily, or by a beam search that finds what `generate` finds.

Rows do not know of each other: each would end the same alone.

Shapes: B prompts, W beams, C candidates, V ids, T ids said.
"""

from __future__ import annotations

from typing import Protocol

import torch
from torch import Tensor

NEVER = -1e9  # the score of what is not there; finite, so that sums of it stay comparable


class Search(Protocol):
    """Asked for the next ids of all beams until all are said."""

    def advance(self, logp_BWV: Tensor) -> tuple[Tensor, Tensor]:
        """The beam each next id follows, and the ids: both [B, W]."""

    def said(self) -> list[list[int]]:
        """The best ids of every prompt, without the one that ended them."""


class Greedy:
    """The likeliest id, again and again."""

    def __init__(self, rows: int, stops: Tensor) -> None:
        self.stops = stops
        self.chosen = torch.zeros(rows, 0, dtype=torch.long, device=stops.device)

    def advance(self, logp_BWV: Tensor) -> tuple[Tensor, Tensor]:
        """The likeliest ids."""
        best_B1 = logp_BWV.argmax(-1)
        self.chosen = torch.cat([self.chosen, best_B1], 1)
        return torch.zeros_like(best_B1), best_B1

    def said(self) -> list[list[int]]:
        """Up to the first id that ends a turn."""
        stops = set(self.stops.tolist())
        return [upto(row, stops) for row in self.chosen.tolist()]


class Beams:
    """The search of transformers' `generate` with `early_stopping=False`, for many prompts at once.

    A beam that ends is kept with its mean log-probability (sum / length ** `penalty`); a prompt is
    done when as many have ended as there are beams and none that goes on is better on its way.
    """

    def __init__(self, rows: int, width: int, most: int, stops: Tensor, penalty: float) -> None:
        self.width, self.most, self.stops, self.penalty = width, most, stops, penalty
        self.step = 0
        device = stops.device
        self.score_BW = torch.full((rows, width), NEVER, device=device)
        self.score_BW[:, 0] = 0.0  # all beams begin alike: only one of them counts
        self.ids_BWT = torch.zeros(rows, width, 0, dtype=torch.long, device=device)
        self.best_BW = torch.full((rows, width), NEVER, device=device)
        self.ended_BW = torch.zeros(rows, width, dtype=torch.bool, device=device)
        self.kept_BWT = torch.zeros(rows, width, most, dtype=torch.long, device=device)
        self.open_B1 = torch.ones(rows, 1, dtype=torch.bool, device=device)

    def advance(self, logp_BWV: Tensor) -> tuple[Tensor, Tensor]:
        """The best beams that go on; those that end are put aside."""
        count = max(2, 1 + len(self.stops)) * self.width
        total_BWV = logp_BWV + self.score_BW[:, : logp_BWV.shape[1], None]
        score_BC, flat_BC = total_BWV.flatten(1).topk(count)
        parent_BC, id_BC = flat_BC // logp_BWV.shape[-1], flat_BC % logp_BWV.shape[-1]
        ids_BCT = torch.cat([pick(self.ids_BWT, parent_BC), id_BC[..., None]], -1)
        self.step += 1
        ends_BC = torch.isin(id_BC, self.stops) | (self.step == self.most)
        running_BC = score_BC + ends_BC * NEVER
        self.score_BW, next_BW = running_BC.topk(self.width)
        self.put_aside(score_BC, ids_BCT, ends_BC)
        self.ids_BWT = pick(ids_BCT, next_BW)
        self.look_ahead()
        return parent_BC.gather(1, next_BW), id_BC.gather(1, next_BW)

    def put_aside(self, score_BC: Tensor, ids_BCT: Tensor, ends_BC: Tensor) -> None:
        """Keep the best that have ended; only the first `width` candidates may end."""
        ends_BC = ends_BC.clone()
        ends_BC[:, self.width :] = False
        allowed_BC = ends_BC & self.open_B1
        final_BC = score_BC / self.step**self.penalty + ~allowed_BC * NEVER
        room = self.most - self.step
        padded = torch.nn.functional.pad(ids_BCT, (0, room), value=-1)
        merged = torch.cat([self.best_BW, final_BC], 1)
        self.best_BW, at = merged.topk(self.width)
        self.ended_BW = torch.cat([self.ended_BW, ends_BC], 1).gather(1, at)
        self.kept_BWT = pick(torch.cat([self.kept_BWT, padded], 1), at)

    def look_ahead(self) -> None:
        """Close the prompts in which no beam that goes on is better than the worst that ended."""
        hope_B1 = self.score_BW[:, :1] / self.step**self.penalty
        worst_B1 = self.best_BW.min(1, keepdim=True).values
        bar_BW = torch.where(self.ended_BW, worst_B1, NEVER)
        self.open_B1 &= (hope_B1 > bar_BW).any(1, keepdim=True)

    def said(self) -> list[list[int]]:
        """The best that ended, without the id that ended it."""
        stops = {*self.stops.tolist(), -1}
        return [upto(row, stops) for row in self.kept_BWT[:, 0].tolist()]


def pick(rows_BCT: Tensor, at_BW: Tensor) -> Tensor:
    """Some of the rows of each prompt."""
    return rows_BCT.gather(1, at_BW[..., None].expand(-1, -1, rows_BCT.shape[-1]))


def upto(ids: list[int], stops: set[int]) -> list[int]:
    """Ids before the first stop."""
    return ids[: next((at for at, one in enumerate(ids) if one in stops), len(ids))]
