"""What the verbs share: where results and progress go, common flags."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kleash.errors import KleashError

if TYPE_CHECKING:
    from rich.console import Console

Keys = Annotated[list[str] | None, typer.Argument(metavar="[KEY=VALUE]...", show_default=False)]
AsJson = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]
Device = Annotated[str, typer.Option(help="Where the policy computes: cpu, cuda, cuda:1.")]


def stderr() -> Console:
    """Where progress is shown."""
    from rich.console import Console

    return Console(stderr=True)


def stdout() -> Console:
    """Where results go; wide where no terminal says how wide it is."""
    from rich.console import Console

    return Console(width=None if sys.stdout.isatty() else 120)


def need_torch() -> None:
    """One line instead of a traceback where the extra `train` is not installed."""
    from importlib.util import find_spec

    if find_spec("torch") is None:
        raise KleashError("this verb needs torch: pip install 'kleash[train]'")


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
