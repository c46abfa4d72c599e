"""The numbers that records have under one name, with the coordinates in which they differ.

Coordinates that tell the same are one: a folder called `kl010` and a column that says 0.1. Means
and sums over shots, seeds or parts are numbers as well, and the highest and lowest of a course:
that is what tables print.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
import numpy.typing as npt

from kleash.stats import Floats
from kleash.written.filed.records import COUNTS, PATH, Record

# Codes of a coordinate that is taken together.
MEAN, SUM, MOST_OF, LEAST_OF, DEVIATION, OF_ALL, RANGE = range(-1, -8, -1)


def _deviation(values: Floats) -> float:
    return float(np.std(values, ddof=1))


TAKEN: dict[int, Callable[[Floats], float]] = {
    MEAN: np.mean,
    SUM: np.sum,
    MOST_OF: np.max,
    LEAST_OF: np.min,
    DEVIATION: _deviation,
    OF_ALL: np.std,
    RANGE: np.ptp,
}
FEWEST = 2
MOST = 20_000  # numbers under one name
TOGETHER = 16  # values of a coordinate that are taken together
COURSES = ("epoch", "step")
KEPT_APART = ("step", "size", PATH)
NUMBERED = "number"  # the number in names of columns that differ in nothing else
_SIZE = re.compile(r"total|count|(?:^|[_./])n(?:$|[_./])", re.I)  # of how many something is a share
Codes = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Column:
    """Numbers by their coordinates; what is taken of several comes last, each with its parts."""

    name: str
    axes: tuple[str, ...]
    texts: tuple[tuple[str, ...], ...]
    """By axis what its values are called; a code is a place in it."""
    codes: Codes
    values: Floats
    files: tuple[str, ...]
    parts: tuple[tuple[int, list[int]], ...] = ()
    """How each of the last numbers was taken, and of which of the first."""

    def rounded(self, scale: float, decimals: int) -> Floats:
        """The numbers as they are printed, and what is taken of them so."""
        first = len(self.values) - len(self.parts)
        made = np.round(scale * self.values, decimals)
        for nth, (code, some) in enumerate(self.parts, first):
            if len(some) <= TOGETHER:  # nobody takes the mean of hundreds of printed numbers
                made[nth] = TAKEN[code](np.round(made[some], decimals))
        return made

    def reached(self, entry: int, half: float) -> tuple[str, set[str]]:
        """What a course counts, and where it has its highest or lowest number, as printed."""
        nth = entry - (len(self.values) - len(self.parts))
        code, some = self.parts[nth] if nth >= 0 else (MEAN, [])
        if code not in (MOST_OF, LEAST_OF):
            return "", set()
        at = int(np.flatnonzero(self.codes[entry] == code)[0])
        same = [one for one in some if abs(self.values[one] - self.values[entry]) <= half]
        return self.axes[at], {self.texts[at][self.codes[one, at]] for one in same}


def window(first: float, last: float) -> str:
    """What a stretch of steps is called."""
    return f"{first:g}-{last:g}"


def _with_windows(column: Column, windows: Sequence[tuple[float, float]]) -> Column:
    """A column with the means over some stretches of its steps."""
    if "step" not in column.axes:
        return column
    at = column.axes.index("step")
    texts = column.texts[at]
    known = len(texts)
    steps = np.array([float(text) if text else np.nan for text in texts])
    column = replace(column, texts=(
        *column.texts[:at], (*texts, *(window(*one) for one in windows)), *column.texts[at + 1 :],
    ))  # fmt: skip
    groups: dict[tuple[int, ...], tuple[int, list[int]]] = {}
    for nth, (first, last) in enumerate(windows, known):
        inside = (first <= steps) & (steps <= last)
        codes = column.codes[:, at]
        for one in np.flatnonzero((codes >= 0) & inside[codes]).tolist():
            key = column.codes[one].copy()
            key[at] = nth
            groups.setdefault(tuple(key.tolist()), (MEAN, []))[1].append(one)
    return _with_groups(column, groups)


def with_taken(column: Column, windows: Sequence[tuple[float, float]] = ()) -> Column:
    """A column with means, sums and deviations, then with the highest and lowest of courses."""
    free = [
        at for at, axis in enumerate(column.axes)
        if axis not in KEPT_APART and FEWEST <= len(column.texts[at]) <= TOGETHER
    ]  # fmt: skip
    several = [(one,) for one in free] + list(combinations(free, 2))
    several += [(at,) for at, axis in enumerate(column.axes) if axis == "step"]
    ways = [(axes, code) for axes in several for code in (MEAN, SUM)]
    column = _together(column, ways + [((one,), RANGE) for one in free])
    column = _together(column, [((one,), code) for one in free for code in (DEVIATION, OF_ALL)])
    courses = [(at,) for at, axis in enumerate(column.axes) if axis in COURSES]
    column = _with_windows(column, windows) if windows else column
    return _together(column, [(axes, code) for axes in courses for code in (MOST_OF, LEAST_OF)])


def _together(column: Column, ways: Sequence[tuple[tuple[int, ...], int]]) -> Column:
    """A column with some coordinates taken together, each in its way."""
    groups: dict[tuple[int, ...], tuple[int, list[int]]] = {}
    for axes, code in ways:
        whole = np.flatnonzero((column.codes[:, list(axes)] >= 0).all(1))
        keys = column.codes[whole]
        keys[:, list(axes)] = code
        for nth, key in zip(whole.tolist(), map(tuple, keys.tolist()), strict=True):
            groups.setdefault(key, (code, []))[1].append(nth)
    return _with_groups(column, groups)


def _with_groups(column: Column, groups: Mapping[tuple[int, ...], tuple[int, list[int]]]) -> Column:
    """A column with what is taken of several of its numbers, each in its way."""
    kept = {key: part for key, part in groups.items() if len(part[1]) >= FEWEST}
    if not kept:
        return column
    parts = tuple(kept.values())
    values = [float(TAKEN[code](column.values[members])) for code, members in parts]
    return replace(
        column,
        codes=np.concatenate([column.codes, np.array(list(kept))]),
        values=np.concatenate([column.values, values]),
        files=(*column.files, *(column.files[members[0]] for _, members in parts)),
        parts=(*column.parts, *parts),
    )


def columns_of(
    records: Sequence[Record], windows: Sequence[tuple[float, float]] = ()
) -> list[Column]:
    """Every name under which records have numbers; with means over some stretches of steps."""
    named: dict[str, list[tuple[dict[str, str], float, str]]] = defaultdict(list)
    families = _families(records)
    for record in records:
        sizes = [(name, value) for name, value in record.numbers.items() if _SIZE.search(name)]
        for name, value in record.numbers.items():
            called, told = name, record.told
            if name in families:
                called, number = families[name]
                told = told | {NUMBERED: number}
            named[called].append((told, value, record.file))
            for size in _sizes(record, sizes):
                if 0 <= value <= size and value.is_integer():
                    named[f"{called} share"].append((told, value / size, record.file))
    made = (_column(name, entries) for name, entries in named.items() if len(entries) <= MOST)
    return [with_taken(one, windows) for one in made if one is not None]


def _sizes(record: Record, sizes: Sequence[tuple[str, float]]) -> set[float]:
    """Of how many a count may be."""
    own = record.told.get("size", "")
    found = {float(own)} if own else set[float]()
    return {one for one in (found | {value for _, value in sizes}) if one > 1}


def _families(records: Sequence[Record]) -> dict[str, tuple[str, str]]:
    """By the name of a column with one number: the name without it, and the number."""
    names = {name for record in records for name in record.numbers}
    found: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for name in names:
        numbers = re.findall(r"\d+", name)
        if len(numbers) == 1:
            found[re.sub(r"\d+", "#", name)].append((name, numbers[0]))
    return {
        name: (family, number)
        for family, members in found.items() if len(members) >= FEWEST
        for name, number in members
    }  # fmt: skip


def _column(name: str, entries: Sequence[tuple[dict[str, str], float, str]]) -> Column | None:
    axes = sorted({axis for told, _, _ in entries for axis in told}, key=_rank)
    table = {axis: [told.get(axis, "") for told, _, _ in entries] for axis in axes}
    table = {axis: texts for axis, texts in table.items() if len({*texts}) > 1}
    table = _merged({axis: texts for axis, texts in table.items() if not _follows(axis, table)})
    if not table:
        return None
    texts = [tuple(dict.fromkeys(column)) for column in table.values()]
    places = [{text: nth for nth, text in enumerate(known)} for known in texts]
    codes = np.array(
        [[at[one] for one in column] for at, column in zip(places, table.values(), strict=True)]
    ).T
    first = np.sort(np.unique(codes, axis=0, return_index=True)[1])
    return Column(
        name, tuple(table), tuple(texts), codes[first],
        np.array([value for _, value, _ in entries])[first],
        tuple(entries[nth][2] for nth in first.tolist()),
    )  # fmt: skip


def _rank(axis: str) -> tuple[int, str]:
    """What is counted first, then words, then names of files."""
    return (0 if axis in COUNTS or axis == NUMBERED else 2 if axis == PATH else 1, axis)


def _follows(axis: str, table: dict[str, list[str]]) -> bool:
    """Whether the epoch or the learning rate follows from the step, or the size from a part."""
    if axis == "size":
        parts = (one for one in table if _rank(one)[0] == 1)
        return any(_tells(table[one], table[axis]) for one in parts)
    if axis == "step" or "step" not in table or axis in ("seed", "shots", NUMBERED, PATH):
        return False
    numeric = all(re.fullmatch(r"[\d.e+-]*", text) for text in table[axis])
    return numeric and _tells(table["step"], table[axis])


def _merged(table: dict[str, list[str]]) -> dict[str, list[str]]:
    """Without words that others tell already: those are called by both."""
    kept = {axis: texts for axis, texts in table.items() if _rank(axis)[0] == 0}
    words = sorted((a for a in table if a not in kept), key=lambda a: -len({*table[a]}))
    for axis in words:
        same = next((one for one in kept if one not in COUNTS and one != NUMBERED
                     and _tells(kept[one], table[axis])), None)  # fmt: skip
        if same is None:
            kept[axis] = table[axis]
        else:
            kept[same] = [
                a if a == b else f"{a} ; {b}" for a, b in zip(kept[same], table[axis], strict=True)
            ]
    return kept


def _tells(one: Sequence[str], other: Sequence[str]) -> bool:
    return len({*zip(one, other, strict=True)}) == len({*one})
