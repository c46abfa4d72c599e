"""A report: verdict first, every number with its place, in both languages. Records in, text out.

A section is one function that returns parts; `SECTIONS` is their order, and a section without parts
is left out. Nothing here reads a clock: the same records make the same bytes.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from kleash.catalogue import Language
from kleash.report import opening, study_tables
from kleash.report.links import Links
from kleash.report.markdown import markdown
from kleash.report.material import Material, of_sources, of_study
from kleash.report.page import page
from kleash.report.parts import Document, Part, Section
from kleash.results import Results

__all__ = ["Document", "Material", "document", "html_of", "markdown_of", "of_sources", "write"]

SECTIONS: dict[str, Callable[[Material], list[Part]]] = {
    "verdict": opening.verdict,
    "limits": opening.limits,
    "summary": study_tables.summary,
    "matrix": study_tables.matrix,
    "baselines": study_tables.baselines,
    "expectations": study_tables.expectations,
    "agreement": study_tables.agreement_table,
    "settings": study_tables.settings,
    "provenance": study_tables.used,
}


def document(made: Material) -> Document:
    """All sections that have something to say."""
    sections = [Section(key, made.heading(key), tell(made)) for key, tell in SECTIONS.items()]
    title = made.say("title", name=made.name)
    return Document(title, made.language, [each for each in sections if each.parts])


def markdown_of(made: Material, folder: Path) -> str:
    """The report as Markdown, to stand in a folder."""
    return markdown(document(made), Links(folder))


def html_of(made: Material, folder: Path) -> str:
    """The report as a page, to stand in a folder."""
    words = (made.say("contents"), made.say("as_table"))
    return page(document(made), Links(folder), words)


def write(found: Results, *, language: Language | str = "") -> list[Path]:
    """`report.md` and `report.html` in the study's folder."""
    made = of_study(found, chosen_language(found, language))
    written = []
    for name, text in (("report.md", markdown_of), ("report.html", html_of)):
        path = found.folder / name
        put(path, text(made, found.folder))
        written.append(path)
    return written


def put(path: Path, text: str) -> None:
    """Write at once: a reader sees the old file or the new one."""
    passing = path.with_name(f".{path.name}.tmp")
    passing.write_text(text, encoding="utf-8")
    passing.replace(path)


def chosen_language(found: Results, asked: str) -> Language:
    """As asked; else that of what the author wrote the study is for."""
    if asked:
        return "zh" if asked == "zh" else "en"
    chinese = any("\u4e00" <= each <= "\u9fff" for each in found.file.about)
    return "zh" if chinese else "en"
