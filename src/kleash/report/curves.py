"""Curves as pictures and tables: summaries, epochs, steps, dynamics, every metric of every run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from kleash.catalogue import AXES, LANGUAGES
from kleash.charts import Chart, blocks, lines, spark
from kleash.charts import Line as Drawn
from kleash.compare.arms import Arm, Replicate
from kleash.imports import Where, names
from kleash.report.courses import (
    Course,
    at_step,
    beside,
    common,
    course,
    course_name,
    courses,
    metrics_of,
    outcome,
    some_of,
    told_numbers,
)
from kleash.report.material import Material
from kleash.report.parts import Cell, Figure, Line, Linked, Paragraph, Part, Table
from kleash.report.places import joined, linked
from kleash.report.study_tables import left_out
from kleash.results import KL

CHARTED = (
    *("accuracy", "validation/accuracy", "eval_reward", "performance", "reward"),
    *("val_loss", "validation/loss", "kl", "probe/kl/ref/exact/episode/mean", "kl_loss"),
    *("policy_loss", "loss", "mean_ratio", "mean_advantage", "entropy", "grad_norm"),
    *("response_length", "sequence_length", "std_advantage", "clip_fraction"),
    *("training_tasks/reward", "overfit", "dead_groups", "episode/coverage", "episode/turns"),
)
DYNAMICS = (
    *("policy_loss", "kl", "leash/value", "kl_loss", "entropy", "grad_norm"),
    *("response_length", "sequence_length"),
)
STATISTICS = ("mean", "first", "last", "change", "least", "greatest")
TOLD = {"least": "min", "greatest": "max"}
NEAR_ZERO = 0.001  # of the largest value: a change relative to less says nothing
SAME_POINTS = 8  # of the dynamics
MOST_STEPS = 60  # of a step-by-step table
MOST_ROWS = 500
MOST_LINES = 10  # of a chart; of more arms, some from the highest to the lowest


def figure(value: float) -> str:
    """A value with six figures, which is what documents print."""
    return f"{value + 0.0:.6g}"


def axis_name(made: Material, axis: str) -> str:
    """Step or epoch."""
    return AXES.get(axis, (axis, axis))[LANGUAGES.index(made.language)]


# --- training curves


def main_curves(made: Material) -> list[Part]:
    """Of the outcome and of KL: charts."""
    kl = next((name for name in ("kl", KL) if name in metrics_of(made)), "")
    wanted = [name for name in dict.fromkeys((outcome(made), kl)) if name]
    return [part for part in curves(made, wanted) if isinstance(part, Figure)]


def curves(made: Material, metrics: Sequence[str] = CHARTED) -> list[Part]:
    """For each quantity a chart with seed bands where there are points, and its summary table."""
    parts: list[Part] = []
    for metric in metrics:
        found = courses(made, metric)
        if worth_drawing(found) and not constant(metric):
            every, found = len(found), some_of(found, MOST_LINES)
            name = "curve-" + "".join(e if e.isalnum() else "-" for e in metric)
            title, where = _seen(made, metric, found)
            chart = _chart(made, metric, found, title)
            arms = [each.arm for each in found]
            parts.append(Figure(name, chart, linked(title, where, arms)))
            if every > len(found):
                parts.append(Paragraph(made.say("some_drawn", drawn=len(found), of=every)))
        table = summary_of(made, metric)
        if table is not None:
            parts.append(table)
    return parts


def worth_drawing(found: Sequence[Course]) -> bool:
    """Whether there is a line to be seen: more than one point, and not one value everywhere."""
    if not any(len(each.steps) > 1 for each in found):
        return False
    first = found[0].values[0]
    return any((each.values != first).any() for each in found)


def not_beside(made: Material, metric: str, axis: str = "") -> Line:
    """How many arms have no column in tables of a quantity, and where the first of them stands."""
    names = {arm.name for arm in beside(made)}
    if len(names) == len(made.arms):
        return ""
    every = courses(made, metric, axis)
    rest = [each for each in every if each.arm not in names]
    where = rest[0].where(float(rest[0].steps[0])) if rest else None
    return left_out(made, len(every), len(every) - len(rest), where, "left_out_arms")


def _chart(made: Material, metric: str, found: Sequence[Course], title: str) -> Chart:
    series = [
        Drawn(
            made.arm(each.arm),
            each.steps.tolist(),
            each.values.tolist(),
            [] if each.low is None else each.low.tolist(),
            [] if each.high is None else each.high.tolist(),
            each.where,
        )
        for each in found
    ]
    unit = names.metric(metric)
    label = course_name(made, metric) + (f" ({unit.unit})" if unit and unit.unit else "")
    head = [made.column("arm"), axis_name(made, found[0].axis), course_name(made, metric)]
    return lines(
        title, (axis_name(made, found[0].axis), label), series, [*head, *made.head("low", "high")]
    )


def _seen(made: Material, metric: str, found: Sequence[Course]) -> tuple[str, Where | None]:
    """What a chart shows at the last point that all arms have, and where its highest stands."""
    places = common(found, 10_000)
    if not places:
        return made.say("curve_apart", name=course_name(made, metric)), None
    last = sorted((at_step(each, places[-1]) or 0.0, each.arm) for each in found)
    where = next(each.where(places[-1]) for each in found if each.arm == last[-1][1])
    runs = min(each.runs for each in found)
    facts: dict[str, Any] = {
        "name": course_name(made, metric),
        "place": f"{places[-1]:g}",
        "runs": runs,
    }
    facts |= {"high": made.arm(last[-1][1]), "most": figure(last[-1][0]), "axis": found[0].axis}
    facts |= {"low": made.arm(last[0][1]), "least": figure(last[0][0])}
    if len(found) > 1 and facts["most"] == facts["least"]:
        return made.say("curve_equal", **facts), where
    one = "curve_one" if len(found) == 1 else "curve"
    return made.say(f"{one}_band" if runs > 1 else one, **facts), where


def constant(metric: str) -> bool:
    """Whether a quantity has one value by construction, whatever the training did."""
    known = names.metric(metric)
    return known is not None and known.constant is not None


def summary_of(made: Material, metric: str) -> Table | None:
    """Mean, first, last, change and extrema of one quantity, an arm a column."""
    told = [(arm, statistics(arm, metric)) for arm in beside(made)]
    told = [(arm, each) for arm, each in told if each]
    if not told:
        return None
    rows: list[list[Cell]] = []
    for name in STATISTICS:
        row: list[Cell] = [made.column(name)]
        if not any(name in each for _, each in told):
            continue
        row += [each[name][0] if name in each else "—" for _, each in told]
        if len(told) == 2:
            ends = [each[name][1] for _, each in told if name in each]
            form = "+.2%" if name == "change" else "+.6g"
            gap = format(ends[0] - ends[1], form) if len(ends) == 2 else "—"
            row.append(Linked(gap, place_in(row[1])))
        rows.append(row)
    code = "summary_constant" if constant(metric) else "summary_metric"
    said = made.say(code, name=course_name(made, metric))
    head = [made.column("metric"), *(made.arm(arm.name) for arm, _ in told)]
    head += made.head("difference") if len(told) == 2 else []
    return Table(said, head, rows, below=not_beside(made, metric))


def statistics(arm: Arm, metric: str) -> dict[str, tuple[Cell, float]]:
    """By name the text with its place, and the value: from the curve, else as a document tells."""
    each = course(arm, metric)
    found: dict[str, tuple[Cell, float]] = {}
    if each is not None and len(each.steps) > 1:
        low, high = int(each.values.argmin()), int(each.values.argmax())
        places = {"first": 0, "last": len(each.steps) - 1, "least": low, "greatest": high}
        mean = float(each.values.mean())
        found["mean"] = (Linked(figure(mean), each.where(float(each.steps[0]))), mean)
        for name, place in places.items():
            step, value = float(each.steps[place]), float(each.values[place])
            text = each.text(value) + (f" ({step:g})" if name in TOLD else "")
            found[name] = (Linked(text, each.where(step)), value)
    told = told_numbers(arm, metric)
    for name in STATISTICS:
        step_told = told.get(TOLD.get(name, name))
        if name not in found and step_told is not None and step_told[1].value is not None:
            step_at, number = step_told
            text = number.text or figure(number.value or 0.0)
            text += f" ({step_at:g})" if step_at is not None and "(" not in text else ""
            found[name] = (Linked(text, number.where), number.value or 0.0)
    if "first" in found and "last" in found:
        first, last = found["first"][1], found["last"][1]
        if abs(first) > NEAR_ZERO * max(abs(value) for _, value in found.values()):
            change = round((last - first) / abs(first), 8) + 0.0
            found["change"] = (Linked(f"{change:+.2%}", place_in(found["last"][0])), change)
    return found if len(found) > 1 else {}


def place_in(cell: Cell) -> Where | None:
    """Where a cell's number stands."""
    return cell.where if isinstance(cell, Linked) else None


# --- by epoch, all that was logged


def epochs(made: Material) -> list[Part]:
    """For each epoch every quantity of every arm; the least and the greatest are marked."""
    metrics = metrics_of(made, "epoch")
    found = {metric: courses(made, metric, "epoch") for metric in metrics}
    found = {metric: each for metric, each in found.items() if each}
    places = sorted({float(s) for each in found.values() for c in each for s in c.steps})
    arms = [arm.name for arm in beside(made)]
    below = not_beside(made, next(iter(found)), "epoch") if found else ""
    parts: list[Part] = []
    for place in places[:MOST_STEPS]:
        rows: list[list[Cell]] = []
        for metric, each in found.items():
            values = {c.arm: value for c in each if (value := at_step(c, place)) is not None}
            if values:
                by_arm = {c.arm: c for c in each}
                ends = min(values.values()), max(values.values())
                cells = [
                    _marked(by_arm[arm], values[arm], ends, place) if arm in values else "—"
                    for arm in arms
                ]
                rows.append([_labelled(made, metric, values), *cells])
        said = made.say("epoch_of", place=f"{place:g}")
        head, folded = [made.column("metric"), *map(made.arm, arms)], len(rows) > 12
        parts.append(Table(said, head, rows, folded=folded, below=below))
    if len(places) > MOST_STEPS:
        where = next(iter(found.values()))[0].where(places[MOST_STEPS])
        parts.append(Paragraph(left_out(made, len(places), MOST_STEPS, where, "left_out_epochs")))
    return parts


def _labelled(made: Material, metric: str, values: dict[str, float]) -> str:
    """A quantity's name, and that it is constant by construction or the same everywhere."""
    name = course_name(made, metric)
    if constant(metric):
        return made.say("labelled", name=name, label=made.column("constant"))
    if len(values) > 1 and len(set(values.values())) == 1:
        return made.say("labelled", name=name, label=made.say("all_equal"))
    return name


def _marked(each: Course, value: float, ends: tuple[float, float], place: float) -> Cell:
    text, (low, high) = each.text(value), ends
    if low != high and value in ends:
        text += " ↑" if value == high else " ↓"
    return Linked(text, each.where(place), strong=" " in text)


# --- step by step


def steps(made: Material) -> list[Part]:
    """The outcome at every step with the change from the one before, and the gap of two arms."""
    metric = outcome(made)
    found = courses(made, metric) if metric else []
    places = sorted({float(s) for each in found for s in (*each.steps, *each.estimated)})
    if len(places) < 2:
        return []
    thinned = places if len(places) <= MOST_STEPS else common(found, MOST_STEPS)
    where = found[0].where(float(found[0].steps[0]))
    found = _beside(made, found)
    rows: list[list[Cell]] = []
    for place in thinned:
        row: list[Cell] = [f"{place:g}", *(_stepped(made, each, place) for each in found)]
        if len(found) == 2:
            ours, theirs = at_step(found[1], place), at_step(found[0], place)
            gap = "—" if ours is None or theirs is None else f"{ours - theirs:+.4g}"
            row.append(Linked(gap, place_in(row[2])))
        rows.append(row)
    head = [axis_name(made, found[0].axis), *(made.arm(each.arm) for each in found)]
    if len(found) == 2:
        head.append(made.say("less", ours=made.arm(found[1].arm), theirs=made.arm(found[0].arm)))
    cut = left_out(made, len(places), len(rows), where, "left_out_runs")
    below = joined([each for each in (cut, not_beside(made, metric)) if each], " ")
    return [Table(made.say("steps_of", name=course_name(made, metric)), head, rows, below=below)]


def _beside(made: Material, found: Sequence[Course]) -> list[Course]:
    """Those of the arms that have a column."""
    names = {arm.name for arm in beside(made)}
    return [each for each in found if each.arm in names]


def _stepped(made: Material, each: Course, place: float) -> Cell:
    value = at_step(each, place)
    if value is None:
        guess = each.guess(place)
        return (
            "—"
            if guess is None
            else Linked(f"{made.state('estimated')} {each.text(guess[0])}", guess[1])
        )
    before = each.values[each.steps < place]
    text = each.text(value)
    if len(before) and before[-1]:
        text += f" ({(value - before[-1]) / abs(before[-1]):+.1%})"
    ends = (float(each.values.min()), float(each.values.max()))
    return Linked(text, each.where(place), strong=value in ends)


# --- dynamics


def dynamics(made: Material) -> list[Part]:
    """Quantities of training at steps that all arms have."""
    parts: list[Part] = []
    for metric in DYNAMICS:
        found = courses(made, metric)
        places = common(found, SAME_POINTS) if len(found) > 1 else []
        if not places:
            continue
        found = _beside(made, found)
        rows: list[list[Cell]] = [
            [
                f"{place:g}",
                *(Linked(c.text(at_step(c, place) or 0.0), c.where(place)) for c in found),
            ]
            for place in places
        ]
        head = [axis_name(made, found[0].axis), *(made.arm(each.arm) for each in found)]
        said = made.say("dynamics_of", name=course_name(made, metric))
        parts.append(Table(said, head, rows, below=not_beside(made, metric)))
    return parts


# --- everything


def metrics(made: Material) -> list[Part]:
    """A row for every metric of every run, with its course as a line."""
    every = [
        (arm, replicate, metric, axis)
        for arm in made.arms
        for replicate in arm.replicates
        for (metric, axis), curve in replicate.curves.items()
        if len(curve.steps) > 1
    ]
    rows: list[list[Cell]] = []
    for arm, replicate, metric, axis in every[:MOST_ROWS]:
        row = _every(Arm(arm.name, arm.names, [replicate]), metric, axis)
        rows.append([made.arm(replicate.name), course_name(made, metric), *row])
    if not rows:
        return []
    keys = ("arm", "metric", "course", "n", "mean", "first", "last", "change", "least", "greatest")
    said, below = made.say("metrics_of"), _not_told(made, every)
    return [Table(said, made.head(*keys), rows, left=3, folded=True, below=below)]


def _not_told(made: Material, every: Sequence[tuple[Arm, Replicate, str, str]]) -> Line:
    """How many rows are left out, and where the first of them stands."""
    if len(every) <= MOST_ROWS:
        return ""
    arm, replicate, metric, axis = every[MOST_ROWS]
    each = course(Arm(arm.name, arm.names, [replicate]), metric, axis)
    where = None if each is None else each.where(float(each.steps[0]))
    return left_out(made, len(every), MOST_ROWS, where, "left_out_runs")


def _every(one: Arm, metric: str, axis: str) -> list[Cell]:
    each = course(one, metric, axis)
    assert each is not None  # it has more than one point
    values = each.values
    low, high = int(values.argmin()), int(values.argmax())
    first, last = float(values[0]), float(values[-1])
    sized = abs(first) > NEAR_ZERO * float(np.abs(values).max())
    change = f"{(last - first) / abs(first):+.1%}" if sized else "—"
    shown = values.tolist() if np.isfinite(values).all() else []
    start, end = (each.where(float(each.steps[at])) for at in (0, -1))
    return [
        Linked(blocks(shown), drawing=spark(shown)),
        Linked(f"{len(values)}", start),
        Linked(figure(float(values.mean())), start),
        Linked(figure(first), start),
        Linked(figure(last), end),
        Linked(change, end),
        *(
            Linked(f"{figure(float(values[at]))} ({each.steps[at]:g})", each.where(each.steps[at]))
            for at in (low, high)
        ),
    ]
