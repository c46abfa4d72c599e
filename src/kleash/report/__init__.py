"""A report: the answer first, every number in a table, in both languages. Records in, text out.

A section is one function that returns parts; one without parts is left out. `PAGE` is the order of
the page, `TABLES` that of the tables that reports written by hand have. Nothing here reads a clock:
the same records make the same bytes. Three writers say a document, to Markdown, HTML and text.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from kleash.rooms import make_callable

if TYPE_CHECKING:
    from kleash.report.documents import (
        FOLDED,
        PAGE,
        TABLES,
        short_page,
        study_material,
        tables_of,
        write,
    )
    from kleash.report.figures import put, write_figures
    from kleash.report.markdown import markdown_of
    from kleash.report.material import Material, of_sources, of_study
    from kleash.report.page import html_of
    from kleash.report.parts import Document
    from kleash.report.terminal import terminal_of

__all__ = [
    "FOLDED",
    "PAGE",
    "TABLES",
    "Document",
    "Material",
    "html_of",
    "markdown_of",
    "of_sources",
    "of_study",
    "put",
    "short_page",
    "study_material",
    "tables_of",
    "terminal_of",
    "write",
    "write_figures",
]
ELSEWHERE = {
    "Document": "parts",
    "Material": "material",
    "html_of": "page",
    "markdown_of": "markdown",
    "of_sources": "material",
    "of_study": "material",
    "put": "figures",
    "terminal_of": "terminal",
    "write_figures": "figures",
}
"""What is in another file than documents.py."""
make_callable(__name__)


def __getattr__(name: str) -> Any:
    """Loaded when asked for: a comparison needs the writers alone, and starts without recipes."""
    if name not in __all__:
        raise AttributeError(name)
    return getattr(import_module(f"kleash.report.{ELSEWHERE.get(name, 'documents')}"), name)
