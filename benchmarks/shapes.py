"""Models of real size with drawn weights, and conversations as long as real ones."""

from __future__ import annotations

from typing import Any

import numpy as np

from kleash.seeds import generator
from kleash.types import Turn

SHAPES: dict[str, dict[str, Any]] = {
    "8b": {"width": 4096, "inner": 12_288, "layers": 36, "heads": 32, "tied": False},
    "4b": {"width": 2560, "inner": 9728, "layers": 36, "heads": 32, "tied": True},
    "1.7b": {"width": 2048, "inner": 6144, "layers": 28, "heads": 16, "tied": True},
    "tiny": {"width": 32, "inner": 64, "layers": 3, "heads": 4, "tied": False},
}
"""Qwen3's; all but the tiny one have 8 heads of keys, heads of 128, and 151,936 ids."""
TASKS, GROUP, TOKENS = 6, 8, 179_517
"""A step of documents 003 and 004: 48 episodes, half of their tokens said by the policy."""


def lengths_of_turns(tokens: int, tasks: int = TASKS, group: int = GROUP) -> list[list[list[int]]]:
    """For each episode its turns, as (heard, said); half of all tokens are said.

    A task's opening is the same for its group; turns are 3 to 16, as long as they happen to be.
    """
    rng = generator("bench", "gpu", "lengths")
    openings = rng.integers(300, 700, tasks)
    raw = []
    for number in range(tasks * group):
        turns = int(rng.integers(3, 17))
        heard = np.exp(rng.normal(4.7, 0.4, turns))
        heard[0] = openings[number // group]
        said = np.exp(rng.normal(5.2, 0.6, turns))
        raw.append((heard, said))
    for side, total in enumerate((tokens - tokens // 2, tokens // 2)):
        whole = shared_out(np.concatenate([each[side] for each in raw]), total)
        ends = np.cumsum([len(each[side]) for each in raw])[:-1]
        for each, part in zip(raw, np.split(whole, ends), strict=True):
            each[side][:] = part
    return [[[int(h), int(s)] for h, s in zip(*each, strict=True)] for each in raw]


def shared_out(weights: Any, total: int) -> Any:
    """Whole numbers of at least 1 in proportion to the weights, which sum to the total."""
    exact = 1 + weights / weights.sum() * (total - len(weights))
    whole = np.floor(exact)
    missing = int(total - whole.sum())
    whole[np.argsort(whole - exact, kind="stable")[:missing]] += 1
    return whole


def conversations(tokens: int, size: int) -> list[list[Turn]]:
    """Episodes of those lengths with ids drawn at random."""
    rng = generator("bench", "gpu", "ids")
    made = []
    for turns in lengths_of_turns(tokens):
        drawn = [[tuple(rng.integers(0, size, n).tolist()) for n in turn] for turn in turns]
        made.append([Turn(heard, said, ()) for heard, said in drawn])
    return made


def drawn_model(name: str, device: str, *, layers: int = 0) -> Any:
    """A Qwen3 of that shape with drawn weights, made where it will compute; perhaps less deep."""
    import torch
    from transformers import Qwen3Config, Qwen3ForCausalLM

    shape = SHAPES[name]
    large = name != "tiny"
    config = Qwen3Config(
        vocab_size=151_936 if large else 64,
        hidden_size=shape["width"],
        intermediate_size=shape["inner"],
        num_hidden_layers=layers or shape["layers"],
        num_attention_heads=shape["heads"],
        num_key_value_heads=8 if large else 2,
        head_dim=128 if large else 8,
        max_position_embeddings=40_960,
        rms_norm_eps=1e-6,
        tie_word_embeddings=shape["tied"],
        use_cache=False,
    )
    dtype = torch.bfloat16 if device != "cpu" else torch.float32
    devices: list[int] | None = [] if device == "cpu" else None
    with torch.random.fork_rng(devices=devices), torch.device(device):
        model: Any = Qwen3ForCausalLM._from_config(config, dtype=dtype)
    return model.to(device).eval()
