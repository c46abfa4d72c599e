"""Episodes end to end in one row: no padding between them, and none sees another.

A pack is one forward pass of a model of Llama's shape. Each layer is one call of `block`, so that
it can be compiled once for all layers, and worked out again on the way back where memory is short.

Shapes: T places of a pack, H heads, D width of a head, W width of the model, N rows asked for.
"""

from __future__ import annotations

import functools
import itertools
import math
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from kleash.errors import ConfigError
from kleash.models.language import llama
from kleash.models.language.attention import attend
from kleash.models.language.llama import model_norm, of_this_shape, project, rope_at

BORDERS = 16
"""Borders come in multiples of it, so that packs with few and with more episodes are alike."""
PACK_COSTS = 256
"""Tokens that one pack more is worth, when sizes are weighed against each other."""
SMALLER = (1 / 2, 3 / 4, 7 / 8, 15 / 16)
"""Of the largest size, what the other one may be: few, since each is compiled."""
TRIES = 200
"""Ways to fill a pack that are looked at; more waste hardly less."""
RECOMPILES = 64
"""Shapes and modes that a compiled layer may have: with gradient and without, each adapter."""


@dataclass(frozen=True)
class Packing:
    """How packs are made and gone through."""

    tokens: int = 8192
    """The most places of a pack; an episode that is longer has one of its own size."""
    step: int = 512
    """Sizes of packs are multiples of it, so that few shapes are ever compiled."""
    compile: Literal["off", "fixed", "dynamic"] = "off"
    """`fixed` gives packs of a batch one size or two and compiles each; `dynamic` compiles once."""
    recompute: int = 0
    """How many layers are worked out again on the way back instead of being kept."""
    backend: str = "inductor"
    """Who compiles."""


Packs = list[tuple[list[int], int]]
"""For each pack, which episodes it holds and how many places it has."""


def plan(lengths: Sequence[int], how: Packing) -> Packs:
    """Episodes into packs of one size or of two, those that waste least.

    With `dynamic` every pack is as large as what it holds.
    """
    held = sorted((at for at, length in enumerate(lengths) if length), key=lambda at: -lengths[at])
    if not held:
        return []
    longest = up(lengths[held[0]], how.step)
    largest = max(longest, how.tokens // how.step * how.step)
    if how.compile == "dynamic":
        packs = filled(lengths, held, [largest])
        return [(each, up(sum(lengths[at] for at in each), how.step)) for each, _ in packs]
    alone = [(size,) for size in range(largest, longest - 1, -how.step)]
    smaller = sorted({int(part * largest) // how.step * how.step for part in SMALLER} - {0})
    tries = [filled(lengths, held, sizes) for sizes in alone + [(s, largest) for s in smaller]]
    return min(tries, key=lambda packs: sum(size + PACK_COSTS for _, size in packs))


def up(count: int, step: int) -> int:
    """The next multiple."""
    return -(-count // step) * step


def filled(lengths: Sequence[int], held: Sequence[int], sizes: Sequence[int]) -> Packs:
    """Pack after pack: the longest that is left, and what leaves least room beside it."""
    left, packs = list(held), []
    while left:
        ways = [(*beside(lengths, left, size), size) for size in sizes if size >= lengths[left[0]]]
        _, taken, size = min(ways, key=lambda way: way[0])
        packs.append((sorted(taken), size))
        left = [at for at in left if at not in taken]
    return packs


def beside(lengths: Sequence[int], left: Sequence[int], size: int) -> tuple[int, set[int]]:
    """Of episodes from the longest on, the first and those that fill a pack best with it.

    What is left of its places, and which they are. The longest are tried first, for a while.
    """
    room, taken, tries = size, set[int](), TRIES
    # Each way is what it holds, the room that is left, and where to look on.
    ways: list[tuple[tuple[int, ...], int, int]] = [((left[0],), size - lengths[left[0]], 1)]
    while ways and tries and room:
        some, rest, at = ways.pop()
        tries -= 1
        if rest < room:
            room, taken = rest, set(some)
        at = bisect_left(left, -rest, at, key=lambda at: -lengths[at])
        if at < len(left):
            ways.append((some, rest, at + 1))
            ways.append(((*some, left[at]), rest - lengths[left[at]], at + 1))
    return room, taken


@dataclass(frozen=True, eq=False)
class Pack:
    """What lies in one row."""

    ids_T: Tensor
    place_T: Tensor
    """Where each id stands in its own episode."""
    borders: Tensor
    """Where episodes begin, and the end; what fills the row up is an episode of its own."""
    longest: int
    """No episode is longer than that."""


def pack_of(ids: Tensor, lengths: Sequence[int], size: int) -> Pack:
    """One row of `size` places from ids that lie end to end."""
    held = [length for length in lengths if length]
    rest = size - sum(held)
    if rest:
        held.append(rest)
    ends = [0, *itertools.accumulate(held)]
    ends += [size] * (-len(ends) % BORDERS)  # episodes of no length
    starts = torch.tensor(ends[: len(held)]).repeat_interleave(torch.tensor(held))
    return Pack(
        F.pad(ids, (0, rest)),
        (torch.arange(size) - starts).to(ids.device),
        torch.tensor(ends, dtype=torch.int32).to(ids.device),
        size,
    )


# --- the pass over a pack


def hidden_rows(model: Any, pack: Pack, rows_N: Tensor, how: Packing) -> Tensor:
    """The last hidden states [N,W] of some rows of a pack."""
    net = packable(model).model
    hidden_TW = net.embed_tokens(pack.ids_T)
    rope = rope_of(net.rotary_emb, hidden_TW, pack)
    run = block_of(how.compile, how.backend)
    longest = max(how.tokens, pack.longest)  # one number for all packs, or each is compiled anew
    again = spread(len(net.layers), how.recompute if torch.is_grad_enabled() else 0)
    for index, layer in enumerate(net.layers):
        # One that is shared out over ranks has its own way, which gathers its weights.
        way = getattr(layer, "packed", None) or functools.partial(run, layer)
        given = (hidden_TW, *rope, pack.borders, longest)
        if index in again:
            hidden_TW = checkpoint(way, *given, use_reentrant=False, preserve_rng_state=False)
        else:
            hidden_TW = way(*given)
    return model_norm(net.norm, hidden_TW[rows_N])


def packable(model: Any) -> Any:
    """The causal LM inside, which must be of Llama's shape."""
    found = of_this_shape(model)
    if found is None:
        raise ConfigError(
            f"{type(model).__name__} cannot be packed: that needs a model of Llama's shape"
            " (Llama, Mistral without a window, Qwen2, Qwen3); set scale.packed=off"
        )
    return found


def rope_of(rotary: Any, hidden_TW: Tensor, pack: Pack) -> tuple[Tensor, Tensor]:
    """Cosines and signed sines [T,1,D] by which heads are turned at each place."""
    cos, sin = rope_at(rotary, hidden_TW[None], pack.place_T[None])
    return cos[0][:, None], sin[0][:, None]


def block(
    layer: Any, hidden_TW: Tensor, cos: Tensor, sin: Tensor, borders: Tensor, longest: int
) -> Tensor:
    """One layer: attention within episodes, then the feed-forward part."""

    def attend_within(attention: Any, normed_TW: Tensor) -> Tensor:
        heads = project(attention, normed_TW, (cos, sin))
        return attend(*heads, borders, longest, float(attention.scaling)).flatten(1)

    hidden_TW, delta_TW = llama.block(layer, hidden_TW, None, attend_within)
    made: Tensor = hidden_TW + delta_TW
    return made


@functools.cache
def block_of(compiled: str, backend: str) -> Callable[..., Tensor]:
    """`block`, compiled perhaps: once, since layers differ in nothing that a compiler sees."""
    if compiled == "off":
        return block
    torch._dynamo.config.recompile_limit = max(torch._dynamo.config.recompile_limit, RECOMPILES)
    # `dynamic` marks sizes that differ from pack to pack; widths stay numbers.
    dynamic = compiled == "dynamic"
    made: Callable[..., Tensor] = torch.compile(block, dynamic=dynamic, backend=backend)
    return made


def spread(layers: int, chosen: int) -> set[int]:
    """So many of the layers, evenly."""
    chosen = min(chosen, layers)
    return {(2 * nth + 1) * layers // (2 * chosen) for nth in range(chosen)}


SPARE = 6 << 30
"""Bytes that are left for the head, for gradients on their way and for what lies scattered."""


def layers_again(model: Any, tokens: int, free: float) -> int:
    """How many layers must be worked out again for a pack of so many tokens to fit into `free`.

    What a layer keeps is counted high: all that stands between two products.
    """
    config = packable(model).config
    width, inner = config.hidden_size, config.intermediate_size
    heads = config.head_dim * config.num_attention_heads
    keys = config.head_dim * config.num_key_value_heads
    size = next(model.parameters()).element_size()
    kept = (4 * width + 3 * heads + 3 * keys + 3 * inner) * size * tokens
    if hasattr(model, "peft_config"):  # an adapter keeps the inputs of products in float32
        kept += (4 - size) * (2 * width + heads + inner) * tokens
    layers: int = config.num_hidden_layers
    over = layers * kept - max(0.0, free - SPARE)
    again = math.ceil(over / (kept - width * size * tokens))
    return int(min(layers, max(0, again)))
