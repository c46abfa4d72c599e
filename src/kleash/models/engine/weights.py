"""Where a policy's weights lie: side by side where they read the same, and noticed when they move.

Graphs and joined products hold addresses. The weights stay the policy's own parameters throughout.
"""

from __future__ import annotations

import itertools
from typing import Any

import torch
from torch import Tensor, nn


def together(*parts: Any) -> Tensor | None:
    """The weights of several products as one, if they lie side by side; nothing is copied."""
    if not all(type(part) is nn.Linear and part.bias is None for part in parts):
        return None
    weights = [part.weight.detach() for part in parts]
    first = weights[0]
    for one, other in itertools.pairwise(weights):
        if not (one.is_contiguous() and other.is_contiguous()):
            return None
        same = one.untyped_storage().data_ptr() == other.untyped_storage().data_ptr()
        if not same or one.storage_offset() + one.numel() != other.storage_offset():
            return None
    whole: Tensor = first.as_strided((sum(map(len, weights)), first.shape[1]), first.stride())
    return whole


@torch.no_grad()
def put_side_by_side(model: Any) -> None:
    """Move weights that read the same so that they lie side by side; parameters stay what they are.

    One layer's are there twice for a moment, and nothing of it stays.
    """
    for layer in model.model.layers:
        attention, mlp = layer.self_attn, layer.mlp
        for parts in (
            (attention.q_proj, attention.k_proj, attention.v_proj),
            (mlp.gate_proj, mlp.up_proj),
        ):
            if not all(
                type(part) is nn.Linear
                and part.bias is None
                and type(part.weight) is nn.Parameter
                and part.weight.dtype == parts[0].weight.dtype
                for part in parts
            ):
                continue
            made = torch.cat([part.weight.data for part in parts])
            rows = [part.out_features for part in parts]
            for part, weight in zip(parts, made.split(rows), strict=True):
                part.weight.data = weight


def whereabouts(model: nn.Module) -> object:
    """Where every weight lies, and which adapters are on: graphs hold as long as this does."""
    adapters = [
        [getattr(part, name) for name in ("disable_adapters", "active_adapters", "merged_adapters")]
        for part in model.modules()
        if hasattr(part, "merged_adapters")
    ]
    return [each.data_ptr() for each in model.parameters()], str(adapters)
