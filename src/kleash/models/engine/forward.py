"""The logits after the last id of every row of a tick, with keys and values in a `KvCache`.

Three ways to the same: transformers' own forward, which takes any causal LM; for models of Llama's
shape `language.llama`, whose ids lie end to end and are padded in the attention of rows that owe
several only; and for small ones on a CPU the same with folded weights, since there calling an
operation costs as much as doing it. In the last layer only the last id of each row is followed up.
The file is long because the three share how a tick is laid out.

Shapes: N rows, Q columns, T ids of the tick (first the last of each row, then all before it), M
rows that owe several; S slots, L places, H heads of keys and values, P heads of queries and keys
together, D width of a head, W width of the model, V words.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from kleash.errors import ConfigError
from kleash.models.engine.kv_cache import Feed, KvCache, as_cache
from kleash.models.language import llama
from kleash.models.language.llama import Rope, model_norm, of_this_shape, rope_table, rotate

SMALL_WEIGHT = 2**18  # numbers in a weight; smaller ones are multiplied with side by side
SMALL_MODEL = 2**22  # parameters of a model that is folded


def forward_of(model: nn.Module) -> ModuleForward | LlamaForward:
    """The fastest way through this model."""
    inner = of_this_shape(model)
    if inner is None:
        return ModuleForward(model)
    return FoldedForward(inner) if foldable(inner) else LlamaForward(inner)


class ModuleForward:
    """Through the model's own `forward`, with our cache, explicit positions and a 4-D mask.

    Rows are padded on the left to the widest, so that one column holds all that is wanted.
    """

    def __init__(self, model: Any) -> None:
        self.model = model
        self.config = self.model.config.get_text_config()
        self.windows = windows(self.config)

    def reread(self) -> None:
        """Nothing: the model's own weights are read every time."""

    def __call__(self, feed: Feed, cache: KvCache) -> Tensor:
        """Logits [N, V] of what comes next in every row."""
        device = self.model.device
        ids, positions, places = [], [], []
        for owed, start in zip(feed.owed, feed.starts, strict=True):
            pads, end = feed.widest - len(owed), start + len(owed)
            ids.append([0] * pads + list(owed))
            positions.append([0] * pads + list(range(start, end)))
            # Pads are written behind the row's last id, where the next ids will overwrite them.
            places.append([*range(end, end + pads), *range(start, end)])
        if self.windows and feed.reach > min(self.windows):
            raise ConfigError(
                f"this model's attention has a sliding window of {min(self.windows)} tokens, and a"
                f" conversation is longer ({feed.reach}): the own engine cannot play it"
            )
        places_NQ = torch.tensor(places, device=device)
        rows = torch.tensor(feed.slots, device=device)
        layers = self.config.num_hidden_layers
        found = self.model(
            input_ids=torch.tensor(ids, device=device),
            attention_mask=causal_mask(places_NQ, feed.reach, self.model.dtype)[:, None],
            position_ids=torch.tensor(positions, device=device),
            past_key_values=as_cache(cache, layers, rows, places_NQ, feed.reach),
            use_cache=True,
            logits_to_keep=1,
        )
        logits: Tensor = found.logits[:, -1]
        return logits


def windows(config: Any) -> list[int]:
    """The windows of the layers that do not attend to everything before."""
    kinds = getattr(config, "layer_types", None) or []
    if not any("sliding" in kind or "chunked" in kind for kind in kinds):
        return []
    names = ("sliding_window", "attention_chunk_size")
    return [size for name in names if (size := getattr(config, name, None))]


def causal_mask(place: Tensor, reach: int, dtype: torch.dtype) -> Tensor:
    """What is added to scores so that an id at a place sees itself and what is before it."""
    unseen = torch.arange(reach, device=place.device) > place[..., None]
    return torch.zeros(unseen.shape, dtype=dtype, device=place.device).masked_fill_(
        unseen, torch.finfo(dtype).min
    )


# --- a tick as tensors


@dataclass(frozen=True)
class Early:
    """The ids before the last one of their row, padded to the most that one row has."""

    rows: Tensor | slice
    """The slots of the rows that have some."""
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

    @classmethod
    def of(cls, feed: Feed, cache: KvCache, heads: int, like: Tensor) -> Tick:
        """The feed as tensors: last ids first, then those before them row by row."""
        device, count = like.device, len(feed.owed)
        slot, start = np.array(feed.slots), np.array(feed.starts)
        more = np.array([len(owed) - 1 for owed in feed.owed])
        ids = [owed[-1] for owed in feed.owed]
        ids += chain.from_iterable(owed[:-1] for owed in feed.owed)
        row_E = np.repeat(np.arange(count), more)
        column_E = np.arange(len(row_E)) - np.repeat(more.cumsum() - more, more)
        place = np.concatenate([start + more, start[row_E] + column_E])
        slot_T = np.concatenate([slot, slot[row_E]])
        written = (slot_T[:, None] * heads + np.arange(heads)) * cache.places + place[:, None]
        place_T = torch.from_numpy(place).to(device)
        reach = min(-(-feed.reach // 8) * 8, cache.places)  # aligned, as kernels on GPUs like it
        mask = causal_mask(place_T[:count], reach, like.dtype)[:, None, None]
        whole = bool((slot == np.arange(count)).all())
        rows = slice(0, count) if whole else torch.from_numpy(slot).to(device)
        early = even = None
        if len(row_E):
            several = more > 0
            at = torch.from_numpy(np.stack([(several.cumsum() - 1)[row_E], column_E])).to(device)
            place_MQ = place_T.new_zeros(int(several.sum()), int(more.max()))
            place_MQ[at[0], at[1]] = place_T[count:]
            early = Early(
                rows if several.all() else torch.from_numpy(slot[several]).to(device),
                (at[0], at[1]),
                causal_mask(place_MQ, reach, like.dtype)[:, None],
            )
            even = torch.cat([early.mask, mask], 2) if more.min() == more.max() else None
        return cls(
            torch.tensor(ids, device=device),
            place_T,
            torch.from_numpy(written).to(device),
            rows,
            mask,
            reach,
            early,
            even,
        )


# --- models of Llama's shape


class LlamaForward:
    """Logits after the last id of every row, by the model's own modules."""

    def __init__(self, model: Any) -> None:
        self.model = model
        self.heads = model.config.num_key_value_heads
        self.groups = model.config.num_attention_heads // self.heads
        self.width, self.scaling = (
            getattr(model.model.layers[0].self_attn, name) for name in ("head_dim", "scaling")
        )
        self._table: Rope | None = None

    def reread(self) -> None:
        """Nothing: the model's own weights are read every time."""

    def __call__(self, feed: Feed, cache: KvCache) -> Tensor:
        """Logits [N, V] of what comes next in every row."""
        embed, net = self.model.model.embed_tokens, self.net(cache.places)
        tick = Tick.of(feed, cache, self.heads, embed.weight)
        last, count = len(net.layers) - 1, len(tick.mask)
        rope = self.rope(tick, cache.places)

        def attend(index: int, part: Any, normed_TW: Tensor) -> Tensor:
            rows = count if index == last else len(normed_TW)
            query, key, value = self.project(part, normed_TW, rows, rope, tick)
            keys, values = cache.layer(index, key[0])
            write(key, keys, tick.written_TH)
            write(value, values, tick.written_TH)
            return self._mixed(query, keys, values, tick)

        states = llama.forward(
            net,
            embed(tick.ids_T),
            attend,
            rows=lambda hidden_TW: hidden_TW[:count],
            add_norm=self.add_norm,
        )
        return self.logits(states)

    # What folded weights do otherwise

    def net(self, places: int) -> Any:
        """Layers and last norm, for so many places."""
        return self.model.model

    def rope(self, tick: Tick, places: int) -> Rope:
        """Cosines and signed sines of the tick's places."""
        cos, sin = self.table(places)
        return cos[tick.place_T, None], sin[tick.place_T, None]

    def project(
        self, part: Any, normed_TW: Tensor, rows: int, rope: Rope, tick: Tick
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Queries of the first so many ids, keys and values of all."""
        cos, sin = rope
        query, key, value = self._projected(part, normed_TW[:rows], cos[:rows], sin[:rows])
        if rows < len(normed_TW):
            rest = (normed_TW[rows:], cos[rows:], sin[rows:])
            _, *more = self._projected(part, *rest, queries=False)
            key, value = torch.cat([key, more[0]]), torch.cat([value, more[1]])
        return query, key, value

    def add_norm(self, hidden: Tensor, delta: Any, norm: Any) -> tuple[Tensor, Tensor]:
        """The sum of both, and what the norm makes of it."""
        return llama.add_norm(hidden, delta, norm)

    def logits(self, states_NW: Tensor) -> Tensor:
        """What the head makes of the last hidden states."""
        found: Tensor = self.model.lm_head(states_NW)
        return found

    def _projected(
        self, part: Any, normed_TW: Tensor, cos: Tensor, sin: Tensor, *, queries: bool = True
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Queries, keys and values, the former two turned by their place; or only the latter."""
        parts = (part.q_proj, part.k_proj, part.v_proj)[0 if queries else 1 :]
        plain = all(type(each) is nn.Linear and each.bias is None for each in parts)
        if plain and part.q_proj.weight.numel() <= SMALL_WEIGHT:
            made = F.linear(normed_TW, torch.cat([each.weight for each in parts]))
        else:
            made = torch.cat([each(normed_TW) for each in parts], -1)
        heads_THD = made.unflatten(-1, (-1, self.width))
        count = heads_THD.shape[1] - 2 * self.heads
        turned, value = heads_THD.split([count + self.heads, self.heads], 1)
        turned = turned if not hasattr(part, "q_norm") else normed_heads(part, turned, count)
        query, key = rotate(turned, cos, sin).split([count, self.heads], 1)
        return query, key, value

    def _mixed(self, query: Tensor, keys: Tensor, values: Tensor, tick: Tick) -> Tensor:
        """What queries take from what their rows have kept, heads side by side."""
        count = len(tick.mask)
        if len(query) > count and tick.even is not None:
            return self._evenly(query, keys, values, tick)
        found = F.scaled_dot_product_attention(
            query[:count].unflatten(1, (self.heads, self.groups)),
            of_rows(keys, tick.rows, tick.reach),
            of_rows(values, tick.rows, tick.reach),
            attn_mask=tick.mask,
            scale=self.scaling,
        ).flatten(1)
        if len(query) == count:
            return found
        return torch.cat([found, self._before_the_last(query[count:], keys, values, tick)])

    def _evenly(self, query: Tensor, keys: Tensor, values: Tensor, tick: Tick) -> Tensor:
        """The same where all rows owe equally many: nothing is padded, all go at once."""
        assert tick.even is not None
        count, columns = len(tick.mask), tick.even.shape[2]
        early = query[count:].unflatten(0, (count, columns - 1))
        found = F.scaled_dot_product_attention(
            torch.cat([early, query[:count, None]], 1).transpose(1, 2),
            of_rows(keys, tick.rows, tick.reach),
            of_rows(values, tick.rows, tick.reach),
            attn_mask=tick.even,
            scale=self.scaling,
            enable_gqa=self.groups > 1,
        )
        found = found.transpose(1, 2).flatten(2)
        return torch.cat([found[:, -1], found[:, :-1].flatten(0, 1)])

    def _before_the_last(self, query: Tensor, keys: Tensor, values: Tensor, tick: Tick) -> Tensor:
        """What the ids before the last one of their row attend to."""
        early = tick.early
        assert early is not None
        several, columns = early.mask.shape[0], early.mask.shape[2]
        padded = query.new_zeros(several, columns, *query.shape[1:])
        padded[early.at] = query
        found = F.scaled_dot_product_attention(
            padded.transpose(1, 2),
            of_rows(keys, early.rows, tick.reach),
            of_rows(values, early.rows, tick.reach),
            attn_mask=early.mask,
            scale=self.scaling,
            enable_gqa=self.groups > 1,
        )
        return found.transpose(1, 2)[early.at].flatten(1)

    def table(self, places: int) -> Rope:
        """Cosines and signed sines of every place, from the model's own rotary module."""
        made, dtype = self._table, self.model.model.embed_tokens.weight.dtype
        if made is None or len(made[0]) < places or made[0].dtype != dtype:
            made = self._table = rope_table(self.model, places)
        return made


def normed_heads(part: Any, heads_THD: Tensor, queries: int) -> Tensor:
    """The first so many heads by the norm of queries, the others by that of keys."""
    norms = ((part.q_norm, queries), (part.k_norm, heads_THD.shape[1] - queries))
    if heads_THD.dtype != torch.float32:
        split = heads_THD.split([count for _, count in norms], 1)
        both = zip(norms, split, strict=True)
        return torch.cat([model_norm(norm, heads) for (norm, _), heads in both], 1)
    gain_HD = torch.cat([norm.weight.expand(count, -1) for norm, count in norms])
    made = F.rms_norm(heads_THD, heads_THD.shape[-1:], None, part.q_norm.variance_epsilon)
    return made.mul_(gain_HD)


def write(new_THD: Tensor, buffer_SHLD: Tensor, written_TH: Tensor) -> None:
    """Write keys or values to their places."""
    rows = buffer_SHLD.view(-1, buffer_SHLD.shape[-1])
    rows.index_copy_(0, written_TH.flatten(), new_THD.flatten(0, 1))


def of_rows(buffer_SHLD: Tensor, rows: Tensor | slice, reach: int) -> Tensor:
    """The places up to `reach` of some slots; a slice of them is not copied."""
    seen = buffer_SHLD[:, :, :reach]
    return seen[rows] if isinstance(rows, slice) else seen.index_select(0, rows)


# --- the same with folded weights


@dataclass(frozen=True)
class FoldedLayer:
    """A layer as `llama.block` goes through it, its weights ready to multiply with."""

    qkv: Tensor
    """Queries, keys and values of normed states."""
    cos: Tensor | None
    """Gains of the heads times cosines [L, P, D]; none where all heads share the table's."""
    sin: Tensor | None
    head_epsilon: float
    output: Tensor
    gate_up: Tensor
    down: Tensor
    input_layernorm: None = None
    post_attention_layernorm: None = None

    @property
    def self_attn(self) -> FoldedLayer:
        """It is its own attention."""
        return self

    def o_proj(self, mixed: Tensor) -> tuple[Tensor, Tensor]:
        """A product that is summed with the residual stream as it is made."""
        return mixed, self.output

    def mlp(self, normed: Tensor) -> tuple[Tensor, Tensor]:
        """The same of the feed-forward part."""
        gate, up = F.linear(normed, self.gate_up).chunk(2, -1)
        return F.silu(gate).mul_(up), self.down


@dataclass(frozen=True)
class FoldedNet:
    """All layers; the gain of the last norm is in the head."""

    layers: list[FoldedLayer]
    head: Tensor
    places: int
    norm: None = None


def foldable(model: Any) -> bool:
    """Whether the model of Llama's shape is small, in float32, on a CPU, and has plain weights."""
    parameters = list(model.parameters())
    return (
        sum(p.numel() for p in parameters) <= SMALL_MODEL
        and all(p.dtype == torch.float32 and p.device.type == "cpu" for p in parameters)
        and all(
            type(part) is nn.Linear and part.bias is None
            for layer in model.model.layers
            for block in (layer.self_attn, layer.mlp)
            for part in block.children()
            if hasattr(part, "in_features")
        )
        and model.config.hidden_act == "silu"
        and type(model.lm_head) is nn.Linear
        and model.lm_head.bias is None
        and type(model.model.embed_tokens) is nn.Embedding
    )


class FoldedForward(LlamaForward):
    """Gains of norms are folded into the weights behind them, gains of heads into the rotations,
    and weights that read the same are put side by side, so that a layer takes few operations.

    These are copies: `reread` has them made anew when the policy was updated.
    """

    def __init__(self, model: Any) -> None:
        super().__init__(model)
        self.epsilon = torch.full((1, 1), model.model.norm.variance_epsilon)
        size = model.config.hidden_size
        self.mean = torch.full((size, 1), 1 / size)
        self.folded: FoldedNet | None = None

    def reread(self) -> None:
        """The weights have changed."""
        self.folded = None

    @torch.no_grad()
    def net(self, places: int) -> FoldedNet:
        """The copies, for so many places."""
        if self.folded is None or self.folded.places < places:
            net, rope = self.model.model, self.table(places)
            head = self.model.lm_head.weight * net.norm.weight
            layers = [self._folded(layer, *rope) for layer in net.layers]
            self.folded = FoldedNet(layers, head, places)
        return self.folded

    def rope(self, tick: Tick, places: int) -> Rope:
        """Cosines and signed sines of the tick's places; with gains every layer has its own."""
        own = self.net(places).layers[0].cos is not None
        return self.table(places) if own else super().rope(tick, places)

    def project(
        self, part: FoldedLayer, normed_TW: Tensor, rows: int, rope: Rope, tick: Tick
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Queries of the first so many ids, keys and values of all."""
        heads_THD = F.linear(normed_TW, part.qkv).unflatten(-1, (-1, self.width))
        turned, value = heads_THD.split([heads_THD.shape[1] - self.heads, self.heads], 1)
        if part.cos is None or part.sin is None:
            turned = rotate(turned, *rope)
        else:
            half = turned.roll(self.width // 2, -1)
            size = torch.linalg.vector_norm(turned, dim=-1, keepdim=True)
            size = size.square_().div_(self.width).add_(part.head_epsilon).rsqrt_()
            cos, sin = (each.index_select(0, tick.place_T) for each in (part.cos, part.sin))
            turned = torch.addcmul(turned * cos, half, sin).mul_(size)
        query, key = turned.split([turned.shape[1] - self.heads, self.heads], 1)
        return query[:rows], key, value

    def add_norm(self, hidden: Tensor, delta: Any, norm: Any) -> tuple[Tensor, Tensor]:
        """The sum with a product, divided by the root mean square; gains are in the weights."""
        hidden = hidden if delta is None else torch.addmm(hidden, *delta)
        return hidden, hidden * torch.addmm(self.epsilon, hidden * hidden, self.mean).rsqrt_()

    def logits(self, states_NW: Tensor) -> Tensor:
        """What the head makes of the last hidden states."""
        assert self.folded is not None
        return F.linear(states_NW, self.folded.head)

    def _folded(self, layer: Any, cos_LD: Tensor, sin_LD: Tensor) -> FoldedLayer:
        part, mlp = layer.self_attn, layer.mlp
        qkv = torch.cat([each.weight for each in (part.q_proj, part.k_proj, part.v_proj)])
        gate_up = torch.cat([mlp.gate_proj.weight, mlp.up_proj.weight])
        cos = sin = None
        epsilon = 0.0
        if hasattr(part, "q_norm"):
            counts = (self.heads * self.groups, self.heads)
            norms = (part.q_norm.weight, part.k_norm.weight)
            pairs = zip(norms, counts, strict=True)
            gain_PD = torch.cat([gain.expand(count, -1) for gain, count in pairs])
            cos = cos_LD[:, None] * gain_PD
            sin = sin_LD[:, None] * gain_PD.roll(self.width // 2, -1)
            epsilon = part.q_norm.variance_epsilon
        return FoldedLayer(
            qkv * layer.input_layernorm.weight,
            cos,
            sin,
            epsilon,
            part.o_proj.weight.detach().t(),
            gate_up * layer.post_attention_layernorm.weight,
            mlp.down_proj.weight.detach().t(),
        )
