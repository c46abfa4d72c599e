"""What limits a verdict; which arm it recommends, and its gaps as text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kleash.catalogue import say
from kleash.catalogue.decision import gap_of as gap_text_of
from kleash.catalogue.lines import OF_ALL, SEVERITIES, place
from kleash.catalogue.report_words import SHARED
from kleash.compare import Comparison, Judged
from kleash.report.material import Material, short
from kleash.report.parts import Line, Lines, Linked, Paragraph, Part
from kleash.report.places import joined, linked, study_file

FOLDED = 3  # findings of one kind before they are counted
# That advantages are centred is no news to whoever runs a study.
OF_DOCUMENTS = ("constant-by-construction",)


def recommendation(found: Comparison) -> Judged | None:
    """Which arm to use, as the comparison has it."""
    return next((each for each in found.verdicts if each.question == "recommend"), None)


def gap_of(made: Material, judged: Judged) -> str:
    """A gap with its interval."""
    return gap_text_of(judged, made.language)


# --- what limits it


def limits(made: Material) -> list[Part]:
    """Findings, the worst first, a few of each kind; and what a study does not share."""
    lines: list[Line] = [*_of_study(made), *_of_all(made), *_of_findings(made)]
    return [Lines(lines)] if lines else [Paragraph(made.say("no_limits"))]


def _of_all(made: Material) -> list[Line]:
    """What was decided before anything was compared: what arms are, and what they are called."""
    levels = [e for found in made.comparisons for e in found.verdicts[:1]]
    told = [each for level in levels for each in level.because if each.code in OF_ALL]
    return [f"· {say(each.code, each.facts, made.language)}" for each in told]


def _of_findings(made: Material) -> list[Line]:
    kinds: dict[tuple[str, str], dict[str, Line]] = {}
    for found in made.comparisons:
        for each in found.findings:
            if made.study is not None and each.code in OF_DOCUMENTS:
                continue
            facts = _once(made, each.facts)
            text = f"{SEVERITIES[each.severity]} {say(each.code, facts, made.language)}"
            line: Line = text
            if each.where:
                names = [str(arm) for arm in facts.get("arms") or (facts.get("arm") or "",) if arm]
                shown = Linked(f"[{place(each.where[0], made.language)}]", each.where[0])
                line = joined([linked(text, each.where[0], names), shown], " ")
            kinds.setdefault((each.severity, each.code), {})[text] = line
    lines: list[Line] = []
    for severity in SEVERITIES:
        for (mark, _), same in kinds.items():
            if mark == severity:
                lines += list(same.values())[:FOLDED]
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


def _of_study(made: Material) -> list[Line]:
    study = made.study
    if study is None:
        return []
    lines: list[Line] = []
    mixed: dict[str, list[Mapping[str, Any]]] = {}
    for each in study.mixed:
        mixed.setdefault(str(each["what"]), []).append(each)
    for what, entries in mixed.items():
        runs = [str(each["run"]) for each in entries]
        told = made.listed(runs[:FOLDED]) + (" …" if len(runs) > FOLDED else "")
        wanted = short(entries[0]["want"])
        facts = {"what": made.word(SHARED, what), "runs": told, "count": len(runs), "want": wanted}
        lines.append(f"{SEVERITIES['error']} {made.say('mixed', **facts)}")
    for run, why in study.failures.items():
        told = made.say("failed", run=run, why=(why.splitlines() or [""])[0])
        told = f"{SEVERITIES['error']} {told}"
        lines.append(linked(told, study_file(made, "plan.json"), [run]))
    if study.late:
        late, count = made.listed(study.late), len(study.late)
        told = made.say("late", arms=late, count=count, of=len(study.arms))
        lines.append(f"{SEVERITIES['warning']} {told}")
    broken = sum(each.broken for each in study.measured)
    if broken:
        lines.append(f"{SEVERITIES['warning']} {made.say('broken', count=broken)}")
    return lines
