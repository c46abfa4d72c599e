"""The same forward pass as transformers' for models of Llama's shape, without what costs time.

It reads the model's own modules, so adapters and new weights count at once. Ids lie end to end and
nothing is padded but the attention of rows that owe several; in the last layer only the last id of
each row is followed up. What is not of this shape goes through the model's own forward.

Shapes: N rows, T ids of the tick (first the last of each row, then all before it), M rows that owe
several, Q the most that one of them owes before its last; S seats, L places, H heads of keys and
values, G heads of queries for each of them, D width of a head, W width of the model, V words.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from kleash.engine.seats import Feed, Seats

SHAPES = {"LlamaForCausalLM", "MistralForCausalLM", "Qwen2ForCausalLM", "Qwen3ForCausalLM"}
STEADY = {"default", "linear", "llama3", "yarn"}  # rotations that do not hang on the length


def of_this_shape(model: Any) -> Any | None:
    """The causal LM inside the model, under an adapter perhaps, if it is of this shape."""
    for part in model.modules():
        if type(part).__name__ in SHAPES:
            kinds = getattr(part.config, "layer_types", None) or ["full_attention"]
            full = set(kinds) == {"full_attention"} and not (
                "Mistral" in type(part).__name__ and part.config.sliding_window
            )
            return part if full and part.model.rotary_emb.rope_type in STEADY else None
    return None


@dataclass(frozen=True)
class Early:
    """The ids before the last one of their row, padded to the most that one row has."""

    rows: Tensor | slice
    """The seats of the rows that have some."""
    at: tuple[Tensor, Tensor]
    """The row and column of each id."""
    mask: Tensor


@dataclass(frozen=True)
class Tick:
    """Where the ids of a feed lie, as tensors that all layers share."""

    ids_T: Tensor
    place_T: Tensor
    written: Tensor
    """For each id and head, its place in a buffer of rows of width D."""
    rows: Tensor | slice
    mask: Tensor
    """Of the last ids."""
    reach: int
    early: Early | None


class LeanForward:
    """Logits after the last id of every row, for a model of this shape."""

    def __init__(self, model: Any) -> None:
        self.model = model
        self.config = model.config
        self.heads = self.config.num_key_value_heads
        self.groups = self.config.num_attention_heads // self.heads
        self._turns: tuple[Tensor, Tensor] | None = None

    def __call__(self, feed: Feed, seats: Seats) -> Tensor:
        """Logits [N, V] of what comes next in every row."""
        net = self.model.model
        first = net.layers[0].self_attn
        width = first.head_dim
        weight = net.embed_tokens.weight
        for index in range(len(net.layers)):
            seats.layer(index, weight.new_empty(self.heads, width))
        tick = self._laid_out(feed, seats, weight.device, weight.dtype)
        found = net.embed_tokens(tick.ids_T)
        turns = tuple(each[tick.place_T, None] for each in self._rotations(seats.places, weight))
        for index, layer in enumerate(net.layers):
            rows = len(feed.owed) if index == len(net.layers) - 1 else len(found)
            heard = normed(layer.input_layernorm, found)
            attended = self._attended(layer.self_attn, heard, rows, turns, tick, seats)
            found = found[:rows] + attended
            found = found + layer.mlp(normed(layer.post_attention_layernorm, found))
        logits: Tensor = self.model.lm_head(normed(net.norm, found))
        return logits

    def _attended(
        self, part: Any, heard_TW: Tensor, rows: int, turns: Any, tick: Tick, seats: Seats
    ) -> Tensor:
        """What the first `rows` ids attend to, after all ids have left their keys and values."""
        cos, sin = turns
        width = part.head_dim
        query = part.q_proj(heard_TW[:rows]).unflatten(-1, (-1, width))
        key = part.k_proj(heard_TW).unflatten(-1, (-1, width))
        value = part.v_proj(heard_TW)
        if hasattr(part, "q_norm"):
            query, key = normed(part.q_norm, query), normed(part.k_norm, key)
        query = rotated(query, cos[:rows], sin[:rows])
        key = rotated(key, cos, sin)
        keys, values = seats.keys[part.layer_idx], seats.values[part.layer_idx]
        keys.view(-1, width).index_copy_(0, tick.written, key.reshape(-1, width))
        values.view(-1, width).index_copy_(0, tick.written, value.reshape(-1, width))
        count = len(tick.mask)
        found = F.scaled_dot_product_attention(
            query[:count].unflatten(1, (self.heads, self.groups)),
            taken(keys, tick.rows, tick.reach),
            taken(values, tick.rows, tick.reach),
            attn_mask=tick.mask,
            scale=part.scaling,
        ).flatten(1)
        if rows > count and tick.early is not None:
            early = self._before_the_last(query[count:], keys, values, tick, part.scaling)
            found = torch.cat([found, early])
        attended: Tensor = part.o_proj(found)
        return attended

    def _before_the_last(
        self, query: Tensor, keys: Tensor, values: Tensor, tick: Tick, scale: float
    ) -> Tensor:
        """What the ids before the last one of their row attend to."""
        early = tick.early
        assert early is not None
        several, columns = early.mask.shape[0], early.mask.shape[2]
        padded = query.new_zeros(several, columns, *query.shape[1:])
        padded[early.at] = query
        found = F.scaled_dot_product_attention(
            padded.transpose(1, 2),
            taken(keys, early.rows, tick.reach),
            taken(values, early.rows, tick.reach),
            attn_mask=early.mask,
            scale=scale,
            enable_gqa=self.groups > 1,
        )
        return found.transpose(1, 2)[early.at].flatten(1)

    def _rotations(self, places: int, like: Tensor) -> tuple[Tensor, Tensor]:
        """Cosines and signed sines of every place, from the model's own rotary module."""
        made = self._turns
        if made is None or len(made[0]) < places or made[0].dtype != like.dtype:
            at = torch.arange(places, device=like.device)[None]
            cos, sin = self.model.model.rotary_emb(like, at)
            sign = torch.ones_like(sin[0, 0])
            sign[: len(sign) // 2] = -1
            made = self._turns = cos[0], sin[0] * sign
        return made

    def _laid_out(self, feed: Feed, seats: Seats, device: torch.device, dtype: torch.dtype) -> Tick:
        """The feed as tensors: last ids first, then those before them row by row."""
        ids = [owed[-1] for owed in feed.owed]
        place = [start + len(owed) - 1 for owed, start in zip(feed.owed, feed.starts, strict=True)]
        seat = list(feed.seats)
        several: list[int] = []
        row: list[int] = []
        column: list[int] = []
        for owed, start, where in zip(feed.owed, feed.starts, feed.seats, strict=True):
            more = len(owed) - 1
            if more:
                ids += owed[:-1]
                place += range(start, start + more)
                seat += [where] * more
                row += [len(several)] * more
                column += range(more)
                several.append(where)
        count = len(feed.owed)
        reach = min(-(-feed.reach // 8) * 8, seats.places)  # aligned, as kernels on GPUs like it
        ids_T, place_T, seat_T = torch.tensor([ids, place, seat], device=device)
        head = torch.arange(self.heads, device=device)
        written = (seat_T[:, None] * self.heads + head) * seats.places + place_T[:, None]
        whole = seat[:count] == list(range(count))
        early = None
        if several:
            padded = torch.tensor([row, column], device=device)
            place_MQ = place_T.new_zeros(len(several), max(column) + 1)
            place_MQ[padded[0], padded[1]] = place_T[count:]
            early = Early(
                slice(0, count)
                if several == seat[:count] and whole
                else torch.tensor(several, device=device),
                (padded[0], padded[1]),
                hidden(place_MQ, reach, dtype)[:, None],
            )
        return Tick(
            ids_T,
            place_T,
            written.flatten(),
            slice(0, count) if whole else seat_T[:count],
            hidden(place_T[:count], reach, dtype)[:, None, None],
            reach,
            early,
        )


def normed(norm: Any, found: Tensor) -> Tensor:
    """The model's norm; in float32 by torch's own function, which is twice as fast."""
    if found.dtype != torch.float32:
        made: Tensor = norm(found)
        return made
    return F.rms_norm(found, norm.weight.shape, norm.weight, norm.variance_epsilon)


def rotated(heads: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Heads turned by their place; the sign of the half that is swapped is in the sines."""
    return torch.addcmul(heads * cos, heads.roll(heads.shape[-1] // 2, -1), sin)


def taken(buffer_SHLD: Tensor, rows: Tensor | slice, reach: int) -> Tensor:
    """The places up to `reach` of some seats; a slice of them is not copied."""
    seen = buffer_SHLD[:, :, :reach]
    return seen[rows] if isinstance(rows, slice) else seen.index_select(0, rows)


def hidden(place: Tensor, reach: int, dtype: torch.dtype) -> Tensor:
    """What is added to scores so that an id at a place sees itself and what is before it."""
    unseen = torch.arange(reach, device=place.device) > place[..., None]
    return torch.zeros(unseen.shape, dtype=dtype, device=place.device).masked_fill_(
        unseen, torch.finfo(dtype).min
    )
