"""A comparison as blocks of text: verdict first, then why, then what to run next.

The same blocks make the terminal's screen, the Markdown page and the HTML page.
"""

from __future__ import annotations

import html
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from kleash.catalogue import (
    LANGUAGES,
    Language,
    called,
    cut,
    gap_text,
    metric_name,
    pad,
    say,
    show,
    width,
)
from kleash.catalogue.decision import UNTRAINED, decision, told_together
from kleash.catalogue.lines import SEVERITIES, confound, folded, next_step, placed, why
from kleash.catalogue.terms import (
    ABOUT_ARMS,
    COLUMNS,
    COUNTED,
    HEADINGS,
    PHASES,
    QUESTIONS,
    QUIET,
    WORDS,
)
from kleash.compare import Amount, Comparison, Judged, Summary

SCREEN = 45  # rows
# Rows of each block on it; reasons have what is left. A block shows one line at least.
ROWS = {"verdict": 12, "findings": 6, "next": 12}
FEWEST_REASONS = 6
LOUD = ("better", "worse")
ELSEWHERE = ("average", "at_end")  # on the curves, than the level
FIRST = ("diverged", "recommend", "level", *ELSEWHERE)


@dataclass
class Block:
    """A heading with lines or a table below it."""

    kind: str
    heading: str
    lines: list[str] = field(default_factory=list)
    numbered: bool = False
    stands_for: list[int] = field(default_factory=list)
    """How many findings each line folds; 1 each where it is empty."""
    table: list[list[str]] = field(default_factory=list)


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
    if judged.question == "diverged":
        return say(judged.because[0].code, judged.because[0].facts, language) + stop
    question = QUESTIONS[judged.question][LANGUAGES.index(language)]
    ours = arms or called(judged.arms[0], language)
    parts = [word(judged, language)]
    if judged.verdict == "identical":
        bound = Amount(judged.bound or 0.0, judged.unit, gap=True)
        parts.append(say("bound_of", {"n": judged.items or judged.n, "bound": bound}, language))
    elif judged.estimate is not None:
        parts.append(_measured(judged, language))
    if judged.also_changed and (whole or judged.question == "level"):
        blame = {"factor": list(factor), "keys": list(judged.also_changed)}
        parts.append(say("not_attributable", blame, language))
    colon = "：" if language == "zh" else ": "
    if judged.question in ABOUT_ARMS:
        who = show([called(arm, language) for arm in judged.arms], language)
    else:
        who = say("against", {"ours": ours, "theirs": judged.arms[1]}, language)
    return f"{question} {who}{colon}{comma.join(parts)} [{judged.level}]{stop}"


def _measured(judged: Judged, language: Language) -> str:
    """The metric's name and the estimate with its interval and what was counted."""
    estimate = judged.estimate or 0.0
    gap = gap_text(estimate, judged.low, judged.high, judged.unit, language)
    if judged.question == "trend":
        gap = say("per_doubling", {"gap": gap}, language)
    counted = COUNTED.get(judged.counted, ("", ""))[LANGUAGES.index(language)]
    frame = "gap_of" if judged.low is None else "interval_of"
    facts = {"gap": gap, "n": judged.n, "counted": counted}
    name = placed(judged.metric, judged.over, language)
    return f"{name} {say(frame, facts, language) if judged.n else gap}"


def loud(judged: Judged) -> bool:
    """Whether a verdict belongs on the screen: the quiet questions only where they decide."""
    if judged.question in PHASES:
        return False
    return judged.question not in QUIET or judged.verdict.startswith(LOUD)


def otherwise(found: Comparison) -> list[Judged]:
    """Where the average over training says something else than the end, or the end than it."""
    levels = {each.arms: each for each in found.verdicts if each.question == "level"}
    return [
        each
        for each in found.verdicts
        if each.question in ELSEWHERE
        and loud(each)
        and levels[each.arms].verdict.partition("_")[0] not in each.verdict
    ]


def _rank(judged: Judged) -> int:
    """What comes first on the screen: which to use, the main question, then what is decided."""
    if judged.question in FIRST:
        return FIRST.index(judged.question)
    return len(FIRST) + (not judged.verdict.startswith(LOUD))


def _place(judged: Judged) -> int:
    """On a page: what comes first on the screen, too, then question by question."""
    every = [*FIRST, *(each for each in QUESTIONS if each not in FIRST)]
    return every.index(judged.question)


def alike(verdicts: Sequence[Judged]) -> list[list[Judged]]:
    """Verdicts of which the same is to be said, together."""
    groups: dict[tuple[Any, ...], list[Judged]] = {}
    for each in verdicts:
        against = each.arms[1:] if each.question not in ABOUT_ARMS else each.arms
        same = (each.question, each.verdict, each.estimate, each.also_changed, each.n, against)
        groups.setdefault(same, []).append(each)
    return list(groups.values())


def verdict_line(group: Sequence[Judged], factor: Sequence[str], language: Language) -> str:
    """One line for verdicts that are alike."""
    names = [called(each.arms[0], language) for each in group]
    arms = ("、" if language == "zh" else ", ").join(names)
    return sentence(group[0], language, factor=factor, arms=arms, whole=False)


def blocks(found: Comparison, language: Language, *, whole: bool) -> list[Block]:
    """The answer: with `whole` everything, else what may stand on one screen."""

    def block(kind: str, lines: list[str], *, numbered: bool = False) -> Block:
        heading = HEADINGS[kind][LANGUAGES.index(language)]
        return Block(kind, heading, list(dict.fromkeys(lines)), numbered)

    gained = any(each.question == "gain" for each in found.verdicts)
    grouped = (*UNTRAINED, "level") if gained else UNTRAINED
    if whole:
        verdicts = sorted(found.verdicts, key=_place)
    else:
        aside = (*ELSEWHERE, *grouped)  # told elsewhere, or together
        others = [e for e in found.verdicts if loud(e) and e.question not in aside]
        verdicts = sorted([*others, *otherwise(found)], key=_rank)
    verdicts = [each for each in verdicts if each.question != "recommend"]
    reasons = why(verdicts, language, whole=whole)
    reasons += [confound(each, language) for each in found.confounds]
    lost, rest = (
        [verdict_line(group, found.factor, language) for group in alike(each)]
        for each in ([e for e in verdicts if (e.question == "diverged") == at] for at in (1, 0))
    )
    grouped_lines = [line for line, _ in told_together(found, language, grouped)]
    said = [*lost, decision(found, language), *grouped_lines, *rest]
    made = [block("verdict", said), block("why", reasons)]
    kinds = folded(found.findings, language, whole=whole)
    made.append(replace(block("findings", list(kinds)), stands_for=list(kinds.values())))
    if found.matrix is not None and (found.matrix.missing or found.matrix.estimated):
        counts = {name: getattr(found.matrix, name) for name in ("known", "missing", "estimated")}
        made.append(block("matrix", [say("matrix_line", counts, language)]))
    steps = [next_step(step, language, whole=whole) for step in found.next]
    made.append(block("next", steps, numbered=True))
    made = [each for each in made if each.lines or each.kind in ("verdict", "why")]
    if whole:
        at = LANGUAGES.index(language)
        rows = [[column[at] for column in COLUMNS]]
        rows += [_row(each, language) for each in found.summaries]
        made.append(replace(block("summaries", []), table=rows))
    return made


def _row(each: Summary, language: Language) -> list[str]:
    def text(value: float | None) -> str:
        return show(None if value is None else Amount(value, each.unit), language)

    def with_step(value: float | None, step: float | None) -> str:
        return text(value) if step is None else f"{text(value)} ({step:g})"

    count = f"{each.n}" + (f" (+{each.estimated}~)" if each.estimated else "")
    change = "—" if each.change is None else f"{each.change:+.1%}"
    return [
        called(each.run if each.arm in each.run else each.arm, language),
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
    arms = [arm for arm in found.arms if not arm["role"]]
    start = next((arm["name"] for arm in found.arms if arm["role"] == "start"), found.baseline)
    facts = {"arms": len(arms), "baseline": start, "metric": metric}
    return say("title", facts, language)


def terminal(found: Comparison, language: Language, columns: int = 100) -> str:
    """One screen of plain text in so many columns."""
    made = [(each, _rows(each, columns)) for each in blocks(found, language, whole=False)]
    shown = {each.kind: _fitting(rows, ROWS.get(each.kind, SCREEN)) for each, rows in made}
    taken = sum(_taken(each, rows, shown[each.kind]) for each, rows in made if each.kind != "why")
    why = next(rows for each, rows in made if each.kind == "why")
    # Besides: the title, the reasons' own heading, and the line that says how many are gone.
    shown["why"] = _fitting(why, max(FEWEST_REASONS, SCREEN - taken - 4))
    lines = [title(found, language)]
    for each, rows in made:
        count = shown[each.kind]
        if each.kind != "matrix":
            lines += ["", each.heading]
        lines += [line for row in rows[:count] for line in row]
        if count < len(rows):
            gone = sum(each.stands_for[count:]) or len(rows) - count
            lines.append("  " + say("more_lines", {"count": gone}, language))
    return "\n".join(_clean(line) for line in lines)


def _taken(block: Block, rows: Sequence[Sequence[str]], count: int) -> int:
    """The rows that a block takes: heading, so many lines, and the one that says the rest."""
    heading = 0 if block.kind == "matrix" else 2
    return heading + sum(map(len, rows[:count])) + (count < len(rows))


def _rows(block: Block, columns: int) -> list[list[str]]:
    """Each line of a block with its mark, cut to the width of the screen."""
    found = []
    for number, text in enumerate(block.lines, 1):
        mark = f"{number}. " if block.numbered else "  " if text[:2] in _MARKS else "- "
        first, *rest = cut(text, columns - width(mark))
        found.append([mark + first, *(" " * width(mark) + each for each in rest)])
    return found


def _fitting(rows: Sequence[Sequence[str]], most: int) -> int:
    """How many of the lines fit in so many rows; the first one always does."""
    used, count = 0, 0
    for each in rows:
        used += len(each)
        if count and used > most:
            break
        count += 1
    return count


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


def page(found: Comparison, language: Language, style: str = "", figures: str = "") -> str:
    """The whole answer as an HTML page that needs nothing else, with figures as they were drawn."""
    name = html.escape(_clean(title(found, language)))
    parts = [
        f'<!doctype html><html lang="{language}"><meta charset="utf-8"><title>{name}</title>',
        "<style>body{font:16px/1.6 system-ui,sans-serif;max-width:60em;margin:2em auto}"
        "table{border-collapse:collapse;font-size:14px}td,th{padding:.2em .6em;border-bottom:"
        "1px solid #ccc;text-align:right}td:nth-child(-n+2),th:nth-child(-n+2){text-align:left}"
        f"{style}</style>",
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
    return "\n".join([*parts, figures]) + "\n</html>\n"
