"""What was measured, looked up by what a cell of a report asks for.

An arm of a report is an arm of the logs if they have one name, or if no other has its coefficient.
Several seeds are one number: their mean. Nothing is taken from a report, and a cell in which too
many answers broke has no value.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from kleash.compare.arms import Arm, Curve, Replicate, gather, known_name
from kleash.compare.documents.boards import tables_of
from kleash.compare.documents.trace import STATISTICS, Held, Tracer
from kleash.compare.read import Number, Source, in_names, names, read
from kleash.compare.read.markdown.numbers import Place
from kleash.compare.read.markdown.page import Addresses, Page
from kleash.errors import DataError
from kleash.types import BROKEN_SHARE

# What our own runs call a quantity that reports name otherwise; the first that is there.
OWN: dict[str, tuple[str, ...]] = {
    "val_loss": ("validation/loss",),
    "kl": ("kl/ref/exact/episode/mean", "probe/kl/ref/exact/episode/mean"),
    "eval_reward": ("validation/reward",),
}
OUTCOMES = ("eval_reward", "accuracy", "reward")
SECONDS = {"ms": 1e-3} | dict.fromkeys(("s", "sec", "秒"), 1.0)
SECONDS |= dict.fromkeys(("min", "分钟"), 60.0) | dict.fromkeys(("天", "day"), 86_400.0)
SECONDS |= dict.fromkeys(("h", "hr", "hour", "小时"), 3_600.0)
# By what is compared before anything is filled: what reports call it, and our own runs' key for it.
STATED = {
    "data": (("dataset",), "data"),
    "model": (("model", "answerer"), "answerer_options.model"),
}
_AFTER = re.compile(r"(?<![\d.])(\d+\.\d+)(?![\d.])")
_EPOCH = re.compile(r"(?:^|[-_/ ])epoch[-_= ]?(\d+)$", re.I)


class Measured(NamedTuple):
    """A number that was measured: of how many runs it is the mean, and where the first lies."""

    value: float
    runs: int
    file: str
    metric: str


@dataclass(frozen=True)
class Difference:
    """What a report says of its data or model, or prints, and the logs have otherwise."""

    what: str
    report: str
    logs: str
    line: int


@dataclass
class Logs:
    """What was read, and which arm of it each arm of a report is."""

    sources: list[Source]
    match: dict[str, Arm]
    traced: dict[tuple[int, int], Held]
    """By line and column of a cell, where numbers beside it tell whose it is."""

    def look(
        self, arm: str, metric: str, place: Place, statistic: str = "", seed: int | None = None
    ) -> Measured | None:
        """What was measured of an arm; None where nothing was."""
        found = self.match.get(arm)
        runs = found.replicates if found else []
        runs = [one for one in runs if seed is None or one.seed == seed]
        if statistic.endswith(" step") and len(runs) > 1:
            return None  # a mean of steps is no step
        for name in _metrics(metric, statistic):
            every = (_value(one, name, place, statistic) for one in runs)
            if values := [value for value in every if value is not None]:
                file = runs[0].runs[0].where.file
                return Measured(float(np.mean(values)), len(values), file, name)
        return None


def logs_of(paths: Sequence[Path], report: Source, page: Page) -> Logs:
    """The logs in files and folders, matched with the arms and the tables of a report."""
    sources = [read(path / "runs" if (path / "study.toml").is_file() else path) for path in paths]
    for source, path in zip(sources, paths, strict=True):
        # Another report tells of the same runs, but did not measure them.
        if source.tables and all(run.format == "markdown" for run in source.runs):
            raise DataError(f"{path} is a report itself: give logs, runs or a study")
    held = Tracer(sources).traced(tables_of(Addresses(page)))
    traced = {(one.line, one.column): one for one in held}
    return Logs(sources, matched(report, gather(sources)), traced)


def as_printed(found: Measured, like: Number) -> float:
    """A measured value in the unit of a number beside it: percent, said or not; hours."""
    known = names.metric(found.metric)
    unit, time = "" if known is None else known.unit, SECONDS.get(like.unit.rstrip("s") or "s")
    if unit == "s" and time is not None:
        return found.value / time
    percent = like.unit != "%" and like.value is not None and abs(like.value) > 1
    is_share = unit == "fraction" and abs(found.value) <= 1
    return 100 * found.value if is_share and percent else found.value


def stated(report: Source, sources: Sequence[Source]) -> tuple[list[Difference], list[str]]:
    """Where data or model are not those of the logs; and of which of both one side says nothing."""
    found, unsaid = list[Difference](), list[str]()
    for what, (keys, own) in STATED.items():
        ours, theirs = (_stated(each, keys, own) for each in ([report], sources))
        if not ours or not theirs:
            unsaid.append(what)
        elif not any(_is_one(one, other) for one in ours for other in theirs):
            line = next(iter(ours.values()))
            found.append(Difference(what, ", ".join(ours), ", ".join(theirs), line))
    return found, unsaid


def _stated(sources: Sequence[Source], keys: Sequence[str], own: str) -> dict[str, int]:
    """What sources say of it, each with its line."""
    runs = [run for source in sources for run in source.runs]
    every = [(run.format, key, one) for run in runs for key, one in run.config.items()]
    return {
        str(one.value): one.where.line or 0
        for format_, key, one in every
        if (format_ == "kleash" and key == own)
        or ((known := names.key(key)) is not None and known.name in keys)
    }


def _is_one(one: str, other: str) -> bool:
    """Whether two names are of one thing, whatever folder and ending they have."""
    ours, theirs = (re.sub(r"[\W_]", "", Path(name).name.casefold()) for name in (one, other))
    return ours in theirs or theirs in ours


# --- which arm is which


def coefficient_in(name: str) -> float | None:
    """The coefficient that a name has in it, or else the one number with decimals that it has."""
    found, _ = in_names.coefficient(name)
    match = _AFTER.search(name) if found is None else None
    return float(match[1]) if match else found


def coefficient(arm: Arm) -> float | None:
    """An arm's coefficient, as its config or one of its names gives it."""
    if arm.coefficient is not None:
        return arm.coefficient
    return next((v for name in arm.names if (v := coefficient_in(name)) is not None), None)


def matched(report: Source, arms: Sequence[Arm]) -> dict[str, Arm]:
    """For each arm of a report the one of the logs that it tells of."""
    configs = {run.arm: {k: v.value for k, v in run.config.items()} for run in report.runs}
    values = {a: names.resolve(c).values.get("leash.coefficient") for a, c in configs.items()}
    ours = {a: v if isinstance(v, int | float) else coefficient_in(a) for a, v in values.items()}
    ways = (
        ({a: names.spelling(a) for a in ours}, lambda arm: map(names.spelling, arm.names)),
        (ours, lambda arm: [coefficient(arm)]),
    )
    found: dict[str, Arm] = {}
    for keys, of in ways:
        theirs = [(arm, {*of(arm)} - {None}) for arm in arms if arm not in found.values()]
        for name in [name for name in ours if name not in found]:
            fit = [arm for arm, own in theirs if keys[name] in own]
            if len(fit) == 1 and [*keys.values()].count(keys[name]) == 1:
                found[name] = fit[0]
    if len(ours) == len(arms) == 1:
        found.setdefault(next(iter(ours)), arms[0])
    return found


# --- what an arm has


def _metrics(metric: str, statistic: str) -> Iterator[str]:
    """The names under which logs may have what a report calls so."""
    known = known_name(metric)
    if known == "reward" and statistic.startswith(("best", "max")):
        yield from ("eval_reward", *OWN["eval_reward"])  # "best reward" is what was validated
    # Of "performance" the report does not say what was measured.
    for name in (known, *(OUTCOMES if known in ("performance", "value") else ())):
        yield from (name, *OWN.get(name, ()))


def _value(run: Replicate, metric: str, place: Place, statistic: str) -> float | None:
    if (found := _cell(run, metric, place, statistic)) is not None:
        return found
    if place.shots is not None or place.items is not None:
        return _scored(run, metric, place)
    if statistic:
        curve = run.curve(metric)
        return None if curve is None or not len(curve) else _statistic(curve, metric, statistic)
    for axis, at in (("step", place.step), ("epoch", place.epoch)):
        curve = run.curves.get((metric, axis))
        if curve is not None and at is not None and at in curve.steps:
            return float(curve.values[curve.steps == at][0])
    return None


def _cell(run: Replicate, metric: str, place: Place, statistic: str) -> float | None:
    """A measurement that a log keeps as one; none where several may be meant."""
    found = set[float]()
    for (name, (epoch, step, items, _, kind)), by_shots in run.cells.items():
        wanted = ((place.epoch, epoch), (place.step, step), (place.items, items))
        fits = all(ours == theirs for ours, theirs in wanted if ours is not None)
        number = by_shots.get(place.shots)
        if (name, kind) == (metric, statistic) and fits and number and number.value is not None:
            found.add(number.value)
    return found.pop() if len(found) == 1 else None


def _scored(run: Replicate, metric: str, place: Place) -> float | None:
    """The mean of the first so many items of the test, of the checkpoint that is asked for."""
    every = []
    for one in run.scores:
        named = _EPOCH.search(one.checkpoint)
        epoch = place.epoch is None or (named is not None and int(named[1]) == place.epoch)
        step = place.epoch is not None or place.step in (None, one.step)
        if known_name(one.metric) == metric and place.shots in (None, one.shots) and epoch and step:
            every.append(one)
    tested = [one for one in every if one.split in ("test", "")] or every
    if len(tested) != 1:
        return None
    scores = tested[0]
    first = scores.values if scores.repeats is None else scores.values[scores.repeats == 0]
    count = place.items if place.items is not None else len(first)
    whole = first[:count][np.isfinite(first[:count])]
    if not 0 < count <= len(first) or count - len(whole) > BROKEN_SHARE * count:
        return None
    return float(whole.mean())


def _statistic(curve: Curve, metric: str, statistic: str) -> float | None:
    """A statistic of a whole curve; a best is the highest, or lowest where that is better."""
    known = names.metric(metric)
    best = "min" if known is not None and known.direction == -1 else "max"
    kind, _, step = statistic.partition(" ")
    kind = best if kind == "best" else kind
    made = STATISTICS.get(f"at {kind}" if step else kind)
    value = np.nan if made is None else float(made(curve.steps, curve.values))
    return value if np.isfinite(value) else None
