"""The forward pass of models of Llama's shape, with the attention passed in.

Whoever goes through such a model goes through `block`: training on padded rows (`hidden_rows`) and
on packs (`packed`), prefill and decode with a KV cache (`engine`), and answerers (`answer`). They
differ in how tokens lie, in what attention reads and keeps, and in who computes the small
operations. A layer is whatever has its parts under transformers' names: the model's own modules, so
that adapters count, or a record of weights that were put together.

Shapes: B conversations, L places, H heads, D width of a head, W width of the model, N rows asked
for.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from kleash.models.language.shape import FAMILIES

CAUSAL = {f"{family}ForCausalLM" for family in FAMILIES}
DECODERS = {f"{family}Model" for family in FAMILIES} | {"Qwen2VLTextModel", "Qwen2_5_VLTextModel"}
STEADY = {"default", "linear", "llama3", "yarn"}  # rotations that do not hang on the length

Rope = tuple[Tensor, Tensor]
"""Cosines and signed sines of places, to be broadcast over heads."""
Norm = Callable[[Any, Tensor], Tensor]
AddNorm = Callable[[Tensor, Any, Any], tuple[Tensor, Tensor]]
"""From the residual stream, what a part of a layer adds to it and the next norm, to their sum and
what the norm makes of it."""
Attend = Callable[[int, Any, Tensor], Tensor]
"""From a layer's number, its attention and its normed hidden states to what its heads mixed, side
by side; in the last layer only for the rows that go on."""
Rows = Callable[[Tensor], Tensor]
"""From all rows to those that go on behind the last layer's attention."""


def of_this_shape(model: Any) -> Any | None:
    """The causal LM inside the model, under an adapter perhaps, if it is of this shape."""
    for part in model.modules():
        if type(part).__name__ in CAUSAL:
            return part if is_llama(part.model) else None
    return None


def is_llama(decoder: Any) -> bool:
    """Whether a decoder of transformers is one of these, and each layer sees all before it."""
    kind, config = type(decoder).__name__, decoder.config
    return (
        kind in DECODERS
        and set(getattr(config, "layer_types", None) or ()) <= {"full_attention"}
        and decoder.rotary_emb.rope_type in STEADY
        and not ("Mistral" in kind and config.sliding_window)
    )


# --- the small operations


def rms_norm(norm: Any, hidden: Tensor) -> Tensor:
    """Divided by the root mean square, in one operation, which rounds once."""
    return F.rms_norm(hidden, norm.weight.shape, norm.weight, norm.variance_epsilon)


def model_norm(norm: Any, hidden: Tensor) -> Tensor:
    """The same, rounded as the model's own module rounds between its steps."""
    if hidden.dtype in (torch.float32, torch.float64):
        return rms_norm(norm, hidden)
    made: Tensor = norm(hidden)
    return made


def add_norm(
    hidden: Tensor, delta: Tensor | None, gain: Any, norm: Norm = model_norm
) -> tuple[Tensor, Tensor]:
    """The sum of both, and what the norm makes of it."""
    hidden = hidden if delta is None else hidden + delta
    return hidden, norm(gain, hidden)


def rotate(heads: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Heads turned by their place; the sign of the half that is swapped is in the sines."""
    return torch.addcmul(heads * cos, heads.roll(heads.shape[-1] // 2, -1), sin)


def signed(sin: Tensor) -> Tensor:
    """Sines [B, L, D] with the sign of the half that `rotate` swaps."""
    sign = torch.ones_like(sin[0, 0])
    sign[: len(sign) // 2] = -1
    return sin * sign


def rope_at(rotary: Any, like: Tensor, places: Tensor) -> Rope:
    """Cosines and signed sines [B, L, D] of places [B, L], from the model's own module."""
    cos, sin = rotary(like, places)
    return cos, signed(sin)


@torch.no_grad()
def rope_table(model: Any, places: int) -> Rope:
    """The same [L, D] of the first so many places, to look them up in."""
    like = model.model.embed_tokens.weight
    at = torch.arange(places, device=like.device)[None]
    cos, sin = rope_at(model.model.rotary_emb, like, at)
    return cos[0].contiguous(), sin[0].contiguous()


# --- the pass


def project(
    attention: Any,
    normed: Tensor,
    rope: Rope,
    norm: Norm = model_norm,
    *,
    heads_first: bool = False,
) -> tuple[Tensor, Tensor, Tensor]:
    """Queries, keys and values [..., L, H, D], or [B, H, L, D]; the former two know their place."""
    shape = (*normed.shape[:-1], -1, attention.head_dim)
    query, key = attention.q_proj(normed).view(shape), attention.k_proj(normed).view(shape)
    query, key = norm_heads(attention, query, key, norm)
    if heads_first:
        query, key = query.transpose(1, 2), key.transpose(1, 2)
    query, key = rotate(query, *rope), rotate(key, *rope)
    value = attention.v_proj(normed).view(shape)
    return query, key, value.transpose(1, 2) if heads_first else value


def norm_heads(
    attention: Any, query: Tensor, key: Tensor, norm: Norm = model_norm
) -> tuple[Tensor, Tensor]:
    """Queries and keys, normed where the model does so."""
    if not hasattr(attention, "q_norm"):
        return query, key
    return norm(attention.q_norm, query), norm(attention.k_norm, key)


def block(
    layer: Any,
    hidden: Tensor,
    delta: Any,
    attend: Callable[[Any, Tensor], Tensor],
    *,
    rows: Rows | None = None,
    add_norm: AddNorm = add_norm,
) -> tuple[Tensor, Any]:
    """One layer: the residual stream behind its attention, and what its gated MLP adds to it."""
    hidden, normed = add_norm(hidden, delta, layer.input_layernorm)
    mixed = attend(layer.self_attn, normed)
    hidden = hidden if rows is None else rows(hidden)
    output = layer.self_attn.o_proj(mixed)
    hidden, normed = add_norm(hidden, output, layer.post_attention_layernorm)
    return hidden, layer.mlp(normed)


def through(
    layers: Sequence[Any],
    hidden: Tensor,
    attend: Attend,
    *,
    rows: Rows | None = None,
    add_norm: AddNorm = add_norm,
) -> tuple[Tensor, Any]:
    """The residual stream behind some layers, and what the last of them adds to it."""
    delta = None
    for index, layer in enumerate(layers):
        going = rows if index == len(layers) - 1 else None
        own = partial(attend, index)
        hidden, delta = block(layer, hidden, delta, own, rows=going, add_norm=add_norm)
    return hidden, delta


def forward(
    decoder: Any,
    hidden: Tensor,
    attend: Attend,
    *,
    rows: Rows | None = None,
    add_norm: AddNorm = add_norm,
) -> Tensor:
    """The last hidden states, normed, from what the embedding gave."""
    hidden, delta = through(decoder.layers, hidden, attend, rows=rows, add_norm=add_norm)
    return add_norm(hidden, delta, decoder.norm)[1]


def hidden_rows(model: Any, ids_BL: Tensor, rows_N: Tensor) -> Tensor:
    """The last hidden states [N,W] of those rows of `ids_BL`, counted from its first place on.

    Nothing is masked: padding must stand at the end, where no one before it sees it.
    """
    net = model.model
    hidden = net.embed_tokens(ids_BL)
    places = torch.arange(ids_BL.shape[1], device=ids_BL.device)[None]
    cos, sin = (each[:, None] for each in rope_at(net.rotary_emb, hidden, places))

    def asked_for(states_BLW: Tensor) -> Tensor:
        return states_BLW.flatten(0, 1)[rows_N]

    def attend(index: int, attention: Any, normed: Tensor) -> Tensor:
        mixed_BHLD = F.scaled_dot_product_attention(
            *project(attention, normed, (cos, sin), heads_first=True),
            is_causal=True,
            scale=attention.scaling,
            enable_gqa=attention.num_key_value_groups > 1,
        )
        mixed = mixed_BHLD.transpose(1, 2).flatten(2)
        return asked_for(mixed) if index == len(net.layers) - 1 else mixed

    return forward(net, hidden, attend, rows=asked_for)
