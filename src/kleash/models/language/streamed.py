"""A reference whose weights lie in the machine's memory, and come to the device layer by layer.

All packs of a batch go through a layer while the next one is copied behind them: on the device
there are two layers at a time, and the hidden states of the batch.
"""

from __future__ import annotations

import copy
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from kleash.models.language.head import Head
from kleash.models.language.llama import model_norm
from kleash.models.language.packed import Pack, Packing, block_of, pack_of, packable, plan, rope_of


def pinned(module: nn.Module) -> nn.Module:
    """The module in the machine's memory, where a GPU can fetch it without help."""
    if torch.cuda.is_available():
        for weight in module.parameters():
            there = torch.empty(weight.shape, dtype=weight.dtype, device="cpu", pin_memory=True)
            weight.data = there.copy_(weight.data)
    return module.cpu()


class LayerSlots:
    """Two layers on the device, filled in turns."""

    def __init__(self, layers: nn.ModuleList, device: torch.device) -> None:
        self.layers = layers
        self.slots = [copy.deepcopy(layers[0]).to(device) for _ in range(2)]
        self.apart = device.type == "cuda"
        if self.apart:
            self.main, self.side = torch.cuda.current_stream(device), torch.cuda.Stream(device)
            self.ready = [torch.cuda.Event() for _ in self.slots]
        for index in range(min(2, len(layers))):
            self.fill(index)

    def fill(self, index: int) -> None:
        """Begin to copy a layer into its slot, as soon as nobody computes with it any more."""
        slot, layer = self.slots[index % 2], self.layers[index]
        if not self.apart:
            copied(slot, layer)
            return
        self.side.wait_stream(self.main)
        with torch.cuda.stream(self.side):
            copied(slot, layer)
            self.ready[index % 2].record(self.side)

    def take(self, index: int) -> nn.Module:
        """A layer, once it is there."""
        if self.apart:
            self.main.wait_event(self.ready[index % 2])
        return self.slots[index % 2]

    def leave(self, index: int) -> None:
        """Done with a layer: the one after the next may come."""
        if index + 2 < len(self.layers):
            self.fill(index + 2)


def copied(slot: nn.Module, layer: nn.Module) -> None:
    """The layer's weights into the slot."""
    for ours, theirs in zip(slot.parameters(), layer.parameters(), strict=True):
        ours.copy_(theirs, non_blocking=True)


class Streamed:
    """What `LanguagePolicy.tie` asks of a reference, of a policy that is not on the device."""

    def __init__(self, policy: Any, device: torch.device) -> None:
        self.policy, self.device = policy, device

    @torch.no_grad()
    def hidden(self, batch: Any) -> Tensor:
        """The last hidden state before each choice of the batch."""
        how: Packing = self.policy.packing
        if batch.room:
            parts = [(batch, torch.arange(len(batch), device=self.device))]
        else:
            parts = [batch.take(*pack) for pack in plan(batch.lengths, how)]
        rooms = [part.room for part, _ in parts]
        packs = [
            pack_of(part.ids, part.lengths, room)
            for (part, _), room in zip(parts, rooms, strict=True)
        ]
        net = packable(self.policy.model).model
        found = self.through(net, packs, how)
        norm = copy.deepcopy(net.norm).to(self.device)
        rows = [
            model_norm(norm, each[part.rows]) for each, (part, _) in zip(found, parts, strict=True)
        ]
        return torch.cat(rows)[torch.cat([index for _, index in parts]).argsort()]

    def through(self, net: Any, packs: list[Pack], how: Packing) -> list[Tensor]:
        """Every pack through every layer."""
        table = net.embed_tokens.weight.to(self.device, non_blocking=True)
        rotary = copy.deepcopy(net.rotary_emb).to(self.device)
        found = [F.embedding(pack.ids_T, table) for pack in packs]
        ropes = [rope_of(rotary, each, pack) for each, pack in zip(found, packs, strict=True)]
        slots, run = LayerSlots(net.layers, self.device), block_of(how.compile, how.backend)
        for index in range(len(net.layers)):
            layer = slots.take(index)
            for at, pack in enumerate(packs):
                longest = max(how.tokens, pack.longest)
                found[at] = run(layer, found[at], *ropes[at], pack.borders, longest)
            slots.leave(index)
        return found

    def head(self, hidden_ND: Tensor) -> Head:
        """The hidden states with the product that makes logits of them."""
        far = self.policy.head(hidden_ND)
        bias = None if far.bias_V is None else far.bias_V.to(self.device)
        return Head(hidden_ND, far.weight_VD.to(self.device), bias)
