"""A report: verdict first, every number with its place, in both languages. Records in, text out.

A section is one function that returns parts; `SECTIONS` is their order, and a section without parts
is left out. Nothing here reads a clock: the same records make the same bytes.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from kleash.catalogue import Language
from kleash.charts import Chart
from kleash.report import (
    choices,
    curves,
    efficiency,
    ending,
    factors,
    gaps,
    opening,
    presets,
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

SECTIONS: dict[str, Callable[[Material], list[Part]]] = {
    "verdict": opening.verdict,
    "limits": opening.limits,
    "matrix": told.matrix,
    "baselines": study_tables.baselines,
    "gaps": gaps.gaps,
    "summary": study_tables.summary,
    "wins": gaps.wins,
    "scoreboard": gaps.scoreboard,
    "factors": factors.factors,
    "presets": presets.presets,
    "frontier": choices.score_against_kl,
    "proxy": tuned.proxy,
    "matched": tuned.matched,
    "tuning": tuned.tuning,
    "curves": curves.curves,
    "epochs": curves.epochs,
    "steps": curves.steps,
    "dynamics": curves.dynamics,
    "stability": ending.stability,
    "speed": gaps.speed,
    "efficiency": efficiency.efficiency,
    "agreement": choices.agreement,
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


def document(made: Material) -> Document:
    """All sections that have something to say."""
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

    `notes.md` there is the author's own and only read. `report.json` keeps what this report says
    and what the one before said; making a report twice changes neither.
    """
    made = study_material(found, language)
    folder, whole, links = found.folder, document(made), Links(found.folder)
    texts = {
        "report.md": markdown(whole, links),
        "report.html": page(whole, links),
    }
    if told := gaps.recommended_toml(made):
        texts["recommended.toml"] = told + "\n"
    else:
        (folder / "recommended.toml").unlink(missing_ok=True)
    for name, text in texts.items():
        put(folder / name, text.encode())
    write_json(folder / "report.json", {"now": ending.snapshot(made), "before": made.before})
    return [folder / name for name in texts]


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
