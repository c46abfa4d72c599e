"""Which run is meant: one name with two histories, settings that clash, steps told twice."""

from __future__ import annotations

import os
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from kleash.findings.kinship import kin, placed
from kleash.findings.record import Found, Point, points, runs, setting_place, settings
from kleash.findings.record import differ as unlike
from kleash.imports import Imported, Series, Setting, Source, Where, names
from kleash.imports.course import divergence, last_branch

MOST = 6  # differences that are named
CLOCK = 60.0  # seconds that the times of files may be off by
_FILE = re.compile(r"[\w.-]+\.(?:jsonl?|pt|pth|ckpt|parquet|csv|tsv|safetensors|bin|npz|pkl)\b")


def content(value: Any) -> Any:
    """What a setting names, without folders, endings and remarks: "kl012/rce_epoch5.pt" is
    "RCE epoch 5"."""
    if not isinstance(value, str):
        return value
    text = re.sub(r"[(（].*", "", value).strip()
    file = _FILE.search(text)
    if file:
        text = re.sub(r"\.[a-z]+$", "", file.group())
    return names.spelling(text)


def differ(key: str, ours: Any, theirs: Any) -> bool:
    """Whether two values of one setting are different things, as far as their names tell."""
    if key in ("start", "data") and bool(_FILE.search(str(ours))) != bool(
        _FILE.search(str(theirs))
    ):
        # A file against a description: different only if a number in it says so.
        mine, other = (re.findall(r"\d+", str(content(each))) for each in (ours, theirs))
        return key == "start" and bool(mine) and bool(other) and mine != other
    return not names.same(content(ours), content(theirs))


def _matching(run: Imported) -> dict[str, Any]:
    """The settings of a run that a fair comparison keeps equal."""
    found = settings(run)
    kinds = {known.name: known.kind for key in run.config if (known := names.key(key))}
    return {key: value for key, value in found.items() if kinds.get(key) == "must match"}


def two_histories(sources: Sequence[Source]) -> Iterator[Found]:
    """One name that stands for two runs: another start, other data, other numbers."""
    by_name: dict[tuple[str, int | None], list[Imported]] = defaultdict(list)
    for run in runs(sources):
        by_name[names.spelling(run.arm), run.seed].append(run)
    pairs = [(group[0], other) for group in by_name.values() for other in group[1:]]
    pairs += [(pair.ours, pair.theirs) for pair in kin(sources)]
    for ours, theirs in pairs:
        apart_by = [*_settings_apart(ours, theirs), *_numbers_apart(ours, theirs)][:MOST]
        if apart_by and ours.where.file != theirs.where.file:
            arms = dict.fromkeys((ours.arm, theirs.arm))
            facts = {"arm": " = ".join(arms), "differs": [list(one[:3]) for one in apart_by]}
            where = tuple(place for one in apart_by for place in one[3])
            yield Found("two-histories", "error", where, facts)


Difference = tuple[str, Any, Any, tuple[Where, Where]]


def _settings_apart(run: Imported, other: Imported) -> Iterator[Difference]:
    ours, theirs = _matching(run), _matching(other)
    for key in sorted(ours.keys() & theirs.keys()):
        if differ(key, ours[key], theirs[key]):
            yield key, ours[key], theirs[key], (setting_place(run, key), setting_place(other, key))


def _numbers_apart(run: Imported, other: Imported) -> Iterator[Difference]:
    """Numbers at the same place that cannot both be so, within rounding."""
    theirs = placed(other)
    for (metric, at), point in placed(run).items():
        twin = theirs.get((metric, at))
        if twin is None or not (point.known and twin.known and at):
            continue
        if unlike(point.number, twin.number):
            label = f"{point.written}, {point.at}"
            yield label, point.value, twin.value, (point.number.where, twin.number.where)


def config_clashes(sources: Sequence[Source]) -> Iterator[Found]:
    """A setting that one source gives twice, differently."""
    for run in runs(sources):
        for key, setting in run.config.items():
            if not setting.others:
                continue
            others = [other for other in setting.others if differ(key, setting.value, other.value)]
            if others:
                values = [setting.value, *(other.value for other in others)]
                where = (setting.where, *(other.where for other in others))
                facts = {"arm": run.arm, "key": key, "values": values}
                yield Found("config-clash", "error", where, facts)
        # Frameworks have several keys for what is one word in a table; people do not.
        if run.format == "markdown":
            yield from _spelt_apart(run)


def _spelt_apart(run: Imported) -> Iterator[Found]:
    """Two spellings of one setting with two values: kl_beta 0.12 and Beta 0.15."""
    by_key: dict[str, list[tuple[str, Setting]]] = defaultdict(list)
    for written, setting in run.config.items():
        known = names.key(written)
        if known is not None and known.kind != "harmless" and known.name != "leash.used":
            by_key[known.name].append((written, setting))
    for key, told in by_key.items():
        values = [settings_of(written, setting, key) for written, setting in told]
        if any(differ(key, values[0], value) for value in values[1:]):
            facts = {"arm": run.arm, "key": key, "values": values}
            where = tuple(setting.where for _, setting in told)
            yield Found("config-clash", "error", where, facts)


def settings_of(written: str, setting: Setting, key: str) -> Any:
    """One setting as `names` understands it."""
    return names.resolve({written: setting.value}).values.get(key, setting.value)


def stale_weights(sources: Sequence[Source]) -> Iterator[Found]:
    """The same weights evaluated as of different steps, or weights written after they were."""
    for run in runs(sources):
        yield from _written_later(run)
        steps: dict[str, dict[float, Where]] = defaultdict(dict)
        for scores in run.scores:
            if scores.checkpoint and scores.step is not None:
                steps[scores.checkpoint].setdefault(scores.step, scores.where)
        for checkpoint, found in steps.items():
            if len(found) > 1:
                facts = {"arm": run.arm, "checkpoint": checkpoint, "steps": sorted(found)}
                yield Found("stale-weights", "error", tuple(found.values()), facts)


def _written_later(run: Imported) -> Iterator[Found]:
    """Scores that are older than the weights they are said to be of, by the times of the files."""
    seen = set()
    for scores in run.scores:
        if not scores.checkpoint or (scores.where.file, scores.checkpoint) in seen:
            continue
        seen.add((scores.where.file, scores.checkpoint))
        file = Path(scores.where.file)
        weights = _weights(file, scores.checkpoint)
        if weights is None or not file.is_file():
            continue
        if weights.stat().st_mtime > file.stat().st_mtime + CLOCK:
            steps = [] if scores.step is None else [scores.step]
            facts = {"arm": run.arm, "checkpoint": scores.checkpoint, "steps": steps}
            where = (scores.where, Where(str(weights)))
            yield Found("stale-weights", "error", where, facts)


def _weights(scores: Path, checkpoint: str) -> Path | None:
    """The file of the weights that scores name, beside them or under `checkpoints`."""
    if len(checkpoint) > 200 or "\0" in checkpoint:
        return None
    beside = scores.parent
    for folder in (beside, beside / "checkpoints", beside.parent):
        named = folder / checkpoint
        try:  # one question where there is mostly nothing: a study has thousands of checkpoints
            with os.scandir(named) as entries:
                inside = [each.name for each in entries if each.name.endswith(".safetensors")]
        except NotADirectoryError:
            if named.is_file():
                return named
            continue
        except OSError:
            continue
        if inside:
            return named / min(inside)
    return None


# --- steps that are told twice


def step_restarts(sources: Sequence[Source]) -> Iterator[Found]:
    """Steps that fall back: a run was resumed, or two runs share a file."""
    for run in runs(sources):
        for one in last_branch(run)[1][:1]:  # one metric stands for all
            facts = {
                "arm": run.arm,
                "metric": one.series.metric,
                "at": one.at,
                "back": one.back,
                "dropped": one.dropped,
            }
            yield Found("step-restart", "warning", (one.series.place(one.point),), facts)


def diverged(sources: Sequence[Source]) -> Iterator[Found]:
    """Runs that ended in NaN or infinity."""
    for run in runs(sources):
        one = divergence(run)
        if one is not None:
            at = f"{one.axis} {one.step:g}"
            facts: dict[str, Any] = {"arm": run.arm, "metric": one.metric, "at": at}
            facts |= {"last": one.last, "count": one.count}
            yield Found("diverged", "error", (one.where,), facts)


def duplicate_steps(sources: Sequence[Source]) -> Iterator[Found]:
    """One step with several values, in one series or in two of the same metric."""
    for run in runs(sources):
        yield from _told_apart(run)
        for series in run.series:
            found = _twice(run, series)
            if found is not None:
                yield found
                break


def _told_apart(run: Imported) -> Iterator[Found]:
    """Numbers of a document that stand for one measurement and cannot both be so."""
    first: dict[tuple[str, str], Point] = {}
    for point in points(run) if run.format == "markdown" else ():
        other = first.setdefault(point.place, point)
        if point.known and other.known and unlike(point.number, other.number):
            facts = {
                "arm": run.arm,
                "metric": point.written,
                "at": point.at,
                "values": [other.value, point.value],
            }
            where = (other.number.where, point.number.where)
            yield Found("duplicate-step", "error", where, facts)


def _twice(run: Imported, series: Series) -> Found | None:
    if series.rises:
        return None
    order = np.argsort(series.steps, kind="stable")
    steps, values = series.steps[order], series.values[order]
    same = (np.diff(steps) == 0) & (np.diff(values) != 0) & np.isfinite(np.diff(values))
    if not same.any():
        return None
    at = int(np.flatnonzero(same)[0])
    facts = {
        "arm": run.arm,
        "metric": series.metric,
        "at": f"{series.axis} {steps[at]:g}",
        "values": [float(values[at]), float(values[at + 1])],
    }
    where = tuple(series.place(int(order[each])) for each in (at, at + 1))
    return Found("duplicate-step", "error", where, facts)


RULES = (
    two_histories,
    config_clashes,
    stale_weights,
    step_restarts,
    diverged,
    duplicate_steps,
)
