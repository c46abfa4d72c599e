"""One tick through a model of Llama's shape, without what costs time in transformers' forward.

It calls or reads the model's own modules, so adapters and new weights count at once. Ids lie end to
end and nothing is padded but the attention of rows that owe several; in the last layer only the
last id of each row is followed up. What is not of this shape goes through the model's own forward.

Shapes: N rows, T ids of the tick (first the last of each row, then all before it), M rows that owe
several, Q the most that one of them owes before its last; S seats, L places, H heads of keys and
values, D width of a head, W width of the model, V words.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from kleash.models.engine.seats import Feed, Seats
from kleash.models.language.lean import normed, rotated

SMALL = 2**18  # numbers in a weight; smaller ones are multiplied with side by side


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
    written_TH: Tensor
    """For each id and head, its row in a buffer of rows of width D."""
    rows: Tensor | slice
    mask: Tensor
    """Of the last ids."""
    reach: int
    early: Early | None
    even: Tensor | None
    """The mask of all ids where every row owes equally many."""


class LeanForward:
    """Logits after the last id of every row, for a model of this shape."""

    def __init__(self, model: Any) -> None:
        self.model = model
        self.heads = model.config.num_key_value_heads
        self.groups = model.config.num_attention_heads // self.heads
        self._turns: tuple[Tensor, Tensor] | None = None

    def reread(self) -> None:
        """Nothing: the model's own weights are read every time."""

    def __call__(self, feed: Feed, seats: Seats) -> Tensor:
        """Logits [N, V] of what comes next in every row."""
        net = self.model.model
        weight = net.embed_tokens.weight
        tick = laid_out(feed, seats, self.heads, weight)
        found = net.embed_tokens(tick.ids_T)
        cos, sin = self._rotations(seats.places, weight)
        turns = cos[tick.place_T, None], sin[tick.place_T, None]
        for index, layer in enumerate(net.layers):
            rows = len(tick.mask) if index == len(net.layers) - 1 else len(found)
            heard = normed(layer.input_layernorm, found)
            attended = self._attended(layer.self_attn, heard, rows, turns, tick, seats)
            found = found[:rows] + attended
            found = found + layer.mlp(normed(layer.post_attention_layernorm, found))
        logits: Tensor = self.model.lm_head(normed(net.norm, found))
        return logits

    def _attended(
        self,
        part: Any,
        heard_TW: Tensor,
        rows: int,
        turns: tuple[Tensor, Tensor],
        tick: Tick,
        seats: Seats,
    ) -> Tensor:
        """What the first `rows` ids attend to, after all ids have left their keys and values."""
        cos, sin = turns
        query, key, value = self._projected(part, heard_TW[:rows], cos[:rows], sin[:rows])
        keys, values = seats.layer(part.layer_idx, key[0])
        keep(key, keys, tick.written_TH[:rows])
        keep(value, values, tick.written_TH[:rows])
        if rows < len(heard_TW):
            rest = (heard_TW[rows:], cos[rows:], sin[rows:])
            _, key, value = self._projected(part, *rest, queries=False)
            keep(key, keys, tick.written_TH[rows:])
            keep(value, values, tick.written_TH[rows:])
        mixed = self._mixed(query, keys, values, tick, part.scaling)
        attended: Tensor = part.o_proj(mixed)
        return attended

    def _projected(
        self, part: Any, heard_TW: Tensor, cos: Tensor, sin: Tensor, *, queries: bool = True
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Queries, keys and values, the former two turned by their place; or only the latter."""
        width = part.head_dim
        parts = (part.q_proj, part.k_proj, part.v_proj)[0 if queries else 1 :]
        plain = all(type(each) is nn.Linear and each.bias is None for each in parts)
        if plain and part.q_proj.weight.numel() <= SMALL:
            made = F.linear(heard_TW, torch.cat([each.weight for each in parts]))
        else:
            made = torch.cat([each(heard_TW) for each in parts], -1)
        heads_THD = made.unflatten(-1, (-1, width))
        count = heads_THD.shape[1] - 2 * self.heads
        turned, value = heads_THD.split([count + self.heads, self.heads], 1)
        turned = turned if not hasattr(part, "q_norm") else normed_heads(part, turned, count)
        query, key = rotated(turned, cos, sin).split([count, self.heads], 1)
        return query, key, value

    def _mixed(
        self, query: Tensor, keys: Tensor, values: Tensor, tick: Tick, scale: float
    ) -> Tensor:
        """What queries take from what their rows have kept, heads side by side."""
        count = len(tick.mask)
        if len(query) > count and tick.even is not None:
            return self._evenly(query, keys, values, tick, scale)
        found = F.scaled_dot_product_attention(
            query[:count].unflatten(1, (self.heads, self.groups)),
            taken(keys, tick.rows, tick.reach),
            taken(values, tick.rows, tick.reach),
            attn_mask=tick.mask,
            scale=scale,
        ).flatten(1)
        if len(query) == count:
            return found
        early = self._before_the_last(query[count:], keys, values, tick, scale)
        return torch.cat([found, early])

    def _evenly(
        self, query: Tensor, keys: Tensor, values: Tensor, tick: Tick, scale: float
    ) -> Tensor:
        """The same where all rows owe equally many: nothing is padded, all go at once."""
        assert tick.even is not None
        count, columns = len(tick.mask), tick.even.shape[2]
        early = query[count:].unflatten(0, (count, columns - 1))
        found = F.scaled_dot_product_attention(
            torch.cat([early, query[:count, None]], 1).transpose(1, 2),
            taken(keys, tick.rows, tick.reach),
            taken(values, tick.rows, tick.reach),
            attn_mask=tick.even,
            scale=scale,
            enable_gqa=self.groups > 1,
        )
        found = found.transpose(1, 2).flatten(2)
        return torch.cat([found[:, -1], found[:, :-1].flatten(0, 1)])

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
            made = self._turns = rotations(self.model, places)
        return made


@torch.no_grad()
def rotations(model: Any, places: int) -> tuple[Tensor, Tensor]:
    """Cosines and signed sines of every place, from the model's own rotary module."""
    like = model.model.embed_tokens.weight
    cos, sin = model.model.rotary_emb(like, torch.arange(places, device=like.device)[None])
    sign = torch.ones_like(sin[0, 0])
    sign[: len(sign) // 2] = -1
    return cos[0].contiguous(), (sin[0] * sign).contiguous()


def normed_heads(part: Any, heads_THD: Tensor, queries: int) -> Tensor:
    """The first so many heads by the norm of queries, the others by that of keys."""
    norms = ((part.q_norm, queries), (part.k_norm, heads_THD.shape[1] - queries))
    if heads_THD.dtype != torch.float32:
        split = heads_THD.split([count for _, count in norms], 1)
        return torch.cat([normed(norm, s) for (norm, _), s in zip(norms, split, strict=True)], 1)
    gain_HD = torch.cat([norm.weight.expand(count, -1) for norm, count in norms])
    made = F.rms_norm(heads_THD, heads_THD.shape[-1:], None, part.q_norm.variance_epsilon)
    return made.mul_(gain_HD)


def keep(new_THD: Tensor, buffer_SHLD: Tensor, written_TH: Tensor) -> None:
    """Write keys or values to their places."""
    rows = buffer_SHLD.view(-1, buffer_SHLD.shape[-1])
    rows.index_copy_(0, written_TH.flatten(), new_THD.flatten(0, 1))


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


def laid_out(feed: Feed, seats: Seats, heads: int, like: Tensor) -> Tick:
    """The feed as tensors: last ids first, then those before them row by row."""
    device, count = like.device, len(feed.owed)
    seat, start = np.array(feed.seats), np.array(feed.starts)
    more = np.array([len(owed) - 1 for owed in feed.owed])
    ids = [owed[-1] for owed in feed.owed]
    ids += chain.from_iterable(owed[:-1] for owed in feed.owed)
    row_E = np.repeat(np.arange(count), more)
    column_E = np.arange(len(row_E)) - np.repeat(more.cumsum() - more, more)
    place = np.concatenate([start + more, start[row_E] + column_E])
    seat_T = np.concatenate([seat, seat[row_E]])
    head = np.arange(heads)
    written = (seat_T[:, None] * heads + head) * seats.places + place[:, None]
    place_T = torch.from_numpy(place).to(device)
    reach = min(-(-feed.reach // 8) * 8, seats.places)  # aligned, as kernels on GPUs like it
    mask = hidden(place_T[:count], reach, like.dtype)[:, None, None]
    whole = bool((seat == np.arange(count)).all())
    rows = slice(0, count) if whole else torch.from_numpy(seat).to(device)
    early = even = None
    if len(row_E):
        several = more > 0
        at = torch.from_numpy(np.stack([(several.cumsum() - 1)[row_E], column_E])).to(device)
        place_MQ = place_T.new_zeros(int(several.sum()), int(more.max()))
        place_MQ[at[0], at[1]] = place_T[count:]
        early = Early(
            rows if several.all() else torch.from_numpy(seat[several]).to(device),
            (at[0], at[1]),
            hidden(place_MQ, reach, like.dtype)[:, None],
        )
        even = torch.cat([early.mask, mask], 2) if more.min() == more.max() else None
    return Tick(
        torch.tensor(ids, device=device),
        place_T,
        torch.from_numpy(written).to(device),
        rows,
        mask,
        reach,
        early,
        even,
    )
