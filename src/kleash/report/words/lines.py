"""Lines of a comparison below its verdicts: reasons, confounds, findings, what to run next."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import PurePath
from typing import Any

from kleash.compare.comparison import Confound, Judged, Step, Window
from kleash.report.words import Language, called, metric_name, named, say, show

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
