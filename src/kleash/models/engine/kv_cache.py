"""The keys and values of all conversations, kept from turn to turn: a slot for each.

Slots are taken from the front and closed up when one is left, so that the occupied ones lie side
by side; a slot has places, one for each token, and both grow by doubling. What lies behind a
conversation's last token is rubbish that nobody attends to, but never NaN: the buffers begin as
zeros.

Shapes: S slots, H heads of keys and values, L places, D width of a head; N rows, Q columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from torch import Tensor
from transformers.cache_utils import Cache, CacheLayerMixin

FIRST_SLOTS, FIRST_PLACES = 8, 64


@dataclass(frozen=True)
class Feed:
    """What one tick feeds: for each row its slot, the ids it is owed and where they begin."""

    slots: Sequence[int]
    owed: Sequence[Sequence[int]]
    starts: Sequence[int]

    @property
    def widest(self) -> int:
        """The most ids of a row."""
        return max(map(len, self.owed))

    @property
    def reach(self) -> int:
        """How many places the rows need when each is padded to the widest."""
        return max(self.starts) + self.widest


class KvCache:
    """Buffers of keys and values for every layer, made when the first ones are written."""

    def __init__(self) -> None:
        self.keys: list[Tensor] = []
        self.values: list[Tensor] = []
        self.slots, self.places = 0, 0

    def make_room(self, slots: int, places: int) -> None:
        """Have at least so many slots and places, by doubling."""
        if slots <= self.slots and places <= self.places:
            return
        self.slots = max(doubled(FIRST_SLOTS, slots), self.slots)
        self.places = max(doubled(FIRST_PLACES, places), self.places)
        self.keys = [self._grown(each) for each in self.keys]
        self.values = [self._grown(each) for each in self.values]

    def _grown(self, buffer_SHLD: Tensor) -> Tensor:
        slots, heads, places, width = buffer_SHLD.shape
        grown = buffer_SHLD.new_zeros(self.slots, heads, self.places, width)
        grown[:slots, :, :places] = buffer_SHLD
        return grown

    def layer(self, index: int, like_HD: Tensor) -> tuple[Tensor, Tensor]:
        """A layer's buffers; made when they are asked for first."""
        while len(self.keys) <= index:
            shape = (self.slots, like_HD.shape[-2], self.places, like_HD.shape[-1])
            self.keys.append(like_HD.new_zeros(shape))
            self.values.append(like_HD.new_zeros(shape))
        return self.keys[index], self.values[index]

    def copy(self, origins: Sequence[int], goals: Sequence[int], places: int) -> None:
        """Have some slots hold what others hold, up to so many places."""
        for buffer in (*self.keys, *self.values):
            seen = buffer[:, :, :places]
            seen[list(goals)] = seen[list(origins)]


def doubled(first: int, wanted: int) -> int:
    """The first number, doubled until it is enough."""
    while first < wanted:
        first *= 2
    return first


class CacheLayer(CacheLayerMixin):
    """One layer of the cache as transformers sees it, for one tick."""

    is_sliding = False

    def __init__(self, cache: KvCache, index: int, rows: Tensor, places_NQ: Tensor, reach: int):
        super().__init__()  # type: ignore[no-untyped-call]
        self._cache, self._index = cache, index
        self._rows, self._places_NQ, self._reach = rows, places_NQ, reach

    def update(
        self, key_states: Tensor, value_states: Tensor, *args: Any, **kwargs: Any
    ) -> tuple[Tensor, Tensor]:
        """Write the rows' new keys and values to their places; all that the rows now have."""
        keys, values = self._cache.layer(self._index, key_states[0, :, 0])
        at = (self._rows[:, None], slice(None), self._places_NQ)
        keys[at] = key_states.transpose(1, 2)
        values[at] = value_states.transpose(1, 2)
        return keys[self._rows, :, : self._reach], values[self._rows, :, : self._reach]

    def lazy_initialization(self, key_states: Tensor, value_states: Tensor) -> None:
        """Nothing: the buffers outlive the tick."""

    def get_mask_sizes(self, query_length: int) -> tuple[int, int]:
        """All places from the first on."""
        return self._reach, 0

    def get_seq_length(self) -> int:
        """Rows differ in length; this is the longest."""
        return self._reach

    def get_max_length(self) -> int:
        """There is none."""
        return -1


def as_cache(cache: KvCache, layers: int, rows: Tensor, places_NQ: Tensor, reach: int) -> Cache:
    """The buffers as transformers' models take them, for one tick."""
    return Cache(
        layers=[CacheLayer(cache, index, rows, places_NQ, reach) for index in range(layers)]
    )
