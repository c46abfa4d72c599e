"""Which sections a report has; a study's folder and sources as documents, and as files."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from kleash.report import (
    answer,
    choices,
    csv_tables,
    curves,
    document_tables,
    ending,
    gaps,
)
from kleash.report.figures import put
from kleash.report.markdown import markdown_of
from kleash.report.material import Material, of_study
from kleash.report.page import html_of
from kleash.report.parts import Document, Part, Section
from kleash.report.words import Language
from kleash.study.results import Results

Sections = Mapping[str, Callable[[Material], list[Part]]]

PAGE: Sections = {
    "verdict": answer.verdict,
    "limits": ending.limits,
    "expectations": ending.expectations,
    "next": ending.next_steps,
    "gaps": gaps.gaps,
    "frontier": choices.frontier_chart,
    "curves": curves.main_curves,
    "comparisons": gaps.comparisons,
    "files": csv_tables.files,
}
"""The page: the answer, and what a reader of it asks next."""
FOLDED = ("gaps", "frontier", "curves", "comparisons", "files")
TABLES: Sections = {
    "verdict": answer.verdict,
    "limits": ending.limits,
    "matrix": document_tables.matrix,
    "gaps": gaps.gaps,
    "frontier": choices.frontier_chart,
    "scoreboard": gaps.scoreboard,
    "curves": curves.curves,
    "epochs": curves.epochs,
    "steps": curves.steps,
    "dynamics": curves.dynamics,
    "how": gaps.how,
    "efficiency": document_tables.efficiency,
    "settings": document_tables.settings,
    "next": ending.next_steps,
    "provenance": document_tables.provenance,
}


def short_page(made: Material) -> Document:
    """What a stranger reads: the answer first, all else folded or in files."""
    whole = Document(answer.question(made), made.language, sections_of(made, PAGE))
    whole.as_table, whole.facts = made.say("as_table"), answer.facts(made)
    return whole


def tables_of(made: Material) -> Document:
    """The tables of a report written by hand: all sections that have something to say."""
    title, contents = made.say("title", name=made.name), made.say("contents")
    sections = sections_of(made, TABLES)
    return Document(title, made.language, sections, contents, made.say("as_table"))


def sections_of(made: Material, sections: Sections) -> list[Section]:
    """Those that have something to say."""
    found = [
        Section(key, made.heading(key), parts_of(made), folded=key in FOLDED and sections is PAGE)
        for key, parts_of in sections.items()
    ]
    return [each for each in found if each.parts]


def write(found: Results, *, language: Language | str = "") -> list[Path]:
    """Markdown and HTML in the study's folder; `recommended.toml` if an arm is.

    Beside them `tables/*.csv` with every number, and `items.html`. Making a report twice
    changes nothing.
    """
    made = study_material(found, language)
    folder, whole = found.folder, short_page(made)
    texts = {"report.md": markdown_of(whole), "report.html": html_of(whole)}
    optional = {"recommended.toml": gaps.recommended_toml(made), "items.html": items_page(made)}
    for name, text in optional.items():
        if text:
            texts[name] = text.rstrip() + "\n"
        else:
            (folder / name).unlink(missing_ok=True)
    (folder / "tables").mkdir(exist_ok=True)
    tables = {f"tables/{name}": text for name, text in csv_tables.texts(made, folder)}
    for name, text in (texts | tables).items():
        put(folder / name, text.encode())
    return [folder / name for name in texts if name != "items.html"]


def items_page(made: Material) -> str:
    """The items on which arms disagree, with their pictures, as a page of its own."""
    name, parts = made.heading("items"), choices.items(made)
    if not parts:
        return ""
    return html_of(Document(made.name, made.language, [Section("items", name, parts)], facts=name))


def study_material(found: Results, language: Language | str = "") -> Material:
    """A study, to be told in the language asked for or its author's."""
    return of_study(found, chosen_language(found, language))


def chosen_language(found: Results, asked: str) -> Language:
    """As asked; else that of what the author wrote the study is for."""
    if asked:
        return "zh" if asked == "zh" else "en"
    chinese = any("\u4e00" <= each <= "\u9fff" for each in found.file.about)
    return "zh" if chinese else "en"
