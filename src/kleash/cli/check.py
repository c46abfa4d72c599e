"""The verb `check`: a report in, what is right and wrong with it line by line out."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kleash.cli.compare import _start_lean as start_lean
from kleash.cli.console import AsJson, progress
from kleash.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kleash.catalogue import Language
    from kleash.documents.judge import Judged
    from kleash.documents.marks import Mark
    from kleash.documents.page import Page

SHOWN = ("wrong", "unsupported")
LOGGED = ("check.log", "check.not-log")
NAMED = 6  # runs that are called by their names


def check(  # noqa: PLR0913  # its options
    report: Annotated[Path, typer.Argument(help="A report in Markdown.")],
    against: Annotated[
        list[Path] | None,
        typer.Option("--against", help="Logs, runs or a study; may be given several times."),
    ] = None,
    more: Annotated[
        list[Path] | None, typer.Argument(metavar="[LOGS]...", show_default=False)
    ] = None,
    every: Annotated[
        bool, typer.Option("--all", help="Also what is right, and what cannot be checked.")
    ] = False,
    interpreter: Annotated[
        str, typer.Option(help="A language model's address, up to and with /v1.", metavar="URL")
    ] = "",
    model: Annotated[str, typer.Option(help="The name of the interpreter on its server.")] = "",
    answers: Annotated[
        Path | None,
        typer.Option(help="Where the interpreter's answers are; else REPORT.answers.jsonl."),
    ] = None,
    lang: Annotated[str, typer.Option(help="zh or en; else the report's own.")] = "",
    as_json: AsJson = False,
) -> None:
    """Hold every number and claim of a report against logs, or against its own tables.

    Each is right, wrong (with the right value), not supported, or not checkable. Exit 1 if anything
    is wrong, so that it can stand in a CI.

    \b
    kleash check report.md
    kleash check report.md --against runs/kl0.12-s0 runs/kl0.15-s0 --all
    kleash check report.md --interpreter http://127.0.0.1:8000/v1 --model Qwen3-32B

    Tables and logs are read by their numbers. Sentences are read by an interpreter, any capable
    language model: it says which formula each claim states, which is worked out here. Its answers
    are kept and never asked for again; with --answers alone the questions wait in that file.
    """
    start_lean()
    from kleash.documents.check import check as checked
    from kleash.documents.page import read_page
    from kleash.imports import read

    if lang not in ("", "zh", "en"):
        raise ConfigError(f"no language {lang!r}: there is zh and en")
    page = read_page(report)
    paths = [*(against or []), *(more or [])]
    sources = [read(path / "runs" if (path / "study.toml").is_file() else path) for path in paths]
    asked = bool(interpreter or answers)
    told_so = interpretation(page, answers, interpreter, model) if asked else []
    marks = checked(page, sources, told_so)
    language: Language = "zh" if (lang or page.language) == "zh" else "en"
    if as_json:
        print(json.dumps(plain(marks, report, language), ensure_ascii=False))
    else:
        print(reading(told_so, page, language, asked=asked, logs=bool(paths)))
        print("\n".join(told(marks, report, language, every=every)))
        if paths and not any(mark.code in LOGGED for mark in marks):
            print(not_in([run.name for one in sources for run in one.runs], language))
    if any(mark.state == "wrong" for mark in marks):
        raise typer.Exit(1)


def interpretation(page: Page, answers: Path | None, url: str, model: str) -> list[Judged]:
    """What an interpreter made of a report: asked now, or before."""
    from kleash.documents.interpreter import PATIENCE, Interpreter, Kept, interpreted
    from kleash.envs.endpoint import EndpointOptions

    if url and not model:
        raise ConfigError("--interpreter needs --model, the name by which its server knows it")
    options = EndpointOptions(url=url.rstrip("/"), model=model, timeout=PATIENCE) if url else None
    kept = Kept(answers or page.path.with_name(f"{page.path.name}.answers.jsonl"))
    return interpreted(page, Interpreter(kept, options, lambda count: progress(count, "questions")))


def reading(
    told_so: Sequence[Judged], page: Page, language: Language, *, asked: bool, logs: bool
) -> str:
    """How a report was read: what of it, and what not."""
    from kleash.catalogue import say
    from kleash.documents.numbered import Addresses

    if not asked:
        beside = say("check.read-logs", {}, language) if logs else ""
        return say("check.read-numbers", {"logs": beside}, language)
    if not told_so:
        return say("check.read-nothing", {}, language)
    addresses = Addresses(page)
    loose = {one for one, number in addresses.numbers.items() if number.line not in addresses.rows}
    read = {one.number.address for one in told_so if one.number is not None} & loose
    facts = {"count": len(told_so), "numbers": len(read), "all": len(loose)}
    return say("check.read-formulas", facts, language)


def not_in(names: Sequence[str], language: Language) -> str:
    """That logs have nothing of a report, and what they were read as."""
    from kleash.catalogue import say

    more = "…" if len(names) > NAMED else ""
    return say("check.none-of-logs", {"names": ", ".join(names[:NAMED]) + more}, language)


def sentence(mark: Mark, language: Language) -> str:
    """Why a mark is what it is, in words."""
    from kleash.catalogue import say

    facts = dict(mark.facts)
    if isinstance(facts.get("lines"), list):
        facts["lines"] = ", ".join(map(str, facts["lines"]))
    return say(mark.code, facts, language)


def told(marks: Sequence[Mark], report: Path, language: Language, *, every: bool) -> list[str]:
    """Line by line, as compilers do: file, line, state, what is written, why."""
    from kleash.catalogue import say

    lines = []
    for mark in marks:
        if every or mark.state in SHOWN:
            state = say(f"state.{mark.state}", {}, language)
            text = f" {mark.text} ·" if mark.text else ""
            lines.append(f"{report}:{mark.line}: {state}:{text} {sentence(mark, language)}")
    counts = Counter(mark.state for mark in marks)
    facts = {state: counts[state] for state in ("right", "wrong", "unsupported", "unknown")}
    return [*lines, say("check.total", facts, language)]


def plain(marks: Sequence[Mark], report: Path, language: Language) -> dict[str, Any]:
    """The marks as JSON: codes are fixed, the sentences are in the language."""
    counts = Counter(mark.state for mark in marks)
    return {
        "report": str(report),
        "counts": {state: counts[state] for state in ("right", "wrong", "unsupported", "unknown")},
        "marks": [
            {
                "line": mark.line,
                "text": mark.text,
                "state": mark.state,
                "code": mark.code,
                "right": mark.facts.get("value"),
                "message": sentence(mark, language),
            }
            for mark in marks
        ],
    }
