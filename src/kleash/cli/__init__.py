"""The command line. Results on stdout, progress on stderr; every verb imports what it needs.

Exit 0: done. 1: a check that was asked for did not hold. 2: your mistake, in one line. 130: Ctrl-C.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Annotated

import typer

from kleash.cli.adopt import adopt
from kleash.cli.check import check
from kleash.cli.coef import coef
from kleash.cli.compare import compare
from kleash.cli.data import data
from kleash.cli.diff import diff
from kleash.cli.export import export
from kleash.cli.fill import fill
from kleash.cli.look import doctor, runs
from kleash.cli.plan import plan
from kleash.cli.propose import propose
from kleash.cli.report import report
from kleash.cli.serve import serve
from kleash.cli.study import stop, study
from kleash.cli.train import evaluate_run, train
from kleash.cli.watch import watch
from kleash.errors import KleashError, NoSpace, is_no_space

app = typer.Typer(
    name="kleash",
    help="Trains policies with GRPO on a KL leash, and finds out what the leash did.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
# By what a user has in hand.
VERBS: dict[str, dict[str, Callable[..., None]]] = {
    "You have runs or logs, of any tool": {
        "compare": compare,
        "watch": watch,
        "runs": runs,
    },
    "You have a report in Markdown": {"check": check, "fill": fill},
    "You have a KL coefficient, or hours": {"coef": coef, "plan": plan},
    "You have settings to sweep: a study": {
        "study": study,
        "stop": stop,
        "serve": serve,
        "report": report,
    },
    "You have one setting to train": {"train": train, "eval": evaluate_run, "export": export},
    "You have data or checkpoints of another project": {
        "adopt": adopt,
        "propose": propose,
        "diff": diff,
    },
    "You have a machine": {"doctor": doctor},
}
for _panel, _verbs in VERBS.items():
    for _name, _verb in _verbs.items():
        app.command(_name, rich_help_panel=_panel)(_verb)
app.add_typer(data, name="data", rich_help_panel="You have data or checkpoints of another project")


def print_version(asked: bool) -> None:  # noqa: FBT001  # as typer calls it
    """The version of the package, and nothing else."""
    if asked:
        from importlib.metadata import version

        print(f"kleash {version('kleash')}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=print_version, is_eager=True, help="Print it.")
    ] = False,
) -> None:
    """Options of `kleash` itself."""


def main() -> None:
    """Run a verb; an error that is the user's to mend becomes one line.

    Classes of the user are found in the current folder, after everything that is installed.
    """
    if (here := os.getcwd()) not in sys.path:  # noqa: PTH109  entries of sys.path are text
        sys.path.append(here)
    try:
        app()
    except KleashError as error:
        sys.stderr.write(f"kleash: {error}\n")
        sys.exit(2)
    except Exception as error:
        if not is_no_space(error):
            raise
        where = getattr(error, "filename", None) or "where this is written"
        sys.stderr.write(f"kleash: {NoSpace(where)}\n")
        sys.exit(2)
