"""Language models to wrap: a tiny one drawn afresh.

transformers is imported when a model is made: it takes seconds.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Generator, nn


def fresh(
    size: int,
    rng: Generator,
    *,
    width: int = 64,
    layers: int = 2,
    heads: int = 4,
    inner: int = 192,
    context: int = 1024,
) -> Any:
    """A tiny Qwen3 for `size` ids, its weights drawn from `rng`; input and output embeddings tied.

    With the defaults and 140 ids it has 116 thousand parameters.
    """
    from transformers import Qwen3Config, Qwen3ForCausalLM

    config = Qwen3Config(
        vocab_size=size,
        hidden_size=width,
        intermediate_size=inner,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        num_key_value_heads=heads,
        head_dim=width // heads,
        max_position_embeddings=context,
        tie_word_embeddings=True,
        pad_token_id=None,
        bos_token_id=None,
        eos_token_id=None,
    )
    with torch.random.fork_rng(devices=[]):  # what transformers draws is drawn over
        model = Qwen3ForCausalLM(config)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if name.endswith("norm.weight"):
                nn.init.ones_(parameter)
            else:
                # Residual branches start small, so that depth does not change the scale (GPT-2).
                last = name.endswith(("o_proj.weight", "down_proj.weight"))
                deviation = 0.02 / (2 * layers) ** 0.5 if last else 0.02
                parameter.normal_(0, deviation, generator=rng)
    return model
