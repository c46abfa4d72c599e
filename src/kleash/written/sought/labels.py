"""What the labels of a line give each of its cells: a unit, a metric, a place of the curve."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from kleash.written.sought.lines import Line, Token, counted
from kleash.written.sought.measures import STEPS, Measures, Unit
from kleash.written.sought.naming import (
    Namer,
    counts_in,
    is_all,
    metrics_in,
    over_in,
    places_in,
    seed_in,
    statistics_in,
    without_over,
)

FEWEST = 2  # cells of a line of which labels must tell something
AT = ("at", "epoch last", "epoch mean")
Index = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Choice:
    """Units, metrics or places by token; -1 where none is known, None for each there is."""

    index: Index | None
    named: bool = False


class Labels:
    """The readers of labels."""

    def __init__(self, measures: Measures, namer: Namer) -> None:
        self.measures, self.namer = measures, namer

    def units(self, line: Line) -> list[Choice]:
        """Units by the names of groups and seeds in labels."""
        groups = [self.group(line, one, heads=False) for one in line.tokens]
        if not any(groups):
            groups = [self.group(line, one) for one in line.tokens]
        seeds = [_seed(line, one) for one in line.tokens]
        found = dict[tuple[int, ...], Choice]()
        if sum(map(bool, groups)) >= FEWEST:
            overs = sorted({unit.over for unit in self.measures.units if unit.over}) or [""]
            ways = [[over] * len(groups) for over in overs]
            told = [_over(line, one) for one in line.tokens]
            ways += [told] if len({*told} - {""}) >= FEWEST else []
            for way in ways:
                index = list(map(self._unit, groups, seeds, way))
                found.setdefault(tuple(index), Choice(np.array(index), named=True))
        elif len({*seeds} - {None}) >= FEWEST:
            for group in self.measures.groups:
                index = [self.measures.of.get(Unit(group, seed), -1) for seed in seeds]
                found.setdefault(tuple(index), Choice(np.array(index)))
        return list(found.values())

    def group(self, line: Line, token: Token, *, heads: bool = True) -> str:
        """The group of runs that the labels of a cell name, with what stands above the table."""
        row, column = line.table.row(token), line.table.column(token)
        first, second = self.namer.group(row), self.namer.group(column)
        if first and second and first != second:
            return ""
        both = f"{row} ; {column}"
        whole = f"{both} ; {line.table.heads}" if heads else ""
        return first or second or self.namer.group(both) or self.namer.group(whole)

    def _unit(self, group: str, seed: int | None, over: str) -> int:
        if not group:
            return -1
        seeds = self.measures.seeds[group]
        if len(seeds) == 1:
            return self.measures.of[Unit(group, seeds[0])]
        unit = Unit(group, seed) if seed in seeds else Unit(group, None, over)
        return self.measures.of.get(unit, -1)

    def metrics(self, line: Line) -> list[Choice]:
        """Metrics by the numbers in their names, or by their names, where cells differ in them."""
        made = []
        pairs = [(line.table.row(one), line.table.column(one)) for one in line.tokens]
        own = [pair[0] if line.down else pair[1] for pair in pairs]
        if line.block:
            own = [" ; ".join(pair) for pair in pairs]
        for family in self.measures.families:
            index = [
                self._member(family, pair, line.table.heads) if counts_in(text) else -1
                for pair, text in zip(pairs, own, strict=True)
            ]
            if len({*index} - {-1}) >= FEWEST:
                made.append(Choice(np.array(index), named=True))
        named = [metrics_in(text, self.measures.metrics) for text in own]
        index = [next(iter(one)) if len(one) == 1 else -1 for one in named]
        if len({*index} - {-1}) >= FEWEST:
            made.append(Choice(np.array(index), named=True))
        return made

    def _member(self, family: Sequence[int], labels: tuple[str, str], heads: str) -> int:
        """The metric of a family all of whose numbers labels have."""
        near = {*counts_in(labels[0]), *counts_in(labels[1])}
        for have in (near, near | {*counts_in(heads)}):
            fit = [nth for nth in family if set(self.measures.numbers[nth]) <= have]
            own = [nth for nth in fit if near <= set(self.measures.numbers[nth])]
            if len(own or fit) == 1:
                return (own or fit)[0]
        return -1

    def places(self, line: Line) -> list[Choice]:
        """Places by the steps, epochs and windows in labels, or by their words for statistics."""
        found = dict[tuple[int, ...], Choice]()
        for texts in zip(*(line.table.sources(one) for one in line.tokens), strict=True):
            plain = [without_over(text) for text in texts]
            for index in (*self._of_source(texts), *self._of_source(plain)):
                if len({*index} - {-1}) >= FEWEST:
                    found.setdefault(tuple(index), Choice(np.array(index), named=True))
        return list(found.values())

    def _of_source(self, texts: Sequence[str]) -> Iterator[list[int]]:
        at = self.measures.at
        numbers, epochs = counted(texts)
        for kind in ("epoch last", "epoch mean", "at") if epochs else ("at",):
            yield [-1 if n is None else at.get((kind, n, 0.0), -1) for n in numbers]
        named = [[one for one in places_in(text) if one[0] not in AT] for text in texts]
        for kind in dict.fromkeys(one[0] for every in named for one in every):
            whole = at.get((kind.removeprefix("window "), 0.0, 0.0), -1)
            yield [
                next((at.get(p, -1) for p in every if p[0] == kind), whole if is_all(text) else -1)
                for every, text in zip(named, texts, strict=True)
            ]
        words = [statistics_in(text) for text in texts]
        for steps in (False, True):
            picked = [[kind for kind in every if (kind in STEPS) == steps] for every in words]
            yield [at.get((every[0], 0.0, 0.0), -1) if every else -1 for every in picked]


def _over(line: Line, token: Token) -> str:
    """The way to take several runs as one that the labels of a cell name."""
    found = (over_in(text) for text in (line.table.column(token), line.table.row(token)))
    return next(filter(None, found), "")


def _seed(line: Line, token: Token) -> int | None:
    for text in (line.table.row(token), line.table.column(token), line.table.heads):
        if (seed := seed_in(text)) is not None:
            return seed
    return None
