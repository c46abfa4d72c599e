"""Drawing: numbers to positions, marks to SVG, every text escaped."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from html import escape
from itertools import chain

import numpy as np

WIDTH = 720
SERIES = 8  # colours, dashes and shapes; from the ninth series on they come in other company
DASHES = ("", "7 3", "2 3", "9 3 2 3", "4 2", "12 4", "1 2", "6 2 1 2 1 2")
# After Okabe and Ito: also for people who do not see red or green. First light, then dark.
COLOURS = (
    ("#0a5c9e", "#6cb6f5"),
    ("#b84a00", "#f59b52"),
    ("#00785a", "#3fcf9f"),
    ("#8f3b76", "#e29bcb"),
    ("#4d4d4d", "#c4c4c4"),
    ("#8a6d00", "#e6cf4f"),
    ("#1f7fb8", "#9ad7fa"),
    ("#111111", "#ffffff"),
)

SHADES = {
    **{f"k{n}": pair for n, pair in enumerate(COLOURS)},
    "ink": ("#1a1a1a", "#ececec"),
    "quiet": ("#595959", "#b0b0b0"),
    "grid": ("#dcdcdc", "#3d4148"),
    "paper": ("#ffffff", "#16181c"),
    "heat": ("10,92,158", "108,182,245"),  # the tint of tokens on the pages of transcripts
}
FONTS = "system-ui,'Noto Sans','Noto Sans CJK SC',sans-serif"


def _style() -> str:
    def rules(at: int) -> str:
        return "".join(f"--{name}:{pair[at]};" for name, pair in SHADES.items())

    series = "".join(f".k{n}{{stroke:var(--k{n});color:var(--k{n})}}" for n in range(len(COLOURS)))
    return (
        f":root{{{rules(0)}}}"
        f"@media screen and (prefers-color-scheme:dark){{:root{{{rules(1)}}}}}"
        f"{series}"
        f"svg.chart{{font:12px {FONTS};fill:var(--ink)}}"
        ".axis{stroke:var(--quiet);fill:none}.grid{stroke:var(--grid);fill:none}"
        ".line{fill:none;stroke-width:1.8}.band{stroke:none;fill:currentColor;fill-opacity:.16}"
        ".mark{fill:currentColor;stroke:var(--paper);stroke-width:.8}"
        ".whisker{fill:none;stroke-width:1.6}.quiet{fill:var(--quiet)}"
        ".zero{stroke:var(--ink);stroke-dasharray:3 3;fill:none}"
    )


STYLE = _style()


Rows = Sequence[Sequence[str]]


@dataclass(frozen=True)
class Chart:
    """A picture and the same as a table: what it shows, its drawing, its rows under their head."""

    title: str
    drawing: str
    head: Sequence[str]
    every: Callable[[], Rows]
    brief: Rows = ()
    """Of long rows those that a page shows; a file has them all."""

    @property
    def rows(self) -> Rows:
        """All of them, made when they are asked for."""
        return self.every()

    @property
    def shown(self) -> Rows:
        """The rows for a page."""
        return self.brief or self.rows

    def file(self) -> str:
        """The picture as a file of its own."""
        start = '<svg xmlns="http://www.w3.org/2000/svg" '
        body = self.drawing.replace("<svg ", start, 1)
        return body.replace(">", f"><style>{STYLE}</style>", 1) + "\n"

    def plain_file(self, font: str) -> str:
        """The same for what knows no CSS variables: its light colours written out, one font."""
        text = re.sub(r"@media[^{]*\{:root\{[^}]*\}\}|:root\{[^}]*\}", "", self.file())
        for name, (light, _) in SHADES.items():
            text = text.replace(f"var(--{name})", light)
        return text.replace(FONTS, font)


@dataclass
class Scale:
    """Numbers to positions: the lowest value at `start`, the highest at `end`."""

    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        return self.each([value])[0]

    def each(self, values: Iterable[float]) -> list[float]:
        """The positions of many, which a line has."""
        low, start = self.low, self.start
        span, length = self.high - low or 1.0, self.end - start
        return [start + (value - low) / span * length for value in values]

    def ticks(self, count: int = 5, *, whole: bool = False) -> list[float]:
        """Round numbers within the range, whole ones if asked for."""
        span = self.high - self.low
        if not span > 0 or not math.isfinite(span):
            return [self.low]
        size = 10 ** math.floor(math.log10(span / count))
        step = next(size * by for by in (1, 2, 5, 10) if span / (size * by) <= count)
        step = max(step, 1) if whole else step
        first = math.ceil(self.low / step - 1e-9)
        last = math.floor(self.high / step + 1e-9)
        return [float(f"{n * step:.12g}") for n in range(first, last + 1)]


def spread(values: Sequence[float], *, room: float = 0.06) -> tuple[float, float]:
    """The range of values with some room at both ends; never empty."""
    known = [value for value in values if math.isfinite(value)]
    low, high = (min(known), max(known)) if known else (0.0, 1.0)
    more = (high - low) * room or abs(high) * 0.1 or 1.0
    return low - more, high + more


def number(value: float) -> str:
    """A tick's label, short and without a sign on zero."""
    return f"{value + 0.0:.6g}".replace("-", "\u2212")


def at(value: float) -> str:
    """A position with two decimals at most."""
    return f"{value:.2f}".rstrip("0").rstrip(".")


def through(points: Sequence[tuple[float, float]]) -> str:
    """Positions of points, each as `at` has it: `1.5,20 3,4.25`; all at once, charts have many."""
    text = ("%.2f,%.2f " * len(points)) % tuple(chain.from_iterable(points))
    for mark in (",", " "):  # each number has two decimals, so a nought before one is the last
        text = text.replace(f"0{mark}", mark).replace(f".0{mark}", mark)
    return text.rstrip()


def cut(text: str, longest: int = 28) -> str:
    """A label that fits; Chinese characters count twice."""
    size, kept = 0, ""
    for each in text:
        size += 2 if ord(each) > 0x2E80 else 1
        if size > longest:
            return kept + "…"
        kept += each
    return kept


@dataclass
class Drawing:
    """Marks in the order they are drawn."""

    height: float
    width: float = WIDTH
    marks: list[str] = field(default_factory=list)

    def add(self, mark: str) -> None:
        """One mark, already escaped."""
        self.marks.append(mark)

    def text(self, x: float, y: float, said: str, *, anchor: str = "start", kind: str = "") -> None:
        """Words at a place."""
        look = f' class="{kind}"' if kind else ""
        self.add(
            f'<text x="{at(x)}" y="{at(y)}" text-anchor="{anchor}"{look}>{escape(said)}</text>'
        )

    def line(self, points: Sequence[tuple[float, float]], kind: str, dash: str = "") -> None:
        """A line through points."""
        path = through(points)
        dashed = f' stroke-dasharray="{dash}"' if dash else ""
        self.add(f'<polyline class="{kind}" points="{path}"{dashed}/>')

    def area(self, points: Sequence[tuple[float, float]], kind: str) -> None:
        """A filled shape."""
        path = through(points)
        self.add(f'<polygon class="{kind}" points="{path}"/>')

    def box(self, x: float, y: float, wide: float, high: float, look: str) -> None:
        """A rectangle with attributes as given."""
        self.add(f'<rect x="{at(x)}" y="{at(y)}" width="{at(wide)}" height="{at(high)}" {look}/>')

    def mark(self, x: float, y: float, series: int, size: float = 4.5) -> None:
        """The shape of a series, which needs no colour."""
        look, shape = f"mark k{series % SERIES}", (series + 2 * (series // SERIES)) % SERIES
        if shape == 0:
            self.add(f'<circle class="{look}" cx="{at(x)}" cy="{at(y)}" r="{at(size)}"/>')
            return
        self.area([(x + size * dx, y + size * dy) for dx, dy in _shape(shape)], look)

    def tip(self, x: float, y: float, said: str, size: float = 8) -> None:
        """Words that are shown when a pointer rests here."""
        self.add(
            f'<circle cx="{at(x)}" cy="{at(y)}" r="{at(size)}" fill-opacity="0">'
            f"<title>{escape(said)}</title></circle>"
        )

    def done(
        self, title: str, head: Sequence[str], every: Callable[[], Rows], brief: Rows = ()
    ) -> Chart:
        """The chart; its title is what a screen reader says."""
        start = (
            f'<svg class="chart" viewBox="0 0 {at(self.width)} {at(self.height)}" role="img"'
            f' aria-label="{escape(title)}">'
        )
        return Chart(title, start + "".join(self.marks) + "</svg>", head, every, brief)


def dash_of(series: int) -> str:
    """The dash of a series: in every round of colours another one."""
    return DASHES[(series + series // SERIES) % SERIES]


def _shape(n: int) -> list[tuple[float, float]]:
    """Corners of a mark, about a unit in size."""
    if n == 1:
        return [(-1, -1), (1, -1), (1, 1), (-1, 1)]
    if n == 2:
        return [(0, -1.3), (1.2, 1), (-1.2, 1)]
    if n == 3:
        return [(0, -1.4), (1.4, 0), (0, 1.4), (-1.4, 0)]
    if n == 4:
        return [(0, 1.3), (1.2, -1), (-1.2, -1)]
    if n == 5:
        w = 0.45
        return [
            *((-w, -1.3), (w, -1.3), (w, -w), (1.3, -w), (1.3, w), (w, w)),
            *((w, 1.3), (-w, 1.3), (-w, w), (-1.3, w), (-1.3, -w), (-w, -w)),
        ]
    points = 5 if n == 6 else 6
    turns = np.arange(2 * points) * np.pi / points - np.pi / 2
    sizes = np.where(np.arange(2 * points) % 2 == 0, 1.5, 0.7)
    return [(float(r * np.cos(a)), float(r * np.sin(a))) for r, a in zip(sizes, turns, strict=True)]


def axes(drawing: Drawing, across: Scale, up: Scale, names: tuple[str, str]) -> None:
    """Grid, ticks and the names of both axes with their units."""
    for tick in up.ticks():
        drawing.line([(across.start, up(tick)), (across.end, up(tick))], "grid")
        drawing.text(across.start - 6, up(tick) + 4, number(tick), anchor="end", kind="quiet")
    whole = across.low == int(across.low) and across.high == int(across.high)
    for tick in across.ticks(8, whole=whole):
        drawing.line([(across(tick), up.start), (across(tick), up.start + 4)], "axis")
        drawing.text(across(tick), up.start + 17, number(tick), anchor="middle", kind="quiet")
    drawing.line([(across.start, up.start), (across.end, up.start)], "axis")
    middle = (across.start + across.end) / 2
    drawing.text(middle, up.start + 34, names[0], anchor="middle")
    drawing.text(across.start - 48, up.end - 10, names[1])


def legend(drawing: Drawing, names: Sequence[str], x: float, y: float) -> float:
    """Names with their line and mark, in rows; how far down they go."""
    left = place = x
    for n, name in enumerate(names):
        said = cut(name)
        wide = 44 + sum(12 if ord(each) > 0x2E80 else 7 for each in said)
        if place + wide > drawing.width and place > left:
            place, y = left, y + 18
        look = f"line k{n % SERIES}"
        drawing.line([(place, y - 4), (place + 26, y - 4)], look, dash_of(n))
        drawing.mark(place + 13, y - 4, n, 3.5)
        drawing.text(place + 31, y, said)
        place += wide
    return y
