"""What was worked out lately, up to a number of bytes; what was not used for longest goes first."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from typing import Generic, TypeVar

Value = TypeVar("Value")


class LruCache(Generic[Value]):
    """Values by key, of at most `room` bytes together; counts who found one and who did not."""

    def __init__(self, room: int) -> None:
        self.room = room
        self.taken = 0
        self.hits = 0
        self.misses = 0
        self._values: OrderedDict[Hashable, tuple[Value, int]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._values)

    def find(self, key: Hashable) -> Value | None:
        """The value, which counts as just used."""
        found = self._values.get(key)
        if found is None:
            self.misses += 1
            return None
        self.hits += 1
        self._values.move_to_end(key)
        return found[0]

    def keep(self, key: Hashable, value: Value, size: int) -> None:
        """Keep a value of so many bytes; one larger than all the room is not kept."""
        if size > self.room or key in self._values:
            return
        self._values[key] = (value, size)
        self.taken += size
        while self.taken > self.room:
            _, (_, gone) = self._values.popitem(last=False)
            self.taken -= gone
