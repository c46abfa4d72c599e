"""The verb `report`: a study or sources in; Markdown, a page, figures out."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kleash.cli.compare import _columns as columns
from kleash.cli.compare import _start_lean as start_lean
from kleash.cli.compare import as_their_studies
from kleash.cli.console import AsJson, Named, Unit, folder_to_write, language_of, place_to_write
from kleash.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from kleash.report.material import Material
    from kleash.report.parts import Document


def report(  # noqa: PLR0913  # one for each option
    sources: Annotated[
        list[Path] | None,
        typer.Argument(metavar="STUDY|SOURCES…", help="A study's folder, or logs."),
    ] = None,
    name: Named = None,
    lang: Annotated[str, typer.Option(help="zh or en; else the study's, the locale's.")] = "",
    page: Annotated[
        Path | None, typer.Option("--html", help="Write a page.", callback=place_to_write)
    ] = None,
    md: Annotated[
        Path | None, typer.Option(help="Write Markdown.", callback=place_to_write)
    ] = None,
    figures: Annotated[
        Path | None,
        typer.Option(
            help="Write every chart as SVG, PNG and PDF, its data as CSV.", callback=folder_to_write
        ),
    ] = None,
    tables: Annotated[
        bool, typer.Option("--tables", help="All tables of a document instead of the page.")
    ] = False,
    terminal: Annotated[
        bool, typer.Option("--terminal", help="Print it here; no file is written.")
    ] = False,
    unit: Unit = None,
    as_json: AsJson = False,
) -> None:
    """Say what a study or any sources show on one page; every number is in tables/*.csv.

    \b
    kleash report studies/demos-kl             (report.md and report.html in its folder)
    kleash report studies/demos-kl --terminal  (its first screen here)
    kleash report old-report.md --tables       (Markdown, every table)
    kleash report wandb/ logs/ --html out.html --figures figures
    """
    start_lean()
    from kleash.report import short_page, tables_of, write

    if lang not in ("", "zh", "en"):
        raise ConfigError(f"no language {lang!r}: there is zh and en")
    paths = list(sources or ())
    a_study = len(paths) == 1 and not name and (paths[0] / "study.toml").is_file()
    if as_json:
        print_json(paths[0] if a_study else None)
        return
    if a_study and not (page or md or figures or tables or terminal):
        from kleash.study.results import results

        for path in write(results(paths[0]), language=lang):
            print(path)
        return
    made = of_study(paths[0], lang) if a_study else of_logs(paths, lang, name or (), unit or ())
    whole = tables_of(made) if tables else short_page(made)
    write_or_print(whole, {"md": md, "html": page}, terminal=terminal, silent=bool(figures))
    if figures:
        draw(made, figures)


def write_or_print(
    whole: Document, files: Mapping[str, Path | None], *, terminal: bool, silent: bool
) -> None:
    """A document into the files that were asked for; else here, unless something else was asked."""
    from kleash.report import html_of, markdown_of, put, terminal_of

    for kind, file in files.items():
        if file is not None:
            text = markdown_of(whole) if kind == "md" else html_of(whole)
            put(file, text.encode())
            print(file)
    if terminal:
        print(terminal_of(whole, columns()))
    elif not (silent or any(files.values())):
        print(markdown_of(whole), end="")


def print_json(study: Path | None) -> None:
    """A study's results for machines."""
    from kleash.study.results import results
    from kleash.study.results.summary import plain

    if study is None:
        raise ConfigError("--json is of one study; of logs kleash compare gives it")
    print(json.dumps(plain(results(study)), ensure_ascii=False))


def draw(made: Material, folder: Path) -> None:
    """Every chart as files."""
    from kleash.report import tables_of, write_figures

    written, missing = write_figures(tables_of(made), folder)
    for path in written:
        print(path)
    if missing:
        print(missing, file=sys.stderr)


def of_study(folder: Path, lang: str) -> Material:
    """A study, to be written somewhere else."""
    from kleash.report.documents import study_material
    from kleash.study.results import results

    return study_material(results(folder), lang)


def of_logs(
    paths: Sequence[Path], lang: str, named: Sequence[str] = (), units: Sequence[str] = ()
) -> Material:
    """Sources and what follows from them."""
    from kleash.compare.comparison import Wish, compare
    from kleash.report.material import of_sources

    sources = as_their_studies(paths, named)
    names = [source.name or Path(source.path).name for source in sources]
    language = language_of(lang, sources)
    found = compare(sources, Wish(shortly=True, units=tuple(units)))
    return of_sources(found, ", ".join(names), language)
