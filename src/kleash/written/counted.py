"""Shares and means of counts, which have no hidden digits: they come out to the last digit.

For every line of shares it is asked which counts it is of: those of its table, or of a table with
the same labels, over another count, a total, several together, or a number that the report gives.
Where one answer gives nearly all of a line, a share that is off by its last digit is a slip. What
is further off may be anything, and is for other rules.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray

from kleash.documents.marks import Mark
from kleash.documents.page import Page
from kleash.imports.markdown.text import bare
from kleash.written.printed import Sheet

FEWEST = 3  # shares that come out, of as many different values
FREE = 4  # the same where the whole is taken from anywhere
TIMES = 3  # so many come out for each that does not
TOGETHER = 6  # counts that may be parts of one whole
WHOLES = (10, 10**7)  # numbers of a text that may be a whole
SLACK = 1e-6
_COUNT = re.compile(r"(?<![\d.,+\-−~≈])(\d{1,3}(?:,\d{3})+|\d+)(?![\d.,]*\d|\s?[%‰])")
_SHARE = re.compile(r"(?<![\d.,+\-−~≈±])(\d+\.\d+|\d+(?=\s?%))\s?(%?)(?!\d)")
_INSIDE = re.compile(r"^([^(（]*)[(（]([^()（）]*)[)）]\W*$")
Floats = NDArray[np.float64]
Spot = tuple[int, int, int]
"""Row, column, and whether a number stands in brackets."""


@dataclass(frozen=True)
class Share:
    """A share as printed."""

    value: float
    decimals: int
    unit: str

    @property
    def half(self) -> float:
        """Half a unit of its last digit."""
        return 0.5 * 10.0**-self.decimals

    @property
    def text(self) -> str:
        """As it is printed, without its unit."""
        return f"{self.value:.{self.decimals}f}"


@dataclass(frozen=True)
class Line:
    """The shares of a column, or a row, and by name the counts that stand along it."""

    spots: Sequence[Spot]
    shares: Sequence[Share]
    parts: Mapping[object, Floats]


@dataclass(frozen=True)
class Reading:
    """What counts give for each share of a line, which come out, and which nearly do."""

    given: Floats
    exact: NDArray[np.bool_]
    near: NDArray[np.bool_]


def false_counted(sheets: Sequence[Sheet], page: Page) -> Iterator[Mark]:
    """Every share of counts whose last digit is another than the counts give."""
    marked = set[tuple[int, Spot]]()
    for nth, line, reading in _readings(sheets, page):
        for at in map(int, np.flatnonzero(reading.near)):
            if (nth, line.spots[at]) not in marked:
                marked.add((nth, line.spots[at]))
                value = float(reading.given[at])
                yield _mark(sheets[nth], line.spots[at], line.shares[at], value)


def well_counted(sheets: Sequence[Sheet], page: Page) -> set[tuple[int, str]]:
    """The shares in brackets that their counts give, by line and digits."""
    return {
        (sheets[nth].table.lines[row], line.shares[at].text)
        for nth, line, reading in _readings(sheets, page)
        for at, (row, _, part) in enumerate(line.spots)
        if part and reading.exact[at]
    }


def _readings(sheets: Sequence[Sheet], page: Page) -> Iterator[tuple[int, Line, Reading]]:
    """Every line of shares of every table, read."""
    read = [_read(sheet) for sheet in sheets]
    told = np.array(sorted(_wholes(page.text)))
    for nth in range(len(sheets)):
        for line in _lines(nth, sheets, read):
            yield nth, line, _reading(line, told)


def _read(sheet: Sheet) -> tuple[dict[Spot, float], dict[Spot, Share]]:
    """The counts and the shares of a table; one number of a cell may stand in brackets."""
    counts, shares = dict[Spot, float](), dict[Spot, Share]()
    for row, texts in enumerate(sheet.table.rows):
        for column, text in enumerate(texts):
            plain = bare(text).strip("* ")
            inside = _INSIDE.match(plain)
            for part, each in enumerate(inside.groups() if inside else (plain,)):
                if count := _COUNT.fullmatch(each.strip()):
                    counts[row, column, part] = float(count[1].replace(",", ""))
                elif share := _SHARE.fullmatch(each.strip()):
                    decimals = len(share[1].partition(".")[2])
                    shares[row, column, part] = Share(float(share[1]), decimals, share[2])
    return counts, shares


def _wholes(text: str) -> set[float]:
    """The whole numbers of a report that something may be a part of."""
    every = (float(one.replace(",", "")) for one in _COUNT.findall(text))
    return {one for one in every if WHOLES[0] <= one <= WHOLES[1]}


def _lines(
    nth: int, sheets: Sequence[Sheet], read: Sequence[tuple[dict[Spot, float], dict[Spot, Share]]]
) -> Iterator[Line]:
    """Columns of shares, and rows of shares, each with the counts beside it."""
    for down in (True, False):
        labels = [_labels(sheet, down=down) for sheet in sheets]
        lines: dict[tuple[int, int], dict[int, Spot]] = {}
        for spot in read[nth][1]:
            along, across = spot[:2] if down else spot[1::-1]
            lines.setdefault((across, spot[2]), {})[along] = spot
        for own in lines.values():
            places = {at: here for here, at in enumerate(sorted(own))}
            if len(places) < FEWEST:
                continue
            parts = dict[object, Floats]()
            for other, (counts, _) in enumerate(read):
                at = _aligned(labels[nth], labels[other], same=other == nth)
                for spot, count in counts.items():
                    along, across = spot[:2] if down else spot[1::-1]
                    here = places.get(at.get(along, -1))
                    if here is not None:
                        key = other, across, spot[2]
                        parts.setdefault(key, np.full(len(places), np.nan))[here] = count
            spots = [own[at_] for at_ in places]
            yield Line(spots, [read[nth][1][spot] for spot in spots], parts)


def _labels(sheet: Sheet, *, down: bool) -> list[str]:
    """What rows, or columns, are called."""
    told = [texts[0] if texts else "" for texts in sheet.table.rows] if down else sheet.table.header
    return [bare(one).strip("* ") for one in told]


def _aligned(ours: Sequence[str], theirs: Sequence[str], *, same: bool) -> dict[int, int]:
    """For each place of a table, the one of ours that is called alike."""
    if same:
        return {at: at for at in range(len(theirs))}
    alone = {name for name in theirs if theirs.count(name) == 1 and ours.count(name) == 1}
    return {at: ours.index(name) for at, name in enumerate(theirs) if name in alone}


def _reading(line: Line, told: Floats) -> Reading:
    """The one that gives most of a line; of a line that is of no counts nothing comes out."""
    value = np.array([one.value for one in line.shares])
    half = np.array([one.half for one in line.shares])
    none = np.zeros(len(value), bool)
    best, found = (0, 0), Reading(value, none, none)
    for free, given_WN in _given(line, value, told):
        gap_WN = np.abs(given_WN - value)
        exact_WN = gap_WN <= half * (1 + SLACK)
        near_WN = ~exact_WN & (gap_WN <= 3 * half)
        come, near = exact_WN.sum(1), near_WN.sum(1)
        far = np.isfinite(given_WN).sum(1) - come - near
        fit = (come >= (FREE if free else FEWEST)) & (TIMES * np.maximum(near, far) <= come)
        for nth in np.flatnonzero(fit):
            rank = int(come[nth] - far[nth]), -int(near[nth])
            kinds = len({*value[exact_WN[nth]].tolist()})
            if rank > best and kinds >= (FREE if free else FEWEST):
                best, found = rank, Reading(given_WN[nth], exact_WN[nth], near_WN[nth])
    return found


def _given(line: Line, value: Floats, told: Floats) -> Iterator[tuple[bool, Floats]]:
    """What counts give as shares of a line, and whether the whole was taken from anywhere."""
    scales = (100.0,) if value.max() > 1 or any(one.unit for one in line.shares) else (1.0, 100.0)
    names = list(line.parts)
    every = np.array([line.parts[name] for name in names]).reshape(len(names), len(value))
    for nth, scale in product(range(len(names)), scales):
        part = every[nth]
        known = np.isfinite(part)
        if int(known.sum()) < FEWEST:
            continue
        total = np.full((1, len(part)), part[known].sum())
        yield False, _ratio(scale, part, np.vstack([np.delete(every, nth, axis=0), total]))
        anywhere = np.unique([*part[known], *told])
        wholes = np.broadcast_to(anywhere[:, None], (len(anywhere), len(part)))
        yield True, _ratio(scale, part, np.vstack([wholes, *_together(nth, every)]))
    means = [
        every[first:last].mean(0)
        for first in range(len(every))
        for last in range(first + 2, min(len(every), first + TOGETHER) + 1)
    ]
    yield False, np.array(means).reshape(len(means), len(value))


def _ratio(scale: float, part: Floats, wholes_WN: Floats) -> Floats:
    """Shares, where the part is no more than the whole."""
    with np.errstate(divide="ignore", invalid="ignore"):
        given: Floats = np.where(
            (wholes_WN > 0) & (part <= wholes_WN), scale * part / wholes_WN, np.nan
        )
    return given


def _together(at: int, every: Floats) -> Iterator[Floats]:
    """The sums of several neighbours that a count is one of."""
    for first in range(max(0, at - TOGETHER + 1), at + 1):
        for last in range(max(at, first + 1), min(len(every), first + TOGETHER)):
            yield every[first : last + 1].sum(0, keepdims=True)


def _mark(sheet: Sheet, spot: Spot, share: Share, value: float) -> Mark:
    row, column, part = spot
    line, text = sheet.table.lines[row], f"{share.text}{share.unit}"
    facts = {"value": f"{value:.{share.decimals}f}{share.unit}", "lines": [line]}
    return Mark(line, text, "wrong", "check.not-share", facts, f"counted {column} {part}")
