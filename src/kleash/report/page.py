"""A report as one HTML file: no JavaScript, nothing fetched, light and dark, good on paper."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any

from markupsafe import Markup, escape

from kleash.charts import STYLE
from kleash.report.links import Links
from kleash.report.markdown import clean
from kleash.report.parts import Cell, Document, Line, Part, Section, cells, text_of

if TYPE_CHECKING:
    from jinja2 import Template

CSS = """
*{box-sizing:border-box}html{color-scheme:light dark}
body{font:16px/1.6 system-ui,'Noto Sans','Noto Sans CJK SC','PingFang SC','Microsoft YaHei',
sans-serif;color:var(--ink);background:var(--paper);max-width:76rem;margin:0 auto;
padding:1rem clamp(.8rem,3vw,2.5rem) 4rem;overflow-wrap:anywhere}
h1{font-size:1.7rem;line-height:1.25;margin:.6em 0 .4em}
h2{font-size:1.25rem;margin:2.2em 0 .5em;padding-top:.5em;border-top:1px solid var(--grid)}
p,li{max-width:52rem}a{color:inherit;text-decoration:underline;
text-decoration-color:var(--quiet);text-decoration-style:dotted;text-underline-offset:.2em}
a:hover,a:focus-visible{text-decoration-style:solid}
nav ul{list-style:none;padding:0;margin:.5em 0 1em;display:flex;flex-wrap:wrap;gap:.1rem 1rem;
font-size:.875rem}nav li{max-width:none}
.facts{color:var(--quiet);font-size:.875rem;max-width:none;margin:.2em 0 .8em}
#verdict h2{border:0;font-size:.8rem;margin:0;padding:0;color:var(--quiet)}
.stated{border-left:5px solid var(--k1);padding:.5em 1em;margin:.2em 0 .8em;
background:color-mix(in srgb,var(--k1) 7%,transparent)}.stated p{margin:0;max-width:none}
.stated p:first-child{font-size:1.2rem;font-weight:600}.stated p+p{margin-top:.3em}
.cards{display:grid;grid-template-columns:repeat(auto-fit,minmax(15rem,1fr));gap:.8rem}
.card{border:1px solid var(--grid);border-radius:6px;padding:.5em .9em;font-size:.9rem}
.card h3{font-size:1rem;margin:0 0 .2em}.card p{margin:0 0 .3em}
.card code{font-size:.85rem;background:color-mix(in srgb,var(--quiet) 12%,transparent)}
#verdict table{font-size:.78rem}#verdict th,#verdict td{padding:.2em .4em}
#verdict th,#verdict td.t:last-child{white-space:normal}#verdict td.t{min-width:0}
#verdict td svg{display:block}
#verdict .w{min-width:0}#verdict .cap{margin:.8em 0 .2em}
summary h2{display:inline;border:0;font-size:1.05rem;color:var(--ink)}
.wide{overflow-x:auto;margin:0 0 1.2em}.wide:focus-visible{outline:2px solid var(--k0)}
table{border-collapse:collapse;font-size:.875rem;line-height:1.4}
.cap{color:var(--quiet);font-size:.875rem;margin:1.2em 0 .2em;break-after:avoid}
details .cap{display:none}.below{color:var(--quiet);font-size:.875rem;margin:-.8em 0 1.2em}
th,td{padding:.28em .7em;border-bottom:1px solid var(--grid);text-align:right;
font-variant-numeric:tabular-nums;overflow-wrap:normal;white-space:nowrap}
th{font-weight:600;border-bottom:2px solid var(--quiet);vertical-align:bottom}
.w{text-align:left;white-space:normal;min-width:8em;max-width:24em}td.w{overflow-wrap:anywhere}
.t{white-space:normal;min-width:11em}
@media screen{.wide th:first-child,.wide td:first-child{position:sticky;left:0;
background:var(--paper)}}
@media screen and (max-width:40rem){.wide th:first-child,.wide td:first-child{max-width:9em}}
#limits ul{list-style:none;padding-left:0}#limits li{padding:.15em 0 .15em 1.2em;text-indent:-1.2em}
tbody tr:hover{background:color-mix(in srgb,var(--quiet) 9%,transparent)}
figure{margin:1.4em 0;max-width:46rem}figcaption{font-weight:600;margin-bottom:.3em}
.plot{overflow-x:auto}.plot:focus-visible{outline:2px solid var(--k0)}
.plot svg{width:100%;min-width:36rem;height:auto;display:block}
details{margin:.6em 0}summary{cursor:pointer;color:var(--quiet);font-size:.9rem}
pre,blockquote{background:color-mix(in srgb,var(--quiet) 9%,transparent);margin:1em 0;
padding:.7em 1em;overflow-x:auto;border-radius:4px;white-space:pre-wrap;overflow-wrap:anywhere}
pre{font:.875rem/1.5 ui-monospace,monospace}blockquote{border-left:4px solid var(--grid)}
.gallery{display:grid;grid-template-columns:repeat(auto-fill,minmax(17rem,1fr));gap:1rem;padding:0}
.gallery li{list-style:none;border:1px solid var(--grid);border-radius:6px;padding:.7em;
font-size:.875rem}.gallery img{width:72px;height:72px;float:right;margin-left:.7em;
image-rendering:pixelated;border:1px solid var(--grid)}.gallery p{margin:.15em 0}
@media print{body{max-width:none;padding:0;font-size:10.5pt}nav,.plot+details{display:none}
h2{break-after:avoid}figure,tr,.gallery li{break-inside:avoid}.wide,.plot{overflow:visible}
table{font-size:8pt}th,td{padding:.2em .4em;white-space:normal}.plot svg{min-width:0}}
"""

PLAIN = re.compile(r"[\w .,;:%()/+=#\[\]−—–↑↓-]*", re.ASCII).fullmatch
"""What most cells and addresses hold, and what stays as it is."""
LONG = 28  # characters of a cell among numbers before its text may be broken

MACROS = """
{%- macro table(caption, head, rows, left) -%}
<p class="cap">{{ caption }}</p>
<div class="wide" tabindex="0" role="region" aria-label="{{ caption }}"><table><thead><tr>
{%- for name in head %}<th scope="col"{% if loop.index <= left %} class="w"{% endif %}>
{{- name }}</th>{% endfor %}</tr></thead><tbody>
{{ body(rows, left) }}</tbody></table></div>
{%- endmacro -%}
{%- macro below(part) -%}
{% if part.below %}<p class="below">{{ line(part.below) }}</p>{% endif %}
{%- endmacro -%}
"""
HEAD = """<!doctype html>
<html lang="{{ document.language }}"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{{ document.title }}</title><style>{{ style | safe }}</style></head>
<body><main><h1>{{ document.title }}</h1>
{% if document.facts %}<p class="facts">{{ document.facts }}</p>{% else %}
<nav aria-label="{{ document.contents }}"><ul>
{%- for section in document.sections %}<li><a href="#{{ section.key }}">{{ section.heading }}</a>
</li>{% endfor %}</ul></nav>{% endif %}
"""
SECTIONS = """{% for section in document.sections -%}
<section id="{{ section.key }}">{% if section.folded %}<details><summary>
{%- endif %}<h2>{{ section.heading }}</h2>{% if section.folded %}</summary>{% endif %}
{% for part in section.parts %}{% set kind = kind_of(part) -%}
{% if kind == "Paragraph" %}<p>{{ line(part.line) }}</p>
{% elif kind == "Stated" %}<div class="stated"><p>{{ part.decision }}</p>
{%- if part.why %}<p>{{ part.why }}</p>{% endif %}</div>
{% elif kind == "Cards" %}<div class="cards">{% for card in part.cards %}<div class="card"><h3>
{{- card.heading }}</h3>{% for each in card.lines %}<p>{{ each }}</p>{% endfor %}
{%- if card.code %}<p><code>{{ card.code }}</code></p>{% endif %}</div>{% endfor %}</div>
{% elif kind == "Lines" %}{% set tag = "ol" if part.numbered else "ul" -%}
<{{ tag }}>{% for each in part.lines %}<li>{{ line(each) }}</li>{% endfor %}</{{ tag }}>
{% elif kind == "Table" %}{% if part.folded -%}
<details><summary>{{ part.caption }}</summary>
{{- table(part.caption, part.head, part.rows, part.left) }}{{ below(part) }}</details>
{% else %}{{ table(part.caption, part.head, part.rows, part.left) }}{{ below(part) }}
{% endif %}{% elif kind == "Figure" -%}
<figure><figcaption>{{ line(part.said) }}</figcaption>
<div class="plot" tabindex="0" role="group" aria-label="{{ part.chart.title }}">
{{- part.chart.drawing | safe }}</div>
<details><summary>{{ document.as_table }}</summary>
{{- table(part.chart.title, part.chart.head, part.chart.shown, 1) }}</details></figure>
{% elif kind == "Code" %}<pre>{{ part.text }}</pre>
{% elif kind == "Quoted" %}<blockquote>{{ part.text }}</blockquote>
{% elif kind == "Gallery" %}<ul class="gallery">{% for each in part.entries %}<li>
{%- if each.picture %}<img src="{{ each.picture }}" alt="{{ each.label }}">{% endif -%}
<strong>{{ each.label }}</strong>
{%- for said in each.lines %}<p>{{ line(said) }}</p>{% endfor %}</li>
{% endfor %}</ul>
{% endif %}{% endfor %}{% if section.folded %}</details>{% endif %}</section>
{% endfor %}"""


@lru_cache(maxsize=65_536)
def _escaped(text: str) -> str:
    return text if PLAIN(text) else str(escape(clean(text)))


@dataclass(frozen=True)
class Writer:
    """Cells, lines and rows as HTML. A report has many, and a template is slow at small things."""

    links: Links | None
    """None where numbers are not links."""

    def cell(self, cell: Cell) -> str:
        """A text, escaped, with its link; or its small picture."""
        if isinstance(cell, str):
            return _escaped(cell)
        if cell.drawing:
            return cell.drawing  # made by kleash.charts
        text = _escaped(cell.text)
        if cell.strong:
            text = f"<strong>{text}</strong>"
        where = cell.place
        link = (
            "" if where is None or self.links is None else self.links.address(where)
        )  # quoted: nothing to escape
        return f'<a href="{link}" title="{link}">{text}</a>' if link else text

    def line(self, line: Line) -> Markup:
        """A line."""
        return Markup("".join(map(self.cell, cells(line))))

    def body(self, rows: Sequence[Sequence[Cell]], left: int) -> Markup:
        """The rows of a table: words in the first `left` columns, long texts not set like them."""

        made: list[str] = []
        for row in rows:
            made.append("<tr>")
            for at, cell in enumerate(row):
                if at < left:
                    made.append(f'<td class="w">{self.cell(cell)}</td>')
                elif len(text_of(cell)) > LONG:
                    made.append(f'<td class="t">{self.cell(cell)}</td>')
                else:
                    made.append(f"<td>{self.cell(cell)}</td>")
            made.append("</tr>\n")
        return Markup("".join(made))


@cache
def _template(text: str) -> Template:
    """Compiled once: a report has two pages."""
    from jinja2 import Environment

    return Environment(autoescape=True, keep_trailing_newline=False).from_string(text.strip())


def _rendered(text: str, document: Document, links: Links | None) -> str:
    def kind_of(part: Part) -> str:
        return type(part).__name__

    writer = Writer(links)
    tools: dict[str, Any] = {"line": writer.line, "body": writer.body, "kind_of": kind_of}
    style = STYLE + CSS.replace("\n", "")
    return _template(MACROS + text).render(document=document, style=style, **tools)


def page(document: Document, links: Links) -> str:
    """The whole report."""
    whole = f"{HEAD}{SECTIONS}</main></body></html>"
    return _rendered(whole, document, links if document.whole else None)


def fragments(sections: list[Section], as_table: str) -> Markup:
    """Sections alone, their numbers no links, for a page that has a head of its own."""
    document = Document("", "", sections, "", as_table, whole=False)
    return Markup(_rendered(SECTIONS, document, None))  # escaped by the template
