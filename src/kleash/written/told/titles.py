"""What the titles of rows, columns and tables name."""

from __future__ import annotations

from functools import cache

from kleash.written.printed import squeezed
from kleash.written.prose import places


@cache
def places_in(text: str) -> frozenset[tuple[str, float]]:
    """The steps and epochs that a title names."""
    return frozenset((one.axis, one.at) for one in places(squeezed(text)))
