"""Verbs that look: `runs` and `doctor`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kleash.cli.console import AsJson, stdout
from kleash.train.single import RUNS

if TYPE_CHECKING:
    from kleash.cli.machine import Sheet


def runs(
    folder: Annotated[Path, typer.Argument(help="A folder of runs.")] = RUNS,
    as_json: AsJson = False,
) -> None:
    """List runs: leash, phase, last validation score, whether finished.

    \b
    kleash runs studies/kl/runs --json
    """
    from kleash.algo.control import Leash, describe
    from kleash.runs.run import list_runs

    rows = []
    for run in list_runs(folder) if folder.is_dir() else ():
        leash = describe(Leash.model_validate(run.config["leash"]))
        policy = run.config["model" if "env" in run.config else "selector"]
        epochs = [line for line in run.metrics() if line["kind"] == "epoch"]
        last = epochs[-1] if epochs else {}
        rows.append(
            {
                "run": run.name,
                "policy": policy,
                "leash": leash,
                "at": f"{last['phase']} {last['epoch']}" if last else "not begun",
                "accuracy": last.get("validation/accuracy"),
                "reward": last.get("validation/reward"),
                "finished": run.finished,
            }
        )
    if as_json:
        print(json.dumps(rows))
        return
    from rich.table import Table

    if not rows:
        print(f"no runs in {folder}: kleash train default makes one")
        return
    table = Table("run", "policy", "leash", "at", "validation", "finished")
    for row in rows:
        scored = [
            f"{each} {row[each]:.3f}" for each in ("accuracy", "reward") if row[each] is not None
        ]
        done = "yes" if row["finished"] else "no"
        table.add_row(row["run"], row["policy"], row["leash"], row["at"], *(scored or [""]), done)
    stdout().print(table)


def doctor(
    as_json: AsJson = False,
    fits: Annotated[
        str, typer.Option(metavar="MODEL", help="0.6B to 32B, or a folder: what training it takes.")
    ] = "",
    lang: Annotated[str, typer.Option(help="zh or en; else the locale's.")] = "",
) -> None:
    """What works on this machine, what is missing, and how to get it; what fits which GPU.

    \b
    kleash doctor
    kleash doctor --fits 8B           (GiB of every way to train Qwen3-8B's shape, by part)
    kleash doctor --fits models/mine  (the same of a folder, from its config.json)
    """
    from kleash.cli.console import language_of
    from kleash.cli.machine import examine, parts_of, what_fits

    language = language_of(lang, ())
    if fits:
        sheet = parts_of(fits, language)
        if as_json:
            rows = [dict(zip(sheet.head, row, strict=True)) for row in sheet.rows]
            print(json.dumps(rows, ensure_ascii=False))
            return
        print_sheet(sheet)
        return
    findings = examine()
    if as_json:
        print(json.dumps([finding.__dict__ for finding in findings]))
        return
    from rich.markup import escape
    from rich.table import Table

    table = Table("what", "state", "how to get it")
    for finding in findings:
        table.add_row(finding.what, finding.state, escape(finding.remedy))
    stdout().print(table)
    print_sheet(what_fits(language))


def print_sheet(sheet: Sheet) -> None:
    """A table of the doctor, and its note."""
    from rich.table import Table

    table = Table(*sheet.head, title=sheet.title)
    for row in sheet.rows:
        table.add_row(*row)
    console = stdout()
    console.print(table)
    if sheet.note:
        console.print(sheet.note, markup=False, highlight=False)
