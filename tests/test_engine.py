"""Engines: sampled = recomputed log-probability, whoever else talks and however long users wait."""

import asyncio

import numpy as np
import pytest
import torch
from transformers import Qwen3Config, Qwen3ForCausalLM

from kleash.engine.own import OwnEngine
from kleash.seeds import torch_generator

WORDS, STOP = 41, 3


def tiny(kind=Qwen3ForCausalLM, config=Qwen3Config, seed=0, scale=0.3, **changes):
    """A model with weights large enough that its distributions are far from uniform."""
    settings = {
        "vocab_size": WORDS,
        "hidden_size": 32,
        "intermediate_size": 48,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "head_dim": 8,
        "max_position_embeddings": 512,
        "pad_token_id": 0,
        "bos_token_id": 0,
        "eos_token_id": STOP,
    }
    model = kind(config(**settings | changes))
    rng = torch_generator("tiny model", seed)
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if weight.dim() > 1:
                weight.normal_(0, scale, generator=rng)
            elif "norm" in name:
                weight.uniform_(0.5, 1.5, generator=rng)
    return model.eval()


def replies(seed, turns=3):
    """What a user will say, turn by turn: ids of several lengths."""
    rng = np.random.default_rng(seed)
    return [rng.integers(4, WORDS, size=rng.integers(1, 9)).tolist() for _ in range(turns)]


async def played(engine, key, heard, *, wait=0.0, **options):
    """A conversation: what was heard and said in each turn."""
    talk = engine.talk(key, **{"most": 12} | options)
    turns = []
    for ids in heard:
        turns.append((ids, await engine.say(talk, ids)))
        await asyncio.sleep(wait) if wait else None
    engine.forget(talk)
    return turns


def together(engine, conversations, **options):
    """Conversations at once, each a key and what its user says."""

    async def all_of_them():
        return await asyncio.gather(*(played(engine, k, h, **options) for k, h in conversations))

    return asyncio.run(all_of_them())


def recomputed(model, turns, temperature=1.0):
    """Log-probabilities of what was said, by one pass of the model over the whole conversation."""
    ids = [i for heard, said in turns for i in [*heard, *said.ids]]
    with torch.no_grad():
        logp = (model(torch.tensor([ids])).logits[0] / temperature).log_softmax(-1)
    found, at = [], 0
    for heard, said in turns:
        at += len(heard)
        found += [logp[at + step - 1, choice].item() for step, choice in enumerate(said.ids)]
        at += len(said.ids)
    return found


def said_logp(turns):
    return [each for _, said in turns for each in said.logp]


def conversations(count, turns=3):
    return [(("test", 0, "task", c), replies(c, turns)) for c in range(count)]


def test_sampled_log_probabilities_are_those_of_one_pass_over_the_conversation():
    model = tiny()
    for turns in together(OwnEngine(model, {STOP}), conversations(20)):
        assert said_logp(turns) == pytest.approx(recomputed(model, turns), abs=1e-5)
