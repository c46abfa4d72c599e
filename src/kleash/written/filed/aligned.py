"""Which records the lines of tables are: labels tell in what a line differs, its numbers the rest.

Along a row with shots in its titles only the shots differ; whose it is and of which epoch is that
under which most of its numbers are filed. How much a line tells is weighed against how many there
are to choose from, as with curves (`sought`).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, combinations
from math import log

import numpy as np
import numpy.typing as npt

from kleash.stats import Floats
from kleash.written.filed.columns import TAKEN, Codes, Column
from kleash.written.filed.labels import Labels, Told
from kleash.written.printed import Figure
from kleash.written.sought.lines import Line
from kleash.written.sought.naming import metrics_in

FEWEST = 2
SLIP = log(30)  # what a number costs that is not filed where its line is
SURE = 8.0  # how much must speak for a reading with slips
PLAIN = 4.0  # the same without
SHARE = 0.4  # of the numbers of a line that may be slips
LIKELIEST = 1e-4
FLOOR = 3.0  # numbers of one digit tell little
SCALES = (1.0, 100.0)
HOURS = re.compile(r"小时|时长|用时|(?<![a-z])(?:hours?|hrs?|h)(?![a-z])", re.I)
HOUR = 1 / 3600  # of seconds
KEYS = 12  # of the likeliest readings of one way that are weighed
KNOWN = 4.0  # tries of what other lines of a table are known to be
Grouped = tuple[Codes, dict[tuple[int, ...], int]]
"""Entries by what they have in common and what they differ in; and the places of the latter."""
Rest = tuple[int, int, int]
"""A column, and a coordinate that no label tells: its axis and code."""


@dataclass(frozen=True)
class Reading:
    """What records a line may be: by token an entry or none, and how much speaks for that."""

    column: Column
    entries: tuple[int, ...]
    """By token the number of its entry; -1 where there is none."""
    scale: float
    fits: tuple[bool | None, ...]
    score: float
    rest: tuple[Rest, ...]
    against: tuple[int, ...]
    """Axes of which labels name other coordinates."""
    exchanged: int
    """Pairs of its numbers that are each other's."""

    @property
    def slips(self) -> int:
        return sum(one is False for one in self.fits) - self.exchanged

    @property
    def accepted(self) -> bool:
        """Whether enough speaks for it."""
        fits = sum(one is True for one in self.fits)
        if self.slips > SHARE * (fits + self.slips):
            return False
        return self.score >= (SURE if self.slips else PLAIN)


@dataclass(frozen=True)
class Way:
    """A way to read a line: as which column, by what its labels tell, differing in which axes."""

    nth: int
    scale: float
    told: list[Told]
    axes: tuple[int, ...]
    tries: float


class Aligner:
    """The search for lines among all that is filed."""

    def __init__(self, columns: Sequence[Column]) -> None:
        self.columns = columns
        self.names = [column.name for column in columns]
        self.labels = Labels()
        self.known: set[Rest] = set()
        """What lines of the table are, which were read already."""
        self.grouped: dict[tuple[int, tuple[int, ...]], Grouped] = {}
        self.rounded: dict[tuple[int, float, int], Floats] = {}
        self.sorted = [np.sort(one.values) for one in self.columns]

    def readings(self, line: Line) -> list[Reading]:
        """The readings of a line that most of its numbers fit, best first."""
        if len({one.figure.value for one in line.tokens if one.figure}) < FEWEST:
            return []
        found = (reading for way in self._ways(line) for reading in self._tried(line, way))
        return sorted(found, key=lambda one: -one.score)

    def _ways(self, line: Line) -> Iterator[Way]:
        named = metrics_in(line.shared, self.names) or metrics_in(line.table.heads, self.names)
        known = {nth for nth, *_ in self.known}
        hours = HOURS.search(f"{line.shared} {line.table.heads} {' '.join(line.table.columns)}")
        for nth, column in enumerate(self.columns):
            tries = 2.0 * len(named) if nth in named else 4.0 * len(self.columns)
            tries = min(tries, KNOWN) if nth in known else tries
            for scale in (*SCALES, HOUR) if hours else SCALES:
                if self._often(nth, line, scale) < FEWEST:
                    continue
                for told in self.labels.own(line, column):
                    for axes in _subsets(told, len(column.axes)):
                        yield Way(nth, scale, told, axes, tries * (1 if scale == 1 else 2))

    def _often(self, nth: int, line: Line, scale: float) -> int:
        """How many numbers of a line are filed under a name at all."""
        have, count = self.sorted[nth], 0
        for one in line.tokens:
            if one.figure is not None:
                ends = (one.figure.value + sign * (one.figure.half + 1e-9) for sign in (-1, 1))
                low, high = np.searchsorted(have, [end / scale for end in ends])
                count += bool(high > low)
        return count

    def _tried(self, line: Line, way: Way) -> Iterator[Reading]:
        """The readings in which the entries of a line differ in some coordinates only."""
        column, axes = self.columns[way.nth], way.axes
        use = [
            n for n, token in enumerate(line.tokens)
            if token.figure is not None and all(way.told[n][at] is not None for at in axes)
        ]  # fmt: skip
        if len(use) < FEWEST:
            return
        keys, places = self._grouped(way.nth, axes)
        at_places = [_place(told, axes, places) for told in way.told]
        chosen = [at_places[n] for n in use]
        entries = np.where(np.array(chosen) >= 0, keys[:, chosen], -1)
        figures = [figure for n in use if (figure := line.tokens[n].figure)]
        fit = self._fitting(way, entries, figures)
        count, there = fit.sum(1), (entries >= 0).sum(1)
        good = np.flatnonzero((count >= FEWEST) & (2 * count >= there))
        good = good[np.argsort(-count[good], kind="stable")[:KEYS]]
        if not len(good):
            return
        chances = [self._chance(way, one) for one in figures]
        free = [at for at in range(len(column.axes)) if at not in axes]
        shared = self.labels.shared(line, column, free)
        shared = {at: code for at, code in shared.items() if code >= 0}
        above = {(way.nth, *one) for one in self.labels.above(line, column, free).items()}
        own = column.codes[keys.max(1)]  # one entry of each key tells what all have in common
        agree = np.all([own[:, at] == code for at, code in shared.items()], axis=0)
        for key in good.tolist():
            consistent = bool(np.broadcast_to(agree, len(keys))[key])
            rest = tuple((way.nth, at, int(own[key, at])) for at in free if at not in shared)
            tries = _tries(column, rest, self.known | above) if consistent else np.inf
            tries = min(tries, float(np.sum(agree)) if consistent and shared else len(keys))
            swapped = _exchanged(way.scale * column.values, entries[key], fit[key], figures)
            pairs, told = len(swapped) // 2, [*np.flatnonzero(fit[key]).tolist(), *swapped]
            distinct = {int(entries[key, n]): n for n in reversed(told)}
            score = -sum(log(chances[n]) for n in distinct.values()) - log(way.tries * tries)
            score -= SLIP * int(there[key] - count[key] - pairs)
            fits: list[bool | None] = [None] * len(line.tokens)
            held = [-1] * len(line.tokens)
            for n, one, entry in zip(use, fit[key].tolist(), entries[key].tolist(), strict=True):
                if entry >= 0:
                    fits[n], held[n] = one, entry
            for n in (n for n, token in enumerate(line.tokens) if token.figure is None):
                held[n] = int(keys[key, at_places[n]]) if at_places[n] >= 0 else -1
            yield Reading(
                column, tuple(held), way.scale, tuple(fits), score, rest,
                against=tuple(at for at, code in shared.items() if own[key, at] != code),
                exchanged=pairs,
            )  # fmt: skip

    def _grouped(self, nth: int, axes: tuple[int, ...]) -> Grouped:
        if (nth, axes) not in self.grouped:
            self.grouped[nth, axes] = _grouped(self.columns[nth], axes)
        return self.grouped[nth, axes]

    def _fitting(
        self, way: Way, entries: Codes, figures: Sequence[Figure]
    ) -> npt.NDArray[np.bool_]:
        """Which entries are printed so; what is taken of several may be of rounded ones."""
        values = way.scale * self.columns[way.nth].values
        made = np.zeros(entries.shape, bool)
        for n, figure in enumerate(figures):
            at, room = entries[:, n], figure.half * (1 + 1e-6) + 1e-12
            printed = self._rounded(way.nth, way.scale, figure.decimals)
            for every in (values, printed):
                made[:, n] |= (at >= 0) & (np.abs(every[at] - figure.value) <= room)
        return made

    def _rounded(self, nth: int, scale: float, decimals: int) -> Floats:
        if (nth, scale, decimals) not in self.rounded:
            self.rounded[nth, scale, decimals] = self.columns[nth].rounded(scale, decimals)
        return self.rounded[nth, scale, decimals]

    def _chance(self, way: Way, figure: Figure) -> float:
        """How likely some entry would fit a number."""
        have, half = way.scale * self.sorted[way.nth], figure.half
        low, high = np.searchsorted(have, [figure.value - half, figure.value + half])
        extent = float(have[-1] - have[0])
        share = max(0, int(high - low) - 1) / len(have)
        width = 2 * half / extent if extent > 0 else 1.0
        return min(1.0, max(share, width, LIKELIEST, FLOOR * 10.0**-figure.digits))


def _place(told: Told, axes: Sequence[int], places: Mapping[tuple[int, ...], int]) -> int:
    """Which of the places that entries differ in a label names; -1 if none."""
    codes = tuple(code for at in axes if (code := told[at]) is not None)
    return places.get(codes, -1) if len(codes) == len(axes) else -1


def _tries(column: Column, rest: Sequence[Rest], known: Collection[Rest]) -> float:
    """Among how many a line is, by what is known of its table."""
    made = 1.0
    for one in rest:
        made *= 2.0 if one in known else len(column.texts[one[1]]) + len(TAKEN)
    return made


def _exchanged(
    values: Floats, entries: Codes, fit: npt.NDArray[np.bool_], figures: Sequence[Figure]
) -> list[int]:
    """Those numbers that do not fit but in each other's place."""
    off = [n for n in np.flatnonzero(~fit).tolist() if entries[n] >= 0]
    pairs = (
        (one, other)
        for one, other in combinations(off, 2)
        if all(
            abs(values[entries[here]] - figures[there].value) <= figures[there].half * (1 + 1e-6)
            for here, there in ((one, other), (other, one))
        )
    )
    return [*next(pairs, ())]


def _subsets(told: Sequence[Told], count: int) -> Iterator[tuple[int, ...]]:
    """The coordinates in which tokens differ by their labels, all of them, or some."""
    differ = [
        at for at in range(count)
        if len({one[at] for one in told if one[at] is not None}) >= FEWEST
    ]  # fmt: skip
    yield from chain(*(combinations(differ, size) for size in range(len(differ), 0, -1)))


def _grouped(column: Column, axes: Sequence[int]) -> Grouped:
    rows: dict[tuple[int, ...], int] = {}
    places: dict[tuple[int, ...], int] = {}
    cells = []
    rest = [at for at in range(len(column.axes)) if at not in axes]
    for nth, codes in enumerate(column.codes.tolist()):
        row = rows.setdefault(tuple(codes[at] for at in rest), len(rows))
        place = places.setdefault(tuple(codes[at] for at in axes), len(places))
        cells.append((row, place, nth))
    made = np.full((len(rows), len(places)), -1)
    for row, place, nth in cells:
        made[row, place] = nth
    return made, places
