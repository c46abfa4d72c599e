"""What a comparison says first: which arm to use, or to keep the start; then why, arm by arm.

The same sentences stand on the terminal, in every report and on the live page.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kleash.catalogue import Language, gap_text, named, say
from kleash.catalogue.lines import placed
from kleash.compare import Because, Comparison, Judged

UNTRAINED = ("gain", "untrained")
BOTH_LOST, BOTH_GAINED = ("worse", "worse"), ("better", "better")


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


def gap_of(judged: Judged, language: Language) -> str:
    """A gap with its interval."""
    if judged.estimate is None:
        return "—"
    return gap_text(judged.estimate, judged.low, judged.high, judged.unit, language)


def told_together(
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


def _margin(judged: Judged, language: Language) -> str:
    margin = judged.margin or 0.0
    if judged.unit != "fraction":
        return f"{margin:.4g}"
    points = "个百分点" if language == "zh" else "point" if margin == 0.01 else "points"
    return f"{100 * margin:g} {points}"
