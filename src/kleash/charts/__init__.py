"""Charts as our own SVG: readable in black and white, with the data as a table beside each.

`svg` draws, the other files make charts; every text comes from the caller. A chart needs no
JavaScript and no font: colours follow the page by CSS variables, and shapes and dashes say the same
as colours do.
"""

from __future__ import annotations

from kleash.charts.svg import STYLE, Chart

__all__ = ["STYLE", "Chart"]
