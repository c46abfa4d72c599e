"""How each arm's curve ends: could it have stopped, did it collapse?

One arm at a time, on the first of its trainings that has the curve; a collapse is looked for in all
of them. Nothing here compares arms.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from kleash import stats
from kleash.collapse import DRAWDOWN
from kleash.compare.arms import Arm, Curve, Replicate
from kleash.compare.best import choose
from kleash.compare.evidence import LOG
from kleash.compare.items import curve_of
from kleash.compare.judging import margin_for
from kleash.compare.noise import floor_of, told
from kleash.compare.records import Amount, Because, Judged, Question
from kleash.imports.names import Metric
from kleash.seeds import generator
from kleash.stats import Floats, NoiseFloor

FEWEST_POINTS = 8
DRAWS = 500


@dataclass(frozen=True)
class Ending:
    """A curve that is long enough to be asked how it ends, turned so that higher is better."""

    arm: Arm
    replicate: Replicate
    curve: Curve
    known: Metric
    values: Floats
    floor: NoiseFloor
    margin: float

    @property
    def sign(self) -> int:
        """-1 where lower is better."""
        return self.known.direction or 1

    def amount(self, value: float, *, gap: bool = False) -> Amount:
        """A turned value as it is read."""
        return Amount(self.sign * value, self.known.unit, gap=gap)


def endings(arm: Arm, known: Metric, margin: float | None, noise: float | None) -> Iterator[Judged]:
    """The two questions of one arm, where it has a curve that is neither short nor a log."""
    every = [] if arm.lost else list(_endings(arm, known, margin, noise))
    if not every:
        return
    several = (Because("first_of_runs", {"n": len(every)}),) if len(every) > 1 else ()
    stopped = stopping(every[0])
    yield replace(stopped, because=(*stopped.because, *several))
    yield collapses(every)


def _endings(
    arm: Arm, known: Metric, margin: float | None, noise: float | None
) -> Iterator[Ending]:
    for replicate in arm.replicates:
        curve = curve_of(replicate, known.name)
        if curve is None or not FEWEST_POINTS <= len(curve) <= LOG or curve.others:
            continue
        values = curve.values * (known.direction or 1)
        floor = floor_of(replicate, known.name, values, noise)
        if floor is None:
            continue
        wanted = margin_for(margin, known.unit, float(values.mean()))
        yield Ending(arm, replicate, curve, known, values, floor, wanted)


def stopping(ending: Ending) -> Judged:
    """When the rule would have stopped, which checkpoint it keeps, and what that one is worth."""
    steps, values, floor = ending.curve.steps, ending.values, ending.floor
    found = stats.early_stop(values, floor.sd, ending.margin)
    judged = _blank(ending, "stopping")
    if found.verdict == "too few":
        return replace(judged, because=(Because("too_few_evaluations", {"n": found.n}),))
    rule = {"window": found.window, "patience": found.patience}
    if found.stop_after is None or found.checkpoint is None:
        never = Because("never_stopped", {"n": found.n, **rule})
        return replace(judged, because=(never, told(floor, judged.unit)))
    rng = generator("compare", "stopping")
    rest = stats.premature_stop(
        values, found, floor.sd, ending.margin, rng, planned=len(values), draws=DRAWS
    )
    seen = found.stop_after
    value = choose(ending.replicate, ending.known, steps[:seen], values[:seen], floor)
    facts = {
        "axis": ending.curve.axis,
        "stop": float(steps[seen - 1]),
        "keep": float(steps[found.checkpoint]),
        "value": ending.amount(value.corrected),
        **rule,
    }
    because = (
        Because("would_have_stopped", facts),
        Because("premature", {"p": rest.p, "margin": Amount(ending.margin, judged.unit, gap=True)}),
        value.how,
    )
    return replace(
        judged,
        verdict="equivalent",
        estimate=ending.sign * value.corrected,
        margin=ending.margin,
        because=because,
    )


def collapses(every: Sequence[Ending]) -> Judged:
    """Of the training that lost most of its best; and of how many it is true."""
    judged = [collapse(ending) for ending in every]
    fallen = [each for each in judged if each.estimate is not None]
    if len(judged) < 2 or not fallen:
        return judged[0]
    worst = max(fallen, key=lambda each: abs(each.estimate or 0.0) / (each.margin or 1.0))
    deep = sum(each.verdict == "worse" for each in fallen)
    counts = {"fell": len(fallen), "deep": deep, "of": len(judged)}
    return replace(worst, because=(*worst.because, Because("runs_that_fell", counts)))


def collapse(ending: Ending) -> Judged:
    """Two evaluations in a row far below the running best; by a quarter of it, it is a collapse."""
    found = stats.collapse(ending.curve.steps, ending.values, ending.floor.sd)
    judged = _blank(ending, "collapse")
    how = told(ending.floor, judged.unit)
    best = {"best": ending.amount(found.best)}
    if found.step is None or found.drop is None or found.deepest is None:
        return replace(judged, because=(Because("no_collapse", best), how))
    falls = {"drop": found.drop, "deepest": found.deepest}
    drop = {name: Amount(fall, judged.unit, gap=True) for name, fall in falls.items()}
    at = {"axis": ending.curve.axis, "step": found.step}
    margin = DRAWDOWN * abs(found.best)
    return replace(
        judged,
        verdict="worse" if found.deepest >= margin else "worse_within_margin",
        margin=margin,
        estimate=-ending.sign * found.deepest,
        because=(Because("collapsed", best | drop | at), how),
    )


def _blank(ending: Ending, question: Question) -> Judged:
    return Judged(
        question=question,
        metric=ending.known.name,
        unit=ending.known.unit,
        arms=(ending.arm.name,),
        verdict="undecided",
        level="L1",
        n=len(ending.values),
        counted="steps",
    )
