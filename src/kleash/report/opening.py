"""The verdict, its first sentence the decision, and what limits it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kleash.catalogue import LANGUAGES, gap_text, say
from kleash.catalogue.decision import UNTRAINED, decision, told_together
from kleash.catalogue.decision import gap_of as gap_text_of
from kleash.catalogue.lines import OF_ALL, SEVERITIES, place
from kleash.catalogue.report_words import SHARED
from kleash.catalogue.screen import alike, otherwise, verdict_line, word
from kleash.catalogue.terms import QUESTIONS
from kleash.compare import Comparison, Judged
from kleash.report.material import Material, short
from kleash.report.parts import Line, Lines, Linked, Paragraph, Part
from kleash.report.places import joined, judged_place, linked, study_file

FEW = 3  # arms whose verdicts are told one by one in the paragraph
FOLDED = 3  # findings of one kind before they are counted
# Which scores an item of a study can have is for the scorer to know, not to be guessed from them.
OF_DOCUMENTS = ("scores-off-lattice",)


def verdict(made: Material) -> list[Part]:
    """The decision in a sentence; then what it rests on, and how far it reaches."""
    parts: list[Part] = []
    for found in made.comparisons:
        lost = [each for each in found.verdicts if each.question == "diverged"]
        parts += [Paragraph(verdict_line([e], found.factor, made.language)) for e in lost]
        parts += [Paragraph(first(made, found)), Paragraph(rest(made, found))]
    return (
        [*parts, Paragraph(made.say("levels"))] if parts else [Paragraph(made.say("nothing_yet"))]
    )


def first(made: Material, found: Comparison) -> Line:
    """Which arm to use, or that the start is kept."""
    use = recommendation(found)
    where = None if use is None or use.verdict != "better" else judged_place(made, use)
    names = [str(arm["name"]) for arm in found.arms]
    return linked(decision(found, made.language), where, names)


def rest(made: Material, found: Comparison) -> Line:
    """What became of each arm, how sure it is, and what is not said."""
    levels = [each for each in found.verdicts if each.question == "level"]
    gains = [each for each in found.verdicts if each.question == "gain"]
    said: list[Line] = []
    if gains or len(levels) > FEW:
        for line, group in told_together(found, made.language, (*UNTRAINED, "level")):
            names = [arm for each in group for arm in each.arms]
            said.append(linked(line, judged_place(made, group[0]), names))
    else:
        for group in alike(levels):
            line = verdict_line(group, found.factor, made.language)
            names = [arm for each in group for arm in each.arms]
            said.append(linked(line, judged_place(made, group[0]), names))
    said += folded(made, otherwise(found))
    judged = gains or levels
    sure = min((each.level for each in judged), default="L1")
    seeds = min((each.n or 0 for each in judged), default=0)
    these = sure == "L3" and any(each.items is None for each in judged)
    said.append(made.say("sure.L3_these" if these else f"sure.{sure}", n=seeds))
    said.append(made.say("unsaid" if sure == "L3" else "unsaid_setting"))
    return joined(said, "" if made.language == "zh" else " ")


def recommendation(found: Comparison) -> Judged | None:
    """Which arm to use, as the comparison has it."""
    return next((each for each in found.verdicts if each.question == "recommend"), None)


def gap_of(made: Material, judged: Judged) -> str:
    """A gap with its interval."""
    return gap_text_of(judged, made.language)


def folded(made: Material, levels: list[Judged]) -> list[Line]:
    """A sentence for each verdict with the arms that have it."""
    words: dict[str, list[Judged]] = {}
    for each in levels:
        text = word(each, made.language)
        if each.question != "level":
            text = f"{QUESTIONS[each.question][LANGUAGES.index(made.language)]} {text}"
        words.setdefault(text[:1].upper() + text[1:], []).append(each)
    said: list[Line] = []
    for text, group in words.items():
        names = [each.arms[0] for each in group]
        arms, where = made.listed(names), judged_place(made, group[0])
        known = [each.estimate for each in group if each.estimate is not None]
        if known and min(known) == max(known):
            gap = gap_text(known[0], None, None, group[0].unit, made.language)
            line = made.say("word_one", word=text, arms=arms, gap=gap)
            said.append(linked(line, where, names))
        elif known:
            low, high = (
                gap_text(end, None, None, group[0].unit, made.language)
                for end in (min(known), max(known))
            )
            line = made.say("word_of", word=text, arms=arms, low=low, high=high)
            said.append(linked(line, where, names))
        else:
            said.append(made.say("word_only", word=text, arms=arms))
    return said


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
            facts = _once(each.facts)
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


def _once(facts: Mapping[str, Any]) -> dict[str, Any]:
    """Facts that name each arm once, however many of its runs they are about."""
    arms = facts.get("arms")
    told = dict(facts)
    if isinstance(arms, list | tuple):
        told["arms"] = list(dict.fromkeys(arms))
    return told


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
