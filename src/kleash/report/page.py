"""A document as one HTML file: no JavaScript, nothing fetched, light and dark, good on paper."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from markupsafe import Markup, escape

from kleash.report.charts import STYLE
from kleash.report.parts import Cell, Document, Part, Section, clean, text_of

if TYPE_CHECKING:
    from jinja2 import Template

TEMPLATES = Path(__file__).parent / "templates"
CSS = (TEMPLATES / "page.css").read_text(encoding="utf-8")
LONG = 28  # characters of a cell among numbers before its text may be broken


@lru_cache(maxsize=65_536)
def text(said: str) -> Markup:
    """A text, which is never markup, whatever it holds."""
    return escape(clean(said))


def body(rows: Sequence[Sequence[Cell]], left: int) -> Markup:
    """The rows of a table: words in the first `left` columns, long texts not set like them."""
    made = []
    for row in rows:
        made.append("<tr>")
        for at, cell in enumerate(row):
            kind = "w" if at < left else "t" if len(text_of(cell)) > LONG else ""
            made.append(
                f'<td class="{kind}">{_cell(cell)}</td>' if kind else f"<td>{_cell(cell)}</td>"
            )
        made.append("</tr>\n")
    return Markup("".join(made))


def _cell(cell: Cell) -> str:
    if isinstance(cell, str):
        return text(cell)
    if cell.drawing:
        return cell.drawing  # made by kleash.report.charts
    return f"<strong>{text(cell.text)}</strong>" if cell.strong else text(cell.text)


def kind_of(part: Part) -> str:
    """What a template asks for a part by."""
    return type(part).__name__


@cache
def _template(name: str) -> Template:
    """Compiled once: a report has two pages."""
    from jinja2 import Environment, FileSystemLoader

    world = Environment(autoescape=True, finalize=_said, loader=FileSystemLoader(TEMPLATES))
    world.globals |= {"body": body, "kind_of": kind_of}
    return world.get_template(name)


def _said(value: object) -> object:
    return text(value) if type(value) is str else value


def html_of(document: Document) -> str:
    """The whole report."""
    style = Markup(STYLE + CSS.replace("\n", ""))
    return _template("page.html").render(document=document, style=style)


def fragments(sections: list[Section], as_table: str) -> Markup:
    """Sections alone, for a page that has a head of its own."""
    document = Document("", "", sections, as_table=as_table)
    return Markup(_template("sections.html").render(document=document))  # escaped by the template
