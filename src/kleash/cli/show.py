"""The verb `show`: a study in the terminal, its verdict, its matrix, a sparkline for each arm."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kleash.cli.console import AsJson, language_of, stdout
from kleash.errors import DataError

if TYPE_CHECKING:
    from rich.table import Table

    from kleash.catalogue import Language
    from kleash.dashboard.store import Plan
    from kleash.report.material import Material
    from kleash.report.parts import Line, Part
    from kleash.results import Results


def show(
    folder: Annotated[Path, typer.Argument(metavar="STUDY", help="The folder of a study.")],
    lang: Annotated[str, typer.Option(help="zh or en; else the locale's.")] = "",
    as_json: AsJson = False,
) -> None:
    """Show a study: verdict, what limits it, arms with sparklines, cells by state.

    \b
    kleash show studies/demos-kl
    kleash show studies/demos-kl --lang zh
    """
    if not (folder / "study.toml").is_file():
        raise DataError(f"{folder} is no study's folder: it holds no study.toml")
    language = language_of(lang, ())
    from kleash.results import results

    found = results(folder)
    if as_json:
        from kleash.results.summary import plain

        print(json.dumps(plain(found), ensure_ascii=False))
        return
    from rich.padding import Padding
    from rich.text import Text

    from kleash.dashboard.store import Store
    from kleash.report.answer import verdict
    from kleash.report.material import Material
    from kleash.report.opening import limits

    console = stdout()
    made = Material(found.file.name, language, found.comparison, [], [], found)
    for heading, parts in (("verdict", verdict(made)), ("limits", limits(made))):
        console.print(Text(made.heading(heading), style="bold"))
        for line in texts(parts):
            console.print(Padding(Text(line), (0, 0, 0, 2)))
    console.print(arms_table(found, made))
    plan = Store(folder).plan(folder)
    if plan.cells:
        console.print(matrix_table(found, plan, made))
        console.print(counts_line(plan, language), highlight=False)


def texts(parts: Sequence[Part]) -> list[str]:
    """Paragraphs and lists as lines."""
    from kleash.report.markdown import clean
    from kleash.report.parts import Cards, Lines, Paragraph, Stated, cells, text_of

    lines: list[Line] = []
    for part in parts:
        if isinstance(part, Paragraph):
            lines.append(part.line)
        elif isinstance(part, Stated):
            lines += [part.decision, *([part.why] if part.why else [])]
        elif isinstance(part, Cards):
            lines += [" ".join((card.heading, *card.lines)) for card in part.cards]
        elif isinstance(part, Lines):
            lines += part.lines
    return [clean("".join(text_of(cell) for cell in cells(line))) for line in lines]


def arms_table(found: Results, made: Material) -> Table:
    """An arm a line: KL, score, gap, verdict, and how validation went over epochs."""
    from rich.table import Table
    from rich.text import Text

    from kleash.catalogue import say
    from kleash.catalogue.screen import word
    from kleash.charts import blocks
    from kleash.report.material import plain
    from kleash.report.opening import gap_of

    names = ("arm", "sparks", "kl", "score", "against", "gap", "word")
    table = Table(title=found.file.name)
    for name in names:
        left = name in ("arm", "sparks", "against", "word")
        header = made.column("score") if name == "score" else say(f"dash.{name}", {}, made.language)
        table.add_column(header, justify="left" if left else "right", overflow="fold")
    for row in found.rows:
        gap = "" if row.gap is None else gap_of(made, row.gap)
        told = "" if row.gap is None else f"{word(row.gap, made.language)} [{row.gap.level}]"
        cells = (
            made.arm(row.name),
            blocks(validation(found, row.name)),
            plain(row.kl),
            made.score(row.score),
        )
        table.add_row(*(Text(cell) for cell in (*cells, made.arm(row.against), gap, told)))
    return table


def validation(found: Results, arm: str) -> list[float]:
    """The validation score by epoch, the mean over seeds."""
    from kleash.dashboard.store import Store

    seen = [each for (name, _), each in found.overview.seen.items() if name == arm]
    return Store(found.folder).validation(each.run.path for each in seen if each.run is not None)


def matrix_table(found: Results, plan: Plan, made: Material) -> Table:
    """Arms by seeds: the test score where all is done, else how many cells are."""
    from rich.table import Table
    from rich.text import Text

    from kleash.catalogue import say
    from kleash.dashboard.store import MARKS
    from kleash.plan import BASELINE
    from kleash.results import seed_means

    language = made.language
    styles = {"done": "green", "running": "blue", "failed": "red", "void": "magenta"}
    seeds = sorted({seed for _, seed in plan.jobs})
    table = Table(title=say("dash.matrix", {}, language))
    table.add_column(say("dash.arm", {}, language), overflow="fold")
    for seed in seeds:
        table.add_column(say("dash.seed_n", {"n": seed}, language), justify="right")
    for arm in dict.fromkeys(name for name, _ in plan.jobs if not name.startswith(BASELINE)):
        means = seed_means(found.overview, found.file, arm)
        row = [Text(made.arm(arm))]
        for seed in seeds:
            places = plan.jobs.get((arm, seed), [])
            state, done = plan.job_state(places) if places else ("missing", 0)
            text = f"{MARKS[state]} {done}/{len(places)}"
            if state == "done" and seed in means:
                text = f"{MARKS[state]} {made.scored(means[seed])}"
            row.append(Text(text if places else "", style=styles.get(state, "dim")))
        table.add_row(*row)
    return table


def counts_line(plan: Plan, language: Language) -> str:
    """How far the study is."""
    from kleash.catalogue import say

    facts = {"done": plan.counts.get("done", 0), "total": len(plan.cells)}
    parts = [say("dash.counted", facts, language)]
    parts += [
        f"{say(f'dash.{state}', {}, language)} {plan.counts[state]}"
        for state in ("running", "missing", "failed", "void")
        if plan.counts.get(state)
    ]
    return " · ".join(parts)
