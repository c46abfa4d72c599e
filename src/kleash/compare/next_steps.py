"""What to run next: the cheapest steps that would decide, cheap ones first.

Looking again costs nothing, measuring again costs minutes, training again costs what the logs say
a training cost.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from kleash import stats
from kleash.compare.arms import Arm
from kleash.compare.confounds import factor
from kleash.compare.durations import devices_of, training_hours
from kleash.compare.matrix import Matrix
from kleash.compare.records import Confound, Judged, Step
from kleash.compare.verdicts import weights_of

MOST_COMMANDS = 3
FEWEST_SEEDS = 4


def next_steps(
    arms: Sequence[Arm],
    baseline: Arm,
    verdicts: Sequence[Judged],
    confounds: Sequence[Confound],
    cells: Matrix,
) -> list[Step]:
    """In order of cost: settle contradictions, check weights, fill cells, re-validate, train.

    What diverged is trained otherwise, and asked nothing else.
    """
    by_name = {arm.name: arm for arm in arms}
    steps = _settle(confounds)
    alike = [e for e in verdicts if e.verdict == "identical" and set(e.arms) <= by_name.keys()]
    steps += _look_at(list(dict.fromkeys(name for e in alike for name in e.arms[::-1])), by_name)
    steps += _fill(cells)
    steps += _after_divergence(verdicts, by_name)
    every = [each for each in verdicts if each.question == "level"]
    level = [each for each in every if each.verdict != "diverged"]
    open_questions = [each for each in level if each.verdict in ("undecided", "identical")]
    if any(b.code == "config_unknown" for each in level for b in each.because):
        steps.insert(0, Step("tell_configs", {}, (0, 0)))
    lone = [each for each in level if each.counted != "seeds" or (each.n or 0) < FEWEST_SEEDS]
    if any(each.level == "L1" for each in lone):
        steps.append(_revalidate(level))
    elif more := [e.more for e in open_questions if _of_items(e) and e.more]:
        steps.append(Step("more_items", {"more": max(more)}))
    for each in level:
        if each.also_changed:
            steps.append(_unconfound(by_name[each.arms[0]], baseline, each))
    if lone:
        steps.append(_seeds([arm for arm in arms if not arm.lost], baseline))
    else:
        gains = [e for e in verdicts if e.question == "gain" and e.verdict == "undecided"]
        steps += _more_seeds([*gains, *open_questions], by_name)
    if not every:
        steps.append(Step("measure_outcome"))
    return steps


def _look_at(alike: Sequence[str], by_name: Mapping[str, Arm]) -> list[Step]:
    """What arms with the same outputs leave to be looked up: weights, and the start."""
    known = all(weights_of(by_name[name]) for name in alike)
    began = all(by_name[name].start for name in alike)
    steps = [] if known else [Step("check_weights", {"arms": list(alike)})]
    return steps if began else [*steps, Step("evaluate_start")]


def _after_divergence(verdicts: Sequence[Judged], by_name: Mapping[str, Arm]) -> Iterator[Step]:
    """Arms that ended in no numbers, again but otherwise: no further seed mends a setting."""
    for each in verdicts:
        for told in each.because:
            if told.code == "it_diverged":
                lost = by_name[each.arms[0]]
                facts = {name: told.facts[name] for name in ("arm", "axis", "step")}
                yield Step("after_divergence", facts, *_cost((lost,), len(lost.lost)))


def _more_seeds(undecided: Sequence[Judged], by_name: Mapping[str, Arm]) -> list[Step]:
    """Further seeds of the arms that are not told apart, as many as the widest gap asks for."""
    fit = [each for each in undecided if _of_seeds(each) and each.more]
    if not fit:
        return []
    more = max(each.more or 0 for each in fit)
    whose = dict.fromkeys(name for each in fit for name in each.arms if name in by_name)
    runs = [by_name[name] for name in whose]
    code = "one_more_seed" if more == 1 else "more_seeds"
    return [Step(code, {"more": more, "arms": list(whose)}, *_cost(runs, more * len(runs)))]


def _of_items(judged: Judged) -> bool:
    """Whether further items would decide: of a gap over seeds only if no seeds would."""
    return judged.counted == "items" or (judged.level == "L3" and judged.more_of == "items")


def _of_seeds(judged: Judged) -> bool:
    return judged.level == "L3" and judged.more_of != "items"


def _settle(confounds: Sequence[Confound]) -> list[Step]:
    """One look for each setting on which sources disagree in the same way."""
    found: dict[str, tuple[str, list[object], list[str]]] = {}
    for each in confounds:
        if each.kind == "contradicted":
            held = found.setdefault(repr((each.key, each.values)), (each.key, [*each.values], []))
            held[2].append(each.arms[0])
    return [
        Step("settle", {"arms": arms, "key": key, "values": values}, (0, 0))
        for key, values, arms in found.values()
    ]


def _fill(cells: Matrix) -> list[Step]:
    """Missing cells, with the commands that a document gives for them."""
    missing = [cell for cell in cells.cells if cell.state == "missing"]
    if not missing:
        return []
    commands = list(dict.fromkeys(cell.command for cell in missing if cell.command))
    facts = {"missing": len(missing), "commands": commands[:MOST_COMMANDS], "of": len(commands)}
    return [Step("fill_cells" if commands else "fill_cells_by_hand", facts)]


def _revalidate(level: Sequence[Judged]) -> Step:
    """Scores of single items for the checkpoints at hand: no training, and most can be decided."""
    margin = max((each.margin or 0.0 for each in level), default=0.0)
    unit = level[0].unit
    if unit == "fraction" and margin:
        # Planned for one item in twenty that differs, by 0.8 on average (docs/statistics.md).
        need = stats.items_for_equivalence(stats.pair_sd(0.05, 0.81), margin)
        return Step("score_items", {"items": need})
    return Step("score_checkpoints")


def _unconfound(ours: Arm, baseline: Arm, verdict: Judged) -> Step:
    """The one run that makes the contrast identified: our factor, all else as the baseline's."""
    keep = {key: next(iter(baseline.says(key)), None) for key in verdict.also_changed}
    facts = {
        "arm": ours.name,
        "baseline": baseline.name,
        "factor": list(factor(ours, baseline)),
        "coefficient": ours.coefficient,
        "keep": keep,
    }
    return Step("unconfound", facts, *_cost((ours,), 1))


def _seeds(arms: Sequence[Arm], baseline: Arm) -> Step:
    two = stats.smallest_detectable_by_seeds(3)
    four = stats.smallest_detectable_by_seeds(5)
    facts = {"two": f"{two:.1f}", "four": f"{four:.1f}", "baseline": baseline.name}
    return Step("seeds", facts, *_cost(arms, 2 * len(arms)))


def _cost(arms: Sequence[Arm], runs: int) -> tuple[tuple[float, float] | None, int | None]:
    """Hours for so many trainings, from times per step and steps; devices where configs tell."""
    low, high, found, devices = 0.0, 0.0, 0, None
    for arm in arms:
        span = training_hours(arm)
        if span:
            low, high, found = low + span[0], high + span[1], found + 1
        devices = devices or devices_of(arm)
    if not found:
        return None, devices
    return (runs * low / found, runs * high / found), devices
