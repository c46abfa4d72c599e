"""Lineups: things side by side, and all that can be worked out for each of them alike.

A table is two lineups: its rows are things, and so are its columns. The courses of several arms are
one more. A way of working out gives every thing a number: that of a column, the gap of two columns,
what it has over one of the others, the height it reaches along its steps, how often it is first.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise, permutations

import numpy as np
from numpy.typing import NDArray

from kleash.written.printed import Figure
from kleash.written.prose import Said
from kleash.written.told.subjects import Records
from kleash.written.told.things import column_keys, keys_of, row_keys
from kleash.written.told.tracks import Course

LEAST = 3  # lines of which a mean, a height or a place is taken
WINDOWS = range(2, 11)  # last steps that people take the mean of
COARSE = 4  # times its own rounding that of what a number is worked out of may be
WIDEST = 14  # lines of which all pairs are tried
MOST = 24  # things of which more is worked out than what stands in their lines
Line = Mapping[int, Figure]
Floats = NDArray[np.float64]
Counts = NDArray[np.int64]
_MADE = re.compile(r"平均|均值|合计|总|差|变化|最|Δ|(?<![a-z])(?:mean|avg|average|total|gain|diff)")


@dataclass(frozen=True)
class Way:
    """What comes out for each thing of a lineup, and by how much rounding may shift it."""

    kind: str
    values: Mapping[int, float]
    rooms: Mapping[int, float]

    def suits(self, said: Said) -> bool:
        """Whether a number may be of this kind, by what it is counted in."""
        if said.kind == "times":
            return self.kind == "ratio"
        if said.kind == "points":
            return self.kind in ("gap", "plain", "over", "height")
        if self.kind in ("change", "left"):
            return said.kind == "share"
        return self.kind != "ratio" and (self.kind != "often" or not said.figure.decimals)

    def fits(self, said: Said, thing: int, scale: float) -> bool:
        """Whether a number is what comes out for a thing."""
        value = self.values.get(thing)
        if value is None:
            return False
        half, room = said.figure.half, scale * self.rooms[thing]
        off = abs(abs(said.figure.value) - abs(scale * value))
        if room > COARSE * half:  # a mean of printed numbers may have more digits than they
            return self.kind == "mean" and off <= half * (1 + 1e-6)
        return off <= (half + room) * (1 + 1e-6)


@dataclass
class Lineup:
    """Things with their keys, and the ways that there are for all of them."""

    keys: Sequence[frozenset[str]]
    ways: list[Way]

    def missed(self, every: Sequence[Said], things: Sequence[int], scale: float) -> Counts:
        """How many of some numbers each way does not give, of one thing each.

        Hardly any way gives even one of them: this is `Way.fits` for all ways at once.
        """
        values, rooms, means = self._arrays
        halves = np.array([said.figure.half for said in every])
        own = np.abs([said.figure.value for said in every])
        off, room = np.abs(own - np.abs(scale * values[:, things])), scale * rooms[:, things]
        coarse = room > COARSE * halves
        most = np.where(coarse, np.where(means, halves, -1.0), halves + room) * (1 + 1e-6)
        return np.asarray((~(off <= most)).sum(1))

    @cached_property
    def _arrays(self) -> tuple[Floats, Floats, NDArray[np.bool_]]:
        """By way and thing, what comes out and within what; and which ways are means."""
        values, rooms = (np.full((len(self.ways), len(self.keys)), np.nan) for _ in range(2))
        for nth, way in enumerate(self.ways):
            for thing in way.values.keys() & range(len(self.keys)):
                values[nth, thing], rooms[nth, thing] = way.values[thing], way.rooms[thing]
        means = np.array([way.kind == "mean" for way in self.ways], bool)
        return values, rooms, means[:, None]


def lineups(records: Records) -> list[Lineup]:
    """All tables, by row and by column, and the courses of several arms."""
    if not records.lineups:
        records.lineups.extend(_lineups(records))
    return records.lineups


def _lineups(records: Records) -> Iterator[Lineup]:
    for sheet in records.sheets:
        cells = [cell for cell in sheet.cells if not cell.part]
        rows, columns = (defaultdict[int, dict[int, Figure]](dict) for _ in range(2))
        for cell in cells:
            columns[cell.column][cell.row] = cell.figure
            rows[cell.row][cell.column] = cell.figure
        made = [*_made(columns, sheet.across), *_stepwise(columns, range(len(sheet.rows)))]
        made += _over_all(columns, sheet.columns)
        yield Lineup([row_keys(sheet, nth) for nth in range(len(sheet.rows))], made)
        made = [*_made(rows, sheet.counts), *_stepwise(rows, sorted(sheet.across))]
        made += _over_all(rows, sheet.rows)
        yield Lineup([column_keys(sheet, nth) for nth in range(len(sheet.columns))], made)
        for side in (0, 1):
            for own in dict.fromkeys(two[side] for two in sheet.parts.values()):
                beside = [nth for nth, two in sheet.parts.items() if two[side] == own]
                some = {row: _of(line, beside) for row, line in rows.items()}
                keys = [keys_of([sheet.parts[nth][1 - side]], "") for nth in beside]
                yield Lineup(keys, [*_made(some, sheet.counts)])
    groups: dict[str, list[Course]] = {}
    for course in records.courses:
        if course.arm:
            groups.setdefault(course.quantity, []).append(course)
    for every in groups.values():
        lines = dict[int, dict[int, Figure]]()
        for nth, course in enumerate(every):
            for at, figure in course.points.items():
                lines.setdefault(int(at), {})[nth] = figure
        made = [*_made(lines, {at: float(at) for at in lines})]
        yield Lineup([keys_of([course.arm], "") for course in every], made)


def _over_all(lines: Mapping[int, Line], names: Sequence[Sequence[str]]) -> Iterator[Way]:
    """The mean of all lines but those that are one themselves."""
    whole = [line for nth, line in lines.items() if not any(map(_MADE.search, names[nth]))]
    if LEAST <= len(whole) <= WIDEST:
        yield _mean(whole)


def _of(line: Line, columns: Sequence[int]) -> Line:
    """The figures of some columns, numbered anew."""
    return {nth: line[column] for nth, column in enumerate(columns) if column in line}


def _made(lines: Mapping[int, Line], along: Mapping[int, float]) -> Iterator[Way]:
    """All that may be worked out of the lines of a lineup; some may be counted along."""
    yield from (Way("plain", _values(one), dict.fromkeys(one, 0.0)) for one in lines.values())
    if max(map(len, lines.values()), default=0) > MOST:
        return
    for line in lines.values():
        yield from _over_another(line)
    for one, other in permutations(lines, 2) if len(lines) <= WIDEST else ():
        yield from _gaps(lines[one], lines[other])
    course = {at: lines[nth] for nth, at in sorted(along.items(), key=_count) if nth in lines}
    for count in (*WINDOWS, len(course)):
        if len(course) >= LEAST and count <= len(course):
            yield _mean([*course.values()][-count:])
    if len(course) >= LEAST:
        yield from _along(course)


def _count(one: tuple[int, float]) -> float:
    return one[1]


def _values(line: Line) -> dict[int, float]:
    return {nth: one.value for nth, one in line.items()}


def _gaps(one: Line, other: Line, gap: str = "gap") -> Iterator[Way]:
    """The difference, the ratio, what is left and the change in percent of two lines."""
    both = [nth for nth in one if nth in other]
    ours, theirs = ({nth: line[nth].value for nth in both} for line in (one, other))
    halves = {nth: one[nth].half + other[nth].half for nth in both}
    yield Way(gap, {nth: ours[nth] - theirs[nth] for nth in both}, halves)
    some = [nth for nth in both if theirs[nth] and abs(theirs[nth]) > other[nth].half]
    ratios = {nth: ours[nth] / theirs[nth] for nth in some}
    rooms = {
        nth: (one[nth].half + abs(ratios[nth]) * other[nth].half) / abs(theirs[nth]) for nth in some
    }
    shares = {nth: 100 * rooms[nth] for nth in some}
    yield Way("ratio", ratios, rooms)
    yield Way("left", {nth: 100 * ratios[nth] for nth in some}, shares)
    yield Way("change", {nth: 100 * (ratios[nth] - 1) for nth in some}, shares)


def _over_another(line: Line) -> Iterator[Way]:
    """What the things of a line have over one of them."""
    for than, figure in line.items() if len(line) <= WIDEST else ():
        rest = {nth: one for nth, one in line.items() if nth != than}
        yield from _gaps(rest, dict.fromkeys(rest, figure), "over")
        yield from _gaps(dict.fromkeys(rest, figure), rest, "over")


def _along(course: Mapping[float, Line]) -> Iterator[Way]:
    """The heights that things reach along their steps, and how often they are first."""
    whole = set.intersection(*(set(line) for line in course.values()))
    last = [*course.values()][-1]
    for pick in (max, min):
        tops = {nth: pick((line[nth] for line in course.values()), key=_value) for nth in whole}
        yield Way("height", _values(tops), dict.fromkeys(tops, 0.0))
        for other in course.values() if len(course) <= WIDEST else (last,):
            yield from _gaps(tops, other)
        often = dict.fromkeys(whole, 0.0)
        for line in course.values():
            values = {nth: line[nth].value for nth in whole}
            first = [nth for nth in whole if values[nth] == pick(values.values())]
            for nth in first if len(first) == 1 else ():
                often[nth] += 1
        yield Way("often", often, dict.fromkeys(whole, 0.0))
    lows, highs = ({nth: pick((line[nth] for line in course.values()), key=_value)
                    for nth in whole} for pick in (min, max))  # fmt: skip
    yield from _gaps(highs, lows)


def _value(figure: Figure) -> float:
    return figure.value


def _stepwise(lines: Mapping[int, Line], order: Sequence[int]) -> Iterator[Way]:
    """What every thing has over the one before it."""
    for line in lines.values() if LEAST <= len(order) <= WIDEST else ():
        pairs = [(one, other) for one, other in pairwise(order) if one in line and other in line]
        ours = {other: line[other] for _, other in pairs}
        yield from _gaps(ours, {other: line[one] for one, other in pairs}, "over")


def _mean(lines: Sequence[Line]) -> Way:
    both = set.intersection(*(set(line) for line in lines))
    values = {nth: sum(line[nth].value for line in lines) / len(lines) for nth in both}
    rooms = {nth: sum(line[nth].half for line in lines) / len(lines) for nth in both}
    return Way("mean", values, rooms)
