"""A report: verdict first, every number with its place, in both languages. Records in, text out.

A section is one function that returns parts; one without parts is left out. `PAGE` is the order of
the page, `SECTIONS` that of the tables of a document. Nothing here reads a clock: the same records
make the same bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from kleash.catalogue import Language
from kleash.charts import Chart
from kleash.report import (
    answer,
    choices,
    csv_tables,
    curves,
    efficiency,
    ending,
    gaps,
    opening,
    study_tables,
    told,
    tuned,
)
from kleash.report.figures import put, write_figures
from kleash.report.links import Links
from kleash.report.markdown import markdown
from kleash.report.material import Material, of_sources, of_study
from kleash.report.page import page
from kleash.report.parts import Document, Figure, Part, Section
from kleash.results import Results
from kleash.runs import read_json, write_json

__all__ = [
    "Document",
    "Material",
    "curves_of",
    "document",
    "html_of",
    "markdown_of",
    "of_sources",
    "put",
    "study_material",
    "write",
    "write_figures",
]

PAGE: dict[str, Callable[[Material], list[Part]]] = {
    "verdict": answer.verdict,
    "limits": opening.limits,
    "expectations": study_tables.expectations,
    "next": ending.next_steps,
    "changes": ending.changes,
    "notes": ending.notes,
    "gaps": gaps.gaps,
    "frontier": choices.frontier_chart,
    "curves": curves.main_curves,
    "comparisons": answer.comparisons,
    "files": csv_tables.files,
}
"""The page: the answer, and what a reader of it asks next."""
FOLDED = ("gaps", "frontier", "curves", "comparisons", "files")
SECTIONS: dict[str, Callable[[Material], list[Part]]] = {
    "verdict": answer.verdict,
    "limits": opening.limits,
    "matrix": told.matrix,
    "baselines": study_tables.baselines,
    "gaps": gaps.gaps,
    "scoreboard": gaps.scoreboard,
    "frontier": choices.score_against_kl,
    "tuning": tuned.tuning,
    "curves": curves.curves,
    "epochs": curves.epochs,
    "steps": curves.steps,
    "dynamics": curves.dynamics,
    "stability": ending.stability,
    "speed": gaps.speed,
    "efficiency": efficiency.efficiency,
    "demonstrations": choices.demonstrations,
    "settings": told.settings,
    "expectations": study_tables.expectations,
    "recommendation": gaps.recommendation,
    "notes": ending.notes,
    "items": choices.items,
    "changes": ending.changes,
    "next": ending.next_steps,
    "metrics": curves.metrics,
    "provenance": ending.provenance,
}


def short_page(made: Material) -> Document:
    """What a stranger reads: the answer first, all else folded or in files."""
    sections = [
        Section(key, made.heading(key), tell(made), folded=key in FOLDED)
        for key, tell in PAGE.items()
    ]
    told = [each for each in sections if each.parts]
    words = made.say("as_table"), answer.facts(made)
    return Document(answer.question(made), made.language, told, "", *words, whole=False)


def document(made: Material) -> Document:
    """The tables of a document written by hand: all sections that have something to say."""
    sections = [Section(key, made.heading(key), tell(made)) for key, tell in SECTIONS.items()]
    told = [each for each in sections if each.parts]
    words = made.say("contents"), made.say("as_table")
    return Document(made.say("title", name=made.name), made.language, told, *words)


def markdown_of(made: Material, folder: Path, whole: Document | None = None) -> str:
    """The report as Markdown, to stand in a folder."""
    return markdown(whole or document(made), Links(folder))


def html_of(made: Material, folder: Path, whole: Document | None = None) -> str:
    """The report as a page, to stand in a folder."""
    return page(whole or document(made), Links(folder))


def curves_of(made: Material) -> list[Chart]:
    """The curves of a report as charts."""
    return [part.chart for part in curves.curves(made) if isinstance(part, Figure)]


def write(found: Results, *, language: Language | str = "") -> list[Path]:
    """`report.md` and `report.html` in the study's folder; `recommended.toml` if an arm is.

    Beside them `tables/*.csv` with every number, and `items.html`. `notes.md` is the author's own
    and only read. `report.json` keeps what this report says and what the one before said; making a
    report twice changes neither.
    """
    made = study_material(found, language)
    folder, whole = found.folder, short_page(made)
    texts = {
        "report.md": markdown_of(made, folder, whole),
        "report.html": html_of(made, folder, whole),
    }
    optional = {"recommended.toml": gaps.recommended_toml(made), "items.html": items_page(made)}
    for name, text in optional.items():
        if text:
            texts[name] = text.rstrip() + "\n"
        else:
            (folder / name).unlink(missing_ok=True)
    (folder / "tables").mkdir(exist_ok=True)
    for name, text in (*texts.items(), *_tables(made)):
        put(folder / name, text.encode())
    write_json(folder / "report.json", {"now": ending.snapshot(made), "before": made.before})
    return [folder / name for name in texts if name != "items.html"]


def _tables(made: Material) -> Iterator[tuple[str, str]]:
    assert made.study is not None
    for name, text in csv_tables.texts(made, made.study.folder):
        yield f"tables/{name}", text


def items_page(made: Material) -> str:
    """The items on which arms disagree, with their pictures, as a page of its own."""
    assert made.study is not None
    parts = choices.items(made)
    if not parts:
        return ""
    name = made.heading("items")
    sections = [Section("items", name, parts)]
    whole = Document(made.name, made.language, sections, "", "", name, whole=False)
    return html_of(made, made.study.folder, whole)


def study_material(found: Results, language: Language | str = "") -> Material:
    """A study with its author's notes and what its last report said."""
    made = of_study(found, chosen_language(found, language))
    notes, kept = found.folder / "notes.md", found.folder / "report.json"
    if notes.is_file():
        made.notes = notes.read_text(encoding="utf-8", errors="replace")
    if kept.is_file():
        last = read_json(kept)
        same = last["now"] == ending.snapshot(made)
        made.before = last["before"] if same else last["now"]
    return made


def chosen_language(found: Results, asked: str) -> Language:
    """As asked; else that of what the author wrote the study is for."""
    if asked:
        return "zh" if asked == "zh" else "en"
    chinese = any("\u4e00" <= each <= "\u9fff" for each in found.file.about)
    return "zh" if chinese else "en"
