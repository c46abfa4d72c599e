"""The blocks put together: encode once, give the logits of every step, sample and judge pointers.

Shapes as in `kleash.models.selector`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import torch
import torch.nn.functional as F
from torch import Generator, Tensor, nn

from kleash.algo.kl import exact
from kleash.algo.policy import Judged, Noise, judge_logits, no_noise
from kleash.errors import ConfigError
from kleash.models.selector.encoders import SET_ENCODERS, Block, Projections, QueryEncoder, unit
from kleash.models.selector.pointers import (
    STOP,
    Observation,
    Pointers,
    Queries,
    all_pointers,
    check_shots,
    padded,
    places,
    shared,
    spread,
    still_open,
    trimmed,
)
from kleash.models.selector.scores import BONUSES, SCORES, SECOND_LOOKS, STOPS, Retrieval
from kleash.models.selector.states import Encoded, state_of
from kleash.models.selector.towers import AdaptedTowers
from kleash.tasks.demos.presets import Blocks
from kleash.types import Brief, Turn


class Selector(Brief, nn.Module):
    """The blocks put together. Its parameters come from the generator it is given, and no other.

    Without a generator they are whatever lay in memory: load weights strictly before use.
    """

    def __init__(
        self,
        blocks: Blocks,
        width: int,
        rng: Generator | None,
        towers: AdaptedTowers | None = None,
    ) -> None:
        super().__init__()
        if (blocks.towers == "lora") != (towers is not None):
            raise ConfigError(
                "a selector on towers with adapters needs these towers, and no other has any: make"
                " it by the world of its recipe"
            )
        self.blocks, self.width = blocks, width
        with torch.device("meta"):  # the modules' own starting values would use torch's generator
            self.projections = Projections(blocks, width)
            self.set_encoder = SET_ENCODERS[blocks.set_encoder](blocks)
            self.query_encoder = QueryEncoder(blocks)
            self.state = state_of(blocks)
            self.score = SCORES[blocks.score](blocks)
            self.retrieval = None if blocks.retrieval == "off" else Retrieval(blocks)
            self.bonus = BONUSES[blocks.bonus](blocks)
            self.stop = STOPS[blocks.stop](blocks)
            self.second_look = SECOND_LOOKS[blocks.decoder](blocks)
        self.to_empty(device="cpu")
        self.towers = towers
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

    def project(self, queries: Queries) -> Queries:
        """The same queries with what the projections make of them, for while these stand still."""
        projected = self.projections.project(self.seen(replace(queries, projected=None)))
        if self.set_encoder is None:
            projected.candidate  # noqa: B018 - worked out here, for all that is taken from it later
        return replace(queries, projected=projected)

    def seen(self, queries: Queries) -> Queries:
        """The queries and pools as the towers see them now, where these train."""
        known = queries.projected is not None and queries.projected.by is self.projections
        return queries if self.towers is None or known else self.towers(queries)

    def encode(self, queries: Queries, dropout: Generator | None = None) -> Encoded:
        """Everything that does not depend on what is chosen: once per query.

        Dropout is drawn from the generator given. Judging gives none, so that policy and reference
        are always in the same mode.
        """
        projected, mask_BA = self.projections.project(self.seen(queries)), queries.mask_BK
        query_BH, pool_BKH = projected.query_BH, projected.pool_BKH
        if self.set_encoder is not None:
            pool_BKH = self.set_encoder(pool_BKH, mask_BA)
        query_BH = self.query_encoder(query_BH, pool_BKH, mask_BA)
        if dropout is not None:
            query_BH, pool_BKH = (self.drop(part, dropout) for part in (query_BH, pool_BKH))
        if dropout is None and self.set_encoder is None:
            candidates_BAH = projected.candidates_BKH
        else:
            candidates_BAH = unit(self.projections.candidate(pool_BKH))
        if self.stop is not None:
            stop = unit(self.stop.vector).expand(len(queries), 1, -1)
            candidates_BAH = torch.cat([candidates_BAH, stop], dim=1)
            mask_BA = F.pad(mask_BA, (0, 1), value=True)
        state_BH = unit(self.projections.query(query_BH))
        keys_BAH = self.score.keys(candidates_BAH)
        encoded = Encoded(state_BH, candidates_BAH, keys_BAH, mask_BA)
        if self.retrieval is not None:
            near_BK = self.retrieval(queries) / self.blocks.temperature
            near_BA = F.pad(near_BK, (0, mask_BA.shape[1] - near_BK.shape[1]))
            encoded = replace(encoded, near_BA=near_BA)
        return self.state.prepared(encoded)

    def drop(self, values: Tensor, rng: Generator) -> Tensor:
        """The values with a fraction of them at zero and the others scaled up."""
        kept = 1 - self.blocks.dropout
        drawn = torch.rand(values.shape, generator=rng, device=rng.device).to(values.device)
        return values * (drawn < kept) / kept

    def step_logits(
        self, encoded: Encoded, query_P: Tensor, chosen_PS: Tensor, open_PTK: Tensor | None = None
    ) -> Tensor:
        """Logits [P,S+1,A] before and after each of S choices; what cannot be chosen is -inf.

        The last alternative is `STOP` where the selector has it. Rows past `END` mean nothing.
        """
        choices = encoded.mask_BA.shape[1]
        first_BH = self.state.first(encoded)
        first_B1A = self.score(first_BH[:, None], encoded.keys_BAH)
        score = (first_B1A / self.blocks.temperature).index_select(0, query_P)
        seen_PTH = first_BH.index_select(0, query_P)[:, None]
        if chosen_PS.shape[1] and (self.state.remembers or self.bonus is not None):
            column_PS = torch.where(chosen_PS == STOP, choices - 1, chosen_PS)
            later_PSH, later_PSA = self.logits_after(encoded, query_P, column_PS)
            score = torch.cat([score, later_PSA / self.blocks.temperature], dim=1)
            seen_PTH = torch.cat([seen_PTH, later_PSH], dim=1)
        if encoded.near_BA is not None:
            score = score + encoded.near_BA.index_select(0, query_P)[:, None]
        if open_PTK is None:
            size = choices - (self.stop is not None)
            open_PTK = still_open(encoded.mask_BA[:, :size].index_select(0, query_P), chosen_PS)
        if self.stop is not None:
            stopped_PT1 = F.pad(chosen_PS == STOP, (1, 0)).cummax(1).values[..., None]
            open_PTK = F.pad(open_PTK & ~stopped_PT1, (0, 1), value=True)
        logits_PTA = torch.where(open_PTK, score, -math.inf)
        if self.second_look is not None:
            logits_PTA = self.second_look.logits(logits_PTA, seen_PTH, encoded, query_P)
        return logits_PTA

    def logits_after(
        self, encoded: Encoded, query_P: Tensor, column_PS: Tensor
    ) -> tuple[Tensor, Tensor]:
        """What is looked for [P,S,H] and scores [P,S,A] after each choice, if they depend on it.

        Pointers of a query are laid side by side, so that its candidates are never copied.
        """
        queries, choices = encoded.mask_BA.shape
        rows_PS = query_P[:, None] * choices + column_PS.clamp(min=0)
        chosen_PSH = encoded.candidates_BAH.flatten(0, 1).index_select(0, rows_PS.flatten())
        chosen_PSH = chosen_PSH.view(*rows_PS.shape, -1)
        place_P, group = places(query_P, queries)
        seen_PSH = self.state.states_after(encoded, query_P, chosen_PSH)
        state_BGSH = spread(seen_PSH, place_P, queries, group)
        score: Tensor = self.score(state_BGSH.flatten(1, 2), encoded.keys_BAH)
        score_BGSA = score.view(queries, group, -1, choices)
        if self.bonus is not None:
            chosen_BGSH = spread(chosen_PSH, place_P, queries, group)
            bonus = self.bonus(encoded.state_BH, chosen_BGSH, encoded.candidates_BAH)
            if self.stop is not None:  # stopping adds nothing and repeats nothing
                bonus = F.pad(bonus[..., :-1], (0, 1))
            score_BGSA = score_BGSA + bonus
        return seen_PSH, score_BGSA.flatten(0, 1).index_select(0, place_P)

    def logits(self, pointers: Pointers, dropout: Generator | None = None) -> Tensor:
        """Logits [N,A] at every choice, pointer by pointer, step by step."""
        encoded = self.encode(pointers.queries, dropout)
        logits_PTA = self.step_logits(
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
            logp_PA = self.step_logits(encoded, query_P, chosen_PT)[:, -1].log_softmax(-1)
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
            logp_PA = self.step_logits(encoded, query_P, chosen_PT)[:, -1].log_softmax(-1)
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


@torch.no_grad()
def exact_sequence_kl(
    policy: Selector, reference: Selector, queries: Queries, shots: int
) -> Tensor:
    """KL(policy‖reference) of whole pointers, one number per query, by enumeration.

    Σ over states of how likely the policy gets there × the KL of its choice there (chain rule), so
    two shots cost K states and not K(K−1). Once stopped there is only one way on, and no KL.
    """
    total = torch.zeros(len(queries), dtype=torch.float64, device=queries.mask_BK.device)
    projected = policy.project(queries), reference.project(queries)
    for first in range(0, len(queries), 16):  # some queries at a time: states take memory
        some, same = (part.take(range(first, min(first + 16, len(queries)))) for part in projected)
        ours, theirs = policy.encode(some), reference.encode(same)
        sizes = some.mask_BK.sum(1).tolist()
        for made in range(shots):
            states = [all_pointers(size, made) for size in sizes]
            counts = torch.tensor([len(listed) for listed in states], device=total.device)
            query_P = torch.arange(len(some), device=total.device).repeat_interleave(counts)
            chosen_PS = torch.tensor([state for listed in states for state in listed]).long()
            chosen_PS = chosen_PS.to(total.device).view(len(query_P), made)
            logp = policy.step_logits(ours, query_P, chosen_PS).log_softmax(-1)
            logp_ref = reference.step_logits(theirs, query_P, chosen_PS)[:, -1].log_softmax(-1)
            reach = logp[:, :-1].gather(2, chosen_PS[..., None]).flatten(1).sum(1).exp()
            kl_P = (reach * exact(logp[:, -1], logp_ref)).double()
            total[first : first + len(some)].index_add_(0, query_P, kl_P)
    return total
