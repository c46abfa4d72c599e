"""Reading prompts side by side, each once, and going on from there in several ways at a time.

A prompt's keys and values stay in its row; whatever may follow it (beams, the true answer) is put
behind them and sees only what it follows, by a mask. So no beam copies a prompt, and none is moved
when beams change places.

Shapes: B prompts, L places of the longest, Q ids that go on, S places of memory, H heads of keys
and values, G heads of queries for each, D width of a head, W width of the model.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol

import torch
import torch.nn.functional as F
from torch import Tensor

from kleash.errors import DataError
from kleash.models.engine.forward import windows
from kleash.models.language.llama import (
    Rope,
    add_norm,
    forward,
    is_llama,
    project,
    rms_norm,
    signed,
)

ADD_NORM = partial(add_norm, norm=rms_norm)


@dataclass
class Memory:
    """What rows of prompts have left: keys and values by layer, and how long each prompt is."""

    length_B: Tensor
    places: int
    """Places taken in every row, those of padding among them."""
    layers: list[tuple[Tensor, Tensor]] = field(default_factory=list)
    cache: Any = None
    """The model's own, where it reads itself."""


class Reader(Protocol):
    """A decoder that reads rows of vectors."""

    def read(
        self, input_BLW: Tensor, place: Tensor, length_B: Tensor, room: int, begun: Memory | None
    ) -> tuple[Tensor, Memory]:
        """The states [B, W] after the last id of each row, and the memory with `room` to go on.

        `begun` is what all rows begin with: a memory of one row.
        """

    def go_on(self, input_BQW: Tensor, place: Tensor, seen_BQS: Tensor, memory: Memory) -> Tensor:
        """The states [B, Q, W] of further ids, each seeing what the mask says; all are kept."""


def reader_of(decoder: Any) -> Reader:
    """The fastest way through a decoder."""
    return LlamaReader(decoder) if is_llama(decoder) else ModuleReader(decoder)


@contextmanager
def plain_attention() -> Iterator[None]:
    """Attention without cuDNN's, which makes a plan for every new shape: 0.3 s on an H200."""
    from torch.nn.attention import SDPBackend, sdpa_kernel

    kernels = (SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH)
    with sdpa_kernel([*kernels]):
        yield


def seen_before(length_B: Tensor, places: int) -> Tensor:
    """The places of each row's prompt that are no padding: [B, places]."""
    return torch.arange(places, device=length_B.device) < length_B[:, None]


class LlamaReader:
    """Through the modules of a decoder of Llama's shape, without what costs time around them.

    Rows are padded at their ends, where no one before sees it, so reading needs no mask.
    """

    def __init__(self, decoder: Any) -> None:
        self.net = decoder

    def read(
        self, input_BLW: Tensor, place: Tensor, length_B: Tensor, room: int, begun: Memory | None
    ) -> tuple[Tensor, Memory]:
        """All layers for all places; in the last one only the last id of each row goes on."""
        rope = self.rope(input_BLW, place)
        begun_places = 0 if begun is None else begun.places
        memory = Memory(length_B + begun_places, begun_places + input_BLW.shape[1])
        rows_B, last_B = torch.arange(len(input_BLW), device=input_BLW.device), length_B - 1
        last = len(self.net.layers) - 1

        def attend(index: int, part: Any, normed: Tensor) -> Tensor:
            query, *new = project(part, normed, rope, rms_norm, heads_first=True)
            before = (None, None) if begun is None else begun.layers[index]
            key, value = (roomy(*each, room) for each in zip(new, before, strict=True))
            memory.layers.append((key, value))
            taken = [each[:, :, : memory.places] for each in (key, value)]
            if index < last:
                return looked_back(part, query, taken)
            seen_BQS = seen_before(memory.length_B, memory.places)[:, None]
            return by_mask(part, query[rows_B, :, last_B][:, :, None], taken, seen_BQS)

        going = lambda hidden_BLW: hidden_BLW[rows_B, last_B][:, None]  # noqa: E731
        states = forward(self.net, input_BLW, attend, rows=going, add_norm=ADD_NORM)
        return states[:, 0], memory

    def go_on(self, input_BQW: Tensor, place: Tensor, seen_BQS: Tensor, memory: Memory) -> Tensor:
        """All layers for the new ids."""
        rope = self.rope(input_BQW, place)
        new = slice(memory.places, memory.places + input_BQW.shape[1])
        memory.places = new.stop

        def attend(index: int, part: Any, normed: Tensor) -> Tensor:
            query, *fresh = project(part, normed, rope, rms_norm, heads_first=True)
            kept = memory.layers[index]
            for each, made in zip(kept, fresh, strict=True):
                each[:, :, new] = made
            return by_mask(part, query, [each[:, :, : new.stop] for each in kept], seen_BQS)

        return forward(self.net, input_BQW, attend, add_norm=ADD_NORM)

    def rope(self, like: Tensor, place: Tensor) -> Rope:
        """Cosines and signed sines [B, 1, L, D] of places [B, L], or [3, B, L] on an image."""
        if hasattr(self.net.rotary_emb, "mrope_section") and place.dim() == 2:
            place = place.expand(3, -1, -1)
        cos, sin = self.net.rotary_emb(like, place)
        if cos.dim() == 4:  # time, height and width apart, as older versions of the models do it
            parts = [*self.net.config.rope_parameters["mrope_section"]] * 2
            cos, sin = (
                torch.cat([part[i % 3] for i, part in enumerate(each.split(parts, -1))], -1)
                for each in (cos, sin)
            )
        return cos[:, None], signed(sin)[:, None]


def roomy(new: Tensor, begun: Tensor | None, room: int) -> Tensor:
    """Keys or values with those all rows begin with before them, and empty places behind."""
    before = 0 if begun is None else begun.shape[2]
    made = new.new_zeros(*new.shape[:2], before + new.shape[2] + room, new.shape[3])
    if begun is not None:
        made[:, :, :before] = begun
    made[:, :, before : before + new.shape[2]] = new
    return made


def looked_back(part: Any, query: Tensor, taken: list[Tensor]) -> Tensor:
    """What every place takes from itself and those before it, heads side by side."""
    key, value = taken
    mask: Any = None
    if key.shape[2] > query.shape[2]:
        from torch.nn.attention.bias import causal_lower_right

        mask = causal_lower_right(query.shape[2], key.shape[2])
    mixed = F.scaled_dot_product_attention(
        query,
        key,
        value,
        attn_mask=mask,
        is_causal=mask is None,
        scale=part.scaling,
        enable_gqa=query.shape[1] != key.shape[1],
    )
    return mixed.transpose(1, 2).flatten(2)


def by_mask(part: Any, query: Tensor, taken: list[Tensor], seen_BQS: Tensor) -> Tensor:
    """What a few ids take from the places they see; heads that share keys are rows of one head."""
    key, value = taken
    groups = query.shape[1] // key.shape[1]
    rows, count = query.shape[0], query.shape[2]
    query = query.reshape(rows, key.shape[1], groups * count, -1)
    mask = seen_BQS[:, None].repeat(1, 1, groups, 1)
    mixed = F.scaled_dot_product_attention(query, key, value, attn_mask=mask, scale=part.scaling)
    mixed = mixed.reshape(rows, key.shape[1] * groups, count, -1)
    return mixed.transpose(1, 2).flatten(2)


class ModuleReader:
    """Through the decoder's own `forward`, with its own cache and a mask for everything."""

    def __init__(self, decoder: Any) -> None:
        self.net = decoder
        self.windows = windows(decoder.config)

    def read(
        self, input_BLW: Tensor, place: Tensor, length_B: Tensor, room: int, begun: Memory | None
    ) -> tuple[Tensor, Memory]:
        """One forward pass for all places."""
        from transformers import DynamicCache

        cache = DynamicCache(config=self.net.config)
        before = 0 if begun is None else begun.places
        if begun is not None:
            for index, layer in enumerate(begun.cache.layers):
                kept = (layer.keys, layer.values)
                cache.update(*(each.expand(len(input_BLW), -1, -1, -1) for each in kept), index)
        memory = Memory(length_B + before, before + input_BLW.shape[1], cache=cache)
        count = input_BLW.shape[1]
        seen = torch.ones(count, memory.places, dtype=torch.bool, device=input_BLW.device)
        seen = seen.tril(before)[None].expand(len(input_BLW), -1, -1)
        states_BLW = self.forward(input_BLW, place, seen, memory)
        rows_B = torch.arange(len(states_BLW), device=states_BLW.device)
        return states_BLW[rows_B, length_B - 1], memory

    def go_on(self, input_BQW: Tensor, place: Tensor, seen_BQS: Tensor, memory: Memory) -> Tensor:
        """One forward pass for the new ids."""
        memory.places += input_BQW.shape[1]
        return self.forward(input_BQW, place, seen_BQS, memory)

    def forward(self, inputs: Tensor, place: Tensor, seen_BQS: Tensor, memory: Memory) -> Tensor:
        """The decoder's last states."""
        if self.windows and memory.places > min(self.windows):
            raise DataError(
                f"this model's attention has a sliding window of {min(self.windows)} tokens, and"
                f" a prompt is longer ({memory.places})"
            )
        mask = torch.zeros(seen_BQS.shape, dtype=inputs.dtype, device=inputs.device)
        mask.masked_fill_(~seen_BQS, torch.finfo(inputs.dtype).min)
        found = self.net(
            inputs_embeds=inputs,
            attention_mask=mask[:, None],
            position_ids=place,
            past_key_values=memory.cache,
            use_cache=True,
        )
        states: Tensor = found.last_hidden_state
        return states
