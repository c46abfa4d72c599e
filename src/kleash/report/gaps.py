"""Gaps as a forest and as a scoreboard; how arms got there; what is recommended, as a file."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from kleash.compare.comparison import Comparison, Judged
from kleash.report.answer import score_of
from kleash.report.charts import Chart, Dot, whiskers
from kleash.report.courses import beside
from kleash.report.material import Material
from kleash.report.parts import Figure, Lines, Paragraph, Part, Table
from kleash.report.words import AXES, LANGUAGES, say, show
from kleash.report.words.verdicts import UNTRAINED, loud, placed, reasons, sentence, together, word

BOARD = ("level", "average", "at_end", "best_step", "faster", "steadier")
HOW = ("faster", "steadier", "collapse")
MOST_TOLD = 16  # verdicts with their reasons, on a page


# --- forest


def gaps(made: Material) -> list[Part]:
    """A forest of gaps to the start, and one for each arm that others are compared with."""
    parts: list[Part] = []
    for found in made.comparisons:
        for group in (*by_reference(found, "gain"), *by_reference(found, "level")):
            levels = [each for each in group if each.estimate is not None]
            if levels:
                parts.append(Figure(f"gaps-{len(parts) + 1}", _forest(made, levels)))
    return parts


def by_reference(found: Comparison, *questions: str) -> list[list[Judged]]:
    """The verdicts on some questions, by the arm that others are compared with."""
    groups: dict[str, list[Judged]] = {}
    for each in found.verdicts:
        if each.question in questions:
            groups.setdefault(each.arms[-1], []).append(each)
    return list(groups.values())


def _forest(made: Material, levels: Sequence[Judged]) -> Chart:
    fraction = levels[0].unit == "fraction"
    times = 100.0 if fraction else 1.0
    drawn = {arm.name for arm in beside(made)} or {each.arms[0] for each in levels}
    dots = [
        Dot(
            name=made.arm(each.arms[0]),
            value=times * (each.estimate or 0.0),
            low=None if each.low is None else times * each.low,
            high=None if each.high is None else times * each.high,
            # Words without what stands in brackets after them.
            note=f"{re.split(r' ?[（(]', word(each, made.language))[0]} [{each.level}]",
        )
        for each in levels
        if each.arms[0] in drawn
    ]
    apart = sum(e.verdict.startswith(("better", "worse")) for e in levels)
    over = levels[0].over if len({each.over for each in levels}) == 1 else None
    facts = {
        "baseline": made.arm(levels[0].arms[1]),
        "metric": placed(levels[0].metric, over, made.language),
    }
    title = made.say("forest" if apart else "forest_none", apart=apart, of=len(levels), **facts)
    axis = made.say("forest_axis_points" if fraction else "forest_axis", **facts)
    head = made.head("arm", "gap", "low", "high", "verdict")
    return whiskers(title, axis, dots, head, margin=times * (levels[0].margin or 0.0))


# --- scoreboard


def scoreboard(made: Material) -> list[Part]:
    """One table for each baseline: dimension by dimension, who is ahead or that it is open."""
    parts: list[Part] = []
    for group in (each for found in made.comparisons for each in by_reference(found, *BOARD)):
        several = len({each.arms[0] for each in group}) > 1
        rows = []
        for each in sorted(group, key=lambda one: BOARD.index(one.question)):
            ours, theirs = values_of(made, each)
            who = [made.arm(each.arms[0])] if several else []
            dimension = say(f"question.{each.question}", {}, made.language)
            end = (theirs, ours, made.gap(each), ahead(made, each), each.level)
            rows.append([dimension, *who, *end])
        others, baseline = (made.arm(group[0].arms[at]) for at in (0, -1))
        head = made.head("dimension", *(["arm"] if several else []))
        head += [baseline, made.column("ours") if several else others]
        head += made.head("interval", "winner", "level")
        said = made.say("scoreboard_of", baseline=baseline)
        parts.append(Table(said, head, rows, left=2 if several else 1))
    return parts


def values_of(made: Material, judged: Judged) -> tuple[str, str]:
    """What each side measured, as its reasons say."""
    sides = dict.fromkeys(judged.arms, "—")
    if judged.question == "level" and made.study is not None:
        sides |= {row.name: score_of(made, row) for row in made.study.rows if row.name in sides}
        return sides[judged.arms[0]], sides[judged.arms[-1]]
    for reason in judged.because:
        facts = reason.facts
        axis = AXES.get(str(facts.get("axis")), ("", ""))[LANGUAGES.index(made.language)]
        if "ours" in facts and "theirs" in facts:
            ours, theirs = (show(facts[side], made.language) for side in ("ours", "theirs"))
            if axis and isinstance(facts["ours"], float):
                frame = "第 {} {}" if made.language == "zh" else "{1} {0}"
                return frame.format(ours, axis), frame.format(theirs, axis)
            return ours, theirs
        if reason.code == "best_of_arm" and facts.get("arm") in sides:
            raw, step = show(facts["raw"], made.language), show(facts["step"], made.language)
            sides[facts["arm"]] = f"{raw} ({axis} {step})"
    return sides[judged.arms[0]], sides[judged.arms[-1]]


def ahead(made: Material, judged: Judged) -> str:
    """The arm that is ahead; or the verdict in words."""
    if judged.verdict.startswith(("better", "worse")):
        arm = made.arm(judged.arms[0 if judged.verdict.startswith("better") else -1])
        return f"{arm} ({word(judged, made.language)})" if "within" in judged.verdict else arm
    return word(judged, made.language)


def comparisons(made: Material) -> list[Part]:
    """Every verdict as a sentence: of a study together where the same is to be said.

    Of sources those that decide something first, each with what it rests on.
    """
    said: list[str] = []
    for found in made.comparisons:
        if made.study is not None:
            said += [line for line, _ in together(found, made.language, (*UNTRAINED, "level"))]
            continue
        judged = sorted(found.verdicts, key=lambda each: not loud(each))
        every = (_told(made, found, each) for each in judged if each.question != "recommend")
        told = dict.fromkeys(every)
        said += list(told)[:MOST_TOLD]
        if len(told) > MOST_TOLD:
            said.append(say("more_lines", {"count": len(told) - MOST_TOLD}, made.language))
    return [Lines(said), Paragraph(made.say("levels"))] if said else []


def how(made: Material) -> list[Part]:
    """Faster, steadier, collapsed: each verdict as a sentence, with what it rests on."""
    lines = dict.fromkeys(
        _told(made, found, each)
        for found in made.comparisons
        for name in HOW
        for each in found.verdicts
        if each.question == name
    )
    return [Lines(list(lines))] if lines else []


def _told(made: Material, found: Comparison, judged: Judged) -> str:
    said = sentence(judged, made.language, factor=found.factor)
    why = ("；" if made.language == "zh" else "; ").join(reasons(judged, made.language))
    frame = "{}（{}）" if made.language == "zh" else "{} ({})"
    return frame.format(said, why) if why else said


# --- recommendation


def recommended_toml(made: Material) -> str:
    """What the verdict recommends, for machines; '' where it recommends no arm."""
    import tomli_w

    found = made.comparison
    every = () if found is None else found.verdicts
    use = next((each for each in every if each.question == "recommend"), None)
    if use is None or use.verdict != "better":
        return ""
    arm, about = use.arms[0], {"gain": "over_start", "level": "over_baseline"}
    table: dict[str, Any] = {"arm": arm, "level": use.level}
    for judged in every:
        if judged.question in about and judged.arms[0] == arm:
            ends = {"estimate": judged.estimate, "low": judged.low, "high": judged.high}
            of = {"against": judged.arms[1], "verdict": judged.verdict}
            also = {"also_changed": list(judged.also_changed)} if judged.also_changed else {}
            known = {key: value for key, value in ends.items() if value is not None}
            table[about[judged.question]] = of | known | also
    keys = {} if made.study is None else {arm.name: dict(arm.keys) for arm in made.study.arms}
    if arm in keys:
        table["keys"] = {key: value for key, value in keys[arm].items() if value is not None}
    return tomli_w.dumps(table)
