"""The verb `check`: a report in, what is right and wrong with it line by line out."""

from __future__ import annotations

import json
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kleash.cli.compare import _start_lean as start_lean
from kleash.cli.console import AsJson, progress
from kleash.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from contextlib import AbstractContextManager

    from kleash.compare.documents.interpreter import Reading
    from kleash.compare.documents.judge import Mark
    from kleash.compare.documents.questions import Question
    from kleash.compare.read.markdown.page import Page
    from kleash.report.words import Language

SHOWN = ("wrong", "unsupported")
LOGGED = ("check.log", "check.not-log")
NAMED = 6  # runs that are called by their names
ASKED = typer.Option(
    metavar="URL|FILE",
    help="A language model's address, up to and with /v1, or a file with answers.",
)
MANY_TOKENS = 200_000  # from which a terminal is asked first


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
    interpreter: Annotated[str, ASKED] = "",
    model: Annotated[str, typer.Option(help="The name of the interpreter on its server.")] = "",
    answers: Annotated[
        Path | None,
        typer.Option(help="Where the interpreter's answers are; else REPORT.answers.jsonl."),
    ] = None,
    context: Annotated[
        int, typer.Option(help="Tokens that the interpreter's model holds, with its answer.")
    ] = 8192,
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
    are kept and never asked for again; with a file alone the questions wait in it.
    """
    start_lean()
    from kleash.compare.read.markdown.page import read_page

    if lang not in ("", "zh", "en"):
        raise ConfigError(f"no language {lang!r}: there is zh and en")
    page = read_page(report)
    language: Language = "zh" if (lang or page.language) == "zh" else "en"
    if interpreter and not interpreter.startswith(("http://", "https://")):
        interpreter, answers = "", Path(interpreter)
    asked = bool(interpreter or answers)
    made = interpretation(page, answers, (interpreter, model), context, language) if asked else None
    paths = [*(against or []), *(more or [])]
    marks, names = held(page, paths, made)
    if as_json:
        print(json.dumps(plain(marks, report, language, made), ensure_ascii=False))
    else:
        print(reading(made, language, logs=bool(paths)))
        print("\n".join(told(marks, report, language, every=every)))
        if paths and not any(mark.code in LOGGED for mark in marks):
            print(not_in(names, language))
    if any(mark.state == "wrong" for mark in marks):
        raise typer.Exit(1)


def held(page: Page, paths: Sequence[Path], made: Reading | None) -> tuple[list[Mark], list[str]]:
    """The marks of a report, and the runs that it was held against."""
    from kleash.compare.documents.check import check as checked
    from kleash.compare.read import read

    sources = [read(path / "runs" if (path / "study.toml").is_file() else path) for path in paths]
    marks = checked(page, sources, made.judged if made else ())
    return explained(marks, made), [run.name for one in sources for run in one.runs]


def interpretation(
    page: Page, answers: Path | None, server: tuple[str, str], context: int, language: Language
) -> Reading:
    """What an interpreter made of a report: asked now, or before."""
    from kleash.compare.documents.interpreter import PATIENCE, Interpreter, Kept, interpreted
    from kleash.compare.documents.questions import least_context
    from kleash.tasks.envs.endpoint import EndpointOptions

    url, model = server
    if url and not model:
        raise ConfigError("--interpreter needs --model, the name by which its server knows it")
    if context < (least := least_context(page)):
        raise ConfigError(
            f"--context {context} holds no question with its answer: give {least} or more"
        )
    options = EndpointOptions(url=url.rstrip("/"), model=model, timeout=PATIENCE) if url else None
    kept = Kept(answers or page.path.with_name(f"{page.path.name}.answers.jsonl"))

    def begin(
        questions: Sequence[Question], known: int
    ) -> AbstractContextManager[Callable[[], None]]:
        return cost(questions, known, model, language)

    return interpreted(page, Interpreter(kept, options, begin, context), context)


def cost(
    questions: Sequence[Question], known: int, model: str, language: Language
) -> AbstractContextManager[Callable[[], None]]:
    """Say what will be asked, and ask back where it is much; then a bar."""
    from kleash.report.words import say

    tokens = sum(one.tokens for one in questions)
    facts = {"count": len(questions), "tokens": f"{tokens:,}", "model": model, "known": known}
    typer.echo(say("check.cost", facts, language), err=True)
    if tokens > MANY_TOKENS and is_terminal():
        typer.confirm(say("check.go-on", {}, language), abort=True, err=True)
    return progress(len(questions), "questions")


def is_terminal() -> bool:
    """Whether somebody is there to ask."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def reading(made: Reading | None, language: Language, *, logs: bool) -> str:
    """How a report was read: what of it, and what not."""
    from kleash.report.words import say

    if made is None:
        beside = say("check.read-logs", {}, language) if logs else ""
        return say("check.read-numbers", {"logs": beside}, language)
    facts: dict[str, object] = {"all": made.sentences, "count": made.formulas}
    told = [say("check.read-formulas", facts | {"claims": len(made.judged)}, language)]
    troubles = Counter(one.trouble for one in made.unread)
    if troubles:
        named = (f"{n} × {say(f'check.{one}', {}, language)}" for one, n in troubles.most_common())
        many = say("check.read-unread", {}, language)
        told.append(f"{many}{'; '.join(named)}")
    if 2 * made.formulas < made.sentences:
        told.append(say("check.read-little", {}, language))
    return "\n".join(told)


def explained(marks: Sequence[Mark], made: Reading | None) -> list[Mark]:
    """Marks that say, of a number that is not checkable, what an interpreter made of it."""
    unread = {one.claim.at: one for one in made.unread if one.why and one.claim.at} if made else {}
    return [
        replace(
            mark,
            code="check.unread",
            facts={"formula": unread[mark.spot].claim.formula, "why": unread[mark.spot].why},
        )
        if mark.code == "check.nothing" and mark.spot in unread
        else mark
        for mark in marks
    ]


def not_in(names: Sequence[str], language: Language) -> str:
    """That logs have nothing of a report, and what they were read as."""
    from kleash.report.words import say

    more = "…" if len(names) > NAMED else ""
    return say("check.none-of-logs", {"names": ", ".join(names[:NAMED]) + more}, language)


def sentence(mark: Mark, language: Language) -> str:
    """Why a mark is what it is, in words."""
    from kleash.report.words import say

    facts = dict(mark.facts)
    if isinstance(facts.get("lines"), list):
        facts["lines"] = ", ".join(map(str, facts["lines"]))
    return say(mark.code, facts, language)


def told(marks: Sequence[Mark], report: Path, language: Language, *, every: bool) -> list[str]:
    """Line by line, as compilers do: file, line, state, what is written, why."""
    from kleash.report.words import say

    lines = []
    for mark in marks:
        if every or mark.state in SHOWN:
            state = say(f"state.{mark.state}", {}, language)
            text = f" {mark.text} ·" if mark.text else ""
            lines.append(f"{report}:{mark.line}: {state}:{text} {sentence(mark, language)}")
    counts = Counter(mark.state for mark in marks)
    facts = {state: counts[state] for state in ("right", "wrong", "unsupported", "unknown")}
    return [*lines, say("check.total", facts, language)]


def plain(
    marks: Sequence[Mark], report: Path, language: Language, made: Reading | None = None
) -> dict[str, Any]:
    """The marks as JSON: codes are fixed, the sentences are in the language."""
    counts = Counter(mark.state for mark in marks)
    read = (
        {
            "sentences": made.sentences,
            "formulas": made.formulas,
            "unread": Counter(one.trouble for one in made.unread),
        }
        if made
        else None
    )
    return {
        "report": str(report),
        "interpreter": read,
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
