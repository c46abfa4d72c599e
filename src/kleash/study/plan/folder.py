"""A study's folder: what was asked, every cell with its state, what was spent. Safe to kill.

`study.toml` is what is asked now, `asked.jsonl` every version of it, `plan.json` all cells,
`spent.jsonl` a line for every finished job. What a cell measured is in the run folders alone.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from kleash.runs.run import Run, append_line, holding, read_json, read_lines, trim, write_json
from kleash.study.plan.arms import FOUND, Arm, Told, arms_of, own_selector, told_of
from kleash.study.plan.cells import (
    BASELINE,
    Cell,
    Columns,
    Place,
    State,
    base_checkpoint,
    base_folder,
    cells_of,
    checkpoint_names,
    chosen_of,
    columns,
    mixed,
    run_place,
    start_of,
    state_of,
)
from kleash.study.plan.file import StudyFile
from kleash.train.recipe import Recipe

Size = tuple[Path, int]
"""A file of scores, and how many bytes it had when it was read."""


@dataclass
class Seen:
    """One run of a study as its folder has it now; `run` is None before it has begun."""

    name: str
    run: Run | None
    scored: Columns
    chosen: str = ""
    size: Size | None = None
    let_go: frozenset[str] = frozenset()
    """Checkpoints that early stopping dropped or never came to: nothing is left to measure."""


@dataclass
class Overview:
    """Every cell with its state, and the runs that hold them."""

    cells: list[tuple[Cell, State]] = field(default_factory=list)
    seen: dict[tuple[str, int], Seen] = field(default_factory=dict)
    told: dict[str, Told] = field(default_factory=dict)
    """By arm, its recipe."""

    def of_arm(self, arm: str, seeds: Iterable[int]) -> dict[int, Seen]:
        """An arm's runs by seed, of those seeds that it has."""
        return {seed: self.seen[arm, seed] for seed in seeds if (arm, seed) in self.seen}

    def counts(self) -> dict[str, int]:
        """How many cells are in each state."""
        found: dict[str, int] = {}
        for _, state in self.cells:
            found[state] = found.get(state, 0) + 1
        return found


def job_of(cell: Cell) -> str:
    """The job that fills a cell."""
    if cell.arm.startswith(BASELINE):
        return "baselines"
    return f"{cell.arm}-s{cell.seed}"


def overview(
    folder: Path,
    file: StudyFile,
    arms: Sequence[Arm],
    marks: Mapping[str, State] | None = None,
    before: Overview | None = None,
) -> Overview:
    """The state of every cell; `marks` are jobs known to be running or to have failed.

    Scores that have not grown since an overview `before` are not read again.
    """
    found, marks = Overview(), marks or {}
    known: dict[Size | None, Seen]
    known = {} if before is None else {seen.size: seen for seen in before.seen.values()}
    by_name = {arm.name: arm for arm in arms}
    own = {arm.name: own_selector(file, arm) for arm in arms}
    starts: dict[tuple[int, str], Path] = {}  # a start is looked for once, not for each arm
    found.told = told_of(file, arms)
    for cell in cells_of(file, arms, found.told):
        key = (cell.arm, cell.seed)
        if key not in found.seen:
            arm, place = by_name.get(cell.arm), None
            if arm is not None:
                start = (cell.seed, own[arm.name])
                if start not in starts:
                    starts[start] = start_of(folder, file, *start)
                place = run_place(folder, file, arm, cell.seed, starts[start], found.told[arm.name])
            found.seen[key] = look(folder, file, place, cell, known)
            known[found.seen[key].size] = found.seen[key]  # baselines lie in one file
        seen = found.seen[key]
        state = state_of(cell, seen.scored, seen.chosen)
        if state == "missing":
            if cell.checkpoint in seen.let_go:
                continue
            state = marks.get(job_of(cell), state)
        found.cells.append((cell, state))
    return found


def look(
    folder: Path,
    file: StudyFile,
    place: Place | None,
    cell: Cell,
    known: Mapping[Size | None, Seen],
) -> Seen:
    """The run that holds a cell: an arm's at its place, or the base's (of the baselines too)."""
    path = base_folder(folder, file, cell.seed) if place is None else place.path
    if (place is None or place.run is None) and not (path / "meta.json").is_file():
        return Seen(path.name, None, {})
    run = Run.open(path) if place is None or place.run is None else place.run
    scores, size = path / "scores.jsonl", None
    with suppress(FileNotFoundError):
        size = (scores, scores.stat().st_size)
    scored = known[size].scored if size in known else columns(run)
    if place is None:
        return Seen(path.name, run, scored, size=size)
    shots, items = place.recipe.validated_at(), file.measure.validation
    names = kept_names(run, checkpoint_names(place.recipe))
    chosen = chosen_of(scored, shots, items, names, file.measure.choose)
    return Seen(path.name, run, scored, chosen, size, let_go(run, place.recipe))


def kept_names(run: Run, names: Sequence[str]) -> list[str]:
    """Checkpoints to choose among: all, or those that a finished run kept when it stopped early."""
    if not run.finished:
        return list(names)
    have = run.kept()
    return [name for name in names if name in have]


def let_go(run: Run, recipe: Recipe) -> frozenset[str]:
    """The checkpoints that a finished run does not have because it may stop early."""
    if recipe.early_stop == "off" or not run.finished:
        return frozenset()
    return frozenset(checkpoint_names(recipe)[: run.config["epochs"]]) - run.kept()


# --- what was asked


def write_asked(folder: Path, file: StudyFile, arms: Sequence[Arm], *, seen: bool) -> None:
    """Keep the study as it is asked now; a change after results were `seen` is marked for good."""
    import tomli_w

    plain = without_none(file.model_dump(mode="json"))
    text = tomli_w.dumps(plain)
    path = folder / "study.toml"
    versions = list(asked(folder))
    names = [arm.name for arm in arms]
    if not versions or versions[-1]["study"] != plain or versions[-1]["arms"] != names:
        if (folder / "asked.jsonl").exists():
            trim(folder / "asked.jsonl")
        append_line(folder / "asked.jsonl", {"study": plain, "arms": names, "results_seen": seen})
    passing = path.with_name(f".study.{os.getpid()}.tmp")
    passing.write_text(text, encoding="utf-8")
    passing.replace(path)


def without_none(value: Any) -> Any:
    """TOML has no null: a key that is not given is left out."""
    if isinstance(value, dict):
        return {key: without_none(each) for key, each in value.items() if each is not None}
    return value


def asked(folder: Path) -> Iterator[dict[str, Any]]:
    """Every version of the study that was asked for, oldest first."""
    path = folder / "asked.jsonl"
    return read_lines(path) if path.is_file() else iter(())


def late_arms(folder: Path) -> list[str]:
    """Arms that were added after results had been seen."""
    known: set[str] = set()
    late: list[str] = []
    for version in asked(folder):
        if version["results_seen"]:
            late += [name for name in version["arms"] if name not in known | set(late)]
        known |= set(version["arms"])
    return late


def placed(folder: Path) -> list[Arm]:
    """The arms that tuning found: at the coefficients of a calibration, and a search's best."""
    arms: list[Arm] = []
    if (path := folder / "calibration.json").is_file():
        values = read_json(path)["coefficients"]
        arms += [Arm(f"kl-{value:.3g}", {"leash.coefficient": value}) for value in values]
    if (path := folder / "search.json").is_file() and (keys := read_json(path)["keys"]):
        arms.append(replace(FOUND, keys=keys))
    return arms


# --- the plan


def write_plan(folder: Path, found: Overview, *, failures: Mapping[str, str]) -> None:
    """Every cell with its state, and why what failed did."""
    rows = [[*cell, state] for cell, state in found.cells]
    write_json(
        folder / "plan.json",
        {
            "columns": [*Cell._fields, "state"],
            "cells": rows,
            "counts": found.counts(),
            "chosen": {s.name: s.chosen for s in found.seen.values() if s.chosen},
            "failures": dict(failures),
            "late_arms": late_arms(folder),
        },
    )


def read_plan(folder: Path) -> dict[str, Any]:
    """The plan as it was written last."""
    plan: dict[str, Any] = read_json(folder / "plan.json")
    return plan


def mixtures(
    folder: Path, file: StudyFile, found: Overview, data: str | None = None
) -> list[dict[str, Any]]:
    """What the runs of a study do not share though they should, by content."""
    own = {own_selector(file, arm) for arm in arms_of(file, placed(folder))}
    paths = [
        base_folder(folder, file, seed, selector)
        for seed in file.seeds
        for selector in sorted(own | {""})
    ]
    bases = [Run.open(path) for path in paths if (path / "meta.json").is_file()]
    runs = {seen.name: seen.run for seen in found.seen.values() if seen.run is not None}
    return mixed(runs, bases, base_checkpoint(file, file.seeds[0]), data)


def test_uses(found: Overview) -> dict[str, int]:
    """How many checkpoints of each arm have seen the test split, over all seeds."""
    uses: dict[str, int] = {}
    for (arm, _), seen in found.seen.items():
        names = {name for name, split, _ in seen.scored if split == "test"}
        own = {name for name in names if not name.startswith(BASELINE)}
        uses[arm] = uses.get(arm, 0) + (1 if arm.startswith(BASELINE) else len(own))
    return uses


# --- what was spent


def spend(folder: Path, job: str, result: Mapping[str, Any]) -> None:
    """Keep what a job cost."""
    append_line(folder / "spent.jsonl", {"job": job} | dict(result))


def spent(folder: Path) -> dict[str, float]:
    """All that the study has cost, its tuning too: seconds of workers, answers asked and bought."""
    total = {"seconds": 0.0, "asked": 0.0, "bought": 0.0, "jobs": 0.0}
    for path in (folder / "spent.jsonl", *folder.glob("*/spent.jsonl")):
        for line in read_lines(path) if path.is_file() else ():
            total["jobs"] += 1
            for key in ("seconds", "asked", "bought"):
                total[key] += line.get(key, 0)
    return total


@contextmanager
def held(folder: Path) -> Iterator[None]:
    """Keep a second driver away until the block ends or this one is killed."""
    busy = f"{folder} is being run by process"
    with holding(folder, lambda who: f"{busy} {who}: wait for it, or kleash stop {folder}"):
        (folder / "stop").unlink(missing_ok=True)
        for name in ("spent.jsonl", "asked.jsonl"):
            if (folder / name).exists():
                trim(folder / name)
        yield
