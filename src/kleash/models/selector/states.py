"""What is looked for, and how what was chosen changes it; or slots that share out the choices.

Shapes as in `kleash.models.selector`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import torch
import torch.nn.functional as F
from torch import Generator, Tensor, nn

from kleash.models.selector.encoders import Block, CrossAttention, unit
from kleash.tasks.demos.presets import Blocks

SLOTS = 8
"""Choices that have a slot of their own; later ones use the last."""


@dataclass(frozen=True, eq=False)
class Encoded:
    """A batch of queries as the scoring sees it; vectors have length one."""

    state_BH: Tensor
    candidates_BAH: Tensor
    keys_BAH: Tensor
    mask_BA: Tensor
    slots_BTH: Tensor | None = None
    """What each slot looks for, where there are slots."""
    near_BA: Tensor | None = None
    """The logits that what is learnt is added to, where retrieval is the beginning."""


class State(Block):
    """What is looked for. This one is static: what was chosen changes nothing but the mask."""

    remembers = False

    def __init__(self, blocks: Blocks) -> None:
        super().__init__()

    def prepared(self, encoded: Encoded) -> Encoded:
        """With what can be worked out before anything is chosen."""
        return encoded

    def first(self, encoded: Encoded) -> Tensor:
        """What is looked for [B,H] before anything is chosen."""
        return self.seen(encoded.state_BH, 0)

    def states_after(self, encoded: Encoded, query_P: Tensor, chosen_PSH: Tensor) -> Tensor:
        """What is looked for [P,S,H] after each choice."""
        state_PH = encoded.state_BH.index_select(0, query_P)
        seen = []
        for step, chosen_PH in enumerate(chosen_PSH.unbind(1), start=1):
            state_PH = self.after(state_PH, chosen_PH)
            seen.append(self.seen(state_PH, step))
        return torch.stack(seen, dim=1)

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


class Sequence(State):
    """The ancestor's: a sequence model reads the query, then every demonstration chosen."""

    remembers = True

    def read(self, tokens_XTH: Tensor) -> Tensor:
        """What is looked for after each token, by what came up to there."""
        raise NotImplementedError

    def first(self, encoded: Encoded) -> Tensor:
        return self.read(encoded.state_BH[:, None])[:, 0]

    def states_after(self, encoded: Encoded, query_P: Tensor, chosen_PSH: Tensor) -> Tensor:
        query_P1H = encoded.state_BH.index_select(0, query_P)[:, None]
        return self.read(torch.cat([query_P1H, chosen_PSH], dim=1))[:, 1:]


class Transformer(Sequence):
    """A small GPT-2 without its vocabulary: demonstrations are its words."""

    def __init__(self, blocks: Blocks) -> None:
        from transformers import GPT2Config, GPT2Model

        super().__init__(blocks)
        config = GPT2Config(
            vocab_size=1,
            n_positions=blocks.shots,
            n_embd=blocks.hidden,
            n_layer=blocks.layers,
            n_head=blocks.heads,
            resid_pdrop=0.0,
            embd_pdrop=0.0,
            attn_pdrop=0.0,
            bos_token_id=None,
            eos_token_id=None,
        )
        self.model = GPT2Model(config)
        del self.model.wte
        self.last = blocks.shots - 1

    def reset(self, rng: Generator) -> None:
        """As GPT-2 does: what is added to the residual stream begins smaller, by depth."""
        for part in self.model.modules():
            if isinstance(part, nn.LayerNorm):
                part.reset_parameters()
        depth = math.sqrt(2 * len(self.model.h))
        for name, weight in self.model.named_parameters():
            if name.endswith("bias"):
                nn.init.zeros_(weight)
            elif weight.ndim == 2:
                std = 0.02 / depth if name.endswith("c_proj.weight") else 0.02
                nn.init.normal_(weight, std=std, generator=rng)

    def read(self, tokens_XTH: Tensor) -> Tensor:
        steps = torch.arange(tokens_XTH.shape[1], device=tokens_XTH.device)
        position = steps.clamp(max=self.last)[None]
        # Without a mask, positions that repeat would be taken for sequences packed end to end.
        found = self.model(
            inputs_embeds=tokens_XTH,
            position_ids=position,
            attention_mask=torch.ones_like(tokens_XTH[..., 0]),
            use_cache=False,
        )
        return unit(found.last_hidden_state)


class LongShortTerm(Sequence):
    """An LSTM."""

    def __init__(self, blocks: Blocks) -> None:
        super().__init__(blocks)
        self.model = nn.LSTM(blocks.hidden, blocks.hidden, blocks.layers, batch_first=True)

    def reset(self, rng: Generator) -> None:
        bound = 1 / math.sqrt(self.model.hidden_size)
        for weight in self.model.parameters():
            nn.init.uniform_(weight, -bound, bound, generator=rng)

    def read(self, tokens_XTH: Tensor) -> Tensor:
        return unit(self.model(tokens_XTH)[0])


class SlotAttention(CrossAttention):
    """The same layer for several vectors at once, which do need keys and values."""

    def forward(self, query_BTH: Tensor, pool_BKH: Tensor, mask_BK: Tensor | None) -> Tensor:
        heads = self.attention.num_heads
        weights = self.attention.in_proj_weight.chunk(3)
        biases = self.attention.in_proj_bias.chunk(3)
        q, k, v = (
            F.linear(part, weight, bias).unflatten(-1, (heads, -1)).transpose(1, 2)
            for part, weight, bias in zip(
                (query_BTH, pool_BKH, pool_BKH), weights, biases, strict=True
            )
        )
        mask = None if mask_BK is None else mask_BK[:, None, None]
        mixed = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        added = self.attention.out_proj(mixed.transpose(1, 2).flatten(2))
        normed: Tensor = self.norm(query_BTH + added)
        return normed


class Slots(State):
    """One slot for each choice: they see each other, then the pool, and are scored in parallel.

    All slots are always there, so that fewer shots begin more of them.
    """

    remembers = True

    def __init__(self, blocks: Blocks) -> None:
        super().__init__(blocks)
        self.slots = nn.Parameter(torch.empty(SLOTS, blocks.hidden))
        self.layers = nn.ModuleList(SlotAttention(blocks) for _ in range(blocks.layers))
        self.pool = SlotAttention(blocks)

    def reset(self, rng: Generator) -> None:
        nn.init.normal_(self.slots, std=0.02, generator=rng)
        for layer in (*self.layers, self.pool):
            assert isinstance(layer, SlotAttention)
            layer.reset(rng)

    def prepared(self, encoded: Encoded) -> Encoded:
        slots_BTH = encoded.state_BH[:, None] + self.slots
        for layer in self.layers:
            slots_BTH = layer(slots_BTH, slots_BTH, None)
        slots_BTH = self.pool(slots_BTH, encoded.candidates_BAH, encoded.mask_BA)
        return replace(encoded, slots_BTH=unit(slots_BTH))

    def first(self, encoded: Encoded) -> Tensor:
        assert encoded.slots_BTH is not None
        return encoded.slots_BTH[:, 0]

    def states_after(self, encoded: Encoded, query_P: Tensor, chosen_PSH: Tensor) -> Tensor:
        assert encoded.slots_BTH is not None
        steps = torch.arange(1, chosen_PSH.shape[1] + 1, device=query_P.device)
        slots_BSH = encoded.slots_BTH.index_select(1, steps.clamp(max=SLOTS - 1))
        return slots_BSH.index_select(0, query_P)


STATES: dict[str, type[State]] = {
    "static": State,
    "blend": Blend,
    "gate": Gate,
    "gru": Recurrent,
    "gpt2": Transformer,
    "lstm": LongShortTerm,
}


def state_of(blocks: Blocks) -> State:
    """Slots, where the decoder has them; else what remembers what was chosen."""
    return Slots(blocks) if blocks.decoder == "slots" else STATES[blocks.state](blocks)
