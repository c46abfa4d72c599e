"""Charts as our own SVG: readable in black and white, with the data as a table beside each.

`svg` draws, `forms` makes charts; every text comes from the caller. A chart needs no JavaScript
and no font: colours follow the page by CSS variables, and shapes and dashes say what colours do.
"""

from __future__ import annotations

from kleash.report.charts.forms import (
    Dot,
    Line,
    Spot,
    blocks,
    frontier,
    lines,
    whisker,
    whiskers,
)
from kleash.report.charts.svg import STYLE, Chart

__all__ = [
    "STYLE",
    "Chart",
    "Dot",
    "Line",
    "Spot",
    "blocks",
    "frontier",
    "lines",
    "whisker",
    "whiskers",
]
