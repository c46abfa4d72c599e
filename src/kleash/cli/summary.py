"""A study's results on the terminal: an arm a line, then what needs no training, what was gained.

The numbers are those of `results`, the words those of run.toml.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Literal

from kleash.cli.console import told
from kleash.compare.comparison import Judged
from kleash.report.words import called
from kleash.study.plan import StudyFile
from kleash.study.results import Results
from kleash.study.results.summary import baselines, scored, shown
from kleash.study.results.tuning import Searched, signed

if TYPE_CHECKING:
    from rich.table import Table

    from kleash.report.words import Language

WORDS = ("arm", "against", "start", "baseline")
"""Columns that hold names, which may be long and differ at their end."""


def summary_table(found: Results, language: Language) -> list[Table]:
    """An arm a line: how far it went, what it scored, its gap to its baseline; then baselines."""
    file, say = found.file, partial(told, language)
    score = "reward" if file.of_agents else "accuracy"
    shots = say("some_shots", shots=say("list").join(map(str, file.measure.shots)))
    if file.of_agents:
        shots = say("and").join(counted(n, language, of_agents=True) for n in file.measure.shots)
    title = say(
        "summary",
        name=file.name,
        score=say(f"col.{score}"),
        shots=shots,
        size=say("tasks" if file.of_agents else "items", count=file.measure.items[-1]),
        seeds=len(file.seeds),
    )
    rows = []
    for row in found.rows:
        name = called(row.name, language) + (say("late") if row.late else "")
        cells = shown(row.kl), scored(found, row.score), called(row.against, language)
        rows.append((name, *cells, *gap_text(row.gap, language)))
    columns = ("arm", "kl_nats", score, "against", "gap", "verdict")
    return [
        made(title, columns, rows, language),
        baseline_table(found, language),
        *gain_table(found, language),
    ]


def verdict_lines(found: Results, language: Language) -> list[str]:
    """Which arm to use, then what became of each: as in the report."""
    from kleash.report.words.verdicts import UNTRAINED, decision, together

    if found.comparison is None:
        return []
    rest = together(found.comparison, language, (*UNTRAINED, "level"))
    return [decision(found.comparison, language), *(line for line, _ in rest)]


def made(
    title: str,
    columns: Sequence[str],
    rows: Iterable[Sequence[str]],
    language: Language,
    counts: Sequence[str] = (),
) -> Table:
    """A table whose columns have words; `counts` are further ones."""
    from rich.table import Table

    table = Table(title=title)
    for name in columns:
        side: Literal["left", "right"] = "left" if name in WORDS else "right"
        table.add_column(told(language, f"col.{name}"), justify=side, overflow="fold")
    for text in counts:
        table.add_column(text, justify="right")
    for row in rows:
        table.add_row(*row)
    return table


def counted(shots: int, language: Language, *, of_agents: bool) -> str:
    """A number of shots, or how often an agent tries: `2 shots`, `greedy`, `2 sampled passes`."""
    if not of_agents:
        return told(language, "some_shots" if shots > 1 else "one_shot", shots=shots)
    if not shots:
        return told(language, "greedy")
    return told(language, "some_passes" if shots > 1 else "one_pass", shots=shots)


def by_shots(file: StudyFile, language: Language) -> list[str]:
    """A column for each number of shots."""
    return [counted(n, language, of_agents=file.of_agents) for n in file.measure.shots]


def baseline_table(found: Results, language: Language) -> Table:
    """What needs no training, at each number of shots, at the largest n."""
    agents, shots = found.file.of_agents, found.file.measure.shots
    rows = [
        (name, *(scored(found, each.get(n)) for n in shots))
        for name, each in baselines(found).items()
    ]
    title = told(language, "starts" if agents else "baselines")
    column = "start" if agents else "baseline"
    return made(title, (column,), rows, language, by_shots(found.file, language))


def gain_table(found: Results, language: Language) -> list[Table]:
    """What each arm gained over the start it grew from."""
    gains = [(called(row.name, language), *gap_text(row.gain, language)) for row in found.rows]
    rows = [row for row in gains if row[1]]
    title = told(language, "gained")
    return [made(title, ("arm", "gap", "verdict"), rows, language)] if rows else []


def gap_text(gap: Judged | None, language: Language) -> tuple[str, str]:
    """The gap with its interval, and the verdict with its level."""
    from kleash.report.words.verdicts import word

    if gap is None or gap.estimate is None:
        return "", ""
    text = f"{gap.estimate:+.3f}"
    if gap.low is not None and gap.high is not None:
        text += f" [{gap.low:+.3f}, {gap.high:+.3f}]"
    p = gap.adjusted_p
    adjusted = "" if p is None else told(language, "adjusted", p=f"{p:.2g}")
    facts = {"verdict": word(gap, language), "level": gap.level, "adjusted": adjusted}
    return text, told(language, "judged", **facts)


def search_line(found: Searched, language: Language) -> str:
    """A search in a sentence."""
    say, tuned = partial(told, language), f"{found.tuned:+.3f}"
    tried = say("search", trials=found.trials, pruned=found.pruned)
    if not found.won:
        return tried + say("search.none", baseline=found.baseline, tuned=tuned)
    text = tried + say("search.best", baseline=found.baseline, tuned=tuned)
    if found.again is not None:
        text += say("search.again", gap=signed(found.again))
    if found.confirmed is None or found.optimism is None:
        return text + say("search.waits")
    ends = {"gap": signed(found.confirmed), "optimism": signed(found.optimism)}
    return text + say("search.confirmed", **ends)
