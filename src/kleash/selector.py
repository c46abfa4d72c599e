"""A pointer network that chooses demonstrations from a pool, one after the other.

Query and pool are encoded once; every pointer of every query is then scored from that in one pass.
How it is trained is not here (`grpo`, `train`), nor where pools and embeddings come from (`demos`).

Longer than most files because every block stands here, a few lines each.

Shapes: B queries, K candidates, R rows that pools are made of, A alternatives (K, and stop where
there is one), P pointers, T choices of a pointer, S choices made before, G places for a query's
pointers, N choices of all pointers, D and H widths.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import torch
import torch.nn.functional as F
from torch import Generator, Tensor, nn

from kleash.demos.presets import Blocks
from kleash.errors import ConfigError, DataError
from kleash.kl import exact
from kleash.policy import Judged, Noise, judge_logits, no_noise
from kleash.types import Turn

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
    laid: Laid | None = None
    """What a selector's projections make of them, where that was worked out before."""

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
            None if self.laid is None else self.laid.take(rows),
        )

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


@dataclass(frozen=True, eq=False)
class Laid:
    """What a selector's projections make of queries; right for as long as they do not change.

    Without `row_BK` the candidates [B,K,H] themselves, otherwise the table [R,H] that it points to.
    """

    by: Projections
    query_BH: Tensor
    reduced: Tensor
    row_BK: Tensor | None

    @cached_property
    def projected(self) -> Tensor:
        """The second projection of the same, at length one."""
        return unit(self.by.candidate(self.reduced))

    @cached_property
    def pool_BKH(self) -> Tensor:
        """Pools after the first projection."""
        return self.in_pools(self.reduced)

    @cached_property
    def candidates_BKH(self) -> Tensor:
        """Pools after the second projection too."""
        return self.in_pools(self.projected)

    def in_pools(self, values: Tensor) -> Tensor:
        """The values of each pool's candidates."""
        return values if self.row_BK is None else F.embedding(self.row_BK, values)

    def take(self, index: Tensor) -> Laid:
        """Those of some queries; the table stays whole."""
        if self.row_BK is None:
            return Laid(self.by, self.query_BH[index], self.reduced[index], None)
        made = Laid(self.by, self.query_BH[index], self.reduced, self.row_BK[index])
        if "projected" in self.__dict__:
            made.__dict__["projected"] = self.projected
        return made


@dataclass(frozen=True, eq=False)
class Encoded:
    """A batch of queries as the scoring sees it; vectors have length one."""

    state_BH: Tensor
    candidates_BAH: Tensor
    keys_BAH: Tensor
    mask_BA: Tensor


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


def linear(width_in: int, width_out: int) -> nn.Linear:
    """A matrix without bias."""
    return nn.Linear(width_in, width_out, bias=False)


def unit(vectors: Tensor) -> Tensor:
    """The vectors at length one."""
    return F.normalize(vectors, dim=-1)


def near_identity(weight: Tensor, rng: Generator) -> None:
    """Start as a little more than nothing: the identity and noise of 1 %."""
    nn.init.eye_(weight)
    weight += 0.01 * torch.randn(weight.shape, generator=rng, dtype=weight.dtype)


class Block(nn.Module):
    """A part of a selector."""

    def reset(self, rng: Generator) -> None:
        """Draw the parameters, if any."""


class Projections(Block):
    """d → h for query and pool, and later h → h for each."""

    def __init__(self, blocks: Blocks, width: int) -> None:
        super().__init__()
        self.input = linear(width, blocks.hidden)
        if blocks.projection == "separate":
            self.input_query = linear(width, blocks.hidden)
        self.query = linear(blocks.hidden, blocks.hidden)
        self.candidate = linear(blocks.hidden, blocks.hidden)

    def reset(self, rng: Generator) -> None:
        for name, weight in self.named_parameters():
            if name.startswith("input"):
                nn.init.orthogonal_(weight, generator=rng)
            else:
                near_identity(weight, rng)

    def lay(self, queries: Queries) -> Laid:
        """Queries and pools after the first projection; what pools share is projected once."""
        if queries.laid is not None and queries.laid.by is self:
            return queries.laid
        query_BH = getattr(self, "input_query", self.input)(queries.query_BD)
        if len(queries.rows_RD) < queries.row_BK.numel():
            return Laid(self, query_BH, self.input(queries.rows_RD), queries.row_BK)
        return Laid(self, query_BH, self.input(queries.pool_BKD), None)


class SetEncoder(Block):
    """A pre-norm transformer layer over the candidates of a pool, without positions."""

    def __init__(self, blocks: Blocks) -> None:
        super().__init__()
        h, self.heads = blocks.hidden, blocks.heads
        self.attention_norm = nn.LayerNorm(h)
        self.attention_in = nn.Linear(h, 3 * h)
        self.attention_out = nn.Linear(h, h)
        self.mlp_norm = nn.LayerNorm(h)
        self.mlp_in = nn.Linear(h, 4 * h)
        self.mlp_out = nn.Linear(4 * h, h)

    def reset(self, rng: Generator) -> None:
        for part in self.children():
            if isinstance(part, nn.LayerNorm):
                part.reset_parameters()
            elif isinstance(part, nn.Linear):
                nn.init.xavier_uniform_(part.weight, generator=rng)
                nn.init.zeros_(part.bias)

    def forward(self, pool_BKH: Tensor, mask_BK: Tensor) -> Tensor:
        parts: Tensor = self.attention_in(self.attention_norm(pool_BKH))
        q, k, v = parts.view(*mask_BK.shape, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        mixed = F.scaled_dot_product_attention(q, k, v, attn_mask=mask_BK[:, None, None])
        pool_BKH = pool_BKH + self.attention_out(mixed.transpose(1, 2).flatten(2))
        changed: Tensor = self.mlp_out(F.gelu(self.mlp_in(self.mlp_norm(pool_BKH))))
        return pool_BKH + changed


class CrossAttention(Block):
    """One layer from the query to its pool, with a residual and a norm after it.

    A query has one vector, so its keys and values need not be made: W_k and W_v are applied to
    the query's side of both products. The numbers are those of `nn.MultiheadAttention`, whose
    weights are kept under its names; its bias for keys shifts all scores alike and cancels.
    """

    def __init__(self, blocks: Blocks) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(blocks.hidden, blocks.heads, batch_first=True)
        self.norm = nn.LayerNorm(blocks.hidden)

    def reset(self, rng: Generator) -> None:
        for weight in (self.attention.in_proj_weight, self.attention.out_proj.weight):
            nn.init.xavier_uniform_(weight, generator=rng)
        for bias in (self.attention.in_proj_bias, self.attention.out_proj.bias):
            nn.init.zeros_(bias)
        self.norm.reset_parameters()

    def forward(self, query_BH: Tensor, pool_BKH: Tensor, mask_BK: Tensor) -> Tensor:
        heads, size = self.attention.num_heads, self.attention.head_dim
        w_q, w_k, w_v = self.attention.in_proj_weight.chunk(3)
        b_q, _, b_v = self.attention.in_proj_bias.chunk(3)
        # Heads lie side by side as queries of one pool, each with the others' entries at zero.
        own_nH = torch.eye(heads, dtype=w_q.dtype, device=w_q.device).repeat_interleave(size, 1)
        asked_BnH = (F.linear(query_BH, w_q, b_q)[:, None] * own_nH) @ w_k
        pool_B1KH = pool_BKH[:, None]
        mixed_B1nH = F.scaled_dot_product_attention(
            asked_BnH[:, None],
            pool_B1KH,
            pool_B1KH,
            attn_mask=mask_BK[:, None, None],
            scale=1 / math.sqrt(size),
        )
        value_BH = (F.linear(mixed_B1nH[:, 0], w_v, b_v) * own_nH).sum(1)
        normed: Tensor = self.norm(query_BH + self.attention.out_proj(value_BH))
        return normed


class QueryEncoder(Block):
    """Layers of cross-attention."""

    def __init__(self, blocks: Blocks) -> None:
        super().__init__()
        self.layers = nn.ModuleList(CrossAttention(blocks) for _ in range(blocks.query_layers))

    def reset(self, rng: Generator) -> None:
        for layer in self.layers:
            assert isinstance(layer, CrossAttention)
            layer.reset(rng)

    def forward(self, query_BH: Tensor, pool_BKH: Tensor, mask_BK: Tensor) -> Tensor:
        for layer in self.layers:
            query_BH = layer(query_BH, pool_BKH, mask_BK)
        return query_BH


class State(Block):
    """What is looked for. This one is static: what was chosen changes nothing but the mask."""

    remembers = False

    def __init__(self, blocks: Blocks) -> None:
        super().__init__()

    def seen(self, state_XH: Tensor, step: int) -> Tensor:
        """The state as the score sees it at this step."""
        return state_XH

    def after(self, state_PH: Tensor, chosen_PH: Tensor) -> Tensor:
        """The state after a demonstration was chosen."""
        return state_PH


class Blend(State):
    """q ← αq + (1−α)c, one learnt α for all."""

    remembers = True

    def __init__(self, blocks: Blocks) -> None:
        super().__init__(blocks)
        self.alpha = nn.Parameter(torch.empty(()))

    def reset(self, rng: Generator) -> None:
        nn.init.zeros_(self.alpha)

    def after(self, state_PH: Tensor, chosen_PH: Tensor) -> Tensor:
        return unit(torch.lerp(chosen_PH, state_PH, self.alpha.sigmoid()))


class Gate(State):
    """q ← g⊙q + (1−g)⊙c with g = σ(W[q;c] + b)."""

    remembers = True

    def __init__(self, blocks: Blocks) -> None:
        super().__init__(blocks)
        self.gate = nn.Linear(2 * blocks.hidden, blocks.hidden)

    def reset(self, rng: Generator) -> None:
        nn.init.xavier_uniform_(self.gate.weight, generator=rng)
        nn.init.zeros_(self.gate.bias)

    def after(self, state_PH: Tensor, chosen_PH: Tensor) -> Tensor:
        gate = self.gate(torch.cat([state_PH, chosen_PH], dim=-1)).sigmoid()
        return unit(torch.lerp(chosen_PH, state_PH, gate))


class Recurrent(State):
    """A GRU cell fed with what was chosen; the score sees its state plus the step's embedding."""

    remembers = True

    def __init__(self, blocks: Blocks) -> None:
        super().__init__(blocks)
        self.cell = nn.GRUCell(blocks.hidden, blocks.hidden)
        self.steps = nn.Parameter(torch.empty(blocks.shots, blocks.hidden))

    def reset(self, rng: Generator) -> None:
        bound = 1 / math.sqrt(self.cell.hidden_size)
        for weight in self.cell.parameters():
            nn.init.uniform_(weight, -bound, bound, generator=rng)
        nn.init.normal_(self.steps, std=0.02, generator=rng)

    def seen(self, state_XH: Tensor, step: int) -> Tensor:
        return unit(state_XH + self.steps[min(step, len(self.steps) - 1)])

    def after(self, state_PH: Tensor, chosen_PH: Tensor) -> Tensor:
        return unit(self.cell(chosen_PH, state_PH))


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

    def reset(self, rng: Generator) -> None:
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


class Redundancy(Block):
    """MMR: minus λ × the largest cosine to a demonstration chosen before, one λ for each step."""

    def __init__(self, blocks: Blocks) -> None:
        super().__init__()
        self.strength = nn.Parameter(torch.empty(blocks.shots))

    def reset(self, rng: Generator) -> None:
        nn.init.constant_(self.strength, -2.0)

    def forward(self, chosen_BGSH: Tensor, candidates_BAH: Tensor) -> Tensor:
        """The bonus [B,G,S,A] after 1 … S choices."""
        cosine_BGSA = chosen_BGSH @ candidates_BAH.mT[:, None]
        nearest = cosine_BGSA.cummax(dim=2).values
        step = torch.arange(1, nearest.shape[2] + 1, device=nearest.device)
        strength = F.softplus(self.strength)[step.clamp(max=len(self.strength) - 1)]
        return -strength[:, None] * nearest


class Stop(Block):
    """A learnt vector that is scored like a candidate."""

    def __init__(self, blocks: Blocks) -> None:
        super().__init__()
        self.vector = nn.Parameter(torch.empty(blocks.hidden))

    def reset(self, rng: Generator) -> None:
        nn.init.normal_(self.vector, std=0.02, generator=rng)


def nothing(blocks: Blocks) -> None:
    """A block that is left out."""


SET_ENCODERS: dict[str, Callable[[Blocks], SetEncoder | None]] = {
    "none": nothing,
    "transformer": SetEncoder,
}
STATES: dict[str, type[State]] = {"static": State, "blend": Blend, "gate": Gate, "gru": Recurrent}
SCORES: dict[str, type[Score]] = {"cosine": Score, "additive": Additive, "bilinear": Bilinear}
BONUSES: dict[str, Callable[[Blocks], Redundancy | None]] = {"none": nothing, "mmr": Redundancy}
STOPS: dict[str, Callable[[Blocks], Stop | None]] = {"off": nothing, "on": Stop}


class Selector(nn.Module):
    """The blocks put together. Its parameters come from the generator it is given, and no other.

    Without a generator they are whatever lay in memory: load weights strictly before use.
    """

    def __init__(self, blocks: Blocks, width: int, rng: Generator | None) -> None:
        super().__init__()
        self.blocks, self.width = blocks, width
        with torch.device("meta"):  # the modules' own starting values would use torch's generator
            self.projections = Projections(blocks, width)
            self.set_encoder = SET_ENCODERS[blocks.set_encoder](blocks)
            self.query_encoder = QueryEncoder(blocks)
            self.state = STATES[blocks.state](blocks)
            self.score = SCORES[blocks.score](blocks)
            self.bonus = BONUSES[blocks.bonus](blocks)
            self.stop = STOPS[blocks.stop](blocks)
        self.to_empty(device="cpu")
        if rng is not None:
            self.reset(rng)

    @torch.no_grad()
    def reset(self, rng: Generator) -> None:
        """Draw all parameters."""
        for part in self.children():
            assert isinstance(part, Block)
            part.reset(rng)

    def freeze(self, names: Sequence[str]) -> None:
        """Stop training the blocks of these names."""
        known = dict.fromkeys(name.split(".")[0] for name, _ in self.named_parameters())
        for name in names:
            if name not in known:
                raise ConfigError(f"cannot freeze {name!r}: the blocks are {', '.join(known)}")
            self.get_submodule(name).requires_grad_(False)

    @torch.no_grad()
    def parts(self, batch: Pointers) -> list[tuple[Pointers, slice]]:
        """A batch in parts to be judged one by one: its pointers are few, so there is one."""
        return [(batch, slice(None))]

    def settle(self, queries: Queries) -> Queries:
        """The same queries with what the projections make of them, for while these stand still."""
        laid = self.projections.lay(replace(queries, laid=None))
        if self.set_encoder is None:
            laid.projected  # noqa: B018 - worked out here, for all that is taken from it later
        return replace(queries, laid=laid)

    def encode(self, queries: Queries, dropout: Generator | None = None) -> Encoded:
        """Everything that does not depend on what is chosen: once per query.

        Dropout is drawn from the generator given. Judging gives none, so that policy and reference
        are always in the same mode.
        """
        laid, mask_BA = self.projections.lay(queries), queries.mask_BK
        query_BH, pool_BKH = laid.query_BH, laid.pool_BKH
        if self.set_encoder is not None:
            pool_BKH = self.set_encoder(pool_BKH, mask_BA)
        query_BH = self.query_encoder(query_BH, pool_BKH, mask_BA)
        if dropout is not None:
            query_BH, pool_BKH = (self.drop(part, dropout) for part in (query_BH, pool_BKH))
        if dropout is None and self.set_encoder is None:
            candidates_BAH = laid.candidates_BKH
        else:
            candidates_BAH = unit(self.projections.candidate(pool_BKH))
        if self.stop is not None:
            stop = unit(self.stop.vector).expand(len(queries), 1, -1)
            candidates_BAH = torch.cat([candidates_BAH, stop], dim=1)
            mask_BA = F.pad(mask_BA, (0, 1), value=True)
        state_BH = unit(self.projections.query(query_BH))
        return Encoded(state_BH, candidates_BAH, self.score.keys(candidates_BAH), mask_BA)

    def drop(self, values: Tensor, rng: Generator) -> Tensor:
        """The values with a fraction of them at zero and the others scaled up."""
        kept = 1 - self.blocks.dropout
        drawn = torch.rand(values.shape, generator=rng, device=rng.device).to(values.device)
        return values * (drawn < kept) / kept

    def walk(
        self, encoded: Encoded, query_P: Tensor, chosen_PS: Tensor, open_PTK: Tensor | None = None
    ) -> Tensor:
        """Logits [P,S+1,A] before and after each of S choices; what cannot be chosen is -inf.

        The last alternative is `STOP` where the selector has it. Rows past `END` mean nothing.
        """
        choices = encoded.mask_BA.shape[1]
        first_BA = self.score(self.state.seen(encoded.state_BH, 0)[:, None], encoded.keys_BAH)
        score = (first_BA / self.blocks.temperature).index_select(0, query_P)
        if chosen_PS.shape[1] and (self.state.remembers or self.bonus is not None):
            column_PS = torch.where(chosen_PS == STOP, choices - 1, chosen_PS)
            later_PSA = self.later(encoded, query_P, column_PS) / self.blocks.temperature
            score = torch.cat([score, later_PSA], dim=1)
        if open_PTK is None:
            size = choices - (self.stop is not None)
            open_PTK = still_open(encoded.mask_BA[:, :size].index_select(0, query_P), chosen_PS)
        if self.stop is not None:
            stopped_PT1 = F.pad(chosen_PS == STOP, (1, 0)).cummax(1).values[..., None]
            open_PTK = F.pad(open_PTK & ~stopped_PT1, (0, 1), value=True)
        return torch.where(open_PTK, score, -math.inf)

    def later(self, encoded: Encoded, query_P: Tensor, column_PS: Tensor) -> Tensor:
        """Scores [P,S,A] after each choice, where they depend on what was chosen.

        Pointers of a query are laid side by side, so that its candidates are never copied.
        """
        queries, choices = encoded.mask_BA.shape
        rows_PS = query_P[:, None] * choices + column_PS.clamp(min=0)
        chosen_PSH = encoded.candidates_BAH.flatten(0, 1).index_select(0, rows_PS.flatten())
        chosen_PSH = chosen_PSH.view(*rows_PS.shape, -1)
        slot_P, group = slots(query_P, queries)
        state_PH = encoded.state_BH.index_select(0, query_P)
        seen = []
        for step, chosen_PH in enumerate(chosen_PSH.unbind(1), start=1):
            state_PH = self.state.after(state_PH, chosen_PH)
            seen.append(self.state.seen(state_PH, step))
        state_BGSH = spread(torch.stack(seen, dim=1), slot_P, queries, group)
        score: Tensor = self.score(state_BGSH.flatten(1, 2), encoded.keys_BAH)
        score_BGSA = score.view(queries, group, -1, choices)
        if self.bonus is not None:
            chosen_BGSH = spread(chosen_PSH, slot_P, queries, group)
            bonus = self.bonus(chosen_BGSH, encoded.candidates_BAH)
            if self.stop is not None:  # stopping repeats nothing
                bonus = F.pad(bonus[..., :-1], (0, 1))
            score_BGSA = score_BGSA + bonus
        return score_BGSA.flatten(0, 1).index_select(0, slot_P)

    def logits(self, pointers: Pointers, dropout: Generator | None = None) -> Tensor:
        """Logits [N,A] at every choice, pointer by pointer, step by step."""
        encoded = self.encode(pointers.queries, dropout)
        logits_PTA = self.walk(
            encoded, pointers.query_P, pointers.chosen_PT[:, :-1], pointers.open_PTK
        )
        whole = len(pointers.episode) == pointers.chosen_PT.numel()
        return logits_PTA.flatten(0, 1) if whole else logits_PTA[pointers.made_PT]

    def chosen(self, pointers: Pointers) -> Tensor:
        """The column of each choice in `logits`."""
        if self.stop is None:
            return pointers.chosen
        return torch.where(
            pointers.chosen == STOP, pointers.queries.mask_BK.shape[1], pointers.chosen
        )

    def judge(self, batch: Pointers, reference: Selector | Tensor | None = None) -> Judged:
        """How likely every choice is, and how far the policy is from the reference there.

        The reference may be its logits on this very batch.
        """
        if reference is not None and not isinstance(reference, Tensor):
            with torch.no_grad():
                reference = reference.logits(batch)
        return judge_logits(self.logits(batch), self.chosen(batch), reference)

    def act(self, observations: Sequence[Observation], noise: Noise) -> list[Turn]:
        """One pointer for each observation, of as many shots as in training."""
        queries, query_P = shared(observations)
        pointers, logp_PT = self.choose(queries, self.blocks.shots, noise, query_P=query_P)
        rows = zip(observations, pointers.lists(), logp_PT.tolist(), strict=True)
        return [Turn(seen, chosen, tuple(logp[: len(chosen)])) for seen, chosen, logp in rows]

    def gather(self, turns: Sequence[Turn]) -> Pointers:
        """The turns as a batch to judge; an observation that several turns share is held once."""
        queries, query_P = shared([turn.observation for turn in turns])
        rows = [torch.tensor(turn.choices) for turn in turns]
        return Pointers(queries, query_P, padded(rows).to(query_P.device))

    @torch.no_grad()
    def choose(
        self,
        queries: Queries,
        shots: int,
        noise: Noise = no_noise,
        *,
        query_P: Tensor | None = None,
    ) -> tuple[Pointers, Tensor]:
        """Pointers, one for each entry of `query_P` (one per query), and their logp [P,T].

        With noise it is a draw, without it the likeliest choice at every step.
        """
        encoded = self.encode(check_shots(queries, shots))
        if query_P is None:
            query_P = torch.arange(len(queries), device=queries.mask_BK.device)
        chosen_PT = query_P.new_empty(len(query_P), 0)
        logp_PT = encoded.state_BH.new_empty(len(query_P), 0)
        for step in range(shots):
            logp_PA = self.walk(encoded, query_P, chosen_PT)[:, -1].log_softmax(-1)
            noisy_PA = logp_PA
            if noise is not no_noise:
                noisy_PA = logp_PA + self.drawn(noise, step, encoded.mask_BA[query_P])
            best_P1 = noisy_PA.argmax(-1, keepdim=True)
            logp_PT = torch.cat([logp_PT, logp_PA.gather(1, best_P1)], dim=1)
            chosen_PT = torch.cat([chosen_PT, self.position(best_P1, encoded)], dim=1)
        return Pointers(queries, query_P, trimmed(chosen_PT)), logp_PT

    def drawn(self, noise: Noise, step: int, mask_PA: Tensor) -> Tensor:
        """Noise for one choice of every pointer; a pool's own size decides it, not its padding."""
        open_PA = mask_PA.cpu().numpy()
        noise_PA = np.zeros(open_PA.shape)
        for index, size in enumerate(open_PA.sum(1).tolist()):
            noise_PA[index, open_PA[index]] = noise(index, step, size)
        return torch.from_numpy(noise_PA).to(mask_PA.device)

    def position(self, column: Tensor, encoded: Encoded) -> Tensor:
        """The pool position of a column of logits, or `STOP`."""
        if self.stop is None:
            return column
        return torch.where(column == encoded.mask_BA.shape[1] - 1, STOP, column)

    @torch.no_grad()
    def beams(self, queries: Queries, shots: int, width: int) -> tuple[Pointers, Tensor]:
        """Up to `width` pointers per query by beam search, best first, and their log-probability.

        Equally likely ones come in the order of their positions.
        """
        encoded = self.encode(check_shots(queries, shots))
        query_P = torch.arange(len(queries), device=queries.mask_BK.device)
        chosen_PT = query_P.new_empty(len(query_P), 0)
        total_P = encoded.state_BH.new_zeros(len(query_P))
        for _ in range(shots):
            logp_PA = self.walk(encoded, query_P, chosen_PT)[:, -1].log_softmax(-1)
            total_PA = total_P[:, None] + logp_PA
            pointer_X, column_X = total_PA.isfinite().nonzero().unbind(1)
            total_X, query_X = total_PA[pointer_X, column_X], query_P[pointer_X]
            order = total_X.sort(descending=True, stable=True).indices
            order = order[query_X[order].sort(stable=True).indices]
            place = torch.arange(len(order), device=order.device)
            count = query_X.bincount(minlength=len(queries))
            rank = place - (count.cumsum(0) - count)[query_X[order]]
            kept = order[rank < width]
            query_P, total_P = query_X[kept], total_X[kept]
            added = self.position(column_X[kept], encoded)[:, None]
            chosen_PT = torch.cat([chosen_PT[pointer_X[kept]], added], dim=1)
        return Pointers(queries, query_P, trimmed(chosen_PT)), total_P


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


def slots(query_P: Tensor, queries: int) -> tuple[Tensor, int]:
    """A place for each pointer beside the others of its query, and how many places a query has."""
    count = query_P.bincount(minlength=queries)
    order = query_P.argsort(stable=True)
    within = torch.empty_like(order)
    within[order] = torch.arange(len(order), device=order.device)
    within -= (count.cumsum(0) - count)[query_P]
    group = int(count.max())
    return query_P * group + within, group


def spread(values_PSH: Tensor, slot_P: Tensor, queries: int, group: int) -> Tensor:
    """The pointers' values in their places [B,G,S,H]; empty places hold zeros."""
    empty = values_PSH.new_zeros(queries * group, *values_PSH.shape[1:])
    return empty.index_copy(0, slot_P, values_PSH).view(queries, group, *values_PSH.shape[1:])


def all_pointers(size: int, shots: int, *, stop: bool = False) -> list[tuple[int, ...]]:
    """Every pointer there is, in the order of their positions; those that stop come last."""
    whole = list(itertools.permutations(range(size), shots))
    early = [
        (*chosen, STOP)
        for made in range(shots)
        for chosen in itertools.permutations(range(size), made)
    ]
    return whole + early if stop else whole


@torch.no_grad()
def exact_sequence_kl(
    policy: Selector, reference: Selector, queries: Queries, shots: int
) -> Tensor:
    """KL(policy‖reference) of whole pointers, one number per query, by enumeration.

    Σ over states of how likely the policy gets there × the KL of its choice there (chain rule), so
    two shots cost K states and not K(K−1). Once stopped there is only one way on, and no KL.
    """
    total = torch.zeros(len(queries), dtype=torch.float64, device=queries.mask_BK.device)
    settled = policy.settle(queries), reference.settle(queries)
    for first in range(0, len(queries), 16):  # some queries at a time: states take memory
        some, same = (part.take(range(first, min(first + 16, len(queries)))) for part in settled)
        ours, theirs = policy.encode(some), reference.encode(same)
        sizes = some.mask_BK.sum(1).tolist()
        for made in range(shots):
            states = [all_pointers(size, made) for size in sizes]
            counts = torch.tensor([len(listed) for listed in states], device=total.device)
            query_P = torch.arange(len(some), device=total.device).repeat_interleave(counts)
            chosen_PS = torch.tensor([state for listed in states for state in listed]).long()
            chosen_PS = chosen_PS.to(total.device).view(len(query_P), made)
            logp = policy.walk(ours, query_P, chosen_PS).log_softmax(-1)
            logp_ref = reference.walk(theirs, query_P, chosen_PS)[:, -1].log_softmax(-1)
            reach = logp[:, :-1].gather(2, chosen_PS[..., None]).flatten(1).sum(1).exp()
            kl_P = (reach * exact(logp[:, -1], logp_ref)).double()
            total[first : first + len(some)].index_add_(0, query_P, kl_P)
    return total
