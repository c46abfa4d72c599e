"""`kleash study` and `kleash stop`: a whole study from one file, and a clean end to it."""

from __future__ import annotations

import json
import os
import signal
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kleash.cli.ask import study_from
from kleash.cli.console import (
    EACH_TIME,
    AsJson,
    Device,
    Keys,
    Lang,
    folder_to_write,
    language_of,
    noticed,
    place_to_write,
    stderr,
    stdout,
    told,
    word,
)
from kleash.errors import KleashError
from kleash.study.whole import asked_of, resolve_study, run_whole

if TYPE_CHECKING:
    from rich.console import Console

    from kleash.report.words import Language
    from kleash.runs.jobs import Told
    from kleash.study.plan import StudyFile
    from kleash.study.plan.folder import Overview
    from kleash.study.results import Results

INTERRUPTED = 130  # as a shell has it for Ctrl-C
PATIENCE = 30.0  # seconds that `stop` waits for the end

Out = Annotated[
    Path | None,
    typer.Option(help="The study's folder; else studies/NAME.", callback=place_to_write),
]


def study(  # noqa: PLR0913  every flag of a verb is an argument
    what: Annotated[
        str,
        typer.Argument(
            metavar="[STUDY]",
            help="A bundled study, a TOML file, the folder of a study; or `from` and reports.",
        ),
    ] = "",
    keys: Keys = None,
    out: Out = None,
    jobs: Annotated[int, typer.Option(help="Workers, one thread each; 0 is one per core.")] = 0,
    on: Annotated[
        str, typer.Option(help="Where: local, ray (started here), auto or ray://HOST:PORT.")
    ] = "local",
    gpus: Annotated[
        str, typer.Option(help="GPUs with one answerer each for all jobs, as 0,1; or cpu,cpu.")
    ] = "",
    until: Annotated[
        str, typer.Option(help="`decided`: add seeds at the declared looks until it is.")
    ] = "",
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print every cell, its state and cost; run nothing.")
    ] = False,
    log_to: Annotated[
        str, typer.Option(help="Live logging of every run, with commas: see docs/watch.md.")
    ] = "",
    device: Device = "cpu",
    as_json: AsJson = False,
    lang: Lang = "",
) -> None:
    """Run a study: arms × seeds from one shared start, every cell measured, compared, reported.

    \b
    kleash study                              (the embedded study, demos-kl)
    kleash study demos-kl seeds=3 --jobs 2    (three seeds; more later run only what is new)
    kleash study mine.toml --dry-run          (all cells with state, cost, and what is known)
    kleash study studies/demos-kl             (goes on with a study that was stopped)
    kleash study mine.toml --until decided    (seeds at looks 3, 5, 8, 12, alpha split over them)
    kleash study from old.md --out mine.toml  (the study file that would settle reports)
    """
    if what == "from":
        written, lang = study_from(keys or [], out, lang)
        if not dry_run or written is None:
            return
        what, keys, out = str(written), [], None
    if "=" in what:
        what, keys = "", [what, *(keys or [])]
    file, folder = resolve_study(what, keys or [], out)
    folder_to_write(folder)
    if dry_run:
        show_plan(folder, file, language_of(lang, ()), as_json=as_json)
        return
    asked = asked_of(file, folder, jobs=jobs, on=on, gpus=gpus, device=device, log_to=log_to)
    run_and_report(asked, lang, until=until, as_json=as_json)


def run_and_report(asked: Any, lang: str, *, until: str, as_json: bool) -> None:
    """Run it, write the report, show the summary; exit 1 where something failed.

    A study that was stopped before anything was measured has nothing to report yet.
    """
    from kleash.report import write
    from kleash.study.results import results

    language = language_of(lang, ())
    with Display(stderr(), language) as display:
        ran, file = run_whole(asked, display, until=until)
    found = results(asked.folder, file=file)
    shown = not ran.stopped or any(row.score is not None for row in found.rows)
    written = write(found, language=lang) if shown else []
    show_results(found, ran, written, language, as_json=as_json)
    if ran.failures:
        raise typer.Exit(1)
    if ran.stopped and not ran.spent:
        raise typer.Exit(INTERRUPTED)


def stop(
    folder: Annotated[Path, typer.Argument(help="The folder of a running study.")],
    lang: Lang = "",
) -> None:
    """Stop a study cleanly: running cells are left where they are, and the same command goes on.

    \b
    kleash stop studies/demos-kl
    """
    from kleash.runs.run import holder

    language = language_of(lang, ())
    if not (folder / "study.toml").is_file():
        raise KleashError(f"{folder} is no study's folder")
    who = holder(folder)
    if not who:
        print(told(language, "nobody", folder=folder))
        return
    (folder / "stop").touch()
    process, _, machine = who.partition(" on ")
    import platform

    if machine == platform.node() and process.isdigit():
        os.kill(int(process), signal.SIGINT)
    deadline = time.monotonic() + PATIENCE
    while holder(folder) and time.monotonic() < deadline:
        time.sleep(0.1)
    print(told(language, "was_asked" if holder(folder) else "is_stopped", folder=folder))


# --- while it runs


class Display:
    """Live progress: a line for every running job, the cells, the time left, answers saved."""

    def __init__(self, console: Console, language: Language = "en") -> None:
        self.console = console
        self.language = language
        self.running: dict[str, dict[str, Any]] = {}
        self.began = time.monotonic()
        self.first: int | None = None
        self.asked = self.bought = self.ended = 0
        self.noticed: set[str] = set()  # findings are told of the first run; the report has all
        self.found: Overview | None = None
        self.live: Any = None

    def __enter__(self) -> Display:
        if self.console.is_terminal:
            from rich.live import Live

            self.live = Live(console=self.console, refresh_per_second=4, transient=True)
            self.live.__enter__()
        return self

    def __exit__(self, *failure: object) -> None:
        if self.live is not None:
            self.live.__exit__(None, None, None)

    def __call__(self, heard: Told, found: Overview) -> None:
        self.found = found
        if heard.kind == "started":
            self.running[heard.job] = {"began": time.monotonic()}
        elif heard.kind == "told":
            self.hear(heard)
        elif heard.kind in ("done", "failed", "skipped", "stopped", "retried"):
            self.end(heard)
        if self.live is not None:
            self.live.update(self.picture())

    def say(self, code: str, **facts: object) -> str:
        """A line in the language of whoever looks."""
        return told(self.language, code, **facts)

    def hear(self, heard: Told) -> None:
        """Something a job said of itself."""
        if "finding" in heard.record:
            finding = heard.record["finding"]
            if finding["severity"] != "note" and finding["code"] not in self.noticed:
                line = noticed(self.language, heard.job, finding)
                self.console.print(line, style="yellow")
                self.noticed |= {finding["code"]} - EACH_TIME
            return
        self.running.setdefault(heard.job, {"began": time.monotonic()}).update(heard.record)

    def end(self, heard: Told) -> None:
        """A job is over."""
        self.running.pop(heard.job, None)
        facts = {"job": heard.job}
        if heard.kind == "done":
            self.ended += 1
            self.asked += heard.record.get("asked", 0)
            self.bought += heard.record.get("bought", 0)
            facts["seconds"] = f"{heard.record['seconds'] / heard.record.get('ranks', 1):.1f}"
        line = self.say(heard.kind, **facts)
        if heard.kind != "done" and heard.error:
            line = self.say("why", what=line, error=heard.error.splitlines()[0])
        self.console.print(line, highlight=False, style="red" if heard.kind == "failed" else None)

    def place(self, at: str) -> str:
        """Where a job is, as it says: a phase and its epoch, or a split and what is measured."""
        first, blank, rest = at.partition(" ")
        return f"{word(self.language, 'at', first)}{blank}{rest}"

    def picture(self) -> Any:
        """What is shown now."""
        from rich.console import Group
        from rich.progress_bar import ProgressBar
        from rich.table import Table
        from rich.text import Text

        counts = self.found.counts() if self.found else {}
        total, done = sum(counts.values()), counts.get("done", 0) + counts.get("void", 0)
        if self.first is None:
            self.first = done
        jobs = Table.grid(padding=(0, 2))
        for name, record in self.running.items():
            spent = self.say("seconds", seconds=f"{time.monotonic() - record['began']:.0f}")
            score = record.get("validation")
            shown = "" if score is None else self.say("validation", score=f"{score:.3f}")
            jobs.add_row(name, self.place(str(record.get("at", ""))), shown, spent)
        asked = self.asked + sum(r.get("asked", 0) for r in self.running.values())
        bought = self.bought + sum(r.get("bought", 0) for r in self.running.values())
        bar = Table.grid(padding=(0, 2))
        bar.add_row(
            ProgressBar(total=max(total, 1), completed=done, width=40),
            self.say("cells", done=f"{done:,}", total=f"{total:,}"),
            self.left(done, total),
            self.say("answers_now", **answers(asked, bought)) if asked else "",
        )
        return Group(jobs, bar, Text(""))

    def left(self, done: int, total: int) -> str:
        """The time left, by the cells filled so far."""
        made, spent = done - (self.first or 0), time.monotonic() - self.began
        if made <= 0:
            return ""
        seconds = spent * (total - done) / made
        if seconds > 90:
            return self.say("minutes_left", minutes=f"{seconds / 60:.1f}")
        return self.say("seconds_left", seconds=f"{seconds:.0f}")


def answers(asked: float, bought: float) -> dict[str, str]:
    """How many were asked for, and how many of them somebody had to give."""
    counts = {"asked": asked, "bought": bought, "saved": asked - bought}
    return {name: f"{count:,.0f}" for name, count in counts.items()}


# --- before and after


def show_plan(folder: Path, file: StudyFile, language: Language, *, as_json: bool) -> None:
    """Every cell with its state, what filling the rest would cost, and what is known."""
    from kleash.report.words import say
    from kleash.study.estimate import estimate

    plan = in_words(estimate(folder, file), language)
    if as_json:
        print(json.dumps(plan, ensure_ascii=False))
        return
    from rich.table import Table

    console = stdout()
    title = {"name": file.name, "count": f"{len(plan['cells']):,}"}
    table = Table(title=say("study.cells", title, language))
    counted = "passes" if file.of_agents else "shots"
    for column in ("arm", "seeds", "checkpoints", "split", counted, "items", "states"):
        table.add_column(say(f"study.{column}", {}, language), overflow="fold")
    for row in plan["rows"]:
        table.add_row(*row)
    console.print(table)
    for line in plan["lines"]:
        console.print(line, highlight=False)


def in_words(plan: dict[str, Any], language: Language) -> dict[str, Any]:
    """An estimate with its states and facts as sentences."""
    from kleash.report.words import say

    def states(count: int, state: str) -> str:
        facts = {"count": f"{count:,}", "state": say(f"dash.{state}", {}, language)}
        return say("study.state", facts, language)

    lines = [", ".join(states(count, state) for state, count in plan["counts"].items())]
    lines += [say(code, facts, language) for code, facts in plan["facts"]]
    rows = [(*row, states(count, state)) for *row, count, state in plan["rows"]]
    kept = {key: value for key, value in plan.items() if key != "facts"}
    return kept | {"rows": rows, "lines": lines}


def show_results(
    found: Results, ran: Any, written: list[Path], language: Language, *, as_json: bool
) -> None:
    """The summary on the terminal: an arm a line, with intervals."""
    from rich.text import Text

    from kleash.cli.summary import search_line, summary_table, verdict_lines
    from kleash.study.results.summary import plain
    from kleash.study.results.tuning import searched

    if as_json:
        print(json.dumps(plain(found), ensure_ascii=False))
        return
    console = stdout()
    for each in summary_table(found, language) if written else ():
        console.print(each, highlight=False)
    asked, bought = found.spent["asked"], found.spent["bought"]
    if asked:
        facts = answers(asked, bought) | {"share": f"{1 - bought / asked:.0%}"}
        console.print(told(language, "answers_share", **facts), highlight=False)
    if (search := searched(found.folder, found.file, found.overview)) is not None:
        console.print(search_line(search, language), highlight=False)
    if ran.stopped:
        console.print(told(language, "goes_on", folder=found.folder), soft_wrap=True)
    for job, error in ran.failures.items():
        line = told(language, "failure", job=job, error=error.splitlines()[0])
        console.print(line, style="red", highlight=False)
    for path in written:
        console.print(str(path), highlight=False)
    for number, line in enumerate(verdict_lines(found, language)):
        console.print(Text(line), style=None if number else "bold")
