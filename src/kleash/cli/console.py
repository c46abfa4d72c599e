"""What the verbs share: where results and progress go, common flags."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kleash.errors import ConfigError

if TYPE_CHECKING:
    from rich.console import Console

    from kleash.compare.read import Source
    from kleash.report.words import Language

Keys = Annotated[list[str] | None, typer.Argument(metavar="[KEY=VALUE]...", show_default=False)]
AsJson = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]
On = Annotated[
    str,
    typer.Option(
        help="The metric to judge by; one of your own as +NAME (higher is better), -NAME."
    ),
]
Named = Annotated[
    list[str] | None,
    typer.Option("--name", metavar="NAME=PATH", help="Call a path so; may be given several times."),
]
Unit = Annotated[
    list[str] | None,
    typer.Option(
        metavar="METRIC=percent|fraction", help="The unit of a share, where its values may be both."
    ),
]
Lang = Annotated[str, typer.Option(help="zh or en; else the locale's.")]
Device = Annotated[str, typer.Option(help="Where the policy computes: cpu, cuda, cuda:1.")]


def told(language: Language, code: str, **facts: object) -> str:
    """A line of run.toml, its facts whole: an error that is cut helps nobody."""
    from kleash.report.words import CODES, LANGUAGES

    return CODES[f"run.{code}"][LANGUAGES.index(language)].format(**facts)


def word(language: Language, kind: str, name: str) -> str:
    """A word for a name of ours, such as `at` and `grpo`; itself where there is none."""
    from kleash.report.words import CODES

    return told(language, f"{kind}.{name}") if f"run.{kind}.{name}" in CODES else name


def language_of(asked: str, sources: Sequence[Source]) -> Language:
    """As asked; else the locale's, where it is one of ours; else that of most sources."""
    if asked:
        if asked not in ("zh", "en"):
            raise ConfigError(f"no language {asked!r}: there is zh and en")
        return "zh" if asked == "zh" else "en"
    for name in ("LC_ALL", "LC_MESSAGES", "LANG"):
        value = os.environ.get(name, "")
        if value and value.split(".")[0] not in ("C", "POSIX"):
            return "zh" if value.startswith("zh") else "en"
    chinese = sum(source.language == "zh" for source in sources)
    return "zh" if 2 * chinese > len(sources) else "en"


EACH_TIME = {"endpoint"}
"""What is told whenever it happens: somebody does not answer, and somebody does again."""


def noticed(language: Language, run: str, finding: Mapping[str, Any]) -> str:
    """What a guard of a run says, which is English; else as a report says it, where it does."""
    from kleash.report.words import CODES, say

    code, at = f"run-{finding['code']}", f"step {finding.get('step', 0)}"
    if language != "en" and code in CODES:
        return say(code, {"arms": run, "count": 1, "of": 1, "at": at}, language)
    return told(language, "noticed", job=run, message=finding["message"])


def stderr() -> Console:
    """Where progress is shown."""
    from rich.console import Console

    return Console(stderr=True)


def stdout() -> Console:
    """Where results go; wide where no terminal says how wide it is."""
    from rich.console import Console

    return Console(width=None if sys.stdout.isatty() else 120)


def place_to_write(path: Path | None) -> Path | None:
    """A place as it was given; one line at once where nothing can be written there."""
    if path is not None:
        above = next(each for each in path.absolute().parents if each.exists())
        if not above.is_dir():
            raise ConfigError(f"{path} cannot be written: {above} is a file, not a folder")
        if not os.access(path if path.exists() else above, os.W_OK):
            raise ConfigError(f"{path} cannot be written: there is no permission to")
    return path


def folder_to_write(path: Path | None) -> Path | None:
    """The same where a folder is written."""
    if path is not None and path.exists() and not path.is_dir():
        raise ConfigError(f"{path} cannot be written: it is a file, not a folder")
    return place_to_write(path)


@contextmanager
def progress(total: int | None, what: str, console: Console | None = None) -> Iterator[Any]:
    """A bar with rate and time left, on stderr; yields a function that is told of each advance."""
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[rate]}"),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console or stderr(), transient=True) as bar:
        task = bar.add_task(what, total=total, rate="")

        def advance(count: int = 1, description: str | None = None) -> None:
            speed = bar.tasks[0].speed
            rate = "" if speed is None else f"{speed:,.0f}/s"
            bar.update(task, advance=count, rate=rate, description=description)

        yield advance
