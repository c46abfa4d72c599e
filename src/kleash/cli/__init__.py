"""The command line. Results on stdout, progress on stderr; every verb imports what it needs.

Exit 0: done. 1: a check that was asked for did not hold. 2: your mistake, in one line. 130: Ctrl-C.
"""

from __future__ import annotations

import sys

import typer

from kleash.cli.adopt import adopt
from kleash.cli.attribute import attribute
from kleash.cli.check import check
from kleash.cli.compare import compare
from kleash.cli.data import data
from kleash.cli.export import export
from kleash.cli.fill import fill
from kleash.cli.look import answerer, bench, doctor, runs
from kleash.cli.plan import plan
from kleash.cli.propose import propose
from kleash.cli.report import report
from kleash.cli.serve import serve
from kleash.cli.show import show
from kleash.cli.study import stop, study
from kleash.cli.train import evaluate_run, train
from kleash.cli.watch import watch
from kleash.errors import KleashError

app = typer.Typer(
    name="kleash",
    help="Trains policies with GRPO on a KL leash, and finds out what the leash did.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.command()(train)
app.command("eval")(evaluate_run)
app.command()(export)
app.command()(propose)
app.command()(adopt)
app.add_typer(data, name="data")
app.command()(study)
app.command()(stop)
app.command()(compare)
app.command()(attribute)
app.command()(plan)
app.command()(check)
app.command()(fill)
app.command()(report)
app.command()(show)
app.command()(serve)
app.command()(watch)
app.command()(runs)
app.command()(doctor)
app.command()(bench)
app.command()(answerer)


def main() -> None:
    """Run a verb; an error that is the user's to mend becomes one line."""
    try:
        app()
    except KleashError as error:
        sys.stderr.write(f"kleash: {error}\n")
        sys.exit(2)
