"""Lines of a comparison below its verdicts: reasons, confounds, findings, what to run next."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import PurePath
from typing import Any

from kleash.compare.comparison import Confound, Judged, Step, Window
from kleash.report.words import Language, called, metric_name, named, say, show

SEVERITIES = {"error": "✗", "warning": "!", "note": "·"}
OF_A_KIND = 8  # findings, on a page
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


def _whose(verdicts: Sequence[Judged], language: Language) -> dict[str, list[str]]:
    """Of which arms each reason is."""
    found: dict[str, list[str]] = {}
    for each in verdicts:
        for text in dict.fromkeys(reasons(each, language)):
            found.setdefault(text, []).append(each.arms[0])
    return found


def why(verdicts: Sequence[Judged], language: Language, *, whole: bool) -> list[str]:
    """Reasons of the main question one by one; those of another question share a line.

    On the screen a kind of reason is told once, on a page with its arm, unless it is that of
    all. Contradictions come last: what to look up about them stands in the next steps, too.
    """
    lines: list[str] = []
    late: list[str] = []
    seen: set[str] = set()
    colon = "：" if language == "zh" else ": "
    often = Counter(each.question for each in verdicts)
    levels = [each for each in verdicts if each.question == "level"]
    whose = _whose(levels, language)
    for each in verdicts:
        if not whole:
            each = replace(each, because=tuple(b for b in each.because if b.code not in LONG))
        told = reasons(each, language)
        if each.question == "level":
            for reason, text in zip(each.because, told, strict=True):
                if whole and reason.code not in OF_ALL and len(whose[text]) < len(levels):
                    names = [called(arm, language) for arm in whose[text]]
                    text = f"{show(names, language)}{colon}{text}"
                if whole or reason.code == "contradicted" or reason.code not in seen:
                    (late if reason.code == "contradicted" else lines).append(text)
                seen.add(reason.code)
        elif each.question not in ("recommend", "diverged"):
            question = say(f"question.{each.question}", {}, language)
            if whole and often[each.question] > 1:
                question += f" {called(each.arms[0], language)}{colon.rstrip()}"
            lines.append(f"{question} " + ("；" if language == "zh" else "; ").join(told))
    return lines + late


def folded(findings: Sequence[Any], language: Language, *, whole: bool) -> dict[str, int]:
    """Lines of findings with how many each stands for: one of a kind on the screen, else some."""
    kinds: dict[Any, list[Any]] = {}
    for one in findings:
        kinds.setdefault((one.severity, one.code), []).append(one)
    lines, shown = {}, OF_A_KIND if whole else 1
    for same in kinds.values():
        for at, one in enumerate(same[:shown], 1):
            text, rest = f"{SEVERITIES[one.severity]} {finding(one, language)}", len(same) - shown
            folds = at == shown and rest > 0
            text += say("more_of_kind", {"count": rest}, language) if folds else ""
            lines[text] = 1 + (rest if folds else 0)
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
