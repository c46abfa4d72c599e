"""The verb `compare`: sources in, one screen out; or JSON, Markdown, HTML."""

from __future__ import annotations

import atexit
import gc
import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kleash.cli.console import AsJson, Named, On, Unit, language_of, place_to_write
from kleash.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kleash.compare.comparison import Comparison
    from kleash.compare.read import Source
    from kleash.report.words import Language


def compare(  # noqa: PLR0913  # one for each option
    sources: Annotated[
        list[Path] | None, typer.Argument(help="Logs, folders or reports of runs.")
    ] = None,
    on: On = "",
    name: Named = None,
    baseline: Annotated[str, typer.Option(help="The arm to compare with.")] = "",
    margin: Annotated[
        float | None, typer.Option(help="The gap that would matter; fractions for accuracy.")
    ] = None,
    unit: Unit = None,
    effect: Annotated[str, typer.Option(metavar="KEY", help="What this one setting did.")] = "",
    as_json: AsJson = False,
    md: Annotated[
        Path | None, typer.Option(help="Write its page as Markdown.", callback=place_to_write)
    ] = None,
    page: Annotated[
        Path | None, typer.Option("--html", help="Write its page.", callback=place_to_write)
    ] = None,
    lang: Annotated[str, typer.Option(help="zh or en; else the locale's, else theirs.")] = "",
) -> None:
    """Compare runs from any tool: verdict, why, and what to run next.

    \b
    kleash compare wandb/run-1 wandb/run-2 --on reward
    kleash compare report.md logs/ --baseline 0.12 --margin 0.01 --lang zh
    kleash compare --name "no KL=a/console.log" --name "KL 0.01=b/console.log"
    kleash compare runs.csv --effect lr  (of one setting, where runs differ in several)
    """
    _start_lean()
    from kleash.compare.comparison import Wish
    from kleash.compare.comparison import compare as compared

    of_arms = bool(baseline or margin is not None or md or page)
    if effect and of_arms:
        raise ConfigError("of --effect only --on, --name, --unit, --json, --lang can be asked")
    told = as_their_studies(sources or (), name or ())
    language = language_of(lang, told)
    if effect:
        _tell_effect(effect, told, on, unit or (), language, as_json=as_json)
        return
    found = compared(told, Wish(on, baseline, margin, shortly=not as_json, units=tuple(unit or ())))
    from kleash.report import screen
    from kleash.report.plain import plain

    if md or page:
        _pages(told, found, (md, page), language)
    if as_json:
        print(json.dumps(plain(found, language), ensure_ascii=False))
    else:
        print(screen.terminal(found, language, _columns()))


def _tell_effect(
    key: str,
    told: Sequence[Source],
    on: str,
    units: Sequence[str],
    language: Language,
    *,
    as_json: bool,
) -> None:
    from kleash.compare.attribution import effect_of
    from kleash.report.words import attribution_screen as screen

    found = effect_of(key, told, on, units)
    if as_json:
        print(json.dumps(screen.plain(found, language), ensure_ascii=False, default=str))
    else:
        print(screen.terminal(found, language, _columns()))


def _pages(
    told: Sequence[Source],
    found: Comparison,
    files: tuple[Path | None, Path | None],
    lang: Language,
) -> None:
    """The answer as the page that `kleash report` makes of the same sources."""
    from kleash.report import html_of, markdown_of, of_sources, put, short_page

    names = [source.name or Path(source.path).name for source in told]
    whole = short_page(of_sources(found, ", ".join(names), lang))
    for file, written in zip(files, (markdown_of, html_of), strict=True):
        if file is not None:
            put(file, written(whole).encode())


def as_their_studies(paths: Sequence[Path], named: Sequence[str] = ()) -> list[Source]:
    """Every path, read as what it is: of a study what its report compares."""
    from kleash.compare.read.given import ordered, read_given

    if not any((path / "study.toml").is_file() for path, _ in ordered(paths, named)):
        return read_given(paths, named)
    from kleash.study.results.sources import read_sources

    return read_sources(paths, named)


def _start_lean() -> None:
    """In a process of its own: no threads for small products, no garbage sought at either end.

    Threads that wait for work cost CPU, a thousand classes being made are not garbage, and what is
    there when the process ends goes with it.
    """
    if "numpy" not in sys.modules:
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
        gc.set_threshold(1_000_000)
        atexit.register(gc.freeze)


def _columns() -> int:
    import shutil

    return max(40, min(160, shutil.get_terminal_size((100, 24)).columns))
