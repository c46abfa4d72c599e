"""What was measured, looked up by what a cell of a report asks for.

An arm of a report is an arm of the logs if they have one name, if the report says where its log
lies, or if no other has its coefficient. Several seeds are one number: their mean. Nothing is
taken from a report, and a cell in which too many answers broke has no value.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from kleash.compare.arms import Arm, Curve, Replicate, gather, known_name
from kleash.errors import DataError
from kleash.imports import Number, Scores, Source, in_names, names, read
from kleash.imports.markdown.numbers import Place
from kleash.types import BROKEN_SHARE

# What our own runs call a quantity that reports name otherwise; the first that is there.
OWN: dict[str, tuple[str, ...]] = {
    "val_loss": ("validation/loss",),
    "kl": ("kl/ref/exact/episode/mean", "probe/kl/ref/exact/episode/mean"),
    "eval_reward": ("validation/reward",),
}
ENOUGH = 4  # points of a curve that show at which steps it was measured
OUTCOMES = ("eval_reward", "accuracy", "reward")
_AFTER = re.compile(r"(?<![\d.])(\d+\.\d+)(?![\d.])")
_EPOCH = re.compile(r"(?:^|[-_/ ])epoch[-_= ]?(\d+)$", re.I)


@dataclass(frozen=True)
class Held:
    """A number that was measured: its value, of how many runs it is the mean, and where it lies."""

    value: float
    runs: int
    file: str
    line: int | None = None
    printed: bool = False
    """Whether it is in the scale of the page: 57.0 where a log has 0.57."""


@dataclass
class Logs:
    """The arms of logs, and which arm of a report each of them is."""

    arms: list[Arm]
    paths: dict[str, str] = field(default_factory=dict)
    """By the name of an arm, the folder or file of one of its runs."""
    match: dict[str, Arm] = field(default_factory=dict)
    """By the name of an arm in a report."""
    sources: list[Source] = field(default_factory=list)
    """What was read."""
    traced: dict[tuple[int, int], Held] = field(default_factory=dict)
    """By line and column of a cell, where numbers beside it tell whose it is (`traced`)."""

    def look(
        self, arm: str, metric: str, place: Place, statistic: str = "", seed: int | None = None
    ) -> Held | None:
        """What was measured of an arm; None where nothing was."""
        found = self.match.get(arm)
        if found is None:
            return None
        runs = [one for one in found.replicates if seed is None or one.seed == seed]
        if statistic.endswith(" step") and len(runs) > 1:
            return _best_of_mean(runs, metric, statistic)
        values = [(one, value) for one in runs if (value := _value(one, metric, place, statistic))]
        if not values:
            return None
        where = values[0][1][1]
        mean = float(np.mean([value for _, (value, _) in values]))
        return Held(mean, len(values), *where)

    def lacks(self, arm: str, metric: str, place: Place) -> str:
        """The file of a curve that has no such step, though it has enough others; else ''."""
        found = self.match.get(arm)
        for run in found.replicates if found else ():
            for name in _metrics(metric):
                for axis, at in (("step", place.step), ("epoch", place.epoch)):
                    curve = run.curves.get((name, axis))
                    if curve is not None and at is not None and len(curve) >= ENOUGH:
                        return "" if at in curve.steps else file_of(run, name)[0]
        return ""


Found = tuple[float, tuple[str, int | None]]


def logs_of(paths: Sequence[Path], report: Source, *, reports: bool = False) -> Logs:
    """The logs in files and folders, matched with the arms of a report.

    Another report tells of the same runs, but did not measure them: only where `reports` says so.
    """
    sources = [read(path / "runs" if (path / "study.toml").is_file() else path) for path in paths]
    for source, path in zip(sources, paths, strict=True):
        if source.tables and not reports and all(run.format == "markdown" for run in source.runs):
            raise DataError(f"{path} is a report itself: give logs, runs or a study")
    made = Logs(gather(sources), sources=sources)
    for arm in made.arms:
        made.paths[arm.name] = arm.replicates[0].runs[0].where.file
    made.match = matched(report, made.arms)
    return made


def as_printed(value: float, metric: str, like: Number) -> float:
    """A measured value in the scale of a number beside it: shares may stand as percent, unsaid."""
    known = names.metric(metric)
    share = known is not None and known.unit == "fraction" and abs(value) <= 1
    percent = like.unit != "%" and like.value is not None and abs(like.value) > 1
    return 100 * value if share and percent else value


# --- which arm is which


def coefficient_in(name: str) -> float | None:
    """The coefficient that a name has in it, or else the one number with decimals that it has."""
    told, _ = in_names.coefficient(name)
    match = _AFTER.search(name) if told is None else None
    return float(match[1]) if match else told


def matched(report: Source, arms: Sequence[Arm]) -> dict[str, Arm]:
    """For each arm of a report the one of the logs that it tells of."""
    told = list(dict.fromkeys(run.arm for run in report.runs))
    found: dict[str, Arm] = {}
    ways: tuple[Callable[[str, Arm], bool], ...] = (
        lambda arm, log: names.spelling(arm) in {names.spelling(each) for each in log.names},
        lambda arm, log: _lies_at(report, arm, log),
        lambda arm, log: _same_coefficient(report, arm, log),
        lambda arm, log: _both_leashed(report, arm, log),
    )
    for way in ways:
        taken = {id(run) for arm in found.values() for run in arm.replicates}
        free = [arm for arm in arms if not taken & {id(run) for run in arm.replicates}]
        for name in told:
            fit = [log for log in free if name not in found and way(name, log)]
            rivals = [other for other in told if other != name and fit and way(other, fit[0])]
            if not rivals and (len(fit) == 1 or _of_parts(fit)):
                found[name] = replace(fit[0], replicates=[r for log in fit for r in log.replicates])
    if len(told) == len(arms) == 1:
        found.setdefault(told[0], arms[0])
    return found


def _of_parts(logs: Sequence[Arm]) -> bool:
    """Whether files have different things of one run: its training in one, its tests in another."""
    held = [
        {name for run in log.replicates for name, _ in (*run.curves, *run.cells)} for log in logs
    ]
    return len(logs) > 1 and sum(map(len, held)) == len(set[str]().union(*held))


def _lies_at(report: Source, arm: str, log: Arm) -> bool:
    """Whether the report gives the log's file, folder or run as the place of the arm alone."""
    stated = [
        fact.text.strip().rstrip("/").rsplit("/", 1)[-1]
        for fact in report.facts
        if fact.kind in ("path", "wandb") and fact.arm == arm
    ]
    held = [
        part for one in log.replicates for run in one.runs for part in Path(run.where.file).parts
    ]
    held += log.names
    return any(len(text) > 3 and text in held for text in stated)


def _coefficient(report: Source, arm: str) -> float | None:
    for run in report.runs:
        if run.arm == arm:
            config = {key: setting.value for key, setting in run.config.items()}
            value = names.resolve(config).values.get("leash.coefficient")
            if isinstance(value, int | float):
                return float(value)
    if in_names.leash(arm) is False:
        return 0.0
    return coefficient_in(arm)


def _of_log(log: Arm) -> float | None:
    if log.coefficient is not None:
        return log.coefficient
    return next((value for each in log.names if (value := coefficient_in(each)) is not None), None)


def _same_coefficient(report: Source, arm: str, log: Arm) -> bool:
    ours, theirs = _coefficient(report, arm), _of_log(log)
    return ours is not None and theirs is not None and abs(ours - theirs) < 1e-12


def _both_leashed(report: Source, arm: str, log: Arm) -> bool:
    ours, theirs = _coefficient(report, arm), _of_log(log)
    said = in_names.leash(arm) if ours is None else ours > 0
    other = None if theirs is None else theirs > 0
    if other is None:
        other = next((a for n in log.names if (a := in_names.leash(n)) is not None), None)
    return said is not None and said == other


# --- what an arm has


def _metrics(metric: str, statistic: str = "") -> Iterable[str]:
    """The names under which logs may have what a report calls so."""
    known = known_name(metric)
    if known == "reward" and statistic.startswith(("best", "max")):
        yield from ("eval_reward", *OWN["eval_reward"])  # "best reward" is what was validated
    yield known
    yield from OWN.get(known, ())
    if known in ("performance", "value"):  # the report does not say what was measured
        for outcome in OUTCOMES:
            yield outcome
            yield from OWN.get(outcome, ())


def _value(run: Replicate, metric: str, place: Place, statistic: str) -> Found | None:
    for name in _metrics(metric, statistic):
        found = _cell(run, name, place, statistic)
        if found is None and (place.shots is not None or place.items is not None):
            found = _scored(run, name, place)
        elif found is None:
            found = _of_curve(run, name, place, statistic)
        if found is not None:
            return found
    return None


def _cell(run: Replicate, metric: str, place: Place, statistic: str) -> Found | None:
    """A measurement that a log keeps as one; none where several may be meant."""
    found: dict[float, Found] = {}
    for (name, (epoch, step, items, _, kind)), by_shots in run.cells.items():
        if name != metric or kind != statistic:
            continue
        wanted = ((place.epoch, epoch), (place.step, step), (place.items, items))
        fits = all(ours == theirs for ours, theirs in wanted if ours is not None)
        number = by_shots.get(place.shots)
        if fits and number is not None and number.value is not None:
            found[number.value] = number.value, (number.where.file, number.where.line)
    return next(iter(found.values())) if len(found) == 1 else None


def _scored(run: Replicate, metric: str, place: Place) -> Found | None:
    """The mean of the first so many items of the test, of the checkpoint that is asked for."""
    every = [one for one in run.scores if known_name(one.metric) == metric]
    every = [one for one in every if place.shots is None or one.shots == place.shots]
    every = [one for one in every if _at(one, place)]
    tested = [one for one in every if one.split in ("test", "")] or every
    if len(tested) != 1:
        return None
    scores = tested[0]
    first = scores.values if scores.repeats is None else scores.values[scores.repeats == 0]
    count = place.items if place.items is not None else len(first)
    if len(first) < count or not count:
        return None
    kept = first[:count][np.isfinite(first[:count])]
    if count - len(kept) > BROKEN_SHARE * count:
        return None
    return float(kept.mean()), (scores.where.file, scores.where.line)


def _at(scores: Scores, place: Place) -> bool:
    """Whether scores are those of the epoch or step that is asked for."""
    if place.epoch is not None:
        named = _EPOCH.search(scores.checkpoint)
        return named is not None and int(named[1]) == place.epoch
    return place.step is None or scores.step == place.step


def _of_curve(run: Replicate, metric: str, place: Place, statistic: str) -> Found | None:
    if statistic:
        curve = run.curve(metric)
        value = None if curve is None or not len(curve) else _statistic(curve, metric, statistic)
        return None if value is None else (value, file_of(run, metric))
    for axis, at in (("step", place.step), ("epoch", place.epoch)):
        curve = run.curves.get((metric, axis))
        if curve is not None and at is not None:
            fit = np.flatnonzero(curve.steps == at)
            if len(fit):
                return float(curve.values[fit[0]]), file_of(run, metric)
    return None


def file_of(run: Replicate, metric: str) -> tuple[str, int | None]:
    """Where a quantity of a run was logged."""
    for each in run.runs:
        for series in each.series:
            if known_name(series.metric) == metric:
                return series.where.file, series.where.line
    return run.runs[0].where.file, None


def _best_of_mean(runs: Sequence[Replicate], metric: str, statistic: str) -> Held | None:
    """At which step several runs are best together, if all were measured at the same ones."""
    for name in _metrics(metric, statistic):
        curves = [one.curve(name) for one in runs]
        whole = [one for one in curves if one is not None and len(one)]
        if len(whole) < len(runs) or any(list(o.steps) != list(whole[0].steps) for o in whole):
            continue
        mean = Curve(name, whole[0].axis, whole[0].steps, np.mean([o.values for o in whole], 0))
        value = _statistic(mean, name, statistic)
        return None if value is None else Held(value, len(runs), *file_of(runs[0], name))
    return None


def _statistic(curve: Curve, metric: str, statistic: str) -> float | None:
    """A statistic of a whole curve; a best is the highest, or lowest where that is better."""
    known = names.metric(metric)
    sign = -1 if known is not None and known.direction == -1 else 1
    values = curve.values
    if statistic.endswith(" step"):
        signs = {"min step": -1, "max step": 1}
        return float(curve.steps[np.argmax(signs.get(statistic, sign) * values)])
    if statistic == "change":
        return None if not values[0] else float((values[-1] - values[0]) / abs(values[0]))
    made: dict[str, Callable[[], float]] = {
        "mean": lambda: float(values.mean()),
        "first": lambda: float(values[0]),
        "last": lambda: float(values[-1]),
        "min": lambda: float(values.min()),
        "max": lambda: float(values.max()),
        "best": lambda: sign * float((sign * values).max()),
        "median": lambda: float(np.median(values)),
    }
    return made[statistic]() if statistic in made else None
