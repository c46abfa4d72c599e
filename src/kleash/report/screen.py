"""A comparison on one screen of the terminal: verdict first, then why, then what to run next.

What does not fit is counted: a report of the same sources has it, and so has `--json`.
"""

from __future__ import annotations

from collections.abc import Sequence

from kleash.compare.comparison import Comparison, Judged
from kleash.report.parts import Document, Lines, Section, clean
from kleash.report.terminal import rows_of
from kleash.report.words import Language, say
from kleash.report.words.verdicts import (
    ELSEWHERE,
    LOUD,
    UNTRAINED,
    alike,
    confound,
    decision,
    folded,
    loud,
    next_step,
    otherwise,
    together,
    verdict_line,
    why,
)

SCREEN = 45  # rows
# Rows of each section on it; reasons have what is left. A section shows one line at least.
ROWS = {"verdict": 12, "findings": 6, "next": 12}
FEWEST_REASONS = 6
FIRST = ("diverged", "recommend", "level", *ELSEWHERE)


def document(found: Comparison, language: Language) -> Document:
    """What may stand on the screen."""
    verdicts = _verdicts(found)
    lost, rest = (
        [verdict_line(group, found.factor, language) for group in alike(each)]
        for each in ([e for e in verdicts if (e.question == "diverged") == at] for at in (1, 0))
    )
    grouped = [line for line, _ in together(found, language, _grouped(found))]
    said = [*lost, decision(found, language), *grouped, *rest]
    reasons = why(verdicts, language) + [confound(each, language) for each in found.confounds]
    kinds = folded(found.findings, language)
    lines = {
        "verdict": Lines(list(dict.fromkeys(said))),
        "why": Lines(list(dict.fromkeys(reasons))),
        "findings": Lines(list(kinds), counts=list(kinds.values())),
        "matrix": Lines(_cells(found, language)),
        "next": Lines([next_step(e, language, whole=False) for e in found.next], numbered=True),
    }
    sections = [
        Section(key, say(f"heading.{key}", {}, language), [part])
        for key, part in lines.items()
        if part.lines or key in ("verdict", "why")
    ]
    metric = found.verdicts[0].metric if found.verdicts else ""
    arms = [arm for arm in found.arms if not arm["role"]]
    start = next((arm["name"] for arm in found.arms if arm["role"] == "start"), found.baseline)
    facts = {"arms": len(arms), "baseline": start, "metric": metric}
    return Document(say("title", facts, language), language, sections)


def _grouped(found: Comparison) -> tuple[str, ...]:
    """The questions of which all verdicts are told together."""
    gained = any(each.question == "gain" for each in found.verdicts)
    return (*UNTRAINED, "level") if gained else UNTRAINED


def _verdicts(found: Comparison) -> list[Judged]:
    """Those that are told one by one, in order."""
    aside = (*ELSEWHERE, *_grouped(found), "recommend")
    others = [e for e in found.verdicts if loud(e) and e.question not in aside]
    return sorted([*others, *otherwise(found)], key=rank)


def rank(judged: Judged) -> int:
    """What comes first on the screen: which to use, the main question, then what is decided."""
    if judged.question in FIRST:
        return FIRST.index(judged.question)
    return len(FIRST) + (not judged.verdict.startswith(LOUD))


def _cells(found: Comparison, language: Language) -> list[str]:
    """How many cells are missing or estimated, if some are."""
    matrix = found.matrix
    if not (matrix.missing or matrix.estimated):
        return []
    counts = {name: getattr(matrix, name) for name in ("known", "missing", "estimated")}
    return [say("matrix_line", counts, language)]


def terminal(found: Comparison, language: Language, columns: int = 100) -> str:
    """One screen of plain text in so many columns."""
    whole = document(found, language)
    rows = {each.key: rows_of(each, columns) for each in whole.sections}
    shown = {key: _fitting(each, ROWS.get(key, SCREEN)) for key, each in rows.items()}
    taken = sum(_taken(key, rows[key], shown[key]) for key in rows if key != "why")
    # Besides: the title, the reasons' own heading, and the line that says how many are gone.
    shown["why"] = _fitting(rows["why"], max(FEWEST_REASONS, SCREEN - taken - 4))
    lines = [clean(whole.title)]
    for each in whole.sections:
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
