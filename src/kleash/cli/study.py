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
from kleash.cli.console import AsJson, Device, Keys, need_torch, stderr, stdout
from kleash.errors import KleashError

if TYPE_CHECKING:
    from rich.console import Console

    from kleash.jobs import Told
    from kleash.plan import StudyFile
    from kleash.plan.folder import Overview
    from kleash.results import Results

STUDIES = Path("studies")
PATIENCE = 30.0  # seconds that `stop` waits for the end


def study(  # noqa: PLR0913  every flag of a verb is an argument
    what: Annotated[
        str,
        typer.Argument(
            metavar="[STUDY]",
            help="A bundled study, a TOML file, the folder of a study; or `from` and reports.",
        ),
    ] = "",
    keys: Keys = None,
    out: Annotated[Path | None, typer.Option(help="The study's folder; else studies/NAME.")] = None,
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
        str, typer.Option(help="Live logging of every run, with commas: see docs/sinks.md.")
    ] = "",
    device: Device = "cpu",
    as_json: AsJson = False,
    lang: Annotated[str, typer.Option(help="zh or en, of --dry-run and `from`.")] = "",
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
    file, folder = resolve_study(what, keys or [], out)
    if dry_run:
        show_plan(folder, file, lang, as_json=as_json)
        return
    need_torch()
    if until not in ("", "decided"):
        raise KleashError(f"--until {until!r}: there is only `decided`")
    from kleash.sinks import sink_names
    from kleash.study import Asked
    from kleash.study.servers import device_names

    workers = jobs or os.cpu_count() or 1
    asked = Asked(file, folder, workers, on, device, sink_names(log_to), gpus=device_names(gpus))
    run_and_report(asked, decided=until == "decided", as_json=as_json)


def resolve_study(what: str, keys: list[str], out: Path | None) -> tuple[StudyFile, Path]:
    """The study that is asked for, and its folder."""
    from kleash.plan import DEFAULT, bundled, read_study

    if "=" in what:
        what, keys = "", [what, *keys]
    file = read_study(what or DEFAULT, keys)
    given = Path(what) if what and what not in bundled() else None
    ours = given if given is not None and given.is_dir() else STUDIES / file.name
    return file, out or ours


def run_and_report(asked: Any, *, decided: bool, as_json: bool) -> None:
    """Run it, write the report, show the summary; exit 1 where something failed."""
    from kleash.results import results

    ran, file = run_asked(asked, decided=decided)
    found = results(asked.folder, file=file)
    written = write_report(found)
    show_results(found, ran, written, as_json=as_json)
    if ran.failures:
        raise typer.Exit(1)


def run_asked(asked: Any, *, decided: bool) -> tuple[Any, StudyFile]:
    """Search if it asks for that; run the study, or grow it by looks until its verdict is there."""
    from kleash.study import run_study
    from kleash.study.looks import run_until_decided

    with Display(stderr()) as display:
        if asked.file.search.trials:
            from kleash.search import run_search

            searched = run_search(asked, display)
            if searched is not None and (searched.stopped or searched.failures):
                return searched, asked.file
        if decided:
            return run_until_decided(asked, display)
        return run_study(asked, display), asked.file


def write_report(found: Results) -> list[Path]:
    """`report.md` and `report.html` beside the study."""
    from kleash.report import write

    return write(found)


def stop(
    folder: Annotated[Path, typer.Argument(help="The folder of a running study.")],
) -> None:
    """Stop a study cleanly: running cells are left where they are, and the same command goes on.

    \b
    kleash stop studies/demos-kl
    """
    from kleash.runs import holder

    if not (folder / "study.toml").is_file():
        raise KleashError(f"{folder} is no study's folder")
    who = holder(folder)
    if not who:
        print(f"nobody is running {folder}")
        return
    (folder / "stop").touch()
    process, _, machine = who.partition(" on ")
    import platform

    if machine == platform.node() and process.isdigit():
        os.kill(int(process), signal.SIGINT)
    deadline = time.monotonic() + PATIENCE
    while holder(folder) and time.monotonic() < deadline:
        time.sleep(0.1)
    print(f"{folder} is stopped" if not holder(folder) else f"{folder} was asked to stop")


# --- while it runs


class Display:
    """Live progress: a line for every running job, the cells, the time left, answers saved."""

    def __init__(self, console: Console) -> None:
        self.console = console
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

    def __call__(self, told: Told, found: Overview) -> None:
        self.found = found
        if told.kind == "started":
            self.running[told.job] = {"began": time.monotonic()}
        elif told.kind == "told":
            self.heard(told)
        elif told.kind in ("done", "failed", "skipped", "stopped", "retried"):
            self.end(told)
        if self.live is not None:
            self.live.update(self.picture())

    def heard(self, told: Told) -> None:
        """Something a job said of itself."""
        if "finding" in told.record:
            finding = told.record["finding"]
            if finding["severity"] != "note" and finding["code"] not in self.noticed:
                self.console.print(f"{told.job}: {finding['message']}", style="yellow")
                self.noticed.add(finding["code"])
            return
        self.running.setdefault(told.job, {"began": time.monotonic()}).update(told.record)

    def end(self, told: Told) -> None:
        """A job is over."""
        self.running.pop(told.job, None)
        if told.kind == "done":
            self.ended += 1
            self.asked += told.record.get("asked", 0)
            self.bought += told.record.get("bought", 0)
        line = f"{told.job}: {told.kind}"
        if told.kind == "done":
            line += f" in {told.record['seconds'] / told.record.get('ranks', 1):.1f} s"
        elif told.error:
            line += f", {told.error.splitlines()[0]}"
        self.console.print(line, highlight=False, style="red" if told.kind == "failed" else None)

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
            spent = f"{time.monotonic() - record['began']:.0f} s"
            score = f"validation {record['validation']:.3f}" if "validation" in record else ""
            jobs.add_row(name, str(record.get("at", "")), score, spent)
        asked = self.asked + sum(r.get("asked", 0) for r in self.running.values())
        bought = self.bought + sum(r.get("bought", 0) for r in self.running.values())
        bar = Table.grid(padding=(0, 2))
        bar.add_row(
            ProgressBar(total=max(total, 1), completed=done, width=40),
            f"{done:,} of {total:,} cells",
            self.left(done, total),
            f"answers: {asked:,} asked, {bought:,} bought, {asked - bought:,} saved"
            if asked
            else "",
        )
        return Group(jobs, bar, Text(""))

    def left(self, done: int, total: int) -> str:
        """The time left, by the cells filled so far."""
        made, spent = done - (self.first or 0), time.monotonic() - self.began
        if made <= 0:
            return ""
        seconds = spent * (total - done) / made
        return f"{seconds / 60:.1f} min left" if seconds > 90 else f"{seconds:.0f} s left"


# --- before and after


def show_plan(folder: Path, file: StudyFile, lang: str, *, as_json: bool) -> None:
    """Every cell with its state, what filling the rest would cost, and what is known."""
    from kleash.catalogue import say
    from kleash.cli.compare import _language as language_of
    from kleash.study.estimate import estimate

    language = language_of(lang, ())
    plan = estimate(folder, file, language)
    if as_json:
        print(json.dumps(plan, ensure_ascii=False))
        return
    from rich.table import Table

    console = stdout()
    title = {"name": file.name, "count": f"{len(plan['cells']):,}"}
    table = Table(title=say("study.cells", title, language))
    counted = "passes" if file.of_agents else "shots"
    for column in ("arm", "seeds", "checkpoints", "split", counted, "items", "states"):
        table.add_column(say(f"study.{column}", {}, language))
    for row in plan["rows"]:
        table.add_row(*row)
    console.print(table)
    for line in plan["lines"]:
        console.print(line, highlight=False)


def show_results(found: Results, ran: Any, written: list[Path], *, as_json: bool) -> None:
    """The summary on the terminal: an arm a line, with intervals."""
    from kleash.results.summary import plain, summary_table

    if as_json:
        print(json.dumps(plain(found), ensure_ascii=False))
        return
    console = stdout()
    for each in summary_table(found):
        console.print(each, highlight=False)
    spent = found.spent
    if spent["asked"]:
        console.print(
            f"answers: {spent['asked']:,.0f} asked for, {spent['bought']:,.0f} bought,"
            f" {spent['asked'] - spent['bought']:,.0f} saved"
            f" ({1 - spent['bought'] / spent['asked']:.0%})",
            highlight=False,
        )
    from kleash.results.tuning import searched

    if (search := searched(found.folder, found.file, found.overview)) is not None:
        console.print(search.line(), highlight=False)
    if ran.stopped:
        console.print(f"stopped: the same command goes on, or kleash study {found.folder}")
    for name, error in ran.failures.items():
        console.print(f"{name} failed: {error.splitlines()[0]}", style="red", highlight=False)
    for path in written:
        console.print(str(path), highlight=False)
