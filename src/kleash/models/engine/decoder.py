"""A decoder of models of Llama's shape over pages: several tokens of every talk without the host.

It reads the model's own weights. A step says one id in every talk of a batch: the layers, the head,
the draw, and what the next step needs are computed on the device, so that steps follow one another
without a word from the host, on CUDA as a graph for each size of batch. A batch is of tokens, not
of talks: short replies of users go through the same step as what is said, side by side; long ones
and openings are read by `read`, in which tokens of one talk go side by side. The file is long
because steps, their graphs and where the weights lie hang on one another.

Shapes as in `kernels`; F what a step is fed of each token, T steps.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from functools import partial
from importlib.util import find_spec
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor, nn

from kleash.models.engine import draws, operations
from kleash.models.engine.operations import Blocks, Tiling, TokenPositions
from kleash.models.engine.pages import Pages
from kleash.models.language import llama
from kleash.models.language.llama import of_this_shape, rope_table

# What a step is fed of each token, all in one tensor of 64 bits: one copy to the device.
IDS, SLOT, PLACE, STREAM, STEP, LEFT, KEYED, TEMPERATURE, TOP_P = range(9)
SIZES = (1, 2, 4, 8, 16, 32, 48, 64, 96, 128, 192, 256, 384, 512)
READ = 8192  # tokens that are read at once
ROWS = 64  # queries of a block that is read, over all heads that share keys
PROGRAMS = 1024  # of a step's attention: a round of a large GPU
MIXED = Tiling(64, 4, 3, 8)  # attention of a step that reads replies too
TILINGS = (Tiling(64, 4, 3), Tiling(64, 4, 4), Tiling(32, 4, 5), Tiling(128, 4, 2))
Piece = tuple[int, Sequence[int], int]  # a slot, ids, and where they begin


def fits(model: Any) -> bool:
    """Whether this decoder can speak for the model on its device by its own kernels."""
    inner = of_this_shape(model)
    return (
        inner is not None
        and next(model.parameters()).device.type == "cuda"
        and find_spec("triton") is not None
        and head_width(inner) in (16, 32, 64, 128, 256)
        and type(inner.model.embed_tokens) is nn.Embedding
    )


def head_width(model: Any) -> int:
    """How wide a head is."""
    return int(model.model.layers[0].self_attn.head_dim)


class _Layer:
    """A layer as `llama.block` goes through it: one product where weights lie side by side."""

    def __init__(self, module: Any, small: Any, *, gated: bool) -> None:
        self.input_layernorm = module.input_layernorm
        self.post_attention_layernorm = module.post_attention_layernorm
        self.attention, self.mlp_module = module.self_attn, module.mlp
        self.small, self.gated = small, gated
        part, mlp = self.attention, self.mlp_module
        self.qkv = together(part.q_proj, part.k_proj, part.v_proj)
        self.gate_up = together(mlp.gate_proj, mlp.up_proj)

    @property
    def self_attn(self) -> _Layer:
        """It is its own attention."""
        return self

    def project(self, normed_NW: Tensor, keys: int) -> tuple[Tensor, Tensor, Tensor]:
        """Queries, keys and values, each of the latter so wide."""
        part, whole = self.attention, self.qkv
        if whole is None:
            return part.q_proj(normed_NW), part.k_proj(normed_NW), part.v_proj(normed_NW)
        sizes = [len(whole) - 2 * keys, keys, keys]
        query, key, value = F.linear(normed_NW, whole).split(sizes, -1)
        return query, key, value

    def o_proj(self, mixed_NE: Tensor) -> Tensor:
        """What attention adds to the residual stream."""
        return self._product(self.attention.o_proj, mixed_NE)

    def mlp(self, normed_NW: Tensor) -> Tensor:
        """What the gated feed-forward part adds to it."""
        mlp = self.mlp_module
        if not self.gated:
            made: Tensor = mlp(normed_NW)
            return made
        if self.gate_up is None:
            gate, up = mlp.gate_proj(normed_NW), mlp.up_proj(normed_NW)
        else:
            gate, up = self.small.product(normed_NW, self.gate_up).chunk(2, -1)
        return self._product(mlp.down_proj, self.small.silu_and_mul(gate, up))

    def _product(self, part: Any, made_NE: Tensor) -> Tensor:
        weight = together(part)
        found: Tensor = part(made_NE) if weight is None else self.small.product(made_NE, weight)
        return found


class Decoder:
    """Steps of one model over one buffer of pages."""

    def __init__(
        self,
        model: Any,
        pages: Pages,
        stops: Collection[int],
        *,
        most_steps: int = 4,
        sizes: Sequence[int] = SIZES,
        small: Any = None,
    ) -> None:
        self.model, self.pages, self.sizes = model, pages, tuple(sizes)
        self.device = pages.size.device
        self.on_cuda = self.device.type == "cuda"
        self.small = small or operations_on(on_cuda=self.on_cuda)
        self.config = TILINGS[0]
        self.scale = model.model.layers[0].self_attn.scaling
        heads = model.config.num_attention_heads // model.config.num_key_value_heads
        self.longest = max(1, ROWS // (1 << (heads - 1).bit_length()))
        self.rope = rope_table(model, pages.size.context)
        most = self.sizes[-1]
        self._host_FN = torch.zeros(9, most, dtype=torch.int64, pin_memory=self.on_cuda)
        self._number = torch.arange(most, device=self.device)
        self._ones = torch.ones_like(self._number)
        self.fed_FN = self._number.new_zeros(9, most)
        self.said_TN = self._number.new_zeros(most_steps, most)
        self.logp_TN = torch.zeros(most_steps, most, device=self.device)
        self._stops = self._number.new_tensor(sorted(stops))
        self._host_4B = torch.zeros(4, most, dtype=torch.int64, pin_memory=self.on_cuda)
        self.blocks_4B = self._number.new_zeros(4, most)
        self._graphs: dict[tuple[int, bool, bool], tuple[Any, Tensor, Tensor]] = {}
        self._pool: Any = None
        self._truncated = False
        self._known: object = None
        self.reread()

    def reread(self) -> None:
        """Look where the weights lie: graphs of those that have moved are forgotten."""
        found = whereabouts(self.model)
        if found != self._known:
            self._forget_graphs()
            self._known = found
            net = self.model.model
            gated = net.config.hidden_act == "silu"
            layers = [_Layer(each, self.small, gated=gated) for each in net.layers]
            self._net = SimpleNamespace(layers=layers, norm=net.norm)

    def _forget_graphs(self) -> None:
        self._graphs.clear()
        self._pool = None  # it went with them

    # --- reading

    @torch.no_grad()
    def read(self, pieces: Iterable[Piece]) -> None:
        """Leave keys and values of these ids in their pages; nothing is said."""
        taken: list[Piece] = []
        room = READ
        for slot, ids, start in pieces:
            done = 0
            while done < len(ids):
                part = ids[done : done + room]
                taken.append((slot, part, start + done))
                done, room = done + len(part), room - len(part)
                if not room:
                    self._read(taken)
                    taken, room = [], READ
        if taken:
            self._read(taken)

    def _read(self, pieces: Sequence[Piece]) -> None:
        token: list[NDArray[np.int64]] = []
        block: list[NDArray[np.int64]] = []
        first = 0
        for slot, ids, start in pieces:
            place = np.arange(start, start + len(ids))
            token.append(np.stack([np.array(ids), np.full(len(ids), slot), place]))
            begins = np.arange(0, len(ids), self.longest)
            count = np.minimum(self.longest, len(ids) - begins)
            block.append(
                np.stack([np.full(len(begins), slot), start + begins, first + begins, count])
            )
            first += len(ids)
        ids_N, slot_N, place_N = torch.from_numpy(np.concatenate(token, 1)).to(self.device)
        self.pages.tell()
        table = self.pages.table_SM
        slot, place, begin, count_B = torch.from_numpy(np.concatenate(block, 1)).to(self.device)
        blocks = Blocks(slot, place, begin, count_B, table, longest=self.longest)
        config = Tiling(64, 4, 3)
        found = self.model.model.embed_tokens(ids_N)
        positions, (*layers, last) = TokenPositions(slot_N, place_N, table), self._net.layers
        attend = partial(self._attend, positions, blocks, config)
        found, delta = llama.through(layers, found, attend, add_norm=self.small.add_norm)
        _, normed = self.small.add_norm(found, delta, last.input_layernorm)
        self._keep(positions, len(layers), last.self_attn, normed)  # nothing is said: that is all

    # --- the model

    def _attend(
        self,
        positions: TokenPositions,
        blocks: Blocks,
        config: Tiling,
        index: int,
        part: _Layer,
        normed: Tensor,
    ) -> Tensor:
        """What the heads mix of all that their talks have kept, the new tokens among it."""
        query = self._keep(positions, index, part, normed)
        keys, values = self.pages.keys_APHLD[index], self.pages.values_APHLD[index]
        mixed: Tensor = self.small.paged_attention(query, keys, values, blocks, self.scale, config)
        return mixed

    def _keep(self, positions: TokenPositions, index: int, part: _Layer, normed: Tensor) -> Tensor:
        """Leave keys and values of new tokens in their pages; their queries."""
        keys, values = self.pages.keys_APHLD[index], self.pages.values_APHLD[index]
        heads = part.project(normed, self.pages.size.heads * self.pages.size.width)
        query: Tensor = self.small.rotate_into_pages(
            heads, part.attention, self.rope, positions, keys, values
        )
        return query

    # --- steps

    @torch.no_grad()
    def start(
        self,
        fed_FN: NDArray[np.int64],
        steps: int,
        speak: int | None = None,
        blocks_4B: NDArray[np.int64] | None = None,
    ) -> int:
        """Have the device make so many steps of these tokens. What they say is `said_TN`.

        Where only the first `speak` of them do, those behind are in the first step alone, and
        `blocks_4B` says which of all tokens follow one another.
        """
        count = fed_FN.shape[1]
        size = self.size_of(count)
        host = self._host_FN.numpy()
        host[:, :count] = fed_FN
        host[:, count:size] = EMPTY[:, None]
        self.pages.tell()
        self.fed_FN.copy_(self._host_FN, non_blocking=True)
        self._truncated = bool((fed_FN[TOP_P].view(np.float64) < 1).any())
        later = self.size_of(count if speak is None else speak)
        if blocks_4B is not None:
            self._tell_blocks(blocks_4B, count, size)
        self._steps([size, *[later] * (steps - 1)], mixed=blocks_4B is not None)
        return later

    def _tell_blocks(self, blocks_4B: NDArray[np.int64], count: int, size: int) -> None:
        """Every token is in one block, also where there is none: what nobody writes may be NaN."""
        host, known = self._host_4B.numpy(), blocks_4B.shape[1]
        host[:, :known] = blocks_4B
        host[:, known:size] = NO_BLOCK[:, None]
        empty = slice(known, known + size - count)
        host[2, empty], host[3, empty] = np.arange(count, size), 1
        self.blocks_4B.copy_(self._host_4B, non_blocking=True)

    @torch.no_grad()
    def go_on(self, steps: int, speak: int) -> int:
        """So many steps more of those who spoke last; nothing is fed to them."""
        self.pages.tell()
        size = self.size_of(speak)
        self._steps([size] * steps)
        return size

    def size_of(self, count: int) -> int:
        """The batch that so many tokens go in."""
        return next(size for size in self.sizes if size >= count)

    def _steps(self, sizes: Sequence[int], *, mixed: bool = False) -> None:
        for step, size in enumerate(sizes):
            first = mixed and not step
            choice_N, logp_N = self._one(size, truncated=self._truncated, mixed=first)
            self.said_TN[step, :size].copy_(choice_N)
            self.logp_TN[step, :size].copy_(logp_N)

    def _one(self, size: int, *, truncated: bool, mixed: bool = False) -> tuple[Tensor, Tensor]:
        if not self.on_cuda:
            return self.step(size, truncated=truncated, mixed=mixed)
        kind = size, truncated, mixed
        if kind not in self._graphs:
            self._graphs[kind] = self._captured(size, truncated=truncated, mixed=mixed)
        graph, choice_N, logp_N = self._graphs[kind]
        graph.replay()
        return choice_N, logp_N

    def _captured(self, size: int, *, truncated: bool, mixed: bool) -> tuple[Any, Tensor, Tensor]:
        """A step as a graph. What is fed is kept from the tries before it."""
        fed, blocks = self.fed_FN.clone(), self.blocks_4B.clone()
        self.fed_FN.copy_(torch.from_numpy(EMPTY)[:, None].expand_as(fed))
        self.blocks_4B.copy_(torch.from_numpy(NO_BLOCK)[:, None].expand_as(blocks))
        self.blocks_4B[2].copy_(self._number)
        self.blocks_4B[3].fill_(1)
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(2):  # kernels are compiled and libraries choose theirs
                self.step(size, truncated=truncated, mixed=mixed)
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, pool=self._pool, capture_error_mode="thread_local"):
            choice_N, logp_N = self.step(size, truncated=truncated, mixed=mixed)
        self._pool = self._pool or graph.pool()
        self.fed_FN.copy_(fed)
        self.blocks_4B.copy_(blocks)
        return graph, choice_N, logp_N

    def _seen(self, size: int, *, mixed: bool) -> tuple[Blocks, Tiling]:
        """Which tokens see what, and how that is cut up: one by one, or as blocks were told."""
        fed, table = self.fed_FN[:, :size], self.pages.table_SM
        if mixed:
            slot_B, place_B, first_B, count_B = self.blocks_4B[:, :size].unbind()
            return Blocks(slot_B, place_B, first_B, count_B, table, self.longest), MIXED
        one_by_one = Blocks(fed[SLOT], fed[PLACE], self._number[:size], self._ones[:size], table)
        programs = size * self.pages.size.heads
        return one_by_one, replace(self.config, splits=splits_of(programs))

    def step(self, size: int, *, truncated: bool, mixed: bool = False) -> tuple[Tensor, Tensor]:
        """One id for each token, its log-probability; what is fed becomes what is fed next."""
        fed = self.fed_FN[:, :size]
        positions = TokenPositions(fed[SLOT], fed[PLACE], self.pages.table_SM)
        blocks, config = self._seen(size, mixed=mixed)
        found = self.model.model.embed_tokens(fed[IDS])
        attend = partial(self._attend, positions, blocks, config)
        last = llama.forward(self._net, found, attend, add_norm=self.small.add_norm)
        logits_NV = self.model.lm_head(last)
        asked = fed[TEMPERATURE].view(torch.float64), fed[STREAM], fed[STEP], fed[KEYED]
        if truncated:
            top_p_N = fed[TOP_P].view(torch.float64)
            choice_N, logp_N = draws.sample(logits_NV, asked[0], top_p_N, *asked[1:])
        else:
            choice_N, logp_N = self.small.sample(logits_NV, *asked)
        fed[LEFT].sub_(1)
        ended = (choice_N[:, None] == self._stops).any(-1) | (fed[LEFT] <= 0) | (fed[PLACE] < 0)
        fed[IDS].copy_(choice_N)
        fed[STEP].add_(1)
        fed[PLACE].add_(1).masked_fill_(ended, -1)
        return choice_N, logp_N

    # --- tuning

    @torch.no_grad()
    def tune(self, tokens: int = 64, length: int = 4096) -> dict[Tiling, float]:
        """Take the way to cut attention up that is fastest here; seconds of each, all layers.

        Talks are long, so that launching, which graphs do without, is not what is timed.
        """
        size = self.pages.size
        most = min(-(-length // 128), self.pages.count)
        table = torch.randint(self.pages.count, (tokens, most), device=self.device)
        place_N = torch.full((tokens,), most * 128 - 1, device=self.device)
        number = torch.arange(tokens, device=self.device)
        ones = torch.ones_like(number)
        blocks = Blocks(number, place_N, number, ones, table.to(torch.int32))
        queries = self.model.config.num_attention_heads
        query = torch.randn(tokens, queries, size.width, dtype=size.dtype, device=self.device)
        found = {}
        for config in TILINGS:  # each fits a Hopper's shared memory, in float32 too
            split = replace(config, splits=splits_of(tokens * size.heads))

            def layers(split: Tiling = split) -> None:
                for index in range(size.layers):
                    keys, values = self.pages.keys_APHLD[index], self.pages.values_APHLD[index]
                    self.small.paged_attention(query, keys, values, blocks, self.scale, split)

            found[config] = fastest(layers)
        self.config = min(found, key=lambda config: found[config])
        self._forget_graphs()
        return found


def fastest(work: Any, rounds: int = 3) -> float:
    """Seconds of the fastest of some rounds on the current GPU, after one that is not counted."""
    work()
    spent = []
    for _ in range(rounds):
        begun, ended = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begun.record()
        work()
        ended.record()
        ended.synchronize()
        spent.append(float(begun.elapsed_time(ended)) / 1e3)
    return min(spent)


def as_bits(number: float) -> int:
    """A float64 as the integer with its bits."""
    return int(np.float64(number).view(np.int64))


EMPTY = np.array([0, 0, -1, 0, 0, 0, 0, as_bits(1.0), as_bits(1.0)])
"""What a step is fed where there is no token."""
NO_BLOCK = np.array([0, -1, 0, 0])
"""Slot, first place, first token and count of a block that is none."""


def operations_on(*, on_cuda: bool) -> Any:
    """The small operations for a device."""
    if not on_cuda:
        return operations
    from kleash.models.engine import kernels

    return kernels


def splits_of(programs: int) -> int:
    """Into how many parts attention is cut so that a GPU has enough to do.

    Each number is a kernel to compile, so that there are but three.
    """
    return next((splits for splits in (16, 4) if programs * splits <= PROGRAMS), 2)


# --- where weights lie: side by side where they read the same, and noticed when they move
#
# Graphs and joined products hold addresses. The weights stay the policy's own parameters.


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
