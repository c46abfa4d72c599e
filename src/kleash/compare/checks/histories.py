"""Which run is meant: one run under two names, one name with two histories, one thing told twice;
and how its record goes on and ends."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from kleash.compare.checks.evidence import Check, Evidence, Hit, Numbers, Places, differ
from kleash.compare.read import Number, Series, Where, names
from kleash.compare.read.course import divergence, last_branch

MOST = 6  # differences that are named
MISREAD = 3  # contradictions beyond which a report was misread, and is not wrong
SHORTFALL = {"epoch": 1.0, "step": 0.9}  # of what was planned, that counts as all of it
CLOCK = 60.0  # seconds that the times of files may be off by
_FILE = re.compile(r"[\w.-]+\.(?:jsonl?|pt|pth|ckpt|parquet|csv|tsv|safetensors|bin|npz|pkl)\b")
Difference = tuple[str, Any, Any, tuple[Where, Where]]


def same_run(evidence: Evidence) -> Iterator[Hit]:
    """One run under two names in two sources is one run, not two."""
    for ours, theirs, by in evidence.twins:
        if by != "name":
            facts = {"arms": [ours.arm, theirs.arm], "by": by}
            yield Hit((ours.run.where, theirs.run.where), facts)


def two_histories(evidence: Evidence) -> Iterator[Hit]:
    """One name that stands for two runs: another start, other data, other numbers."""
    for ours, theirs, _ in evidence.twins:
        differs = [*_settings_apart(ours, theirs), *_numbers_apart(ours.placed, theirs.placed)]
        if differs := differs[:MOST]:
            arms = " = ".join(dict.fromkeys((ours.arm, theirs.arm)))
            facts = {"arm": arms, "differs": [list(each[:3]) for each in differs]}
            yield Hit(tuple(place for each in differs for place in each[3]), facts)


def _settings_apart(run: Numbers, other: Numbers) -> Iterator[Difference]:
    """Settings that a fair comparison keeps equal, and that two records tell differently."""
    ours, theirs = run.run.resolved, other.run.resolved
    for name in sorted(ours.values.keys() & theirs.values.keys()):
        known = names.key(ours.written.get(name, name))
        if known is not None and known.kind == "must match":
            one, two = ours.values[name], theirs.values[name]
            if settings_differ(name, one, two):
                yield name, one, two, (run.setting_place(name), other.setting_place(name))


def _numbers_apart(ours: Places, theirs: Places) -> Iterator[Difference]:
    """Numbers at the same place that cannot both be so, within rounding."""
    for place, point in ours.items():
        twin = theirs.get(place)
        if twin is not None and point.at and point.known and twin.known and differ(point, twin):
            label, where = f"{point.name}, {point.at}", (point.where, twin.where)
            yield label, point.value, twin.value, where


def content(value: Any) -> Any:
    """What a setting names, without folders, endings and remarks: "kl012/rce_epoch5.pt" is
    "RCE epoch 5"."""
    if not isinstance(value, str):
        return value
    text = re.sub(r"[(（].*", "", value).strip()
    file = _FILE.search(text)
    return names.spelling(re.sub(r"\.[a-z]+$", "", file.group()) if file else text)


def settings_differ(key: str, ours: Any, theirs: Any) -> bool:
    """Whether two values of one setting are different things, as far as their names tell."""
    files = [bool(_FILE.search(str(each))) for each in (ours, theirs)]
    if key in ("start", "data") and files[0] != files[1]:
        # A file against a description: different only if a number in it says so.
        mine, other = (re.findall(r"\d+", str(content(each))) for each in (ours, theirs))
        return key == "start" and bool(mine) and bool(other) and mine != other
    return not names.same(content(ours), content(theirs))


# --- estimates


def estimated_values(run: Numbers) -> Iterator[Hit]:
    """A value that somebody guessed is no measurement."""
    marks = run.run.cells or any(series.estimated is not None for series in run.run.series)
    for metric in run.origins if marks else ():
        points = run.points([metric])
        guesses = [point for point in points if not point.known]
        if guesses:
            # A best that is said again is the same number, not another one.
            at = {point.at for point in points if not point.at.startswith("best")}
            yield run.hit(guesses, estimated=len(guesses), of=len(at or points))


def estimates_contradicted(evidence: Evidence) -> Iterator[Hit]:
    """Where the same point was measured elsewhere, a guess can be held against it."""
    for first, second, _ in evidence.twins:
        for run, other in ((first, second), (second, first)):
            missed = [
                (point, other.placed[place])
                for place, point in run.placed.items()
                if not point.known and place in other.placed and other.placed[place].known
            ]
            if missed:
                truths = {_spot(guess.where, guess.value): true.value for guess, true in missed}
                signs = list(_signs(evidence, truths))
                largest = max(abs(guess.value - true.value) for guess, true in missed)
                facts = {"count": len(missed), "largest": largest}
                facts |= {"wrong_signs": signs.count(False), "signs": len(signs)}
                yield run.hit([point for both in missed for point in both], **facts)


Spot = tuple[str, int | None, float | None]


def _spot(where: Where, value: float | None) -> Spot:
    return where.file, where.line, value


def _signs(evidence: Evidence, truths: dict[Spot, float]) -> Iterator[bool]:
    """Whether differences keep their sign once their guesses are replaced by what was measured."""

    def values(numbers: Sequence[Number]) -> list[float]:
        found = [truths.get(_spot(one.where, one.value), one.value) for one in numbers]
        known = [value for value in found if value is not None]
        return known if len(known) == len(found) else []

    for derived in (one for source in evidence.sources for one in source.derived):
        parts = (*derived.of, *derived.minus)
        rests = any(_spot(one.where, one.value) in truths for one in parts)
        ours, theirs = values(derived.of), values(derived.minus)
        if derived.kind == "difference" and rests and derived.number.value and ours and theirs:
            yield (float(np.mean(ours)) - float(np.mean(theirs))) * derived.number.value > 0


# --- one thing told twice


def unless_misread(check: Callable[[Numbers], Iterable[Hit]]) -> Check:
    """A check of what one source says twice and differently.

    A report that contradicts itself throughout was misread: then one note stands for all.
    """

    def by_source(evidence: Evidence) -> Iterator[Hit]:
        for runs in evidence.by_source():
            hits = [hit for run in runs for hit in check(run)]
            misread = runs[0].by_hand and len(hits) > MISREAD
            yield from [replace(hits[0], severity="note")] if misread else hits

    return by_source


def config_clashes(run: Numbers) -> Iterator[Hit]:
    """Settings with two values, under one spelling or, in what people write, under two."""
    given: dict[tuple[str, str], list[tuple[Any, Where]]] = defaultdict(list)
    for written, setting in run.run.config.items():
        given[written, "written"] = [(s.value, s.where) for s in (setting, *setting.others)]
        known = names.key(written)
        # Frameworks have several keys for what is one word in a table; people do not.
        alias = known is not None and known.kind != "harmless" and known.name != "leash.used"
        if run.by_hand and known is not None and alias:
            value = names.resolve({written: setting.value}).values.get(known.name, setting.value)
            given[known.name, "known"].append((value, setting.where))
    for (key, _), values in given.items():
        if any(settings_differ(key, values[0][0], value) for value, _ in values[1:]):
            facts = {"arm": run.arm, "key": key, "values": [value for value, _ in values]}
            yield Hit(tuple(where for _, where in values), facts)


def duplicate_steps(run: Numbers) -> Iterator[Hit]:
    """Numbers that stand for one measurement and cannot both be so."""
    first: Places = {}
    for point in run.points() if run.by_hand else ():
        other = first.setdefault((point.metric, point.at), point)
        if point.known and other.known and differ(point, other):
            yield run.hit([other, point], values=[other.value, point.value])
    twice = (_twice(run, series) for series in run.run.series if not series.rises)
    yield from islice(filter(None, twice), 1)  # one metric stands for all


def _twice(run: Numbers, series: Series) -> Hit | None:
    """Two values of a log at one step."""
    order = np.argsort(series.steps, kind="stable")
    steps, gaps = series.steps[order], np.diff(series.values[order])
    same = np.flatnonzero((np.diff(steps) == 0) & (gaps != 0) & np.isfinite(gaps))
    if not len(same):
        return None
    both = order[same[0] : same[0] + 2]
    facts = {"arm": run.arm, "metric": series.metric, "values": series.values[both].tolist()}
    facts |= {"at": f"{series.axis} {steps[same[0]]:g}"}
    return Hit(tuple(series.place(int(each)) for each in both), facts)


# --- how a record goes on and ends


def step_restarts(run: Numbers) -> Iterator[Hit]:
    """Steps that fall back: a run was resumed, or two runs share a file."""
    for one in last_branch(run.run)[1][:1]:  # one metric stands for all
        facts = {"arm": run.arm, "metric": one.series.metric, "at": one.at, "back": one.back}
        yield Hit((one.series.place(one.point),), facts | {"dropped": one.dropped})


def diverged(run: Numbers) -> Iterator[Hit]:
    """A run that ended in NaN or infinity."""
    one = divergence(run.run)
    if one is not None:
        facts = {"arm": run.arm, "metric": one.metric, "at": f"{one.axis} {one.step:g}"}
        yield Hit((one.where,), facts | {"last": one.last, "count": one.count})


def stale_weights(run: Numbers) -> Iterator[Hit]:
    """The same weights evaluated as of different steps, or weights written after they were."""
    seen: dict[str, dict[float | None, Where]] = defaultdict(dict)
    for scores in run.run.scores:
        if scores.checkpoint:
            seen[scores.checkpoint].setdefault(scores.step, scores.where)
    for checkpoint, found in seen.items():
        steps = sorted(step for step in found if step is not None)
        later = _written_later(checkpoint, next(iter(found.values())))
        if len(steps) > 1 or later:
            facts = {"arm": run.arm, "checkpoint": checkpoint, "steps": steps}
            yield Hit((*found.values(), *later), facts)


def _written_later(checkpoint: str, scores: Where) -> list[Where]:
    """Weights that are newer than the scores said to be of them, by the times of the files."""
    file = Path(scores.file)
    if len(checkpoint) > 200 or "\0" in checkpoint or not file.is_file():
        return []
    for folder in (file.parent, file.parent / "checkpoints", file.parent.parent):
        named = folder / checkpoint
        if not named.exists():
            continue
        for weights in [named] if named.is_file() else sorted(named.glob("*.safetensors"))[:1]:
            newer = weights.stat().st_mtime > file.stat().st_mtime + CLOCK
            return [Where(str(weights))] if newer else []
    return []


def fewer_than_planned(run: Numbers) -> Iterator[Hit]:
    """A run of which fewer epochs or steps are shown than were configured."""
    for axis, key in (("epoch", "epochs"), ("step", "steps")):
        planned = run.setting(key)
        if planned is None or planned <= 0:  # 0 and -1 stand for no limit
            continue
        curves = [each for each in run.run.series if each.axis == axis and len(each.steps)]
        longest = max(curves, key=lambda series: series.last, default=None)
        ends: list[tuple[float, Where]] = []
        if longest is not None:
            ends.append((longest.last, longest.place(int(longest.steps.argmax()))))
        # A cell of a best epoch does not show that training went so far.
        cells = [cell for cell in run.cells() if cell.at.startswith("epoch")]
        ends += [(cell.time, cell.where) for cell in cells if axis == "epoch"]
        last, where = max(ends, key=lambda end: end[0], default=(planned, run.run.where))
        if last < planned * SHORTFALL[axis]:
            facts = {"arm": run.arm, "axis": axis, "last": last, "planned": planned}
            yield Hit((where, run.setting_place(key)), facts)
