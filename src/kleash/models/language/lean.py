"""The same forward pass as transformers' for models of Llama's shape, without what costs time.

It calls the model's own modules, so adapters count. Behind the last layer's attention only the
rows that are asked for go on. What is not of this shape goes through the model's own forward.

Shapes: B conversations, L places, H heads, D width of a head, W width of the model, N rows asked
for.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

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


def hidden_rows(model: Any, ids_BL: Tensor, rows_N: Tensor) -> Tensor:
    """The last hidden states [N,W] of those rows of `ids_BL`, counted from its first place on.

    Nothing is masked: padding must stand at the end, where no one before it sees it.
    """
    net = model.model
    found = net.embed_tokens(ids_BL)
    places = torch.arange(ids_BL.shape[1], device=ids_BL.device)[None]
    cos, sin = net.rotary_emb(found, places)
    sign = torch.ones_like(sin[0, 0])
    sign[: len(sign) // 2] = -1
    turns = cos[:, None], (sin * sign)[:, None]
    last = len(net.layers) - 1
    for index, layer in enumerate(net.layers):
        mixed = attended(layer.self_attn, normed(layer.input_layernorm, found), turns)
        if index == last:
            found, mixed = found.flatten(0, 1)[rows_N], mixed.flatten(0, 1)[rows_N]
        found = found + layer.self_attn.o_proj(mixed)
        found = found + layer.mlp(normed(layer.post_attention_layernorm, found))
    return normed(net.norm, found)


def attended(part: Any, heard_BLW: Tensor, turns: tuple[Tensor, Tensor]) -> Tensor:
    """What every place takes from itself and those before it, heads side by side."""
    shape = (*heard_BLW.shape[:2], -1, part.head_dim)
    query, key = part.q_proj(heard_BLW).view(shape), part.k_proj(heard_BLW).view(shape)
    if hasattr(part, "q_norm"):
        query, key = normed(part.q_norm, query), normed(part.k_norm, key)
    mixed_BHLD = F.scaled_dot_product_attention(
        rotated(query.transpose(1, 2), *turns),
        rotated(key.transpose(1, 2), *turns),
        part.v_proj(heard_BLW).view(shape).transpose(1, 2),
        is_causal=True,
        scale=part.scaling,
        enable_gqa=part.num_key_value_groups > 1,
    )
    return mixed_BHLD.transpose(1, 2).flatten(2)


def normed(norm: Any, found: Tensor) -> Tensor:
    """The model's norm; by torch's own function where nothing is rounded between its steps."""
    if found.dtype in (torch.float32, torch.float64):
        return F.rms_norm(found, norm.weight.shape, norm.weight, norm.variance_epsilon)
    made: Tensor = norm(found)
    return made


def rotated(heads: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Heads turned by their place; the sign of the half that is swapped is in the sines."""
    return torch.addcmul(heads * cos, heads.roll(heads.shape[-1] // 2, -1), sin)
