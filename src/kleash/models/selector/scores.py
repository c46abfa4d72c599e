"""How candidates are scored: fit, a bonus for adding something, a second look, and stop.

Shapes as in `kleash.models.selector`.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Generator, Tensor, nn

from kleash.models.selector.encoders import (
    Block,
    CrossAttention,
    linear,
    near_identity,
    nothing,
    unit,
)
from kleash.models.selector.pointers import Queries
from kleash.models.selector.states import Encoded
from kleash.tasks.demos.presets import Blocks
from kleash.tasks.demos.retrieval import RETRIEVALS

RIDGE = 0.01
"""On the kernel's diagonal: a copy of what was chosen still multiplies the volume by about 0.02."""


class Score(Block):
    """How well candidates fit a state. This one is the cosine, for vectors have length one."""

    def __init__(self, blocks: Blocks) -> None:
        super().__init__()

    def keys(self, candidates_BAH: Tensor) -> Tensor:
        """What can be made of the candidates before any state is known."""
        return candidates_BAH

    def forward(self, state_BSH: Tensor, keys_BAH: Tensor) -> Tensor:
        return state_BSH @ keys_BAH.mT


class Bilinear(Score):
    """qᵀWc."""

    def __init__(self, blocks: Blocks) -> None:
        super().__init__(blocks)
        self.weight = linear(blocks.hidden, blocks.hidden)
        self.added = blocks.retrieval != "off"

    def reset(self, rng: Generator) -> None:
        if self.added:
            nn.init.zeros_(self.weight.weight)
        else:
            near_identity(self.weight.weight, rng)

    def keys(self, candidates_BAH: Tensor) -> Tensor:
        keys: Tensor = self.weight(candidates_BAH)
        return keys


class Additive(Score):
    """vᵀtanh(W_q q + b + W_c c), on vectors whose entries are about one."""

    def __init__(self, blocks: Blocks) -> None:
        super().__init__(blocks)
        self.scale = math.sqrt(blocks.hidden)
        self.query = nn.Linear(blocks.hidden, blocks.hidden)
        self.candidate = linear(blocks.hidden, blocks.hidden)
        self.direction = nn.Parameter(torch.empty(blocks.hidden))

    def reset(self, rng: Generator) -> None:
        nn.init.xavier_uniform_(self.query.weight, generator=rng)
        nn.init.zeros_(self.query.bias)
        nn.init.xavier_uniform_(self.candidate.weight, generator=rng)
        nn.init.normal_(self.direction, std=0.1 / self.scale, generator=rng)

    def keys(self, candidates_BAH: Tensor) -> Tensor:
        keys: Tensor = self.candidate(self.scale * candidates_BAH)
        return keys

    def forward(self, state_BSH: Tensor, keys_BAH: Tensor) -> Tensor:
        asked_BSH: Tensor = self.query(self.scale * state_BSH)
        return (asked_BSH[:, :, None] + keys_BAH[:, None]).tanh() @ self.direction


class Retrieval(Block):
    """Similarities with learnt weights, beside which the score begins at 0.

    At first one similarity has weight 1 and the others none, so that the choices are that
    retrieval's, the nearest first.
    """

    def __init__(self, blocks: Blocks) -> None:
        super().__init__()
        self.first = RETRIEVALS.index(blocks.retrieval)
        self.weight = nn.Parameter(torch.empty(len(RETRIEVALS)))

    def reset(self, rng: Generator) -> None:
        nn.init.zeros_(self.weight)
        self.weight[self.first] = 1.0

    def forward(self, queries: Queries) -> Tensor:
        near_BKE = queries.near_BKE
        if near_BKE is None:  # nothing but vectors is known: all retrievals are their cosine
            cosine_BK1 = unit(queries.pool_BKD) @ unit(queries.query_BD)[..., None]
            near_BKE = cosine_BK1.expand(-1, -1, len(RETRIEVALS))
        return near_BKE @ self.weight


class Bonus(Block):
    """What is added to scores for going well with the demonstrations chosen before."""

    strength: nn.Parameter

    def reset(self, rng: Generator) -> None:
        nn.init.constant_(self.strength, -2.0)

    def forward(self, query_BH: Tensor, chosen_BGSH: Tensor, candidates_BAH: Tensor) -> Tensor:
        """The bonus [B,G,S,A] after 1 … S choices."""
        raise NotImplementedError


class Redundancy(Bonus):
    """MMR: minus λ × the largest cosine to a demonstration chosen before, one λ for each step."""

    def __init__(self, blocks: Blocks) -> None:
        super().__init__()
        self.strength = nn.Parameter(torch.empty(blocks.shots))

    def forward(self, query_BH: Tensor, chosen_BGSH: Tensor, candidates_BAH: Tensor) -> Tensor:
        cosine_BGSA = chosen_BGSH @ candidates_BAH.mT[:, None]
        nearest = cosine_BGSA.cummax(dim=2).values
        step = torch.arange(1, nearest.shape[2] + 1, device=nearest.device)
        strength = F.softplus(self.strength)[step.clamp(max=len(self.strength) - 1)]
        return -strength[:, None] * nearest


class Coverage(Bonus):
    """λ × how much of what the query needs and none chosen covers yet, by learnt topics.

    A topic is covered with probability 1 − Π(1 − p) over the chosen (El-Arini et al. 2009).
    """

    def __init__(self, blocks: Blocks) -> None:
        super().__init__()
        self.strength = nn.Parameter(torch.empty(()))
        self.topics = nn.Parameter(torch.empty(blocks.topics, blocks.hidden))
        self.need = nn.Linear(blocks.hidden, blocks.topics)
        self.temperature = blocks.temperature

    def reset(self, rng: Generator) -> None:
        super().reset(rng)
        nn.init.normal_(self.topics, std=0.02, generator=rng)
        nn.init.xavier_uniform_(self.need.weight, generator=rng)
        nn.init.zeros_(self.need.bias)

    def about(self, vectors: Tensor) -> Tensor:
        """How much each vector is about each topic; the shares of a vector sum to one."""
        cosine: Tensor = vectors @ unit(self.topics).T
        return (cosine / self.temperature).softmax(-1)

    def forward(self, query_BH: Tensor, chosen_BGSH: Tensor, candidates_BAH: Tensor) -> Tensor:
        need_BM = (self.need(query_BH) / self.temperature).softmax(-1)
        missing_BGSM = need_BM[:, None, None] * (1 - self.about(chosen_BGSH)).cumprod(2)
        gain_BGSA: Tensor = missing_BGSM @ self.about(candidates_BAH).mT[:, None]
        return F.softplus(self.strength) * gain_BGSA


class Volume(Bonus):
    """λ × the log of how much a candidate adds to the volume of those chosen, as a DPP has it.

    The kernel is of low rank: cosines of a few learnt features, and a ridge on its diagonal. The
    factor that det grows by, 1 − kᵀK⁻¹k, is read off one Cholesky factor for all steps at once.
    """

    def __init__(self, blocks: Blocks) -> None:
        super().__init__()
        self.strength = nn.Parameter(torch.empty(()))
        self.features = linear(blocks.hidden, blocks.rank)

    def reset(self, rng: Generator) -> None:
        super().reset(rng)
        nn.init.xavier_uniform_(self.features.weight, generator=rng)

    def forward(self, query_BH: Tensor, chosen_BGSH: Tensor, candidates_BAH: Tensor) -> Tensor:
        features_BAr, chosen_BGSr = (
            unit(self.features(vectors)) for vectors in (candidates_BAH, chosen_BGSH)
        )
        ridge = RIDGE * torch.eye(
            chosen_BGSr.shape[2], dtype=chosen_BGSr.dtype, device=chosen_BGSr.device
        )
        factor_BGSS = torch.linalg.cholesky(chosen_BGSr @ chosen_BGSr.mT + ridge)
        known_BGSA = chosen_BGSr @ features_BAr.mT[:, None]
        explained: Tensor = torch.linalg.solve_triangular(factor_BGSS, known_BGSA, upper=False)
        left = 1 + RIDGE - explained.square().cumsum(2)
        return F.softplus(self.strength) * left.clamp(min=RIDGE).log()


class SecondLook(CrossAttention):
    """Two stages: the best few by score are seen side by side, and share anew what they had.

    The first stage gives every candidate a probability; the second moves it among the best few
    only. So every choice keeps a finite logp, and the likeliest is always one of the few.
    """

    def __init__(self, blocks: Blocks) -> None:
        super().__init__(blocks)
        self.kept, self.temperature = blocks.shortlist, blocks.temperature

    def logits(
        self, logits_PTA: Tensor, seen_PTH: Tensor, encoded: Encoded, query_P: Tensor
    ) -> Tensor:
        """The logits after the second stage; -inf stays."""
        size = logits_PTA.shape[2]
        best_PTr, column_PTr = logits_PTA.topk(min(self.kept, size), dim=2)
        rows = (query_P[:, None, None] * size + column_PTr).flatten(0, 1)
        few_XrH = F.embedding(rows, encoded.candidates_BAH.flatten(0, 1))
        seen_XH = seen_PTH.expand(-1, logits_PTA.shape[1], -1).flatten(0, 1)
        open_Xr = best_PTr.flatten(0, 1) > -math.inf
        looked_XH = unit(self(seen_XH, few_XrH, open_Xr))
        score_Xr = (few_XrH @ looked_XH[..., None])[..., 0] / self.temperature
        share_Xr = score_Xr.masked_fill(~open_Xr, -math.inf).log_softmax(-1)
        total_PT1 = best_PTr.logsumexp(2, keepdim=True)
        return logits_PTA.scatter(2, column_PTr, share_Xr.view_as(best_PTr) + total_PT1)


class Stop(Block):
    """A learnt vector that is scored like a candidate."""

    def __init__(self, blocks: Blocks) -> None:
        super().__init__()
        self.vector = nn.Parameter(torch.empty(blocks.hidden))

    def reset(self, rng: Generator) -> None:
        nn.init.normal_(self.vector, std=0.02, generator=rng)


SCORES: dict[str, type[Score]] = {"cosine": Score, "additive": Additive, "bilinear": Bilinear}
BONUSES: dict[str, Callable[[Blocks], Bonus | None]] = {
    "none": nothing,
    "mmr": Redundancy,
    "coverage": Coverage,
    "dpp": Volume,
}
SECOND_LOOKS: dict[str, Callable[[Blocks], SecondLook | None]] = {
    "steps": nothing,
    "slots": nothing,
    "two-stage": SecondLook,
}
STOPS: dict[str, Callable[[Blocks], Stop | None]] = {"off": nothing, "on": Stop}
