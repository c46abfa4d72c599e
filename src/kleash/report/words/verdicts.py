"""A comparison as sentences: which arm to use or to keep the start, what became of each, and why.

Below the verdicts: reasons, what else changed, findings, what to run next. The same sentences stand
on the terminal, in every report and on the live page.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import PurePath
from typing import Any

from kleash.compare.records import (
    Amount,
    Because,
    Comparison,
    Confound,
    Judged,
    Step,
    Window,
)
from kleash.report.words import Language, called, gap_text, metric_name, named, say, show, term

# Not about a pair of arms, so there is no "against" in them.
ABOUT_ARMS = ("trend", "collapse", "diverged")
# On the screen only where they decide something; --md and --json have them all.
QUIET = (
    "gain",
    "untrained",
    "average",
    "at_end",
    "collapse",
    "pairs",
)
LOUD = ("better", "worse")
ELSEWHERE = ("average", "at_end")  # on the curves, than the level
UNTRAINED = ("gain", "untrained")
BOTH_LOST, BOTH_GAINED = ("worse", "worse"), ("better", "better")
SEVERITIES = {"error": "✗", "warning": "!", "note": "·"}
TRAINS = ("unconfound", "seeds", "more_seeds", "one_more_seed", "after_divergence")
# Told with the first verdict, about all.
OF_ALL = (
    "read_as_percent",
    "no_share",
    "mean_over_sets",
    "no_arms",
    "no_known_end",
    "not_used",
    "called_shortly",
)
LONG = ("noise_repeats", "noise_generations", "noise_items", "noise_second_differences")


# --- one verdict


def word(judged: Judged, language: Language) -> str:
    """The verdict in words, the question's own where it has some."""
    own = term(f"verdict.{judged.question}.{judged.verdict}", language)
    return own or say(f"verdict.{judged.verdict}", {}, language)


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
    question = say(f"question.{judged.question}", {}, language)
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
    counted = term(f"counted.{judged.counted}", language)
    frame = "gap_of" if judged.low is None else "interval_of"
    facts = {"gap": gap, "n": judged.n, "counted": counted}
    name = placed(judged.metric, judged.over, language)
    return f"{name} {say(frame, facts, language) if judged.n else gap}"


def gap_of(judged: Judged, language: Language) -> str:
    """A gap with its interval."""
    if judged.estimate is None:
        return "—"
    return gap_text(judged.estimate, judged.low, judged.high, judged.unit, language)


def _margin(judged: Judged, language: Language) -> str:
    margin = judged.margin or 0.0
    if judged.unit != "fraction":
        return f"{margin:.4g}"
    points = "个百分点" if language == "zh" else "point" if margin == 0.01 else "points"
    return f"{100 * margin:g} {points}"


# --- which of them, and together


def loud(judged: Judged) -> bool:
    """Whether a verdict belongs on the screen: the quiet questions only where they decide."""
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


# --- which arm to use


def decision(found: Comparison, language: Language) -> str:
    """Which arm to use, in one sentence."""
    judged = next((each for each in found.verdicts if each.question == "recommend"), None)
    if judged is None:
        return ""
    first = judged.because[0]
    if judged.verdict != "better":
        gains = [each for each in found.verdicts if each.question == "gain"]
        margin = _margin(gains[0], language) if gains else ""
        facts = {"starts": list(judged.arms), "margin": margin}
        return say(first.code, facts, language)
    text = _use(found, judged.arms[0], language)
    return text + "".join(_more(each, language) for each in judged.because[1:])


def _use(found: Comparison, arm: str, language: Language) -> str:
    about = [e for e in found.verdicts if e.question in ("gain", "level") and e.arms[0] == arm]
    if not about:
        return say("use_baseline", {"arm": arm}, language)
    best = next((each for each in about if each.question == "gain"), about[0])
    facts = {
        "arm": arm,
        "baseline": best.arms[1],
        "name": placed(best.metric, best.over, language),
        "gap": gap_of(best, language),
        "n": best.n,
    }
    return say("use_gain" if best.question == "gain" else "use_level", facts, language)


def _more(because: Because, language: Language) -> str:
    blank = "" if language == "zh" else " "
    return blank + say(f"use_{because.code}", because.facts, language)


# --- what became of each


def together(
    found: Comparison, language: Language, questions: Sequence[str] = UNTRAINED
) -> list[tuple[str, list[Judged]]]:
    """A sentence for each verdict and arm compared with, and the verdicts that it is about."""
    gains = {each.arms[0]: each.verdict for each in found.verdicts if each.question == "gain"}
    verdicts = [each for name in questions for each in found.verdicts if each.question == name]
    groups: dict[tuple[str, str, str, tuple[str, ...]], list[Judged]] = {}
    for each in verdicts:
        key = (_word(each, gains), each.arms[1], each.level, each.also_changed)
        groups.setdefault(key, []).append(each)
    said = []
    for (code, other, level, also), group in groups.items():
        start = group[0].question == "gain"
        facts = {
            "other": say("the_start", {}, language) if start else other,
            "arms": named([each.arms[0] for each in group], language),
            "gaps": _gaps(group, language),
            "margin": _margin(group[0], language),
            "level": "" if level == "L3" else f" [{level}]",
            "keys": list(also),
        }
        text = say(f"group.{code}", facts, language)
        said.append((text + (say("group.also", facts, language) if also else ""), group))
    return said


def _word(judged: Judged, gains: Mapping[str, str]) -> str:
    """The verdict; of two that both fell below their start the better one lost less."""
    ends = tuple(gains.get(arm, "").partition("_")[0] for arm in judged.arms)
    if judged.question == "level" and judged.verdict in ("better", "worse"):
        if ends == BOTH_LOST:
            return "lost_less" if judged.verdict == "better" else "lost_more"
        if ends == BOTH_GAINED:
            return "gained_more" if judged.verdict == "better" else "gained_less"
    return judged.verdict


def _gaps(group: Sequence[Judged], language: Language) -> str:
    """The gap with its interval, or of several from the lowest to the highest."""
    known = [each for each in group if each.estimate is not None]
    if len(known) < 2:
        return gap_of(known[0], language) if known else ""
    low, high = (end(each.estimate or 0.0 for each in known) for end in (min, max))
    ends = [gap_text(each, None, None, group[0].unit, language) for each in (low, high)]
    return say("group.range", {"least": ends[0].partition(" ")[0], "most": ends[1]}, language)


# --- reasons, what else changed, findings, what to run next


def reasons(judged: Judged, language: Language) -> list[str]:
    """Why a verdict is what it is, a sentence each."""
    return [say(each.code, each.facts, language) for each in judged.because]


def why(verdicts: Sequence[Judged], language: Language) -> list[str]:
    """Reasons of the main question one by one, a kind once; those of another share a line.

    Contradictions come last: what to look up about them stands in the next steps, too.
    """
    lines: list[str] = []
    late: list[str] = []
    seen: set[str] = set()
    for each in verdicts:
        told = [one for one in each.because if one.code not in LONG]
        if each.question == "level":
            for one in told:
                if one.code == "contradicted" or one.code not in seen:
                    text = say(one.code, one.facts, language)
                    (late if one.code == "contradicted" else lines).append(text)
                seen.add(one.code)
        elif each.question != "diverged":
            question = say(f"question.{each.question}", {}, language)
            said = (say(one.code, one.facts, language) for one in told)
            lines.append(f"{question} " + ("；" if language == "zh" else "; ").join(said))
    return lines + late


def folded(findings: Sequence[Any], language: Language) -> dict[str, int]:
    """The first finding of each kind, with how many it stands for."""
    kinds: dict[Any, list[Any]] = {}
    for one in findings:
        kinds.setdefault((one.severity, one.code), []).append(one)
    lines = {}
    for first, *rest in kinds.values():
        text = f"{SEVERITIES[first.severity]} {finding(first, language)}"
        text += say("more_of_kind", {"count": len(rest)}, language) if rest else ""
        lines[text] = 1 + len(rest)
    return lines


def placed(metric: str, over: Window | None, language: Language) -> str:
    """A metric's name, and where on curves it was looked at."""
    name = metric_name(metric, language)
    if over is None:
        return name
    code = "at_step" if over.first == over.last else "over_steps"
    return say(code, asdict(over) | {"metric": name}, language)


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
        if times * step.hours[1] < 1:
            ends = dict.fromkeys(f"{60 * times * hours:.0f}" for hours in step.hours)
            code = "cost_device_minutes" if step.devices else "cost_minutes"
            return say(code, {"minutes": "–".join(ends)}, language)
        ends = dict.fromkeys(f"{times * hours:.0f}" for hours in step.hours)
        return say(
            "cost_devices" if step.devices else "cost_hours", {"hours": "–".join(ends)}, language
        )
    return say("cost_unknown" if step.code in TRAINS else "cost_inference", {}, language)


def confound(each: Confound, language: Language) -> str:
    """What else changed, or what sources disagree on, with the sources."""
    if each.kind == "contradicted":
        facts = {"arm": each.arms[0], "key": each.key, "values": list(each.values)}
        return say("contradicted", facts, language)
    against = " / ".join(called(arm, language) for arm in each.arms)
    files = [PurePath(source).name for source in each.sources]
    pair = " / ".join(show(value, language) for value in each.values)
    facts = {"key": each.key, "name": each.key, "values": pair, "arms": against, "sources": files}
    return say(each.kind, facts, language)


def next_step(step: Step, language: Language, *, whole: bool) -> str:
    """What to run and what it costs; why is told where there is room."""
    facts = dict(step.facts)
    if isinstance(arms := facts.get("arms"), list):
        facts["arms"] = named(arms, language)
    what = say(step.code, facts, language)
    if whole:
        what += f" — {say(f'{step.code}.why', {}, language)}"
    price = cost(step, language)
    return what + (f"（{price}）" if language == "zh" else f" ({price})")
