"""A comparison as blocks of text: verdict first, then why, then what to run next.

The same blocks make the terminal's screen, the Markdown page and the HTML page.
"""

from __future__ import annotations

import html
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import Any

from kleash.catalogue import (
    LANGUAGES,
    Language,
    cut,
    gap_text,
    metric_name,
    pad,
    say,
    show,
    width,
)
from kleash.catalogue.terms import COLUMNS, COUNTED, HEADINGS, QUESTIONS, WORDS
from kleash.compare import Amount, Comparison, Confound, Judged, Step, Summary

SHOWN = {"verdict": 10, "why": 14, "findings": 5, "next": 8}  # lines of one screen
SEVERITIES = {"error": "✗", "warning": "!", "note": "·"}


@dataclass
class Block:
    """A heading with lines or a table below it."""

    heading: str
    lines: list[str] = field(default_factory=list)
    numbered: bool = False
    table: list[list[str]] = field(default_factory=list)
    rest: str = ""


def word(judged: Judged, language: Language) -> str:
    """The verdict in words, the question's own where it has some."""
    own = WORDS.get((judged.question, judged.verdict)) or WORDS["", judged.verdict]
    return own[LANGUAGES.index(language)]


def sentence(
    judged: Judged,
    language: Language,
    *,
    factor: Sequence[str],
    arms: str = "",
    whole: bool = True,
) -> str:
    """One verdict as a sentence that can be quoted: who, what, how sure, at which level."""
    stop, comma = ("。", "；") if language == "zh" else (".", "; ")
    question = QUESTIONS[judged.question][LANGUAGES.index(language)]
    ours = arms or judged.arms[0]
    parts = [word(judged, language)]
    if judged.question == "recommend":
        answer = parts[0] if judged.verdict == "undecided" else f"{ours} [{judged.level}]"
        return f"{question} {answer}{stop}"
    if judged.verdict == "identical":
        bound = Amount(judged.bound or 0.0, judged.unit, gap=True)
        parts.append(say("bound_of", {"n": judged.n, "bound": bound}, language))
    elif judged.estimate is not None:
        gap = gap_text(judged.estimate, judged.low, judged.high, judged.unit, language)
        counted = COUNTED.get(judged.counted, ("", ""))[LANGUAGES.index(language)]
        frame = "gap_of" if judged.low is None else "interval_of"
        facts = {"gap": gap, "n": judged.n, "counted": counted}
        name = metric_name(judged.metric, language)
        parts.append(f"{name} {say(frame, facts, language) if judged.n else gap}")
    if judged.also_changed and (whole or judged.question == "level"):
        blame = {"factor": list(factor), "keys": list(judged.also_changed)}
        parts.append(say("not_attributable", blame, language))
    pair = say("against", {"ours": ours, "theirs": judged.arms[1]}, language)
    colon = "：" if language == "zh" else ": "
    return f"{question} {pair}{colon}{comma.join(parts)} [{judged.level}]{stop}"


def verdict_lines(found: Comparison, language: Language) -> list[str]:
    """One line for each verdict; arms of which the same is to be said share one."""
    groups: dict[tuple[Any, ...], list[Judged]] = {}
    for each in found.verdicts:
        same = (each.question, each.verdict, each.estimate, each.also_changed, each.n)
        groups.setdefault(same, []).append(each)
    joint = "、" if language == "zh" else ", "
    return [
        sentence(
            group[0],
            language,
            factor=found.factor,
            arms=joint.join(each.arms[0] for each in group),
            whole=False,
        )
        for group in groups.values()
    ]


def reasons(judged: Judged, language: Language) -> list[str]:
    """Why a verdict is what it is, a sentence each."""
    return [say(each.code, each.facts, language) for each in judged.because]


def _why(found: Comparison, language: Language) -> list[str]:
    """Reasons of the main question one by one; those of another question share a line."""
    lines = []
    for each in found.verdicts:
        told = reasons(each, language)
        if each.question == "level":
            lines += told
        elif each.question != "recommend":
            question = QUESTIONS[each.question][LANGUAGES.index(language)]
            lines.append(f"{question} " + ("；" if language == "zh" else "; ").join(told))
    return lines


def place(where: Any, language: Language) -> str:
    """Where something stands, by its file's name."""
    file = PurePath(where.file).name
    return (
        file if where.line is None else say("where", {"file": file, "line": where.line}, language)
    )


def finding(found: Any, language: Language) -> str:
    """A finding as a sentence with where it stands."""
    text = say(found.code, found.facts, language)
    first = f" [{place(found.where[0], language)}]" if found.where else ""
    return text + first


def cost(step: Step, language: Language) -> str:
    """What a step costs, from the logs' own times where they tell."""
    if step.hours == (0, 0):
        return say("cost_none", {}, language)
    if step.hours is not None:
        times = step.devices or 1
        facts = {"low": f"{times * step.hours[0]:.0f}", "high": f"{times * step.hours[1]:.0f}"}
        return say("cost_devices" if step.devices else "cost_hours", facts, language)
    trains = step.code in ("unconfound", "seeds", "more_seeds")
    return say("cost_unknown" if trains else "cost_inference", {}, language)


def confound(each: Confound, language: Language) -> str:
    """What else changed, or what sources disagree on, with the sources."""
    if each.kind == "contradicted":
        facts = {"arm": each.arms[0], "key": each.key, "values": list(each.values)}
        return say("contradicted", facts, language)
    against = " / ".join(each.arms)
    files = [PurePath(source).name for source in each.sources]
    pair = " / ".join(show(value, language) for value in each.values)
    facts = {"key": each.key, "name": each.key, "values": pair, "arms": against, "sources": files}
    return say(each.kind, facts, language)


def blocks(found: Comparison, language: Language, *, whole: bool) -> list[Block]:
    """The answer: with `whole` everything, else one screen of it."""
    at = LANGUAGES.index(language)
    verdicts = Block(HEADINGS["verdict"][at], verdict_lines(found, language))
    why = _why(found, language)
    why += [confound(each, language) for each in found.confounds]
    made = [verdicts, Block(HEADINGS["why"][at], list(dict.fromkeys(why)))]
    lines = [f"{SEVERITIES[one.severity]} {finding(one, language)}" for one in found.findings]
    if lines:
        made.append(Block(HEADINGS["findings"][at], list(dict.fromkeys(lines))))
    steps = [
        f"{say(step.code, step.facts, language)} — {say(f'{step.code}.why', {}, language)}"
        + (f"（{cost(step, language)}）" if language == "zh" else f" ({cost(step, language)})")
        for step in found.next
    ]
    if steps:
        made.append(Block(HEADINGS["next"][at], steps, numbered=True))
    if not whole:
        most = {HEADINGS[name][at]: lines for name, lines in SHOWN.items()}
        for block in made:
            _shorten(block, most[block.heading], language)
    if found.matrix is not None and (found.matrix.missing or found.matrix.estimated):
        counts = {name: getattr(found.matrix, name) for name in ("known", "missing", "estimated")}
        made.append(Block(HEADINGS["matrix"][at], [say("matrix_line", counts, language)]))
    if whole:
        rows = [[column[at] for column in COLUMNS]]
        rows += [_row(each, language) for each in found.summaries]
        made.append(Block(HEADINGS["summaries"][at], table=rows))
    return made


def _shorten(block: Block, most: int, language: Language) -> None:
    """Leave the first lines of a block, and say how many are gone."""
    if len(block.lines) > most:
        block.rest = say("more_lines", {"count": len(block.lines) - most}, language)
        block.lines = block.lines[:most]


def _row(each: Summary, language: Language) -> list[str]:
    def text(value: float | None) -> str:
        return show(None if value is None else Amount(value, each.unit), language)

    def with_step(value: float | None, step: float | None) -> str:
        return text(value) if step is None else f"{text(value)} ({step:g})"

    count = f"{each.n}" + (f" (+{each.estimated}~)" if each.estimated else "")
    change = "—" if each.change is None else f"{each.change:+.1%}"
    return [
        each.run if each.arm in each.run else each.arm,
        metric_name(each.metric, language),
        count if each.n or each.estimated else "—",
        text(each.mean),
        text(each.first),
        text(each.last),
        change,
        with_step(each.low, each.low_at),
        with_step(each.high, each.high_at),
    ]


def title(found: Comparison, language: Language) -> str:
    """What is compared, in one line."""
    metric = found.verdicts[0].metric if found.verdicts else ""
    facts = {"arms": len(found.arms), "baseline": found.baseline, "metric": metric}
    return say("title", facts, language)


def terminal(found: Comparison, language: Language, columns: int = 100) -> str:
    """One screen of plain text in so many columns."""
    lines = [title(found, language)]
    for block in blocks(found, language, whole=False):
        lines += ["", block.heading]
        for number, text in enumerate(block.lines, 1):
            mark = f"{number}. " if block.numbered else "  " if text[:2] in _MARKS else "- "
            first, *rest = cut(text, columns - width(mark))
            lines += [mark + first, *(" " * width(mark) + each for each in rest)]
        if block.rest:
            lines.append(f"  {block.rest}")
    return "\n".join(_clean(line) for line in lines)


_MARKS = tuple(f"{mark} " for mark in SEVERITIES.values())


def _clean(line: str) -> str:
    """Without control characters, which a name in a file may hold."""
    return "".join(each for each in line if unicodedata.category(each) not in ("Cc", "Cf"))


def markdown(found: Comparison, language: Language) -> str:
    """The whole answer as a Markdown page."""
    lines = [f"# {_clean(title(found, language))}"]
    for block in blocks(found, language, whole=True):
        lines += ["", f"## {block.heading}", ""]
        for number, text in enumerate(block.lines, 1):
            lines.append(f"{number}. {_clean(text)}" if block.numbered else f"- {_clean(text)}")
        if block.table:
            lines += _table(block.table)
    return "\n".join(lines) + "\n"


def _table(rows: list[list[str]]) -> list[str]:
    """Rows in columns that line up in a terminal, too, with Chinese in them."""
    rows = [[_clean(cell).replace("|", "\\|") for cell in row] for row in rows]
    columns = [max(3, *(width(row[at]) for row in rows)) for at in range(len(rows[0]))]
    texts = [[pad(cell, columns[at], right=at > 1) for at, cell in enumerate(row)] for row in rows]
    dashes = ["-" * size if at < 2 else "-" * (size - 1) + ":" for at, size in enumerate(columns)]
    return ["| " + " | ".join(row) + " |" for row in (texts[0], dashes, *texts[1:])]


def page(found: Comparison, language: Language) -> str:
    """The whole answer as an HTML page that needs nothing else."""
    name = html.escape(_clean(title(found, language)))
    parts = [
        f'<!doctype html><html lang="{language}"><meta charset="utf-8"><title>{name}</title>',
        "<style>body{font:16px/1.6 system-ui,sans-serif;max-width:60em;margin:2em auto}"
        "table{border-collapse:collapse;font-size:14px}td,th{padding:.2em .6em;border-bottom:"
        "1px solid #ccc;text-align:right}td:nth-child(-n+2),th:nth-child(-n+2){text-align:left}"
        "</style>",
        f"<h1>{name}</h1>",
    ]
    for block in blocks(found, language, whole=True):
        kind = "ol" if block.numbered else "ul"
        items = "".join(f"<li>{html.escape(_clean(text))}</li>" for text in block.lines)
        parts.append(f"<h2>{html.escape(block.heading)}</h2>")
        parts.append(f"<{kind}>{items}</{kind}>" if items else "")
        if block.table:
            head, *rows = block.table
            cells = "".join(f"<th>{html.escape(cell)}</th>" for cell in head)
            body = "".join(
                "<tr>" + "".join(f"<td>{html.escape(_clean(c))}</td>" for c in row) + "</tr>"
                for row in rows
            )
            parts.append(f"<table><tr>{cells}</tr>{body}</table>")
    return "\n".join(parts) + "\n</html>\n"
