"""A comparison as a document: verdict first, then why, then what to run next.

On the terminal it fits on one screen; Markdown and HTML have everything.
"""

from __future__ import annotations

from collections.abc import Sequence

from kleash.compare.comparison import Amount, Comparison, Judged, Summary
from kleash.report.charts import Chart
from kleash.report.markdown import markdown_of
from kleash.report.page import html_of
from kleash.report.parts import Document, Figure, Lines, Section, Table, clean
from kleash.report.terminal import rows_of
from kleash.report.words import CODES, Language, called, metric_name, say, show
from kleash.report.words.lines import confound, folded, next_step, why
from kleash.report.words.verdicts import (
    ELSEWHERE,
    LOUD,
    UNTRAINED,
    alike,
    decision,
    loud,
    otherwise,
    sentence,
    together,
    verdict_line,
    word,
)

__all__ = ["comparison", "markdown", "page", "sentence", "terminal", "title", "word"]

SCREEN = 45  # rows
# Rows of each section on it; reasons have what is left. A section shows one line at least.
ROWS = {"verdict": 12, "findings": 6, "next": 12}
FEWEST_REASONS = 6
FIRST = ("diverged", "recommend", "level", *ELSEWHERE)
COLUMNS = ("arm", "metric", "n", "mean", "first", "last", "change", "least", "greatest")


def title(found: Comparison, language: Language) -> str:
    """What is compared, in one line."""
    metric = found.verdicts[0].metric if found.verdicts else ""
    arms = [arm for arm in found.arms if not arm["role"]]
    start = next((arm["name"] for arm in found.arms if arm["role"] == "start"), found.baseline)
    facts = {"arms": len(arms), "baseline": start, "metric": metric}
    return say("title", facts, language)


def comparison(found: Comparison, language: Language, *, whole: bool) -> Document:
    """The answer: with `whole` everything, else what may stand on one screen."""
    verdicts = _verdicts(found, whole=whole)
    lost, rest = (
        [verdict_line(group, found.factor, language) for group in alike(each)]
        for each in ([e for e in verdicts if (e.question == "diverged") == at] for at in (1, 0))
    )
    grouped = [line for line, _ in together(found, language, _grouped(found))]
    said = [*lost, decision(found, language), *grouped, *rest]
    reasons = why(verdicts, language, whole=whole)
    reasons += [confound(each, language) for each in found.confounds]
    kinds = folded(found.findings, language, whole=whole)
    lines = {
        "verdict": Lines(list(dict.fromkeys(said))),
        "why": Lines(list(dict.fromkeys(reasons))),
        "findings": Lines(list(kinds), counts=list(kinds.values())),
        "matrix": Lines(_cells(found, language)),
        "next": Lines([next_step(e, language, whole=whole) for e in found.next], numbered=True),
    }
    sections = [
        Section(key, say(f"heading.{key}", {}, language), [part])
        for key, part in lines.items()
        if part.lines or key in ("verdict", "why")
    ]
    if whole:
        head = [say(f"report.column.{key}", {}, language) for key in COLUMNS]
        table = Table("", head, [_row(each, language) for each in found.summaries], left=2)
        heading = say("heading.summaries", {}, language)
        sections.append(Section("summaries", heading, [table]))
    return Document(title(found, language), language, sections)


def _grouped(found: Comparison) -> tuple[str, ...]:
    """The questions of which all verdicts are told together."""
    gained = any(each.question == "gain" for each in found.verdicts)
    return (*UNTRAINED, "level") if gained else UNTRAINED


def _verdicts(found: Comparison, *, whole: bool) -> list[Judged]:
    """Those that are told one by one, in order."""
    if whole:
        every = [*FIRST, *(each for each in CODES.below("question") if each not in FIRST)]
        verdicts = sorted(found.verdicts, key=lambda each: every.index(each.question))
    else:
        aside = (*ELSEWHERE, *_grouped(found))
        others = [e for e in found.verdicts if loud(e) and e.question not in aside]
        verdicts = sorted([*others, *otherwise(found)], key=rank)
    return [each for each in verdicts if each.question != "recommend"]


def rank(judged: Judged) -> int:
    """What comes first on the screen: which to use, the main question, then what is decided."""
    if judged.question in FIRST:
        return FIRST.index(judged.question)
    return len(FIRST) + (not judged.verdict.startswith(LOUD))


def _cells(found: Comparison, language: Language) -> list[str]:
    """How many cells are missing or estimated, if some are."""
    matrix = found.matrix
    if matrix is None or not (matrix.missing or matrix.estimated):
        return []
    counts = {name: getattr(matrix, name) for name in ("known", "missing", "estimated")}
    return [say("matrix_line", counts, language)]


def _row(each: Summary, language: Language) -> list[str]:
    def text(value: float | None, step: float | None = None) -> str:
        shown = show(None if value is None else Amount(value, each.unit), language)
        return shown if step is None else f"{shown} ({step:g})"

    count = f"{each.n}" + (f" (+{each.estimated}~)" if each.estimated else "")
    return [
        called(each.run if each.arm in each.run else each.arm, language),
        metric_name(each.metric, language),
        count if each.n or each.estimated else "—",
        *map(text, (each.mean, each.first, each.last)),
        "—" if each.change is None else f"{each.change:+.1%}",
        text(each.low, each.low_at),
        text(each.high, each.high_at),
    ]


# --- as text


def markdown(found: Comparison, language: Language) -> str:
    """The whole answer as Markdown."""
    return markdown_of(comparison(found, language, whole=True))


def page(found: Comparison, language: Language, charts: Sequence[Chart] = ()) -> str:
    """The whole answer as an HTML page that needs nothing else, with charts below it."""
    document = comparison(found, language, whole=True)
    document.as_table = say("report.as_table", {}, language)
    if charts:
        figures = [Figure(f"curve-{nth}", each) for nth, each in enumerate(charts)]
        name = say("report.section.curves", {}, language)
        document.sections.append(Section("curves", name, list(figures)))
    return html_of(document)


def terminal(found: Comparison, language: Language, columns: int = 100) -> str:
    """One screen of plain text in so many columns."""
    sections = comparison(found, language, whole=False).sections
    rows = {each.key: rows_of(each, columns) for each in sections}
    shown = {key: _fitting(each, ROWS.get(key, SCREEN)) for key, each in rows.items()}
    taken = sum(_taken(key, rows[key], shown[key]) for key in rows if key != "why")
    # Besides: the title, the reasons' own heading, and the line that says how many are gone.
    shown["why"] = _fitting(rows["why"], max(FEWEST_REASONS, SCREEN - taken - 4))
    lines = [clean(title(found, language))]
    for each in sections:
        every, count = rows[each.key], shown[each.key]
        lines += ["", each.heading] if each.key != "matrix" else []
        lines += [line for row in every[:count] for line in row]
        if count < len(every):
            [part] = each.parts
            counts = part.counts if isinstance(part, Lines) else ()
            gone = sum(counts[count:]) or len(every) - count
            lines.append("  " + say("more_lines", {"count": gone}, language))
    return "\n".join(lines)


def _taken(key: str, rows: Sequence[Sequence[str]], count: int) -> int:
    """The rows that a section takes: heading, so many lines, and the one that says the rest."""
    heading = 0 if key == "matrix" else 2
    return heading + sum(map(len, rows[:count])) + (count < len(rows))


def _fitting(rows: Sequence[Sequence[str]], most: int) -> int:
    """How many of the lines fit in so many rows; the first one always does."""
    used, count = 0, 0
    for each in rows:
        used += len(each)
        if count and used > most:
            break
        count += 1
    return count
