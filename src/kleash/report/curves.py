"""Curves as charts, and as the tables that documents have: summaries, epochs, steps, dynamics."""

from __future__ import annotations

from collections.abc import Sequence

from kleash.compare.arms import Arm
from kleash.compare.read import names
from kleash.report.charts import Chart, Line, lines
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
    statistics_of,
)
from kleash.report.material import Material
from kleash.report.parts import Cell, Figure, Paragraph, Part, Styled, Table
from kleash.report.words import AXES, LANGUAGES
from kleash.study.results import KL

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
EXTREMA = {"least": "min", "greatest": "max"}
NEAR_ZERO = 0.001  # of the largest value: a change relative to less says nothing
SAME_POINTS = 8  # of the dynamics
MOST_STEPS = 60  # of a step-by-step table
MOST_LINES = 10  # of a chart; of more arms, some from the highest to the lowest


def figure(value: float) -> str:
    """A value with six figures, which is what documents print."""
    return f"{value + 0.0:.6g}"


def axis_name(made: Material, axis: str) -> str:
    """Step or epoch."""
    return AXES.get(axis, (axis, axis))[LANGUAGES.index(made.language)]


# --- charts and summaries


def main_curves(made: Material) -> list[Part]:
    """Of the outcome and of KL: charts."""
    kl = next((name for name in ("kl", KL) if name in metrics_of(made)), "")
    wanted = [name for name in dict.fromkeys((outcome(made), kl)) if name]
    return [part for name in wanted for part in charts(made, name) if isinstance(part, Figure)]


def curves(made: Material) -> list[Part]:
    """For each quantity a chart with seed bands where there are points, and its summary table."""
    parts: list[Part] = []
    for metric in CHARTED:
        table = summary_of(made, metric)
        parts += [*charts(made, metric), *([table] if table is not None else [])]
    return parts


def charts(made: Material, metric: str) -> list[Part]:
    """The chart of a quantity, if there is a line to be seen, and how many arms are in it."""
    found = courses(made, metric)
    if not worth_drawing(found) or constant(metric):
        return []
    some = some_of(found, MOST_LINES)
    name = "curve-" + "".join(e if e.isalnum() else "-" for e in metric)
    drawn = Figure(name, chart_of(made, metric, some))
    if len(found) == len(some):
        return [drawn]
    return [drawn, Paragraph(made.say("some_drawn", drawn=len(some), of=len(found)))]


def worth_drawing(found: Sequence[Course]) -> bool:
    """Whether there is a line to be seen: more than one point, and not one value everywhere."""
    if not any(len(each.steps) > 1 for each in found):
        return False
    first = found[0].values[0]
    return any((each.values != first).any() for each in found)


def chart_of(made: Material, metric: str, found: Sequence[Course]) -> Chart:
    """The curves of a quantity."""
    series = [
        Line(
            made.arm(each.arm),
            each.steps.tolist(),
            each.values.tolist(),
            [] if each.low is None else each.low.tolist(),
            [] if each.high is None else each.high.tolist(),
        )
        for each in found
    ]
    known, name, axis = (
        names.metric(metric),
        course_name(made, metric),
        axis_name(made, found[0].axis),
    )
    label = f"{name} ({known.unit})" if known and known.unit else name
    head = [made.column("arm"), axis, name, *made.head("low", "high")]
    return lines(_seen(made, metric, found), (axis, label), series, head)


def _seen(made: Material, metric: str, found: Sequence[Course]) -> str:
    """What a chart shows at the last point that all arms have."""
    places, name = common(found, 10_000), course_name(made, metric)
    if not places:
        return made.say("curve_apart", name=name)
    last = sorted((at_step(each, places[-1]) or 0.0, each.arm) for each in found)
    (least, low), (most, high) = last[0], last[-1]
    runs = min(each.runs for each in found)
    facts = {
        "name": name,
        "axis": found[0].axis,
        "place": f"{places[-1]:g}",
        "runs": runs,
        "high": made.arm(high),
        "most": figure(most),
        "low": made.arm(low),
        "least": figure(least),
    }
    if len(found) > 1 and facts["most"] == facts["least"]:
        return made.say("curve_equal", **facts)
    one = "curve_one" if len(found) == 1 else "curve"
    return made.say(f"{one}_band" if runs > 1 else one, **facts)


def constant(metric: str) -> bool:
    """Whether a quantity has one value by construction, whatever the training did."""
    known = names.metric(metric)
    return known is not None and known.constant is not None


def summary_of(made: Material, metric: str) -> Table | None:
    """Mean, first, last, change and extrema of one quantity, an arm a column."""
    every = [(arm, statistics(arm, metric)) for arm in beside(made)]
    every = [(arm, each) for arm, each in every if each]
    if not every:
        return None
    rows: list[list[Cell]] = []
    for name in STATISTICS:
        ends = [each[name][1] for _, each in every if name in each]
        if not ends:
            continue
        row: list[Cell] = [made.column(name)]
        row += [each[name][0] if name in each else "—" for _, each in every]
        if len(every) == 2:
            form = "+.2%" if name == "change" else "+.6g"
            row.append(format(ends[0] - ends[1], form) if len(ends) == 2 else "—")
        rows.append(row)
    code = "summary_constant" if constant(metric) else "summary_metric"
    said = made.say(code, name=course_name(made, metric))
    head = [made.column("metric"), *(made.arm(arm.name) for arm, _ in every)]
    head += made.head("difference") if len(every) == 2 else []
    return Table(said, head, rows, below=arms_left_out(made))


def statistics(arm: Arm, metric: str) -> dict[str, tuple[str, float]]:
    """By name the text and the value: from the curve, else as a document has it."""
    each = course(arm, metric)
    found: dict[str, tuple[str, float]] = {}
    if each is not None and len(each.steps) > 1:
        low, high = int(each.values.argmin()), int(each.values.argmax())
        places = {"first": 0, "last": len(each.steps) - 1, "least": low, "greatest": high}
        mean = float(each.values.mean())
        found["mean"] = figure(mean), mean
        for name, place in places.items():
            step, value = float(each.steps[place]), float(each.values[place])
            found[name] = each.text(value) + (f" ({step:g})" if name in EXTREMA else ""), value
    printed = statistics_of(arm, metric)
    for name in STATISTICS:
        at, number = printed.get(EXTREMA.get(name, name), (None, None))
        if name not in found and number is not None and number.value is not None:
            text = number.text or figure(number.value)
            text += f" ({at:g})" if at is not None and "(" not in text else ""
            found[name] = text, number.value
    if "first" in found and "last" in found:
        first, last = found["first"][1], found["last"][1]
        if abs(first) > NEAR_ZERO * max(abs(value) for _, value in found.values()):
            change = round((last - first) / abs(first), 8) + 0.0
            found["change"] = f"{change:+.2%}", change
    return found if len(found) > 1 else {}


def arms_left_out(made: Material) -> str:
    """How many arms have no column in tables; '' where all have."""
    shown = len(beside(made))
    return left_out(made, len(made.arms), shown, "left_out_arms")


def left_out(made: Material, count: int, shown: int, code: str = "left_out") -> str:
    """That a table was cut, and how much is not in it; '' if it is whole."""
    return made.say(code, count=count - shown, of=count) if count > shown else ""


# --- by epoch, all that was logged


def epochs(made: Material) -> list[Part]:
    """For each epoch every quantity of every arm; the least and the greatest are marked."""
    found = {metric: courses(made, metric, "epoch") for metric in metrics_of(made, "epoch")}
    found = {metric: each for metric, each in found.items() if each}
    places = sorted({float(s) for each in found.values() for c in each for s in c.steps})
    arms = [arm.name for arm in beside(made)]
    head = [made.column("metric"), *map(made.arm, arms)]
    parts: list[Part] = []
    for place in places[:MOST_STEPS]:
        rows = [
            _by_arm(made, metric, each, (place, arms))
            for metric, each in found.items()
            if any(at_step(course, place) is not None for course in each)
        ]
        said, below = made.say("epoch_of", place=f"{place:g}"), arms_left_out(made)
        parts.append(Table(said, head, rows, folded=len(rows) > 12, below=below))
    cut = left_out(made, len(places), MOST_STEPS, "left_out_epochs")
    return [*parts, Paragraph(cut)] if cut else parts


def _by_arm(
    made: Material, metric: str, found: Sequence[Course], at: tuple[float, Sequence[str]]
) -> list[Cell]:
    """A quantity's name and its value in each arm at a place, extrema with an arrow."""
    place, arms = at
    values = {c.arm: (c, value) for c in found if (value := at_step(c, place)) is not None}
    numbers = [value for _, value in values.values()]
    low, high = min(numbers), max(numbers)
    name, row = course_name(made, metric), list[Cell]()
    if constant(metric):
        name = made.say("labelled", name=name, label=made.column("constant"))
    elif len(numbers) > 1 and low == high:
        name = made.say("labelled", name=name, label=made.say("all_equal"))
    for arm in arms:
        if arm not in values:
            row.append("—")
            continue
        each, value = values[arm]
        mark = "" if low == high else {high: " ↑", low: " ↓"}.get(value, "")
        row.append(Styled(each.text(value) + mark, strong=bool(mark)))
    return [name, *row]


# --- step by step


def steps(made: Material) -> list[Part]:
    """The outcome at every step with the change from the one before, and the gap of two arms."""
    metric = outcome(made)
    found = courses(made, metric) if metric else []
    places = sorted({float(s) for each in found for s in (*each.steps, *each.estimated)})
    if len(places) < 2:
        return []
    thinned = places if len(places) <= MOST_STEPS else common(found, MOST_STEPS)
    found = _with_column(made, found)
    rows: list[list[Cell]] = []
    for place in thinned:
        row: list[Cell] = [f"{place:g}", *(_stepped(made, each, place) for each in found)]
        if len(found) == 2:
            ours, theirs = at_step(found[1], place), at_step(found[0], place)
            row.append("—" if ours is None or theirs is None else f"{ours - theirs:+.4g}")
        rows.append(row)
    head = [axis_name(made, found[0].axis), *(made.arm(each.arm) for each in found)]
    if len(found) == 2:
        head.append(made.say("less", ours=made.arm(found[1].arm), theirs=made.arm(found[0].arm)))
    below = " ".join(filter(None, (left_out(made, len(places), len(rows)), arms_left_out(made))))
    return [Table(made.say("steps_of", name=course_name(made, metric)), head, rows, below=below)]


def _with_column(made: Material, found: Sequence[Course]) -> list[Course]:
    names = {arm.name for arm in beside(made)}
    return [each for each in found if each.arm in names]


def _stepped(made: Material, each: Course, place: float) -> Cell:
    value = at_step(each, place)
    if value is None:
        guess = each.guess(place)
        return "—" if guess is None else f"{made.word('state', 'estimated')} {each.text(guess)}"
    before = each.values[each.steps < place]
    text = each.text(value)
    if len(before) and before[-1]:
        text += f" ({(value - before[-1]) / abs(before[-1]):+.1%})"
    ends = (float(each.values.min()), float(each.values.max()))
    return Styled(text, strong=value in ends)


def dynamics(made: Material) -> list[Part]:
    """Quantities of training at steps that all arms have."""
    parts: list[Part] = []
    for metric in DYNAMICS:
        found = courses(made, metric)
        places = common(found, SAME_POINTS) if len(found) > 1 else []
        if not places:
            continue
        found = _with_column(made, found)
        rows = [[f"{p:g}", *(c.text(at_step(c, p) or 0.0) for c in found)] for p in places]
        head = [axis_name(made, found[0].axis), *(made.arm(each.arm) for each in found)]
        said = made.say("dynamics_of", name=course_name(made, metric))
        parts.append(Table(said, head, rows, below=arms_left_out(made)))
    return parts
