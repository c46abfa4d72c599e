"""What follows the answer: what limits it, what was expected, what to run next."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from kleash.report.material import Material, short
from kleash.report.parts import Code, Lines, Paragraph, Part, Table
from kleash.report.words import say
from kleash.report.words.verdicts import OF_ALL, SEVERITIES, finding, next_step

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
