"""A report: the answer first, every number in a table, in both languages. Records in, text out.

A section is one function that returns parts; one without parts is left out. `PAGE` is the order of
the page, `TABLES` that of the tables that reports written by hand have. Nothing here reads a clock:
the same records make the same bytes. Three writers say a document, to Markdown, HTML and text.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from kleash.rooms import make_callable

HOMES = {
    "documents": ("FOLDED", "PAGE", "TABLES", "short_page", "study_material", "tables_of", "write"),
    "figures": ("put", "write_figures"),
    "markdown": ("markdown_of",),
    "material": ("Material", "of_sources", "of_study"),
    "page": ("html_of",),
    "terminal": ("terminal_of",),
}
make_callable(__name__)


def __getattr__(name: str) -> Any:
    """Loaded when asked for: a comparison needs the writers alone, and starts without recipes."""
    for home, names in HOMES.items():
        if name in names:
            return getattr(import_module(f"kleash.report.{home}"), name)
    raise AttributeError(name)
