"""Keys and values in pages: who holds which, in one buffer that never moves.

A page has room for `PAGE` tokens in every layer. A talk has a slot, and its slot a list of pages,
which is a row of a table that kernels read. What many talks begin with is held once: whole pages
are shared and counted, and the page that is not full is copied. The buffer begins as zeros, so that
what lies behind a talk's last token is rubbish, but never NaN.

Shapes: A layers, P pages, H heads of keys and values, D width of a head; S slots, M most pages of
one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

PAGE = 128


def unclaimed(device: torch.device) -> int:
    """Bytes that tensors may still take on a GPU: free, or kept by torch and used by none."""
    kept = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
    return torch.cuda.mem_get_info(device)[0] + kept


@dataclass(frozen=True)
class Size:
    """What the buffer must hold, and where it lies."""

    layers: int
    heads: int
    width: int
    places: int
    """Tokens of all talks together; those that are shared count once."""
    slots: int
    context: int
    """Tokens of the longest talk."""
    dtype: torch.dtype
    device: torch.device

    @property
    def bytes_of_token(self) -> int:
        """Keys and values of one token in all layers."""
        return 2 * self.layers * self.heads * self.width * self.dtype.itemsize


class Pages:
    """The buffer, its free pages, and the table of who holds which."""

    def __init__(self, size: Size) -> None:
        self.size = size
        count = max(1, size.places // PAGE)
        shape = (size.layers, count, size.heads, PAGE, size.width)
        self.keys_APHLD = torch.zeros(shape, dtype=size.dtype, device=size.device)
        self.values_APHLD = torch.zeros_like(self.keys_APHLD)
        self.held: list[list[int]] = [[] for _ in range(size.slots)]
        self._free = list(range(count - 1, -1, -1))
        self._holders = [0] * count
        pinned = size.device.type == "cuda"
        most = -(-size.context // PAGE)
        self._host_SM = torch.zeros(size.slots, most, dtype=torch.int32, pin_memory=pinned)
        self._rows: np.ndarray[tuple[int, ...], np.dtype[np.int32]] = self._host_SM.numpy()
        self.table_SM = self._host_SM.to(size.device, copy=True)
        self._changed = False

    @property
    def free(self) -> int:
        """Pages that nobody holds."""
        return len(self._free)

    @property
    def count(self) -> int:
        """All pages."""
        return len(self._holders)

    def tell(self) -> None:
        """Have `table_SM`, who holds which, say what is so now; it stays the same tensor."""
        if self._changed:
            self.table_SM.copy_(self._host_SM, non_blocking=True)
            self._changed = False

    def missing(self, slot: int, places: int) -> int:
        """How many more pages a slot needs for so many tokens."""
        return max(0, -(-places // PAGE) - len(self.held[slot]))

    def take(self, slot: int, places: int) -> bool:
        """Have a slot hold pages for so many tokens; False if there are too few, and none taken."""
        more = self.missing(slot, places)
        if more > len(self._free):
            return False
        for _ in range(more):
            self._hold(slot, self._free.pop())
        return True

    def share(self, origin: int, goal: int, places: int) -> list[tuple[int, int]]:
        """Let an empty slot begin with what another holds in its first places.

        The pages that are to be copied, once the other's tokens are read: from where to where.
        """
        whole, rest = divmod(places, PAGE)
        for page in self.held[origin][:whole]:
            self._hold(goal, page)
        if not rest:
            return []
        if not self.take(goal, places):
            self.leave(goal)
            raise MemoryError("no page is free")
        return [(self.held[origin][whole], self.held[goal][whole])]

    def copy(self, pairs: Sequence[tuple[int, int]]) -> None:
        """Copy pages, from where to where."""
        if not pairs:
            return
        origins, goals = (list(each) for each in zip(*pairs, strict=True))
        for buffer in (self.keys_APHLD, self.values_APHLD):
            buffer[:, goals] = buffer[:, origins]

    def leave(self, slot: int) -> None:
        """A slot holds nothing any more; pages that others share stay."""
        for page in reversed(self.held[slot]):
            self._holders[page] -= 1
            if not self._holders[page]:
                self._free.append(page)
        self.held[slot] = []

    def _hold(self, slot: int, page: int) -> None:
        self._holders[page] += 1
        self._rows[slot, len(self.held[slot])] = page
        self.held[slot].append(page)
        self._changed = True
