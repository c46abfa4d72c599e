"""Which prompts are read together: those that begin alike, then those of about one length."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from kleash.models.answer.decoding import Row

FEWEST = 4  # prompts that must begin alike


@dataclass(frozen=True)
class Alike:
    """Rows, by their numbers, and how many ids all of them begin with that are read only once."""

    rows: list[int]
    shared: int = 0


def alike(rows: Sequence[Row], begins: Sequence[tuple[object, ...]], worth: int) -> list[Alike]:
    """Rows grouped by what they begin with, where that saves `worth` ids or more.

    `begins` are the demonstrations of each row. The longest beginning that pays is taken.
    """
    counts = Counter(begin[:end] for begin in begins for end in range(1, len(begin) + 1))
    groups: dict[tuple[object, ...], list[int]] = {}
    for number, begin in enumerate(begins):
        paying = (
            begin[:end]
            for end in range(len(begin), 0, -1)
            if (many := counts[begin[:end]]) >= FEWEST
            and (many - 1) * len(rows[number].ids) * end >= worth * (len(begin) + 1)
        )
        groups.setdefault(next(paying, ()), []).append(number)
    found = [Alike(groups.pop((), []))]
    for some in groups.values():
        # Of each at least the last id is read by itself: something must say what comes next.
        common = in_common([rows[number].key[:-1] for number in some])
        pays = (len(some) - 1) * common >= worth
        found.append(Alike(some, common if pays else 0))
    return [group for group in found if group.rows]


def in_common(keys: Sequence[tuple[object, ...]]) -> int:
    """How many places from the first on are the same in all."""
    columns = zip(*keys, strict=False)
    return next(
        (at for at, each in enumerate(columns) if len({*each}) > 1), min(len(key) for key in keys)
    )


def of_one_length(lengths: Sequence[int], most: int) -> Iterator[list[int]]:
    """Numbers of rows in batches of at most `most` places, padding included, longest first."""
    batch: list[int] = []
    for number in sorted(range(len(lengths)), key=lambda each: -lengths[each]):
        if batch and (len(batch) + 1) * lengths[batch[0]] > most:
            yield batch
            batch = []
        batch.append(number)
    if batch:
        yield batch
