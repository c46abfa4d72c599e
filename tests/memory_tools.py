"""How many bytes of tensors live at once, while something is computed on a CPU."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves


class Living(TorchDispatchMode):
    """Counts the storages that operations make, as long as anyone holds them."""

    def __init__(self) -> None:
        super().__init__()
        self.now = self.peak = 0
        self.seen: set[int] = set()

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        given = {
            each.untyped_storage()._cdata
            for each in tree_leaves((args, kwargs))
            if isinstance(each, Tensor)
        }
        made = func(*args, **(kwargs or {}))
        for each in tree_leaves(made):
            # A view of what was there before is nothing new.
            if isinstance(each, Tensor) and each.untyped_storage()._cdata not in given:
                self.hold(each)
        return made

    def hold(self, tensor: Tensor) -> None:
        storage = tensor.untyped_storage()
        key, size = storage._cdata, storage.nbytes()
        if key in self.seen:
            return
        self.seen.add(key)
        self.now += size
        self.peak = max(self.peak, self.now)
        weakref.finalize(storage, self.let_go, key, size)

    def let_go(self, key: int, size: int) -> None:
        self.seen.discard(key)
        self.now -= size


def peak_bytes(work: Callable[[], object]) -> int:
    """The most bytes that were alive at once, of what the work itself made."""
    with Living() as living:
        work()
    return living.peak


def saved_bytes(work: Callable[[], object], but: set[int]) -> int:
    """Bytes that autograd keeps for the way back, every storage once; not those of weights."""
    kept: dict[int, int] = {}

    def keep(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in but:
            kept[storage.data_ptr()] = storage.nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        held = work()
    assert held is not None
    return sum(kept.values())
