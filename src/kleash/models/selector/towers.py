"""The encoder's towers with adapters (LoRA, 2106.09685) that train together with a selector.

The towers themselves stand still and are no part of what is kept: a checkpoint holds the adapters
alone. Rows that an adapter is part of cannot be kept on disk, as they change with every update:
items are seen and read anew whenever a selector looks at them. Pools and whatever is similar are
those of the towers without adapters, which are the same for all arms.

Shapes as in `kleash.models.selector`.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Self

import torch
import torch.nn.functional as F
from torch import Generator, Tensor, nn
from torch.utils.checkpoint import checkpoint

from kleash.errors import DataError
from kleash.models.answer.caching import LruCache
from kleash.models.embed.towers import TwoTowers
from kleash.models.language.models import adapted
from kleash.models.selector.encoders import Block
from kleash.models.selector.pointers import Queries
from kleash.seeds import torch_generator
from kleash.tasks.data import Images
from kleash.types import Item

AT_ONCE = 32  # items whose layers are in memory together
ROOM = 1 << 30  # bytes of prepared pixels that are kept
OURS = ".lora_"  # in the name of every tensor of an adapter


class AdaptedTowers(Block):
    """CLIP's or SigLIP's two towers, of which only the adapters are parameters."""

    def __init__(self, towers: TwoTowers, images: Images, rank: int) -> None:
        super().__init__()
        self.by = _Held(towers, images, rank)
        for name, parameter in self.by.adapters.items():
            self.register_parameter(name, parameter)

    def reset(self, rng: Generator) -> None:
        """Adapters that add nothing yet."""
        for name, parameter in self.named_parameters():
            if "lora_A" in name:
                drawn = torch.empty(parameter.shape)
                nn.init.kaiming_uniform_(drawn, a=5**0.5, generator=rng)
                parameter.copy_(drawn)
            else:
                nn.init.zeros_(parameter)

    def forward(self, queries: Queries) -> Queries:
        """The queries and the rows that their pools use, seen and read now."""
        if len(queries.asked) != len(queries) or not queries.shown:
            raise DataError("these queries are vectors alone, and towers that train need items")
        used, row_BK = queries.row_BK.unique(return_inverse=True)
        shown = [queries.shown[row] for row in used.tolist()]
        return replace(
            queries,
            query_BD=self.rows(queries.asked),
            rows_RD=self.rows(shown),
            row_BK=row_BK,
        )

    def rows(self, items: Sequence[Item]) -> Tensor:
        """A row of length one for each item: the mean of what was seen and what was read.

        Layers are worked out again on the way back, so that only some items are in memory at once.
        """
        made = []
        for start in range(0, len(items), AT_ONCE):
            inputs = self.by.inputs(items[start : start + AT_ONCE])
            made.append(checkpoint(self.by.rows, *inputs, use_reentrant=False))
        return torch.cat(made)

    def _apply(self, fn: Any, recurse: bool = True) -> Self:  # noqa: FBT001
        """The towers go where the adapters go, which are among their tensors."""
        self.by.network._apply(fn, recurse)
        super()._apply(fn, recurse)  # type: ignore[no-untyped-call]
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """Adapters of its own; what never trains is shared."""
        memo |= {id(each): each for each in self.by.shared()}
        made = self.__class__.__new__(self.__class__)
        memo[id(self)] = made
        made.__dict__.update(copy.deepcopy(self.__dict__, memo))
        return made


class _Held:
    """The network with its adapters, out of sight of whoever counts, keeps or trains parameters."""

    def __init__(self, towers: TwoTowers, images: Images, rank: int) -> None:
        self.towers, self.images = towers, images
        network = towers.load()
        adapted(network, torch_generator("towers"), rank=rank, alpha=2 * rank, task=None)
        self.network = network.eval().requires_grad_(False)
        for parameter in self.adapters.values():
            parameter.requires_grad_()
        self.pixels: LruCache[Tensor] = LruCache(ROOM)

    @property
    def adapters(self) -> dict[str, nn.Parameter]:
        """The adapters' tensors; a dot would not do in the name of a parameter."""
        every = self.network.named_parameters()
        return {name.replace(".", "/"): each for name, each in every if OURS in name}

    def shared(self) -> list[Any]:
        """What copies have in common."""
        every = [*self.network.named_parameters(), *self.network.named_buffers()]
        fixed: list[Any] = [each for name, each in every if OURS not in name]
        return [*fixed, self.towers, self.images, self.pixels]

    def inputs(self, items: Sequence[Item]) -> tuple[Tensor, Tensor, Tensor]:
        """Pixels, tokens and the mask of some items."""
        device, towers = next(self.network.parameters()).device, self.towers
        pixels = torch.stack([self.prepared(item.image) for item in items])
        length = towers.padded_length("")
        tokens = towers.tokens([towers.text(item) for item in items], length)
        ids, mask = tokens["input_ids"], tokens.get("attention_mask")
        mask = torch.ones_like(ids) if mask is None else mask
        return pixels.to(device), ids.to(device), mask.to(device)

    def prepared(self, name: str) -> Tensor:
        """An image as pixels."""
        found = self.pixels.find(name)
        if found is None:
            found = self.towers.pixels([self.images(name)])[0]
            self.pixels.keep(name, found, found.nbytes)
        return found

    def rows(self, pixels: Tensor, ids: Tensor, mask: Tensor) -> Tensor:
        """The rows of some items."""
        seen = F.normalize(self.towers.of_images(self.network, pixels), dim=-1)
        tokens = {"input_ids": ids, "attention_mask": mask}
        read = F.normalize(self.towers.of_texts(self.network, tokens), dim=-1)
        return F.normalize(seen + read, dim=-1)
