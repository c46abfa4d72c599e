"""The verb `attribute`: which factor did it, from whatever runs there are."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from kleash.cli.compare import _columns as columns
from kleash.cli.compare import _start_lean as start_lean
from kleash.cli.console import AsJson, Named, On, Unit, language_of


def attribute(
    sources: Annotated[
        list[Path] | None,
        typer.Argument(help="Logs, folders or tables of runs; folders of studies."),
    ] = None,
    on: On = "",
    name: Named = None,
    factor: Annotated[
        list[str] | None,
        typer.Option(help="Only this setting is a factor; may be given several times."),
    ] = None,
    unit: Unit = None,
    as_json: AsJson = False,
    lang: Annotated[str, typer.Option(help="zh or en; else the locale's, else theirs.")] = "",
) -> None:
    """Say which setting did it, from old runs that differ in several; what is aliased is refused.

    \b
    kleash attribute runs.csv --on accuracy
    kleash attribute wandb/run-1 wandb/run-2 wandb/run-3 --lang zh
    kleash attribute runs.csv --factor lr --factor kl_coef --json
    """
    start_lean()
    from kleash.attribution import attribute as attributed
    from kleash.catalogue import attribution_screen as screen
    from kleash.results.sources import read_sources

    told = read_sources(sources or (), name or ())
    language = language_of(lang, told)
    found = attributed(told, on, factor or (), unit or ())
    if as_json:
        print(json.dumps(screen.plain(found, language), ensure_ascii=False, default=str))
    else:
        print(screen.terminal(found, language, columns()))
