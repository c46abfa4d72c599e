"""Charts as our own SVG: readable in black and white, with the data as a table beside each.

`svg` draws, this makes charts: lines with bands, dots with whiskers, a frontier, and small ones in
a line of text; every text comes from the caller. A chart needs no JavaScript
and no font: colours follow the page by CSS variables, and shapes and dashes say what colours do.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from kleash.report.charts.svg import (
    SERIES,
    WIDTH,
    Drawing,
    Scale,
    at,
    axes,
    cut,
    dash_of,
    legend,
    number,
    spread,
)
from kleash.report.charts.svg import STYLE as STYLE
from kleash.report.charts.svg import Chart as Chart

MOST_POINTS = 400  # of a line; more are thinned, and the table says every value that is drawn
BRIEF = 20  # points of a line in the table of a page
BLOCKS = "▁▂▃▄▅▆▇█"


@dataclass(frozen=True)
class Line:
    """One series: positions, values, and the ends of its band where it has one."""

    name: str
    across: Sequence[float]
    values: Sequence[float]
    low: Sequence[float] = ()
    high: Sequence[float] = ()


@dataclass(frozen=True)
class Dot:
    """One estimate with its interval; without one it is a dot alone."""

    name: str
    value: float
    low: float | None = None
    high: float | None = None
    note: str = ""


@dataclass(frozen=True)
class Spot:
    """One arm on two axes, each with its interval."""

    name: str
    across: Dot
    up: Dot


def lines(title: str, names: tuple[str, str], series: Sequence[Line], head: Sequence[str]) -> Chart:
    """Lines over steps, each with the band of its seeds; `head` names series, x, y, low, high."""
    drawn = [_thinned(each) for each in series]
    every = [v for each in drawn for v in (*each.values, *each.low, *each.high)]
    places = [x for each in drawn for x in each.across]
    drawing = Drawing(0)
    top = legend(drawing, [each.name for each in drawn], 8, 16) + 34
    drawing.height = top + 230 + 42
    across = Scale(min(places, default=0), max(places, default=1), 64, WIDTH - 14)
    up = Scale(*spread(every), top + 230, top)
    axes(drawing, across, up, names)
    brief: list[list[str]] = []
    for n, each in enumerate(drawn):
        along = across.each(each.across)
        points = list(zip(along, up.each(each.values), strict=True))
        if each.low:
            back = list(zip(along, up.each(each.low), strict=True))[::-1]
            edge = [*zip(along, up.each(each.high), strict=True), *back]
            drawing.area(edge, f"band k{n % SERIES}")
        drawing.line(points, f"line k{n % SERIES}", dash_of(n))
        # Lines that lie on each other show their marks side by side.
        apart = max(1, math.ceil(len(points) / 12))
        for x, y in points[n * apart // len(drawn) :: apart]:
            drawing.mark(x, y, n, 3.5)
        stride = max(1, math.ceil(len(points) / BRIEF))
        some = [*range(len(points))[:-1:stride], *range(len(points))[-1:]]
        brief += [_row(each, k) for k in some]

    def rows() -> list[list[str]]:
        return [_row(each, k) for each in drawn for k in range(len(each.values))]

    return drawing.done(title, head, rows, brief)


def _row(line: Line, point: int) -> list[str]:
    """One point of a line as a row."""
    sides = (line.across, line.values, line.low, line.high)
    return [line.name, *(f"{side[point]:.6g}" if side else "" for side in sides)]


def _thinned(line: Line) -> Line:
    every = math.ceil(len(line.values) / MOST_POINTS)
    if every <= 1:
        return line
    kept = (line.across[::every], line.values[::every], line.low[::every], line.high[::every])
    return Line(line.name, *kept)


def whiskers(
    title: str,
    axis: str,
    dots: Sequence[Dot],
    head: Sequence[str],
    *,
    margin: float | None = None,
) -> Chart:
    """A line for each estimate, its interval as a whisker; 0 and the margin are drawn.

    `head` names the estimate, its value, low, high and note.
    """
    known = [v for d in dots for v in (d.value, d.low, d.high) if v is not None]
    low, high = spread([*known, 0.0, *((margin, -margin) if margin else ())])
    drawing = Drawing(26 * len(dots) + 56)
    across = Scale(low, high, 190, WIDTH - 170)
    bottom = 26 * len(dots) + 14
    if margin:
        look = 'class="band k4"'
        drawing.box(across(-margin), 6, across(margin) - across(-margin), bottom - 6, look)
    for tick in across.ticks(6):
        drawing.line([(across(tick), 6), (across(tick), bottom)], "grid")
        drawing.text(across(tick), bottom + 16, number(tick), anchor="middle", kind="quiet")
    drawing.line([(across(0), 6), (across(0), bottom)], "zero")
    drawing.text((across.start + across.end) / 2, bottom + 34, axis, anchor="middle")
    rows = []
    for n, dot in enumerate(dots):
        y = 26 * n + 22
        drawing.text(180, y + 4, cut(dot.name, 24), anchor="end")
        if dot.low is not None and dot.high is not None:
            drawing.line([(across(dot.low), y), (across(dot.high), y)], "whisker k0")
            for end in (dot.low, dot.high):
                drawing.line([(across(end), y - 4), (across(end), y + 4)], "whisker k0")
        drawing.mark(across(dot.value), y, 0)
        drawing.text(WIDTH - 160, y + 4, cut(dot.note, 24), kind="quiet")
        drawing.tip(across(dot.value), y, f"{dot.name}: {dot.value:.4g}")
        rows.append([dot.name, *_ends(dot), dot.note])
    noted = 5 if any(dot.note for dot in dots) else 4
    return drawing.done(title, head[:noted], lambda: [row[:noted] for row in rows])


def frontier(
    title: str, names: tuple[str, str], spots: Sequence[Spot], head: Sequence[str]
) -> Chart:
    """Every arm on two axes, with intervals on both; labels stand beside their marks."""
    sides = ([s.across for s in spots], [s.up for s in spots])
    ranges = []
    for dots in sides:
        ends = [v for d in dots for v in (d.value, d.low, d.high) if v is not None]
        ranges.append(spread(ends, room=0.1))
    drawing = Drawing(0)
    top = legend(drawing, [spot.name for spot in spots], 8, 16) + 34
    drawing.height = top + 260 + 42
    across = Scale(max(0.0, ranges[0][0]), ranges[0][1], 64, WIDTH - 14)
    up = Scale(*ranges[1], top + 260, top)
    axes(drawing, across, up, names)
    rows = []
    for n, spot in enumerate(spots):
        x, y = across(spot.across.value), up(spot.up.value)
        look = f"whisker k{n % SERIES}"
        if spot.across.low is not None and spot.across.high is not None:
            left = max(spot.across.low, across.low)
            drawing.line([(across(left), y), (across(spot.across.high), y)], look)
        if spot.up.low is not None and spot.up.high is not None:
            drawing.line([(x, up(spot.up.low)), (x, up(spot.up.high))], look)
        drawing.mark(x, y, n, 6)
        drawing.tip(x, y, spot.name)
        rows.append([spot.name, *_ends(spot.across), *_ends(spot.up)])
    return drawing.done(title, head, lambda: rows)


def _ends(dot: Dot) -> list[str]:
    return ["" if v is None else f"{v:.6g}" for v in (dot.value, dot.low, dot.high)]


def whisker(
    span: tuple[float, float],
    value: float,
    ends: tuple[float, float] | None = None,
    *,
    lost: bool = False,
) -> str:
    """One estimate of a column of them, as small as a row; 0 is dotted, and 0 itself is a ring."""
    across = Scale(*span, 6, 114)
    if span[0] == span[1]:
        across = Scale(span[0] - 1, span[0] + 1, 6, 114)
    x, zero, look = at(across(value)), at(across(0.0)), f"k{int(lost)}"
    line = "" if ends is None else f'x1="{at(across(ends[0]))}" x2="{at(across(ends[1]))}"'
    drawn = f'<line class="whisker {look}" {line} y1="9" y2="9"/>' if line else ""
    mark = f'<circle class="mark {look}" cx="{x}" cy="9" r="4"/>'
    if ends is None and not value:
        mark = f'<circle class="axis" cx="{x}" cy="9" r="4"/>'
    return (
        '<svg class="chart" width="120" height="18" viewBox="0 0 120 18" aria-hidden="true">'
        f'<line class="zero" x1="{zero}" x2="{zero}" y1="0" y2="18"/>{drawn}{mark}</svg>'
    )


def blocks(values: Sequence[float]) -> str:
    """A line as small as a word, in characters."""
    known = [value for value in values if math.isfinite(value)]
    if len(known) < 2:
        return ""
    known = known[:: max(1, math.ceil(len(known) / 16))]
    low, high = min(known), max(known)
    span = high - low or 1.0
    return "".join(BLOCKS[min(7, int(8 * (value - low) / span))] for value in known)
