"""What follows the answer: what limits it, expectations, what to run next, what changed, notes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from kleash.report.material import Material, short
from kleash.report.parts import Code, Lines, Paragraph, Part, Quoted, Table
from kleash.report.words import say
from kleash.report.words.lines import OF_ALL, SEVERITIES, finding, next_step
from kleash.study.results import ArmRow

NUMBER = re.compile(r"(?<![\w.])[-+]?\d+\.\d+(?:\s*%)?")
MORE_SEEDS = ("seeds", "more_seeds", "one_more_seed")
FOLDED = 3  # findings of one kind before they are counted


def limits(made: Material) -> list[Part]:
    """Findings, the worst first, a few of each kind; and what a study does not share."""
    lines = [*_of_study(made), *_of_all(made), *_of_findings(made)]
    return [Lines(lines)] if lines else [Paragraph(made.say("no_limits"))]


def _of_all(made: Material) -> list[str]:
    """What was decided before anything was compared: what arms are, and what they are called."""
    levels = [e for found in made.comparisons for e in found.verdicts[:1]]
    told = [each for level in levels for each in level.because if each.code in OF_ALL]
    return [f"· {say(each.code, each.facts, made.language)}" for each in told]


def _of_findings(made: Material) -> list[str]:
    kinds: dict[tuple[str, str], list[str]] = {}
    for found in made.comparisons:
        for each in found.findings:
            brief = replace(each, facts=_once(made, each.facts))
            text = f"{SEVERITIES[each.severity]} {finding(brief, made.language)}"
            kinds.setdefault((each.severity, each.code), []).append(text)
    lines: list[str] = []
    for severity in SEVERITIES:
        for (mark, _), every in kinds.items():
            if mark == severity:
                same = list(dict.fromkeys(every))
                lines += same[:FOLDED]
                if len(same) > FOLDED:
                    lines.append(made.say("more_findings", count=len(same) - FOLDED))
    return lines


def _once(made: Material, facts: Mapping[str, Any]) -> dict[str, Any]:
    """Facts that name each arm once, and all arms of a study together."""
    arms = facts.get("arms")
    if not isinstance(arms, list | tuple):
        return dict(facts)
    once = list(dict.fromkeys(arms))
    study = () if made.study is None else made.study.arms
    everyone = len(once) > 2 and set(once) == {arm.name for arm in study}
    return {**facts, "arms": [made.say("all_arms", count=len(once))] if everyone else once}


def _of_study(made: Material) -> list[str]:
    study = made.study
    if study is None:
        return []
    errors: list[str] = []
    warnings: list[str] = []
    mixed: dict[str, list[Mapping[str, Any]]] = {}
    for each in study.mixed:
        mixed.setdefault(str(each["what"]), []).append(each)
    for what, entries in mixed.items():
        runs = [str(each["run"]) for each in entries]
        names = made.listed(runs[:FOLDED]) + (" …" if len(runs) > FOLDED else "")
        facts = {"what": made.word("shared", what), "runs": names, "count": len(runs)}
        errors.append(made.say("mixed", **facts, want=short(entries[0]["want"])))
    for run, why in study.failures.items():
        errors.append(made.say("failed", run=run, why=(why.splitlines() or [""])[0]))
    if study.late:
        late, count = made.listed(study.late), len(study.late)
        warnings.append(made.say("late", arms=late, count=count, of=len(study.arms)))
    broken = sum(each.broken for each in study.measured)
    if broken:
        warnings.append(made.say("broken", count=broken))
    lines = [f"{SEVERITIES['error']} {each}" for each in errors]
    return lines + [f"{SEVERITIES['warning']} {each}" for each in warnings]


# --- what was expected


def expectations(made: Material) -> list[Part]:
    """What the author expected and what came out."""
    rows: list[list[str]] = []
    for each in () if made.study is None else made.study.expectations:
        if not each.against:
            rows.append([made.say("expected_alone", arm=each.arm), each.why, "—", "—"])
            continue
        facts = {"arm": each.arm, "baseline": each.against, "metric": each.metric}
        said = made.say("expected_of", direction=made.word("answer", each.direction), **facts)
        verdict = say(f"verdict.{each.verdict}", {}, made.language)
        rows.append([said, each.why, made.word("answer", each.answer), verdict])
    head = made.head("expected", "why", "answer", "verdict")
    return [Table(made.say("expectations_of"), head, rows, left=4)] if rows else []


# --- next


def next_steps(made: Material) -> list[Part]:
    """What to run, cheapest first, with what it costs; of a study also the command."""
    steps = [step for found in made.comparisons for step in found.next]
    lines = list(dict.fromkeys(next_step(step, made.language, whole=True) for step in steps))
    parts: list[Part] = [Lines(lines, numbered=True)] if lines else []
    run = commands(made)
    return [*parts, Code("\n".join(run))] if run else parts


def commands(made: Material) -> list[str]:
    """Of a study, what goes on with it: first what is not done, then further seeds."""
    study, found = made.study, dict[str, None]()
    if study is None:
        return []
    folder = study.folder.resolve()
    here = f"studies/{folder.name}" if folder.parent.name == "studies" else folder.name
    if any(each.state != "done" for each in study.measured):
        found[f"kleash study {here}"] = None
    for step in (step for each in made.comparisons for step in each.next):
        if step.code in MORE_SEEDS:
            more = step.facts.get("more")
            seeds = len(study.file.seeds) + (more if isinstance(more, int) else 2)
            found[f"kleash study {here} seeds={seeds}"] = None
    return list(found)


# --- what changed


def snapshot(made: Material) -> dict[str, Any]:
    """What a later report compares itself with."""
    verdicts = {
        f"{each.question}: {' / '.join(each.arms)}": f"{each.verdict} [{each.level}]"
        for found in made.comparisons
        for each in found.verdicts
    }
    scores = {}
    cells = {}
    if made.study is not None:
        scores = {row.name: made.score(row.score) for row in made.study.rows}
        cells = {name: str(n) for name, n in sorted(made.study.overview.counts().items())}
    return {"verdicts": verdicts, "scores": scores, "cells": cells}


def changes(made: Material) -> list[Part]:
    """Verdicts, scores and states that are not what the last report said."""
    if made.before is None:
        return []
    rows: list[list[str]] = []
    for kind, after in snapshot(made).items():
        before = made.before.get(kind, {})
        for key in dict.fromkeys([*before, *after]):
            ends = [str(side.get(key, "—")) for side in (before, after)]
            if ends[0] != ends[1]:
                rows.append([made.say(f"changed.{kind}", name=key), *ends])
    if not rows:
        return [Paragraph(made.say("unchanged"))]
    return [Table(made.say("changes_of"), made.head("what", "before", "now"), rows, left=3)]


# --- the author's notes


def notes(made: Material) -> list[Part]:
    """The author's own words as they are, and whether anything measured rounds to each number."""
    if not made.notes.strip():
        return []
    known = list(_known(made))
    rows = [
        [str(line), number, _matching(number, known) or made.say("unmatched")]
        for line, text in enumerate(made.notes.splitlines(), 1)
        for number in NUMBER.findall(text)
    ]
    head, said = made.head("line", "value", "matches"), made.say("notes_of")
    table: list[Part] = [Table(said, head, rows, left=3)] if rows else []
    return [Quoted(made.notes.rstrip()), *table]


def _known(made: Material) -> Iterator[tuple[float, str]]:
    """Every value that a note may quote, and what it is."""
    study = made.study
    for row in () if study is None else study.rows:
        yield from _known_of(made, row)
    for each in () if study is None else study.measured:
        if each.mean is not None:
            cell = each.cell
            place = f"{each.checkpoint}, {cell.split}, {cell.shots}, n {cell.items}"
            yield each.mean, f"{cell.arm}-s{cell.seed}, {place}"


def _known_of(made: Material, row: ArmRow) -> Iterator[tuple[float, str]]:
    ours = made.arm(row.name)
    for key, value in row.keys.items():
        if isinstance(value, float):
            yield value, f"{ours}: {key}"
    for name, interval in (("score", row.score), ("kl", row.kl), ("gap", row.gap)):
        if interval is not None:
            whose = f"{ours} − {made.arm(row.against)}" if name == "gap" else ours
            for end in (interval.estimate, interval.low, interval.high):
                if end is not None:
                    yield end, f"{whose}: {made.column(name)}"


def _matching(text: str, known: list[tuple[float, str]]) -> str:
    plain = text.replace("%", "").strip()
    decimals, times = len(plain.partition(".")[2]), 100.0 if "%" in text else 1.0
    written = float(plain.lstrip("+-"))
    # A difference of percentages is often written without its sign.
    for value, label in known:
        for scaled in {times * value, 100.0 * value}:
            if abs(abs(scaled) - written) <= 0.5000001 * 10.0**-decimals:
                return label
    return ""
