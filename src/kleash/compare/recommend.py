"""Which arm to use: one that gained over its start and that no other beats; else the start.

Arms are held against where they began and against the best that needs no training, where a source
measured these. Where it did not, the arms are held against each other alone, and that is told.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import fsum

from kleash.compare.arms import Arm
from kleash.compare.items import run_means
from kleash.compare.read import Source, names
from kleash.compare.records import Because, Comparison, Judged, Question
from kleash.stats import Level

AMONG_ARMS = ("level", "pairs")


def held(
    arms: Sequence[Arm], others: Sequence[Arm], metric: str
) -> Iterator[tuple[Question, Arm, Arm]]:
    """Each trained arm with its start, and with the best that needs no training."""
    by_name = {arm.name: arm for arm in others}
    best = best_untrained(others, metric)
    for arm in arms:
        if arm.start in by_name:
            yield "gain", arm, by_name[arm.start]
    for arm in arms:
        if best is not None:
            yield "untrained", arm, best


def best_untrained(others: Sequence[Arm], metric: str) -> Arm | None:
    """The one with the best mean."""
    known = names.metric(metric)
    sign = (known.direction if known else 0) or 1
    means = {
        arm.name: fsum(each) / len(each)
        for arm in others
        if arm.role == "untrained" and (each := [mean for _, mean in run_means(arm, metric)])
    }
    fit = [arm for arm in others if arm.name in means]
    return max(fit, key=lambda arm: sign * means[arm.name], default=None)


def recommended(found: Comparison, *, beyond_margin: bool) -> Judged:
    """The arm to use, the start where no arm is better than it, or none.

    With `beyond_margin` a gain counts if all of its interval is beyond the margin.
    """
    levels = [each for each in found.verdicts if each.question == "level"]
    gains = [each for each in found.verdicts if each.question == "gain"]
    asked = gains or levels
    metric = asked[0].metric if asked else ""
    better = [each for each in asked if each.level == "L3" and each.verdict == "better"]
    if not gains and levels and all(e.level == "L3" and e.verdict == "worse" for e in levels):
        return _use(found.baseline, metric, levels[0], [])
    able = [each for each in better if each.beyond_margin or not (gains and beyond_margin)]
    beaten = {loser for each in found.verdicts if (loser := _beaten(each))}
    fit = [each for each in able if each.arms[0] not in beaten]
    if fit:
        best = max(fit, key=lambda each: abs(each.estimate or 0.0))
        return _use(best.arms[0], metric, best, _as_good(found, best, fit))
    if any(each.level == "L3" for each in gains):
        return _stay(found, gains, better, able)
    level: Level = "L1" if all(each.level == "L1" for each in asked) else "L2"
    names_of = tuple(str(arm["name"]) for arm in found.arms if not arm["role"])
    why = (Because("none_recommended"),)
    return Judged("recommend", metric, "", names_of, "undecided", level, because=why)


def _use(arm: str, metric: str, best: Judged, more: list[Because]) -> Judged:
    why = (Because("best_setting", {"arm": arm}), *more)
    return Judged("recommend", metric, "", (arm,), "better", "L3", because=why)


def _stay(
    found: Comparison, gains: list[Judged], better: list[Judged], able: list[Judged]
) -> Judged:
    """No arm is worth its training: the start, or what beats the arms that gained."""
    starts = tuple(dict.fromkeys(each.arms[1] for each in gains))
    if not better:
        settled = all(each.verdict != "undecided" for each in gains)
        why = Because("keep_start" if settled else "keep_start_open", {"starts": starts})
    elif not able:
        why = Because("gain_too_small", {"starts": starts})
    else:
        ahead = [e.arms[1] for e in found.verdicts if e.question == "untrained" and _beaten(e)]
        starts = tuple(dict.fromkeys(ahead)) or starts
        why = Because("untrained_better" if ahead else "none_recommended", {"starts": starts})
    return Judged("recommend", gains[0].metric, "", starts, "undecided", "L3", because=(why,))


def _beaten(judged: Judged) -> str:
    """The arm that another was found better than; within the margin it is not."""
    if judged.question in AMONG_ARMS and judged.verdict == "better":
        return judged.arms[1]
    lost = judged.question in (*AMONG_ARMS, "untrained") and judged.verdict == "worse"
    return judged.arms[0] if lost else ""


def _as_good(found: Comparison, best: Judged, fit: Sequence[Judged]) -> list[Because]:
    """The others among those that could be used that nothing tells apart from the best."""
    pairs = [each for each in found.verdicts if each.question in AMONG_ARMS and _beaten(each)]
    apart = {name for each in pairs if best.arms[0] in each.arms for name in each.arms}
    others = [each.arms[0] for each in fit if each is not best and each.arms[0] not in apart]
    return [Because("as_good", {"arms": others})] if others else []


def parted(sources: Sequence[Source]) -> tuple[list[Source], list[Source]]:
    """Sources with their trained runs alone, and with all others alone."""
    sides: tuple[list[Source], list[Source]] = [], []
    for source in sources:
        aside = [run for run in source.runs if run.role]
        if not aside:
            sides[0].append(source)
            continue
        sides[0].append(replace(source, runs=[run for run in source.runs if not run.role]))
        sides[1].append(Source(source.path, source.format, aside))
    return sides
