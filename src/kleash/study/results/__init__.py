"""What a study found: a pure function of its folder.

Cells with their means and intervals, the one comparison of all arms with their start, what the
author expected, how far arms agree, and everything that limits what may be said.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import fsum
from pathlib import Path
from typing import Any, Literal

import numpy as np

from kleash import stats
from kleash.compare.comparison import Comparison, Judged, compare
from kleash.compare.read import Imported
from kleash.compare.records import Question
from kleash.runs.run import Run
from kleash.stats import Interval
from kleash.study.plan import (
    Arm,
    Cell,
    Column,
    State,
    StudyFile,
    against,
    arms_of,
    column_key,
    read_study,
)
from kleash.study.plan.folder import (
    Overview,
    Seen,
    job_of,
    late_arms,
    mixtures,
    overview,
    placed,
    read_plan,
    spent,
    test_uses,
)
from kleash.study.results.agreement import Agreement, agreements
from kleash.study.results.sources import Runs, read_once, source_of, strangers

Answer = Literal["borne out", "refuted", "undecided"]
KL = "probe/kl/ref/exact/episode/mean"
EPOCH = "epoch-"


@dataclass
class Measured:
    """One cell with what was measured: over items of one run, and why it is not there if so.

    Nothing writes to it; it is not frozen because a study has thousands, which are slow to make.
    """

    cell: Cell
    state: State
    checkpoint: str
    mean: float | None = None
    scores: Sequence[float] = ()
    """Those of its items that did not break."""
    bounds: tuple[float, float] | None = None
    broken: int = 0
    command: str = ""
    why: str = ""

    @cached_property
    def interval(self) -> Interval | None:
        """Over items; a report shows few of a large study's, and so it is made when asked for."""
        return (
            stats.mean_interval(self.scores, bounds=self.bounds) if len(self.scores) > 1 else None
        )


@dataclass(frozen=True)
class ArmRow:
    """An arm at a glance, over its seeds: what it differs in, how far it went, what it scored."""

    name: str
    keys: Mapping[str, Any]
    against: str
    late: bool
    score: Interval | None
    """Of the chosen checkpoint, averaged over shots, at the largest n; over seeds."""
    scores: tuple[float, ...]
    kl: Interval | None
    """Nats per episode from the base at the chosen checkpoint, on the probe set."""
    chosen: tuple[str, ...]
    gap: Judged | None
    """To the arm it is compared with."""
    gain: Judged | None = None
    """Over its start."""


@dataclass(frozen=True)
class Expectation:
    """What the author expected, and what came out."""

    arm: str
    against: str
    metric: str
    direction: str
    why: str
    answer: Answer
    verdict: str


@dataclass
class Results:
    """Everything a report needs."""

    folder: Path
    file: StudyFile
    arms: list[Arm]
    overview: Overview
    measured: list[Measured]
    rows: list[ArmRow]
    comparison: Comparison | None
    """Of all arms, their start and what needs no training; None before two have begun."""
    expectations: list[Expectation]
    mixed: list[dict[str, Any]]
    test_uses: dict[str, int]
    spent: dict[str, float]
    late: list[str]
    failures: dict[str, str] = field(default_factory=dict)
    runs: Runs = field(default_factory=dict)

    @property
    def agreements(self) -> Iterator[Agreement]:
        """How alike every two arms are; made as it is asked for."""
        compared = {row.name: row.against for row in self.rows}
        return agreements(self.overview, self.file, self.arms, compared)

    def read(self, run: Run) -> Imported:
        """A run with its config and series; not to be written to."""
        return read_once(run, self.runs)


def results(folder: Path, *, file: StudyFile | None = None) -> Results:
    """Everything that follows from a study's folder."""
    file = file or read_study(str(folder))
    arms = arms_of(file, placed(folder))
    found = overview(folder, file, arms)
    compared = against(file, arms, found.told)
    late = late_arms(folder)
    failures = read_plan(folder)["failures"] if (folder / "plan.json").is_file() else {}
    mixed = mixtures(folder, file, found)
    runs: Runs = {}
    source = source_of(found, file, arms, compared, strangers(mixed), runs)
    begun = {run.arm for run in source.runs if run.role != "untrained"}
    comparison = compare([source]) if len(begun) > 1 else None
    return Results(
        folder=folder,
        file=file,
        arms=arms,
        overview=found,
        measured=list(measured(found, file, folder, failures)),
        rows=[arm_row(file, arm, found, compared, comparison, late, runs) for arm in arms],
        comparison=comparison,
        expectations=expectations(file, compared, comparison),
        mixed=mixed,
        test_uses=test_uses(found),
        spent=spent(folder),
        late=late,
        failures=failures,
        runs=runs,
    )


# --- cells


def measured(
    found: Overview, file: StudyFile, folder: Path, failures: Mapping[str, str]
) -> Iterator[Measured]:
    """Every cell with its mean and interval over items, or the command that fills it."""
    bounds = None if file.of_agents else (0.0, 1.0)  # of an accuracy; a reward has none
    for cell, state in found.cells:
        seen = found.seen[cell.arm, cell.seed]
        name, split, shots = column_key(cell, seen.chosen)
        if state in ("done", "void"):
            column = seen.scored[name, split, shots]
            known = [score for score in column.scores[: cell.items] if score is not None]
            mean, broken = column.mean(cell.items), column.broken(cell.items)
            yield Measured(cell, state, name, mean, known, bounds, broken)
        else:
            why = failures.get(job_of(cell), "")
            yield Measured(cell, state, name, command=f"kleash study {folder}", why=why)


def seed_means(
    found: Overview, file: StudyFile, arm: str, checkpoint: str = ""
) -> dict[int, float]:
    """By seed, the score of a checkpoint, else of the chosen one, over shots at the largest n."""
    means: dict[int, float] = {}
    for seed, seen in found.of_arm(arm, file.seeds).items():
        columns = [
            seen.scored.get((checkpoint or seen.chosen, "test", shots))
            for shots in file.measure.shots
        ]
        each = [c.mean(file.measure.items[-1]) for c in columns if c is not None]
        known = [mean for mean in each if mean is not None]
        if len(known) == len(file.measure.shots):
            means[seed] = float(np.add.reduce(known)) / len(known)  # as `mean`, of few values
    return means


def seed_scores(found: Overview, file: StudyFile, arm: str) -> dict[int, dict[str, float]]:
    """By seed, what `seed_means` is the mean of: each item's score, averaged over shots."""
    rows = {}
    for seed, seen in found.of_arm(arm, file.seeds).items():
        columns = [seen.scored.get((seen.chosen, "test", shots)) for shots in file.measure.shots]
        if row := item_means(columns, file.measure.items[-1]):
            rows[seed] = row
    return rows


def item_means(columns: Sequence[Column | None], items: int) -> dict[str, float]:
    """Each item's mean over columns, of those that broke in none; {} where a column lacks."""
    whole = [column for column in columns if column is not None and len(column.scores) >= items]
    if len(whole) < len(columns):
        return {}
    held: dict[str, list[float | None]] = {}
    for column in whole:
        for item, score in zip(column.items[:items], column.scores[:items], strict=True):
            held.setdefault(item, []).append(score)
    means = {}
    for item, scores in held.items():
        known = [score for score in scores if score is not None]
        if len(known) == len(columns):
            means[item] = fsum(known) / len(known)
    return means


def realised_kl(seen: Seen, runs: Runs, checkpoint: str = "") -> float | None:
    """Nats per episode at a checkpoint, on the probe set that all arms share; else at the last."""
    if seen.run is None:
        return None
    epochs = [each for each in read_once(seen.run, runs).series if each.axis == "epoch"]
    for series in epochs:
        if series.metric == KL:
            last = max(each.last for each in epochs)
            at = float(checkpoint.removeprefix(EPOCH)) if checkpoint else last
            found = series.values[series.steps == at]
            return float(found[-1]) if len(found) else None
    return None


def arm_row(
    file: StudyFile,
    arm: Arm,
    found: Overview,
    compared: Mapping[str, str],
    comparison: Comparison | None,
    late: Sequence[str],
    runs: Runs,
) -> ArmRow:
    """An arm over its seeds: score and KL of the same checkpoints."""
    every = found.of_arm(arm.name, file.seeds)
    means = seed_means(found, file, arm.name)
    fit = [seen for seed, seen in every.items() if seen.chosen and (seed in means or not means)]
    kls = [kl for seen in fit if (kl := realised_kl(seen, runs, seen.chosen)) is not None]
    return ArmRow(
        name=arm.name,
        keys=arm.keys,
        against=compared.get(arm.name, ""),
        late=arm.name in late,
        score=over_seeds(list(means.values())),
        scores=tuple(means.values()),
        kl=over_seeds(kls),
        chosen=tuple(seen.chosen for seen in every.values()),
        gap=verdict_on(comparison, arm.name),
        gain=verdict_on(comparison, arm.name, "gain"),
    )


def over_seeds(values: Sequence[float]) -> Interval | None:
    """The mean over seeds with its t interval; None below two."""
    return stats.mean_interval(values) if len(values) > 1 else None


def verdict_on(found: Comparison | None, arm: str, question: Question = "level") -> Judged | None:
    """The verdict on an arm: on its level against the arm it is compared with, or on its gain."""
    every = found.verdicts if found else ()
    return next((e for e in every if e.question == question and e.arms[0] == arm), None)


# --- what was expected


def expectations(
    file: StudyFile, compared: Mapping[str, str], comparison: Comparison | None
) -> list[Expectation]:
    """An answer to each thing the author expected."""
    made = []
    for each in file.expect:
        base = compared.get(each.arm, "")
        found = verdict_on(comparison, each.arm) if base else None
        answer = answered(each.direction, found)
        word = "" if found is None else found.verdict
        metric = each.metric or file.compare.metric
        made.append(Expectation(each.arm, base, metric, each.direction, each.why, answer, word))
    return made


def answered(direction: str, found: Judged | None) -> Answer:
    """Borne out or refuted only by a verdict about the setting; anything less is undecided."""
    if found is None or found.level != "L3" or found.verdict in ("undecided", "invalid"):
        return "undecided"
    kind = "same" if found.verdict in ("identical", "equivalent") else found.verdict.split("_")[0]
    if found.verdict.endswith("within_margin") and direction == "same":
        return "borne out"
    return "borne out" if kind == direction else "refuted"
