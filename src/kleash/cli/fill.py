"""The verb `fill`: a report written by hand in, the same report with its open cells filled out."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kleash.cli.compare import _start_lean as start_lean
from kleash.cli.console import AsJson, language_of, place_to_write, progress
from kleash.errors import DataError

if TYPE_CHECKING:
    from kleash.compare.documents.fill import Filled, Left
    from kleash.report.words import Language


def fill(
    report: Annotated[Path, typer.Argument(help="A report in Markdown with open cells.")],
    measured: Annotated[
        list[Path],
        typer.Option("--from", help="A study, runs or logs; may be given several times."),
    ],
    out: Annotated[
        Path | None,
        typer.Option(help="Where to write it; else into the report.", callback=place_to_write),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print the changes as a diff; write nothing.")
    ] = False,
    anyway: Annotated[
        bool, typer.Option("--anyway", help="Fill though data, model or level are not the logs'.")
    ] = False,
    lang: Annotated[str, typer.Option(help="zh or en; else the locale's, the report's.")] = "",
    as_json: AsJson = False,
) -> None:
    """Fill the open cells ("?", TBD, 待填充) of a report with what was measured; nothing else.

    Means and differences are worked out again; one that was wrong stays, struck out, beside the
    right one. What was never measured stays open, and the command that would measure it is printed.
    Where the report states other data or another model than the logs, or most of its numbers are
    not theirs, it asks before it writes (without a terminal: give --anyway).

    \b
    kleash fill report.md --from studies/kl --dry-run
    kleash fill report.md --from runs/kl0.12-s0 --from runs/kl0.18-s0 --out filled.md
    """
    start_lean()
    from kleash.compare.documents.fill import commands
    from kleash.compare.documents.fill import fill as filled
    from kleash.compare.documents.logs import logs_of
    from kleash.compare.read.markdown import document
    from kleash.compare.read.markdown.page import read_page

    page = read_page(report)
    with progress(None, ", ".join(map(str, measured))):
        draft = document.drafted(report)
        logs = logs_of(measured, draft.source, page)
        made = filled(draft, page, logs)
    target = out or report
    language = language_of(lang, [draft.source])
    if made.filled and made.differences and not anyway:
        ask_first(made, target, language, dry_run=dry_run, as_json=as_json)
    if dry_run:
        _show_diff(page.text, made.text, report)
    else:
        _write(target, page.bytes(made.text))
    wanted = commands(made.left, logs, report)
    if as_json:
        _print_json(made, wanted, target)
    else:
        stream = sys.stderr if dry_run else sys.stdout
        print("\n".join(told(made, wanted, target, language, dry_run=dry_run)), file=stream)


def ask_first(
    made: Filled, target: Path, language: Language, *, dry_run: bool, as_json: bool
) -> None:
    """Say what is not the logs'; on a terminal ask, else stop, unless nothing is to be written."""
    from kleash.report.words import CODES, LANGUAGES, say

    told, at = CODES["fill.other"], LANGUAGES.index(language)
    names = {what: CODES[f"fill.{what}"][at] for what in ("data", "model", "level")}
    lines = [told[at].format(**vars(one) | {"what": names[one.what]}) for one in made.differences]
    if dry_run or (is_terminal() and not as_json):
        print("\n".join(lines), file=sys.stderr)
        if dry_run or typer.confirm(
            say("fill.ask", {"count": len(made.filled)}, language), err=True
        ):
            return
        lines = []
    raise DataError(" ".join([*lines, say("fill.untouched", {"target": str(target)}, language)]))


def is_terminal() -> bool:
    """Whether somebody can be asked."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def _write(path: Path, raw: bytes) -> None:
    """The file whole or not at all."""
    beside = path.with_name(f".{path.name}.part")
    try:
        beside.write_bytes(raw)
        beside.replace(path)
    except OSError as error:
        raise DataError(f"cannot write {path}: {error.strerror}") from None


def _show_diff(before: str, after: str, report: Path) -> None:
    """Every line that changes; none is ever added or taken away."""
    print(f"--- {report}\n+++ {report}")
    lines = zip(before.splitlines(), after.splitlines(), strict=True)
    for number, (old, new) in enumerate(lines, 1):
        if old != new:
            print(f"@@ -{number} +{number} @@\n-{old}\n+{new}")


def told(
    made: Filled,
    wanted: dict[str, list[Left]],
    target: Path,
    language: Language,
    *,
    dry_run: bool = False,
) -> list[str]:
    """What was filled, what was corrected, and what stays with its commands."""
    from kleash.report.words import say

    counts = {"count": len(made.filled), "corrected": len(made.corrected), "left": len(made.left)}
    code = "fill.filled" if any(counts.values()) else "fill.nothing"
    would = say("fill.would", {}, language) if dry_run and any(counts.values()) else ""
    lines = [f"{target}: {would}{say(code, counts, language)}"]
    for one in made.corrected:
        facts = {"line": one.line, "before": one.before, "after": one.after}
        lines.append("  " + say("fill.corrected", facts, language))
    for command, cells in wanted.items():
        facts = {"count": len(cells), "lines": stretches(cell.line for cell in cells)}
        lines.append("  " + say("fill.left", facts, language))
        lines += [f"    {one}" for one in command.splitlines()]
        own = dict.fromkeys(
            cell.command for cell in cells if cell.command and cell.command != command
        )
        lines += [f"    {say('fill.own', {}, language)}{one}" for one in own]
    for why in ("derived", "words"):
        rest = [one for one in made.left if one.why == why]
        if rest:
            facts = {"count": len(rest), "lines": stretches(one.line for one in rest)}
            lines.append("  " + say(f"fill.{why}", facts, language))
    if made.filled and made.unsaid:
        what = ", ".join(say(f"fill.{one}", {}, language) for one in made.unsaid)
        lines.append(f"  {say('fill.unsaid', {'what': what}, language)}")
    return lines


def stretches(lines: object) -> str:
    """Line numbers as 3, 7-9."""
    every = sorted(set(lines))  # type: ignore[call-overload]
    parts: list[list[int]] = []
    for line in every:
        if parts and line == parts[-1][-1] + 1:
            parts[-1].append(line)
        else:
            parts.append([line])
    return ", ".join(f"{p[0]}-{p[-1]}" if len(p) > 1 else str(p[0]) for p in parts)


def _print_json(made: Filled, wanted: dict[str, list[Left]], target: Path) -> None:
    from dataclasses import asdict

    found = {
        "file": str(target),
        "filled": [asdict(one) for one in made.filled],
        "corrected": [asdict(one) for one in made.corrected],
        "left": [asdict(one) for one in made.left],
        "differences": [asdict(one) for one in made.differences],
        "commands": {command: [one.line for one in cells] for command, cells in wanted.items()},
    }
    print(json.dumps(found, ensure_ascii=False))
